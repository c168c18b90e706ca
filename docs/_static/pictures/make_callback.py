"""Draw `callback.png`: the predictions of a small model after some epochs of `fit`."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from tapewright import keras

EPOCHS = (20, 60, 200)


class Draw(keras.callbacks.Callback):
    """Draw the predictions into the next axes, after each number of `EPOCHS`."""

    def __init__(self, x, y, axes):
        super().__init__()
        self.x, self.y, self.axes = x, y, dict(zip(EPOCHS, axes))

    def on_epoch_end(self, epoch, logs=None):
        axes = self.axes.get(epoch + 1)
        if axes is not None:
            axes.plot(self.x, self.y, label="data", color="#999999", linewidth=3)
            axes.plot(self.x, self.model(self.x), label="model", color="#0b6e8f")
            axes.set(title=f"epoch {epoch + 1}, loss {logs['loss']:.3f}")


def main():
    x = np.linspace(-3, 3, 64, dtype="float32")[:, None]
    y = np.sin(x)
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((1,)), keras.layers.Dense(32, "tanh"), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    figure, axes = plt.subplots(
        1, 3, figsize=(9, 2.8), sharey=True, layout="constrained"
    )
    model.fit(x, y, epochs=EPOCHS[-1], verbose=0, callbacks=[Draw(x, y, axes)])
    axes[0].legend(loc="upper left")
    figure.savefig(Path(__file__).with_name("callback.png"), dpi=110)


if __name__ == "__main__":
    main()
