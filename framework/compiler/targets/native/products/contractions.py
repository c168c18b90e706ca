"""Contractions in machine code: convolutions of all kinds and their gradients.

There is no matrix of windows. Tiles of the output stay in registers while the reduction
loops read both operands in place, as in "Anatomy of High-Performance Deep Learning
Convolutions on SIMD Architectures" (Georganas et al., 2018). Where windows overlap the
padding, a block first copies its band of the first operand, padded with zeros, into
memory of its thread. Loops, tiles and blocks are chosen by
`loops.contraction_schedule`.
"""

import contextlib
import copy
import functools
import math

import numpy as np

from tapewright.core.settings import config

from ....loops.accesses import layout_of
from ....loops.contractions.contraction import ContractionLoop
from ....loops.contractions.contraction_schedule import schedules_of
from ....loops.contractions.tiling import VectorUnit
from .. import atomics, autotune
from ..jit import engine
from ..jit.recall import recall
from ..kernels.kernel import NativeKernel, block_function, call_blocks, is_shared
from ..llvm_writer import POINTER, IRValue, Size, Writer, sized
from .thin_products import thin_product_of

LINE = 64  # entries, one or more lines of the cache, of which no two threads write one
_I64 = np.dtype(np.int64)


def _contraction(instruction, limits):
    """Return ``(maps, operands, shapes)`` if there may be code for it, or None."""
    if not instruction.keywords:
        return thin_product_of(instruction, limits)
    a, b = operands = instruction.operands[:2]
    (out,) = instruction.outputs
    known = {x.dtype for x in (a, b, out)} == {out.dtype} and out.dtype.char in "fd"
    # The axes of the first operand are batch, rows, and at least one more: see `Phase`.
    if not known or len(a.shape) < 3 or not (a.size and b.size and out.size):
        return None
    return instruction.maps, operands, (a.shape, b.shape, out.shape)


