"""Pickles of protocol 2 as Python 2 writes them, for tests: its strings are bytes."""

import struct

import numpy as np

__all__ = ["encode", "python2_pickle"]


def python2_pickle(value):
    """The pickle of dicts, lists, tuples, ints, strings and numeric arrays."""
    return b"\x80\x02" + encode(value) + b"."


def encode(value):
    """The opcodes that push a value."""
    if value is None:
        return b"N"
    if isinstance(value, int):
        return (
            b"J" + struct.pack("<i", value) if abs(value) < 1 << 31 else _large(value)
        )
    if isinstance(value, str | bytes):
        value = value.encode() if isinstance(value, str) else value
        return b"T" + struct.pack("<i", len(value)) + value
    if isinstance(value, list):
        return b"](" + b"".join(map(encode, value)) + b"e"
    if isinstance(value, tuple):
        return b"(" + b"".join(map(encode, value)) + b"t"
    if isinstance(value, dict):
        return (
            b"}("
            + b"".join(encode(each) for pair in value.items() for each in pair)
            + b"u"
        )
    return _array(np.asarray(value))


def _large(value):
    digits = value.to_bytes(9, "little", signed=True)
    return b"\x8a\x09" + digits


def _array(values):
    dtype = b"cnumpy\ndtype\n" + encode((values.dtype.str[1:], 0, 1)) + b"R"
    order = values.dtype.str[0]
    dtype += encode((3, order, None, None, None, -1, -1, 0)) + b"b"
    make = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + encode((0,))
    state = b"(" + encode(1) + encode(values.shape) + dtype + b"\x89"
    return make + encode("b") + b"tR" + state + encode(values.tobytes()) + b"tb"
