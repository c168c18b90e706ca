"""The thread pool: every chunk runs once, nothing hangs, idle workers sleep."""

import ctypes
import faulthandler
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tapewright import config

pytest.importorskip("llvmlite")

from tapewright.compiler.targets.native import atomics
from tapewright.compiler.targets.native.jit import engine, runtime, thread_pool  # noqa: E402
from tapewright.compiler.targets.native.llvm_writer import POINTER, IRValue, Writer

CANARY = 8  # entries on each side of the counts
needs_threads = pytest.mark.skipif(
    not atomics.has_futex(), reason="threads of the pool cannot sleep here"
)

# The context of the tasks below are counts, one for each chunk.
TASK = [("counts", POINTER), ("chunk", np.int64)]


@pytest.fixture(scope="module")
def regions():
    """``regions(counts, chunks, times, work)``: parallel regions, called without the GIL.

    Each chunk spends ``work`` rounds, then adds 1 to its count; 1 to that of a nested
    region, which all chunks share, is added by ``nested``.
    """
    writer = Writer()
    work = IRValue(writer, POINTER, "@work")
    writer.declared["work"] = "@work = internal global i64 0"
    with writer.function("count", TASK, None, "nounwind", "internal") as (
        counts,
        chunk,
    ):
        spent = writer.alloca(np.int64)
        with writer.loop(0, writer.load(work, np.int64)) as i:
            atomics.store(writer, i, spent)
        place = writer.at(counts, chunk, np.int64)
        writer.store(writer.load(place, np.int64) + 1, place)
        writer.ret()
    with writer.function("add", TASK, None, "nounwind", "internal") as (counts, chunk):
        atomics.add(writer, counts, writer.index(1))
        writer.ret()
    with writer.function("nest", TASK, None, "nounwind", "internal") as (counts, chunk):
        runtime.parallel(writer, "add", counts, 5)
        writer.ret()
    parameters = [("counts", POINTER), ("n", np.int64), ("times", np.int64)]
    for name, task in (("many", "count"), ("nested", "nest")):
        given = [*parameters, ("rounds", np.int64)]
        with writer.function(name, given) as (counts, n, times, rounds):
            atomics.store(writer, rounds, work)
            with writer.loop(0, times):
                runtime.parallel(writer, task, counts, n)
            writer.ret()
    library = engine.compiled(writer.text(), "test", runtime.symbols())
    kinds = [ctypes.c_void_p] + [ctypes.c_int64] * 3
    many, nested = [
        ctypes.CFUNCTYPE(None, *kinds)(library.address(name))
        for name in ("many", "nested")
    ]

    def run(chunks, times=1, rounds=0, call=many):
        counts = np.full(chunks + 2 * CANARY, -1)
        inside = counts[CANARY : CANARY + chunks]
        inside[:] = 0
        call(inside.ctypes.data, chunks, times, rounds)
        assert (counts[:CANARY] == -1).all() and (counts[CANARY + chunks :] == -1).all()
        return inside

    run.library, run.nested = library, nested
    return run


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


@pytest.mark.parametrize("threads", range(1, 9))
@pytest.mark.parametrize("chunks", [0, 1, 2, 3, 7, 64, 1000])
def test_every_chunk_runs_once(regions, threads, chunks):
    runtime.set_threads(threads)
    assert (regions(chunks, 20) == 20).all()
    assert (regions(chunks, 5, 1000) == 5).all()


def test_many_small_regions_come_to_an_end(regions):
    for threads in (2, 3, 8):
        runtime.set_threads(threads)
        assert (regions(2, 100_000) == 100_000).all()
        assert (regions(3, 20_000, 200) == 20_000).all()


def test_regions_after_pauses_come_to_an_end(regions):
    """Workers begin to sleep at every moment relative to the next region."""
    runtime.set_threads(4)
    for pause in np.linspace(0, 100e-6, 500):
        end = time.perf_counter() + pause
        while time.perf_counter() < end:
            pass
        assert (regions(4, 2, 300) == 2).all()


def test_chunks_of_nested_regions_run(regions):
    runtime.set_threads(4)
    assert regions(9, 100, 0, regions.nested)[0] == 9 * 100 * 5


