"""Index maps: the entries that a contraction multiplies and adds up, as affine functions.

A contraction iterates over loops of fixed sizes; each index of its operands and of its
output is ``offset + sum(factor * loop)``. Products, convolutions of all strides,
dilations, paddings and groups, and their gradients are all of this form.
"""

from typing import NamedTuple

import numpy as np


class Affine(NamedTuple):
    """``offset + sum(factor * loop)`` over ``terms``, pairs of a loop's number and factor."""

    terms: tuple
    offset: int = 0

    def at(self, loops):
        """Return the index for these values of the loops: integers or arrays."""
        return self.offset + sum([factor * loops[n] for n, factor in self.terms])


class IndexMaps(NamedTuple):
    """``out[output] += a[operands[0]] * b[operands[1]]`` for all values of the loops.

    Each map has an `Affine` per axis. Where an index lies outside of an operand, the
    entry counts as zero; where it lies outside of the output, nothing is added.
    """

    loops: tuple
    operands: tuple
    output: tuple

    def contracted(self, a, b, shape):
        """Compute the contraction by definition, entry by entry: slow, for checks."""
        out = np.zeros(shape, np.result_type(a, b))
        loops = np.indices(self.loops).reshape(len(self.loops), -1)
        inside, indices = True, []
        for maps, array in zip((*self.operands, self.output), (a, b, out)):
            index = [np.broadcast_to(each.at(loops), loops.shape[1:]) for each in maps]
            for i, n in zip(index, array.shape, strict=True):
                inside = inside & (i >= 0) & (i < n)
            indices.append(index)
        indices = [tuple([i[inside] for i in index]) for index in indices]
        np.add.at(out, indices[2], a[indices[0]] * b[indices[1]])
        return out


def product_maps(a, b):
    """Return the maps of ``np.matmul`` for operands of these shapes."""
    lead = np.broadcast_shapes(a[:-2], b[:-2])
    loops, output = list(lead), [Affine(((n, 1),)) for n in range(len(lead))]
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    inner = len(lead) + len(rows) + len(columns)
    for n in (*rows, *columns):
        output.append(Affine(((len(loops), 1),)))
        loops.append(n)
    loops.append(a[-1])

    def batch(shape):
        first = len(lead) - len(shape[:-2])
        return [
            Affine(((first + i, 1),)) if n > 1 else Affine(())
            for i, n in enumerate(shape[:-2])
        ]

    own_rows = [Affine(((len(lead), 1),))] if rows else []
    own_columns = [Affine(((inner - 1, 1),))] if columns else []
    summed = Affine(((inner, 1),))
    of_a = (*batch(a), *own_rows, summed)
    of_b = (*batch(b), summed, *own_columns)
    return IndexMaps(tuple(loops), (of_a, of_b), tuple(output))


def convolution_maps(
    images, window, counts, count, strides, befores, dilations, groups
):
    """Return ``(loops, images, filters, outputs)``: the loops, and the maps of the arrays.

    ``images``: the shape ``[n, *spatial, channels]``; ``filters`` are ``[*window,
    channels / groups, count]``, outputs ``[n, *counts, count]``. Each of the three is
    the output of either the convolution or one of its two gradients.
    """
    depth, each, rank = images[-1] // groups, count // groups, len(window)
    loops = (images[0], *counts, groups, each, *window, depth)
    group, made, taken = rank + 1, rank + 2, len(loops) - 1
    spatial = [
        Affine(((1 + i, strides[i]), (rank + 3 + i, dilations[i])), -befores[i])
        for i in range(rank)
    ]
    batch, filtered = Affine(((0, 1),)), Affine(((group, each), (made, 1)))
    of_images = (batch, *spatial, Affine(((group, depth), (taken, 1))))
    of_filters = (
        *[Affine(((rank + 3 + i, 1),)) for i in range(rank)],
        Affine(((taken, 1),)),
        filtered,
    )
    outputs = (batch, *[Affine(((1 + i, 1),)) for i in range(rank)], filtered)
    return loops, of_images, of_filters, outputs
