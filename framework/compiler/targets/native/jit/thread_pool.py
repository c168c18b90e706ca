"""The LLVM text of the thread pool: `tw_parallel` and the loop of its workers.

``void tw_parallel(ptr function, ptr context, i64 chunks)`` runs ``function(context,
chunk)`` for each chunk, on the calling thread and on the workers, and returns when all
are done.

- ``REMAINING`` counts the chunks that no thread has taken. A thread takes one by subtracting,
  and reads the job only after that: until it has reported the chunk in ``UNFINISHED``, the
  job is kept. A worker that comes late finds nothing to take, and touches nothing else.
- The caller takes chunks as well, and waits only for chunks that workers have begun. So a
  worker that gets no core costs nothing.
- Idle workers poll ``REMAINING`` for some microseconds, then sleep on ``EPOCH``. A worker
  first announces itself in ``ASLEEP`` and then polls once more; the caller first publishes
  the job and then reads ``ASLEEP``. One of the two sees the other. ``ASLEEP`` may count too
  many, which costs one system call, but never too few.
- A thread that finds the pool in use (by another thread, or a chunk) runs all its chunks
  itself.
"""

import numpy as np

from .. import atomics
from ..llvm_writer import POINTER, IRValue
from . import engine

# Places in the pool's memory, on cache lines of their own where different threads write.
LOCK, REMAINING, UNFINISHED, JOB, ASLEEP, EPOCH, LIMIT, WAITING = range(0, 1024, 128)
FUNCTION, CONTEXT, CHUNKS, FLOAT_MODE = JOB, JOB + 8, JOB + 16, JOB + 24
CORE = JOB + 32
STARTED, SPIN = LIMIT + 8, LIMIT + 16
SIZE = 1024

# A worker looks this many times as long as a caller, whose last chunk is soon done: between
# two products of a step in eager mode pass some 300 us. A worker that had gone to sleep
# meanwhile would come late to each of them.
WORKERS_PATIENCE = 5

# Signals that a thread raises itself must stay; Python's thread handles all others.
_SYNCHRONOUS = (4, 5, 6, 7, 8, 11, 31)  # ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS
_BLOCKED = -1 ^ sum([1 << (signal - 1) for signal in _SYNCHRONOUS])

_TASK = [("function", POINTER), ("context", POINTER), ("chunks", np.int64)]
_I32, _I64 = np.dtype(np.int32), np.dtype(np.int64)


def write_thread_pool(writer):
    """Append the pool's memory and functions."""
    writer.declared["tw_pool"] = (
        f"@tw_pool = internal global [{SIZE} x i8] zeroinitializer, align 128"
    )
    _write_serially(writer)
    _write_ticks(writer)
    _write_start(writer)
    _write_leave_core(writer)
    _write_worker(writer)
    _write_wait(writer)
    _write_parallel(writer)
    _write_settings(writer)


def write_serial_pool(writer):
    """Append a serial `tw_parallel` and `tw_get_threads`, for systems without futexes."""
    with writer.function("tw_parallel", _TASK, attributes="nounwind") as task:
        with writer.loop(0, task[2]) as chunk:
            atomics.call_address(writer, task[0], [task[1], chunk])
        writer.ret()
    with writer.function("tw_get_threads", [], _I32, "nounwind"):
        writer.ret(_i32(writer, 1))


def _address(writer, offset):
    return atomics.field(writer, IRValue(writer, POINTER, "@tw_pool"), offset)


def _i32(writer, n):
    return writer.const(n, _I32)


def _write_serially(writer):
    attributes = "nounwind noinline"
    with writer.function("tw_serially", _TASK, None, attributes, "internal") as task:
        with writer.loop(0, task[2]) as chunk:
            atomics.call_address(writer, task[0], [task[1], chunk])
        writer.ret()


def _write_ticks(writer):
    with writer.function("tw_ticks", [], _I64, "nounwind"):
        writer.ret(atomics.ticks(writer))


