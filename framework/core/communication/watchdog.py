"""The watchdog of a host: it reports a rank that was killed and ends the others.

It runs as a script, ``python watchdog.py SOCKET STATE COUNT SIZE``, with the
descriptors of a listening socket, to which each of the ``COUNT`` ranks of this host
connects, and of a file with a row of `FIELDS` for each rank. The end of a connection
marks the end of its process; the watchdog notices it before a launcher ends the others.

With the connection comes a copy of the rank's socket to MPICH's launcher. If the rank
exits with code 0 and the socket closes, that launcher kills the other ranks of the host,
leaves those of other hosts waiting, and exits with code 0. The copy keeps it open.
"""

import mmap
import os
import selectors
import signal
import socket
import struct
import sys
import time

# Of each rank: its status, the step it is in, and the number of its latest collective.
FIELDS = ("rank", "pid", "status", "step", "collective")
RUNNING, LEFT, FAILED = 1, 2, 3
PATIENCE = 2.0  # seconds for ranks to end by themselves
ABORT = b"cmd=abort exitcode=1\n"  # what MPI_Abort sends to MPICH's launcher


def main(server, state, count, size):
    """Wait for the end of all ranks; if one fails, end the others."""
    width = 8 * len(FIELDS)
    table = mmap.mmap(state, count * width, access=mmap.ACCESS_READ)

    def rank(i):
        return dict(
            zip(FIELDS, struct.unpack_from(f"={len(FIELDS)}q", table, i * width))
        )

    absent, connected, failed = set(range(count)), set(), None
    launcher = []  # the copies
    selector = selectors.DefaultSelector()
    listening = socket.socket(fileno=server)
    selector.register(listening, selectors.EVENT_READ)
    while failed is None and (absent or connected):
        # One at a time: epoll has them in the order of their ends.
        for key, _ in selector.select(0.5 if absent else None)[:1]:
            if key.fileobj is listening:
                connection, _ = listening.accept()
                number, sockets, *_ = socket.recv_fds(connection, 4, 1)
                i = int.from_bytes(number, "little")
                launcher += sockets
                selector.register(connection, selectors.EVENT_READ, i)
                connection.send(b"1")  # it is watched from now on
                connected.add(i)
                absent.discard(i)
            else:
                selector.unregister(key.fileobj)
                connected.discard(key.data)
                if rank(key.data)["status"] != LEFT:
                    failed = key.data
        if failed is None:
            failed = next((i for i in absent if not _send(rank(i)["pid"], 0)), None)
    if failed is None:
        return
    if all(rank(i)["status"] != FAILED for i in range(count)):  # it reports itself
        _report(**rank(failed), size=size)
    time.sleep(0.5)  # MPICH's launcher drops what it has not read at the abort
    for copy in launcher:
        _write(copy, ABORT)
    selector.unregister(listening)
    last = time.monotonic() + PATIENCE
    while connected and (left := last - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            selector.unregister(key.fileobj)
            connected.discard(key.data)
    for i in connected | absent:
        _send(rank(i)["pid"], signal.SIGKILL)


def _report(rank, pid, status, step, collective, size):
    message = (
        f"\ntapewright: rank {rank} of {size} (process {pid} on {socket.gethostname()}) "
        f"was killed, crashed or exited in step {step}, after collective {collective}; "
        "the whole job ends\n"
    )
    _write(2, message.encode())


def _write(file, data):
    try:
        os.write(file, data)
    except OSError:  # nobody reads it any more
        pass


def _send(pid, number):
    """Send a signal; return whether the process exists."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with the ranks
    if os.fork() == 0:
        main(*map(int, sys.argv[1:]))
