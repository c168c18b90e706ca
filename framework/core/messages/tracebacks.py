"""Tracebacks without tapewright's frames, where Python or IPython prints them.

An uncaught error reaches `sys.excepthook`, its counterpart for threads, or the
formatter of IPython. These hooks remove our frames from the report only: an exception
that a program catches, logs, or inspects in a debugger has all frames, and successful
calls have no overhead.
"""

import sys
import threading
from contextlib import contextmanager, suppress
from types import TracebackType

from ..errors import InternalError, VerificationError
from ..hardware.openblas import is_switched_off
from .source_lines import is_library_code, is_own_code
from .suggestions import explain_uncaught

# Defects of ours: the report of one should be complete.
_INTERNAL = (InternalError, VerificationError)
_enabled = not is_switched_off("TAPEWRIGHT_TRACEBACK_FILTERING")


def enable_traceback_filtering() -> None:
    """Print uncaught errors without the frames of tapewright, which is the default.

    The traceback then ends at the line of your code that made the failing call.
    Exceptions that your code catches, and debuggers such as `pdb.pm`, have all frames.

    Example:
        >>> tw.debugging.disable_traceback_filtering()
        >>> tw.debugging.enable_traceback_filtering()
        >>> tw.debugging.is_traceback_filtering_enabled()
        True
    """
    global _enabled
    _enabled = True


def disable_traceback_filtering() -> None:
    """Print uncaught errors with all frames.

    The environment variable ``TAPEWRIGHT_TRACEBACK_FILTERING=0`` does the same.
    """
    global _enabled
    _enabled = False


def is_traceback_filtering_enabled() -> bool:
    """Return whether uncaught errors are printed without the frames of tapewright."""
    return _enabled


def install_traceback_hooks():
    """Filter the tracebacks that Python prints, and IPython if the program runs in it."""
    in_main, in_thread = sys.excepthook, threading.excepthook

    def report(kind, error, trace):
        with _filtered(error, trace) as shown:
            in_main(kind, error, shown)

    def report_in_thread(args):
        kind, error, trace, thread = args
        with _filtered(error, trace) as shown:
            in_thread(threading.ExceptHookArgs((kind, error, shown, thread)))

    sys.excepthook, threading.excepthook = report, report_in_thread
    shell = "IPython" in sys.modules and sys.modules["IPython"].get_ipython()
    if shell:
        formatter = shell.InteractiveTB
        in_shell = formatter.structured_traceback

        def structured_traceback(kind, error, trace, *args, **kwargs):
            with _filtered(error, trace) as shown:
                return in_shell(kind, error, shown, *args, **kwargs)

        formatter.structured_traceback = structured_traceback


@contextmanager
def _filtered(error, trace):
    """Filter the tracebacks of an exception and of those in its chain, inside the block."""
    with suppress(Exception):  # it looks into objects of the user; the error is printed
        explain_uncaught(error)
    whole = [(each, each.__traceback__) for each in _chain(error)]
    try:
        if _enabled and not isinstance(error, _INTERNAL):
            for each, own in whole:
                each.with_traceback(_user_frames(own))
            # An error without a line of the user is not the user's: all frames then.
            trace = _user_frames(trace) or trace
            if error is not None:
                error.with_traceback(trace)  # Python prints this one
        yield trace
    finally:
        for each, own in whole:
            each.with_traceback(own)


def _chain(error):
    """Return an exception with its causes, contexts and subexceptions, each once."""
    errors, waiting = [], [error]
    while waiting:
        each = waiting.pop()
        if each is not None and all([each is not other for other in errors]):
            errors.append(each)
            waiting += [each.__cause__, each.__context__]
            if isinstance(each, BaseExceptionGroup):
                waiting += each.exceptions
    return errors


def _user_frames(trace):
    """Return a traceback without frames of tapewright and its libraries, or None."""
    kept, inside, libraries = [], False, 0
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        inside = is_own_code(file) or (inside and is_library_code(file))
        if not inside:
            kept.append(trace)
            libraries = libraries + 1 if is_library_code(file) else 0
        trace = trace.tb_next
    if inside and libraries < len(kept):  # NumPy, say, which was given a tensor
        del kept[len(kept) - libraries :]
    result = None
    for step in reversed(kept):
        result = TracebackType(result, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return result
