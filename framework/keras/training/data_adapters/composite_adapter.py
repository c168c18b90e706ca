"""Batches of sparse and ragged tensors, also combined with arrays: a `Dataset` of rows."""

import math

from tapewright.core.nest import flatten, is_nested
from tapewright.core.tensor import is_composite
from tapewright.data.dataset import Dataset

from .data_adapter import DataAdapter
from .data_adapter_utils import as_arrays, pack_x_y_sample_weight


def has_composites(x):
    """Return whether there are sparse or ragged tensors among the arrays."""
    return any(map(is_composite, flatten(x) if is_nested(x) else [x]))


def composite_adapter(x, y, sample_weight, batch_size, steps, shuffle, class_weight):
    """Return the adapter of ``x`` with sparse or ragged tensors; see `EpochIterator`.

    Raises:
        ValueError: If tensors have different lengths, or ``shuffle`` is "batch".
    """
    if shuffle == "batch":
        raise ValueError(
            "shuffle: 'batch' is for arrays; pass True or False with sparse "
            "and ragged tensors"
        )
    parts = {"x": x, "y": y, "sample_weight": sample_weight}
    columns = [_columns(name, part) for name, part in parts.items()]
    data = Dataset.from_tensor_slices(pack_x_y_sample_weight(*columns))
    count = len(data)
    if shuffle:
        data = data.shuffle(count)
    size = batch_size or (math.ceil(count / steps) if steps else 32)
    return DataAdapter(data.batch(size), x, None, class_weight)


def _columns(name, part):
    """Return the arrays and tensors of an argument, with lists replaced by tuples.

    A `Dataset` would take a list as a single array.
    """
    if is_composite(part):
        return part
    if isinstance(part, dict) and has_composites(part):
        return {key: _columns(f"{name}[{key!r}]", part[key]) for key in part}
    if isinstance(part, (list, tuple)) and has_composites(part):
        return tuple([_columns(f"{name}[{i}]", each) for i, each in enumerate(part)])
    arrays = as_arrays(name, part)
    return tuple(arrays) if isinstance(arrays, list) else arrays
