"""The exceptions of tapewright, each of which is one of Python's own, too.

`OpError` and its subclasses are TensorFlow's, one class for each error code:

    ValueError  <- InvalidArgumentError    values that an op does not take
      ValueError  <- ShapeError            shapes or sizes that do not fit together
      TypeError   <- DTypeError            element types that do not fit together
      IndexError  <- OutOfBoundsError      an index outside of a tensor
      FloatingPointError <- NumericsError  a NaN or an infinity where none may be
    MemoryError <- ResourceExhaustedError  more bytes than the machine can have
    ValueError, OSError <- SavingError     a file that cannot be written, or read

The others are Python's own in TensorFlow, or unknown to it:

    LookupError <- GradientLookupError     a gradient through an op that has no rule
    TypeError   <- MappingError            an operation that a batched tensor has not
    TypeError   <- TracingError            an operation that a traced tensor has not
    RuntimeError <- VerificationError      a compiled function with an inconsistency
    RuntimeError <- CollectiveError        processes of a job that do not act together
    ValueError, RuntimeError <- RecordingError   a tape in the wrong state

A message says who raises it and what must hold, what was given, and what to do.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "ABORTED",
    "ALREADY_EXISTS",
    "AbortedError",
    "AlreadyExistsError",
    "CANCELLED",
    "CancelledError",
    "CollectiveError",
    "DATA_LOSS",
    "DEADLINE_EXCEEDED",
    "DTypeError",
    "DataLossError",
    "DeadlineExceededError",
    "FAILED_PRECONDITION",
    "FailedPreconditionError",
    "GradientLookupError",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "InternalError",
    "InvalidArgumentError",
    "MappingError",
    "NOT_FOUND",
    "NotFoundError",
    "NumericsError",
    "OK",
    "OUT_OF_RANGE",
    "OpError",
    "OperatorNotAllowedInGraphError",
    "OutOfBoundsError",
    "OutOfRangeError",
    "PERMISSION_DENIED",
    "PermissionDeniedError",
    "RESOURCE_EXHAUSTED",
    "RecordingError",
    "ResourceExhaustedError",
    "SavingError",
    "ShapeError",
    "TracingError",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
    "UNKNOWN",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "VerificationError",
    "as_saving_error",
    "describe",
    "printable",
    "saving_error",
]

(
    OK,
    CANCELLED,
    UNKNOWN,
    INVALID_ARGUMENT,
    DEADLINE_EXCEEDED,
    NOT_FOUND,
    ALREADY_EXISTS,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION,
    ABORTED,
    OUT_OF_RANGE,
    UNIMPLEMENTED,
    INTERNAL,
    UNAVAILABLE,
    DATA_LOSS,
    UNAUTHENTICATED,
) = range(17)


class OpError(Exception):
    """Base of the errors with a code: ``code`` (or ``error_code``), and ``message``.

    The arguments are the message alone, or TensorFlow's: ``node_def``, ``op`` and
    ``message``, the first two of which are only kept as attributes.

    >>> error = NotFoundError(None, None, "no such key")
    >>> error.code == NOT_FOUND, error.message
    (True, 'no such key')
    """

    code: int = UNKNOWN
    node_def: Any
    op: Any

    def __init__(
        self,
        node_def: Any = None,
        op: Any = None,
        message: str | None = None,
        error_code: int | None = None,
    ):
        if message is None:
            node_def, message = None, node_def
        super().__init__(message)
        self.node_def, self.op = node_def, op
        if error_code is not None:
            self.code = error_code

    @property
    def error_code(self) -> int:
        return self.code

    @property
    def message(self) -> str:
        return str(self)

    @property
    def experimental_payloads(self) -> dict[str, Any]:
        return {}


class CancelledError(OpError):
    """An operation was cancelled."""

    code: int = CANCELLED


class UnknownError(OpError):
    """An error of no other class."""


class InvalidArgumentError(OpError, ValueError):
    """An op does not take a value, or an assertion about values does not hold."""

    code: int = INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """A deadline passed before an operation was complete."""

    code: int = DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """A file, or something in it, does not exist."""

    code: int = NOT_FOUND


class AlreadyExistsError(OpError):
    """A file that should be made exists."""

    code: int = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """The caller lacks the permission for a file."""

    code: int = PERMISSION_DENIED


class ResourceExhaustedError(OpError, MemoryError):
    """An op needs more memory than the machine can have."""

    code: int = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """The state of an object forbids the operation."""

    code: int = FAILED_PRECONDITION


class AbortedError(OpError):
    """An operation was aborted."""

    code: int = ABORTED


class OutOfRangeError(OpError):
    """An iterator is exhausted, or a position lies beyond the end of an array."""

    code: int = OUT_OF_RANGE


class UnimplementedError(OpError):
    """An operation exists, but not for these arguments."""

    code: int = UNIMPLEMENTED


class InternalError(OpError):
    """An invariant of the library does not hold."""

    code: int = INTERNAL


class UnavailableError(OpError):
    """A service is not available now."""

    code: int = UNAVAILABLE


class DataLossError(OpError):
    """A file is damaged."""

    code: int = DATA_LOSS


class UnauthenticatedError(OpError):
    """The caller is not authenticated."""

    code: int = UNAUTHENTICATED


def describe(value: Any) -> str:
    """Shape and dtype of a tensor, array or spec; the type's name of anything else.

    >>> describe("text")
    'str'
    """
    shape = getattr(value, "shape", None)
    dtype = getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return type(value).__name__
    return f"shape {tuple(shape)}, {getattr(dtype, 'name', dtype)}"


def _message(who, what, given):
    listing = "    ".join(f"{name}: {describe(value)}" for name, value in given.items())
    return f"{who}: {what}." + (f"\n  {listing}" if listing else "")


class ShapeError(InvalidArgumentError):
    """Shapes do not fit: ``ShapeError("matmul", "inner dimensions ...", a=a, b=b)``."""

    def __init__(self, who: str, what: str | None = None, **given: Any):
        super().__init__(who if what is None else _message(who, what, given))


class DTypeError(InvalidArgumentError, TypeError):
    """Element types do not fit: ``DTypeError("add", "dtypes must agree", x=x, y=y)``."""

    def __init__(self, who: str, what: str | None = None, **given: Any):
        super().__init__(who if what is None else _message(who, what, given))


class OutOfBoundsError(InvalidArgumentError, IndexError):
    """An index lies outside of a tensor."""


class NumericsError(InvalidArgumentError, FloatingPointError):
    """A NaN or an infinity where none may be."""


class GradientLookupError(LookupError):
    """A gradient passes through an op that has no VJP rule for that input."""

    def __init__(self, op_name: str, type_name: str, input_name: str):
        super().__init__(
            f"No gradient defined for operation '{type_name}' (op type: {type_name}): "
            f"the op '{op_name}' has no VJP rule for '{input_name}'. Give it one with "
            f"@{op_name}.vjp({input_name!r}) or RegisterGradient({type_name!r}), or wrap "
            "the call in stop_gradient if no gradient should pass."
        )


class MappingError(TypeError):
    """A batched tensor, which stands for many values at once, cannot do this.

    It has no single value, no results of different sizes, and cannot be assigned.
    """


class TracingError(TypeError):
    """A traced tensor cannot do this.

    It has no value for Python (``if``, ``float``, ``numpy``), and no use after the trace.
    """


OperatorNotAllowedInGraphError = TracingError


class VerificationError(RuntimeError):
    """A graph or program of a traced function is inconsistent, and might compute wrongly.

    This is a defect of tapewright, found before it gives a wrong number. Verification is
    on if the environment has ``TAPEWRIGHT_VERIFY=1``.
    """


class CollectiveError(RuntimeError):
    """The processes of a job do not act together, or one of them is gone.

    They must call the same collectives in the same order; after this error none can.
    """


class RecordingError(RuntimeError, ValueError):
    """The state of a tape forbids the call."""


def printable(text: Any, kept: str = "") -> str:
    """``text`` with escapes for its unprintable characters, except those in ``kept``.

    Text from a file could contain control sequences of a terminal.

    >>> printable("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


class SavingError(OpError, ValueError, OSError):
    """A file cannot be written, or what it holds cannot be read.

    ``path`` is the file, ``dataset`` the dataset, group, attribute or zip member at fault
    (or None), ``reason`` what is wrong. An error of the operating system is of its class,
    too: ``except FileNotFoundError`` and ``except NotFoundError`` catch a missing file.
    """

    def __init__(self, path: Any, reason: str, dataset: str | None = None):
        super().__init__(reason)
        self.path: str = str(path)
        self.reason: str = reason
        self.dataset: str | None = dataset
        self.filename = self.path

    def __str__(self) -> str:
        place = f" [{_cut(str(self.dataset), 500)}]" if self.dataset else ""
        return printable(f"{self.path}{place}: {_cut(self.reason, 5000)}", "\n")

    def __reduce__(self) -> Any:
        return _rebuild, (self._kind, self.path, self.reason, self.dataset)

    _kind = None


def _cut(text, most):
    """``text``, or its start: names in a file may be of any length."""
    return text if len(text) <= most else f"{text[:most]}..."


def saving_error(path: Any, reason: Any, dataset: Any = None, cause: Any = None) -> Any:
    """A `SavingError` that is also of the class of ``cause``, if that is an ``OSError``."""
    return _saving_error_class(type(cause))(path, reason, dataset)


@contextmanager
def as_saving_error(
    path: Any, reason: str, dataset: Any = None, errors: Any = Exception
) -> Iterator[None]:
    """Raise errors as a `SavingError`: ``reason``, then the message of the error.

    An error of the system about another file than ``path`` is left alone.
    """
    try:
        yield
    except SavingError:
        raise
    except errors as error:
        name = getattr(error, "filename", None)
        same = name in (None, path, os.path.realpath(path))
        if not same and not str(name).endswith(".tmp"):
            raise
        text = getattr(error, "strerror", None) or error
        raise saving_error(path, f"{reason}: {text}", dataset, error) from error


def _rebuild(kind, *args):
    return _saving_error_class(kind)(*args)


@functools.cache
def _saving_error_class(kind):
    if kind is None or not issubclass(kind, OSError) or issubclass(SavingError, kind):
        return SavingError
    base = _SYSTEM_ERRORS.get(kind, OpError)
    return type("SavingError", (SavingError, base, kind), {"_kind": kind})


_SYSTEM_ERRORS = {
    FileNotFoundError: NotFoundError,
    FileExistsError: AlreadyExistsError,
    PermissionError: PermissionDeniedError,
}
