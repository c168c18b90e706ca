"""A training in a process of its own, to be killed.

    python tests/keras/callbacks/trainee.py KIND FOLDER [SAVE_FREQ]

Trains with a backup in ``FOLDER/backup``, tells of each batch on standard output, and
writes what came out to ``FOLDER/outcome.npz``. Run again, it goes on.
"""

import os
import sys

import numpy as np
import trainings

import tapewright as tw

NAMES = ("latest", "previous")  # of backups


class Tell(tw.keras.callbacks.Callback):
    """Says that a batch is done."""

    comes_last = True

    def on_train_batch_end(self, batch, logs=None):
        print(batch, flush=True)


def main(kind, folder, save_freq="2"):
    freq = save_freq if save_freq == "epoch" else int(save_freq)
    folder_of_backup = os.path.join(folder, "backup")
    backup = tw.keras.callbacks.BackupAndRestore(
        folder_of_backup, save_freq=freq, double_checkpoint=True
    )
    make = getattr(trainings, kind)
    goes_on = any(os.path.exists(f"{folder_of_backup}/{name}.h5") for name in NAMES)
    seed = int.from_bytes(os.urandom(3)) if goes_on else 1
    _, found = trainings.train(make, epochs=6, more=[backup, Tell()], seed=seed)
    np.savez(os.path.join(folder, "outcome.npz"), **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
