"""Source lines of the user: of the call of an op, or in a traceback."""

import contextlib
import os
import sys
from pathlib import Path

import numpy as np

_PYTHON = os.path.dirname(contextlib.__file__) + os.sep
_BESIDE_NUMPY = os.path.dirname(os.path.dirname(np.__file__))


def _beside_numpy(*packages):
    """Return the folders of packages as prefixes of the files in them."""
    return [os.path.join(_BESIDE_NUMPY, name, "") for name in packages]


_OWN = (
    str(Path(__file__).parents[2]) + os.sep,
    "<executable of ",  # Python code of traced functions
)
_LIBRARIES = (
    *_beside_numpy("numpy", "h5py", "cupy", "llvmlite"),
    "<frozen ",  # modules of the import system
)
_NOT_THE_USERS = (
    *_OWN,
    *_beside_numpy("numpy"),  # it calls back when it is given tensors
    contextlib.__file__,
)
_recorded = False


def lines_are_recorded():
    """Return whether tapes and provenance record the line of the user's code."""
    return _recorded


def record_lines(recorded):
    """Turn the recording of the user's lines on or off for tapes created from now on."""
    global _recorded
    _recorded = recorded


def user_line(always=False):
    """Return the user's innermost line in the call stack, "file:line".

    None if it is missing, or if lines are not recorded, unless ``always``.
    """
    if not (always or _recorded):
        return None
    frame, _ = _user_frame()
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def user_call():
    """Return the function that the user's innermost line calls, "np.mean", or None."""
    import ast  # of 5 ms, for errors only
    import linecache

    frame, _ = _user_frame()
    if frame is None:
        return None
    code = frame.f_code
    line, end, column, stop = list(code.co_positions())[frame.f_lasti // 2]
    node = ast.expr(lineno=line, end_lineno=end, col_offset=column, end_col_offset=stop)
    source = "".join(linecache.getlines(code.co_filename, frame.f_globals))
    try:
        call = ast.parse(ast.get_source_segment(source, node), mode="eval").body
        return ast.unparse(call.func)
    except (AttributeError, IndexError, SyntaxError, TypeError):
        return None  # the code has no source, or is no call


def is_own_code(filename):
    """Return whether a file, or code without a file, belongs to tapewright."""
    return filename.startswith(_OWN)


def is_library_code(filename):
    """Return whether a file belongs to Python or to a library that tapewright calls."""
    if filename.startswith(_LIBRARIES):
        return True
    return filename.startswith(_PYTHON) and "-packages" not in filename


def user_code():
    """Return the code object of the user's innermost function in the stack, or None."""
    frame, _ = _user_frame()
    return None if frame is None else frame.f_code


def user_stacklevel():
    """Return the ``stacklevel`` with which a warning names the user's line."""
    return _user_frame()[1]


def _user_frame():
    """Return the user's innermost frame, or None, and its stack distance."""
    level, frame = 1, sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        level, frame = level + 1, frame.f_back
    return frame, level


def line_of_error(error):
    """Return the user's innermost line in a traceback, "file:line", or None."""
    line, step = None, error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not file.startswith(_NOT_THE_USERS):
            line = f"{file}:{step.tb_lineno}"
        step = step.tb_next
    return line
