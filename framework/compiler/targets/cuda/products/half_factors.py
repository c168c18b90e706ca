"""A pass that lets products and convolutions read half precision factors directly.

Ops compute in float32 with copies of such inputs, and round once (`primitive.widened`).
The product of two copies becomes a product of the half precision arrays, for which a
GPU has tensor cores: they multiply exactly and accumulate in float32. If the product is
then only rounded to the dtype of its factors, the same call does that.
"""

import numpy as np

from tapewright.core.dtypes import is_narrow

from ....program.instructions.array_instructions import Contract, Map, View
from ....program.instructions.scalar_functions import cast
from ....program.passes.program_rewriter import ProgramRewriter
from ....program.passes.simplification import drop_unused
from ..kernels.convolution import ContractionKernel


def half_factors(program):
    """Let contractions read half precision arrays instead of their float32 copies.

    Copies that the host makes stay, and so do instructions that read them.
    """
    rewriter, instructions = ProgramRewriter(program), program.instructions
    readers = program.readers()
    for each in list(instructions):
        if type(each) is not Contract:
            continue
        count = len(instructions)
        halves = [_half_of(program, a) for a in each.operands]
        if None not in halves:
            new = Contract(
                each.function,
                halves,
                each.node,
                each.keywords,
                lambda old=each: old.maps,
            )
            for out in _outputs(program, each, readers):
                (made,) = program.append(new, (out.shape, out.dtype))
                if ContractionKernel.accepts(new):
                    rewriter.replace(out, made)
                    rewriter.put(each, instructions[count:])
                    break
                instructions.pop()
        del instructions[count:]
    rewriter.apply()
    drop_unused(program)


def _half_of(program, buffer):
    """Return the half precision array of which a buffer is a float32 copy, or None.

    Views of the copy are appended to the program as views of that array.
    """
    maker = buffer.instruction
    if maker in program.on_host:
        return None
    if type(maker) is View:
        half = _half_of(program, maker.viewed)
        if half is None:
            return None
        view = View(maker.function, half, maker.parameters, maker.node)
        return program.append(view, (buffer.shape, half.dtype))[0]
    if not _is_cast(maker) or buffer.dtype != np.float32:
        return None
    (half,) = maker.operands
    return half if is_narrow(half.dtype) and half.shape == buffer.shape else None


def _outputs(program, contract, readers):
    """The outputs to try: the rounded product, if nothing else reads it, and the product."""
    (out,) = contract.outputs
    reader, *others = readers.get(out, [None])
    is_only = not others and out not in program.outputs
    if _is_cast(reader) and is_only:
        (rounded,) = reader.outputs
        if rounded.shape == out.shape:
            yield rounded
    yield out


def _is_cast(instruction):
    """Return whether an instruction converts an array, entry by entry."""
    return type(instruction) is Map and instruction.function is cast
