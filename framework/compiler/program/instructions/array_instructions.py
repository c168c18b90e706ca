"""Instructions that are defined entry by entry: maps, sums, products, views."""

from typing import NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tapewright.core.dtypes import is_narrow
from tapewright.core.hardware.devices import array_module

from ..index_maps import product_maps
from .instruction import Instruction, Memory


def identity(function):
    """Return a key for a function: ``np.add.reduce`` is a new object at each access."""
    owner = getattr(function, "__self__", None)
    return (
        (id(owner), function.__name__) if isinstance(owner, np.ufunc) else id(function)
    )


# ------------------------------------------------------------- computed by array calls


class _Computed(Instruction):
    """``function(*operands, **keywords, out=output)``, of NumPy or with the same signature."""

    __slots__ = ("function", "keywords")
    memory, is_pure, is_free = Memory.ASSIGNED, True, False
    has_effect = may_alias = False

    def __init__(self, function, operands, node, keywords=None):
        super().__init__(operands, node)
        self.function, self.keywords = function, keywords or {}

    @property
    def name(self):
        return self.function.__name__

    def merge_key(self, operands):
        read = [id(a) for a in operands if not a.is_scratch]
        return (identity(self.function), *read, repr(sorted(self.keywords.items())))


class Map(_Computed):
    """Each entry of the output is ``scalar`` of one entry of each operand, broadcast.

    ``scalar`` names the scalar function: by NumPy's name, or "cast" (to the dtype of
    the output), "positive_bits" or "kept_bits" (see `scalar_functions`).
    """

    __slots__ = ()
    broadcasts = True

    @property
    def scalar(self):
        return self.function.__name__

    @property
    def scalar_dtypes(self):
        """The dtypes to which the function converts its operands."""
        dtypes = [a.dtype for a in self.operands]
        if isinstance(self.function, np.ufunc):
            dtypes = self.function.resolve_dtypes((*dtypes, None))[:-1]
        return dtypes

    @property
    def in_place_operands(self):
        return self.operands

    @property
    def copies_overlaps(self):
        """NumPy's own ufuncs copy an operand that overlaps the output before they write."""
        return isinstance(self.function, np.ufunc)

    def merge_key(self, operands):
        """Keep widening casts apart, so that values are stored in 16 bits between ops."""
        key = super().merge_key(operands)
        widens = self.scalar == "cast" and is_narrow(self.operands[0].dtype)
        return (*key, id(self.node)) if widens else key

    def verify(self, place_of, fail):
        if isinstance(self.function, np.ufunc):
            (out,), args = self.outputs, self.operands
            shape = np.broadcast_shapes(*[a.shape for a in args])
            dtypes = (*[a.dtype for a in args], None)
            dtype = self.function.resolve_dtypes(dtypes)[-1]
            if (shape, dtype) != (out.shape, out.dtype):
                fail(
                    f"NumPy returns {dtype}{list(shape)}, but the program declares {out}"
                )


