"""Derivatives to the third order near 0, at ties and far out, beside those of mpmath.

`reference/record_derivatives.py` recorded them. What is a normal number in the dtype must
be right relative to its own size: rules that start from a rounded output lose it.
"""

from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.ops.math import smooth

RECORDED = np.load(Path(__file__).parent / "reference" / "derivatives.npz")
FUNCTIONS = {
    "tanh": tw.tanh,
    "sigmoid": tw.sigmoid,
    "softplus": tw.nn.softplus,
    "log_sigmoid": tw.math.log_sigmoid,
    "elu": tw.nn.elu,
    "selu": tw.nn.selu,
    "celu": lambda x: keras.ops.celu(x, 1.5),
    "silu": tw.nn.silu,
    "mish": keras.activations.mish,
    "gelu": tw.nn.gelu,
    "gelu by tanh": lambda x: tw.nn.gelu(x, approximate=True),
    "softsign": tw.nn.softsign,
    "tanh_shrink": keras.ops.tanh_shrink,
    "squareplus": keras.ops.squareplus,
    "log_cosh": smooth.log_cosh,
    "exp2": keras.ops.exp2,
    "expm1": tw.math.expm1,
    "log1p": tw.math.log1p,
    "cbrt": keras.ops.cbrt,
    "sinc": keras.ops.sinc,
    "asin": tw.asin,
    "acos": tw.acos,
    "atan": tw.atan,
    "asinh": tw.asinh,
    "atanh": tw.atanh,
    "erf": tw.math.erf,
    "erfc": tw.math.erfc,
    "hypot": keras.ops.hypot,
    "arctan2": keras.ops.arctan2,
    "logaddexp": keras.ops.logaddexp,
    "logaddexp2": keras.ops.logaddexp2,
}
OF_TWO = ["hypot", "arctan2", "logaddexp", "logaddexp2"]
TRACED = "tanh sigmoid elu silu tanh_shrink sinc squareplus hypot logaddexp".split()
DTYPES = [np.float32, np.float64]
TOLERANCE = {np.float32: 1e-4, np.float64: 1e-10}


def derivative(f, inputs, word):
    """The derivative by the letters of the word, the last one innermost."""
    if not word:
        return f(*inputs)
    by = inputs["xy".index(word[0])]
    with tw.GradientTape() as tape:
        tape.watch(by)
        y = derivative(f, inputs, word[1:])
    return tape.gradient(y, by, unconnected_gradients="zero")


def all_derivatives(name, inputs):
    words = ["", "x", "xx", "xxx"]
    if name in OF_TWO:
        words += ["y", "xy", "yy", "xxy", "xyy", "yyy"]
    return {word: derivative(FUNCTIONS[name], inputs, word) for word in words}


def points(name, dtype):
    letters = "xy" if name in OF_TWO else "x"
    return [RECORDED[f"{name}|{dtype.__name__}|{letter} at"] for letter in letters]


def assert_recorded(name, dtype, found):
    smallest, largest = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    for word, got in found.items():
        wanted = RECORDED[f"{name}|{dtype.__name__}|{word}"]
        got = got.numpy().astype(np.float64)
        with np.errstate(all="ignore"):
            near = np.abs(got - wanted) <= TOLERANCE[dtype] * np.abs(wanted) + smallest
        right = np.where(np.abs(wanted) > largest, ~np.isnan(got), near)
        if not right.all():
            at = ~right
            where = [list(x[at][:5]) for x in points(name, dtype)]
            raise AssertionError((word, where, got[at][:5], wanted[at][:5]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_to_the_third_order_are_those_of_mpmath(name, dtype):
    inputs = [tw.constant(x) for x in points(name, dtype)]
    assert_recorded(name, dtype, all_derivatives(name, inputs))


@pytest.mark.parametrize("target", ["numpy", "native"])
@pytest.mark.parametrize("name", TRACED)
def test_they_are_so_in_traced_functions(name, target):
    inputs = [tw.constant(x) for x in points(name, np.float64)]
    with tw.config.use_target(target):
        found = tw.function(lambda *inputs: all_derivatives(name, inputs))(*inputs)
        assert_recorded(name, np.float64, found)
