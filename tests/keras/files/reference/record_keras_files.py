"""Writes files of Keras 3 and Keras 2, and what their models predict.

    KERAS_BACKEND=tensorflow python tests/keras/files/reference/record_keras_files.py

with Keras 3.15, TensorFlow and tf_keras (Keras 2) installed. Beside this script:
``trained.{keras,h5,weights.h5}``, ``shards*``, ``nested.{keras,h5}``, ``plain.keras``,
``bfloat16.weights.h5``, ``old.{keras,h5}``, ``old_weights.h5``, ``old_nested.h5``; and
``keras_files.npz``: inputs, predictions, and weights after a further epoch of training.
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def examples():
    random = np.random.RandomState(0)
    x, y = random.randn(16, 6), random.randn(16, 2)
    return x.astype("f4"), y.astype("f4"), random.randn(4, 5, 3).astype("f4")


def trained(keras):
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((6,)),
            layers.Dense(5, activation="tanh", name="first"),
            layers.BatchNormalization(name="normal"),
            layers.Dropout(0.0, name="drop"),
            layers.Dense(2, name="last"),
        ],
        name="net",
    )


def nested(keras):
    layers = keras.layers
    inner = keras.Sequential(
        [
            layers.Input((4,)),
            layers.Dense(3, activation="relu", name="a"),
            layers.BatchNormalization(name="b"),
            layers.Dense(4, name="c"),
        ],
        name="inner",
    )
    x = layers.Input((5, 3), name="sequence")
    hidden = layers.Bidirectional(layers.LSTM(2, name="lstm"), name="both")(x)
    shared = layers.Dense(4, name="shared")
    once = shared(hidden)
    outputs = [inner(once), layers.Add(name="sum")([shared(once), hidden])]
    return keras.Model(x, outputs, name="outer")


def fit(model, x, y):
    model.fit(x, y, batch_size=8, epochs=1, shuffle=False, verbose=0)


def randomize(model):
    """Also what training would not have moved: moving means and variances."""
    random = np.random.RandomState(1)
    model.set_weights([random.rand(*np.shape(w)) for w in model.get_weights()])


def record_keras_3(found):
    import keras

    x, y, sequences = examples()
    model = trained(keras)
    model.compile(keras.optimizers.Adam(0.01), "mean_squared_error", metrics=["mae"])
    fit(model, x, y)
    fit(model, x, y)
    for ending in ("keras", "h5"):
        model.save(HERE / f"trained.{ending}")
    model.save_weights(HERE / "trained.weights.h5")
    model.save_weights(HERE / "shards.weights.json", max_shard_size=3e-7)
    found["trained"] = model.predict(x, verbose=0)
    fit(model, x, y)
    found |= {f"trained_{i}": w for i, w in enumerate(model.get_weights())}
    model = nested(keras)
    randomize(model)
    for ending in ("keras", "h5"):
        model.save(HERE / f"nested.{ending}")
    found["nested_0"], found["nested_1"] = model.predict(sequences, verbose=0)
    keras.Sequential([keras.layers.Dense(2)], name="plain").save(HERE / "plain.keras")
    keras.config.set_dtype_policy("bfloat16")
    model = trained(keras)
    randomize(model)
    model.save_weights(HERE / "bfloat16.weights.h5")
    found |= {
        f"bfloat16_{i}": np.asarray(w, "f4") for i, w in enumerate(model.get_weights())
    }


def record_keras_2(found):
    import tf_keras

    x, y, sequences = examples()
    model = trained(tf_keras)
    model.compile(tf_keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    fit(model, x, y)
    fit(model, x, y)
    model.save(HERE / "old.h5")
    model.save(HERE / "old.keras")
    model.save_weights(HERE / "old_weights.h5")
    found["old"] = model.predict(x, verbose=0)
    fit(model, x, y)
    found |= {f"old_{i}": w for i, w in enumerate(model.get_weights())}
    model = nested(tf_keras)
    randomize(model)
    model.save(HERE / "old_nested.h5")
    found["old_nested_0"], found["old_nested_1"] = model.predict(sequences, verbose=0)


def main():
    x, y, sequences = examples()
    found = {"x": x, "y": y, "sequences": sequences}
    record_keras_3(found)
    record_keras_2(found)
    np.savez_compressed(HERE / "keras_files.npz", **found)


if __name__ == "__main__":
    main()