class FusedMap(Instruction):
    """Several maps on arrays with the same rows, in blocks of rows: see `map_fusion`.

    ``steps`` are maps and reductions, ``rows`` the number of rows in a block.
    ``scratch_specs`` are shapes and dtypes of memory for blocks of intermediate
    results; ``scratch_of`` has the number of the memory of each such buffer.
    """

    __slots__ = ("steps", "rows", "scratch_specs", "scratch_of")
    memory, is_pure, is_free = Memory.ASSIGNED, True, False
    has_effect = may_alias = False

    def __init__(self, steps, operands, outputs, rows, scratch_specs, scratch_of):
        super().__init__(operands, steps[-1].node)
        self.steps, self.rows, self.outputs = steps, rows, tuple(outputs)
        self.scratch_specs, self.scratch_of = scratch_specs, scratch_of
        for out in outputs:
            out.instruction = self

    @property
    def name(self):
        names = [step.name for step in self.steps]
        return f"block_of_{'_'.join(names[:3] + ['...'] * (len(names) > 3))}"

    def substitute(self, stands_for):
        super().substitute(stands_for)
        for step in self.steps:
            step.substitute(stands_for)

    def is_cut(self, buffer):
        """Return whether a buffer is split into rows; others are read whole."""
        shape = self.outputs[0].shape
        return len(buffer.shape) == len(shape) and buffer.shape[0] == shape[0]

    @property
    def in_place_operands(self):
        return self.operands

    def is_done_with(self, operand, out):
        """Return whether all rows of an operand are read before ``out`` overwrites them."""
        reads = [i for i, step in enumerate(self.steps) if operand in step.operands]
        made = [i for i, step in enumerate(self.steps) if out in step.outputs]
        return reads[-1] <= made[0]

    def verify(self, location_of, fail):
        """Check that each step reads the rows that it names.

        An operand that an output overwrites in place must be split into the same rows,
        and must not be read after that.
        """
        locations = {a: location_of(a) for a in (*self.operands, *self.outputs)}
        for out in self.outputs:
            for array in self.operands:
                a, b = locations[array], locations[out]
                if a[0] == b[0] and a[1] < b[2] and b[1] < a[2]:
                    if a != b or array.shape != out.shape:
                        fail(f"{out} overwrites parts of {array}")
        holds = {}  # location -> the buffers that have their values there
        for array in self.operands:
            holds.setdefault(locations[array], []).append(array)
        for step in self.steps:
            step.verify(location_of, fail)
            for array in step.operands:
                location = locations.get(array, self.scratch_of.get(array))
                if array not in holds.get(location, ()):
                    fail(
                        f"{array} is read from {location}, which already holds other rows"
                    )
            (out,) = step.outputs
            holds[locations.get(out, self.scratch_of.get(out))] = [out]


class Reduce(_Computed):
    """``ufunc.reduce`` over ``axis``: an integer, several, or None for all axes."""

    __slots__ = ("ufunc", "axis", "keepdims")

    def __init__(self, ufunc, operand, axis, keepdims, node):
        keywords = {"axis": axis, "keepdims": keepdims} if keepdims else {"axis": axis}
        if operand.dtype.kind in "iu" and ufunc in (np.add, np.multiply):
            keywords["dtype"] = operand.dtype  # NumPy would take a wider one
        super().__init__(ufunc.reduce, (operand,), node, keywords)
        self.ufunc, self.axis, self.keepdims = ufunc, axis, keepdims

    @property
    def axes(self):
        """The reduced axes, as a tuple."""
        rank = len(self.operands[0].shape)
        every = tuple(range(rank))
        return every if self.axis is None else normalize_axis_tuple(self.axis, rank)


class Contract(_Computed):
    """Sums of products of entries of the first two operands, given by ``maps``.

    A third operand is scratch memory of the function.
    """

    __slots__ = ("_maps",)

    def __init__(self, function, operands, node, keywords=None, maps=None):
        super().__init__(function, operands, node, keywords)
        self._maps = maps

    @property
    def maps(self):
        """The `IndexMaps`: entries that are multiplied, and entries they are added to."""
        if self._maps is None:
            return product_maps(self.operands[0].shape, self.operands[1].shape)
        return self._maps()


class Copy(_Computed):
    """The operands in C order, concatenated along ``axis`` if there are several."""

    __slots__ = ("axis",)

    def __init__(self, function, operands, node, axis=None):
        keywords = {} if axis is None else {"axis": axis}
        super().__init__(function, operands, node, keywords)
        self.axis = axis


