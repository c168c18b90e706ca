"""Calls of kernels for NumPy, which the kernels of all targets replace."""

from types import SimpleNamespace

import numpy as np

from tapewright.compiler.program.instructions.call_instructions import Opaque
from tapewright.compiler.program.lowering.lowering_rules import KERNEL_INSTRUCTIONS
from tapewright.compiler.program.program import Buffer, Kind


def kernel_in(table, op):
    """The class of kernels that the table of a target names for an op, if it does."""
    instruction = KERNEL_INSTRUCTIONS.get(op.primitive)
    return table.get(op.primitive) or table.get(instruction)


def instruction_of(op, arrays, keywords):
    """An instruction that calls the kernel of an op for NumPy, and the arrays it makes."""
    op = op.primitive
    kind = KERNEL_INSTRUCTIONS.get(op, Opaque)
    operands = [Buffer(a.shape, a.dtype, Kind.INPUT) for a in arrays]
    node = SimpleNamespace(op=op, name=op.name, attributes=keywords)
    instruction = kind(op.kernels.plain(np.ndarray), operands, node, dict(keywords))
    with np.errstate(all="ignore"):
        made = np.array(instruction.function(*arrays, **keywords), order="C")
    instruction.outputs = (Buffer(made.shape, made.dtype, instruction=instruction),)
    return instruction, [made]


def assert_same(found, wanted):
    """The same bits, but for the payload of NaN."""
    for a, b in zip(found, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            numbers = ~np.isnan(b)
            np.testing.assert_array_equal(
                np.signbit(a[numbers]), np.signbit(b[numbers])
            )
