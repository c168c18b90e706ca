"""Products of matrices: calls of BLAS, with the strides of views as they are."""

import numpy as np

from ...loops.accesses import layout_of
from ...program.array_instructions import Contract
from . import blas
from .llvm_writer import POINTER

__all__ = ["is_product", "write_product"]


def is_product(instruction):
    """Return whether an instruction is a product that `write_product` writes."""
    if type(instruction) is not Contract or instruction.function is not np.dot:
        return False
    a, b = instruction.operands
    if a.dtype.char not in "fd" or not a.size or not b.size:
        return False
    if len(a.shape) != 2 or len(b.shape) != 2:
        return False
    return _matrix(a) is not None and _matrix(b) is not None


def _matrix(buffer):
    """``(base, offset, is transposed, leading dimension)`` for BLAS, or None."""
    base, offset, (down, along) = layout_of(buffer)
    rows, columns = buffer.shape
    if columns == 1 or along == 1:
        if rows == 1 or down >= columns:
            return base, offset, False, max(down, columns, 1)
    if rows == 1 or down == 1:
        if columns == 1 or along >= rows:
            return base, offset, True, max(along, rows, 1)
    return None


def write_product(writer, product, places, context):
    """Write the call of a product into a function."""
    a, b = product.operands
    (out,) = product.outputs

    def address(base, offset):
        pointer = writer.load(writer.at(context, places[base], POINTER), POINTER)
        return writer.at(pointer, offset, out.dtype)

    base_a, offset_a, transposed_a, lda = _matrix(a)
    base_b, offset_b, transposed_b, ldb = _matrix(b)
    (m, k), n = a.shape, b.shape[1]
    a, b, c = address(base_a, offset_a), address(base_b, offset_b), address(out, 0)
    transposes = transposed_a, transposed_b
    blas.parallel_gemm(
        writer, out.dtype, transposes, m, n, k, 1.0, a, lda, b, ldb, 0.0, c, n
    )
