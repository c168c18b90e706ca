"""Workloads of `compare.py` and `gpu.py`: arrays, the same for every library.

`works_programs` has larger workloads, as users write them.

| workload | one step |
| --- | --- |
| ops | 1,000 ops: 250 times ``x = tanh(1.01 x + 0.01) - 0.02`` on 4 numbers |
| ops_gradient | the same, with the gradient of the sum of the result with respect to ``x`` |
| W1 | MLP 784-128-10, batch 128: cross-entropy and an L2 penalty; each gradient clipped by norm; Adam |
| W2 | GAN, generator 100-128-784 and discriminator 784-128-1, batch 128: both updated by Adam |
| W3 | MLP 784-256-10, batch 128: cross-entropy and a penalty on the input gradient; SGD |
| W4 | 784-1024-1024-10 with BatchNormalization, batch 256: cross-entropy, Adam |
| W10 | two convolutions with pooling, batch 64: cross-entropy, Adam |
| jacobian | Jacobian of two layers 64-128-32 with ELU, batch 32: [32, 32, 32, 64] |
| batch_jacobian | its diagonal blocks: [32, 32, 64] |
| small_jacobian | Jacobian of two layers 5-8-6, batch 7: [7, 6, 7, 5] |
| hessian | Hessian of ``mean(tanh(x k)^2)`` with respect to ``k`` [20, 20], for ``x`` [16, 20] |
| row | one row through an MLP 784-128-10, with softmax |
| epoch | an epoch of an MLP 784-128-10 over 60,000 rows in shuffled batches of 128: Adam |
| epoch_8 | the same, with 8 steps as one traced function in tapewright |
| write, read | a file with 200 MB of weights, in the usual format of each library |

All arrays are float32. Adam follows Keras, with epsilon 1e-7 before the bias correction.
Training steps are reset to the initial weights before each measured run: after some hundred
steps on one batch, moments of zero gradients become denormal numbers, which are slow.
"""  # noqa: E501

import numpy as np
import tables

__all__ = [
    "BETA_1",
    "BETA_2",
    "CHAIN",
    "CHECKED",
    "CLASSES",
    "DERIVATIVES",
    "EPSILON",
    "FILES",
    "PENALTIES",
    "RATES",
    "STEPS",
    "arrays",
    "batch_of",
    "glorot",
    "sums",
    "weights_of",
]

STEPS = ("W1", "W2", "W3", "W4", "W10", "row", "epoch", "epoch_8")
DERIVATIVES = ("jacobian", "batch_jacobian", "small_jacobian", "hessian")
FILES = ("write", "read")
RATES = {"W1": 1e-3, "W2": 2e-4, "W3": 0.1, "W4": 1e-3, "W10": 1e-3, "epoch": 1e-3}
PENALTIES = {"W1": 0.01, "W3": 0.1}
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-7
CHECKED = 4  # number of first steps to compare; their epochs are not shuffled

# (batch, inputs, hidden units) at full size, and tiny
SIZES = {
    "W1": ((128, 784, 128), (4, 9, 8)),
    "W2": ((128, 784, 128), (4, 9, 8)),
    "W3": ((128, 784, 256), (4, 9, 8)),
    "W4": ((256, 784, 1024), (8, 9, 8)),
    "W10": ((64, 28, 32), (4, 10, 3)),  # the side of an image; channels
    "row": ((1, 784, 128), (1, 9, 8)),
    "epoch": ((128, 784, 128), (8, 9, 8)),
    # and outputs
    "jacobian": ((32, 64, 128, 32), (3, 4, 5, 2)),
    "batch_jacobian": ((32, 64, 128, 32), (3, 4, 5, 2)),
    "small_jacobian": ((7, 5, 8, 6), (7, 5, 8, 6)),
    "hessian": ((16, 20), (4, 3)),
}
ROWS = (60_000, 44)
CHAIN = (250, 3)  # rounds of four ops
MATRICES, SIDE = 20, (1584, 8)  # of a file
CLASSES, NOISE = 10, 100


