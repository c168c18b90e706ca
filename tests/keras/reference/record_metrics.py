"""Writes ``metrics.npz``: what Keras' metrics say of made-up batches.

Needs Keras 3 and TensorFlow, which tapewright does not:

    KERAS_BACKEND=tensorflow python tests/keras/reference/record_metrics.py

An entry ``CASE|EXTRA`` holds the results after the first and the second batch, after a
reset and the second batch alone, then the variables. Batches come from `batch`.
"""

import json
import os
import pathlib

import numpy as np

EXTRAS = ("plain", "weights", "mask", "both")

# name -> (class, arguments, kind of batch); "mask" and "both" only for sequences
CASES = {
    "sum": ("Sum", {}, "values"),
    "mean": ("Mean", {}, "values"),
    "mean of rows": ("Mean", {}, "rows"),
    "mean of sequences": ("Mean", {}, "masked rows"),
    "accuracy": ("Accuracy", {}, "numbers"),
    "binary_accuracy": ("BinaryAccuracy", {}, "binary"),
    "binary_accuracy of vectors": ("BinaryAccuracy", {"threshold": 0.3}, "vector"),
    "binary_accuracy of sequences": ("BinaryAccuracy", {}, "labels over time"),
    "categorical_accuracy": ("CategoricalAccuracy", {}, "one-hot"),
    "sparse_accuracy": ("SparseCategoricalAccuracy", {}, "sparse"),
    "sparse_accuracy of columns": ("SparseCategoricalAccuracy", {}, "column"),
    "sparse_accuracy of floats": ("SparseCategoricalAccuracy", {}, "float labels"),
    "sparse_accuracy of sequences": ("SparseCategoricalAccuracy", {}, "words"),
    "top_k": ("TopKCategoricalAccuracy", {"k": 2}, "one-hot"),
    "sparse_top_k": ("SparseTopKCategoricalAccuracy", {"k": 2}, "sparse"),
    "sparse_top_k of sequences": ("SparseTopKCategoricalAccuracy", {"k": 3}, "words"),
    "sorted ids": (
        "SparseTopKCategoricalAccuracy",
        {"k": 2, "from_sorted_ids": True},
        "sorted ids",
    ),
    "kl_divergence": ("KLDivergence", {}, "distributions"),
    "poisson": ("Poisson", {}, "positive"),
    "binary_crossentropy": ("BinaryCrossentropy", {}, "multi-label"),
    "smooth binary_crossentropy": (
        "BinaryCrossentropy",
        {"from_logits": True, "label_smoothing": 0.1},
        "logits",
    ),
    "categorical_crossentropy": ("CategoricalCrossentropy", {}, "one-hot"),
    "smooth categorical_crossentropy": (
        "CategoricalCrossentropy",
        {"from_logits": True, "label_smoothing": 0.1},
        "one-hot",
    ),
    "sparse_crossentropy": ("SparseCategoricalCrossentropy", {}, "words"),
    "sparse_crossentropy that ignores": (
        "SparseCategoricalCrossentropy",
        {"ignore_class": 1},
        "sparse",
    ),
    "hinge": ("Hinge", {}, "binary"),
    "squared_hinge": ("SquaredHinge", {}, "signs"),
    "categorical_hinge": ("CategoricalHinge", {}, "one-hot"),
    "mse": ("MeanSquaredError", {}, "regression"),
    "mse of sequences": ("MeanSquaredError", {}, "sequences"),
    "mae": ("MeanAbsoluteError", {}, "regression"),
    "mape": ("MeanAbsolutePercentageError", {}, "positive"),
    "msle": ("MeanSquaredLogarithmicError", {}, "positive"),
    "logcosh": ("LogCoshError", {}, "regression"),
    "rmse": ("RootMeanSquaredError", {}, "regression"),
    "rmse of sequences": ("RootMeanSquaredError", {}, "sequences"),
    "cosine": ("CosineSimilarity", {}, "regression"),
    "cosine of sequences": ("CosineSimilarity", {"axis": 2}, "sequences"),
    "pearson": ("PearsonCorrelation", {}, "regression"),
    "concordance": ("ConcordanceCorrelation", {}, "regression"),
    "r2": ("R2Score", {}, "regression"),
    "r2 by variance": (
        "R2Score",
        {"class_aggregation": "variance_weighted_average"},
        "regression",
    ),
    "r2 of each": ("R2Score", {"class_aggregation": None}, "regression"),
    "adjusted r2": ("R2Score", {"num_regressors": 2}, "regression"),
    "true_positives": ("TruePositives", {}, "binary"),
    "false_positives": ("FalsePositives", {}, "multi-label"),
    "true_negatives": ("TrueNegatives", {"thresholds": [0.8, 0.2, 0.4]}, "vector"),
    "false_negatives": ("FalseNegatives", {"thresholds": [0.0, 0.5, 1.0]}, "binary"),
    "precision": ("Precision", {}, "binary"),
    "precision among 2": ("Precision", {"top_k": 2}, "one-hot"),
    "precision of a class": ("Precision", {"class_id": 1}, "one-hot"),
    "recall": ("Recall", {"thresholds": 0.3}, "vector"),
    "recall at several": ("Recall", {"thresholds": [0.3, 0.7]}, "multi-label"),
    "recall among 3": ("Recall", {"top_k": 3, "class_id": 2}, "one-hot"),
    "precision_at_recall": ("PrecisionAtRecall", {"recall": 0.6}, "binary"),
    "recall_at_precision": ("RecallAtPrecision", {"precision": 0.5}, "vector"),
    "sensitivity": ("SensitivityAtSpecificity", {"specificity": 0.5}, "binary"),
    "specificity": (
        "SpecificityAtSensitivity",
        {"sensitivity": 0.7, "num_thresholds": 1},
        "binary",
    ),
    "specificity of a class": (
        "SpecificityAtSensitivity",
        {"sensitivity": 0.4, "num_thresholds": 20, "class_id": 1},
        "multi-label",
    ),
    "auc": ("AUC", {}, "vector"),
    "auc of columns": ("AUC", {"num_thresholds": 7}, "binary"),
    "auc of logits": ("AUC", {"from_logits": True}, "logits"),
    "auc of halves": ("AUC", {"num_thresholds": 5}, "halves"),
    "majoring auc": ("AUC", {"summation_method": "majoring"}, "vector"),
    "minoring auc": ("AUC", {"summation_method": "minoring"}, "vector"),
    "pr auc": ("AUC", {"curve": "PR"}, "vector"),
    "majoring pr auc": (
        "AUC",
        {"curve": "PR", "summation_method": "majoring"},
        "vector",
    ),
    "pr gain auc": ("AUC", {"curve": "PRGAIN"}, "vector"),
    "auc at thresholds": ("AUC", {"thresholds": [0.7, 0.1, 0.3]}, "vector"),
    "auc of labels": ("AUC", {"multi_label": True, "num_thresholds": 9}, "multi-label"),
    "pr auc of labels": (
        "AUC",
        {"multi_label": True, "num_labels": 3, "curve": "PR"},
        "multi-label",
    ),
    "auc of labels at thresholds": (
        "AUC",
        {"multi_label": True, "thresholds": [0.1, 0.3, 0.7]},
        "multi-label",
    ),
    "auc of weighted labels": (
        "AUC",
        {"multi_label": True, "label_weights": [1.0, 2.0, 0.5]},
        "multi-label",
    ),
    "auc of weighted predictions": (
        "AUC",
        {"label_weights": [1.0, 2.0, 0.5], "num_thresholds": 10},
        "multi-label",
    ),
    "f1": ("F1Score", {}, "one-hot"),
    "f1 above": ("F1Score", {"threshold": 0.4, "average": "macro"}, "multi-label"),
    "micro f_beta": ("FBetaScore", {"beta": 2.0, "average": "micro"}, "one-hot"),
    "weighted f_beta": ("FBetaScore", {"beta": 0.5, "average": "weighted"}, "one-hot"),
    "iou": ("IoU", {"num_classes": 3, "target_class_ids": [0, 2]}, "classes"),
    "iou of floats": (
        "IoU",
        {"num_classes": 3, "target_class_ids": [1], "dtype": "float32"},
        "classes",
    ),
    "iou that ignores": ("MeanIoU", {"num_classes": 3, "ignore_class": 1}, "classes"),
    "mean_iou": ("MeanIoU", {"num_classes": 4}, "classes"),
    "binary_iou": ("BinaryIoU", {"threshold": 0.4}, "vector"),
    "one_hot_iou": (
        "OneHotIoU",
        {"num_classes": 4, "target_class_ids": [0, 3]},
        "one-hot",
    ),
    "one_hot_mean_iou": ("OneHotMeanIoU", {"num_classes": 4}, "one-hot"),
}
WHOLE = ("iou", "iou that ignores", "mean_iou", "binary_iou", "one_hot_iou",
         "one_hot_mean_iou")  # fmt: skip  # weights of these are whole numbers
