"""Run implementations in turns, each in a process that is stopped between turns.

A script starts a `Worker` for each implementation, requests the same step from all of them,
and calls `take_turns`. The processes of the workers run `serve`.
"""

import importlib
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

__all__ = [
    "PACKAGES",
    "UNSET",
    "Worker",
    "answers",
    "arguments",
    "ask_all",
    "inherited",
    "save",
    "serve",
    "take_turns",
    "timed",
    "working",
]

# name -> package; tapewright's targets have their own names
PACKAGES = {
    "native": "tapewright",
    "numpy": "tapewright",
    "eager": "tapewright",
    "library": "tapewright",
    "call": "tapewright",
    "predict_on_batch": "tapewright",
    "predict": "tapewright",
    "onnxruntime": "onnxruntime",
    "jax": "jax",
    "torch": "torch",
    "torch_compile": "torch",
    "tensorflow": "tensorflow",
    "tensorflow_xla": "tensorflow",
    "tensorflow_eager": "tensorflow",
}
# Settings that change BLAS kernels, or recompile Python modules at each import.
UNSET = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "OPENBLAS_NUM_THREADS",
    "PYTHONDONTWRITEBYTECODE",
)


def inherited():
    """Return the environment of measured processes: ours without `UNSET`."""
    kept = {k: v for k, v in os.environ.items() if k not in UNSET}
    return {"TF_CPP_MIN_LOG_LEVEL": "2", **kept}


class Worker:
    """The process of one implementation; `times` collects the seconds of its steps.

    Args:
        name: Name in `PACKAGES`.
        realtime: If True, run with real-time priority.
        **environment: Additional environment variables.
    """

    def __init__(self, name, realtime=False, **environment):
        self.name, self.times = name, []
        target = name if name in ("native", "numpy") else "auto"
        self.process = subprocess.Popen(
            [sys.executable, sys.argv[0], "--worker", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**inherited(), "TAPEWRIGHT_TARGET": target, **environment},
        )
        if realtime:  # inherited by the threads that it starts
            os.sched_setscheduler(self.process.pid, os.SCHED_RR, os.sched_param(1))
        self.imported = False

    def ask(self, **request):
        """Return the answer of `serve` to a request.

        Raises:
            RuntimeError: If the implementation raises an error, or its process ends.
        """
        self.send(**request)
        return self.answer()

    def send(self, **request):
        """Send a request to `serve`, which starts to work on it."""
        self.wait_for_import()
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def answer(self, seconds=None):
        """Wait for the answer to the last request, and stop the process.

        Args:
            seconds: Longest time to wait, after which the process is ended.

        Raises:
            RuntimeError: If the implementation raises an error or does not answer in time,
                or if its process ends.
        """
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            self.end()
            raise RuntimeError(f"{self.name}: no answer in time")
        answer = self._read()
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def wait_for_import(self):
        """Wait until the process has imported its package; then it is stopped."""
        if not self.imported:
            try:
                self._read()
            except RuntimeError as error:
                raise SystemExit(str(error)) from None
            self.imported = True

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            self.end()
            raise RuntimeError(f"{self.name} ended: see its message above")
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line)

    def end(self):
        self.process.kill()
        self.process.wait()


@contextmanager
def working(names, realtime=False, **environment):
    """Start workers with these names; stop them at the end of the block."""
    workers = []
    try:
        for name in names:
            workers.append(Worker(name, realtime, **environment))
        for worker in workers:
            worker.wait_for_import()
        yield workers
    finally:
        for worker in workers:
            worker.end()


def take_turns(workers, rounds, seconds, between=lambda: None):
    """Run each worker for ``seconds`` per round, in a different order in each round.

    ``between`` is called before each turn.
    """
    for i in range(rounds if workers else 0):
        at = i % len(workers)
        for worker in workers[at:] + workers[:at]:
            between()
            worker.times += worker.ask(seconds=seconds)["times"]


def ask_all(workers, seconds=None, **request):
    """Send a request to workers that work on it at the same time.

    Args:
        workers: Workers.
        seconds: Longest time to wait for all of them.
        **request: Request; see `serve`.

    Returns:
        Answer of each worker, in order; ``{"error": message}`` if it failed.
    """
    for worker in workers:
        worker.send(**request)
    return answers(workers, seconds)


