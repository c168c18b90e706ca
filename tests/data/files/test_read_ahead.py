"""Windows of rows: every order of numbers, read in large pieces and never twice in a row."""

import numpy as np
import pytest

from tapewright.data.files.read_ahead import read_batches, row_bytes, whole_chunks


class Stored:
    """An array that notes what is read of it."""

    def __init__(self, rows, width=3, chunk_rows=None):
        self.values = np.arange(rows * width, dtype="f4").reshape(rows, width)
        self.shape, self.dtype = self.values.shape, self.values.dtype
        self.chunk_rows, self.reads = chunk_rows, []

    def read_rows(self, out, start):
        self.reads.append((start, len(out)))
        out[...] = self.values[start : start + len(out)]
        assert start + len(out) <= len(self.values)


def orders():
    rng = np.random.default_rng(0)
    return {
        "sorted": np.arange(100),
        "reversed": np.arange(100)[::-1],
        "random": rng.permutation(100),
        "with repetitions": rng.integers(0, 100, 300),
        "blocks": rng.permutation(10).repeat(10) * 10
        + np.tile(rng.permutation(10), 10),
        "one": np.array([7]),
        "none": np.arange(0),
    }


@pytest.mark.parametrize("name", orders())
@pytest.mark.parametrize("size", [1, 7, 60])
@pytest.mark.parametrize("window, block", [(1, 1), (10, 5), (25, 10), (1000, 10)])
@pytest.mark.parametrize("chunk_rows", [None, 1, 8])
def test_batches_are_those_of_the_array(name, size, window, block, chunk_rows):
    order, arrays = orders()[name], [Stored(100, 3, chunk_rows), Stored(100, 1)]
    batches = [order[i : i + size] for i in range(0, len(order), size)]
    found = list(read_batches(arrays, iter(batches), window, block))
    assert len(found) == len(batches)
    for columns, numbers in zip(found, batches, strict=True):
        for column, array in zip(columns, arrays, strict=True):
            np.testing.assert_array_equal(column, array.values[numbers], strict=True)


def test_windows_end_where_no_block_is_read_twice():
    array = Stored(100)
    list(read_batches([array], np.split(orders()["blocks"], 20), 25, 10))
    assert sorted(array.reads) == [(first, 10) for first in range(0, 100, 10)]


def test_the_next_window_is_read_while_this_one_is_given_out():
    array = Stored(100)
    batches = read_batches([array], np.split(np.arange(100), 20), 20, 5)
    read = []
    for _ in batches:
        read.append(sum(count for _, count in array.reads))
    assert read[:5] == [25, 30, 35, 40, 45]


def test_neighbours_are_read_over_small_gaps_and_alone_beside_large_ones():
    narrow, wide = Stored(100, 3), Stored(100, 1 << 15)  # 128 kB a row
    list(read_batches([narrow, wide], [np.array([3, 9, 4, 30])], 100, 100))
    assert narrow.reads == [(3, 28)]
    assert wide.reads == [(3, 2), (9, 1), (30, 1)]


def test_a_chunk_is_read_in_one_piece():
    array = Stored(100, 1 << 15, chunk_rows=50)
    list(read_batches([array], [np.array([3, 30, 70])], 100, 10))
    assert array.reads == [(3, 28), (70, 1)]


def test_sizes_of_rows_and_chunks():
    assert row_bytes(Stored(5)) == 12 and row_bytes(Stored(5, 0)) == 1
    assert [whole_chunks(Stored(9, 3, n), 25) for n in (None, 1, 8, 40)] == [
        25,
        25,
        24,
        40,
    ]
    assert whole_chunks(Stored(9), 0) == 1