SEQUENCES = ("words", "sequences", "labels over time")


def batch(kind, step):
    """The arguments of one update before the weights; the second batch is smaller."""
    random = np.random.default_rng([step, *kind.encode()])
    n, classes = (9, 5)[step], 4

    def scores(*shape):
        return random.uniform(size=shape).astype(np.float32)

    def normal(*shape):
        return random.normal(size=shape).astype(np.float32)

    def choice(count, *shape):
        return random.integers(0, count, shape).astype(np.int32)

    def one_hot(numbers):
        return np.eye(classes, dtype=np.float32)[numbers]

    kinds = {
        "values": lambda: (normal(n),),
        "rows": lambda: (normal(n, 3),),
        "masked rows": lambda: (normal(n, 3),),
        "numbers": lambda: (choice(2, n, 3), choice(2, n, 3)),
        "binary": lambda: (choice(2, n, 1), scores(n, 1)),
        "signs": lambda: (choice(2, n, 3) * 2 - 1, normal(n, 3)),
        "vector": lambda: (choice(2, n), scores(n)),
        "halves": lambda: (choice(2, n), choice(5, n).astype(np.float32) / 4),
        "labels over time": lambda: (choice(2, n, 6), scores(n, 6)),
        "multi-label": lambda: (choice(2, n, 3), scores(n, 3)),
        "logits": lambda: (choice(2, n, 3), normal(n, 3) * 2),
        "one-hot": lambda: (one_hot(choice(classes, n)), scores(n, classes)),
        "sparse": lambda: (choice(classes, n), scores(n, classes)),
        "column": lambda: (choice(classes, n, 1), scores(n, classes)),
        "float labels": lambda: (
            choice(classes, n).astype(np.float32),
            scores(n, classes),
        ),
        "words": lambda: (choice(classes, n, 6), scores(n, 6, classes)),
        "sorted ids": lambda: (
            choice(classes, n),
            random.permuted(np.tile(np.arange(classes), (n, 1)), axis=1),
        ),
        "distributions": lambda: (scores(n, 3), scores(n, 3)),
        "positive": lambda: (scores(n, 3) * 5 + 0.1, scores(n, 3) * 5 + 0.1),
        "regression": lambda: (normal(n, 3), normal(n, 3)),
        "sequences": lambda: (normal(n, 6, 2), normal(n, 6, 2)),
        "classes": lambda: (choice(4, n, 2) - 1, choice(4, n, 2)),
    }
    return kinds[kind]()


