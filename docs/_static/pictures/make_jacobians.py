"""Draw the picture of docs/guide/jacobians.md: the Jacobians of two dense layers over a
batch, without and with a batch normalization between them."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import tapewright as tw
from tapewright import layers

EXAMPLES, INPUTS, OUTPUTS = 7, 5, 6


def jacobian(*between):
    """The Jacobian as a matrix, rows and columns grouped by example."""
    tw.keras.utils.set_random_seed(1)
    model = tw.keras.Sequential(
        [layers.Dense(8, "elu"), *between, layers.Dense(OUTPUTS, "elu")]
    )
    x = tw.random.normal((EXAMPLES, INPUTS))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = model(x, training=True)
    return tape.jacobian(y, x).numpy().reshape(EXAMPLES * OUTPUTS, EXAMPLES * INPUTS)


def main():
    figure = Figure(figsize=(7.2, 3.9), layout="constrained")
    panels = {
        "two dense layers": jacobian(),
        "batch normalization between them": jacobian(layers.BatchNormalization()),
    }
    for axes, (title, matrix) in zip(figure.subplots(1, 2), panels.items()):
        limit = np.abs(matrix).max()
        axes.imshow(matrix, cmap="seismic", vmin=-limit, vmax=limit, aspect="auto")
        axes.set_title(title, fontsize=11)
        for example in range(1, EXAMPLES):
            axes.axhline(example * OUTPUTS - 0.5, color="gray", linewidth=0.5)
            axes.axvline(example * INPUTS - 0.5, color="gray", linewidth=0.5)
        names = [f"{i}" for i in range(EXAMPLES)]
        axes.set_xticks(np.arange(EXAMPLES) * INPUTS + INPUTS / 2 - 0.5, names)
        axes.set_yticks(np.arange(EXAMPLES) * OUTPUTS + OUTPUTS / 2 - 0.5, names)
        axes.set(xlabel="inputs of example", ylabel="outputs of example")
        axes.tick_params(length=0)
    path = Path(__file__).parent / "jacobians_blocks.png"
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