def answers(workers, seconds=None):
    """Return the answers to requests that were sent, as `ask_all` does."""
    deadline = None if seconds is None else time.monotonic() + seconds
    found = []
    for worker in workers:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            found.append(worker.answer(left))
        except RuntimeError as error:
            found.append({"error": str(error)})
    return found


def serve(make, name, checked=4):
    """Answer requests in a worker's process until it is killed.

    Requests: ``make`` has the arguments of ``make(name, ...)``, which returns ``(step,
    numbers)``; the answer contains the seconds of the first step, and ``numbers`` of the
    outputs of the first ``checked`` steps. ``seconds`` measures steps. ``peak`` returns
    the peak memory in MB.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries may print
    importlib.import_module(PACKAGES[name])
    step = None
    answers.write("{}\n")
    for line in sys.stdin:
        request = json.loads(line)
        if "make" in request:
            step = None  # frees the memory of the previous step
            try:
                step, answer = _made(make, name, request["make"], checked)
            except Exception as error:  # noqa: BLE001  (a peer may lack a layer)
                answer = {"error": f"{type(error).__name__}: {error}"}
        elif "seconds" in request:
            answer = {"times": timed(step, request["seconds"])}
        else:
            answer = {"peak": _memory("VmHWM")}
        answers.write(json.dumps(answer) + "\n")


def _made(make, name, arguments, checked):
    step, numbers = make(name, *arguments)
    wait = getattr(step, "wait", lambda outputs: None)
    begin = time.perf_counter()
    outputs = step()
    wait(outputs)
    first = time.perf_counter() - begin
    found = [numbers(outputs)]
    found += [numbers(step()) for _ in range(checked - 1)]
    return step, {"first": first, "numbers": found}


def _memory(field):
    """Return a memory statistic of the process in MB (0 except on Linux)."""
    try:
        with open("/proc/self/status") as status:
            lines = dict(line.split(":", 1) for line in status)
    except FileNotFoundError:
        return 0.0
    return int(lines[field].split()[0]) / 1024


def timed(step, seconds):
    """Return the seconds per step of several runs, which take ``seconds`` in total.

    If steps are asynchronous, a run ends with ``step.wait(outputs)``. If steps change
    their state, a run starts with ``step.reset()`` and an extra step, both not measured.
    """
    wait = getattr(step, "wait", lambda outputs: None)
    reset = getattr(step, "reset", None)

    def run(count):
        if reset:
            reset()
            wait(step())
        begin = time.perf_counter()
        for _ in range(count):
            outputs = step()
        wait(outputs)
        return (time.perf_counter() - begin) / count

    if not reset:
        wait(step())
    once = run(1)
    if once > seconds:
        return [once]
    count, times = max(1, int(seconds / 8 / once)), []
    end = time.perf_counter() + seconds - once
    while not times or time.perf_counter() < end:
        times.append(run(count))
    return times


def arguments(parser, names, rounds, seconds, default=None):
    """Parse the command line, with the options that all scripts share.

    In the result, ``peers`` is the list of the installed implementations. Without
    ``--peers``, they are those of ``default``, or of ``names``.
    """
    add = parser.add_argument
    asked = ",".join(default or names)
    add("--peers", default=asked, help="some of " + ", ".join(names))
    add("--rounds", type=int, default=rounds)
    add("--seconds", type=float, default=seconds, help="length of a turn")
    add("--realtime", action="store_true", help="run with real-time priority (root)")
    add("--json", metavar="FILE", help="file for the figures")
    options = parser.parse_args()
    asked = some_of(parser, "--peers", options.peers, names)
    options.peers = [name for name in asked if _installed(name)]
    missing = [name for name in asked if name not in options.peers]
    if missing:
        print(f"not installed, skipped: {', '.join(missing)}", file=sys.stderr)
    if not options.peers:
        parser.error(f"--peers: none of {', '.join(asked)} is installed")
    return options


def _installed(name):
    needed = [PACKAGES[name], *(["llvmlite"] if name == "native" else [])]
    return all(importlib.util.find_spec(package) for package in needed)


def some_of(parser, option, text, names):
    """Return the names in an option; unknown names are a parser error."""
    asked = text.split(",")
    for name in asked:
        if name not in names:
            parser.error(f"{option}: {name!r} is not one of {', '.join(names)}")
    return asked


def save(results, path):
    """Write figures as JSON, if a path is given."""
    if path:
        with open(path, "w") as file:
            json.dump(results, file, indent=1)
