"""NumPy's settings inside a replay: no warnings of infinities, and small steps.

NumPy copies what it cannot walk through in one stride into a buffer, 8,192 entries at a
time by default. With 1,024 it walks rows of that length as they are: every other row of
an image in half the time, a bias added to rows of 1,024 in two thirds. Leans on NumPy.
"""

import numpy as np

__all__ = ["ignoring_float_errors"]

BUFFER = 1024  # entries


def ignoring_float_errors(function):
    """The function, run with these settings of NumPy's."""
    try:
        from numpy._core._ufunc_config import _extobj_contextvar as settings

        with np.errstate(all="ignore"):
            np.setbufsize(BUFFER)
            ours = settings.get()
    except (
        ImportError,
        AttributeError,
        LookupError,
    ):  # a NumPy that keeps them elsewhere
        return _in_public(function)

    def run(*args, put=settings.set, back=settings.reset):
        before = put(ours)
        try:
            return function(*args)
        finally:
            back(before)

    return run


def _in_public(function):
    def run(*args):
        with np.errstate(all="ignore"):
            np.setbufsize(BUFFER)
            return function(*args)

    return run
