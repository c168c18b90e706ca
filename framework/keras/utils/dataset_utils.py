"""Split a data set in two, and a time series into windows."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.hardware import devices
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.core.tensor import convert_to_tensor
from tapewright.data.dataset import Dataset
from tapewright.data.elements import stack_elements
from tapewright.data.nodes.batching import batch_size_of
from tapewright.ops.array.gather import gather
from tapewright.ops.array.shape import expand_dims

if TYPE_CHECKING:
    from typing import Any

    from tapewright.core.typing import TensorLike


def split_dataset(
    dataset: Any,
    left_size: float | None = None,
    right_size: float | None = None,
    shuffle: bool = False,
    seed: int | None = None,
    preferred_backend: str | None = None,
) -> tuple[Dataset, Dataset]:
    """Split a data set in two: ``left_size`` samples from the start, the others.

    Args:
        dataset: Array, list or tuple of arrays with one length, or `data.Dataset`,
            which is read completely.
        left_size: Number of samples at the start, or a fraction below 1; by default all
            samples that ``right_size`` leaves.
        right_size: Number of samples at the end, or a fraction below 1; by default all
            samples that ``left_size`` leaves.
        shuffle: If True, first shuffle the samples by Python's ``random``.
        seed: Seed of the shuffle.
        preferred_backend: Kind of the result; "torch" is not supported.

    Returns:
        Two `data.Dataset`, batched like ``dataset`` if it is batched.

    Raises:
        ValueError: If the sizes do not fit the number of samples, or arrays have
            different lengths.
        TypeError: If ``dataset`` has another type.

    Example:
        >>> import numpy as np
        >>> left, right = keras.utils.split_dataset(np.arange(10), left_size=0.8)
        >>> len(left), list(right.as_numpy_iterator())
        (8, [np.int64(8), np.int64(9)])
    """
    if preferred_backend not in (None, "tensorflow", "jax"):
        raise ValueError(
            "split_dataset: preferred_backend must be None or 'tensorflow', as the "
            f"results are tw.data.Datasets, got {preferred_backend!r}"
        )
    import random  # a good millisecond, and not needed before

    arrays, batch_size = _arrays(dataset)
    total = len(flatten(arrays)[0])
    left, right = _sizes(left_size, right_size, total)
    order = list(range(total))
    if shuffle:
        random.Random(random.randint(0, 10**6) if seed is None else seed).shuffle(order)
    parts = []
    for rows in (order[:left], order[total - right :]):
        part = map_structure(lambda array, rows=rows: array[rows], arrays)
        split = Dataset.from_tensor_slices(part)
        parts.append(split if batch_size is None else split.batch(batch_size))
    return tuple(parts)


def _arrays(dataset):
    """Return the samples as a structure of arrays, and the batch size or None."""
    batch_size = None
    if isinstance(dataset, Dataset):
        batch_size = batch_size_of(dataset)
        dataset = dataset if batch_size is None else dataset.unbatch()
        with devices.use_module(np):  # the elements stay on the host
            elements = list(dataset)
        if not elements:
            raise ValueError("split_dataset: the Dataset is empty")
        dataset = stack_elements(elements, "split_dataset")
    elif not is_nested(dataset) and not hasattr(dataset, "__array__"):
        raise TypeError(
            "split_dataset: dataset must be an array, a list or tuple of arrays, or a "
            f"Dataset, got {type(dataset).__name__}"
        )
    arrays = map_structure(np.asarray, dataset)
    shapes = [array.shape for array in flatten(arrays)]
    if (
        not shapes
        or len({shape[:1] for shape in shapes}) > 1
        or shapes[0] in ((), (0,))
    ):
        raise ValueError(
            "split_dataset: all arrays must have the same number of samples, at least "
            f"one; got shapes {shapes}"
        )
    return tuple(arrays) if isinstance(arrays, list) else arrays, batch_size


def _sizes(left, right, total):
    if left is None and right is None:
        raise ValueError("split_dataset: pass left_size, right_size or both")
    left = _size("left_size", left, total)
    right = _size("right_size", right, total)
    left = total - right if left is None else left
    right = total - left if right is None else right
    if left + right > total or not left or not right:
        raise ValueError(
            f"split_dataset: {total} samples cannot be split into {left} and {right}"
        )
    return left, right


def _size(name, size, total):
    if size is None:
        return None
    if isinstance(size, Integral) and not isinstance(size, bool):
        if 0 < size < total:
            return int(size)
    elif isinstance(size, float):
        if 0 < size < 1:
            return round(size * total)
    else:
        raise TypeError(
            f"split_dataset: {name} must be an int or a float, got {size!r}"
        )
    raise ValueError(
        f"split_dataset: {name} must be a number from 1 to {total - 1} or a fraction "
        f"between 0 and 1, got {size}"
    )


def timeseries_dataset_from_array(
    data: TensorLike,
    targets: TensorLike,
    sequence_length: int,
    sequence_stride: int = 1,
    sampling_rate: int = 1,
    batch_size: int = 128,
    shuffle: bool = False,
    seed: int | None = None,
    start_index: int | None = None,
    end_index: int | None = None,
    format: str = "tf",
) -> Dataset:
    """Create a data set of sliding windows over a time series, with targets.

    Window ``k`` holds ``sequence_length`` steps
    ``data[s], data[s + sampling_rate], ...`` with ``s = k * sequence_stride``. Its
    target is the target at the first index.

    Args:
        data: Time series.
        targets: Targets, one per time step, or None.
        sequence_length: Number of steps in a window.
        sequence_stride: Distance between the starts of windows.
        sampling_rate: Distance between the steps of a window.
        batch_size: Number of windows per batch; None for single windows.
        shuffle: If True, shuffle the windows.
        seed: Seed of the shuffle.
        start_index: First step of ``data`` and ``targets`` that is used.
        end_index: Step before which ``data`` and ``targets`` end.
        format: "tf", for a `data.Dataset`.

    Shapes:
        ``data`` ``[time, ...]``; ``targets`` ``[time, ...]`` or None; windows
        ``[batch, sequence_length, ...]``.

    Returns:
        A `data.Dataset` of ``windows`` or ``(windows, targets)``.

    Raises:
        ValueError: If a length is not positive, or an index is outside of the data.

    Example:
        >>> import numpy as np
        >>> windows = keras.utils.timeseries_dataset_from_array(np.arange(5), None, 3)
        >>> next(windows.as_numpy_iterator())
        array([[0, 1, 2],
               [1, 2, 3],
               [2, 3, 4]])
    """
    if format != "tf":
        raise ValueError(
            "timeseries_dataset_from_array: format must be 'tf', for a tw.data.Dataset, got "
            f"{format!r}"
        )
    data = np.asarray(data)
    start, end = _bounds(start_index, end_index, len(data))
    for name, given in (
        ("sequence_length", sequence_length),
        ("sequence_stride", sequence_stride),
        ("sampling_rate", sampling_rate),
    ):
        if given <= 0 or (name != "sequence_length" and given >= len(data)):
            raise ValueError(
                f"timeseries_dataset_from_array: {name} must be from 1 to the length of "
                f"data, {len(data)}, got {given}"
            )
    count = end - start - (sequence_length - 1) * sampling_rate
    if targets is not None:
        targets = np.asarray(targets)
        count = min(count, len(targets))
        targets = convert_to_tensor(targets[start:end])
    series = convert_to_tensor(data[start:end])
    offsets = convert_to_tensor(np.arange(sequence_length) * sampling_rate)

    def windows(first):
        series_windows = gather(series, expand_dims(first, -1) + offsets)
        return (
            series_windows
            if targets is None
            else (series_windows, gather(targets, first))
        )

    positions = np.arange(0, max(count, 0), sequence_stride)
    dataset = Dataset.from_tensor_slices(positions)
    if shuffle:
        dataset = dataset.shuffle(max(len(positions), 1), seed=seed)
    return (dataset if batch_size is None else dataset.batch(batch_size)).map(windows)


def _bounds(start, end, length):
    start, end = start or 0, length if end is None else end
    if not 0 <= start < end <= length:
        raise ValueError(
            "timeseries_dataset_from_array: start_index and end_index must be in order "
            f"and within data of length {length}, got {start} and {end}"
        )
    return start, end
