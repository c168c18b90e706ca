"""Random numbers as machine code: Philox4x64-10 with the same stream as NumPy.

Each block of four words is a function of the key and its number, so that threads draw
parts of an array. A float32 uses half a word, the lower half first, a float64 a whole
word.

References:
    Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

import copy
import math

import numpy as np

from tapewright.ops.random.philox import GENERATOR

from .kernel import NativeKernel, block_function, call_blocks

MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B  # of the key from round to round
ROUNDS = 10
ENTRIES = 1 << 13  # of a block, at most
COST = 8  # operations for an entry
U64 = np.dtype(np.uint64)


class DrawKernel(NativeKernel):
    """A dropout mask, or uniform floats. NumPy draws all others.

    A block computes ``entries`` of the output, a multiple of the entries from four
    words. ``count`` is the number of slices of a `SliceLoop`, or None.
    """

    __slots__ = ("entries", "count")
    takes_any_slices = True

    def __init__(self, replaced, limits):
        super().__init__(replaced, limits)
        self.entries, self.count = ENTRIES, None

    @classmethod
    def accepts(cls, draw):
        (out,) = draw.outputs
        if draw.distribution not in ("dropout_mask", "uniform") or not out.size:
            return False
        if draw.parameters.get("minval", 0) is None or out.dtype.char not in "fd":
            return False
        return draw.state.size == 2 and draw.state.dtype.kind in "iu"

    @property
    def work(self):
        return COST * self.outputs[0].size

    @property
    def drawn(self):
        """The dtype of the drawn numbers."""
        (out,) = self.outputs
        return np.dtype(np.float32) if self.is_mask else out.dtype

    @property
    def is_mask(self):
        return self.replaced.distribution == "dropout_mask"

    @property
    def blocks(self):
        return -(-self.outputs[0].size // self.entries)

    @property
    def slices(self):
        """The number of slices: ``count`` if set, else for slices of a minimal size."""
        (out,) = self.outputs
        if self.count is not None or not out.shape:
            return self.count
        most = min(out.size // self.limits.slice_entries, out.shape[0])
        counts = [n for n in range(most, 0, -1) if out.shape[0] % n == 0]
        return next(filter(self.can_be_cut, counts), None)

    def can_be_cut(self, count):
        """Return whether each slice consists of whole blocks of four words."""
        return self.outputs[0].size % (count * 32 // self.drawn.itemsize) == 0

    def in_slices(self, count):
        (out,) = self.outputs
        if not self.can_be_cut(count):
            return None
        twin = copy.copy(self)
        twin.entries, twin.count = math.gcd(out.size // count, ENTRIES), count
        return twin

    def write_slice(self, writer, name, context, number, thread):
        blocks = self.blocks // self.count
        with writer.loop(number * blocks, (number + 1) * blocks) as block:
            writer.call(name, [context, block])

    def define(self, writer, name, index_of):
        (state,), (out,) = self.operands, self.outputs
        with block_function(writer, name, index_of, (state, out)) as (
            (state_at, out_at),
            block,
        ):
            words = [
                writer.load(writer.at(state_at, i, state.dtype), state.dtype)
                for i in range(2)
            ]
            words = [writer.cast(writer.cast(w, np.int64), U64) for w in words]
            start = block * self.entries
            rest = out.size - start
            count = writer.select(rest < self.entries, rest, writer.index(self.entries))
            each = 32 // self.drawn.itemsize  # entries of four words
            target = writer.at(out_at, start, out.dtype)
            first, whole = start / each, count / each
            # In vectors of 128-bit products it would take 1.3 times as long, and LLVM
            # three times.
            with writer.loop(0, whole, metadata=writer.as_written()) as k:
                self.write_group(
                    writer, words, first + k, writer.at(target, k * each, out.dtype)
                )
            if out.size % each:
                left = count - whole * each
                with writer.when(left != 0):
                    room = writer.alloca(out.dtype, each)
                    self.write_group(writer, words, first + whole, room)
                    with writer.loop(0, left) as i:
                        x = writer.load(writer.at(room, i, out.dtype), out.dtype)
                        at = whole * each + i
                        writer.store(x, writer.at(target, at, out.dtype))

    def write_group(self, writer, state, number, target):
        """Write the entries that come from one block of four words."""
        zero, purpose = writer.const(0, U64), self.replaced.purpose
        number = writer.cast(number, U64) + 1
        if purpose == GENERATOR:
            key, counter = [state[0], zero], [number, zero, state[1], zero]
        else:
            purpose = writer.const(purpose, U64)
            key, counter = list(state), [number, zero, zero, purpose]
        words, dtype = philox(writer, key, counter), self.outputs[0].dtype
        values = [x for word in words for x in self.floats(writer, word)]
        for i, value in enumerate(values):
            with writer.exact():
                entry = self.entry(writer, value)
            writer.store(entry, writer.at(target, i, dtype))

    def floats(self, writer, word):
        """Convert a word to floats in [0, 1)."""
        if self.drawn == np.float64:
            return [writer.cast(word >> 11, np.float64) * 2.0**-53]
        halves = writer.cast(word, np.uint32), writer.cast(word >> 32, np.uint32)
        return [writer.cast(half >> 8, np.float32) * 2.0**-24 for half in halves]

    def entry(self, writer, x):
        """Return the entry of the output for a float in [0, 1), as the kernel computes it."""
        given, dtype = self.replaced.parameters, self.outputs[0].dtype
        if self.is_mask:
            rate = given["rate"]
            factor = writer.const(1 / (1 - rate) if rate < 1 else 0, dtype)
            return writer.select(x >= np.float32(rate), factor, writer.const(0, dtype))
        low, high = given.get("minval", 0), given.get("maxval", 1)
        factor = np.subtract(high, low, dtype=np.float64)
        x = x * writer.const(factor, dtype) if factor != 1 else x
        if not low:
            return x
        x = x + writer.const(low, dtype)
        if low < high:  # what is rounded up to the end stays below
            most = np.nextafter(dtype.type(high), dtype.type(low))
            x = writer.select(x < most, x, writer.const(most, dtype))
        return x

    def write(self, writer, name, arguments):
        call_blocks(writer, name, arguments.context, self.blocks, self.work)


def philox(writer, key, counter):
    """Compute four random words from a key of two words and a counter of four."""
    for turn in range(ROUNDS):
        if turn:
            key = [k + writer.const(step, U64) for k, step in zip(key, STEPS)]
        a, b, c, d = counter
        high_a, low_a = _product(writer, a, MULTIPLIERS[0])
        high_c, low_c = _product(writer, c, MULTIPLIERS[1])
        counter = [high_c ^ b ^ key[0], low_c, high_a ^ d ^ key[1], low_a]
    return counter


def _product(writer, x, number):
    """Return the upper and the lower word of a 128-bit product."""
    wide = writer.assigned(U64, f"zext i64 {x.text} to i128").text
    product = writer.assigned(U64, f"mul i128 {wide}, {number}").text
    upper = writer.assigned(U64, f"lshr i128 {product}, 64").text
    return [writer.assigned(U64, f"trunc i128 {x} to i64") for x in (upper, product)]
