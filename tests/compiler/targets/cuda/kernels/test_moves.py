"""Concatenation and placing in CUDA C: the entries of NumPy's kernels, at their addresses."""

import numpy as np
import pytest

from tapewright.compiler.program.array_functions import joined
from tapewright.compiler.program.array_instructions import Copy, View
from tapewright.compiler.program.program import Buffer, Kind
from tapewright.compiler.targets.cuda.kernels import moves
from tapewright.compiler.targets.cuda.kernels.moves import (
    ConcatKernel,
    PadKernel,
    PlaceKernel,
    RepeatKernel,
)
from tapewright.ops.array.indexing import as_index, scatter_index
from tapewright.ops.image.resampling import upsample

from ..kernel_runs import (
    SHAPES,
    assert_same,
    check,
    compile_kernels,
    instruction_of,
    kernel_of,
    named,
    outputs_of,
)


def numbers(*shape, dtype=np.float32):
    return (np.random.default_rng(0).standard_normal(shape) * 10).astype(dtype)


# --------------------------------------------------------------------- concatenation


def concat_of(arrays, axis, operands=None):
    operands = operands or [Buffer(a.shape, a.dtype, Kind.INPUT) for a in arrays]
    instruction = Copy(joined, operands, None, axis)
    wanted = np.concatenate(arrays, axis)
    instruction.outputs = (Buffer(wanted.shape, wanted.dtype, instruction=instruction),)
    return instruction, wanted


def check_concat(arrays, axis, operands=None):
    instruction, wanted = concat_of(arrays, axis, operands)
    kernel = kernel_of(ConcatKernel, instruction)
    for shape in SHAPES:
        found, _ = outputs_of(kernel, arrays, *shape)
        assert_same(found, [wanted])
    return kernel


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "?", "c8"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_arrays_are_concatenated(dtype, axis):
    sizes = [[2, 3, 5] for _ in range(4)]
    for i, extent in enumerate((1, 7, 2, 4)):
        sizes[i][axis] = extent
    check_concat([numbers(*shape, dtype=dtype) for shape in sizes], axis)


def test_empty_arrays_take_no_part():
    shapes = [(3, 0), (3, 2), (3, 0), (3, 1), (3, 0)]
    check_concat([numbers(*shape) for shape in shapes], 1)


def test_one_array_is_copied():
    check_concat([numbers(3, 4)], 0)


def test_an_array_may_come_twice():
    x = numbers(3, 4)
    buffer = Buffer(x.shape, x.dtype, Kind.INPUT)
    kernel = check_concat([x, x], 1, [buffer, buffer])
    (launch,) = kernel.steps_on({buffer: 0, kernel.outputs[0]: 1})
    assert len(launch.parameters) == 2


