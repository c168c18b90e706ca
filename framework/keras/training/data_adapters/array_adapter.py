"""Batches of arrays: a `Dataset` of their rows, shuffled and batched.

Slices are views; shuffled rows take one gather per array. Gathering ahead in a thread
was measured not to pay off: 468 gathers of 128 rows of 784 take 20 ms (10 ms in machine
code, see `row_taker`), and matrix products leave no core idle meanwhile.

On a GPU the arrays are copied to the device once, if they fit, and batches are gathered
there by an order that is copied once per pass.
"""

import math
import numbers

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.hardware import devices
from tapewright.core.nest import (
    assert_same_structure,
    flatten,
    is_nested,
    map_structure,
    pack,
)
from tapewright.data.dataset import Dataset
from tapewright.data.nodes.batching import Batch
from tapewright.data.nodes.node import Seeded, Selection
from tapewright.data.nodes.ordering import Shuffle
from tapewright.data.nodes.sources import Slices
from tapewright.data.rng import permutation

from .data_adapter import DataAdapter
from .data_adapter_utils import (
    as_arrays,
    class_weight_to_sample_weight,
    named_leaves,
    pack_x_y_sample_weight,
)

# Arrays move to a GPU if they take no more than this part of what is free there.
PART_OF_MEMORY = 0.5


class ArrayAdapter(DataAdapter):
    """Batches of arrays of equal length; the last batch may be smaller.

    ``shuffle`` is False, True (a new order in each pass) or ``"batch"`` (only within
    each batch). The orders follow from a key drawn from `random`'s global generator.
    ``arrays`` holds all arrays, ``x``, ``(x, y)`` or ``(x, y, sample_weight)``, on the
    current device if they fit.
    """

    def __init__(self, x, y, sample_weight, batch_size, steps, shuffle, class_weight):
        x, y = as_arrays("x", x), as_arrays("y", y)
        sample_weight = _weights(y, as_arrays("sample_weight", sample_weight))
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError("pass class_weight or sample_weight, not both")
            sample_weight = class_weight_to_sample_weight(y, class_weight)
        if y is None and sample_weight is not None:
            raise ValueError("sample_weight: requires y")
        self.num_samples = count = _length(x, y, sample_weight)
        self.batch_size = batch_size or (math.ceil(count / steps) if steps else 32)
        self.arrays = _on_device(pack_x_y_sample_weight(x, y, sample_weight))
        rows = Slices(self.arrays)
        if shuffle == "batch":
            rows = _BatchShuffle(rows)
        elif shuffle:
            rows = Shuffle(rows, count)
        super().__init__(Dataset(Batch(rows, self.batch_size)), x)
        self.source = "the arrays"
        self._modules = {devices.array_module(type(a)) for a in rows.rows.arrays}

    def convert(self, batch):
        if self._modules == {devices.current_module()}:
            return batch
        return super().convert(batch)


def _on_device(arrays):
    """Copy arrays to the current GPU if they fit; return them unchanged on the CPU."""
    module = devices.current_module()
    host = [
        leaf
        for leaf in flatten(arrays)
        if leaf is not None and devices.array_module(type(leaf)) is not module
    ]
    if not host or module is np:
        return arrays
    size, are_numbers = 0, True
    for leaf in host:
        size += leaf.nbytes
        are_numbers &= kind_of(leaf.dtype) in "biufc"
    if not are_numbers or size > PART_OF_MEMORY * devices.free_memory(module):
        return arrays
    return map_structure(
        lambda leaf: leaf if leaf is None else _moved(module, leaf), arrays
    )


def _moved(module, array):
    if devices.array_module(type(array)) is module:
        return array
    try:
        return devices.copy_to(module, array)
    except Exception as error:
        if devices.is_out_of_memory(error):
            raise devices.memory_error("copying the data set", error) from None
        raise


class _BatchShuffle(Seeded, Selection):
    """Shuffle the rows within each batch."""

    def blocks(self, position, size):
        count = -(-self.size() // size)
        for rows in self.inputs[0].blocks(position["inputs"][0], size):
            number = position["run"] * count + position["given"]
            position["given"] += 1
            order = permutation(rows.stop - rows.start, position["seed"], number)
            yield rows.start + order


def _weights(y, sample_weight):
    """Return sample weights in the structure of the labels; one array applies to all."""
    if sample_weight is None or not is_nested(y):
        return sample_weight
    if is_nested(sample_weight):
        try:
            assert_same_structure(y, sample_weight)
        except ValueError:
            raise ValueError(
                "sample_weight: must be one array, or nested like y; got "
                f"{_outline('sample_weight', sample_weight)} beside {_outline('y', y)}"
            ) from None
        return sample_weight
    if sample_weight.ndim > 1 and sample_weight.shape != (len(sample_weight), 1):
        raise ValueError(
            "sample_weight: one array for several outputs must have one "
            f"weight per sample, got shape {sample_weight.shape}; otherwise "
            "pass one array per output"
        )
    return pack(y, [sample_weight] * len(flatten(y)))


def _outline(name, structure):
    return ", ".join(path for path, _ in named_leaves(name, structure))


def _length(x, y, sample_weight):
    """Return the number of samples, which must be the same for all arrays."""
    parts = {"x": x, "y": y, "sample_weight": sample_weight}
    leaves = [leaf for name, part in parts.items() for leaf in named_leaves(name, part)]
    if not leaves:
        raise ValueError("x: must contain an array, got none")
    lengths = {len(array) for _, array in leaves}
    if len(lengths) > 1:
        shapes = "\n".join(f"  {path}: shape {array.shape}" for path, array in leaves)
        raise ValueError(
            f"all arrays must have the same number of samples, got:\n{shapes}"
        )
    if lengths == {0}:
        raise ValueError(
            f"{leaves[0][0]}: must have at least one sample, got shape "
            f"{leaves[0][1].shape}"
        )
    return lengths.pop()


def train_validation_split(arrays, validation_split):
    """Split arrays into training and validation data, which is the last part of each array.

    Args:
        arrays: Structure of arrays of equal length, such as ``(x, y)``; None is kept.
        validation_split: Fraction of the samples, between 0 and 1, both excluded.

    Returns:
        ``(train, validation)``, two structures like ``arrays``, of views.

    Raises:
        TypeError: If an element cannot be split.
        ValueError: If a part would be empty.

    Example:
        >>> from tapewright.keras.training.data_adapters import array_adapter
        >>> import numpy as np
        >>> array_adapter.train_validation_split((np.arange(4), None), 0.25)
        ((array([0, 1, 2]), None), (array([3]), None))
    """
    if not isinstance(validation_split, numbers.Real) or not 0 < validation_split < 1:
        raise ValueError(
            f"validation_split: must be between 0 and 1, got {validation_split!r}"
        )
    try:
        arrays = as_arrays("validation_split", arrays)
    except TypeError as error:
        raise TypeError(f"{error}; pass validation_data for other data") from None
    leaves = flatten(arrays)
    size = _length(arrays, None, None)
    at = math.floor(size * (1.0 - validation_split))
    if at in (0, size):
        raise ValueError(
            f"validation_split: {validation_split} of {size} samples leaves one part "
            "empty; pass more data or another fraction"
        )
    return tuple(
        [
            pack(arrays, [None if leaf is None else leaf[part] for leaf in leaves])
            for part in (slice(0, at), slice(at, size))
        ]
    )
