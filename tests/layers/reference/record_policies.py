"""Writes ``policies.json`` and ``policies.npz``: every layer of Keras under each policy.

Needs Keras 3.15 and TensorFlow, which tapewright does not:

    KERAS_BACKEND=tensorflow python tests/layers/reference/record_policies.py

``policies.json`` has the dtypes of weights, outputs and gradients by the weights, and, if
Keras refuses the case, None. ``policies.npz`` has the outputs, then the gradients of
``sum(outputs * c)``, in float32, flat and one after the other, of layers without random
numbers. Inputs, weights and ``c`` come from `numbers`. It also has the losses, the scales
and the last weights of `trained`.
"""

import json
import os
import pathlib
import zlib

import numpy as np

POLICIES = ("mixed_float16", "float16", "mixed_bfloat16", "bfloat16", "float64")
TRAINING = {"training": True}
ZEROS = {"recurrent_initializer": "zeros"}  # the default needs a QR, of no bfloat16
X, SEQUENCE, IMAGE, VOLUME = (2, 4), (2, 5, 3), (2, 6, 6, 2), (2, 4, 4, 4, 2)


class Ints(tuple):
    """The shape of integers from 0 to 3."""


class Bytes(tuple):
    """The shape of an image of bytes."""


def case(make, *inputs, listed=False, random=False, **call):
    """A function of the module of layers, the shapes of its inputs, arguments of the call."""
    return make, inputs, listed, random, call


