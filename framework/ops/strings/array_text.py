"""Format arrays as text, as TensorFlow prints them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.text import row

# As in C; other characters than those of ASCII stay.
_ESCAPES = {i: f"\\{i:03o}" for i in (*range(32), 127)}
_ESCAPES |= {ord(c): f"\\{c}" for c in "\\'\""}
_ESCAPES |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}


def array_text(array: Any, summarize: int = 3) -> str:
    """Format an array without commas, with ``summarize`` entries at both ends of each axis.

    Example:
        >>> import numpy as np
        >>> from tapewright.ops.strings.array_text import array_text
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
            "..." if i is None else _entry(row(array, i).item(), array.dtype)
            for i in shown
        ]
        return "[" + " ".join(parts) + "]"
    rows = [
        "..." if i is None else _rows(array[i], summarize, depth + 1) for i in shown
    ]
    return "[" + ("\n" * (array.ndim - 1) + " " * depth).join(rows) + "]"


def _entry(value, dtype):
    if dtype.kind == "b":
        return str(int(value))
    if kind_of(dtype) == "f":
        return _number(value, *((15, 17) if dtype.itemsize > 4 else (6, 9)), dtype)
    if dtype.kind in "USO":
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        return f'"{text.translate(_ESCAPES)}"'
    return str(value)


def _number(value, few, many, dtype):
    """Return the shorter form if it represents the number exactly, else the longer one."""
    if value == 0:
        return "0"
    text = f"{value:.{few}g}"
    wide = np.float32 if dtype.itemsize < 4 else dtype.type
    return text if wide(float(text)) == wide(value) else f"{value:.{many}g}"
