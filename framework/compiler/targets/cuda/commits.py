"""Merge the commits of a replay: all of them happen, or none.

A launch is a commit of the variables that it changes, at fixed addresses. A replay may
have several, with Python in between, which changes variables as well. Then variables
that change before the last commit are saved: as copies where launches write to the
arrays, which keep their addresses; otherwise as references to their arrays. They are
restored if the replay does not reach its last commit, which discards them in the same
call of a function in C.
"""

import numpy as np

from ...program.instructions.call_instructions import RegionCall, StoreVariable, Update
from ...program.passes.atomicity import may_fail
from .segments import CudaSegment


class Commits:
    """The variables that an executable saves: ``held`` by reference, and ``copied``.

    ``last`` is the `CudaSegment` or the call of regions that makes the last commit and
    discards them; if it is None, they are kept to the end.

    Args:
        moments: The segments and instructions that change variables, in order.
        fails_late: Whether the last commit may fail after it was made.
    """

    def __init__(self, moments, fails_late):
        last = moments[-1] if moments else None
        self.last = last if _forgets(last) and not fails_late else None
        early = [each for each in moments if each is not self.last]
        written = {id(v): v for each in early for v in _written(each)}
        if type(self.last) is CudaSegment:  # the host counts a step before the launch
            written |= {id(v): v for v in _written(last) if _is_on_host(v)}
        launches = [each for each in early if type(each) in (CudaSegment, RegionCall)]
        overwritten = {
            id(v) for each in launches for v in _written(each) if not _is_on_host(v)
        }
        self.held = [v for key, v in written.items() if key not in overwritten]
        self.copied = [v for key, v in written.items() if key in overwritten]


def _forgets(moment):
    """Return whether the last commit of a segment or an instruction discards saved values.

    A call of regions can if it runs at most one of them, whose last commit is then its
    own.
    """
    if type(moment) is RegionCall:
        return moment.node.runs_one_region
    return type(moment) is CudaSegment


def branch_last(program):
    """Move a branch that changes variables behind changes that do not depend on it.

    Its commit is then the last one, so its variables need no copies. Usually these are
    all weights and slots: with a scaled loss a branch makes the update, while metrics,
    statistics and the scale change in any case.
    """
    instructions = program.instructions
    branches = [i for i, each in enumerate(instructions) if _may_be_last(each)]
    if not branches:
        return
    head, tail = instructions[: branches[-1]], instructions[branches[-1] :]
    late = _depending(tail)
    early = [each for each in tail if each not in late]
    late = [each for each in tail if each in late]
    others = [each for each in tail if each.has_effect and not _is_free_to_move(each)]
    if others == late[:1] and not any([each.variables_written for each in late[1:]]):
        program.instructions = [*head, *early, *late]


def _may_be_last(each):
    is_branch = type(each) is RegionCall and each.node.runs_one_region
    changes = is_branch and bool(each.variables_written)
    return changes and not may_fail(each.node) and not each.node.is_host_call


def _is_free_to_move(each):
    return type(each) in (StoreVariable, Update) and not may_fail(each.node)


def _depending(tail):
    """Return the first instruction, and those that must follow it."""
    late, made, taken, read, written = set(), set(), set(), set(), set()
    for each in tail:
        reads = {id(v) for v in each.node.reads}
        writes = {id(v) for v in each.node.writes}
        waits = not made.isdisjoint([b for a in each.operands for b in (a, a.base)])
        waits = waits or not written.isdisjoint(reads | writes)
        waits = waits or not read.isdisjoint(writes) or bool(each.collectives)
        if each.donated is not None:  # what it overwrites must have been read
            waits = waits or each.donated.base in taken
        if waits or not late:
            late.add(each)
            made.update(each.outputs)
            taken.update([a.base for a in each.operands])
            read |= reads
            written |= writes
    return late


def _written(moment):
    """Return the variables that a segment or an instruction changes."""
    parts = moment.instructions if type(moment) is CudaSegment else [moment]
    return [v for each in parts for v in each.variables_written]


def _is_on_host(variable):
    return isinstance(variable._array, np.ndarray)
