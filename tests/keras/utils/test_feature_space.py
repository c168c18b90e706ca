"""`FeatureSpace`: outputs and files of Keras, columns in data sets, and mistakes."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.data import Dataset
from tapewright.keras.utils import FeatureSpace

HERE = Path(__file__).parent / "reference"


def load_record():
    path = HERE / "record_feature_space.py"
    spec = importlib.util.spec_from_file_location("record", path)
    record = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(record)
    return record


RECORD = load_record()


@pytest.fixture(scope="module")
def space():
    space = RECORD.vectors(FeatureSpace)
    space.adapt(RECORD.select(space))
    return space


def test_outputs_are_those_of_keras():
    expected = json.loads((HERE / "feature_space.json").read_text())
    found = RECORD.outputs(FeatureSpace)
    assert found.keys() == expected.keys()
    for key, (dtype, values) in expected.items():
        assert found[key][0] == dtype, key
        np.testing.assert_allclose(found[key][1], values, rtol=1e-5, err_msg=key)


def test_preprocessors_are_named_for_their_feature_or_kind():
    names = [
        FeatureSpace.float(name="size").preprocessor.name,
        FeatureSpace.string_hashed(8, name="word").preprocessor.name,
        FeatureSpace.float_normalized().preprocessor.name,
    ]
    assert names[:2] == ["size_preprocessor", "word_preprocessor"]
    assert re.fullmatch(r"float_normalized(_\d+)?_preprocessor", names[2])


def test_files_of_keras_and_ours_hold_all_that_was_adapted(space, tmp_path):
    table = RECORD.select(space)
    expected = space(table).numpy()
    theirs = keras.saving.load_model(HERE / "feature_space.keras")
    np.testing.assert_allclose(theirs(table), expected, rtol=1e-6)
    theirs.save(tmp_path / "space.keras")
    ours = keras.saving.load_model(tmp_path / "space.keras")
    np.testing.assert_array_equal(ours(table), theirs(table))
    model = keras.Model(ours.get_inputs(), ours.get_encoded_features())
    model.save(tmp_path / "model.keras")
    model = keras.saving.load_model(tmp_path / "model.keras")
    columns = {name: tw.constant(values) for name, values in table.items()}
    np.testing.assert_allclose(model(columns), expected, rtol=1e-6)


def test_a_new_process_knows_the_classes(space, tmp_path):
    model = keras.Model(space.get_inputs(), space.get_encoded_features())
    model.save(tmp_path / "model.keras")
    code = f"""if True:
        from tapewright.keras import saving
        print(type(saving.load_model({str(tmp_path / "model.keras")!r})).__name__)
        config = {keras.saving.serialize_keras_object(space)!r}
        print(type(saving.deserialize_keras_object(config)).__name__)
    """
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.split() == ["Model", "FeatureSpace"], ran.stderr


def test_samples_and_batches_of_a_data_set_are_encoded_in_threads(space):
    ds = Dataset.from_tensor_slices(RECORD.select(space))
    expected = space(RECORD.select(space)).numpy()
    loaded = keras.saving.load_model(HERE / "feature_space.keras")  # not called before
    for each in (space, loaded):
        rows = list(ds.map(each, num_parallel_calls=2).as_numpy_iterator())
        np.testing.assert_allclose(rows, expected, rtol=1e-6)
    batches = list(ds.batch(2).map(tw.function(space)).as_numpy_iterator())
    np.testing.assert_allclose(np.concatenate(batches), expected, rtol=1e-6)
    again = RECORD.vectors(FeatureSpace)
    again.adapt(ds.batch(3))
    assert again(RECORD.select(space)).shape == expected.shape
    again.adapt(ds.take(2))  # a smaller vocabulary
    assert again(RECORD.select(space)).shape[1] < expected.shape[1]


def test_layers_with_all_they_need_are_not_adapted():
    words = keras.layers.TextVectorization(vocabulary=["a", "b"], output_mode="count")
    layer = keras.layers.Normalization(mean=1.0, variance=4.0)
    space = FeatureSpace(
        {
            "text": FeatureSpace.feature("string", words, "int"),
            "x": FeatureSpace.feature("float32", layer, "float"),
            "y": FeatureSpace.float_discretized(None, [0.0, 1.0]),
        },
        output_mode="dict",
    )
    row = space({"text": "a b a", "x": 5, "y": 0.5})
    assert row["text"].numpy().tolist() == [0, 2, 1]
    assert row["x"].numpy().tolist() == [2.0]
    assert row["y"].numpy().tolist() == [0.0, 1.0, 0.0]


rescaling = keras.layers.Rescaling(1.0)


@pytest.mark.parametrize(
    "act, words",
    [
        (lambda: FeatureSpace({}), "features must have an entry"),
        (lambda: FeatureSpace({"a": "integer"}), "kind of feature 'a'.*got 'integer'"),
        (lambda: FeatureSpace({"a": "float"}, "list"), "output_mode"),
        (
            lambda: FeatureSpace({"a": "float"}, crosses=[("a", "b")]),
            r"crosses must name features, got \['b'\]",
        ),
        (
            lambda: FeatureSpace({"a": "float"}, crosses=[("a", "a")], crossing_dim=0),
            "crossing_dim, got 0",
        ),
        (lambda: FeatureSpace.cross(("a", "b"), 3, "float"), "output_mode"),
        (lambda: FeatureSpace.feature("string", rescaling, "x"), "output_mode"),
        (lambda: FeatureSpace.feature("string", "float", "int"), "must be a layer"),
        (
            lambda: FeatureSpace({"a": "float_normalized"})({"a": 1.0}),
            r"call adapt\(dataset\) first.*\['a'\]",
        ),
        (
            lambda: FeatureSpace({"a": "float"}).adapt([1.0]),
            "a dict of arrays, got list",
        ),
        (
            lambda: FeatureSpace({"a": "float_normalized"}).adapt(
                {"a": np.float32([])}
            ),
            "dataset must not be empty",
        ),
        (lambda: FeatureSpace({"a": "float"})([1.0]), "must be a dict of features"),
        (
            lambda: FeatureSpace({"a": "float"})({"a": 1.0, "b": 2.0}),
            r"must have the features \['a'\], got \['a', 'b'\]",
        ),
        (
            lambda: FeatureSpace(
                {"a": FeatureSpace.integer_hashed(3, output_mode="int")}
            ).get_inputs(),
            "'a' has dtype int64; use output_mode='dict'",
        ),
        (
            lambda: FeatureSpace(
                {"a": FeatureSpace.feature("float32", rescaling, "one_hot")}
            ).get_inputs(),
            "'a' must return integers .* got float32",
        ),
    ],
)
def test_mistakes_are_named(act, words):
    with pytest.raises(ValueError, match=words):
        act()


def test_a_layer_of_integers_without_a_known_number_has_no_one_hot():
    @keras.saving.register_keras_serializable("tests")
    class Whole(keras.layers.Layer):
        def call(self, inputs):
            return tw.cast(inputs, "int32")

    feature = FeatureSpace.feature("float32", Whole(), "one_hot")
    with pytest.raises(ValueError, match="Whole returns is unknown"):
        FeatureSpace({"a": feature}).get_encoded_features()
