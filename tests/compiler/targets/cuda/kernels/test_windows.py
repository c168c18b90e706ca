"""Pooling in CUDA C: large arrays, accepted instructions, results in place of an input."""

import numpy as np
import pytest

from tapewright.compiler.targets.cuda.kernels.windows import (
    MaxKernel,
    MeanKernel,
    PickKernel,
    SpreadKernel,
    SpreadMeansKernel,
)
from tapewright.ops.convolution.pooling import (
    pick_at_maxima_p,
    spread_means_p,
    spread_to_maxima_p,
    window_max_p,
    window_mean_p,
)
from tapewright.ops.convolution.windows import resized

from ...pooling_cases import attributes_of, case_of, operands_of
from ..kernel_runs import (
    SHAPES,
    assert_same,
    check,
    compile_kernels,
    instruction_of,
    kernel_of,
    outputs_of,
)

KINDS = {
    window_max_p: MaxKernel,
    window_mean_p: MeanKernel,
    spread_means_p: SpreadMeansKernel,
    spread_to_maxima_p: SpreadKernel,
    pick_at_maxima_p: PickKernel,
}


LARGE = {
    "windows side by side": (31, 2, 2, "VALID", 1),
    "overlapping": (33, 3, 2, "SAME", 1),
    "apart": (33, 2, 5, (1, 1), 1),
    "with holes": (40, 3, 1, (2, 1), 4),
    "long": (200, 60, 7, (20, 30), 1),
}


@pytest.mark.parametrize("window", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("axis", [-1, -2])
@pytest.mark.parametrize("op", KINDS, ids=lambda op: op.__name__)
def test_large_arrays_are_pooled(op, axis, window):
    rng, shape = np.random.default_rng(0), resized((3, 5, 7), axis, window[0])
    with np.errstate(all="ignore"):
        check(KINDS[op], op, *operands_of(op, rng, shape, axis, window, "f4", "f4"))


def spread_in_halves(shape, axis, dtype="f4"):
    rng = np.random.default_rng(1)
    window = shape[axis], 2, 2, "VALID", 1
    given = operands_of(spread_to_maxima_p, rng, shape, axis, window, dtype, dtype)
    return (*instruction_of(spread_to_maxima_p, *given), given[0])


@pytest.mark.parametrize(("shape", "axis"), [((4, 9), -1), ((3, 8, 5), -2), ((6,), -1)])
def test_cotangents_of_halves_may_be_written_over_the_input(shape, axis):
    instruction, wanted, arrays = spread_in_halves(shape, axis)
    kernel = kernel_of(SpreadKernel, instruction)
    g, x = kernel.operands
    assert kernel.in_place_operands == (x,)
    for run in SHAPES:
        addresses = {g: 0, x: 1, kernel.outputs[0]: 1}
        found, _ = outputs_of(kernel, arrays[:2], *run, numbers=addresses)
        assert_same(found, wanted)


def test_other_spread_cotangents_do_not_overwrite_the_input():
    rng = np.random.default_rng(0)
    given = operands_of(
        spread_to_maxima_p, rng, (4, 9), -1, (9, 3, 2, "VALID", 1), "f4", "f4"
    )
    instruction, _ = instruction_of(spread_to_maxima_p, *given)
    assert kernel_of(SpreadKernel, instruction).in_place_operands == ()


def test_arrays_that_broadcast_are_not_accepted():
    _, _, (g, x, maxima) = spread_in_halves((3, 8, 5), -2)
    keywords = attributes_of((8, 2, 2, "VALID", 1), -2)
    many = np.stack([g, g])
    instruction, _ = instruction_of(spread_to_maxima_p, [many, x, maxima], keywords)
    assert not SpreadKernel.accepts(instruction)


@pytest.mark.parametrize("op", [window_max_p, window_mean_p], ids=["max", "mean"])
def test_float16_and_empty_arrays_are_not_accepted(op):
    keywords = attributes_of((4, 2, 1, "SAME", 1), -1)
    for x in (np.ones((3, 4), np.float16), np.ones((0, 4), np.float32)):
        instruction, _ = instruction_of(op, [x], keywords)
        assert not KINDS[op].accepts(instruction)


def test_the_functions_are_compiled_for_gpus():
    kernels = []
    for op, kind in KINDS.items():
        for seed in (0, 3):
            instruction, _ = instruction_of(op, *case_of(op, seed))
            kernels.append(kernel_of(kind, instruction))
    instruction, _, _ = spread_in_halves((4, 9), -1)
    compile_kernels(*kernels, kernel_of(SpreadKernel, instruction))
