"""NumPy's settings for ufuncs inside a replay: no floating-point warnings, a small buffer.

NumPy copies operands that it cannot walk through in one stride into a buffer, 8,192 entries
at a time by default. With 1,024 it walks rows of that length as they are: every other row
of an image in half the time, a bias added to rows of 1,024 in two thirds.
"""

import numpy as np

__all__ = ["with_ufunc_settings"]

BUFFER = 1024  # entries


def with_ufunc_settings(function):
    """Return a function that calls this one with the settings."""
    try:  # private to NumPy, and several times faster than `np.errstate`
        from numpy._core._ufunc_config import _extobj_contextvar as settings

        with np.errstate(all="ignore"):
            np.setbufsize(BUFFER)
            ours = settings.get()
    except (ImportError, AttributeError, LookupError):  # of another version of NumPy
        return _with_public_settings(function)

    def run(*args, put=settings.set, back=settings.reset):
        before = put(ours)
        try:
            return function(*args)
        finally:
            back(before)

    return run


def _with_public_settings(function):
    def run(*args):
        with np.errstate(all="ignore"):
            np.setbufsize(BUFFER)
            return function(*args)

    return run
