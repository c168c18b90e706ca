"""Matrix products: calls of our own code or of BLAS, with views read in place.

The products of a batch are shared among the threads.
"""

import math

import numpy as np

from ....loops.contractions import matrix_products
from ....program.instructions.array_instructions import Contract
from ..jit import runtime
from ..llvm_writer import POINTER
from . import blas, gemm


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


def define_product(writer, instruction, name, index_of):
    """Write the function of one product of a batch; a single product has no function."""
    product = product_of(instruction)
    if math.prod(product.batch) > 1:
        parameters = [("context", POINTER), ("block", np.int64)]
        with writer.function(name, parameters, None, "nounwind") as (
            context,
            block,
        ):
            offsets = _offsets(writer, product, block)
            _call(writer, instruction, context, index_of, offsets, False)
            writer.ret()


def write_product(writer, instruction, name, context, index_of):
    """Write the call of a product whose function has a ``name``."""
    product = product_of(instruction)
    if math.prod(product.batch) > 1:
        runtime.parallel(writer, name, context, math.prod(product.batch))
    else:
        offsets = product.a.offset, product.b.offset, 0
        _call(writer, instruction, context, index_of, offsets, True)


def _call(writer, instruction, context, index_of, offsets, parallel):
    """Write the call of a function for matrices at some offsets in their arrays."""
    product, dtype = product_of(instruction), instruction.outputs[0].dtype
    matrices = product.a, product.b, product.out
    addresses = [writer.at(context, index_of[each.base], POINTER) for each in matrices]
    a, b, out = [
        writer.at(writer.load(address, POINTER), offset, dtype)
        for address, offset in zip(addresses, offsets)
    ]
    sizes = product.m, product.n, product.k
    if writer.limits.is_standalone or not calls_blas(instruction):
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
