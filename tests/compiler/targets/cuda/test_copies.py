"""Copies of many arrays: equal values in other memory, by few calls."""

import numpy as np
import pytest

from tapewright.compiler.targets.cuda.copies import ARRAYS, SMALL, copies
from tapewright.compiler.targets.cuda.modules import OPTIONS, copy_source

from ....stand_in import driver, nvrtc
from .runtime_runs import asked, new_log

RNG = np.random.default_rng(0)


def check(xp, arrays):
    """Copies are equal, keep their values, and lie in no memory of the arrays."""
    before = [array.held.copy() for array in arrays]
    found = copies(xp, arrays)
    for array, value, copy in zip(arrays, before, found, strict=True):
        assert copy.dtype == array.dtype and copy.shape == array.shape
        assert copy.flags.c_contiguous
        array[...] = 0
        assert np.array_equal(copy.held, value)


@pytest.mark.parametrize("threads", ["one", "fibers"])
@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "int64", "bool", "complex128", "uint8"]
)
def test_arrays_of_each_dtype_are_copied(dtype, threads, gpu):
    shapes = (), (3,), (7, 5), (0, 4), (2, 1, 9)
    with driver.threads(threads):
        check(gpu, [gpu.asarray((RNG.random(s) * 9).astype(dtype)) for s in shapes])


@pytest.mark.skipif(bool(nvrtc.missing()), reason="NVRTC is not installed")
def test_nvrtc_compiles_the_launch_of_as_many_copies_as_it_takes():
    for arch in nvrtc.ARCHITECTURES:
        assert nvrtc.compile_for(copy_source(ARRAYS), arch, OPTIONS)


def test_many_small_arrays_take_a_launch_for_each_group_of_them(gpu):
    arrays = [gpu.asarray(RNG.random(n + 1)) for n in range(ARRAYS + 3)]
    copies(gpu, arrays)  # compiles
    new_log()
    check(gpu, arrays)
    assert asked().count("launch") == 2


def test_arrays_that_fill_a_flat_array_are_copied_with_it(gpu):
    flat = gpu.asarray(RNG.random(10))
    parts = [flat[:6].reshape(2, 3), flat[6:7].reshape(()), flat[7:]]
    found = copies(gpu, parts)
    assert found[0].base is found[1].base is found[2].base
    check(gpu, parts)


def test_parts_of_an_array_of_which_others_are_not_copied_are_copied_alone(gpu):
    flat = gpu.asarray(RNG.random(10))
    found = copies(gpu, [flat[2:6]])
    assert found[0].base is None or found[0].base.nbytes < flat.nbytes
    check(gpu, [flat[2:6], gpu.asarray(RNG.random((4, 3))).T])


def test_large_arrays_are_copied_alone(gpu):
    check(gpu, [gpu.asarray(RNG.random(SMALL // 8 + 1)), gpu.asarray(RNG.random(3))])
