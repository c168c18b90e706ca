"""DCGAN as a Keras model
======================

Train a convolutional GAN with `fit`, as a Keras model with a custom `train_step`.

::

    python examples/dcgan_model.py                  (about 2 min; digits from epoch 3)
    python examples/dcgan_model.py --data mnist     real images, downloaded once
    python examples/dcgan_model.py --data FOLDER    real images, from IDX files
    python examples/dcgan_model.py --eager          without tracing, for a debugger

The generator converts noise to images with transposed convolutions; the discriminator
distinguishes them from real images. The model `DCGAN` contains both: its ``train_step``
computes both losses on one tape and updates each network with its own optimizer.
``fit`` provides batches, progress and callbacks. If matplotlib is installed, a callback
draws samples for the same noise every three epochs, into ``out/dcgan_03.png`` and so
on. After twelve epochs most samples are digits; with the 8,000 images of MNIST's test
files, about half are. Ctrl-C ends the training early: the current samples are drawn,
and the exit code is 130.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import tapewright as tw
from tapewright import layers

BATCH, NOISE, ROWS, COLUMNS = 64, 64, 4, 10

# %%
# Two networks
# ------------
#
# The generator upsamples noise with transposed convolutions; the discriminator mirrors
# its structure.


def generator():
    """Map noise ``[batch, NOISE]`` to images ``[batch, 28, 28, 1]`` in -1 ... 1."""
    return tw.Sequential(
        [
            tw.Input((NOISE,)),
            layers.Dense(7 * 7 * 64, use_bias=False),
            layers.BatchNormalization(momentum=0.9),
            layers.ReLU(),
            layers.Reshape((7, 7, 64)),
            layers.Conv2DTranspose(32, 4, strides=2, padding="same", use_bias=False),
            layers.BatchNormalization(momentum=0.9),
            layers.ReLU(),
            layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="tanh"),
        ],
        name="generator",
    )


def discriminator():
    """Map images to logits ``[batch, 1]``: positive means real."""
    return tw.Sequential(
        [
            tw.Input((28, 28, 1)),
            layers.Conv2D(32, 4, strides=2, padding="same"),
            layers.LeakyReLU(0.2),
            layers.Conv2D(64, 4, strides=2, padding="same"),
            layers.LeakyReLU(0.2),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(1),
        ],
        name="discriminator",
    )


# %%
# A model with a custom train step
# --------------------------------
#
# `fit` traces ``train_step`` and calls it for each batch. It computes the gradients of
# both networks on one persistent tape, and updates each with its own optimizer.


class DCGAN(tw.Model):
    """Generator and discriminator, trained on real images: ``fit(images)``."""

    def __init__(self):
        super().__init__()
        self.generator, self.discriminator = generator(), discriminator()
        self.entropy = tw.losses.BinaryCrossentropy(from_logits=True)
        names = ("g_loss", "d_loss", "real_accuracy", "fake_accuracy")
        self.means = [tw.metrics.Mean(name) for name in names]

    def compile(self, g_optimizer, d_optimizer, **kwargs):
        super().compile(optimizer=None, **kwargs)
        self.g_optimizer, self.d_optimizer = g_optimizer, d_optimizer

    @property
    def metrics(self):
        return self.means  # fit resets them before each epoch

    def call(self, noise, training=False):
        return self.generator(noise, training=training)

    def train_step(self, images):
        """Update each network with the gradient of its loss."""
        noise = tw.random.normal([tw.shape(images)[0], NOISE])
        with tw.GradientTape(persistent=True) as tape:
            fake = self.generator(noise, training=True)
            on_real = self.discriminator(images, training=True)
            on_fake = self.discriminator(fake, training=True)
            g_loss = self.entropy(tw.ones_like(on_fake), on_fake)
            d_loss = self.entropy(tw.ones_like(on_real), on_real)
            d_loss += self.entropy(tw.zeros_like(on_fake), on_fake)
        for network, loss, optimizer in (
            (self.generator, g_loss, self.g_optimizer),
            (self.discriminator, d_loss, self.d_optimizer),
        ):
            variables = network.trainable_variables
            optimizer.apply(tape.gradient(loss, variables), variables)
        del tape
        found = g_loss, d_loss, on_real > 0.0, on_fake < 0.0
        for mean, value in zip(self.means, found, strict=True):
            mean.update_state(tw.cast(value, tw.float32))
        return {mean.name: mean.result() for mean in self.means}


# %%
# A callback that draws samples
# -----------------------------


class Samples(tw.callbacks.Callback):
    """Callback that draws images generated from the same noise every few epochs."""

    def __init__(self, out, every):
        super().__init__()
        self.out, self.every = out, every
        self.noise = tw.random.normal([ROWS * COLUMNS, NOISE])

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every == 0:
            self.draw(epoch + 1)

    def draw(self, epoch):
        images = self.model.predict_on_batch(self.noise)
        draw(self.out / f"dcgan_{epoch:02}.png", images)


def draw(path, images):
    """Draw images ``[ROWS * COLUMNS, 28, 28, 1]`` as a grid into a PNG file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        tw.plot.images(images, columns=COLUMNS, path=path)
    except ImportError as error:
        print(f"no {path}: {error}")
        return
    print(f"wrote {path}")


# %%
# Data and command line
# ---------------------


def load(data):
    """Return training images ``[n, 28, 28, 1]`` in -1 ... 1."""
    note = ""
    if data == "digits":
        (images, _), _ = tw.datasets.digits.load_data()
        images = centred(images)  # MNIST's images are already centred
    elif data == "mnist":
        (images, _), _ = tw.datasets.mnist.load_data()
    else:
        ((images, _), _), note = tw.datasets.mnist.load_folder(data)
    print(f"{data}: {len(images)} images. {note}".strip())
    return images[..., None].astype("float32") / 127.5 - 1


def centred(images):
    """Shift each image by whole pixels to centre its ink."""
    ramp = np.arange(28) - 13.5
    ink = images.sum(axis=(1, 2))
    down = np.rint(images.sum(axis=2) @ ramp / ink).astype(int)
    right = np.rint(images.sum(axis=1) @ ramp / ink).astype(int)
    shifts = zip(images, down, right, strict=True)
    return np.stack([np.roll(image, (-d, -r), axis=(0, 1)) for image, d, r in shifts])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default="digits", help="digits, mnist or a folder")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default="out", help="output folder")
    parser.add_argument("--eager", action="store_true", help="do not trace steps")
    args = parser.parse_args()

    tw.config.run_functions_eagerly(args.eager)
    tw.keras.utils.set_random_seed(args.seed)
    try:
        images = load(args.data)
    except (OSError, ValueError) as error:
        parser.error(f"--data {args.data}: {error}")
    gan = DCGAN()
    # With Adam's default beta_1 of 0.9 the networks oscillate (Radford, 2016).
    gan.compile(*[tw.optimizers.Adam(0.0005, beta_1=0.5) for _ in range(2)])
    samples = Samples(args.out, every=3)
    try:
        gan.fit(images, batch_size=BATCH, epochs=args.epochs, callbacks=[samples])
    except KeyboardInterrupt:
        epochs = len(gan.history.epoch)
        print(f"stopped after {epochs} epochs")
        samples.draw(epochs)
        return 130
    if args.epochs % samples.every:
        samples.draw(args.epochs)
    return 0


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
