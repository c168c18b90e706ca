"""Products of matrices: calls of our own code or of BLAS, with views as they lie.

A stack of products is one call if the rows of the stack lie like those of one matrix (a
batch of sequences times a kernel); else the products are shared among the threads.
"""

import math
from typing import NamedTuple

import numpy as np

from ...loops.accesses import layout_of, row_major
from ...program.array_instructions import Contract
from . import blas, gemm
from .llvm_writer import POINTER

__all__ = ["calls_blas", "is_product", "product_of", "product_work", "write_product"]


class Matrix(NamedTuple):
    """Matrices in an array: ``offset + sum(strides * batch index)`` is where one begins.

    ``rows`` is the distance between two rows in memory, or of the transposed matrix if it
    is ``transposed``.
    """

    base: object
    offset: int
    strides: tuple
    transposed: bool
    rows: int

    @property
    def steps(self):
        """Entries to the next row and to the next column."""
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


def is_product(instruction):
    """Return whether an instruction is a product that `write_product` writes."""
    return type(instruction) is Contract and product_of(instruction) is not None


def calls_blas(instruction):
    """Return whether `write_product` writes calls of BLAS: for thin matrices, mostly."""
    product = product_of(instruction)
    dtype = instruction.outputs[0].dtype
    return not gemm.is_efficient(dtype, product.m, product.n, product.k)


def product_work(instruction):
    """The number of multiplications of a product."""
    product = product_of(instruction)
    return math.prod(product.batch) * product.m * product.n * product.k


def product_of(instruction):
    """The `Product` that a contraction is, or None."""
    if instruction.function not in (np.dot, np.matmul) or instruction.keywords:
        return None
    a, b = instruction.operands
    (out,) = instruction.outputs
    if a.dtype.char not in "fd" or not a.size or not b.size:
        return None
    shape_a = (1, *a.shape) if len(a.shape) == 1 else a.shape
    shape_b = (*b.shape, 1) if len(b.shape) == 1 else b.shape
    batch = np.broadcast_shapes(shape_a[:-2], shape_b[:-2])
    (m, k), n = shape_a[-2:], shape_b[-1]
    base_a, at_a, steps_a = layout_of(a)
    base_b, at_b, steps_b = layout_of(b)
    steps_a = (k, *steps_a) if len(a.shape) == 1 else steps_a
    steps_b = (*steps_b, 1) if len(b.shape) == 1 else steps_b
    steps_out = row_major((*batch, m, n))[: len(batch)]
    if len(shape_b) == 2 and len(shape_a) > 2 and _is_one(shape_a, steps_a):
        m, batch, steps_out = m * math.prod(batch), (), ()  # one matrix with many rows
        shape_a, steps_a = (m, k), steps_a[-2:]
    left = _matrix(base_a, at_a, shape_a, steps_a, batch)
    right = _matrix(base_b, at_b, shape_b, steps_b, batch)
    if left is None or right is None:
        return None
    return Product(batch, m, n, k, left, right, Matrix(out, 0, steps_out, False, n))


def _is_one(shape, steps):
    """Return whether the rows of a stack of matrices are those of one."""
    if steps[-1] != 1 and shape[-1] != 1:
        return False
    pairs = zip(steps[:-2], shape[1:-1], steps[1:-1])
    return all([outer == n * inner for outer, n, inner in pairs])


def _matrix(base, offset, shape, steps, batch):
    """The matrices of an array as BLAS takes them, or None."""
    (rows, columns), (down, along) = shape[-2:], steps[-2:]
    lead = [0] * (len(batch) - len(shape) + 2)
    strides = (*lead, *[s if n > 1 else 0 for s, n in zip(steps[:-2], shape[:-2])])
    if (columns == 1 or along == 1) and (rows == 1 or down >= columns):
        return Matrix(base, offset, strides, False, max(down, columns, 1))
    if (rows == 1 or down == 1) and (columns == 1 or along >= rows):
        return Matrix(base, offset, strides, True, max(along, rows, 1))
    return None


def write_product(writer, instruction, name, places):
    """Write what a product needs; return a function that writes its call.

    ``name`` is for functions of its own; the call is given the context of the segment.
    """
    product = product_of(instruction)
    dtype = instruction.outputs[0].dtype

    def addresses(context, offsets):
        for matrix, offset in zip((product.a, product.b, product.out), offsets):
            place = writer.at(context, places[matrix.base], POINTER)
            yield writer.at(writer.load(place, POINTER), offset, dtype)

    def call_one(context, offsets, parallel):
        a, b, out = addresses(context, offsets)
        sizes = product.m, product.n, product.k
        if not calls_blas(instruction):
            gemm.product(
                writer, dtype, *sizes, a, product.a.steps, b, product.b.steps, out,
                product.out.rows, parallel,
            )  # fmt: skip
            return
        function = blas.parallel_gemm if parallel else blas.gemm
        transposes = product.a.transposed, product.b.transposed
        function(
            writer, dtype, transposes, *sizes,
            1.0, a, product.a.rows, b, product.b.rows, 0.0, out, product.out.rows,
        )  # fmt: skip

    count = math.prod(product.batch)
    if count == 1:
        offsets = product.a.offset, product.b.offset, 0
        return lambda context: call_one(context, offsets, True)
    parameters = [("context", POINTER), ("block", np.int64)]
    with writer.function(name, parameters, None, "nounwind", "internal") as (
        context,
        i,
    ):
        call_one(context, _offsets(writer, product, i), False)
        writer.ret()

    def call(context):
        function = writer.symbol(name)
        writer.call("tw_parallel", [function, context, writer.index(count)])

    return call


def _offsets(writer, product, number):
    """The entries at which the matrices of the product of this number begin."""
    matrices = product.a, product.b, product.out
    offsets = [writer.index(matrix.offset) for matrix in matrices]
    for axis in reversed(range(len(product.batch))):
        extent = writer.index(product.batch[axis])
        rest = number / extent
        index, number = number - rest * extent, rest
        for i, matrix in enumerate(matrices):
            if matrix.strides[axis]:
                offsets[i] = offsets[i] + index * matrix.strides[axis]
    return offsets
