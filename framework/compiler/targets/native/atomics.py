"""Atomic memory access, waiting and calls by address, appended to a `Writer`.

Orders are LLVM's: "monotonic" for values alone, "acquire" and "release" for the memory
that they guard, "seq_cst" where two threads each write one location and then read the
other's.
"""

import contextlib
import sys

import numpy as np

from .jit import engine
from .llvm_writer import POINTER, llvm_type

# Linux's numbers of system calls
_CALLS = {
    "x86_64": {
        "futex": 202,
        "getpid": 39,
        "sched_getaffinity": 204,
        "sched_setaffinity": 203,
    },
    "aarch64": {
        "futex": 98,
        "getpid": 172,
        "sched_getaffinity": 123,
        "sched_setaffinity": 122,
    },
}
_WAIT, _WAKE = 128, 129  # FUTEX_WAIT, FUTEX_WAKE, of one process


def has_futex():
    """Return whether threads can sleep and be woken: Linux."""
    return sys.platform == "linux" and engine.host().architecture in _CALLS


def load(writer, pointer, dtype, order="monotonic"):
    """Read a value atomically."""
    dtype = np.dtype(dtype)
    text = f"load atomic {llvm_type(dtype)}, ptr {pointer.text} {order}"
    return writer.assigned(dtype, f"{text}, align {dtype.itemsize}")


def store(writer, value, pointer, order="monotonic"):
    """Write a value atomically."""
    text = f"store atomic {llvm_type(value.dtype)} {value.text}, ptr {pointer.text}"
    writer.emit(f"{text} {order}, align {value.dtype.itemsize}")


def add(writer, pointer, value, order="monotonic"):
    """Add to a value in memory; return the old value."""
    return _update(writer, "add", pointer, value, order)


def subtract(writer, pointer, value, order="monotonic"):
    """Subtract from a value in memory; return the old value."""
    return _update(writer, "sub", pointer, value, order)


@contextlib.contextmanager
def taken_from(writer, counter, count):
    """Loop over numbers below ``count`` that no other thread has taken from a counter."""
    head, body, done = [writer.fresh(stem) for stem in ("head", "body", "done")]
    writer.jump(head)
    writer.begin(head)
    number = add(writer, counter, writer.index(1))
    writer.branch(number < count, body, done)
    writer.begin(body)
    yield number
    writer.jump(head)
    writer.begin(done)


def exchange(writer, pointer, value, order="monotonic"):
    """Write a value; return the old value."""
    return _update(writer, "xchg", pointer, value, order)


def _update(writer, name, pointer, value, order):
    kind = llvm_type(value.dtype)
    text = f"atomicrmw {name} ptr {pointer.text}, {kind} {value.text} {order}"
    return writer.assigned(value.dtype, text)


def compare_exchange(writer, pointer, expected, value, order="acquire"):
    """Write a value if the old one is as expected; return whether it was."""
    kind = llvm_type(value.dtype)
    pair = f"%{writer.fresh()}"
    writer.emit(
        f"{pair} = cmpxchg ptr {pointer.text}, {kind} {expected.text}, "
        f"{kind} {value.text} {order} monotonic"
    )
    return writer.assigned(np.bool_, f"extractvalue {{ {kind}, i1 }} {pair}, 1")


def pause(writer):
    """Tell the CPU that the thread waits in a loop."""
    if engine.host().architecture == "x86_64":
        writer.call("llvm.x86.sse2.pause", [])
    else:
        writer.call("llvm.aarch64.hint", [writer.const(1, np.int32)])  # yield


def ticks(writer):
    """Read a clock of the CPU that runs at a constant rate."""
    if engine.host().architecture == "x86_64":
        return writer.call("llvm.readcyclecounter", [], np.int64)
    name = "llvm.read_volatile_register.i64"  # its cycle counter is the kernel's alone
    writer.declared[name] = f"declare i64 @{name}(metadata)"
    return writer.assigned(np.int64, f'call i64 @{name}(metadata !{{!"cntvct_el0"}})')


def core(writer):
    """Return the number of the core the thread runs on; -1 if that needs a system call."""
    if engine.host().architecture != "x86_64":
        return writer.const(-1, np.int32)
    # Linux keeps the number beside the clock.
    name = "llvm.x86.rdtscp"
    kind = "{ i64, i32 }"
    writer.declared[name] = f"declare {kind} @{name}()"
    pair = f"%{writer.fresh()}"
    writer.emit(f"{pair} = call {kind} @{name}()")
    return writer.assigned(np.int32, f"extractvalue {kind} {pair}, 1")


def futex_wait(writer, pointer, expected):
    """Sleep until woken, unless the 32 bits at the pointer are not as expected."""
    _futex(writer, pointer, _WAIT, writer.cast(expected, np.int64))


def futex_wake(writer, pointer, count):
    """Wake up to ``count`` threads that sleep on the pointer."""
    _futex(writer, pointer, _WAKE, writer.cast(count, np.int64))


def _futex(writer, pointer, operation, value):
    _system_call(writer, "futex", pointer, writer.index(operation), value)


def leave_core(writer, number):
    """Move the thread off this core to the other cores of the process, if there are any."""
    size = writer.index(128)  # of a set of cores
    mask = writer.alloca(np.int64, 16)
    with writer.loop(0, 16) as n:
        writer.store(writer.index(0), writer.at(mask, n, np.int64))
    process, own = _system_call(writer, "getpid"), writer.index(0)
    _system_call(writer, "sched_getaffinity", process, size, mask)
    number = writer.cast(number, np.int64)
    word = writer.at(mask, number >> 6, np.int64)
    bit = writer.index(1) << (number & 63)
    writer.store(writer.load(word, np.int64) & ~bit, word)
    _system_call(writer, "sched_setaffinity", own, size, mask)  # refuses an empty set


def _system_call(writer, name, *args):
    """Call the kernel with up to four arguments of one type: all are passed alike."""
    args = [writer.index(_CALLS[engine.host().architecture][name]), *args]
    args += [writer.index(0)] * (7 - len(args))
    words = [
        writer.assigned(np.int64, f"ptrtoint ptr {x.text} to i64")
        if x.dtype == POINTER
        else x
        for x in args
    ]
    return writer.call("syscall", words, np.int64)


def call_address(writer, function, args, result=None):
    """Call the function at an address."""
    listed = ", ".join([f"{llvm_type(a.dtype)} {a.text}" for a in args])
    if result is None:
        return writer.emit(f"call void {function.text}({listed})")
    return writer.assigned(
        result, f"call {llvm_type(result)} {function.text}({listed})"
    )


def field(writer, pointer, offset):
    """The address ``offset`` bytes after a pointer."""
    return writer.at(pointer, offset, np.uint8)
