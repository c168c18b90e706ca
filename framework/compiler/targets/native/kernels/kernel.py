"""`NativeKernel`: an instruction with a separate machine code implementation.

Its operands are in C order.
"""

import contextlib
from abc import abstractmethod

import numpy as np

from ....loops.accesses import layout_of
from ....program.instructions.kernel import Kernel
from ..jit import engine, runtime
from ..llvm_writer import POINTER

_I64 = np.dtype(np.int64)


class NativeKernel(Kernel):
    """A `Kernel` in machine code.

    A subclass defines ``accepts(instruction)`` and ``write``, and overrides other
    methods as needed. If it ``can_fail``, `write` returns a condition under which it
    has failed, before it has written anything.
    """

    __slots__ = ()
    calls_blas, packed_bytes = False, 0
    level = engine.SPEED_LEVEL  # of LLVM's passes, see `engine.compiled`
    slices = None  # the number of slices of its output that it can make one by one
    takes_any_slices = False  # other numbers will do as well

    @property
    def work(self):
        """The approximate number of operations."""
        return sum([a.size for a in (*self.reads, *self.outputs)])

    def code_key(self, index_of):
        """Return the cache key of the text that `define` writes; None if it is not cached.

        It contains everything that the text depends on, except the `Limits`.
        """

    def define(self, writer, name, index_of):
        """Write the functions that `write` calls; their names begin with ``name``."""

    def in_slices(self, count):
        """Return the kernel that computes its output in this many slices, or None."""
        return self if self.slices == count else None

    def is_sliced(self, array, count):
        """Return whether slice i of the kernel accesses only slice i of an array."""
        return array in self.outputs

    def prepare(self, writer, name, arguments):
        """Write the code that runs before all slices."""

    def finish(self, writer, name, arguments):
        """Write the code that runs after all slices."""

    def write_slice(self, writer, name, context, number, thread):
        """Write the code for one of ``slices`` of the output, for a `SliceLoop`."""
        raise NotImplementedError(f"{self.name} has no slices")

    @abstractmethod
    def write(self, writer, name, arguments):
        """Append the code to the function of a segment; return a bool if it can fail."""


class Arguments:
    """The addresses of buffers, in a table at ``context``."""

    def __init__(self, writer, context, index_of):
        self.writer, self.context, self.index_of = writer, context, index_of

    def __getitem__(self, buffer):
        base, offset, _ = layout_of(buffer)
        address = self.writer.at(self.context, self.index_of[base], POINTER)
        return self.writer.at(self.writer.load(address, POINTER), offset, buffer.dtype)


@contextlib.contextmanager
def block_function(writer, name, index_of, buffers):
    """Define ``void name(ptr context, i64 block)``, one block of a kernel's work.

    It is not inlined where it is called, so that LLVM compiles it once. The sizes and
    symbols that it uses precede the addresses at ``context``.
    Yields the addresses of buffers that do not overlap, and the number of the block.
    """
    parameters = [(f"p{i}", POINTER, "noalias") for i in range(len(buffers))]
    parameters.append(("block", np.int64))
    attributes = 'alwaysinline nounwind "prefer-vector-width"="512"'
    with writer.function(
        f"{name}.body", parameters, None, attributes, "internal", has_arguments=True
    ) as given:
        yield given[:-1], given[-1]
        writer.ret()
        used = writer.used_arguments
    parameters = [("context", POINTER), ("block", np.int64)]
    attributes = 'nounwind noinline "prefer-vector-width"="512"'
    with writer.function(name, parameters, None, attributes) as (
        context,
        block,
    ):
        arguments = Arguments(writer, context, index_of)
        pointers = [arguments[buffer] for buffer in buffers]
        numbers = [writer.number_of(each) for each in used]
        loaded = [writer.load(writer.at(context, -1 - n, _I64), _I64) for n in numbers]
        writer.call(f"{name}.body", [*pointers, block, *loaded])
        writer.ret()


def copied_context(writer, context, numbers, count):
    """Return a copy of the addresses at ``numbers`` of a context, and of its arguments.

    It has room for ``count`` addresses. The functions with arguments are written first.
    """
    before = len(writer.arguments)
    copy = writer.at(writer.alloca(POINTER, before + count), before, POINTER)
    for number in (*range(-before, 0), *numbers):
        word = writer.load(writer.at(context, number, POINTER), POINTER)
        writer.store(word, writer.at(copy, number, POINTER))
    return copy


def call_blocks(writer, name, context, count, work):
    """Run all blocks of a function: sequentially, or on several threads if there is work."""
    if is_shared(writer.limits, count, work):
        runtime.parallel(writer, name, context, count)
    elif count == 1:
        writer.call(name, [context, writer.index(0)])
    else:
        with writer.loop(0, count) as block:
            writer.call(name, [context, block])


def is_shared(limits, count, work):
    """Return whether blocks with this many operations run on several threads."""
    return count > 1 and work >= limits.shared_work
