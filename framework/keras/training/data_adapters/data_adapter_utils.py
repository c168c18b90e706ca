"""Batches and their parts: ``x``, ``y`` and ``sample_weight``, converted, named, checked."""

import numbers

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.hardware import devices
from tapewright.core.nest import flatten, is_nested
from tapewright.core.settings.floatx import default_float
from tapewright.core.tensor import (
    convert_to_tensor,
    is_composite,
    is_tensor,
    new_tensor,
)
from tapewright.core.text import as_text, is_text


def unpack_x_y_sample_weight(data):
    """Split a batch into ``(x, y, sample_weight)``, with None for missing parts.

    Args:
        data: Batch: ``x``, ``(x,)``, ``(x, y)`` or ``(x, y, sample_weight)``.

    Returns:
        Tuple ``(x, y, sample_weight)``.

    Raises:
        ValueError: If ``data`` is a tuple whose length is not 1, 2 or 3.

    Example:
        >>> keras.utils.unpack_x_y_sample_weight(("features", "labels"))
        ('features', 'labels', None)
    """
    if not isinstance(data, (list, tuple)):
        return data, None, None
    if not 1 <= len(data) <= 3:
        raise ValueError(
            "A batch must be x, (x,), (x, y) or (x, y, sample_weight); got a "
            f"{type(data).__name__} of {len(data)}"
        )
    return (*data, None, None)[:3]


def pack_x_y_sample_weight(x, y=None, sample_weight=None):
    """Pack ``x``, ``y`` and ``sample_weight`` into a batch: the shortest tuple of them.

    Args:
        x: Inputs.
        y: Labels, or None.
        sample_weight: Weights of the examples, or None.

    Returns:
        ``(x, y, sample_weight)`` or ``(x, y)``; without ``y``, ``x`` itself, or
        ``(x,)`` if it is a list or tuple.

    Example:
        >>> keras.utils.pack_x_y_sample_weight("features", "labels")
        ('features', 'labels')
    """
    if y is None:
        return (x,) if isinstance(x, (list, tuple)) else x
    return (x, y) if sample_weight is None else (x, y, sample_weight)


def named_leaves(name, structure):
    """Return ``[(path, leaf), ...]`` such as ``("x[0]", array)``, without None leaves."""
    if not is_nested(structure):
        return [] if structure is None else [(name, structure)]
    return [leaf for item in _items(name, structure) for leaf in named_leaves(*item)]


def _items(name, structure):
    items = structure.items() if isinstance(structure, dict) else enumerate(structure)
    return [(f"{name}[{key!r}]", item) for key, item in items]


def as_batch(who, batch):
    """Convert a batch of a source to a tuple of one to three structures of tensors.

    Dtypes are kept. Arrays are copied, because their owner may reuse them for the next
    batch.
    """
    if isinstance(batch, list):
        batch = tuple(batch)
    elif not isinstance(batch, tuple):
        batch = (batch,)
    if not 1 <= len(batch) <= 3 or batch[0] is None or isinstance(batch[0], str):
        raise ValueError(
            f"{who}: each batch must be a tuple (x,), (x, y) or (x, y, sample_weight); "
            f"got {_described(batch)}"
        )
    names = ("x", "y", "sample_weight")
    return tuple(
        [
            _tensors(f"{who}: {name}", part)
            for name, part in zip(names, batch, strict=False)
        ]
    )


def _described(batch):
    if isinstance(batch, tuple) and len(batch) == 1 and not is_nested(batch[0]):
        return f"{type(batch[0]).__name__} {str(batch[0])[:60]}"
    return f"{len(batch)} parts: {', '.join(type(part).__name__ for part in batch)}"


def _tensors(name, structure):
    return _converted(name, structure, _tensor)


