"""The watch over the other ranks of a host while a rank waits for them to join the job.

It runs as a script, ``python absent_ranks.py WAITING SIZE``, with the process that waits
and the number of all ranks: `MPI_Init` holds the GIL of that process. MPICH's launcher
does nothing if a rank ends before it joins, nor does Open MPI's if its exit code is 0.

The launcher's process on this host is an ancestor of the rank that waits. Its children
are the ranks, or programs that run them, and have the number of the rank in their
environment. Linux shows all of this in /proc. Where it does not, nothing happens: a false
alarm would end a healthy job.
"""

import os
import signal
import socket
import sys
import time

# The count of the ranks of a host, and a rank, for MPICH and for Open MPI.
VARIABLES = (
    ("MPI_LOCALNRANKS", "PMI_RANK"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK"),
)
# The processes that start them.
LAUNCHERS = ("hydra_pmi_proxy", "mpirun", "orted", "prted", "prterun")
LOOKS = 5  # in a row: at the first, the launcher may not have started all ranks
INTERVAL = 0.4  # seconds between looks


def main(waiting, size):
    """End the process ``waiting``, with a message, once another rank has ended."""
    names = [pair for pair in VARIABLES if pair[0] in os.environ]
    launcher = _launcher(waiting)
    if not names or launcher is None:
        return
    count, variable = int(os.environ[names[0][0]]), names[0][1]
    ranks, looks = set(range(size)) if count == size else set(), 0
    while looks < LOOKS:
        present = _present(launcher, variable)
        is_complete = present is None or len(present) >= count
        looks = 0 if is_complete else looks + 1
        ranks |= present or set()
        time.sleep(INTERVAL)
        if os.getppid() != waiting:
            return
    if _is_first(launcher):
        _report(sorted(ranks - present), size)
        time.sleep(0.5)  # MPICH's launcher drops what it has not read at the end
    else:
        time.sleep(1)
    if os.getppid() == waiting:
        os.kill(waiting, signal.SIGKILL)  # upon which launchers end the other ranks


def _launcher(process):
    """Return the ancestor that has started the ranks of this host, or None."""
    while process > 0:  # the parent of the first process
        name, _, parent = _stat(process)
        if name in LAUNCHERS:
            return process
        process = parent
    return None


def _present(launcher, variable):
    """Return the ranks of this host that run, or None if a child may be any of them."""
    present = set()
    for child in _children(launcher):
        try:
            if _stat(child)[1] not in "ZX":  # of a process that has ended
                present.add(int(_environment(child)[variable]))
        except (KeyError, FileNotFoundError, ProcessLookupError):
            # It is starting or ending, or has written its title over its environment.
            return None
    return present


def _children(process):
    """Return the children of a process."""
    folder = f"/proc/{process}/task"
    threads = [_read(f"{folder}/{thread}/children") for thread in os.listdir(folder)]
    return [int(child) for children in threads for child in children.split()]


def _stat(process):
    """Return the name, the state and the parent of a process."""
    start, _, end = _read(f"/proc/{process}/stat").rpartition(") ")
    state, parent = end.split()[:2]
    return start.partition("(")[2], state, int(parent)


def _environment(process):
    """Return the environment with which a process was started."""
    lines = _read(f"/proc/{process}/environ").split("\0")
    return dict([line.split("=", 1) for line in lines if "=" in line])


def _read(path):
    with open(path, errors="replace") as file:
        return file.read()


def _is_first(launcher):
    """Claim the report of the end of the job; return False if another rank has it."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0tapewright-{launcher}")
    except OSError:
        return False
    claim.detach()  # it stays bound until this process ends
    return True


def _report(absent, size):
    ranks = f"rank{'s' if len(absent) > 1 else ''} {', '.join(map(str, absent))}"
    message = (
        f"\ntapewright: {ranks if absent else 'a rank'} of {size} on "
        f"{socket.gethostname()} ended before joining the job, which begins with the "
        "first use of tw.distribute or of a strategy; the whole job ends\n"
    )
    try:
        os.write(2, message.encode())
    except OSError:  # nobody reads it any more
        pass


if __name__ == "__main__":
    try:
        main(*map(int, sys.argv[1:]))
    except OSError:  # /proc does not show all of it, or the launcher has ended
        pass
