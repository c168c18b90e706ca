"""A stand-in for CuPy's arrays that runs anywhere: what would break on a GPU breaks here.

CuPy, which can be imported without a driver, tells which names there are, the arguments
that they take and the dtypes that they compute in; NumPy computes. `Array` holds a NumPy
array but is none and does not turn into one: reductions give arrays of rank 0, functions
refuse NumPy arrays, whole numbers out of range wrap as indices, matrices that cannot be
factored raise nothing, and what a function makes is C-contiguous unless it is told an
``order``.
"""

import contextlib
import functools
import importlib
import inspect
import operator
import re
import threading
import types
from unittest import mock

import cupy
import cupyx
import numpy as np

from tapewright.core.settings.ufunc_settings import ignoring_float_errors

from .held_array import Array, arrays_in, to_numpy, unwrap, wrap

__all__ = ["Array", "registered", "signature_of", "to_numpy", "xp"]

# The dtypes of the functions that add and compare where indices meet, by the messages of
# CuPy's `_scatter_op`.
INTEGERS = ("int32", "int64", "uint32", "uint64")
AT = {
    "add": (*INTEGERS, "float16", "float32", "float64"),
    "subtract": ("int32", "uint32"),
    "maximum": (*INTEGERS, "float32", "float64"),
    "minimum": (*INTEGERS, "float32", "float64"),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), INTEGERS),
}
FROM_THE_HOST = "array asarray asanyarray ascontiguousarray asfortranarray".split()
TO_THE_HOST = "get item tolist tobytes dump dumps tofile toDlpack".split()
# Functions whose Python numbers are no arrays of CuPy's either.
PLAIN = "can_cast iscomplexobj isrealobj may_share_memory ndim result_type size".split()
WRAPPING = "take put".split()
# An array of rank 0 has no axis; NumPy grants it one.
REDUCTIONS = "all any argmax argmin max mean min prod std sum var".split()
# States of its generators cannot be saved, so that ops have a generator of their own.
AVOIDED = ("random",)


@functools.cache
def signature_of(function):
    """The signature of a function of CuPy's; that of compiled ones is in their docstring."""
    try:
        return inspect.signature(function)
    except ValueError:
        head = function.__doc__.strip().splitlines()[0]
    arguments = re.search(r"\((.*)\)", head)[1].replace("\\", "")
    untyped = re.sub(r"\b\w+ (\w+)", r"\1", arguments)  # "int axis=-1" -> "axis=-1"
    return inspect.signature(eval(f"lambda {untyped}: None"))


# --------------------------------------------------------------------- functions


class Function:
    """A function of CuPy's, bound to its signature and computed by NumPy's ``compute``."""

    def __init__(self, name, real, compute):
        self.__name__, self.signature = name, signature_of(real)
        self._computed = ignoring_float_errors(compute)
        if getattr(real, "__module__", "").startswith("cupy.linalg"):
            self._computed = _as_linalg(self._computed)
        parameters = self.signature.parameters
        self._keeps_order = "order" in parameters and name != "matmul"
        self._is_from_the_host = name in FROM_THE_HOST
        self._is_plain = name in PLAIN or name in TO_THE_HOST
        self._fitting = set()

    def __call__(self, *args, **kwargs):
        call = (len(args), *kwargs)
        if call not in self._fitting:
            self.signature.bind(*args, **kwargs)
            self._fitting.add(call)
        sources = arrays_in((args, tuple(kwargs.values())))
        given = unwrap(args, self._is_from_the_host)
        named = {k: unwrap(v) for k, v in kwargs.items() if k != "blocking"}
        if self.__name__ in WRAPPING:
            named["mode"] = "wrap"
        if "kind" in named:
            cupy.ndarray._check_kind_sort(named["kind"])
        if self.__name__ in REDUCTIONS and isinstance(named.get("axis"), int):
            np.lib.array_utils.normalize_axis_index(named["axis"], given[0].ndim)
        result = self._computed(*given, **named)
        if self._is_plain:
            return result
        if self._is_from_the_host and not sources:
            result = result.copy(order="K")
        out = kwargs.get("out")
        return wrap(result, sources, self._keeps_order) if out is None else out


