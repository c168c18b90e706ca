"""Kernels over whole rows in CUDA C: the numbers and addresses of NumPy's kernels."""

import numpy as np
import pytest

from tapewright.compiler.program.instructions.call_instructions import Opaque
from tapewright.compiler.program.program import Buffer, Kind
from tapewright.compiler.targets.cuda.kernels.arg_reduction import ArgReductionKernel
from tapewright.compiler.targets.cuda.kernels.ranks import (
    InTopKernel,
    SearchKernel,
    SortKernel,
    TopKernel,
)
from tapewright.compiler.targets.cuda.kernels.scans import ScanKernel
from tapewright.compiler.targets.cuda.kernels.table import KERNELS
from tapewright.core.primitive import get_primitive
from tapewright.ops.array.sorting import in_top_k

from ..kernel_runs import (
    SHAPES,
    assert_same,
    compile_kernels,
    instruction_of,
    kernel_of,
    named,
    outputs_of,
)

SHAPES_OF_ROWS = [
    ((5, 7), -1), ((5, 7), 0), ((1, 1), 1), ((3, 300), 1), ((300, 2), 0),
    ((2, 129, 3), 1), ((2, 3, 64), -1), ((70,), 0), ((4100, 65), 1), ((65, 4100), 0),
]  # fmt: skip
DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


def numbers(*shape, dtype=np.float32, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 30).astype(dtype)


def ties(*shape, dtype=np.float32):
    return np.random.default_rng(1).integers(0, 3, shape).astype(dtype)


def specials(*shape):
    """NaN, infinities and zeros of both signs among few numbers."""
    known = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1, -1], np.float32)
    return known[np.random.default_rng(2).integers(0, len(known), shape)]


def kernel_for(kind, op, arrays, keywords):
    op = named(op) if type(op) is str else op
    instruction, wanted = instruction_of(op, arrays, keywords)
    assert KERNELS[op.primitive] is kind
    return kernel_of(kind, instruction), wanted


def check(kind, op, arrays, keywords, same=assert_same):
    kernel, wanted = kernel_for(kind, op, arrays, keywords)
    for shape in SHAPES:
        found, status = outputs_of(kernel, arrays, *shape)
        assert status == 0
        same(found, wanted)


def accepts(kind, op, arrays, keywords):
    op = named(op) if type(op) is str else op
    return kind.accepts(instruction_of(op, arrays, keywords)[0])


# ------------------------------------------------------------- the largest, the smallest


def check_places(op, x, axis, output_type="int64"):
    keywords = {"axis": axis, "output_type": output_type}
    check(ArgReductionKernel, op, [x], keywords)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES_OF_ROWS, ids=str)
def test_the_place_of_an_extreme_is_found_along_any_axis(op, shape, axis):
    check_places(op, numbers(*shape), axis)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("shape", [(6, 9), (3, 400)])
def test_of_equal_extremes_the_first_counts(op, shape):
    check_places(op, ties(*shape), 1)
    check_places(op, np.zeros(shape, np.float32), 1)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("shape", [(40, 9), (9, 200)])
def test_the_first_nan_counts_before_all_numbers(op, shape):
    check_places(op, specials(*shape), 1)
    x = numbers(*shape)
    x[1, 3:] = np.nan
    x[2, -1] = np.nan
    x[4, :] = np.nan
    check_places(op, x, 1)
    check_places(op, x.astype(np.float16), 1)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_entries_of_any_dtype_are_compared(op, dtype):
    for shape in ((5, 9), (3, 150)):
        x = np.abs(numbers(*shape)) if dtype[0] == "u" else numbers(*shape)
        check_places(op, x.astype(dtype) if dtype != "?" else x > 0, 1)


@pytest.mark.parametrize("output_type", ["int8", "uint8", "int32", "int64"])
def test_places_have_the_dtype_that_is_asked_for(output_type):
    check_places("argmax", numbers(4, 90), 1, output_type)


