"""Lookup of metrics by name: in `compile`, in configs, and by the shapes of the data."""

from __future__ import annotations

from typing import Any

from tapewright.core.names.naming import snake_case
from tapewright.serialization.object_config import ObjectFamily
from tapewright.serialization.registry import register

from .. import losses
from . import accuracy, correlation, probabilistic, regression
from .metric import Metric
from .reduction import MeanMetricWrapper

_SHORT = {
    "bce": probabilistic.BinaryCrossentropy,
    "mae": regression.MeanAbsoluteError,
    "mape": regression.MeanAbsolutePercentageError,
    "mse": regression.MeanSquaredError,
    "msle": regression.MeanSquaredLogarithmicError,
}
BY_LABELS = {  # the metric or loss of these names depends on the kind of the labels
    "acc": "accuracy",
    "accuracy": "accuracy",
    "ce": "crossentropy",
    "crossentropy": "crossentropy",
}


_family = ObjectFamily("metric", function_names=False)
get, serialize, deserialize = _family.get, _family.serialize, _family.deserialize


def resolve(identifier: Any, y_true: Any, y_pred: Any) -> Any:
    """Return the `Metric` for an identifier in `compile`, given labels and outputs.

    The names "accuracy" ("acc") and "crossentropy" ("ce") select the metric that fits
    the `_kind_of_labels`. A function is wrapped as its mean. The name is the identifier,
    or the name of the object.

    Raises:
        ValueError: If the identifier is None or an unknown name.
        TypeError: If it has an unsupported type.

    Example:
        >>> from tapewright.keras.metrics.serialization import resolve
        >>> resolve("acc", tw.zeros([4]), tw.zeros([4, 10]))
        <SparseCategoricalAccuracy name=acc>
    """
    if identifier is None:
        raise ValueError("metrics: must be a name, a function or a Metric, got None")
    if isinstance(identifier, str):
        name, metric = identifier, get(name_for_labels(identifier, y_true, y_pred))
    else:
        metric = get(identifier)
        name = _name_of(metric)
    if not isinstance(metric, Metric):
        return MeanMetricWrapper(metric, name=name)
    metric.name = name
    return metric


def name_for_labels(name: str, y_true: Any, y_pred: Any) -> str:
    """Return the full name for "accuracy", "acc", "crossentropy" or "ce"; else ``name``."""
    stem = BY_LABELS.get(name.lower())
    return name if stem is None else f"{_kind_of_labels(y_true, y_pred)}_{stem}"


def _kind_of_labels(y_true: Any, y_pred: Any) -> str:
    """Return "binary", "sparse_categorical" or "categorical", judged by the shapes.

    Outputs whose last axis has size 1 are binary. Labels are sparse if they have one
    axis less than the outputs, or a last axis of size 1.

    Example:
        >>> from tapewright.keras.metrics.serialization import _kind_of_labels
        >>> _kind_of_labels(tw.zeros([4, 1]), tw.zeros([4, 10]))
        'sparse_categorical'
    """
    labels, outputs = tuple(y_true.shape), tuple(y_pred.shape)
    if outputs[-1:] == (1,):
        return "binary"
    fewer = len(labels) < len(outputs) or labels[-1:] == (1,)
    return "sparse_categorical" if fewer else "categorical"


def _name_of(metric):
    """Return the name for a result: of an object, or of its function or class."""
    if hasattr(metric, "name"):
        return metric.name
    name = getattr(metric, "__name__", type(metric).__name__)
    return snake_case("".join([c for c in name if c.isalnum() or c == "_"]))


def _register():
    for name, cls in _SHORT.items():
        register("metric", name, cls)
    functions = [
        getattr(module, name)
        for module in (losses, accuracy, correlation)
        for name in module.__all__
        if name.islower() and name not in ("get", "serialize", "deserialize")
    ]
    for function in (*functions, accuracy.accuracy):
        register("metric function", function.__name__, function)


_register()