def _as_linalg(function):
    """A function of CuPy's `linalg`, which raises nothing unless it is told to."""

    def run(*args, **kwargs):
        raises = cupyx._ufunc_config.get_config_linalg() == "raise"
        with contextlib.nullcontext() if raises else _no_linalg_errors():
            return function(*args, **kwargs)

    return run


_PATCHING = threading.RLock()


@contextlib.contextmanager
def _no_linalg_errors():
    """LAPACK's complaints are passed over; what it leaves is not a result."""
    inside = np.linalg._linalg
    names = [name for name in vars(inside) if name.startswith("_raise_linalgerror")]
    silent = dict.fromkeys(names, lambda error, flag: None)
    with _PATCHING, mock.patch.multiple(inside, **silent):
        yield


def _cholesky(a):
    """As from cuSOLVER: of a matrix that is not positive definite some numbers."""
    found = np.linalg.cholesky(a)
    return np.where(np.isnan(found), np.tril(a), found)


def _empty(shape, dtype=float, order="C"):
    """Memory that begins where CuPy's does: at a multiple of 512 bytes."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    space = np.empty(size + ALIGNMENT, np.uint8)
    start = -space.ctypes.data % ALIGNMENT
    return space[start : start + size].view(dtype).reshape(shape, order=order)


def _by_many_threads(function):
    """A sum or mean as exact as that of a GPU, which does not add number after number."""

    def reduce(a, axis=None, dtype=None, out=None, keepdims=False):
        kind = np.dtype(a.dtype if dtype is None else dtype)
        wide = {"e": "d", "f": "d", "F": "D"}.get(kind.char)
        if wide is None:
            return function(a, axis, dtype, out, keepdims)
        found = function(a, axis, wide, keepdims=keepdims).astype(kind)
        if out is not None:
            out[...] = found
        return found

    return reduce


def _vdot(a, b):
    dtype = np.result_type(a, b)
    wide = np.result_type(a, b, np.float64) if dtype.kind in "fc" else dtype
    return np.vdot(a.astype(wide), b.astype(wide)).astype(dtype)


def _take_along_axis(a, indices, axis):
    size = a.size if axis is None else a.shape[axis]
    return np.take_along_axis(a, indices % size if size else indices, axis)


def _power(x, y):
    """CUDA's ``pow``; for a single exponent of 0.5, NumPy takes the square root."""
    return np.power(x, np.array(np.broadcast_to(y, np.broadcast(x, y).shape)))


