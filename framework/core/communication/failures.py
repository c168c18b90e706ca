"""The end of the whole job when a rank fails, with a message that names the cause.

An uncaught error is printed and ends the job by `MPI_Abort`. The watchdog of the host
notices a process that is killed or crashes. It is a small process, started by the first
rank on the host, that prints the message and ends the other ranks, since not all
launchers do so. Before that, each rank that waits for the others to join the job has a
process that does the same.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..errors import CollectiveError
from .watchdog import FIELDS, RUNNING


@contextmanager
def watch_absent_ranks(size):
    """End this process, one of ``size`` ranks, if another ends before it joins."""
    if size <= 1 or sys.platform != "linux":
        yield
        return
    watch = subprocess.Popen(
        [*_python("absent_ranks.py"), str(os.getpid()), str(size)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        watch.kill()
        watch.wait()


class RankStatus:
    """The row of this process in the table of the watchdog, whose fields it defines.

    ``host`` is the MPI communicator of the ranks of this host.
    """

    def __init__(self, host, rank, size):
        ranks = host.allgather((rank, os.getpid()))
        table = np.array([(*pair, RUNNING, 1, 0) for pair in ranks], np.int64)
        row, self._socket = host.Get_rank(), None
        self.peers = self._row = table[row : row + 1]
        if hasattr(socket, "AF_UNIX") and os.name == "posix" and size > 1:
            folder = None
            if row == 0:
                # Not TMPDIR: the path of a socket has 107 characters at most.
                folder = Path(tempfile.mkdtemp(prefix="tapewright-", dir="/tmp"))
                table.tofile(folder / "state")
                self._socket = _start_watchdog(folder, len(table), size)
            folder = host.bcast(folder)
            self.peers = np.memmap(folder / "state", np.int64, "r+", shape=table.shape)
            if row != 0:
                self._socket = _connected(folder, row)
            self._socket.recv(1)  # once the watchdog watches this process
            host.Barrier()
            if row == 0:
                shutil.rmtree(folder)
            # A process that this one forks does not keep the connection open.
            os.register_at_fork(after_in_child=self._socket.close)
            self._row = self.peers[row : row + 1]

    def set(self, status):
        """Set the status of this process."""
        self._row[:, FIELDS.index("status")] = status

    def record(self, step, number):
        """Record the step and the number of the collective that starts."""
        self._row[:, FIELDS.index("step") :] = step, number

    def close(self):
        """Close the connection to the watchdog."""
        if self._socket is not None:
            self._socket.close()


def _start_watchdog(folder, count, size):
    """Start the watchdog of this host; return the connection of its first rank."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.fspath(folder / "socket"))
    server.listen(count)
    connection = _connected(folder, 0)
    with server, open(folder / "state", "rb") as state:
        subprocess.run(  # it goes on as a child of nobody
            _python("watchdog.py")
            + [str(n) for n in (server.fileno(), state.fileno(), count, size)],
            pass_fds=(server.fileno(), state.fileno()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # out of reach of launchers that end a whole group
            check=True,
        )
    return connection


def _python(script):
    """Return the command that runs a script of this folder, which imports nothing."""
    script = Path(__file__).with_name(script)
    return [sys.executable, "-I", "-S", os.fspath(script)]


def _connected(folder, row):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.fspath(folder / "socket"))
    is_mpich = "PMI_FD" in os.environ and "MPI_LOCALNRANKS" in os.environ
    launcher = [int(os.environ["PMI_FD"])] if is_mpich else []
    socket.send_fds(connection, [row.to_bytes(4, "little")], launcher)
    return connection


def end_job_on_errors(rank, end):
    """Print uncaught errors, then end the job by ``end(error, text)``.

    ``text`` is a line that names the error.
    """
    inner, pid = sys.excepthook, os.getpid()

    def report(kind, error, traceback):
        try:
            if isinstance(error, CollectiveError) and rank > 0:
                time.sleep(1)  # all ranks have the same error: one report is enough
            inner(kind, error, traceback)
        finally:
            in_main = threading.current_thread() is threading.main_thread()
            if os.getpid() == pid and in_main:  # not in a process that was forked
                first = (str(error).splitlines() or [""])[0]
                end(error, f"{kind.__name__}: {first}")

    sys.excepthook = report
