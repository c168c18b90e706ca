"""What kernels do to arrays, written down: from the nodes of a graph to NumPy calls.

A kernel is run on `Recorded` arrays, which have a shape and a dtype and write down each
NumPy call, so that the plan can give the calls their buffers, join them and skip the
Python between them. The kernel itself stays the one source of what is computed. A kernel
that asks for more (the values, the layout, a function not known here) is called as it is.
"""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tapewright.core.devices import check_fits
from tapewright.core.errors import VerificationError

from ..tracing.graph import Effect, Read, Store, is_value
from .scheduling import safely_ordered

__all__ = ["Array", "Call", "NotRecorded", "Program", "form_of", "lower"]

SMALL = 64  # bytes


class Array:
    """An array of the program: made by a call, or given (``origin`` says how).

    ``root``: the array whose memory it is a view of (itself, if it has its own).
    """

    __slots__ = ("shape", "dtype", "call", "root", "origin", "payload", "name", "extra")

    def __init__(self, shape, dtype, call=None, root=None, origin=None, payload=None):
        self.shape, self.dtype, self.call = shape, dtype, call
        self.root = self if root is None else root
        # "input", "variable", "constant", "scratch" (a call's own, which holds nothing
        # before and after it), or None: made by a call
        self.origin = origin
        self.payload = payload
        self.name = self.extra = None

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def nbytes(self):
        return self.size * self.dtype.itemsize

    def __repr__(self):
        return f"<Array {self.name} {self.dtype.name}{list(self.shape)} {self.origin}>"


class Call:
    """``outputs = function(*args, **kwargs)``; ``node`` is the graph's node it is from.

    ``form`` says how the call treats memory:

    - "ufunc": computes entry by entry, into ``out=`` or a new array;
    - "out": writes into ``out=`` or a new array, which none of its arguments may share
      except the argument of number ``function.overwrites``;
    - "view": the output shares the memory of its first argument;
    - "block": several entrywise calls, row block by row block (`blocks`);
    - "kernel": the outputs are new, or views of arguments (`may_alias`). A node with a
      number ``overwrites`` changes that argument in place and hands it on;
    - "read", "store": the array of a variable is taken, or replaced by another;
    - "effect": changes the variables ``node.writes``; the outputs are new.
    """

    __slots__ = ("form", "function", "args", "kwargs", "outputs", "node", "extra")

    def __init__(self, form, function, args, kwargs, node):
        self.form, self.function, self.args, self.kwargs = form, function, args, kwargs
        self.node, self.outputs, self.extra = node, (), None

    def arrays(self):
        """The arguments that are arrays: all that the call reads."""
        return [a for a in self.args if type(a) is Array]

    @property
    def donated(self):
        """The argument whose memory the call changes and its output takes over, or None."""
        if self.form == "kernel" and self.node.overwrites is not None:
            return self.args[self.node.overwrites]
        return None

    @property
    def may_alias(self):
        """Return whether outputs may share the memory of arguments, unknown to the program."""
        return self.form == "kernel" and not getattr(self.node.op, "new_memory", False)

    @property
    def name(self):
        return getattr(self.function, "__name__", None) or self.node.name

    def __repr__(self):
        return f"<Call {self.name} {self.form}>"


class Program:
    """Calls in order; ``inputs`` and ``outputs`` are arrays.

    ``borrows``: the memory of the inputs is lent for the time of a replay (by the plan of
    a graph around this one), so that no variable may keep it. ``owned``: the numbers of
    inputs that the program may write to.
    """

    def __init__(self, graph, borrows=False, owned=()):
        self.graph, self.calls = graph, []
        self.inputs, self.outputs = [], []
        self.borrows, self.owned = borrows, tuple(owned)
        self.constants = {}
        self.kept = ([], [])  # variables that are put back if a replay fails

    def constant(self, value):
        """The array that stands for a constant, one for each; small ones by value."""
        key = id(value)  # it is kept, so that no other gets its id
        if type(value) is np.ndarray and value.nbytes <= SMALL:
            key = value.dtype, value.shape, value.tobytes()
        found = self.constants.get(key)
        if found is None:
            shape = tuple(value.shape)
            found = Array(shape, value.dtype, origin="constant", payload=value)
            self.constants[key] = found
        return found

    def add(self, form, function, args, kwargs, specs, node, roots=None):
        call = Call(form, function, args, kwargs, node)
        roots = roots or [None] * len(specs)
        call.outputs = tuple(
            [Array(s, d, call, root) for (s, d), root in zip(specs, roots)]
        )
        self.calls.append(call)
        return call.outputs


