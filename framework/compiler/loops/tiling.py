"""Tiles of a contraction: the part of the output that stays in registers.

A tile is a few vectors of contiguous entries along one loop, times some iterations of
other loops. Each iteration of the reduction loops loads a few vectors and scalars, and
reuses each several times. `tiles_of` ranks tiles by a model of the CPU.
"""

import itertools
import math
from typing import NamedTuple

__all__ = ["Tile", "VectorUnit", "can_sum_lanes", "candidates", "tiles_of"]

MOST_VECTORS, MOST_ROUNDS = 8, 28
# Multiplications of a contraction for which a tile of the largest size is worth its code.
LARGE = 1 << 18
FAR = 0.1  # cycles more for what is loaded from memory further away
APART = 1.02  # times as long where memory is not read or written in one piece
LATENCY = 4  # cycles until a sum can be added to


class VectorUnit(NamedTuple):
    """Vector registers: entries per register, number of registers, products per cycle."""

    lanes: int
    registers: int
    rate: int = 2


class Tile(NamedTuple):
    """``vectors`` times ``lanes`` entries along ``along``, for all of ``rounds``.

    ``along`` is the number of one of the `Phase.places`, or -1 for the last reduction
    loop, along which partial sums are then computed. ``rounds`` has pairs of the number
    of a place and an extent; the last reduction loop is unrolled by ``unrolled``.
    """

    along: int
    lanes: int
    vectors: int
    rounds: tuple = ()
    unrolled: int = 1

    @property
    def sums_lanes(self):
        return self.along < 0

    @property
    def width(self):
        return self.lanes * self.vectors

    def loop_of(self, phase):
        """Return the loop of a phase along which the entries of a vector are contiguous."""
        return _loop(phase, self.along)

    def points(self, phase):
        """Return the offsets ``(out, a, b)`` of the iterations."""
        found = [(0, 0, 0)]
        for place, extent in self.rounds:
            _, *steps = phase.places[place]
            found = [
                tuple([n + r * step for n, step in zip(point, steps)])
                for point in found
                for r in range(extent)
            ]
        return found

    def products(self, phase):
        """Return the offsets ``(a, b, number of an iteration)`` of the products, in order.

        Products that read the same entries of the first operand are adjacent, so that
        few of the loaded entries occupy a register at a time.
        """
        loop = phase.summed[-1] if phase.summed else phase.batch
        found = [
            (a + j * loop.a, b + j * loop.b, n)
            for j in range(self.unrolled)
            for n, (_, a, b) in enumerate(self.points(phase))
        ]
        return sorted(found, key=lambda each: each[0]) if self.unrolled > 1 else found

    def count_along(self, phase):
        """Return the number of tiles along this loop."""
        return 1 if self.sums_lanes else -(-self.loop_of(phase).extent // self.width)


def tiles_of(
    phase, unit, accumulates, packs_b, common=1, sums_lanes=True, streams=False, most=1
):  # fmt: skip
    """Return up to ``most`` `Tile`s for a phase, fastest first.

    With ``accumulates``, sums are added to memory, so tiles must not overlap; with
    ``packs_b``, the second operand is copied so that neighbours along a loop are
    contiguous. ``common`` is a common divisor of the extents of the last reduction
    loops of all phases. With ``sums_lanes``, vectors may lie along this loop, see
    `can_sum_lanes`; with ``streams``, operands and output are reused so little that
    memory is the bottleneck.
    """
    found = candidates(phase, unit, accumulates, packs_b, common, sums_lanes)
    costs = [(_cost(phase, tile, unit, accumulates, streams), tile) for tile in found]
    costs = sorted([each for each in costs if each[0] < math.inf], key=lambda c: c[0])
    fit = (tile for _, tile in costs if _registers(phase, tile) < unit.registers)
    return list(itertools.islice(fit, most)) or [tile for _, tile in costs[:1]]


def candidates(phase, unit, accumulates, packs_b, common=1, sums_lanes=True):
    """Yield the tiles that `tiles_of` ranks; some may need too many registers.

    If entries are not contiguous along any loop, vectors have one entry.
    """
    every = range(len(phase.places))
    found = [i for i in every if _is_vector(phase.places[i], packs_b)]
    if sums_lanes and can_sum_lanes(phase, packs_b):
        found.insert(0, -1)
    widths = [n for n in (1, 2, 4) if unit.lanes // n >= min(4, unit.lanes)]
    for along in found or every[-1:]:
        for lanes in [unit.lanes // n for n in widths] if found else [1]:
            yield from _tiles(phase, along, lanes, accumulates, common)


def _loop(phase, along):
    return phase.summed[-1] if along < 0 else phase.places[along]


def can_sum_lanes(phase, packs_b):
    """Return whether entries along the last reduction loop are contiguous in both operands."""
    loop = phase.summed[-1] if phase.summed else None
    return bool(loop and loop.a == 1 and loop.b and (loop.b == 1 or packs_b))


def _is_vector(loop, packs_b):
    """Return whether entries along a loop are contiguous, or equal, in both operands."""
    b = loop.b in (0, 1) or packs_b
    return loop.a in (0, 1) and b and (loop.a, loop.b) != (0, 0)


def _tiles(phase, along, lanes, accumulates, common):
    loop = _loop(phase, along)
    needed = -(-loop.extent // lanes) if lanes > 1 else 1
    most = MOST_ROUNDS if phase.work >= LARGE else 8
    places = [i for i in range(len(phase.places)) if i != along]
    unrolls = [1]
    if along >= 0 and phase.summed and loop.a == 1:
        unrolls = [u for u in range(1, 8) if common % u == 0]
    for vectors in range(1, 1 + (1 if along < 0 else min(needed, MOST_VECTORS))):
        for rounds in _rounds(phase, places, most // vectors, accumulates):
            for unrolled in unrolls:
                yield Tile(along, lanes, vectors, rounds, unrolled)


def _rounds(phase, places, most, accumulates):
    """Yield up to two loops with up to ``most`` iterations together."""

    def extents(place):
        n = phase.places[place].extent
        found = range(2, min(n, most) + 1)
        return [r for r in found if n % r == 0] if accumulates else found

    yield ()
    for i, place in enumerate(places):
        for r in extents(place):
            yield ((place, r),)
            for other in places[i + 1 :]:
                for s in extents(other):
                    if r * s <= most:
                        yield ((place, r), (other, s))


def _cost(phase, tile, unit, accumulates, streams):
    """Return about how many cycles a phase takes; infinite if registers would spill."""
    vectors, numbers, live = _loads(phase, tile)
    sums = tile.vectors * math.prod([rounds for _, rounds in tile.rounds])
    if sums + min(live, vectors + numbers) >= unit.registers:
        return math.inf
    each = 1 / (unit.rate if tile.lanes == unit.lanes else 2)
    products = sums * tile.unrolled
    cycles = max(products * each, vectors * each + numbers / 2, LATENCY * tile.unrolled)
    each = 0.1 + FAR if streams else 0.1
    cycles += 0.9 * tile.unrolled + 0.1 + each * (vectors + numbers)
    ends = sums * (2 if accumulates else 1)
    *outer, last = [each.extent for each in phase.summed] or [1]
    if tile.sums_lanes:
        cycles, ends = 1.15 * cycles, ends + 6 * sums
    elif tile.loop_of(phase).out != 1:
        ends += 2 * sums * tile.lanes
    steps = -(-last // (tile.lanes if tile.sums_lanes else tile.unrolled))
    one = math.prod(outer) * (steps * cycles + 4)
    if phase.batch.is_summed:
        one *= phase.rows.extent
        count = phase.batch.extent
    else:
        count = phase.batch.extent * phase.rows.extent
    for i, place in enumerate(phase.places):
        width = tile.width if i == tile.along else dict(tile.rounds).get(i, 1)
        count *= -(-place.extent // width)
    if streams and not tile.sums_lanes and tile.loop_of(phase).extent > tile.width:
        count *= APART
    if streams and not accumulates and len(tile.rounds) > 1:
        count *= APART
    is_whole = tile.sums_lanes or tile.loop_of(phase).extent % tile.width == 0
    return count * (one + ends + 20) * (1 if is_whole else 1.02)


def _registers(phase, tile):
    """Return the vector registers that accumulators and their operands need at a time."""
    along, uses, sums = tile.loop_of(phase), {}, len(tile.points(phase)) * tile.vectors
    for at, (a, b, _) in enumerate(tile.products(phase)):
        for v in range(tile.vectors):
            n = v * tile.lanes
            for entry in ("a", a + n * along.a), ("b", b + n * along.b):
                uses.setdefault(entry, []).append(at * tile.vectors + v)
    ends = [(each[0], each[-1]) for each in uses.values() if len(each) > 1]
    changes = sorted(
        [(first, 1) for first, _ in ends] + [(last, 2) for _, last in ends]
    )
    most = live = 0
    for _, kind in changes:
        live += 1 if kind == 1 else -1
        most = max(most, live)
    return sums + most


def _loads(phase, tile):
    """Return the vectors and scalars loaded per iteration, and the registers they need."""
    points = [(0, 0)]
    loops = [(phase.places[i], rounds) for i, rounds in tile.rounds]
    if phase.summed:
        loops.append((phase.summed[-1], tile.unrolled))
    for loop, rounds in loops:
        points = [
            (a + r * loop.a, b + r * loop.b) for a, b in points for r in range(rounds)
        ]
    along, vectors, numbers, live = tile.loop_of(phase), 0, 0, 1
    a, b = map(set, zip(*points))
    for entries, step, kept in ((a, along.a, 1), (b, along.b, tile.vectors)):
        if step:
            starts = range(0, tile.width * step, tile.lanes * step)
            vectors += len({n + start for n in entries for start in starts})
            live += kept
        else:
            numbers += len(entries)
    return vectors, numbers, live
