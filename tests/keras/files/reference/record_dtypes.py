"""Writes models of Keras that compute in half precision, and what they predict.

    KERAS_BACKEND=torch python tests/keras/files/reference/record_dtypes.py

with Keras 3.15 and that backend installed. Beside this script: ``mixed_float16.keras``
(trained, with a loss scale), ``bfloat16.keras``, ``bfloat16.h5``; and ``dtypes.npz``:
inputs, predictions, and how many steps the optimizer made.
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def make(keras):
    layers = keras.layers
    x = keras.Input((4,))
    y = layers.Dense(3, activation="tanh", name="first")(x)
    y = layers.BatchNormalization(name="normal")(y) * 2.0
    model = keras.Model(x, layers.Dense(2, name="last")(y), name="net")
    model.compile("adam", "mse", metrics=["mae"])
    return model


def main():
    import keras

    x = np.random.RandomState(0).rand(8, 4).astype("f4")
    found = {"x": x}
    for policy, endings in (
        ("mixed_float16", [".keras"]),
        ("bfloat16", [".keras", ".h5"]),
    ):
        keras.utils.set_random_seed(1)
        keras.config.set_dtype_policy(policy)
        model = make(keras)
        model.fit(x, x[:, :2], epochs=2, verbose=0)
        for ending in endings:
            model.save(HERE / f"{policy}{ending}")
        optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
        found[f"{policy}_steps"] = int(optimizer.iterations)
        found[policy] = np.asarray(model.predict(x, verbose=0), "f4")
    np.savez_compressed(HERE / "dtypes.npz", **found)


if __name__ == "__main__":
    main()
