"""`Instruction`: what passes, targets, verifier and printer ask of each step of a program.

A class of instructions declares the buffers that it reads and makes, whose memory the
outputs take, whether it may be merged, moved or left out. Nothing asks an instruction for
its class in order to learn that; a class that leaves a question open is refused when it is
defined.
"""

from enum import Enum

__all__ = ["Instruction", "Memory"]


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
    and nothing else happens; ``is_free``, that no entry of an array is touched;
    ``has_effect``, that something happens besides its outputs, so that it stays in its
    place; and ``may_alias``, that outputs may share memory with operands unknown to the
    program.
    """

    __slots__ = ("operands", "outputs", "node")

    memory: Memory
    is_pure: bool
    is_free: bool
    has_effect: bool
    may_alias: bool
    donated = (
        None  # the operand that it changes, and whose memory the output takes over
    )
    viewed = None  # the operand of which the output is a view
    kept = ()  # operands whose memory is held when the replay has ended
    broadcasts = False  # operands broadcast to the shape of the output
    steps = ()  # the instructions that were fused to this one
    in_place_operands = ()  # an output may be written in their place, entry for entry
    copies_overlaps = False  # other overlaps of outputs and operands do no harm
    gradient_slots = ()  # pairs of an operand and its number, see `Update`
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

    @property
    def touches_variables(self):
        """Return whether its place among what changes variables matters."""
        return self.has_effect or bool(self.variables_read)

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
        """Return whether an operand is no more read once entries of ``out`` are written,
        but for those in their place."""
        return True

    def verify(self, place_of, fail):
        """Call ``fail`` with what is wrong, given where each buffer lies."""

    def __repr__(self):
        return f"<{type(self).__name__} {self.name}>"
