"""Offsets of fields in the objects of CPython and NumPy, verified in this process.

Machine code reads arrays at these offsets. `probe` compares each field with the value
that Python reports for arrays of several shapes, strides and dtypes, and gives up on
any difference.
"""

import ctypes
import dataclasses
import functools
import sys
import sysconfig

import numpy as np

from tapewright.core.hardware.openblas import Unavailable

C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # numpy/ndarraytypes.h


@dataclasses.dataclass(frozen=True)
class Layout:
    """Offsets in bytes; ``immortal`` objects have no reference count to maintain."""

    references: int = 0
    type: int = 8
    items: int = 24  # of a tuple
    data: int = 16
    rank: int = 24
    shape: int = 32
    strides: int = 40
    dtype: int = 56
    flags: int = 64
    byteorder: int = 26  # of a dtype
    number: int = 28
    immortal: bool = False


@functools.cache
def probe() -> Layout:
    """Return the layout of objects in this process.

    Raises:
        Unavailable: If this is not CPython with its GIL, or objects are laid out differently.
    """
    if sys.implementation.name != "cpython":
        raise Unavailable(
            f"objects of {sys.implementation.name} do not have CPython's layout"
        )
    if sys.maxsize < 2**32 or sys.byteorder != "little":
        raise Unavailable("a 64-bit little-endian CPython is required")
    free = sysconfig.get_config_var("Py_GIL_DISABLED")
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or free:
        raise Unavailable("free-threaded Python is not supported")
    # Tuples of Python 3.14 keep their hash as well.
    layout = Layout(items=tuple.__basicsize__, immortal=sys.version_info >= (3, 12))
    verify(layout)
    return layout


def verify(layout):
    """Raise `Unavailable` if a field of an object is not where the layout says."""
    if np.ndarray.__basicsize__ < layout.flags + 4:
        raise Unavailable("arrays of this NumPy are smaller than expected")
    _verify_tuple(layout)
    for array in _examples():
        wrong = [
            name for name, value, right in _fields(layout, array) if value != right
        ]
        if wrong:
            raise Unavailable(f"{wrong[0]} of arrays is not at its expected offset")


def _verify_tuple(layout):
    items = tuple([object() for _ in range(5)])
    addresses = [_read(items, layout.items + 8 * n, ctypes.c_void_p) for n in range(5)]
    if addresses != [id(item) for item in items]:
        raise Unavailable("items of tuples are not at their expected offset")
    alone = object()
    before = _read(alone, layout.references, ctypes.c_ssize_t)
    names = [alone] * 7
    after = _read(alone, layout.references, ctypes.c_ssize_t)
    if after != before + len(names):
        raise Unavailable("reference counts are not at their expected offset")


def _examples():
    """Yield arrays that differ from each other in every field."""
    plain = np.arange(24.0)
    frozen = np.arange(6, dtype=np.int32).reshape(2, 3)
    frozen.flags.writeable = False
    unaligned = np.frombuffer(bytearray(41), np.uint8)[1:].view(np.float32)
    yield from (plain, plain[3:], plain[::-2], plain.reshape(2, 3, 4), frozen)
    yield from (plain.reshape(4, 6).T, plain.reshape(4, 6)[1:, 2:5], unaligned)
    yield from (np.zeros(()), np.zeros((0, 3)), np.ones((1, 2, 1, 4, 1), np.int8))
    yield plain.astype(">f8")
    for dtype in "?bBhHiIlLqQefdgFDOSU":
        yield np.zeros(2, dtype)
    yield np.zeros(2, "M8[s]")
    yield np.zeros(2, np.dtype([("a", "i4"), ("b", "f8")]))


def _fields(layout, array):
    """Yield ``(name, value in memory, value in Python)`` for each field of an array."""
    about, rank = array.__array_interface__, array.ndim
    yield "the type", _read(array, layout.type, ctypes.c_void_p), id(np.ndarray)
    yield "the data", _read(array, layout.data, ctypes.c_void_p), about["data"][0]
    yield "the rank", _read(array, layout.rank, ctypes.c_int), rank
    for name, offset in (("shape", layout.shape), ("strides", layout.strides)):
        values = ()
        if rank:
            start = _read(array, offset, ctypes.c_void_p)
            values = tuple((ctypes.c_ssize_t * rank).from_address(start))
        yield f"the {name}", values, getattr(array, name)
    yield "the dtype", _read(array, layout.dtype, ctypes.c_void_p), id(array.dtype)
    flags = _read(array, layout.flags, ctypes.c_int)
    told = array.flags
    yield "contiguity", bool(flags & C_CONTIGUOUS), told.c_contiguous
    yield "alignment", bool(flags & ALIGNED), told.aligned
    yield "writeability", bool(flags & WRITEABLE), told.writeable
    dtype = array.dtype
    number = _read(dtype, layout.number, ctypes.c_int)
    yield "the number of the dtype", number, dtype.num
    order = _read(dtype, layout.byteorder, ctypes.c_char)
    yield "the byte order", order.decode(), dtype.byteorder


def _read(thing, offset, kind):
    return kind.from_address(id(thing) + offset).value
