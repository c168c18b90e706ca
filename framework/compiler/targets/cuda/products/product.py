"""Matrix products as calls of cuBLASLt, with views read in place.

An array in C order is the transposed matrix in column-major order, so ``out = a @ b``
is computed as ``out.T = b.T @ a.T``: the first factor of cuBLASLt is the second one
here.
"""

import functools
import itertools
import math
import operator
from typing import NamedTuple

import numpy as np

from tapewright.core.hardware.devices import current_module
from tapewright.core.hardware.gpu import tensor_float_32_execution_enabled
from tapewright.core.settings import config

from ....loops.accesses import in_order
from ....loops.contractions.matrix_products import MOST, product_of
from ....program.instructions.array_instructions import View
from ..capture import captured
from ..kernel import CudaKernel
from ..kernels.entries import each_entry, index_type, launch
from . import cublaslt
from .cublaslt import WORKSPACE, MatrixLayout, Problem
from .cublaslt_header import Epilogue

RUNS = 8  # of a product that is timed
# Dtypes of factors and product in a call, by their characters; "E" is that of bfloat16.
_DTYPES = "ee", "ef", "EE", "Ef", "ff", "dd"
MOST_CALLS = 16  # of a batch whose matrices do not lie at equal distances


class Multiply(NamedTuple):
    """A call of cuBLASLt, a step of a stream.

    ``operands``: position and byte offset of a, b, d, and of the vector of the epilogue,
    or None.
    """

    problem: Problem
    operands: tuple
    workspace: int
    workspace_bytes = cublaslt.WORKSPACE_BYTES
    name = "cublasLtMatmul"

    def prepare(self, addresses, stream):
        """Choose the algorithm by timing several, if `config.autotune` is on."""
        if config.autotune_is_on():
            (a, b, d, vector), _ = self._addresses_of(addresses)
            problem, size = self.problem, self.problem.dtypes[1].itemsize
            length = max(problem.d.rows, problem.d.columns)
            # Memory of the program may be in use: results go to other memory.
            scratch = [
                _Scratch(d, problem.extent * size),
                _Scratch(vector, length * size),
                _Scratch(cublaslt.ALIGNMENT, self.workspace_bytes),
            ]
            d, vector, workspace = [each.address for each in scratch]
            seconds, given = functools.partial(_seconds, stream), (a, b, d, vector)
            cublaslt.library().tune(problem, given, workspace, stream.ptr, seconds)

    def enqueue(self, functions, addresses, stream):
        """Enqueue the call in a stream; ``addresses`` has the address of each position."""
        given = self._addresses_of(addresses)
        cublaslt.library().multiply(self.problem, *given, stream.ptr)

    def _addresses_of(self, addresses):
        """Return the addresses of the operands and of the workspace."""
        given = [0 if o is None else addresses[o[0]] + o[1] for o in self.operands]
        return given, addresses[self.workspace]


class _Scratch:
    """Memory of this many bytes, at an address aligned as ``like``; none in place of 0."""

    def __init__(self, like, nbytes):
        alignment = cublaslt.ALIGNMENT
        self.memory = current_module().empty(nbytes + 2 * alignment, np.uint8)
        start = self.memory.data.ptr
        self.address = like and start + -start % alignment + like % alignment


def _seconds(stream, function):
    """Return the device time of the work that a function enqueues in a stream.

    It times a graph of several runs: the host would take longer than they do.
    """
    function()  # loads what a capture cannot
    graph = captured(stream, [function] * RUNS)
    times = []
    for _ in range(RUNS):
        start = stream.record()
        graph.launch(stream)
        end = stream.record()
        end.synchronize()
        times.append(current_module().cuda.get_elapsed_time(start, end))
    return min(times)


# ---------------------------------------------------------------------------- products


def _inner_axis(product):
    """Return the batch axis that one call handles: the longest."""
    return int(np.argmax(product.batch)) if product.batch else None


def _count_calls(product):
    return math.prod(product.batch) // max(product.batch, default=1)


# ------------------------------------------------------------------------------- steps