def _write_parallel(writer):
    with writer.function("tw_parallel", _TASK, attributes="nounwind") as task:
        _, _, chunks = task
        limit = atomics.load(writer, _address(writer, LIMIT), _I32)
        writer.branch((chunks > 1) & (limit > 1), "try_lock", "alone")
        writer.begin("try_lock")
        taken = atomics.compare_exchange(
            writer, _address(writer, LOCK), _i32(writer, 0), _i32(writer, 1)
        )
        writer.branch(taken, "locked", "alone")
        writer.begin("locked")
        started = writer.load(_address(writer, STARTED), _I32)
        writer.branch(started < limit - 1, "start", "publish")
        writer.begin("start")
        writer.call("tw_start", [limit - 1])
        writer.jump("publish")
        writer.begin("publish")
        _publish(writer, task)
        done = _take_all(
            writer,
            task,
            atomics.subtract(
                writer, _address(writer, REMAINING), writer.index(1), "acquire"
            ),
        )
        before = atomics.subtract(writer, _address(writer, UNFINISHED), done, "acq_rel")
        writer.branch(before == done, "finished", "others")
        writer.begin("others")
        writer.call("tw_wait", [])
        writer.jump("finished")
        writer.begin("finished")
        atomics.store(writer, _i32(writer, 0), _address(writer, LOCK), "release")
        writer.ret()
        writer.begin("alone")
        writer.call("tw_serially", task)
        writer.ret()


def _publish(writer, task):
    """Write the job, then publish it, then wake workers that sleep."""
    function, context, chunks = task
    writer.store(function, _address(writer, FUNCTION))
    writer.store(context, _address(writer, CONTEXT))
    writer.store(chunks, _address(writer, CHUNKS))
    save_float_mode(writer, _address(writer, FLOAT_MODE))
    atomics.store(writer, atomics.core(writer), _address(writer, CORE))
    atomics.store(writer, chunks, _address(writer, UNFINISHED))
    atomics.exchange(writer, _address(writer, REMAINING), chunks, "seq_cst")
    asleep = atomics.load(writer, _address(writer, ASLEEP), _I64, "seq_cst")
    with writer.when(asleep > 0):
        count = writer.select(asleep < chunks - 1, asleep, chunks - 1)
        atomics.subtract(writer, _address(writer, ASLEEP), count)
        epoch = _address(writer, EPOCH)
        atomics.add(writer, epoch, _i32(writer, 1), "seq_cst")
        atomics.futex_wake(writer, epoch, count)


def _take_all(writer, task, first):
    """Run chunks until none are left, beginning with one taken; return their number.

    ``first`` is the value of `REMAINING` when the first was taken, not positive if none
    was left.
    """
    function, context, chunks = task
    entered, head, body, end = writer.block, *map(writer.fresh, ("take", "run", "end"))
    remaining, done = f"%{writer.fresh()}", f"%{writer.fresh()}"
    next_remaining, next_done = f"%{writer.fresh()}", f"%{writer.fresh()}"
    writer.jump(head)
    writer.begin(head)
    writer.emit(
        f"{remaining} = phi i64 [ {first.text}, %{entered} ], "
        f"[ {next_remaining}, %{body} ]"
    )
    writer.emit(f"{done} = phi i64 [ 0, %{entered} ], [ {next_done}, %{body} ]")
    remaining, done = IRValue(writer, _I64, remaining), IRValue(writer, _I64, done)
    writer.branch(remaining > 0, body, end)
    writer.begin(body)
    atomics.call_address(writer, function, [context, chunks - remaining])
    writer.emit(f"{next_done} = add i64 {done.text}, 1")
    address = _address(writer, REMAINING)
    writer.emit(f"{next_remaining} = atomicrmw sub ptr {address.text}, i64 1 acquire")
    writer.jump(head)
    writer.begin(end)
    return done


