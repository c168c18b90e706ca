"""`Dataset`: chains of transformations that yield elements, with positions to save.

Names, arguments and defaults follow ``tf.data``. Functions run as Python, on tensors in
host memory; nothing runs until an element is requested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.dtypes import int64
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware.devices import to_numpy
from tapewright.core.interpreters import active_tracer
from tapewright.core.messages.suggestions import suggesting_methods
from tapewright.core.nest import flatten, pack
from tapewright.core.tensor import TensorSpec, constant, convert_to_tensor
from tapewright.core.text import make_text, to_bytes

from .elements import (
    as_element,
    checked_count,
    concrete,
    detached,
    host_tensor,
    map_leaves,
)
from .iterator import (
    DatasetIterator,
    NumpyIterator,
    check_state,
    refuse_loop,
    refuse_trace,
)
from .methods.function_methods import FunctionMethods
from .methods.grouping_methods import GroupingMethods
from .methods.selection_methods import SelectionMethods
from .nodes.choosing import Chosen, RandomChoices, RandomNumbers
from .nodes.mapping import Concatenate, Enumerate, Zip
from .nodes.node import INFINITE, UNKNOWN
from .nodes.parallel import AUTOTUNE
from .nodes.sources import (
    Counter,
    Elements,
    Endless,
    FromGenerator,
    joined_by,
    matching_files,
    signature,
    tensor_slices,
)
from .options import Configured, Options, ThreadingOptions, options_of
from .tracing import Optional, new_run, steps_of, traceable, traced_reduce

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, IntLike, TensorLike

__all__ = [
    "AUTOTUNE",
    "Dataset",
    "DatasetIterator",
    "INFINITE_CARDINALITY",
    "Iterator",
    "NumpyIterator",
    "Optional",
    "Options",
    "ThreadingOptions",
    "UNKNOWN_CARDINALITY",
]

INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = INFINITE, UNKNOWN


@suggesting_methods
class Dataset(FunctionMethods, GroupingMethods, SelectionMethods):
    """Input pipeline: a sequence of elements (tensors, or tuples and dicts of tensors).

    A static ``from_...`` method creates a dataset; the other methods transform it, and
    each returns a new dataset. Elements are made on demand. A dataset can be iterated
    over any number of times, and passed to `fit`, `evaluate` and `predict`. The
    position of an iterator can be saved and restored: see `DatasetIterator`. ``len``
    returns the number of elements if it is known. The ``name`` argument of the methods
    has no effect.

    Args:
        node: Node of the pipeline; programs call the static methods instead.

    Example:
        >>> from tapewright import data
        >>> ds = data.Dataset.range(10).filter(lambda x: x % 2 == 0).map(lambda x: x * x)
        >>> list(ds.batch(3).as_numpy_iterator())
        [array([ 0,  4, 16]), array([36, 64])]

        A pipeline for training:

        >>> import numpy as np
        >>> images, labels = np.zeros([100, 28, 28]), np.arange(100) % 10
        >>> ds = tw.data.Dataset.from_tensor_slices((images, labels))
        >>> ds = ds.shuffle(100).batch(32).prefetch(tw.data.AUTOTUNE)
        >>> [x.shape[0] for x, y in ds]
        [32, 32, 32, 4]
    """

    def __init__(self, node: Any):
        self._node = node

    def _new(self, node: Any) -> Dataset:
        return Dataset(node)

    # --- sources

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """Create a dataset of the rows of arrays: slices along their first axis.

        A tuple ``(x, y)`` yields pairs of rows. Arrays are copied once. If `shuffle`
        and `batch` follow directly, whole batches are gathered at once.

        Args:
            tensors: Array or tensor, or a nest of them in tuples and dicts, all with
                one length of the first axis.

        Shapes:
            Arrays ``[n, ...]`` yield ``n`` elements ``[...]``.

        Raises:
            ValueError: If an array has no axes, or the lengths differ.

        Example:
            >>> from tapewright.data import Dataset
            >>> ds = Dataset.from_tensor_slices({"x": [1, 2], "y": [3, 4]})
            >>> [{k: int(v) for k, v in element.items()} for element in ds]
            [{'x': 1, 'y': 3}, {'x': 2, 'y': 4}]
        """
        return Dataset(tensor_slices(tensors))

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """Create a dataset of a single element: ``tensors`` as a whole.

        Args:
            tensors: Array or tensor, or a nest of them in tuples and dicts.

        Example:
            >>> from tapewright.data import Dataset
            >>> [x.numpy().tolist() for x in Dataset.from_tensors([1, 2])]
            [[1, 2]]
        """
        return Dataset(Elements([as_element(tensors)]))

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable[[Any], Any] | None = None,
        wait: bool = False,
    ) -> Dataset:
        """Load the dataset that `save` wrote into a folder.

        Args:
            path: Folder that contains the dataset.
            element_spec: Specs of an element; None reads them from the folder, others
                must agree with it.
            compression: Compression of the files; None reads it from the folder, others
                must agree with it.
            reader_func: Function that receives a dataset of datasets, one for each
                file, and returns one dataset, for example
                ``lambda parts: parts.interleave(lambda part: part)``; None reads one
                file after the other.
            wait: Must be False.

        Raises:
            NotFoundError: If the folder does not exist.
            SavingError: If the folder has no dataset, a dataset of TensorFlow, or a
                damaged one (a ``ValueError``).
            ValueError: If ``element_spec`` or ``compression`` disagrees with the
                folder.
            DataLossError: If a record is damaged, during iteration.
        """
        from .files.saving import load  # where files are read

        if wait:
            raise ValueError(
                "load: wait must be False, since save writes the folder at once"
            )
        join = joined_by(reader_func, Dataset)
        return Dataset(load(path, join, element_spec, compression))

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """Create a dataset of the items of ``generator(*args)``.

        The generator is called again for each iteration over the dataset.

        Args:
            generator: Callable that returns an iterable.
            output_types: Dtype of each tensor of an element; an older form of
                ``output_signature``.
            output_shapes: Shape of each tensor of an element, with ``output_types``.
            args: Tensors that the generator receives as NumPy arrays.
            output_signature: `TensorSpec` for each tensor of an element; elements are
                checked against it.

        Raises:
            TypeError: If ``generator`` is not callable, if ``output_types`` and
                ``output_signature`` are both given or, during iteration, if an item
                does not fit ``output_signature``.

        Example:
            >>> def numbers(n):
            ...     yield from range(n)
            >>> spec = tw.TensorSpec([], "int32")
            >>> ds = tw.data.Dataset.from_generator(numbers, args=[3], output_signature=spec)
            >>> [int(x) for x in ds]
            [0, 1, 2]
        """
        spec = signature(output_signature, output_types, output_shapes)
        arrays = [host_tensor(each).numpy() for each in args or ()]
        return Dataset(FromGenerator(generator, arrays, spec))

    @staticmethod
    def from_hdf5(
        path: str | os.PathLike[str],
        names: Any,
        *,
        shuffle: bool = False,
        seed: int | None = None,
        buffer_size: IntLike | None = None,
    ) -> Dataset:
        """Create a dataset of the rows of arrays in an HDF5 file of any size.

        Rows are read in large pieces, ahead of their use; at most ``buffer_size`` rows
        are in memory. If `take`, `skip`, `shard` or `repeat` follow directly, only the
        rows that they select are read. The file is open during iteration, and must not
        change between iterations.

        Args:
            path: Path of the file.
            names: Name of an HDF5 dataset in the file (``"train/images"``), or a tuple
                or dict of names, the structure of an element: ``("images", "labels")``
                for `fit`.
            shuffle: If True, shuffle by blocks: chunks of the file, or neighbouring
                rows. Blocks come in random order, and the rows of as many blocks as
                half the buffer holds are mixed.
            seed: Integer seed of the order, as in the method `shuffle`; the order
                differs between iterations.
            buffer_size: Number of rows in memory, by default as many as fit into 64 MB;
                a larger buffer mixes better.

        Returns:
            `Dataset` of rows, of known length. The method `shuffle` may follow, but
            with a buffer larger than this one it reads single rows, or the same chunks
            repeatedly: prefer ``shuffle=True`` for such files.

        Raises:
            FileNotFoundError: If the file does not exist.
            ValueError: If a name is not in the file or refers to a scalar, or if the
                lengths differ.
            TypeError: If an array has strings or a compound dtype.
            SavingError: If the file has changed, during iteration.

        Example:
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
            buffer_size = checked_count("from_hdf5", "buffer_size", buffer_size, 1)
        from .files.hdf5 import hdf5_slices

        return Dataset(hdf5_slices(path, names, shuffle, seed, buffer_size))

    @staticmethod
    def range(
        *args: IntLike, output_type: DTypeLike = int64, name: str | None = None
    ) -> Dataset:
        """Create a dataset of evenly spaced integers, as Python's ``range``.

        Args:
            *args: ``stop``, or ``start, stop``, or ``start, stop, step``.
            output_type: Dtype of the elements.

        Raises:
            ValueError: If the step is 0, or unless there are 1 to 3 numbers.

        Example:
            >>> [int(x) for x in tw.data.Dataset.range(1, 8, 3)]
            [1, 4, 7]
        """
        return Dataset(Counter(*args, output_type=output_type))

    @staticmethod
    def counter(
        start: IntLike = 0,
        step: IntLike = 1,
        dtype: DTypeLike = int64,
        name: str | None = None,
    ) -> Dataset:
        """Create an endless dataset of the numbers ``start``, ``start + step``, ...

        Args:
            start: First number.
            step: Difference between consecutive numbers.
            dtype: Dtype of the elements.

        Example:
            >>> from tapewright.data import Dataset
            >>> [int(x) for x in Dataset.counter(5, 2).take(3)]
            [5, 7, 9]
        """
        return Dataset(Endless(int(concrete(start)), int(concrete(step)), dtype))

    @staticmethod
    def random(
        seed: int | None = None,
        rerandomize_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Create an endless dataset of random int64 numbers, ``0 <= x < 2**32``.

        Args:
            seed: Integer seed, or None for a random seed.
            rerandomize_each_iteration: If True, each iteration draws other numbers;
                otherwise all iterations have the same numbers.

        Example:
            >>> from tapewright.data import Dataset
            >>> ds = Dataset.random(seed=1).take(2)
            >>> [int(x) for x in ds] == [int(x) for x in ds]
            True
        """
        return Dataset(RandomNumbers(seed=seed, rerandomize=rerandomize_each_iteration))

    @staticmethod
    def list_files(
        file_pattern: Any,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Create a dataset of the names of files that match glob patterns, as strings.

        Args:
            file_pattern: Pattern with ``*``, ``?`` and ``[...]``, or several patterns.
            shuffle: If True or None, names come in random order, a different one in
                each iteration; if False, they are sorted.
            seed: Integer seed of the order, or None for a random seed.

        Raises:
            InvalidArgumentError: If no file matches (a ``ValueError``).

        Example:
            >>> import os, tempfile
            >>> from tapewright.data import Dataset
            >>> folder = tempfile.mkdtemp()
            >>> for name in ("b.txt", "a.txt", "c.csv"):
            ...     open(os.path.join(folder, name), "w").close()
            >>> ds = Dataset.list_files(f"{folder}/*.txt", shuffle=False)
            >>> [os.path.basename(path) for path in ds.as_numpy_iterator()]
            [b'a.txt', b'b.txt']
        """
        names = [to_bytes(path) for path in matching_files("list_files", file_pattern)]
        files = Dataset.from_tensor_slices(make_text(names, (len(names),)))
        return files if shuffle is False else files.shuffle(len(names), seed)

    # --- several datasets

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Combine datasets element by element, in the structure of the arguments.

        The result ends with the shortest dataset.

        Args:
            *args: Datasets, or tuples and dicts of datasets.
            datasets: The same as a single nest of datasets, in place of ``args``.

        Raises:
            TypeError: If an argument is not a dataset.

        Example:
            >>> from tapewright.data import Dataset
            >>> pairs = Dataset.zip(Dataset.range(2), Dataset.range(5, 9))
            >>> [(int(a), int(b)) for a, b in pairs]
            [(0, 5), (1, 6)]
        """
        if (datasets is None) == (not args):
            raise TypeError("zip: give either datasets as arguments or datasets=")
        if datasets is None:
            datasets = args[0] if len(args) == 1 else args
        if isinstance(datasets, list):
            raise TypeError(
                "zip: datasets must be nested in tuples and dicts, got a list; use a tuple"
            )
        nodes = [_require_dataset(each, "zip")._node for each in flatten(datasets)]
        return Dataset(Zip(lambda parts: pack(datasets, list(parts)), nodes))

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[Dataset],
        choice_dataset: Dataset,
        stop_on_empty_dataset: bool = True,
    ) -> Dataset:
        """Take each element from the dataset whose index ``choice_dataset`` yields.

        Args:
            datasets: Datasets with elements of one structure.
            choice_dataset: Dataset of int64 scalars, indices into ``datasets``. The
                result ends with it.
            stop_on_empty_dataset: If True, the result also ends when a chosen dataset
                has no more elements; if False, such choices are skipped.

        Raises:
            ValueError: If ``datasets`` is empty or, during iteration, if an index is
                out of range.
            TypeError: If elements differ in structure or dtype, or choices are not
                int64 scalars.

        Example:
            >>> from tapewright.data import Dataset
            >>> parts = [Dataset.range(3), Dataset.range(10, 13)]
            >>> choices = Dataset.range(2).repeat(2)
            >>> [int(x) for x in Dataset.choose_from_datasets(parts, choices)]
            [0, 10, 1, 11]
        """
        choice = _require_dataset(choice_dataset, "choose_from_datasets")
        spec = choice._declared_spec
        if spec is not None and spec != TensorSpec((), "int64"):
            raise TypeError(
                "choose_from_datasets: choice_dataset must yield int64 scalars, got "
                f"{spec}"
            )
        return _choose(
            "choose_from_datasets", choice._node, datasets, stop_on_empty_dataset
        )

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Dataset],
        weights: TensorLike | Dataset | None = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:
        """Take each element from a dataset drawn at random.

        Args:
            datasets: Datasets with elements of one structure.
            weights: Weights of the datasets, proportional to their probabilities, equal
                by default; a `Dataset` yields the weights for each draw.
            seed: Integer seed of the draws, or None for a random seed.
            stop_on_empty_dataset: If True, stop when a drawn dataset has no more
                elements; if False, continue with the others.
            rerandomize_each_iteration: If True, each iteration draws anew.

        Raises:
            ValueError: If ``datasets`` is empty, or ``weights`` are invalid.
            TypeError: If elements differ in structure or dtype.

        Example:
            >>> from tapewright.data import Dataset
            >>> zeros, ones = Dataset.from_tensors(0).repeat(), Dataset.from_tensors(1).repeat()
            >>> ds = Dataset.sample_from_datasets([zeros, ones], [0.25, 0.75], seed=1)
            >>> sum(int(x) for x in ds.take(1000)) > 700
            True
        """
        who = "sample_from_datasets"
        datasets = _some(who, datasets)
        if isinstance(weights, Dataset):
            weights = weights._node
        else:
            numbers = [1.0] * len(datasets) if weights is None else weights
            weights = to_numpy(convert_to_tensor(numbers).array)
            if weights.shape != (len(datasets),):
                raise ValueError(
                    f"{who}: weights must have one number for each of the "
                    f"{len(datasets)} datasets, got {numbers!r}"
                )
            if weights.dtype.kind != "f":
                raise TypeError(
                    f"{who}: weights must be floating, got {weights.dtype.name}"
                )
            if not weights.any():
                return datasets[0].take(0)
            datasets = [ds for ds, w in zip(datasets, weights, strict=True) if w != 0]
            weights = weights[weights != 0]
        choices = RandomChoices(weights, seed, rerandomize_each_iteration)
        if len(datasets) == 1 and not choices.inputs:
            return datasets[0]
        return _choose(who, choices, datasets, stop_on_empty_dataset)

    # --- functions of the whole

    def reduce(
        self,
        initial_state: Any,
        reduce_func: Callable[..., Any],
        name: str | None = None,
    ) -> Any:
        """Fold the elements into a state with ``reduce_func``, and return the last state.

        In a traced function it is a loop that iterates over the dataset anew in each
        call.

        Args:
            initial_state: State for the first element, a tensor or a nest.
            reduce_func: Function ``reduce_func(state, element)`` that returns the next
                state.

        Example:
            >>> import numpy as np
            >>> from tapewright.data import Dataset
            >>> int(Dataset.range(5).reduce(np.int64(0), lambda total, x: total + x))
            10
        """
        if active_tracer() is not None:
            return traced_reduce(self, initial_state, reduce_func)
        state = map_leaves(initial_state, detached)
        for element in self:
            state = map_leaves(reduce_func(state, element), detached)
        return state

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Return ``transformation_func(self)``, to chain functions of datasets.

        Args:
            transformation_func: Function of a dataset that returns a dataset.

        Raises:
            TypeError: If it does not return a dataset.

        Example:
            >>> def evens(ds):
            ...     return ds.filter(lambda x: x % 2 == 0)
            >>> [int(x) for x in tw.data.Dataset.range(5).apply(evens)]
            [0, 2, 4]
        """
        return _require_dataset(transformation_func(self), "apply")

    def enumerate(self, start: IntLike = 0, name: str | None = None) -> Dataset:
        """Pair each element with its number: ``(number, element)``.

        Args:
            start: Number of the first element.

        Example:
            >>> ds = tw.data.Dataset.from_tensor_slices([7, 8]).enumerate(start=1)
            >>> [(int(number), int(x)) for number, x in ds]
            [(1, 7), (2, 8)]
        """
        return Dataset(Enumerate(self._node, int(concrete(start))))

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """Append the elements of another dataset.

        Args:
            dataset: Dataset with elements of the same structure and dtypes.

        Raises:
            TypeError: If ``dataset`` is not a dataset, or its elements differ in
                structure or dtype.

        Example:
            >>> ds = tw.data.Dataset.range(2).concatenate(tw.data.Dataset.range(5, 7))
            >>> [int(x) for x in ds]
            [0, 1, 5, 6]
        """
        return Dataset(
            Concatenate(self._node, _require_dataset(dataset, "concatenate")._node)
        )

    # --- properties

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """Return the dataset with `Options`, which override options set earlier.

        Args:
            options: The `Options` to set.

        Raises:
            TypeError: If ``options`` is not an `Options`.
        """
        if not isinstance(options, Options):
            raise TypeError(
                f"with_options: options must be an Options, got {type(options).__name__}"
            )
        return Dataset(Configured(self._node, options.merge(Options())))

    def options(self) -> Options:
        """Return the `Options` of this dataset, merged with the options of its inputs."""
        return options_of(self._node)

    @property
    def element_spec(self) -> Any:
        """Structure of an element, with a `TensorSpec` for each tensor.

        Sizes that vary are None. For `map` the function is traced once; if that fails,
        the first element is made.
        """
        return self._node.spec()

    @property
    def _declared_spec(self) -> Any:
        """`element_spec` if it is known without making an element, or None."""
        return self._node.spec() if self._node.declares() else None

    def cardinality(self) -> Tensor:
        """Return the number of elements as an int64 scalar: -1 if infinite, -2 if unknown."""
        return constant(self._node.size(), int64)

    def __len__(self) -> int:
        size = self._node.size()
        if size < 0:
            length = "infinite" if size == INFINITE else "unknown"
            raise TypeError(f"the length of the dataset is {length}; see cardinality()")
        return size

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> DatasetIterator:
        if active_tracer() is not None:
            refuse_loop("a Dataset")
        return DatasetIterator(self._node)

    def _tw_traced_steps(self) -> Any:
        """Return the steps of a `for` loop in a traced function; each call iterates anew."""
        spec = self._declared_spec
        traceable(spec, "for ... in a Dataset")
        return steps_of(new_run(self), spec, "for ... in a Dataset")

    def state(self) -> dict[str, Any]:
        """Return the state that determines the orders of later iterations, as plain values.

        The position within an iteration is part of a `DatasetIterator`.
        """
        refuse_trace("Dataset.state()")
        return {"pipeline": self._node.pipeline(), "runs": self._node.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Repeat in the next iterations the orders that followed the call of `state`.

        Args:
            state: Result of `state`.

        Raises:
            ValueError: If the state is from another chain of transformations.
        """
        refuse_trace("Dataset.restore()")
        check_state(self._node, state)
        self._node.set_state(state["runs"])

    def as_numpy_iterator(self) -> NumpyIterator:
        """Return an iterator that converts the tensors of each element to NumPy arrays.

        Example:
            >>> list(tw.data.Dataset.range(3).as_numpy_iterator())
            [np.int64(0), np.int64(1), np.int64(2)]
        """
        return NumpyIterator(iter(self))

    def get_single_element(self, name: str | None = None) -> Any:
        """Return the only element of the dataset.

        Raises:
            InvalidArgumentError: Unless there is exactly one element (a
                ``ValueError``).

        Example:
            >>> tw.data.Dataset.range(10).batch(10).get_single_element().shape
            TensorShape([10])
        """
        elements = list(self.take(2))
        if len(elements) != 1:
            raise InvalidArgumentError(
                "get_single_element: there must be exactly one element; the dataset "
                f"{'is empty' if not elements else 'has more'}"
            )
        return elements[0]

    def __repr__(self) -> str:
        return f"<Dataset {' < '.join(self._node.pipeline())}>"

    def _repr_html_(self):
        from .pipeline_table import html_pipeline  # for notebooks only

        return html_pipeline(self._node)


Iterator = DatasetIterator


def _require_dataset(dataset, who):
    if not isinstance(dataset, Dataset):
        raise TypeError(f"{who}: expects a Dataset, got {type(dataset).__name__}")
    return dataset


def _choose(who, choices, datasets, stop_on_empty):
    nodes = [_require_dataset(each, who)._node for each in _some(who, datasets)]
    return Dataset(Chosen(who, choices, nodes, stop_on_empty))


def _some(who, datasets):
    datasets = list(datasets)
    if not datasets:
        raise ValueError(f"{who}: datasets must contain at least one dataset")
    return datasets
