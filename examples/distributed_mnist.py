"""Distributed training with fit
=============================

Train a model with `fit` on several processes, with the same result as on one.

::

    python examples/distributed_mnist.py                    one process (about 3 s)
    mpiexec -n 4 python examples/distributed_mnist.py       four processes, same result
    mpiexec -n 2 python examples/distributed_mnist.py --data mnist    real images

A model created in the scope of a distribution is trained by all processes together: each
processes its part of every batch of 128 images, and all apply the sum of the gradients.
Losses, metrics, the learning rate and early stopping are computed for the whole batch.
All processes therefore have bit-identical weights, and the result differs from one
process only by rounding: 99.9 % of the test digits are correct. Rank 0 prints the
progress bar and writes the backup and the model file.

With ``--backup FOLDER``, a training that was interrupted, by Ctrl-C or because a
process was killed, resumes where it stopped when it is started again, even with another
number of processes. With ``--shard-optimizer``, each process keeps only its part of the
optimizer's state, and updates only that part of the weights. Several processes require
the extra ``mpi`` and an MPI; ``pip install mpich`` installs one.
"""

import argparse
import sys
from pathlib import Path

import tapewright as tw
from tapewright import layers

# %%
# The model
# ---------
#
# It is created in the scope of a distribution; see ``main``.


def network():
    """Map images ``[batch, 28, 28]`` in 0 ... 255 to probabilities of ten digits."""
    model = tw.Sequential(
        [
            tw.Input((28, 28)),
            layers.Rescaling(1 / 255),
            layers.Reshape((28, 28, 1)),
            layers.Conv2D(8, 5, strides=2, use_bias=False),
            layers.BatchNormalization(synchronized=True),
            layers.ReLU(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    optimizer = tw.optimizers.Adam(0.002, global_clipnorm=1.0)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


# %%
# Data and command line
# ---------------------


def load(data):
    """Return images ``[n, 28, 28]`` and labels ``[n]``, for training and test."""
    if data == "digits":
        return tw.datasets.digits.load_data()
    if data == "mnist":
        return tw.datasets.mnist.load_data()
    pairs, _ = tw.datasets.mnist.load_folder(data)
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default="digits", help="digits, mnist or a folder")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default="out", help="output folder")
    parser.add_argument("--backup", type=Path, help="folder from which to resume")
    parser.add_argument("--shard-optimizer", action="store_true")
    args = parser.parse_args()

    tw.keras.utils.set_random_seed(args.seed)
    distribution = tw.keras.distribution.DataParallel(
        shard_optimizer=args.shard_optimizer
    )
    try:
        (x_train, y_train), (x_test, y_test) = load(args.data)
    except (OSError, ValueError) as error:
        parser.error(f"--data {args.data}: {error}")
    with distribution.scope():
        model = network()
    callbacks = [tw.callbacks.ReduceLROnPlateau(factor=0.3, patience=2)]
    if args.backup:
        callbacks.append(tw.callbacks.BackupAndRestore(args.backup))
    history = model.fit(
        x_train,
        y_train,
        batch_size=128,  # global batch size, of all processes
        epochs=args.epochs,
        validation_split=0.1,
        callbacks=callbacks,
    )
    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
    path = args.out / "distributed_mnist.keras"
    args.out.mkdir(parents=True, exist_ok=True)
    # Rank 0 writes the file; all processes send it their parts of a sharded optimizer.
    if tw.distribute.rank() == 0 or args.shard_optimizer:
        model.save(path)
    if tw.distribute.rank() == 0:
        count = tw.distribute.size()
        print(
            f"{count} process{'es' if count > 1 else ''}, {len(history.epoch)} epochs: "
            f"test loss {loss:.4f}, test accuracy {accuracy:.2%}; wrote {path}"
        )
    return 0


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
