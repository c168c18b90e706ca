"""Elements of datasets as records of bytes: the structure as JSON, then the arrays.

``uint32 length of the JSON, JSON, bytes of all arrays``, little-endian. The JSON is
``{"dtype": name, "shape": [...]}`` for a tensor, for strings with their ``"lengths"``,
or ``{"tuple": [...]}`` or ``{"dict": {...}}`` of such. It contains no names to import.
"""

import json
import math
import struct

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import DataLossError
from tapewright.core.hardware.devices import to_numpy
from tapewright.core.tensor import new_tensor
from tapewright.core.text import is_text, make_text


def encoded(element, who="cache"):
    """Return the bytes of an element.

    Raises:
        TypeError: If a file cannot hold the element.
    """
    arrays = []
    structure = _structure_of(element, arrays, who)
    head = json.dumps(structure).encode()
    return b"".join([struct.pack("<I", len(head)), head, *map(_bytes, arrays)])


def _structure_of(element, arrays, who):
    """Return the structure of an element as plain values; append its arrays to a list."""
    if isinstance(element, dict):
        if not all([isinstance(key, str) for key in element]):
            raise TypeError(
                f"{who}: dicts in files must have str keys, got {list(element)}"
            )
        return {
            "dict": {
                key: _structure_of(item, arrays, who) for key, item in element.items()
            }
        }
    if type(element) is tuple:
        return {"tuple": [_structure_of(item, arrays, who) for item in element]}
    array = getattr(element, "array", None)
    if array is None:
        raise TypeError(
            f"{who}: elements in files must be tensors in tuples and dicts, got "
            f"{type(element).__name__}"
        )
    array = to_numpy(array)  # of sparse and ragged tensors some may be on the device
    arrays.append(array)
    described = {"dtype": as_dtype(array.dtype).name, "shape": list(np.shape(array))}
    if is_text(array.dtype):
        described["lengths"] = [len(entry) for entry in np.ravel(array).tolist()]
    return described


def _bytes(array):
    if is_text(array.dtype):
        return b"".join(np.ravel(array).tolist())
    return np.ascontiguousarray(array).tobytes()


def decoded(record):
    """Return the element of a record of bytes.

    Raises:
        DataLossError: If the bytes are not a record.
    """
    try:
        (size,) = struct.unpack_from("<I", record)
        element, end = _element_at(json.loads(record[4 : 4 + size]), record, 4 + size)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
            ValueError, struct.error) as error:  # fmt: skip
        raise DataLossError(
            f"a record is not an element of a dataset: {error}"
        ) from None
    if end != len(record):
        raise DataLossError("a record is not an element of a dataset: it is too long")
    return element


def _element_at(structure, record, offset):
    """Return the element at an offset in a record, and the offset after it."""
    if "dict" in structure:
        items = {}
        for key, each in structure["dict"].items():
            items[key], offset = _element_at(each, record, offset)
        return items, offset
    if "tuple" in structure:
        parts = []
        for each in structure["tuple"]:
            part, offset = _element_at(each, record, offset)
            parts.append(part)
        return tuple(parts), offset
    shape = tuple(structure["shape"])
    dtype = as_dtype(structure["dtype"]).as_numpy_dtype
    if "lengths" in structure:
        entries = []
        for length in structure["lengths"]:
            entries.append(record[offset : offset + length])
            offset += length
        return new_tensor(make_text(entries, shape)), offset
    count = math.prod(shape)
    array = np.frombuffer(record, dtype, count, offset).reshape(shape).copy()
    return new_tensor(array), offset + array.nbytes
