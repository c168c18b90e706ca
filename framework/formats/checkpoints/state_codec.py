"""States of objects as JSON: plain values, and separate arrays.

A scalar of NumPy is ``{"scalar": 0}``, an array ``{"array": 1}``, by their numbers in the
list of arrays.
"""

from typing import Any

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.errors import SavingError
from tapewright.core.hardware import devices
from tapewright.core.tensor import is_tensor
from tapewright.serialization.value_codec import PLAIN_FORMS, Form, ValueCodec


def encode_state(value: Any, arrays: list, where: str = "state") -> Any:
    """Return ``value`` as JSON; append its arrays to ``arrays``.

    Raises:
        TypeError: If a value cannot be saved; it names the path.

    Example:
        >>> import numpy as np
        >>> from tapewright.formats.checkpoints.state_codec import encode_state
        >>> encode_state({"best": np.float32(1), 3: (None, float("inf"))}, arrays := [])
        {'dict': [['best', {'scalar': 0}], [3, {'tuple': [None, {'float': 'inf'}]}]]}
        >>> arrays
        [array(1., dtype=float32)]
    """
    return _StateCodec(arrays, where).encode(value)


def decode_state(value: Any, arrays: list, path: str, where: str) -> Any:
    """Decode the result of `encode_state`; raise `SavingError` for other JSON."""
    try:
        return _StateCodec(arrays, where).decode(value)
    except (TypeError, ValueError) as error:
        raise SavingError(path, f"a state is invalid: {error}", where) from None


class _StateCodec(ValueCodec):
    def __init__(self, arrays, title):
        super().__init__(title)
        self.arrays = arrays

    def describe(self, value):
        what = type(value).__name__
        if isinstance(value, (np.ndarray, np.generic)):
            what = f"an array of {value.dtype}"
        return (
            f"{what}; a state consists of numbers, strings, lists, tuples, dicts and "
            "arrays of numbers"
        )


def _to_numpy(value):
    """Return the array of a tensor, a variable, a number or an array; else None."""
    if hasattr(value, "__tensor__"):
        value = value.numpy()
    array = value.array if is_tensor(value) else value
    if devices.is_array(array):
        array = devices.to_numpy(array)
    is_array = isinstance(array, (np.ndarray, np.generic))
    return array if is_array and kind_of(array.dtype) in "fiubc" else None


def _is_scalar(value):
    return isinstance(value, np.generic) and _to_numpy(value) is not None


def _append(codec, value, path):
    codec.arrays.append(np.asarray(_to_numpy(value)))
    return len(codec.arrays) - 1


def _read_array(codec, number, depth):
    if type(number) is not int or not 0 <= number < len(codec.arrays):
        raise ValueError(f"there is no array {number!r:.80}")
    return codec.arrays[number]


def _read_scalar(codec, number, depth):
    array = _read_array(codec, number, depth)
    if array.shape != ():
        raise ValueError(f"array {number} is not a scalar")
    return array[()]


_StateCodec.forms = (
    *PLAIN_FORMS,
    Form("scalar", _is_scalar, _append, _read_scalar),
    Form("array", lambda x: _to_numpy(x) is not None, _append, _read_array),
)
