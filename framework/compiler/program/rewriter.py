"""`Rewriter`: changes of a program, noted one by one and then made at once."""

__all__ = ["Rewriter"]


class Rewriter:
    """Buffers that stand for others, and instructions that go or take others' place.

    Nothing changes before `apply`; until then `operands` says what an instruction will read.
    """

    def __init__(self, program):
        self.program = program
        self.stands_for = {}  # buffer -> the one that takes its place
        self.instead = {}  # instruction -> those in its place

    def replace(self, buffer, other):
        """From here on ``other`` stands for a buffer."""
        self.stands_for[buffer] = other

    def drop(self, instruction):
        """The instruction goes."""
        self.instead[instruction] = ()

    def put(self, instruction, others):
        """Others take the place of an instruction."""
        self.instead[instruction] = tuple(others)

    def operands(self, instruction):
        """The operands as they will be; the same tuple if none is replaced."""
        now = self.stands_for
        if now and not now.keys().isdisjoint(instruction.operands):
            return tuple([now.get(a, a) for a in instruction.operands])
        return instruction.operands

    def apply(self):
        """Make the changes."""
        program, now = self.program, self.stands_for
        if self.instead:
            program.instructions = [
                other
                for instruction in program.instructions
                for other in self.instead.get(instruction, (instruction,))
            ]
        if not now:
            return
        for instruction in program.instructions:
            instruction.substitute(now)
            for out in instruction.outputs:
                if out.is_view:
                    out.base = instruction.viewed.base
        program.outputs = [now.get(a, a) for a in program.outputs]
