"""Compare training steps of whole models, on each target, with peers.

    python benchmarks/models.py                        (eight models, about ten minutes)
    python benchmarks/models.py --models lenet,unet --peers native,torch

A step computes the loss of one batch and its gradients, and applies Adam. It is traced by
``tw.function`` on each target, ``tf.function`` and ``jax.jit``; torch runs eagerly. A model is
one function over the layers of `families`, so that all libraries use the same layers and
weights. They must compute the same losses; otherwise their times are marked with ``!``.
Networks of `keras.applications` are written by Keras as ``.keras`` files and loaded by
tapewright; they are compared only with TensorFlow. The table has the form of ``layers.py``.
"""

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from families import (
    PLAIN,
    Attention,
    Convolution,
    Dense,
    Embedding,
    Entrywise,
    Join,
    Normalization,
    Pooling,
    Recurrent,
    to_torch,
)
from scaling import jax_adam, jax_state, jax_updated
from tables import Case, arguments, compare
from turns import PACKAGES, serve

__all__ = ["MODELS", "make"]

RATE, EPSILON = 1e-4, 1e-7
# Gradients of deep networks with random weights differ by some percent between any two
# implementations; losses only agree if the weights hardly change.
SMALL_RATE = 1e-8
IMAGE = (0, 3, 1, 2)  # axes of an image in torch's order
FOLDER = "BENCHMARKED_MODELS"  # environment variable with the folder of Keras files
SIDES, CLASSES = (96, 96, 3), 100  # of their inputs and outputs


# ------------------------------------------------------------------------- the networks


def conv(net, x, filters, size=3, name="Conv2D", **further):
    return net(Convolution, name, x, units=filters, kernel_size=size, **further)


def dense(net, x, units, **further):
    return net(Dense, "Dense", x, units=units, **further)


def relu(net, x):
    return net(Entrywise, "Activation", x, activation="relu")


def leaky(net, x):
    return net(Entrywise, "LeakyReLU", x, negative_slope=0.2)


def batch_norm(net, x):
    return net(Normalization, "BatchNormalization", x)


def halved(net, x):
    return net(Pooling, "MaxPooling2D", x, pool_size=2)


def lenet(net, x):
    for filters in (6, 16):
        x = halved(net, relu(net, conv(net, x, filters, 5)))
    x = net.reshape(x, (-1,))
    for units in (120, 84):
        x = dense(net, x, units, activation="relu")
    return dense(net, x, 10)


def resnet20(net, x):
    """Residual network for small images, after He et al. (2015), section 4.2."""
    x = relu(net, batch_norm(net, conv(net, x, 16)))
    for filters in (16, 32, 64):
        for block in range(3):
            stride = 2 if filters > 16 and block == 0 else 1
            y = relu(net, batch_norm(net, conv(net, x, filters, strides=stride)))
            y = batch_norm(net, conv(net, y, filters))
            if stride == 2:
                x = conv(net, x, filters, 1, strides=2)
            x = relu(net, net(Join, "Add", x, y))
    return dense(net, net(Pooling, "GlobalAveragePooling2D", x), 10)


def unet(net, x):
    """U-Net with four levels, down to 1/8 of the resolution, and skip connections."""

    def twice(x, filters):
        for _ in range(2):
            x = relu(net, conv(net, x, filters))
        return x

    seen = []
    for filters in (16, 32, 64):
        seen.append(twice(x, filters))
        x = halved(net, seen[-1])
    x = twice(x, 128)
    for filters, beside in zip((64, 32, 16), reversed(seen)):
        x = conv(net, x, filters, 4, "Conv2DTranspose", strides=2)
        x = twice(net(Join, "Concatenate", beside, x), filters)
    return conv(net, x, 3, 1)


def text_lstm(net, x):
    x = net(Embedding, "Embedding", x, units=64, rows=WORDS)
    x = net(Recurrent, "LSTM", x, units=64, return_sequences=False)
    return dense(net, x, 2)


def vit(net, x, positions):
    """Vision transformer: four blocks over 4x4 patches, and the mean of the outputs."""
    x = net.reshape(conv(net, x, 96, 4, strides=4), (64, 96))
    x = net(Join, "Add", x, net(Embedding, "Embedding", positions, units=96, rows=64))
    for _ in range(4):
        h = net(Normalization, "LayerNormalization", x)
        h = net(Attention, "MultiHeadAttention", h, units=4)
        x = net(Join, "Add", x, h)
        h = net(Normalization, "LayerNormalization", x)
        h = dense(net, dense(net, h, 192, activation="gelu"), 96)
        x = net(Join, "Add", x, h)
    x = net(Normalization, "LayerNormalization", x)
    return dense(net, net.reshape(x, (-1,)), 10)


