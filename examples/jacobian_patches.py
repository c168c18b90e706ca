"""The Jacobian of two layers
==========================

Draw the Jacobian of a small network: the dependence of each output on each input.

::

    python examples/jacobian_patches.py            (about 1 s; out/jacobian_patches.png)

Two dense layers keep the examples of a batch independent: only the diagonal blocks of
the Jacobian are non-zero, and ``batch_jacobian`` returns just these. A batch
normalization between the layers couples the examples: every block fills, and
``batch_jacobian(check=True)`` reports it. If matplotlib is installed, both are drawn.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import tapewright as tw

BATCH, INS, OUTS = 7, 5, 6

# %%
# Two Jacobians
# -------------
#
# The full Jacobian has a block for each pair of examples. ``check=True`` lets
# `batch_jacobian` say whether the blocks off the diagonal are zero.


def network(*between):
    """Return two dense layers with the layers ``between`` them."""
    first = tw.layers.Dense(8, activation="elu")
    return tw.keras.Sequential([first, *between, tw.layers.Dense(OUTS, "elu")])


def jacobians(model, x):
    """Return Jacobian ``[batch, outs, batch, ins]``, batch Jacobian, check's message.

    The batch Jacobian ``[batch, outs, ins]`` assumes independent examples.
    """
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = model(x, training=True)
    full, per_example = tape.jacobian(y, x), tape.batch_jacobian(y, x)
    try:
        tape.batch_jacobian(y, x, check=True)
        verdict = "independent examples"
    except ValueError as error:
        verdict = str(error)
    return full.numpy(), per_example.numpy(), verdict


# %%
# Report and pictures
# -------------------


def report(name, full, per_example, verdict):
    """Print the shapes, the share off the diagonal, and the message of the check."""
    diagonal = np.einsum("bobi->boi", full)
    off = max(0.0, 1 - np.sum(diagonal**2) / np.sum(full**2))  # but for rounding
    difference = np.abs(per_example - diagonal).max()
    print(f"{name}: Jacobian {full.shape}, batch Jacobian {per_example.shape}")
    print(f"  squares off the diagonal blocks: {off:.0%} of all")
    print(f"  batch Jacobian against the diagonal blocks: {difference:.1e} apart")
    print(f"  check=True: {verdict}")


def imshow_zero_center(axes, image, **options):
    """Draw a matrix with zero white, the largest absolute entry dark red or blue."""
    limit = np.abs(image).max()
    return axes.imshow(image, cmap="seismic", vmin=-limit, vmax=limit, **options)


def draw_blocks(axes, full, outer, inner):
    """Draw the Jacobian as a matrix, axes ``outer`` by blocks, ``inner`` within."""
    (rows, columns), (high, wide) = [[full.shape[i] for i in p] for p in (outer, inner)]
    image = full.transpose(outer[0], inner[0], outer[1], inner[1])
    image = imshow_zero_center(axes, image.reshape(rows * high, columns * wide))
    axes.set_xticks(np.arange(columns) * wide + (wide - 1) / 2, range(columns))
    axes.set_yticks(np.arange(rows) * high + (high - 1) / 2, range(rows))
    for line in range(1, columns):
        axes.axvline(line * wide - 0.5, color="gray", linewidth=0.5)
    for line in range(1, rows):
        axes.axhline(line * high - 0.5, color="gray", linewidth=0.5)
    axes.tick_params(length=0)
    return image


def draw(path, results):
    """Draw blocks of one example by another, and below of one output by one input."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"no {path}: matplotlib is not installed (pip install matplotlib)")
        return
    figure = Figure(figsize=(9.5, 10), layout="constrained")
    for column, (name, full) in zip(figure.subplots(2, 2).T, results.items()):
        draw_blocks(column[0], full, (0, 2), (1, 3))
        column[0].set(xlabel="example of the input", ylabel="example of the output")
        column[0].set_title(f"{name}\nblocks of outputs by inputs")
        image = draw_blocks(column[1], full, (1, 3), (0, 2))
        column[1].set(xlabel="input", ylabel="output", title="blocks of batch by batch")
        figure.colorbar(
            image, ax=column, location="bottom", shrink=0.7, aspect=40, pad=0.02
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, help="no effect: nothing is trained")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default="out", help="folder of the picture")
    args = parser.parse_args()

    tw.random.set_seed(args.seed)
    x = tw.random.normal([BATCH, INS])
    models = {
        "Two dense layers": network(),
        "With batch normalization": network(tw.layers.BatchNormalization()),
    }
    results = {}
    for name, model in models.items():
        full, per_example, verdict = jacobians(model, x)
        report(name, full, per_example, verdict)
        results[name] = full
    draw(args.out / "jacobian_patches.png", results)


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
