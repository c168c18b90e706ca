"""Matrix products: calls of our own code or of BLAS, with views read in place.

The products of a batch are shared among the threads.
"""

import math

import numpy as np

from ...loops import matrix_products
from ...program.array_instructions import Contract
from . import blas, gemm
from .llvm_writer import POINTER

__all__ = ["calls_blas", "is_product", "product_of", "product_work", "write_product"]


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
    """Return the `Product` equivalent to a contraction, or None."""
    if instruction.function not in (np.dot, np.matmul) or instruction.keywords:
        return None
    a, b = instruction.operands
    if a.dtype.char not in "fd" or not a.size or not b.size:
        return None
    return matrix_products.product_of(a, b, instruction.outputs[0])


def write_product(writer, instruction, name, places):
    """Write the helpers of a product; return a function that writes its call.

    ``name`` is the prefix of its helper functions; the call passes the context of the
    segment.
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
    """The offsets in entries of the matrices of product number ``n`` of the batch."""
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
