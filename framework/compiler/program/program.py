"""`Program`: instructions over buffers, the input of a target.

A graph consists of ops on values; a program of array calls on buffers, with the memory
of each. It contains everything that a target needs.
"""

import math
from enum import Enum

import numpy as np

from .limits import limits_in_use

SMALL = 64  # bytes of constants that are compared by content


class Kind(Enum):
    """The kind of memory of a buffer. A view shares it with its base."""

    INPUT = "an argument of the program"
    CONSTANT = "known at compile time"
    VARIABLE = "the array of a variable"
    SCRATCH = "work space of one instruction"
    NEW = "allocated in each replay"
    ESCAPING = "allocated in each replay, and alive at its end"
    ARENA = "a part of the memory of an instance of the program"
    SLOT = "memory that an update owns for a gradient"
    HOST = "allocated in host memory in each replay, where the program is for a GPU"


class Buffer:
    """An array of the program: a shape, a dtype, and memory of some `Kind`.

    ``instruction`` is the instruction that computes it, or None; ``base`` the buffer of
    which it is a view, or itself. ``source`` is the graph's value of an input, the
    array of a constant, or the variable.
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

    ``aliases_inputs``: it runs inside of another program, with that program's memory as
    inputs: outputs may alias it, variables must not keep it. ``donated_inputs``: the
    numbers of inputs that it may write to. ``commits_once``: its changes of variables
    can all be made at its end. ``fails_late``: an instruction that may fail remains
    behind a change of variables, which is undone if it does. ``collectives``: the nodes
    that all processes of a job run, in their common order. ``on_host``: the instructions
    that the host computes for a GPU. ``overwrites``: a change of a variable overwrites the
    value that was loaded before. ``in_place``: nests that overwrite variables in the
    commit. ``remake()`` makes it again, with the settings of now.
    ``limits``: the `Limits` for all passes and kernels; by default the limits in use.
    """

    def __init__(self, graph, aliases_inputs=False, donated_inputs=(), limits=None):
        self.graph, self.instructions = graph, []
        self.inputs, self.outputs = [], []
        self.aliases_inputs = aliases_inputs
        self.donated_inputs = tuple(donated_inputs)
        self.limits = limits or limits_in_use()
        self.constants = {}
        self.fails_late = False
        self.commits_once = True
        self.collectives = []
        self.on_host, self.overwrites, self.remake = frozenset(), False, None
        self.in_place = {}

    def constant(self, value):
        """Return the buffer of a constant array; equal small arrays share one."""
        key = id(value)  # the buffer keeps it alive, so that the id stays its own
        if type(value) is np.ndarray and value.nbytes <= SMALL:
            key = value.dtype, value.shape, value.tobytes()
        known = self.constants.get(key)
        if known is None:
            shape = tuple(value.shape)
            known = Buffer(shape, value.dtype, Kind.CONSTANT, source=value)
            self.constants[key] = known
        return known

    def readers(self):
        """Map each buffer that is read to the instructions that read it, in order."""
        readers = {}
        for each in self.instructions:
            for a in dict.fromkeys(each.operands):
                readers.setdefault(a, []).append(each)
        return readers

    def append(self, instruction, *specs):
        """Add an instruction; return its outputs, buffers of these shapes and dtypes."""
        viewed = instruction.viewed
        base = None if viewed is None else viewed.base
        instruction.outputs = tuple(
            [Buffer(*spec, instruction=instruction, base=base) for spec in specs]
        )
        self.instructions.append(instruction)
        return instruction.outputs
