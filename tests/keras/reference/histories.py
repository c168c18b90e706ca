"""Models whose training is recorded from Keras: each a function of the module ``keras``.

It gives a compiled model and the arguments of `fit`. The code is Keras' own; tapewright
runs it with ``tapewright.keras`` in the place of ``keras``.
"""

import numpy as np

__all__ = ["MODELS", "blobs", "images", "sequences"]


def blobs(seed=0, size=96, features=6, classes=3):
    """Points around one center for each class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, size)
    centers = random.normal(size=(classes, features))
    points = centers[labels] + 0.7 * random.normal(size=(size, features))
    return points.astype("float32"), labels.astype("int32")


def images(seed=0, size=64, side=8):
    """Noise with a brighter row or a brighter column."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, size)
    pictures = 0.3 * random.random((size, side, side, 1))
    for picture, label, at in zip(pictures, labels, random.integers(0, side, size)):
        picture[(slice(None), at) if label else (at,)] += 0.7
    return pictures.astype("float32"), labels.astype("int32")


def sequences(seed=0, size=64, steps=7, words=12):
    """Sentences of different lengths, 0 behind the last word; is word 1 among them?"""
    random = np.random.default_rng(seed)
    ids = random.integers(2, words, (size, steps))
    labels = random.integers(0, 2, size)
    for sentence, label, length in zip(ids, labels, random.integers(3, steps, size)):
        sentence[random.integers(0, length)] = 1 if label else 2
        sentence[length:] = 0
    return ids.astype("int32"), labels.astype("float32")


def mlp(keras):
    """Dense, BatchNormalization, a regularizer; Adam; validation on the last part."""
    model = keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.Dense(8, activation="relu", kernel_regularizer="l2"),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(3),
        ]
    )
    model.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    x, y = blobs()
    return model, {"x": x, "y": y, "batch_size": 20, "validation_split": 0.25}


def convnet(keras):
    """Convolution, pooling, normalization over groups; SGD with Nesterov's momentum."""
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(4, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.GroupNormalization(2),
            keras.layers.SeparableConv2D(4, 3, activation="gelu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(2, activation="softmax"),
        ]
    )
    model.compile(
        keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        "sparse_categorical_crossentropy",
        metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(1)],
    )
    x, y = images()
    return model, {"x": x, "y": y, "batch_size": 16}


def lstm(keras):
    """An embedding with a mask, an LSTM and a bidirectional GRU; AdamW; class weights."""
    model = keras.Sequential(
        [
            keras.Input((7,), dtype="int32"),
            keras.layers.Embedding(12, 4, mask_zero=True),
            keras.layers.LSTM(5, return_sequences=True),
            keras.layers.Bidirectional(keras.layers.GRU(3)),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(
        keras.optimizers.AdamW(0.02, weight_decay=0.01, clipnorm=1.0),
        "binary_crossentropy",
        metrics=["accuracy", keras.metrics.AUC(name="auc")],
    )
    x, y = sequences()
    return model, {"x": x, "y": y, "batch_size": 24, "class_weight": {0: 1.0, 1: 2.5}}


def two_inputs(keras):
    """Two inputs, two outputs, a shared layer, weights of losses; a schedule."""
    a = keras.Input((6,), name="a")
    b = keras.Input((6,), name="b")
    shared = keras.layers.Dense(5, activation="tanh")
    left, right = shared(a), shared(b)
    joined = keras.layers.Concatenate()([left, keras.layers.Add()([left, right])])
    hidden = keras.layers.LayerNormalization()(joined)
    label = keras.layers.Dense(3, name="label")(hidden)
    size = keras.layers.Dense(1, name="size")(keras.layers.Multiply()([left, right]))
    model = keras.Model([a, b], [label, size])
    rate = keras.optimizers.schedules.ExponentialDecay(0.05, 5, 0.8)
    model.compile(
        keras.optimizers.RMSprop(rate),
        loss={
            "label": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            "size": keras.losses.Huber(),
        },
        loss_weights={"label": 1.0, "size": 0.3},
        metrics={"label": ["accuracy"], "size": ["mae"]},
    )
    x, y = blobs(1)
    other, _ = blobs(2)
    weight = np.linspace(0.5, 1.5, len(x)).astype("float32")
    return model, {
        "x": {"a": x, "b": other},
        "y": [y, x.sum(1, keepdims=True)],
        "sample_weight": [weight, weight[::-1].copy()],
        "batch_size": 16,
    }


def attention(keras):
    """Attention over an embedding with a mask, residuals; Nadam with an average."""
    ids = keras.Input((7,), dtype="int32")
    x = keras.layers.Embedding(12, 8, mask_zero=True)(ids)
    y = keras.layers.MultiHeadAttention(2, 4)(x, x)
    x = keras.layers.LayerNormalization()(keras.layers.Add()([x, y]))
    x = keras.layers.GlobalAveragePooling1D()(x)
    model = keras.Model(ids, keras.layers.Dense(1)(x))
    model.compile(
        keras.optimizers.Nadam(0.01, use_ema=True, ema_momentum=0.9),
        keras.losses.BinaryCrossentropy(from_logits=True),
    )
    x, y = sequences(3)
    return model, {"x": x, "y": y, "batch_size": 16}


MODELS = {f.__name__: f for f in (mlp, convnet, lstm, two_inputs, attention)}