def test_python_threads_run_regions_at_once(regions):
    runtime.set_threads(3)
    results = []

    def run(n):
        for _ in range(50):
            results.append((regions(n, 40, 50) == 40).all())

    threads = [threading.Thread(target=run, args=(n + 1,)) for n in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        runtime.set_threads(1 + len(results) % 8)  # while regions run
        time.sleep(0.001)
    assert len(results) == 400 and all(results)


def write_meeting(writer, rounds=0):
    """Chunks that wait for each other; the one that comes last takes longer."""
    with writer.function("meet", TASK, None, "nounwind") as (count, chunk):
        before = atomics.add(writer, count, writer.index(1), "acq_rel")
        start = atomics.ticks(writer)
        writer.jump("look")
        writer.begin("look")
        met = atomics.load(writer, count, np.int64, "acquire") >= 2
        writer.branch(met, "met", "pause")
        writer.begin("pause")
        atomics.pause(writer)
        late = atomics.ticks(writer) - start > 20_000_000_000
        writer.branch(late, "lost", "look")
        writer.begin("lost")
        atomics.add(writer, count, writer.index(-100))
        writer.ret()
        writer.begin("met")
        place = writer.alloca(np.int64)
        with writer.when(before == 1):
            with writer.loop(0, rounds) as i:
                writer.emit(f"store volatile i64 {i.text}, ptr {place.text}")
            atomics.add(writer, count, writer.index(1))
        writer.ret()
    with writer.function("run", TASK) as (count, chunks):
        runtime.parallel(writer, "meet", count, chunks)
        writer.ret()


@needs_threads
@pytest.mark.parametrize("rounds", [0, 200_000, 1_000_000])
def test_workers_take_chunks_and_their_caller_waits(rounds):
    """Two chunks that wait for each other end only on two threads."""
    writer = Writer()
    write_meeting(writer, rounds)
    library = engine.compiled(writer.text(), "test", runtime.symbols())
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    run = run(library.address("run"))
    runtime.set_threads(2)
    for _ in range(100):
        count = np.zeros(1, np.int64)
        run(count.ctypes.data, 2)
        assert count[0] == 3
        time.sleep(0.0005)  # workers sleep


@needs_threads
def test_workers_above_the_limit_are_not_woken_in_place_of_others():
    """They look for work in the moment in which the limit falls below their number."""
    writer = Writer()
    write_meeting(writer)
    library = engine.compiled(writer.text(), "test", runtime.symbols())
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    run = run(library.address("run"))
    runtime.set_threads(4)
    run(np.zeros(1, np.int64).ctypes.data, 4)  # starts them
    for pause in np.linspace(0, 2e-3, 50):
        runtime.set_threads(4)
        end = time.perf_counter() + pause
        while time.perf_counter() < end:
            pass
        runtime.set_threads(2)
        for _ in range(3):
            time.sleep(0.002)  # all sleep
            count = np.zeros(1, np.int64)
            run(count.ctypes.data, 2)
            assert count[0] == 3


def test_workers_never_take_one_job_for_another():
    """Regions of several functions, contexts and sizes follow each other at once."""
    writer = Writer()
    for name, step in (("ones", 1), ("tens", 10)):
        with writer.function(name, TASK, None, "nounwind") as (counts, chunk):
            atomics.add(writer, writer.at(counts, chunk, np.int64), writer.index(step))
            writer.ret()
    parameters = [("a", POINTER), ("b", POINTER), ("times", np.int64)]
    with writer.function("run", parameters) as (a, b, times):
        with writer.loop(0, times):
            runtime.parallel(writer, "ones", a, 5)
            runtime.parallel(writer, "tens", b, 3)
            runtime.parallel(writer, "tens", a, 2)
        writer.ret()
    library = engine.compiled(writer.text(), "test", runtime.symbols())
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64)
    run, times = run(library.address("run")), 300_000
    for threads in (2, 4):
        runtime.set_threads(threads)
        a, b = np.zeros(8, np.int64), np.zeros(8, np.int64)
        run(a.ctypes.data, b.ctypes.data, times)
        assert a.tolist() == [11 * times] * 2 + [times] * 3 + [0] * 3
        assert b.tolist() == [10 * times] * 3 + [0] * 5


@needs_threads
def test_workers_compute_in_the_mode_of_the_caller():
    # MXCSR's and FPCR's bit for "denormals become zero"
    flush = {"x86_64": 0x8000, "aarch64": 1 << 24}[engine.host().architecture]
    writer = Writer()
    with writer.function("divide", TASK, None, "nounwind") as (out, chunk):
        place = writer.at(out, chunk, np.float32)
        writer.store(writer.load(place, np.float32) * 0.5, place)
        start = atomics.ticks(writer)
        writer.jump("look")
        writer.begin("look")
        writer.branch(atomics.ticks(writer) - start < 10_000, "look", "done")
        writer.begin("done")
        writer.ret()
    with writer.function("run", [*TASK, ("mode", np.int64)]) as (out, chunks, mode):
        before, wanted = writer.alloca(np.int64), writer.alloca(np.int64)
        thread_pool.save_float_mode(writer, before)
        writer.store(writer.load(before, np.int64) | mode, wanted)
        thread_pool.restore_float_mode(writer, wanted)
        runtime.parallel(writer, "divide", out, chunks)
        thread_pool.restore_float_mode(writer, before)
        writer.ret()
    library = engine.compiled(writer.text(), "test", runtime.symbols())
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    run = run(library.address("run"))
    runtime.set_threads(4)
    for mode, expected in ((flush, 0.0), (0, 5e-39)):  # denormals become zero, or not
        out = np.full(1000, 1e-38, np.float32)
        run(out.ctypes.data, out.size, mode)
        assert (out == np.float32(expected)).all()


