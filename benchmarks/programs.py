"""Time training steps of whole Keras programs, with each backend.

Each program is a Keras model, built from the same code with tapewright, with Keras on
TensorFlow (plain and with XLA) and with Keras on JAX. A step is the model's
``train_step`` on a fixed batch, in one ``tw.function``, ``tf.function`` or ``jax.jit``.
"""

import argparse
import math
import os
import statistics
import sys

import numpy as np
from turns import arguments, save, serve, some_of, take_turns, working

NAMES = ("native", "tensorflow", "tensorflow_xla", "jax")


# --- programs: each returns a compiled model, and a function from a random generator to
# --- a batch


def table(keras):
    """12 categorical columns and 13 numbers, as in advertising; Adagrad."""
    layers = keras.layers
    columns = [layers.Input((), dtype="int32") for _ in range(12)]
    numbers = layers.Input((13,))
    x = [layers.Embedding(1000, 16)(column) for column in columns]
    x = layers.Concatenate()([*x, layers.BatchNormalization()(numbers)])
    for size in (256, 64):
        x = layers.Dense(size, activation="relu")(x)
    model = keras.Model([*columns, numbers], layers.Dense(1)(x))
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adagrad(0.01), loss)

    def data(g):
        ids = [g.integers(0, 1000, 1024).astype("i4") for _ in range(12)]
        x = (*ids, g.normal(size=(1024, 13)).astype("f4"))
        return x, g.integers(0, 2, (1024, 1)).astype("f4")

    return model, data