def _schedules(instruction, limits, most=1):
    """Return up to ``most`` `Schedule`s of an instruction; none if there is no code."""
    contraction, (out,) = _contraction(instruction, limits), instruction.outputs
    if contraction is None:
        return ()
    maps, _, shapes = contraction
    width, registers = engine.vector_registers()
    # CPUs with 64-byte vectors often have one unit for them, or split them: one product
    # a cycle instead of two.
    rate = 1 if width == 64 else 2
    unit = VectorUnit(width // out.dtype.itemsize, registers, rate)
    return recalled_schedules(maps, *shapes, out.dtype.itemsize, unit, limits, most)


@functools.lru_cache(512)
def recalled_schedules(*problem):
    """Return ``schedules_of(*problem)``."""
    return recall(lambda: schedules_of(*problem), "schedules", problem)


class ContractionKernel(NativeKernel):
    """A contraction whose first operand may be read beyond its bounds.

    ``count`` is the number of slices of a `SliceLoop`, or None; ``threads`` the number
    of threads with memory for a band.
    """

    __slots__ = ("count", "schedule", "threads")
    level = 0  # its vectors are written as such, and values are kept in registers

    def __init__(self, replaced, schedule, limits):
        self.schedule, self.count = schedule, None
        self.threads = min(limits.threads, schedule.blocks)
        super().__init__(replaced, limits)
        _, operands, _ = _contraction(replaced, limits)
        self.operands = (*operands, *self.operands[2:])

    @classmethod
    def accepts(cls, instruction):
        return True  # `of` decides, with the limits of the program

    @classmethod
    def of(cls, program, instruction):
        limits = program.limits
        schedules = _schedules(instruction, limits)
        if not schedules:
            return None
        if limits.is_standalone or not config.autotune_is_on():
            return cls(instruction, *schedules, limits)
        maps, _, shapes = _contraction(instruction, limits)
        schedules = _schedules(instruction, limits, limits.tiles_tried)
        kernels = {str(each.tile): cls(instruction, each, limits) for each in schedules}
        about = f"{maps} {shapes} {instruction.outputs[0].dtype.char} {limits}"
        return kernels[autotune.fastest(kernels, about)]

    def scratch_specs(self, instruction):
        return list(self._memory(instruction).values())

    def _memory(self, instruction):
        """Shapes and dtypes of scratch memory, by its purpose."""
        schedule, (out,) = self.schedule, instruction.outputs
        sizes = {}
        if schedule.packed:
            sizes["b"] = schedule.b_size
        if schedule.contraction.is_padded:
            sizes["bands"] = self.threads * _band_size(schedule)
        if schedule.parts > 1:
            sizes["parts"] = schedule.parts * out.size
        specs = {purpose: ((size,), out.dtype) for purpose, size in sizes.items()}
        return specs | ({"counter": ((1,), _I64)} if self.has_counter else {})

    @property
    def has_counter(self):
        """Return whether threads take blocks from a shared counter."""
        return is_shared(self.limits, self.schedule.blocks, self.work)

    @property
    def work(self):
        return self.schedule.contraction.work

    @property
    def memory_of(self):
        """Scratch memory by its purpose."""
        return dict(zip(self._memory(self.replaced), self.scratch))

    @property
    def slices(self):
        """The number of bands of images, if these are contiguous in the output."""
        schedule, (out,) = self.schedule, self.outputs
        sizes = {phase.batch.extent * phase.batch.out for phase in schedule.phases}
        if schedule.accumulates or sizes != {out.size}:
            return None
        return schedule.image_bands

    def in_slices(self, count):
        if self.slices != count:
            return None
        twin = copy.copy(self)
        twin.count = count
        return twin

    def code_key(self, index_of):
        arrays = (*self.operands, *self.outputs)
        used = [(arrays.index(a), *layout_of(a)) for a in arrays]
        used = [(n, index_of[base], at, base.dtype) for n, base, at, _ in used]
        how = self.schedule, self.threads, self.count is not None, self.outputs[0].size
        return *how, *used

    def define(self, writer, name, index_of):
        _Functions(self, writer, name, index_of).write(self.count is not None)

    def prepare(self, writer, name, arguments):
        schedule, context = self.schedule, arguments.context
        if schedule.packed:
            count = sum([_copies(phase, schedule.tile) for phase in schedule.phases])
            # An entry that is copied out of order counts as four operations.
            call_blocks(writer, f"{name}.pack", context, count, 4 * schedule.b_size)

    def write_slice(self, writer, name, context, number, thread):
        number = number * self.threads + thread
        writer.call(f"{name}.slice", [context, number])

    def write(self, writer, name, arguments):
        schedule, context = self.schedule, arguments.context
        self.prepare(writer, name, arguments)
        if self.has_counter:
            writer.store(writer.index(0), arguments[self.memory_of["counter"]])
        shared = is_shared(self.limits, self.threads, self.work)
        threads = self.threads if shared else 1
        call_blocks(writer, f"{name}.thread", context, threads, self.work)
        if schedule.parts > 1:
            size = self.outputs[0].size
            count = -(-size // self.limits.summed_entries)
            call_blocks(writer, f"{name}.sum", context, count, size * schedule.parts)


def _band_size(schedule):
    return -(-math.prod(schedule.band_shape) // LINE) * LINE


def _copies(phase, tile):
    """Return the blocks of the copy of the second operand: tiles and other output loops."""
    others = [loop.extent for _, loop in _other_loops(phase, tile)]
    return math.prod(others) * (
        tile.count_along(phase) if _has_width(phase, tile) else 1
    )


def _other_loops(phase, tile):
    loops = enumerate(phase.free)
    return [(i, loop) for i, loop in loops if i != tile.along and loop.b]


def _has_width(phase, tile):
    """Return whether vectors of the second operand are loaded, not single entries."""
    return not tile.sums_lanes and tile.loop_of(phase).b != 0


class _Functions:
    """Writes the functions of a kernel."""

    def __init__(self, kernel, writer, name, index_of):
        self.writer, self.name, self.index_of = writer, name, index_of
        self.schedule, (self.out,) = sized(kernel.schedule), kernel.outputs
        self.tile, self.phases = kernel.schedule.tile, self.schedule.phases
        self.tile_phases = kernel.schedule.phases
        self.a, self.b = kernel.operands[:2]
        self.dtype, self.memory = self.out.dtype, kernel.memory_of
        self.threads = kernel.threads
        self.vector = np.dtype((self.dtype, self.tile.lanes))

    def write(self, is_sliced):
        schedule = self.schedule
        self.tiles = [self.tile_function(i) for i in range(len(self.phases))]
        if schedule.packed:
            self.pack()
        if is_sliced:
            return self.slice()
        self.thread()
        if schedule.parts > 1:
            self.sum_parts()

    def at(self, pointer, index):
        return self.writer.at(pointer, index, self.dtype)

    def least(self, a, b):
        a, b = self.writer.index(a), self.writer.index(b)
        return self.writer.select(a < b, a, b)

    def most(self, a, b):
        a, b = self.writer.index(a), self.writer.index(b)
        return self.writer.select(a > b, a, b)

    # --- a tile

    def hoisted(self, phase):
        """The reduction loops outside all tiles of a band.

        If they have no iteration, tiles are written once: there are no taps, and all
        sums are 0.
        """
        if 0 in [each.extent for each in phase.summed]:
            return ()
        count = min(self.schedule.hoisted, max(0, len(phase.summed) - 1))
        return phase.summed[:count]

    def summed(self, phase):
        """The reduction loops of a tile, outermost first."""
        rest = phase.summed[len(self.hoisted(phase)) :] or (
            ContractionLoop(1, 0, 0, 0),
        )
        if self.schedule.accumulates:
            return (phase.batch, phase.rows, *rest)
        return rest

    @property
    def adds(self):
        """Return whether tiles may accumulate into memory."""
        return self.schedule.accumulates or self.schedule.hoisted > 0

    @property
    def is_whole(self):
        """Return whether all vectors are full."""
        width = self.tile.lanes if self.tile.sums_lanes else self.tile.width
        return not any([self.tile.loop_of(p).extent % width for p in self.phases])

    def tile_function(self, number):
        """Write the function of a tile of a phase; return its `Symbol`.

        Its strides are constants, as parts of the instructions that load entries: as
        arguments they need a register each, and depthwise convolutions take 1.3 to 1.9
        times as long. So it has a module of its own, and the code around it serves
        other sizes.

        Parameters: the start of the tile in the operands and in the output; the entries
        left along the vectors; whether to add to the output; for each loop the extent
        and, except for the innermost, the strides in the operands.
        """
        own = copy.copy(self)
        own.writer, phase = Writer(self.writer.limits), self.tile_phases[number]
        parameters = [("a", POINTER), ("b", POINTER), ("out", POINTER)]
        parameters += [("left", _I64), ("add", np.bool_)]
        for i in range(len(self.summed(phase)) - 1):
            parameters += [(f"n{i}", _I64), (f"a{i}", _I64), (f"b{i}", _I64)]
        parameters.append(("n", _I64))
        bits = 8 * self.vector.itemsize
        attributes = (
            f'nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
        )
        with own.writer.function("tile", parameters, None, attributes) as given:
            a, b, out, left, add, *rest = given
            loops = [rest[i : i + 3] for i in range(0, len(rest), 3)]
            _Tile(own, phase, out, left).write(a, b, add, loops)
            own.writer.ret()
        return self.writer.add_module(own.writer, "tile", ContractionKernel.level)

    # --- copies

    def pack(self):
        """Write the function that packs the second operand in the order of tiles."""
        writer, first = self.writer, 0
        function = block_function(
            writer, f"{self.name}.pack", self.index_of, (self.b, self.memory["b"])
        )
        with function as (arrays, block):
            for number, phase in enumerate(self.phases):
                own, count = block - first, Size(_copies(phase, self.tile))
                with writer.when((own >= 0) & (own < count)):
                    self.pack_tile(number, *arrays, own)
                first += count

    def pack_tile(self, number, source, target, block):
        """Pack the part of the second operand that a tile reads, for all reduction loops."""
        writer, tile, phase = self.writer, self.tile, self.phases[number]
        before = self.schedule.contraction.phases[number]
        source = self.at(source, before.offsets[2])
        target = self.at(target, phase.offsets[2])
        for i, loop in reversed(_other_loops(phase, tile)):
            rest = block / writer.index(loop.extent)
            index, block = block - rest * loop.extent, rest
            source = self.at(source, index * before.free[i].b)
            target = self.at(target, index * loop.b)
        width, step, count = 1, 1, writer.index(1)
        if _has_width(phase, tile):
            width, step = tile.width, tile.loop_of(before).b
            source = self.at(source, block * width * step)
            target = self.at(target, block * self.schedule.b_steps[number])
            count = self.least(width, tile.loop_of(phase).extent - block * width)

        def copy(loops, source, target):
            if loops:
                (old, new), *rest = loops
                with writer.loop(0, old.extent) as i:
                    copy(rest, self.at(source, i * old.b), self.at(target, i * new.b))
            elif width == 1:
                writer.store(writer.load(source, self.dtype), target)
            elif step == 1 < tile.lanes:
                self.copy_vectors(source, target, count)
            else:
                with writer.loop(0, count) as i:
                    entry = writer.load(self.at(source, i * step), self.dtype)
                    writer.store(entry, self.at(target, i))
                # Nothing is computed from these, but products of denormal numbers are slow.
                self.clear(self.at(target, count), width - count)

        copy(list(zip(before.summed, phase.summed)), source, target)

    def copy_vectors(self, source, target, count):
        """Copy the entries of a tile's vectors, with zeros behind the last one."""
        lanes, mask = self.tile.lanes, None
        for v in range(self.tile.vectors):
            if not self.is_whole:
                mask = self.writer.first_lanes(count - v * lanes, lanes)
            vector = self.writer.load_vector(
                self.at(source, v * lanes), self.vector, mask
            )
            self.writer.store_vector(vector, self.at(target, v * lanes))

    def move(self, source, target, count):
        """Copy ``count`` entries."""
        self.writer.copy_bytes(target, source, count * self.dtype.itemsize)

    def clear(self, target, count):
        """Write ``count`` zeros."""
        self.writer.clear_bytes(target, count * self.dtype.itemsize)

    def copy_band(self, source, band, image, row):
        """Copy the part of the first operand that a band reads, padded with zeros."""
        writer, contraction = self.writer, self.schedule.contraction
        shape, reach = sized(self.schedule.band_shape), contraction.reach
        own = [r.extent for r in reach]
        starts = [image, row * contraction.row_step + reach[1].start]
        starts += [writer.index(r.start) for r in reach[2:]]
        last = len(reach) - 1
        while last > 1 and reach[last].is_inside and reach[last].size == own[last]:
            last -= 1  # whole axes are copied as one piece

        def copy(axis, source, target):
            step = Size(math.prod(own[axis + 1 :]))
            to = Size(math.prod(shape[axis + 1 :]))
            if axis < last:
                with writer.loop(0, shape[axis]) as i:
                    position = starts[axis] + i
                    inside = (position >= 0) & (position < own[axis])
                    there = self.at(target, i * to)
                    with writer.when(inside):
                        copy(axis + 1, self.at(source, position * step), there)
                    with writer.when(~inside):
                        self.clear(there, writer.index(to))
                return
            low = self.most(starts[axis], 0)
            before = self.least(low - starts[axis], shape[axis])
            count = self.least(starts[axis] + shape[axis], own[axis]) - low
            count = self.most(count, 0)
            self.clear(target, before * to)
            line, there = self.at(source, low * step), self.at(target, before * to)
            self.move(line, there, count * step)
            behind = before + count
            self.clear(self.at(target, behind * to), (shape[axis] - behind) * to)

        copy(0, source, band)

    # --- blocks

    @contextlib.contextmanager
    def block_function(self, name):
        """Define a function of a block number; yields the number, and the arrays by buffer."""
        memory = self.memory
        read = memory.get("b", self.b)
        written = memory.get("parts", self.out)
        buffers = dict.fromkeys([self.a, read, written, *memory.values()])
        with block_function(
            self.writer, f"{self.name}.{name}", self.index_of, list(buffers)
        ) as (given, number):
            held = dict(zip(buffers, given))
            yield number, held, (held[self.a], held[read], held[written])

    def band_of(self, held, thread):
        """Return the memory of a thread for its copy of a band, or None."""
        if "bands" not in self.memory:
            return None
        start = thread * Size(_band_size(self.schedule))
        return self.at(held[self.memory["bands"]], start)

    def slice(self):
        """Write the function that computes a slice: all bands of some images."""
        writer, schedule = self.writer, self.schedule
        add = writer.const(False, np.bool_)
        with self.block_function("slice") as (number, held, arrays):
            threads = writer.index(Size(self.threads))
            image = number / threads
            band = self.band_of(held, number - image * threads)
            first = image * schedule.row_bands
            with (
                writer.loop(first, first + schedule.row_bands) as i,
                writer.loop(0, schedule.cuts) as cut,
            ):
                self.band(i, cut, *arrays, band, add)

    def thread(self):
        """Write the function of a thread, which takes blocks until none are left."""
        writer, schedule = self.writer, self.schedule
        with self.block_function("thread") as (thread, held, (a, b, out)):
            band = self.band_of(held, thread)
            blocks = writer.index(Size(schedule.blocks))
            taken = writer.loop(0, blocks)
            if "counter" in self.memory:
                counter = held[self.memory["counter"]]
                taken = atomics.taken_from(writer, counter, blocks)
            with taken as block:
                part = block / writer.index(schedule.cuts)
                cut = block - part * schedule.cuts
                if not schedule.accumulates:
                    add = writer.const(False, np.bool_)
                    self.band(part, cut, a, b, out, band, add)
                else:
                    total = self.at(out, part * Size(self.out.size))
                    bands = Size(schedule.bands)
                    first, stop = self.share(bands, part, schedule.parts)
                    with writer.loop(first, stop) as number:
                        self.band(number, cut, a, b, total, band, number > first)

    def share(self, count, number, of):
        """Return the first and the end index of share ``number``."""
        of = self.writer.index(of)
        return number * count / of, (number + 1) * count / of

    def band(self, number, cut, a, b, out, band, add):
        """Write the tiles of a band."""
        writer, schedule = self.writer, self.schedule
        image = number / writer.index(schedule.row_bands)
        row = (number - image * schedule.row_bands) * schedule.rows
        image = image * schedule.images
        if band is not None:
            self.copy_band(a, band, image, row)
        for i, phase in enumerate(self.phases):
            self.band_of_phase(i, phase, cut, (a, b, out), band, image, row, add)

    def band_of_phase(self, number, phase, cut, arrays, band, image, row, add):
        writer, schedule, tile = self.writer, self.schedule, self.tile
        batch, rows = phase.batch, phase.rows
        moved = [image * step + row * other for step, other in zip(batch[1:], rows[1:])]
        at_out, at_a, at_b = phase.offsets
        a = self.at(arrays[0], moved[1] + at_a)
        if band is not None:
            batch = batch._replace(a=Size(math.prod(schedule.band_shape[1:])))
            a = self.at(band, at_a)
        b = self.at(arrays[1], moved[2] + at_b)
        out = self.at(arrays[2], moved[0] + at_out)
        images = writer.index(schedule.images)
        row_count = self.least(schedule.rows, rows.extent - row)
        others = [i for i in range(len(phase.free)) if i != tile.along]
        outer = [i for i in others if phase.free[i].b]
        inner = [i for i in others if not phase.free[i].b]

        def along(loop, pointers, i):
            moved = zip(pointers, (loop.a, loop.b, loop.out))
            return [self.at(pointer, i * step) for pointer, step in moved]

        @contextlib.contextmanager
        def over_loops(numbers, pointers):
            with contextlib.ExitStack() as stack:
                for k in numbers:
                    loop, rounds = phase.free[k], dict(tile.rounds).get(k, 1)
                    step = writer.index(Size(rounds))
                    i = stack.enter_context(writer.loop(0, loop.extent, step))
                    if loop.extent % rounds:  # the last one begins earlier
                        i = self.least(i, writer.index(loop.extent) - step)
                    pointers = along(loop, pointers, i)
                yield pointers

        @contextlib.contextmanager
        def over_vectors(pointers):
            if tile.sums_lanes:
                yield pointers, writer.index(0)
                return
            loop = tile.loop_of(phase)
            count = Size(tile.count_along(phase))
            first, stop = self.share(count, cut, schedule.cuts)
            with writer.loop(first, stop) as i:
                start = i * Size(tile.width)
                a, _, out = along(loop, pointers, start)
                b = self.at(pointers[1], i * schedule.b_steps[number])
                yield (a, b, out), writer.index(loop.extent) - start

        @contextlib.contextmanager
        def over_hoisted(pointers, add):
            with contextlib.ExitStack() as stack:
                for loop in self.hoisted(phase):
                    i = stack.enter_context(writer.loop(0, loop.extent))
                    add = writer.select(i > 0, writer.const(True, np.bool_), add)
                    pointers = along(loop, pointers, i)
                yield pointers, add

        @contextlib.contextmanager
        def over_band(pointers):
            if schedule.accumulates:
                yield pointers
                return
            with writer.loop(0, images) as i, writer.loop(0, row_count) as j:
                yield along(rows, along(batch, pointers, i), j)

        def call(pointers, left, add):
            loops = self.summed(phase)
            args = [*pointers, left, add]
            for i, loop in enumerate(loops):
                args.append(writer.index(loop.extent))
                if i + 1 < len(loops):
                    args += [writer.index(loop.a), writer.index(loop.b)]
            if schedule.accumulates:  # the outer loops run over the band: see `summed`
                args[5:11] = [images, *map(writer.index, (batch.a, batch.b)),
                              row_count, *map(writer.index, (rows.a, rows.b))]  # fmt: skip
            tile = writer.as_pointer(writer.argument(self.tiles[number]))
            atomics.call_address(writer, tile, args)

        # Either the whole second operand stays in the nearest cache, or what a tile reads of
        # it, while the tiles of the band read it again.
        if schedule.is_near:
            with (
                over_band((a, b, out)) as pointers,
                over_loops([*outer, *inner], pointers) as pointers,
                over_vectors(pointers) as (pointers, left),
            ):
                return call(pointers, left, add)
        with (
            over_loops(outer, (a, b, out)) as pointers,
            over_vectors(pointers) as (pointers, left),
            over_hoisted(pointers, add) as (pointers, add),
            over_band(pointers) as pointers,
            over_loops(inner, pointers) as pointers,
        ):
            call(pointers, left, add)

    def sum_parts(self):
        """Write the function that adds up the partial sums in order."""
        writer, size = self.writer, Size(self.out.size)
        most = writer.limits.summed_entries
        function = block_function(
            writer, f"{self.name}.sum", self.index_of, (self.memory["parts"], self.out)
        )
        with function as ((parts, out), block):
            first = block * most
            lanes = engine.vector_registers()[0] // self.dtype.itemsize
            stop = self.least(first + most, size)
            whole = first + (stop - first) / writer.index(lanes) * lanes
            vector = np.dtype((self.dtype, lanes))
            for loop, dtype in (
                ((first, whole, lanes), vector),
                ((whole, stop), self.dtype),
            ):
                with writer.loop(*loop) as i:
                    total = [writer.load_vector(self.at(parts, i), dtype)]
                    with writer.carrying_loop(1, self.schedule.parts, 1, total) as (
                        part,
                        total,
                    ):
                        address = self.at(parts, i + part * size)
                        total[0] = total[0] + writer.load_vector(address, dtype)
                    writer.store_vector(total[0], self.at(out, i))


class _Tile:
    """Writes the body of a tile's function."""

    def __init__(self, functions, phase, out, left):
        self.functions, self.writer = functions, functions.writer
        self.tile, self.at = functions.tile, functions.at
        self.vector, self.dtype = functions.vector, functions.dtype
        self.phase, self.left = phase, left
        # Along the entries of a vector the output is written vector by vector if it can be.
        self.step = 0 if self.tile.sums_lanes else self.tile.loop_of(phase).out
        width = self.tile.lanes * self.step
        self.targets = [
            (self.at(out, to + v * width), v)
            for to, _, _ in self.tile.points(phase)
            for v in range(self.tile.vectors)
        ]
        self.masks = [None] * self.tile.vectors
        if not functions.is_whole and not self.tile.sums_lanes:
            lanes = self.tile.lanes
            self.masks = [
                self.writer.first_lanes(left - v * lanes, lanes)
                for v in range(self.tile.vectors)
            ]

    def write(self, a, b, add, loops):
        writer, zero = self.writer, IRValue(self.writer, self.vector, "zeroinitializer")
        sums = [zero] * len(self.targets)
        if self.functions.adds:
            rounds = writer.select(add, writer.index(1), 0)
            with writer.carrying_loop(0, rounds, 1, sums) as (_, sums):
                sums[:] = [self.read(*target) for target in self.targets]
        sums = self.sum(loops, a, b, sums)
        for target, total in zip(self.targets, sums):
            self.write_entries(total, *target)

    def sum(self, loops, a, b, sums):
        """Write the loops; return the sums."""
        writer, tile = self.writer, self.tile
        (extent, *steps), *rest = loops
        if rest:
            with writer.carrying_loop(0, extent, 1, sums) as (i, inner):
                pointers = [self.at(p, i * step) for p, step in zip((a, b), steps)]
                inner[:] = self.sum(rest, *pointers, list(inner))
            return inner
        loop = self.functions.summed(self.phase)[-1]
        step = tile.lanes if tile.sums_lanes else tile.unrolled
        with writer.carrying_loop(0, extent, step, sums) as (i, inner):
            masks = self.masks
            if tile.sums_lanes and not self.functions.is_whole:
                masks = [writer.first_lanes(extent - i, tile.lanes)]
            a, b = self.at(a, i * loop.a), self.at(b, i * loop.b)
            inner[:] = self.products(a, b, list(inner), masks)
        return inner

    def products(self, a, b, sums, masks):
        """Compute the sums after one iteration, or several that are unrolled."""
        writer, tile, known = self.writer, self.tile, {}
        along = tile.loop_of(self.phase)
        # A copy of the second operand has zeros behind the last entries.
        masks_b = masks
        if self.functions.schedule.packed and not tile.sums_lanes:
            masks_b = [None] * tile.vectors

        def load(pointer, offset, step, v, mask):
            offset += v * tile.lanes * step
            key = pointer.text, offset, mask and mask.text
            if key in known:
                return known[key]
            address = self.at(pointer, offset)
            if step:
                known[key] = writer.load_vector(address, self.vector, mask)
            else:
                known[key] = writer.splat(writer.load(address, self.dtype), tile.lanes)
            return known[key]

        for at_a, at_b, n in tile.products(self.phase):
            for v in range(tile.vectors):
                x = load(a, at_a, along.a, v, masks[v])
                y = load(b, at_b, along.b, v, masks_b[v])
                i = n * tile.vectors + v
                sums[i] = writer.fma(x, y, sums[i])
        return sums

    def read(self, target, v):
        """Read a vector of the output; the first entry holds a sum of lanes."""
        writer, lanes = self.writer, self.tile.lanes
        if self.step == 1:
            return writer.load_vector(target, self.vector, self.masks[v])
        edge = writer.alloca(self.dtype, lanes)
        writer.store_vector(IRValue(writer, self.vector, "zeroinitializer"), edge)
        self.copy(target, self.step, edge, 1, v)
        return writer.load_vector(edge, self.vector)

    def write_entries(self, total, target, v):
        writer, lanes = self.writer, self.tile.lanes
        if self.step == 1:
            return writer.store_vector(total, target, self.masks[v])
        if self.tile.sums_lanes:
            return writer.store(writer.vector_sum(total), target)
        edge = writer.alloca(self.dtype, lanes)
        writer.store_vector(total, edge)
        self.copy(edge, 1, target, self.step, v)

    def copy(self, source, step, target, to, v):
        """Copy the entries of a vector one by one."""
        writer, lanes = self.writer, self.tile.lanes
        count = writer.index(1 if self.tile.sums_lanes else lanes)
        if self.masks[v] is not None:
            count = self.functions.least(self.left - v * lanes, lanes)
        with writer.loop(0, count) as i:
            entry = writer.load(self.at(source, i * step), self.dtype)
            writer.store(entry, self.at(target, i * to))
