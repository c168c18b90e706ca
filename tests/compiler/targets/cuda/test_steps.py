"""What is work of a device."""

from tapewright.compiler.loops.threads.thread_nest import ThreadNest
from tapewright.compiler.program.instructions.array_instructions import View
from tapewright.compiler.program.instructions.call_instructions import (
    LoadVariable,
    StoreVariable,
    Update,
)
from tapewright.compiler.targets.cuda.kernels.stores import StoreKernel
from tapewright.compiler.targets.cuda.kernels.updates import UpdateKernel
from tapewright.compiler.targets.cuda.steps import is_on_device


def of(kind):
    """An instruction of a class, without more."""
    return kind.__new__(kind)


def test_nests_and_kernels_are_and_what_they_replace_is_not():
    assert all([is_on_device(of(k)) for k in (ThreadNest, StoreKernel, UpdateKernel)])
    assert not any(
        [is_on_device(of(k)) for k in (View, LoadVariable, StoreVariable, Update)]
    )
