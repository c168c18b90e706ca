"""Derivatives at a point, for the tests of this folder."""

import numpy as np
import pytest

import tapewright as tw


@pytest.fixture
def slopes():
    """``slopes(f, *values, order=1)``: a derivative of the sum of ``f``, float64."""
    return derivative


def derivative(f, *values, order=1):
    """The ``order``-th derivative of the sum of ``f`` by its first argument, float64."""
    x, *rest = (tw.constant(np.asarray(v, np.float64)) for v in values)
    tapes = [tw.GradientTape() for _ in range(order)]
    for tape in tapes:
        tape.__enter__()
        tape.watch(x)
    y = f(x, *rest)
    for tape in reversed(tapes):
        tape.__exit__(None, None, None)
        y = tape.gradient(y, x, unconnected_gradients="zero")
    return tw.convert_to_tensor(y).numpy().tolist()
