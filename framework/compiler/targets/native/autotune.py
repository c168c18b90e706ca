"""Select the fastest of several equivalent kernels by timing them.

The name of the winner is stored in the cache folder, beside machine code, so that the
next process need not time them again. Nothing else is read back: a corrupt file may
select a slower kernel, but never a wrong one.
"""

import contextlib
import copy
import hashlib
import json
import math
import os
import threading
import time

import numpy as np

from tapewright.core.settings import config

from ...program.arena import ALIGNMENT
from ...program.program import Buffer, Kind
from .jit import engine, object_cache
from .segments import NativeSegment, compiled_segments

BUDGET = 0.25  # seconds in which kernels take turns, unless a turn takes longer
LEAST, MOST = 5, 50  # turns of each kernel
SLOW = 1.5  # times the fastest: such kernels get no more than the least number of turns
DELAY = 1.5  # seconds until a bar is shown

_known = {}  # key -> name
_bars = threading.local()
_lock = threading.RLock()  # kernels that are timed share the machine with no others
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire,
        after_in_parent=_lock.release,
        after_in_child=_lock.release,
    )


def fastest(kernels, about):
    """Return the name of the kernel that runs the fastest on this machine.

    ``kernels`` are kernels by name; ``about`` is text that describes their computation.
    """
    key = _key(kernels, about)
    with _lock:
        if key not in _known:
            cache = object_cache.current()
            name = _read(cache.load(key))
            if name not in kernels:
                seconds = _timed(kernels)
                name = min(seconds, key=seconds.get)
                cache.store(key, _text(name, seconds))
            _known[key] = name
        return _known[key]


@contextlib.contextmanager
def progress():
    """Show one progress bar for all kernels timed in the block, if it takes long."""
    outer, _bars.current = getattr(_bars, "current", None), None
    try:
        yield
    finally:
        if _bars.current is not None:
            _bars.current.close()
        _bars.current = outer


def _advance(kernel_count=0, done=0):
    """Update the progress bar: more kernels to time, or some timed."""
    if getattr(_bars, "current", None) is None:
        from tqdm import tqdm

        _bars.current = tqdm(
            desc="autotune", total=0, unit=" kernels", delay=DELAY, disable=None,
            leave=False,
        )  # fmt: skip
    _bars.current.total += kernel_count
    _bars.current.update(done)


def _key(kernels, about):
    """Return a key of `ObjectCache` from everything that affects the timings."""
    parts = ["autotune", engine.maker(), f"{config.threads()} threads", about, *kernels]
    return hashlib.sha256("\0".join(parts).encode()).digest()


def _text(name, seconds):
    """Return the content of a file; the times in it are only for people to read."""
    rounded = {each: round(1e6 * time, 1) for each, time in seconds.items()}
    return json.dumps({"fastest": name, "microseconds": rounded}).encode()


def _read(content):
    """Return the name in a file, or None."""
    try:
        note = json.loads(content or b"null")
    except (ValueError, RecursionError):
        return None
    name = note.get("fastest") if isinstance(note, dict) else None
    return name if isinstance(name, str) else None


# ------------------------------------------------------------------------------- timing


def _timed(kernels):
    """Return the minimal time of each kernel in seconds, by name; they run alternately."""
    _advance(kernel_count=len(kernels))
    arrays, functions = {}, {}
    for name, kernel in kernels.items():
        functions[name] = _compiled(kernel, arrays)
        _advance(done=1)
    seconds = dict.fromkeys(kernels, math.inf)
    for function in functions.values():
        function()
    start, turn = time.perf_counter(), 0
    while turn < LEAST or (turn < MOST and time.perf_counter() - start < BUDGET):
        least = min(seconds.values())
        for name, function in functions.items():
            if turn < LEAST or seconds[name] <= SLOW * least:
                before = time.perf_counter()
                function()
                seconds[name] = min(seconds[name], time.perf_counter() - before)
        turn += 1
    return seconds


def _compiled(kernel, arrays):
    """Return a function that runs a kernel; kernels of the same specs share ``arrays``."""
    kernel = copy.copy(kernel)
    kinds = [Kind.SCRATCH if a.is_scratch else Kind.NEW for a in kernel.operands]
    specs = [(a.shape, a.dtype, kind) for a, kind in zip(kernel.operands, kinds)]
    kernel.operands = tuple([Buffer(*spec) for spec in specs])
    kernel.outputs = tuple([Buffer(a.shape, a.dtype) for a in kernel.replaced.outputs])
    segment = NativeSegment("segment", 0, kernel.limits)
    segment.append(kernel)
    compiled_segments([segment], "autotune")
    given, counts = [], {}
    for buffer in segment.arrays:
        spec = buffer.shape, buffer.dtype
        counts[spec] = counts.get(spec, 0) + 1
        given.append(arrays.setdefault((spec, counts[spec]), None))
        if given[-1] is None:
            given[-1] = arrays[spec, counts[spec]] = _ones(*spec)
    return lambda: segment(*given)


def _ones(shape, dtype):
    """Return an array aligned like the buffers of programs."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    array = memory[start : start + size].view(dtype).reshape(shape)
    array[...] = 1
    return array
