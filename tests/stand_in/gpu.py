"""A stand-in for what `cupy.cuda` says of GPUs: their number, memory, and times of events.

``install`` gives it to the stand-in for CuPy's arrays. Nothing is computed with it: tests
set the memory that is in use and the times that the GPU takes.
"""

from types import SimpleNamespace

from tapewright.core.hardware import devices

__all__ = ["CUDA", "OutOfMemoryError", "install"]

MIB = 1 << 20


class OutOfMemoryError(MemoryError):
    """CuPy's error, by its module and its text."""

    __module__ = "cupy.cuda.memory"

    def __init__(self, size, total):
        super().__init__(
            f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes)."
        )


class Pool:
    """A memory pool: ``used`` and ``held`` bytes, which tests set."""

    def __init__(self):
        self.used, self.held, self.limit = 3 * MIB, 8 * MIB, 0

    def get_limit(self):
        return self.limit

    def set_limit(self, size):
        self.limit = size

    def used_bytes(self):
        return self.used

    def total_bytes(self):
        return self.held

    def free_bytes(self):
        return self.held - self.used

    def free_all_blocks(self):
        self.held = self.used


class CUDA:
    """``cupy.cuda`` of a machine with some GPUs.

    ``free`` of each are free of ``total``; ``time`` is that of the GPU in ms, ``waits`` how
    often somebody waited for it, and ``hooks`` are those of its memory.
    """

    def __init__(self, count=1):
        self.free, self.total = 80 * MIB, 100 * MIB
        self.current, self.time, self.waits, self.hooks = [0], 0.0, 0, []
        self.pool = Pool()
        self.runtime = SimpleNamespace(
            getDeviceCount=lambda: count,
            memGetInfo=lambda: (self.free, self.total),
            runtimeGetVersion=lambda: 12090,
            driverGetVersion=lambda: 13000,
            getDeviceProperties=lambda number: {
                "name": f"Card {number}".encode(),
                "major": 9,
                "minor": 0,
            },
        )
        self.Device, self.Event, self.MemoryHook = _classes(self)

    def get_elapsed_time(self, start, end):
        return end.at - start.at

    def malloc(self, size):
        """Take memory from the pool, as an op does."""
        for hook in self.hooks:
            hook.malloc_postprocess(
                device_id=0, size=size, mem_size=size, mem_ptr=1, pmem_id=1
            )

    def release(self, size):
        for hook in self.hooks:
            hook.free_postprocess(device_id=0, mem_size=size, mem_ptr=1, pmem_id=1)


def _classes(cuda):
    class Device:
        def __init__(self, number=None):
            self.id = cuda.current[-1] if number is None else number

        def use(self):
            cuda.current[-1] = self.id

        def synchronize(self):
            cuda.waits += 1

        def __enter__(self):
            cuda.current.append(self.id)

        def __exit__(self, *exc):
            cuda.current.pop()

    class Event:
        def record(self):
            self.at = cuda.time

    class MemoryHook:
        def __enter__(self):
            cuda.hooks.append(self)

        def __exit__(self, *exc):
            cuda.hooks.remove(self)

    return Device, Event, MemoryHook


def install(monkeypatch, strict, count=1):
    """Let ``strict`` stand for CuPy on a machine with some GPUs; return its `CUDA`."""
    cuda = CUDA(count)
    monkeypatch.setattr(strict, "cuda", cuda, raising=False)
    pool = lambda: cuda.pool  # noqa: E731
    monkeypatch.setattr(strict, "get_default_memory_pool", pool, raising=False)
    cupy_module = devices.cupy_module
    monkeypatch.setattr(
        devices,
        "cupy_module",
        lambda name="cupy": strict if name == "cupy" else cupy_module(name),
    )
    return cuda
