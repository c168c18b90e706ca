"""Time first training steps: with an empty cache, of a changed model, and cached.

Each program is a Keras model, built from the same code with tapewright, with Keras on
TensorFlow and with Keras on JAX. The last two programs need a tape, so not on JAX. Each
step runs in a process of its own; the time of ``train_on_batch`` includes tracing and
compilation, not imports. ``changed`` is the first step of a slightly changed model after
the first one, with what it has left in tapewright's cache; ``cached`` the same model in a
new process. The peers have no cache.
"""

import argparse
import functools
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

from turns import inherited

PEERS = ("tapewright", "tensorflow", "jax")


# --- programs: each returns a compiled model, and the shape of a batch

# Those of a classifier return the inputs, what the last layer reads, and the shape.


def mlp(keras, changed):
    inputs = x = keras.layers.Input((784,))
    for size in (256, 96 if changed else 128):
        x = keras.layers.Dense(size, activation="relu")(x)
    return inputs, x, (128, 784)


def convnet(keras, changed):
    layers = keras.layers
    inputs = x = layers.Input((28, 28, 1))
    for size in (32, 48 if changed else 64):
        x = layers.Conv2D(size, 3, activation="relu")(x)
        x = layers.MaxPooling2D(2)(x)
    return inputs, layers.Dropout(0.5)(layers.Flatten()(x)), (64, 28, 28, 1)


