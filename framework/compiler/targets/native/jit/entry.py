"""Native functions that Python calls without converting arguments.

`builtin` makes a Python function from an address; the code receives its arguments as
Python objects, and reads arrays directly with the functions here, which append to a
`Writer`. A step looks like this:

    with writer.function("step", PARAMETERS, POINTER) as (constants, args, count):
        x = entry.argument(writer, args, 0)
        ok = entry.check_array(writer, constants, x, (128, 10), np.float32)
        entry.refuse_unless(writer, constants, ok)  # returns True: nothing was done
        ...
        writer.ret(entry.none(writer, constants))

Such code never accesses an object without holding the GIL.
"""

import ctypes

import numpy as np

from ..llvm_writer import POINTER
from . import object_layout
from .object_layout import probe

PARAMETERS = [("constants", POINTER), ("args", POINTER), ("count", np.int64)]

FASTCALL = 0x80  # METH_FASTCALL
_OWN = 4  # constants of each function before those of the user: keeper, None, True, ndarray


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _Keeper:
    """Holds objects that must live as long as a function."""

    def __init__(self, library, method):
        self.library, self.method = library, method


def builtin(library, symbol, constants=(), name=None):
    """Return a Python function that runs the code of a library.

    ``library`` has ``address(symbol)`` of a function of `PARAMETERS` that returns a
    pointer, and is kept as long as the function; ``constants`` are objects that the
    code reads with `constant`.

    Raises:
        Unavailable: If objects have an unexpected memory layout.
    """
    probe()
    method = _MethodDef(
        (name or symbol).encode(), library.address(symbol), FASTCALL, None
    )
    keeper = _Keeper(library, method)
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    )(("PyCFunction_NewEx", ctypes.pythonapi))
    own = (keeper, None, True, np.ndarray)
    return make(ctypes.addressof(method), (*own, *constants), None)


def symbols():
    """Return addresses of the CPython functions that the code here calls."""
    return {
        name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        for name in ("PyEval_SaveThread", "PyEval_RestoreThread")
    }


# --- arguments and constants


def check_count(writer, count, expected):
    """Check that a function got this number of arguments."""
    return count == expected


def argument(writer, args, n):
    """Return the object that is argument ``n``."""
    return writer.load(writer.at(args, n, POINTER), POINTER)


def constant(writer, constants, n):
    """Return the object that is constant ``n``."""
    return _own(writer, constants, _OWN + n)


def constant_at(writer, constants, n):
    """Return a new reference to the constant with a run-time number."""
    address = writer.at(constants, probe().items + 8 * _OWN, np.uint8)
    object_ = writer.load(writer.at(address, n, POINTER), POINTER)
    return _new_reference(writer, object_)


def _own(writer, constants, n):
    return _load_field(writer, constants, probe().items + 8 * n, POINTER)


def _load_field(writer, object_, offset, dtype):
    return writer.load(writer.at(object_, offset, np.uint8), dtype)


# --- arrays


def array_data(writer, array):
    """The address of the first entry of an array."""
    return _load_field(writer, array, probe().data, POINTER)


def array_rank(writer, array):
    """The number of axes of an array."""
    return _load_field(writer, array, probe().rank, np.int32)


def array_flags(writer, array):
    """The flags of an array, including the ones in `object_layout`."""
    return _load_field(writer, array, probe().flags, np.int32)


def array_dtype(writer, array):
    """The number of an array's dtype; valid if its byte order is native."""
    dtype = _load_field(writer, array, probe().dtype, POINTER)
    order = _load_field(writer, dtype, probe().byteorder, np.uint8)
    return _load_field(writer, dtype, probe().number, np.int32), order != ord(">")


def array_size(writer, array, axis):
    """The size of one axis of an array, counted from the first."""
    sizes = _load_field(writer, array, probe().shape, POINTER)
    return writer.load(writer.at(sizes, axis, np.int64), np.int64)


def array_stride(writer, array, axis):
    """The stride of one axis of an array, in bytes."""
    strides = _load_field(writer, array, probe().strides, POINTER)
    return writer.load(writer.at(strides, axis, np.int64), np.int64)


def check_array(
    writer, constants, thing, shape, dtype, writeable=False, contiguous=True
):
    """Check that an object is an array that code can read, or write, as a row of entries.

    It must be exactly an ``np.ndarray``, contiguous, aligned, of this dtype in native
    byte order, of this rank and these sizes (None allows any). Code that uses the
    strides may pass ``contiguous=False``.
    """
    failed = writer.fresh("not_as_expected")
    done = writer.fresh("checked")
    needed = object_layout.ALIGNED
    needed |= object_layout.WRITEABLE if writeable else 0
    needed |= object_layout.C_CONTIGUOUS if contiguous else 0
    for condition in _conditions(writer, constants, thing, shape, dtype, needed):
        met = writer.fresh("met")
        writer.branch(condition, met, failed)
        writer.begin(met)
    last = writer.block
    writer.jump(done)
    writer.begin(failed)
    writer.jump(done)
    writer.begin(done)
    return writer.assigned(np.bool_, f"phi i1 [ true, %{last} ], [ false, %{failed} ]")


def _conditions(writer, constants, thing, shape, dtype, needed):
    """Yield conditions, each of which may be read only if all before it hold."""
    yield is_array(writer, constants, thing)
    number, is_native = array_dtype(writer, thing)
    right = (array_flags(writer, thing) & needed) == needed
    right = right & (array_rank(writer, thing) == len(shape)) & is_native
    numbers = dtype_numbers(dtype)
    is_one = number == numbers[0]
    for other in numbers[1:]:
        is_one = is_one | (number == other)
    yield right & is_one
    for axis, size in enumerate(shape):
        if size is not None:
            yield array_size(writer, thing, axis) == size


def is_array(writer, constants, thing):
    """Check that an object is exactly an ``np.ndarray``."""
    kind = _load_field(writer, thing, probe().type, POINTER)
    return kind == _own(writer, constants, 3)


def dtype_numbers(dtype):
    """NumPy's numbers of a dtype: int64 is "long" as well as "long long"."""
    dtype = np.dtype(dtype)
    known = {np.dtype(c).num for c in "?bBhHiIlLqQefdFD" if np.dtype(c) == dtype}
    return sorted(known or {dtype.num})


# --- results, and the lock


def none(writer, constants):
    """Return a new reference to None."""
    return _new_reference(writer, _own(writer, constants, 1))


def true(writer, constants):
    """Return a new reference to True."""
    return _new_reference(writer, _own(writer, constants, 2))


def refuse_unless(writer, constants, condition):
    """Return True from the function unless a condition holds."""
    refuse, go_on = writer.fresh("refuse"), writer.fresh("go_on")
    writer.branch(condition, go_on, refuse)
    writer.begin(refuse)
    writer.ret(true(writer, constants))
    writer.begin(go_on)


def _new_reference(writer, thing):
    if not probe().immortal:
        count = writer.at(thing, probe().references, np.uint8)
        writer.store(writer.load(count, np.int64) + 1, count)
    return thing


def release_gil(writer):
    """Release the GIL; return the state that `retake_gil` needs."""
    return writer.call("PyEval_SaveThread", [], POINTER)


def retake_gil(writer, state):
    """Reacquire the GIL that was released."""
    writer.call("PyEval_RestoreThread", [state])
