"""Products of our own machine code: right for all sizes and layouts, on any threads."""

import ctypes
import functools
import os
import threading

import numpy as np
import pytest

import tapewright as tw

pytest.importorskip("llvmlite")

from tapewright.compiler.program.limits import Limits  # noqa: E402
from tapewright.compiler.targets.native.jit import engine
from tapewright.compiler.targets.native.jit.host import Host  # noqa: E402
from tapewright.compiler.targets.native.llvm_writer import Writer  # noqa: E402
from tapewright.compiler.targets.native.products import gemm  # noqa: E402

TILES = {"float32": [(16, 14), (8, 6), (4, 14)], "float64": [(8, 14), (4, 6), (2, 14)]}
CASES = [(dtype, gemm.Tile(*tile)) for dtype, tiles in TILES.items() for tile in tiles]
SIZES = [
    (1, 1, 1), (2, 3, 1), (1, 40, 70), (7, 33, 5), (14, 32, 16), (15, 31, 17), (28, 64, 8),
    (29, 65, 9), (13, 47, 1025), (3, 16, 2060), (130, 10, 40), (6, 200, 3), (97, 101, 103),
]  # fmt: skip
LAYOUTS = [(0, 0), (0, 1), (1, 0), (1, 1)]
CANARY = 64
FUNCTION = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 8, *[ctypes.c_void_p] * 3)


@functools.cache
def library(dtype, tile):
    return gemm.compiled(np.dtype(dtype), tile)