def transformer(keras, changed):
    layers = keras.layers
    inputs = layers.Input((64, 32))
    x = layers.Dense(96)(inputs)
    for _ in range(3 if changed else 2):
        y = layers.LayerNormalization()(x)
        x = layers.add([x, layers.MultiHeadAttention(4, 24)(y, y)])
        y = layers.Dense(384, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.add([x, layers.Dense(96)(y)])
    x = layers.LayerNormalization()(x)
    return inputs, layers.GlobalAveragePooling1D()(x), (32, 64, 32)


def recurrent(keras, changed):
    layers = keras.layers
    inputs = layers.Input((50, 32))
    x = layers.LSTM(48 if changed else 64, return_sequences=True)(inputs)
    return inputs, layers.Bidirectional(layers.GRU(32))(x), (32, 50, 32)


def unet(keras, changed):
    layers = keras.layers

    def twice(x, size):
        for _ in range(2):
            x = layers.Conv2D(size, 3, padding="same", activation="relu")(x)
        return x

    inputs = x = layers.Input((64, 64, 3))
    sizes, kept = (16, 32, 48 if changed else 64), []
    for size in sizes:
        kept.append(twice(x, size))
        x = layers.MaxPooling2D(2)(kept[-1])
    for size in reversed(sizes):
        x = layers.Conv2DTranspose(size, 3, strides=2, padding="same")(x)
        x = twice(layers.Concatenate()([x, kept.pop()]), size)
    return inputs, layers.GlobalAveragePooling2D()(x), (8, 64, 64, 3)


def xception(keras, changed):
    layers = keras.layers

    def normalized(x):
        return layers.BatchNormalization()(x)

    inputs = layers.Input((48, 48, 3))
    x = layers.Conv2D(32, 3, strides=2, padding="same")(inputs)
    x = residual = layers.Activation("relu")(normalized(x))
    for size in (64, 128, 256, 320 if changed else 384):
        for _ in range(2):
            x = layers.Activation("relu")(x)
            x = normalized(layers.SeparableConv2D(size, 3, padding="same")(x))
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        residual = layers.Conv2D(size, 1, strides=2, padding="same")(residual)
        x = residual = layers.add([x, residual])
    x = normalized(layers.SeparableConv2D(512, 3, padding="same")(x))
    x = layers.GlobalAveragePooling2D()(layers.Activation("relu")(x))
    return inputs, x, (32, 48, 48, 3)


def densenet(keras, changed):
    layers, growth = keras.layers, 16 if changed else 12

    def convolved(x, size, width):
        x = layers.Activation("relu")(layers.BatchNormalization()(x))
        return layers.Conv2D(size, width, padding="same")(x)

    inputs = layers.Input((32, 32, 3))
    x = layers.Conv2D(24, 3, padding="same")(inputs)
    for block in range(3):
        for _ in range(4):
            y = convolved(convolved(x, 4 * growth, 1), growth, 3)
            x = layers.Concatenate()([x, y])
        if block < 2:
            x = layers.AveragePooling2D(2)(convolved(x, x.shape[-1] // 2, 1))
    return inputs, layers.GlobalAveragePooling2D()(x), (32, 32, 32, 3)


def mobilenet(keras, changed):
    shape = (96, 96, 3)
    model = keras.applications.MobileNetV2(shape, include_top=False, weights=None)
    x = keras.layers.GlobalAveragePooling2D()(model.output)
    x = keras.layers.Dense(64, activation="relu")(x) if changed else x
    return model.input, x, (16, *shape)


def classifier(make, keras, changed):
    inputs, x, shape = make(keras, changed)
    outputs = keras.layers.Dense(10, activation="softmax")(x)
    model = keras.Model(inputs, outputs)
    model.compile("adam", "sparse_categorical_crossentropy")
    return model, shape


# --- programs with train steps of their own, for which a tape is needed


def sam(keras, changed):
    """A convnet with sharpness-aware minimization: two gradients in a step."""
    tf = tapes()

    class Sharpness(keras.Model):
        def gradients(self, images, labels):
            with tf.GradientTape() as tape:
                answers = self(images, training=True)
                loss = self.compute_loss(images, labels, answers)
            return loss, tape.gradient(loss, self.trainable_variables)

        def train_step(self, data):
            images, labels, *_ = data
            weights = self.trainable_variables
            loss, gradients = self.gradients(images, labels)
            norm = tf.sqrt(sum([tf.reduce_sum(g * g) for g in gradients]))
            steps = [0.05 * g / (norm + 1e-12) for g in gradients]
            for weight, step in zip(weights, steps):
                weight.assign_add(step)
            _, gradients = self.gradients(images, labels)
            for weight, step in zip(weights, steps):
                weight.assign_sub(step)
            self.optimizer.apply_gradients(zip(gradients, weights))
            return {"loss": loss}

    inputs, x, shape = convnet(keras, changed)
    model = Sharpness(inputs, keras.layers.Dense(10, activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy")
    return model, shape


def wgan(keras, changed):
    """A WGAN with a gradient penalty: a step of the critic and one of the generator."""
    tf, layers, noise = tapes(), keras.layers, 64
    critic, generator = keras.Sequential(), keras.Sequential()
    critic.add(layers.Input((28, 28, 1)))
    for size in (32, 48 if changed else 64):
        critic.add(layers.Conv2D(size, 5, strides=2, padding="same"))
        critic.add(layers.LeakyReLU(0.2))
    critic.add(layers.Flatten())
    critic.add(layers.Dense(1))
    generator.add(layers.Input((noise,)))
    generator.add(layers.Dense(7 * 7 * 64))
    generator.add(layers.Reshape((7, 7, 64)))
    for size in (64, 32):
        generator.add(layers.BatchNormalization())
        generator.add(layers.LeakyReLU(0.2))
        generator.add(
            layers.Conv2DTranspose(size, 5, strides=2, padding="same", use_bias=False)
        )
    generator.add(layers.Conv2D(1, 5, padding="same", activation="tanh"))

    class Wasserstein(keras.Model):
        def __init__(self):
            super().__init__()
            self.critic, self.generator = critic, generator
            self.other = keras.optimizers.Adam(2e-4, 0.5)

        def train_step(self, data):
            images, *_ = data
            count = images.shape[0]
            weights = self.critic.trainable_variables
            made = self.generator(tf.random.normal((count, noise)), training=True)
            with tf.GradientTape() as tape:
                shares = tf.random.uniform((count, 1, 1, 1))
                between = images + shares * (made - images)
                with tf.GradientTape() as inner:
                    inner.watch(between)
                    answer = self.critic(between, training=True)
                slopes = inner.gradient(answer, between)
                norms = tf.sqrt(tf.reduce_sum(slopes * slopes, axis=[1, 2, 3]) + 1e-12)
                scores = [self.critic(x, training=True) for x in (made, images)]
                loss = tf.reduce_mean(scores[0]) - tf.reduce_mean(scores[1])
                loss += 10.0 * tf.reduce_mean((norms - 1.0) ** 2)
            found = tape.gradient(loss, weights)
            self.optimizer.apply_gradients(zip(found, weights))
            weights = self.generator.trainable_variables
            with tf.GradientTape() as tape:
                made = self.generator(tf.random.normal((count, noise)), training=True)
                other = -tf.reduce_mean(self.critic(made, training=True))
            self.other.apply_gradients(zip(tape.gradient(other, weights), weights))
            return {"loss": loss, "generator": other}

    model = Wasserstein()
    model.compile(keras.optimizers.Adam(2e-4, 0.5))
    return model, (64, 28, 28, 1)


CLASSIFIERS = (
    mlp, convnet, transformer, recurrent, unet, xception, densenet, mobilenet,
)  # fmt: skip
TAPED = (sam, wgan)
PROGRAMS = {
    **{each.__name__: functools.partial(classifier, each) for each in CLASSIFIERS},
    **{each.__name__: each for each in TAPED},
}


def tapes():
    """Return the module whose tapes the train steps use."""
    return sys.modules.get("tapewright") or importlib.import_module("tensorflow")


# --- one step


def first_step(peer, name, changed):
    """Print the seconds of the first step of a program, and its loss."""
    if peer == "tapewright":
        import tapewright

        tapewright.get_logger().setLevel("ERROR")
        keras = tapewright.keras
    else:
        os.environ["KERAS_BACKEND"] = peer
        import keras
    import numpy as np

    model, shape = PROGRAMS[name](keras, changed)
    generator = np.random.default_rng(0)
    images = generator.normal(size=shape).astype(np.float32)
    labels = generator.integers(0, 10, shape[0])
    start = time.perf_counter()
    losses = model.train_on_batch(images, labels, return_dict=True)
    loss = float(losses["loss"])
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "loss": loss}))


def run(peer, name, changed, cache):
    """Return the seconds of a first step in a new process."""
    command = [sys.executable, __file__, "--step", peer, name, str(int(changed))]
    environment = {**inherited(), "TAPEWRIGHT_CACHE": cache}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{peer}: {name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])["seconds"]


# --- tables


def measure(name, peers, rounds):
    """Return the minima of the seconds of a program, by column."""
    found = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            times = {
                "cold": run("tapewright", name, False, cache),
                "changed": run("tapewright", name, True, cache),
                "cached": run("tapewright", name, False, cache),
            }
        for peer in peers:
            has_tapes = peer != "jax" or name not in [each.__name__ for each in TAPED]
            times[peer] = run(peer, name, False, "") if has_tapes else math.nan
        found = {key: min(t, found.get(key, t)) for key, t in times.items()}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument(
        "--peers", default="tensorflow", help="tensorflow, jax, or none"
    )
    parser.add_argument("--rounds", type=int, default=3, help="minima are printed")
    parser.add_argument("--json", help="file to save the figures in")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        peer, name, changed = given.step
        return first_step(peer, name, changed == "1")
    peers = [each for each in given.peers.split(",") if each in PEERS[1:]]
    columns = ["cold", "changed", "cached", *peers]
    ratios = [f"cold / {peer}" for peer in peers]
    print(f"| first step, s | {' | '.join([*columns, *ratios, 'changed / cold'])} |")
    print(f"| --- {'| ---: ' * (len(columns) + len(ratios) + 1)}|")
    figures = {}
    for name in given.programs.split(","):
        row = figures[name] = measure(name, peers, given.rounds)
        shares = [row["cold"] / row[peer] for peer in peers]
        numbers = [
            *[row[each] for each in columns],
            *shares,
            row["changed"] / row["cold"],
        ]
        cells = " | ".join(["" if each != each else f"{each:.2f}" for each in numbers])
        print(f"| {name} | {cells} |", flush=True)
    for peer in peers:
        found = [row["cold"] / row[peer] for row in figures.values() if row[peer] > 0]
        if found:
            print(f"\nmedian of cold / {peer}: {statistics.median(found):.2f}")
    if given.json:
        with open(given.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
