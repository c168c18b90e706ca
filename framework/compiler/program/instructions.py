"""The instructions of a program, one class for each thing that can be done to arrays.

A class declares what planning, verifying and printing need to know: the buffers that it
reads and makes, whose memory the outputs take, whether it may be merged, moved or left
out. Nothing asks an instruction for its class in order to learn that; a class that leaves
a question open is refused when it is defined.
"""

from enum import Enum

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .index_maps import product_maps

__all__ = [
    "Contract",
    "Copy",
    "Draw",
    "EffectCall",
    "FusedMap",
    "Gather",
    "Instruction",
    "Load",
    "Map",
    "Memory",
    "Opaque",
    "Reduce",
    "Routine",
    "Scatter",
    "Store",
    "Update",
    "View",
    "identity",
    "permutation",
]


class Memory(Enum):
    """The memory that the outputs of an instruction take."""

    GIVEN = "written into an array that is given, in C order, or into a new one"
    SHARED = "that of the first operand"
    OWN = "made by the call, in an order that it chooses"
    VARIABLE = "that of a variable"
    NONE = "there are no outputs"


class Instruction:
    """``outputs = instruction(*operands)``; ``node`` is the graph's node that it is from.

    Every class declares ``memory``; ``is_pure``, that equal operands give equal outputs
    and nothing else happens; and ``is_free``, that no entry of an array is touched.
    """

    __slots__ = ("operands", "outputs", "node")

    memory: Memory
    is_pure: bool
    is_free: bool
    has_effect = False  # something happens besides its outputs: it stays, in its place
    donated = (
        None  # the operand that it changes, and whose memory its output takes over
    )
    may_alias = False  # outputs may share memory with operands, unknown to the program
    viewed = None  # the operand of which the output is a view
    broadcasts = False  # operands broadcast to the shape of the output
    in_place_operands = ()  # an output may be written in their place, entry for entry
    copies_overlaps = False  # other overlaps of outputs and operands do no harm
    gradient_slots = ()  # pairs of an operand and its number, see `Update`
    steps = ()  # the instructions that were fused to this one

    def __init_subclass__(cls):
        super().__init_subclass__()
        for fact in ("memory", "is_pure", "is_free"):
            if not hasattr(cls, fact):
                raise TypeError(f"{cls.__name__} must declare {fact}")

    def __init__(self, operands, node):
        self.operands, self.node, self.outputs = tuple(operands), node, ()

    @property
    def name(self):
        """The function that is called, or what the node is called."""
        return self.node.name

    @property
    def reads(self):
        """The operands whose values are used: all but scratch memory."""
        return [a for a in self.operands if not a.is_scratch]

    @property
    def scratch(self):
        """The operands that are memory to work in."""
        return [a for a in self.operands if a.is_scratch]

    variables_read = variables_written = ()
    variables_overwritten = ()  # those written whose very arrays it may change

    @property
    def touches_variables(self):
        """Return whether its place among what changes variables matters."""
        return self.has_effect or bool(self.variables_read)

    @property
    def kept(self):
        """The operands whose memory is held when the replay has ended."""
        return ()

    @property
    def is_droppable(self):
        """Return whether it may go where nobody reads its outputs."""
        return self.is_pure

    def merge_key(self, operands):
        """Something equal for instructions that compute the same of the same operands.

        None: it is never merged.
        """
        return None

    def substitute(self, stands_for):
        """Read other buffers instead of those in a dict."""
        if not stands_for.keys().isdisjoint(self.operands):
            self.operands = tuple([stands_for.get(a, a) for a in self.operands])

    def is_done_with(self, operand, out):
        """Return whether an operand may be overwritten by ``out``, of the same size.

        It has memory in common with no other operand, and nobody reads it afterwards.
        """
        return operand in self.in_place_operands

    def verify(self, place_of, fail):
        """Call ``fail`` with what is wrong, given where each buffer lies."""

    def __repr__(self):
        return f"<{type(self).__name__} {self.name}>"


# ------------------------------------------------------------- computed by array calls