CASES = {
    "Activation": case(lambda L: L.Activation("gelu"), X),
    "Activation, softmax": case(lambda L: L.Activation("softmax"), X),
    "Activation, log_softmax": case(lambda L: L.Activation("log_softmax"), X),
    "Activation, sigmoid": case(lambda L: L.Activation("sigmoid"), X),
    "ActivityRegularization": case(lambda L: L.ActivityRegularization(0.1, 0.1), X),
    "Dense": case(lambda L: L.Dense(3, activation="tanh"), X),
    "Dense, integers": case(lambda L: L.Dense(3), Ints(X)),
    "Dense, softmax": case(lambda L: L.Dense(3, activation="softmax"), X),
    "EinsumDense": case(lambda L: L.EinsumDense("ab,bc->ac", 3, bias_axes="c"), X),
    "Embedding": case(lambda L: L.Embedding(4, 3), Ints(X)),
    "Identity": case(lambda L: L.Identity(), X),
    "Identity, integers": case(lambda L: L.Identity(), Ints(X)),
    "Lambda": case(lambda L: L.Lambda(lambda x: x * 2.0, output_shape=(4,)), X),
    "Masking": case(lambda L: L.Masking(), SEQUENCE),
    "ReLU": case(lambda L: L.ReLU(), X),
    "LeakyReLU": case(lambda L: L.LeakyReLU(), X),
    "ELU": case(lambda L: L.ELU(), X),
    "PReLU": case(lambda L: L.PReLU(alpha_initializer="ones"), X),
    "Softmax": case(lambda L: L.Softmax(), X),
    "Softmax, two axes": case(lambda L: L.Softmax(axis=(1, 2)), SEQUENCE),
    "Add": case(lambda L: L.Add(), X, X, listed=True),
    "Add, integers": case(lambda L: L.Add(), Ints(X), Ints(X), listed=True),
    "Average": case(lambda L: L.Average(), X, X, listed=True),
    "Subtract": case(lambda L: L.Subtract(), X, X, listed=True),
    "Multiply": case(lambda L: L.Multiply(), X, X, listed=True),
    "Maximum": case(lambda L: L.Maximum(), X, X, listed=True),
    "Minimum": case(lambda L: L.Minimum(), X, X, listed=True),
    "Concatenate": case(lambda L: L.Concatenate(), X, X, listed=True),
    "Dot": case(lambda L: L.Dot(axes=1, normalize=True), X, X, listed=True),
    "Attention": case(
        lambda L: L.Attention(use_scale=True), SEQUENCE, SEQUENCE, listed=True
    ),
    "AdditiveAttention": case(
        lambda L: L.AdditiveAttention(), SEQUENCE, SEQUENCE, listed=True
    ),
    "MultiHeadAttention": case(
        lambda L: L.MultiHeadAttention(2, 3), SEQUENCE, SEQUENCE
    ),
    "MultiHeadAttention, causal": case(
        lambda L: L.MultiHeadAttention(2, 3), SEQUENCE, SEQUENCE, use_causal_mask=True
    ),
    "GroupQueryAttention": case(
        lambda L: L.GroupQueryAttention(3, 4, 2), SEQUENCE, SEQUENCE
    ),
    "BatchNormalization": case(lambda L: L.BatchNormalization(), X),
    "BatchNormalization, training": case(
        lambda L: L.BatchNormalization(), IMAGE, **TRAINING
    ),
    "GroupNormalization": case(lambda L: L.GroupNormalization(2), IMAGE),
    "LayerNormalization": case(lambda L: L.LayerNormalization(), SEQUENCE),
    "RMSNormalization": case(lambda L: L.RMSNormalization(), SEQUENCE),
    "UnitNormalization": case(lambda L: L.UnitNormalization(), X),
    "SpectralNormalization": case(lambda L: L.SpectralNormalization(L.Dense(3)), X),
    "SpectralNormalization, training": case(
        lambda L: L.SpectralNormalization(L.Dense(3)), X, **TRAINING
    ),
    "TimeDistributed": case(lambda L: L.TimeDistributed(L.Dense(2)), SEQUENCE),
    "Dropout": case(lambda L: L.Dropout(0.5), X, random=True, **TRAINING),
    "Dropout, inference": case(lambda L: L.Dropout(0.5), X),
    "AlphaDropout": case(lambda L: L.AlphaDropout(0.5), X, random=True, **TRAINING),
    "GaussianDropout": case(
        lambda L: L.GaussianDropout(0.5), X, random=True, **TRAINING
    ),
    "GaussianNoise": case(lambda L: L.GaussianNoise(0.5), X, random=True, **TRAINING),
    "SpatialDropout1D": case(
        lambda L: L.SpatialDropout1D(0.5), SEQUENCE, random=True, **TRAINING
    ),
    "SpatialDropout2D": case(
        lambda L: L.SpatialDropout2D(0.5), IMAGE, random=True, **TRAINING
    ),
    "SpatialDropout3D": case(
        lambda L: L.SpatialDropout3D(0.5), VOLUME, random=True, **TRAINING
    ),
    "Conv1D": case(lambda L: L.Conv1D(3, 2), SEQUENCE),
    "Conv2D": case(lambda L: L.Conv2D(3, 2, activation="relu"), IMAGE),
    "Conv2D, bytes": case(lambda L: L.Conv2D(3, 2), Bytes(IMAGE)),
    "Conv3D": case(lambda L: L.Conv3D(3, 2), VOLUME),
    "Conv1DTranspose": case(lambda L: L.Conv1DTranspose(3, 2), SEQUENCE),
    "Conv2DTranspose": case(lambda L: L.Conv2DTranspose(3, 2, strides=2), IMAGE),
    "Conv3DTranspose": case(lambda L: L.Conv3DTranspose(3, 2), VOLUME),
    "DepthwiseConv1D": case(lambda L: L.DepthwiseConv1D(2), SEQUENCE),
    "DepthwiseConv2D": case(lambda L: L.DepthwiseConv2D(2), IMAGE),
    "SeparableConv1D": case(lambda L: L.SeparableConv1D(3, 2), SEQUENCE),
    "SeparableConv2D": case(lambda L: L.SeparableConv2D(3, 2), IMAGE),
    "AveragePooling1D": case(lambda L: L.AveragePooling1D(2), SEQUENCE),
    "AveragePooling2D": case(lambda L: L.AveragePooling2D(2), IMAGE),
    "AveragePooling3D": case(lambda L: L.AveragePooling3D(2), VOLUME),
    "MaxPooling1D": case(lambda L: L.MaxPooling1D(2), SEQUENCE),
    "MaxPooling2D": case(lambda L: L.MaxPooling2D(2), IMAGE),
    "MaxPooling3D": case(lambda L: L.MaxPooling3D(2), VOLUME),
    "AdaptiveAveragePooling1D": case(lambda L: L.AdaptiveAveragePooling1D(2), SEQUENCE),
    "AdaptiveAveragePooling2D": case(lambda L: L.AdaptiveAveragePooling2D(2), IMAGE),
    "AdaptiveAveragePooling3D": case(lambda L: L.AdaptiveAveragePooling3D(2), VOLUME),
    "AdaptiveMaxPooling1D": case(lambda L: L.AdaptiveMaxPooling1D(2), SEQUENCE),
    "AdaptiveMaxPooling2D": case(lambda L: L.AdaptiveMaxPooling2D(2), IMAGE),
    "AdaptiveMaxPooling3D": case(lambda L: L.AdaptiveMaxPooling3D(2), VOLUME),
    "GlobalAveragePooling1D": case(lambda L: L.GlobalAveragePooling1D(), SEQUENCE),
    "GlobalAveragePooling2D": case(lambda L: L.GlobalAveragePooling2D(), IMAGE),
    "GlobalAveragePooling3D": case(lambda L: L.GlobalAveragePooling3D(), VOLUME),
    "GlobalMaxPooling1D": case(lambda L: L.GlobalMaxPooling1D(), SEQUENCE),
    "GlobalMaxPooling2D": case(lambda L: L.GlobalMaxPooling2D(), IMAGE),
    "GlobalMaxPooling3D": case(lambda L: L.GlobalMaxPooling3D(), VOLUME),
    "Cropping1D": case(lambda L: L.Cropping1D(1), SEQUENCE),
    "Cropping2D": case(lambda L: L.Cropping2D(1), IMAGE),
    "Cropping3D": case(lambda L: L.Cropping3D(1), VOLUME),
    "Flatten": case(lambda L: L.Flatten(), SEQUENCE),
    "Permute": case(lambda L: L.Permute((2, 1)), SEQUENCE),
    "RepeatVector": case(lambda L: L.RepeatVector(2), X),
    "Reshape": case(lambda L: L.Reshape((2, 2)), X),
    "UpSampling1D": case(lambda L: L.UpSampling1D(), SEQUENCE),
    "UpSampling2D": case(lambda L: L.UpSampling2D(), IMAGE),
    "UpSampling2D, bilinear": case(
        lambda L: L.UpSampling2D(interpolation="bilinear"), IMAGE
    ),
    "UpSampling3D": case(lambda L: L.UpSampling3D(), VOLUME),
    "ZeroPadding1D": case(lambda L: L.ZeroPadding1D(), SEQUENCE),
    "ZeroPadding2D": case(lambda L: L.ZeroPadding2D(), IMAGE),
    "ZeroPadding3D": case(lambda L: L.ZeroPadding3D(), VOLUME),
    "SimpleRNN": case(lambda L: L.SimpleRNN(3, return_state=True, **ZEROS), SEQUENCE),
    "LSTM": case(lambda L: L.LSTM(3, return_state=True, **ZEROS), SEQUENCE),
    "LSTM, relu": case(lambda L: L.LSTM(3, activation="relu", **ZEROS), SEQUENCE),
    "LSTM, unrolled": case(lambda L: L.LSTM(3, unroll=True, **ZEROS), SEQUENCE),
    "LSTM, stateful": case(lambda L: L.LSTM(3, stateful=True, **ZEROS), SEQUENCE),
    "GRU": case(lambda L: L.GRU(3, return_sequences=True, **ZEROS), SEQUENCE),
    "GRU, reset before": case(lambda L: L.GRU(3, reset_after=False, **ZEROS), SEQUENCE),
    "LSTM, dropout": case(
        lambda L: L.LSTM(3, dropout=0.5, **ZEROS), SEQUENCE, random=True, **TRAINING
    ),
    "RNN of cells": case(
        lambda L: L.RNN(
            [L.LSTMCell(3, **ZEROS), L.GRUCell(2, **ZEROS)], return_state=True
        ),
        SEQUENCE,
    ),
    "RNN of a cell in float32": case(
        lambda L: L.RNN(L.SimpleRNNCell(3, dtype="float32", **ZEROS)), SEQUENCE
    ),
    "Bidirectional": case(lambda L: L.Bidirectional(L.GRU(3, **ZEROS)), SEQUENCE),
    "Bidirectional, added": case(
        lambda L: L.Bidirectional(L.LSTM(3, **ZEROS), merge_mode="sum"), SEQUENCE
    ),
    "SimpleRNNCell": case(lambda L: L.SimpleRNNCell(3, **ZEROS), X, (2, 3)),
    "Rescaling": case(lambda L: L.Rescaling(0.5, 1.0), IMAGE),
    "Rescaling, bytes": case(lambda L: L.Rescaling(1 / 255), Bytes(IMAGE)),
    "Normalization": case(lambda L: L.Normalization(mean=0.5, variance=2.0), X),
    "Discretization": case(lambda L: L.Discretization([-0.5, 0.5]), X),
    "Discretization, one hot": case(
        lambda L: L.Discretization([-0.5, 0.5], output_mode="multi_hot"), X
    ),
    "CategoryEncoding": case(lambda L: L.CategoryEncoding(4), Ints(X)),
    "CategoryEncoding, counts": case(
        lambda L: L.CategoryEncoding(4, output_mode="count"), Ints(X)
    ),
    "CenterCrop": case(lambda L: L.CenterCrop(3, 3), IMAGE),
    "CenterCrop, bytes": case(lambda L: L.CenterCrop(3, 3), Bytes(IMAGE)),
    "Resizing": case(lambda L: L.Resizing(3, 4), IMAGE),
    "Resizing, bytes": case(lambda L: L.Resizing(3, 4), Bytes(IMAGE)),
    "RandomBrightness": case(
        lambda L: L.RandomBrightness(0.5), (2, 6, 6, 3), random=True, **TRAINING
    ),
    "RandomContrast": case(
        lambda L: L.RandomContrast(0.5), (2, 6, 6, 3), random=True, **TRAINING
    ),
    "RandomContrast, bytes": case(
        lambda L: L.RandomContrast(0.5), Bytes((2, 6, 6, 3)), random=True, **TRAINING
    ),
    "RandomCrop": case(
        lambda L: L.RandomCrop(3, 3), (2, 6, 6, 3), random=True, **TRAINING
    ),
    "RandomCrop, bytes": case(
        lambda L: L.RandomCrop(3, 3), Bytes((2, 6, 6, 3)), random=True, **TRAINING
    ),
    "RandomFlip": case(lambda L: L.RandomFlip(), (2, 6, 6, 3), random=True, **TRAINING),
    "RandomFlip, bytes": case(
        lambda L: L.RandomFlip(), Bytes((2, 6, 6, 3)), random=True, **TRAINING
    ),
    "RandomRotation": case(
        lambda L: L.RandomRotation(0.5), (2, 6, 6, 3), random=True, **TRAINING
    ),
    "RandomTranslation": case(
        lambda L: L.RandomTranslation(0.5, 0.5), (2, 6, 6, 3), random=True, **TRAINING
    ),
    "RandomZoom": case(
        lambda L: L.RandomZoom(0.5), (2, 6, 6, 3), random=True, **TRAINING
    ),
    "RandomZoom, bytes": case(
        lambda L: L.RandomZoom(0.5), Bytes((2, 6, 6, 3)), random=True, **TRAINING
    ),
}


