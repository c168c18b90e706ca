"""Adapters of data for `fit`, `evaluate` and `predict`, and their selection."""

import warnings
from collections.abc import Iterator
from itertools import islice

from tapewright.core.hardware import devices
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.nest import flatten, is_nested
from tapewright.core.tensor import is_tensor
from tapewright.data.dataset import Dataset

from .array_adapter import ArrayAdapter
from .composite_adapter import composite_adapter, has_composites
from .data_adapter import DataAdapter, FromIterable, FromIterator
from .py_dataset_adapter import PyDataset, PyDatasetAdapter

__all__ = ["get_data_adapter"]


def get_data_adapter(x, y, sample_weight, batch_size, steps, shuffle, class_weight):
    """Return the adapter for training data; see `EpochIterator` for the arguments.

    Raises:
        TypeError: If an argument, named in the message, has a wrong type; before any
            batch.
        ValueError: If an argument has a wrong value.
    """
    if shuffle not in (True, False, "batch"):
        raise ValueError(f"shuffle: must be True, False or 'batch', got {shuffle!r}")
    if x is None:
        raise ValueError("x: must be given; pass arrays, a Dataset or a generator")
    if _is_arrays(x):
        _arrays_only(y=y, sample_weight=sample_weight)
        adapter = composite_adapter if has_composites(x) else ArrayAdapter
        return adapter(x, y, sample_weight, batch_size, steps, shuffle, class_weight)
    _refuse_beside(x, y=y, sample_weight=sample_weight)
    if batch_size is not None:
        warnings.warn(
            f"batch_size is ignored: x, a {type(x).__name__}, yields its own batches",
            stacklevel=user_stacklevel(),
        )
    if isinstance(x, Dataset):
        return DataAdapter(x, x, steps, class_weight)
    if _is_sequence(x):
        return PyDatasetAdapter(x, steps, class_weight, shuffle)
    if not isinstance(x, Iterator):
        return DataAdapter(Dataset(FromIterable(x)), x, steps, class_weight)
    first = list(islice(x, 1))
    adapter = DataAdapter(Dataset(FromIterator(x, first)), x, steps, class_weight)
    if not first:
        raise ValueError(f"{adapter.source} yielded no batches")
    adapter.convert(first[0])  # so that mistakes are found before any step
    return adapter


def _is_arrays(x):
    """Return whether ``x`` consists of arrays, rather than yielding batches."""
    if is_nested(x):
        return True
    return is_tensor(x) or devices.is_array(x) or not _yields(x)


def _yields(x):
    is_torch = type(x).__module__.partition(".")[0] == "torch" and hasattr(x, "detach")
    if is_torch or hasattr(x, "__array__") or isinstance(x, (str, bytes)):
        return False
    return hasattr(x, "__iter__") or _is_sequence(x)


def _is_sequence(x):
    """Return whether batches of ``x`` are indexed: ``__len__`` and ``__getitem__``."""
    if isinstance(x, PyDataset):
        return True
    indexed = hasattr(x, "__getitem__") and hasattr(x, "__len__")
    if indexed and _is_torch_dataset(x):
        raise TypeError(
            f"x: a {type(x).__name__} of torch yields single samples; wrap it in a "
            "torch.utils.data.DataLoader"
        )
    return indexed


def _is_torch_dataset(x):
    return any(
        base.__name__ == "Dataset" and base.__module__.startswith("torch.utils.data")
        for base in type(x).__mro__
    )


def _arrays_only(**parts):
    for name, part in parts.items():
        for leaf in flatten(part):
            if leaf is not None and not is_tensor(leaf) and _yields(leaf):
                raise TypeError(
                    f"{name}: x is given as arrays, so {name} must be arrays, too; got "
                    f"{type(leaf).__name__}"
                )


def _refuse_beside(x, **parts):
    for name, part in parts.items():
        if part is not None:
            raise ValueError(
                f"{name}: x is a {type(x).__name__}, whose batches must include "
                f"{name}; do not pass {name}"
            )
