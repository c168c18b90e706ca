"""Values as lines of text, in the form in which TensorFlow prints them."""

import numpy as np

from tapewright.core.nest import is_nested

__all__ = ["SLOT", "Slot", "array_text", "as_text"]


class Slot:
    """Stands for a tensor among what is printed."""


SLOT = Slot()


def as_text(item, arrays, summarize):
    """What is printed for an argument; a `Slot` in it is the next of ``arrays``."""
    if item is SLOT:
        return array_text(next(arrays), summarize)
    return item if isinstance(item, str) else _nested(item, arrays, summarize)


def _nested(item, arrays, summarize):
    """A nest as Python shows it, with dicts in the order of their keys."""
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


def array_text(array, summarize=3):
    """An array without commas; of each axis ``summarize`` entries of both ends.

    >>> array_text(np.arange(8.0))
    '[0 1 2 ... 5 6 7]'
    """
    array = np.asarray(array)
    if not array.ndim:
        return _entry(array.item(), array.dtype)
    return _rows(array, summarize, 1)


def _rows(array, summarize, depth):
    if not array.shape[0]:
        return "[]"
    shown = list(range(len(array)))
    if 0 <= summarize and len(array) > 2 * summarize:
        head = len(array) - summarize
        shown = [*shown[:summarize], None, *shown[head:]]
    if array.ndim == 1:
        parts = [
            "..." if i is None else _entry(array[i].item(), array.dtype) for i in shown
        ]
        return "[" + " ".join(parts) + "]"
    rows = [
        "..." if i is None else _rows(array[i], summarize, depth + 1) for i in shown
    ]
    return "[" + ("\n" * (array.ndim - 1) + " " * depth).join(rows) + "]"


def _entry(value, dtype):
    if dtype.kind == "b":
        return str(int(value))
    if dtype.kind == "f":
        return _number(value, *((15, 17) if dtype.itemsize > 4 else (6, 9)), dtype)
    if dtype.kind in "US":
        text = value.decode() if isinstance(value, bytes) else value
        return '"' + text.replace('"', '\\"') + '"'
    return str(value)


def _number(value, few, many, dtype):
    """The shorter form if it says which number it is, else the longer one."""
    if value == 0:
        return "0"
    text = f"{value:.{few}g}"
    wide = np.float32 if dtype.itemsize < 4 else dtype.type
    return text if wide(float(text)) == wide(value) else f"{value:.{many}g}"
