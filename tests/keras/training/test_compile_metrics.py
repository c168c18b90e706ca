"""Metrics of compiled models."""

import numpy as np
import pytest

from tapewright import Input, Model

from .small_models import affine, linear


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


def test_metrics_in_a_list_are_for_a_dict_of_outputs_inside_too(data):
    x, y = data
    start = Input((3,), name="x")
    a, b, c = (affine(name, start) for name in "abc")
    model = Model(start, {"p": {"a": a, "b": b}, "q": c})
    model.compile("sgd", "mse", metrics={"p": [["mae"], None], "q": [None, "mse"]})
    labels = {"p": {"a": y, "b": y}, "q": y}
    logs = model.evaluate(x, labels, verbose=0, return_dict=True)
    assert {name for name in logs if "loss" not in name} == {"a_mae", "c_mse"}


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (["mae"], r"metrics: must have 2 entries, .* \['a', 'b'\], got 1; pass"),
        ("mae", r"metrics: must have 2 entries, .* \['a', 'b'\], got 1; pass"),
        ([["mae"], {"x": "mae"}], r"metrics\[1\]\['x'\]: there is no such output"),
        ({"a": "mae", "bb": "mae"}, r"no output 'bb'. Did you mean 'b'"),
    ],
)
def test_metrics_that_fit_no_structure_are_refused(data, metrics, message):
    x, y = data
    start = Input((3,), name="x")
    model = Model(start, [affine("a", start), affine("b", start)])
    model.compile("sgd", "mse", metrics=metrics)
    with pytest.raises(ValueError, match=message):
        model.evaluate(x, [y, y], verbose=0)


def test_metrics_are_in_the_order_of_the_outputs(data):
    x, y = data
    start = Input((3,), name="x")
    model = Model(start, {name: affine(name, start) for name in "ab"})
    model.compile("sgd", "mse", metrics={"b": ["mse"], "a": ["mae"]})
    model.evaluate(x, {"a": y, "b": y}, verbose=0)
    assert [m.name for m in model.compiled_metrics.metrics] == ["mae", "mse"]


@pytest.mark.parametrize("name", ["crossentropy", "CE"])
def test_the_crossentropy_that_fits_the_labels_is_a_loss_and_a_metric(data, name):
    model = Model(start := Input((3,)), affine("a", start))
    model.compile("sgd", name, metrics=[name, "acc"])
    labels = np.r_[np.zeros(20), np.ones(20)][:, None]
    logs = model.evaluate(data[0], labels, verbose=0, return_dict=True)
    assert set(logs) == {"acc", name, "loss"}
    assert logs["loss"] == pytest.approx(logs[name], rel=1e-5)
