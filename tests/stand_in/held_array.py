"""The array of the stand-in for CuPy: memory of NumPy's that NumPy cannot touch.

Attributes, indices and conversions are those of CuPy's arrays. Methods and operators are
attached in `arrays`, where the functions are that they call.
"""

import ctypes
import importlib

import numpy as np
from cupy._core.flags import Flags

__all__ = ["Array", "arrays_in", "to_numpy", "unwrap", "wrap"]


def to_numpy(array):
    """A copy in host memory: the one way out, by its own name."""
    return array.held.copy()


class Array:
    """An array of a GPU that is none: ``held`` is its memory.

    ``base`` is the array that owns the memory, or None.
    """

    __slots__ = ("held", "base", "__weakref__")
    __array_ufunc__ = None
    __hash__ = None

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        self.base = None
        if memptr is None:
            self.held = np.empty(shape, dtype, order)
        else:
            self.held = _memory_at(memptr.ptr, shape, np.dtype(dtype), strides, order)

    @classmethod
    def holding(cls, held, base=None):
        """The array of the stand-in with the memory of ``held``."""
        array = cls.__new__(cls)
        array.held, array.base = held, base
        return array

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to "
            "construct a NumPy array explicitly."
        )

    def get(self, stream=None, order="C", out=None, blocking=True):
        if out is None:
            return self.held.copy(order)
        out[...] = self.held
        return out

    def set(self, arr, stream=None):
        if arr.shape != self.held.shape or arr.dtype != self.held.dtype:
            raise ValueError("Shape or dtype mismatch")
        self.held[...] = arr

    @property
    def data(self):
        return _Pointer(self.held.ctypes.data if self.held.size else 0)

    @property
    def device(self):
        return _device()

    @property
    def flags(self):
        flags = self.held.flags
        return Flags(flags.c_contiguous, flags.f_contiguous, self.base is None)

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.held.shape,
            "typestr": self.held.dtype.str,
            "descr": self.held.dtype.descr,
            "strides": None if self.flags.c_contiguous else self.held.strides,
            "data": (self.data.ptr, False),
            "stream": 1,
            "version": 3,
        }

    def __copy__(self):
        return Array.holding(self.held.copy())

    def __deepcopy__(self, memo):
        return Array.holding(self.held.copy())

    def __reduce__(self):
        return Array.holding, (to_numpy(self),)

    def __len__(self):
        return len(self.held)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        return f"stand-in {self.held!r}"

    def __str__(self):
        return str(self.held)

    def __getitem__(self, index):
        return wrap(self.held[self.within(index)], [self])

    def __setitem__(self, index, value):
        index, value = self.within(index), unwrap(value)
        self.held[index] = value
        if any([isinstance(p, np.ndarray) and p.dtype.kind in "iu" for p in index]):
            # Of several for one place any one counts on a GPU: here the first one.
            numbers = np.arange(self.held.size).reshape(self.held.shape)[index]
            values = np.broadcast_to(value, numbers.shape).ravel()[::-1]
            places = np.unravel_index(numbers.ravel()[::-1], self.held.shape)
            self.held[places] = values

    def within(self, index):
        """An index with `Ellipsis`; whole numbers of arrays wrap around the axes."""
        parts = [_index_part(p) for p in index] if isinstance(index, tuple) else None
        parts = [_index_part(index)] if parts is None else parts
        if not any([p is Ellipsis for p in parts]):
            parts.append(Ellipsis)
        axis, rest = 0, self.held.ndim - sum([_axes_of(p) for p in parts])
        for i, part in enumerate(parts):
            if isinstance(part, np.ndarray) and part.dtype.kind in "iu" and part.size:
                parts[i] = part % self.held.shape[axis]
            axis += rest if part is Ellipsis else _axes_of(part)
        return tuple(parts)


class _Pointer:
    """CuPy's `MemoryPointer`, of which ``ptr`` is asked for above all."""

    __slots__ = ("ptr",)
    device_id = 0

    def __init__(self, ptr):
        self.ptr = ptr

    @property
    def device(self):
        return _device()


def _device():
    return importlib.import_module(".driver", __package__).Device(0)


def _memory_at(address, shape, dtype, strides, order):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    strides = np.empty(shape, dtype, order).strides if strides is None else strides
    size = dtype.itemsize + sum([(n - 1) * s for n, s in zip(shape, strides)])
    memory = (ctypes.c_ubyte * (size if all(shape) else 0)).from_address(address)
    return np.ndarray(shape, dtype, memory, strides=strides)


def _index_part(part):
    if isinstance(part, np.ndarray):  # CuPy would move it; ours shall say so
        raise TypeError("a NumPy array as an index of a GPU's array")
    if not isinstance(part, (Array, list)):
        return part
    part = np.asarray(unwrap(part))
    return part if part.size or part.dtype.kind != "f" else part.astype(np.int32)


def _axes_of(part):
    """How many axes a part of an index takes."""
    if part is None or part is Ellipsis:
        return 0
    is_mask = isinstance(part, np.ndarray) and part.dtype.kind == "b"
    return part.ndim if is_mask else 1


# ----------------------------------------------------------- into the stand-in and out


def unwrap(value, from_the_host=False):
    """A value with arrays of NumPy's for those of the stand-in, in lists and tuples too."""
    if isinstance(value, Array):
        return value.held
    if isinstance(value, (list, tuple)):
        return type(value)([unwrap(v, from_the_host) for v in value])
    if isinstance(value, np.ndarray) and not from_the_host:
        raise TypeError(f"Unsupported type {type(value)}")
    return value


def arrays_in(value):
    """All arrays of the stand-in in a value."""
    if isinstance(value, Array):
        return [value]
    if isinstance(value, (list, tuple)):
        return [array for entry in value for array in arrays_in(entry)]
    return []


def wrap(result, sources=(), keeps_order=False):
    """What CuPy gives for a result of NumPy's that was computed from ``sources``."""
    if isinstance(result, (tuple, list)):
        kind = list if isinstance(result, list) else tuple  # no named ones
        return kind([wrap(r, sources, keeps_order) for r in result])
    if not isinstance(result, (np.ndarray, np.generic, bool, int, float, complex)):
        return result
    held = np.asarray(result)
    if held.dtype.char not in "?bBhHiIlLqQefdFDE":  # E: bfloat16, since CuPy 14
        raise ValueError(f"Unsupported dtype {held.dtype}")
    owner = _owner(held)
    for source in sources:
        if held is source.held:
            return source
        if owner is _owner(source.held):
            return Array.holding(held, source if source.base is None else source.base)
    if not (keeps_order or held.flags.c_contiguous):
        held = held.copy(order="C")
    return Array.holding(held)


def _owner(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
