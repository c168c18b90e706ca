"""Instructions that run on the host: those that depend only on host variables.

The state of a random generator, the step count and the learning rate are in host
memory, even if all else is on a GPU. NumPy computes values that depend on them alone
before a graph is launched, and the graph reads these few numbers from device memory.
"""

import numpy as np

from ...program.instructions.array_instructions import View
from ...program.instructions.call_instructions import (
    Draw,
    LoadVariable,
    Opaque,
    RegionCall,
)
from ...program.program import Kind


def find_host_values(program):
    """Assign instructions that only need host variables to the host.

    They are ``program.on_host``, and their outputs get `Kind.HOST`.
    """
    program.on_host = on_host = set()
    for each in program.instructions:
        if not _is_on_host(each):
            continue
        on_host.add(each)
        for out in each.outputs:
            out.kind = Kind.HOST
        if isinstance(each, Opaque) and each.node.op is not None:
            each.function = each.node.op.kernels.plain(np.ndarray)


def _is_on_host(instruction):
    if type(instruction) is LoadVariable:
        return isinstance(instruction.variable._array, np.ndarray)
    if isinstance(instruction, (Draw, RegionCall)) or instruction.has_effect:
        return False
    given = [a for a in instruction.operands if not a.is_constant and not a.is_scratch]
    if type(instruction) is View:
        return given and given[0].kind is Kind.HOST
    return bool(given) and all([a.kind is Kind.HOST for a in given])


def draw_first(program):
    """Move NumPy's draws to the front, with their dependencies, instead of between graphs.

    A draw stays in place if it needs a value that is assigned in the program.
    """
    assigned, late, moved = set(), set(), set()
    for each in program.instructions:
        if type(each) is LoadVariable and id(each.variable) in assigned:
            late.add(each)
        assigned.update(map(id, each.variables_written))
    for each in program.instructions:
        if type(each) is Draw and all([_is_known(a) for a in each.operands]):
            needed = _needed(each, program.on_host)
            moved |= set() if needed & late else needed
    rest = [each for each in program.instructions if each not in moved]
    program.instructions[:] = [e for e in program.instructions if e in moved] + rest


def _is_known(buffer):
    return buffer.is_constant or buffer.kind is Kind.HOST


def _needed(draw, on_host):
    """A draw, and the instructions on the host that compute its operands."""
    needed, pending = set(), [draw]
    while pending:
        each = pending.pop()
        needed.add(each)
        makers = [a.instruction for a in each.operands]
        pending += [m for m in makers if m in on_host and m not in needed]
    return needed
