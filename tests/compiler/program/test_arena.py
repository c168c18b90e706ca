"""Places in the arena: nothing overlaps that is needed at once, and little is wasted."""

import numpy as np
import pytest

from tapewright.compiler.program.arena import ALIGNMENT, lay_out


def random_spans(seed, count):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 60, count)
    last = first + rng.integers(0, 20, count)
    nbytes = 2 ** rng.integers(2, 18, count) + rng.integers(0, 9, count)
    return list(zip(first.tolist(), last.tolist(), nbytes.tolist(), strict=True))


def most_at_once(spans):
    sizes = [-(-n // ALIGNMENT) * ALIGNMENT for _, _, n in spans]
    return max(
        sum(size for (first, last, _), size in zip(spans, sizes, strict=True)
            if first <= moment <= last)
        for moment in range(80)
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_spans_that_are_needed_at_once_do_not_overlap(seed):
    spans = random_spans(seed, 60)
    starts, size = lay_out(spans)
    for i, (first, last, nbytes) in enumerate(spans):
        assert starts[i] % ALIGNMENT == 0 and starts[i] + nbytes <= size
        for j, (begins, ends, other) in enumerate(spans[:i]):
            if begins <= last and first <= ends:
                apart = (
                    starts[i] + nbytes <= starts[j] or starts[j] + other <= starts[i]
                )
                assert apart


@pytest.mark.parametrize("seed", range(5))
def test_little_memory_is_wasted(seed):
    spans = random_spans(seed, 60)
    assert lay_out(spans)[1] <= 1.15 * most_at_once(spans)


def test_no_spans_need_no_memory():
    assert lay_out([]) == ([], 0)
