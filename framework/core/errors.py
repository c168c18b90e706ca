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
      AttributeError <- NoValueError       the value of a traced tensor
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
    "NoValueError",
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
    """The base of the errors with a code.

    ``code`` (or ``error_code``) is one of the numbers of this module, ``message`` the
    text. The arguments are the message alone, or TensorFlow's: ``node_def``, ``op`` and
    ``message``, the first two of which are only kept as attributes.

    Example:
        >>> from tapewright.core.errors import NOT_FOUND
        >>> error = tw.errors.NotFoundError(None, None, "no such key")
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
        """``code``, under TensorFlow's name."""
        return self.code

    @property
    def message(self) -> str:
        """The text of the error."""
        return str(self)

    @property
    def experimental_payloads(self) -> dict[str, Any]:
        """An empty dict."""
        return {}


class CancelledError(OpError):
    """An operation was cancelled."""

    code: int = CANCELLED


class UnknownError(OpError):
    """An error of no other class."""


class InvalidArgumentError(OpError, ValueError):
    """An op does not take a value, or an assertion does not hold; a ``ValueError``.

    Example:
        >>> from tapewright import concat
        >>> try:
        ...     concat([[1], [2]], axis=1)
        ... except ValueError as error:
        ...     print(type(error).__name__, "-", error)
        InvalidArgumentError - concat: axis must be from -1 to 0 for rank 1, got 1
    """

    code: int = INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """A deadline passed before an operation was complete."""

    code: int = DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """A file, or something in it, does not exist."""

    code: int = NOT_FOUND


class AlreadyExistsError(OpError):
    """A file to be made exists already."""

    code: int = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """The caller lacks the permission for a file."""

    code: int = PERMISSION_DENIED


class ResourceExhaustedError(OpError, MemoryError):
    """An op needs more memory than the machine can have; a ``MemoryError``."""

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

    Example:
        >>> from tapewright.core.errors import describe
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
    """Shapes do not fit; a ``ValueError``.

    Args: ``who``: the op; ``what``: the rule that does not hold; further arguments: the
    inputs, whose shapes and dtypes the message lists.

    Example:
        >>> from tapewright import matmul, ones
        >>> try:
        ...     matmul(ones([2, 3]), ones([4, 5]))
        ... except tw.errors.ShapeError as error:
        ...     print(error)
        matmul: inner dimensions must agree: 3 and 4.
          a: shape (2, 3), float32    b: shape (4, 5), float32
    """

    def __init__(self, who: str, what: str | None = None, **given: Any):
        super().__init__(who if what is None else _message(who, what, given))


class DTypeError(InvalidArgumentError, TypeError):
    """Dtypes do not fit; a ``TypeError`` and a ``ValueError``.

    Its arguments are those of `ShapeError`.

    Example:
        >>> from tapewright import add, ones
        >>> try:
        ...     add(ones([2]), ones([2], "int32"))
        ... except TypeError as error:
        ...     print(type(error).__name__, "-", str(error).partition(",")[0])
        DTypeError - add: the dtypes must be the same
    """

    def __init__(self, who: str, what: str | None = None, **given: Any):
        super().__init__(who if what is None else _message(who, what, given))


class OutOfBoundsError(InvalidArgumentError, IndexError):
    """An index lies outside of a tensor; an ``IndexError`` and a ``ValueError``."""


class NumericsError(InvalidArgumentError, FloatingPointError):
    """A NaN or an infinity where none may be; a ``FloatingPointError`` and a ``ValueError``."""


class GradientLookupError(LookupError):
    """A gradient passes through an op without a VJP rule for it; a ``LookupError``."""

    def __init__(self, op_name: str, type_name: str, input_name: str):
        super().__init__(
            f"No gradient defined for operation '{type_name}' (op type: {type_name}): "
            f"the op '{op_name}' has no VJP rule for '{input_name}'. Give it one with "
            f"@{op_name}.vjp({input_name!r}) or RegisterGradient({type_name!r}), or wrap "
            "the call in stop_gradient if no gradient should pass."
        )


class MappingError(TypeError):
    """An op in `vectorized_map` needs the single values of a batched tensor; a ``TypeError``.

    A batched tensor stands for many values at once: it has no single value, no results
    of different sizes, and cannot be assigned.
    """


class TracingError(TypeError):
    """Python needs the value of a traced tensor, or uses it after the trace; a ``TypeError``.

    A traced tensor has no value for NumPy, for a shape or for the index of a list. Python
    control flow that cannot be converted raises it, too, see `tw.autograph`.

    Example:
        >>> import numpy as np, tapewright as tw
        >>> @tw.function
        ... def sine(x):
        ...     return np.sin(x)
        >>> try:
        ...     sine(tw.constant(1.0))
        ... except tw.errors.TracingError as error:
        ...     print(type(error).__name__)
        TracingError
    """


class NoValueError(TracingError, AttributeError):
    """A traced tensor is asked for its value, by ``numpy()``; an ``AttributeError``, too.

    Graph tensors of TensorFlow lack the method, which code catches as that error.
    """


OperatorNotAllowedInGraphError = TracingError


class VerificationError(RuntimeError):
    """A graph or program of a traced function is inconsistent; a ``RuntimeError``.

    It is a defect of tapewright, found before it gives a wrong number. Verification is
    on if the environment has ``TAPEWRIGHT_VERIFY=1``.
    """


class CollectiveError(RuntimeError):
    """The processes of a job do not act together, or one is gone; a ``RuntimeError``.

    They must call the same collectives in the same order. After this error the job
    cannot go on.
    """


class RecordingError(RuntimeError, ValueError):
    """The state of a tape forbids the call; a ``RuntimeError`` and a ``ValueError``."""


def printable(text: Any, kept: str = "") -> str:
    """``text`` with escapes for its unprintable characters, except those in ``kept``.

    Text from a file could contain control sequences of a terminal.

    Example:
        >>> from tapewright.core.errors import printable
        >>> printable("a\\x1b[31mb")
        'a\\\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


class SavingError(OpError, ValueError, OSError):
    """A file cannot be written or read; a ``ValueError`` and an ``OSError``.

    ``path`` is the file, ``dataset`` the dataset, group, attribute or zip member at
    fault (or None), ``reason`` the fault. An error of the operating system keeps its
    class: ``except FileNotFoundError`` and ``except NotFoundError`` catch a missing
    file.

    Example:
        >>> import tapewright as tw
        >>> try:
        ...     tw.saved_model.load("missing")
        ... except FileNotFoundError as error:
        ...     print(type(error).__name__, "-", error)
        SavingError - missing: there is no such file
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
        is_temporary = f".tmp{os.sep}" in f"{name}{os.sep}"  # or in such a folder
        if not same and not is_temporary:
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