def _write_wait(writer):
    """Wait for the chunks that workers have begun: spin for a while, then sleep."""
    with writer.function("tw_wait", [], None, "nounwind noinline", "internal"):
        unfinished = _address(writer, UNFINISHED)
        spin = writer.load(_address(writer, SPIN), _I64)
        start = atomics.ticks(writer)
        writer.jump("look")
        writer.begin("look")
        left = atomics.load(writer, unfinished, _I64, "acquire")
        writer.branch(left == 0, "done", "pause")
        writer.begin("pause")
        atomics.pause(writer)
        writer.branch(atomics.ticks(writer) - start < spin, "look", "sleep")
        writer.begin("sleep")
        waiting = _address(writer, WAITING)
        atomics.store(writer, _i32(writer, 1), waiting, "seq_cst")
        left = atomics.load(writer, unfinished, _I64, "seq_cst")
        writer.branch(left == 0, "awake", "wait")
        writer.begin("wait")
        atomics.futex_wait(writer, unfinished, left)
        writer.jump("sleep")
        writer.begin("awake")
        atomics.store(writer, _i32(writer, 0), waiting)
        writer.jump("done")
        writer.begin("done")
        writer.ret()


def _write_worker(writer):
    """The loop of worker ``number``, from 1 on: park, poll, sleep, take."""
    parameters, attributes = [("number", POINTER)], "nounwind noinline"
    with writer.function("tw_worker", parameters, POINTER, attributes, "internal") as (
        number,
    ):
        number = writer.assigned(_I32, f"ptrtoint ptr {number.text} to i32")
        remaining, epoch = _address(writer, REMAINING), _address(writer, EPOCH)
        limit_address = _address(writer, LIMIT)
        left_address = writer.alloca(_I64)  # when the thread last left a core
        writer.store(writer.index(0), left_address)
        writer.jump("idle")

        writer.begin("idle")  # a worker above the limit sleeps until that changes
        limit = atomics.load(writer, limit_address, _I32)
        writer.branch(number < limit, "begin", "park")
        writer.begin("park")
        atomics.futex_wait(writer, limit_address, limit)
        writer.jump("idle")

        writer.begin("begin")
        spin = writer.load(_address(writer, SPIN), _I64)
        start = atomics.ticks(writer)
        callers = atomics.load(writer, _address(writer, CORE), _I32)
        core = atomics.core(writer)
        same = (core == callers) & (core >= 0)
        writer.branch(same, "in_the_way", "look")

        # A worker that looks on the core of its caller keeps the caller from its work.
        writer.begin("in_the_way")
        left = writer.load(left_address, _I64)
        recently = start - left < spin * 50
        writer.branch(recently, "announce", "leave")
        writer.begin("leave")
        writer.store(start, left_address)
        writer.call("tw_leave_core", [core])
        writer.jump("look")
        writer.begin("look")
        seen = atomics.load(writer, remaining, _I64)
        writer.branch(seen > 0, "take", "pause")
        writer.begin("pause")
        atomics.pause(writer)
        patience = spin * WORKERS_PATIENCE
        writer.branch(atomics.ticks(writer) - start < patience, "look", "announce")

        # The limit changes before the epoch does: a worker that it has left out meanwhile
        # must not sleep here, as it would be woken in place of another one.
        writer.begin("announce")
        before = atomics.load(writer, epoch, _I32, "seq_cst")
        limit = atomics.load(writer, limit_address, _I32, "seq_cst")
        writer.branch(number < limit, "ready", "idle")
        writer.begin("ready")
        asleep = _address(writer, ASLEEP)
        atomics.add(writer, asleep, writer.index(1), "seq_cst")
        seen = atomics.load(writer, remaining, _I64, "seq_cst")
        writer.branch(seen > 0, "take", "sleep")
        writer.begin("sleep")
        atomics.futex_wait(writer, epoch, before)
        writer.jump("idle")

        writer.begin("take")
        first = atomics.subtract(writer, remaining, writer.index(1), "acquire")
        writer.branch(first > 0, "job", "idle")
        writer.begin("job")
        task = [
            writer.load(_address(writer, offset), dtype)
            for offset, dtype in (
                (FUNCTION, POINTER),
                (CONTEXT, POINTER),
                (CHUNKS, _I64),
            )
        ]
        restore_float_mode(writer, _address(writer, FLOAT_MODE))
        done = _take_all(writer, task, first)
        unfinished = _address(writer, UNFINISHED)
        before = atomics.subtract(writer, unfinished, done, "seq_cst")
        waiting = atomics.load(writer, _address(writer, WAITING), _I32, "seq_cst")
        with writer.when((before == done) & (waiting != 0)):
            atomics.futex_wake(writer, unfinished, _i32(writer, 1))
        writer.jump("idle")


