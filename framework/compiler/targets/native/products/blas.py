"""Matrix products in native code: calls of the OpenBLAS that NumPy has loaded.

Addresses are bound when a module is loaded (`symbols`), so that its code can be cached
in files. A product runs on one thread if it is called between ``tw_blas_enter`` and
``tw_blas_leave``; OpenBLAS has one number of threads for the whole process, so the
first thread to enter sets it to 1, and the last to leave restores it. `parallel_gemm`
splits a large product into blocks, each a product on one thread, by its sizes alone:
the same sums in the same order for every number of threads.

OpenBLAS can be given another pool (``openblas_set_threads_callback_function``), but not
safely: its jobs wait for each other, so that all need a thread at once; the jobs of two
simultaneous products would share buffers; and a job marks the slot where one of
OpenBLAS's own workers may just be looking for a pointer. So its own products keep its
own workers.
"""

import ctypes
import functools
import os

import numpy as np

from tapewright.core.hardware import openblas

from .. import atomics
from ..jit import engine, runtime
from ..llvm_writer import POINTER, IRValue, Writer

ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112  # cblas.h
_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
_I32, _I64 = np.dtype(np.int32), np.dtype(np.int64)


def symbols():
    """Return the addresses of the functions that the code here calls.

    Raises:
        Unavailable: If NumPy's BLAS is not OpenBLAS, or lacks a function.
    """
    return dict(_functions().addresses)


def enter(writer):
    """Run products on one thread from here on."""
    writer.call("tw_blas_enter", [])


def leave(writer):
    """End what `enter` began."""
    writer.call("tw_blas_leave", [])


def gemm(
    writer, dtype, transposes, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc
):  # fmt: skip
    """``c = alpha * a @ b + beta * c``, of shapes (m, k), (k, n), (m, n), row-major.

    ``transposes`` says whether ``a`` and ``b`` are stored transposed; ``lda``, ``ldb``,
    ``ldc`` are the row strides in memory, in entries. Sizes are integers or 64-bit
    values.
    """
    dtype = np.dtype(dtype)
    order = [
        writer.const(x, _I32) for x in (ROW_MAJOR, *map(_transposition, transposes))
    ]
    _cblas_gemm(writer, dtype, order, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)


def gemv(writer, dtype, transpose, m, n, alpha, a, lda, x, step_x, beta, y, step_y):
    """``y = alpha * a @ x + beta * y``; ``a``, (m, n) in memory, or its transpose."""
    order = [writer.const(x, _I32) for x in (ROW_MAJOR, _transposition(transpose))]
    m, n, lda, step_x, step_y = [_size(writer, s) for s in (m, n, lda, step_x, step_y)]
    alpha, beta = [_number(writer, x, dtype) for x in (alpha, beta)]
    args = [*order, m, n, alpha, a, lda, x, step_x, beta, y, step_y]
    writer.call(f"tw_{_LETTERS[np.dtype(dtype)]}gemv", args)


def parallel_gemm(
    writer, dtype, transposes, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, cut=None
):  # fmt: skip
    """`gemm` of known sizes, on the threads of the pool if it is large.

    ``cut`` has the numbers of blocks along the rows and the columns of ``c``; by
    default `blocks`.
    """
    rows, columns = blocks(m, n, k, dtype) if cut is None else cut
    if rows * columns == 1:
        return gemm(
            writer, dtype, transposes, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc
        )
    sizes = [m, n, k, lda, ldb, ldc, *steps(m, n, rows, columns)]
    return gemm_in_blocks(writer, dtype, transposes, sizes, alpha, beta, a, b, c)


def gemm_in_blocks(writer, dtype, transposes, sizes, alpha, beta, a, b, c):
    """`gemm` on the threads of the pool, where all arguments may be values.

    ``sizes``: ``m, n, k, lda, ldb, ldc``, and the rows and columns of a block.
    """
    order = [_transposition_value(writer, t) for t in transposes]
    sizes = [writer.index(size) for size in sizes]
    numbers = [_number(writer, x, dtype) for x in (alpha, beta)]
    name = f"tw_parallel_{_LETTERS[np.dtype(dtype)]}gemm"
    return writer.call(name, [*order, *sizes, *numbers, a, b, c])


# Products below this many operations take less time than it takes to share them.
SMALLEST, MOST_BLOCKS, PER_BLOCK = 2e6, 32, 64e6
ROWS, COLUMNS = 128, 256  # of a block at least, but 64 rows of one of two


