"""`Program`: what will be done, as instructions over buffers.

A graph says what was meant; a program says which arrays are computed by which calls, and
in which memory they lie. Everything that a target needs in order to run it is here.
"""

import math
from enum import Enum

import numpy as np

__all__ = ["Buffer", "Kind", "Program"]

SMALL = 64  # bytes of constants that are compared by value


class Kind(Enum):
    """The memory that a buffer has. A view has that of its base."""

    INPUT = "an argument of the program"
    CONSTANT = "known beforehand"
    VARIABLE = "the array of a variable"
    SCRATCH = "of one instruction, which neither reads nor leaves values there"
    NEW = "made anew in each replay"
    ESCAPING = "made anew in each replay, and alive when it has ended"
    ARENA = "a part of the memory that belongs to an instance of the program"
    SLOT = "memory that an update keeps for a gradient"


class Buffer:
    """An array of the program: a shape, a dtype, and memory of some `Kind`.

    ``instruction`` is the one that makes it, if one does; ``base`` the buffer whose memory
    it is a view of, or itself. ``source`` is the graph's value of an input, the array of a
    constant, or the variable.
    """

    __slots__ = ("shape", "dtype", "instruction", "base", "source", "_kind", "offset")

    def __init__(
        self, shape, dtype, kind=Kind.NEW, *, instruction=None, base=None, source=None
    ):
        self.shape, self.dtype = shape, dtype
        self.instruction, self.source = instruction, source
        self.base = self if base is None else base
        self._kind = kind
        self.offset = None  # in the arena, in bytes

    @property
    def kind(self):
        """The kind of memory, which a view shares with its base."""
        return self.base._kind

    @kind.setter
    def kind(self, kind):
        self.base._kind = kind

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def nbytes(self):
        return self.size * self.dtype.itemsize

    @property
    def is_view(self):
        return self.base is not self

    @property
    def is_constant(self):
        return self.base._kind is Kind.CONSTANT

    @property
    def is_scratch(self):
        return self._kind is Kind.SCRATCH

    def same_spec(self, other):
        """Return whether another buffer has the same shape and dtype."""
        return self.shape == other.shape and self.dtype == other.dtype

    def __repr__(self):
        return f"<Buffer {self.dtype.name}{list(self.shape)} {self.kind.name.lower()}>"


class Program:
    """Instructions in order; ``inputs`` and ``outputs`` are buffers.

    ``aliases_inputs``: outputs may lie in the memory of inputs, which the caller goes on
    writing to: so no variable may keep it. ``donated_inputs``: the numbers of inputs that
    the program may write to. ``restored``: two lists of variables that get their values
    back if a replay fails, those that are written in place and others.
    """

    def __init__(self, graph, aliases_inputs=False, donated_inputs=()):
        self.graph, self.instructions = graph, []
        self.inputs, self.outputs = [], []
        self.aliases_inputs = aliases_inputs
        self.donated_inputs = tuple(donated_inputs)
        self.constants = {}
        self.restored = ([], [])

    def constant(self, value):
        """The buffer of a constant array, one for each; small ones are one by value."""
        key = id(value)  # it is kept, so that no other gets its id
        if type(value) is np.ndarray and value.nbytes <= SMALL:
            key = value.dtype, value.shape, value.tobytes()
        known = self.constants.get(key)
        if known is None:
            shape = tuple(value.shape)
            known = Buffer(shape, value.dtype, Kind.CONSTANT, source=value)
            self.constants[key] = known
        return known

    def append(self, instruction, *specs):
        """Add an instruction; returns the buffers of these shapes and dtypes it makes."""
        base = instruction.viewed
        instruction.outputs = tuple(
            [
                Buffer(
                    shape,
                    dtype,
                    instruction=instruction,
                    base=None if base is None else base.base,
                )
                for shape, dtype in specs
            ]
        )
        self.instructions.append(instruction)
        return instruction.outputs