class NotRecorded(Exception):
    """A kernel does something that is not written down here."""


def _refuse(recorded, *args, **kwargs):
    """Refuse what needs values, and note it: NumPy makes other errors of the refusal."""
    recorded.writer.refused = True
    raise NotRecorded


# ------------------------------------------------------------------ recorded arrays

_UFUNCS = {
    getattr(np, name)
    for name in """add subtract multiply divide true_divide floor_divide negative positive
    power float_power remainder fmod absolute fabs rint sign heaviside conjugate exp exp2
    log log2 log10 expm1 log1p sqrt square cbrt reciprocal sin cos tan arcsin arccos arctan
    arctan2 hypot sinh cosh tanh arcsinh arccosh arctanh greater greater_equal less
    less_equal not_equal equal logical_and logical_or logical_xor logical_not maximum
    minimum fmax fmin isfinite isinf isnan signbit copysign nextafter floor ceil trunc
    logaddexp bitwise_and bitwise_or bitwise_xor invert left_shift right_shift""".split()
}


def turn(array):
    """The axes, if an array is a transposed view of another; else None."""
    call = array.call
    if call is None or call.form != "view":
        return None
    return call.args[1] if call.function is np.ndarray.transpose else None


class Recorded:
    """An array as a kernel sees it while its calls are written down."""

    __slots__ = ("array", "writer", "fresh", "seen")

    def __init__(self, array, writer, fresh=False):
        self.array, self.writer = array, writer
        self.fresh = fresh  # made by this kernel, so that it may write into it
        self.seen = False  # through a view, which then would change with it

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    ndim = property(lambda self: len(self.array.shape))
    size = property(lambda self: self.array.size)
    T = property(lambda self: self.transpose())

    @property
    def real(self):
        return self if self.dtype.kind != "c" else _refuse(self)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return self.writer.ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        handler = _FUNCTIONS.get(function)
        if handler is None:
            raise NotRecorded
        return handler(self.writer, *args, **kwargs)

    def made_view(self, method, shape, *args):
        """A view of it, made by a method of ndarray."""
        self.seen = True
        function = getattr(np.ndarray, method)
        return self.writer.view(function, self, shape, args)

    def reshape(self, *shape):
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = tuple(shape[0])
        shape = tuple([int(n) for n in shape])
        if shape.count(-1) == 1:
            rest = -math.prod(shape)
            if rest == 0 or self.size % rest:
                raise NotRecorded
            shape = tuple([self.size // rest if n == -1 else n for n in shape])
        if any([n < 0 for n in shape]) or math.prod(shape) != self.size:
            raise NotRecorded
        if shape == self.shape:
            return self
        return self.made_view("reshape", shape, shape)

    def transpose(self, *axes):
        if len(axes) == 1 and not isinstance(axes[0], int):
            axes = axes[0]
        axes = tuple(axes) if axes else None
        if axes is None:
            axes = tuple(range(self.ndim))[::-1]
        axes = normalize_axis_tuple(axes, self.ndim)
        before = turn(self.array)
        if before is not None:  # both at once
            self.seen = True
            axes = tuple([before[a] for a in axes])
            inner = Recorded(self.array.call.args[0], self.writer)
            inner.seen = True
            return inner.transpose(axes)
        if axes == tuple(range(self.ndim)):
            return self
        return self.made_view("transpose", tuple([self.shape[a] for a in axes]), axes)

    def swapaxes(self, a, b):
        axes = list(range(self.ndim))
        axes[a], axes[b] = axes[b], axes[a]
        return self.transpose(axes)

    @property
    def flags(self):
        """Matrices count as contiguous: a kernel asks in order to choose its way only."""
        if self.ndim > 2 or turn(self.array) is not None:
            _refuse(self)
        return _CONTIGUOUS

    def copy(self, order="C"):
        if order != "C":
            _refuse(self)
        return self.writer.made(
            "out", copy_into, (self.array,), {}, self.shape, self.dtype
        )

    def sum(self, axis=None, dtype=None, out=None, keepdims=False, **initial):
        if initial:
            _refuse(self)
        return self.writer.reduce(np.add, self, axis, dtype, out, keepdims)

    def max(self, axis=None, out=None, keepdims=False, **initial):
        if initial:
            _refuse(self)
        return self.writer.reduce(np.maximum, self, axis, None, out, keepdims)

    def min(self, axis=None, out=None, keepdims=False, **initial):
        if initial:
            _refuse(self)
        return self.writer.reduce(np.minimum, self, axis, None, out, keepdims)

    def astype(self, dtype, copy=True, **order):
        if order:
            _refuse(self)
        dtype = np.dtype(dtype)
        if dtype == self.dtype and not copy:
            return self
        return self.writer.cast(self, dtype)

    def __getitem__(self, index):
        index = index if type(index) is tuple else (index,)
        plain = [type(i) in (int, slice) or i is None or i is Ellipsis for i in index]
        if not all(plain):
            raise NotRecorded
        probe = np.broadcast_to(np.zeros((), self.dtype), self.shape)[index]
        if not isinstance(probe, np.ndarray):  # one entry: NumPy makes a copy
            raise NotRecorded
        if probe.shape == self.shape and all(i == slice(None) for i in index):
            return self
        axes = turn(self.array)
        if axes is not None and len(probe.shape) == self.ndim and None not in index:
            at = index.index(Ellipsis) if Ellipsis in index else len(index)
            full = (slice(None),) * (self.ndim - len(index) + (Ellipsis in index))
            index = index[:at] + full + index[at + 1 :]
            back = sorted(range(self.ndim), key=axes.__getitem__)
            self.seen = True
            inner = Recorded(self.array.call.args[0], self.writer)
            return inner[tuple([index[i] for i in back])].transpose(axes)
        return self.made_view("__getitem__", probe.shape, *index)

    __array__ = __bool__ = __float__ = __int__ = __index__ = __iter__ = _refuse
    __len__ = __setitem__ = __complex__ = __contains__ = _refuse

    def __getattr__(self, name):
        if name.startswith("__"):  # a protocol of Python's, which it need not have
            raise AttributeError(name)
        _refuse(self)


_CONTIGUOUS = SimpleNamespace(c_contiguous=True)


def _binary(ufunc, swapped=False, in_place=False):
    def operator(self, other):
        if swapped:
            return self.writer.ufunc(ufunc, "__call__", (other, self), {})
        out = {"out": (self,)} if in_place else {}
        return self.writer.ufunc(ufunc, "__call__", (self, other), out)

    return operator


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power,
    "matmul": np.matmul, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift,
}.items():  # fmt: skip
    setattr(Recorded, f"__{_name}__", _binary(_ufunc))
    setattr(Recorded, f"__r{_name}__", _binary(_ufunc, swapped=True))
    setattr(Recorded, f"__i{_name}__", _binary(_ufunc, in_place=True))
for _name, _ufunc in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}.items():  # fmt: skip
    setattr(Recorded, f"__{_name}__", _binary(_ufunc))
