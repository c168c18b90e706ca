"""Lines of the user's code: where an op was called, where an error came through."""

import sys
from pathlib import Path

import numpy as np

__all__ = ["line_of_error", "lines_wanted", "trace_lines", "user_line"]

_OURS = str(Path(__file__).parents[1])
_OTHERS = (  # beside it in a clone; inside it when installed
    *[str(Path(_OURS).parent / folder) for folder in ("layers", "optimizers")],
    str(Path(np.__file__).parent),  # it is called with tensors, and asks them back
)
_lines_wanted = False


def lines_wanted():
    """Return whether records and provenance remember the line of the user's code."""
    return _lines_wanted


def trace_lines(wanted):
    """Sets `lines_wanted`, for tapes to come."""
    global _lines_wanted
    _lines_wanted = wanted


def user_line(always=False):
    """ "file:line" of the innermost caller outside of tapewright; None unless wanted."""
    if not (always or _lines_wanted):
        return None
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_OURS, *_OTHERS)):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def line_of_error(error):
    """ "file:line" of the innermost place outside of tapewright that an error went through.

    None if there is none.
    """
    found, step = None, error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        if not name.startswith((_OURS, *_OTHERS)):
            found = f"{name}:{step.tb_lineno}"
        step = step.tb_next
    return found
