"""Layers and models that several places share: one object each in every copy and file."""

import copy
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras import Input, Model, Sequential, layers, models

sys.path.insert(0, str(Path(__file__).parent))
from random_models import outputs_of, random_model  # noqa: E402

REFERENCE = Path(__file__).parent / "reference"


def through_file(ending):
    def again(model, folder):
        model.save(folder / f"m{ending}")
        return models.load_model(folder / f"m{ending}")

    return again


def with_weights(make):
    """A copy by ``make(model)``, which then gets the weights."""

    def again(model, folder):
        other = make(model)
        other.set_weights(model.get_weights())
        return other

    return again


def through_weights(model, folder):
    model.save_weights(folder / "m.weights.h5")
    other = models.model_from_json(model.to_json())
    other.load_weights(folder / "m.weights.h5")
    return other


def by_config(layer):
    return type(layer).from_config(layer.get_config())


COPIES = {
    "keras": through_file(".keras"),
    "h5": through_file(".h5"),
    "weights": through_weights,
    "json": with_weights(lambda m: models.model_from_json(m.to_json())),
    "config": with_weights(by_config),
    "clone": with_weights(models.clone_model),
    "clone_function": with_weights(
        lambda m: models.clone_model(m, clone_function=by_config)
    ),
    "recursive": with_weights(lambda m: models.clone_model(m, recursive=True)),
    "pickle": lambda m, folder: pickle.loads(pickle.dumps(m)),
    "deepcopy": lambda m, folder: copy.deepcopy(m),
}
SEEDS = (11, 12, 14, 23, 29, 31, 33, 45)


def in_and_beside_a_model():
    d, start = layers.Dense(3, name="d"), Input((3,))
    sub = Model(start, keras.ops.relu(d(start)), name="sub")
    x = Input((3,))
    return Model(x, d(sub(d(x)))), sub, d


@pytest.mark.parametrize("name", COPIES)
def test_a_layer_called_before_and_after_a_model_that_has_it(name, tmp_path):
    model, _, d = in_and_beside_a_model()
    model.set_weights([2 * np.eye(3), [-1.0, 0.0, 1.0]])
    other = COPIES[name](model, tmp_path)
    # 2x - 1, 2x, 2x + 1 for each call, ReLU after the second
    x = np.array([[0.25, -1.0, 3.0]], "float32")
    first = 2 * x + [-1, 0, 1]
    second = np.maximum(2 * first + [-1, 0, 1], 0)
    np.testing.assert_array_equal(other(x), 2 * second + [-1, 0, 1])
    assert len(other.weights) == 2
    assert other.get_layer("sub").get_layer("d") is other.get_layer("d")


@pytest.mark.parametrize("name", COPIES)
def test_a_layer_that_stands_twice_in_a_sequential(name, tmp_path):
    d = layers.Dense(3, name="d")
    model = Sequential([Input((3,)), d, layers.ReLU(), d, layers.Dense(1, name="e")])
    weights = [2 * np.eye(3), [-1.0, 0.0, 1.0], np.ones((3, 1)), [0.0]]
    model.set_weights(weights)
    other = COPIES[name](model, tmp_path)
    assert len(other.weights) == 4 and other.layers[0] is other.layers[2]
    x = np.array([[0.25, -1.0, 3.0]], "float32")
    first = np.maximum(2 * x + [-1, 0, 1], 0)
    np.testing.assert_array_equal(other(x), [[np.sum(2 * first + [-1, 0, 1])]])


@pytest.mark.parametrize("name", COPIES)
def test_random_graphs_of_shared_parts_are_copied_whole(name, tmp_path):
    for seed in SEEDS:
        model, x = random_model(keras, seed)
        other = COPIES[name](model, tmp_path)
        assert len(other.weights) == len(model.weights)
        tw.nest.assert_same_structure(model.output, other.output)
        pairs = zip(outputs_of(model, x), outputs_of(other, x), strict=True)
        for a, b in pairs:
            np.testing.assert_allclose(b, a, 1e-6, 1e-6, err_msg=f"seed {seed}")


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs_run_as_saved_functions(seed, tmp_path):
    model, x = random_model(keras, seed)
    tw.saved_model.save(model, tmp_path / "m")
    other = tw.saved_model.load(tmp_path / "m")
    for a, b in zip(outputs_of(model, x), outputs_of(other, x), strict=True):
        np.testing.assert_allclose(b, a, 1e-5, 1e-5)


def test_a_saved_model_of_a_dict_of_inputs_takes_one(tmp_path):
    a, b = Input((2,)), Input((2,))
    model = Model({"a": a, "b": b}, layers.Subtract()([a, b]))
    tw.saved_model.save(model, tmp_path / "m")
    other = tw.saved_model.load(tmp_path / "m")
    x = {"a": tw.constant([[3.0, 4.0]]), "b": tw.constant([[1.0, 1.0]])}
    np.testing.assert_array_equal(other(x), [[2.0, 3.0]])
    _, specs = other.signatures["serving_default"].structured_input_signature
    assert list(specs) == ["inputs_a", "inputs_b"]


