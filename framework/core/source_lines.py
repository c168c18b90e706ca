"""Lines of the user's code: of the call of an op, or on the way of an error."""

import contextlib
import os
import sys
from pathlib import Path

import numpy as np

__all__ = [
    "is_library_code",
    "is_own_code",
    "line_of_error",
    "lines_are_recorded",
    "record_lines",
    "user_code",
    "user_line",
    "user_stacklevel",
]

_PACKAGE = Path(__file__).parents[1]
_BESIDE_NUMPY = Path(np.__file__).parents[1]


def _inside(*folders):
    """Return the folders as prefixes of the files in them."""
    return [os.path.join(folder, "") for folder in folders]


_OWN = (
    *_inside(_PACKAGE),
    "<executable of ",  # Python code of traced functions
)
_LIBRARIES = (
    *_inside(*[_BESIDE_NUMPY / n for n in ("numpy", "h5py", "cupy", "llvmlite")]),
    "<frozen ",  # modules of the import system
)
(_PYTHON,) = _inside(Path(contextlib.__file__).parent)
_NOT_THE_USERS = (
    *_OWN,
    *_inside(_BESIDE_NUMPY / "numpy"),  # it calls back when it is given tensors
    contextlib.__file__,
)
_recorded = False


def lines_are_recorded():
    """Return whether tapes and provenance record the line of the user's code."""
    return _recorded


def record_lines(recorded):
    """Let tapes made from now on record the line of the user's code, or no longer."""
    global _recorded
    _recorded = recorded


def user_line(always=False):
    """The innermost line of the user in the call stack, "file:line".

    None if there is none, or if lines are not recorded, unless ``always``.
    """
    if not (always or _recorded):
        return None
    frame, _ = _user_frame()
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def is_own_code(filename):
    """Return whether a file, or code without one, belongs to tapewright."""
    return filename.startswith(_OWN)


def is_library_code(filename):
    """Return whether a file belongs to Python, or to a library that tapewright calls."""
    if filename.startswith(_LIBRARIES):
        return True
    return filename.startswith(_PYTHON) and "-packages" not in filename


def user_code():
    """The code object of the innermost function of the user in the call stack, or None."""
    frame, _ = _user_frame()
    return None if frame is None else frame.f_code


def user_stacklevel():
    """The ``stacklevel`` with which a warning of the caller names the user's line."""
    return _user_frame()[1]


def _user_frame():
    """The innermost frame of the user, or None, and its distance from the caller's caller."""
    level, frame = 1, sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        level, frame = level + 1, frame.f_back
    return frame, level


def line_of_error(error):
    """The innermost line of the user in the traceback, "file:line", or None."""
    found, step = None, error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not file.startswith(_NOT_THE_USERS):
            found = f"{file}:{step.tb_lineno}"
        step = step.tb_next
    return found
