"""`print` and `Assert`, which also run in replays of traced functions.

Values are formatted as TensorFlow prints them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapewright.core.errors import InvalidArgumentError
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.core.tensor import is_tensor
from tapewright.core.text import is_text
from tapewright.core.typing import TensorLike
from tapewright.ops.strings.array_text import array_text

from .effects import effect_maker, serializable_effect


def print(
    *inputs: Any,
    output_stream: Any = sys.stderr,
    sep: str = " ",
    end: str = "\n",
    summarize: int | None = 3,
    name: str | None = None,
) -> None:
    """Print tensors, nests of tensors and other objects on one line.

    In a traced function it prints in each call, in order. String tensors are quoted,
    except for a scalar that is the only argument.

    Args:
        *inputs: Objects to print.
        output_stream: ``sys.stdout``, ``sys.stderr``, a file-like object, a function of
            the text (such as ``logging.info``), or ``"file://path"`` to append to a
            file.
        sep: String between the inputs.
        end: String after the last input.
        summarize: Number of entries shown at each end of an axis, -1 for all.

    Raises:
        ValueError: If ``output_stream`` is none of these.

    Example:
        >>> import sys
        >>> tw.print("x:", tw.constant([1.0, 2.5]), [True], output_stream=sys.stdout)
        x: [1 2.5] [True]
    """
    tensors = [x for item in inputs for x in _leaves(item) if is_tensor(x)]
    parts = [_with_slots(item) for item in inputs]
    summarize = 3 if summarize is None else int(summarize)
    serializable_effect("print", tensors, parts=parts, output_stream=_named(output_stream),
                   sep=sep, end=end, summarize=summarize)  # fmt: skip


@effect_maker("print")
def _printed(parts, output_stream, sep, end, summarize):
    write = _writer(output_stream)

    def call(*arrays):
        if len(parts) == 1 and parts[0] is SLOT and _is_string(arrays[0]):
            texts = [arrays[0].item().decode(errors="replace")]
        else:
            values = iter(arrays)
            texts = [as_text(part, values, summarize) for part in parts]
        write(sep.join(texts) + end)

    return call


def _is_string(array):
    """Return whether a string is printed alone: without quotes, as in TensorFlow."""
    return not array.ndim and is_text(array.dtype)


def _with_slots(item):
    """Replace each tensor in an argument by a `Slot`."""
    if not is_nested(item):
        return SLOT if is_tensor(item) else item
    return map_structure(lambda x: SLOT if is_tensor(x) else x, item)


def _named(stream):
    """Return the name of a standard stream, to be looked up when a line is printed."""
    if stream is sys.stdout:
        return "stdout"
    return "stderr" if stream is sys.stderr or stream is _STDERR else stream


def _leaves(item):
    return flatten(item) if is_nested(item) else [item]


def _writer(stream):
    """Return the function that takes the text."""
    if isinstance(stream, str) and stream in ("stdout", "stderr"):
        return lambda text: getattr(sys, stream).write(text)
    if isinstance(stream, str) and stream.startswith("file://"):
        return lambda text: _append(stream.removeprefix("file://"), text)
    if hasattr(stream, "write"):
        return stream.write
    if callable(stream):
        return lambda text: stream(text.removesuffix("\n"))
    raise ValueError(
        "print: output_stream must be sys.stdout, sys.stderr, a file, a function of the "
        f"text, or 'file://path', got {stream!r}"
    )


_STDERR = sys.stderr  # the default, as it was at the time of the import


def _append(path, text):
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:  # of a write, it names no file
        raise OSError(error.errno, error.strerror, path) from error


# ------------------------------------------------------------------------- checks


def assert_true(condition, message, data=(), summarize=3):
    """Raise ``InvalidArgumentError`` unless all of ``condition`` is true.

    ``data`` are tensors whose values the message shows.
    """
    serializable_effect(
        "assert", [condition, *data], message=message, summarize=summarize
    )


@effect_maker("assert")
def _assertion(message, summarize=3):
    def check(condition, *data):
        if not np.all(condition):
            values = "".join([f"\n  {array_text(x, summarize)}" for x in data])
            raise InvalidArgumentError(f"{message}{values}")

    return check


def Assert(
    condition: TensorLike,
    data: Sequence[TensorLike],
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raise ``InvalidArgumentError`` with ``data`` unless all of ``condition`` is true.

    In a traced function the condition is checked in each call, before variables are
    assigned, since assignments take effect at the end.

    Args:
        condition: Boolean tensor of any shape.
        data: List of strings and tensors to show in the message.
        summarize: Number of entries shown at each end of an axis.

    Example:
        >>> tw.Assert(tw.constant(2) > 1, ["two is", 2])
    """
    texts = [f"\n  {x}" for x in data if isinstance(x, str)]
    tensors = [x for x in data if not isinstance(x, str)]
    message = f"Assert: the condition must be true{''.join(texts)}"
    assert_true(condition, message, tensors, 3 if summarize is None else summarize)


# --------------------------------------------------------------------------- text


class Slot:
    """A placeholder for a tensor in an argument of `print`."""


SLOT = Slot()


def as_text(item, arrays, summarize):
    """Format an argument of `print`; each `Slot` in it is the next of ``arrays``."""
    if item is SLOT:
        return array_text(next(arrays), summarize)
    return item if isinstance(item, str) else _nested(item, arrays, summarize)


def _nested(item, arrays, summarize):
    """Format a nest like Python, with dicts in the order of their keys."""
    if item is SLOT:
        return array_text(next(arrays), summarize)
    if not is_nested(item):
        return repr(item)
    if isinstance(item, dict):
        try:
            keys = sorted(item)
        except TypeError:  # of several types: in the order of insertion
            keys = list(item)
        pairs = [f"{key!r}: {_nested(item[key], arrays, summarize)}" for key in keys]
        return "{" + ", ".join(pairs) + "}"
    parts = [_nested(x, arrays, summarize) for x in item]
    if hasattr(item, "_fields"):
        named = [f"{name}={part}" for name, part in zip(item._fields, parts)]
        return f"{type(item).__name__}({', '.join(named)})"
    if isinstance(item, tuple):
        return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
    return "[" + ", ".join(parts) + "]"
