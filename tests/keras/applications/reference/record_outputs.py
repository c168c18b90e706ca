"""Writes ``outputs.npz``: what small networks of `keras.applications` compute.

    KERAS_BACKEND=tensorflow python tests/keras/applications/reference/record_outputs.py

with Keras 3. Weights are noise of a fixed seed, so that only results are stored.
"""

from pathlib import Path

import numpy as np

# Architecture, one for each kind of block -> height and width of images, what the weights
# are multiplied by to keep the signal alive, arguments.
NETWORKS = {
    "MobileNet": (33, 48, 1.4, {"alpha": 0.25}),
    "MobileNetV2": (33, 48, 1.4, {"alpha": 0.35}),
    "MobileNetV3Small": (40, 33, 1.4, {}),
    "MobileNetV3Large": (32, 32, 1.4, {"alpha": 0.75, "minimalistic": True}),
    "ResNet50": (32, 32, 1.4, {}),
    "ResNet50V2": (32, 32, 1.4, {}),
    "VGG16": (32, 32, 1.4, {"pooling": "max"}),
    "DenseNet121": (32, 32, 1.4, {}),
    "Xception": (71, 71, 1.4, {}),
    "InceptionV3": (75, 75, 1.4, {}),
    "InceptionResNetV2": (75, 75, 1.4, {}),
    "EfficientNetB0": (33, 48, 1.7, {}),
    "EfficientNetV2B0": (33, 48, 1.4, {}),
    "ConvNeXtTiny": (32, 32, 1.4, {}),
    "NASNetMobile": (32, 32, 1.4, {}),
}
# Name -> architecture and arguments of networks that are trained.
TRAINED = {
    "MobileNetV2": {"alpha": 0.35, "input_shape": (64, 64, 3), "classes": 5},
    "MobileNetV3Small": {
        "alpha": 0.75, "input_shape": (64, 64, 3), "classes": 5, "dropout_rate": 0.0
    },
}  # fmt: skip
NOISE = np.resize(np.random.RandomState(0).standard_normal(99_991), 3_300_000)
NOISE = NOISE.astype("float32")
STRIDE = 29  # every so many of the outputs are kept


def fill(model, gain=1.4):
    """Give every weight noise whose size keeps the activations near one."""
    values = []
    for i, weight in enumerate(model.weights):
        shape = tuple(int(n) for n in weight.shape)
        numbers = NOISE[7 * i : 7 * i + np.prod(shape, dtype=int)].reshape(shape)
        name = weight.path.split("/")[-1]
        if name in ("count", "mean", "variance"):  # of Normalization
            numbers = np.full(shape, name == "variance", weight.dtype)
        elif name in ("gamma", "moving_variance"):
            numbers = 1 + np.clip(numbers, -2, 2) / 4
        elif len(shape) > 1:
            depthwise = len(shape) == 4 and shape[3] == 1
            fan_in = np.prod(shape[:2]) if depthwise else np.prod(shape[:-1])
            numbers = numbers * (gain / np.sqrt(fan_in))
        else:
            numbers = numbers / 8
        values.append(numbers)
    model.set_weights(values)


def images(shape, count=2):
    shape = (count, *[n or 32 for n in shape])
    pixels = np.arange(np.prod(shape)).reshape(shape)
    return (127.5 + 127.5 * np.sin(pixels * 0.37)).astype("float32")


def inference(keras, name):
    height, width, gain, arguments = NETWORKS[name]
    arguments = {"pooling": "avg", **arguments, "input_shape": (height, width, 3)}
    architecture = getattr(keras.applications, name)
    model = architecture(weights=None, include_top=False, **arguments)
    fill(model, gain)
    x = images(model.input_shape[1:])
    if not name.startswith(("Eff", "MobileNetV3", "Conv")):  # others scale pixels
        x = x / 127.5 - 1
    return np.asarray(model(x, training=False))[:, ::STRIDE]


def training(keras, tape, name, arguments, trace=lambda f: f):
    """Output, loss, gradients and moving means of one step, each as a few numbers.

    In float64: batch normalization over few entries loses three digits of float32.
    """
    keras.config.set_dtype_policy("float64")
    try:
        model = getattr(keras.applications, name)(weights=None, **arguments)
    finally:
        keras.config.set_dtype_policy("float32")
    fill(model)
    x = keras.ops.cast(images(model.input_shape[1:], 4) / 127.5 - 1, "float64")

    @trace
    def step(x):
        with tape() as recorded:
            outputs = model(x, training=True)
            loss = keras.ops.sum(outputs * outputs)
        return outputs, recorded.gradient(loss, model.trainable_variables)

    outputs, gradients = step(x)
    moving = [w for w in model.non_trainable_variables if "moving" in w.path]
    return {
        "outputs": np.asarray(outputs),
        "gradients": np.array([np.sqrt(np.sum(np.square(g))) for g in gradients]),
        "moving": np.array([np.sum(np.asarray(w)) for w in moving]),
    }


def main():
    import tensorflow as tf

    import keras

    found = {name: inference(keras, name) for name in NETWORKS}
    for name, arguments in TRAINED.items():
        for key, value in training(keras, tf.GradientTape, name, arguments).items():
            found[f"{name}/{key}"] = value
    for key, value in found.items():
        print(key, value.shape, np.abs(value).max(), np.abs(value[0] - value[-1]).max())
    np.savez_compressed(Path(__file__).with_name("outputs.npz"), **found)


if __name__ == "__main__":
    main()
