"""Products of matrices through a stand-in for cuBLASLt, compared with NumPy's."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.loops.accesses import layout_of
from tapewright.compiler.program.instructions.array_instructions import Copy
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.targets.cuda.products.product import ProductKernel

from ..program_runs import (
    Memory,
    add_input,
    add_product,
    add_view,
    compile_launches,
    library,
    new_program,
    run,
    sliced,
    transposed,
    use_kernel,
)

RNG = np.random.default_rng(3)
TOLERANCES = {"E": 2e-2, "e": 2e-2, "f": 2e-6, "d": 1e-14}
BFLOAT16 = tw.bfloat16.dtype
# dtypes of the factors and of the product
DTYPES = ["ee", "ef", "ff", "dd", (BFLOAT16, BFLOAT16), (BFLOAT16, "f")]


def random(*shape, dtype="f"):
    return RNG.uniform(-1, 1, shape).astype(dtype)


def check(program, product, wanted, dtype="f"):
    """The kernels of a program, whose output is compared with an array."""
    program.outputs = [product]
    kernels = use_kernel(program, ProductKernel)
    assert len(kernels) == 1
    (found,) = run(program)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    tolerance = TOLERANCES[dtype]
    np.testing.assert_allclose(found, wanted, tolerance, tolerance)
    return kernels[0]


def check_product(a, b, function=np.matmul, dtype=None):
    dtype = np.dtype(dtype or a.dtype)
    program = new_program()
    buffers = [add_input(program, x) for x in (a, b)]
    with np.errstate(invalid="ignore"):
        exact = function(a.astype("d"), b.astype("d"))
    product = add_product(program, *buffers, function, dtype)
    return check(program, product, exact.astype(dtype), dtype.char)


def copies(program):
    return [each for each in program.instructions if type(each) is Copy]


@pytest.mark.parametrize("dtype, made", DTYPES)
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (3, 5, 7), (1, 9, 4), (33, 1, 2)])
def test_products_of_matrices_are_those_of_numpy(stand_in, dtype, made, m, k, n):
    a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype)
    kernel = check_product(a, b, dtype=made)
    assert len(stand_in.calls) == 1
    assert kernel.product.batch == ()


@pytest.mark.parametrize(
    "a, b",
    [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((1,), (1,)), ((1,), (1, 3))],
)
def test_vectors_are_rows_on_the_left_and_columns_on_the_right(stand_in, a, b):
    check_product(random(*a), random(*b), np.dot)


@pytest.mark.parametrize("m, k, n", [(0, 3, 4), (2, 3, 0), (0, 0, 0)])
def test_a_product_without_entries_takes_no_steps(stand_in, m, k, n):
    check_product(random(m, k), random(k, n))
    assert not stand_in.calls


@pytest.mark.parametrize("dtype", "efd")
@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (3, 2, 5)])
@pytest.mark.parametrize("threads", ["one", "fibers"])
def test_empty_sums_are_zeros(stand_in, dtype, shape, threads):
    program = new_program()
    a = add_input(program, random(*shape[:-1], 0, dtype=dtype))
    b = add_input(program, random(*shape[:-2], 0, shape[-1], dtype=dtype))
    program.outputs = [add_product(program, a, b)]
    (kernel,) = use_kernel(program, ProductKernel)
    (found,) = run(program, threads=threads, grid=(2, 1, 1), block=(3, 1, 1))
    assert found.tobytes() == np.zeros(shape, dtype).tobytes()
    assert not stand_in.calls


def test_zeros_compile_for_three_generations_of_gpus(stand_in):
    steps = []
    for dtype in "efd":
        program = new_program()
        a, b = [add_input(program, random(*s, dtype=dtype)) for s in ((3, 0), (0, 2))]
        program.outputs = [add_product(program, a, b)]
        (kernel,) = use_kernel(program, ProductKernel)
        steps += kernel.steps_on(Memory().numbers)
    compile_launches(steps)


def views(program, shape, kind):
    """A buffer of a shape that lies in memory in some way, and its values."""
    *lead, rows, columns = shape
    if kind == "plain":
        made = random(*shape)
        return add_input(program, made), made
    if kind == "transposed":
        made = random(*lead, columns, rows)
        axes = (*range(len(lead)), len(shape) - 1, len(shape) - 2)
        return transposed(program, add_input(program, made), *axes), made.swapaxes(
            -1, -2
        )
    made = random(*lead, rows + 2, columns + 3)
    whole = add_input(program, made)
    index = (*[slice(None)] * len(lead), slice(1, 1 + rows), slice(2, 2 + columns))
    if kind == "part":
        return sliced(program, whole, *index), made[index]
    if kind == "transposed part":
        made = random(*lead, columns + 3, rows + 2)
        whole = add_input(program, made)
        index = (*index[:-2], index[-1], index[-2])
        axes = (*range(len(lead)), len(shape) - 1, len(shape) - 2)
        part = sliced(program, whole, *index)
        return transposed(program, part, *axes), made[index].swapaxes(-1, -2)
    made = random(*lead, rows, 2 * columns)
    index = (*[slice(None)] * (len(lead) + 1), slice(None, None, 2))
    return sliced(program, add_input(program, made), *index), made[index]


KINDS = ["plain", "transposed", "part", "transposed part", "every second column"]


@pytest.mark.parametrize("of_a", KINDS)
@pytest.mark.parametrize("of_b", KINDS)
@pytest.mark.parametrize("lead", [(), (3,)])
def test_views_are_multiplied_as_they_lie(stand_in, of_a, of_b, lead):
    program = new_program()
    a, x = views(program, (*lead, 4, 5), of_a)
    b, y = views(program, (*lead, 5, 6), of_b)
    check(program, add_product(program, a, b), x @ y)
    strided = "every second column" in (of_a, of_b)
    assert bool(copies(program)) == strided
    assert len(stand_in.calls) == 1


@pytest.mark.parametrize(
    "a, b, calls",
    [
        ((2, 3, 4, 5), (2, 3, 5, 6), 1),
        ((2, 3, 4, 5), (5, 6), 1),
        ((4, 5), (2, 3, 5, 6), 1),
        ((2, 1, 4, 5), (1, 3, 5, 6), 2),
        ((2, 3, 4, 5), (3, 5, 6), 2),
        ((2, 3, 4, 5), (2, 1, 5, 6), 2),
        ((1, 7, 1, 5), (5, 2), 1),
    ],
)
def test_batches_are_broadcast(stand_in, a, b, calls):
    check_product(random(*a), random(*b))
    assert len(stand_in.calls) == calls


def test_a_stack_times_one_matrix_is_one_product(stand_in):
    kernel = check_product(random(3, 4, 5), random(5, 6))
    assert (kernel.product.batch, kernel.product.m) == ((), 12)


def test_a_stack_of_parts_is_not_one_matrix(stand_in):
    program = new_program()
    a, x = views(program, (3, 4, 5), "part")
    y = random(5, 6)
    b = add_input(program, y)
    kernel = check(program, add_product(program, a, b), x @ y)
    assert (kernel.product.batch, kernel.product.m) == ((3,), 4)


@pytest.mark.parametrize("dtype", "ed")
def test_parts_begin_at_the_bytes_of_their_entries(stand_in, dtype):
    program = new_program()
    x, y = random(5, 6, dtype=dtype), random(2, 5, 4, dtype=dtype)
    a = sliced(program, add_input(program, x), slice(2, None), slice(1, None))
    b = sliced(program, add_input(program, y), 1)
    wanted = x[2:, 1:].astype("d") @ y[1].astype("d")
    check(program, add_product(program, a, b), wanted.astype(dtype), dtype)


def test_steps_of_a_sequence_times_one_matrix_are_one_product(stand_in):
    program = new_program()
    values = random(3, 4, 5)
    a = sliced(program, add_input(program, values), slice(None), slice(1, 2))
    y = random(5, 6)
    b = add_input(program, y)
    kernel = check(program, add_product(program, a, b), values[:, 1:2] @ y)
    assert (kernel.product.batch, kernel.product.m) == ((), 3)
    assert not copies(program)


def test_a_batch_that_needs_too_many_calls_is_copied(stand_in):
    check_product(random(20, 1, 2, 3), random(1, 21, 3, 2))
    assert len(stand_in.calls) == 1


def test_large_batches_take_several_calls(stand_in):
    with use_limits(products_at_once=3):
        check_product(random(2, 7, 1, 4, 2), random(1, 7, 1, 2, 3))
    assert [call.count for call in stand_in.calls] == [3, 3, 1] * 2


def test_broadcast_rows_are_copied(stand_in):
    program = new_program()
    x, y = random(1, 5), random(5, 3)
    a = add_view(program, add_input(program, x), np.broadcast_to, (4, 5))
    b = add_input(program, y)
    check(program, add_product(program, a, b), np.broadcast_to(x, (4, 5)) @ y)


def test_reversed_rows_are_copied(stand_in):
    program = new_program()
    x, y = random(4, 5), random(5, 3)
    a = sliced(program, add_input(program, x), slice(None, None, -1))
    b = add_input(program, y)
    check(program, add_product(program, a, b), x[::-1] @ y)


def test_a_reversed_batch_is_copied(stand_in):
    program = new_program()
    x, y = random(3, 4, 5), random(3, 5, 3)
    a = sliced(program, add_input(program, x), slice(None, None, -1))
    b = add_input(program, y)
    check(program, add_product(program, a, b), x[::-1] @ y)


def test_one_matrix_may_be_both_factors(stand_in):
    program = new_program()
    x = random(4, 5)
    a = add_input(program, x)
    check(program, add_product(program, a, transposed(program, a, 1, 0)), x @ x.T)


def test_nan_and_infinity_take_part(stand_in):
    a, b = random(3, 4), random(4, 5)
    a[0, 1], a[1, 2], b[0, 3] = np.nan, np.inf, -np.inf
    check_product(a, b)


def test_half_precision_is_summed_in_single(stand_in):
    a, b = np.full((1, 4096), 1, "e"), np.ones((4096, 1), "e")
    check_product(a, b)  # in half precision it would stay at 2048


def test_float32_is_rounded_only_where_tf32_is_on(stand_in):
    x = np.array([[1 + 2.0**-12]], "f")
    for tf32, wanted in ((False, x), (True, np.ones((1, 1), "f"))):
        program = new_program()
        a, b = add_input(program, x), add_input(program, np.ones((1, 1), "f"))
        program.outputs = [add_product(program, a, b)]
        (kernel,) = use_kernel(program, ProductKernel)
        kernel.tf32 = tf32
        np.testing.assert_array_equal(run(program)[0], wanted)


@pytest.mark.parametrize("dtype", ["i4", "c8"])
def test_other_dtypes_are_left_to_the_array_module(dtype):
    program = new_program()
    a, b = [add_input(program, np.ones((2, 2), dtype)) for _ in range(2)]
    add_product(program, a, b)
    assert not ProductKernel.accepts(program.instructions[-1])


def test_algorithms_are_chosen_once_for_equal_problems():
    with library() as stand_in:
        for _ in range(3):
            check_product(random(3, 4), random(4, 5))
        assert len(stand_in.calls) == 3
        assert len(stand_in.algorithms) == 1


def test_operands_keep_their_place_in_memory(stand_in):
    program = new_program()
    part, _ = views(program, (4, 5), "transposed part")
    b = add_input(program, random(5, 3))
    program.outputs = [add_product(program, part, b)]
    (kernel,) = use_kernel(program, ProductKernel)
    assert kernel.product.a.base is layout_of(part).base
    assert kernel.operands == (part, b)
