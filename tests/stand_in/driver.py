"""A stand-in for CuPy's driver: streams, capture, graphs, events and modules on the host.

Memory of the device is host memory, and the functions of a module are CUDA C that gcc has
compiled (`shim`). What a GPU refuses is refused: work that needs the host inside of a
capture, a capture of the default stream, a launch of too many threads. All that is asked of
the driver is written to `log`, tuples that begin with a verb, so that tests can
compare the order of a step with what was meant.
"""

import collections
import contextlib
import ctypes
import threading
import time
import types

import numpy as np

from . import shim

__all__ = ["CUDARuntimeError", "RawModule", "cuda", "deferred", "log", "note", "submit"]

log = collections.deque(maxlen=1 << 16)
MOST_THREADS, MOST_BLOCKS = 1024, (2**31 - 1, 65535, 65535)
MEMORY = 1 << 36  # bytes of the device, for `memGetInfo`

_here = threading.local()
_streams = {}  # ptr -> Stream
_settings = {"threads": "one"}  # how kernels run, see `shim`
_deferred = {"on": False, "work": collections.deque()}
_working = threading.RLock()  # threads share one stream: its work is done one by one


class CUDARuntimeError(RuntimeError):
    """An error of the driver; the text is CUDA's name of it."""


def note(*what):
    """Write down what was asked; an operation of the host is refused in a capture."""
    log.append(what)


def _host_only(verb):
    """Refuse what no capture may have: the host waits, or memory is allocated.

    Other threads go on: CuPy's captures are relaxed.
    """
    if getattr(_here, "captures", 0):
        raise CUDARuntimeError(
            f"cudaErrorStreamCaptureUnsupported: {verb} in a capture"
        )


def submit(stream_ptr, verb, function):
    """Do ``function`` in the order of a stream: now, or in each launch of its graph."""
    stream = _streams.get(stream_ptr)
    if stream is None:
        raise CUDARuntimeError(
            f"cudaErrorInvalidResourceHandle: no stream {stream_ptr}"
        )
    if stream.captured is None:
        note(*verb)
        _do(function)
    else:
        stream.captured.append((verb, function))


def _do(function):
    with _working:
        _deferred["work"].append(function)
        if not _deferred["on"]:
            _finish()


def _finish():
    """Do what has been submitted."""
    with _working:
        while _deferred["work"]:
            _deferred["work"].popleft()()


@contextlib.contextmanager
def deferred():
    """Do no work of streams until one is synchronized, or until the end.

    Arrays that the work uses must live as long: a real pool of memory follows streams.
    """
    _deferred["on"] = True
    try:
        yield
    finally:
        _deferred["on"] = False
        _finish()


class Stream:
    """CuPy's `Stream`: work runs when it is submitted, unless the stream captures."""

    _numbers = iter(range(1, 1 << 62))

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self.ptr = 0 if null else 0x1000 * next(self._numbers)
        self.null, self.is_non_blocking = null, non_blocking
        self.captured = None  # the work of a capture, in order
        self._before = []
        _streams[self.ptr] = self

    def __enter__(self):
        self._before.append(get_current_stream())
        _here.stream = self
        return self

    def __exit__(self, *exc):
        _here.stream = self._before.pop()

    def use(self):
        _here.stream = self
        return self

    def begin_capture(self, mode=None):
        if self.ptr == 0:
            raise CUDARuntimeError(
                "cudaErrorStreamCaptureUnsupported: the default stream"
            )
        if self.captured is not None:
            raise CUDARuntimeError("cudaErrorIllegalState: it is capturing already")
        note("begin_capture")
        self.captured = []
        _here.captures = getattr(_here, "captures", 0) + 1

    def end_capture(self):
        if self.captured is None:
            raise CUDARuntimeError("cudaErrorIllegalState: it is not capturing")
        captured, self.captured = self.captured, None
        _here.captures -= 1
        note("end_capture", len(captured))
        return Graph(captured)

    def is_capturing(self):
        return self.captured is not None

    def synchronize(self):
        _host_only("synchronize")
        note("synchronize")
        _finish()

    def record(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        note("wait_event")

    def __eq__(self, other):
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self):
        return hash(self.ptr)


class Event:
    """CuPy's `Event`; all work before it is done."""

    done = True

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.ptr = id(self)

    def record(self, stream=None):
        note("record")
        self.time = time.perf_counter()

    def synchronize(self):
        _host_only("synchronize")
        note("synchronize")


def get_elapsed_time(start, end):
    """Milliseconds from one event to another."""
    return (end.time - start.time) * 1e3


class MemoryHook:
    """CuPy's `MemoryHook`, of a pool that has no memory: it is never called."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass


class Graph:
    """CuPy's `Graph`: work that one launch does, in the order of the capture."""

    def __init__(self, work):
        self.work = work

    @property
    def verbs(self):
        """What was captured, for tests."""
        return [verb for verb, _ in self.work]

    def launch(self, stream=None):
        _host_only("launch of a graph")
        note("graph", len(self.work))
        with _working:
            for _, function in self.work:
                _do(function)

    def upload(self, stream=None):
        note("upload")


