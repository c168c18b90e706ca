"""`Logs`: the values of a step, converted to Python floats when they are first read.

The loss and metrics of a step are tensors. Reading one waits for it (on a GPU) and
takes a microsecond or two; most callbacks read few steps or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np


class Logs(dict[str, Any]):
    """Dict of names, in alphabetical order, and floats, converted when they are read.

    Nested dicts in ``source`` are flattened in place. Values that are not numbers are
    left as they are; arrays of more than one entry, and lists of numbers, are converted
    to NumPy arrays.

    Args:
        source: Dict of names and values, which may be nested, or None.

    Raises:
        TypeError: If ``source`` is not a dict, or contains a metric instead of its
            result.

    Example:
        >>> import numpy as np
        >>> from tapewright.keras.callbacks.logs import Logs
        >>> Logs({"loss": np.float32(0.5), "accuracy": 1})
        {'accuracy': 1.0, 'loss': 0.5}
    """

    __slots__ = ("_raw",)

    def __init__(self, source: Any = None):
        # Entries are stored at once: C code reads the size of a dict without a method.
        if source is not None and not isinstance(source, dict):
            raise TypeError(
                "logs must be a dict of names and numbers, as returned by train_step "
                f"and test_step, got {type(source).__name__}"
            )
        super().__init__(source or {})
        self._raw = True

    def _read(self):
        if self._raw:
            self._raw = False
            entries = list(_flat(dict.items(self)))
            dict.clear(self)
            dict.update(self, entries)
        return self

    def nested(self) -> dict[str, Any]:
        """Return a plain dict of floats with the nesting of ``source``."""
        return _nested(dict.items(self))

    def __getitem__(self, key: str) -> Any:
        return dict.__getitem__(self._read(), key)

    def __setitem__(self, key: Any, value: Any) -> None:
        dict.__setitem__(self._read(), key, value)

    def __delitem__(self, key: str) -> None:
        dict.__delitem__(self._read(), key)

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self._read(), key)

    def __iter__(self) -> Iterator[str]:  # also called by dict(logs) and **logs
        return dict.__iter__(self._read())

    def __reversed__(self) -> Iterator[str]:
        return dict.__reversed__(self._read())

    def __len__(self) -> int:
        return dict.__len__(self._read() if self._raw else self)

    def __eq__(self, other: object) -> bool:
        return dict.__eq__(self._read(), _plain(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __or__(self, other: Any) -> Any:
        return self.copy() | _plain(other)

    def __ror__(self, other: Any) -> Any:
        return _plain(other) | self.copy()

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def __repr__(self) -> str:
        return dict.__repr__(self._read())

    def __reduce__(self) -> Any:
        return dict, (self.copy(),)

    def get(self, key: str, default: Any = None) -> Any:
        return dict.get(self._read(), key, default)

    def keys(self) -> Any:
        return dict.keys(self._read())

    def values(self) -> Any:
        return dict.values(self._read())

    def items(self) -> Any:
        return dict.items(self._read())

    def copy(self) -> dict[str, Any]:
        """Return a plain dict with the same entries."""
        return dict(self.items())

    def pop(self, *args: Any) -> Any:
        return dict.pop(self._read(), *args)

    def popitem(self) -> Any:
        return dict.popitem(self._read())

    def clear(self) -> None:
        dict.clear(self._read())

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return dict.setdefault(self._read(), key, default)

    def update(self, *args: Any, **kwargs: Any) -> None:
        dict.update(self._read(), *args, **kwargs)


def _plain(other):
    return other.copy() if isinstance(other, Logs) else other


def _nested(items):
    return {
        name: _nested(value.items()) if isinstance(value, dict) else _number(value)
        for name, value in items
    }


def _flat(items):
    for name, value in sorted(items, key=lambda item: str(item[0])):
        if isinstance(value, dict):
            yield from _flat(value.items())
        elif hasattr(value, "update_state"):
            raise TypeError(
                f"logs: {name!r} is the metric {value!r}; train_step and test_step return "
                "its result()"
            )
        else:
            yield name, _number(value)


def _number(value):
    """Return ``value`` as a float if it is a single number."""
    if type(value) is float or isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return np.asarray([_number(entry) for entry in value])
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.generic | np.ndarray) and value.size == 1:
        value = value.item()
    if isinstance(value, np.ndarray):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
