"""Rows gathered by machine code are those of NumPy, and nothing else is touched."""

import numpy as np
import pytest

import tapewright as tw

pytest.importorskip("llvmlite")

from tapewright.compiler.targets.native.kernels.rows import gather_rows  # noqa: E402

MARGIN = 7


def gathered(source, rows):
    """The rows, and what `gather` returned; looks at the bytes around the output, too."""
    room = np.full((len(rows) + 2 * MARGIN, source.shape[1]), 99, np.uint8)
    answer = gather_rows()(room[MARGIN:-MARGIN], source, rows)
    assert (room[:MARGIN] == 99).all() and (room[-MARGIN:] == 99).all()
    return room[MARGIN:-MARGIN], answer


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("width", [1, 63, 64, 3136, 200_000])
def test_rows_are_those_of_numpy_for_every_number_of_threads(width, threads):
    random = np.random.default_rng(width)
    source = random.integers(0, 255, (50, width), np.uint8)
    try:
        tw.config.set_threads(threads)
        for count in (1, 2, 3, 41, 128, 131):
            rows = random.integers(0, 50, count)
            found, answer = gathered(source, rows)
            assert answer is None
            np.testing.assert_array_equal(found, source[rows])
    finally:
        tw.config.set_threads(None)


@pytest.mark.parametrize("wrong", [-1, 5, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("place", [0, 8, 16])
def test_rows_that_are_not_there_are_refused(wrong, place):
    rows = np.zeros(17, np.int64)
    rows[place] = wrong
    found, answer = gathered(np.ones((5, 100), np.uint8), rows)
    assert answer is True and (found == 99).all()


@pytest.mark.parametrize(
    "change",
    [
        dict(source=np.ones((5, 7), np.uint8)),
        dict(source=np.ones((5, 8), np.int8)),
        dict(source=np.ones((5, 16), np.uint8)[:, ::2]),
        dict(source=np.ones(8, np.uint8)),
        dict(rows=np.zeros(2, np.int64)),
        dict(rows=np.zeros(3, np.int32)),
        dict(rows=np.zeros(6, np.int64)[::2]),
        dict(rows=[0, 0, 0]),
        dict(out=np.frombuffer(bytes(24), np.uint8).reshape(3, 8)),
    ],
)
def test_other_arrays_are_refused(change):
    arrays = dict(
        out=np.zeros((3, 8), np.uint8),
        source=np.ones((5, 8), np.uint8),
        rows=np.zeros(3, np.int64),
    )
    assert gather_rows()(*arrays.values()) is None
    arrays = arrays | change | {"out": change.get("out", np.zeros((3, 8), np.uint8))}
    assert gather_rows()(*arrays.values()) is True
    assert not arrays["out"].any()


def test_other_numbers_of_arguments_are_refused():
    source = np.ones((5, 8), np.uint8)
    assert gather_rows()(source, source) is True