Recorded.__neg__ = lambda self: self.writer.ufunc(np.negative, "__call__", (self,), {})
Recorded.__invert__ = lambda self: self.writer.ufunc(np.invert, "__call__", (self,), {})
Recorded.__abs__ = lambda self: self.writer.ufunc(np.absolute, "__call__", (self,), {})
Recorded.__hash__ = None


class Writer:
    """Writes the calls of one kernel into a program."""

    def __init__(self, program, node):
        self.program, self.node = program, node
        self.refused = False  # whether values were asked for

    def operand(self, x, dtype=None):
        """An argument as an `Array`; numbers become arrays of rank 0 of ``dtype``."""
        if type(x) is Recorded:
            return x.array
        if isinstance(x, (np.ndarray, np.generic)):
            return self.program.constant(np.asarray(x))
        if type(x) in (int, float, complex, bool):
            return self.program.constant(np.asarray(x, dtype))
        raise NotRecorded

    def made(self, form, function, args, kwargs, shape, dtype):
        (array,) = self.program.add(
            form, function, args, kwargs, [(shape, dtype)], self.node
        )
        return Recorded(array, self, fresh=True)

    def scratch(self, shape, dtype):
        """Memory for one call, to be one of its arguments."""
        return Array(shape, np.dtype(dtype), origin="scratch")

    def view(self, function, x, shape, args):
        (array,) = self.program.add(
            "view", function, (x.array, *args), {}, [(shape, x.dtype)], self.node,
            roots=[x.array.root],
        )  # fmt: skip
        view = Recorded(array, self)
        view.seen = True
        return view

    def into(self, out, made):
        """What is written into ``out``: from here on it stands for what was made."""
        if out is None:
            return made
        out = out[0] if type(out) is tuple else out
        if type(out) is not Recorded or not out.fresh or out.seen:
            raise NotRecorded
        if (out.shape, out.dtype) != (made.shape, made.dtype):
            raise NotRecorded
        out.array = made.array
        return out

    def ufunc(self, ufunc, method, inputs, kwargs):
        kwargs = dict(kwargs)
        out, dtype = kwargs.pop("out", None), kwargs.pop("dtype", None)
        if method == "reduce" and type(inputs[0]) is Recorded:
            made = self.reduce(
                ufunc, inputs[0], kwargs.pop("axis", 0), dtype,
                None, kwargs.pop("keepdims", False),
            )  # fmt: skip
            if kwargs:
                raise NotRecorded
            return self.into(out, made)
        if kwargs.get("casting") == "same_kind":
            del kwargs["casting"]
        if method != "__call__" or kwargs:
            raise NotRecorded
        if ufunc is np.matmul:
            return self.into(out, matmul(self, *inputs))
        if ufunc not in _UFUNCS:
            raise NotRecorded
        kinds = []
        for x in inputs:
            if type(x) in (int, float, complex):
                kinds.append(type(x))
            elif isinstance(x, (Recorded, np.ndarray, np.generic)):
                kinds.append(x.dtype)
            elif type(x) is bool:
                kinds.append(np.dtype(bool))
            else:
                raise NotRecorded
        if dtype is not None:  # another than that of the inputs: they would be cast
            raise NotRecorded
        found = ufunc.resolve_dtypes((*kinds, None))
        args = tuple([self.operand(x, d) for x, d in zip(inputs, found)])
        shape = np.broadcast_shapes(*[a.shape for a in args])
        return self.into(out, self.entrywise(ufunc, args, shape, found[-1]))

    def entrywise(self, function, args, shape, dtype):
        """An entry-by-entry call; of transposed arrays it is made before they are.

        Convolutions give transposed arrays: so all work on them stays in the order of
        memory.
        """
        turns = [turn(a) for a in args if a.shape == shape]
        axes = next(filter(None, turns), None) if len(shape) > 2 else None
        if axes is None:
            return self.made("ufunc", function, args, {}, shape, dtype)
        back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        args = tuple([self.turned_back(a, back) for a in args])
        inner = tuple([shape[i] for i in back])
        made = self.made("ufunc", function, args, {}, inner, dtype)
        return Recorded(made.transpose(axes).array, self, fresh=True)

    def turned_back(self, array, back):
        """An array transposed; where it has fewer axes, after it got them."""
        if not array.shape:
            return array
        lead = (1,) * (len(back) - len(array.shape))
        return Recorded(array, self).reshape(lead + array.shape).transpose(back).array

    def reduce(self, ufunc, x, axis, dtype, out, keepdims):
        if ufunc not in (np.add, np.maximum, np.minimum, np.multiply):
            raise NotRecorded
        if dtype is not None and np.dtype(dtype) != x.dtype:
            raise NotRecorded
        if x.dtype.kind not in "fc" and ufunc in (np.add, np.multiply):
            raise NotRecorded
        axes = range(x.ndim) if axis is None else normalize_axis_tuple(axis, x.ndim)
        shape = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
        if not keepdims:
            shape = tuple([n for i, n in enumerate(x.shape) if i not in axes])
        kwargs = {"axis": axis, "keepdims": keepdims} if keepdims else {"axis": axis}
        made = self.made("out", ufunc.reduce, (x.array,), kwargs, shape, x.dtype)
        return self.into(out, made)

    def cast(self, x, dtype):
        if x.dtype.kind == "c" or dtype.kind not in "biufc":
            raise NotRecorded
        return self.made("out", cast_into, (x.array,), {"dtype": dtype}, x.shape, dtype)


