"""Jacobian of a two-layer network
===============================

Compute the Jacobian of a small network, for independent and for coupled examples.

::

    python examples/jacobian_patches.py            (about 1 s; out/jacobian_patches.png)

Two dense layers process the examples of a batch independently: only the diagonal blocks
of the Jacobian are nonzero, and ``batch_jacobian`` returns only these blocks. Batch
normalization between the layers couples the examples: all blocks are nonzero, and
``batch_jacobian(check=True)`` raises an error. If matplotlib is installed, the script
draws both Jacobians.
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
# The full Jacobian has one block per pair of examples. With ``check=True``,
# `batch_jacobian` checks that the blocks off the diagonal are zero.


def network(*between):
    """Return a network of two dense layers with the layers ``between`` them."""
    first = tw.layers.Dense(8, activation="elu")
    return tw.keras.Sequential([first, *between, tw.layers.Dense(OUTS, "elu")])


def jacobians(model, x):
    """Return the Jacobian, the batch Jacobian, and the result of the check.

    The Jacobian has the shape ``[batch, outs, batch, ins]``. The batch Jacobian,
    ``[batch, outs, ins]``, assumes independent examples.
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
    """Print the shapes, the share off the diagonal, and the result of the check."""
    diagonal = np.einsum("bobi->boi", full)
    off = max(0.0, 1 - np.sum(diagonal**2) / np.sum(full**2))  # not -0
    difference = np.abs(per_example - diagonal).max()
    print(f"{name}: Jacobian {full.shape}, batch Jacobian {per_example.shape}")
    print(f"  squares off the diagonal blocks: {off:.0%} of the sum")
    print(f"  difference of batch Jacobian and diagonal blocks: {difference:.1e}")
    print(f"  check=True: {verdict}")


def imshow_zero_center(axes, image, **options):
    """Draw a matrix: zero is white, the largest absolute entry dark red or blue."""
    limit = np.abs(image).max()
    return axes.imshow(image, cmap="seismic", vmin=-limit, vmax=limit, **options)


def draw_blocks(axes, full, outer, inner):
    """Draw the Jacobian as blocks: axes ``outer``, with axes ``inner`` in each."""
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
    """Draw one block per pair of examples; below, one block per output and input."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"no {path}: matplotlib is not installed (pip install matplotlib)")
        return
    figure = Figure(figsize=(9.5, 10), layout="constrained")
    for column, (name, full) in zip(figure.subplots(2, 2).T, results.items()):
        draw_blocks(column[0], full, (0, 2), (1, 3))
        column[0].set(xlabel="example of the input", ylabel="example of the output")
        column[0].set_title(f"{name}\nblocks: outputs by inputs")
        image = draw_blocks(column[1], full, (1, 3), (0, 2))
        column[1].set(xlabel="input", ylabel="output", title="blocks: batch by batch")
        figure.colorbar(
            image, ax=column, location="bottom", shrink=0.7, aspect=40, pad=0.02
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, help="ignored: nothing is trained")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default="out", help="output folder")
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
