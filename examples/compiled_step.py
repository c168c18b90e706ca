"""Compare eager and traced execution
==================================

Measure the speed-up of a training loop by `tw.function`.

::

    python examples/compiled_step.py     (about 20 s)

``@tw.function`` compiles a whole training step (forward pass, gradients and optimizer)
to a program with preallocated memory. The script trains two-layer networks of several
widths on digits, and times the loop in eager and traced mode. It prints the time per
step, the speed-up, the difference of the losses and the most expensive calls of the
last step. If matplotlib is installed, it draws ``out/compiled_step.png``.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import tapewright as tw

BATCH, STEPS = 128, 40
WIDTHS = 16, 64, 256, 1024

# %%
# The network and its step
# ------------------------
#
# The same Python function runs eagerly or, wrapped in `tw.function`, as a traced step.


class Network(tw.Module):
    """Network with 784 inputs, one hidden layer, 10 logits; a seed sets the weights."""

    def __init__(self, width, seed):
        rng = np.random.default_rng(seed)
        self.w1 = tw.Variable(rng.normal(0, 0.05, [784, width]).astype("float32"))
        self.b1 = tw.Variable(tw.zeros([width]))
        self.w2 = tw.Variable(rng.normal(0, 0.05, [width, 10]).astype("float32"))
        self.b2 = tw.Variable(tw.zeros([10]))

    def __call__(self, images):
        hidden = tw.nn.relu(tw.matmul(images, self.w1) + self.b1)
        return tw.matmul(hidden, self.w2) + self.b2


def make_step(width, seed):
    """Return ``train_step(images, labels)`` of a new network; it returns the loss."""
    network, optimizer = Network(width, seed), tw.optimizers.Adam(0.001)
    variables = network.trainable_variables

    def train_step(images, labels):
        with tw.GradientTape() as tape:
            logits = network(images)
            loss = tw.reduce_mean(
                tw.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            )
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    return train_step


# %%
# Measure the time
# ----------------
#
# Both steps start from the same weights and use the same batches, so their losses can
# be compared.


def run(step, batches):
    """Run the loop; return the losses and the time in seconds."""
    began = time.perf_counter()
    losses = [float(step(images, labels)) for images, labels in batches]
    return losses, time.perf_counter() - began


def compare(width, batches, rounds, seed):
    """Return ``(eager, traced, difference, step)`` for a width.

    ``eager`` and ``traced`` are times in ms per step, the best of several rounds;
    ``difference`` is the maximum difference of the losses, ``step`` the traced step.
    """
    eager = make_step(width, seed)
    traced = tw.function(make_step(width, seed))
    times, apart = {eager: [], traced: []}, 0.0
    for _ in range(rounds + 1):  # the first round warms up and traces
        losses = []
        for step in times:
            found, seconds = run(step, batches)
            losses.append(found)
            times[step].append(1000 * seconds / len(batches))
        apart = max(apart, np.abs(np.subtract(*losses)).max())
    return min(times[eager][1:]), min(times[traced][1:]), apart, traced


# %%
# Picture and command line
# ------------------------


def draw(path, results):
    """Draw the time per step over the width of the network, eager and traced."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"no {path}: matplotlib is not installed (pip install matplotlib)")
        return
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    eager, traced = np.array(list(results.values())).T
    places = np.arange(len(results))
    axes.bar(places - 0.2, eager, 0.4, label="eager")
    axes.bar(places + 0.2, traced, 0.4, label="traced")
    for place, before, now in zip(places, eager, traced):
        axes.text(place, before, f"{before / now:.1f}x", ha="center", va="bottom")
    axes.set(yscale="log", xlabel="hidden units", ylabel="ms per step")
    axes.set_ylim(top=2 * eager.max())  # leave room for the labels
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.set(title=f"Training step, batch size {BATCH}")
    axes.set_xticks(places, results)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=5, help="number of timed rounds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default="out", help="output folder")
    args = parser.parse_args()

    (images, labels), _ = tw.datasets.digits.load_data()
    images = images.reshape(-1, 784).astype("float32") / 255
    labels = np.eye(10, dtype="float32")[labels]
    batches = [
        (tw.constant(images[i : i + BATCH]), tw.constant(labels[i : i + BATCH]))
        for i in BATCH * (np.arange(STEPS) % (len(images) // BATCH))
    ]
    results = {}
    print("width   eager ms   traced ms   speed-up   difference")
    for width in WIDTHS:
        eager, traced, apart, step = compare(width, batches, args.epochs, args.seed)
        results[width] = eager, traced
        print(
            f"{width:5} {eager:10.3f} {traced:11.3f} {eager / traced:9.2f}x"
            f" {apart:12.1e}"
        )
    print(step.explain(*batches[0]))
    draw(args.out / "compiled_step.png", results)
    return 0


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