class Ufunc:
    """A ufunc of CuPy's: CuPy chooses the loop, NumPy computes."""

    def __init__(self, name, real):
        self.__name__, self.real, self.compute = name, real, getattr(np, name)
        self.nin, self.nout, self.nargs = real.nin, real.nout, real.nargs
        self.types = real.types
        if name == "power":
            self.compute = _power
        self._computed = ignoring_float_errors(self._compute)
        self._loops = {}

    def __call__(self, *args, out=None, dtype=None, casting="same_kind"):
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(f"Wrong number of arguments for {self.real.name!r}")
        inputs, outs = args[: self.nin], args[self.nin :]
        if out is not None:
            outs = out if isinstance(out, tuple) else (out,)
        taken, given = self._loop(inputs, dtype)
        results = self._computed(inputs, taken)
        if self.nout == 1:
            return self._stored(results, given[0], outs[0] if outs else None, casting)
        outs = (*outs, *(None,) * (self.nout - len(outs)))
        each = zip(results, given, outs, strict=True)
        return tuple([self._stored(*one, casting) for one in each])

    def _compute(self, inputs, dtypes):
        return self.compute(*[_operand(x, t) for x, t in zip(inputs, dtypes)])

    def _stored(self, result, dtype, out, casting):
        result = np.asarray(result)
        if result.dtype is not dtype:
            result = result.astype(dtype, copy=False)
        if out is not None:
            np.copyto(out.held, result, casting)
            return out
        is_new = isinstance(self.compute, np.ufunc) and result.flags.c_contiguous
        return Array.holding(result if is_new else result.copy(order="C"))

    def _loop(self, inputs, dtype):
        """The dtypes of inputs and outputs."""
        kinds = dtype or tuple([_kind_of(x) for x in inputs])
        if kinds not in self._loops:
            loop = self._choose(kinds, dtype)
            if loop is None:
                message = f"Wrong type ({kinds}) of arguments for {self.real.name}"
                raise TypeError(message)
            if loop.error_func is not None:
                loop.error_func()
            each = loop.in_types, loop.out_types
            self._loops[kinds] = [tuple(map(np.dtype, types)) for types in each]
        return self._loops[kinds]

    def _choose(self, kinds, dtype):
        ops = self.real._ops
        if dtype is not None:
            ops = self.real._out_ops or ops
            return ops._guess_routine_from_dtype(np.dtype(dtype))
        dtypes, weak = zip(*kinds)
        return ops._guess_routine_from_in_types(dtypes, _weak_ones(dtypes, weak))

    def at(self, a, indices, b=None):
        """``a[indices] = ufunc(a[indices], b)``, also where indices meet."""
        if self.real._scatter_op is None:
            raise NotImplementedError(f"`{self.real.name}.at` is not supported yet")
        picks = [i for i in arrays_in((indices,)) if i.dtype.kind in "iu"]
        if picks and a.dtype.name not in AT[self.__name__]:
            takes = ", ".join(AT[self.__name__])
            raise TypeError(
                f"cupy.{self.__name__}.at only supports {takes} as data type"
            )
        values = np.asarray(unwrap(b)).astype(a.dtype)
        with np.errstate(all="ignore"):
            self.compute.at(a.held, a.within(indices), values)

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        return self._by("reduce", {"add": "sum", "multiply": "prod"}, array)(
            axis, dtype, out, keepdims
        )

    def accumulate(self, array, axis=0, dtype=None, out=None):
        return self._by("accumulate", {"add": "cumsum", "multiply": "cumprod"}, array)(
            axis, dtype, out
        )

    def _by(self, verb, methods, array):
        if self.__name__ not in methods:
            raise NotImplementedError(f"`{self.real.name}.{verb}` is not supported yet")
        return getattr(array, methods[self.__name__])


def _kind_of(x):
    """The dtype of an operand, and its type if it is a number that adapts to others."""
    if isinstance(x, Array):
        return x.held.dtype, False
    if isinstance(x, np.generic):
        return x.dtype, False
    if not isinstance(x, (bool, int, float, complex)):
        raise TypeError(f"Unsupported type {type(x)}")
    return np.asarray(x).dtype, False if isinstance(x, bool) else type(x)


def _weak_ones(dtypes, weak):
    """Which numbers adapt: those of no higher kind than all others, as in CuPy."""
    rank = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 2, "V": 2}  # V: bfloat16
    numbers = [rank[t.kind] for t, w in zip(dtypes, weak) if w]
    others = [rank[t.kind] for t, w in zip(dtypes, weak) if not w]
    adapts = numbers and others and max(others) >= max(numbers)
    return weak if adapts else (False,) * len(weak)


def _operand(x, dtype):
    held = x.held if isinstance(x, Array) else x
    if not isinstance(held, (np.ndarray, np.generic)):
        return np.asarray(held, dtype)
    return held if held.dtype is dtype else held.astype(dtype, copy=False)


