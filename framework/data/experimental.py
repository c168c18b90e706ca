"""`tw.data.experimental`: CSV files, cardinalities, and transformations for ``apply``.

The transformations are the methods of `Dataset` of the same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.dtypes import int64
from tapewright.core.errors import OutOfRangeError
from tapewright.core.tensor import Tensor

from .csv_files import make_csv_dataset
from .dataset import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Dataset,
    DatasetIterator,
)
from .elements import as_element, checked_count
from .files import CsvDataset
from .options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ThreadingOptions,
)
from .scanning import AssertCardinality
from .sources import Elements
from .tracing import Optional

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import Any

    from tapewright.core.typing import DTypeLike, IntLike, TensorLike

    Transformation = Callable[[Dataset], Dataset]

__all__ = [
    "AUTOTUNE",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "DistributeOptions",
    "ExternalStatePolicy",
    "INFINITE_CARDINALITY",
    "OptimizationOptions",
    "Optional",
    "RandomDataset",
    "ThreadingOptions",
    "UNKNOWN_CARDINALITY",
    "assert_cardinality",
    "at",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "dense_to_ragged_batch",
    "enumerate_dataset",
    "from_list",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_window",
    "ignore_errors",
    "load",
    "make_csv_dataset",
    "map_and_batch",
    "parallel_interleave",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "shuffle_and_repeat",
    "snapshot",
    "take_while",
    "unbatch",
    "unique",
]


def cardinality(dataset: Dataset) -> Tensor:
    """The number of elements, see `Dataset.cardinality`."""
    return dataset.cardinality()


def assert_cardinality(expected_cardinality: IntLike) -> Transformation:
    """Give a data set a known number of elements.

    Raises: ``FailedPreconditionError``, in a run, if there are more or fewer.

    Example:
        >>> from tapewright.data import Dataset
        >>> ds = Dataset.range(9).filter(lambda x: x % 2 == 0).apply(tw.data.experimental.assert_cardinality(5))
        >>> len(ds)
        5
    """
    count = checked_count(
        "assert_cardinality", "expected_cardinality", expected_cardinality, -2
    )
    return lambda dataset: Dataset(AssertCardinality(dataset._node, count))


def dense_to_ragged_batch(
    batch_size: IntLike,
    drop_remainder: bool = False,
    row_splits_dtype: DTypeLike = int64,
) -> Transformation:
    """`tw.data.Dataset.ragged_batch`, for ``apply``."""
    return lambda dataset: dataset.ragged_batch(
        batch_size, drop_remainder, row_splits_dtype
    )


def at(dataset: Dataset, index: IntLike) -> Any:
    """The element of that number; all before it are made.

    Raises: ``OutOfRangeError`` if there are fewer elements.
    """
    number = checked_count("at", "index", index, 0)
    element = next(iter(dataset.skip(number)), None)
    if element is None:
        raise OutOfRangeError(f"at: index {number} is behind the end of the data set")
    return element


def from_list(elements: Sequence[Any], name: str | None = None) -> Dataset:
    """Create a data set of the elements of a list.

    Example:
        >>> [(int(a), b.numpy()) for a, b in tw.data.experimental.from_list([(1, "x"), (2, "y")])]
        [(1, b'x'), (2, b'y')]
    """
    if not elements:
        raise ValueError("from_list: elements must not be empty")
    return Dataset(Elements([as_element(element) for element in elements]))


def get_single_element(dataset: Dataset) -> Any:
    """The only element, see `Dataset.get_single_element`."""
    return dataset.get_single_element()


def get_next_as_optional(iterator: DatasetIterator) -> Optional:
    """The next element, see `DatasetIterator.get_next_as_optional`."""
    return iterator.get_next_as_optional()


def get_structure(dataset_or_iterator: Dataset | DatasetIterator) -> Any:
    """The structure of an element, see `Dataset.element_spec`."""
    return dataset_or_iterator.element_spec


def choose_from_datasets(
    datasets: Sequence[Dataset],
    choice_dataset: Dataset,
    stop_on_empty_dataset: bool = False,
) -> Dataset:
    """See `Dataset.choose_from_datasets`; by default it goes on without empty data sets."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def sample_from_datasets(
    datasets: Sequence[Dataset],
    weights: TensorLike | Dataset | None = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
) -> Dataset:
    """See `Dataset.sample_from_datasets`."""
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def Counter(  # noqa: N802  (TensorFlow's name)
    start: IntLike = 0, step: IntLike = 1, dtype: DTypeLike = int64
) -> Dataset:
    """An endless data set of numbers, see `Dataset.counter`."""
    return Dataset.counter(start, step, dtype)