def generator(net, z):
    x = net.reshape(leaky(net, dense(net, z, 7 * 7 * 128)), (7, 7, 128))
    for _ in range(2):
        x = leaky(net, conv(net, x, 128, 4, "Conv2DTranspose", strides=2))
    return net(Entrywise, "Activation", conv(net, x, 1, 7), activation="sigmoid")


def discriminator(net, x):
    for filters in (64, 128):
        x = leaky(net, conv(net, x, filters, strides=2))
    return dense(net, net(Pooling, "GlobalMaxPooling2D", x), 1)


# -------------------------------------------------------- the same in all the libraries


class Network:
    """A function over layers; its weights are created when it first runs.

    A subclass creates layers, calls them and reshapes with one library.
    """

    def __init__(self, function, mirrored=False):
        self.function, self.mirrored = function, mirrored
        self.rng, self.layers, self.weights = np.random.default_rng(0), [], []

    def __call__(self, family, name, *inputs, units=None, rows=None, **further):
        """Return the outputs of the layer for this call of the function."""
        if self.at == len(self.layers):
            shape = *self.shape(inputs[0]), *([rows] if rows else [])
            size = (*shape, units) if family.has_units else shape
            layer = family(name, size, **further)
            layer.mirrored = self.mirrored
            self.layers.append(self.made(layer, len(inputs)))
        self.at += 1
        return self.call(self.layers[self.at - 1], inputs)

    def run(self, weights, *inputs):
        """Return the outputs for these weights; a new network creates its weights."""
        self.at, self.next = 0, 0
        self.used = self.weights if weights is None else weights
        return self.function(self, *inputs)

    def made(self, layer, inputs):
        weights = self.converted(layer, layer.weights(self.rng), inputs)
        self.weights += weights
        return layer, len(weights)

    def call(self, made, inputs):
        layer, count = made
        self.next += count
        return self.applied(layer, *inputs, *self.used[self.next - count : self.next])


class KerasNetwork(Network):
    """Network as a functional Keras model."""

    def __init__(self, function, mirrored, keras, inputs):
        super().__init__(function)
        self.keras = keras
        inputs = [keras.Input(x.shape[1:], dtype=x.dtype.name) for x in inputs]
        self.model = keras.Model(inputs, self.run(None, *inputs))

    def made(self, layer, inputs):
        return layer, layer.keras(self.keras.layers)

    def call(self, made, inputs):
        layer, module = made
        y = layer.keras_call(module, inputs)
        weights = layer.weights(self.rng)
        for variable, value in zip(module.trainable_variables, weights, strict=True):
            variable.assign(value)
        return y

    def shape(self, x):
        return 1, *x.shape[1:]

    def reshape(self, x, shape):
        return self.keras.layers.Reshape(shape)(x)


class JaxNetwork(Network):
    def __init__(self, function, mirrored, inputs):
        import jax

        super().__init__(function)
        self.jax = jax
        jax.eval_shape(partial(self.run, None), *inputs)

    def converted(self, layer, weights, inputs):
        return weights

    def applied(self, layer, *tensors):
        return layer.jax(self.jax, *tensors)

    def shape(self, x):
        return x.shape

    def reshape(self, x, shape):
        return x.reshape((x.shape[0], *shape))


class TorchNetwork(Network):
    """Network on images with channels first, as views of channels last."""

    def __init__(self, function, mirrored, inputs):
        import torch

        super().__init__(function, mirrored)
        self.torch = torch
        with torch.no_grad():
            self.run(None, *inputs)
        for weight in self.weights:
            weight.requires_grad_()

    def converted(self, layer, weights, inputs):
        blanks = [np.zeros((1,) * len(layer.shape), "f4")] * inputs
        return layer.for_torch([*blanks, *weights])[inputs:]

    def applied(self, layer, *tensors):
        return layer.torch(self.torch, *tensors)

    def shape(self, x):
        n, *others = x.shape
        return (n, *others[1:], others[0]) if x.ndim == 4 else x.shape

    def reshape(self, x, shape):
        x = x.permute(0, 2, 3, 1) if x.ndim == 4 else x
        x = x.reshape((x.shape[0], *shape))
        return x.permute(0, 3, 1, 2) if x.ndim == 4 else x


# ------------------------------------------------------------------------ training steps


