"""Trace kernels: run them on arrays without values, and record each NumPy call.

A kernel is run on `ArrayTracer` arrays, which have a shape and a dtype; a `Builder`
appends the instructions to the program. So a kernel is written only once. If it needs
more (values, a layout, a function missing from `array_functions`), `NotTraceable` is
raised, and the kernel becomes a single call.
"""

import math
from types import SimpleNamespace

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tapewright.core.dtypes import is_bfloat16
from tapewright.core.hardware.devices import register_array_module

from ..instructions.array_instructions import (
    BoundedRead,
    Index,
    Map,
    Reduce,
    View,
    permutation,
)
from ..instructions.call_instructions import Check
from ..instructions.instruction import Memory
from ..program import Buffer, Kind
from .array_functions import (
    FUNCTIONS,
    LOOP_FUNCTIONS,
    UFUNCS,
    NotTraceable,
    cast_to,
    copy_array,
    matmul,
)


def _refuse(tracer, *args, **kwargs):
    """Raise `NotTraceable`, and record it, as NumPy may replace the exception by another."""
    tracer.builder.refused = True
    raise NotTraceable


class ArrayTracer:
    """An array of a kernel that is being traced."""

    __slots__ = ("buffer", "builder", "is_new", "is_viewed")

    def __init__(self, buffer, builder, is_new=False):
        self.buffer, self.builder = buffer, builder
        self.is_new = is_new  # made by this kernel, so that it may write into it
        self.is_viewed = False  # through a view, which then would change with it

    shape = property(lambda self: self.buffer.shape)
    dtype = property(lambda self: self.buffer.dtype)
    ndim = property(lambda self: len(self.buffer.shape))
    size = property(lambda self: self.buffer.size)
    T = property(lambda self: self.transpose())

    @property
    def real(self):
        return self if self.dtype.kind != "c" else _refuse(self)

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return self.builder.ufunc(ufunc, method, inputs, keywords)

    def __array_function__(self, function, types, args, keywords):
        handler = self.builder.functions.get(function)
        if handler is None:
            raise NotTraceable
        return handler(self.builder, *args, **keywords)

    def _view(self, method, shape, *parameters):
        """Return a view, created by a method of ndarray."""
        return self.builder.view(getattr(np.ndarray, method), self, shape, parameters)

    def _untransposed(self):
        """Return the array of which this one is a transposed view."""
        self.is_viewed = True
        inner = ArrayTracer(self.buffer.instruction.viewed, self.builder)
        inner.is_viewed = True
        return inner

    def reshape(self, *shape):
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = tuple(shape[0])
        shape = tuple([int(n) for n in shape])
        if shape.count(-1) == 1:
            rest = -math.prod(shape)
            if rest == 0 or self.size % rest:
                raise NotTraceable
            shape = tuple([self.size // rest if n == -1 else n for n in shape])
        if any([n < 0 for n in shape]) or math.prod(shape) != self.size:
            raise NotTraceable
        if shape == self.shape:
            return self
        return self._view("reshape", shape, shape)

    def transpose(self, *axes):
        if len(axes) == 1 and not isinstance(axes[0], int):
            axes = axes[0]
        axes = tuple(axes) if axes else None
        if axes is None:
            axes = tuple(range(self.ndim))[::-1]
        axes = normalize_axis_tuple(axes, self.ndim)
        before = permutation(self.buffer)
        if before is not None:  # both at once
            return self._untransposed().transpose(tuple([before[a] for a in axes]))
        if axes == tuple(range(self.ndim)):
            return self
        return self._view("transpose", tuple([self.shape[a] for a in axes]), axes)

    def swapaxes(self, a, b):
        axes = list(range(self.ndim))
        axes[a], axes[b] = axes[b], axes[a]
        return self.transpose(axes)

    @property
    def flags(self):
        """Report matrices as contiguous: kernels only choose between equal paths by it."""
        if self.ndim > 2 or permutation(self.buffer) is not None:
            _refuse(self)
        return _CONTIGUOUS

    def copy(self, order="C"):
        if order != "C":
            _refuse(self)
        return copy_array(self.builder, self)

    def sum(self, axis=None, dtype=None, out=None, keepdims=False, **initial):
        if initial:
            _refuse(self)
        return self.builder.reduce(np.add, self, axis, dtype, out, keepdims)

    def prod(self, axis=None, dtype=None, out=None, keepdims=False, **initial):
        if initial:
            _refuse(self)
        return self.builder.reduce(np.multiply, self, axis, dtype, out, keepdims)

    def all(self, axis=None, out=None, keepdims=False):
        return self._of_booleans(np.minimum, axis, out, keepdims)

    def any(self, axis=None, out=None, keepdims=False):
        return self._of_booleans(np.maximum, axis, out, keepdims)

    def _of_booleans(self, ufunc, axis, out, keepdims):
        if self.dtype != bool or not self.builder.compiles_loops or not self.size:
            _refuse(self)  # of nothing there is no minimum
        return self.builder.reduce(ufunc, self, axis, None, out, keepdims)

    def max(self, axis=None, out=None, keepdims=False, **initial):
        if initial:
            _refuse(self)
        return self.builder.reduce(np.maximum, self, axis, None, out, keepdims)

    def min(self, axis=None, out=None, keepdims=False, **initial):
        if initial:
            _refuse(self)
        return self.builder.reduce(np.minimum, self, axis, None, out, keepdims)

    def astype(self, dtype, copy=True, **order):
        if order:
            _refuse(self)
        dtype = np.dtype(dtype)
        if dtype == self.dtype and not copy:
            return self
        return cast_to(self.builder, self, dtype)

    def __getitem__(self, index):
        index = index if type(index) is tuple else (index,)
        plain = [type(i) in (int, slice) or i is None or i is Ellipsis for i in index]
        if not all(plain):
            raise NotTraceable
        probe = np.broadcast_to(np.zeros((), self.dtype), self.shape)[index]
        if not isinstance(probe, np.ndarray):  # one entry: NumPy makes a copy
            if not self.builder.compiles_loops:
                raise NotTraceable
            return self[(*index, Ellipsis)]
        if probe.shape == self.shape and all(i == slice(None) for i in index):
            return self
        axes = permutation(self.buffer)
        if axes is not None and len(probe.shape) == self.ndim and None not in index:
            at = index.index(Ellipsis) if Ellipsis in index else len(index)
            full = (slice(None),) * (self.ndim - len(index) + (Ellipsis in index))
            index = index[:at] + full + index[at + 1 :]
            back = sorted(range(self.ndim), key=axes.__getitem__)
            inner = self._untransposed()
            return inner[tuple([index[i] for i in back])].transpose(axes)
        return self._view("__getitem__", probe.shape, *index)

    __array__ = __bool__ = __float__ = __int__ = __index__ = __iter__ = _refuse
    __len__ = __setitem__ = __complex__ = __contains__ = _refuse

    def __getattr__(self, name):
        if name.startswith("__"):  # a protocol of Python's, which it need not have
            raise AttributeError(name)
        _refuse(self)


_CONTIGUOUS = SimpleNamespace(c_contiguous=True)


def _operator(ufunc, swapped=False, in_place=False):
    def operator(self, other):
        if swapped:
            return self.builder.ufunc(ufunc, "__call__", (other, self), {})
        out = {"out": (self,)} if in_place else {}
        return self.builder.ufunc(ufunc, "__call__", (self, other), out)

    return operator


def _unary(ufunc):
    return lambda self: self.builder.ufunc(ufunc, "__call__", (self,), {})


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power,
    "matmul": np.matmul, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift,
}.items():  # fmt: skip
    setattr(ArrayTracer, f"__{_name}__", _operator(_ufunc))
    setattr(ArrayTracer, f"__r{_name}__", _operator(_ufunc, swapped=True))
    setattr(ArrayTracer, f"__i{_name}__", _operator(_ufunc, in_place=True))
for _name, _ufunc in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}.items():  # fmt: skip
    setattr(ArrayTracer, f"__{_name}__", _operator(_ufunc))
