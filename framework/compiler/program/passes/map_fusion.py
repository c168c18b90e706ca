"""Fuse chains of maps on large arrays, so that they run on a block of rows at a time.

Separately, each map reads and writes whole arrays, which do not fit the cache. A
`FusedMap` runs the whole chain on a few rows before it moves to the next, in several
threads; intermediate results are never whole in memory. Reductions over the last axis
are included, as in softmax. Every entry has the same value as without fusion.
"""

import numpy as np

from ..instructions.array_instructions import FusedMap, Reduce
from ..instructions.call_instructions import LoadVariable
from ..instructions.instruction import Memory
from .program_rewriter import ProgramRewriter


def row_blocks(program):
    """Fuse adjacent maps on large arrays of one shape."""
    instructions, at = program.instructions, 0
    others_order, rewriter = buffers_in_other_order(program), ProgramRewriter(program)
    while at < len(instructions):
        chain, before, stop = _chain(program, at, others_order)
        if not chain:
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

    Kernels choose the order of their outputs, and maps preserve the order of their
    operands.
    """
    unordered = set()
    for instruction in program.instructions:
        if instruction.memory is Memory.ALLOCATED:
            plain = [_is_in_c_order(a, unordered) for a in instruction.operands]
            if not instruction.keeps_c_order or not all(plain):
                unordered.update([out.base for out in instruction.outputs])
        elif instruction.broadcasts and len(instruction.outputs[0].shape) > 1:
            (out,) = instruction.outputs
            full = [a for a in instruction.operands if a.shape == out.shape]
            if any([a.base in unordered for a in full]):
                unordered.add(out)
    return unordered


def _is_in_c_order(buffer, others):
    """Return whether a buffer is in C order; the base buffers ``others`` are not."""
    while buffer.is_view:
        if buffer.instruction.function is not np.ndarray.reshape:
            return False
        buffer = buffer.instruction.viewed
    return buffer not in others


def _chain(program, at, others_order):
    """Return ``(chain, before, end)``, a chain of fusible instructions from ``at`` on.

    ``before`` are instructions in between that can run before the chain, ``end`` is the
    end of both.
    """
    instructions, limits = program.instructions, program.limits
    first = instructions[at]
    if not _is_large(first, limits) or not _fits(first, others_order, limits):
        return [], [], at
    chain, before, made, end = [first], [], {first.outputs[0]}, at + 1
    between = []
    for i in range(at + 1, len(instructions)):
        each = instructions[i]
        seen = {a.base for a in each.operands} | set(each.operands)
        # A small map, such as the mean of each row, takes part if it reads the chain.
        takes_part = _is_large(each, limits) or seen & made
        fits = takes_part and _fits(each, others_order, limits)
        if fits and _same_rows(each, first):
            chain.append(each)
            made.add(each.outputs[0])
            before += between
            between, end = [], i + 1
        elif (each.is_pure or type(each) is LoadVariable) and not seen & made:
            between.append(each)  # maps change no variable that is loaded
        else:
            break
    return chain, before, end


def has_rows(array, limits):
    """Return whether an array has several rows, none of them large."""
    height = array.shape[0] if array.shape else 0
    return height > 1 and array.size // height <= limits.fused_entries


def _is_large(instruction, limits):
    """Return whether an instruction maps or reduces a large array."""
    if isinstance(instruction, Reduce):
        (array,) = instruction.operands
    elif instruction.broadcasts:
        (array,) = instruction.outputs
    else:
        return False
    return array.size >= limits.fused_entries


def _same_rows(one, other):
    """Return whether the outputs of two instructions have the same rank and number of rows."""
    a, b = one.outputs[0].shape, other.outputs[0].shape
    return len(a) == len(b) and a[0] == b[0]


def _fits(instruction, others_order, limits):
    """Return whether an instruction can be computed row by row."""
    if isinstance(instruction, Reduce):
        whole, rank = instruction.operands[0], len(instruction.operands[0].shape)
        if not instruction.keepdims or instruction.axes != (rank - 1,) or rank < 2:
            return False
    elif instruction.broadcasts:
        (whole,) = instruction.outputs
    else:
        return False
    # NumPy reduces in memory order, which a few rows of a transposed array are not in: for
    # 40,000 x 64, exp(x.T - max(x.T)) takes 63 ms with fused maxima, else 16 ms.
    return has_rows(whole, limits) and _is_in_c_order(whole, others_order)


def _fused(program, chain, later):
    """Return one instruction for a chain; its outputs are the values that others read."""
    made = {step.outputs[0] for step in chain}
    needed = {a.base for a in program.outputs} | set(program.outputs)
    for instruction in later:
        needed.update(instruction.operands)
        needed.update([a.base for a in instruction.operands])
    operands = []
    for step in chain:
        operands += [a for a in step.operands if a not in made and a not in operands]
    outputs = [step.outputs[0] for step in chain if step.outputs[0] in needed]
    height = chain[0].outputs[0].shape[0]
    largest = max([a.nbytes for step in chain for a in (*step.operands, *step.outputs)])
    # The rows of the largest array have `Limits.row_block_bytes`.
    rows = max(1, min(height, program.limits.row_block_bytes * height // largest))
    scratch_of, specs = _scratch(chain, outputs, rows)
    return FusedMap(chain, operands, outputs, rows, specs, scratch_of)


def _scratch(chain, outputs, rows):
    """Assign scratch memory to intermediate results; it is reused after their last read.

    Returns the number of the memory of each such buffer, and the specs of the memory.
    """
    scratch_of, specs, free = {}, [], []  # free: numbers of memory that holds nothing
    left = {}  # buffer -> the number of reads to come
    for step in chain:
        for a in step.operands:
            left[a] = left.get(a, 0) + 1
    for step in chain:
        (out,) = step.outputs
        for a in step.operands:
            left[a] -= 1
        over = [
            a for a in dict.fromkeys(step.operands) if a in scratch_of and not left[a]
        ]
        if out not in outputs:
            spec = (rows, *out.shape[1:]), out.dtype
            fitting = [scratch_of[a] for a in over] + free
            fitting = [n for n in fitting if specs[n] == spec]
            if not fitting:
                fitting = [len(specs)]
                specs.append(spec)
            scratch_of[out] = fitting[0]
            free = [n for n in free if n != fitting[0]]
        free += [scratch_of[a] for a in over if scratch_of[a] != scratch_of.get(out)]
    return scratch_of, specs
