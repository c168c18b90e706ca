"""What `fit`, `evaluate` and `predict` accept, as `Batches`."""

import operator
import warnings
from collections.abc import Iterator

from tapewright.core import devices
from tapewright.core.nest import flatten, is_nested
from tapewright.core.tensor import is_tensor
from tapewright.data.dataset import Dataset

from ..epoch_iterator import Batches
from .arrays import ArrayBatches
from .py_dataset import PyDataset
from .streams import (
    DatasetBatches,
    IterableBatches,
    IteratorBatches,
    SequenceBatches,
)

__all__ = ["Batches", "as_batches"]


def as_batches(
    x=None,
    y=None,
    sample_weight=None,
    batch_size=None,
    steps=None,
    shuffle=False,
    class_weight=None,
) -> Batches:
    """``x``, with ``y`` and ``sample_weight`` if they are arrays, as `Batches`.

    Args: ``x``: arrays, tensors, objects with ``__array__``, or lists, tuples and dicts
    of them; or, with all that belongs to a batch in it, a `data.Dataset`, a `PyDataset`
    or the like, a generator, an iterator or any iterable of batches. ``batch_size``: of
    arrays, by default 32, or so that ``steps`` batches are all. ``steps``: the length of
    an epoch, by default one run through the data. ``shuffle``: of arrays and PyDatasets;
    ``"batch"`` keeps the samples of a batch together. ``class_weight``: a dict that gives
    each label its weight.
    Raises: ``TypeError`` or ``ValueError`` that names the argument, before any batch.

    >>> import numpy as np
    >>> batches = as_batches(np.zeros((70, 3)), np.zeros(70))
    >>> [x.shape[0] for x, y in batches], batches.num_batches
    ([32, 32, 6], 3)
    """
    batch_size = _positive("batch_size", batch_size)
    steps = _positive("steps (or steps_per_epoch)", steps)
    if shuffle not in (True, False, "batch"):
        raise ValueError(f"shuffle: must be True, False or 'batch', got {shuffle!r}")
    if x is None:
        raise ValueError("x: is missing; pass arrays, a Dataset or a generator")
    if isinstance(x, Batches):
        _alone(x, y=y, sample_weight=sample_weight, class_weight=class_weight,
               batch_size=batch_size, steps=steps)  # fmt: skip
        return x
    if _is_arrays(x):
        _arrays_only(y=y, sample_weight=sample_weight)
        return ArrayBatches(
            x, y, sample_weight, batch_size, steps, shuffle, class_weight
        )
    _alone(x, y=y, sample_weight=sample_weight)
    if batch_size is not None:
        warnings.warn(
            f"batch_size is ignored: x, a {type(x).__name__}, makes its own batches",
            stacklevel=3,
        )
    if isinstance(x, Dataset):
        return DatasetBatches(x, steps, class_weight)
    if _is_sequence(x):
        return SequenceBatches(x, steps, class_weight, shuffle)
    kind = IteratorBatches if isinstance(x, Iterator) else IterableBatches
    return kind(x, steps, class_weight)


def _positive(name, value):
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise ValueError(f"{name}: must be a positive integer, got {value!r}")
    return number


def _is_arrays(x):
    """Whether ``x`` is data by itself, rather than something that yields them."""
    if is_nested(x):
        return True
    return is_tensor(x) or devices.is_array(x) or not _yields(x)


def _yields(x):
    if hasattr(x, "__array__") or (
        type(x).__module__.partition(".")[0] == "torch" and hasattr(x, "detach")
    ):
        return False
    if isinstance(x, (str, bytes)):
        return False
    return (
        isinstance(x, (Dataset, PyDataset)) or hasattr(x, "__iter__") or _is_sequence(x)
    )


def _is_sequence(x):
    """Whether batches are had by number: ``__len__`` and ``__getitem__``, no array."""
    if isinstance(x, PyDataset):
        return True
    indexed = hasattr(x, "__getitem__") and hasattr(x, "__len__")
    if indexed and _is_torch_dataset(x):
        raise TypeError(
            f"x: a {type(x).__name__} of torch gives single samples; wrap it in a "
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


def _alone(x, **parts):
    for name, part in parts.items():
        if part is not None:
            raise ValueError(
                f"{name}: x is a {type(x).__name__}, whose batches must bring {name} "
                f"with them; do not pass {name}"
            )
