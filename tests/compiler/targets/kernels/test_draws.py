"""Random numbers on each target: the bits that NumPy draws."""

import numpy as np
import pytest

from tapewright.ops.random.philox import dropout_mask, random_uniform

SHAPES = [(), (1,), (3,), (7, 11), (8, 4), (4099,), (3, 8192), (130, 701)]
STATES = [[1, 2], [0, 0], [-1, -(2**63)], [2**63 - 1, 12345678901234567]]
BOUNDS = [(0, 3), (-1, 1), (0.25, 0.5), (1, 1.0000001), (5, 2), (0.1, 3)]


@pytest.fixture(params=["float32", "float64"])
def draw(check, request):
    """``draw(op, state, **attributes)`` checks an op for a dtype."""

    def checked(op, state, **attributes):
        attributes = {"purpose": 0, "dtype": request.param, **attributes}
        check(op, [np.array(state, np.int64)], attributes)

    return checked


def shapes_for(target):
    return SHAPES if target == "native" else [(), (515,)]  # gcc compiles each


@pytest.mark.parametrize("purpose", [0, 1, 3])
@pytest.mark.parametrize("state", STATES, ids=str)
def test_uniform_numbers_are_those_of_numpy(draw, target, state, purpose):
    for shape in shapes_for(target):
        draw(random_uniform, state, shape=shape, purpose=purpose)


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_uniform_numbers_lie_in_their_range(draw, bounds):
    low, high = bounds
    draw(random_uniform, [3, 4], shape=(999,), minval=low, maxval=high)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 1 / 3, 1.0])
def test_dropout_masks_are_those_of_numpy(draw, target, rate):
    for shape in shapes_for(target):
        draw(dropout_mask, [7, 1 << 40], shape=shape, rate=rate)
