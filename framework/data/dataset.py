"""`Dataset`: chains of transformations that yield elements, with positions to keep.

The names, arguments and defaults are those of ``tf.data``. Functions run as Python, on
tensors in host memory; nothing runs before an element is asked for.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from tapewright.core.dtypes import int64
from tapewright.core.interpreters import active_tracer
from tapewright.core.nest import flatten, map_structure, pack
from tapewright.core.tensor import constant
from tapewright.core.typing import as_shape

from .batching import Batch, PaddedBatch, RaggedBatch, SparseBatch, Unbatch
from .caching import Cache, Prefetch
from .elements import as_element, concrete, detached, map_leaves
from .iterator import DatasetIterator, check_state, refuse_loop, refuse_trace
from .mapping import Concatenate, Enumerate, Filter, Map, Zip
from .nesting import Interleave, Window
from .node import INFINITE, UNKNOWN
from .ordering import Repeat, Shard, Shuffle, Skip, Take
from .sources import Counter, Elements, FromGenerator, signature, tensor_slices
from .tracing import Optional, new_run, steps_of, traceable, traced_reduce

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Iterator as ElementIterator
    from typing import Any

    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, IntLike, ShapeLike

    from .node import Node

__all__ = [
    "AUTOTUNE",
    "Dataset",
    "DatasetIterator",
    "INFINITE_CARDINALITY",
    "Iterator",
    "Optional",
    "UNKNOWN_CARDINALITY",
]

AUTOTUNE = -1
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = INFINITE, UNKNOWN


class Dataset:
    """A sequence of elements, made on demand: tensors, or tuples and dicts of tensors.

    A ``from_`` function creates one; methods transform it, and each returns a new data
    set. It is iterated over any number of times, and passed to `fit`, `evaluate` and
    `predict`. The position of an iterator can be saved and restored: see
    `DatasetIterator`. ``len`` is the number of elements, if it is known.

    >>> from tapewright import data
    >>> ds = data.Dataset.range(10).filter(lambda x: x % 2 == 0).map(lambda x: x * x)
    >>> list(ds.batch(3).as_numpy_iterator())
    [array([ 0,  4, 16]), array([36, 64])]
    """

    def __init__(self, node: Node):
        self._node = node

    # --- sources

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """Create a data set of the rows of arrays; ``(x, y)`` gives pairs of rows.

        Arrays are copied once. If `shuffle` and `batch` follow directly, whole batches
        are gathered.

        Shapes: arrays ``[n, ...]``, in any nest, give n elements ``[...]``.

        Raises: ``ValueError`` for an array without axes, or for different lengths.

        >>> from tapewright.data import Dataset
        >>> ds = Dataset.from_tensor_slices({"x": [1, 2], "y": [3, 4]})
        >>> [{k: int(v) for k, v in element.items()} for element in ds]
        [{'x': 1, 'y': 3}, {'x': 2, 'y': 4}]
        """
        return Dataset(tensor_slices(tensors))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """Create a data set of one element, ``tensors`` as a whole.

        >>> from tapewright.data import Dataset
        >>> [x.numpy().tolist() for x in Dataset.from_tensors([1, 2])]
        [[1, 2]]
        """
        return Dataset(Elements([as_element(tensors)]))

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
        output_signature: Any = None,
    ) -> Dataset:
        """Create a data set of the items of ``generator(*args)``, called for each run.

        Args: ``output_signature``: a `TensorSpec` for each tensor, against which
        elements are checked; or ``output_types`` and ``output_shapes``.

        Raises: ``TypeError`` if ``generator`` is not callable or, in a run, if an item
        does not fit ``output_signature``.

        >>> import tapewright as tw
        >>> def numbers(n):
        ...     yield from range(n)
        >>> spec = tw.TensorSpec([], "int32")
        >>> ds = tw.data.Dataset.from_generator(numbers, args=[3], output_signature=spec)
        >>> [int(x) for x in ds]
        [0, 1, 2]
        """
        spec = signature(output_signature, output_types, output_shapes)
        return Dataset(FromGenerator(generator, args or (), spec))

    @staticmethod
    def from_hdf5(
        path: str | os.PathLike[str],
        names: Any,
        *,
        shuffle: bool = False,
        seed: int | None = None,
        buffer_size: IntLike | None = None,
    ) -> Dataset:
        """Create a data set of the rows of datasets in an HDF5 file of any size.

        Rows are read in large pieces, ahead of their use; at most ``buffer_size`` of them
        are in memory. If `take`, `skip`, `shard` or `repeat` follow directly, only the rows
        that they select are read. The file is open during a run, and must not change
        between runs.

        Args: ``path``: of the file; ``names``: the name of a dataset in it
        (``"train/images"``), or a tuple or dict of names, the structure of an element:
        ``("images", "labels")`` for `fit`. ``shuffle``: shuffle by blocks, which are chunks
        of the file or neighbouring rows: blocks come in random order, and the rows of those
        that half of the buffer holds are mixed. ``seed``: that of the order, which differs
        between runs, as in the method `shuffle`. ``buffer_size``: in rows, by default 64 MB;
        a larger one mixes better.

        Returns: a `Dataset` of rows, of a known length. The method `shuffle` may follow,
        but with a buffer larger than this one it reads single rows, or chunks again and
        again: prefer ``shuffle=True`` for such files.

        Raises: ``FileNotFoundError``; ``ValueError`` for a name that is not in the file, a
        scalar, or datasets of different lengths; ``TypeError`` for strings or compound
        types; `SavingError`, as it runs, if the file has changed.

        >>> import os, tempfile, h5py, numpy as np
        >>> path = os.path.join(tempfile.mkdtemp(), "data.h5")
        >>> with h5py.File(path, "w") as file:
        ...     file["images"], file["labels"] = np.zeros((100, 28, 28)), np.arange(100)
        >>> from tapewright.data import Dataset
        >>> ds = Dataset.from_hdf5(path, ("images", "labels"), shuffle=True).batch(32)
        >>> [(x.shape.as_list(), y.shape.as_list()) for x, y in ds][-1]
        ([4, 28, 28], [4])
        """
        if buffer_size is not None:
            buffer_size = _count("from_hdf5", "buffer_size", buffer_size, 1)
        from .hdf5 import hdf5_slices

        return Dataset(hdf5_slices(path, names, shuffle, seed, buffer_size))

    @staticmethod
    def range(*args: IntLike, output_type: DTypeLike = int64) -> Dataset:
        """Create a data set of integers: ``range(stop)`` or ``range(start, stop, step)``.

        Raises: ``ValueError`` for a step of 0.
        """
        return Dataset(Counter(*args, output_type=output_type))

    @staticmethod
    def zip(*args: Any, datasets: Any = None) -> Dataset:
        """Join one element of each data set, in the structure of the arguments.

        Raises: ``TypeError`` for an argument that is no data set.

        >>> from tapewright.data import Dataset
        >>> pairs = Dataset.zip(Dataset.range(2), Dataset.range(5, 9))
        >>> [(int(a), int(b)) for a, b in pairs]
        [(0, 5), (1, 6)]
        """
        if datasets is None:
            datasets = args[0] if len(args) == 1 else args
        nodes = [_require_dataset(each, "zip")._node for each in flatten(datasets)]
        return Dataset(Zip(lambda parts: pack(datasets, list(parts)), nodes))

    # --- functions of elements

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Dataset:
        """Apply ``map_func`` to each element; a tuple arrives as several arguments.

        It runs in Python, one call after the other, whatever ``num_parallel_calls`` is;
        `prefetch` runs it in a thread. It runs on the CPU, where the variables that it
        reads must be.

        >>> from tapewright.data import Dataset
        >>> pairs = Dataset.from_tensor_slices(([1, 2], [3, 4]))
        >>> [int(x) for x in pairs.map(lambda x, y: x * y)]
        [3, 8]
        """
        return Dataset(Map(self._node, map_func))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """Keep the elements for which ``predicate`` is true; see `map` for its arguments.

        >>> from tapewright.data import Dataset
        >>> [int(x) for x in Dataset.range(5).filter(lambda x: x % 2 == 1)]
        [1, 3]
        """
        return Dataset(Filter(self._node, predicate))

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """Join the data sets that ``map_func`` returns, one after the other.

        Raises: ``TypeError``, in a run, if it returns no data set.

        >>> from tapewright.data import Dataset
        >>> [int(x) for x in Dataset.range(4).flat_map(lambda n: Dataset.range(n))]
        [0, 0, 1, 0, 1, 2]
        """
        return Dataset(Interleave(self._node, map_func))

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Dataset:
        """`flat_map` with ``cycle_length`` data sets open, which take turns.

        Each gives ``block_length`` elements at a time.

        Raises: ``ValueError`` for numbers below 1.

        >>> from tapewright.data import Dataset
        >>> twice = Dataset.range(4).interleave(
        ...     lambda n: Dataset.from_tensors(n).repeat(2), cycle_length=2
        ... )
        >>> [int(x) for x in twice]
        [0, 1, 0, 1, 2, 3, 2, 3]
        """
        cycle = 1 if cycle_length in (None, AUTOTUNE) else cycle_length
        cycle = _count("interleave", "cycle_length", cycle, 1)
        block = _count("interleave", "block_length", block_length or 1, 1)
        return Dataset(Interleave(self._node, map_func, cycle, block))

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        """Call ``reduce_func(state, element)`` for each element; return the last state.

        >>> import numpy as np
        >>> from tapewright.data import Dataset
        >>> int(Dataset.range(5).reduce(np.int64(0), lambda total, x: total + x))
        10

        In a traced function it is a loop, through a new run in each call.
        """
        if active_tracer() is not None:
            return traced_reduce(self, initial_state, reduce_func)
        state = map_leaves(initial_state, detached)
        for element in self:
            state = map_leaves(reduce_func(state, element), detached)
        return state

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Return ``transformation_func`` of this data set.

        Raises: ``TypeError`` if it returns no data set.
        """
        return _require_dataset(transformation_func(self), "apply")

    # --- elements together

    def batch(
        self,
        batch_size: IntLike,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Dataset:
        """Join ``batch_size`` elements along a new first axis.

        The last batch may be shorter, or is dropped with ``drop_remainder``.

        Raises: ``ValueError`` for a ``batch_size`` below 1 or, in a run, if the
        elements of a batch differ in shape or dtype (`padded_batch` joins them).

        >>> from tapewright.data import Dataset
        >>> [x.numpy().tolist() for x in Dataset.range(5).batch(2)]
        [[0, 1], [2, 3], [4]]
        """
        batch_size = _count("batch", "batch_size", batch_size, 1)
        return Dataset(Batch(self._node, batch_size, drop_remainder))

    def padded_batch(
        self,
        batch_size: IntLike,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
    ) -> Dataset:
        """`batch`, with each element padded at the end, to the longest one or a given shape.

        Args: ``padded_shapes``: for each component a shape, None for an axis padded to
        the longest of the batch; ``padding_values``: by default 0, or "" for strings.

        Raises: ``ValueError``, in a run, for an element larger than ``padded_shapes``.

        >>> from tapewright.data import Dataset
        >>> ds = Dataset.range(1, 4).flat_map(lambda n: Dataset.range(n).batch(3))
        >>> [x.numpy().tolist() for x in ds.padded_batch(3, padding_values=9)]
        [[[0, 9, 9], [0, 1, 9], [0, 1, 2]]]
        """
        batch_size = _count("padded_batch", "batch_size", batch_size, 1)
        return Dataset(
            PaddedBatch(
                self._node, batch_size, padded_shapes, padding_values, drop_remainder
            )
        )

    def ragged_batch(
        self,
        batch_size: IntLike,
        drop_remainder: bool = False,
        row_splits_dtype: DTypeLike = int64,
        name: str | None = None,
    ) -> Dataset:
        """`batch`, of tensors whose first sizes differ as a `RaggedTensor`.

        Components of a known shape are batched as tensors.

        Raises: ``ValueError`` for a ``batch_size`` below 1, or other sizes that differ.

        >>> from tapewright.data import Dataset
        >>> import tapewright as tw
        >>> ds = Dataset.range(3).map(lambda n: tw.fill([n], n))
        >>> list(ds.ragged_batch(3))
        [<tf.RaggedTensor [[], [1], [2, 2]]>]
        """
        batch_size = _count("ragged_batch", "batch_size", batch_size, 1)
        return Dataset(
            RaggedBatch(self._node, batch_size, drop_remainder, row_splits_dtype)
        )

    def sparse_batch(
        self, batch_size: IntLike, row_shape: ShapeLike, name: str | None = None
    ) -> Dataset:
        """`batch`, of tensors of different sizes as a `SparseTensor` of rows of one shape.

        Args: ``row_shape``: the shape of a row, no smaller than any element.

        Raises: ``ValueError`` for a ``batch_size`` below 1 or, in a run, for an element
        that is larger, or of another rank.

        >>> from tapewright.data import Dataset
        >>> import tapewright as tw
        >>> ds = Dataset.range(3).map(lambda n: tw.fill([n], n)).sparse_batch(3, [4])
        >>> next(iter(ds)).indices.numpy().tolist()
        [[1, 0], [2, 0], [2, 1]]
        """
        batch_size = _count("sparse_batch", "batch_size", batch_size, 1)
        return Dataset(SparseBatch(self._node, batch_size, as_shape(row_shape)))

    def unbatch(self) -> Dataset:
        """Split each element into its rows.

        Raises: ``ValueError``, in a run, if the components have no first axis of one
        size.
        """
        return Dataset(Unbatch(self._node))

    def window(
        self,
        size: IntLike,
        shift: IntLike | None = None,
        stride: IntLike = 1,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Make data sets of ``size`` elements, ``stride`` apart, each ``shift`` after the last.

        ``drop_remainder`` drops the shorter ones at the end.

        Raises: ``ValueError`` for numbers below 1.

        >>> from tapewright.data import Dataset
        >>> windows = Dataset.range(5).window(3, shift=1, drop_remainder=True)
        >>> [w.numpy().tolist() for w in windows.flat_map(lambda w: w.batch(3))]
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        """
        size = _count("window", "size", size, 1)
        shift = size if shift is None else _count("window", "shift", shift, 1)
        stride = _count("window", "stride", stride, 1)
        return Dataset(Window(self._node, Dataset, size, shift, stride, drop_remainder))

    def enumerate(self, start: IntLike = 0) -> Dataset:
        """Pair each element with its number, counted from ``start``."""
        return Dataset(Enumerate(self._node, int(concrete(start))))

    def concatenate(self, dataset: Dataset) -> Dataset:
        """Append the elements of another data set.

        Raises: ``TypeError`` if ``dataset`` is none.
        """
        return Dataset(
            Concatenate(self._node, _require_dataset(dataset, "concatenate")._node)
        )

    # --- selection and order

    def shuffle(
        self,
        buffer_size: IntLike,
        seed: int | None = None,
        reshuffle_each_iteration: bool = True,
    ) -> Dataset:
        """Shuffle the elements through a buffer of ``buffer_size``.

        A buffer as large as the data set gives each order the same chance. Without
        ``seed`` the order follows from `random.set_seed` or
        ``keras.utils.set_random_seed``. Each run has another order, or the same one
        without ``reshuffle_each_iteration``.

        Raises: ``ValueError`` for a ``buffer_size`` below 1.

        >>> from tapewright.data import Dataset
        >>> sorted(int(x) for x in Dataset.range(5).shuffle(5, seed=1))
        [0, 1, 2, 3, 4]
        """
        buffer_size = _count("shuffle", "buffer_size", buffer_size, 1)
        again = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        return Dataset(Shuffle(self._node, buffer_size, seed, again))

    def repeat(self, count: IntLike | None = None) -> Dataset:
        """Repeat the elements ``count`` times, without end for None or -1.

        Raises: ``ValueError`` for other negative numbers.
        """
        if count is not None:
            count = _count("repeat", "count", count, -1)
        return Dataset(Repeat(self._node, count))

    def take(self, count: IntLike) -> Dataset:
        """Keep the first ``count`` elements, all of them for -1.

        Raises: ``ValueError`` for other negative numbers.
        """
        return Dataset(Take(self._node, _count("take", "count", count, -1)))

    def skip(self, count: IntLike) -> Dataset:
        """Drop the first ``count`` elements, all of them for -1.

        Raises: ``ValueError`` for other negative numbers.
        """
        return Dataset(Skip(self._node, _count("skip", "count", count, -1)))

    def shard(self, num_shards: IntLike, index: IntLike) -> Dataset:
        """Keep every ``num_shards``-th element, from number ``index`` on.

        Raises: ``ValueError`` unless ``0 <= index < num_shards``.
        """
        num_shards = _count("shard", "num_shards", num_shards, 1)
        index = _count("shard", "index", index, 0)
        if index >= num_shards:
            raise ValueError(
                f"shard: index must be below num_shards, got {index} and {num_shards}"
            )
        return Dataset(Shard(self._node, num_shards, index))

    # --- caching and prefetching

    def cache(self, filename: str = "") -> Dataset:
        """Keep the elements of the first run in memory for the following runs.

        Raises: ``ValueError`` for a ``filename``: nothing is kept in files.
        """
        if filename:
            raise ValueError(
                f"cache: only caching in memory is supported, got filename={filename!r}"
            )
        return Dataset(Cache(self._node))

    def prefetch(self, buffer_size: IntLike) -> Dataset:
        """Make up to ``buffer_size`` elements ahead, in a thread; `AUTOTUNE` is 2.

        Raises: ``ValueError`` for a number below -1.
        """
        buffer_size = _count("prefetch", "buffer_size", buffer_size, -1)
        return Dataset(Prefetch(self._node, buffer_size))

    # --- properties

    @property
    def element_spec(self) -> Any:
        """The structure of an element, with a `TensorSpec` for each tensor.

        It is None if the sizes vary. For `map` the function is traced once; if that
        fails, the first element is made.
        """
        return self._node.spec()

    @property
    def declared_spec(self) -> Any:
        """`element_spec` if it is known without making an element; else None."""
        return self._node.spec() if self._node.declares() else None

    def cardinality(self) -> Tensor:
        """The number of elements, an int64 scalar: -1 if it is endless, -2 if it is unknown."""
        return constant(self._node.size(), int64)

    def __len__(self) -> int:
        size = self._node.size()
        if size < 0:
            length = "endless" if size == INFINITE else "of unknown length"
            raise TypeError(f"The data set is {length}; see cardinality()")
        return size

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> DatasetIterator:
        if active_tracer() is not None:
            refuse_loop("a Dataset")
        return DatasetIterator(self._node)

    def traced_steps(self) -> Any:
        """Return the steps of a `for` in a traced function, of a new run in each call."""
        spec = self.declared_spec
        traceable(spec, "for ... in a Dataset")
        return steps_of(new_run(self), spec, "for ... in a Dataset")

    def state(self) -> dict:
        """Return the state of the orders of later runs, as plain values.

        The position within a run is that of a `DatasetIterator`.
        """
        refuse_trace("Dataset.state()")
        return {"pipeline": self._node.pipeline(), "runs": self._node.runs()}

    def restore(self, state: dict[str, Any]) -> None:
        """Make the next runs those that followed when `state` was called.

        Raises: ``ValueError`` if the state is of another chain of transformations.
        """
        refuse_trace("Dataset.restore()")
        check_state(self._node, state)
        self._node.set_runs(state["runs"])

    def as_numpy_iterator(self) -> ElementIterator[Any]:
        """Iterate over the elements with NumPy arrays in place of tensors."""
        iterator = iter(self)
        while (element := iterator.take(lambda element: None)) is not None:
            yield map_structure(
                lambda leaf: leaf.numpy() if hasattr(leaf, "numpy") else leaf, element
            )

    def get_single_element(self) -> Any:
        """Return the only element.

        Raises: ``ValueError`` if there is none, or more than one.
        """
        elements = list(self.take(2))
        if len(elements) != 1:
            raise ValueError(
                "get_single_element: there must be one element, the data set "
                f"{'is empty' if not elements else 'has more'}"
            )
        return elements[0]

    def __repr__(self) -> str:
        return f"<Dataset {' < '.join(self._node.pipeline())}>"


Iterator = DatasetIterator


def _require_dataset(dataset, who):
    if not isinstance(dataset, Dataset):
        raise TypeError(f"{who}: expects a Dataset, got {type(dataset).__name__}")
    return dataset


def _count(who, name, value, least):
    value = concrete(value)
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{who}: {name} must be an integer, got {value!r}") from None
    if number < least:
        raise ValueError(f"{who}: {name} must be at least {least}, got {number}")
    return number
