"""Epilogues: which programs get them, and that nothing else is computed then."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.pipeline import optimize
from tapewright.compiler.program.instructions.array_instructions import (
    Contract,
    Map,
    Reduce,
)
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.program.lowering.lowering import lower
from tapewright.compiler.program.passes.pass_manager import run_passes
from tapewright.compiler.program.verifier import verify_program
from tapewright.compiler.targets.cuda.products.cublaslt_header import Epilogue
from tapewright.compiler.targets.cuda.products.epilogues import (
    EpilogueProduct,
    epilogues,
)
from tapewright.compiler.targets.cuda.products.product import ProductKernel
from tapewright.compiler.targets.target import SIMPLIFICATION
from tapewright.core.hardware import devices
from tapewright.errors import VerificationError

from ..program_runs import (
    NODE,
    add,
    add_input,
    add_product,
    add_view,
    library,
    new_program,
    run,
    sliced,
    transposed,
    use_kernel,
)

pytestmark = pytest.mark.usefixtures("numpy_target")
RNG = np.random.default_rng(11)
BIAS, RELU, RELU_BIAS = Epilogue.BIAS, Epilogue.RELU, Epilogue.RELU_BIAS
ZERO, MINUS_ZERO = np.zeros((), "f"), np.array(-0.0, "f")


def random(*shape, dtype="f"):
    return RNG.uniform(-1, 1, shape).astype(dtype)


def fuse(program):
    """Use kernels and fuse them; return the epilogues, in order."""
    pytest.importorskip("cupy", reason="the stand-in reads CuPy's names and signatures")
    from .....stand_in.arrays import xp

    use_kernel(program, ProductKernel)
    with devices.use_module(xp):
        epilogues(program)
    verify_program(program, "epilogues")
    return [each.epilogue for each in program.instructions if _is_fused(each)]


def _is_fused(instruction):
    return type(instruction) is EpilogueProduct


def check(program, epilogues):
    """The values of a program are the same with epilogues, which are these."""
    wanted = run(program)
    assert fuse(program) == epilogues
    for found, exact in zip(run(program), wanted, strict=True):
        np.testing.assert_allclose(found, exact, 1e-5, 1e-5)


def product_and_bias(program, shape=(3, 4, 5), dtype="f", bias=None):
    m, k, n = shape
    a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype)
    a, b = add_input(program, a), add_input(program, b)
    bias = add_input(program, random(n, dtype=dtype) if bias is None else bias)
    return add_product(program, a, b), bias


def map_of(program, function, *operands):
    arrays = [np.ones(a.shape, a.dtype) for a in operands]
    made = function(*arrays)
    return add(program, Map(function, operands, NODE), made.shape, made.dtype)


# ------------------------------------------------------------------------ bias and relu


@pytest.mark.parametrize(
    "shape", [(3, 4, 5), (1, 1, 1), (1, 6, 3), (7, 2, 1), (65, 3, 9)]
)
@pytest.mark.parametrize("order", [1, -1])
def test_a_bias_is_added_in_the_product(stand_in, shape, order):
    program = new_program()
    product, bias = product_and_bias(program, shape)
    program.outputs = [map_of(program, np.add, *(product, bias)[::order])]
    check(program, [BIAS])
    assert len(program.instructions) == 1


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("zeros", [(), (5,), (1, 5), (3, 5)])
def test_relu_is_the_maximum_with_zeros(stand_in, zeros, order):
    program = new_program()
    product, bias = product_and_bias(program)
    total = map_of(program, np.add, product, bias)
    zero = program.constant(np.zeros(zeros, "f"))
    program.outputs = [map_of(program, np.maximum, *(total, zero)[::order])]
    check(program, [RELU_BIAS])
    assert len(program.instructions) == 1


def test_relu_may_come_without_a_bias(stand_in):
    program = new_program()
    product, _ = product_and_bias(program)
    zero = program.constant(ZERO)
    program.outputs = [map_of(program, np.maximum, product, zero)]
    check(program, [RELU])


def test_reshapes_between_product_bias_and_relu_are_left_out(stand_in):
    program = new_program()
    product, bias = product_and_bias(program, (6, 4, 5))
    stack = add_view(program, product, np.ndarray.reshape, (2, 3, 5))
    total = map_of(program, np.add, stack, bias)
    flat = add_view(program, total, np.ndarray.reshape, (3, 2, 5))
    zero = program.constant(ZERO)
    program.outputs = [map_of(program, np.maximum, flat, zero)]
    check(program, [RELU_BIAS])
    assert len(program.instructions) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0])
def test_special_values_are_those_of_numpy(stand_in, value):
    program = new_program()
    product, bias = product_and_bias(program, bias=np.array([1, value, -1, 0, 2], "f"))
    program.inputs[0].source[1, 2] = value
    total = map_of(program, np.add, product, bias)
    zero = program.constant(ZERO)
    program.outputs = [map_of(program, np.maximum, total, zero)]
    check(program, [RELU_BIAS])


REFUSED = {
    "a number that is not 0": lambda p, x, b: map_of(
        p, np.maximum, x, p.constant(np.ones((), "f"))
    ),
    "-0.0": lambda p, x, b: map_of(p, np.maximum, x, p.constant(MINUS_ZERO)),
    "a minimum": lambda p, x, b: map_of(p, np.minimum, x, p.constant(ZERO)),
    "a maximum that is no constant": lambda p, x, b: map_of(p, np.maximum, x, b),
    "a difference": lambda p, x, b: map_of(p, np.subtract, x, b),
    "a number": lambda p, x, b: map_of(p, np.add, x, p.constant(np.ones((), "f"))),
    "a column": lambda p, x, b: map_of(p, np.add, x, add_input(p, random(3, 1))),
    "a matrix": lambda p, x, b: map_of(p, np.add, x, add_input(p, random(3, 5))),
    "more rows": lambda p, x, b: map_of(p, np.add, x, add_input(p, random(2, 1, 5))),
    "itself": lambda p, x, b: map_of(p, np.add, x, x),
    "another dtype": lambda p, x, b: map_of(
        p, np.add, x, add_input(p, random(5, dtype="d"))
    ),
    "every second entry": lambda p, x, b: map_of(
        p,
        np.add,
        x,
        add_view(
            p, add_input(p, random(10)), np.ndarray.__getitem__, slice(None, None, 2)
        ),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_operations_stay(stand_in, name):
    program = new_program()
    product, bias = product_and_bias(program)
    program.outputs = [REFUSED[name](program, product, bias)]
    check(program, [])


def test_a_row_that_is_added_to_itself_is_no_bias(stand_in):
    program = new_program()
    product, _ = product_and_bias(program, (1, 4, 5))
    program.outputs = [map_of(program, np.add, product, product)]
    check(program, [])


def test_a_product_that_is_read_again_stays(stand_in):
    program = new_program()
    product, bias = product_and_bias(program)
    program.outputs = [
        map_of(program, np.add, product, bias),
        map_of(program, np.negative, product),
    ]
    check(program, [])


def test_a_product_that_is_returned_stays(stand_in):
    program = new_program()
    product, bias = product_and_bias(program)
    program.outputs = [map_of(program, np.add, product, bias), product]
    check(program, [])


def test_a_sum_that_is_read_again_keeps_its_place_before_relu(stand_in):
    program = new_program()
    product, bias = product_and_bias(program)
    total = map_of(program, np.add, product, bias)
    program.outputs = [
        total,
        map_of(program, np.maximum, total, program.constant(ZERO)),
    ]
    check(program, [BIAS])


def test_double_precision_has_no_epilogues(stand_in):
    program = new_program()
    product, bias = product_and_bias(program, dtype="d")
    program.outputs = [map_of(program, np.add, product, bias)]
    check(program, [])


def test_batches_have_no_epilogues(stand_in):
    program = new_program()
    a, b = add_input(program, random(2, 3, 4)), add_input(program, random(2, 4, 5))
    bias = add_input(program, random(5))
    program.outputs = [map_of(program, np.add, add_product(program, a, b), bias)]
    check(program, [])


def test_empty_sums_have_no_epilogues(stand_in):
    program = new_program()
    product, bias = product_and_bias(program, (3, 0, 5))
    program.outputs = [map_of(program, np.add, product, bias)]
    check(program, [])


class _Barrier(Map):
    """Stands for a write to a variable."""

    __slots__ = ()
    is_barrier = True


def test_a_product_is_not_moved_past_a_write_to_variables(stand_in):
    program = new_program()
    product, bias = product_and_bias(program)
    other = add(program, _Barrier(np.negative, (bias,), NODE), bias.shape)
    program.outputs = [map_of(program, np.add, product, bias), other]
    check(program, [])


# --------------------------------------------------------------------- gradients


def gradient_of_bias(program, g, axis=(0,), keepdims=True):
    shape = np.zeros(g.shape).sum(axis=axis, keepdims=keepdims).shape
    return add(program, Reduce(np.add, g, axis, keepdims, NODE), shape)


@pytest.mark.parametrize("first", ["product", "sum"])
@pytest.mark.parametrize("keepdims", [True, False])
def test_the_gradient_of_a_bias_comes_with_that_of_the_kernel(
    stand_in, first, keepdims
):
    program = new_program()
    x, g = add_input(program, random(7, 4)), add_input(program, random(7, 5))
    outputs = []
    for each in ("product", "sum") if first == "product" else ("sum", "product"):
        if each == "sum":
            made = gradient_of_bias(program, g, keepdims=keepdims)
            made = add_view(program, made, np.ndarray.reshape, (5,))
        else:
            made = add_product(program, transposed(program, x, 1, 0), g)
        outputs.append(made)
    program.outputs = outputs
    check(program, [Epilogue.BGRADA])


def test_gradients_of_stacks_are_summed_over_all_rows(stand_in):
    program = new_program()
    x, g = add_input(program, random(6, 4)), add_input(program, random(2, 3, 5))
    rows = add_view(program, g, np.ndarray.reshape, (6, 5))
    product = add_product(program, transposed(program, x, 1, 0), rows)
    program.outputs = [product, gradient_of_bias(program, g, (0, 1), False)]
    check(program, [Epilogue.BGRADA])


@pytest.mark.parametrize("axis", [(1,), (0, 1)])
def test_sums_over_other_axes_stay(stand_in, axis):
    program = new_program()
    x, g = add_input(program, random(7, 4)), add_input(program, random(7, 7))
    product = add_product(program, transposed(program, x, 1, 0), g)
    program.outputs = [product, gradient_of_bias(program, g, axis)]
    check(program, [])


def test_a_product_with_the_transposed_gradient_is_not_its_sum(stand_in):
    program = new_program()
    x, g = add_input(program, random(5, 4)), add_input(program, random(5, 5))
    turned = transposed(program, g, 1, 0)
    product = add_product(program, transposed(program, x, 1, 0), turned)
    program.outputs = [product, gradient_of_bias(program, g)]
    check(program, [])


def test_a_sum_that_is_needed_before_the_product_stays(stand_in):
    program = new_program()
    x, g = add_input(program, random(7, 4)), add_input(program, random(7, 5))
    total = gradient_of_bias(program, g)
    other = map_of(program, np.add, x, add_input(program, random(4)))
    needed = map_of(program, np.negative, total)
    product = add_product(program, transposed(program, other, 1, 0), g)
    program.outputs = [product, total, needed]
    check(program, [])


PARTS = {
    "fewer rows": (slice(0, 3), slice(0, 4)),
    "other rows": (slice(0, 8, 2), slice(0, 4)),
    "rows from another one on": (slice(1, 5), slice(0, 4)),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_product_with_other_rows_is_not_their_sum(stand_in, name):
    multiplied, summed = PARTS[name]
    program = new_program()
    g = add_input(program, random(8, 5))
    rows, others = [sliced(program, g, index) for index in (multiplied, summed)]
    x = add_input(program, random(rows.shape[0], 4))
    product = add_product(program, transposed(program, x, 1, 0), rows)
    program.outputs = [product, gradient_of_bias(program, others)]
    check(program, [])


def test_a_sum_is_not_moved_past_a_write_to_variables(stand_in):
    program = new_program()
    x, g = add_input(program, random(7, 4)), add_input(program, random(7, 5))
    total = gradient_of_bias(program, g)
    other = add(program, _Barrier(np.negative, (x,), NODE), x.shape)
    product = add_product(program, transposed(program, x, 1, 0), g)
    program.outputs = [product, total, other]
    check(program, [])


def test_the_rows_of_the_first_factor_are_no_such_sum(stand_in):
    program = new_program()
    x, g = add_input(program, random(7, 4)), add_input(program, random(7, 5))
    product = add_product(program, transposed(program, g, 1, 0), x)
    program.outputs = [product, gradient_of_bias(program, g)]
    check(program, [])


def relu_and_sum(program, m=9, n=5):
    """The relu of a product and a bias; a product with it, and the sum of its rows."""
    product, bias = product_and_bias(program, (m, 4, n))
    total = map_of(program, np.add, product, bias)
    h = map_of(program, np.maximum, total, program.constant(ZERO))
    x = add_input(program, random(m, 3))
    product = add_product(program, transposed(program, x, 1, 0), h)
    return [h, product, gradient_of_bias(program, h)]


def step(x, y, w, b, v, c):
    """The gradients of a network with one hidden layer."""
    with tw.GradientTape() as tape:
        tape.watch([w, b, v, c])
        hidden = tw.nn.relu(x @ w + b)
        loss = tw.reduce_mean(tw.square(hidden @ v + c - y))
    return [loss, *tape.gradient(loss, [w, b, v, c])]


def test_a_training_step_has_a_call_for_each_product():
    with library() as stand_in:
        sizes = [(16, 20), (16, 10), (20, 30), (30,), (30, 10), (10,)]
        arrays = [random(*size) for size in sizes]
        constants = list(map(tw.constant, arrays))
        traced = tw.function(step).get_concrete_function(*constants)
        program = lower(optimize(traced.graph), in_loops=True)
        run_passes(program, SIMPLIFICATION)
        for buffer, array in zip(program.inputs, arrays, strict=True):
            buffer.source = array
        assert fuse(program) == [RELU_BIAS, BIAS, Epilogue.BGRADA, Epilogue.BGRADA]
        stand_in.calls.clear()
        for made, wanted in zip(run(program), step(*constants), strict=True):
            np.testing.assert_allclose(made, wanted, 2e-5, 2e-6)
        assert len(stand_in.calls) == 5


# ------------------------------------------------------------------------------ devices


def test_relu_is_not_used_where_it_loses_nan():
    with library(relu=np.fmax):
        program = new_program()
        program.outputs = relu_and_sum(program)
        check(program, [BIAS, Epilogue.BGRADA])


def test_epilogues_without_an_algorithm_are_not_used():
    with library(epilogues=(Epilogue.DEFAULT, Epilogue.RELU, Epilogue.BGRADA)):
        program = new_program()
        program.outputs = relu_and_sum(program)
        check(program, [Epilogue.BGRADA])


def test_each_problem_is_tried_once(stand_in):
    for _ in range(2):
        program = new_program()
        product, bias = product_and_bias(program)
        program.outputs = [map_of(program, np.add, product, bias)]
        assert fuse(program) == [BIAS]
        count = len(stand_in.calls)
    assert len(stand_in.calls) == count


def test_large_products_are_not_tried(stand_in):
    with use_limits(trial_bytes=4 * (3 * 4 + 4 * 5 + 3 * 5) - 1):
        program = new_program()
    product, bias = product_and_bias(program)
    program.outputs = [map_of(program, np.add, product, bias)]
    assert fuse(program) == []
    assert not stand_in.calls


def test_the_verifier_sees_a_bias_of_a_wrong_length(stand_in):
    program = new_program()
    product, bias = product_and_bias(program)
    program.outputs = [map_of(program, np.add, product, bias)]
    fuse(program)
    (kernel,) = filter(_is_fused, program.instructions)
    kernel.operands = (*kernel.operands[:2], add_input(program, random(4)))
    with pytest.raises(VerificationError, match="is not a vector of 5 entries"):
        verify_program(program, "a change")


def test_products_that_are_no_longer_contractions_have_one_call(stand_in):
    program = new_program()
    product, bias = product_and_bias(program)
    program.outputs = [map_of(program, np.add, product, bias)]
    assert any([type(each) is Contract for each in program.instructions])
    fuse(program)
    stand_in.calls.clear()
    run(program)
    (call,) = stand_in.calls
    assert (call.epilogue, call.sizes) == (BIAS, (5, 3, 4))
