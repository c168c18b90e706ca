"""Distributed custom training loop
================================

Average gradients over several processes in a custom training loop.

::

    python examples/distributed_loop.py                     one process (about 2 s)
    mpiexec -n 4 python examples/distributed_loop.py        four processes

Each process loads its part of the digits, and `DistributedGradientTape` averages the
gradients over all processes. The rest of the loop is the same as on one process: here
it has a penalty on the gradient of the loss with respect to the images, which requires
nested tapes, and clips the averaged gradients by their global norm. The step is traced;
each reduction starts as soon as its gradients are available, and overlaps with the rest
of the backward pass. With more processes there are fewer steps, on larger batches.
Several processes require the extra ``mpi`` and an MPI; ``pip install mpich`` installs
one.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

import tapewright as tw

BATCH = 32  # per process

# %%
# The step
# --------
#
# `tw.distribute.DistributedGradientTape` wraps the tape. The rest of the step does not
# depend on the number of processes.


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
    """Update the model with averaged gradients; return the loss of this process."""
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
# Each process loads its part of the images; counts are summed over all processes.


def load():
    """Return training and test data sets ``(images, labels)`` of this process."""
    rank, size = tw.distribute.rank(), tw.distribute.size()
    (x_train, y_train), (x_test, y_test) = tw.datasets.digits.load_data()
    train = pairs(x_train, y_train).shard(size, rank).shuffle(len(x_train), seed=0)
    # All processes run the same number of steps, so a partial batch is dropped.
    steps = len(x_train) // size // BATCH
    return train.batch(BATCH).take(steps), pairs(x_test, y_test).shard(size, rank)


def pairs(images, labels):
    images = images.reshape(-1, 784).astype("float32") / 255
    return tw.data.Dataset.from_tensor_slices((images, labels.astype("int32")))


def accuracy(model, test):
    """Return the accuracy on the test images of all processes."""
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
    parser.add_argument("--out", type=Path, default="out", help="ignored")
    args = parser.parse_args()

    tw.random.set_seed(args.seed)
    is_first = tw.distribute.rank() == 0
    train, test = load()
    model, optimizer = network(), tw.optimizers.Adam(0.001)
    tw.distribute.broadcast_variables(model.variables)
    for epoch in range(1, args.epochs + 1):
        losses = []
        # disable=None: no progress bar outside a terminal
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
