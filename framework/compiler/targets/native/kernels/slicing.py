"""Find instructions that run slice by slice, and combine them into a `SliceLoop`.

A batch of products, and a convolution of several images, compute their output in slices
along the first axes. Instructions that read or compute such an array in the same slices
join them, if it is otherwise too large for the cache: an activation, a softmax and the
product behind it.
"""

import heapq
import math
from collections import Counter

from tapewright.core.errors import InternalError

from ....loops.accesses import layout_of
from ....loops.contractions.contraction_schedule import greatest_divisor
from ....loops.fusion import make_views
from ....loops.loop_nest import LoopNest
from ....program.instructions.array_instructions import BoundedRead, View
from ..products.product_calls import is_product, product_of
from ..segments import code_of
from .kernel import NativeKernel
from .slice_loop import LINE, SliceLoop, is_sliced


def form_slices(program):
    """Replace instructions that pass on large arrays slice by slice by `SliceLoop`s."""
    computing = [each for each in program.instructions if type(each) is not View]
    reads = _count_reads(computing) + Counter([a.base for a in program.outputs])
    instructions, run = [], []
    for each in computing:
        if not each.is_barrier:
            run.append(each)
            continue
        instructions += [*_Run(run, reads, program.limits).ordered(), each]
        run = []
    instructions += _Run(run, reads, program.limits).ordered()
    if any([type(each) is SliceLoop for each in instructions]):
        program.instructions = instructions
        make_views(program)


def _count_reads(instructions):
    """Count the operands of instructions in each array."""
    return Counter([a.base for each in instructions for a in each.operands])


# ------------------------------------------------------------- slices of an instruction


def _count(instruction, limits):
    """Return the number of slices in which an instruction computes its output, or None."""
    if isinstance(instruction, NativeKernel):
        return instruction.slices
    if _takes_any(instruction):
        out = max(instruction.outputs, key=lambda a: a.size)
        most = out.size // limits.slice_entries
        return greatest_divisor(out.shape[0], most) if out.shape else None
    count = _products(instruction)
    return count if count > 1 else None


def _products(instruction):
    """Return the number of products in a batch, 1 for other instructions."""
    return math.prod(product_of(instruction).batch) if is_product(instruction) else 1


def _takes_any(instruction):
    """Return whether an instruction has slices, but any number of them: it joins others.

    These are nests with windows, such as pooling: it runs along one axis after another.
    """
    if type(instruction) is LoopNest:
        return any([type(step) is BoundedRead for step in instruction.steps])
    return isinstance(instruction, NativeKernel) and instruction.takes_any_slices


def _cut(instruction, count):
    """Return an equivalent instruction with this many slices, or None."""
    if type(instruction) is LoopNest:
        return instruction.in_blocks and instruction.in_blocks(count)
    if isinstance(instruction, NativeKernel):
        return instruction.in_slices(count)
    return instruction if 1 < count == _products(instruction) else None


# ------------------------------------------------------------- groups of instructions