for _name, _ufunc in {
    "neg": np.negative, "invert": np.invert, "abs": np.absolute,
}.items():  # fmt: skip
    setattr(ArrayTracer, f"__{_name}__", _unary(_ufunc))
ArrayTracer.__hash__ = None


class Builder:
    """Appends the instructions of one node's kernel to a program.

    ``functions`` maps the NumPy functions it supports besides ufuncs to their handlers.
    """

    functions, compiles_loops = FUNCTIONS, False

    def __init__(self, program, node):
        self.program, self.node = program, node
        self.refused = False  # whether values were asked for

    def traced(self, x):
        """Return a traced array; reject anything else."""
        if type(x) is not ArrayTracer:
            raise NotTraceable
        return x

    def buffer(self, x, dtype=None):
        """Return the buffer of an argument; numbers become constants of ``dtype``."""
        if type(x) is ArrayTracer:
            return x.buffer
        if isinstance(x, (np.ndarray, np.generic)):
            return self.program.constant(np.asarray(x))
        if type(x) in (int, float, complex, bool):
            return self.program.constant(np.asarray(x, dtype))
        raise NotTraceable

    def emit(self, instruction, shape, dtype):
        """Append an instruction; return its only output."""
        (buffer,) = self.program.append(instruction, (shape, dtype))
        return ArrayTracer(buffer, self, is_new=True)

    def scratch(self, shape, dtype):
        """Return scratch memory, for use as an operand of one instruction."""
        return Buffer(shape, np.dtype(dtype), Kind.SCRATCH)

    def view(self, function, x, shape, parameters):
        """Append a view of an array; return it."""
        x.is_viewed = True
        view = self.emit(
            View(function, x.buffer, parameters, self.node), shape, x.dtype
        )
        view.is_new, view.is_viewed = False, True
        return view

    def into(self, out, result):
        """Return a result; if there is an ``out``, it refers to the result from here on."""
        if out is None:
            return result
        out = out[0] if type(out) is tuple else out
        if type(out) is not ArrayTracer or not out.is_new or out.is_viewed:
            raise NotTraceable
        if not out.buffer.same_spec(result.buffer):
            raise NotTraceable
        out.buffer = result.buffer
        return out

    def ufunc(self, ufunc, method, inputs, keywords):
        """Append a call of a ufunc, or of its ``reduce``; return the result."""
        keywords = dict(keywords)
        out, dtype = keywords.pop("out", None), keywords.pop("dtype", None)
        if method == "reduce" and type(inputs[0]) is ArrayTracer:
            axis, keepdims = keywords.pop("axis", 0), keywords.pop("keepdims", False)
            result = self.reduce(ufunc, inputs[0], axis, dtype, None, keepdims)
            if keywords:
                raise NotTraceable
            return self.into(out, result)
        if keywords.get("casting") == "same_kind":
            del keywords["casting"]
        if method != "__call__" or keywords:
            raise NotTraceable
        if ufunc is np.matmul:
            return self.into(out, matmul(self, *inputs))
        # With another dtype than that of the inputs, these would be cast.
        if ufunc not in UFUNCS or dtype is not None:
            raise NotTraceable
        kinds = [_kind_of(x) for x in inputs]
        resolved = ufunc.resolve_dtypes((*kinds, None))
        operands = tuple([self.buffer(x, d) for x, d in zip(inputs, resolved)])
        if any([is_bfloat16(a.dtype) for a in operands]):  # only moved, and converted
            raise NotTraceable
        shape = np.broadcast_shapes(*[a.shape for a in operands])
        return self.into(out, self.entrywise(ufunc, operands, shape, resolved[-1]))

    def entrywise(self, function, operands, shape, dtype):
        """Append a map; for transposed arrays it is applied before the transposition.

        Convolutions return transposed arrays: so maps of them run in memory order.
        """
        axes = self.memory_order(operands, shape)
        if axes is None:
            return self.emit(Map(function, operands, self.node), shape, dtype)
        back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        operands = [self._transposed_back(a, back) for a in operands]
        inner = tuple([shape[i] for i in back])
        result = self.emit(Map(function, operands, self.node), inner, dtype)
        return ArrayTracer(result.transpose(axes).buffer, self, is_new=True)

    def memory_order(self, operands, shape):
        """Return the transposition of a map's result, None for C order.

        NumPy sorts the axes by the strides of the operands; where these differ, the axes
        stay in C order. Sums in another order would have other bits.
        """
        if not any(map(permutation, operands)):
            return None
        rank, order = len(shape), []
        for axis in reversed(range(rank)):  # from the inside out
            position = len(order)
            for i in reversed(range(position)):
                outer = [_is_outer(a, axis, order[i], rank) for a in operands]
                if True in outer:
                    break
                position = i if False in outer else position
            order.insert(position, axis)
        order = order[::-1]
        return tuple(map(order.index, range(rank))) if order != [*range(rank)] else None

    def _transposed_back(self, buffer, back):
        """Return a buffer transposed, after adding leading axes of size 1."""
        if not buffer.shape:
            return buffer
        lead = (1,) * (len(back) - len(buffer.shape))
        full = ArrayTracer(buffer, self).reshape(lead + buffer.shape)
        return full.transpose(back).buffer

    def may_reduce(self, ufunc, dtype, is_told):
        """Return whether NumPy reduces numbers of a dtype to a number of the same dtype.

        ``is_told``: whether a dtype is given; otherwise sums of short integers are
        widened.
        """
        return dtype.kind in "fc" or ufunc in (np.maximum, np.minimum)

    def reduce(self, ufunc, x, axis, dtype, out, keepdims):
        """Append a reduction that keeps the dtype; return the result."""
        known = ufunc in (np.add, np.maximum, np.minimum, np.multiply)
        if not known or is_bfloat16(x.dtype):
            raise NotTraceable
        if dtype is not None and np.dtype(dtype) != x.dtype:
            raise NotTraceable
        if not self.may_reduce(ufunc, x.dtype, dtype is not None):
            raise NotTraceable
        instruction = Reduce(ufunc, x.buffer, axis, keepdims, self.node)
        gone = instruction.axes
        shape = [1 if i in gone else n for i, n in enumerate(x.shape)]
        if not keepdims:
            shape = [n for i, n in enumerate(x.shape) if i not in gone]
        return self.into(out, self.emit(instruction, tuple(shape), x.dtype))


