"""Sizes of teams, blocks and parts, for arrays of all sizes."""

import itertools

import pytest

from tapewright.compiler.loops.threads.thread_geometry import (
    MANY_THREADS,
    Geometry,
    columns,
    parts_of,
    rows,
)

COUNTS = [1, 2, 3, 10, 31, 32, 33, 255, 1000, 1024, 5000, 1 << 20, (1 << 31) + 1]
EXTENTS = [1, 2, 8, 9, 16, 31, 32, 33, 100, 1024, 1025, 5000, 1 << 20, (1 << 31) + 1]
SIZES = list(itertools.product(COUNTS, EXTENTS))


@pytest.mark.parametrize("shape", [rows, columns])
def test_blocks_fit_a_gpu_and_teams_fit_warps(shape):
    for count, extent in SIZES:
        team, lanes, is_row, blocks = geometry = shape(count, extent)
        assert 1 <= team * lanes <= 512 and 1 <= blocks < 1 << 31
        assert geometry.block == ((team, lanes, 1) if is_row else (lanes, team, 1))
        if is_row:  # shuffles need whole warps
            assert team & (team - 1) == 0 and team * lanes % 32 == 0
        assert team < 2 * max(extent, 4)  # most threads have something to add


@pytest.mark.parametrize("shape", [rows, columns])
def test_no_part_is_empty(shape):
    for count, extent in SIZES:
        parts = parts_of(shape(count, extent), extent)
        chunk = -(-extent // parts)
        assert chunk * (parts - 1) < extent <= chunk * parts


def test_rows_lie_along_neighbouring_threads_and_columns_beside_each_other():
    assert rows(5000, 1000) == Geometry(32, 8, True, 625)
    assert columns(5000, 1000) == Geometry(8, 32, False, 157)


def test_one_thread_computes_a_short_row_or_an_entry():
    assert rows(5000, 8) == Geometry(1, 256, False, 20)
    assert rows(5000, 1) == Geometry(1, 256, False, 20)


def test_only_long_sums_of_few_threads_are_cut_into_parts():
    assert parts_of(rows(1, 1000), 1000) == 1
    assert parts_of(rows(1 << 20, 1 << 20), 1 << 20) == 1
    geometry = rows(1, 1 << 24)
    threads = geometry.blocks * geometry.lanes * geometry.team
    assert parts_of(geometry, 1 << 24) * threads == MANY_THREADS