# ------------------------------------------------------------------------------- scans


def close(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        scale = np.abs(b[np.isfinite(b)]).max(initial=0)
        tolerance = 16 * np.finfo(b.dtype).eps if b.dtype.kind == "f" else 0
        np.testing.assert_allclose(a, b, tolerance, tolerance * scale)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES_OF_ROWS, ids=str)
def test_sums_run_along_any_axis(shape, axis, exclusive, reverse):
    keywords = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    check(ScanKernel, "cumsum", [numbers(*shape)], keywords, close)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((5, 9), 1), ((3, 200), 1)])
def test_products_run_along_an_axis(shape, axis, exclusive, reverse):
    keywords = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    x = 1 + numbers(*shape, dtype=np.float64) / 1000
    check(ScanKernel, "cumprod", [x], keywords, close)


@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_running_integers_wrap_around(op, dtype):
    keywords = {"axis": 1, "exclusive": False, "reverse": False}
    for shape in ((3, 20), (3, 150)):
        x = np.random.default_rng(3).integers(1, 100, shape).astype(dtype)
        check(ScanKernel, op, [x], keywords)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("size", [10, 100])
def test_nan_infinities_and_negative_zeros_run_on(exclusive, size):
    keywords = {"axis": 1, "exclusive": exclusive, "reverse": False}
    with np.errstate(all="ignore"):
        check(ScanKernel, "cumsum", [specials(4, size)], keywords)
        check(ScanKernel, "cumsum", [np.full((2, size), -0.0)], keywords)
        check(ScanKernel, "cumprod", [specials(4, size)], keywords)


def test_running_sums_of_float16_stay_calls():
    keywords = {"axis": 1, "exclusive": False, "reverse": False}
    assert not accepts(ScanKernel, "cumsum", [numbers(2, 3, dtype="f2")], keywords)
    assert not accepts(ScanKernel, "cumsum", [numbers(2, 3, dtype="c8")], keywords)
    assert not accepts(ScanKernel, "cumsum", [numbers(2, 0)], keywords)


# ------------------------------------------------------------------------------- order


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("op", ["sort", "argsort"])
@pytest.mark.parametrize(
    "x", [numbers(5, 70), numbers(1, 1), numbers(3, 40, 2)], ids=str
)
def test_rows_are_sorted(op, x, descending):
    for axis in range(x.ndim):
        check(SortKernel, op, [x], {"axis": axis, "descending": descending})


@pytest.mark.parametrize("descending", [False, True])
def test_equal_entries_keep_their_order_and_nan_comes_last(descending):
    keywords = {"axis": 1, "descending": descending}
    check(SortKernel, "argsort", [ties(4, 50)], keywords)
    check(SortKernel, "argsort", [specials(6, 40)], keywords)
    check(SortKernel, "argsort", [specials(6, 40).astype(np.float16)], keywords)
    x = specials(6, 40)
    x[x == 0] = 0  # NumPy orders zeros of both signs as it likes
    check(SortKernel, "sort", [x], keywords)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_entries_of_any_dtype_are_sorted(dtype, descending):
    x = np.abs(numbers(3, 33)) if dtype[0] == "u" else numbers(3, 33)
    x = x > 0 if dtype == "?" else x.astype(dtype)
    for op in ("sort", "argsort"):
        check(SortKernel, op, [x], {"axis": 1, "descending": descending})


def test_long_rows_are_sorted_by_calls():
    for shape in ((1, 5000), (2**21, 40)):
        x = np.zeros(shape, np.int8)
        buffer = Buffer(x.shape, x.dtype, Kind.INPUT)
        instruction = Opaque(None, [buffer], None, {"axis": 1, "descending": False})
        instruction.outputs = (buffer,)
        assert not SortKernel.accepts(instruction)


