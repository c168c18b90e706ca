"""Fuse chains of maps on large arrays, so that they run on a block of rows at a time.

One by one, each map reads and writes whole arrays, which do not fit the cache. A
`FusedMap` takes some rows through the whole chain before it goes on to the next ones;
intermediate results are never whole in memory. Every entry is computed as before.
"""

import math

import numpy as np

from .array_instructions import FusedMap
from .instruction import Memory
from .program_rewriter import ProgramRewriter

__all__ = ["buffers_in_other_order", "row_blocks"]

# The least size in bytes of arrays for which fusion pays, and the size of a block of rows:
# smaller arrays stay in the last-level cache, and smaller blocks cost more calls than they
# save.
LEAST, ROWS = 1 << 22, 1 << 19


def row_blocks(program):
    """Fuse neighbouring maps on large arrays of one shape."""
    instructions, at = program.instructions, 0
    others_order, rewriter = buffers_in_other_order(program), ProgramRewriter(program)
    while at < len(instructions):
        chain, before, stop = _chain(instructions, at, others_order)
        if len(chain) < 2:
            at += 1
            continue
        for instruction in instructions[at:stop]:
            rewriter.drop(instruction)
        fused = _fused(program, chain, instructions[stop:])
        rewriter.put(chain[0], [*before, fused])
        at = stop
    rewriter.apply()


def buffers_in_other_order(program):
    """Return base buffers that may not be in C order.

    Kernels choose the order of their outputs, and maps keep the order of their operands.
    """
    found = set()
    for instruction in program.instructions:
        if instruction.memory is Memory.ALLOCATED:
            plain = [_is_in_c_order(a, found) for a in instruction.operands]
            if not instruction.keeps_c_order or not all(plain):
                found.update([out.base for out in instruction.outputs])
        elif instruction.broadcasts and len(instruction.outputs[0].shape) > 2:
            (out,) = instruction.outputs
            full = [a for a in instruction.operands if a.shape == out.shape]
            if any([a.base in found for a in full]):
                found.add(out)
    return found


def _is_in_c_order(buffer, others):
    """Return whether a buffer is in C order, where base buffers ``others`` are not."""
    while buffer.is_view:
        if buffer.instruction.function is not np.ndarray.reshape:
            return False
        buffer = buffer.instruction.viewed
    return buffer not in others


def _chain(instructions, at, others_order):
    """Return ``(chain, before, end)``: instructions from ``at`` on that can be fused, those
    between them, which can run before the chain, and the end of both."""
    first = instructions[at]
    if not _fits(first, others_order):
        return [], [], at
    shape = first.outputs[0].shape
    chain, before, made, end = [first], [], {first.outputs[0]}, at + 1
    between = []
    for i in range(at + 1, len(instructions)):
        each = instructions[i]
        seen = {a.base for a in each.operands} | set(each.operands)
        if _fits(each, others_order) and each.outputs[0].shape == shape:
            chain.append(each)
            made.add(each.outputs[0])
            before += between
            between, end = [], i + 1
        elif each.is_pure and not seen & made:
            between.append(each)
        else:
            break
    return chain, before, end


def _fits(instruction, others_order):
    """Return whether an instruction maps arrays that can be cut into rows."""
    if not instruction.broadcasts:
        return False
    (out,) = instruction.outputs
    if out.nbytes < LEAST or not out.shape or out.shape[0] < 2:
        return False
    if out.nbytes // out.shape[0] > LEAST:
        return False
    if len(out.shape) > 2 and out in others_order:
        return False
    return all([len(a.shape) <= len(out.shape) for a in instruction.operands])


def _fused(program, chain, later):
    """Return one instruction for a chain; its outputs are those that others read."""
    made = {step.outputs[0] for step in chain}
    needed = {a.base for a in program.outputs} | set(program.outputs)
    for instruction in later:
        needed.update(instruction.operands)
        needed.update([a.base for a in instruction.operands])
    operands = []
    for step in chain:
        operands += [a for a in step.operands if a not in made and a not in operands]
    outputs = [step.outputs[0] for step in chain if step.outputs[0] in needed]
    height, *columns = chain[0].outputs[0].shape
    width = max([s.outputs[0].dtype.itemsize for s in chain]) * math.prod(columns)
    rows = max(1, min(height, ROWS // width))
    places, specs = _scratch(chain, outputs, rows)
    return FusedMap(chain, operands, outputs, rows, specs, places)


def _scratch(chain, outputs, rows):
    """Assign scratch memory to intermediate results; it is reused after their last read.

    Returns the number of the memory of each such buffer, and the specs of the memory.
    """
    places, specs, free = {}, [], []  # free: numbers of memory that holds nothing
    left = {}  # buffer -> the number of reads to come
    for step in chain:
        for a in step.operands:
            left[a] = left.get(a, 0) + 1
    for step in chain:
        (out,) = step.outputs
        for a in step.operands:
            left[a] -= 1
        over = [a for a in dict.fromkeys(step.operands) if a in places and not left[a]]
        if out not in outputs:
            spec = (rows, *out.shape[1:]), out.dtype
            fitting = [places[a] for a in over] + free
            fitting = [n for n in fitting if specs[n] == spec]
            if not fitting:
                fitting = [len(specs)]
                specs.append(spec)
            places[out] = fitting[0]
            free = [n for n in free if n != fitting[0]]
        free += [places[a] for a in over if places[a] != places.get(out)]
    return places, specs
