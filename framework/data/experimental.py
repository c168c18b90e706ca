"""`tw.data.experimental`: CSV files, cardinalities, and transformations for ``apply``.

Each transformation is the method of `Dataset` of the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.dtypes import int64
from tapewright.core.errors import OutOfRangeError
from tapewright.core.tensor import Tensor

from .dataset import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Dataset,
    DatasetIterator,
)
from .elements import as_element, checked_count
from .file_datasets import CsvDataset
from .files.csv_files import make_csv_dataset
from .nodes.scanning import AssertCardinality
from .nodes.sources import Elements
from .options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ThreadingOptions,
)
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
    """Return the number of elements as an int64 scalar; see `Dataset.cardinality`.

    Args:
        dataset: Dataset whose elements are counted.
    """
    return dataset.cardinality()


def assert_cardinality(expected_cardinality: IntLike) -> Transformation:
    """Assert the number of elements of a dataset, which then has this ``len``.

    Args:
        expected_cardinality: Number of elements.

    Raises:
        FailedPreconditionError: If there are more or fewer elements, during iteration.

    Example:
        >>> ds = tw.data.Dataset.range(9).filter(lambda x: x % 2 == 0)
        >>> ds = ds.apply(tw.data.experimental.assert_cardinality(5))
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
    """Batch tensors as ragged tensors, for ``apply``; see `Dataset.ragged_batch`.

    Args:
        batch_size: Number of elements of a batch.
        drop_remainder: If True, drop the last batch if it is smaller than
            ``batch_size``.
        row_splits_dtype: Dtype of the row splits, int32 or int64.
    """
    return lambda dataset: dataset.ragged_batch(
        batch_size, drop_remainder, row_splits_dtype
    )


def at(dataset: Dataset, index: IntLike) -> Any:
    """Return the element at an index.

    All elements before it are made, too.

    Args:
        dataset: Dataset to index.
        index: Number of the element, from 0.

    Raises:
        OutOfRangeError: If there are fewer elements.
    """
    number = checked_count("at", "index", index, 0)
    element = next(iter(dataset.skip(number)), None)
    if element is None:
        raise OutOfRangeError(f"at: index {number} is past the end of the dataset")
    return element


def from_list(elements: Sequence[Any], name: str | None = None) -> Dataset:
    """Create a dataset of the elements of a list.

    Args:
        elements: List of elements of one structure.

    Example:
        >>> ds = tw.data.experimental.from_list([(1, "x"), (2, "y")])
        >>> [(int(a), b.numpy()) for a, b in ds]
        [(1, b'x'), (2, b'y')]
    """
    if not elements:
        raise ValueError("from_list: elements must not be empty")
    return Dataset(Elements([as_element(element) for element in elements]))


def get_single_element(dataset: Dataset) -> Any:
    """Return the only element of a dataset; see `Dataset.get_single_element`.

    Args:
        dataset: Dataset with exactly one element.
    """
    return dataset.get_single_element()


def get_next_as_optional(iterator: DatasetIterator) -> Optional:
    """Return the next element as an `Optional`, empty at the end.

    See `DatasetIterator.get_next_as_optional`.

    Args:
        iterator: Iterator of a dataset.
    """
    return iterator.get_next_as_optional()


def get_structure(dataset_or_iterator: Dataset | DatasetIterator) -> Any:
    """Return the structure of an element; see `Dataset.element_spec`.

    Args:
        dataset_or_iterator: Dataset or iterator whose elements are described.
    """
    return dataset_or_iterator.element_spec


def choose_from_datasets(
    datasets: Sequence[Dataset],
    choice_dataset: Dataset,
    stop_on_empty_dataset: bool = False,
) -> Dataset:
    """Take each element from the dataset whose index ``choice_dataset`` yields.

    See `Dataset.choose_from_datasets`, which has another default of
    ``stop_on_empty_dataset``.

    Args:
        datasets: Datasets with elements of one structure.
        choice_dataset: Dataset of int64 scalars, indices into ``datasets``.
        stop_on_empty_dataset: If True, stop when a chosen dataset has no more elements;
            if False, skip such choices.
    """
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def sample_from_datasets(
    datasets: Sequence[Dataset],
    weights: TensorLike | Dataset | None = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
) -> Dataset:
    """Take each element from a dataset drawn at random; see `Dataset.sample_from_datasets`.

    Args:
        datasets: Datasets with elements of one structure.
        weights: Weights of the datasets, equal by default; a `Dataset` yields the
            weights for each draw.
        seed: Integer seed of the draws, or None for a random seed.
        stop_on_empty_dataset: If True, stop when a drawn dataset has no more elements;
            if False, continue with the others.
    """
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def Counter(  # noqa: N802  (TensorFlow's name)
    start: IntLike = 0, step: IntLike = 1, dtype: DTypeLike = int64
) -> Dataset:
    """Create an endless dataset of evenly spaced numbers; see `Dataset.counter`.

    Args:
        start: First number.
        step: Difference between consecutive numbers.
        dtype: Dtype of the elements.
    """
    return Dataset.counter(start, step, dtype)


