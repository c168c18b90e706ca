"""Schedules of contractions: tiles, bands, blocks for threads, and copies of operands.

A schedule depends on shapes and vector registers alone, so results depend neither on
the number of threads nor on other work. There are several to choose from.
"""

import math
from typing import NamedTuple

from .contraction import Contraction, ContractionLoop, Phase, contraction_of
from .tiling import Tile, can_sum_lanes, tiles_of

# Blocks at least, if there is work. Their number does not follow the number of threads,
# on which sums over parts would then depend.
BLOCKS = 8


class ContractionSchedule(NamedTuple):
    """Tiles, bands and blocks of a contraction.

    A block computes the tiles of a band: ``images`` iterations of the first loop and
    ``rows`` of the second. With several ``cuts``, blocks share the tiles of a band
    along the vectorized loop. If bands are reduced over (``accumulates``), a block sums
    one of ``parts`` of all bands. The copy of a band has the shape ``band_shape``.

    ``phases`` are the phases of ``contraction``, with the strides of the second operand
    as tiles read it: in a copy of ``b_size`` entries if it is ``packed``. ``b_steps``
    are its strides from one tile to the next. Of the reduction loops, ``hoisted`` run
    outside all tiles of a band. If the second operand ``is_near``, each band is
    traversed once, with all tiles along the vectorized loop at each position; else once
    for each of these tiles.
    """

    contraction: Contraction
    tile: Tile
    accumulates: bool
    images: int
    image_bands: int
    rows: int
    row_bands: int
    parts: int
    cuts: int
    hoisted: int
    is_near: bool
    packed: bool
    phases: tuple[Phase, ...]
    b_steps: tuple[int, ...]
    b_size: int

    @property
    def bands(self):
        return self.image_bands * self.row_bands

    @property
    def blocks(self):
        return (self.parts if self.accumulates else self.bands) * self.cuts

    @property
    def band_shape(self):
        contraction = self.contraction
        rows = (self.rows - 1) * contraction.row_step + contraction.row_span
        return (self.images, rows, *[each.size for each in contraction.reach[2:]])


def schedule_of(maps, a, b, out, itemsize, unit, limits):
    """Return the `ContractionSchedule` of a contraction, or None.

    Args:
        maps: `IndexMaps` of the contraction.
        a: Shape of the first operand.
        b: Shape of the second operand.
        out: Shape of the result.
        itemsize: Bytes per entry.
        unit: `VectorUnit` of the processor.
        limits: `Limits` of the program.
    """
    schedules = schedules_of(maps, a, b, out, itemsize, unit, limits)
    return schedules[0] if schedules else None


def schedules_of(maps, a, b, out, itemsize, unit, limits, most=1):
    """Return up to ``most`` schedules with different tiles, `schedule_of`'s first."""
    contraction = contraction_of(maps, a, b, out)
    if contraction is None:
        return ()
    accumulates = contraction.phases[0].batch.is_summed
    size, b_bytes = math.prod(out) * itemsize, math.prod(b) * itemsize
    bands = _bands(contraction, itemsize, accumulates, b_bytes, limits)
    if bands[-1] == 1 and not accumulates:
        phases = tuple([_all_rows(p) for p in contraction.phases])
        contraction = contraction._replace(phases=phases)
    # Only a part of a long second operand stays in the cache: tiles are added to several
    # times, with another part of the sums each.
    is_long = not accumulates and b_bytes > limits.tiled_bytes
    adds_again = accumulates or is_long
    is_near = not adds_again and b_bytes <= limits.near_bytes
    # Entries of two tiles that overlap would be added to twice.
    model = _model(contraction.phases, math.gcd if adds_again else min)
    can_pack = not accumulates and math.prod(b) * limits.reuse <= contraction.work
    last = [p.summed[-1].extent if p.summed else 1 for p in contraction.phases]
    lanes = all([can_sum_lanes(p, can_pack) for p in contraction.phases])
    fit = adds_again, can_pack, math.gcd(*last), lanes, accumulates or is_near
    schedules = []
    for tile in tiles_of(model, unit, *fit, most):
        hoisted = _hoisted_count(model, tile, itemsize, limits) if is_long else 0
        count = tile.count_along(model)
        shares = _shares(contraction, count, accumulates, bands, size, limits)
        phases = _phases_of(contraction.phases, tile, can_pack)
        how = hoisted, is_near and not tile.sums_lanes
        parts = *bands, *shares, *how, *phases
        schedules.append(ContractionSchedule(contraction, tile, accumulates, *parts))
    return tuple(schedules)


def _phases_of(phases, tile, can_pack):
    """Return ``(packed, phases, b_steps, b_size)`` of a `ContractionSchedule`."""
    if not (can_pack and any([_is_scattered(p, tile) for p in phases])):
        return False, phases, tuple([tile.loop_of(p).b * tile.width for p in phases]), 0
    phases, b_steps, sizes = zip(*[_pack(p, tile) for p in phases])
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    moved = [p._replace(offsets=(*p.offsets[:2], n)) for p, n in zip(phases, starts)]
    return True, tuple(moved), b_steps, sum(sizes)