def calls_of(product, problem, addresses, limits, vector=None):
    """Return the `Multiply` steps of a product.

    Args:
        product: The `Product`.
        problem: The problem of one step, see `problem_of`.
        addresses: Map of buffers to their addresses.
        limits: The `Limits` of the program.
        vector: Place and byte offset of the vector of an epilogue.
    """
    inner, (of_factors, of_out) = _inner_axis(product), problem.dtypes
    most = limits.products_at_once
    rounds = [
        range(0, n, most if axis == inner else 1)
        for axis, n in enumerate(product.batch)
    ]
    matrices = product.b, product.a, product.out
    sizes = of_factors.itemsize, of_factors.itemsize, of_out.itemsize
    steps = []
    for index in itertools.product(*rounds):
        if index:
            count = min(product.batch[inner] - index[inner], most)
            problem = problem._replace(count=count)
        starts = [x.offset + sum(map(operator.mul, x.strides, index)) for x in matrices]
        at = [
            (addresses[x.base], size * n) for x, size, n in zip(matrices, sizes, starts)
        ]
        steps.append(Multiply(problem, (*at, vector), addresses[WORKSPACE]))
    return steps


def problem_of(product, epilogue=Epilogue.DEFAULT, tf32=False, adds=False):
    """Return the `Problem` of each call of a product."""
    dtypes = product.a.base.dtype, product.out.base.dtype
    m, n, k, a, b, out = product[1:]
    inner = _inner_axis(product)

    def layout(matrix, rows, columns):
        step = matrix.strides[inner] if product.batch else 0
        if matrix.transposed:
            rows, columns = columns, rows
        return MatrixLayout(columns, rows, matrix.rows, step)

    layouts = layout(b, k, n), layout(a, m, k), layout(out, m, n)
    count = product.batch[inner] if product.batch else 1
    transposes = b.transposed, a.transposed
    return Problem(dtypes, transposes, *layouts, count, epilogue, tf32, adds)


def zeros(addresses, out):
    """Return a launch that fills a buffer with zeros."""
    kind = index_type(out)
    code = f"  {each_entry(kind, 'i', out.size)} out[i] = 0;\n"
    return launch(addresses, code, out.size, {}, {"out": out})


# ------------------------------------------------------------------------- the kernel


class ProductKernel(CudaKernel):
    """``np.dot`` or ``np.matmul`` of arrays of rank 1 and higher.

    ``takes_views``: operands need not be in C order. ``tf32``: see `Problem`.
    """

    __slots__ = ("tf32",)
    takes_views = True

    def __init__(self, replaced, limits, tf32=False):
        super().__init__(replaced, limits)
        self.tf32 = tf32

    @classmethod
    def accepts(cls, instruction):
        """Return whether it is a product of arrays with dtypes that one call accepts."""
        if instruction.function not in (np.dot, np.matmul) or instruction.keywords:
            return False
        a, b = instruction.operands
        (out,) = instruction.outputs
        is_small = max(1, *a.shape, *b.shape) < MOST
        is_known = a.dtype.char + out.dtype.char in _DTYPES
        return is_small and a.dtype == b.dtype and is_known

    @classmethod
    def of(cls, program, instruction):
        tf32 = tensor_float_32_execution_enabled()
        kernel = cls(instruction, program.limits, tf32)
        kernel.operands = _as_taken(program, instruction)
        return kernel

    @property
    def product(self):
        a, b = self.operands[:2]
        return product_of(a, b, self.outputs[0])

    def steps_on(self, addresses):
        (out,) = self.outputs
        if not out.size:
            return []
        if not self.operands[0].shape[-1]:
            return [zeros(addresses, out)]
        product = self.product
        problem = problem_of(product, tf32=self.tf32)
        return calls_of(product, problem, addresses, self.limits)


def _as_taken(program, instruction):
    """Return the operands, or copies of those whose layout cuBLASLt does not support."""
    a, b = instruction.operands
    (out,) = instruction.outputs
    if not out.size or not a.size:
        return a, b
    node = instruction.node
    if not _is_taken(product_of(a, b, out)):
        a, b = in_order(program, a, node), in_order(program, b, node)
    if _count_calls(product_of(a, b, out)) > MOST_CALLS:
        batch = out.shape[:-2]
        a, b = [_repeated(program, x, (*batch, *x.shape[-2:]), node) for x in (a, b)]
    return a, b


def _is_taken(product):
    """Return whether cuBLASLt supports the layout of the matrices of a batch."""
    if product is None:
        return False
    return min((*product.a.strides, *product.b.strides), default=0) >= 0


def _repeated(program, buffer, shape, node):
    """Return a batch of matrices broadcast by copying to a larger shape."""
    view = View(np.broadcast_to, buffer, (shape,), node)
    (whole,) = program.append(view, (shape, buffer.dtype))
    return in_order(program, whole, node)