def cast_into(x, out=None, dtype=None):
    """``x`` in another dtype."""
    if out is None:
        return x.astype(dtype)
    np.copyto(out, x, casting="unsafe")
    return out


def copy_into(x, out=None):
    """``x`` in C order."""
    if out is None:
        return x.copy(order="C")
    np.copyto(out, x)
    return out


def dot(writer, a, b, out=None):
    ranks = len(a.shape), len(b.shape)
    if ranks not in ((2, 2), (1, 2), (2, 1)) or a.shape[-1] != b.shape[0]:
        raise NotRecorded
    if 1 in (a.size, b.size):  # `np.dot` scales by a lone entry, and 0 drops NaN
        raise NotRecorded
    shape = a.shape[:-1] + b.shape[1:]
    return writer.into(out, product(writer, np.dot, a, b, shape))


def matmul(writer, a, b):
    if len(a.shape) < 3 and len(b.shape) < 3:
        return dot(writer, a, b)
    if len(a.shape) < 2 or len(b.shape) < 2 or a.shape[-1] != b.shape[-2]:
        raise NotRecorded
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return product(writer, np.matmul, a, b, (*lead, a.shape[-2], b.shape[-1]))


def product(writer, function, a, b, shape):
    if a.dtype != b.dtype or a.dtype.kind not in "fc":
        raise NotRecorded
    args = (writer.operand(a), writer.operand(b))
    return writer.made("out", function, args, {}, shape, a.dtype)


