"""Products of thin matrices as contractions, whose tiles have any height and width.

`gemm` packs both matrices, which pays if a copy is reused many times: not for a few
rows, as in a small batch. Its tiles are whole vectors of columns, so BLAS is called for
fewer columns: contractions can have vectors along the rows or along the sum, too.
Products for which this is not faster are left to `products`: see `is_thin`. A batch of
small products is one contraction, instead of a call for each.
"""

from typing import NamedTuple

from ....program.index_maps import Affine, IndexMaps
from . import gemm
from .product_calls import product_of

FEW = 48  # rows of a product that is faster without copies
LEAST = 1 << 21  # multiplications from which on BLAS is slower for a few columns
SHORT, LEAST_SHORT = 64, 1 << 19  # the same of sums that are not longer
PAGE = 1 << 12  # bytes: rows that lie so far apart, or twice, take each other's place
SMALL = 1 << 13  # multiplications of one of a batch, up to which a call costs more
ROWS, FEWEST = 64, 16  # of a block into which the first matrix is cut, if it is longer


class ThinProduct(NamedTuple):
    """A product as a contraction, with operands read in place.

    The rows of the first matrix, or its columns if it is transposed, are split into
    blocks. ``shapes`` are the shapes of the operands and of the output.
    """

    maps: IndexMaps
    operands: tuple
    shapes: tuple


def thin_product_of(instruction, limits):
    """Return the `ThinProduct` of an instruction, or None if it is left to `products`."""
    product = product_of(instruction)
    if product is not None and _is_small(product):
        return _small_products(product)
    if product is None or not is_thin(product, instruction.outputs[0].dtype, limits):
        return None
    m, n, k, a, b, _ = product[1:]
    if a.transposed and b.transposed:
        return None
    if not (_is_whole(a, m, k) and _is_whole(b, k, n)):
        return None
    length, other = (k, m) if a.transposed else (m, k)
    block = _block(length)
    if block < min(FEWEST, length):
        return None
    loops = (length // block, block, other, n)
    first, second, third, column = [Affine(((i, 1),)) for i in range(4)]
    shape_a, shape_b, shape_out = (*loops[:2], other), (other, n), (*loops[:2], n)
    of_b, of_out = (third, column), (first, second, column)
    if a.transposed:
        shape_b, of_b, shape_out, of_out = shape_out, of_out, shape_b, of_b
    elif b.transposed:
        shape_b, of_b = shape_b[::-1], of_b[::-1]
    maps = IndexMaps(loops, ((first, second, third), of_b), of_out)
    return ThinProduct(maps, (a.base, b.base), (shape_a, shape_b, shape_out))


def _is_small(product):
    """Return whether a batch holds products that are too small for a call each."""
    m, n, k, a, b, _ = product[1:]
    if len(product.batch) != 1 or m * n * k > SMALL or a.base.is_constant:
        return False
    return _is_batch(a, m, k) and _is_batch(b, k, n)


def _is_batch(matrices, rows, columns):
    """Return whether matrices follow each other in C order, each possibly transposed."""
    follow = not matrices.offset and matrices.strides == (rows * columns,)
    return follow and _is_dense(matrices, rows, columns)


def _small_products(product):
    (count,), m, n, k, a, b, _ = product
    each, row, column, term = [Affine(((i, 1),)) for i in range(4)]
    of_a = (each, term, row) if a.transposed else (each, row, term)
    of_b = (each, column, term) if b.transposed else (each, term, column)
    shape_a = (count, k, m) if a.transposed else (count, m, k)
    shape_b = (count, n, k) if b.transposed else (count, k, n)
    maps = IndexMaps((count, m, n, k), (of_a, of_b), (each, row, column))
    return ThinProduct(maps, (a.base, b.base), (shape_a, shape_b, (count, m, n)))


def is_thin(product, dtype, limits):
    """Return whether the code here is clearly faster than `products`."""
    (m, n, k), lanes = (product.m, product.n, product.k), gemm.tile_of(dtype).lanes
    if product.batch or product.a.base.is_constant:  # of ones, whose products are sums
        return False
    if limits.is_standalone and not gemm.is_efficient(dtype, m, n, k):
        return m * n * k <= gemm.LARGE
    if n >= 2 * lanes:
        plain = not (product.a.transposed or product.b.transposed)
        known = m * n * k <= gemm.LARGE and (m < 4 or gemm.is_efficient(dtype, m, n, k))
        return plain and known and m <= FEW
    if not 1 < n < lanes:
        return False
    if product.a.transposed:
        return m * n * k >= LEAST
    is_apart = k * dtype.itemsize % PAGE == 0
    return not is_apart and m * n * k >= (LEAST_SHORT if k <= SHORT else LEAST)


def _is_whole(matrix, rows, columns):
    """Return whether a matrix is a whole array in C order, possibly transposed."""
    whole = not matrix.offset and matrix.base.size == rows * columns
    return whole and _is_dense(matrix, rows, columns)


def _is_dense(matrix, rows, columns):
    return matrix.rows == (rows if matrix.transposed else columns)


def _block(length):
    return max([n for n in range(1, min(length, ROWS) + 1) if length % n == 0])
