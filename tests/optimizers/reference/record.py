"""Writes ``keras.npz``: eight steps of Keras' optimizers, to hold ours against.

Needs Keras 3 and TensorFlow, which tapewright does not:

    KERAS_BACKEND=tensorflow python tests/optimizers/reference/record.py

An entry ``RULE|EXTRA|KIND`` holds the entries of both variables after each of eight
steps, then those of the slots after the last. Gradients and starting values come from
`problem`.
"""

import os
import pathlib

import numpy as np

RULES = {
    "sgd": ("SGD", {"learning_rate": 0.1}),
    "momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    "nesterov": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {"learning_rate": 0.01}),
    "amsgrad": ("Adam", {"learning_rate": 0.01, "amsgrad": True}),
}
EXTRAS = {
    "plain": {},
    "clipnorm": {"clipnorm": 1.5},
    "global_clipnorm": {"global_clipnorm": 2.0},
    "clipvalue": {"clipvalue": 0.5},
    "weight_decay": {"weight_decay": 0.05},
}
# A repeated row is left out of Adam's sparse runs: Keras 3 squares its values before it
# adds them up, which is not the square of the gradient.
KINDS = ("float32", "float64", "sparse", "repeated")
STEPS = 8
SHAPES = (4, 2), (3,)


def problem(kind):
    """Starting values, and for each step the two gradients.

    The first is dense, or ``(values, indices)`` where the kind is sparse.
    """
    random = np.random.default_rng(3)
    dtype = "float64" if kind == "float64" else "float32"
    starts = [random.normal(size=s).astype(dtype) for s in SHAPES]
    steps = []
    for step in range(STEPS):
        first = random.normal(size=SHAPES[0]).astype(dtype)
        second = (random.normal(size=SHAPES[1]) * (1 + step % 3)).astype(dtype)
        if kind in ("sparse", "repeated"):
            rows = random.permutation(SHAPES[0][0])[:3]
            if kind == "repeated":
                rows[2] = rows[0]
            first = first[:3], rows
        steps.append((first, second))
    return starts, steps


def main():
    import tensorflow as tf

    import keras

    found = {}
    for rule, (name, arguments) in RULES.items():
        for extra, more in EXTRAS.items():
            for kind in KINDS:
                if kind == "repeated" and name == "Adam":
                    continue
                starts, steps = problem(kind)
                variables = [keras.Variable(s, dtype=s.dtype.name) for s in starts]
                optimizer = getattr(keras.optimizers, name)(**arguments, **more)
                seen = []
                for first, second in steps:
                    if isinstance(first, tuple):
                        values, rows = map(tf.constant, first)
                        first = tf.IndexedSlices(values, rows, tf.constant(SHAPES[0]))
                    else:
                        first = tf.constant(first)
                    pairs = zip([first, tf.constant(second)], variables)
                    optimizer.apply_gradients(pairs)
                    seen += [v.numpy().ravel() for v in variables]
                seen += [v.numpy().ravel() for v in optimizer.variables[2:]]
                found[f"{rule}|{extra}|{kind}"] = np.concatenate(seen)
    path = pathlib.Path(__file__).with_name("keras.npz")
    np.savez_compressed(path, version=keras.__version__, **found)
    print(path, os.path.getsize(path), "bytes, Keras", keras.__version__)


if __name__ == "__main__":
    main()
