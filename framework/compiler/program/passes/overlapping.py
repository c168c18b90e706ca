"""`overlap_all_reduces`: all-reduces that overlap with the rest of a program.

All-reduces whose operands do not depend on each other's results are joined into
buckets. A bucket starts right after the instruction that computes its last operand, and
is awaited right before the first instruction that needs a result.

All processes must start the same buckets in the same order, although programs for parts
of a batch may differ: a part of one example needs no sum over examples. So buckets
depend only on the order of the all-reduces in the graph, on their sizes, and on which
of them need results of others. The gradients of the last layers are computed first and,
as variables are listed, reduced last: buckets are filled from the end of a group of
all-reduces.
"""

from tapewright.core.settings import config

from ..instructions.all_reduce_instructions import (
    AllReduce,
    StartAllReduce,
    WaitAllReduce,
)
from ..program import Program
from .atomicity import may_fail


def overlap_all_reduces(program: Program):
    """Join all-reduces into buckets, started early and awaited late.

    Programs of regions are left as they are.
    """
    if not any([type(each) is AllReduce for each in program.instructions]):
        return
    if program.aliases_inputs:
        return
    buckets, order = _buckets(program.instructions, config.bucket_bytes())
    program.instructions = _Schedule(program, buckets).instructions()
    program.collectives = order


class _Bucket:
    """All-reduces that are merged into one.

    ``after`` is the number of the instruction after which it may start.
    """

    def __init__(self, first, after):
        self.members, self.after, self.nbytes = [first], after, 0
        self.start = None  # the instruction, once it is there
        self.is_done = False  # whether it is waited for

    @property
    def operands(self):
        return tuple([m.operands[0] for m in self.members])

    @property
    def outputs(self):
        return tuple([m.outputs[0] for m in self.members])


# ----------------------------------------------------------------------------- buckets


def _buckets(instructions, limit):
    """Return the buckets in the order in which they start, and the order of all nodes."""
    buckets, order, group, tainted = [], [], [], set()
    number = {out: i for i, each in enumerate(instructions) for out in each.outputs}
    fence = -1  # the last instruction before which no later bucket may start

    def close():
        group.reverse()
        packed = _packed(group, limit, fence)
        buckets.extend(packed)
        order.extend([m.node for bucket in packed for m in bucket.members])
        group.clear()
        tainted.clear()

    for i, each in enumerate(instructions):
        depends = not tainted.isdisjoint(each.operands)
        if type(each) is AllReduce:
            if depends:
                close()
            group.append(each)
            tainted.update(each.outputs)
        elif each.is_barrier or (depends and not each.outputs):
            close()
            order += each.collectives
            fence = i if _may_communicate(each) else fence
        elif depends:
            tainted.update(each.outputs)
    close()
    for bucket in buckets:
        made = [number.get(a, -1) for a in bucket.operands]
        bucket.after = max(bucket.after, *made)
    return buckets, order


def _packed(group, limit, fence):
    """Put all-reduces of one kind into a bucket, up to ``limit`` bytes."""
    buckets, filling = [], {}  # the kind -> the bucket that is being filled
    for each in group:
        key, nbytes = tuple(each.keywords.items()), each.operands[0].nbytes
        bucket = filling.get(key)
        if bucket is None or bucket.nbytes + nbytes > limit:
            bucket = filling[key] = _Bucket(each, fence)
            buckets.append(bucket)
        else:
            bucket.members.append(each)
        bucket.nbytes += nbytes
    return buckets


def _may_communicate(instruction):
    """Return whether an instruction calls collectives, or code that may call them."""
    calls_user = instruction.has_effect and may_fail(instruction.node)
    return calls_user or bool(instruction.collectives)


# ------------------------------------------------------------------------------- order


class _Schedule:
    """Defers instructions that need results of buckets until something else needs them.

    Barriers need all instructions before them.
    """

    def __init__(self, program, buckets):
        self.program, self.buckets = program, buckets
        self.bucket_of = {out: b for b in buckets for out in b.outputs}
        self.late = {}  # buffer -> the instruction that makes it, put off
        self.put_off = []  # these instructions, in order
        self.made = []

    def instructions(self):
        """Return the instructions in their new order."""
        waiting = iter([*self.buckets, None])
        bucket = next(waiting)  # it starts before its first all-reduce, at last
        for i, each in enumerate(self.program.instructions, -1):
            while bucket is not None and bucket.after <= i:
                self.begin(bucket)
                bucket = next(waiting)
            if type(each) is not AllReduce:
                self.add(each)
        self.need_all()
        self.finish_all()
        return self.made

    def begin(self, bucket):
        """Start a bucket, at the latest when its operands are computed."""
        self.need(bucket.operands)
        first = bucket.members[0]
        nodes = [m.node for m in bucket.members]
        bucket.start = StartAllReduce(
            bucket.operands, first.node, first.keywords, nodes
        )
        self.made.append(bucket.start)

    def finish(self, bucket):
        """Wait for a bucket; one that has just started need not overlap with anything."""
        if bucket.is_done:
            return
        bucket.is_done = True
        start = bucket.start
        if self.made[-1] is not start:
            self.made.append(WaitAllReduce(start, bucket.outputs))
            return
        both = AllReduce(start.operands, start.node, start.keywords, start.nodes)
        both.outputs = bucket.outputs
        for out in both.outputs:
            out.instruction = both
        self.made[-1] = both

    def finish_all(self):
        """Wait for all buckets that have started."""
        for bucket in self.buckets:
            if bucket.start is not None:
                self.finish(bucket)

    def add(self, instruction):
        """Add an instruction, or defer it if it needs a result that is not ready."""
        if instruction.is_barrier:
            self.need_all()
            if instruction.variables_written:  # if one fails, they must be as before
                self.finish_all()
        elif instruction.outputs and any(map(self.is_late, instruction.operands)):
            self.put_off.append(instruction)
            self.late.update(dict.fromkeys(instruction.outputs, instruction))
            return
        self.need(instruction.operands)
        self.made.append(instruction)

    def is_late(self, buffer):
        bucket = self.bucket_of.get(buffer)
        return buffer in self.late or (bucket is not None and not bucket.is_done)

    def need_all(self):
        """Add all deferred instructions."""
        self.need(list(self.late))

    def need(self, buffers):
        """Add the deferred instructions that these buffers depend on."""
        wanted = set(buffers)
        if wanted.isdisjoint(self.late):
            chosen = []
        else:
            for each in reversed(self.put_off):
                if not wanted.isdisjoint(each.outputs):
                    wanted.update(each.operands)
            chosen = [e for e in self.put_off if not wanted.isdisjoint(e.outputs)]
            self.put_off = [e for e in self.put_off if wanted.isdisjoint(e.outputs)]
        for each in chosen:
            self.need_results(each.operands)
            self.made.append(each)
            for out in each.outputs:
                del self.late[out]
        self.need_results(buffers)

    def need_results(self, buffers):
        for a in buffers:
            if a in self.bucket_of:
                self.finish(self.bucket_of[a])