class Module:
    """A module of CuPy's, of which each name is looked up in CuPy at its first use."""

    def __init__(self, name):
        self.__name__ = name
        self._real = importlib.import_module(name)
        self._computes = importlib.import_module(name.replace("cupy", "numpy"))

    def __getattr__(self, name):
        real = getattr(self._real, name)  # an AttributeError is CuPy's
        if name in AVOIDED:
            raise AttributeError(f"not for ops: {self.__name__}.{name}")
        found = self._stand_in(name, real)
        setattr(self, name, found)
        return found

    def _stand_in(self, name, real):
        if name in OWN:
            return OWN[name]()
        if isinstance(real, types.ModuleType):
            return Module(real.__name__)
        if isinstance(real, cupy.ufunc):
            return Ufunc(name, real)
        compute = COMPUTED.get(name) or getattr(self._computes, name, None)
        if isinstance(real, type) or not callable(real) or compute is real:
            return real
        if compute is None:
            raise AttributeError(f"the stand-in for CuPy has no {name}")
        return Function(name, real, compute)


class MemoryPool:
    """CuPy's pool of memory, without any."""

    def used_bytes(self):
        return 0

    total_bytes = free_bytes = free_all_blocks = get_limit = used_bytes


def _driver():
    return importlib.import_module(".driver", __package__)


def registered():
    """Register the stand-in, with its products, and return it."""
    from tapewright.compiler.targets.cuda.products import cublaslt
    from tapewright.core.hardware import devices

    from .cublaslt import CublasLt

    def submit(stream, work):
        _driver().submit(stream, ("product",), work)

    devices.register_array_module(Array, xp, to_numpy)
    products = CublasLt(run=submit)
    cublaslt.provide(lambda: products, lambda: 0)
    return xp


COMPUTED = {
    "cholesky": _cholesky,
    "empty": _empty,
    "mean": _by_many_threads(np.mean),
    "sum": _by_many_threads(np.sum),
    "take_along_axis": _take_along_axis,
    "vdot": _vdot,
}
ALIGNMENT = 512  # bytes
OWN = {  # name -> what finds it at its first use
    "asnumpy": lambda: to_numpy,
    "cuda": lambda: _driver().cuda,
    "get_default_memory_pool": lambda: MemoryPool,
    "ndarray": lambda: Array,
    "RawModule": lambda: _driver().RawModule,
}


# ------------------------------------------------------------------------- arrays


ATTRIBUTES = "dtype shape ndim size itemsize nbytes strides".split()
VIEWS = "real imag T mT".split()
BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "divmod": "divmod",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "matmul": "matmul",
    "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    "eq": "equal", "ne": "not_equal",
}  # fmt: skip
UNARY = {
    "neg": "negative",
    "pos": "positive",
    "abs": "absolute",
    "invert": "invert",
}


def _view(name):
    return property(lambda self: wrap(getattr(self.held, name), [self], True))


def _method(name, real):
    function = Function(name, real, COMPUTED.get(name) or getattr(np.ndarray, name))

    def method(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    return method


_OPERANDS = (Array, bool, int, float, complex, np.ndarray, np.generic)


def _operator(name, is_reflected=False, is_in_place=False):
    def method(self, *others):
        if not all([isinstance(other, _OPERANDS) for other in others]):
            return NotImplemented
        function = getattr(xp, name)
        if is_in_place:
            return function(self, *others, out=self)
        return function(*others, self) if is_reflected else function(self, *others)

    return method


def _scalar(kind):
    return lambda self: kind(self.held)


def _add_names():
    for name in ATTRIBUTES:
        setattr(Array, name, property(operator.attrgetter(f"held.{name}")))
    for name in VIEWS:
        setattr(Array, name, _view(name))
    for name in dir(cupy.ndarray):
        is_ours = name.startswith("_") or hasattr(Array, name)
        if not is_ours and callable(getattr(np.ndarray, name, None)):
            setattr(Array, name, _method(name, getattr(cupy.ndarray, name)))
    for name, function in {**BINARY, **COMPARISONS, **UNARY}.items():
        setattr(Array, f"__{name}__", _operator(function))
    for name, function in BINARY.items():
        setattr(Array, f"__r{name}__", _operator(function, is_reflected=True))
        if hasattr(cupy.ndarray, f"__i{name}__"):
            setattr(Array, f"__i{name}__", _operator(function, is_in_place=True))
    for kind in (bool, int, float, complex):
        setattr(Array, f"__{kind.__name__}__", _scalar(kind))


_add_names()
xp = Module("cupy")
