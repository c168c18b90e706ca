"""Products in native code: right for all layouts and cuts, the same on any threads."""

import ctypes
import faulthandler
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from tapewright.compiler.targets.native import atomics
from tapewright.compiler.targets.native.jit import engine, runtime
from tapewright.compiler.targets.native.llvm_writer import POINTER, Writer
from tapewright.compiler.targets.native.products import blas
from tapewright.core.hardware import openblas  # noqa: E402

try:
    blas.symbols()
except openblas.Unavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)

CANARY = 16
TRANSPOSES = [(False, False), (True, False), (False, True), (True, True)]


def made(write):
    """A function of three addresses whose body ``write(writer, a, b, c)`` appends."""
    writer = Writer()
    with writer.function("run", [(name, POINTER) for name in "abc"]) as parameters:
        blas.enter(writer)
        write(writer, *parameters)
        blas.leave(writer)
        writer.ret()
    library = engine.compiled(writer.text(), "test", blas.symbols())
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(library.address("run"))

    def run(*arrays):
        call(*[x.ctypes.data for x in arrays])

    run.library = library
    return run


def product(dtype, transposes, m, n, k, alpha=1.0, beta=0.0, write=None, **settings):
    """A product of whole arrays."""
    lda, ldb = m if transposes[0] else k, k if transposes[1] else n

    def body(writer, a, b, c):
        (write or blas.parallel_gemm)(
            writer, dtype, transposes, m, n, k, alpha, a, lda, b, ldb, beta, c, n,
            **settings,
        )  # fmt: skip

    return made(body)


def operands(dtype, transposes, m, n, k):
    """Small integers, whose products are exact in every order."""
    random = np.random.default_rng(m * n + k)
    a = random.integers(-4, 5, (m, k)).astype(dtype)
    b = random.integers(-4, 5, (k, n)).astype(dtype)
    stored = [x.T.copy() if t else x for x, t in zip((a, b), transposes)]
    return a, b, *stored


def guarded(m, n, dtype):
    """An array between canaries, and what tells whether they are still there."""
    whole = np.full(m * n + 2 * CANARY, 77, dtype)
    inside = whole[CANARY : CANARY + m * n].reshape(m, n)
    edges = np.r_[whole[:CANARY], whole[-CANARY:]]
    return inside, lambda: (np.r_[whole[:CANARY], whole[-CANARY:]] == edges).all()


@pytest.fixture(autouse=True)
def watched():
    """End the process, with a traceback, where a region never ends."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def restored():
    before = runtime.threads()
    yield
    runtime.set_threads(before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transposes", TRANSPOSES)
@pytest.mark.parametrize("sizes", [(5, 7, 3), (1, 9, 4), (8, 1, 5), (1, 1, 1)])
def test_a_product_is_added(dtype, transposes, sizes):
    m, n, k = sizes
    a, b, *stored = operands(dtype, transposes, m, n, k)
    c, intact = guarded(m, n, dtype)
    wanted = 2 * (a @ b) - c
    product(dtype, transposes, m, n, k, 2.0, -1.0, blas.gemm)(*stored, c)
    assert np.array_equal(c, wanted) and intact()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transposes", TRANSPOSES)
@pytest.mark.parametrize("cut", [(1, 2), (2, 1), (3, 2), (7, 5), (64, 64)])
def test_blocks_make_the_whole(dtype, transposes, cut):
    for m, n, k in ((67, 93, 21), (16, 48, 8), (3, 100, 1), (100, 3, 2)):
        a, b, *stored = operands(dtype, transposes, m, n, k)
        c, intact = guarded(m, n, dtype)
        wanted = a @ b + 3 * c
        product(dtype, transposes, m, n, k, 1.0, 3.0, cut=cut)(*stored, c)
        assert np.array_equal(c, wanted) and intact()


@pytest.mark.parametrize("transpose", [False, True])
def test_a_matrix_times_a_vector(transpose):
    a, _, stored, _ = operands(np.float64, (transpose, False), 6, 1, 4)
    x, y = np.arange(6.0 if transpose else 4.0), np.zeros(4 if transpose else 6)

    def body(writer, a, x, y):
        blas.gemv(writer, np.float64, transpose, 6, 4, 1.0, a, 4, x, 1, 0.0, y, 1)

    a = operands(np.float64, (False, False), 6, 1, 4)[0]
    made(body)(a, x, y)
    assert np.array_equal(y, (a.T if transpose else a) @ x)


LARGE = [
    (128, 128, 784, (False, False)),
    (784, 128, 128, (True, False)),
    (128, 784, 128, (False, True)),
    (256, 1024, 512, (False, False)),
    (300, 1100, 260, (False, True)),
    (1024, 512, 256, (True, False)),
    (130, 130, 300, (True, True)),
]


@pytest.mark.parametrize("m, n, k, transposes", LARGE)
def test_the_number_of_threads_changes_no_bit(m, n, k, transposes):
    random = np.random.default_rng(0)
    a = random.standard_normal((k, m) if transposes[0] else (m, k), np.float32)
    b = random.standard_normal((n, k) if transposes[1] else (k, n), np.float32)
    run = product(np.float32, transposes, m, n, k)
    assert blas.blocks(m, n, k) != (1, 1)
    results = set()
    for threads in (1, 2, 4, 3, 8):
        runtime.set_threads(threads)
        for _ in range(5):
            c = np.full((m, n), np.nan, np.float32)
            run(a, b, c)
            results.add(c.tobytes())
    assert len(results) == 1
    left, right = [x.T if t else x for x, t in zip((a, b), transposes)]
    wanted = left.astype(np.float64) @ right
    np.testing.assert_allclose(c, wanted, atol=1e-5 * np.sqrt(k) * 4)


def test_small_products_are_not_cut():
    assert blas.blocks(64, 64, 64) == (1, 1)
    assert blas.blocks(128, 10, 128) == (1, 1)


def test_every_cut_covers_the_product():
    for m in (1, 5, 64, 128, 784, 5000):
        for n in (1, 10, 128, 1024, 4000):
            for k in (1, 128, 3000):
                rows, columns = blas.blocks(m, n, k)
                assert 1 <= rows <= m and 1 <= columns <= n
                assert rows * columns <= blas.MOST_BLOCKS


def count_inside():
    """A function that stores OpenBLAS's number of threads between enter and leave."""
    names = ["tw_blas_enter", "tw_blas_leave"]
    pointer = ctypes.CFUNCTYPE(None)
    return [pointer(blas.symbols()[name]) for name in names]


