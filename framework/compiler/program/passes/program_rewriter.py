"""`ProgramRewriter`: changes of a program, collected and then applied at once."""


class ProgramRewriter:
    """Replacements of buffers and instructions, which `apply` makes.

    Until then `operands` returns the operands that an instruction will have.
    """

    def __init__(self, program):
        self.program = program
        self.replacements = {}  # buffer -> buffer
        self.instead = {}  # instruction -> instructions

    def replace(self, buffer, other):
        """Replace a buffer by ``other``."""
        self.replacements[buffer] = other

    def drop(self, instruction):
        """Remove an instruction."""
        self.instead[instruction] = ()

    def put(self, instruction, others):
        """Replace an instruction by others."""
        self.instead[instruction] = tuple(others)

    def operands(self, instruction):
        """Return the new operands; the same tuple if none is replaced."""
        new = self.replacements
        if new and not new.keys().isdisjoint(instruction.operands):
            return tuple([new.get(a, a) for a in instruction.operands])
        return instruction.operands

    def apply(self):
        """Make the changes."""
        program, new = self.program, self.replacements
        if self.instead:
            program.instructions = [
                other
                for instruction in program.instructions
                for other in self.instead.get(instruction, (instruction,))
            ]
        if not new:
            return
        for instruction in program.instructions:
            instruction.substitute(new)
            for out in instruction.outputs:
                if out.is_view:
                    out.base = instruction.viewed.base
        program.outputs = [new.get(a, a) for a in program.outputs]
