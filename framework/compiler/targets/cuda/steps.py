"""The steps of any instruction that a GPU computes: thread nests, and kernels."""

from ...loops.threads.thread_nest import ThreadNest
from . import nests


def is_on_device(instruction):
    """Return whether an instruction is computed by steps of a graph."""
    return type(instruction) is ThreadNest or hasattr(instruction, "steps_on")


def steps_of(instruction, addresses):
    """Return the steps of an instruction, see `CudaKernel.steps_on`."""
    if type(instruction) is ThreadNest:
        return nests.steps_on(instruction, addresses)
    return instruction.steps_on(addresses)
