"""A small model and its `fit`, for callbacks in training."""

import numpy as np

import tapewright as tw
from tapewright import keras
from tapewright.keras import layers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 4)).astype(np.float32)
Y = (X[:, :1] > 0).astype(np.float32)


def small_model(**options):
    keras.utils.set_random_seed(1)
    net = tw.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(8, activation="relu"),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    options = {"optimizer": "adam", "metrics": ["accuracy"], **options}
    net.compile(loss="binary_crossentropy", **options)
    return net


def fit_small(net, *given, **options):
    options = {"epochs": 3, "batch_size": 16, "verbose": 0, **options}
    return net.fit(X, Y, callbacks=list(given), **options)
