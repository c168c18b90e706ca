"""`Hashing` and `HashedCrossing`, beside Keras."""

import numpy as np

import tapewright as tw
from tapewright import keras

from ..recorded_text import check, check_errors


def test_hashes_are_those_of_keras():
    check("Hashing")


def test_crosses_are_those_of_keras():
    check("HashedCrossing")


def test_errors_are_those_of_keras():
    check_errors("Hashing", "HashedCrossing")


def test_models_cross_strings_with_integers():
    word, number = keras.Input((1,), dtype="string"), keras.Input((1,), dtype="int64")
    crossed = keras.layers.HashedCrossing(5, output_mode="one_hot")([word, number])
    assert crossed.shape == (None, 5) and crossed.dtype == "float32"
    model = keras.Model([word, number], crossed)
    data = [np.array([["A"], ["B"], ["A"]]), np.array([[101], [101], [102]])]
    assert model.predict(data, verbose=0).argmax(1).tolist() == [1, 4, 3]


def test_machine_code_hashes():
    layer = keras.layers.Hashing(3)
    traced = tw.function(lambda x: layer(x) + 1, jit_compile=True)
    assert traced(["A", "B", "E"]).numpy().tolist() == [2, 1, 3]