class _Run:
    """Instructions that may be reordered as far as dependencies allow."""

    def __init__(self, instructions, reads, limits):
        self.instructions, self.limits = instructions, limits
        self.all_reads, self.own_reads = reads, _count_reads(instructions)
        self.made_by = {
            out: i for i, each in enumerate(instructions) for out in each.outputs
        }
        self.reads = [self.arrays_read(each) for each in instructions]
        self.read_by = {}
        for i, arrays in enumerate(self.reads):
            for array in arrays:
                self.read_by.setdefault(array, []).append(i)
        self.groups = {}  # number of an instruction -> the group that it is in

    @staticmethod
    def arrays_read(instruction):
        return dict.fromkeys([a.base for a in instruction.reads])

    def ordered(self):
        """Return the instructions, including slice loops, in execution order."""
        in_turn = sorted(enumerate(self.instructions), key=lambda x: _takes_any(x[1]))
        for i, each in in_turn:
            count = _count(each, self.limits)
            if not count or count < self.limits.slices or i in self.groups:
                continue
            first = _cut(each, count)
            if first is not None:
                self.grow(_Group(i, first, count))
        return self.in_order() if self.groups else self.instructions

    def grow(self, group):
        """Add producers and readers of large arrays of the members."""
        waiting, refused = self.near(group.first), set()
        while waiting:
            i = waiting.pop()
            if i in self.groups or i in group.members or i in refused:
                continue
            if self.join(group, i):
                waiting += self.near(i)
                refused.clear()
            else:
                refused.add(i)
        if len(group.members) > 1:
            self.groups |= dict.fromkeys(group.members, group)

    def near(self, i):
        """Return the instructions that share an array with one, the later ones last."""
        least, near = self.limits.sliced_bytes, set()
        for a in self.reads[i]:
            if a in self.made_by and a.nbytes >= least:
                near.add(self.made_by[a])
        for out in self.instructions[i].outputs:
            near.update(self.read_by.get(out, ()) if out.nbytes >= least else ())
        return sorted(near, reverse=True)

    def join(self, group, i):
        """Add an instruction to a group if it can run in the same slices."""
        made = _cut(self.instructions[i], group.count)
        if made is None:
            return False
        members = group.members | {i: made}
        if self.shares_slices(members, i, group.count) and not self.is_between(members):
            group.members = members
            return True
        for out in made.outputs:
            out.instruction = self.instructions[i]
        return False

    def shares_slices(self, members, i, count):
        """Return whether all arrays passed between an instruction and others are sliced."""
        given = [a for a in self.reads[i] if self.made_by.get(a) in members]
        pairs = [(a, self.made_by[a], i) for a in given]
        for out in self.instructions[i].outputs:
            pairs += [(out, i, j) for j in self.read_by.get(out, ()) if j in members]
        return all(
            [
                is_sliced(members[j], a, count) and is_sliced(members[k], a, count)
                for a, j, k in pairs
            ]
        )

    def is_between(self, members):
        """Return whether something else must run after one member and before another."""
        seen, last = set(), max(members)
        waiting = [j for i in members for j in self.after(i) if j not in members]
        while waiting:
            i = waiting.pop()
            if i in members:
                return True
            if i in seen or i > last and not self.groups:
                continue
            seen.add(i)
            for same in self.groups[i].members if i in self.groups else (i,):
                waiting += self.after(same)
        return False

    def after(self, i):
        """Return the instructions that read the outputs of one."""
        outputs = self.instructions[i].outputs
        return [j for out in outputs for j in self.read_by.get(out, ())]

    def in_order(self):
        """Return slice loops and other instructions in topological order."""
        unit_of = {
            i: min(self.groups[i].members) if i in self.groups else i
            for i in range(len(self.instructions))
        }
        needs, after = {}, {}
        for i, unit in unit_of.items():
            made_by = [self.made_by[a] for a in self.reads[i] if a in self.made_by]
            needs.setdefault(unit, set()).update([unit_of[j] for j in made_by])
        for unit, others in needs.items():
            others.discard(unit)
            for other in others:
                after.setdefault(other, []).append(unit)
        ready, done = [unit for unit, others in needs.items() if not others], []
        heapq.heapify(ready)
        while ready:
            unit = heapq.heappop(ready)
            done.append(unit)
            for other in after.get(unit, ()):
                needs[other].discard(unit)
                if not needs[other]:
                    heapq.heappush(ready, other)
        if len(done) != len(needs):
            raise InternalError("slice loops depend on each other in a cycle")
        return [
            self.loop_of(self.groups[u]) if u in self.groups else self.instructions[u]
            for u in done
        ]

    def loop_of(self, group):
        """The `SliceLoop` of a group."""
        steps = [group.members[i] for i in sorted(group.members)]
        made = [out for step in steps for out in step.outputs]
        outputs = []
        for out in made:
            readers = self.read_by.get(out, ())
            is_kept = self.all_reads[out] > self.own_reads[out]
            if is_kept or any([j not in group.members for j in readers]):
                outputs.append(out)
        operands = [layout_of(a).base for step in steps for a in step.operands]
        operands = [a for a in dict.fromkeys(operands) if a not in made]
        hidden = [out for out in made if out not in outputs]
        locals, size = _offsets(steps, hidden, group.count)
        codes = [code_of(step) for step in steps]
        threads = self.limits.threads
        return SliceLoop(
            steps, codes, group.count, operands, outputs, locals, size, threads
        )


class _Group:
    """Instructions that run in the same ``count`` slices; ``members`` by their numbers."""

    def __init__(self, first, instruction, count):
        self.first, self.count = first, count
        self.members = {first: instruction}


def _offsets(steps, arrays, count):
    """Return ``(offsets, size)``: the byte offset of each array's slice in a thread.

    Memory is reused for slices of the same size, in place where a nest allows it.
    """
    last = {}
    for i, step in enumerate(steps):
        last |= {a.base: i for a in step.operands}
    offsets, free, size = {}, {}, 0
    for i, step in enumerate(steps):
        ending = [a for a in offsets if last.get(a) == i]
        for out in [out for out in step.outputs if out in arrays]:
            fits = [
                a
                for a in ending
                if type(step) is LoopNest
                and a.same_spec(out)
                and step.is_done_with(a, out)
            ]
            nbytes = out.nbytes // count
            if fits:
                offsets[out] = offsets[fits[0]]
                ending.remove(fits[0])
            elif free.get(nbytes):
                offsets[out] = free[nbytes].pop()
            else:
                offsets[out] = size
                size += -(-nbytes // LINE) * LINE
        for a in ending:
            free.setdefault(a.nbytes // count, []).append(offsets[a])
    return offsets, size
