"""A rank that fails in its third step, in a way of its own, while the others go on.

``python failure.py WAY``
"""

import os
import signal
import sys
import time

import numpy as np

from tapewright.core.communication.job import communicator

job = communicator()
way = sys.argv[1]


def reduce(size=1000, op="sum"):
    return job.all_reduce([np.ones(size, np.float32)], op)


def fail():
    """Fail; return True to leave the loop."""
    match way.split(" while ")[0]:
        case "raise":
            raise ValueError("bad example")
        case "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        case "exit":
            sys.exit(3)
        case "leave":
            return True
        case "call another collective":
            job.barrier()
        case "call another shape":
            reduce(999)
        case "call another operation":
            reduce(op="max")
        case "call in another order":
            job.all_gather(np.ones(3))
        case "hang":
            time.sleep(1000)
        case "catch the error and go on":
            try:
                reduce(7)
            except Exception:
                pass
        case "catch the error and leave":
            try:
                reduce(7)
            except Exception:
                return True
        case "fork and crash":
            if os.fork() == 0:
                time.sleep(2)  # holds what it inherits
                os._exit(0)
            os.abort()
        case "exit at once":
            os._exit(0)
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "terminate":
            os.kill(os.getpid(), signal.SIGTERM)
        case _:
            raise LookupError(way)


print(f"rank {job.rank} before")
for step in range(1, 6):
    if step == 3 and job.rank == 1 and fail():
        break
    if "threads" in way:
        job.start_all_reduce([np.ones(1 << 20)]).wait()
    else:
        reduce()
    job.begin_step()
