"""The exceptions of tapewright: subclasses of Python's own, so that either name catches.

`OpError` and its subclasses are TensorFlow's family, one class for each error code:

    ValueError  <- InvalidArgumentError    values that an op does not take
      ValueError  <- ShapeError            shapes or sizes that do not fit together
      TypeError   <- DTypeError            element types that do not fit together
      IndexError  <- OutOfBoundsError      an index outside of a tensor
      FloatingPointError <- NumericsError  a NaN or an infinity where none may be
    MemoryError <- ResourceExhaustedError  more bytes than the machine can have
    ValueError, OSError <- SavingError     a file that cannot be written, or read

Beside it stand those that TensorFlow raises as Python's own, or does not know:

    LookupError <- GradientLookupError     an op without a derivative rule on the way
    TypeError   <- MappingError            what has no meaning for many values at once
    TypeError   <- TracingError            what a traced function cannot do
    RuntimeError <- VerificationError      a program that would compute something else
    ValueError, RuntimeError <- RecordingError   a tape asked for what its state forbids

A message says who complains and what must hold, what was given, and what to do.
"""

import functools

__all__ = [
    "ABORTED",
    "ALREADY_EXISTS",
    "AbortedError",
    "AlreadyExistsError",
    "CANCELLED",
    "CancelledError",
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

    Constructed from the message alone, or in TensorFlow's order from ``node_def``,
    ``op`` and ``message``, of which the first two are kept for the programs that ask.

    >>> error = NotFoundError(None, None, "no such key")
    >>> error.code == NOT_FOUND, error.message
    (True, 'no such key')
    """

    code = UNKNOWN

    def __init__(self, node_def=None, op=None, message=None, error_code=None):
        if message is None:
            node_def, message = None, node_def
        super().__init__(message)
        self.node_def, self.op = node_def, op
        if error_code is not None:
            self.code = error_code

    @property
    def error_code(self):
        return self.code

    @property
    def message(self):
        return str(self)

    @property
    def experimental_payloads(self):
        return {}


class CancelledError(OpError):
    """An operation was cancelled."""

    code = CANCELLED


class UnknownError(OpError):
    """An error of no other class."""


class InvalidArgumentError(OpError, ValueError):
    """An op does not take a value, or an assertion about values does not hold."""

    code = INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """A deadline passed before an operation was complete."""

    code = DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """A file, or something in it, does not exist."""

    code = NOT_FOUND


class AlreadyExistsError(OpError):
    """A file that should be made exists."""

    code = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """The caller lacks the permission for a file."""

    code = PERMISSION_DENIED


class ResourceExhaustedError(OpError, MemoryError):
    """An op needs more memory than the machine can have."""

    code = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """The state of an object forbids the operation."""

    code = FAILED_PRECONDITION


class AbortedError(OpError):
    """An operation was aborted."""

    code = ABORTED


class OutOfRangeError(OpError):
    """An iterator is asked for more than it holds, or an array for what lies beyond."""

    code = OUT_OF_RANGE


class UnimplementedError(OpError):
    """An operation exists, but not for these arguments."""

    code = UNIMPLEMENTED


class InternalError(OpError):
    """An invariant of the library does not hold."""

    code = INTERNAL


class UnavailableError(OpError):
    """A service is not available now."""

    code = UNAVAILABLE


class DataLossError(OpError):
    """A file is damaged."""

    code = DATA_LOSS


class UnauthenticatedError(OpError):
    """The caller is not authenticated."""

    code = UNAUTHENTICATED


def describe(value) -> str:
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

    def __init__(self, who, what=None, **given):
        super().__init__(who if what is None else _message(who, what, given))


class DTypeError(InvalidArgumentError, TypeError):
    """Element types do not fit: ``DTypeError("add", "dtypes must agree", x=x, y=y)``."""

    def __init__(self, who, what=None, **given):
        super().__init__(who if what is None else _message(who, what, given))


class OutOfBoundsError(InvalidArgumentError, IndexError):
    """An index lies outside of a tensor."""


class NumericsError(InvalidArgumentError, FloatingPointError):
    """A NaN or an infinity where none may be."""


class GradientLookupError(LookupError):
    """A gradient is asked for through an op that has no rule for that input."""

    def __init__(self, op_name, type_name, input_name):
        super().__init__(
            f"No gradient defined for operation '{type_name}' (op type: {type_name}): "
            f"the op '{op_name}' has no VJP rule for '{input_name}'. Give it one with "
            f"@{op_name}.vjp({input_name!r}) or RegisterGradient({type_name!r}), or wrap "
            "the call in stop_gradient if no gradient should pass."
        )


class MappingError(TypeError):
    """Something is asked of a tensor that stands for many values at once.

    Its one value, a result whose size differs from value to value, or an assignment.
    """


class TracingError(TypeError):
    """Something is asked of a tensor whose value is not known while a function is traced.

    Its value for Python (``if``, ``float``, ``numpy``), or its use after the trace.
    """


OperatorNotAllowedInGraphError = TracingError


class VerificationError(RuntimeError):
    """A graph or program of a traced function would compute something else than it should.

    This is a defect of tapewright, found before it gives a wrong number. Both are
    verified where the environment has ``TAPEWRIGHT_VERIFY=1``.
    """


class RecordingError(RuntimeError, ValueError):
    """A tape is asked for something that its present state forbids."""


def printable(text, kept=""):
    """``text`` as Python escapes it where it is not printable, but for the ``kept``.

    What a file says could steer a terminal otherwise.

    >>> printable("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


class SavingError(OpError, ValueError, OSError):
    """A file cannot be written, or what it holds cannot be read.

    ``path`` is the file, ``dataset`` the dataset, group, attribute or zip member inside
    that is at fault (or None), ``reason`` what is wrong. Where the system refuses, it is
    that error, too: ``except FileNotFoundError`` and ``except NotFoundError`` catch that
    of a missing file.
    """

    def __init__(self, path, reason, dataset=None):
        super().__init__(reason)
        self.path, self.reason, self.dataset = str(path), reason, dataset
        self.filename = self.path

    def __str__(self):
        place = f" [{_cut(str(self.dataset), 500)}]" if self.dataset else ""
        return printable(f"{self.path}{place}: {_cut(self.reason, 5000)}", "\n")

    def __reduce__(self):
        return _saving_error, (self._kind, self.path, self.reason, self.dataset)

    _kind = None


def _cut(text, most):
    """A file may have names of any length; a message has a page at most."""
    return text if len(text) <= most else f"{text[:most]}..."


def saving_error(path, reason, dataset=None, cause=None):
    """The `SavingError` that is a ``FileNotFoundError``, too, if ``cause`` is one, etc."""
    kind = type(cause) if isinstance(cause, OSError) else None
    return _saving_error(kind, path, reason, dataset)


def _saving_error(kind, path, reason, dataset=None):
    return _of_kind(kind)(path, reason, dataset)


@functools.cache
def _of_kind(kind):
    if kind is None or not issubclass(kind, OSError) or issubclass(SavingError, kind):
        return SavingError
    ours = _BY_SYSTEM.get(kind, OpError)
    return type("SavingError", (SavingError, ours, kind), {"_kind": kind})


_BY_SYSTEM = {
    FileNotFoundError: NotFoundError,
    FileExistsError: AlreadyExistsError,
    PermissionError: PermissionDeniedError,
}
