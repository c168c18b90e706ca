"""The verifier finds values of variables that are read behind their overwriting."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.pipeline import make_program
from tapewright.compiler.program.instructions.array_instructions import Copy
from tapewright.compiler.program.verifier import verify_program
from tapewright.compiler.targets.cuda.kernels.stores import (
    StoreKernel,
    copy_overwritten,
)
from tapewright.errors import VerificationError


@pytest.fixture
def gpu_program(numpy_target):
    """A program that reads a variable, stores to it in its place, and uses what it read."""
    v = tw.Variable(np.ones(3, "f"))

    @tw.function
    def step(x):
        before = v.read()
        v.assign(x)
        return before + x

    made = make_program(step.get_concrete_function(tw.ones([3])).graph)
    stores = [e for e in made.instructions if type(e).__name__ == "StoreVariable"]
    maps = [e for e in made.instructions if type(e).__name__ == "Map"]
    rest = [e for e in made.instructions if e not in (*stores, *maps)]
    kernels = [StoreKernel(e.operands, e.node) for e in stores]
    made.instructions[:] = [*rest, *kernels, *maps]
    return made


@pytest.mark.parametrize("copies", [False, True])
def test_a_value_that_is_read_behind_its_overwriting_needs_a_copy(copies, gpu_program):
    if copies:
        copy_overwritten(gpu_program)
        verify_program(gpu_program, "the test")
        assert [type(e) for e in gpu_program.instructions].count(Copy) == 1
        return
    verify_program(gpu_program, "the test")
    gpu_program.overwrites = True
    with pytest.raises(VerificationError, match="holds another value"):
        verify_program(gpu_program, "the test")
