"""Compare the search for tiles with an exhaustive one."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from tapewright.compiler.loops.contractions.contraction import ContractionLoop, Phase
from tapewright.compiler.loops.contractions.tiling import (
    Costs,
    VectorUnit,
    candidates,
    tiles_of,
)

UNITS = [VectorUnit(8, 16), VectorUnit(16, 32), VectorUnit(4, 16), VectorUnit(8, 16, 1)]
extents = st.integers(1, 24)
steps = st.sampled_from([0, 0, 1, 1, 2, 3, 16, 64, 65, -1, -64])


@st.composite
def phases(draw):
    is_summed = draw(st.booleans())
    batch = ContractionLoop(draw(extents), 0 if is_summed else 4096, 4096, 512)
    rows = ContractionLoop(draw(extents), 0 if is_summed else 64, draw(steps), 0)

    def loops(most, out):
        made = st.builds(ContractionLoop, extents, out, steps, steps)
        return tuple(draw(st.lists(made, max_size=most)))

    places = loops(2, st.sampled_from([2, 64]))
    contiguous = st.builds(ContractionLoop, extents, st.just(1), steps, steps)
    return Phase(
        batch, rows, (*places, draw(contiguous)), loops(2, st.just(0)), (0, 0, 0)
    )


def loads_of(phase, tile):
    """Count loads one by one."""
    along, found = tile.loop_of(phase), {"vectors": set(), "numbers": set()}
    for a, b, _ in tile.products(phase):
        for v in range(tile.vectors):
            for name, entry, step in ("a", a, along.a), ("b", b, along.b):
                at = entry + v * tile.lanes * step
                found["vectors" if step else "numbers"].add((name, at))
    live = 1 + bool(along.a) + tile.vectors * bool(along.b)
    return len(found["vectors"]), len(found["numbers"]), live


def registers_of(phase, tile):
    """Count the registers at each product, for sums and for entries that are read again."""
    along, reads = tile.loop_of(phase), []
    for a, b, _ in tile.products(phase):
        for v in range(tile.vectors):
            n = v * tile.lanes
            reads.append({("a", a + n * along.a), ("b", b + n * along.b)})
    uses = {}
    for i, entries in enumerate(reads):
        for each in entries:
            uses.setdefault(each, []).append(i)
    again = [each for each in uses.values() if len(each) > 1]
    live = [sum([u[0] <= i <= u[-1] for u in again]) for i in range(len(reads))]
    return tile.vectors * len(tile.points(phase)) + max(live, default=0)


@settings(max_examples=60, deadline=None)
@given(
    phases(), st.sampled_from(UNITS), *[st.booleans()] * 3, st.sampled_from([1, 4, 6])
)
def test_the_tiles_are_those_of_an_exhaustive_search(
    phase, unit, accumulates, packs_b, streams, common
):
    kinds = accumulates, packs_b, common
    many = unit._replace(registers=1 << 10)
    costs, every = Costs(phase, unit, accumulates, streams), []
    for tile in candidates(phase, many, *kinds):
        cost = costs.of(tile, loads_of(phase, tile))
        assert costs.of(tile) <= cost
        if cost < math.inf:
            every.append((cost, tile))
    assert {tile for _, tile in every} <= set(candidates(phase, unit, *kinds))
    every = [tile for _, tile in sorted(every, key=lambda each: each[0])]
    found = tiles_of(phase, unit, *kinds, streams=streams, most=3)
    wanted = []
    for tile in every:
        if len(wanted) < 3 and registers_of(phase, tile) < unit.registers:
            wanted.append(tile)
    assert found == (wanted or every[:1])