def _tensor(name, value):
    if is_composite(value):
        return value._tw_with_components(
            [_tensor(name, x) for x in value._tw_components()]
        )
    array = _array(name, value)
    module = devices.current_module()
    if devices.array_module(type(array)) is not module and not is_text(array.dtype):
        array = devices.copy_to(module, array)
    elif array is value and not is_tensor(value):
        array = array.copy()
    return new_tensor(array)


def as_arrays(name, structure):
    """Return ``structure`` with arrays at its leaves; floating arrays become `floatx`.

    A list of Python numbers is one array.

    Raises:
        TypeError: If a value, named in the message, cannot be converted to an array.
    """
    return _converted(name, structure, _floatx_array)


def _converted(name, structure, convert):
    if structure is None:
        return None
    if not is_nested(structure):
        return convert(name, structure)
    is_dict = isinstance(structure, dict)
    if not is_dict and _is_numbers(structure):
        return convert(name, _packed(name, structure))
    items = [_converted(*item, convert) for item in _items(name, structure)]
    if is_dict:
        return dict(zip(structure, items, strict=True))
    if hasattr(structure, "_fields"):
        return type(structure)(*items)
    return items if isinstance(structure, list) else tuple(items)


_NUMBERS = (int, float, complex, str, np.generic)


def _is_numbers(structure):
    return all(
        type(leaf) in _NUMBERS or isinstance(leaf, _NUMBERS)
        for leaf in flatten(structure)
    )


def _packed(name, numbers):
    try:
        return np.array(numbers)
    except ValueError:
        raise ValueError(
            f"{name}: the lists in it must have equal lengths; pad them, for "
            "example with keras.utils.pad_sequences"
        ) from None


def _array(name, value):
    """Return ``value`` as an array, without a copy."""
    if is_tensor(value):
        array = convert_to_tensor(value).array
        if not devices.is_array(array):
            raise TypeError(f"{name}: a symbolic tensor has no values to train on")
    elif isinstance(value, np.ndarray) or (
        devices.is_array(value) and not isinstance(value, np.generic)
    ):
        array = value
    elif type(value).__module__.partition(".")[0] == "torch":
        array = value.detach().cpu().numpy()
    elif hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype == object and _is_of_pandas("DataFrame", value):
            array = _of_frame(name, value, array)
    else:
        raise TypeError(f"{name}: {_no_array(value)}")
    return _checked(name, array)


def _of_frame(name, frame, array):
    """Return the array of a DataFrame; columns of several dtypes are cast to `floatx`."""
    dtypes = dict(zip(frame.columns, frame.dtypes, strict=True))
    others = [column for column, dtype in dtypes.items() if dtype.kind not in "biuf"]
    if not others:
        return frame.to_numpy(default_float().dtype, na_value=np.nan)
    if all([isinstance(entry, str) for entry in array.flat]):
        return array
    raise TypeError(
        f"{name}: column {others[0]!r} of the DataFrame must be numeric, "
        f"got dtype {dtypes[others[0]]}; encode it, for example with "
        "pandas.get_dummies, or pass each column as a separate input "
        "with dict(frame)"
    )


def _no_array(value):
    if hasattr(value, "toarray"):
        return "must not be a sparse matrix; pass its toarray()"
    return (
        "must be arrays, tensors, or lists, tuples and dicts of them, "
        f"got {type(value).__name__}"
    )


def _checked(name, array):
    if array.dtype.kind in "USO":
        try:
            array = as_text(array)
        except TypeError:
            raise TypeError(
                f"{name}: an array must not have dtype object; convert it, for "
                "example with np.array(list(values), 'float32') if all have the "
                "same shape"
            ) from None
    if array.ndim == 0:
        raise ValueError(
            f"{name}: data must have a leading batch axis, got the single value "
            f"{array!r}; batch(n) of a Dataset adds one"
        )
    return array


def _floatx_array(name, value):
    """Return ``value`` as an array, copied only if it has to be cast to `floatx`."""
    array = _array(name, value)
    if _is_of_pandas("Series", value):  # a column, of shape (n, 1)
        array = array[:, None]
    if kind_of(array.dtype) == "f" and array.dtype != default_float().dtype:
        array = array.astype(default_float().dtype)
    return array


