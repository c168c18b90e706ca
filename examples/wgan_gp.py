"""WGAN with gradient penalty
==========================

Train a Wasserstein GAN with gradient penalty (WGAN-GP) to generate digits.

::

    python examples/wgan_gp.py                 (about 1 min; digits from epoch 5 on)
    python examples/wgan_gp.py --data mnist    real images, downloaded once
    python examples/wgan_gp.py --eager         without tracing, for a debugger

The critic computes a score per image, high for real and low for generated images. If
the norm of its gradient is at most 1 everywhere, the difference of the mean scores
estimates the Wasserstein distance between real and generated images. A penalty keeps
the norm near 1, at random points between real and generated images::

    loss = mean critic(fake) - mean critic(real) + 10 mean (|d critic / d image| - 1)^2

Its gradient is the gradient of a gradient (Gulrajani, 2017). The script prints the
difference of the scores, the critic's gap, after each epoch. If matplotlib is
installed, it draws the gap, and digits for the same noise during training, into
``out/wgan_gp.png``. Ctrl-C ends the training early, and the exit code is 130.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

import tapewright as tw

BATCH, NOISE, CRITIC_STEPS, PENALTY = 64, 32, 3, 10.0

# %%
# The critic and its gradient
# ---------------------------
#
# A tape in the critic's step computes the gradient with respect to the images.


def networks():
    """Return generator, ``[n, 32]`` to images ``[n, 784]`` in 0 ... 1, and critic."""
    dense, sequential = tw.layers.Dense, tw.keras.Sequential
    generator = [dense(128, "relu"), dense(256, "relu"), dense(784, "sigmoid")]
    critic = [dense(256, tw.nn.leaky_relu), dense(128, tw.nn.leaky_relu), dense(1)]
    return sequential(generator), sequential(critic)


def slopes(critic, images):
    """Return the norm of the critic's gradient at each image, ``[n]``."""
    with tw.GradientTape() as tape:
        tape.watch(images)
        scores = critic(images)
    return tw.norm(tape.gradient(scores, images), axis=1)


# %%
# Two steps
# ---------
#
# The penalty drives the gradient norm to 1; its gradient is a second derivative.


@tw.function
def critic_step(generator, critic, optimizer, images):
    """Update the critic; return the difference of real and fake mean scores."""
    fake = generator(tw.random.normal([len(images), NOISE]))
    share = tw.random.uniform([len(images), 1])
    between = share * images + (1 - share) * fake
    with tw.GradientTape() as tape:
        gap = tw.reduce_mean(critic(images)) - tw.reduce_mean(critic(fake))
        penalty = tw.reduce_mean((slopes(critic, between) - 1) ** 2)
        loss = PENALTY * penalty - gap
    apply(optimizer, tape.gradient(loss, critic.trainable_variables), critic)
    return gap


@tw.function
def generator_step(generator, critic, optimizer):
    """Update the generator to increase the critic's scores."""
    noise = tw.random.normal([BATCH, NOISE])
    with tw.GradientTape() as tape:
        loss = -tw.reduce_mean(critic(generator(noise)))
    apply(optimizer, tape.gradient(loss, generator.trainable_variables), generator)


def apply(optimizer, gradients, model):
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))


# %%
# Epochs, pictures and data
# -------------------------


def train_epoch(generator, critic, optimizers, images, rng, gaps):
    """Train on all images in random order; append the gaps to ``gaps``."""
    order = rng.permutation(len(images))
    for start in tqdm(range(0, len(images), BATCH), leave=False, disable=None):
        batch = images[order[start : start + BATCH]]
        gaps.append(float(critic_step(generator, critic, optimizers[0], batch)))
        if len(gaps) % CRITIC_STEPS == 0:
            generator_step(generator, critic, optimizers[1])


def centred(images):
    """Shift each image by whole pixels to centre its ink."""
    ramp = np.arange(28) - 13.5
    ink = images.sum(axis=(1, 2))
    down = np.rint(images.sum(axis=2) @ ramp / ink).astype(int)
    right = np.rint(images.sum(axis=1) @ ramp / ink).astype(int)
    shifts = zip(images, down, right, strict=True)
    return np.stack([np.roll(image, (-d, -r), axis=(0, 1)) for image, d, r in shifts])


def draw(path, gaps, samples):
    """Draw the gaps, and a row of digits for the same noise per recorded epoch."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"no {path}: matplotlib is not installed (pip install matplotlib)")
        return
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.7])
    left.plot(gaps, linewidth=0.3, color="tab:gray", label="each step")
    if len(gaps) >= 50:
        means = np.convolve(gaps, np.ones(50) / 50, "valid")
        left.plot(np.arange(len(means)) + 25, means, "C0", label="mean of 50 steps")
    left.set(
        xlabel="step of the critic", ylabel="difference of mean scores, real - fake"
    )
    left.set(title="Estimated Wasserstein distance", ylim=(0, None))
    left.legend()
    tiles = np.stack(list(samples.values())).reshape(len(samples), -1, 28, 28)
    rows, columns = tiles.shape[:2]
    picture = tiles.swapaxes(1, 2).reshape(28 * rows, 28 * columns)
    right.imshow(picture, "gray_r", vmin=0, vmax=1)
    names = [f"epoch {epoch}" for epoch in samples]
    right.set_yticks(28 * np.arange(rows) + 13.5, names)
    right.tick_params(length=0)
    right.set(xticks=[], title="Images for the same noise during training")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def load(data):
    """Return ``(images, labels)`` for training and for test."""
    if data in ("digits", "mnist"):
        return getattr(tw.datasets, data).load_data()
    return tw.datasets.mnist.load_folder(data)[0]


# %%
# Command line
# ------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default="digits", help="digits, mnist or a folder")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default="out", help="output folder")
    parser.add_argument("--eager", action="store_true", help="do not trace steps")
    args = parser.parse_args()

    tw.config.run_functions_eagerly(args.eager)
    tw.random.set_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    (images, _), _ = load(args.data)
    images = centred(images).reshape(-1, 784).astype("float32") / 255
    generator, critic = networks()
    # The paper's short averages of past gradients, as the other network keeps changing.
    optimizers = [tw.optimizers.Adam(0.001, beta_1=0.5, beta_2=0.9) for _ in range(2)]
    noise = tw.random.normal([12, NOISE])
    gaps, samples, code = [], {0: generator(noise).numpy()}, 0
    kept = np.unique(np.geomspace(1, max(args.epochs, 1), 7).round())
    try:
        for epoch in range(1, args.epochs + 1):
            train_epoch(generator, critic, optimizers, images, rng, gaps)
            recent = np.mean(gaps[-100:])
            print(f"epoch {epoch}: the critic's gap is {recent:.2f}")
            if epoch in kept:
                samples[epoch] = generator(noise).numpy()
    except KeyboardInterrupt:
        code = 130
        samples[epoch] = generator(noise).numpy()
    draw(args.out / "wgan_gp.png", gaps, samples)
    return code


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
