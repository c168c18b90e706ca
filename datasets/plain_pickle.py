"""Read pickles of plain data: ints, strings, lists, tuples, dicts, NumPy arrays.

Python's `pickle` calls any function that a file names. This reader calls no function:
it supports the opcodes of plain data, and four names of NumPy, which it treats as
markers of an array. Any other opcode or name is rejected. Memory is proportional to the
size of the pickle. Uses only NumPy.

References:
    The opcodes as described in the standard library's `pickletools`.
"""

import math
import re
from typing import Any, NamedTuple

import numpy as np


def read_pickle(content: bytes) -> Any:
    """Return the value of a pickle of protocol 2 to 5, written by Python 2 or 3 and NumPy.

    Strings of Python 2 become bytes; object arrays, which must have one axis, become
    lists.

    Raises:
        ValueError: If the pickle contains anything else, or is damaged.

    Example:
        >>> from tapewright.datasets.plain_pickle import read_pickle
        >>> read_pickle(b"\\x80\\x02]q\\x00(K\\x01K\\x02e.")
        [1, 2]
    """
    reader = _Reader(content)
    try:
        return reader.read()
    except (
        IndexError,
        KeyError,
        TypeError,
        AttributeError,
        UnicodeDecodeError,
    ) as error:
        raise ValueError(
            f"a damaged pickle, at byte {reader.position} of {len(content)} ({error!r})"
        ) from error


class _Dtype:
    """NumPy dtype under construction: a code such as "u1", then the byte order."""

    def __init__(self, code):
        self.code, self.order = _text(code), "="

    def build(self, state):
        _, self.order, subdtype, names, fields, *_ = state
        self.order = _text(self.order)
        if (subdtype, names, fields) != (None, None, None):
            raise ValueError("an array of records in a pickle")
        return self

    def array(self, shape, is_fortran, data):
        """Return the array of these bytes, or the list of these objects."""
        if re.fullmatch("O[48]?", self.code):
            if type(data) is not list or shape != (len(data),):
                raise ValueError(
                    f"an array of objects of the shape {shape} in a pickle"
                )
            return data
        if not re.fullmatch("[biuf][1248]", self.code) or self.order not in "=|<>":
            raise ValueError(f"an array of the dtype {self.code!r} in a pickle")
        dtype = np.dtype(self.code).newbyteorder(self.order)
        if type(data) is not bytes or len(data) != math.prod(shape) * dtype.itemsize:
            raise ValueError(
                f"an array of the shape {shape} in a pickle, with data of another size"
            )
        return np.frombuffer(data, dtype).reshape(shape, order="CF"[bool(is_fortran)])


class _Array:
    """NumPy array under construction, whose shape and content follow later."""

    def build(self, state):
        _, shape, dtype, is_fortran, data = state
        if not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError(f"an array of the shape {shape} in a pickle")
        return dtype.array(shape, is_fortran, data)


class _Global(NamedTuple):
    """Name in a pickle; only names in `_Global.known` may occur."""

    name: str

    def call(self, arguments):
        if self == RECONSTRUCT and arguments[0] == NDARRAY:
            return _Array()
        if self == DTYPE:
            return _Dtype(arguments[0])
        raise ValueError(f"a call of {self.name} in a pickle")


RECONSTRUCT = _Global("numpy._core.multiarray._reconstruct")
NDARRAY, DTYPE = _Global("numpy.ndarray"), _Global("numpy.dtype")
GLOBALS = {known.name: known for known in (RECONSTRUCT, NDARRAY, DTYPE)}
GLOBALS["numpy.core.multiarray._reconstruct"] = RECONSTRUCT  # of NumPy 1


def _text(string):
    return string.decode("ascii") if type(string) is bytes else string


