"""A pass that moves checks of values in front of changes of variables.

Several training steps in one function check the labels of the second step after the
update of the first. Checks that do not depend on an update are moved before it, so that
an invalid value stops all steps, and nothing has to be restored.
"""

from ...program.passes.atomicity import may_fail
from .segments import can_fail
from .steps import is_on_device


def checks_first(program):
    """Move kernels that can fail, and their dependencies, in front of the first change.

    If nothing that may fail remains behind it, no change has to be undone on failure.
    """
    instructions = program.instructions
    first = next((i for i, e in enumerate(instructions) if e.variables_written), None)
    if first is None:
        return
    head, tail = instructions[:first], instructions[first:]
    moved = _movable(tail)
    early = [each for each in tail if each in moved]
    late = [each for each in tail if each not in moved]
    program.instructions = [*head, *early, *late]
    if not any(map(_may_fail, late)):
        program.fails_late = False


def _movable(tail):
    """Return instructions that can fail and depend on no change, with their dependencies."""
    fixed, bound = set(), set()  # instructions, and buffers that they make
    for each in tail:
        stays = each.touches_variables or each.variables_written or each.collectives
        if stays or any([a in bound or a.base in bound for a in each.operands]):
            fixed.add(each)
            bound.update(each.outputs)
    moved, wanted = set(), set()
    for each in reversed(tail):
        is_needed = can_fail(each) or not wanted.isdisjoint(each.outputs)
        if is_needed and each not in fixed:
            moved.add(each)
            wanted.update(each.operands)
            wanted.update([a.base for a in each.operands])
    return moved


def _may_fail(instruction):
    return can_fail(instruction) or (
        not is_on_device(instruction) and may_fail(instruction.node)
    )