@dataclass
class Model:
    """A network and its data; shapes are without the batch, labels are one-hot."""

    function: Callable
    batch: int
    shape: tuple
    labels: tuple
    mirrored: bool = False  # torch pads on the other side; see `families`
    further: tuple = ()
    peers = None  # all of them

    def data(self):
        """Return ``(inputs, y)``."""
        rng, shape = np.random.default_rng(1), (self.batch, *self.shape)
        if len(shape) == 2:
            x = rng.integers(WORDS, size=shape, dtype="i4")
        else:
            x = rng.standard_normal(shape, "f4")
        *sides, classes = self.labels
        y = rng.integers(classes, size=(self.batch, *sides))
        return [x, *self.further], np.eye(classes, dtype="f4")[y]

    def step(self, name):
        """Return ``(step, number)`` of an implementation; ``number`` reads the loss."""
        inputs, y = self.data()
        if name == "jax":
            return self.jax_step(inputs, y)
        if name == "torch":
            return self.torch_step(inputs, y)
        tf = importlib.import_module(PACKAGES[name])
        network = KerasNetwork(self.function, self.mirrored, tf.keras, inputs)
        return keras_step(tf, network.model, inputs, y)

    def jax_step(self, inputs, y):
        import jax

        network = JaxNetwork(self.function, self.mirrored, inputs)

        def loss_of(weights, inputs, y):
            logits = network.run(weights, *inputs)
            return -(y * jax.nn.log_softmax(logits)).sum(-1).mean()

        return jax_adam(loss_of, network.weights, inputs, y, RATE)

    def torch_step(self, inputs, y):
        import torch

        sides = (1, 2) if self.mirrored else ()
        inputs = [to_torch(x, (IMAGE, sides) if x.ndim == 4 else PLAIN) for x in inputs]
        y = to_torch(y, (IMAGE, sides) if y.ndim == 4 else PLAIN)
        network = TorchNetwork(self.function, self.mirrored, inputs)
        adam = torch.optim.Adam(network.weights, RATE, eps=EPSILON, fused=True)

        def step():
            adam.zero_grad()
            logits = network.run(None, *inputs)
            loss = torch.nn.functional.cross_entropy(logits, y)
            loss.backward()
            adam.step()
            return loss

        return step, (lambda loss: loss.item())


def keras_step(tf, model, inputs, y, rate=RATE):
    variables = model.trainable_variables
    adam = tf.keras.optimizers.Adam(rate, epsilon=EPSILON)
    adam.build(variables)
    inputs, y = [tf.constant(x) for x in inputs], tf.constant(y)

    @tf.function
    def step(inputs, y):
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)
            losses = tf.nn.softmax_cross_entropy_with_logits(y, logits)
            loss = tf.reduce_mean(losses)
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    inputs = inputs[0] if len(inputs) == 1 else inputs
    return (lambda: step(inputs, y)), (lambda loss: float(loss.numpy()))


@dataclass
class Application:
    """A network of `keras.applications`, from a file in ``FOLDER``."""

    name: str
    batch: int
    peers = "native", "numpy", "tensorflow"

    def step(self, name):
        tf = importlib.import_module(PACKAGES[name])
        rng = np.random.default_rng(1)
        x = rng.standard_normal((self.batch, *SIDES), "f4")
        y = np.eye(CLASSES, dtype="f4")[rng.integers(CLASSES, size=self.batch)]
        path = os.path.join(os.environ[FOLDER], f"{self.name}.keras")
        return keras_step(tf, tf.keras.models.load_model(path), [x], y, SMALL_RATE)