def test_products_run_on_one_thread_inside_and_the_number_comes_back():
    enter, leave = count_inside()
    before = openblas.threads()
    set_threads = openblas.symbol("openblas_set_num_threads")
    try:
        for number in (1, 2, 3):
            set_threads(number)
            enter()
            assert openblas.threads() == 1
            enter()
            leave()
            assert openblas.threads() == 1
            leave()
            assert openblas.threads() == number
    finally:
        set_threads(before)


def test_a_number_that_is_set_meanwhile_stays():
    enter, leave = count_inside()
    before = openblas.threads()
    set_threads = openblas.symbol("openblas_set_num_threads")
    try:
        set_threads(2)
        enter()
        set_threads(3)
        leave()
        assert openblas.threads() == 3
    finally:
        set_threads(before)


def test_many_threads_enter_and_leave():
    """Chunks on all threads count how often they find more than one thread inside."""
    writer = Writer()
    task = [("wrong", POINTER), ("chunk", np.int64)]
    with writer.function("check", task, None, "nounwind") as (wrong, chunk):
        with writer.loop(0, 1000):
            blas.enter(writer)
            found = writer.call("openblas_get_num_threads", [], np.int32)
            found = writer.cast(found != 1, np.int64)
            atomics.add(writer, wrong, found)
            blas.leave(writer)
        writer.ret()
    with writer.function("run", task) as (wrong, chunks):
        runtime.parallel(writer, "check", wrong, chunks)
        writer.ret()
    count = openblas.symbol("openblas_get_num_threads")
    known = {"openblas_get_num_threads": ctypes.cast(count, ctypes.c_void_p).value}
    known |= {**blas.symbols(), **runtime.symbols()}
    library = engine.compiled(writer.text(), "test", known)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    run = run(library.address("run"))
    before, wrong = openblas.threads(), np.zeros(1, np.int64)
    set_threads = openblas.symbol("openblas_set_num_threads")
    runtime.set_threads(4)
    try:
        set_threads(2)
        for _ in range(100):
            run(wrong.ctypes.data, 100)
            assert openblas.threads() == 2
    finally:
        set_threads(before)
    assert wrong[0] == 0


FORK = """
import ctypes, os, warnings
from tapewright.compiler.targets.native.products import blas
from tapewright.core.hardware import openblas

warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads
enter, leave = [
    ctypes.CFUNCTYPE(None)(blas.symbols()["tw_blas_" + name])
    for name in ("enter", "leave")
]
openblas.symbol("openblas_set_num_threads")(2)
enter()
child = os.fork()
if not child:
    right = [openblas.threads() == 2]
    enter()
    right.append(openblas.threads() == 1)
    leave()
    right.append(openblas.threads() == 2)
    os._exit(0 if all(right) else 1)
assert os.waitpid(child, 0)[1] == 0
assert openblas.threads() == 1
leave()
assert openblas.threads() == 2
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_has_the_number_of_threads_from_outside():
    script = [sys.executable, "-c", FORK]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_products_of_numpy_and_regions_take_turns():
    m, n, k = 128, 128, 784
    random = np.random.default_rng(0)
    a, b = random.random((m, k), np.float32), random.random((k, n), np.float32)
    run, wanted = product(np.float32, (False, False), m, n, k), a @ b
    runtime.set_threads(2)
    for _ in range(300):
        c = np.empty((m, n), np.float32)
        run(a, b, c)
        assert np.abs(c - wanted).max() < 1e-3
        assert np.array_equal(a @ b, wanted)


def test_threads_compute_products_at_once():
    m, n, k = 128, 128, 784
    random = np.random.default_rng(0)
    a, b = random.random((m, k), np.float32), random.random((k, n), np.float32)
    run, results = product(np.float32, (False, False), m, n, k), set()
    runtime.set_threads(3)

    def compute():
        for _ in range(100):
            c = np.empty((m, n), np.float32)
            run(a, b, c)
            results.add(c.tobytes())
            np.dot(a, b, out=c)  # OpenBLAS's own threads meanwhile

    threads = [threading.Thread(target=compute) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert len(results) == 1


def test_a_blas_without_a_function_says_so(monkeypatch):
    def missing(name):
        raise openblas.Unavailable(f"NumPy's BLAS has no {name}")

    monkeypatch.setattr(openblas, "symbol", missing)
    with pytest.raises(openblas.Unavailable, match="has no"):
        blas._Functions()
