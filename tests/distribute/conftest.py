"""Fixtures for tests of several processes: each runs a script of its own under mpiexec."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from pathlib import Path
from typing import NamedTuple

import pytest

collect_ignore = ["scripts"]
MARK = "TAPEWRIGHT_TEST_JOB"  # in the environment of all processes of a job
LIMIT = 300  # seconds that a job may take


class Ended(NamedTuple):
    """The exit code of mpiexec, and the output of all processes."""

    rc: int
    stdout: str
    stderr: str


class Job:
    """A script on ``count`` processes, started by mpiexec.

    ``script``: a path, or the source itself; ``options``: those of mpiexec.
    """

    def __init__(self, folder, count, script, *args, env=None, options=()):
        self._mark, self._count = uuid.uuid4().hex, count
        if not isinstance(script, Path):
            source = textwrap.dedent(script)
            script = folder / f"script_{self._mark}.py"
            script.write_text(source, encoding="utf-8")
        self._process = subprocess.Popen(
            [mpiexec(), *options, "-n", str(count), sys.executable, os.fspath(script)]
            + [str(arg) for arg in args],
            env={
                **os.environ,
                "PYTHONUNBUFFERED": "",  # lines of several ranks do not mix
                "OPENBLAS_NUM_THREADS": "1",
                "HYDRA_LAUNCHER": "fork",  # all on this host, also inside a Slurm job
                **(env or {}),
                MARK: self._mark,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid  # of mpiexec
        # Tests that read the lines of a job would wait for one that hangs, too.
        self._limit = threading.Timer(LIMIT, self.kill)
        self._limit.start()

    def send(self, number):
        """Send a signal to mpiexec."""
        self._process.send_signal(number)

    def end(self, timeout=60) -> Ended:
        """Wait for the end, and fail the test if there is none in ``timeout`` seconds."""
        try:
            stdout, stderr = self._process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            stdout, stderr = self._process.communicate()
            pytest.fail(f"no end after {timeout} s\n{stdout}\n{stderr}", pytrace=False)
        return Ended(self._process.returncode, stdout, stderr)

    def started(self):
        """Return the process of each rank, as the script prints them: rank and number."""
        lines = [self._process.stdout.readline().split() for _ in range(self._count)]
        return {int(rank): int(pid) for rank, pid in lines}

    def lines(self):
        """Return an iterator over the lines of standard output, as they come."""
        return iter(self._process.stdout.readline, "")

    def processes(self, script=""):
        """Return the ids of all processes of the job, those in other groups included.

        ``script``: only of those that run a Python script of this name.
        """
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environment = (folder / "environ").read_text(errors="replace")
                command = (folder / "cmdline").read_text(errors="replace").split("\0")
            except OSError:  # it has ended, or belongs to another user
                continue
            is_wanted = not script or command[1:] and command[1].endswith(script)
            if f"{MARK}={self._mark}" in environment and is_wanted:
                found.append(int(folder.name))
        return found

    def is_gone(self, seconds):
        """Return whether no process of the job is left, at the latest after ``seconds``."""
        last = time.monotonic() + seconds
        while self.processes():
            if time.monotonic() > last:
                return False
            time.sleep(0.02)
        return True

    def close(self):
        """Kill what is left of the job."""
        self._limit.cancel()
        if self._process.returncode is None:
            self.kill()
            self._process.communicate()

    def kill(self):
        """Kill all processes of the job."""
        self._process.kill()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def mpiexec():
    """Return the path of the launcher, that of this environment first."""
    own = shutil.which("mpiexec", path=os.fspath(Path(sys.executable).parent))
    return own or shutil.which("mpiexec")


@pytest.fixture
def start_ranks(tmp_path):
    """``start_ranks(count, script, *args, env=None, options=()) -> Job``, which goes on."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    if mpiexec() is None:
        pytest.skip("there is no mpiexec")
    jobs = []

    def start(*args, **options):
        jobs.append(Job(tmp_path, *args, **options))
        return jobs[-1]

    yield start
    for job in jobs:
        job.close()


@pytest.fixture
def run_ranks(start_ranks):
    """``run_ranks(count, script, *args, env=None, timeout=60) -> Ended``.

    Run a script, a path or its source, on ``count`` processes. It fails the test, and all
    processes end, if they have not after ``timeout`` seconds.
    """

    def run(*args, timeout=60, **options):
        return start_ranks(*args, **options).end(timeout)

    return run
