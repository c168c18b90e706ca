"""Random numbers in CUDA C: more shapes, integers and seeds, and accepted instructions."""

import numpy as np
import pytest

from tapewright.compiler.targets.cuda.kernels.draws import DrawKernel
from tapewright.ops.random import philox

from ..kernel_runs import check, compile_kernels, instruction_of, kernel_of


def check_draw(op, state, *inputs, **keywords):
    keywords = {"purpose": 0, **keywords}
    arrays = [np.array(state, np.int64), *inputs]
    return check(DrawKernel, op, arrays, keywords)


def is_accepted(op, **keywords):
    keywords = {"purpose": 1, **keywords}
    instruction, _ = instruction_of(op, [np.array([1, 2])], keywords)
    return DrawKernel.accepts(instruction)


@pytest.mark.parametrize("shape", [(1,), (3,), (7, 11), (8, 4)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_of_all_shapes_are_drawn(shape, dtype):
    check_draw(philox.random_uniform, [5, 9], shape=shape, dtype=dtype)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("shape", [(), (3,), (61,)], ids=str)
def test_integers_of_all_that_a_dtype_can_hold_are_those_of_numpy(shape, dtype):
    keywords = {"shape": shape, "dtype": dtype, "minval": None, "maxval": None}
    check_draw(philox.random_uniform, [7, 8], **keywords)


@pytest.mark.parametrize("data", [0, 1, -5, 2**62])
@pytest.mark.parametrize("purpose", [0, 2, 3])
def test_seeds_come_from_the_stream_that_the_data_names(data, purpose):
    keywords = {"shape": (2, 2), "dtype": "int64", "purpose": purpose}
    check_draw(philox.random_seeds, [7, -8], np.array(data), **keywords)


def test_a_state_may_have_no_signs():
    keywords = {"shape": (9,), "dtype": "float32", "purpose": 1}
    state = np.array([2**64 - 3, 2**63 + 1], np.uint64)
    check(DrawKernel, philox.random_uniform, [state], keywords)


def test_draws_of_the_next_states_are_of_the_same_function():
    made = [
        instruction_of(
            philox.dropout_mask,
            [np.array([7, n])],
            {"shape": (9,), "rate": 0.5, "dtype": "float32", "purpose": 0},
        )[0]
        for n in (0, 1)
    ]
    names = set()
    for each in made:
        kernel = kernel_of(DrawKernel, each)
        (step,) = kernel.steps_on({kernel.operands[0]: 0, kernel.outputs[0]: 1})
        names.add(step.name)
    assert len(names) == 1


@pytest.mark.parametrize("dtype", ["float16", "int32", "uint8"])
def test_what_numpy_draws_by_rejection_is_not_accepted(dtype):
    whole = {"minval": 0, "maxval": 9} if dtype != "float16" else {}
    assert not is_accepted(philox.random_uniform, shape=(9,), dtype=dtype, **whole)
    assert not is_accepted(philox.random_normal, shape=(9,), dtype="float32")
    short = {"minval": None, "maxval": None, "dtype": "int8"}
    assert not is_accepted(philox.random_uniform, shape=(9,), **short)
    assert not is_accepted(philox.random_permutation, count=5)


def test_bounds_that_are_not_finite_are_not_accepted():
    given = {"shape": (9,), "dtype": "float32"}
    assert not is_accepted(philox.random_uniform, minval=-3e38, maxval=3e38, **given)
    assert is_accepted(philox.random_uniform, minval=-1e38, maxval=1e38, **given)


def test_an_empty_array_is_not_accepted():
    assert not is_accepted(philox.random_uniform, shape=(0,), dtype="float32")


def test_the_functions_are_compiled_for_gpus():
    kernels = []
    for op, keywords in (
        (philox.dropout_mask, {"rate": 0.1, "dtype": "float32", "purpose": 0}),
        (philox.random_uniform, {"minval": 1, "maxval": 3, "dtype": "float64"}),
        (philox.random_uniform, {"minval": None, "maxval": None, "dtype": "int32"}),
    ):
        keywords = {"shape": (50,), "purpose": 1, **keywords}
        instruction, _ = instruction_of(op, [np.array([1, 2])], keywords)
        kernels.append(kernel_of(DrawKernel, instruction))
    compile_kernels(*kernels)