@needs_threads
def test_a_thread_leaves_a_core_to_others_if_there_are_more():
    writer = Writer()
    with writer.function("leave", [("core", np.int32)]) as (core,):
        atomics.leave_core(writer, core)
        writer.ret()
    library = engine.compiled(writer.text(), "test", runtime.c_library("syscall"))
    leave = ctypes.CFUNCTYPE(None, ctypes.c_int32)(library.address("leave"))
    found = []

    def work():
        leave(first)
        found.append(os.sched_getaffinity(0))

    cores = os.sched_getaffinity(0)
    first = min(cores)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [cores - {first} or cores]


def test_the_number_of_threads_is_checked():
    for n in (0, -1, 1.5, True, "2", runtime.MOST_THREADS + 1):
        with pytest.raises(ValueError, match="set_threads: n must be"):
            runtime.set_threads(n)


@needs_threads
def test_the_number_of_threads_is_kept():
    runtime.set_threads(5)
    assert runtime.threads() == 5


@needs_threads
def test_the_pool_follows_the_settings_of_the_process():
    assert runtime.threads() > 0
    try:
        config.set_threads(7)
        assert runtime.threads() == 7
    finally:
        config.set_threads(None)
    assert runtime.threads() == config.threads()


# --- whole processes

SCRIPT = """
import ctypes, os, sys, threading, time, warnings
import numpy as np
from tapewright.compiler.targets.native.jit import engine, runtime
from tapewright.compiler.targets.native.llvm_writer import POINTER, Writer

warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads
writer = Writer()
with writer.function("count", [("counts", POINTER), ("chunk", np.int64)]) as (c, i):
    with writer.loop(0, 500) as j:
        place = writer.at(c, i, np.int64)
        writer.emit(f"store volatile i64 {j.text}, ptr {place.text}")
    writer.ret()
with writer.function("run", [("counts", POINTER), ("times", np.int64)]) as (c, times):
    with writer.loop(0, times):
        runtime.parallel(writer, "count", c, 8)
    writer.ret()
library = engine.compiled(writer.text(), "test", runtime.symbols())
address = library.address("run")
call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(address)

def run(times=1):
    counts = np.full(8, -1)
    call(counts.ctypes.data, times)
    assert (counts == 499).all(), counts

runtime.set_threads(4)
run(100)
"""


def finished(script, timeout=60):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + script],
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_threads
def test_a_fork_computes_with_threads_of_its_own():
    script = """
tasks = lambda: len(os.listdir("/proc/self/task"))
for _ in range(20):
    child = os.fork()
    if not child:
        alone = tasks()  # 1; an emulator has threads of its own
        run(100)
        if not os.fork():  # and its own child
            run(100)
            os._exit(0)
        _, status = os.wait()
        os._exit(0 if status == 0 and tasks() == alone + 3 else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    run(100)
"""
    finished(script)


@needs_threads
def test_a_fork_in_the_middle_of_a_region_computes():
    script = """
busy = [threading.Thread(target=run, args=(3_000_000,), daemon=True) for _ in "ab"]
for thread in busy:
    thread.start()
for _ in range(20):
    child = os.fork()
    if not child:
        run(100)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    run()
"""
    finished(script)


@needs_threads
def test_a_process_ends_while_workers_sleep_look_or_compute():
    finished("")
    finished("time.sleep(0.1)")
    finished("threading.Thread(target=run, args=(10**9,), daemon=True).start()\nrun(9)")


@needs_threads
def test_an_idle_process_takes_no_time_of_the_cpu():
    script = """
time.sleep(0.05)
before = time.process_time()
time.sleep(1.0)
print(time.process_time() - before)
"""
    assert float(finished(script)) < 0.01


@needs_threads
def test_workers_leave_signals_to_python():
    script = """
import signal
seen = []
time.sleep(0.05)  # until all have begun
signal.signal(signal.SIGUSR1, lambda *_: seen.append(threading.current_thread().name))
for task in os.listdir("/proc/self/task"):
    with open(f"/proc/self/task/{task}/status") as lines:
        blocked = next(line for line in lines if line.startswith("SigBlk")).split()[1]
    print(task == str(os.getpid()), int(blocked, 16) >> (signal.SIGUSR1 - 1) & 1,
          int(blocked, 16) >> (signal.SIGSEGV - 1) & 1)
os.kill(os.getpid(), signal.SIGUSR1)
assert seen == ["MainThread"]
"""
    lines = finished(script).splitlines()
    assert lines.count("True 0 0") == 1
    assert lines.count("False 1 0") >= 3


@needs_threads
def test_a_region_takes_no_longer_than_on_one_thread_where_all_cores_are_busy():
    """Half of all regions of 100 us, of two kinds that take turns."""
    cores = sorted(os.sched_getaffinity(0))[:8]
    spin = (
        "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
    )
    busy = [subprocess.Popen([sys.executable, "-c", spin, str(c)]) for c in cores]
    script = """
times = {1: [], len(os.sched_getaffinity(0)): []}
for _ in range(40):
    for threads, found in times.items():
        runtime.set_threads(threads)
        for _ in range(10):
            start = time.perf_counter()
            run(20)
            found.append(time.perf_counter() - start)
print(*[sorted(found)[len(found) // 2] for found in times.values()])
"""
    try:
        alone, *shared = map(float, finished(script).split())
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert not shared or shared[0] < 2 * alone
