"""Instructions that run as machine code, and the reasons why others do not."""

import numpy as np

from tapewright.core.dtypes import kind_of

from ...program.instructions.array_instructions import (
    BoundedRead,
    Contract,
    Copy,
    Map,
    Reduce,
)
from ...program.instructions.call_instructions import RegionCall
from ...program.instructions.kernel import bits_of
from .math_functions import is_supported


def is_loop(instruction):
    """Return whether there is machine code for a map, reduction or copy."""
    return _missing(instruction) is None


def reason_for_numpy(instruction):
    """Return the reason why NumPy, or Python, computes an instruction that is not free."""
    if instruction.variables_written and not isinstance(instruction, RegionCall):
        return "writes to variables"
    if type(instruction) is RegionCall:
        return "regions are compiled separately"
    if instruction.has_effect:
        return "calls Python"
    if not isinstance(instruction, (Map, Reduce, Copy, BoundedRead, Contract)):
        return f"no machine code for {instruction.name}"
    arrays = (*instruction.operands, *instruction.outputs)
    if not all([a.size for a in arrays]):
        return "the arrays are empty"
    if type(instruction) is Contract:
        shapes = " and ".join([str(list(a.shape)) for a in instruction.operands[:2]])
        return f"no machine code for {instruction.name} of {shapes}"
    if type(instruction) is Copy and instruction.axis is not None:
        return "no machine code for this concatenation"
    return f"no machine code for {_missing(instruction) or instruction.name}"


def _missing(instruction):
    """Return the name of the unsupported part of a map, reduction or copy, or None."""
    (out,) = instruction.outputs
    dtypes = [a.dtype for a in instruction.operands]
    is_move = type(instruction) in (Copy, BoundedRead)
    for d in (*dtypes, out.dtype):
        if kind_of(d) not in "fbiu" and not (is_move and bits_of(d)):
            return d.name
    if is_move:
        return None
    if isinstance(instruction, Map):
        dtypes = instruction.scalar_dtypes
        if is_supported(instruction.scalar, dtypes, out.dtype):
            return None
        return f"{instruction.scalar} of {', '.join([d.name for d in dtypes])}"
    name = instruction.ufunc.__name__
    if out.dtype == np.float16:  # whose totals are to be of float32
        return f"{name}.reduce of {out.dtype.name}"
    known = name in ("add", "multiply", "maximum", "minimum")
    return None if known else f"{name}.reduce"