def _like(make):
    def handler(writer, x, dtype=None, shape=None, **kwargs):
        if kwargs:
            raise NotRecorded
        shape = x.shape if shape is None else shape
        return make(shape, x.dtype if dtype is None else dtype)

    return handler


def _reduction(ufunc):
    def handler(writer, x, axis=None, dtype=None, out=None, keepdims=False, **initial):
        if type(x) is not Recorded or initial:
            raise NotRecorded
        return writer.reduce(ufunc, x, axis, dtype, out, keepdims)

    return handler


def _broadcast_to(writer, x, shape, subok=False):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if type(x) is not Recorded:
        raise NotRecorded
    x.seen = True
    return writer.view(np.broadcast_to, x, shape, (shape,))


def _expand_dims(writer, x, axis):
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = normalize_axis_tuple(axes, x.ndim + len(axes))
    rest = iter(x.shape)
    shape = [1 if i in axes else next(rest) for i in range(x.ndim + len(axes))]
    return x.reshape(shape)


def _squeeze(writer, x, axis=None):
    axes = [i for i, n in enumerate(x.shape) if n == 1]
    if axis is not None:
        axes = normalize_axis_tuple(axis, x.ndim)
    return x.reshape([n for i, n in enumerate(x.shape) if i not in axes])


_FUNCTIONS = {
    np.dot: dot,
    np.sum: _reduction(np.add),
    np.max: _reduction(np.maximum),
    np.min: _reduction(np.minimum),
    np.zeros_like: _like(np.zeros),
    np.ones_like: _like(np.ones),
    np.broadcast_to: _broadcast_to,
    np.expand_dims: _expand_dims,
    np.squeeze: _squeeze,
    np.reshape: lambda writer, x, shape: x.reshape(shape),
    np.transpose: lambda writer, x, axes=None: x.transpose(*(axes or ())),
    np.swapaxes: lambda writer, x, a, b: x.swapaxes(a, b),
    np.shape: lambda writer, x: x.shape,
    np.ndim: lambda writer, x: x.ndim,
}


