"""A loop on several processes
===========================

Average gradients over several processes in a training loop of one's own.

::

    python examples/distributed_loop.py                     one process (about 2 s)
    mpiexec -n 4 python examples/distributed_loop.py        four

Each process reads its part of the digits, `DistributedGradientTape` averages the
gradients over all of them, and the loop stays as it was: here a penalty on the gradient
of the loss by the images, which needs a tape in a tape, and clipping by the norm of all
averaged gradients. The step is traced; each reduction begins as soon as its gradients are
there, and runs beside the rest of the backward pass. With more processes there are fewer
steps of larger batches. Several processes need the extra ``mpi`` and an MPI; ``pip
install mpich`` brings one.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

import tapewright as tw

BATCH = 32  # of each process

# %%
# The step
# --------
#
# `tw.distribute.DistributedGradientTape` wraps the tape; nothing else tells that
# there are several processes.


def network():
    return tw.Sequential(
        [
            tw.Input((784,)),
            tw.layers.Dense(128, activation="elu"),
            tw.layers.Dense(10),
        ]
    )


@tw.function
def train_step(model, optimizer, images, labels):
    """Update the model by averaged gradients; return the loss of this process."""
    variables = model.trainable_variables
    with tw.GradientTape() as tape:
        with tw.GradientTape() as inner:
            inner.watch(images)
            losses = tw.nn.sparse_softmax_cross_entropy_with_logits(
                labels, model(images)
            )
        slope = inner.gradient(losses, images)
        loss = tw.reduce_mean(losses) + 0.1 * tw.reduce_mean(
            tw.reduce_sum(slope * slope, axis=1)
        )
    tape = tw.distribute.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, variables)
    gradients, _ = tw.clip_by_global_norm(gradients, 1.0)
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return loss


# %%
# Data, accuracy and command line
# -------------------------------
#
# Each process loads its part of the images, and counts are added over all processes.


def load():
    """Return data sets ``(images, labels)`` to train on and to test, of this process."""
    rank, size = tw.distribute.rank(), tw.distribute.size()
    (x_train, y_train), (x_test, y_test) = tw.datasets.digits.load_data()
    train = pairs(x_train, y_train).shard(size, rank).shuffle(len(x_train), seed=0)
    # Each process makes the same number of steps: the rest of a batch is left out.
    steps = len(x_train) // size // BATCH
    return train.batch(BATCH).take(steps), pairs(x_test, y_test).shard(size, rank)


def pairs(images, labels):
    images = images.reshape(-1, 784).astype("float32") / 255
    return tw.data.Dataset.from_tensor_slices((images, labels.astype("int32")))


def accuracy(model, test):
    """Return the share of test images that all processes recognize together."""
    right = total = 0
    for images, labels in test.batch(500):
        predicted = tw.argmax(model(images), axis=1).numpy()
        right += np.sum(predicted == labels.numpy())
        total += len(predicted)
    counts = tw.constant([right, total], "float32")
    right, total = tw.distribute.all_reduce(counts, "sum").numpy()
    return right / total


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default="out", help="not used")
    args = parser.parse_args()

    tw.random.set_seed(args.seed)
    is_first = tw.distribute.rank() == 0
    train, test = load()
    model, optimizer = network(), tw.optimizers.Adam(0.001)
    tw.distribute.broadcast_variables(model.variables)
    for epoch in range(1, args.epochs + 1):
        losses = []
        # disable=None: no bar outside a terminal
        with tqdm(train, leave=False, disable=None if is_first else True) as batches:
            for images, labels in batches:
                losses.append(train_step(model, optimizer, images, labels))
        loss = tw.distribute.all_reduce(tw.reduce_mean(tw.stack(losses))).numpy()
        share = accuracy(model, test)
        tw.distribute.check_variables(model.variables)
        if is_first:
            print(f"epoch {epoch}: loss {loss:.4f}, test accuracy {share:.2%}")
    if is_first:
        count, steps = tw.distribute.size(), int(optimizer.iterations)
        print(f"{count} process{'es' if count > 1 else ''}, {steps} steps: {share:.2%}")
    return 0


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
