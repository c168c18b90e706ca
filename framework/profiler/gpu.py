"""`GpuRecorder`: the times and the memory of ops on a GPU, which runs asynchronously.

An op on a GPU returns before its work is done, so the host's clock only measures the
call. CUDA events around it are passed when the GPU reaches them; their times are read
at the end of the profile. A hook of CuPy's memory pool counts the bytes that an op
allocates.
"""

import threading
import time

clock = time.perf_counter_ns


class Measured:
    """An op on a GPU: the events around it, bytes allocated from the pool, their peak."""

    __slots__ = ("allocated", "before", "behind", "peak")

    def __init__(self, before):
        self.before, self.behind = before, None
        self.allocated = self.peak = None  # not known


class GpuRecorder:
    """Times of a thread's current GPU on the host's clock, and its memory.

    The memory is measured in the thread that creates the recorder, since CuPy's hooks
    belong to a thread. ``memory`` contains ``(time, change in bytes)``.
    """

    def __init__(self, module):
        self._cuda = module.cuda
        self.number = module.cuda.Device().id
        self.memory = []
        self._owner = threading.get_ident()
        self._held = self._highest = self._taken = 0
        self._hook = _hook_class(module.cuda.MemoryHook)(self._changed)
        self._hook.__enter__()
        self._cuda.Device().synchronize()
        self._start, self._first = clock(), self._event()

    def _event(self):
        event = self._cuda.Event()
        event.record()
        return event

    def _changed(self, change):
        self._held += change
        self._highest = max(self._highest, self._held)
        self._taken += max(change, 0)
        self.memory.append((clock(), change))

    def begin(self):
        """Record that an op begins in the current stream; pass the result to `end`."""
        self._highest, self._taken = self._held, 0
        measured = Measured(self._event())
        measured.peak = self._held
        return measured

    def end(self, measured):
        """Record that the work of the op is enqueued."""
        measured.behind = self._event()
        if threading.get_ident() == self._owner:
            measured.allocated = self._taken
            measured.peak = self._highest - measured.peak
        else:
            measured.peak = None

    def finish(self):
        """Wait for the GPU and stop counting memory."""
        self._hook.__exit__(None, None, None)
        self._cuda.Device().synchronize()

    def times(self, measured):
        """Return begin and end of an op's work in ns of the host's clock, after `finish`."""
        elapsed = self._cuda.get_elapsed_time
        return tuple(
            [
                self._start + round(elapsed(self._first, event) * 1e6)
                for event in (measured.before, measured.behind)
            ]
        )


def _hook_class(base):
    class Hook(base):
        name = "tapewright.profiler"

        def __init__(self, changed):
            self._changed = changed

        def malloc_postprocess(self, *, mem_size, mem_ptr, **_):
            if mem_ptr:  # else there was no memory
                self._changed(mem_size)

        def free_postprocess(self, *, mem_size, **_):
            self._changed(-mem_size)

    return Hook
