"""Matrix products: the memory layout of the matrices, as BLAS libraries accept it.

A batch of products is a single product if the rows of all its matrices are evenly
spaced in memory, as for a batch of sequences times a kernel.
"""

import math
from typing import NamedTuple

import numpy as np

from ..accesses import layout_of, row_major

MOST = 1 << 31  # rows or columns, from which on libraries do not take them


class Matrix(NamedTuple):
    """A batch of matrices: each begins at ``offset + sum(strides * batch index)``.

    ``rows`` is the distance between two rows in memory, or between two rows of the
    transposed matrix if it is ``transposed``.
    """

    base: object
    offset: int
    strides: tuple
    transposed: bool
    rows: int

    @property
    def steps(self):
        """Strides from row to row and from column to column, in entries."""
        return (1, self.rows) if self.transposed else (self.rows, 1)


class Product(NamedTuple):
    """``out[batch] = a[batch] @ b[batch]``, of shapes ``(m, k) @ (k, n)``."""

    batch: tuple
    m: int
    n: int
    k: int
    a: Matrix
    b: Matrix
    out: Matrix


def product_of(a, b, out):
    """Return the `Product` of buffers, or None if neither rows nor columns are contiguous.

    Buffers of rank 1 are a row, or a column. The batch has as few axes as the layouts
    allow.
    """
    shape_a = (1, *a.shape) if len(a.shape) == 1 else a.shape
    shape_b = (*b.shape, 1) if len(b.shape) == 1 else b.shape
    batch = np.broadcast_shapes(shape_a[:-2], shape_b[:-2])
    (m, k), n = shape_a[-2:], shape_b[-1]
    left = _matrix(a, shape_a, batch, ahead=len(a.shape) == 1)
    right = _matrix(b, shape_b, batch, ahead=False)
    if left is None or right is None:
        return None
    strides = row_major((*batch, m, n))[: len(batch)]
    product = Product(batch, m, n, k, left, right, Matrix(out, 0, strides, False, n))
    return _as_one(_merge_batch_axes(product)) if batch else product


def _matrix(buffer, shape, batch, ahead):
    """Return the matrices of a buffer of this shape, or None; a vector has one more axis.

    With ``ahead``, this axis comes first.
    """
    base, offset, steps = layout_of(buffer)
    if len(steps) == 1:
        steps = (shape[-1], *steps) if ahead else (*steps, 1)
    (rows, columns), (down, along) = shape[-2:], steps[-2:]
    lead = [0] * (len(batch) - len(shape) + 2)
    strides = (*lead, *[s if n > 1 else 0 for s, n in zip(steps[:-2], shape[:-2])])
    if (columns == 1 or along == 1) and (rows == 1 or down >= columns):
        return Matrix(base, offset, strides, False, columns if rows == 1 else down)
    if (rows == 1 or down == 1) and (columns == 1 or along >= rows):
        return Matrix(base, offset, strides, True, along)
    return None


def _merge_batch_axes(product):
    """Return the product with as few batch axes as its layouts allow."""
    matrices, axes = (product.a, product.b, product.out), []
    for n, *strides in zip(product.batch, *[each.strides for each in matrices]):
        if n == 1:
            continue
        if axes and all([o == n * i for o, i in zip(axes[-1][1:], strides)]):
            n *= axes.pop()[0]
        axes.append((n, *strides))
    batch, *strides = zip(*axes) if axes else ((),) * 4
    a, b, out = [x._replace(strides=s) for x, s in zip(matrices, strides)]
    return product._replace(batch=batch, a=a, b=b, out=out)


def _as_one(product):
    """Fold a batch of matrices times one matrix into one product if rows are evenly spaced."""
    a, b, m = product.a, product.b, product.m
    count = math.prod(product.batch)
    if len(product.batch) != 1 or a.transposed or any(b.strides) or count * m >= MOST:
        return product
    rows = a.strides[0] if m == 1 else a.rows
    if a.strides[0] != m * rows or rows < product.k:
        return product
    a, out = a._replace(strides=(), rows=rows), product.out._replace(strides=())
    return Product((), count * m, *product[2:4], a, b._replace(strides=()), out)