def RandomDataset(  # noqa: N802  (TensorFlow's name)
    seed: int | None = None,
    rerandomize_each_iteration: bool | None = None,
    name: str | None = None,
) -> Dataset:
    """Create an endless dataset of random numbers; see `Dataset.random`.

    Args:
        seed: Integer seed, or None for a random seed.
        rerandomize_each_iteration: If True, each iteration draws other numbers.
    """
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
    """Make padded batches of similar length; see `Dataset.bucket_by_sequence_length`.

    Args:
        element_length_func: Function of an element that returns its length.
        bucket_boundaries: Lengths that separate the buckets, increasing.
        bucket_batch_sizes: Batch size of each bucket, one more than there are
            boundaries.
        padded_shapes: Shapes to pad to, as in `Dataset.padded_batch`.
        padding_values: Values to pad with, as in `Dataset.padded_batch`.
        pad_to_bucket_boundary: If True, pad to the greatest length of the bucket rather
            than of the batch.
        no_padding: If True, do not pad, for elements of equal shapes.
        drop_remainder: If True, drop batches that are too small.
    """
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
    """Pair each element with its number; see `Dataset.enumerate`.

    Args:
        start: Number of the first element.
    """
    return lambda dataset: dataset.enumerate(start)


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[[Any, Dataset], Dataset],
    window_size: IntLike | None = None,
    window_size_func: Callable[[Any], Any] | None = None,
) -> Transformation:
    """Group elements by key and reduce windows of them; see `Dataset.group_by_window`.

    Args:
        key_func: Function of an element that returns its key, an integer.
        reduce_func: Function ``reduce_func(key, window)`` that returns a dataset.
        window_size: Number of elements of a window.
        window_size_func: Function of a key that returns the size of its windows, in
            place of ``window_size``.
    """
    return lambda dataset: dataset.group_by_window(
        key_func, reduce_func, window_size, window_size_func
    )


def ignore_errors(log_warning: bool = False) -> Transformation:
    """Drop the elements that raise an error; see `Dataset.ignore_errors`.

    Args:
        log_warning: If True, log a warning for each dropped element.
    """
    return lambda dataset: dataset.ignore_errors(log_warning)


def load(
    path: str | os.PathLike[str],
    element_spec: Any = None,
    compression: str | None = None,
    reader_func: Callable[[Any], Any] | None = None,
) -> Dataset:
    """Load a dataset from a folder; see `Dataset.load`.

    Args:
        path: Folder that contains the dataset.
        element_spec: Specs of an element; None reads them from the folder.
        compression: Compression of the files; None reads it from the folder.
        reader_func: Function that joins a dataset of datasets, one for each file; None
            reads one file after the other.
    """
    return Dataset.load(path, element_spec, compression, reader_func)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: IntLike,
    num_parallel_batches: IntLike | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: IntLike | None = None,
) -> Transformation:
    """Apply `Dataset.map`, then `Dataset.batch`.

    Args:
        map_func: Function of an element.
        batch_size: Number of elements of a batch.
        num_parallel_batches: Number of threads if ``num_parallel_calls`` is None.
        drop_remainder: If True, drop the last batch if it is smaller than
            ``batch_size``.
        num_parallel_calls: Number of threads that call ``map_func``.
    """
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
    """Apply `Dataset.interleave` with one thread for each open dataset.

    Args:
        map_func: Function of an element that returns a dataset.
        cycle_length: Number of open datasets.
        block_length: Number of consecutive elements from each dataset.
        sloppy: Has no effect.
        buffer_output_elements: Has no effect.
        prefetch_input_elements: Has no effect.
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
    """Resample classes to a target distribution; see `Dataset.rejection_resample`.

    Args:
        class_func: Function of an element that returns its class, an integer.
        target_dist: Probability of each class in the result.
        initial_dist: Probability of each class in the dataset; None estimates it.
        seed: Integer seed, or None for a random seed.
    """
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
    """Write all elements of a dataset into a folder; see `Dataset.save`.

    Args:
        dataset: Dataset to save.
        path: Folder to write.
        compression: "GZIP" or "ZLIB", or None for no compression.
        shard_func: Function of an element that returns the number of its file.
        checkpoint_args: Must be None.
    """
    dataset.save(path, compression, shard_func, checkpoint_args)


def scan(
    initial_state: Any, scan_func: Callable[[Any, Any], tuple[Any, Any]]
) -> Transformation:
    """Map elements with a state; see `Dataset.scan`.

    Args:
        initial_state: State for the first element.
        scan_func: Function ``scan_func(state, element)`` that returns the next state
            and the output.
    """
    return lambda dataset: dataset.scan(initial_state, scan_func)


def shuffle_and_repeat(
    buffer_size: IntLike, count: IntLike | None = None, seed: int | None = None
) -> Transformation:
    """Apply `Dataset.shuffle`, then `Dataset.repeat`.

    Args:
        buffer_size: Number of elements in the buffer of the shuffle.
        count: Number of repetitions; None or -1 repeats without end.
        seed: Integer seed of the order, or None.
    """
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def snapshot(
    path: str | os.PathLike[str],
    compression: str | None = "AUTO",
    reader_func: Callable[[Any], Any] | None = None,
    shard_func: Callable[..., Any] | None = None,
) -> Transformation:
    """Cache the elements of the first complete iteration; see `Dataset.snapshot`.

    Args:
        path: Folder for the elements.
        compression: "GZIP" or "ZLIB"; None or "AUTO" for no compression.
        reader_func: Function that joins the files, as in `Dataset.load`.
        shard_func: Function of an element that returns the number of its file.
    """
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """Keep elements until a predicate is false; see `Dataset.take_while`.

    Args:
        predicate: Function of an element that returns a boolean scalar.
    """
    return lambda dataset: dataset.take_while(predicate)


def unbatch() -> Transformation:
    """Split elements into their rows, for ``apply``; see `Dataset.unbatch`."""
    return lambda dataset: dataset.unbatch()


def unique() -> Transformation:
    """Drop elements that have occurred before, for ``apply``; see `Dataset.unique`."""
    return lambda dataset: dataset.unique()
