"""`ValueGraph`: the values of a group as scalar functions, on as few axes as possible.

A `ValueNode` is the result of an instruction on other values, of a load, or of a cast in
between. Views, copies and casts of operands are gone: the graph has only strided
accesses with bounds, and arithmetic.
"""

import itertools

import numpy as np

from ..program.instructions.array_instructions import BoundedRead, Copy, Map, Reduce
from .accesses import Layout, layout_of, row_major
from .statements import Access, Axis, Scalar, collapse_bounds


class ValueNode:
    """``function(*args)``, on ``axes``; a load has an ``access`` and no function.

    A reduction has ``summed``, the axes that it sums over; a "select" has the ``bounds``
    within which it is the first of its arguments. ``buffer`` is the buffer of the
    program, if there is one. ``level`` and ``cost`` are for the scheduler, see `Schedule`.
    """

    __slots__ = (
        *("buffer", "function", "args", "axes", "dtype", "access", "summed", "bounds"),
        *("level", "cost"),
    )

    def __init__(
        self,
        function,
        args,
        axes,
        dtype,
        buffer=None,
        access=None,
        summed=None,
        bounds=(),
    ):
        self.function, self.args, self.axes = function, args, frozenset(axes)
        self.dtype, self.buffer = dtype, buffer
        self.access, self.summed, self.bounds = access, summed, bounds
        self.level, self.cost = None, 0

    @property
    def inputs(self):
        """The arguments that are not constants."""
        return [a for a in self.args if type(a) is ValueNode]


