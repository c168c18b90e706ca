"""Steps of a kind of work, for ever: for tests that end a rank in the middle of them.

``python steps.py reduce|compute|sleep``. Each rank prints its number and process.
"""

import os
import sys
import time

import numpy as np

from tapewright.core.communication.job import communicator

job = communicator()
size = {"reduce": 1 << 23, "compute": 1000, "sleep": 10}[sys.argv[1]]
gradient, matrix = np.ones(size, np.float32), np.ones((800, 800), np.float32)
os.write(1, f"{job.rank} {os.getpid()}\n".encode())
while True:
    job.begin_step()
    if sys.argv[1] == "compute":
        matrix @ matrix
    if sys.argv[1] == "sleep":
        time.sleep(0.05 if job.step < 3 else 1000)
    job.all_reduce([gradient], "mean")
