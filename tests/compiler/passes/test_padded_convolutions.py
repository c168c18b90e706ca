"""Pads in front of convolutions: what is left of them, and the same results."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.passes.padded_convolutions import padded_convolutions
from tapewright.compiler.pipeline import optimize

pytest.importorskip("llvmlite")

NONE = [0, 0]


@pytest.fixture(autouse=True)
def native(few_passes):
    with tw.config.use_target("native"):
        yield


def numbers(*shape):
    made = np.random.default_rng(0).normal(size=shape)
    return tw.constant(made.astype(np.float32))


def check(f, *arrays):
    """Compare a function with eager mode; return the names of the ops that are left."""
    traced = tw.function(f)
    pairs = zip(
        tw.nest.flatten(traced(*arrays)), tw.nest.flatten(f(*arrays)), strict=True
    )
    for a, b in pairs:
        size = np.abs(np.asarray(b)).max(initial=1e-30)
        np.testing.assert_allclose(np.asarray(a) / size, np.asarray(b) / size, 0, 2e-5)
    graph = traced.get_concrete_function(*arrays).graph
    return [node.name for node in optimize(graph).nodes]


def convolved(paddings, strides=1, padding="VALID", dilations=1, value=0.0):
    def f(x, filters):
        with tw.GradientTape() as tape:
            tape.watch([x, filters])
            y = tw.pad(x, paddings, constant_values=value)
            y = tw.nn.conv2d(y, filters, strides, padding, dilations=dilations)
            loss = tw.reduce_sum(y * y * y)
        return y, *tape.gradient(loss, [x, filters])

    return f


def second(f):
    def g(x, filters):
        with tw.GradientTape() as tape:
            tape.watch([x, filters])
            _, *first = f(x, filters)
            along = tw.reduce_sum(first[0] * x) + tw.reduce_sum(first[1] * filters)
        return tape.gradient(along, [x, filters])

    return g


IMAGES, FILTERS = numbers(2, 9, 8, 3), numbers(3, 3, 3, 4)


@pytest.mark.parametrize(
    ("paddings", "arguments"),
    [
        ([NONE, [1, 1], [1, 1], NONE], {}),
        ([NONE, [0, 1], [0, 1], NONE], {"strides": 2}),
        ([NONE, [3, 1], [0, 2], NONE], {"strides": 2, "padding": "SAME"}),
        ([NONE, [6, 7], [5, 9], NONE], {"strides": 3}),
        ([NONE, [2, 2], [2, 2], NONE], {"dilations": 2}),
    ],
    ids=str,
)
def test_convolutions_pad_their_images(paddings, arguments):
    f = convolved(paddings, **arguments)
    assert not {"pad", "crop"} & {*check(f, IMAGES, FILTERS)}
    assert "pad" not in check(second(f), IMAGES, FILTERS)


@pytest.mark.parametrize(
    ("paddings", "value"),
    [
        ([NONE, [1, 1], [1, 1], NONE], 2.0),
        ([[1, 0], [1, 1], [1, 1], NONE], 0.0),
    ],
    ids=str,
)
def test_other_pads_stay(paddings, value):
    names = check(convolved(paddings, value=value), IMAGES, FILTERS)
    assert "pad" in names


def test_pads_that_others_read_stay():
    def f(x, filters):
        y = tw.pad(x, [NONE, [1, 1], [1, 1], NONE])
        return tw.nn.conv2d(y, filters, 1, "VALID"), tw.exp(y)

    assert "pad" in check(f, IMAGES, FILTERS)


def test_groups_and_several_convolutions():
    def f(x, filters):
        with tw.GradientTape() as tape:
            tape.watch([x, filters])
            y = tw.pad(x, [NONE, [2, 1], [1, 2], NONE])
            z = tw.nn.depthwise_conv2d(y, filters, [1, 2, 2, 1], "VALID")
            z += tw.nn.depthwise_conv2d(y, filters * 2.0, [1, 2, 2, 1], "VALID")
            loss = tw.reduce_sum(z * z)
        return z, tape.gradient(loss, [x, filters])

    names = check(f, IMAGES, numbers(3, 3, 3, 2))
    assert not {"pad"} & {*names}


def test_graphs_without_pads_are_as_they_were():
    f = tw.function(lambda x, w: tw.nn.conv2d(x, w, 1, "SAME"))
    graph = f.get_concrete_function(IMAGES, FILTERS).graph
    assert padded_convolutions(graph) is graph