class Index(NamedTuple):
    """``(factor * i + offset) / divisor`` for index ``i``, if it is an integer.

    The factor or the divisor is 1.
    """

    factor: int = 1
    offset: int = 0
    divisor: int = 1

    def of(self, other):
        """Return the index at the index ``other``; None if it is no `Index`."""
        factor, divisor = self.factor * other.factor, self.divisor * other.divisor
        offset = self.factor * other.offset + self.offset * other.divisor
        return Index(factor, offset, divisor) if 1 in (factor, divisor) else None

    def positions(self, size, extent):
        """Return the indices below ``extent`` that lead to one of ``size`` entries.

        These are a range; the first of its entries and the step between them follow.
        """
        a, b, d = self
        if d == 1:
            low = max(0, -(b // a))
            high = min(extent, (size - 1 - b) // a + 1)
            return range(low, max(low, high)), a * low + b, a
        low = max(-b, -b % d)
        high = min(extent, d * (size - 1) - b + 1)
        return range(low, max(low, high), d), (low + b) // d, 1


def read_bounded(x, fill, index, shape, out=None):
    """Return an array of a shape: entries of ``x``, and ``fill`` where there are none."""
    out = array_module(type(x)).empty(shape, x.dtype) if out is None else out
    out[...] = fill
    positions = [
        Index(*each).positions(n, extent)
        for each, n, extent in zip(index, x.shape, out.shape, strict=True)
    ]
    slices = [slice(r.start, r.stop, r.step) for r, _, _ in positions]
    entries = [slice(at, at + len(r) * step, step) for r, at, step in positions]
    out[tuple(slices)] = x[tuple(entries)]
    return out


class BoundedRead(_Computed):
    """Entry ``[i, j, ...]`` of the output is entry ``[index[0](i), index[1](j), ...]``.

    It is an entry of the first operand; where there is none, it is that of the second,
    which is broadcast. ``index``: an `Index` for each axis of the ``shape``.
    """

    __slots__ = ()
    scalar = "select"

    def __init__(self, operands, index, shape, node):
        keywords = {"index": tuple(map(tuple, index)), "shape": tuple(shape)}
        super().__init__(read_bounded, operands, node, keywords)

    def merge_key(self, operands):
        """Keep reads of ops apart, which need not be in one group."""
        return (*super().merge_key(operands), id(self.node))

    @property
    def positions(self):
        """For each axis the valid indices, and the entries to which they lead."""
        (x, _), (out,) = self.operands, self.outputs
        axes = zip(self.keywords["index"], x.shape, out.shape, strict=True)
        return [Index(*each).positions(n, extent) for each, n, extent in axes]


class Routine(_Computed):
    """A function of whole arrays, such as `clip_by_norm`, opaque to fusion.

    ``in_place`` is the number of the operand that the output may overwrite, or None.
    """

    __slots__ = ("in_place",)

    def __init__(self, function, operands, node, keywords=None, in_place=None):
        super().__init__(function, operands, node, keywords)
        self.in_place = in_place

    @property
    def in_place_operands(self):
        return () if self.in_place is None else (self.operands[self.in_place],)


# ------------------------------------------------------------------------------- views


class View(Instruction):
    """A view of the memory of an operand: ``function(operand, *parameters)``.

    ``function`` is the ``reshape``, ``transpose`` or ``__getitem__`` of arrays, or
    ``np.broadcast_to``.
    """

    __slots__ = ("function", "parameters", "_layouts")
    memory, is_pure, is_free = Memory.SHARED, True, True
    has_effect = may_alias = False

    def __init__(self, function, operand, parameters, node):
        super().__init__((operand,), node)
        self.function, self.parameters = function, tuple(parameters)
        self._layouts = {}  # shape, offset and strides of the operand -> layout

    @property
    def name(self):
        return self.function.__name__

    @property
    def viewed(self):
        return self.operands[0]

    def merge_key(self, operands):
        return self.function, id(operands[0]), repr(self.parameters)

    def apply(self, array):
        """Return the view of an array."""
        if self.function is np.ndarray.__getitem__:
            return array[self.parameters]
        if self.function is np.broadcast_to:
            return array_module(type(array)).broadcast_to(array, *self.parameters)
        return getattr(array, self.name)(*self.parameters)

    def layout(self, offset, strides):
        """Return the view's offset and strides in bytes, given the operand's.

        None where a reshape would have to copy.
        """
        key = self.viewed.shape, offset, strides
        if key not in self._layouts:
            self._layouts[key] = self._layout_in(offset, strides)
        return self._layouts[key]

    def _layout_in(self, offset, strides):
        """Return the layout of the view of an array with this offset and strides."""
        shape, dtype = self.viewed.shape, self.viewed.dtype
        reach = [s * (n - 1) for s, n in zip(strides, shape, strict=True) if n]
        low = -sum([r for r in reach if r < 0])
        room = np.empty(
            low + sum([r for r in reach if r > 0]) + dtype.itemsize, np.uint8
        )
        before = np.ndarray(shape, dtype, room, low, strides)
        after = self.apply(before)
        if after.size and not np.may_share_memory(after, before):
            return None
        start = [x.__array_interface__["data"][0] for x in (before, after)]
        return offset + start[1] - start[0], after.strides


def permutation(buffer):
    """Return the axes, if a buffer is a transposed view of another; else None."""
    view = buffer.instruction
    if type(view) is View and view.function is np.ndarray.transpose:
        return view.parameters[0]
    return None
