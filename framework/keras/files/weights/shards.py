"""Weights in several files, as Keras splits them, with a ``.weights.json`` index.

The ``weight_map`` of the index maps each group, such as ``/layers/dense/vars``, to the
file in the same folder that contains it, or to several files that contain parts of its
arrays.
"""

import os
from contextlib import ExitStack, contextmanager

from tapewright.storage import strict_json
from tapewright.storage.atomic import replacing
from tapewright.storage.reader import MergedGroup, opened
from tapewright.storage.shard_index import MAX_SHARDS, read_index
from tapewright.storage.writer import writing


@contextmanager
def opened_shards(path):
    """Open the root group of all shards together, as a context manager.

    Raises:
        SavingError: If the file is not an index, or a shard does not exist.
    """
    lists = read_index(path).values()
    paths = dict.fromkeys(each for paths in lists for each in paths)
    with ExitStack() as stack:
        yield MergedGroup([stack.enter_context(opened(each)) for each in paths])


@contextmanager
def writing_shards(path, max_bytes, overwrite=True):
    """Yield a root group of new files of at most ``max_bytes``, put in place at the end.

    ``path``: path of the index, ``name.weights.json``; the files are
    ``name_00000.weights.h5`` and so on, in the same folder. The index is put in place
    last.

    Raises:
        SavingError: If a file cannot be written; older files are then unchanged.
        ValueError: If an array is larger than ``max_bytes``; older files are then
            unchanged.
    """
    with ExitStack() as stack:
        index = stack.enter_context(replacing(path, overwrite))
        shards = _Shards(path, max_bytes, overwrite, stack)
        yield _ShardedGroup(shards)
        with open(index, "w", encoding="utf-8") as file:
            file.write(strict_json.dumps(shards.index))


class _Shards:
    """The files being written, and their index; the last file is the current one."""

    def __init__(self, path, max_bytes, overwrite, stack):
        self.max_bytes, self._overwrite, self._stack = max_bytes, overwrite, stack
        self._stem = path.removesuffix(".weights.json")
        self._count, self._size = 0, 0
        self.index = {"metadata": {"total_size": 0}, "weight_map": {}}
        self._begin()

    def _begin(self):
        if self._count == MAX_SHARDS:
            raise ValueError(
                f"save_weights: max_shard_size needs more than {MAX_SHARDS} files; "
                "increase it"
            )
        path = f"{self._stem}_{self._count:05}.weights.h5"
        self.root = self._stack.enter_context(writing(path, self._overwrite))
        self.name, self._size = os.path.basename(path), 0
        self._count += 1

    def group_for(self, path, array):
        """Return the group of the file that has room for an array, and add it to the index."""
        size = array.nbytes
        if size > self.max_bytes:
            raise ValueError(
                "save_weights: max_shard_size must be at least the size of each "
                f"weight: {path} has {size} bytes, more than {self.max_bytes:.0f}"
            )
        if self._size + size > self.max_bytes:
            self._begin()
        self._size += size
        self.index["metadata"]["total_size"] += size
        names = self.index["weight_map"].setdefault(path, [])
        if self.name not in names:
            names.append(self.name)
        return self.root.group(path)


class _ShardedGroup:
    """Group whose arrays are written to the current file."""

    def __init__(self, shards, name=""):
        self._shards, self._name, self._texts = shards, name, {}

    def group(self, path):
        return _ShardedGroup(self._shards, f"{self._name}/{path}")

    def text(self, key, text):
        self._texts[key] = text  # for each file that has arrays of the group

    def array(self, path, array, **attributes):
        group = self._shards.group_for(self._name, array)
        for key, text in self._texts.items():
            group.text(key, text)
        group.array(path, array, **attributes)