def RandomDataset(  # noqa: N802  (TensorFlow's name)
    seed: int | None = None,
    rerandomize_each_iteration: bool | None = None,
    name: str | None = None,
) -> Dataset:
    """An endless data set of random numbers, see `Dataset.random`."""
    return Dataset.random(seed, rerandomize_each_iteration)


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """See `Dataset.bucket_by_sequence_length`."""
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes,
        padding_values,
        pad_to_bucket_boundary,
        no_padding,
        drop_remainder,
    )


def enumerate_dataset(start: IntLike = 0) -> Transformation:
    """See `Dataset.enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[[Any, Dataset], Dataset],
    window_size: IntLike | None = None,
    window_size_func: Callable[[Any], Any] | None = None,
) -> Transformation:
    """See `Dataset.group_by_window`."""
    return lambda dataset: dataset.group_by_window(
        key_func, reduce_func, window_size, window_size_func
    )


def ignore_errors(log_warning: bool = False) -> Transformation:
    """See `Dataset.ignore_errors`."""
    return lambda dataset: dataset.ignore_errors(log_warning)


def load(
    path: str | os.PathLike[str],
    element_spec: Any = None,
    compression: str | None = None,
    reader_func: Callable[[Any], Any] | None = None,
) -> Dataset:
    """See `Dataset.load`."""
    return Dataset.load(path, element_spec, compression, reader_func)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: IntLike,
    num_parallel_batches: IntLike | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: IntLike | None = None,
) -> Transformation:
    """`Dataset.map` and `Dataset.batch`."""
    return lambda dataset: dataset.map(
        map_func, num_parallel_calls or num_parallel_batches
    ).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: IntLike,
    block_length: IntLike = 1,
    sloppy: bool | None = False,
    buffer_output_elements: IntLike | None = None,
    prefetch_input_elements: IntLike | None = None,
) -> Transformation:
    """`Dataset.interleave` with as many threads as data sets.

    The last three arguments have no effect.
    """
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, cycle_length
    )


def rejection_resample(
    class_func: Callable[..., Any],
    target_dist: TensorLike,
    initial_dist: TensorLike | None = None,
    seed: int | None = None,
) -> Transformation:
    """See `Dataset.rejection_resample`."""
    return lambda dataset: dataset.rejection_resample(
        class_func, target_dist, initial_dist, seed
    )


def save(
    dataset: Dataset,
    path: str | os.PathLike[str],
    compression: str | None = None,
    shard_func: Callable[..., Any] | None = None,
    checkpoint_args: None = None,
) -> None:
    """See `Dataset.save`."""
    dataset.save(path, compression, shard_func, checkpoint_args)


def scan(
    initial_state: Any, scan_func: Callable[[Any, Any], tuple[Any, Any]]
) -> Transformation:
    """See `Dataset.scan`."""
    return lambda dataset: dataset.scan(initial_state, scan_func)


def shuffle_and_repeat(
    buffer_size: IntLike, count: IntLike | None = None, seed: int | None = None
) -> Transformation:
    """`Dataset.shuffle` and `Dataset.repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def snapshot(
    path: str | os.PathLike[str],
    compression: str | None = "AUTO",
    reader_func: Callable[[Any], Any] | None = None,
    shard_func: Callable[..., Any] | None = None,
) -> Transformation:
    """See `Dataset.snapshot`."""
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """See `Dataset.take_while`."""
    return lambda dataset: dataset.take_while(predicate)


def unbatch() -> Transformation:
    """See `Dataset.unbatch`."""
    return lambda dataset: dataset.unbatch()


def unique() -> Transformation:
    """See `Dataset.unique`."""
    return lambda dataset: dataset.unique()