class Dcgan:
    """One step of the discriminator and one of the generator, as in Keras' guide."""

    batch, peers = 64, None

    def data(self):
        """Return noise, images, and labels of generated and real images."""
        rng = np.random.default_rng(1)
        z = rng.standard_normal((self.batch, 128), "f4")
        real = rng.random((self.batch, 28, 28, 1), "f4")
        labels = np.repeat(np.array([[1], [0]], "f4"), self.batch, 0)
        return z, real, labels

    def step(self, name):
        if name == "jax":
            return self.jax_step(*self.data())
        if name == "torch":
            return self.torch_step(*self.data())
        return self.keras_step(importlib.import_module(PACKAGES[name]), *self.data())

    def keras_step(self, tf, z, real, labels):
        make = KerasNetwork(generator, False, tf.keras, [z]).model
        judge = KerasNetwork(discriminator, True, tf.keras, [real]).model
        adams = [tf.keras.optimizers.Adam(RATE, epsilon=EPSILON) for _ in range(2)]
        for adam, model in zip(adams, (judge, make)):
            adam.build(model.trainable_variables)
        z, real, labels = tf.constant(z), tf.constant(real), tf.constant(labels)

        def loss_of(labels, logits):
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
            return tf.reduce_mean(losses)

        @tf.function
        def step(z, real, labels):
            both = tf.concat([make(z, training=True), real], 0)
            with tf.GradientTape() as tape:
                judged = loss_of(labels, judge(both, training=True))
            variables = judge.trainable_variables
            gradients = tape.gradient(judged, variables)
            adams[0].apply_gradients(zip(gradients, variables))
            misleading = labels[self.batch :]
            with tf.GradientTape() as tape:
                logits = judge(make(z, training=True), training=True)
                made = loss_of(misleading, logits)
            variables = make.trainable_variables
            gradients = tape.gradient(made, variables)
            adams[1].apply_gradients(zip(gradients, variables))
            return judged + made

        return (lambda: step(z, real, labels)), (lambda loss: float(loss.numpy()))

    def torch_step(self, z, real, labels):
        import torch

        z, labels = torch.tensor(z), torch.tensor(labels)
        real = to_torch(real, (IMAGE, (1, 2)))
        make = TorchNetwork(generator, False, [z])
        judge = TorchNetwork(discriminator, True, [real])
        adams = [
            torch.optim.Adam(net.weights, RATE, eps=EPSILON, fused=True)
            for net in (judge, make)
        ]
        loss_of = torch.nn.functional.binary_cross_entropy_with_logits

        def mirrored(x):
            return x.flip(2, 3)

        def step():
            with torch.no_grad():
                both = torch.cat([mirrored(make.run(None, z)), real])
            adams[0].zero_grad()
            judged = loss_of(judge.run(None, both), labels)
            judged.backward()
            adams[0].step()
            adams[1].zero_grad()
            logits = judge.run(None, mirrored(make.run(None, z)))
            made = loss_of(logits, labels[self.batch :])
            made.backward()
            adams[1].step()
            return judged + made

        return step, (lambda loss: loss.item())

    def jax_step(self, z, real, labels):
        import jax

        make = JaxNetwork(generator, False, [z])
        judge = JaxNetwork(discriminator, True, [real])

        def loss_of(labels, logits):
            return (jax.nn.softplus(logits) - labels * logits).mean()

        def judged_of(weights, both, labels):
            return loss_of(labels, judge.run(weights, both))

        def made_of(weights, judging, z, labels):
            return loss_of(labels, judge.run(judging, make.run(weights, z)))

        @partial(jax.jit, donate_argnums=0)
        def train(states, z, real, labels):
            judging, making = states
            both = jax.numpy.concatenate([make.run(making[0], z), real])
            found = jax.value_and_grad(judged_of)(judging[0], both, labels)
            judged, gradients = found
            judging = jax_updated(judging, gradients, RATE)
            misleading = labels[self.batch :]
            found = jax.value_and_grad(made_of)(making[0], judging[0], z, misleading)
            made, gradients = found
            return (judging, jax_updated(making, gradients, RATE)), judged + made

        states = jax_state(judge.weights), jax_state(make.weights)
        z, real, labels = map(jax.numpy.asarray, (z, real, labels))

        def step():
            nonlocal states
            states, loss = train(states, z, real, labels)
            return jax.block_until_ready(loss)

        return step, float


WORDS = 10000
POSITIONS = np.arange(64, dtype="i4")[None]
MODELS = {
    "lenet": Model(lenet, 128, (28, 28, 1), (10,)),
    "resnet20": Model(resnet20, 64, (32, 32, 3), (10,), mirrored=True),
    "unet": Model(unet, 8, (64, 64, 3), (64, 64, 3)),
    "lstm": Model(text_lstm, 32, (80,), (2,)),
    "vit": Model(vit, 32, (32, 32, 3), (10,), further=(POSITIONS,)),
    "dcgan": Dcgan(),
    "MobileNetV2": Application("MobileNetV2", 16),
    "ResNet50": Application("ResNet50", 8),
}


def make(name, which, size):
    """Return the step of a model, and its loss as numbers to compare."""
    step, number = MODELS[which].step(name)
    return step, (lambda loss: [[number(loss)]])


def write_files(folder):
    """Write networks of `keras.applications` with random weights, without softmax."""
    import keras

    for model in MODELS.values():
        if isinstance(model, Application):
            made = getattr(keras.applications, model.name)(
                weights=None,
                input_shape=SIDES,
                classes=CLASSES,
                classifier_activation=None,
            )
            made.save(os.path.join(folder, f"{model.name}.keras"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS), help="models to run")
    options = arguments(parser, seconds=0.3)
    chosen = {which: MODELS[which] for which in options.models.split(",")}
    if "tensorflow" not in options.peers:
        chosen = {k: v for k, v in chosen.items() if not isinstance(v, Application)}
    cases = [
        Case(which, f"batch {model.batch}", peers=model.peers)
        for which, model in chosen.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        if any(isinstance(model, Application) for model in chosen.values()):
            subprocess.run([sys.executable, __file__, "--write", folder], check=True)
        os.environ[FOLDER] = folder
        compare(cases, options)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve(make, *sys.argv[2:])
    elif sys.argv[1:2] == ["--write"]:
        write_files(sys.argv[2])
    else:
        main()
