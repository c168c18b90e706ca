"""Contractions as loops with fixed strides through memory.

The index maps of a contraction address an entry by its index along each axis, and may
point outside of an array. Here each loop has one stride in each array, and nothing
points outside: where needed, an operand is read from a copy padded with zeros.
"""

import functools
import math
from typing import NamedTuple

from ...program.index_maps import Affine
from ..accesses import row_major

MOST_PHASES = 27
# Rows that are a multiple of so many entries apart share few lines of a cache; a copy keeps
# them further apart.
CLASHING, SPREAD = 256, 16


class ContractionLoop(NamedTuple):
    """A loop: its extent, and its strides in the output and in the operands.

    A loop with stride 0 in the output is a reduction.
    """

    extent: int
    out: int
    a: int
    b: int

    @property
    def is_summed(self):
        return self.out == 0


class Reach(NamedTuple):
    """The entries that a contraction reads along an axis of its first operand.

    These are the entries from ``start`` up to but excluding ``stop``, of which the
    first ``extent`` exist. Iteration ``i`` of the loop ``rows`` reads the part that
    starts at ``step * i + start``.
    """

    start: int
    stop: int
    extent: int

    @property
    def size(self):
        return self.stop - self.start

    @property
    def is_inside(self):
        return self.start >= 0 and self.stop <= self.extent


class Phase(NamedTuple):
    """A part of the output: ``out[...] = sum(a[...] * b[...])`` over all its loops.

    ``batch`` and ``rows`` run along the first two axes of the first operand; ``free``
    are the other loops over the output, ``summed`` the reduction loops, outermost
    first. ``offsets`` are the first entries in the output and in the operands.
    """

    batch: ContractionLoop
    rows: ContractionLoop
    free: tuple
    summed: tuple
    offsets: tuple

    @property
    def loops(self):
        return (self.batch, self.rows, *self.free, *self.summed)

    @property
    def work(self):
        return math.prod([each.extent for each in self.loops])


class Contraction(NamedTuple):
    """Phases that together write each entry of the output once, and the entries they read.

    ``reach`` has a `Reach` for each axis of the first operand, whose entries are laid
    out as one array in C order. Along its second axis, ``row_step`` is the number of
    entries from one of the ``rows`` to the next, and ``row_span`` the number that one
    row needs.
    """

    phases: tuple
    reach: tuple
    row_step: int
    row_span: int

    @property
    def is_padded(self):
        return not all([each.is_inside for each in self.reach])

    @property
    def work(self):
        return sum([phase.work for phase in self.phases])


@functools.lru_cache(256)
def contraction_of(maps, a, b, out):
    """Return the `Contraction` of index maps for arrays of these shapes, or None.

    Each axis of the second operand, and the first axis of the first one, must be
    indexed by a single loop; the second operand is read as it is.
    """
    parts = _phases(maps, out)
    if not 0 < len(parts) <= MOST_PHASES:
        return None
    maps_a = [(phase[0], phase[1][0]) for phase in parts]
    reach = [_reach(maps_a, axis, n) for axis, n in enumerate(a)]
    if reach[-1].size % CLASHING == 0 and not all([each.is_inside for each in reach]):
        reach[-1] = reach[-1]._replace(stop=reach[-1].stop + SPREAD)
    reach = tuple(reach)
    for loops, (_, of_b, of_out) in parts:
        ranges = [*zip(of_b, b), *zip(of_out, out)]
        if not all([_is_inside(loops, each, n) for each, n in ranges]):
            return None
    is_padded = not all([each.is_inside for each in reach])
    shape = tuple([each.size for each in reach]) if is_padded else a
    made = [
        _phase(*each, (shape, b, out), reach if is_padded else None) for each in parts
    ]
    if None in made:
        return None
    made = _simplify(made)
    span, step = _rows(maps_a)
    return Contraction(tuple(made), reach, step, span)


# --------------------------------------------------------------------------- the phases


def _phases(maps, out):
    """Return ``(loops, (a, b, out))`` where the digits of each output axis are separate.

    An axis with index ``s * p + d * t + c``, as in the gradient of a strided
    convolution, is split into its residues modulo ``s``. The taps that contribute to a
    residue are ``t0 + m * t1``; for entry ``s * q + r`` they meet ``p = q + q0 - m *
    d1``.
    """
    parts = [(maps.loops, (*maps.operands, maps.output))]
    for axis, n in enumerate(out):
        after = []
        for loops, each in parts:
            index = each[2][axis]
            if _is_digits(loops, index, n):
                after.append((loops, each))
                continue
            if len(index.terms) != 2:
                return []
            (p, s), (t, d) = index.terms
            if s < 1 or s > MOST_PHASES:
                return []
            for r in range(min(s, n)):
                after.append(_residue(loops, each, axis, r, n))
        parts = after
    return parts


def _is_digits(loops, index, n):
    """Return whether an index takes each value below ``n`` once."""
    size = 1
    for loop, factor in sorted(index.terms, key=lambda term: term[1]):
        if loops[loop] > 1:
            if factor != size:
                return False
            size *= loops[loop]
    return index.offset == 0 and size == n


