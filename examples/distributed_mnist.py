"""fit on several processes
========================

Train one model by `fit` on several processes, and get the numbers of one.

::

    python examples/distributed_mnist.py                    one process (about 3 s)
    mpiexec -n 4 python examples/distributed_mnist.py       four, with the same result
    mpiexec -n 2 python examples/distributed_mnist.py --data mnist    the real images

A model made in the scope of a strategy is trained by all processes together: of every
batch of 128 each takes its part, and all apply the sum of their gradients. Losses,
metrics, the learning rate and the time to stop follow the whole batch, so that every
process holds the same weights, to the bit, and the result is that of one process, to
rounding: 99.9 % of the test digits. The bar, the backup and the model file come from rank 0.

With ``--backup FOLDER`` a training that was ended, by Ctrl-C or because a process was
killed, goes on where it was when it is started again, also with another number of
processes. Several processes need the extra ``mpi`` and an MPI; ``pip install mpich``
brings one.
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
# It is made inside of the scope of a strategy.


def network():
    """Map images ``[batch, 28, 28]`` of 0 ... 255 to probabilities of ten digits."""
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
    """Return ``(images, labels)``, ``[n, 28, 28]`` and ``[n]``, to train and to test."""
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
    parser.add_argument("--out", type=Path, default="out", help="folder of the model")
    parser.add_argument("--backup", type=Path, help="folder from which to go on")
    args = parser.parse_args()

    tw.keras.utils.set_random_seed(args.seed)
    strategy = tw.distribute.MultiWorkerMirroredStrategy()
    try:
        (x_train, y_train), (x_test, y_test) = load(args.data)
    except (OSError, ValueError) as error:
        parser.error(f"--data {args.data}: {error}")
    with strategy.scope():
        model = network()
    callbacks = [tw.callbacks.ReduceLROnPlateau(factor=0.3, patience=2)]
    if args.backup:
        callbacks.append(tw.callbacks.BackupAndRestore(args.backup))
    history = model.fit(
        x_train,
        y_train,
        batch_size=128,  # of all processes together
        epochs=args.epochs,
        validation_split=0.1,
        callbacks=callbacks,
    )
    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
    if tw.distribute.rank() == 0:
        path = args.out / "distributed_mnist.keras"
        args.out.mkdir(parents=True, exist_ok=True)
        model.save(path)
        count = strategy.num_replicas_in_sync
        print(
            f"{count} process{'es' if count > 1 else ''}, {len(history.epoch)} epochs: "
            f"test loss {loss:.4f}, test accuracy {accuracy:.2%}; wrote {path}"
        )
    return 0


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
