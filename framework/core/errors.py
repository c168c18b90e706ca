"""The exceptions of tapewright; each is also one of Python's exceptions.

`OpError` and its subclasses are TensorFlow's, one class for each error code:

    ValueError  <- InvalidArgumentError    values that an op does not accept
      ValueError  <- ShapeError            incompatible shapes or sizes
      TypeError   <- DTypeError            incompatible element types
      IndexError  <- OutOfBoundsError      an index out of the bounds of a tensor
      FloatingPointError <- NumericsError  an invalid NaN or infinity
    MemoryError <- ResourceExhaustedError  more bytes than the machine has
    ValueError, OSError <- SavingError     a file that cannot be written or read

TensorFlow raises Python's exceptions for the others, or has no counterpart:

    LookupError <- GradientLookupError     a gradient through an op without a rule
    TypeError   <- MappingError            an operation that batched tensors lack
    TypeError   <- TracingError            an operation that traced tensors lack
      AttributeError <- NoValueError       the value of a traced tensor
    RuntimeError <- VerificationError      an inconsistent compiled function
    RuntimeError <- CollectiveError        inconsistent calls of the processes of a job
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
    "cast_advice",
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
    """Base class of the errors that have an error code.

    The only argument is usually the message; TensorFlow's
    ``OpError(node_def, op, message)`` works, too. The attribute ``code`` (or
    ``error_code``) is one of the integers of this module.

    Args:
        node_def: The message, or TensorFlow's node, which is kept as an attribute.
        op: TensorFlow's op, which is kept as an attribute.
        message: Text of the error, if it is not the first argument.
        error_code: Error code, or None for the code of the class.

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
        """The error code; alias of ``code`` for TensorFlow code."""
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
    """Raised when an operation is cancelled."""

    code: int = CANCELLED


class UnknownError(OpError):
    """Raised for errors that belong to no other class."""


class InvalidArgumentError(OpError, ValueError):
    """Raised when an op rejects a value or an assertion fails; a ``ValueError``.

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
    """Raised when a deadline expires before an operation is complete."""

    code: int = DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """Raised when a file, or an entry in it, does not exist.

    Example:
        >>> try:
        ...     tw.io.read_file("missing.txt")
        ... except tw.errors.NotFoundError as error:
        ...     print(error)
        missing.txt: No such file or directory
    """

    code: int = NOT_FOUND


class AlreadyExistsError(OpError):
    """Raised when a file that is to be created already exists."""

    code: int = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """Raised when the caller lacks the permission for a file."""

    code: int = PERMISSION_DENIED


class ResourceExhaustedError(OpError, MemoryError):
    """Raised when an op needs more memory than there is; a ``MemoryError``."""

    code: int = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """Raised when the state of an object does not allow the operation."""

    code: int = FAILED_PRECONDITION


class AbortedError(OpError):
    """Raised when an operation is aborted."""

    code: int = ABORTED


class OutOfRangeError(OpError):
    """Raised when an iterator is exhausted or a position is past the end.

    Example:
        >>> error = tw.errors.OutOfRangeError(None, None, "end of sequence")
        >>> error.code, error.message
        (11, 'end of sequence')
    """

    code: int = OUT_OF_RANGE


class UnimplementedError(OpError):
    """Raised when an operation is not implemented for the arguments."""

    code: int = UNIMPLEMENTED


class InternalError(OpError):
    """Raised when an invariant of the library is violated."""

    code: int = INTERNAL


class UnavailableError(OpError):
    """Raised when a service is currently unavailable."""

    code: int = UNAVAILABLE


class DataLossError(OpError):
    """Raised when a file is corrupted."""

    code: int = DATA_LOSS


class UnauthenticatedError(OpError):
    """Raised when the caller is not authenticated."""

    code: int = UNAUTHENTICATED


def describe(value: Any) -> str:
    """Describe a tensor, array or spec by shape and dtype, other objects by type.

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


def cast_advice(name: str, dtype: str) -> str:
    """Return the end of a message: the code that casts an argument.

    Example:
        >>> from tapewright.core.errors import cast_advice
        >>> cast_advice("x", "float32")
        'use, for example, tw.cast(x, "float32")'
    """
    return f'use, for example, tw.cast({name}, "{dtype}")'


def _message(who, what, given):
    listing = "    ".join(f"{name}: {describe(value)}" for name, value in given.items())
    return f"{who}: {what}." + (f"\n  {listing}" if listing else "")


