"""Small models, trained a little, for the tests of this folder."""

import numpy as np

import tapewright as tw

__all__ = ["assert_equal", "data", "model_of", "trained"]

layers = tw.keras.layers


def model_of(*sizes, optimizer="adam"):
    model = tw.keras.Sequential([layers.Dense(n, activation="tanh") for n in sizes])
    model.compile(optimizer, "mse", metrics=["mae"])
    return model


def data(seed=0):
    numbers = np.random.default_rng(seed)
    return numbers.normal(size=(20, 3)).astype("f4"), np.ones((20, 2), "f4")


def trained(*sizes, **options):
    model = model_of(*sizes, **options)
    model.fit(*data(), epochs=2, verbose=0)
    return model


def assert_equal(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)