class _Computed(Instruction):
    """``function(*operands, **keywords, out=output)``, a call of NumPy or one like them."""

    __slots__ = ("function", "keywords")
    memory, is_pure, is_free = Memory.GIVEN, True, False

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

    ``scalar`` names the function of numbers: NumPy's name for it, or "cast" (to the dtype
    of the output), "positive_bits" or "kept_bits" (see `scalar_functions`).
    """

    __slots__ = ()
    broadcasts = True

    @property
    def scalar(self):
        return self.function.__name__

    @property
    def in_place_operands(self):
        return self.operands

    @property
    def copies_overlaps(self):
        """NumPy's own functions copy what they would overwrite before they read it."""
        return isinstance(self.function, np.ufunc)

    def verify(self, place_of, fail):
        if isinstance(self.function, np.ufunc):
            (out,), args = self.outputs, self.operands
            shape = np.broadcast_shapes(*[a.shape for a in args])
            dtypes = (*[a.dtype for a in args], None)
            dtype = self.function.resolve_dtypes(dtypes)[-1]
            if (shape, dtype) != (out.shape, out.dtype):
                fail(f"NumPy makes {dtype}{list(shape)}, the program names {out}")


class FusedMap(Instruction):
    """Several maps on arrays of one shape, some rows at a time: see `blocks`.

    ``steps`` are maps, ``rows`` the number of rows taken at once. ``scratch_specs`` are
    shape and dtype of memory for rows that only the steps need; ``places`` has the number
    of it for each such buffer.
    """

    __slots__ = ("steps", "rows", "scratch_specs", "places")
    memory, is_pure, is_free = Memory.GIVEN, True, False

    def __init__(self, steps, operands, outputs, rows, scratch_specs, places):
        super().__init__(operands, steps[-1].node)
        self.steps, self.rows, self.outputs = steps, rows, tuple(outputs)
        self.scratch_specs, self.places = scratch_specs, places
        for out in outputs:
            out.instruction = self

    @property
    def name(self):
        listed = [step.name for step in self.steps[:3]] + ["..."] * (
            len(self.steps) > 3
        )
        return f"block_of_{'_'.join(listed)}"

    def substitute(self, stands_for):
        super().substitute(stands_for)
        for step in self.steps:
            step.substitute(stands_for)

    def is_cut(self, buffer):
        """Return whether a buffer is taken row by row; others are read whole."""
        shape = self.outputs[0].shape
        return len(buffer.shape) == len(shape) and buffer.shape[0] == shape[0]

    @property
    def in_place_operands(self):
        return self.operands

    def is_done_with(self, operand, out):
        """Return whether no row of an operand is read once that of ``out`` is written."""
        reads = [i for i, step in enumerate(self.steps) if operand in step.operands]
        made = [i for i, step in enumerate(self.steps) if out in step.outputs]
        return reads[-1] <= made[0]

    def verify(self, place_of, fail):
        """Follow the rows: each step reads those that it names.

        An operand in whose place an output is written must be cut into rows like it, and
        not be read once they are.
        """
        places = {a: place_of(a) for a in (*self.operands, *self.outputs)}
        for out in self.outputs:
            for array in self.operands:
                a, b = places[array], places[out]
                if a[0] == b[0] and a[1] < b[2] and b[1] < a[2]:
                    if a != b or array.shape != out.shape:
                        fail(f"{out} is written over parts of {array}")
        holds = {}  # place -> the buffers that have their values there
        for array in self.operands:
            holds.setdefault(places[array], []).append(array)
        for step in self.steps:
            step.verify(place_of, fail)
            for array in step.operands:
                place = places.get(array, self.places.get(array))
                if array not in holds.get(place, ()):
                    fail(f"{array} is read in {place}, which holds other rows by now")
            (out,) = step.outputs
            holds[places.get(out, self.places.get(out))] = [out]


