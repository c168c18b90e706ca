"""`tw.profiler`: a Chrome trace of a program, and a table of times by op.

During a trace, every kernel is timed, replays read a clock at each instruction (see
`compiler.inspection.timings`), and the methods in `hooks.watched_methods` are wrapped.
Otherwise nothing is wrapped, without any overhead. On a GPU, which runs asynchronously,
the GPU's times are recorded as well: see `gpu`.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from os import PathLike
from typing import Any, Self

import numpy as np

from tapewright.autodiff.gradient_tape import GradientTape
from tapewright.compiler import pipeline
from tapewright.compiler.function.function import Function
from tapewright.compiler.inspection.costs import (
    instruction_cost,
    instruction_name,
)
from tapewright.compiler.inspection.pretty import short_line, spec_text
from tapewright.compiler.inspection.timings import Timed
from tapewright.compiler.targets.numpy.executable import Executable
from tapewright.core.hardware import devices
from tapewright.core.hooks import watch_method, watched_methods
from tapewright.core.op_definition.costs import op_cost
from tapewright.core.primitive import wrap_kernels
from tapewright.core.typing import P, R

from .gpu import GpuRecorder
from .timeline import Event, chrome_trace, table_rows, table_text, write_json

__all__ = ["annotate", "experimental", "trace"]

clock = time.perf_counter_ns

_session = None  # the trace that is going on
_lock = threading.Lock()

for _name in ("gradient", "jacobian", "batch_jacobian", "hessian"):
    watch_method(GradientTape, _name, "tape")
watch_method(Function, "_trace", "trace", "trace")
watch_method(pipeline, "optimize", "compile", "passes")
watch_method(pipeline, "lower", "compile")
watch_method(Executable, "__init__", "compile", "executable")


# ------------------------------------------------------------------------ for the user


class trace:  # noqa: N801  (used as a statement)
    """Context manager that records the times of all code inside it.

    It records the ops of eager steps, the instructions of replays (with the op and line
    of each), tracing and compiling, gradients, optimizer updates and the blocks of
    `annotate`, in all threads. The file opens in Perfetto or chrome://tracing; it
    contains the shapes, dtypes and bytes of each op, and the memory of live results
    over time. At the end a table by op is printed. Inside the context gradients run op
    by op, so that each op is recorded.

    An op on a GPU returns before its work is done. Its events show the time of the call
    on the host; events of category "gpu" show the time of the work on the GPU, from its
    launch on, and contain the bytes that the op took from the memory pool and their
    peak, in the thread of the ``with`` block.

    Afterwards the attributes ``events`` (`Event`) and ``rows`` (`TableRow`) hold the
    results.

    Args:
        path: Path of the JSON file, or None to write no file.
        table: If False, print no table.

    Raises:
        RuntimeError: If another trace is active.
        FileNotFoundError: If the folder of ``path`` does not exist.

    Example:
        >>> import tapewright as tw
        >>> with tw.profiler.trace(table=False) as profile:
        ...     y = tw.exp(tw.ones((2, 3)))
        >>> [(row.name, row.calls, row.nbytes) for row in profile.rows if row.name == "exp"]
        [('exp', 1, 48)]
    """

    def __init__(self, path: str | PathLike[str] | None = None, table: bool = True):
        self.path = None if path is None else os.fspath(path)
        self.table = table
        self.events, self.rows = (), ()
        self.duration = None  # in seconds

    def __enter__(self) -> Self:
        global _session
        if self.path is not None:
            folder = os.path.dirname(os.path.abspath(self.path))
            if not os.path.isdir(folder):
                raise FileNotFoundError(
                    f"profiler.trace: the folder of path must exist, got {self.path!r}"
                )
        with _lock:
            if _session is not None:
                raise RuntimeError(
                    "profiler.trace: another trace is active; end it first"
                )
            session = _Session()
            session.begin()
            _session = session
        return self

    def __exit__(self, *exc: object) -> None:
        global _session
        session = _session
        session.end()
        _session = None
        self.events = session.finished()
        self.duration = (session.stop - session.start) / 1e9
        self.rows = table_rows(self.events)
        if self.path is not None:
            content = chrome_trace(
                self.events, session.start, session.threads, session.counters()
            )
            write_json(self.path, content)
        if self.table:
            _print(repr(self))

    def __repr__(self) -> str:
        if self.duration is None:
            return "<profiler.trace, still active>"
        return table_text(self.rows, self.duration)


class annotate:  # noqa: N801  (used as a statement)
    """Context manager and decorator that records a block or function by name.

    Outside of `trace` it has no effect.

    Args:
        name: Name of the block in the trace.
        **arguments: Values that are shown with the name.

    Example:
        >>> @tw.profiler.annotate("normalize", dataset="moons")
        ... def normalize(x):
        ...     return x / x.max()
    """

    __slots__ = ("name", "arguments", "_start")

    def __init__(self, name: str, **arguments: Any):
        self.name, self.arguments = name, arguments
        self._start = None

    def __enter__(self) -> Self:
        self._start = None if _session is None else clock()
        return self

    def __exit__(self, *exc: object) -> None:
        session = _session
        if session is not None and self._start is not None:
            session.add("user", self.name, self._start, clock(), self.arguments)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def annotated(*args, **kwargs):
            with annotate(self.name, **self.arguments):
                return function(*args, **kwargs)

        return annotated


# TensorFlow's names.


def Profile(logdir: str | PathLike[str]) -> trace:
    """Return a `trace` without a table that writes ``trace.json`` in a folder.

    Args:
        logdir: Folder, which is created if it does not exist.

    Example:
        >>> with tw.profiler.experimental.Profile("logs"):  # doctest: +SKIP
        ...     y = tw.exp(tw.ones([2, 3]))
    """
    os.makedirs(logdir, exist_ok=True)
    return trace(os.path.join(logdir, "trace.json"), table=False)


_started = []


def start(logdir: str | PathLike[str]) -> None:
    """Start a `Profile`; `stop` ends it.

    Args:
        logdir: Folder of the file, which is created if it does not exist.

    Raises:
        RuntimeError: If another trace is active.
    """
    profile = Profile(logdir)
    profile.__enter__()
    _started.append(profile)


def stop() -> None:
    """End the profile of `start` and write its file.

    Raises:
        RuntimeError: If no profile was started.
    """
    if not _started:
        raise RuntimeError(
            "profiler.experimental.stop: no profile is active; call start first"
        )
    _started.pop().__exit__(None, None, None)


class experimental:  # noqa: N801  (a namespace)
    """`trace` and `annotate` under the names of ``tf.profiler.experimental``."""

    Profile = staticmethod(Profile)
    Trace: type = annotate
    start = staticmethod(start)
    stop = staticmethod(stop)


# ------------------------------------------------------------------------- recording


class _Session:
    """The raw events of a trace, which `finished` decodes."""

    def __init__(self):
        self.noted = []  # arguments of `Event`, of annotations and methods
        self.ops, self.replays = [], []
        self.memory = []  # (time, change in bytes)
        self.threads = {}
        self.instances = weakref.WeakKeyDictionary()  # executables -> `Timed`s
        self.held = {}  # references to results, to hear of their end
        self.gpus = {}  # type of arrays -> `GpuRecorder`, or None
        self.originals = []

    def begin(self):
        self.start = clock()
        for owner, name, category, label in watched_methods:
            original = vars(owner)[name]
            self.originals.append((owner, name, original))
            setattr(owner, name, self.watched(original, category, label))
        replay = Executable.run
        self.originals.append((Executable, "run", replay))
        Executable.run = self.timed_replay(replay)
        wrap_kernels(self.timed_kernel, "profile")

    def end(self):
        wrap_kernels(None, "profile")
        for owner, name, original in reversed(self.originals):
            setattr(owner, name, original)
        for gpu in self.recorders():
            gpu.finish()
        self.stop = clock()
        self.held.clear()

    def recorders(self):
        return [gpu for gpu in self.gpus.values() if gpu is not None]

    def gpu_of(self, arrays):
        """Return the recorder of the arrays' GPU, or None if they are on the host."""
        kind = type(arrays[0]) if arrays else devices.current_module().ndarray
        if kind is np.ndarray:
            return None
        if kind not in self.gpus:
            module = devices.array_module(kind)
            has_events = hasattr(module, "cuda")
            self.gpus[kind] = GpuRecorder(module) if has_events else None
        return self.gpus[kind]

    def counters(self):
        """Return ``(time, change in bytes)`` of each kind of memory."""
        changes = {"memory of results": self.memory}
        for gpu in self.recorders():
            changes[f"memory of GPU {gpu.number}"] = gpu.memory
        return changes

    def thread(self):
        """Return the number of this thread, and save its name."""
        number = threading.get_ident()
        if number not in self.threads:
            self.threads[number] = threading.current_thread().name
        return number

    def add(self, category, name, start, stop, data=None):
        self.noted.append((category, name, start, stop, self.thread(), 0, data))

    # --- wrappers

    def watched(self, function, category, label):
        @functools.wraps(function)
        def run(*args, **kwargs):
            start = clock()
            try:
                return function(*args, **kwargs)
            finally:
                name = label(*args) if callable(label) else label
                self.add(category, name, start, clock())

        return run

    def timed_kernel(self, op, kernel):
        """Return the kernel of an op with a record of each call."""
        note, thread = self.ops.append, self.thread

        def run(*arrays, **attributes):
            gpu = self.gpu_of(arrays)
            measured = None if gpu is None else gpu.begin()
            start = clock()
            result = kernel(*arrays, **attributes)
            stop = clock()
            if gpu is not None:
                gpu.end(measured)
                measured = gpu, measured
            outputs = result if type(result) is tuple else (result,)
            specs = _specs(arrays), _specs(outputs)
            note((op, start, stop, thread(), *specs, attributes, measured))
            self.follow(outputs, arrays)
            return result

        return run

    def timed_replay(self, replay):
        session = self

        def timed_replay(executable, arrays):
            # A program that aliases its inputs is a region, inside of another replay.
            if executable.program.aliases_inputs:
                return replay(executable, arrays)
            free = session.instances.setdefault(executable, [])
            try:
                timed = free.pop()
            except IndexError:
                timed = Timed(executable)
                session.memory.append((clock(), executable.arena_size))
            start = clock()
            try:
                outputs = timed(*arrays)
            except Exception as error:
                raise timed.executable.annotated(error) from None
            finally:
                marks, stop = timed.marks[:], clock()
                session.replays.append((timed, marks, start, stop, session.thread()))
            free.append(timed)  # see `Executable.run`
            session.follow(outputs, arrays)
            return outputs

        return timed_replay

    def follow(self, arrays, known=()):
        """Record the bytes of new arrays, which are not ``known``, and later their release."""
        for array in arrays:
            if type(array) is np.ndarray and type(array.base) is not np.ndarray:
                key = id(array)
                if key not in self.held and not any([array is x for x in known]):
                    reference = self.held[key] = _Held(array, self.ended)
                    reference.key, reference.size = key, array.nbytes
                    self.memory.append((clock(), array.nbytes))

    def ended(self, reference):
        if self.held.pop(reference.key, None) is not None:
            self.memory.append((clock(), -reference.size))

    # --- decoding

    def finished(self):
        """Return all events by start time, outer before inner."""
        events = [Event(*each) for each in self.noted]
        for op, start, stop, thread, given, made, attributes, measured in self.ops:
            inputs, outputs = [_Spec(*x) for x in given], [_Spec(*x) for x in made]
            cost = op_cost(op, inputs, outputs, attributes)
            data = {"inputs": _text(inputs), "output": _text(outputs)}
            data |= {"flops": cost.flops} if cost.flops else {}
            event = Event("op", op.name, start, stop, thread, cost.nbytes, data)
            events.append(event)
            if measured is not None:
                events.append(self.on_gpu(event, *measured))
        moves = {}
        for timed, marks, start, stop, thread in self.replays:
            name = timed.executable.name
            events.append(Event("replay", name, start, stop, thread))
            if id(timed.executable) not in moves:
                moves[id(timed.executable)] = _moves_by_line(timed)
            known = moves[id(timed.executable)]
            ends, latest = [*marks[1:], (0, stop)], None
            for (line, begun), (_, ended) in zip(marks, ends, strict=True):
                instruction = timed.instruction_of(line) if line in known else None
                if instruction is None:
                    latest = None
                elif instruction is latest:  # one more line of it
                    events[-1].stop = ended
                else:
                    latest, (name, nbytes, data) = instruction, known[line]
                    given = "instruction", name, begun, ended, thread, nbytes, data
                    events.append(Event(*given))
        events.sort(key=lambda e: (e.start, -e.stop))
        return events

    def on_gpu(self, event, gpu, measured):
        """Return the event of an op's work on a GPU; ``event`` is its call."""
        thread = -1 - gpu.number  # a row of its own
        self.threads.setdefault(thread, f"GPU {gpu.number}")
        data = dict(event.data)
        if measured.allocated is not None:
            data |= {"allocated": measured.allocated, "peak": measured.peak}
        times = gpu.times(measured)
        return Event("gpu", event.name, *times, thread, event.nbytes, data)


