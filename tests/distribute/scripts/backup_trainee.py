"""A training of several workers, to be killed.

    mpiexec -n 2 python backup_trainee.py KIND FOLDER [SAVE_FREQ [sharded]]

Trains a kind below, or one of `trainings`, with a backup in ``FOLDER/backup``. Each rank
prints its number and process id, rank 0 each batch; each writes what came out to
``FOLDER/outcome_RANK.npz``. Run again, it goes on.
"""

import gc
import os
import sys
from pathlib import Path

import numpy as np

import tapewright as tw

sys.path.insert(0, str(Path(__file__).parents[2] / "keras" / "callbacks"))
import trainings  # noqa: E402

callbacks, layers = tw.keras.callbacks, tw.keras.layers


def dense():
    """A model whose results do not depend on the number of workers but for rounding."""
    model = tw.keras.Sequential(
        [
            layers.Dense(8, activation="relu", kernel_regularizer="l2"),
            layers.Dense(1),
        ]
    )
    optimizer = tw.keras.optimizers.Adam(0.01, clipnorm=1.0)
    model.compile(optimizer, "mse", metrics=["mae", "mse"])
    return model


def arrays():
    x, y = trainings.arrays(3)
    rate = callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.95)
    stop = callbacks.EarlyStopping("loss", patience=2, restore_best_weights=True)
    settings = {"x": x, "y": y, "batch_size": 8, "validation_split": 0.25}
    return dense(), settings | {"callbacks": [rate, stop]}


def data_set():
    """Batches of 5 and at last 4 examples; the last of validation has one."""
    data = tw.data.Dataset.from_tensor_slices(trainings.arrays(3))
    validation = data.take(7).batch(3)
    data = data.shuffle(20).batch(5).prefetch(2)
    return dense(), {"x": data, "validation_data": validation}


def py_dataset():
    """Noise of NumPy's global generator, the same on all workers."""
    return dense(), {"x": trainings.Batches()}


class Tell(callbacks.Callback):
    """Says that a batch is done."""

    comes_last = True

    def on_train_batch_end(self, batch, logs=None):
        if tw.distribute.rank() == 0:
            print("batch", batch, flush=True)


def main(kind, folder, save_freq="2", sharded=""):
    freq = save_freq if save_freq == "epoch" else int(save_freq)
    backup = callbacks.BackupAndRestore(
        os.path.join(folder, "backup"), save_freq=freq, double_checkpoint=True
    )

    def make():
        with strategy.scope():
            return (globals().get(kind) or getattr(trainings, kind))()

    gc.freeze()  # or each collection would look at all that was imported
    rank = tw.distribute.rank()
    print(rank, os.getpid(), flush=True)
    strategy = tw.keras.distribution.DataParallel(shard_optimizer=sharded == "sharded")
    begins = not os.path.exists(os.path.join(folder, "backup"))
    seed = 1 if begins else int.from_bytes(os.urandom(3))
    _, found = trainings.train(make, epochs=6, more=[backup, Tell()], seed=seed)
    np.savez(os.path.join(folder, f"outcome_{rank}.npz"), **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