NULL = Stream(null=True)


def get_current_stream(device_id=-1):
    return getattr(_here, "stream", NULL)


class Device:
    """CuPy's `Device`, of which there is one."""

    compute_capability = "90"
    pci_bus_id = "0000:00:00.0"

    def __init__(self, device=None):
        self.id = 0 if device is None else int(device)
        if self.id != 0:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def use(self):
        return self

    def synchronize(self):
        _host_only("synchronize")
        note("synchronize")

    @property
    def mem_info(self):
        return runtime.memGetInfo()

    @property
    def attributes(self):
        return {"MultiProcessorCount": 132, "MaxThreadsPerBlock": MOST_THREADS}

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self):
        return hash(self.id)

    def __repr__(self):
        return f"<CUDA Device {self.id}>"


# ------------------------------------------------------------------------------ memory


def alloc_pinned_memory(size):
    """Host memory that the device can write to: a buffer of bytes with a ``ptr``."""
    _host_only("alloc_pinned_memory")
    note("alloc_pinned", size)
    kind = ctypes.c_ubyte * size
    namespace = {"ptr": property(ctypes.addressof)}
    return type("PinnedMemoryPointer", (kind,), namespace)()


HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = range(4)


def _memcpy_async(dst, src, size, kind, stream):
    if kind != DEVICE_TO_DEVICE and _streams[stream].captured is not None:
        raise CUDARuntimeError(
            "cudaErrorStreamCaptureUnsupported: a copy of host memory in a capture"
        )
    submit(stream, ("memcpy", kind, size), lambda: ctypes.memmove(dst, src, size))


def _memset_async(ptr, value, size, stream):
    submit(stream, ("memset", size), lambda: ctypes.memset(ptr, value, size))


def _memcpy(dst, src, size, kind):
    _host_only("memcpy")
    note("memcpy", kind, size)
    ctypes.memmove(dst, src, size)


def _synchronize(*_):
    _host_only("synchronize")
    note("synchronize")


runtime = types.SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    memcpyAsync=_memcpy_async,
    memsetAsync=_memset_async,
    memcpy=_memcpy,
    memcpyHostToDevice=HOST_TO_DEVICE,
    memcpyDeviceToHost=DEVICE_TO_HOST,
    memcpyDeviceToDevice=DEVICE_TO_DEVICE,
    deviceSynchronize=_synchronize,
    streamSynchronize=_synchronize,
    getDeviceCount=lambda: 1,
    getDevice=lambda: 0,
    pointerGetAttributes=lambda ptr: types.SimpleNamespace(device=0),
    memGetInfo=lambda: (MEMORY, MEMORY),
    runtimeGetVersion=lambda: 12090,
    driverGetVersion=lambda: 12090,
    getDeviceProperties=lambda device: {
        "name": b"stand-in for a GPU",
        "uuid": b"stand-in",
        "major": 9,
        "minor": 0,
        "multiProcessorCount": 132,
        "totalGlobalMem": MEMORY,
    },
)


# ----------------------------------------------------------------------------- modules


class RawModule:
    """CuPy's `RawModule`, of CUDA C."""

    def __init__(
        self,
        *,
        code=None,
        path=None,
        options=(),
        backend="nvrtc",
        translate_cucomplex=False,
        enable_cooperative_groups=False,
        name_expressions=None,
        jitify=False,
    ):
        _host_only("compilation")
        note("compile", len(code))
        self.code, self._module = code, shim.Module(code)

    def get_function(self, name):
        return RawKernel(self._module, name)


class RawKernel:
    """A function of a module: ``kernel(grid, block, args)``."""

    def __init__(self, module, name):
        self._module, self.name = module, name

    def __call__(self, grid, block, args, *, shared_mem=0, stream=None):
        grid, block = (tuple([*n, 1, 1][:3]) for n in (grid, block))
        if np.prod(block) > MOST_THREADS or any(np.array(grid) > MOST_BLOCKS):
            raise CUDARuntimeError(f"cudaErrorInvalidConfiguration: {grid} of {block}")
        if min(*grid, *block) < 1:
            raise CUDARuntimeError(f"cudaErrorInvalidConfiguration: {grid} of {block}")
        stream = get_current_stream() if stream is None else stream
        how, args = _settings["threads"], tuple(args)
        submit(
            stream.ptr,
            ("launch", self.name),
            lambda: self._module.launch(self.name, grid, block, args, threads=how),
        )


@contextlib.contextmanager
def threads(how):
    """Run kernels as ``"one"`` thread, or with all of their threads as ``"fibers"``."""
    before, _settings["threads"] = _settings["threads"], how
    try:
        yield
    finally:
        _settings["threads"] = before


cuda = types.SimpleNamespace(
    Stream=Stream,
    Event=Event,
    Graph=Graph,
    MemoryHook=MemoryHook,
    Device=Device,
    runtime=runtime,
    alloc_pinned_memory=alloc_pinned_memory,
    get_current_stream=get_current_stream,
    get_elapsed_time=get_elapsed_time,
    is_available=lambda: True,
)