def _is_outer(buffer, axis, other, rank):
    """Return whether entries along an axis lie further apart than along another one.

    Axes count from the front of arrays of ``rank`` axes. None if there is one entry, or
    if a kernel chooses the order of its output.
    """
    lead = rank - len(buffer.shape)
    pair = axis - lead, other - lead
    if min(pair) < 0 or 1 in [buffer.shape[i] for i in pair]:
        return None
    maker = buffer.instruction
    if maker and maker.memory is Memory.ALLOCATED and not maker.keeps_c_order:
        return None
    order = permutation(buffer) or range(len(buffer.shape))
    if buffer.is_constant and not buffer.is_view:
        strides = buffer.source.strides
        if 0 in [strides[i] for i in pair]:  # one entry, broadcast
            return None
        order = [-abs(stride) for stride in strides]
    return order[pair[0]] < order[pair[1]]


class LoopBuilder(Builder):
    """A builder for targets that compile loops, with handlers for more functions."""

    functions, compiles_loops = LOOP_FUNCTIONS, True

    def memory_order(self, operands, shape):
        """Return the transposition of the first operand of this shape that has one."""
        permutations = [permutation(a) for a in operands if a.shape == shape]
        return next(filter(None, permutations), None) if len(shape) > 2 else None

    def check(self, function, x, keywords):
        """Append a check of the values of an array: ``function`` raises for invalid ones."""
        self.program.append(Check(function, (x.buffer,), self.node, keywords))

    def may_reduce(self, ufunc, dtype, is_told):
        wide = is_told or dtype.itemsize == 8 or dtype.kind in "fc"
        return dtype.kind != "b" and wide or ufunc in (np.maximum, np.minimum)

    def read(self, x, fill, axes):
        """Append a `BoundedRead`; return the result.

        ``axes`` maps axes to their `Index` and new size; others are read as they are.
        """
        x = self.buffer(x)
        index, shape = [Index()] * len(x.shape), list(x.shape)
        for axis, each in axes.items():
            index[axis], shape[axis] = each
        if not hasattr(fill, "dtype"):
            fill = np.asarray(fill, x.dtype)
        instruction = BoundedRead((x, self.buffer(fill)), index, shape, self.node)
        return self.emit(instruction, tuple(shape), x.dtype)

    def unshaped(self, x):
        """Return the array behind a reshaped view, for functions of all entries."""
        view = x.buffer.instruction
        while type(view) is View and view.name == "reshape":
            x, view = ArrayTracer(view.viewed, self), view.viewed.instruction
        return x


class _HostFree:
    """NumPy's functions as a separate module, so that a kernel takes its general path.

    The general path does not inspect values, which would require waiting for a GPU.
    """

    def __getattr__(self, name):
        if name.startswith("__"):  # asked for by Python, not by a kernel
            raise AttributeError(name)
        if not hasattr(np, name):  # CuPy's alone
            raise NotTraceable
        return getattr(np, name)


HOST_FREE = _HostFree()
register_array_module(ArrayTracer, HOST_FREE, None)


def _kind_of(x):
    """Return the type or dtype that determines NumPy's result dtype."""
    if type(x) in (int, float, complex):
        return type(x)
    if isinstance(x, (ArrayTracer, np.ndarray, np.generic)):
        return x.dtype
    if type(x) is bool:
        return np.dtype(bool)
    raise NotTraceable