def test_files_of_keras_number_a_layer_from_its_second_place_on():
    model = models.load_model(REFERENCE / "shared_layers.keras")
    assert model.get_layer("sub").layers[0] is model.get_layer("d")
    x = np.array([[0.25, -1.0, 3.0]], "float32")
    first = np.maximum(2 * x + [-1, 0, 1], 0)
    np.testing.assert_array_equal(model(x), 2 * first + [-1, 0, 1])


@keras.saving.register_keras_serializable("shared_layers")
class Both(layers.Layer):
    """A layer of others, which its config holds."""

    def __init__(self, first, second, **kwargs):
        super().__init__(**kwargs)
        self.first, self.second = first, second

    def call(self, inputs):
        return self.first(inputs) + self.second(inputs)

    def get_config(self):
        parts = keras.saving.serialize_keras_object([self.first, self.second])
        return {**super().get_config(), "first": parts[0], "second": parts[1]}

    @classmethod
    def from_config(cls, config):
        parts = [config.pop("first"), config.pop("second")]
        return cls(*keras.saving.deserialize_keras_object(parts), **config)


@pytest.mark.parametrize("name", COPIES)
def test_a_layer_of_the_user_inside_another_and_beside_it(name, tmp_path):
    d = layers.Dense(3, name="d")
    inner = Both(d, layers.Dense(3, name="e"), name="inner")
    x = Input((3,))
    model = Model(x, inner(Both(inner, d, name="outer")(d(x))))
    other = COPIES[name](model, tmp_path)
    assert len(other.weights) == 4
    assert other.get_layer("outer").first is other.get_layer("inner")
    assert other.get_layer("inner").first is other.get_layer("d")
    x = np.array([[0.25, -1.0, 3.0]], "float32")
    np.testing.assert_array_equal(other(x), model(x))


def test_layers_of_one_name_in_two_models_stay_two():
    parts = []
    for _ in range(2):
        x = Input((3,))
        parts.append(Model(x, layers.Dense(3, name="d")(x)))
    x = Input((3,))
    model = Model(x, parts[1](parts[0](parts[0](x))))
    for copied in COPIES["json"], COPIES["config"], COPIES["clone"]:
        other = copied(model, None)
        assert len(other.weights) == 4
        first, second = other.layers[1:]
        assert first.get_layer("d") is not second.get_layer("d")


def test_a_layer_without_weights_has_no_number():
    """Keras can read it then in files where it cannot read a shared layer."""
    relu, x = layers.ReLU(), Input((3,))
    model = Model(x, relu(Sequential([Input((3,)), relu])(x)))
    assert "shared_object_id" not in model.to_json()
    assert "shared_object_id" in in_and_beside_a_model()[0].to_json()


@keras.saving.register_keras_serializable("shared_layers")
class Backbone(layers.Layer):
    """A layer that makes a model of a config of its own."""

    config: dict

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.model = Model.from_config(self.config)

    def call(self, inputs):
        return self.model(inputs)


def test_numbers_of_a_config_that_a_constructor_reads_are_its_own():
    Backbone.config = in_and_beside_a_model()[0].get_config()
    e, x = layers.Dense(3, name="e"), Input((3,))
    sub = Sequential([Input((3,)), e], name="other")
    model = Model(x, e(Backbone(name="b")(sub(x))))
    for copied in COPIES["json"], COPIES["config"], COPIES["clone"]:
        other = copied(model, None)
        assert len(other.weights) == 4
        assert other.get_layer("b").model.get_layer("d").name == "d"
        assert other.get_layer("other").layers[0] is other.get_layer("e")


def test_a_clone_by_a_function_shares_the_layers_that_the_function_gives():
    model, _, d = in_and_beside_a_model()
    made = {}

    def wider(layer):
        config = layer.get_config()
        if layer.name == "d":
            config["use_bias"] = False
        made[layer.name] = type(layer).from_config(config)
        return made[layer.name]

    other = models.clone_model(model, clone_function=wider)
    assert other.get_layer("d") is made["d"]
    assert other.get_layer("sub").get_layer("d") is made["d"]
    assert [w.path for w in other.weights] == ["d/kernel"]


def test_a_config_that_calls_a_layer_on_no_tensor_is_refused():
    config = json.loads(json.dumps(in_and_beside_a_model()[0].get_config()))
    entry = next(each for each in config["layers"] if each["name"] == "d")
    entry["inbound_nodes"][0]["args"] = [1.0]
    with pytest.raises(ValueError, match="'d' is called on no tensor"):
        Model.from_config(config)
