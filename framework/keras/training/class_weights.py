"""Labels of arrays: weights by class, and a look at them before training."""

import numbers

import numpy as np

from tapewright.core import devices
from tapewright.core.floatx import default_float
from tapewright.core.nest import is_nested
from tapewright.core.tensor import convert_to_tensor, is_tensor

from .data_adapters.packing import named_leaves

__all__ = ["check_labels", "class_weight_to_sample_weight"]


def check_labels(y, name="y"):
    """Raises ``ValueError`` if labels, given as arrays, hold NaN; says how many and where.

    ``TypeError`` for strings.

    >>> check_labels(np.array([0.0, np.nan]))
    Traceback (most recent call last):
    ...
    ValueError: y: 1 of 2 labels is NaN, the first at index 1; remove these samples
    """
    for path, leaf in named_leaves(name, y):
        array = convert_to_tensor(leaf).array if is_tensor(leaf) else leaf
        if not devices.is_array(array):
            continue
        if array.dtype.kind == "U":
            raise TypeError(
                f"{path}: labels must be numbers, got strings; np.unique(labels, "
                "return_inverse=True) numbers them"
            )
        if array.dtype.kind not in "fc":
            continue
        if not np.isnan(devices.to_numpy(array.sum())):  # one pass, no mask
            continue
        missing = np.isnan(devices.to_numpy(array))
        count, first = int(missing.sum()), np.argwhere(missing)
        if count:
            place = tuple(int(i) for i in first[0])
            raise ValueError(
                f"{path}: {count} of {array.size} labels {'is' if count == 1 else 'are'} "
                f"NaN, the first at index {place[0] if len(place) == 1 else place}; "
                "remove these samples"
            )


def class_weight_to_sample_weight(y, class_weight):
    """``class_weight[label]`` for each label, 1 for classes without a weight.

    Args: ``y``: ``[batch]`` or ``[batch, 1]`` labels, or ``[batch, classes]`` one-hot;
    ``class_weight``: a dict from class to weight.
    Returns: ``[batch]``, `floatx`, in NumPy.

    >>> class_weight_to_sample_weight(np.array([0, 2, 1]), {0: 5.0, 1: 0.5})
    array([5. , 1. , 0.5], dtype=float32)
    """
    if not isinstance(class_weight, dict):
        raise TypeError(
            "class_weight: must be a dict from class (an int) to weight, got "
            f"{type(class_weight).__name__}"
        )
    if y is None or is_nested(y):
        raise ValueError(
            "class_weight: needs a single array of labels; for a model with several "
            "outputs give sample_weight"
        )
    strange = [key for key in class_weight if not isinstance(key, numbers.Real)]
    if strange:
        raise TypeError(
            f"class_weight: classes are numbers, got the key {strange[0]!r}"
        )
    labels = _labels(y)
    classes, places = np.unique(labels, return_inverse=True)
    weights = [_weight(class_weight, int(each)) for each in classes]
    return np.array(weights, default_float().dtype)[places.reshape(-1)]


def _weight(class_weight, label):
    weight = class_weight.get(label, 1.0)
    try:
        return float(weight)
    except (TypeError, ValueError):
        raise TypeError(
            f"class_weight: must give numbers, got {weight!r} for class {label}"
        ) from None


def _labels(y):
    array = convert_to_tensor(y).array if is_tensor(y) else np.asarray(y)
    array = devices.to_numpy(array)
    if array.ndim == 2:
        array = array[:, 0] if array.shape[1] == 1 else array.argmax(axis=1)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise ValueError(
            "class_weight: labels must be integers [batch], [batch, 1], or one-hot "
            f"[batch, classes]; got shape {array.shape}, {array.dtype.name}"
        )
    return np.round(array).astype(np.int64)
