"""Rows of an HDF5 file, which may be larger than memory: `Dataset.from_hdf5`."""

import os
from contextlib import contextmanager
from itertools import islice

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import SavingError
from tapewright.core.messages.suggestions import suggestion
from tapewright.core.nest import flatten, pack
from tapewright.core.tensor import TensorSpec, new_tensor
from tapewright.ops.random.philox import draw_at
from tapewright.storage.reader import Array, opened

from ..elements import packer
from ..nodes.node import Seeded, Selection, in_blocks
from ..nodes.sources import Slices
from ..rng import permutation
from .read_ahead import PIECE, read_batches, row_bytes, whole_chunks

BUFFER = 64 << 20  # bytes of rows in memory, unless the user says how many rows
SPLIT = 4  # blocks of a window, at least, where the chunks of the file allow it
AT_ONCE = 64  # rows to gather where they are given out one by one


def hdf5_slices(path, names, shuffle, seed, buffer_size):
    """Check the arguments of `Dataset.from_hdf5` and return its node."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"from_hdf5: path must be the path of a file, got {type(path).__name__}"
        )
    names = tuple(names) if type(names) is list else names
    leaves = flatten(names)
    if not leaves or not all([isinstance(name, str) for name in leaves]):
        raise TypeError(
            "from_hdf5: names must be the name of a dataset in the file, or a tuple or "
            f"dict of names; got {names!r}"
        )
    rows = _HDF5Rows(os.path.abspath(path), names, buffer_size)
    source = HDF5Slices(rows)
    return BlockShuffle(source, rows.block, rows.window, seed) if shuffle else source


class HDF5Slices(Slices):
    """The rows of HDF5 datasets of one length."""

    def __init__(self, rows):
        Selection.__init__(self)
        self._rows = rows

    def spec(self):
        return self._rows.spec()


class BlockShuffle(Seeded, Selection):
    """Adjacent rows as blocks in random order; rows are mixed across a few blocks.

    As many blocks as ``window`` rows hold are read together, and their rows yielded in
    random order. Any position is found directly.
    """

    def __init__(self, source, block, window, seed=None):
        super().__init__(source, seed=seed)
        self._layout = {
            "rows": source.size(),
            "block": block,
            "together": max(window // block, 1),
        }

    def start(self):
        return super().start() | self._layout

    def next_round(self, position):
        layout = {key: position[key] for key in self._layout}
        return super().next_round(position) | layout

    def select(self, position, run):
        if position["rows"] != self.size():
            raise ValueError(
                f"restore: the position is in a file of {position['rows']} rows, this "
                f"one has {self.size()}"
            )
        skipped = position["given"]
        for number, blocks in enumerate(self._groups(position)):
            count = sum(map(len, blocks))
            if skipped >= count:
                skipped -= count
                continue
            rows = np.concatenate([np.arange(b.start, b.stop) for b in blocks])
            turn = position["run"], position["round"]
            key, counter = [position["seed"], 0], [0, 1 + number, *turn]
            order = draw_at(key, counter, lambda rng, n=count: rng.permutation(n))
            for index in rows[order[skipped:]].tolist():
                position["given"] += 1
                yield index
            skipped = 0

    def _groups(self, position):
        """Yield lists of the blocks that are read together, as ranges, in random order."""
        rows, block, together = [position[key] for key in self._layout]
        turn = [position[key] for key in ("seed", "run", "round")]
        order = permutation(-(-rows // block), *turn).tolist()
        for first in range(0, len(order), together):
            yield [
                range(number * block, min((number + 1) * block, rows))
                for number in order[first : first + together]
            ]


class _HDF5Rows:
    """Rows of HDF5 datasets in a file, which is open while they are read.

    ``window`` is the number of rows read at once, ``block`` the number of rows stored
    together in the file.
    """

    reads_ahead = True

    def __init__(self, path, names, buffer_size):
        self._path, self._names = path, names
        self._pack = packer(names)
        with opened(path, check=False) as root:
            arrays = [_array(root, name) for name in flatten(names)]
            _check_lengths(path, arrays)
            self._specs = [(array.shape, array.dtype) for array in arrays]
            widest = max(arrays, key=row_bytes)
            if buffer_size is None:
                buffer_size = max(BUFFER // sum(map(row_bytes, arrays)), 2)
            window = min(-(-buffer_size // 2), max(len(self), 1))
            rows = min(PIECE // row_bytes(widest), window // SPLIT)
            self.block = whole_chunks(widest, rows)
        self.window = max(window, min(self.block, len(self)))

    def __len__(self):
        return self._specs[0][0][0]

    def spec(self):
        """Return the structure of a row, with specs."""
        specs = [TensorSpec(shape[1:], as_dtype(dtype)) for shape, dtype in self._specs]
        return pack(self._names, specs)

    def elements(self, numbers):
        """Yield the rows of these numbers, which are taken ahead."""
        for columns in self._gathered(in_blocks(numbers, AT_ONCE)):
            for row in zip(*columns, strict=True):
                # A copy: the others need not stay in memory for as long as this one.
                yield self._pack([new_tensor(np.array(value)) for value in row])

    def groups(self, groups):
        """Yield a list of rows for each list of numbers; lists are taken ahead."""
        for columns in self._gathered(np.array(group, np.intp) for group in groups):
            rows = zip(*columns, strict=True)
            yield [self._pack([new_tensor(np.array(v)) for v in row]) for row in rows]

    def batches(self, blocks, size):
        """Yield rows as elements with a new first axis; blocks are taken ahead."""
        for columns in self._gathered(map(_numbers, blocks)):
            yield self._pack([new_tensor(column) for column in columns])

    def _gathered(self, batches):
        with self._opened() as arrays:
            yield from read_batches(arrays, batches, self.window, self.block)

    @contextmanager
    def _opened(self):
        with opened(self._path, check=False) as root:
            arrays = [_array(root, name) for name in flatten(self._names)]
            if [(array.shape, array.dtype) for array in arrays] != self._specs:
                raise SavingError(
                    self._path, "has changed: its datasets have another shape or dtype"
                )
            yield arrays


def _numbers(block):
    return np.arange(block.start, block.stop) if isinstance(block, slice) else block


def _array(root, name):
    """Return the array of a name if its rows can be tensors."""
    array = root.find(name.strip("/"))
    if not isinstance(array, Array):
        raise ValueError(
            f"from_hdf5: names: {root.path} has no dataset {name!r}{_hint(root, name)}"
        )
    if not array.shape:
        raise ValueError(
            f"from_hdf5: names: {name!r} in {root.path} is a scalar; a dataset needs a "
            "first axis, the rows"
        )
    array.check_filters()
    try:
        as_dtype(array.dtype)
    except (SavingError, TypeError) as error:
        raise TypeError(
            f"from_hdf5: names: {name!r} in {root.path} cannot be a tensor of numbers: "
            f"{getattr(error, 'reason', error)}"
        ) from None
    return array


def _hint(root, name):
    """Return a similar name, or else the existing names."""
    try:
        known = [array.name.lstrip("/") for array in islice(root.arrays(), 1000)]
    except SavingError:  # there are links, which are refused
        known = root.keys()
    return suggestion(name.strip("/"), known, "it has")


def _check_lengths(path, arrays):
    if len({array.shape[0] for array in arrays}) > 1:
        shapes = [f"{array.name.lstrip('/')!r} {array.shape}" for array in arrays]
        raise ValueError(
            "from_hdf5: names: the datasets must have the same length; in "
            f"{path} the shapes are {', '.join(shapes)}"
        )
