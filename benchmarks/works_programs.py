"""Workloads of `gpu.py` and `compare.py` as users write them: models, losses and optimizers.

| workload | one step |
| --- | --- |
| gpt | decoder-only Transformer, 4 blocks of width 256 with 8 heads, batch 16 of 128 tokens out of 2,000: cross-entropy of the next token |
| xception | a small Xception with separable convolutions and BatchNormalization, batch 32 of 48x48x3: cross-entropy |
| wgan_gp | WGAN, batch 64 of 28x28x1: a step of the critic with its gradient penalty, then one of the generator |
| pinn | Burgers' equation, MLP 2-64-64-64-64-1, 8,192 points and 256 on the boundary: mean squared residual, with second derivatives of the network |

The optimizer is Adam. `works` describes what holds for all workloads. Noise and random shares
are arrays, so that all libraries compute the same numbers. `works_programs_tensorflow.py` (also
for tapewright), `works_programs_torch.py` and `works_programs_jax.py` implement the steps.
"""  # noqa: E501

import numpy as np
from works import BETA_1, CLASSES, glorot, weights_of

__all__ = [
    "BETAS_1",
    "LEAK",
    "NORM_EPSILON",
    "PENALTY",
    "PROGRAMS",
    "QKV",
    "RATES",
    "SIZES",
    "VISCOSITY",
    "arrays",
    "checked",
    "unfused",
]

PROGRAMS = ("gpt", "xception", "wgan_gp", "pinn")
RATES = {"gpt": 1e-3, "xception": 1e-3, "wgan_gp": 2e-4, "pinn": 1e-3}
BETAS_1 = dict.fromkeys(PROGRAMS, BETA_1) | {"wgan_gp": 0.5}
NORM_EPSILON = 1e-3  # of LayerNormalization and BatchNormalization
LEAK, PENALTY, VISCOSITY = 0.2, 10.0, 0.01 / np.pi
QKV = ("query", "key", "value")

# at full size, and tiny
SIZES = {
    # batch, tokens, width, heads, blocks, vocabulary
    "gpt": ((16, 128, 256, 8, 4, 2000), (2, 6, 8, 2, 2, 11)),
    # batch, side of an image, channels of the first, middle and last convolutions
    "xception": ((32, 48, 32, (64, 128, 256, 384), 512), (4, 12, 4, (6, 8), 10)),
    # batch, side, noise, channels of the critic (the generator has them in reverse)
    "wgan_gp": ((64, 28, 64, (32, 64)), (4, 8, 5, (4, 6))),
    # points, points on the boundary, units of each hidden layer
    "pinn": ((8192, 256, (64,) * 4), (16, 6, (5, 5))),
}


def arrays(work, tiny):
    """Return the arrays of a workload by name: weights, then ``x``, ``y`` and ``z``.

    Weights have Keras' shapes, and the order of ``model.trainable_variables``.
    """
    rng = np.random.default_rng(20261120)
    return ARRAYS[work](rng, *SIZES[work][tiny])


def checked(data):
    """Return the names of the weights to compare.

    Biases of keys are left out: their gradients are zero but for rounding, which Adam
    scales up.
    """
    return [name for name in weights_of(data) if not name.endswith("key_bias")]


def unfused(weights, name):
    """Return a weight by its name in `arrays`, also if ``qkv`` fuses three of them.

    Args:
        weights: Weights by name; fused ones have query, key and value on the first axis.
        name: Name in `arrays`.
    """
    for i, part in enumerate(QKV):
        if part in name and name not in weights:
            return weights[name.replace(part, "qkv")].reshape(3, -1)[i]
    return weights[name]


