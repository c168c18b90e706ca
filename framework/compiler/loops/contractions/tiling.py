"""Tiles of a contraction: the part of the output that stays in registers.

A tile is a few vectors of contiguous entries along one loop, times some iterations of
other loops. Each iteration of the reduction loops loads a few vectors and scalars, and
reuses each several times. `tiles_of` ranks tiles by a model of the CPU.
"""

import heapq
import itertools
import math
from typing import NamedTuple

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

    ``along`` is the number of one of the `Phase.free`, or -1 for the last reduction
    loop, along which partial sums are then computed. ``rounds`` has pairs of the number
    of a loop and an extent; the last reduction loop is unrolled by ``unrolled``.
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
        points = [(0, 0, 0)]
        for number, extent in self.rounds:
            _, *steps = phase.free[number]
            points = [
                tuple([n + r * step for n, step in zip(point, steps)])
                for point in points
                for r in range(extent)
            ]
        return points

    def products(self, phase):
        """Return the offsets ``(a, b, number of an iteration)`` of the products, in order.

        Products that read the same entries of the first operand are adjacent, so that
        few of the loaded entries occupy a register at a time.
        """
        loop = phase.summed[-1] if phase.summed else phase.batch
        terms = [
            (a + j * loop.a, b + j * loop.b, n)
            for j in range(self.unrolled)
            for n, (_, a, b) in enumerate(self.points(phase))
        ]
        return sorted(terms, key=lambda each: each[0]) if self.unrolled > 1 else terms

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
    costs = Costs(phase, unit, accumulates, streams)
    kinds = [
        (lanes, _tiles(phase, along, lanes, unit.registers, accumulates, common))
        for along, lanes in _vectors(phase, unit, packs_b, sums_lanes)
    ]
    cheapest, others = itertools.tee(costs.ranked(kinds))
    fit = (tile for tile in others if _registers(phase, tile) < unit.registers)
    return list(itertools.islice(fit, most)) or list(itertools.islice(cheapest, 1))


def candidates(phase, unit, accumulates, packs_b, common=1, sums_lanes=True):
    """Yield the tiles that `tiles_of` ranks; some may need too many registers."""
    for along, lanes in _vectors(phase, unit, packs_b, sums_lanes):
        yield from _tiles(phase, along, lanes, unit.registers, accumulates, common)


