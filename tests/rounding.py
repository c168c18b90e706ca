"""Comparison of what traced functions give with eager mode, on the target that is set."""

import numpy as np

from tapewright import config

__all__ = ["assert_as_eager", "same_calls", "without_overflow"]


def same_calls():
    """Whether replays make the very calls of NumPy that kernels make, so that bits agree."""
    return config.target() == "numpy"


def assert_as_eager(found, wanted, err_msg="", ulps=8):
    """The same bits where NumPy is called; else the same but for rounding.

    Machine code rounds ``a * b + c`` once, sums in another order and has its own functions:
    entries may be ``ulps`` units in the last place of the largest entry apart.
    """
    found, wanted = np.asarray(found), np.asarray(wanted)
    if same_calls() or wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, wanted, err_msg)
        return
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), err_msg
    unit = ulps * np.finfo(wanted.dtype).eps
    size = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    np.testing.assert_allclose(found, wanted, unit, unit * size, err_msg=err_msg)


def without_overflow(found, wanted):
    """``found``, with the eager entries where there a product alone has overflowed.

    Machine code rounds ``a * b - c`` once, which may be finite, or infinite instead of NaN.
    """
    if same_calls() or wanted.dtype.kind != "f":
        return found
    large = np.abs(found) > np.finfo(found.dtype).max / 8
    return np.where(~np.isfinite(wanted) & large, wanted, found)
