"""`Instruction`: the interface of passes, targets, verifier and printer to each step.

A class of instructions declares the buffers that it reads and produces, the memory that
the outputs use, and whether it may be merged, moved or removed, so that passes need not
test for classes. A class that does not declare all of it is rejected when it is
defined.
"""

from enum import Enum


class Memory(Enum):
    """The kind of memory that the outputs of an instruction use."""

    ASSIGNED = "an array in C order that the program assigns, or a new one"
    SHARED = "that of the first operand"
    ALLOCATED = "made by the call, in an order that it chooses"
    VARIABLE = "that of a variable"
    NONE = "there are no outputs"


class Instruction:
    """``outputs = instruction(*operands)``; ``node`` is the graph node it was lowered from.

    Every class declares ``memory``; ``is_pure``: equal operands produce equal outputs,
    without side effects; ``is_free``: no entry of an array is read or written;
    ``has_effect``: it has side effects, and must not move; ``may_alias``: outputs may
    share memory with operands without the program knowing.
    """

    __slots__ = ("operands", "outputs", "node")

    memory: Memory
    is_pure: bool
    is_free: bool
    has_effect: bool
    may_alias: bool
    donated = None  # the operand that it overwrites, whose memory the output takes
    viewed = None  # the operand of which the output is a view
    kept = ()  # operands whose memory a variable holds after the replay
    broadcasts = False  # operands broadcast to the shape of the output
    keeps_c_order = False  # the outputs are in C order if the operands are
    steps = ()  # the instructions that were fused to this one
    in_place_operands = ()  # an output may be written in their place, entry for entry
    copies_overlaps = False  # other overlaps of outputs and operands are safe, too
    gradient_slots = ()  # pairs of an operand and its number, see `Update`
    keeps_operands = False  # their values are there until the end of the program
    variables_read = variables_written = ()
    variables_overwritten = ()  # those written whose very arrays it may change

    def __init_subclass__(cls):
        super().__init_subclass__()
        for fact in ("memory", "is_pure", "is_free", "has_effect", "may_alias"):
            if not hasattr(cls, fact):
                raise TypeError(f"{cls.__name__} must declare {fact}")

    def __init__(self, operands, node):
        self.operands, self.node, self.outputs = tuple(operands), node, ()

    @property
    def name(self):
        """The name of the function, or of the node."""
        return self.node.name

    @property
    def reads(self):
        """The operands whose values are used: all except scratch memory."""
        return [a for a in self.operands if not a.is_scratch]

    @property
    def scratch(self):
        """The operands that are scratch memory."""
        return [a for a in self.operands if a.is_scratch]

    @property
    def op_name(self):
        """The name of the op it was lowered from, for timing tables."""
        return self.node.name

    @property
    def collectives(self):
        """The nodes whose calls all processes of a job make in the same order."""
        return (self.node,) if self.node.is_collective else ()

    @property
    def touches_variables(self):
        """Return whether its order among accesses to variables matters."""
        return self.has_effect or bool(self.variables_read)

    @property
    def is_barrier(self):
        """Return whether nothing may move past it.

        It has effects, overwrites arrays, or is a collective.
        """
        overwrites = self.donated is not None or self.variables_written
        return self.has_effect or bool(overwrites or self.collectives)

    @property
    def is_droppable(self):
        """Return whether it may be removed if its outputs are not read."""
        return self.is_pure

    def merge_key(self, operands):
        """Return a key that is equal for equal computations, or None if it is never merged."""
        return None

    def substitute(self, stands_for):
        """Replace operands by other buffers, as a dict maps them."""
        if not stands_for.keys().isdisjoint(self.operands):
            self.operands = tuple([stands_for.get(a, a) for a in self.operands])

    def is_done_with(self, operand, out):
        """Return whether ``out`` may overwrite an operand in place.

        Each entry of the operand must be read before the entry of ``out`` is written.
        """
        return True

    def verify(self, location_of, fail):
        """Call ``fail`` with a description of each error, given the address of each buffer."""

    def __repr__(self):
        return f"<{type(self).__name__} {self.name}>"
