"""Images of another size in CUDA C: the weighted sums of NumPy's kernels."""

from types import SimpleNamespace

import numpy as np
import pytest

from tapewright.compiler.program.program import Program
from tapewright.compiler.targets.cuda.kernels.resampling import ResampleKernel
from tapewright.compiler.targets.cuda.kernels.table import KERNELS

from ..kernel_runs import (
    SHAPES,
    assert_same,
    compile_kernels,
    instruction_of,
    named,
    outputs_of,
)


def numbers(*shape, dtype=np.float32):
    return (np.random.default_rng(0).standard_normal(shape) * 10).astype(dtype)


def kernel_for(op, x, keywords):
    instruction, wanted = instruction_of(named(op), [x], keywords)
    assert KERNELS[named(op).primitive] is ResampleKernel
    assert ResampleKernel.accepts(instruction)
    kernel = ResampleKernel.of(Program(SimpleNamespace()), instruction)
    kernel.outputs = instruction.outputs
    return kernel, wanted


def check(op, x, **keywords):
    kernel, wanted = kernel_for(op, x, keywords)
    tables = [a.source for a in kernel.operands[1:]]
    for shape in SHAPES:
        found, _ = outputs_of(kernel, [x, *tables], *shape)
        assert_same(found, wanted)


@pytest.mark.parametrize(
    "method", ["nearest", "bilinear", "bicubic", "area", "lanczos3"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 4, 7, 20])
@pytest.mark.parametrize("axis", [-1, -2, -3])
def test_an_axis_gets_another_size(method, dtype, size, axis):
    x = numbers(2, 7, 6, 5, dtype=dtype)
    given = {"axis": axis, "method": method, "antialias": False}
    check("resample", x, size=size, **given)
    extent = 9
    given["size"] = x.shape[axis]
    check("resample_back", x, extent=extent, **given)


def test_smaller_images_are_smoothed_first():
    given = {"axis": -2, "method": "bilinear", "antialias": True}
    check("resample", numbers(2, 20, 3), size=6, **given)
    check("resample_back", numbers(2, 6, 3), size=6, extent=20, **given)


@pytest.mark.parametrize("dtype", ["f2", "i1", "u1", "i8", "?"])
def test_the_nearest_entry_of_any_dtype_is_moved(dtype):
    given = {"axis": -2, "method": "nearest", "antialias": False}
    check("resample", numbers(2, 7, 3, dtype=dtype), size=15, **given)


def test_infinities_and_nan_spread_as_far_as_their_weights():
    x = np.array([[1, np.inf, 2, np.nan, 3, -0.0]], np.float32)
    given = {"axis": -1, "method": "bilinear", "antialias": False}
    with np.errstate(all="ignore"):
        check("resample", x, size=11, **given)


def test_weighted_sums_of_float16_stay_calls():
    given = {"axis": -2, "method": "bilinear", "antialias": False, "size": 9}
    x = numbers(2, 7, 3, dtype=np.float16)
    instruction, _ = instruction_of(named("resample"), [x], given)
    assert not ResampleKernel.accepts(instruction)


def test_the_functions_are_compiled_for_gpus():
    given = {"axis": -2, "antialias": False, "size": 9}
    made = [
        kernel_for(
            "resample", numbers(2, 7, 3, dtype=dtype), given | {"method": method}
        )
        for dtype, method in (("f4", "bilinear"), ("f8", "bicubic"), ("u1", "nearest"))
    ]
    compile_kernels(*[kernel for kernel, _ in made])
