"""Turn the maps and reductions of a program into loop nests."""

import numpy as np

from ..program.instructions.array_instructions import Contract, Copy, Reduce, View
from ..program.lowering.array_functions import copy_into
from ..program.passes.program_rewriter import ProgramRewriter
from .accesses import layout_of
from .group import root_of
from .grouping import MOST, form_groups
from .read_hoisting import hoist_reads, reads_for_concats
from .stages import nests_of


def form_loops(
    program,
    is_supported,
    fused=True,
    layouts=None,
    *,
    schedule=nests_of,
    most=MOST,
    has_totals=True,
):
    """Replace instructions that loops can compute by loop nests.

    ``is_supported(instruction)`` returns whether the target computes a map, reduction
    or copy. With ``fused`` False, each instruction gets its own nest. ``layouts`` has the
    `Layout` of values that are not stored in C order; ``schedule`` makes the nests of a
    group, see `nests_of`; ``most`` is the maximal code size of a group, see `form_groups`;
    ``has_totals``: see `Group`.
    """
    copied_views(program)
    reads_for_concats(program, is_supported)
    if fused:
        hoist_reads(program, is_supported)
    units = form_groups(program, is_supported, most if fused else 1, has_totals)
    stored = _stored(program, units)
    program.instructions = [
        each
        for unit in units
        for each in (
            schedule(unit.group, stored[unit], layouts) if unit.group else unit.members
        )
    ]
    make_views(program)
    return program


def make_views(program):
    """Append views in front of the instructions that read them: loops read the base."""
    instructions, made = [], set()

    def make(buffers):
        for buffer in buffers:
            chain = []
            while type(buffer.instruction) is View and buffer not in made:
                made.add(buffer)
                chain.append(buffer.instruction)
                buffer = buffer.instruction.viewed
            instructions.extend(chain[::-1])

    for each in program.instructions:
        make(each.operands)
        instructions.append(each)
    make(program.outputs)
    program.instructions = instructions


def _stored(program, units):
    """Map each group to its values that instructions outside read."""
    outputs = {root_of(out) for out in program.outputs}
    read_by, stored = {}, {}
    for unit in units:
        for each in unit.members:
            for a in each.operands:
                read_by.setdefault(root_of(a), set()).add(unit)
    for unit in units:
        if unit.group:
            made = [out for each in unit.members for out in each.outputs]
            stored[unit] = [
                out
                for out in made
                if out in outputs or read_by.get(out, set()) - {unit}
            ]
    return stored


def copied_views(program):
    """Insert copies before reshapes that cannot be views."""
    rewriter = ProgramRewriter(program)
    for view in program.instructions:
        if type(view) is not View:
            continue
        (out,), operand = view.outputs, view.viewed
        if layout_of(out).base is not out:
            continue
        copy = Copy(copy_into, (operand,), view.node)
        (copied,) = program.append(copy, (operand.shape, operand.dtype))
        program.instructions.pop()
        copy_view = View(view.function, copied, view.parameters, view.node)
        (made,) = program.append(copy_view, (out.shape, out.dtype))
        program.instructions.pop()
        rewriter.put(view, (copy, copy_view))
        rewriter.replace(out, made)
    rewriter.apply()


def sums_for_products(program):
    """Replace products with all-ones arrays, fast in NumPy, by the sums they compute."""
    rewriter = ProgramRewriter(program)
    for each in program.instructions:
        if type(each) is not Contract or each.keywords or len(each.operands) != 2:
            continue
        a, b = each.operands
        rank, axis = len(b.shape), None
        if (
            _is_ones(a)
            and 1 in (len(a.shape), a.shape[-2:][0])
            and a.size == a.shape[-1]
        ):
            operand, axis = b, max(rank - 2, 0)
            keeps = len(a.shape) > 1
        elif _is_ones(b) and b.size == b.shape[-2:][0]:
            operand, axis, keeps = a, len(a.shape) - 1, len(b.shape) > 1
        if axis is None:
            continue
        reduce = Reduce(np.add, operand, axis, keeps, each.node)
        (out,) = each.outputs
        (made,) = program.append(reduce, (out.shape, out.dtype))
        program.instructions.pop()
        if _reduced_shape(operand.shape, axis, keeps) != out.shape:
            continue
        rewriter.put(each, (reduce,))
        rewriter.replace(out, made)
    rewriter.apply()


def _reduced_shape(shape, axis, keeps):
    return (*shape[:axis], *((1,) if keeps else ()), *shape[axis + 1 :])


def _is_ones(buffer):
    """Return whether a buffer is a constant filled with ones."""
    if not buffer.is_constant or buffer.is_view or not buffer.shape or not buffer.size:
        return False
    source = buffer.source
    return (
        source.dtype.kind == "f"
        and source.nbytes <= 1 << 20
        and bool((source == 1).all())
    )
