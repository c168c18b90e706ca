"""Metrics of compiled models."""

import numpy as np
import pytest

from tapewright import Input, Model

from .small_models import affine, linear


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 3)).astype("f4")
    return x, (x.sum(1, keepdims=True) * 2).astype("f4")


def test_weighted_metrics_see_the_weights(data):
    x, y = data
    model = linear(metrics=["mae"], weighted_metrics=["mae"])
    weights = np.r_[np.zeros(20), np.ones(20)]
    logs = model.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True)
    error = np.abs(model(x).numpy() - y)
    assert logs["mae"] == pytest.approx(error.mean(), rel=1e-5)
    assert logs["weighted_mae"] == pytest.approx(error[20:].mean(), rel=1e-5)


def test_metrics_may_be_given_in_the_structure_of_the_outputs(data):
    x, y = data
    start = Input((3,), name="x")
    a, b, c = (affine(name, start) for name in "abc")
    model = Model(start, {"p": (a, b), "q": c})
    metrics = {"p": (["mae"], None), "q": ["mse", "mae"]}
    model.compile("sgd", "mse", metrics=metrics)
    found = model.evaluate(x, {"p": (y, y), "q": y}, verbose=0, return_dict=True)
    assert {"a_mae", "c_mse", "c_mae"} <= set(found)
