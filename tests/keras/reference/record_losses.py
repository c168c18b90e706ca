"""Writes ``losses.npz``: values and gradients of Keras' losses, to hold ours against.

Needs Keras 3 and TensorFlow, which tapewright does not:

    KERAS_BACKEND=tensorflow python tests/keras/reference/record_losses.py

An entry ``CASE|WEIGHTS`` holds the results for each of `REDUCTIONS`, one after the other,
then the gradient of the mean by ``y_pred``. Inputs come from `problem`.
"""

import os
import pathlib

import numpy as np

# name of the case: class, its arguments, what it is fed with
CASES = {
    "mse": ("MeanSquaredError", {}, "numbers"),
    "mae": ("MeanAbsoluteError", {}, "numbers"),
    "mape": ("MeanAbsolutePercentageError", {}, "numbers"),
    "msle": ("MeanSquaredLogarithmicError", {}, "numbers"),
    "huber": ("Huber", {}, "numbers"),
    "huber delta": ("Huber", {"delta": 0.3}, "numbers"),
    "log_cosh": ("LogCosh", {}, "numbers"),
    "cosine": ("CosineSimilarity", {}, "numbers"),
    "cosine axis": ("CosineSimilarity", {"axis": 1}, "numbers"),
    "poisson": ("Poisson", {}, "counts"),
    "kld": ("KLDivergence", {}, "probabilities"),
    "bce": ("BinaryCrossentropy", {}, "binary"),
    "bce smooth": ("BinaryCrossentropy", {"label_smoothing": 0.2}, "binary"),
    "bce logits": ("BinaryCrossentropy", {"from_logits": True}, "binary logits"),
    "bce axis": ("BinaryCrossentropy", {"axis": 1}, "binary"),
    "bfce": ("BinaryFocalCrossentropy", {}, "binary"),
    "bfce balanced": (
        "BinaryFocalCrossentropy",
        {"apply_class_balancing": True, "alpha": 0.4, "gamma": 1.5},
        "binary",
    ),
    "bfce logits": (
        "BinaryFocalCrossentropy",
        {"from_logits": True, "label_smoothing": 0.1},
        "binary logits",
    ),
    "cce": ("CategoricalCrossentropy", {}, "probabilities"),
    "cce smooth": ("CategoricalCrossentropy", {"label_smoothing": 0.1}, "one-hot"),
    "cce logits": ("CategoricalCrossentropy", {"from_logits": True}, "logits"),
    "cce axis": ("CategoricalCrossentropy", {"axis": 1}, "probabilities"),
    "cfce": ("CategoricalFocalCrossentropy", {}, "one-hot"),
    "cfce logits": (
        "CategoricalFocalCrossentropy",
        {"from_logits": True, "alpha": 0.5, "gamma": 3.0, "label_smoothing": 0.1},
        "logits",
    ),
    "cfce alphas": (
        "CategoricalFocalCrossentropy",
        {"alpha": [0.1, 0.2, 0.3, 0.4]},
        "one-hot",
    ),
    "scce": ("SparseCategoricalCrossentropy", {}, "labels"),
    "scce logits": (
        "SparseCategoricalCrossentropy",
        {"from_logits": True},
        "label logits",
    ),
    "scce ignore": (
        "SparseCategoricalCrossentropy",
        {"from_logits": True, "ignore_class": 2},
        "label logits",
    ),
    "gce": ("CategoricalGeneralizedCrossEntropy", {"q": 0.3}, "labels"),
    "hinge": ("Hinge", {}, "signs"),
    "hinge binary": ("Hinge", {}, "binary logits"),
    "squared hinge": ("SquaredHinge", {}, "binary logits"),
    "categorical hinge": ("CategoricalHinge", {}, "logits"),
    "dice": ("Dice", {}, "binary"),
    "dice axis": ("Dice", {"axis": (2,)}, "binary"),
    "tversky": ("Tversky", {"alpha": 0.3, "beta": 0.7}, "binary"),
    "tversky axis": ("Tversky", {"axis": (2,)}, "binary"),
    "circle": ("Circle", {}, "embeddings"),
    "circle diagonal": (
        "Circle",
        {"remove_diagonal": False, "gamma": 8.0, "margin": 0.2},
        "embeddings",
    ),
    "ctc": ("CTC", {}, "spellings"),
}
WEIGHTS = ("plain", "weight", "column", "mask", "masked weight")
REDUCTIONS = ("sum_over_batch_size", "mean", "sum", "mean_with_sample_weight", "none")


