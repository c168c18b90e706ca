"""A pass that moves looks at values in front of changes of variables.

Several steps of training in one function look at the labels of the second step behind the
update of the first. Looks that need nothing of an update come before it, so that a wrong
value stops all of it, and nothing has to be restored.
"""

from ...program.atomicity import may_fail
from .segments import can_fail
from .steps import is_on_device

__all__ = ["checks_first"]


def checks_first(program):
    """Move kernels that can fail, and what they need, in front of the first change.

    If nothing that may fail is left behind it, no change is undone when one does.
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
    """The instructions that can fail and depend on no change, with all that they need."""
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
