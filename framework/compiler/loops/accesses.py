"""Layouts: where in memory each entry of a buffer lies."""

from typing import NamedTuple

from ..program.instructions.array_instructions import Copy, View
from ..program.lowering.array_functions import copy_into
from .statements import size_of


class Layout(NamedTuple):
    """Entry ``i`` of a buffer is entry ``offset + sum(strides * i)`` of ``base``."""

    base: object
    offset: int
    strides: tuple


def row_major(shape):
    """Strides of an array in C order, in entries."""
    strides, size = [], 1
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return tuple(strides[::-1])


def contiguous_entries(accesses, axis):
    """Return how many entries along an axis are read or written contiguously."""
    own = [a for a in accesses if abs(a.stride(axis)) == 1]
    return sum([size_of(a.axes) for a in own])


def longest_stride(accesses, axis):
    """Return the longest stride along an axis, in entries."""
    return max([abs(a.stride(axis)) for a in accesses], default=0)


def layout_of(buffer):
    """Return the `Layout` of a buffer; a reshape that has to copy starts a new array."""
    view = buffer.instruction
    if type(view) is not View:
        return Layout(buffer, 0, row_major(buffer.shape))
    below = layout_of(view.viewed)
    size = buffer.dtype.itemsize
    layout = view.layout(below.offset * size, tuple([s * size for s in below.strides]))
    if layout is None:
        return Layout(buffer, 0, row_major(buffer.shape))
    offset, strides = layout
    return Layout(below.base, offset // size, tuple([s // size for s in strides]))


def in_order(program, buffer, node):
    """Return a buffer in C order: itself, or the output of a copy appended to the program."""
    if not buffer.size or layout_of(buffer).strides == row_major(buffer.shape):
        return buffer
    copy = Copy(copy_into, (buffer,), node)
    (copied,) = program.append(copy, (buffer.shape, buffer.dtype))
    return copied


def relabeled(view, axes):
    """Return the axes of a view, given the axes of its operand; None if it mixes them.

    ``axes`` has an axis for each dimension, None where all entries are equal.
    """
    (out,) = view.outputs
    name = view.name
    if name == "transpose":
        return tuple([axes[a] for a in view.parameters[0]])
    if name == "reshape" or name == "__getitem__" and _adds_axes(view.parameters):
        return _reshaped(view.viewed.shape, out.shape, axes)
    if name == "broadcast_to":
        return (None,) * (len(out.shape) - len(axes)) + tuple(axes)
    return None


def _adds_axes(index):
    """Return whether an index selects every entry and at most adds axes of size 1."""
    return all([i is None or i is Ellipsis or i == slice(None) for i in index])


def _reshaped(before, after, axes):
    """Return the axes after dimensions of size 1 were added or removed."""
    kept = [(n, axis) for n, axis in zip(before, axes, strict=True) if n != 1]
    if [n for n, _ in kept] != [n for n in after if n != 1]:
        return None
    rest = iter(kept)
    return tuple([None if n == 1 else next(rest)[1] for n in after])