def seq2seq(keras):
    """A GRU encoder and decoder with dot-product attention."""
    layers = keras.layers
    source = layers.Input((24,), dtype="int32")
    target = layers.Input((20,), dtype="int32")
    encoded, state = layers.GRU(128, return_sequences=True, return_state=True)(
        layers.Embedding(2000, 64)(source)
    )
    decoded = layers.GRU(128, return_sequences=True)(
        layers.Embedding(2000, 64)(target), initial_state=state
    )
    context = layers.Attention()([decoded, encoded])
    x = layers.Dense(128, activation="tanh")(layers.Concatenate()([decoded, context]))
    model = keras.Model([source, target], layers.Dense(2000)(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(clipnorm=1.0), loss)

    def data(g):
        ids = [g.integers(0, 2000, (64, n)).astype("i4") for n in (24, 20, 20)]
        return tuple(ids[:2]), ids[2]

    return model, data


def mixer(keras):
    """An MLP-Mixer for images of 32x32 pixels in patches of 4x4."""
    layers = keras.layers
    inputs = layers.Input((32, 32, 3))
    x = layers.Conv2D(128, 4, strides=4)(inputs)
    x = layers.Reshape((64, 128))(x)
    for _ in range(4):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        y = layers.Dense(64)(layers.Dense(64, activation="gelu")(y))
        x = layers.add([x, layers.Permute((2, 1))(y)])
        y = layers.Dense(256, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.add([x, layers.Dense(128)(y)])
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return _classifier(keras, inputs, x, (32, 32, 32, 3), keras.optimizers.AdamW())


def wide_and_deep(keras):
    """Crossed categories beside an MLP; FTRL."""
    layers = keras.layers
    ids, numbers = layers.Input((8,), dtype="int32"), layers.Input((16,))
    wide = layers.Flatten()(layers.Embedding(20000, 1)(ids))
    x = layers.Flatten()(layers.Embedding(20000, 8)(ids))
    x = layers.Concatenate()([x, numbers])
    for size in (128, 128, 64):
        x = layers.Dense(size, activation="relu")(x)
    outputs = layers.Dense(1, activation="sigmoid")(layers.Concatenate()([wide, x]))
    model = keras.Model([ids, numbers], outputs)
    model.compile(keras.optimizers.Ftrl(0.01), "binary_crossentropy")

    def data(g):
        x = g.integers(0, 20000, (512, 8)).astype("i4"), _normal(g, 512, 16)
        return x, g.integers(0, 2, (512, 1)).astype("f4")

    return model, data


def wavenet(keras):
    """Dilated causal convolutions with gates, for audio."""
    layers = keras.layers
    inputs = layers.Input((1024, 1))
    x, skips = layers.Conv1D(24, 2, padding="causal")(inputs), []
    for dilation in (1, 2, 4, 8, 16, 32, 64, 128):
        options = {"padding": "causal", "dilation_rate": dilation}
        tanh = layers.Conv1D(24, 2, activation="tanh", **options)(x)
        gate = layers.Conv1D(24, 2, activation="sigmoid", **options)(x)
        y = layers.Conv1D(24, 1)(layers.multiply([tanh, gate]))
        skips.append(y)
        x = layers.add([x, y])
    x = layers.Activation("relu")(layers.add(skips))
    outputs = layers.Conv1D(64, 1)(layers.Conv1D(32, 1, activation="relu")(x))
    model = keras.Model(inputs, outputs)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    return model, lambda g: (_normal(g, 8, 1024, 1), g.integers(0, 64, (8, 1024)))


def autoencoder(keras):
    """Strided convolutions and their transposes."""
    layers = keras.layers
    inputs = x = layers.Input((64, 64, 3))
    for size in (16, 32, 64):
        x = layers.Conv2D(size, 3, strides=2, padding="same")(x)
        x = layers.LeakyReLU()(layers.BatchNormalization()(x))
    x = layers.Dense(64)(layers.Flatten()(x))
    x = layers.Reshape((8, 8, 64))(layers.Dense(4096, activation="relu")(x))
    for size in (32, 16, 8):
        x = layers.Conv2DTranspose(size, 3, strides=2, padding="same")(x)
        x = layers.LeakyReLU()(layers.BatchNormalization()(x))
    model = keras.Model(inputs, layers.Conv2D(3, 3, padding="same")(x))
    model.compile("rmsprop", "mse")

    def data(g):
        images = _normal(g, 16, 64, 64, 3)
        return images, images

    return model, data


def video(keras):
    """The next frames of a film, by convolutional LSTMs."""
    layers = keras.layers
    inputs = x = layers.Input((8, 32, 32, 1))
    for _ in range(2):
        x = layers.ConvLSTM2D(16, 3, padding="same", return_sequences=True)(x)
        x = layers.BatchNormalization()(x)
    outputs = layers.Conv3D(1, 3, padding="same", activation="sigmoid")(x)
    model = keras.Model(inputs, outputs)
    model.compile("adam", "mse")
    return model, lambda g: (_normal(g, 4, 8, 32, 32, 1), g.random((4, 8, 32, 32, 1)))


def volumes(keras):
    """Convolutions in three dimensions, as of scans."""
    layers = keras.layers
    inputs = x = layers.Input((24, 24, 24, 1))
    for size in (16, 32, 64):
        x = layers.Conv3D(size, 3, padding="same", activation="relu")(x)
        x = layers.BatchNormalization()(layers.MaxPooling3D(2)(x))
    x = layers.GlobalAveragePooling3D()(x)
    return _classifier(keras, inputs, x, (8, 24, 24, 24, 1), "adam")


def tagger(keras):
    """A label for each word, by a bidirectional LSTM with masks."""
    layers = keras.layers
    inputs = layers.Input((40,), dtype="int32")
    x = layers.Embedding(5000, 64, mask_zero=True)(inputs)
    x = layers.Bidirectional(layers.LSTM(64, return_sequences=True))(x)
    outputs = layers.TimeDistributed(layers.Dense(17))(x)
    model = keras.Model(inputs, outputs)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)

    def data(g):
        words = g.integers(1, 5000, (32, 40)).astype("i4")
        words[np.arange(40) >= g.integers(5, 41, (32, 1))] = 0
        return words, g.integers(0, 17, (32, 40))

    return model, data


def text_cnn(keras):
    """Convolutions of several widths over words."""
    layers = keras.layers
    inputs = layers.Input((100,), dtype="int32")
    x = layers.Embedding(8000, 64)(inputs)
    parts = [layers.Conv1D(64, width, activation="relu")(x) for width in (3, 4, 5)]
    x = layers.Concatenate()([layers.GlobalMaxPooling1D()(part) for part in parts])
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile("adam", "binary_crossentropy")

    def data(g):
        words = g.integers(0, 8000, (64, 100)).astype("i4")
        return words, g.integers(0, 2, (64, 1)).astype("f4")

    return model, data


def towers(keras):
    """Two towers of a recommender; the items of the batch are the classes."""
    layers = keras.layers
    user, item = (layers.Input((), dtype="int32") for _ in range(2))

    def tower(ids, count):
        x = layers.Embedding(count, 32)(ids)
        x = layers.Dense(32)(layers.Dense(64, activation="relu")(x))
        return layers.UnitNormalization()(x)

    x, y = tower(user, 30000), tower(item, 10000)
    scores = keras.ops.matmul(x, keras.ops.transpose(y))
    model = keras.Model([user, item], scores)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adagrad", loss)

    def data(g):
        ids = g.integers(0, 10000, (2, 256)).astype("i4")
        return tuple(ids), np.arange(256)

    return model, data


def squeezed(keras):
    """Inverted residuals with squeeze and excitation, as in EfficientNet."""
    layers = keras.layers

    def normalized(x):
        return layers.Activation("silu")(layers.BatchNormalization()(x))

    inputs = layers.Input((48, 48, 3))
    x = normalized(layers.Conv2D(16, 3, strides=2, padding="same")(inputs))
    for size, strides in ((24, 2), (24, 1), (40, 2), (40, 1)):
        y = normalized(layers.Conv2D(4 * x.shape[-1], 1)(x))
        y = layers.DepthwiseConv2D(3, strides=strides, padding="same")(y)
        y = normalized(y)
        z = layers.GlobalAveragePooling2D(keepdims=True)(y)
        z = layers.Conv2D(x.shape[-1] // 4, 1, activation="silu")(z)
        z = layers.Conv2D(y.shape[-1], 1, activation="sigmoid")(z)
        y = layers.Conv2D(size, 1)(layers.multiply([y, z]))
        y = layers.BatchNormalization()(y)
        x = layers.add([x, y]) if strides == 1 else y
    x = layers.GlobalAveragePooling2D()(x)
    return _classifier(keras, inputs, x, (32, 48, 48, 3), "adamw")


def vit(keras):
    """A vision transformer."""
    layers = keras.layers
    inputs = layers.Input((32, 32, 3))
    x = layers.Reshape((64, 96))(layers.Conv2D(96, 4, strides=4)(inputs))
    for _ in range(4):
        y = layers.LayerNormalization()(x)
        x = layers.add([x, layers.MultiHeadAttention(6, 16)(y, y)])
        y = layers.Dense(192, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.add([x, layers.Dense(96)(y)])
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    optimizer = keras.optimizers.AdamW(global_clipnorm=1.0)
    return _classifier(keras, inputs, x, (32, 32, 32, 3), optimizer)


def groups(keras):
    """A residual network with group normalization; momentum."""
    layers = keras.layers
    inputs = layers.Input((32, 32, 3))
    x = layers.Conv2D(32, 3, padding="same")(inputs)
    for size in (32, 64, 128):
        y = layers.Activation("relu")(layers.GroupNormalization(8)(x))
        y = layers.Conv2D(size, 3, strides=2, padding="same")(y)
        y = layers.Activation("relu")(layers.GroupNormalization(8)(y))
        y = layers.Conv2D(size, 3, padding="same")(y)
        x = layers.add([layers.Conv2D(size, 1, strides=2)(x), y])
    x = layers.GlobalAveragePooling2D()(layers.Activation("relu")(x))
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True)
    return _classifier(keras, inputs, x, (32, 32, 32, 3), optimizer)


def _normal(generator, *shape):
    return generator.normal(size=shape).astype("f4")


def _classifier(keras, inputs, x, shape, optimizer):
    model = keras.Model(inputs, keras.layers.Dense(10)(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss)

    def data(g):
        return g.normal(size=shape).astype("f4"), g.integers(0, 10, shape[0])

    return model, data


PROGRAMS = {
    each.__name__: each
    for each in (
        table, seq2seq, mixer, wide_and_deep, wavenet, autoencoder, video, volumes,
        tagger, text_cnn, towers, squeezed, vit, groups,
    )
}  # fmt: skip


# --- one step


def make(name, program):
    """Return the step of a program, and its loss as numbers to compare."""
    if name == "native":
        import tapewright as tf

        tf.get_logger().setLevel("ERROR")
        keras = tf.keras
    else:
        os.environ["KERAS_BACKEND"] = "jax" if name == "jax" else "tensorflow"
        import keras

        if name != "jax":
            import tensorflow as tf
    keras.utils.set_random_seed(0)
    model, data = PROGRAMS[program](keras)
    generator = np.random.default_rng(0)
    model.set_weights([_weight(generator, w) for w in model.get_weights()])
    x, y = data(generator)
    if name == "jax":
        step = _jax_step(model, x, y)
    else:
        model.optimizer.build(model.trainable_variables)
        batch = tf.nest.map_structure(tf.constant, (x, y))
        compiled = {"jit_compile": True} if name == "tensorflow_xla" else {}
        train_step = tf.function(model.train_step, **compiled)
        step = lambda: train_step(batch)  # noqa: E731
    return step, (lambda logs: [[float(logs["loss"])]])


def _weight(generator, weight):
    """Return a random array like a weight, the same for all libraries."""
    if weight.ndim < 2:
        return weight
    scale = np.prod(weight.shape[:-1]) ** -0.5
    return (generator.normal(size=weight.shape) * scale).astype(weight.dtype)


def _jax_step(model, x, y):
    import jax

    model.optimizer.build(model.trainable_variables)
    state = [
        [v.value for v in variables]
        for variables in (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
    ]
    x, y = jax.tree.map(jax.numpy.asarray, (list(x) if isinstance(x, tuple) else x, y))
    compiled = jax.jit(model.train_step, donate_argnums=0)

    def step():
        nonlocal state
        logs, state = compiled(state, (x, y))
        return logs

    step.wait = jax.block_until_ready
    return step


# --- tables


def measure(program, options):
    """Return the sorted seconds of the steps of a program, by name."""
    with working(options.peers, options.realtime) as workers:
        losses, running = {}, []
        for worker in workers:
            try:
                losses[worker.name] = worker.ask(make=[program])["numbers"]
                running.append(worker)
            except RuntimeError as error:
                print(error, file=sys.stderr)
        for name, found in losses.items():
            if not np.allclose(found, next(iter(losses.values())), rtol=2e-3):
                print(f"{program}: other numbers from {name}: {found}", file=sys.stderr)
        take_turns(running, options.rounds, options.seconds)
        return {worker.name: sorted(worker.times) for worker in running}


def compare(programs, names, description):
    """Parse the command line, and print a table of the steps of the programs."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--programs", default=",".join(programs), help="rows to run")
    options = arguments(parser, names, rounds=5, seconds=0.5)
    chosen = some_of(parser, "--programs", options.programs, programs)
    print(
        f"| median (minimum), ms | {' | '.join(options.peers)} | native / best peer |"
    )
    print(f"| --- {'| ---: ' * (len(options.peers) + 1)}|")
    figures, ratios = {}, []
    for program in chosen:
        times = figures[program] = measure(program, options)
        cells, middle = [], {}
        for name in options.peers:
            found = times.get(name, [math.nan])
            middle[name] = statistics.median(found)
            cells.append(f"{1e3 * middle[name]:.3g} ({1e3 * found[0]:.3g})")
        ours = middle.pop("native", math.nan)
        ratios.append(ours / np.nanmin([math.inf, *middle.values()]))
        print(f"| {program} | {' | '.join(cells)} | {ratios[-1]:.2f} |", flush=True)
    print(f"\nmedian of native / best peer: {statistics.median(ratios):.2f}")
    save(figures, options.json)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve(make, *sys.argv[2:])
    else:
        compare(PROGRAMS, NAMES, __doc__)