def numbers(key, label, shape):
    """Multiples of 1/64 from -1 to 1, which every dtype holds; integers for `Ints`."""
    rng = np.random.default_rng(zlib.crc32(f"{key} {label}".encode()))
    if isinstance(shape, Ints):
        return rng.integers(0, 4, shape).astype("int32")
    if isinstance(shape, Bytes):
        return rng.integers(0, 256, shape).astype("uint8")
    return rng.integers(-64, 65, shape).astype("float32") / 64


def weight(key, i, name, shape):
    """The value of a weight; variances are positive."""
    value = numbers(key, f"weight {i}", tuple(shape))
    return np.abs(value) + 0.5 if "variance" in name else value


def inputs_of(key, shapes):
    return [numbers(key, f"input {i}", s) for i, s in enumerate(shapes)]


def trained(keras, large):
    """Losses and scales of ten steps in mixed_float16, and the weights after them.

    ``large``: whether the gradients of the first steps run over.
    """
    keras.config.set_dtype_policy("mixed_float16")
    L = keras.layers
    model = keras.Sequential(
        [
            L.Dense(4, activation="tanh"),
            L.BatchNormalization(momentum=0.5),
            L.Dense(1, kernel_regularizer="l2"),
        ]
    )
    x, y = numbers("trained", "x", (8, 3)), numbers("trained", "y", (8, 1))
    y = y + 40 if large else y
    model(x)
    for i, variable in enumerate(model.weights):
        value = weight("trained", i, variable.name, variable.shape)
        variable.assign(value)
    optimizer = keras.optimizers.SGD(1e-2 if large else 0.1, momentum=0.5)
    model.compile(optimizer, "mse")
    losses, scales = [], []
    for _ in range(10):
        losses.append(float(model.train_on_batch(x, y)))
        scales.append(float(model.optimizer.dynamic_scale.numpy()))
    weights = [np.ravel(v.numpy()).astype("float32") for v in model.weights]
    keras.config.set_dtype_policy("float32")
    return np.array(losses), np.array(scales), np.concatenate(weights)


