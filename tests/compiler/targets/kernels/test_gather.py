"""Gather and scatter on each target: the numbers of NumPy's kernels."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.limits import use_limits
from tapewright.ops.array.gather import gather_p, scatter_rows
from tapewright.ops.array.segment import segment_rows, unsorted_segment_sum


def numbers(*shape, dtype=np.float32):
    return (np.random.default_rng(0).standard_normal(shape) * 10).astype(dtype)


def picks(size, *shape, dtype=np.int64):
    return np.random.default_rng(1).integers(0, size, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i4", "?", "c8"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rows_are_gathered(check, target, dtype, axis):
    # gcc compiles each, which takes long.
    for kind in ["i4", "i8", "u1"] if target == "native" else ["i4"]:
        arrays = [numbers(5, 7, 9, dtype=dtype), picks(5, 3, 4, dtype=kind)]
        check(gather_p, arrays, {"axis": axis})


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint32, np.uint64, np.int64])
def test_indices_may_be_any_integers(check, dtype):
    check(gather_p, [numbers(100, 3), picks(100, 17, dtype=dtype)], {"axis": 0})


def test_infinities_and_negative_zeros_are_gathered_as_they_are(check):
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42], np.float32)
    check(gather_p, [x, picks(6, 50)], {"axis": 0})


def test_one_index_without_an_axis_picks_one_row(check):
    check(gather_p, [numbers(4, 3), np.array(2, np.int64)], {"axis": 0})


@pytest.fixture
def scatter(check):
    """``scatter(size, rows, indices)`` checks sums of rows in an array of so many.

    One thread of a GPU makes each sum, in order.
    """

    def checked(size, rows, indices):
        shape = (size, *rows.shape[1:])
        check(scatter_rows, [rows, indices], {"shape": shape, "axis": 0})

    with use_limits(team_indices=1 << 30):
        yield checked


@pytest.mark.parametrize("dtype", ["f8", "i1", "u1", "i2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("count", [20, 200])
def test_integers_wrap_around(scatter, dtype, count):
    scatter(3, numbers(count, 2, dtype=dtype), picks(3, count))


@pytest.mark.parametrize("count", [5, 100, 1100])
def test_all_indices_may_be_equal(scatter, count):
    scatter(9, numbers(count, 2), np.full(count, 4))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.uint64])
@pytest.mark.parametrize("count", [9, 90, 1100])
def test_rows_are_scattered_to_indices_of_any_integers(scatter, dtype, count):
    scatter(100, numbers(count, 1), picks(100, count, dtype=dtype))


@pytest.mark.parametrize("count", [6, 60, 1100])
def test_nan_and_infinities_add_up(scatter, count):
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1.0, 3e38], np.float32)
    scatter(3, special[picks(6, count, 2)], picks(3, count))


# ---------------------------------------------------------------------------- segments


def segment_ids(size, *shape, dtype=np.int64):
    """Ids of which some are negative, and so name no segment."""
    return np.random.default_rng(1).integers(-2, size, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u4", "i8"])
@pytest.mark.parametrize("count, size", [(1, 7), (40, 7), (40, 300), (1100, 300)])
def test_segments_are_summed_without_negative_ids(check, dtype, count, size):
    data = np.abs(np.round(numbers(count, 3))).astype(dtype)
    with use_limits(team_indices=1 << 30):
        for rows in (data, data[:, 0].copy()):
            arrays = [rows, segment_ids(size, count, dtype=np.int32)]
            check(unsorted_segment_sum, arrays, {"num_segments": size})


@pytest.mark.parametrize("id", [-1, -(2**40), 0])
def test_all_ids_may_be_equal_or_of_no_segment(check, id):
    arrays = [np.ones((50, 2), np.float32), np.full(50, id)]
    with use_limits(team_indices=1 << 30):
        check(unsorted_segment_sum, arrays, {"num_segments": 5})
    check(segment_rows, arrays, {})


def test_ids_may_have_several_axes(check):
    arrays = [np.round(numbers(4, 20, 3)), segment_ids(6, 4, 20)]
    check(unsorted_segment_sum, arrays, {"num_segments": 6})


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i4", "?", "c8"])
@pytest.mark.parametrize("ids", [segment_ids(5, 3, 8), segment_ids(5, 90, dtype="i1")])
def test_rows_of_segments_are_gathered_and_zeros_for_negative_ids(check, dtype, ids):
    check(segment_rows, [numbers(5, 4, dtype=dtype), ids], {})
    check(segment_rows, [numbers(5, dtype=dtype), ids], {})


@pytest.mark.parametrize("target", ["native", "numpy"], indirect=False)
@pytest.mark.parametrize("wrong, dtype", [(3, "i8"), (2**40, "i8"), (2**63, "u8")])
def test_an_id_that_is_too_large_raises_in_a_traced_function(target, wrong, dtype):
    with tw.config.use_target(target):
        total = tw.function(lambda x, ids: tw.math.unsorted_segment_sum(x, ids, 3) * 2)
        ids = np.array([0, 2, 1, 0], dtype)
        if dtype == "i8":
            ids[2] = -1
        assert total(tw.ones(4), tw.constant(ids)).numpy()[0] == 4
        ids[1] = wrong
        with pytest.raises(ValueError, match=f"below num_segments .3., got {wrong}"):
            total(tw.ones(4), tw.constant(ids))
