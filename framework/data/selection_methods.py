"""Methods of `Dataset` that select, order and keep elements: shuffle, take, cache, ..."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tapewright.core.suggestions import suggesting_methods

from .caching import Cache, Prefetch
from .elements import checked_count, concrete
from .iterator import refuse_trace
from .node import INFINITE, UNKNOWN
from .node_methods import NodeMethods
from .ordering import Repeat, Shard, Shuffle, Skip, Take
from .scanning import IgnoreErrors, TakeWhile, Unique, check_unique
from .sources import joined_by

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from tapewright.core.typing import IntLike

__all__ = ["SelectionMethods"]


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
        """Shuffle the elements through a buffer of ``buffer_size``.

        A buffer as large as the data set gives each order the same chance;
        `UNKNOWN_CARDINALITY` makes it that large. Without
        ``seed`` the order follows from `random.set_seed` or
        ``keras.utils.set_random_seed``. Each run has another order, or the same one
        without ``reshuffle_each_iteration``.

        Raises: ``ValueError`` for another ``buffer_size`` below 1, and for an endless data
        set as a whole.

        Example:
            >>> from tapewright.data import Dataset
            >>> sorted(int(x) for x in Dataset.range(5).shuffle(5, seed=1))
            [0, 1, 2, 3, 4]
        """
        if concrete(buffer_size) == UNKNOWN:
            if self._node.size() == INFINITE:
                raise ValueError("shuffle: an endless data set needs a buffer_size")
            buffer_size = sys.maxsize
        buffer_size = checked_count("shuffle", "buffer_size", buffer_size, 1)
        again = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        return self._new(Shuffle(self._node, buffer_size, seed, again))

    def repeat(self, count: IntLike | None = None, name: str | None = None) -> Self:
        """Repeat the elements ``count`` times, without end for None or -1.

        Raises: ``ValueError`` for other negative numbers.
        """
        if count is not None:
            count = checked_count("repeat", "count", count, -1)
        return self._new(Repeat(self._node, count))

    def take(self, count: IntLike, name: str | None = None) -> Self:
        """Keep the first ``count`` elements, all of them for -1.

        Raises: ``ValueError`` for other negative numbers.
        """
        return self._new(Take(self._node, checked_count("take", "count", count, -1)))

    def skip(self, count: IntLike, name: str | None = None) -> Self:
        """Drop the first ``count`` elements, all of them for -1.

        Raises: ``ValueError`` for other negative numbers.
        """
        return self._new(Skip(self._node, checked_count("skip", "count", count, -1)))

    def shard(
        self, num_shards: IntLike, index: IntLike, name: str | None = None
    ) -> Self:
        """Keep every ``num_shards``-th element, from number ``index`` on.

        Raises: ``ValueError`` unless ``0 <= index < num_shards``.
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
        """Keep the elements before the first for which ``predicate`` is false.

        Raises: ``TypeError``, in a run, if it returns anything but a truth value.

        Example:
            >>> from tapewright.data import Dataset
            >>> [int(x) for x in Dataset.range(9).take_while(lambda x: x * x < 10)]
            [0, 1, 2, 3]
        """
        return self._new(TakeWhile(self._node, predicate))

    def unique(self, name: str | None = None) -> Self:
        """Keep each element the first time that it comes.

        All elements that are different are held in memory.

        Raises: ``TypeError`` unless an element is one tensor of int32, int64 or strings.

        Example:
            >>> from tapewright.data import Dataset
            >>> [int(x) for x in Dataset.from_tensor_slices([3, 1, 3, 2, 1]).unique()]
            [3, 1, 2]
        """
        if self._node.declares():
            check_unique(self._node.spec())
        return self._new(Unique(self._node))

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Self:
        """Leave out the elements that raise an error, with a warning for each if asked for.

        The rest follows if the transformation directly before can go on, as `map`, `filter`
        and files can; if it cannot, such as `shuffle`, the error is raised.

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
        """Keep the elements of the first whole run for the following runs.

        Args: ``filename``: a file to keep them in, also for other processes; by default
        they are in memory. A file that is there is read, whatever data set it is of: remove
        it when the data change. It is not in TensorFlow's format.

        Raises, in a run: ``TypeError`` for elements that a file cannot hold: other than
        tensors in tuples and dicts; ``DataLossError`` for a damaged file.

        Example:
            >>> import os, tempfile
            >>> from tapewright.data import Dataset
            >>> path = os.path.join(tempfile.mkdtemp(), "numbers")
            >>> ds = Dataset.range(3).map(lambda x: x * x).cache(path)
            >>> [int(x) for x in ds], os.path.exists(path)
            ([0, 1, 4], True)
        """
        if filename:
            from .file_cache import FileCache

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
        """Keep the elements of the first whole run in a folder, see `save` and `load`.

        A folder that is there is read, whatever data set it is of.

        Args: ``compression``: None, "GZIP" or "ZLIB"; "AUTO" is None; the others are those
        of `save` and `load`.
        """
        from .saving import Snapshot

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

        The folder is written as a whole or not at all, and replaces an older one of this
        kind. It has TFRecord files and a description as JSON, in a format of its own, not
        TensorFlow's.

        Args: ``compression``: None, "GZIP" or "ZLIB"; ``shard_func``: a function of an
        element that returns the number of its file, by default 0; ``checkpoint_args``:
        must be None.

        Raises: ``ValueError`` for an endless data set; ``TypeError`` for elements that a
        file cannot hold: other than tensors, sparse and ragged ones included, in tuples
        and dicts; `SavingError` if the folder has other files.

        Example:
            >>> import os, tempfile
            >>> from tapewright.data import Dataset
            >>> path = os.path.join(tempfile.mkdtemp(), "numbers")
            >>> Dataset.range(5).save(path, shard_func=lambda x: x % 2)
            >>> [int(x) for x in Dataset.load(path)]
            [0, 2, 4, 1, 3]
        """
        from .saving import save

        if checkpoint_args is not None:
            raise ValueError(
                "save: checkpoint_args must be None, as the folder is written as a whole; "
                f"got {checkpoint_args!r}"
            )
        refuse_trace("Dataset.save()")
        save(self._node, path, compression, shard_func)

    def prefetch(self, buffer_size: IntLike, name: str | None = None) -> Self:
        """Make up to ``buffer_size`` elements ahead, in a thread; `AUTOTUNE` is 2.

        Raises: ``ValueError`` for a number below -1.
        """
        buffer_size = checked_count("prefetch", "buffer_size", buffer_size, -1)
        return self._new(Prefetch(self._node, buffer_size))