@pytest.mark.parametrize("k", [1, 3, 17])
@pytest.mark.parametrize("x", [numbers(4, 17), ties(4, 17), specials(4, 17)], ids=str)
@pytest.mark.parametrize("index_type", ["int32", "int64"])
def test_the_largest_entries_of_rows_are_found(x, k, index_type):
    top_k = get_primitive("top_k")
    wanted = top_k.kernels.plain(np.ndarray)(x, k=k, index_type=index_type)
    buffer = Buffer(x.shape, x.dtype, Kind.INPUT)
    instruction = Opaque(None, [buffer], None, {"k": k, "index_type": index_type})
    instruction.outputs = tuple([Buffer(a.shape, a.dtype) for a in wanted])
    kernel = kernel_of(TopKernel, instruction)
    for shape in SHAPES:
        assert_same(outputs_of(kernel, [x], *shape)[0], wanted)


def check_in_top(targets, predictions, k):
    check(InTopKernel, in_top_k, [targets, predictions], {"k": k})


@pytest.mark.parametrize("k", [0, 1, 3, 9, 20])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4"])
def test_a_target_is_among_the_best(k, dtype):
    targets = np.random.default_rng(4).integers(0, 9, 40).astype(np.int32)
    check_in_top(targets, numbers(40, 9, dtype=dtype), k)
    check_in_top(targets, ties(40, 9, dtype=dtype), k)
    check_in_top(targets[:3], numbers(3, 300, dtype=dtype), k)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_what_is_no_class_is_not_among_the_best(dtype):
    targets = np.array([0, 9, 8, -1, 100, 3]).astype(dtype)
    check_in_top(targets, numbers(6, 9), 9)


def test_rows_that_are_not_finite_have_no_best():
    check_in_top(np.arange(7) % 3, specials(7, 3), 3)
    check_in_top(np.zeros(3, np.int64), np.full((3, 200), np.nan, np.float32), 3)


# ----------------------------------------------------------------------- sorted rows


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u8", "?"])
def test_the_places_of_values_in_sorted_rows_are_found(dtype, right):
    x = np.abs(ties(4, 9)).astype(dtype)
    for row, values in (
        (np.sort(x[0]), x), (np.sort(x, -1), ties(4, 30).astype(dtype)), (x[0, :1], x[1])
    ):  # fmt: skip
        for out_type in ("int32", "int64"):
            keywords = {"right": right, "out_type": out_type}
            check(SearchKernel, "searchsorted", [row, values], keywords)


@pytest.mark.parametrize("right", [False, True])
def test_nan_is_behind_all_numbers_of_a_sorted_row(right):
    arrays = [np.sort(specials(20)), specials(5, 8)]
    keywords = {"right": right, "out_type": "int32"}
    check(SearchKernel, "searchsorted", arrays, keywords)
    check(SearchKernel, "searchsorted", [np.ones(3, "f"), specials(9)], keywords)


# ---------------------------------------------------------------------------- compiled


def test_the_functions_are_compiled_for_gpus():
    made, scan = [], {"axis": 1, "exclusive": True, "reverse": True}
    place, order = {"axis": 1, "output_type": "int32"}, {"axis": 1, "descending": True}
    for dtype in ("f2", "f4", "i8", "?"):
        for shape in ((4, 9), (4, 300)):
            x = numbers(*shape, dtype=dtype)
            made.append(kernel_for(ArgReductionKernel, "argmax", [x], place)[0])
            made.append(kernel_for(SortKernel, "sort", [x], order)[0])
            if dtype in ("f4", "i8"):
                made.append(kernel_for(ScanKernel, "cumsum", [x], scan)[0])
            targets = np.arange(4)
            in_top = kernel_for(InTopKernel, in_top_k, [targets, x], {"k": 2})
            made.append(in_top[0])
            keywords = {"right": True, "out_type": "int64"}
            search = kernel_for(SearchKernel, "searchsorted", [x[0], x], keywords)
            made.append(search[0])
    compile_kernels(*made)
