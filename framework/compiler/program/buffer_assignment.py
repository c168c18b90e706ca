"""`BufferAssignment`: the memory of each buffer of a program, and its live range.

Buffers that do not escape lie in one arena, where memory is reused after the last read;
gradients that only an update reads lie in memory of that update; outputs and values of
variables are new arrays in each replay.
"""

from tapewright.core.errors import VerificationError

from .arena import lay_out
from .instructions.instruction import Memory
from .passes.map_fusion import buffers_in_other_order
from .program import Kind


class BufferAssignment:
    """Assigns every buffer of a program its `Kind`, and its offset in the arena.

    ``last_use`` has for each base buffer the number of the last instruction that needs
    its memory, ``last_read`` for each buffer the last instruction that reads the buffer
    itself. ``slots`` maps buffers to an update and the number of a gradient there.
    """

    def __init__(self, program):
        self.program = program
        self.last_use, self.last_read = last_uses(program), _last_reads(program)
        self.escaping = escaping_buffers(program)
        for buffer in self.escaping:
            if buffer.kind is Kind.NEW:
                buffer.kind = Kind.ESCAPING
        self._in_other_order = buffers_in_other_order(program)
        self.slots = slots_of_updates(self)
        for buffer in self.slots:
            buffer.kind = Kind.SLOT
        self.arena_size = self._assign()  # bytes

    def takes_memory(self, base):
        """Return whether memory can be assigned to a buffer."""
        made = (
            base.instruction is not None and base.instruction.memory is Memory.ASSIGNED
        )
        return made and base.kind is Kind.NEW and base not in self._in_other_order

    def _assign(self):
        """Place buffers in the arena; return its size."""
        ranges, donated = {}, set()  # base buffer -> [first use, last use, bytes]
        for i, instruction in enumerate(self.program.instructions):
            for buffer in instruction.scratch:
                ranges[buffer] = [i, i, buffer.nbytes]
            for out in instruction.outputs:
                if out.is_view or not self.takes_memory(out):
                    continue
                if out.dtype.hasobject:
                    raise VerificationError(
                        f"{instruction}: memory of bytes cannot hold Python objects"
                    )
                operand = self._donated(instruction, out, i, ranges)
                if operand is None or operand in donated:
                    ranges[out] = [i, self.last_use[out], out.nbytes]
                else:  # its memory is live as long as the output
                    donated.add(operand)
                    ranges[out] = ranges[operand]
                    ranges[out][1] = self.last_use[out]
        single = list({id(each): each for each in ranges.values()}.values())
        offsets, size = lay_out(single)
        offset_of = {id(each): offset for each, offset in zip(single, offsets)}
        for buffer, each in ranges.items():
            buffer.offset = offset_of[id(each)]
            if not buffer.is_scratch:
                buffer.kind = Kind.ARENA
        return size

    def _donated(self, instruction, out, i, ranges):
        """Return an operand with its last use here, whose memory the output may take over."""
        for a in instruction.in_place_operands:
            fits = a.same_spec(out) and a in ranges and not a.is_scratch
            if (
                not fits
                or self.last_use[a] != i
                or not instruction.is_done_with(a, out)
            ):
                continue
            seen_twice = [b.base is a and b is not a for b in instruction.operands]
            if instruction.copies_overlaps or not any(seen_twice):
                return a
        return None


def last_uses(program):
    """Map each base buffer to the last instruction that needs its memory."""
    instructions, last = program.instructions, {}
    end = len(instructions)
    for buffer in program.outputs:
        last[buffer.base] = end
    for i in range(end - 1, -1, -1):
        instruction = instructions[i]
        until = end if instruction.keeps_operands else i
        if instruction.may_alias:
            uses = [last.get(out.base, i) for out in instruction.outputs]
            until = max(uses, default=i)
        for buffer in instruction.reads:
            last[buffer.base] = max(last.get(buffer.base, i), until)
        for out in instruction.outputs:
            last.setdefault(out.base, i)
    return last


def _last_reads(program):
    """Map each buffer to the last instruction that reads the buffer itself, not a view.

    A register need not be kept longer, as views of its array keep the array alive.
    """
    end, last = len(program.instructions), {}
    last.update(dict.fromkeys(program.outputs, end))
    for i, instruction in reversed([*enumerate(program.instructions)]):
        for buffer in (*instruction.operands, *instruction.outputs):
            last.setdefault(buffer, i)
    return last


def escaping_buffers(program):
    """Return base buffers whose memory outlives a replay: outputs, values of variables."""
    escaping = {buffer.base for buffer in program.outputs}
    for instruction in program.instructions:
        escaping.update([a.base for a in instruction.kept])
    for instruction in reversed(program.instructions):
        if instruction.may_alias:
            if any([out.base in escaping for out in instruction.outputs]):
                escaping.update([a.base for a in instruction.operands])
    return escaping


def slots_of_updates(assignment):
    """Map buffers that only an update reads to the memory that it owns for them."""
    slots = {}
    for i, instruction in enumerate(assignment.program.instructions):
        for buffer, number in instruction.gradient_slots:
            ends = assignment.last_use[buffer.base] == i
            if ends and not buffer.is_view and assignment.takes_memory(buffer):
                slots.setdefault(buffer, (instruction, number))
    return slots