class _Reader:
    """The stack, its marks, and the memo of the pickle machine."""

    def __init__(self, content):
        self.content, self.position = content, 0
        self.stack, self.marks, self.memo = [], [], {}

    def read(self):
        while True:
            self.push_ints()
            opcode = self.take(1)
            if opcode == b".":
                (value,) = self.stack
                return value
            if opcode not in RULES:
                raise ValueError(
                    f"a pickle that holds more than plain data: its opcode {opcode!r} "
                    f"at byte {self.position - 1} is rejected"
                )
            RULES[opcode](self)

    def push_ints(self):
        """Push ints up to the next other opcode: most of a list of sequences."""
        content, i, push = self.content, self.position, self.stack.append
        while True:
            opcode = content[i]
            if opcode == 0x4B:  # one byte
                push(content[i + 1])
                i += 2
            elif opcode == 0x4D:  # two
                push(content[i + 1] | content[i + 2] << 8)
                i += 3
            else:
                self.position = i
                return

    def take(self, count):
        start, self.position = self.position, self.position + count
        if self.position > len(self.content):
            raise ValueError(f"a pickle that ends early, at byte {len(self.content)}")
        return self.content[start : self.position]

    def count(self, size):
        """Read an unsigned int of ``size`` bytes."""
        return int.from_bytes(self.take(size), "little")

    def int(self, size):
        self.stack.append(int.from_bytes(self.take(size), "little", signed=True))

    def bytes(self, size):
        self.stack.append(self.take(self.count(size)))

    def text(self, size):
        self.stack.append(self.take(self.count(size)).decode("utf-8"))

    def push(self, value):
        self.stack.append(value)

    def put(self, number):
        self.memo[number] = self.stack[-1]

    def get(self, number):
        self.stack.append(self.memo[number])

    def mark(self):
        self.marks.append(len(self.stack))

    def since_mark(self):
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def last(self, count):
        values = self.stack[-count:]
        if len(values) < count:
            raise IndexError("too few values on the stack")
        del self.stack[-count:]
        return values

    def extend(self, values):
        if type(self.stack[-1]) is not list:
            raise TypeError("no list to append to")
        self.stack[-1].extend(values)

    def update(self, values):
        keys = values[::2]
        if type(self.stack[-1]) is not dict or not all(
            type(key) in (bytes, str) for key in keys
        ):
            raise TypeError("not a dict with strings as keys")
        self.stack[-1].update(zip(keys, values[1::2], strict=True))

    def name(self, module, name):
        full = f"{_text(module)}.{_text(name)}"
        if full not in GLOBALS:
            raise ValueError(
                f"a pickle that references {full}: only plain data and arrays are read"
            )
        self.stack.append(GLOBALS[full])

    def line(self):
        end = self.content.index(b"\n", self.position)
        return self.take(end + 1 - self.position)[:-1]

    def call(self):
        function, arguments = self.last(2)
        self.stack.append(function.call(arguments))

    def build(self):
        value, state = self.last(2)
        self.stack.append(value.build(state))


RULES = {
    b"\x80": lambda r: r.take(1),  # the protocol
    b"\x95": lambda r: r.take(8),  # the size of a frame
    b"(": _Reader.mark,
    b"N": lambda r: r.push(None),
    b"\x88": lambda r: r.push(True),
    b"\x89": lambda r: r.push(False),
    b"J": lambda r: r.int(4),
    b"\x8a": lambda r: r.int(r.count(1)),
    b"U": lambda r: r.bytes(1),  # of Python 2, as is T
    b"T": lambda r: r.bytes(4),
    b"C": lambda r: r.bytes(1),
    b"B": lambda r: r.bytes(4),
    b"\x8c": lambda r: r.text(1),
    b"X": lambda r: r.text(4),
    b"]": lambda r: r.push([]),
    b"a": lambda r: r.extend(r.last(1)),
    b"e": lambda r: r.extend(r.since_mark()),
    b"}": lambda r: r.push({}),
    b"s": lambda r: r.update(r.last(2)),
    b"u": lambda r: r.update(r.since_mark()),
    b")": lambda r: r.push(()),
    b"t": lambda r: r.push(tuple(r.since_mark())),
    b"\x85": lambda r: r.push(tuple(r.last(1))),
    b"\x86": lambda r: r.push(tuple(r.last(2))),
    b"\x87": lambda r: r.push(tuple(r.last(3))),
    b"q": lambda r: r.put(r.count(1)),
    b"r": lambda r: r.put(r.count(4)),
    b"\x94": lambda r: r.put(len(r.memo)),
    b"h": lambda r: r.get(r.count(1)),
    b"j": lambda r: r.get(r.count(4)),
    b"c": lambda r: r.name(r.line(), r.line()),
    b"\x93": lambda r: r.name(*r.last(2)),
    b"R": _Reader.call,
    b"b": _Reader.build,
}