def multiply(library, a, b, parallel, padding=3):
    """``a @ b`` into rows that are longer than needed, with canaries all around."""
    dtype = a.dtype
    letter = {"float32": "s", "float64": "d"}[dtype.name]
    kind = "parallel" if parallel else "serial"
    function = FUNCTION(library.address(f"tw_{letter}gemm_{kind}"))
    (m, k), n = a.shape, b.shape[1]
    memory = np.full(CANARY + m * (n + padding) + CANARY, 777, dtype)
    out = memory[CANARY:-CANARY].reshape(m, n + padding)
    steps = [s // dtype.itemsize for x in (a, b, out) for s in x.strides]
    address = [x.ctypes.data for x in (a, b, out)]
    function(m, n, k, *steps[:5], *address)
    result = out[:, :n].copy()
    out[:, :n] = 777
    assert (memory == 777).all()
    return result


def operands(rng, sizes, layout, dtype, whole=False):
    """Matrices that lie in memory by rows or by columns, in rows with more entries."""
    m, n, k = sizes
    for (rows, columns), by_columns in zip([(m, k), (k, n)], layout):
        shape = (columns, rows) if by_columns else (rows, columns)
        x = rng.standard_normal((shape[0], shape[1] + 2)).astype(dtype)
        x = np.rint(8 * x) if whole else x
        yield x[:, 1:-1].T if by_columns else x[:, 1:-1]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(("dtype", "tile"), CASES, ids=str)
def test_products_are_exact_for_whole_numbers(dtype, tile, sizes):
    rng = np.random.default_rng(0)
    for layout in LAYOUTS:
        a, b = operands(rng, sizes, layout, dtype, whole=True)
        for parallel in (False, True):
            found = multiply(library(dtype, tile), a, b, parallel)
            np.testing.assert_array_equal(found, a.astype("f8") @ b.astype("f8"))


@pytest.mark.parametrize(("dtype", "tile"), CASES, ids=str)
def test_random_products(dtype, tile):
    # work for all threads, and many groups of rows
    limits = Limits(thread_product=1 << 10, packed_entries=1 << 12)
    small = gemm.compiled(np.dtype(dtype), tile, limits=limits)
    rng = np.random.default_rng(1)
    for _ in range(40):
        sizes = [int(x) for x in np.exp(rng.uniform(0, 5.5, 3))]
        a, b = operands(rng, sizes, rng.integers(0, 2, 2), dtype)
        wanted = a.astype("f8") @ b.astype("f8")
        room = sizes[2] * np.finfo(dtype).eps * (np.abs(a) @ np.abs(b)).astype("f8")
        found = {}
        for threads in (1, 2, 4):
            tw.config.set_threads(threads)
            found[threads] = multiply(small, a, b, parallel=True)
        found["serial"] = multiply(small, a, b, parallel=False)
        found["cut otherwise"] = multiply(library(dtype, tile), a, b, parallel=True)
        tw.config.set_threads(None)
        assert (np.abs(found["serial"] - wanted) <= room).all()
        for each in found.values():
            np.testing.assert_array_equal(each, found["serial"])


def test_nan_and_infinity_stay_in_their_rows_and_columns():
    rng = np.random.default_rng(2)
    for layout in LAYOUTS:
        a, b = operands(rng, (31, 45, 50), layout, "f4")
        a[13, 7], b[20, 40], b[3, 44] = np.nan, np.inf, -np.inf
        found = multiply(library("float32", gemm.tile_of("f4")), a, b, True)
        with np.errstate(invalid="ignore"):
            wanted = a.astype("f8") @ b.astype("f8")
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(np.isfinite(found), finite)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        np.testing.assert_allclose(found[finite], wanted[finite], 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_without_memory_for_panels_sums_are_the_same(dtype):
    nothing = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(lambda size: None)
    address = {"malloc": ctypes.cast(nothing, ctypes.c_void_p).value}
    tile = gemm.tile_of(dtype)
    poor, rng = gemm.compiled(np.dtype(dtype), tile, address), np.random.default_rng(3)
    a, b = operands(rng, (45, 70, 1040), (0, 1), dtype)
    found = multiply(poor, a, b, parallel=False)
    np.testing.assert_array_equal(
        found, multiply(library(dtype, tile), a, b, parallel=True)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [1, 2, 5, 6, 7, 13, 45, 200])
def test_panels_take_as_much_memory_as_is_announced(dtype, m):
    asked = []
    note = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(asked.append)
    address = {"malloc": ctypes.cast(note, ctypes.c_void_p).value}
    noting = gemm.compiled(np.dtype(dtype), gemm.tile_of(dtype), address)
    a, b = operands(np.random.default_rng(3), (m, 40, 90), (0, 1), dtype)
    multiply(noting, a, b, parallel=False)
    (size,) = asked
    assert size <= gemm.packed_bytes(dtype, m, 90) <= 2 * size + (1 << 12)


@pytest.mark.parametrize(
    ("features", "registers"),
    [
        (("+avx2", "+fma", "+avx512f", "+avx512vl"), (64, 32)),
        (("+avx2", "+fma", "+avx512f", "+avx512vl", "-avx512f"), (32, 16)),
        (("+avx2", "+fma"), (32, 16)),
        (("+neon",), (16, 32)),
    ],
)
def test_vector_registers(features, registers):
    assert Host("any-machine", "generic", features).vector_registers == registers


@pytest.mark.parametrize("threads", [1, 2])
def test_traced_products_are_computed_here(threads):
    rng = np.random.default_rng(4)
    x, y = [
        tw.constant(rng.standard_normal(s), "float32") for s in ((90, 80), (80, 70))
    ]
    with tw.config.use_target("native"):
        traced = tw.function(lambda x, y: tw.matmul(x, y))
        tw.config.set_threads(threads)
        found = traced(x, y).numpy()
        tw.config.set_threads(None)
    own = library("float32", gemm.tile_of("f4"))
    np.testing.assert_array_equal(found, multiply(own, x.numpy(), y.numpy(), False))


def test_a_thread_with_a_small_stack_can_multiply():
    a, found = np.ones((128, 128), "f4"), []
    own = library("float32", gemm.tile_of("f4"))
    least = os.sysconf("SC_THREAD_STACK_MIN")  # 128 KiB on Arm
    before = threading.stack_size(max(64 * 1024, least))
    try:
        thread = threading.Thread(
            target=lambda: found.append(multiply(own, a, a, True))
        )
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert (found[0] == 128).all()


def test_programs_of_other_limits_call_products_of_their_own():
    def addresses(**changes):
        writer = Writer(Limits(**changes))
        writer.declared["tw_sgemm_parallel"] = ""
        return gemm.symbols({*writer.declared}, writer.limits)

    own, others = addresses(), addresses(thread_product=1 << 10)
    assert own == addresses(slices=3) and own.keys() == others.keys()
    assert not {*own.values()} & {*others.values()}


def test_values_that_a_loop_carries_stay_in_it_beside_memory_of_the_block():
    writer = Writer()
    number = np.dtype(np.int64)
    with writer.function("run", [("n", number)], number) as (n,):
        with writer.carrying_loop(0, n, 1, [writer.index(1)]) as (i, values):
            first, second = writer.alloca(number), writer.alloca(number)
            writer.store(values[0], first)
            writer.store(i, second)
            values[0] = writer.load(first, number) * 2 + writer.load(second, number)
        writer.ret(values[0])
    made = engine.compiled(writer.text(), "test")
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(made.address("run"))
    assert [run(n) for n in range(5)] == [1, 2, 5, 12, 27]
