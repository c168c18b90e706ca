"""`SliceLoop`: several instructions, one slice of the first axis after the other.

A thread runs all steps on a slice before it takes the next one, so that values passed
between steps are still in the cache. An array that only the steps read is never whole
in memory: each thread has memory for one slice of it. The code of the steps is
unchanged. They receive the address that the array would have if the slice were in its
position.
"""

import math

import numpy as np

from ....loops.accesses import layout_of, row_major
from ....loops.loop_nest import LoopNest
from ....loops.statements import accesses_in
from ....program.program import Buffer, Kind
from .. import atomics
from ..llvm_writer import POINTER
from ..products.product_calls import is_product, product_of
from .kernel import Arguments, NativeKernel, call_blocks, copied_context, is_shared

LINE = 64  # bytes: slices of threads begin on lines of their own
_I64 = np.dtype(np.int64)


class SliceLoop(NativeKernel):
    """``steps`` on each of ``count`` slices.

    ``codes`` write the code of the steps, see `segments.code_of`. ``locals`` maps
    arrays of which each thread has a slice to their offset in its memory, in bytes.
    """

    __slots__ = ("steps", "codes", "count", "locals")

    def __init__(self, steps, codes, count, operands, outputs, locals, size, threads):
        size = -(-size // LINE) * LINE
        shape = min(threads, count), size
        memory = Buffer(shape, np.dtype(np.uint8), Kind.SCRATCH)
        counter = Buffer((1,), _I64, Kind.SCRATCH)
        self.operands = (*operands, memory, counter)
        self.outputs, self.node = tuple(outputs), steps[-1].node
        self.steps, self.codes = tuple(steps), tuple(codes)
        self.count, self.locals = count, locals
        for out in outputs:
            out.instruction = self

    @classmethod
    def accepts(cls, instruction):
        return False  # `slicing` makes them

    @property
    def threads(self):
        """The number of threads that have memory for slices."""
        *_, memory, _ = self.operands
        return memory.shape[0]

    @property
    def name(self):
        names = [step.name for step in self.steps]
        return f"slices_of_{'_'.join(names[:3] + ['...'] * (len(names) > 3))}"

    @property
    def is_droppable(self):
        return True

    @property
    def calls_blas(self):
        return any([code.calls_blas for code in self.codes])

    @property
    def packed_bytes(self):
        return max([code.packed_bytes for code in self.codes], default=0)

    @property
    def work(self):
        return sum([code.work for code in self.codes])

    def substitute(self, stands_for):
        raise NotImplementedError("the operands of a slice loop cannot be replaced")

    def define(self, writer, name, index_of):
        own_indices, memory, counter = self.own_indices(index_of), *self.operands[-2:]
        for i, code in enumerate(self.codes):
            code.define(writer, f"{name}.{i}", own_indices)
        parameters = [("context", POINTER), ("thread", _I64)]
        with writer.function(
            f"{name}.thread", parameters, None, "nounwind noinline"
        ) as (context, thread):
            arguments = Arguments(writer, context, index_of)
            own = copied_context(
                writer,
                context,
                dict.fromkeys([index_of[base] for base in self.bases]),
                1 + max(own_indices.values()),
            )
            start = thread * memory.shape[1]
            with atomics.taken_from(writer, arguments[counter], self.count) as number:
                for local, at in self.locals.items():
                    behind = start + at - number * (local.nbytes // self.count)
                    address = writer.away(arguments[memory], behind)
                    writer.store(address, writer.at(own, own_indices[local], POINTER))
                for i, code in enumerate(self.codes):
                    code.write_slice(writer, f"{name}.{i}", own, number, thread)
            writer.ret()

    @property
    def bases(self):
        """The arrays that the steps read and write, except `locals`."""
        return [layout_of(a).base for a in (*self.operands, *self.outputs)]

    def own_indices(self, index_of):
        """Return the indices of addresses in a thread's context; locals come last."""
        last = max(index_of.values())
        slots = {at: i for i, at in enumerate({*self.locals.values()}, last + 1)}
        return index_of | {local: slots[at] for local, at in self.locals.items()}

    def write(self, writer, name, arguments):
        for i, code in enumerate(self.codes):
            code.prepare(writer, f"{name}.{i}", arguments)
        writer.store(writer.index(0), arguments[self.operands[-1]])
        shared = is_shared(writer.limits, self.threads, self.work)
        threads = self.threads if shared else 1
        call_blocks(writer, f"{name}.thread", arguments.context, threads, self.work)
        for i, code in enumerate(self.codes):
            code.finish(writer, f"{name}.{i}", arguments)

    def verify(self, location_of, fail):
        """Check each step, and that a slice is computed before it is read."""
        made, holds = set(), {}
        locations = {a: location_of(a) for a in (*self.reads, *self.outputs)}
        for out in self.outputs:
            for operand in self.reads:
                a, b = locations[operand], locations[out]
                if a[0] == b[0] and a[1] < b[2] and b[1] < a[2]:
                    fail(f"{out} overwrites {operand}, which is still in use")
        for step in self.steps:
            step.verify(lambda a: locations.get(a, (a, 0, a.nbytes)), fail)
            inside = [a.base for a in step.reads if a.base in made]
            for array in {*inside, *step.outputs}:
                handed = self.is_handed_on(array)
                if handed and not is_sliced(step, array, self.count):
                    fail(f"{step!r} accesses other slices of {array}")
            for array in inside:
                if array in self.locals and holds[self.locals[array]] is not array:
                    fail(f"{array} is read, but its memory already holds another slice")
            for a in step.reads:
                if a.base not in made and a.base not in self.operands:
                    fail(f"{a} is read before it is computed")
            for out in step.outputs:
                made.add(out)
                if out in self.locals:
                    holds[self.locals[out]] = out
        for out in self.outputs:
            if out not in made:
                fail(f"{out} is never written")

    def is_handed_on(self, array):
        """Return whether a step reads an array."""
        return any([array in [a.base for a in step.reads] for step in self.steps])


def is_sliced(instruction, array, count):
    """Return whether slice i of an instruction accesses only slice i of an array.

    This holds if block 1 accesses entries exactly one slice behind block 0, and so on:
    the last block could not leave its slice without leaving the array. Bounds on the axes
    of blocks shift what they access.
    """
    size, rest = divmod(array.size, count)
    if type(instruction) is LoopNest:
        late = [access.array for _, access in accesses_in(instruction.finish)]
        cut = {axis for axis, width in instruction.grid if width < axis.extent}
        late += [
            access.array
            for _, access in accesses_in(instruction.body)
            if cut & {*dict(access.bounds)}
        ]
        extents = [axis.extent // width for axis, width in instruction.grid]
        steps = [
            [access.stride(axis) * width for axis, width in instruction.grid]
            for _, access in accesses_in(instruction.body)
            if access.array is array
        ]
    elif is_product(instruction):
        product, late = product_of(instruction), ()
        extents = product.batch
        matrices = product.a, product.b, product.out
        steps = [each.strides for each in matrices if each.base is array]
    else:
        return not rest and instruction.is_sliced(array, count)
    if rest or array in late or math.prod(extents) != count:
        return False
    pairs = [zip(extents, each, row_major(extents)) for each in steps]
    return all([n == 1 or s == size * i for own in pairs for n, s, i in own])