@pytest.mark.parametrize("count", [moves.TOGETHER, moves.TOGETHER + 1, 40])
def test_many_arrays_are_concatenated_by_several_launches(count):
    arrays = [numbers(3, 1 + i % 3) for i in range(count)]
    kernel = check_concat(arrays, 1)
    addresses = dict(zip((*kernel.operands, *kernel.outputs), range(count + 1)))
    assert len(kernel.steps_on(addresses)) == -(-count // moves.TOGETHER)


def test_bits_of_floats_stay_as_they_are():
    bits = np.array([0x7FC00001, 0xFFC00002, 0x7F800001, 0x80000000, 1], np.uint32)
    arrays = [bits.view(np.float32), bits[::-1].copy().view(np.float32)]
    instruction, _ = concat_of(arrays, 0)
    (found,), _ = outputs_of(kernel_of(ConcatKernel, instruction), arrays)
    assert found.view(np.uint32).tolist() == [*bits, *bits[::-1]]


def test_copies_without_an_axis_and_wide_entries_are_not_accepted():
    x = numbers(3, 4)
    copy, _ = concat_of([x, x], 0)
    copy.axis = None
    assert not ConcatKernel.accepts(copy)
    wide, _ = concat_of([x.astype(np.complex128)] * 2, 0)
    assert not ConcatKernel.accepts(wide)
    empty, _ = concat_of([numbers(0, 4)] * 2, 0)
    assert not ConcatKernel.accepts(empty)


# --------------------------------------------------------------------------- placing


def test_only_entries_of_the_very_shape_are_accepted():
    keywords = {"shape": (3, 4), "index": as_index(np.s_[1:])}
    for g in (numbers(1, 4), numbers(2, 1), numbers(4)):
        instruction, _ = instruction_of(scatter_index, [g], keywords)
        assert not PlaceKernel.accepts(instruction)
    empty, _ = instruction_of(
        scatter_index, [numbers(0, 4)], {"shape": (3, 4), "index": as_index(np.s_[3:])}
    )
    assert not PlaceKernel.accepts(empty)


# ------------------------------------------------------------------ margins, repetition


PADDINGS = [
    ((1, 2), (0, 0), (3, 1)), ((0, 0), (1, 0), (0, 0)), ((0, 0), (0, 0), (0, 0)),
    ((0, 1), (0, 0), (0, 0)), ((0, 0), (2, 2), (1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("paddings", PADDINGS, ids=str)
@pytest.mark.parametrize("filling", [0, -0.0, np.nan, 2.5])
def test_an_array_is_surrounded(paddings, filling):
    arrays = [numbers(2, 3, 4), np.array(filling, np.float32)]
    check(PadKernel, named("pad"), arrays, {"paddings": paddings})


@pytest.mark.parametrize("dtype", ["f2", "f8", "i1", "i8", "?", "c8"])
def test_entries_of_any_width_are_surrounded(dtype):
    arrays = [numbers(3, 4, dtype=dtype), np.array(1, dtype)]
    check(PadKernel, named("pad"), arrays, {"paddings": ((1, 0), (2, 3))})


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "?", "c8"])
@pytest.mark.parametrize("axis", [-1, -2, -3])
@pytest.mark.parametrize("times", [1, 2, 5, 40])
def test_entries_are_repeated_along_an_axis(dtype, axis, times):
    x = numbers(2, 3, 4, dtype=dtype)
    check(RepeatKernel, upsample, [x], {"axis": axis, "times": times})


def test_nothing_is_not_accepted():
    empty, _ = instruction_of(upsample, [numbers(0, 4)], {"axis": -1, "times": 2})
    assert not RepeatKernel.accepts(empty)
    arrays = [numbers(0, 4), np.array(0, np.float32)]
    empty, _ = instruction_of(named("pad"), arrays, {"paddings": ((1, 1), (0, 0))})
    assert not PadKernel.accepts(empty)


# ---------------------------------------------------------------------------- shared


def test_an_operand_may_lie_inside_of_an_array():
    whole = Buffer((6, 4), np.dtype("f"), Kind.INPUT)
    view = View(np.ndarray.__getitem__, whole, (slice(2, 5),), None)
    part = Buffer((3, 4), whole.dtype, instruction=view, base=whole)
    view.outputs = (part,)
    instruction, _ = concat_of([numbers(3, 4)] * 2, 1, [part, part])
    kernel = kernel_of(ConcatKernel, instruction)
    (step,) = kernel.steps_on({whole: 0, kernel.outputs[0]: 1})
    assert [p.place for p in step.parameters] == [0, 1]
    assert "p0 + 8" in step.body


def test_the_functions_are_compiled_for_gpus():
    joined_up, _ = concat_of([numbers(3, n, dtype="f2") for n in (1, 2, 3)], 1)
    index = as_index(np.s_[1:, None, ::-1, ::2])
    placed, _ = instruction_of(
        scatter_index, [numbers(2, 1, 4, 3)], {"shape": (3, 4, 5), "index": index}
    )
    padding, arrays = {"paddings": ((1, 0), (2, 3))}, [numbers(3, 4), np.float32(2)]
    padded, _ = instruction_of(named("pad"), arrays, padding)
    repeated, _ = instruction_of(upsample, arrays[:1], {"axis": -2, "times": 3})
    kernels = kernel_of(ConcatKernel, joined_up), kernel_of(PlaceKernel, placed)
    more = kernel_of(PadKernel, padded), kernel_of(RepeatKernel, repeated)
    compile_kernels(*kernels, *more)
