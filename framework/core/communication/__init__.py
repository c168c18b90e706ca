"""Processes of a job: collectives, and the end of a job that fails.

- `job`: the communicator of this process, of either kind.
- `communicator`: `Communicator`, a job with a single process.
- `mpi`: a job with several processes. The only file that imports mpi4py.
- `reduction`: the messages and sums of an all-reduce.
- `gpu`: the same for arrays on GPUs; `nccl` is one transport, and the only file that
  imports nccl4py.
- `failures`: the end of the whole job when a rank fails; `watchdog` reports it.
"""