def blocks(m, n, k, dtype=np.float32):
    """Return the numbers of blocks of rows and of columns that a product is split into.

    OpenBLAS packs all of ``b`` for each block of rows, and all of ``a`` for each block
    of columns; and threads that write halves of the same rows disturb each other. So
    rows are split, unless ``b`` exceeds a core's cache and there are few rows. Fewer
    rows than 128 in a block cost a quarter of the speed. More blocks than the machine
    has cores cost up to a tenth; the number of cores in use does not matter.
    """
    size = np.dtype(dtype).itemsize
    work = 2 * m * n * k * size / 4
    if work < SMALLEST:
        return 1, 1
    count = 2
    while (
        count < min(MOST_BLOCKS, os.cpu_count() or 1) and work >= 2 * count * PER_BLOCK
    ):
        count *= 2
    if n >= 2 * m and n * k * size > 2**20 or m < ROWS:
        columns = max(min(count, n // COLUMNS), 1)
        return max(min(count // columns, m // (2 * ROWS)), 1), columns
    rows = max(min(count, m // ROWS), 2)
    return rows, max(min(count // rows, n // (2 * COLUMNS)), 1)


def steps(m, n, rows, columns):
    """Return the rows and columns of a block, given the numbers of blocks."""
    return _step(m, rows, 8), _step(n, columns, 16)


def _step(size, count, multiple):
    """Return the entries of a block: the last one may be shorter."""
    return max(-(-size // (count * multiple)) * multiple, 1)


def _transposition(transpose):
    return TRANSPOSED if transpose else PLAIN


def _transposition_value(writer, transpose):
    if not isinstance(transpose, IRValue):
        return writer.const(_transposition(transpose), _I32)
    return writer.select(
        transpose, writer.const(TRANSPOSED, _I32), writer.const(PLAIN, _I32)
    )


def _number(writer, x, dtype):
    return x if isinstance(x, IRValue) else writer.const(x, dtype)


def _size(writer, n):
    return writer.cast(writer.index(n), _index_type())


def _cblas_gemm(writer, dtype, order, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    m, n, k, lda, ldb, ldc = [_size(writer, s) for s in (m, n, k, lda, ldb, ldc)]
    alpha, beta = [_number(writer, x, dtype) for x in (alpha, beta)]
    args = [*order, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc]
    writer.call(f"tw_{_LETTERS[dtype]}gemm", args)


@functools.cache
def _index_type():
    """Return the integer type of sizes in this OpenBLAS."""
    wide = "USE64BITINT" in openblas.text("openblas_get_config")
    return _I64 if wide else _I32


# --- compiled once per process


class _Functions:
    """Addresses of OpenBLAS's functions and of the functions written here; never unloaded."""

    def __init__(self):
        _index_type()
        names = [f"{letter}{kind}" for letter in "sd" for kind in ("gemm", "gemv")]
        self.addresses = {f"tw_{name}": _address(f"cblas_{name}") for name in names}
        threads = {
            f"tw_{name}": _address(f"openblas_{name}")
            for name in ("get_num_threads", "set_num_threads")
        }
        writer = Writer()
        _write_threads(writer)
        for dtype in _LETTERS:
            _write_block(writer, dtype)
            _write_parallel_gemm(writer, dtype)
        known = {**self.addresses, **threads, **runtime.symbols()}
        library = engine.compiled(writer.text(), "blas", known, level=0)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
        for name in ("blas_enter", "blas_leave", "parallel_sgemm", "parallel_dgemm"):
            self.addresses[f"tw_{name}"] = library.address(f"tw_{name}")
        if hasattr(os, "register_at_fork"):
            reset = ctypes.CFUNCTYPE(None)(library.address("tw_blas_after_fork"))
            os.register_at_fork(after_in_child=reset)


_functions = runtime.once(_Functions)


def _address(name):
    return ctypes.cast(openblas.symbol(name), ctypes.c_void_p).value


_STATE = {"lock": 0, "depth": 4, "before": 8}  # offsets in @tw_blas


def _write_threads(writer):
    """`tw_blas_enter` and `tw_blas_leave`, with a lock that is held for some 20 ns."""
    writer.declared["tw_blas"] = (
        "@tw_blas = internal global [64 x i8] zeroinitializer, align 64"
    )
    state = IRValue(writer, POINTER, "@tw_blas")
    one, zero = writer.const(1, _I32), writer.const(0, _I32)

    def address(name):
        return atomics.field(writer, state, _STATE[name])

    def count():
        return writer.call("tw_get_num_threads", [], _I32)

    def lock():
        writer.jump("try")
        writer.begin("try")
        taken = atomics.compare_exchange(writer, address("lock"), zero, one)
        writer.branch(taken, "locked", "pause")
        writer.begin("pause")
        atomics.pause(writer)
        writer.jump("try")
        writer.begin("locked")

    with writer.function("tw_blas_enter", [], None, "nounwind"):
        lock()
        depth = writer.load(address("depth"), _I32)
        with writer.when(depth == 0):
            before = count()
            writer.store(before, address("before"))
            with writer.when(before != 1):
                writer.call("tw_set_num_threads", [one])
        writer.store(depth + 1, address("depth"))
        atomics.store(writer, zero, address("lock"), "release")
        writer.ret()
    with writer.function("tw_blas_leave", [], None, "nounwind"):
        lock()
        depth = writer.load(address("depth"), _I32) - 1
        writer.store(depth, address("depth"))
        before = writer.load(address("before"), _I32)
        with writer.when((depth == 0) & (before != 1)):
            with writer.when(count() == 1):  # else set by others meanwhile
                writer.call("tw_set_num_threads", [before])
        atomics.store(writer, zero, address("lock"), "release")
        writer.ret()
    with writer.function("tw_blas_after_fork", [], None, "nounwind"):
        depth = writer.load(address("depth"), _I32)
        before = writer.load(address("before"), _I32)
        with writer.when((depth != 0) & (before != 1)):
            writer.call("tw_set_num_threads", [before])
        writer.store(zero, address("depth"))
        atomics.store(writer, zero, address("lock"))
        writer.ret()


# The context of the blocks of one product: integers and addresses of 8 bytes each.
_FIELDS = ("ta", "tb", "m", "n", "k", "lda", "ldb", "ldc", "row_step", "column_step")
_FIELDS += ("alpha", "beta", "a", "b", "c", "columns")


def _kinds(dtype):
    return dict(
        zip(_FIELDS, [_I32] * 2 + [_I64] * 8 + [dtype] * 2 + [POINTER] * 3 + [_I64])
    )


def _write_parallel_gemm(writer, dtype):
    letter, kinds = _LETTERS[dtype], _kinds(dtype)
    parameters = [(name, kinds[name]) for name in _FIELDS[:-1]]
    name = f"tw_parallel_{letter}gemm"
    with writer.function(name, parameters, None, "nounwind") as given:
        context = writer.alloca(_I64, len(_FIELDS))
        values = dict(zip(_FIELDS, given))
        rows = _blocks_along(values["m"], values["row_step"])
        values["columns"] = _blocks_along(values["n"], values["column_step"])
        for at, field in enumerate(_FIELDS):
            writer.store(values[field], writer.at(context, at, _I64))
        chunks = rows * values["columns"]
        runtime.parallel(writer, f"tw_{letter}gemm_block", context, chunks)
        writer.ret()


def _blocks_along(size, step):
    return (size + step - 1) / step


def _write_block(writer, dtype):
    """One block of a product: rows from ``i * row_step`` on, columns likewise."""
    letter, kinds = _LETTERS[dtype], _kinds(dtype)
    parameters = [("context", POINTER), ("chunk", _I64)]
    name = f"tw_{letter}gemm_block"
    with writer.function(name, parameters, None, "nounwind", "internal") as (
        context,
        chunk,
    ):
        get = {
            field: writer.load(writer.at(context, at, _I64), kinds[field])
            for at, field in enumerate(_FIELDS)
        }
        i = chunk / get["columns"]
        j = chunk - i * get["columns"]
        row, column = i * get["row_step"], j * get["column_step"]
        one = writer.index(1)
        plain_a, plain_b = get["ta"] == PLAIN, get["tb"] == PLAIN
        down_a = row * writer.select(plain_a, get["lda"], one)
        along_b = column * writer.select(plain_b, one, get["ldb"])
        m = _at_most(writer, get["row_step"], get["m"] - row)
        n = _at_most(writer, get["column_step"], get["n"] - column)
        order = [writer.const(ROW_MAJOR, _I32), get["ta"], get["tb"]]
        a, b = writer.at(get["a"], down_a, dtype), writer.at(get["b"], along_b, dtype)
        c = writer.at(get["c"], row * get["ldc"] + column, dtype)
        _cblas_gemm(
            writer, dtype, order, m, n, get["k"], get["alpha"], a, get["lda"], b,
            get["ldb"], get["beta"], c, get["ldc"],
        )  # fmt: skip
        writer.ret()


def _at_most(writer, a, b):
    return writer.select(a < b, a, b)
