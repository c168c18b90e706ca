"""The job of this process: its `Communicator`, created at the first call.

Without a launcher (``mpiexec``, ``srun``) the job has a single process, and MPI is not
imported.
"""

import faulthandler
import importlib.util
import os
import sys
import threading

from ..hardware import devices
from .communicator import Communicator, timeout_seconds

# Variables by which launchers tell a process how many there are.
SIZES = (
    *("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PALS_SIZE"),
    *("SLURM_STEP_NUM_TASKS", "PRTE_LAUNCHED_SIZE"),
)
STDERR = 2  # its file descriptor
RANK = "TAPEWRIGHT_RANK_PROCESS"  # the process of a rank, for those that it starts

_JOB = []  # the communicator, once there is one
_MAKING = threading.Lock()


def communicator() -> Communicator:
    """Return the communicator of this process.

    Raises:
        ImportError: If a launcher has started several processes and mpi4py is missing.
        RuntimeError: If mpi4py was built for another MPI than the launcher's.
    """
    if not _JOB:
        with _MAKING:
            if not _JOB:
                _JOB.append(_join())
    return _JOB[0]


def count_step():
    """Count a training step, for messages, in a job with several processes."""
    if _JOB:
        _JOB[0].begin_step()


def _join():
    size = launched_size()
    is_asked_for = os.environ.get("TAPEWRIGHT_MPI", "0") not in ("", "0")
    if size <= 1 and not is_asked_for and "mpi4py.MPI" not in sys.modules:
        return Communicator()
    if importlib.util.find_spec("mpi4py") is None:
        started = f"{size} processes were started by an MPI launcher"
        raise ImportError(
            f"{started if size > 1 else 'TAPEWRIGHT_MPI is set'}, but mpi4py, which the "
            "processes need to communicate, is not installed: "
            "pip install 'tapewright[mpi]'"
        )
    joined = _wait_for_all_ranks_to_join(size)
    if joined.size < size:
        raise RuntimeError(
            f"{size} processes were started by an MPI launcher, but mpi4py sees "
            f"{joined.size}: it was built for another MPI ({joined.library}). Use the "
            "launcher of that MPI, or install mpi4py for the MPI of the launcher"
        )
    if joined.size == 1:
        return Communicator()
    # Processes that this one starts inherit the variables of the launcher.
    os.environ[RANK] = str(os.getpid())
    return joined


def _wait_for_all_ranks_to_join(size):
    """Start MPI; after `timeout_seconds` print this function's name, end the process.

    MPI itself has no timeout. It holds the GIL meanwhile, so no Python code can watch.
    The name is printed where MPI prints; `sys.stderr` may not be a file.
    """
    faulthandler.dump_traceback_later(timeout_seconds(), exit=True, file=STDERR)
    try:
        from .failures import watch_absent_ranks

        with watch_absent_ranks(size):
            from .mpi import MPICommunicator

            return MPICommunicator()
    finally:
        faulthandler.cancel_dump_traceback_later()


def launched_size():
    """Return the number of processes that the launcher has started; 1 without one.

    A process that a rank has started is not a rank: 1. ``TAPEWRIGHT_MPI=1`` in the
    environment announces a launcher that is not recognized here.
    """
    if os.environ.get(RANK) == str(os.getppid()):
        return 1
    sizes = [os.environ.get(name, "") for name in SIZES]
    return max([int(size) for size in sizes if size.isdigit()], default=1)


devices.choose_gpu(lambda: communicator().local_rank)