def problem(kind):
    """``y_true`` and ``y_pred`` of one kind."""
    random = np.random.default_rng(11)
    shape = 3, 2, 4
    logits = random.normal(size=shape).astype("float32")
    sigmoids = 1 / (1 + np.exp(-logits))
    softmaxes = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    labels = random.integers(0, 4, shape[:-1])
    binary = random.integers(0, 2, shape)
    if kind == "embeddings":
        rows = logits.reshape(6, 4)
        return np.array([0, 1, 0, 2, 1, 0]), rows / np.linalg.norm(
            rows, axis=1, keepdims=True
        )
    if kind == "spellings":
        rows = random.normal(size=(4, 5, 4)).astype("float32")
        return np.array([[1, 2, 0], [1, 1, 2], [3, 0, 0], [0, 0, 0]]), rows
    return {
        "numbers": (random.normal(size=shape).astype("float32"), logits),
        "counts": (random.poisson(2.0, shape).astype("float32"), np.exp(logits)),
        "probabilities": (softmaxes[::-1].copy(), softmaxes),
        "one-hot": (np.eye(4, dtype="float32")[labels], softmaxes),
        "logits": (np.eye(4, dtype="float32")[labels], logits),
        "labels": (labels, softmaxes),
        "label logits": (labels, logits),
        "binary": (binary, sigmoids),
        "binary logits": (binary, logits),
        "signs": (binary * 2 - 1, logits),
    }[kind]


def weighting(weights, shape):
    """Sample weights and a mask for losses of a shape, or None for either."""
    random = np.random.default_rng(5)
    weight = random.uniform(0.2, 2.0, shape or (3,)).astype("float32")
    mask = random.permutation(np.arange(weight.size) % 3 > 0).reshape(weight.shape)
    column = weight.reshape(len(weight), -1)[:, :1]
    return {
        "plain": (None, None),
        "weight": (weight, None),
        "column": (column, None),
        "mask": (None, mask),
        "masked weight": (weight, mask),
    }[weights]


def main():
    import tensorflow as tf

    import keras

    if os.environ.get("KERAS_BACKEND") != "tensorflow":
        raise SystemExit("set KERAS_BACKEND=tensorflow")
    found = {}
    for case, (name, arguments, kind) in CASES.items():
        y_true, y_pred = problem(kind)
        losses = {
            r: getattr(keras.losses, name)(reduction=r, **arguments) for r in REDUCTIONS
        }
        shape = tuple(losses["none"](y_true, tf.constant(y_pred)).shape)
        for weights in WEIGHTS:
            weight, mask = weighting(weights, shape)
            results = []
            for reduction in REDUCTIONS:
                p = tf.constant(y_pred)
                if mask is not None:
                    p._keras_mask = tf.constant(mask)
                with tf.GradientTape() as tape:
                    tape.watch(p)
                    value = losses[reduction](y_true, p, sample_weight=weight)
                results.append(value.numpy().ravel())
                if reduction == "mean":
                    gradient = tape.gradient(value, p).numpy().ravel()
            results.append(gradient)
            found[f"{case}|{weights}"] = np.concatenate(results)
    target = pathlib.Path(__file__).parent / "losses.npz"
    np.savez_compressed(target, **found)
    print(f"{target}: {len(found)} entries, Keras {keras.__version__}")


if __name__ == "__main__":
    main()