def _shares(contraction, tiles, accumulates, bands, size, limits):
    """Return ``(parts, cuts)`` of a `ContractionSchedule`; ``size``: bytes of the output."""
    _, image_bands, _, row_bands = bands
    count, parts, cuts = image_bands * row_bands, 1, 1
    if contraction.work >= BLOCKS * limits.contraction_work:
        if accumulates:
            parts = max(1, min(BLOCKS, count, limits.parts_bytes // size))
        # Cuts change no sum, so there are twice as many blocks: 6 threads work 89 % of the
        # time on 16 equal blocks, 67 % on 8. With 2 threads both take as long.
        if accumulates or count < BLOCKS:  # else there are blocks enough
            cuts = min(tiles, -(-2 * BLOCKS // (parts if accumulates else count)))
    return parts, cuts


def _all_rows(phase):
    """Return a phase for bands with all rows, so that a tile may span several rows."""
    free = (phase.rows, *phase.free)
    return phase._replace(rows=ContractionLoop(1, 0, 0, 0), free=free)


def _model(phases, common):
    """Return the largest phase, with extents for which a tile fits all phases.

    ``common`` combines the extents of the phases: their minimum if tiles may overlap,
    else their greatest common divisor.
    """
    largest = max(phases, key=lambda phase: phase.work)
    extents = zip(*[[each.extent for each in phase.free] for phase in phases])
    pairs = zip(largest.free, extents)
    free = [loop._replace(extent=common(*every, every[0])) for loop, every in pairs]
    return largest._replace(free=tuple(free))


def _bands(contraction, itemsize, accumulates, b_bytes, limits):
    """``(images, bands of images, rows, bands of rows)``: as many as fit the cache."""
    batch = contraction.phases[0].batch.extent
    count = max([phase.rows.extent for phase in contraction.phases])
    each = math.prod([r.size for r in contraction.reach[2:]]) * itemsize
    step = max(contraction.row_step, 1)
    # Where bands are summed over, they have rows of the second operand, too.
    both = contraction.phases[0].rows.b * itemsize if accumulates else 0
    # Each tile is then read and written once per band. With half the bytes, gradients of
    # filters for 28x28x1 images take 14 to 27 % longer; with twice as many, those for
    # 28x28x32 and 13x13x32 take 11 to 66 % longer.
    limit = limits.band_bytes * (2 if accumulates else 1)
    fit = max(1, (limit - each * (contraction.row_span - step)) // (each * step + both))
    if fit < count:
        bands = -(-count // fit)
        # Bands that are summed over must not overlap.
        rows = greatest_divisor(count, fit) if accumulates else -(-count // bands)
        return 1, batch, rows, -(-count // rows)
    image = each * (contraction.row_span + (count - 1) * step)
    images = limit // (image + both * count)
    work = max(1, contraction.work // batch)
    # With fewer bands than `BLOCKS` there are cuts, and each of them copies the padded band:
    # 28x28x1 images take 17 % longer.
    images = min(images, -(-batch // BLOCKS))
    images = max(images, -(-limits.contraction_work // work), 1)
    # A large second operand is read anew for each band, so bands have 256 rows or more:
    # 4x4x512 images take 9 to 18 % less time (64 rows do as well), 8x8x256 4 % more. The
    # 590 KB of 3x3x128x128 filters stay in the cache, and cuts cost 8 to 12 %.
    if not accumulates and b_bytes > 4 * limits.tiled_bytes:
        images = max(images, -(-256 * each // image))
    images = greatest_divisor(batch, images)  # all bands are of one size
    return images, batch // images, count, 1


def greatest_divisor(n, most):
    """Return the largest divisor of ``n`` that is at most ``most``, or 1."""
    return max([d for d in range(1, min(n, most) + 1) if n % d == 0], default=1)


def _hoisted_count(phase, tile, itemsize, limits):
    """Return how many reduction loops run outside all tiles, so that tiles reread less."""
    extents = [each.extent for each in phase.summed]
    most = max(0, len(extents) - 1)
    room = limits.tiled_bytes // (itemsize * tile.width)
    fits = [n for n in range(most) if math.prod(extents[n:]) <= room]
    return min(fits, default=most)


def _is_scattered(phase, tile):
    """Return whether tiles should not read the second operand in place."""
    along = tile.loop_of(phase)
    if along.b not in (0, 1):
        return True
    # Each step of the reduction reads ``width`` entries of a longer row: in a copy these
    # are adjacent to those of the next step.
    return along.b == 1 and not tile.sums_lanes and along.extent != tile.width


def _pack(phase, tile):
    """Pack the second operand of a phase; return ``(phase, tile step, size)``.

    The order is: tiles, other output loops, reduction loops, the entries of a tile.
    """
    is_vector = not tile.sums_lanes and tile.loop_of(phase).b != 0
    step, summed, free = tile.width if is_vector else 1, [], list(phase.free)
    for each in reversed(phase.summed):
        summed.append(each._replace(b=step if each.b else 0))
        step *= each.extent if each.b else 1
    for i in reversed(range(len(free))):
        if i != tile.along and free[i].b:
            free[i] = free[i]._replace(b=step)
            step *= free[i].extent
    size = step
    if is_vector:
        size = step * tile.count_along(phase)
        free[tile.along] = free[tile.along]._replace(b=1)
    phase = phase._replace(free=tuple(free), summed=tuple(summed[::-1]))
    return phase, step if is_vector else 0, size
