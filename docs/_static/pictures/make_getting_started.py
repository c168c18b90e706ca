"""Draw the picture of docs/getting_started.md: the curves of its training."""

from pathlib import Path

import tapewright as tw
from tapewright import keras
from tapewright.keras import layers


def main():
    keras.utils.set_random_seed(0)
    (x, y), _ = tw.datasets.digits.load_data()
    model = keras.Sequential(
        [
            keras.Input((28, 28)),
            layers.Rescaling(1 / 255),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    history = model.fit(x, y, batch_size=64, epochs=4, validation_split=0.1, verbose=0)
    history.plot(path=Path(__file__).with_name("getting_started.png"))


if __name__ == "__main__":
    main()