def arrays(work, tiny):
    """Return the arrays of a workload by name: weights, then ``x``, ``y`` and others."""
    work = work.removesuffix("_8")
    rng = np.random.default_rng(20261120)
    if work.startswith("ops"):
        return {"x": np.array([0.1, -0.2, 0.3, -0.4], "f4")}
    if work in DERIVATIVES:
        return _derivative(rng, *SIZES[work][tiny])
    if work in FILES:
        side = SIDE[tiny]
        return {f"w{i}": rng.random((side, side), "f4") for i in range(MATRICES)}
    batch, inputs, units = SIZES[work][tiny]
    if work == "W2":
        return _gan(rng, batch, inputs, units)
    if work == "W10":
        return _convnet(rng, batch, inputs, units)
    sizes = (
        [inputs, units, units, CLASSES] if work == "W4" else [inputs, units, CLASSES]
    )
    found = {}
    for i, pair in enumerate(zip(sizes, sizes[1:], strict=False), 1):
        found[f"w{i}"] = glorot(rng, *pair)
        normalized = work == "W4" and i < 3
        if normalized:
            found[f"gamma{i}"] = np.ones(pair[1], "f4")
        found[f"b{i}"] = np.zeros(pair[1], "f4")
    rows = ROWS[tiny] if work == "epoch" else batch
    found["x"] = rng.random((rows, inputs), "f4")
    if work == "epoch":
        teacher = rng.standard_normal((inputs, CLASSES), "f4")
        found["y"] = ((found["x"] - 0.5) @ teacher).argmax(1)
    elif work != "row":
        found["y"] = _one_hot(rng, batch)
    return found


def weights_of(data):
    """Return the names of the weights in `arrays`."""
    return [name for name in data if name not in ("x", "y", "z")]


def batch_of(tiny):
    """Return the rows of a batch of `epoch`."""
    return SIZES["epoch"][tiny][0]


def sums(arrays):
    """Return the norm and a random projection of each array, as one list."""
    return np.ravel(tables.sums(arrays)).tolist()


def glorot(rng, *shape):
    """Return a random kernel, uniform within the limits of Glorot and Bengio."""
    field = int(np.prod(shape[:-2]))
    limit = np.sqrt(6 / (field * (shape[-2] + shape[-1])))
    return rng.uniform(-limit, limit, shape).astype("f4")


def _derivative(rng, batch, inputs, units=None, outputs=None):
    x = rng.standard_normal((batch, inputs), "f4")
    if units is None:
        return {"x": x, "k": glorot(rng, inputs, inputs)}
    found = {"x": x}
    for i, pair in enumerate([(inputs, units), (units, outputs)], 1):
        found[f"w{i}"] = glorot(rng, *pair)
        found[f"b{i}"] = 0.1 * rng.standard_normal(pair[1], "f4")
    return found


def _gan(rng, batch, inputs, units):
    found = {}
    for part, sizes in ("g", (NOISE, units, inputs)), ("d", (inputs, units, 1)):
        for i in (0, 1):
            found[f"{part}w{i + 1}"] = glorot(rng, sizes[i], sizes[i + 1])
            found[f"{part}b{i + 1}"] = np.zeros(sizes[i + 1], "f4")
    found["z"] = rng.standard_normal((batch, NOISE), "f4")
    found["x"] = rng.random((batch, inputs), "f4") * 2 - 1
    return found


def _convnet(rng, batch, side, channels):
    left = ((side - 2) // 2 - 2) // 2
    return {
        "k1": glorot(rng, 3, 3, 1, channels),
        "c1": np.zeros(channels, "f4"),
        "k2": glorot(rng, 3, 3, channels, 2 * channels),
        "c2": np.zeros(2 * channels, "f4"),
        "w3": glorot(rng, left * left * 2 * channels, CLASSES),
        "b3": np.zeros(CLASSES, "f4"),
        "x": rng.random((batch, side, side, 1), "f4"),
        "y": _one_hot(rng, batch),
    }


def _one_hot(rng, count):
    return np.eye(CLASSES, dtype="f4")[rng.integers(0, CLASSES, count)]