class ValueGraph:
    """The values of a `Group`, by buffer, with its ``loads`` and ``stores``.

    ``stored`` are the values that others read, ``layouts`` the `Layout` of each stored
    value that is not in C order. ``values`` has loads first, and then operands before
    results. ``operands`` are the buffers that are read, in order;
    ``outer`` and ``passed`` are the axes, in an order that is the same in every
    process, after axes that every array traverses as one were collapsed.
    """

    def __init__(self, group, stored, layouts):
        self.group, self.stored, self.layouts = group, stored, layouts
        self.nodes, self.loads, self.operands = {}, {}, {}
        reduced = group.reduced or ()
        self.outer = [a for a in group.axes if a not in reduced]
        self.passed = [a for a in group.axes if a in reduced]
        self.build()
        self.values = [*self.loads.values(), *self.walk()]
        self.stores = {out: self.access_of(out) for out in stored}
        while pair := self.collapsible():
            self.collapse(*pair)

    @property
    def reduced(self):
        """The set of axes that passes run over."""
        return frozenset(self.passed)

    @property
    def accesses(self):
        """All accesses to memory: those that load, and those that store."""
        return [*[node.access for node in self.loads.values()], *self.stores.values()]

    def build(self):
        """Create the nodes of all values."""
        for each in self.group.members:
            (out,) = each.outputs
            self.nodes[out] = _VALUES.get(type(each), ValueGraph.value_of_map)(
                self, each
            )

    def value_of_reduce(self, reduce):
        """Return the value of a reduction: a copy along axes of size 1."""
        (operand,), (out,) = reduce.operands, reduce.outputs
        axes = self.group.inner[reduce]
        args = (self.argument(operand, operand.shape, axes),)
        summed = frozenset([axes[i] for i in reduce.axes]) - {None}
        own = set(axes) - {None} - summed
        name = reduce.ufunc.__name__ if summed else "copy"
        return ValueNode(name, args, own, out.dtype, out, summed=summed or None)

    def value_of_map(self, each):
        """Return the value of a map or copy, of operands in the dtypes of NumPy's loop."""
        (out,) = each.outputs
        axes = self.group.axes_of[out]
        name = "copy" if type(each) is Copy else each.scalar
        args = [self.argument(a, out.shape, axes) for a in each.operands]
        if isinstance(each, Map) and isinstance(each.function, np.ufunc):
            kinds = (*[a.dtype for a in each.operands], None)
            wanted = each.function.resolve_dtypes(kinds)[: len(args)]
            args = [self.convert(a, d) for a, d in zip(args, wanted)]
        return ValueNode(name, tuple(args), set(axes) - {None}, out.dtype, out)

    def value_of_read(self, each):
        """Return the value of a bounded read: a load, and another value out of bounds."""
        (out,), (operand, fill), bounds = each.outputs, each.operands, []
        axes = self.group.axes_of[out]
        own, pairs = set(axes) - {None}, {}
        base, offset, strides = layout_of(operand)
        for axis, stride, (indices, first, step) in zip(axes, strides, each.positions):
            offset += first * stride
            if not indices:
                args = (self.argument(fill, out.shape, axes),)
                return ValueNode("copy", args, own, out.dtype, out)
            if axis is not None and stride:
                pairs[axis] = step * stride
            if axis is not None and len(indices) < axis.extent:
                bounds.append((axis, indices))
        value, bounds = _uniform(operand), tuple(bounds)
        if value is None:
            access = Access(base, offset, tuple(pairs.items()), bounds)
            value = self.load(access, operand.dtype)
        else:
            value = Scalar(None, operand.dtype, value)
        if not bounds:
            return ValueNode("copy", (value,), own, out.dtype, out)
        args = value, self.argument(fill, out.shape, axes)
        return ValueNode("select", args, own, out.dtype, out, bounds=bounds)

    def convert(self, arg, dtype):
        if arg.dtype == dtype:
            return arg
        if type(arg) is Scalar:
            return Scalar(None, dtype, np.asarray(arg.value).astype(dtype)[()])
        return ValueNode("cast", (arg,), arg.axes, dtype)

    def argument(self, buffer, shape, axes):
        """Return the node or constant of an operand, for a result of this shape and axes."""
        number = _uniform(buffer)
        if number is not None:
            return Scalar(None, buffer.dtype, number)
        root = buffer
        while root not in self.nodes and root.is_view and root.instruction is not None:
            root = root.instruction.viewed
        if root in self.nodes:
            return self.nodes[root]
        base, offset, strides = layout_of(buffer)
        lead = len(shape) - len(buffer.shape)
        pairs = {}
        for i, (n, stride) in enumerate(zip(buffer.shape, strides)):
            axis = axes[lead + i]
            if n != 1 and axis is not None and stride:
                pairs[axis] = pairs.get(axis, 0) + stride
        return self.load(Access(base, offset, tuple(pairs.items())), buffer.dtype)

    def load(self, access, dtype):
        """Return the node of a load: one for all accesses to the same entries."""
        key = access._replace(strides=frozenset(access.strides))
        node = self.loads.get(key)
        if node is None:
            axes = {*dict(access.strides), *dict(access.bounds)}
            node = self.loads[key] = ValueNode(None, (), axes, dtype, access=access)
            self.operands[access.array] = None
        return node

    def access_of(self, out):
        """Return the access that stores a value."""
        axes = self.group.axes_of[out]
        layout = self.layouts.get(out) or Layout(out, 0, row_major(out.shape))
        pairs = [(a, s) for a, s in zip(axes, layout.strides) if a is not None]
        return Access(out, layout.offset, tuple(pairs))

    def collapsible(self):
        """Return two axes that every value has, and every array traverses, as one; or None."""
        pairs = [itertools.permutations(axes, 2) for axes in (self.outer, self.passed)]
        sets = [axes for n in self.values for axes in (n.axes, n.summed or ())]
        for a, b in itertools.chain(*pairs):
            same = all([(a in axes) == (b in axes) for axes in sets])
            if same and self.are_like_one(a, b):
                return a, b
        return None

    def are_like_one(self, a, b):
        """Return whether two axes are one in every array that is read or written."""
        accesses = self.accesses
        bounds = [n.bounds for n in self.values] + [x.bounds for x in accesses]
        limited = [(axis, r.step) for each in bounds for axis, r in each]
        if any([axis is b or axis is a and step > 1 for axis, step in limited]):
            return False
        return all([x.stride(a) == x.stride(b) * b.extent for x in accesses])

    def collapse(self, a, b):
        """Replace two axes by one, and return it."""
        both = Axis(f"{a.name}{b.name}", a.extent * b.extent)

        def swapped(axes):
            return frozenset([both if x is b else x for x in axes if x is not a])

        for node in self.values:
            if b in node.axes:
                node.axes = swapped(node.axes)
            if node.summed and b in node.summed:
                node.summed = swapped(node.summed)
            node.bounds = collapse_bounds(node.bounds, a, b, both)
            if node.access is not None:
                node.access = node.access.collapse(a, b, both)
        stores = self.stores.items()
        self.stores = {out: x.collapse(a, b, both) for out, x in stores}
        group = self.passed if a in self.passed else self.outer
        group[group.index(b)] = both
        group.remove(a)
        return both

    def join_groups(self, short, most):
        """Collapse a short reduced axis into the outer axis around it.

        This is for many short groups side by side, such as groups of channels, where
        every array traverses both axes as one. The sums over the groups then remain to
        be added up within each group: of at most ``short`` entries, where both axes
        have at most ``most``. Returns the axis and the size of the groups, or None and
        1.
        """
        pairs = itertools.product(self.outer, self.passed)
        for a, b in pairs if len(self.passed) > 1 else ():
            if b.extent <= short and a.extent * b.extent <= most:
                if self.are_groups(a, b):
                    self.passed.remove(b)
                    for node in self.values:
                        if node.summed and a not in node.summed:
                            node.summed -= {b}
                        if a in node.axes:
                            node.axes |= {b}
                    self.outer.append(b)
                    return self.collapse(a, b), b.extent
        return None, 1

    def are_groups(self, a, b):
        """Return whether `join_groups` may join two axes, with vectors along them."""
        if 1 not in [access.stride(b) for access in self.accesses]:
            return False
        totals = [n for n in self.values if n.summed not in (None, self.reduced)]
        spread = frozenset().union(*[n.axes for n in totals])
        return bool(set(self.outer) - {a} - spread) and self.are_like_one(a, b)

    def walk(self):
        """Return all nodes but loads, operands first."""
        order = {}
        for node in self.nodes.values():
            stack = [node]
            while stack:  # graphs are deep: no recursion
                args = [a for a in stack[-1].inputs if a.function is not None]
                pending = [a for a in args if a not in order]
                stack += pending[::-1]
                if not pending:
                    order[stack.pop()] = None
        return list(order)


_VALUES = {Reduce: ValueGraph.value_of_reduce, BoundedRead: ValueGraph.value_of_read}


def _uniform(buffer):
    """Return the value that fills a constant, or None."""
    if not buffer.is_constant or not buffer.size:
        return None
    array = buffer.base.source
    first = array.reshape(-1)[:1] if array.size == 1 else array[(0,) * array.ndim]
    if array.size == 1 or not any(array.strides):
        return np.asarray(first).reshape(())[()]
    if array.nbytes > 1 << 24:
        return None
    raw = np.ascontiguousarray(array).view(np.uint8).reshape(array.size, -1)
    return first if (raw == raw[0]).all() else None