class ShapeError(InvalidArgumentError):
    """Raised when shapes are incompatible; a ``ValueError``.

    Args:
        who: Name of the op, or the whole message if ``what`` is None.
        what: Rule that is violated, or None.
        **given: Inputs by name; the message lists their shapes and dtypes.

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
    """Raised when dtypes are incompatible; a ``TypeError`` and a ``ValueError``.

    Args:
        who: Name of the op, or the whole message if ``what`` is None.
        what: Rule that is violated, or None.
        **given: Inputs by name; the message lists their shapes and dtypes.

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
    """Raised when an index is out of bounds; an ``IndexError`` and a ``ValueError``."""


class NumericsError(InvalidArgumentError, FloatingPointError):
    """Raised for an invalid NaN or infinity.

    It is a ``FloatingPointError`` and a ``ValueError``.
    """


class GradientLookupError(LookupError):
    """Raised when a gradient reaches an op without a VJP rule; a ``LookupError``.

    Args:
        op_name: Name of the op.
        type_name: TensorFlow's type of the op.
        input_name: Name of the input that has no rule.
    """

    def __init__(self, op_name: str, type_name: str, input_name: str):
        super().__init__(
            f"No gradient defined for operation '{type_name}' (op type: {type_name}): "
            f"the op '{op_name}' has no VJP rule for '{input_name}'. Give it one with "
            f"@{op_name}.vjp({input_name!r}) or RegisterGradient({type_name!r}), or wrap "
            "the call in stop_gradient if no gradient should pass."
        )


class MappingError(TypeError):
    """Raised when an op in `vectorized_map` needs single values; a ``TypeError``.

    A batched tensor represents many values at once: it has no single value, no results
    of different sizes, and cannot be assigned.
    """


class TracingError(TypeError):
    """Raised when Python needs the value of a traced tensor; a ``TypeError``.

    A traced tensor has no value for NumPy, for a shape or for the index of a list, and
    cannot be used after the trace. Python control flow that cannot be converted also
    raises it; see `tw.autograph`.

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
    """Raised when a traced tensor has no value to return, as in ``x.numpy()``.

    It is also an ``AttributeError``: graph tensors of TensorFlow lack the method, and
    code catches that error.
    """


OperatorNotAllowedInGraphError = TracingError


class VerificationError(RuntimeError):
    """Raised when a graph or program of a function is invalid; a ``RuntimeError``.

    This is a defect of tapewright, found before it leads to wrong numbers. The
    environment variable ``TAPEWRIGHT_VERIFY=1`` turns verification on.
    """


class CollectiveError(RuntimeError):
    """Raised when the collectives of the processes of a job differ; a ``RuntimeError``.

    All processes must call the same collectives in the same order. The error is also
    raised when a process has ended. The job cannot continue after it.
    """


class RecordingError(RuntimeError, ValueError):
    """Raised when the state of a tape does not allow the call.

    It is a ``RuntimeError`` and a ``ValueError``.
    """


def printable(text: Any, kept: str = "") -> str:
    """Escape the unprintable characters of ``text``, except those in ``kept``.

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
    """Raised when a file cannot be read or written; a ``ValueError``, ``OSError``.

    An error of the operating system keeps its class: both ``except FileNotFoundError``
    and ``except NotFoundError`` catch a missing file.

    Args:
        path: Path of the file.
        reason: Description of the error.
        dataset: Dataset, group, attribute or zip member with the error, or None.

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
        location = f" [{_cut(str(self.dataset), 500)}]" if self.dataset else ""
        return printable(f"{self.path}{location}: {_cut(self.reason, 5000)}", "\n")

    def __reduce__(self) -> Any:
        return _rebuild, (self._kind, self.path, self.reason, self.dataset)

    _kind = None


def _cut(text, most):
    """Truncate ``text``, since names in a file may have any length."""
    return text if len(text) <= most else f"{text[:most]}..."


def saving_error(path: Any, reason: Any, dataset: Any = None, cause: Any = None) -> Any:
    """Return a `SavingError` that also has the class of an ``OSError`` ``cause``."""
    return _saving_error_class(type(cause))(path, reason, dataset)


@contextmanager
def as_saving_error(
    path: Any, reason: str, dataset: Any = None, errors: Any = Exception
) -> Iterator[None]:
    """Reraise errors as a `SavingError`: ``reason`` and the message of the error.

    System errors about files other than ``path`` are not changed.
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
    names = {"_kind": kind, "__module__": _PUBLIC}
    return type("SavingError", (SavingError, base, kind), names)


_SYSTEM_ERRORS = {
    FileNotFoundError: NotFoundError,
    FileExistsError: AlreadyExistsError,
    PermissionError: PermissionDeniedError,
}

_PUBLIC = "tapewright.errors"  # in tracebacks, and in pickles

for _each in list(globals().values()):
    if isinstance(_each, type) and _each.__module__ == __name__:
        _each.__module__ = _PUBLIC