class _Held(weakref.ref):
    """A weak reference to an array, with its size."""

    __slots__ = ("key", "size")


class _Spec:
    """Shape and dtype of an array that may be freed, for `costs`."""

    __slots__ = ("shape", "dtype", "nbytes")

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype
        self.nbytes = math.prod(shape) * dtype.itemsize


def _specs(arrays):
    return [(a.shape, a.dtype) for a in arrays if hasattr(a, "dtype")]


def _text(specs):
    return ", ".join([spec_text(spec) for spec in specs])


def _moves_by_line(timed):
    """Map source lines that move data to ``(op, bytes, data)``."""
    moves = {}
    texts = timed.executable.source.split("\n")
    for line, text in enumerate(texts, 1):
        instruction = timed.instruction_of(line)
        if instruction is None or instruction.is_free:
            continue
        if text.endswith("= None"):
            continue
        cost = instruction_cost(instruction)
        data = {
            "function": instruction.name,
            "inputs": _text(instruction.reads),
            "output": _text(instruction.outputs),
            "line": short_line(instruction.node.line),
        }
        data |= {"flops": cost.flops} if cost.flops else {}
        moves[line] = instruction_name(instruction), cost.nbytes, data
    return moves


def _print(text):
    tqdm = sys.modules.get("tqdm")
    if tqdm is not None:  # a progress bar that is on the screen stays whole
        tqdm.tqdm.write(text)
    else:
        print(text)
