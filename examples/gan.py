"""GAN with one persistent tape
============================

Train a generator of digits and a discriminator, with both losses on one tape.

::

    python examples/gan.py                  (about 1 min; digits from epoch 10 on)
    python examples/gan.py --data mnist     real images, downloaded once
    python examples/gan.py --data FOLDER    real images, from IDX files
    python examples/gan.py --eager          without tracing, for a debugger

One persistent tape records both losses, and each network is updated with the gradient
of its loss. The script prints the losses and the accuracy of the discriminator. If
matplotlib is installed, it draws samples for the same noise every ten epochs, into
``out/gan_010.png`` and so on. Ctrl-C ends the training early: the current samples are
drawn, and the exit code is 130.
"""

import argparse
import functools
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

import tapewright as tw

BATCH, NOISE, ROWS, COLUMNS = 64, 100, 4, 10

# %%
# Two networks
# ------------


class Network(tw.Module):
    """Two dense layers with an activation in between."""

    def __init__(self, n_in, n_hidden, n_out, activation):
        self.activation = activation
        self.w1 = tw.Variable(tw.random.normal([n_in, n_hidden], stddev=n_in**-0.5))
        self.b1 = tw.Variable(tw.zeros([n_hidden]))
        self.w2 = tw.Variable(
            tw.random.normal([n_hidden, n_out], stddev=n_hidden**-0.5)
        )
        self.b2 = tw.Variable(tw.zeros([n_out]))

    def __call__(self, inputs):
        hidden = self.activation(tw.matmul(inputs, self.w1) + self.b1)
        return tw.matmul(hidden, self.w2) + self.b2


class Generator(Network):
    """Map noise ``[batch, 100]`` to images ``[batch, 784]`` in -1 ... 1."""

    def __init__(self):
        super().__init__(NOISE, 128, 784, tw.nn.relu)

    def __call__(self, noise):
        return tw.tanh(super().__call__(noise))


class Discriminator(Network):
    """Map images ``[batch, 784]`` to logits ``[batch, 1]``: positive means real.

    It sees a random half of the pixels, so that it must judge the whole shape.
    """

    def __init__(self):
        super().__init__(784, 128, 1, tw.nn.leaky_relu)

    def __call__(self, images):
        seen = tw.random.uniform(images.shape) < 0.5
        return super().__call__(tw.where(seen, images, 0.0))


# %%
# One tape, two updates
# ---------------------
#
# The tape is persistent, because `gradient` is called for two losses.


def cross_entropy(labels, logits):
    return tw.reduce_mean(
        tw.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    )


@tw.function
def train_step(generator, discriminator, g_optimizer, d_optimizer, images):
    """Update both networks.

    Returns:
        Loss of the generator, loss of the discriminator, and accuracies of the
        discriminator on real and on generated images.
    """
    noise = tw.random.normal([len(images), NOISE])
    with tw.GradientTape(persistent=True) as tape:
        real = discriminator(images)
        fake = discriminator(generator(noise))
        g_loss = cross_entropy(tw.ones_like(fake), fake)
        d_loss = cross_entropy(tw.ones_like(real), real)
        d_loss += cross_entropy(tw.zeros_like(fake), fake)
    g_variables = generator.trainable_variables
    d_variables = discriminator.trainable_variables
    g_gradients = tape.gradient(g_loss, g_variables)
    d_gradients = tape.gradient(d_loss, d_variables)
    del tape
    g_optimizer.apply_gradients(zip(g_gradients, g_variables, strict=True))
    d_optimizer.apply_gradients(zip(d_gradients, d_variables, strict=True))
    return g_loss, d_loss, share(real > 0.0), share(fake < 0.0)


# %%
# Epochs, data and pictures
# -------------------------


def share(hits):
    return tw.reduce_mean(tw.cast(hits, tw.float32))


def train_epoch(step, images, rng, epoch):
    """Train on all images in random order; return the mean results of ``step``."""
    order = rng.permutation(len(images))
    results = []
    # disable=None: no progress bar outside a terminal
    with tqdm(range(0, len(images), BATCH), leave=False, disable=None) as starts:
        for start in starts:
            found = step(images[order[start : start + BATCH]])
            results.append([float(value) for value in found])
            losses = "{:.2f} {:.2f}".format(*results[-1])
            starts.set_description(f"epoch {epoch}, losses {losses}", refresh=False)
    return np.mean(results, axis=0)


def load(data):
    """Return training images ``[n, 784]`` in -1 ... 1."""
    note = ""
    if data == "digits":
        (images, _), _ = tw.datasets.digits.load_data()
        images = centred(images)  # MNIST's images are already centred
    elif data == "mnist":
        (images, _), _ = tw.datasets.mnist.load_data()
    else:
        ((images, _), _), note = tw.datasets.mnist.load_folder(data)
    print(f"{data}: {len(images)} images. {note}".strip())
    return images.reshape(-1, 784).astype("float32") / 127.5 - 1


def centred(images):
    """Shift each image by whole pixels to centre its ink."""
    ramp = np.arange(28) - 13.5
    ink = images.sum(axis=(1, 2))
    down = np.rint(images.sum(axis=2) @ ramp / ink).astype(int)
    right = np.rint(images.sum(axis=1) @ ramp / ink).astype(int)
    shifts = zip(images, down, right, strict=True)
    return np.stack([np.roll(image, (-d, -r), axis=(0, 1)) for image, d, r in shifts])


def draw(path, images):
    """Draw images ``[ROWS * COLUMNS, 784]`` as a grid into a PNG file."""
    try:
        from matplotlib.image import imsave
    except ImportError:
        print(f"no {path}: matplotlib is not installed (pip install matplotlib)")
        return
    tiles = images.numpy().reshape(-1, 28, 28).repeat(3, 1).repeat(3, 2)
    rows = [np.hstack(tiles[i : i + COLUMNS]) for i in range(0, len(tiles), COLUMNS)]
    path.parent.mkdir(parents=True, exist_ok=True)
    imsave(path, np.vstack(rows), cmap="gray_r", vmin=-1, vmax=1)
    print(f"wrote {path}")


# %%
# Command line
# ------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default="digits", help="digits, mnist or a folder")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default="out", help="output folder")
    parser.add_argument("--eager", action="store_true", help="do not trace steps")
    args = parser.parse_args()

    tw.config.run_functions_eagerly(args.eager)
    tw.random.set_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    try:
        images = load(args.data)
    except (OSError, ValueError) as error:
        parser.error(f"--data {args.data}: {error}")
    generator, discriminator = Generator(), Discriminator()
    # With Adam's default beta_1 of 0.9 the networks oscillate (Radford, 2016).
    optimizers = [tw.optimizers.Adam(0.0002, beta_1=0.5) for _ in range(2)]
    step = functools.partial(train_step, generator, discriminator, *optimizers)
    noise = tw.random.normal([ROWS * COLUMNS, NOISE])
    try:
        for epoch in range(1, args.epochs + 1):
            g_loss, d_loss, real, fake = train_epoch(step, images, rng, epoch)
            print(
                f"epoch {epoch}: generator loss {g_loss:.2f}, discriminator loss "
                f"{d_loss:.2f}, accuracy {real:.0%} on real, {fake:.0%} on fake images"
            )
            if epoch % 10 == 0 or epoch == args.epochs:
                draw(args.out / f"gan_{epoch:03}.png", generator(noise))
    except KeyboardInterrupt:
        print(f"stopped in epoch {epoch}")
        draw(args.out / f"gan_{epoch:03}.png", generator(noise))
        return 130
    return 0


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