def _write_leave_core(writer):
    parameters, attributes = [("core", _I32)], "nounwind noinline cold"
    with writer.function("tw_leave_core", parameters, None, attributes, "internal") as (
        core,
    ):
        atomics.leave_core(writer, core)
        writer.ret()


def _write_start(writer):
    """Start workers until there are ``count``; a refusal lowers the limit for good."""
    parameters, attributes = [("count", _I32)], "nounwind noinline cold"
    with writer.function("tw_start", parameters, None, attributes, "internal") as (
        count,
    ):
        null = IRValue(writer, POINTER, "null")
        worker = IRValue(writer, POINTER, "@tw_worker")
        thread = writer.alloca(POINTER)
        blocked, before = writer.alloca(_I64, 16), writer.alloca(_I64, 16)
        with writer.loop(0, 16) as n:
            writer.store(writer.const(-1, _I64), writer.at(blocked, n, _I64))
        writer.store(writer.const(_BLOCKED, _I64), blocked)
        block, restore = _i32(writer, 0), _i32(writer, 2)  # SIG_BLOCK, SIG_SETMASK
        writer.call("pthread_sigmask", [block, blocked, before], _I32)
        writer.jump("next")
        writer.begin("next")
        address = _address(writer, STARTED)
        started = writer.load(address, _I32)
        writer.branch(started < count, "create", "done")
        writer.begin("create")
        number = writer.cast(started + 1, _I64)
        number = writer.assigned(POINTER, f"inttoptr i64 {number.text} to ptr")
        args = [thread, null, worker, number]
        failed = writer.call("pthread_create", args, _I32)
        writer.branch(failed == 0, "created", "refused")
        writer.begin("created")
        writer.call("pthread_detach", [writer.load(thread, POINTER)], _I32)
        writer.store(started + 1, address)
        writer.jump("next")
        writer.begin("refused")
        atomics.store(writer, started + 1, _address(writer, LIMIT))
        writer.jump("done")
        writer.begin("done")
        writer.call("pthread_sigmask", [restore, before, null], _I32)
        writer.ret()


def _write_settings(writer):
    """`tw_set_threads`, `tw_get_threads`, `tw_set_spin`, and `tw_after_fork`."""
    with writer.function("tw_set_threads", [("n", _I32)], None, "nounwind") as (n,):
        limit, epoch = _address(writer, LIMIT), _address(writer, EPOCH)
        atomics.store(writer, n, limit, "seq_cst")
        atomics.add(writer, epoch, _i32(writer, 1), "seq_cst")
        for address in (limit, epoch):
            atomics.futex_wake(writer, address, writer.index(2**31 - 1))
        writer.ret()
    with writer.function("tw_get_threads", [], _I32, "nounwind"):
        writer.ret(atomics.load(writer, _address(writer, LIMIT), _I32))
    with writer.function("tw_set_spin", [("n", _I64)], None, "nounwind") as (n,):
        writer.store(n, _address(writer, SPIN))
        writer.ret()
    with writer.function("tw_after_fork", [], None, "nounwind"):
        for offset in (LOCK, EPOCH, STARTED, WAITING):
            atomics.store(writer, _i32(writer, 0), _address(writer, offset))
        for offset in (REMAINING, UNFINISHED, ASLEEP):
            atomics.store(writer, writer.index(0), _address(writer, offset))
        writer.ret()


def save_float_mode(writer, address):
    """Save the caller's rounding mode and treatment of denormals for the workers."""
    if engine.host().architecture == "x86_64":
        writer.call("llvm.x86.sse.stmxcsr", [address])
    else:
        writer.store(writer.call("llvm.aarch64.get.fpcr", [], _I64), address)


def restore_float_mode(writer, address):
    """Restore the saved rounding mode and treatment of denormals."""
    if engine.host().architecture == "x86_64":
        writer.call("llvm.x86.sse.ldmxcsr", [address])
    else:
        writer.call("llvm.aarch64.set.fpcr", [writer.load(address, _I64)])