def _gpt(rng, batch, length, width, heads, blocks, vocabulary):
    found = {
        "tokens": rng.uniform(-0.05, 0.05, (vocabulary, width)).astype("f4"),
        "positions": rng.uniform(-0.05, 0.05, (length, width)).astype("f4"),
    }
    shape = width, heads, width // heads
    for i in range(blocks):
        at = f"block{i}_"
        found |= _norm(f"{at}norm1", width)
        for part in QKV:
            found[f"{at}{part}_kernel"] = glorot(rng, width, width).reshape(shape)
            found[f"{at}{part}_bias"] = np.zeros(shape[1:], "f4")
        found[f"{at}output_kernel"] = glorot(rng, width, width).reshape(
            *shape[1:], width
        )
        found[f"{at}output_bias"] = np.zeros(width, "f4")
        found |= _norm(f"{at}norm2", width)
        found |= _layer(rng, f"{at}widen", width, 4 * width)
        found |= _layer(rng, f"{at}narrow", 4 * width, width)
    found |= _norm("norm", width)
    found |= _layer(rng, "head", width, vocabulary)
    text = rng.integers(0, vocabulary, (batch, length + 1))
    return found | {"x": text[:, :-1].copy(), "y": text[:, 1:].copy()}


def _xception(rng, batch, side, stem, middle, last):
    def separable(name, before, after):
        return {
            f"{name}_depthwise": glorot(rng, 3, 3, before, 1),
            f"{name}_pointwise": glorot(rng, 1, 1, before, after),
            **_norm(f"{name}_norm", after),
        }

    found = {"stem_kernel": glorot(rng, 3, 3, 3, stem), **_norm("stem_norm", stem)}
    before = stem
    for i, size in enumerate(middle):
        found |= separable(f"block{i}_first", before, size)
        found |= separable(f"block{i}_second", size, size)
        found |= _layer(rng, f"block{i}_residual", 1, 1, before, size)
        before = size
    found |= separable("last", before, last)
    found |= _layer(rng, "head", last, CLASSES)
    found["x"] = rng.standard_normal((batch, side, side, 3), "f4")
    found["y"] = rng.integers(0, CLASSES, batch)
    return found


def _wgan_gp(rng, batch, side, noise, sizes):
    found, before = {}, 1
    for i, size in enumerate(sizes):
        found |= _layer(rng, f"critic_conv{i}", 5, 5, before, size)
        before = size
    small = side // 2 ** len(sizes)  # the side that the strides leave
    found |= _layer(rng, "critic_score", small * small * before, 1)
    found |= _layer(rng, "generator_seed", noise, small * small * before)
    for i, size in enumerate(reversed(sizes)):
        found |= _norm(f"generator_norm{i}", before)
        found[f"generator_kernel{i}"] = glorot(rng, 5, 5, size, before)
        before = size
    found |= _layer(rng, "generator_image", 5, 5, before, 1)
    found["x"] = rng.random((batch, side, side, 1), "f4") * 2 - 1
    found["y"] = rng.random((batch, 1, 1, 1), "f4")  # places between images
    # for the step of the critic, and of the generator
    found["z"] = rng.standard_normal((2, batch, noise), "f4")
    return found


def _pinn(rng, points, boundary, hidden):
    found, sizes = {}, (2, *hidden, 1)
    for i, pair in enumerate(zip(sizes, sizes[1:], strict=False)):
        found |= _layer(rng, f"dense{i}", *pair)
    # Columns are time and position; half of the boundary is the start, half the walls.
    half = boundary // 2
    start, position = np.zeros(half), rng.uniform(-1, 1, half)
    time, wall = rng.random(boundary - half), rng.choice([-1, 1], boundary - half)
    found["x"] = rng.random((points, 2), "f4") * (1, 2) - (0, 1)
    found["y"] = np.concatenate([-np.sin(np.pi * position), np.zeros(len(wall))])
    found["z"] = np.concatenate([np.c_[start, position], np.c_[time, wall]])
    found["y"] = found["y"][:, None]
    return {name: array.astype("f4") for name, array in found.items()}


def _layer(rng, name, *shape):
    bias = np.zeros(shape[-1], "f4")
    return {f"{name}_kernel": glorot(rng, *shape), f"{name}_bias": bias}


def _norm(name, size):
    return {f"{name}_gamma": np.ones(size, "f4"), f"{name}_beta": np.zeros(size, "f4")}


ARRAYS = {"gpt": _gpt, "xception": _xception, "wgan_gp": _wgan_gp, "pinn": _pinn}