class Reduce(_Computed):
    """``ufunc.reduce`` over ``axis``, a number, several, or None for all."""

    __slots__ = ("ufunc", "axis", "keepdims")

    def __init__(self, ufunc, operand, axis, keepdims, node):
        keywords = {"axis": axis, "keepdims": keepdims} if keepdims else {"axis": axis}
        super().__init__(ufunc.reduce, (operand,), node, keywords)
        self.ufunc, self.axis, self.keepdims = ufunc, axis, keepdims

    @property
    def axes(self):
        """The axes that are gone, as a tuple."""
        rank = len(self.operands[0].shape)
        every = tuple(range(rank))
        return every if self.axis is None else normalize_axis_tuple(self.axis, rank)


class Contract(_Computed):
    """Sums of products of entries of the two first operands, as ``maps`` say.

    A third operand is scratch memory of the function.
    """

    __slots__ = ("_maps",)

    def __init__(self, function, operands, node, keywords=None, maps=None):
        super().__init__(function, operands, node, keywords)
        self._maps = maps

    @property
    def maps(self):
        """The `IndexMaps`: which entries are multiplied, and where they are added."""
        if self._maps is None:
            return product_maps(self.operands[0].shape, self.operands[1].shape)
        return self._maps()


class Copy(_Computed):
    """The operands in C order, one behind the other along ``axis`` if there are several."""

    __slots__ = ("axis",)

    def __init__(self, function, operands, node, axis=None):
        keywords = {} if axis is None else {"axis": axis}
        super().__init__(function, operands, node, keywords)
        self.axis = axis


class Routine(_Computed):
    """A function that takes several passes over its operands, known by its code alone.

    ``overwrites`` is the number of the operand in whose place the output may be, or None.
    """

    __slots__ = ("overwrites",)

    def __init__(self, function, operands, node, keywords=None, overwrites=None):
        super().__init__(function, operands, node, keywords)
        self.overwrites = overwrites

    @property
    def in_place_operands(self):
        return () if self.overwrites is None else (self.operands[self.overwrites],)


# ------------------------------------------------------------------------------- views


class View(Instruction):
    """Another look at the memory of an operand: ``function(operand, *parameters)``.

    ``function`` is the ``reshape``, ``transpose`` or ``__getitem__`` of arrays, or
    ``np.broadcast_to``.
    """

    __slots__ = ("function", "parameters")
    memory, is_pure, is_free = Memory.SHARED, True, True

    def __init__(self, function, operand, parameters, node):
        super().__init__((operand,), node)
        self.function, self.parameters = function, tuple(parameters)

    @property
    def name(self):
        return self.function.__name__

    @property
    def viewed(self):
        return self.operands[0]

    def merge_key(self, operands):
        return self.function, id(operands[0]), repr(self.parameters)

    def apply(self, array):
        """The view of an array."""
        if self.function is np.ndarray.__getitem__:
            return array[self.parameters]
        return self.function(array, *self.parameters)

    def layout(self, offset, strides):
        """Offset and strides in bytes, if these are those of the operand.

        None where a reshape would have to copy.
        """
        shape, dtype = self.viewed.shape, self.viewed.dtype
        reach = [s * (n - 1) for s, n in zip(strides, shape, strict=True) if n]
        low = -sum([r for r in reach if r < 0])
        room = np.empty(
            low + sum([r for r in reach if r > 0]) + dtype.itemsize, np.uint8
        )
        before = np.ndarray(shape, dtype, room, low, strides)
        after = self.apply(before)
        if before.size and not np.may_share_memory(after, before):
            return None
        start = [x.__array_interface__["data"][0] for x in (before, after)]
        return offset + start[1] - start[0], after.strides


def permutation(buffer):
    """The axes, if a buffer is a transposed view of another; else None."""
    view = buffer.instruction
    if type(view) is View and view.function is np.ndarray.transpose:
        return view.parameters[0]
    return None


# ------------------------------------------------------------------- kernels as they are


class Opaque(Instruction):
    """A kernel as it is: ``function(*operands, **keywords)``, for one output or a tuple.

    ``new_memory``: no output ever shares memory with an operand. ``donates``: the number
    of the operand that it changes in place and hands on, or None.
    """

    __slots__ = ("function", "keywords", "new_memory", "donates")
    memory, is_pure, is_free = Memory.OWN, False, False

    def __init__(
        self, function, operands, node, keywords=None, new_memory=False, donates=None
    ):
        super().__init__(operands, node)
        self.function, self.keywords = function, keywords or {}
        self.new_memory, self.donates = new_memory, donates

    @property
    def name(self):
        return getattr(self.function, "__name__", None) or self.node.name

    @property
    def donated(self):
        return None if self.donates is None else self.operands[self.donates]

    @property
    def may_alias(self):
        return not self.new_memory

    @property
    def is_tuple(self):
        """Return whether the function returns its outputs in a tuple."""
        return self.node.op is None or self.node.op.multiple