def _vectors(phase, unit, packs_b, sums_lanes):
    """Return the loops along which vectors can lie: pairs of a number and the lanes.

    If entries are not contiguous along any loop, vectors have one entry.
    """
    every = range(len(phase.free))
    vectors = [i for i in every if _is_vector(phase.free[i], packs_b)]
    if sums_lanes and can_sum_lanes(phase, packs_b):
        vectors.insert(0, -1)
    widths = [n for n in (1, 2, 4) if unit.lanes // n >= min(4, unit.lanes)]
    lanes = [unit.lanes // n for n in widths] if vectors else [1]
    return [*itertools.product(vectors or every[-1:], lanes)]


def _loop(phase, along):
    return phase.summed[-1] if along < 0 else phase.free[along]


def can_sum_lanes(phase, packs_b):
    """Return whether entries along the last reduction loop are contiguous in both operands."""
    loop = phase.summed[-1] if phase.summed else None
    return bool(loop and loop.a == 1 and loop.b and (loop.b == 1 or packs_b))


def _is_vector(loop, packs_b):
    """Return whether entries along a loop are contiguous, or equal, in both operands."""
    b = loop.b in (0, 1) or packs_b
    return loop.a in (0, 1) and b and (loop.a, loop.b) != (0, 0)


def _tiles(phase, along, lanes, registers, accumulates, common):
    loop = _loop(phase, along)
    needed = -(-loop.extent // lanes) if lanes > 1 else 1
    most = MOST_ROUNDS if phase.work >= LARGE else 8
    numbers = [i for i in range(len(phase.free)) if i != along]
    unrolls = [1]
    if along >= 0 and phase.summed and loop.a == 1:
        unrolls = [u for u in range(1, 8) if common % u == 0]
    for vectors in range(1, 1 + (1 if along < 0 else min(needed, MOST_VECTORS))):
        operands = 1 + (vectors if loop.b else bool(loop.a))
        room = registers - 1 - operands  # for sums
        for rounds in _rounds(phase, numbers, min(most, room) // vectors, accumulates):
            for unrolled in unrolls:
                yield Tile(along, lanes, vectors, rounds, unrolled)


def _rounds(phase, numbers, most, accumulates):
    """Yield up to two loops with up to ``most`` iterations together."""

    def extents(number):
        n = phase.free[number].extent
        counts = range(2, min(n, most) + 1)
        return [r for r in counts if n % r == 0] if accumulates else counts

    yield ()
    for i, number in enumerate(numbers):
        for r in extents(number):
            yield ((number, r),)
            for other in numbers[i + 1 :]:
                for s in extents(other):
                    if r * s <= most:
                        yield ((number, r), (other, s))


class Costs:
    """The costs of the tiles of a phase: about how many cycles the phase takes."""

    def __init__(self, phase, unit, accumulates, streams):
        self.phase, self.unit = phase, unit
        self.accumulates, self.streams = accumulates, streams
        *outer, self.last = [each.extent for each in phase.summed] or [1]
        self.outer, self.count = math.prod(outer), phase.batch.extent
        self.sums_rows = phase.batch.is_summed
        if not self.sums_rows:
            self.count *= phase.rows.extent
        self.extents = [loop.extent for loop in phase.free]

    def ranked(self, kinds):
        """Yield tiles, cheapest first, without those for which registers would spill.

        ``kinds`` are pairs of a number of lanes and an iterable of its tiles. They are
        visited, and the loads of a tile counted, only if a lower bound of the cost is
        below all other costs.
        """
        waiting = [(self.least(n), 0, (i,), item) for i, (n, item) in enumerate(kinds)]
        heapq.heapify(waiting)
        while waiting:
            cost, steps, number, item = heapq.heappop(waiting)
            if steps == 2:
                yield item
            elif steps == 1:
                cost = self.of(item, _loads(self.phase, item))
                if cost < math.inf:
                    heapq.heappush(waiting, (cost, 2, number, item))
            else:
                for i, tile in enumerate(item):
                    heapq.heappush(waiting, (self.of(tile), 1, (*number, i), tile))

    def least(self, lanes):
        """Return a lower bound of the cost of tiles with ``lanes``."""
        rate = self.unit.rate if lanes == self.unit.lanes else 2
        return 0.99 * self.phase.work / (lanes * rate)  # less, as costs are rounded

    def of(self, tile, loads=(0, 0, 0)):
        """Return the cost of a tile, infinite if registers would spill.

        ``loads`` are the `_loads`; without these, the result is a lower bound.
        """
        number, lanes, vectors, rounds, unrolled = tile
        extents, width, sums_lanes = dict(rounds), lanes * vectors, number < 0
        along, sums = tile.loop_of(self.phase), vectors * math.prod(extents.values())
        loaded, numbers, live = loads
        if sums + min(live, loaded + numbers) >= self.unit.registers:
            return math.inf
        each = 1 / (self.unit.rate if lanes == self.unit.lanes else 2)
        products = sums * unrolled
        cycles = max(products * each, loaded * each + numbers / 2, LATENCY * unrolled)
        each = 0.1 + FAR if self.streams else 0.1
        cycles += 0.9 * unrolled + 0.1 + each * (loaded + numbers)
        ends = sums * (2 if self.accumulates else 1)
        if sums_lanes:
            cycles, ends = 1.15 * cycles, ends + 6 * sums
        elif along.out != 1:
            ends += 2 * sums * lanes
        steps = -(-self.last // (lanes if sums_lanes else unrolled))
        one = self.outer * (steps * cycles + 4)
        if self.sums_rows:
            one *= self.phase.rows.extent
        count, extents[number] = self.count, width
        for i, extent in enumerate(self.extents):
            count *= -(-extent // extents.get(i, 1))
        if self.streams and not sums_lanes and along.extent > width:
            count *= APART
        if self.streams and not self.accumulates and len(rounds) > 1:
            count *= APART
        is_whole = sums_lanes or along.extent % width == 0
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
    loops = [(phase.free[i], rounds) for i, rounds in tile.rounds]
    if phase.summed:
        loops.append((phase.summed[-1], tile.unrolled))
    along, vectors, numbers, live = tile.loop_of(phase), 0, 0, 1
    a, b = [(each.a, n) for each, n in loops], [(each.b, n) for each, n in loops]
    for steps, step, kept in ((a, along.a, 1), (b, along.b, tile.vectors)):
        if step:
            vectors += _entries_at([*steps, (tile.lanes * step, tile.vectors)])
            live += kept
        else:
            numbers += _entries_at(steps)
    return vectors, numbers, live


def _entries_at(steps):
    """Return the number of entries that loops with these steps and extents reach."""
    entries = {0}
    for step, extent in steps:
        if step:
            entries = {n + i * step for n in entries for i in range(extent)}
    return len(entries)
