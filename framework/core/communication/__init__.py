"""The processes of a job: collectives among them, and the end of a job that fails.

- `job`: the communicator of this process, of one kind or the other.
- `communicator`: `Communicator`, the job of one process.
- `mpi`: the job of several processes. The only file that imports mpi4py.
- `reduction`: the messages and sums of which an all-reduce consists.
- `gpu`: the same for arrays on GPUs, and `nccl`, one of the ways. The only file that
  imports nccl4py.
- `failures`: the end of the whole job when a rank fails, and `watchdog`, which reports it.
"""