def _residue(loops, maps, axis, r, n):
    """The loops for the entries ``s * q + r`` of an axis of the output."""
    (p, s), (t, d) = maps[2][axis].terms
    offset = maps[2][axis].offset
    taps = [i for i in range(loops[t]) if (d * i + offset - r) % s == 0]
    first = taps[0] if taps else 0
    step = taps[1] - first if len(taps) > 1 else 1
    shift = (r - offset - d * first) // s
    known = {
        p: Affine(((p, 1), (t, -d * step // s)), shift),
        t: Affine(((t, step),), first),
    }
    loops = list(loops)
    loops[p], loops[t] = -(-(n - r) // s), len(taps)
    a, b, out = [[_substitute(index, known) for index in each] for each in maps]
    out[axis] = Affine(((p, s),), r)
    return tuple(loops), (tuple(a), tuple(b), tuple(out))


def _substitute(index, known):
    """Replace some loops of an index by other indices."""
    terms, offset = {}, index.offset
    for loop, factor in index.terms:
        own = known.get(loop, Affine(((loop, 1),)))
        offset += factor * own.offset
        for other, each in own.terms:
            terms[other] = terms.get(other, 0) + factor * each
    return Affine(tuple([(n, f) for n, f in terms.items() if f]), offset)


# ---------------------------------------------------------------- what the loops read


def _range(loops, index):
    """Return the least and the greatest value of an index; None if it has no values."""
    ends = [(factor * (loops[n] - 1)) for n, factor in index.terms]
    if any([loops[n] < 1 for n, _ in index.terms]):
        return None
    low = index.offset + sum([e for e in ends if e < 0])
    return low, index.offset + sum([e for e in ends if e > 0])


def _is_inside(loops, index, n):
    bounds = _range(loops, index)
    return bounds is None or (bounds[0] >= 0 and bounds[1] < n)


def _reach(maps, axis, n):
    ranges = [_range(loops, each[axis]) for loops, each in maps]
    ranges = [each for each in ranges if each is not None] or [(0, n - 1)]
    return Reach(
        min([low for low, _ in ranges]), max([high for _, high in ranges]) + 1, n
    )


def _rows(maps):
    """``(span, step)`` along the second axis of the first operand."""
    lows, highs, step = [], [], 1
    for loops, each in maps:
        still = (*loops[:1], min(loops[1], 1), *loops[2:])
        bounds = _range(still, each[1])
        if bounds:
            lows.append(bounds[0])
            highs.append(bounds[1])
        step = dict(each[1].terms).get(1, step)
    return max(highs, default=0) - min(lows, default=0) + 1, step


# ---------------------------------------------------------------------- steps in memory


def _phase(loops, maps, shapes, reach):
    """Return the `Phase` of loops whose first two are batch and rows, or None."""
    steps, offsets = [], []
    for index, shape in zip((maps[2], maps[0], maps[1]), (shapes[2], *shapes[:2])):
        strides = row_major(shape)
        own, offset = [0] * len(loops), 0
        for axis, (each, stride) in enumerate(zip(index, strides, strict=True)):
            offset += each.offset * stride
            if reach and index is maps[0]:
                offset -= reach[axis].start * stride
            for n, factor in each.terms:
                own[n] += factor * stride
        steps.append(own)
        offsets.append(offset)
    all_loops = [ContractionLoop(*each) for each in zip(loops, *steps)]
    batch, rows, *rest = all_loops
    if maps[0][0].terms != ((0, 1),) or batch.is_summed != rows.is_summed:
        return None
    free = [each for each in rest if not each.is_summed]
    summed = []
    for each in rest:
        if each.is_summed:
            if each.a < 0:
                back = each.extent - 1
                offsets[1] += back * each.a
                offsets[2] += back * each.b
                each = ContractionLoop(each.extent, 0, -each.a, -each.b)
            summed.append(each)
    return Phase(batch, rows, tuple(free), tuple(summed), tuple(offsets))


def _simplify(phases):
    """Drop the loops of extent 1 from phases, and merge pairs of loops that form one."""
    kept = [
        i
        for i in range(len(phases[0].free))
        if any([phase.free[i].extent != 1 for phase in phases])
    ] or [len(phases[0].free) - 1]
    made = []
    for phase in phases:
        free = [phase.free[i] for i in kept]
        if len(phases) == 1:
            free = _merge_nested(sorted(free, key=lambda loop: -abs(loop.out)))
        summed = [each for each in phase.summed if each.extent != 1]
        summed = _merge_nested(sorted(summed, key=lambda loop: (-loop.a, -abs(loop.b))))
        made.append(phase._replace(free=tuple(free), summed=tuple(summed)))
    return made


def _merge_nested(loops):
    made = []
    for loop in loops:
        if made:
            outer = made[-1]
            steps = [(o, i * loop.extent) for o, i in zip(outer[1:], loop[1:])]
            if all([o == i for o, i in steps]):
                made[-1] = ContractionLoop(outer.extent * loop.extent, *loop[1:])
                continue
        made.append(loop)
    return made