def _is_of_pandas(name, value):
    """Return whether ``value`` is an instance of the pandas class of this name."""
    return any(
        cls.__name__ == name and cls.__module__.partition(".")[0] == "pandas"
        for cls in type(value).__mro__
    )


# --- labels


def check_labels(y, name="y"):
    """Reject labels, given as arrays, that contain NaN or strings.

    Raises:
        ValueError: If there are NaNs; the message has their number and the first index.
        TypeError: If labels are strings.

    Example:
        >>> import numpy as np
        >>> from tapewright.keras.training.data_adapters.data_adapter_utils import check_labels
        >>> check_labels(np.array([0.0, np.nan]))
        Traceback (most recent call last):
        ...
        ValueError: y: 1 of 2 labels is NaN, the first at index 1; remove these samples
    """
    for path, leaf in named_leaves(name, y):
        array = convert_to_tensor(leaf).array if is_tensor(leaf) else leaf
        if not devices.is_array(array):
            continue
        if array.dtype.kind in "USO":
            raise TypeError(
                f"{path}: labels must be numbers, got strings; encode them, for "
                "example with np.unique(labels, return_inverse=True)"
            )
        if kind_of(array.dtype) not in "fc":
            continue
        if not np.isnan(devices.to_numpy(array.sum())):  # one pass, no mask
            continue
        missing = np.isnan(devices.to_numpy(array))
        count, first = int(missing.sum()), np.argwhere(missing)
        if count:
            index = tuple(int(i) for i in first[0])
            raise ValueError(
                f"{path}: {count} of {array.size} labels {'is' if count == 1 else 'are'} "
                f"NaN, the first at index {index[0] if len(index) == 1 else index}; "
                "remove these samples"
            )


def class_weight_to_sample_weight(y, class_weight):
    """Return ``class_weight[label]`` for each label, 1 for classes without a weight.

    Args:
        y: Labels ``[batch]`` or ``[batch, ..., 1]``, or one-hot labels
            ``[batch, ..., classes]``, such as a label for each pixel.
        class_weight: Dict from class to weight.

    Returns:
        NumPy array ``[batch]`` or ``[batch, ...]`` of dtype `floatx`.

    Example:
        >>> import numpy as np
        >>> from tapewright.keras.training.data_adapters import data_adapter_utils as utils
        >>> utils.class_weight_to_sample_weight(np.array([0, 2, 1]), {0: 5.0, 1: 0.5})
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
            "outputs pass sample_weight"
        )
    strange = [key for key in class_weight if not isinstance(key, numbers.Real)]
    if strange:
        raise TypeError(f"class_weight: keys must be numbers, got {strange[0]!r}")
    labels = _class_numbers(y)
    classes, inverse = np.unique(labels, return_inverse=True)
    weights = [_weight(class_weight, int(each)) for each in classes]
    return np.array(weights, default_float().dtype)[inverse].reshape(labels.shape)


def _weight(class_weight, label):
    weight = class_weight.get(label, 1.0)
    try:
        return float(weight)
    except (TypeError, ValueError):
        raise TypeError(
            f"class_weight: values must be numbers, got {weight!r} for class {label}"
        ) from None


def _class_numbers(y):
    array = convert_to_tensor(y).array if is_tensor(y) else np.asarray(y)
    array = devices.to_numpy(array)
    if array.ndim == 0 or kind_of(array.dtype) not in "biuf":
        raise ValueError(
            "class_weight: labels must be integers [batch] or [batch, ..., 1], or one-hot "
            f"[batch, ..., classes]; got shape {array.shape}, {array.dtype.name}"
        )
    if array.ndim > 1:
        array = array[..., 0] if array.shape[-1] == 1 else array.argmax(axis=-1)
    return np.round(array).astype(np.int64)
