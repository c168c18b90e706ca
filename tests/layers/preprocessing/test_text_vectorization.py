"""`TextVectorization`: texts as integers and counts, in models, beside Keras."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.layers import TextVectorization

from ..recorded_text import check, check_errors

TEXTS = np.array([["a b"], ["c, d e"], ["A!"]], object)


@keras.saving.register_keras_serializable("tests")
def without_digits(texts):
    return tw.strings.regex_replace(tw.strings.lower(texts), "[0-9]", "")


@keras.saving.register_keras_serializable("tests")
def at_commas(texts):
    return tw.strings.split(texts, ",")


def test_texts_become_the_numbers_of_keras():
    check("TextVectorization")


def test_errors_are_those_of_keras():
    check_errors("TextVectorization")
    with pytest.raises(ValueError, match="ragged=True requires output_mode 'int'"):
        TextVectorization(ragged=True, output_mode="count")
    with pytest.raises(ValueError, match="sparse=True requires an output_mode"):
        TextVectorization(sparse=True)
    with pytest.raises(ValueError, match="must contain tokens"):
        TextVectorization().adapt(["", "..."])
    with pytest.raises(RuntimeError, match="no vocabulary yet"):
        TextVectorization()(["a"])


def test_functions_standardize_and_split():
    layer = TextVectorization(standardize=without_digits, split=at_commas)
    layer.adapt(["a1,B", "b2,c d"])
    assert layer.get_vocabulary(False) == ["b", "c d", "a"]
    again = TextVectorization.from_config(layer.get_config())
    again.set_vocabulary(layer.get_vocabulary())
    for each in (layer, again):
        assert each(["7c d,x,B"]).numpy().tolist() == [[3, 1, 2]]
    matrix = TextVectorization(
        split=lambda x: tw.strings.split(x).to_tensor(shape=(None, 2))
    )
    matrix.adapt(["a b c"])
    assert matrix(["b c", "a"]).numpy().tolist() == [[2, 1], [3, 0]]


@pytest.mark.parametrize("options", [{"output_sequence_length": 4}, {}])
def test_models_train_on_texts(options, tmp_path):
    vectorize = TextVectorization(**options)
    vectorize.adapt(tw.data.Dataset.from_tensor_slices(TEXTS[:, 0]).batch(2))
    model = keras.Sequential(
        [
            keras.Input((1,), dtype="string"),
            vectorize,
            keras.layers.Embedding(vectorize.vocabulary_size(), 3),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse")
    labels = np.array([[1.0], [0.0], [1.0]], "float32")
    dataset = tw.data.Dataset.from_tensor_slices((TEXTS, labels)).batch(3)
    before = model.evaluate(dataset, verbose=0)
    model.fit(TEXTS, labels, epochs=2, verbose=0)
    model.fit(dataset, verbose=0)
    mapped = dataset.map(lambda x, y: (vectorize(x), y))
    assert next(iter(mapped))[0].shape == (3, options.get("output_sequence_length", 3))
    assert model.evaluate(TEXTS.astype(str), labels, verbose=0) < before
    outputs = model.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(model(tw.constant(TEXTS)), outputs, rtol=1e-5)
    flat = ["a b", "c, d e", "A!"]
    np.testing.assert_allclose(model.predict(flat, verbose=0), outputs, rtol=1e-5)


def test_a_trace_of_texts_of_unknown_length_says_so():
    layer = TextVectorization(vocabulary=["a"])
    with pytest.raises(TypeError, match="pass output_sequence_length"):
        tw.function(layer).get_concrete_function(tw.TensorSpec([2], "string"))
    assert tw.function(layer)(["a a", ""]).numpy().tolist() == [[2, 2], [0, 0]]


def test_models_of_unknown_lengths_are_layers_of_others():
    layer = TextVectorization(vocabulary=["a", "b"])
    inner = keras.Sequential([keras.Input((1,), dtype="string"), layer])
    texts = keras.Input((1,), dtype="string")
    outer = keras.Model(texts, inner(texts))
    assert outer.output.shape == (None, None) and outer.output.dtype == "int64"
    assert outer.predict(TEXTS, verbose=0).tolist() == [[2, 3, 0], [1, 1, 1], [2, 0, 0]]


def test_machine_code_takes_texts():
    layer = TextVectorization(vocabulary=["a", "b"], output_mode="multi_hot")
    traced = tw.function(lambda x: 2 * layer(x), jit_compile=True)
    assert traced(["a a", "b x"]).numpy().tolist() == [[0, 2, 0], [2, 0, 2]]
