"""Burgers' equation (PINN)
========================

Solve Burgers' equation with a physics-informed neural network (PINN).

::

    python examples/pinn.py          (about 20 s; within 0.5 % of the exact solution)
    python examples/pinn.py --eager  without tracing, for a debugger

A wave ``u(t, x)`` steepens until viscosity stops it::

    u_t + u u_x = nu u_xx,    u(0, x) = -sin(pi x),    u(t, -1) = u(t, 1) = 0

The ansatz satisfies the initial and boundary conditions; the loss is the mean squared
residual of the equation at random points. The residual contains second derivatives of
the network, computed with nested tapes; training differentiates them once more (Raissi,
2019). The script prints the error relative to the exact solution (Cole and Hopf). If
matplotlib is installed, it draws ``out/pinn.png``. Ctrl-C ends the training early, and
the exit code is 130.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

import tapewright as tw

NU = 0.1 / np.pi
POINTS, STEPS = 500, 100

# %%
# The equation as a loss
# ----------------------
#
# Two nested tapes compute the first and second derivatives of the network with respect
# to time and position. The tape of the training step differentiates them with respect
# to the weights.


def network():
    """Map ``[n, 2]``, time and position, to ``[n, 1]``."""
    hidden = [tw.layers.Dense(32, activation="tanh") for _ in range(3)]
    return tw.keras.Sequential([*hidden, tw.layers.Dense(1)])


def wave(model, t, x):
    """Return the initial wave, plus the output scaled to 0 at start and walls."""
    return t * (1 - x**2) * model(tw.concat([t, x], axis=1)) - tw.sin(np.pi * x)


def residual(model, t, x):
    """Return ``u_t + u u_x - nu u_xx``, which is zero where the equation holds."""
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as inner:
            inner.watch([t, x])
            u = wave(model, t, x)
        u_t, u_x = inner.gradient(u, [t, x])
    u_xx = outer.gradient(u_x, x)
    return u_t + u * u_x - NU * u_xx


@tw.function
def train_step(model, optimizer):
    """Update the model at random points; return the mean squared residual."""
    t = tw.random.uniform([POINTS, 1])
    x = tw.random.uniform([POINTS, 1], -1.0, 1.0)
    with tw.GradientTape() as tape:
        loss = tw.reduce_mean(residual(model, t, x) ** 2)
    variables = model.trainable_variables
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return loss


# %%
# The exact solution
# ------------------
#
# The exact solution is an integral (Cole, Hopf). It is only used to measure the error.


def exact(t, x):
    """Return the solution: a mean over the possible origins of the fluid at ``x``.

    The mean is an integral with the weight ``exp(-z ** 2)``, computed by Gauss-Hermite
    quadrature.
    """
    z, weights = np.polynomial.hermite.hermgauss(100)
    origin = np.pi * (x[..., None] - np.sqrt(4 * NU * t[..., None]) * z)
    share = weights * np.exp(-np.cos(origin) / (2 * np.pi * NU))
    return -np.sum(share * np.sin(origin), -1) / np.sum(share, -1)


def compare(model):
    """Return ``t, x, u, exact, residual`` on a grid, each ``[65, 129]``."""
    t, x = np.meshgrid(np.linspace(0, 1, 65), np.linspace(-1, 1, 129), indexing="ij")
    columns = [tw.constant(a.reshape(-1, 1), tw.float32) for a in (t, x)]
    u, left = wave(model, *columns), residual(model, *columns)
    return t, x, u.numpy().reshape(t.shape), exact(t, x), left.numpy().reshape(t.shape)


def relative_error(u, truth):
    return np.linalg.norm(u - truth) / np.linalg.norm(truth)


# %%
# Picture and command line
# ------------------------


def draw(path, losses, t, x, u, truth, left):
    """Draw the solution, exact solutions at some times, residual and loss."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"no {path}: matplotlib is not installed (pip install matplotlib)")
        return
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    (whole, cuts), (rest, curve) = figure.subplots(2, 2)
    for axes, values, title in (
        (whole, u, "The network's solution u(t, x)"),
        (rest, left, "Residual of the equation"),
    ):
        limit = np.abs(values).max()
        colors = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
        image = axes.pcolormesh(t, x, values, shading="gouraud", **colors)
        axes.set(xlabel="time t", ylabel="position x", title=title)
        figure.colorbar(image, ax=axes)
    for color, row in enumerate([0, 16, 32, 64]):
        cuts.plot(x[row], u[row], f"C{color}", label=f"t = {t[row, 0]:g}")
        cuts.plot(x[row, ::4], truth[row, ::4], f"C{color}.", markersize=4)
    cuts.set(xlabel="position x", ylabel="u", xticks=[-1, -0.5, 0, 0.5, 1])
    cuts.set_title(
        f"Lines: network; dots: exact (error {relative_error(u, truth):.2%})"
    )
    cuts.legend()
    curve.semilogy(losses, linewidth=0.6)
    curve.set(xlabel="step", ylabel="mean squared residual", title="Training")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=30, help=f"{STEPS} steps each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default="out", help="output folder")
    parser.add_argument("--eager", action="store_true", help="do not trace steps")
    args = parser.parse_args()

    tw.config.run_functions_eagerly(args.eager)
    tw.random.set_seed(args.seed)
    model, losses, code = network(), [], 0
    # The learning rate is halved every 1000 steps, for smaller steps near the solution.
    optimizer = tw.optimizers.Adam(lambda step: 0.01 * 0.5 ** (step / 1000))
    try:
        for epoch in range(1, args.epochs + 1):
            for _ in tqdm(range(STEPS), leave=False, disable=None):
                losses.append(float(train_step(model, optimizer)))
            loss = np.mean(losses[-STEPS:])
            error = relative_error(*compare(model)[2:4])
            print(f"epoch {epoch}: squared residual {loss:.2e}, error {error:.2%}")
    except KeyboardInterrupt:
        code = 130
    results = compare(model)
    print(f"after {len(losses)} steps: error {relative_error(*results[2:4]):.2%}")
    draw(args.out / "pinn.png", losses, *results)
    return code


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
