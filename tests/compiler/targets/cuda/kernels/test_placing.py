"""Numbers of entries and rows put in order in CUDA C: the values of NumPy's kernels."""

import numpy as np
import pytest

from tapewright.compiler.targets.cuda.kernels.placing import (
    FlatIndexKernel,
    PlaceAlongKernel,
)
from tapewright.ops.array.gather import flat_index
from tapewright.ops.array.sorting import place_along_axis

from ..kernel_runs import (
    NUMBER,
    SHAPES,
    check,
    compile_kernels,
    instruction_of,
    kernel_of,
    outputs_of,
)


def picks(size, *shape, dtype=np.int64, low=0):
    return np.random.default_rng(1).integers(low, size, shape).astype(dtype)


def orders(*shape, axis=-1):
    return np.argsort(np.random.default_rng(2).random(shape), axis)


def numbers(*shape, dtype=np.float32):
    return (np.random.default_rng(0).standard_normal(shape) * 10).astype(dtype)


def failures(kind, op, arrays, keywords, wrong):
    """The statuses when the last index is a wrong one, for one thread and many."""
    kernel = kernel_of(kind, instruction_of(op, arrays, keywords)[0])
    arrays = [*arrays[:-1], arrays[-1].copy()]
    arrays[-1].reshape(-1)[-1] = wrong
    return {outputs_of(kernel, arrays, *shape)[1] for shape in SHAPES}


# ---------------------------------------------------------------- numbers of entries


def settings(dims, batch=(), wrap=False):
    return {"dims": dims, "batch": batch, "wrap": wrap, "who": "gather_nd"}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("dims", [(5,), (4, 9), (3, 7, 5)])
def test_entries_are_counted_row_by_row(dtype, dims):
    indices = picks(min(dims), 6, 7, len(dims), dtype=dtype)
    check(FlatIndexKernel, flat_index, [indices], settings(dims))
    check(FlatIndexKernel, flat_index, [indices[0, 0]], settings(dims))


@pytest.mark.parametrize("batch", [(6,), (6, 7)])
def test_each_of_a_batch_counts_within_its_own(batch):
    keywords = settings((4, 9), batch)
    check(FlatIndexKernel, flat_index, [picks(4, 6, 7, 3, 2)], keywords)


def test_negative_coordinates_may_count_from_the_end():
    keywords = settings((4, 9), wrap=True)
    check(FlatIndexKernel, flat_index, [picks(4, 30, 2, low=-4)], keywords)


@pytest.mark.parametrize(
    ("wrap", "wrong"), [(False, -1), (False, 9), (True, -10), (True, 9), (True, 2**40)]
)
def test_a_coordinate_out_of_range_sets_the_status(wrap, wrong):
    keywords, indices = settings((4, 9), wrap=wrap), picks(4, 5, 2)
    found = failures(FlatIndexKernel, flat_index, [indices], keywords, wrong)
    assert found == {NUMBER}


# ------------------------------------------------------------------- rows put in order


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "?", "c8"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_entries_are_placed_along_any_axis(dtype, axis):
    x = numbers(5, 6, 7, dtype=dtype)
    keywords = {"size": x.shape[axis], "axis": axis}
    arrays = [x, orders(*x.shape, axis=axis)]
    check(PlaceAlongKernel, place_along_axis, arrays, keywords)


def test_places_without_an_entry_are_zero():
    arrays = [numbers(4, 3), orders(4, 9)[:, :3].astype(np.int32)]
    check(PlaceAlongKernel, place_along_axis, arrays, {"size": 9, "axis": 1})


def test_negative_places_count_from_the_end():
    arrays = [numbers(4, 3), orders(4, 9)[:, :3] - 9]
    check(PlaceAlongKernel, place_along_axis, arrays, {"size": 9, "axis": 1})


@pytest.mark.parametrize("wrong", [9, -10, 2**40])
def test_a_place_out_of_range_sets_the_status(wrong):
    arrays, keywords = [numbers(4, 3), orders(4, 9)[:, :3]], {"size": 9, "axis": 1}
    found = failures(PlaceAlongKernel, place_along_axis, arrays, keywords, wrong)
    assert found == {NUMBER}


def test_the_functions_are_compiled_for_gpus():
    keywords, arrays = {"size": 9, "axis": 1}, [numbers(4, 3), orders(4, 9)[:, :3]]
    placed, _ = instruction_of(place_along_axis, arrays, keywords)
    counted, _ = instruction_of(
        flat_index, [picks(4, 5, 2)], settings((4, 9), (5,), True)
    )
    compile_kernels(
        kernel_of(PlaceAlongKernel, placed), kernel_of(FlatIndexKernel, counted)
    )
