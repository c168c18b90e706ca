"""The constants of graphs: small ones as text, large ones as arrays in the file."""

import numpy as np

from tapewright.core.errors import TracingError
from tapewright.core.hardware.devices import to_numpy
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.text import make_text

from .values import decode_dtype, encode_dtype

SMALL = 256  # bytes
MANY = 1_000_000


class ConstantWriter:
    """Number constants, each once; `write` stores them in a group."""

    def __init__(self):
        self._numbers, self._tensors = {}, []

    def number(self, tensor):
        """Return the number of a constant tensor."""
        number = self._numbers.get(id(tensor))
        if number is None:
            number = self._numbers[id(tensor)] = len(self._tensors)
            self._tensors.append(tensor)  # a kept tensor keeps its id
        return number

    def write(self, group):
        listed = []
        for number, tensor in enumerate(self._tensors):
            array = np.asarray(to_numpy(tensor.array))
            name, shape = encode_dtype(array.dtype), list(array.shape)
            if name == "object":
                raise TracingError("a list of arrays is a constant of a graph")
            if name == "string":
                listed.append([name, shape, [_write_string(x) for x in array.flat]])
            elif array.nbytes <= SMALL:
                data = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
                listed.append([name, shape, data.tobytes().hex()])
            else:
                listed.append([name, shape, None])
                group.array(f"constants/{number}", array)
        group.json("constants", listed)


class ConstantReader:
    """The constants of a group by number, read on first use."""

    def __init__(self, group):
        self._group, self._tensors = group, {}
        self._listed = group.json("constants")
        if not isinstance(self._listed, list) or len(self._listed) > MANY:
            group.fail("must be a list of constants", "constants")

    def __getitem__(self, number):
        if type(number) is not int or not 0 <= number < len(self._listed):
            raise ValueError(f"there is no constant {number!r}")
        tensor = self._tensors.get(number)
        if tensor is None:
            tensor = self._tensors[number] = convert_to_tensor(self._read(number))
        return tensor

    def _read(self, number):
        name, shape, data = self._listed[number]
        dtype = decode_dtype(name)
        if data is None:
            array = self._group.array(f"constants/{number}")
            if list(array.shape) != shape or array.dtype != dtype:
                array.fail(f"must be {name} of shape {shape}")
            return array.read()
        if name == "string":
            return make_text([_read_string(item) for item in data], shape)
        array = np.frombuffer(bytes.fromhex(data), dtype.newbyteorder("<"))
        return array.astype(dtype).reshape(shape)


def _write_string(entry):
    """Return text, or a list with the hexadecimal bytes if it is not text."""
    try:
        return entry.decode()
    except UnicodeDecodeError:
        return [entry.hex()]


def _read_string(item):
    if isinstance(item, list) and len(item) == 1 and isinstance(item[0], str):
        return bytes.fromhex(item[0])
    if not isinstance(item, str):
        raise ValueError(f"{str(item)[:40]} is not a string")
    return item.encode()
