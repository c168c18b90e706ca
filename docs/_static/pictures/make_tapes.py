"""Draw the pictures of docs/guide/tapes.md: derivatives of the sigmoid, and of a batch
normalization with its exact variance and with the one of `tf.nn.moments`."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import tapewright as tw

HERE = Path(__file__).parent


def derivatives(f, orders, x):
    """The derivatives of an elementwise function up to an order, its value first."""
    if orders == 0:
        return [f(x)]
    with tw.GradientTape() as tape:
        tape.watch(x)
        lower = derivatives(f, orders - 1, x)
    return [*lower, tape.gradient(lower[-1], x)]


def save(figure, name):
    figure.savefig(HERE / name, dpi=110, metadata={"Software": None})


def draw_sigmoid():
    x = tw.linspace(-7.0, 7.0, 281)
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    labels = ["sigmoid", "first derivative", "second", "third"]
    for values, label in zip(derivatives(tw.sigmoid, 3, x), labels, strict=True):
        axes.plot(x, values, label=label)
    axes.set(xlabel="x", xlim=(-7, 7))
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, "tapes_sigmoid.png")


def normalized(t, constant_mean):
    """The sum of cubes of the normalized ``[t, 1, 3, 7]``, for each entry of ``t``."""
    x = tw.stack([t, *[tw.zeros_like(t) + c for c in (1.0, 3.0, 7.0)]])
    mean = tw.reduce_mean(x, axis=0)
    inside = tw.stop_gradient(mean) if constant_mean else mean
    variance = tw.reduce_mean((x - inside) ** 2, axis=0)
    return tw.reduce_sum(((x - mean) / tw.sqrt(variance + 1e-3)) ** 3, axis=0)


def draw_normalization():
    t = tw.linspace(tw.constant(-4.0, "float64"), 6.0, 201)
    exact = derivatives(lambda t: normalized(t, False), 2, t)[2].numpy()
    constant = derivatives(lambda t: normalized(t, True), 2, t)[2].numpy()
    values, h = normalized(t, False).numpy(), float(t[1] - t[0])
    quotients = (values[2:] - 2 * values[1:-1] + values[:-2]) / h**2

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(t, exact, label="tapewright, JAX, PyTorch")
    axes.plot(t, constant, "C3--", label="tf.nn.moments: the mean as a constant")
    axes.plot(t[1:-1:8], quotients[::8], "k.", label="difference quotients")
    axes.set(xlabel="t", ylabel="second derivative", xlim=(-4, 6))
    axes.set_title("Cubes of the batch normalization of [t, 1, 3, 7]", fontsize=11)
    axes.grid(alpha=0.3)
    axes.legend()
    assert np.abs(constant - exact).max() > 0.05
    save(figure, "tapes_normalization.png")


if __name__ == "__main__":
    draw_sigmoid()
    draw_normalization()
