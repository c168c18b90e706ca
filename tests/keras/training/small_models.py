"""Small models that are trained here."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Sequential
from tapewright.layers import Dense


def linear(**options):
    model = Sequential([Input((3,)), Dense(1)])
    model.compile(tw.optimizers.SGD(0.1), "mse", **options)
    return model


def unchanged(model, call, error, match):
    before = [*model.get_weights(), model.optimizer.iterations.numpy()]
    with pytest.raises(error, match=match):
        call()
    after = [*model.get_weights(), model.optimizer.iterations.numpy()]
    for old, new in zip(before, after):
        np.testing.assert_array_equal(old, new)


def affine(name, x):
    return Dense(1, name=name, kernel_initializer="ones")(x)
