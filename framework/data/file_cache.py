"""`FileCache`: the elements of the first run in a file, for all runs that follow.

The file has a record for each element, with checksums (`storage.records.tf_records`): the
structure as JSON, then the bytes of the arrays.
"""

import json
import math
import os
import struct

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import DataLossError
from tapewright.core.tensor import new_tensor
from tapewright.core.text import is_text, make_text
from tapewright.storage.atomic import temporary_beside
from tapewright.storage.records.tf_records import put_record, read_records

from .node import Node, copy_position, skip

__all__ = ["FileCache"]


def _encoded(element):
    """The bytes of an element."""
    arrays = []
    structure = _described(element, arrays)
    head = json.dumps(structure).encode()
    return b"".join([struct.pack("<I", len(head)), head, *map(_bytes, arrays)])


def _described(element, arrays):
    """The structure of an element as plain values; its arrays are appended to a list."""
    if isinstance(element, dict):
        if not all([isinstance(key, str) for key in element]):
            raise TypeError(
                f"cache: elements in files have str as keys, got {list(element)}"
            )
        return {
            "dict": {key: _described(item, arrays) for key, item in element.items()}
        }
    if type(element) is tuple:
        return {"tuple": [_described(item, arrays) for item in element]}
    array = getattr(element, "array", None)
    if array is None:
        raise TypeError(
            "cache: elements in files are tensors in tuples and dicts, got "
            f"{type(element).__name__}"
        )
    arrays.append(array)
    described = {"dtype": as_dtype(array.dtype).name, "shape": list(np.shape(array))}
    if is_text(array.dtype):
        described["lengths"] = [len(entry) for entry in np.ravel(array).tolist()]
    return described


def _bytes(array):
    if is_text(array.dtype):
        return b"".join(np.ravel(array).tolist())
    return np.ascontiguousarray(array).tobytes()


def _decoded(record):
    """The element of these bytes. Raises: ``DataLossError`` if they are of none."""
    try:
        (size,) = struct.unpack_from("<I", record)
        element, end = _made(json.loads(record[4 : 4 + size]), record, 4 + size)
    except (ValueError, TypeError, KeyError, AttributeError, struct.error) as error:
        raise DataLossError(f"a record is no element of a data set: {error}") from None
    if end != len(record):
        raise DataLossError("a record is no element of a data set: it is too long")
    return element


def _made(structure, record, place):
    """The element at a place in a record, and the place after it."""
    if "dict" in structure:
        items = {}
        for key, each in structure["dict"].items():
            items[key], place = _made(each, record, place)
        return items, place
    if "tuple" in structure:
        parts = []
        for each in structure["tuple"]:
            part, place = _made(each, record, place)
            parts.append(part)
        return tuple(parts), place
    shape, dtype = (
        tuple(structure["shape"]),
        as_dtype(structure["dtype"]).as_numpy_dtype,
    )
    if "lengths" in structure:
        entries = []
        for length in structure["lengths"]:
            entries.append(record[place : place + length])
            place += length
        return new_tensor(make_text(entries, shape)), place
    count = math.prod(shape)
    array = np.frombuffer(record, dtype, count, place).reshape(shape).copy()
    return new_tensor(array), place + array.nbytes


class FileCache(Node):
    """The elements of the first whole run, kept in a file.

    Until that has ended, the elements are made again from the start for each position.
    """

    runs_ahead = True

    def __init__(self, source, path):
        super().__init__(source)
        self._path = path

    def start(self):
        return {"given": 0, "place": 0}

    def again(self, position):
        return {"inputs": copy_position(position["inputs"]), **self.start()}

    def run(self, position):
        if os.path.exists(self._path):
            yield from self._read(position)
        else:
            yield from self._filling(position)

    def _read(self, position):
        records = read_records(self._path, "", position["place"])
        if not position[
            "place"
        ]:  # a new run, or one that began before there was a file
            skip(records, position["given"])
        for record, place in records:
            position["given"] += 1
            position["place"] = place
            yield _decoded(record)

    def _filling(self, position):
        elements = self.inputs[0].run(copy_position(position["inputs"][0]))
        with temporary_beside(self._path) as temporary:
            with open(temporary, "wb") as file:
                for number, element in enumerate(elements, 1):
                    file.write(put_record(_encoded(element)))
                    if number > position["given"]:
                        position["given"] = number
                        yield element
            os.replace(temporary, self._path)