def weights(case, step):
    """Weights of one batch: of samples, or of entries where the metric wants that."""
    kind = CASES[case][2]
    random = np.random.default_rng([step, 7])
    shape = batch(kind, step)[-1].shape
    if kind in SEQUENCES or kind == "masked rows" or CASES[case][0] == "Sum":
        shape = shape[:2]
    elif kind != "classes":
        shape = shape[:1]
    if case in WHOLE:
        return random.integers(0, 4, shape)
    return random.uniform(0.1, 2.0, shape).astype(np.float32)


def mask(case, step):
    """Which steps of sequences count."""
    random = np.random.default_rng([step, 8])
    return random.uniform(size=batch(CASES[case][2], step)[-1].shape[:2]) < 0.7


def extras(case):
    """Those that make sense for a case."""
    return EXTRAS if CASES[case][2] in SEQUENCES else EXTRAS[:2]


def followed(metric, case, extra, convert, read):
    """Results and variables of a metric, in a row; `convert` makes a masked tensor."""

    def update(step):
        *first, y_pred = batch(CASES[case][2], step)
        if extra in ("mask", "both"):
            y_pred = convert(y_pred, mask(case, step))
        given = weights(case, step) if extra in ("weights", "both") else None
        metric.update_state(*first, y_pred, sample_weight=given)
        return np.ravel(read(metric.result()))

    found = [update(0), update(1)]
    metric.reset_state()
    found.append(update(1))
    found += [np.ravel(read(variable)) for variable in metric.variables]
    return np.concatenate(found).astype(np.float64)


def main():
    import tensorflow as tf

    import keras

    def masked(array, mask):
        tensor = tf.constant(array)
        tensor._keras_mask = tf.constant(mask)
        return tensor

    found, facts = {}, {}
    for case, (name, arguments, _) in CASES.items():
        for extra in extras(case):
            metric = getattr(keras.metrics, name)(**arguments)
            values = followed(metric, case, extra, masked, np.asarray)
            found[f"{case}|{extra}"] = values.astype(np.float32)
        config = metric.get_config()
        config.pop("name")
        if config.get("label_weights") is not None:
            config["label_weights"] = np.asarray(config["label_weights"]).tolist()
        paths = [variable.path.partition("/")[2] for variable in metric.variables]
        facts[case] = {"config": config, "variables": paths}
    path = pathlib.Path(__file__).with_name("metrics.npz")
    np.savez_compressed(
        path, version=keras.__version__, facts=json.dumps(facts), **found
    )
    print(path, os.path.getsize(path), "bytes, Keras", keras.__version__)


if __name__ == "__main__":
    main()
