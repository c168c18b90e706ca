"""Derivatives of the sigmoid
==========================

Compute and draw the first three derivatives of the sigmoid with nested tapes.

::

    python examples/sigmoid_derivative.py        (about 1 s; out/sigmoid_derivative.png)

All 401 points are entries of one tensor. The sigmoid is element-wise, so the gradient
of the sum of the outputs contains the derivative at each input. A second tape around
the first computes the second derivative, a third one the third derivative. The script
prints the error of each compared with its formula, about 1e-7. If matplotlib is
installed, it draws the derivatives.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import tapewright as tw

# %%
# Derivatives by recursion
# ------------------------
#
# Each level of the recursion adds a tape around the level below.


def derivatives(f, x, order):
    """Return ``[f(x), f'(x), f''(x), ...]`` up to ``order``, each shaped like ``x``."""
    if order == 0:
        return [f(x)]
    with tw.GradientTape() as tape:
        tape.watch(x)
        values = derivatives(f, x, order - 1)
    return [*values, tape.gradient(values[-1], x)]


def formulas(x):
    """Return the same for the sigmoid, by formulas from ``s' = s (1 - s)``."""
    s = 1 / (1 + np.exp(-x.astype("float64")))
    slope = s * (1 - s)
    return [s, slope, slope * (1 - 2 * s), slope * (1 - 6 * s + 6 * s**2)]


# %%
# Picture and command line
# ------------------------


def draw(path, x, values):
    """Draw the sigmoid with tangents, and its derivatives."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"no {path}: matplotlib is not installed (pip install matplotlib)")
        return
    y, slope = values[:2]
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(x, y, label="$\\sigma(x)$")
    left.plot(x, slope, label="$\\sigma'(x)$")
    for i in np.searchsorted(x, [-5, -2.5, 0, 2.5, 5]):
        near = np.array([-1, 1])
        left.plot(x[i] + near, y[i] + slope[i] * near, "k", linewidth=0.8)
        left.plot(x[i], y[i], "k.")
    left.set_title("Sigmoid with tangents, and its derivative")
    names = "$\\sigma'(x)$", "$\\sigma''(x)$", "$\\sigma'''(x)$"
    for order, name in enumerate(names, 1):
        right.plot(x, values[order], f"C{order}", label=name)
    right.set_title("Derivatives of order 1 to 3")
    for axes in left, right:
        axes.axhline(0, color="gray", linewidth=0.5, zorder=0)
        axes.set(xlabel="x", xlim=(-10, 10))
        axes.legend(fontsize=12)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, help="ignored: nothing is trained")
    parser.add_argument("--out", type=Path, default="out", help="output folder")
    args = parser.parse_args()

    x = tw.linspace(-10.0, 10.0, 401)
    values = [value.numpy() for value in derivatives(tw.nn.sigmoid, x, order=3)]
    for order, (value, formula) in enumerate(zip(values, formulas(x.numpy()))):
        error = np.abs(value - formula).max()
        print(f"derivative {order}: maximum {value.max():.4f}, error {error:.1e}")
    draw(args.out / "sigmoid_derivative.png", x.numpy(), values)


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
