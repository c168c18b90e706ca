"""Matrix products outside of traced functions, by the same code, on the same threads.

NumPy's own products run on OpenBLAS's threads, which spin for milliseconds after they
have finished: on the very cores on which the pool runs the optimizer step. And where
other processes compete for those cores, OpenBLAS waits for a thread that is not
scheduled, while here any running thread takes the next block. Traced functions and
eager mode get the same bits from products computed here.
"""

import contextlib
import functools
from typing import NamedTuple

import numpy as np

from ..jit import engine, entry, runtime
from ..llvm_writer import POINTER, IRValue, Writer
from . import blas, gemm

_I64 = np.dtype(np.int64)


def product(a, b):
    """Return ``a @ b`` of two matrices, or None if NumPy should compute it.

    NumPy computes products of arrays with neither contiguous rows nor columns, and of a
    thin matrix and its own transpose, for which BLAS computes just one half.
    """
    if a.dtype not in _own:
        return None
    (m, k), n = a.shape, b.shape[1]
    out = np.empty((m, n), a.dtype)
    if gemm.is_efficient(a.dtype, m, n, k):
        refused = _own[a.dtype]()(a, b, out)
    else:
        refused = _thin[a.dtype]()(a, b, out, _steps(m, n, k, a.dtype))
    return None if refused else out


@functools.lru_cache(1024)
def _steps(m, n, k, dtype):
    """Return the rows and columns of the blocks of a BLAS product."""
    return np.array(blas.steps(m, n, *blas.blocks(m, n, k, dtype)), np.int64)


def _own_product(dtype):
    """Return a function of ``(a, b, out)`` that computes a product without BLAS.

    It returns True if it does nothing, as `_thin_product` does.
    """
    writer, name = Writer(), f"own.{dtype}"
    with _checked_function(writer, name, dtype, 3) as (sizes, a, b, out, _):
        m, n, k = sizes
        gemm.call(
            writer, dtype, m, n, k, a.start, a.steps, b.start, b.steps, out, n, True
        )
    return _compiled(writer, name, gemm.symbols({*writer.declared}, writer.limits))


def _thin_product(dtype):
    """Return a function of ``(a, b, out, steps)`` that computes a product by BLAS."""
    writer, name = Writer(), f"blas.{dtype}"
    with _checked_function(writer, name, dtype, 4) as (sizes, a, b, out, steps):
        sizes = *sizes, a.leading, b.leading, sizes[1], *steps
        transposed = a.transposed, b.transposed
        blas.enter(writer)
        blas.gemm_in_blocks(
            writer, dtype, transposed, sizes, 1.0, 0.0, a.start, b.start, out
        )
        blas.leave(writer)
    return _compiled(writer, name, blas.symbols())


def _compiled(writer, name, symbols):
    symbols = {**symbols, **entry.symbols()}
    return entry.builtin(engine.compiled(writer.text(), name, symbols, level=0), name)


# dtype -> what compiles the function, the first time, and returns it
_own, _thin = [
    {
        dtype: runtime.once(functools.partial(make, dtype))
        for dtype in map(np.dtype, (np.float32, np.float64))
    }
    for make in (_own_product, _thin_product)
]


class _Matrix(NamedTuple):
    """A matrix that BLAS can read: plain or transposed, with a leading dimension."""

    start: IRValue
    transposed: IRValue
    leading: IRValue

    @property
    def steps(self):
        """Entries to the next row and to the next column."""
        one = self.start.writer.index(1)
        select = self.start.writer.select
        rows = select(self.transposed, one, self.leading)
        return rows, select(self.transposed, self.leading, one)


@contextlib.contextmanager
def _checked_function(writer, name, dtype, count):
    """Write a function with checked arguments; the block runs without the GIL.

    Yields ``(m, n, k)``, the two matrices, the address of the result, and the numbers
    of the fourth argument if ``count`` is 4.
    """
    with writer.function(name, entry.PARAMETERS, POINTER, "nounwind") as given:
        constants, args, number = given

        def check(condition):
            entry.refuse_unless(writer, constants, condition)

        def check_array(array, *expected, **options):
            check(entry.check_array(writer, constants, array, *expected, **options))

        check(entry.check_count(writer, number, count))
        a, b, out, *more = [entry.argument(writer, args, n) for n in range(count)]
        check_array(a, (None, None), dtype, contiguous=False)
        check_array(b, (None, None), dtype, contiguous=False)
        check_array(out, (None, None), dtype, writeable=True)
        (m, k), (inner, n), shape = [_shape(writer, each) for each in (a, b, out)]
        check((k == inner) & (shape[0] == m) & (shape[1] == n) & (k > 0))
        readable, matrices = [], []
        for each in (a, b):
            fits, *layout = _layout(writer, each, dtype.itemsize)
            readable.append(fits)
            matrices.append(_Matrix(entry.array_data(writer, each), *layout))
        check(readable[0] & readable[1])
        steps = []
        if more:
            check_array(more[0], (2,), np.int64)
            at = entry.array_data(writer, more[0])
            steps = [writer.load(writer.at(at, i, _I64), _I64) for i in range(2)]
            first, second = [writer.address_as_integer(x.start) for x in matrices]
            check(first != second)
        out = entry.array_data(writer, out)
        state = entry.release_gil(writer)
        yield (m, n, k), *matrices, out, steps
        entry.retake_gil(writer, state)
        writer.ret(entry.none(writer, constants))


def _shape(writer, array):
    return [entry.array_size(writer, array, axis) for axis in range(2)]


def _layout(writer, array, size):
    """Return whether BLAS can read a matrix, whether transposed, and its leading dimension."""
    rows, columns = _shape(writer, array)
    down, along = [entry.array_stride(writer, array, axis) for axis in range(2)]
    plain = (along == size) & (down >= columns * size)
    transposed = (down == size) & (along >= rows * size)
    # Exact where it is used: the distance is a multiple of the item size.
    leading = writer.select(plain, down, along) / size
    return plain | transposed, ~plain, leading
