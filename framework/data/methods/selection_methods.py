"""Methods of `Dataset` that select, order and keep elements: shuffle, take, cache, ..."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tapewright.core.messages.suggestions import suggesting_methods

from ..elements import checked_count, concrete
from ..iterator import refuse_trace
from ..nodes.caching import Cache, Prefetch
from ..nodes.node import INFINITE, UNKNOWN
from ..nodes.ordering import Repeat, Shard, Shuffle, Skip, Take
from ..nodes.scanning import IgnoreErrors, TakeWhile, Unique, check_unique
from ..nodes.sources import joined_by
from .node_methods import NodeMethods

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from tapewright.core.typing import IntLike


@suggesting_methods
class SelectionMethods(NodeMethods):
    """See `Dataset`."""

    def shuffle(
        self,
        buffer_size: IntLike,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Self:
        """Shuffle the elements through a buffer of ``buffer_size`` elements.

        The buffer is filled with the first elements; each element is then drawn from it
        at random and replaced by the next one of the input. Only a buffer as large as
        the dataset shuffles uniformly.

        Args:
            buffer_size: Number of elements in the buffer; `UNKNOWN_CARDINALITY` makes
                it as large as the dataset.
            seed: Integer seed of the order; None takes it from `random.set_seed` or
                ``keras.utils.set_random_seed``.
            reshuffle_each_iteration: If True, each iteration has a different order; if
                False, all have the same order.

        Raises:
            ValueError: If ``buffer_size`` is below 1 and not `UNKNOWN_CARDINALITY`, or
                if the buffer is to hold an infinite dataset.

        Example:
            >>> from tapewright.data import Dataset
            >>> ds = Dataset.range(5).shuffle(5, seed=1)
            >>> sorted(int(x) for x in ds)
            [0, 1, 2, 3, 4]
        """
        if concrete(buffer_size) == UNKNOWN:
            if self._node.size() == INFINITE:
                raise ValueError(
                    "shuffle: buffer_size must be given for an infinite dataset"
                )
            buffer_size = sys.maxsize
        buffer_size = checked_count("shuffle", "buffer_size", buffer_size, 1)
        again = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        return self._new(Shuffle(self._node, buffer_size, seed, again))

    def repeat(self, count: IntLike | None = None, name: str | None = None) -> Self:
        """Repeat the elements ``count`` times.

        Args:
            count: Number of repetitions; None or -1 repeats without end.

        Raises:
            ValueError: If ``count`` is below -1.

        Example:
            >>> [int(x) for x in tw.data.Dataset.range(3).repeat(2)]
            [0, 1, 2, 0, 1, 2]
        """
        if count is not None:
            count = checked_count("repeat", "count", count, -1)
        return self._new(Repeat(self._node, count))

    def take(self, count: IntLike, name: str | None = None) -> Self:
        """Keep the first ``count`` elements.

        Args:
            count: Number of elements; -1 keeps all.

        Raises:
            ValueError: If ``count`` is below -1.

        Example:
            >>> [int(x) for x in tw.data.Dataset.range(5).take(2)]
            [0, 1]
        """
        return self._new(Take(self._node, checked_count("take", "count", count, -1)))

    def skip(self, count: IntLike, name: str | None = None) -> Self:
        """Drop the first ``count`` elements.

        Args:
            count: Number of elements; -1 drops all.

        Raises:
            ValueError: If ``count`` is below -1.

        Example:
            >>> [int(x) for x in tw.data.Dataset.range(5).skip(2)]
            [2, 3, 4]
        """
        return self._new(Skip(self._node, checked_count("skip", "count", count, -1)))

    def shard(
        self, num_shards: IntLike, index: IntLike, name: str | None = None
    ) -> Self:
        """Keep every ``num_shards``-th element, starting at number ``index``.

        Args:
            num_shards: Number of shards, such as the number of workers.
            index: Number of this shard, from 0.

        Raises:
            ValueError: Unless ``0 <= index < num_shards``.

        Example:
            >>> [int(x) for x in tw.data.Dataset.range(7).shard(3, 1)]
            [1, 4]
        """
        num_shards = checked_count("shard", "num_shards", num_shards, 1)
        index = checked_count("shard", "index", index, 0)
        if index >= num_shards:
            raise ValueError(
                f"shard: index must be below num_shards, got {index} and {num_shards}"
            )
        return self._new(Shard(self._node, num_shards, index))

    def take_while(
        self, predicate: Callable[..., Any], name: str | None = None
    ) -> Self:
        """Keep the elements until ``predicate`` is false for the first time.

        Args:
            predicate: Function of an element, called as in `map`, that returns a
                boolean scalar.

        Raises:
            TypeError: If it does not return a boolean scalar, during iteration.

        Example:
            >>> from tapewright.data import Dataset
            >>> [int(x) for x in Dataset.range(9).take_while(lambda x: x * x < 10)]
            [0, 1, 2, 3]
        """
        return self._new(TakeWhile(self._node, predicate))

    def unique(self, name: str | None = None) -> Self:
        """Drop elements that have occurred before.

        All distinct elements are held in memory.

        Raises:
            TypeError: Unless an element is one tensor of int32, int64 or strings.

        Example:
            >>> from tapewright.data import Dataset
            >>> [int(x) for x in Dataset.from_tensor_slices([3, 1, 3, 2, 1]).unique()]
            [3, 1, 2]
        """
        if self._node.declares():
            check_unique(self._node.spec())
        return self._new(Unique(self._node))

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Self:
        """Drop the elements that raise an error.

        Iteration continues if the transformation directly before can continue, such as
        `map`, `filter` and files; otherwise, as for `shuffle`, the error is raised.

        Args:
            log_warning: If True, log a warning for each dropped element.

        Example:
            >>> from tapewright.data import Dataset
            >>> ds = Dataset.from_tensor_slices([1, 0, 2]).map(lambda x: 6 // int(x))
            >>> [int(x) for x in ds.ignore_errors()]
            [6, 3]
        """
        return self._new(IgnoreErrors(self._node, log_warning))

    # --- caching and prefetching

    def cache(
        self, filename: str | os.PathLike[str] = "", name: str | None = None
    ) -> Self:
        """Cache the elements of the first complete iteration for later iterations.

        Args:
            filename: File for the elements, which other processes can read, too; ""
                caches in memory. An existing file is read, whatever dataset wrote it:
                remove it when the data change. The format differs from TensorFlow's.

        Raises:
            TypeError: If an element contains anything but tensors in tuples and dicts,
                which a file cannot hold, during iteration.
            DataLossError: If the file is damaged, during iteration.

        Example:
            >>> import os, tempfile
            >>> from tapewright.data import Dataset
            >>> path = os.path.join(tempfile.mkdtemp(), "numbers")
            >>> ds = Dataset.range(3).map(lambda x: x * x).cache(path)
            >>> [int(x) for x in ds], os.path.exists(path)
            ([0, 1, 4], True)
        """
        if filename:
            from ..files.file_cache import FileCache

            return self._new(FileCache(self._node, os.fsdecode(filename)))
        return self._new(Cache(self._node))

    def snapshot(
        self,
        path: str | os.PathLike[str],
        compression: str | None = "AUTO",
        reader_func: Callable[[Any], Any] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """Cache the elements of the first complete iteration in a folder.

        An existing folder is read, whatever dataset wrote it. `save` and `load` write
        and read such folders directly.

        Args:
            path: Folder for the elements.
            compression: "GZIP" or "ZLIB"; None or "AUTO" for no compression.
            reader_func: Function that joins the files, as in `load`.
            shard_func: Function that returns the file of an element, as in `save`.
        """
        from ..files.saving import Snapshot

        compression = None if compression == "AUTO" else compression
        join = joined_by(reader_func, self._new)
        return self._new(Snapshot(self._node, path, compression, shard_func, join))

    # --- saving

    def save(
        self,
        path: str | os.PathLike[str],
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: None = None,
    ) -> None:
        """Write all elements into a folder, from which `Dataset.load` reads them.

        The folder is written completely or not at all, and replaces an existing folder
        with a dataset. It contains TFRecord files and a description as JSON; the format
        differs from TensorFlow's.

        Args:
            path: Folder to write.
            compression: "GZIP" or "ZLIB", or None for no compression.
            shard_func: Function of an element that returns the number of its file; None
                writes one file.
            checkpoint_args: Must be None.

        Raises:
            ValueError: If the dataset is infinite.
            TypeError: If an element contains anything but tensors, ragged and sparse
                ones included, in tuples and dicts.
            SavingError: If the folder contains other files.

        Example:
            >>> import os, tempfile
            >>> from tapewright.data import Dataset
            >>> path = os.path.join(tempfile.mkdtemp(), "numbers")
            >>> Dataset.range(5).save(path, shard_func=lambda x: x % 2)
            >>> [int(x) for x in Dataset.load(path)]
            [0, 2, 4, 1, 3]
        """
        from ..files.saving import save

        if checkpoint_args is not None:
            raise ValueError(
                "save: checkpoint_args must be None, since the folder is written at once; "
                f"got {checkpoint_args!r}"
            )
        refuse_trace("Dataset.save()")
        save(self._node, path, compression, shard_func)

    def prefetch(self, buffer_size: IntLike, name: str | None = None) -> Self:
        """Prepare up to ``buffer_size`` elements ahead of use, in a background thread.

        While the program computes with one batch, the thread loads the next. Put it at
        the end of a pipeline.

        Args:
            buffer_size: Number of elements to hold ready; `AUTOTUNE` and 0 are 2.

        Raises:
            ValueError: If ``buffer_size`` is below -1.

        Example:
            >>> ds = tw.data.Dataset.range(6).batch(2).prefetch(tw.data.AUTOTUNE)
            >>> [x.numpy().tolist() for x in ds]
            [[0, 1], [2, 3], [4, 5]]
        """
        buffer_size = checked_count("prefetch", "buffer_size", buffer_size, -1)
        return self._new(Prefetch(self._node, buffer_size))
