"""Passes that make a program smaller, in place. They keep every bit of the results."""

import numpy as np

from .program_rewriter import ProgramRewriter


def merge_equal(program):
    """Keep one of several instructions that compute the same from the same operands."""
    rewriter, known = ProgramRewriter(program), {}
    for instruction in program.instructions:
        key = instruction.merge_key(rewriter.operands(instruction))
        first = known.get(key)
        if first is not None:
            rewriter.drop(instruction)
            for own, other in zip(instruction.outputs, first.outputs, strict=True):
                rewriter.replace(own, other)
        elif key is not None:
            known[key] = instruction
    rewriter.apply()


def drop_unused(program):
    """Remove instructions whose outputs are not read."""
    rewriter, needed = ProgramRewriter(program), set(program.outputs)
    for instruction in reversed(program.instructions):
        if instruction.is_droppable and needed.isdisjoint(instruction.outputs):
            rewriter.drop(instruction)
        else:
            needed.update(instruction.operands)
    rewriter.apply()


def uniform_constants(program):
    """Replace constants that hold one broadcast number by a scalar, where it broadcasts."""
    for instruction in program.instructions:
        if not instruction.broadcasts:
            continue
        shape, operands = instruction.outputs[0].shape, list(instruction.operands)
        for i, a in enumerate(operands):
            if not (a.is_constant and a.shape and a.size) or a.is_view:
                continue
            if any(a.source.strides):
                continue
            others = [b.shape for j, b in enumerate(operands) if j != i]
            if np.broadcast_shapes((), *others) == shape:
                number = a.source[(0,) * a.source.ndim].reshape(())
                operands[i] = program.constant(number)
        instruction.operands = tuple(operands)
