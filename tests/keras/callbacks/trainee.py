"""Trainings in processes of their own, each to be killed but the last.

    python tests/keras/callbacks/trainee.py KIND FOLDER SIGNAL [BATCHES:DELAY ...]

Each process trains with a backup in ``FOLDER/backup``, and goes on where the one before was
ended: by the signal, so many seconds after so many batches. They are forks of one that has
imported what they need. The last writes what came out to ``FOLDER/outcome.npz``.
"""

import gc
import glob
import os
import sys
import time
import warnings

import numpy as np
import trainings

import tapewright as tw

NAMES = ("latest", "previous")  # of backups


class Tell(tw.keras.callbacks.Callback):
    """Says that a batch is done."""

    comes_last = True

    def __init__(self, pipe):
        super().__init__()
        self.pipe = pipe

    def on_train_batch_end(self, batch, logs=None):
        os.write(self.pipe, b".")


def train(kind, folder, pipe):
    folder_of_backup = os.path.join(folder, "backup")
    backup = tw.keras.callbacks.BackupAndRestore(
        folder_of_backup, save_freq=2, double_checkpoint=True
    )
    make = getattr(trainings, kind)
    goes_on = any(os.path.exists(f"{folder_of_backup}/{name}.h5") for name in NAMES)
    seed = int.from_bytes(os.urandom(3)) if goes_on else 1
    _, found = trainings.train(make, epochs=6, more=[backup, Tell(pipe)], seed=seed)
    np.savez(os.path.join(folder, "outcome.npz"), **found)


def train_in_fork(kind, folder, number, batches, delay):
    """Return what `os.waitpid` tells of a process that gets the signal."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads; ours are idle
        process = os.fork()
    if not process:
        train(kind, folder, writing)
        sys.exit()
    os.close(writing)
    for _ in range(batches):
        os.read(reading, 1)
    time.sleep(delay)
    os.kill(process, number)
    _, status = os.waitpid(process, 0)
    os.close(reading)
    return status


def main(kind, folder, number, *ends):
    gc.freeze()  # or each collection would look at all that was imported
    for end in ends:
        batches, _, delay = end.partition(":")
        status = train_in_fork(kind, folder, int(number), int(batches), float(delay))
        names = glob.glob("*", root_dir=os.path.join(folder, "backup"))
        print(os.waitstatus_to_exitcode(status), *names, flush=True)
    train(kind, folder, os.open(os.devnull, os.O_WRONLY))


if __name__ == "__main__":
    main(*sys.argv[1:])
