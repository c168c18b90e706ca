"""The exceptions of tapewright: subclasses of Python's own, so that either name catches.

    ValueError  <- ShapeError            shapes or sizes that do not fit together
    ValueError  <- InvalidArgumentError  values for which an assertion does not hold
    TypeError   <- DTypeError            element types that do not fit together
    LookupError <- GradientLookupError   an op without a derivative rule on the way
    TypeError   <- MappingError          what has no meaning for many values at once
    TypeError   <- TracingError          what a traced function cannot do, or write down
    ValueError, RuntimeError <- RecordingError   a tape asked for what its state forbids
    ValueError, OSError      <- SavingError      a file that cannot be written, or read

A message says who complains and what must hold, what was given, and what to do.
"""

import functools

__all__ = [
    "DTypeError",
    "GradientLookupError",
    "InvalidArgumentError",
    "MappingError",
    "RecordingError",
    "SavingError",
    "ShapeError",
    "TracingError",
    "describe",
    "printable",
    "saving_error",
]


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


class ShapeError(ValueError):
    """Shapes do not fit: ``ShapeError("matmul", "inner dimensions ...", a=a, b=b)``."""

    def __init__(self, who, what, **given):
        super().__init__(_message(who, what, given))


class DTypeError(TypeError):
    """Element types do not fit: ``DTypeError("add", "dtypes must agree", x=x, y=y)``."""

    def __init__(self, who, what, **given):
        super().__init__(_message(who, what, given))


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


class InvalidArgumentError(ValueError):
    """An assertion about values does not hold, or a value is not one of those allowed."""


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


class SavingError(ValueError, OSError):
    """A file cannot be written, or what it holds cannot be read.

    ``path`` is the file, ``dataset`` the dataset, group, attribute or zip member inside
    that is at fault (or None), ``reason`` what is wrong. Where the system refuses, it is
    that error, too: ``except FileNotFoundError`` catches that of a missing file.
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
    return type("SavingError", (SavingError, kind), {"_kind": kind})