def _record():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    import tensorflow as tf

    import keras

    def run(key, policy):
        make, shapes, listed, random, call = CASES[key]
        keras.config.set_dtype_policy(policy)
        layer = make(keras.layers)
        inputs = [tf.constant(x) for x in inputs_of(key, shapes)]
        args = [inputs] if listed else inputs
        if key.endswith("Cell"):
            args = [inputs[0], inputs[1:]]
        layer(*args, **call)
        for i, variable in enumerate(layer.weights):
            value = weight(key, i, variable.name, variable.shape)
            if "seed" not in variable.path:
                variable.assign(value)
        if getattr(layer, "stateful", False):
            layer.reset_state()
        with tf.GradientTape() as tape:
            outputs = tf.nest.flatten(layer(*args, **call))
            loss = sum(
                [
                    tf.reduce_sum(
                        tf.cast(y, "float64") * numbers(key, f"c{i}", tuple(y.shape))
                    )
                    for i, y in enumerate(outputs)
                ]
            )
        weights = [v for v in layer.weights if "seed" not in v.path]
        trainable = layer.trainable_weights
        slopes = tape.gradient(loss, [v.value for v in trainable])
        dtypes = {
            "weights": [v.dtype for v in weights],
            "outputs": [y.dtype.name for y in outputs],
            "gradients": [None if g is None else g.dtype.name for g in slopes],
        }
        slopes = [tf.convert_to_tensor(g) for g in slopes if g is not None]
        values = [np.ravel(tf.cast(x, "float32")) for x in (*outputs, *slopes)]
        return dtypes, None if random else np.concatenate(values)

    dtypes, values = {}, {}
    for key in CASES:
        for policy in POLICIES:
            name = f"{key}|{policy}"
            try:
                dtypes[name], value = run(key, policy)
            except Exception as error:  # noqa: BLE001
                print(f"{name}: {type(error).__name__}: {str(error)[:150]!r}")
                dtypes[name] = value = None
            if value is not None:
                values[name] = value
    for name, large in (("large", True), ("small", False)):
        parts = zip(("losses", "scales", "weights"), trained(keras, large))
        values |= {f"trained|{name}|{part}": value for part, value in parts}
        print(name, values[f"trained|{name}|losses"], values[f"trained|{name}|scales"])
    here = pathlib.Path(__file__).parent
    text = json.dumps(dtypes, separators=(",", ":")).replace('},"', '},\n"')
    (here / "policies.json").write_text(text + "\n")
    np.savez_compressed(here / "policies.npz", **values)


if __name__ == "__main__":
    _record()
