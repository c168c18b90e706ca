"""Contractions as loops: each entry of the output once, and the sums of the index maps."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapewright.compiler.loops.accesses import row_major
from tapewright.compiler.loops.contractions.contraction import contraction_of
from tapewright.compiler.loops.contractions.contraction_schedule import schedule_of
from tapewright.compiler.loops.contractions.tiling import (
    VectorUnit,
    candidates,
    tiles_of,
)
from tapewright.compiler.program.index_maps import (
    Affine,
    IndexMaps,
    convolution_maps,
    product_maps,
)
from tapewright.compiler.program.limits import DEFAULTS
from tapewright.ops.convolution.windows import positions

UNITS = [VectorUnit(16, 32, 1), VectorUnit(8, 16), VectorUnit(4, 32)]


@st.composite
def convolutions(draw):
    """Maps and shapes of a convolution or of one of its gradients, along two or three axes."""

    def several(low, high):
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    rank = draw(st.integers(2, 3))
    groups, depth, each = [draw(st.integers(1, 3)) for _ in range(3)]
    window, strides, dilations = several(1, 3), several(1, 3), several(1, 2)
    reaches = [(w - 1) * d + 1 for w, d in zip(window, dilations)]
    sizes = [r + n for r, n in zip(reaches, several(0, 4))]
    padding = draw(st.sampled_from(["VALID", "SAME", ((2, 1),) * rank]))
    margins, counts = positions(sizes, window, strides, padding, dilations)
    images = (draw(st.integers(1, 3)), *sizes, groups * depth)
    filters = (*window, depth, groups * each)
    places = (images[0], *counts, groups * each)
    befores = [before for before, _ in margins]
    loops, *maps = convolution_maps(
        images, window, counts, groups * each, strides, befores, dilations, groups
    )
    shapes = images, filters, places
    order = draw(st.sampled_from([(0, 1, 2), (2, 1, 0), (0, 2, 1)]))
    a, b, out = [maps[i] for i in order]
    return IndexMaps(tuple(loops), (a, b), out), *[shapes[i] for i in order]


def numbers(shape):
    return np.random.default_rng(0).integers(-4, 5, shape).astype(float)


def computed(found, a, b, shape):
    """A contraction by its phases: the output, and how often each entry is written."""
    if found.is_padded:
        widths = [(max(0, -r.start), max(0, r.stop - r.extent)) for r in found.reach]
        slices = tuple(
            [slice(max(0, r.start), max(0, r.start) + r.size) for r in found.reach]
        )
        a = np.ascontiguousarray(np.pad(a, widths)[slices])
    out, written = np.zeros(math.prod(shape)), np.zeros(math.prod(shape), int)
    for phase in found.phases:
        loops = (phase.batch, phase.rows, *phase.free, *phase.summed)
        kept = [loop for loop in loops if not loop.is_summed]
        for at in itertools.product(*[range(loop.extent) for loop in kept]):
            written[phase.offsets[0] + _moved(kept, at, 0)] += 1
        for at in itertools.product(*[range(loop.extent) for loop in loops]):
            o, i, j = [n + _moved(loops, at, k) for k, n in enumerate(phase.offsets)]
            assert i >= 0 and j >= 0
            out[o] += a.reshape(-1)[i] * b.reshape(-1)[j]
    return out.reshape(shape), written.reshape(shape)


def _moved(loops, at, which):
    return sum([i * loop[1 + which] for i, loop in zip(at, loops)])


@settings(max_examples=60, deadline=None)
@given(convolutions())
def test_phases_write_each_entry_once_with_the_sum_of_the_maps(case):
    maps, a, b, out = case
    found = contraction_of(maps, a, b, out)
    if found is None:  # taps between which windows have gaps of several entries
        pytest.fail(f"no contraction of {a} and {b}")
    x, y = numbers(a), numbers(b)
    made, written = computed(found, x, y, out)
    assert (written == 1).all()
    np.testing.assert_array_equal(made, maps.contracted(x, y, out))


@settings(max_examples=60, deadline=None)
@given(convolutions())
def test_a_band_of_rows_has_all_that_they_read(case):
    maps, a, b, out = case
    found = contraction_of(maps, a, b, out)
    strides = row_major(tuple([r.size for r in found.reach]) if found.is_padded else a)
    for phase in found.phases:
        others = (*phase.free, *phase.summed)
        if not all([loop.extent for loop in phase.loops]):
            continue
        ends = [(loop.extent - 1) * loop.a for loop in others]
        low = phase.offsets[1] + sum([e for e in ends if e < 0])
        high = phase.offsets[1] + sum([e for e in ends if e > 0])
        start = 0 if found.is_padded else found.reach[1].start * strides[1]
        assert low - start >= 0
        assert high - start < found.row_span * strides[1]
        assert phase.rows.a == found.row_step * strides[1] or phase.rows.extent == 1


def test_loops_that_lie_behind_each_other_are_one():
    maps = product_maps((2, 3, 4), (4, 5))
    found = contraction_of(maps, (2, 3, 4), (4, 5), (2, 3, 5))
    (phase,) = found.phases
    assert [loop.extent for loop in phase.loops] == [2, 3, 5, 4]
    assert not found.is_padded


@settings(max_examples=200, deadline=None)
@given(convolutions(), st.sampled_from(UNITS))
def test_schedules_have_all_bands_and_tiles_that_fit(case, unit):
    maps, a, b, out = case
    found = schedule_of(maps, a, b, out, 4, unit, DEFAULTS)
    contraction = contraction_of(maps, a, b, out)
    batch = contraction.phases[0].batch.extent
    rows = max([phase.rows.extent for phase in contraction.phases])
    assert found.images * found.image_bands == batch
    assert (found.row_bands - 1) * found.rows < rows <= found.row_bands * found.rows
    for phase in found.phases:
        along, last = found.tile.loop_of(phase), (*phase.summed, None)[-1]
        if found.tile.sums_lanes:
            assert (along.a, along.b) == (1, 1)
        else:
            assert {along.a, along.b} <= {0, 1} or found.tile.lanes == 1
        assert last is None or last.extent % found.tile.unrolled == 0
        for place, rounds in found.tile.rounds:
            extent = phase.free[place].extent
            assert rounds <= extent
            assert not (found.accumulates or found.hoisted) or extent % rounds == 0
    assert schedule_of(maps, a, b, out, 4, unit, DEFAULTS) == found


def test_bands_that_are_summed_over_have_both_operands_in_the_cache():
    a, b, out = (16, 56, 56, 64), (16, 56, 56, 256), (1, 1, 64, 256)
    n, y, x, c, d = [Affine(((i, 1),)) for i in range(5)]
    zero = Affine(())
    maps = IndexMaps(
        (16, 56, 56, 64, 256), ((n, y, x, c), (n, y, x, d)), (zero, zero, c, d)
    )
    found = schedule_of(maps, a, b, out, 4, UNITS[0], DEFAULTS)
    assert found.accumulates and found.rows < 56
    band = 2 * DEFAULTS.band_bytes
    assert found.rows * 56 * (64 + 256) * 4 <= band < 2 * found.rows * 56 * 320 * 4


@settings(max_examples=100, deadline=None)
@given(convolutions(), st.sampled_from(UNITS))
def test_products_of_a_tile_are_those_of_its_rounds(case, unit):
    maps, a, b, out = case
    found = schedule_of(maps, a, b, out, 4, unit, DEFAULTS)
    for phase in found.phases:
        points, steps = found.tile.points(phase), found.tile.products(phase)
        for n, (_, at_a, at_b) in enumerate(points):
            own = [(x - at_a, y - at_b) for x, y, number in steps if number == n]
            assert len(own) == found.tile.unrolled
            assert own == sorted(own)
        assert len(steps) == len(points) * found.tile.unrolled


def test_tiles_take_what_registers_hold():
    maps = product_maps((4, 60, 256), (256, 64))
    (phase,) = contraction_of(maps, (4, 60, 256), (256, 64), (4, 60, 64)).phases
    phase = phase._replace(free=(phase.rows, *phase.free), rows=phase.batch)
    for unit in UNITS:
        tile = tiles_of(phase, unit, False, False)[0]
        sums = tile.vectors * math.prod([n for _, n in tile.rounds])
        assert unit.registers / 2 <= sums < unit.registers
        assert tile in list(candidates(phase, unit, False, False))
