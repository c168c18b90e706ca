"""Gather, scatter and checks of ranges in CUDA C: failures, orders of sums, segments."""

import numpy as np
import pytest

from tapewright.compiler.program.instructions.call_instructions import Check
from tapewright.compiler.program.limits import DEFAULTS, use_limits
from tapewright.compiler.program.program import Buffer, Kind
from tapewright.compiler.targets.cuda.kernel import STATUS
from tapewright.compiler.targets.cuda.kernels import gather, index_order
from tapewright.compiler.targets.cuda.kernels.gather import (
    GatherKernel,
    RangeKernel,
    ScatterKernel,
    SegmentRowsKernel,
    SegmentSumKernel,
)
from tapewright.ops.array.gather import gather_p, scatter_rows
from tapewright.ops.array.segment import segment_rows, unsorted_segment_sum
from tapewright.ops.nn.cross_entropy import check_labels

from ..kernel_runs import (
    NUMBER,
    check,
    compile_kernels,
    instruction_of,
    kernel_of,
    outputs_of,
)


def numbers(*shape, dtype=np.float32):
    return (np.random.default_rng(0).standard_normal(shape) * 10).astype(dtype)


def picks(size, *shape, dtype=np.int64):
    return np.random.default_rng(1).integers(0, size, shape).astype(dtype)


# ---------------------------------------------------------------------------- gather


def failures_of(kind, op, x, indices, wrong, **keywords):
    """The status when the last index is a wrong one, for one thread and many."""
    instruction, _ = instruction_of(op, [x, indices], keywords)
    kernel, indices = kernel_of(kind, instruction), indices.copy()
    indices.reshape(-1)[-1] = wrong
    shapes = [(None, None), ((2, 1, 1), (32, 1, 1))]
    return {outputs_of(kernel, [x, indices], *shape)[1] for shape in shapes}


@pytest.mark.parametrize("wrong", [-1, -7, 7, 2**32, 2**62, -(2**63)])
def test_an_index_out_of_range_sets_the_status(wrong):
    given = numbers(7, 5), picks(7, 3, 4), wrong
    assert failures_of(GatherKernel, gather_p, *given, axis=0) == {NUMBER}


def test_only_the_first_failure_is_told():
    instruction, _ = instruction_of(gather_p, [numbers(7, 5), picks(7, 3)], {"axis": 0})
    kernel = kernel_of(GatherKernel, instruction)
    wrong = np.array([1, 9, 2])
    assert outputs_of(kernel, [numbers(7, 5), wrong], status=3)[1] == 3


@pytest.mark.parametrize(
    ("x", "indices"),
    [
        (numbers(0, 3), picks(1, 0)),
        (numbers(3, 0), picks(3, 2)),
        (numbers(3, 3), picks(3, 0)),
        (numbers(3, 3, dtype=np.complex128), picks(3, 2)),
    ],
)
def test_empty_arrays_and_wide_entries_are_not_accepted(x, indices):
    instruction, _ = instruction_of(gather_p, [x, indices], {"axis": 0})
    assert not GatherKernel.accepts(instruction)


# --------------------------------------------------------------------------- scatter

FEW, RANKED, CHUNK = gather.FEW, DEFAULTS.ranked_indices, index_order.CHUNK
MANY = DEFAULTS.team_indices


@pytest.fixture(autouse=True)
def each_sum_by_one_thread():
    with use_limits(team_indices=1 << 30):
        yield


def check_scatter(shape, axis, count, dtype=np.float32):
    rows = list(shape)
    rows[axis] = count
    arrays = [numbers(*rows, dtype=dtype), picks(shape[axis], count)]
    keywords = {"shape": tuple(shape), "axis": axis}
    return check(ScatterKernel, scatter_rows, arrays, keywords)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    "count", [1, FEW, FEW + 1, 300, RANKED, RANKED + 1, 3 * CHUNK + 7]
)
def test_rows_of_equal_indices_add_up_in_order(axis, count):
    shape = [2, 2, 2]
    shape[axis] = 11
    check_scatter(shape, axis, count)


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 1 << 16, (1 << 16) + 1])
def test_indices_are_sorted_by_all_of_their_bytes(size):
    with use_limits(ranked_indices=64):
        check_scatter((size, 1), 0, 1500)


@pytest.mark.parametrize("count", [1025, 4000])
def test_stretches_of_several_chunks_are_sorted(count):
    with use_limits(key_stretches=3):
        check_scatter((300, 1), 0, count)


@pytest.mark.parametrize("count", [6, 60, 1100])
@pytest.mark.parametrize("wrong", [-1, 3, 2**40])
def test_a_scatter_to_no_row_sets_the_status(count, wrong):
    given = numbers(count, 2), picks(3, count), wrong
    found = failures_of(ScatterKernel, scatter_rows, *given, shape=(3, 2), axis=0)
    assert found == {NUMBER}


@pytest.mark.parametrize("dtype", [np.float16, bool, np.complex64])
def test_what_cannot_be_added_is_not_accepted(dtype):
    arrays = [numbers(4, 2, dtype=dtype), np.arange(4)]
    instruction, _ = instruction_of(scatter_rows, arrays, {"shape": (5, 2), "axis": 0})
    assert not ScatterKernel.accepts(instruction)


