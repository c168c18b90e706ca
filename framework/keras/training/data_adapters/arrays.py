"""Batches cut from arrays: views where the order stays, one gather per array where not.

A thread that gathers ahead was measured not to pay: 468 gathers of 128 rows of 784 take
20 ms (10 by machine code, see `row_taker`), and matrix products leave no core idle
meanwhile.
"""

import math
import numbers

import numpy as np

from tapewright.core import devices
from tapewright.core.nest import assert_same_structure, flatten, is_nested, pack
from tapewright.core.tensor import new_tensor
from tapewright.data.gathering import row_taker
from tapewright.data.node import new_seed

from ..class_weights import class_weight_to_sample_weight
from ..epoch_iterator import Batches
from .packing import as_arrays, named_leaves, pack_x_y_sample_weight

__all__ = ["ArrayBatches", "order_of", "train_validation_split"]


def order_of(seed, number, size):
    """A permutation of ``range(size)``: the one of pass ``number`` under this seed."""
    bits = np.random.Philox(key=seed, counter=[0, 0, number, 0])
    return np.random.Generator(bits).permutation(size)


class ArrayBatches(Batches):
    """Batches of arrays of one length; the last one may be shorter.

    ``shuffle`` is False, True (a new order in each pass) or ``"batch"`` (only within
    each batch). The orders follow from a key drawn from `random`'s global generator.
    ``arrays``: all of them, ``x``, ``(x, y)`` or ``(x, y, sample_weight)``.
    """

    source = "the arrays"

    def __init__(
        self,
        x,
        y=None,
        sample_weight=None,
        batch_size=None,
        steps=None,
        shuffle=False,
        class_weight=None,
    ):
        super().__init__(steps)
        x, y = as_arrays("x", x), as_arrays("y", y)
        sample_weight = _weights(y, as_arrays("sample_weight", sample_weight))
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError("give class_weight or sample_weight, not both")
            sample_weight = class_weight_to_sample_weight(y, class_weight)
        if y is None and sample_weight is not None:
            raise ValueError("sample_weight: needs y beside it")
        self.num_samples = _length(x, y, sample_weight)
        if batch_size is None:
            batch_size = math.ceil(self.num_samples / steps) if steps else 32
        self.batch_size = batch_size
        self.size = math.ceil(self.num_samples / batch_size)
        self.arrays = pack_x_y_sample_weight(x, y, sample_weight)
        self._leaves = flatten(self.arrays)
        self._shuffle = shuffle
        self._seed = new_seed() if shuffle else 0

    def _open(self, number, start):
        whole = self._shuffle and self._shuffle != "batch"
        order = order_of(self._seed, number, self.num_samples) if whole else None
        readers = [
            None if leaf is None else _reader(leaf, self.batch_size)
            for leaf in self._leaves
        ]
        for step in range(start, self.size):
            first = step * self.batch_size
            rows = slice(first, min(first + self.batch_size, self.num_samples))
            if order is not None:
                rows = order[rows]
            elif self._shuffle:
                within = order_of(
                    self._seed, number * self.size + step, rows.stop - first
                )
                rows = within + first
            yield pack(
                self.arrays,
                [None if read is None else read(rows) for read in readers],
            )

    def state(self):
        return {**super().state(), "seed": self._seed}

    def restore(self, state):
        self._seed = state.get("seed", self._seed)
        super().restore(state)


def _reader(array, size):
    """Return ``read``: ``read(rows)`` is a tensor of them on the current device.

    It is a view for a slice, one gather for an array of numbers.
    """
    module = devices.array_module(type(array))
    take = row_taker(array, size)

    def read(rows):
        if isinstance(rows, slice):
            found = array[rows]
        else:
            found = take(rows if module is np else module.asarray(rows))
        wanted = devices.current_module()
        return new_tensor(found if module is wanted else devices.copy_to(wanted, found))

    return read


def _weights(y, sample_weight):
    """Sample weights as nested as the labels; one array counts for all of them."""
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
            "sample_weight: one array for several outputs must hold one weight per "
            f"sample, got shape {sample_weight.shape}; else give one array per output"
        )
    return pack(y, [sample_weight] * len(flatten(y)))


def _outline(name, structure):
    return ", ".join(path for path, _ in named_leaves(name, structure))


def _length(x, y, sample_weight):
    """How many samples all arrays hold."""
    parts = {"x": x, "y": y, "sample_weight": sample_weight}
    leaves = [leaf for name, part in parts.items() for leaf in named_leaves(name, part)]
    if not leaves:
        raise ValueError("x: holds no array")
    lengths = {len(array) for _, array in leaves}
    if len(lengths) > 1:
        shapes = "\n".join(f"  {path}: shape {array.shape}" for path, array in leaves)
        raise ValueError(
            f"all arrays must hold the same number of samples; they hold:\n{shapes}"
        )
    if lengths == {0}:
        raise ValueError(
            f"there is no data: {leaves[0][0]} has shape {leaves[0][1].shape}"
        )
    return lengths.pop()


def train_validation_split(arrays, validation_split):
    """``(train, validation)``: the last part of each array is for validation.

    Args: ``arrays``: a structure of arrays of one length, such as ``(x, y)``, in which
    None stays; ``validation_split``: the fraction, between 0 and 1, both excluded.
    Returns: two structures like ``arrays``, of views.
    Raises: ``TypeError`` for what cannot be split, ``ValueError`` where a part would be
    empty.

    >>> train_validation_split((np.arange(4), None), 0.25)
    ((array([0, 1, 2]), None), (array([3]), None))
    """
    if not isinstance(validation_split, numbers.Real) or not 0 < validation_split < 1:
        raise ValueError(
            f"validation_split: must be between 0 and 1, got {validation_split!r}"
        )
    try:
        arrays = as_arrays("validation_split", arrays)
    except TypeError as error:
        raise TypeError(f"{error}; give validation_data for other data") from None
    leaves = flatten(arrays)
    size = _length(arrays, None, None)
    at = math.floor(size * (1.0 - validation_split))
    if at in (0, size):
        raise ValueError(
            f"validation_split: {validation_split} of {size} samples leaves one part "
            "empty; give more data or another fraction"
        )
    return tuple(
        [
            pack(arrays, [None if leaf is None else leaf[part] for leaf in leaves])
            for part in (slice(0, at), slice(at, size))
        ]
    )