# ------------------------------------------------------------------------- lowering


def lower(graph, array_type=np.ndarray, borrows=False, owned=()):
    """The `Program` of a graph; ``borrows``, ``owned``: see there."""
    program = Program(graph, borrows, owned)
    found = {}
    for value in (*graph.inputs, *graph.captures):
        found[value] = Array(value.shape, value.dtype, origin="input", payload=value)
        program.inputs.append(found[value])

    def array_of(x):
        return found[x] if is_value(x) else program.constant(np.asarray(x.array))

    nodes, program.kept = safely_ordered(graph)
    for node in nodes:
        for value in node.outputs:
            check_fits(node.name, value.shape, value.dtype)
        args = tuple([array_of(x) for x in node.inputs])
        if type(node) is Read:
            (value,) = node.outputs
            call = Call("read", None, (), {}, node)
            array = Array(value.shape, value.dtype, call, origin="variable",
                          payload=node.variable)  # fmt: skip
            call.outputs = (array,)
            program.calls.append(call)
            found[value] = array
        elif type(node) is Store:
            if borrows and _may_be_an_input(args[0]):
                args = (_copied(program, node, args[0]),)
            program.calls.append(Call("store", None, args, {}, node))
        elif node.is_alias:
            found.update(zip(node.outputs, args))
        elif type(node) is Effect:
            specs = [(v.shape, v.dtype) for v in node.outputs]
            outputs = program.add("effect", node.call, args, {}, specs, node)
            found.update(zip(node.outputs, outputs))
        elif node.op is None:
            specs = [(v.shape, v.dtype) for v in node.outputs]
            form = "effect" if node.is_effect else "kernel"
            outputs = program.add(form, node.kernel(), args, {}, specs, node)
            found.update(zip(node.outputs, outputs))
        else:
            found.update(zip(node.outputs, _lowered(program, node, args, array_type)))
    program.outputs = [array_of(x) for x in graph.outputs]
    return program


def _may_be_an_input(array):
    """Return whether the memory of an array may be that of an input."""
    root = array.root
    if root.call is None or not root.call.may_alias:
        return root.origin == "input"
    return any([_may_be_an_input(a) for a in root.call.arrays()])


def _copied(program, node, array):
    """A copy of an array, as an array of the program."""
    spec = array.shape, array.dtype
    (copy,) = program.add("out", copy_into, (array,), {}, [spec], node)
    return copy


_FORMS = {}  # name of an op -> how it is written instead of running its kernel


def form_of(name):
    """Decorator: ``form(writer, *inputs, **attributes)`` writes the op of that name."""

    def attach(form):
        _FORMS[name] = form
        return form

    return attach


def _lowered(program, node, args, array_type):
    """The arrays that a node gives."""
    op = node.op
    if array_type is np.ndarray:
        kernel = op.device_kernels.get("numpy", op.kernel)
        form = _FORMS.get(op.name)
        writer = Writer(program, node)
        found = form and _recorded(writer, args, partial(form, writer))
        found = found or _recorded(Writer(program, node), args, partial(kernel, np))
        if found:
            return found
    specs = [(v.shape, v.dtype) for v in node.outputs]
    return program.add(
        "kernel", op.kernels.plain(array_type), args, dict(node.attributes), specs, node
    )


def _recorded(writer, args, function):
    """What a form or kernel gives for these arrays, its calls written down; else None."""
    program, node = writer.program, writer.node
    count = len(program.calls)
    try:
        inputs = [Recorded(a, writer) for a in args]
        result = function(*inputs, **node.attributes)
        results = result if type(result) is tuple else (result,)
        arrays = [writer.operand(r) for r in results]
    except Exception as error:
        if not (isinstance(error, NotRecorded) or writer.refused):
            raise node.op.explain_kernel(error, args) from None
        del program.calls[count:]
        return None
    made, wanted = [[(x.shape, x.dtype) for x in xs] for xs in (arrays, node.outputs)]
    if made != wanted:
        raise VerificationError(
            f"the kernel of {node.name} gives {made}, its rule for shapes {wanted}"
        )
    return arrays
