"""Writes ``keras2_functions.json``: TensorFlow's functions in a model of Keras 2.

Needs TensorFlow and tf_keras, which is Keras 2; tapewright needs neither:

    TF_USE_LEGACY_KERAS=1 python tests/keras/legacy/reference/record_keras2_functions.py

The file holds the config of a functional model, whose outputs are a dict, and these
outputs for the values of `inputs`.
"""

import json
import pathlib

import numpy as np


def inputs():
    """The values of both inputs."""
    return np.random.default_rng(0).uniform(-2, 2, (2, 2, 3, 4)).astype("f4").round(3)


def outputs(tf, x, y):
    """Name -> what a function of TensorFlow, or several, give for the inputs."""
    return {
        "operators": 1.0 - (x + y) * 2.0 / (abs(x) + 0.5) - y,
        "comparison": tf.where(x > 0.0, x, y),
        "item": x[:, 0],
        "slices": x[..., 1:3],
        "new axis": x[:, None],
        "scaled images": x / 127.5 - 1.0,
        "matmul": tf.matmul(x, y, transpose_b=True),
        "mean": tf.reduce_mean(x, axis=1),
        "sum": tf.reduce_sum(x, [1, 2], keepdims=True),
        "std": tf.math.reduce_std(x, 1),
        "reshape": tf.reshape(x, (-1, 12)),
        "transpose": tf.transpose(x, [0, 2, 1]),
        "concat": tf.concat([x, y], axis=1),
        "stack": tf.stack([x, y], axis=1),
        "split": tf.split(x, 2, axis=2)[1],
        "squeeze": tf.squeeze(tf.expand_dims(x, 1), 1),
        "activations": tf.nn.relu(x) + tf.sigmoid(y) * tf.tanh(x) + tf.nn.softmax(y),
        "leaky": tf.nn.leaky_relu(x, 0.1),
        "roots": tf.sqrt(tf.exp(x)) + tf.math.log(tf.square(y) + 1.0),
        "classes": tf.one_hot(tf.cast(abs(x), "int32"), 3),
        "clip": tf.clip_by_value(x, -1.0, 1.0),
        "extremes": tf.maximum(x, y) + tf.minimum(x, 0.5),
        "gather": tf.gather(x, [0, 1], axis=1),
        "tile": tf.tile(x, [1, 2, 1]),
        "pad": tf.pad(x, [[0, 0], [1, 1], [0, 0]]),
        "normal": tf.math.l2_normalize(x, -1),
        "resize": tf.image.resize(x[..., None], (6, 8)),
        "top_k": tf.math.top_k(x, 2)[0],
    }


def main():
    import tensorflow as tf
    import tf_keras as keras

    x, y = keras.Input((3, 4), name="x"), keras.Input((3, 4), name="y")
    model = keras.Model([x, y], outputs(tf, x, y))
    found = model(list(inputs()))
    recorded = {
        "config": json.loads(model.to_json())["config"],
        "outputs": {
            key: [float(f"{n:.8g}") for n in np.ravel(value).tolist()]
            for key, value in found.items()
        },
    }
    path = pathlib.Path(__file__).with_name("keras2_functions.json")
    path.write_text(json.dumps(recorded, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