@pytest.mark.parametrize("count", [FEW + 1, 3 * MANY + 1, 1500])
@pytest.mark.parametrize("shape", [(3, 2), (1, 1), (3,)])
def test_a_block_adds_up_many_rows_of_an_index(shape, count):
    rows = np.round(numbers(count, *shape[1:]))  # sums are exact in any order
    keywords = {"shape": shape, "axis": 0}
    indices = picks(shape[0], count)
    with use_limits(DEFAULTS):
        for dtype in (np.int8, np.int64):
            check_scatter(shape, 0, count, dtype)
        kernel = check(ScatterKernel, scatter_rows, [rows, indices], keywords)
    assert kernel.has_teams == (count > MANY * shape[0])
    buffers = [*kernel.operands, *kernel.outputs, STATUS]
    sums = kernel.steps_on({buffer: n for n, buffer in enumerate(buffers)})[-1]
    assert ("__syncthreads" in sums.body) == kernel.has_teams


# ---------------------------------------------------------------------------- segments


def segment_ids(size, *shape, dtype=np.int64):
    """Ids of which some are negative, and so name no segment."""
    return np.random.default_rng(1).integers(-2, size, shape).astype(dtype)


def check_segments(data, ids, count):
    keywords = {"num_segments": count}
    return check(SegmentSumKernel, unsorted_segment_sum, [data, ids], keywords)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u4", "i8"])
@pytest.mark.parametrize("count", [1, FEW, FEW + 1, RANKED + 1, 3 * CHUNK + 7])
def test_segments_are_summed_without_negative_ids(dtype, count):
    data = np.abs(np.round(numbers(count, 3))).astype(dtype)
    ids = segment_ids(300, count, dtype=np.int32)
    for many in (MANY, 1 << 30):
        with use_limits(team_indices=many):
            check_segments(data, segment_ids(7, count), 7)
            check_segments(data[:, 0].copy(), ids, 300)


@pytest.mark.parametrize("size", [1, 255, 256, 257])
@pytest.mark.parametrize("ids", [-1, -(2**40), 0])
def test_all_ids_may_be_equal(size, ids):
    for count in (5, 100, 1100):
        check_segments(np.ones(count), np.full(count, ids), size)


def test_ids_may_have_several_axes():
    check_segments(np.round(numbers(4, 20, 3)), segment_ids(6, 4, 20), 6)


@pytest.mark.parametrize("count", [6, 60, 1100])
@pytest.mark.parametrize("wrong", [3, 2**40])
def test_an_id_of_no_segment_sets_the_status(count, wrong):
    given = numbers(count, 2), picks(3, count), wrong
    op, kind = unsorted_segment_sum, SegmentSumKernel
    assert failures_of(kind, op, *given, num_segments=3) == {NUMBER}


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i4", "?", "c8"])
def test_rows_of_segments_are_picked_and_zeros_for_negative_ids(dtype):
    for ids in (segment_ids(5, 3, 8), segment_ids(5, 30, dtype=np.int8)):
        check(SegmentRowsKernel, segment_rows, [numbers(5, 4, dtype=dtype), ids], {})
        check(SegmentRowsKernel, segment_rows, [numbers(5, dtype=dtype), ids], {})


# ---------------------------------------------------------------------------- checks


def status_of(labels, classes):
    buffer = Buffer(labels.shape, labels.dtype, Kind.INPUT)
    instruction = Check(check_labels, (buffer,), None, {"classes": classes})
    kernel = kernel_of(RangeKernel, instruction)
    shapes = [(None, None), ((2, 1, 1), (32, 1, 1))]
    (found,) = {outputs_of(kernel, [labels], *shape)[1] for shape in shapes}
    return found


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_labels_are_below_the_number_of_classes(dtype):
    labels = picks(10, 5, 9, dtype=dtype)
    assert status_of(labels, 10) == 0
    assert status_of(labels, int(labels.max())) == NUMBER


@pytest.mark.parametrize("wrong", [-1, 10, 2**32, -(2**63)])
@pytest.mark.parametrize("at", [0, 44])
def test_one_wrong_label_sets_the_status(wrong, at):
    labels = picks(10, 5, 9)
    labels.reshape(-1)[at] = wrong
    assert status_of(labels, 10) == NUMBER


# --------------------------------------------------------------------------- compiled


def test_the_functions_are_compiled_for_gpus():
    picked, _ = instruction_of(gather_p, [numbers(4, 3), picks(4, 7)], {"axis": 0})
    kernels = [kernel_of(GatherKernel, picked)]
    for count, dtype in ((5, "f4"), (500, "f8"), (5000, "i1")):
        arrays = [numbers(count, 2, dtype=dtype), picks(300, count)]
        keywords = {"shape": (300, 2), "axis": 0}
        scattered, _ = instruction_of(scatter_rows, arrays, keywords)
        kernels.append(kernel_of(ScatterKernel, scattered))
    buffer = Buffer((7,), np.dtype(np.int32), Kind.INPUT)
    looked_at = Check(check_labels, (buffer,), None, {"classes": 3})
    for op, kind, keywords in (
        (unsorted_segment_sum, SegmentSumKernel, {"num_segments": 3}),
        (segment_rows, SegmentRowsKernel, {}),
    ):
        for count in (9, 90, 2000):
            arrays = [numbers(count, 2), picks(3, count)]
            kernels.append(kernel_of(kind, instruction_of(op, arrays, keywords)[0]))
    compile_kernels(*kernels, kernel_of(RangeKernel, looked_at))