class Gather(Opaque):
    """``take(source, indices, axis)``; raises for an index that is out of range."""

    __slots__ = ()

    source = property(lambda self: self.operands[0])
    indices = property(lambda self: self.operands[1])
    axis = property(lambda self: self.keywords["axis"])


class Scatter(Opaque):
    """Rows put into an array of zeros along ``axis``, at ``indices``; equal ones add up."""

    __slots__ = ()

    rows = property(lambda self: self.operands[0])
    indices = property(lambda self: self.operands[1])
    axis = property(lambda self: self.keywords["axis"])


class Draw(Opaque):
    """Random numbers of Philox4x64-10: a function of ``state``, two integers.

    ``purpose`` 0: the state is the key and the counter of a generator; else it is the key
    of a stateless draw, whose counter begins with ``purpose``. ``distribution`` names the
    kind of numbers, ``parameters`` are its attributes, further operands its inputs.
    """

    __slots__ = ("distribution",)

    def __init__(self, distribution, function, operands, node, keywords):
        super().__init__(function, operands, node, keywords, new_memory=True)
        self.distribution = distribution

    state = property(lambda self: self.operands[0])
    purpose = property(lambda self: self.keywords["purpose"])

    @property
    def parameters(self):
        return {k: v for k, v in self.keywords.items() if k != "purpose"}


# ------------------------------------------------------------- variables and the outside


class Load(Instruction):
    """The array of a variable, as it is now."""

    __slots__ = ()
    memory, is_pure, is_free = Memory.VARIABLE, False, True
    is_droppable = True

    @property
    def variable(self):
        return self.node.variable

    @property
    def variables_read(self):
        return self.node.reads


class Store(Instruction):
    """The operand becomes the array of a variable."""

    __slots__ = ()
    memory, is_pure, is_free = Memory.NONE, False, True
    has_effect = True

    @property
    def variable(self):
        return self.node.variable

    @property
    def variables_written(self):
        return self.node.writes

    @property
    def kept(self):
        return self.operands


class Update(Instruction):
    """A step of an optimizer: changes variables in place by gradients, the operands.

    ``update`` is the `VariableUpdate`, which says what it reads and writes.
    """

    __slots__ = ("update",)
    memory, is_pure, is_free = Memory.NONE, False, False
    has_effect = True

    def __init__(self, update, operands, node):
        super().__init__(operands, node)
        self.update = update

    @property
    def function(self):
        return self.update

    @property
    def variables_read(self):
        return self.update.reads

    @property
    def variables_written(self):
        return self.update.writes

    variables_overwritten = variables_written

    @property
    def gradient_slots(self):
        """The gradients for which the update has memory, with their numbers."""
        memory = enumerate(self.update.gradient_memory)
        return [(self.operands[n], n) for n, array in memory if array is not None]


class EffectCall(Instruction):
    """A call that the world outside notices: Python's, or a loop with effects in it.

    Its outputs are new arrays.
    """

    __slots__ = ("function",)
    memory, is_pure, is_free = Memory.OWN, False, False
    has_effect = True

    def __init__(self, function, operands, node):
        super().__init__(operands, node)
        self.function = function

    @property
    def name(self):
        return getattr(self.function, "__name__", None) or self.node.name

    @property
    def variables_read(self):
        return self.node.reads

    @property
    def variables_written(self):
        return self.node.writes

    variables_overwritten = variables_written


def identity(function):
    """A key for a function: ``np.add.reduce`` is a new object at each look."""
    owner = getattr(function, "__self__", None)
    return (
        (id(owner), function.__name__) if isinstance(owner, np.ufunc) else id(function)
    )
