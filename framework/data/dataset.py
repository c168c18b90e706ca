"""`Dataset`: chains of transformations that yield elements, with positions to keep.

The names, arguments and defaults are those of ``tf.data``. Functions run as Python, on
tensors in host memory; nothing runs before an element is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.devices import to_numpy
from tapewright.core.dtypes import int64
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.interpreters import active_tracer
from tapewright.core.nest import flatten, pack
from tapewright.core.suggestions import suggesting_methods
from tapewright.core.tensor import TensorSpec, constant, convert_to_tensor
from tapewright.core.text import make_text, to_bytes

from .choosing import Chosen, RandomChoices, RandomNumbers
from .elements import (
    as_element,
    checked_count,
    concrete,
    detached,
    host_tensor,
    map_leaves,
)
from .function_methods import FunctionMethods
from .grouping_methods import GroupingMethods
from .iterator import (
    DatasetIterator,
    NumpyIterator,
    check_state,
    refuse_loop,
    refuse_trace,
)
from .mapping import Concatenate, Enumerate, Zip
from .node import INFINITE, UNKNOWN
from .options import Configured, Options, ThreadingOptions, options_of
from .parallel import AUTOTUNE
from .selection_methods import SelectionMethods
from .sources import (
    Counter,
    Elements,
    Endless,
    FromGenerator,
    joined_by,
    matching_files,
    signature,
    tensor_slices,
)
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
    """A sequence of elements, made on demand: tensors, or tuples and dicts of tensors.

    A ``from_`` function creates one; methods transform it, and each returns a new data
    set. It is iterated over any number of times, and passed to `fit`, `evaluate` and
    `predict`. The position of an iterator can be saved and restored: see
    `DatasetIterator`. ``len`` is the number of elements, if it is known. ``name=`` has no
    effect.

    Example:
        >>> from tapewright import data
        >>> ds = data.Dataset.range(10).filter(lambda x: x % 2 == 0).map(lambda x: x * x)
        >>> list(ds.batch(3).as_numpy_iterator())
        [array([ 0,  4, 16]), array([36, 64])]
    """

    def __init__(self, node: Any):
        self._node = node

    def _new(self, node: Any) -> Dataset:
        return Dataset(node)

    # --- sources

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """Create a data set of the rows of arrays; ``(x, y)`` gives pairs of rows.

        Arrays are copied once. If `shuffle` and `batch` follow directly, whole batches
        are gathered.

        Shapes: arrays ``[n, ...]``, in any nest, give n elements ``[...]``.

        Raises: ``ValueError`` for an array without axes, or for different lengths.

        Example:
            >>> from tapewright.data import Dataset
            >>> ds = Dataset.from_tensor_slices({"x": [1, 2], "y": [3, 4]})
            >>> [{k: int(v) for k, v in element.items()} for element in ds]
            [{'x': 1, 'y': 3}, {'x': 2, 'y': 4}]
        """
        return Dataset(tensor_slices(tensors))

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """Create a data set of one element, ``tensors`` as a whole.

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
        """Return the data set that `save` wrote into a folder.

        Args: ``element_spec``, ``compression``: those of the data set, which the folder
        knows; ``reader_func``: a function of a data set of data sets, one for each file,
        that joins them, ``lambda parts: parts.interleave(lambda part: part)``; by default
        one follows the other; ``wait``: must be False.

        Raises: ``NotFoundError`` without a folder; `SavingError` (a ``ValueError``) for one
        without a data set, of TensorFlow, or damaged; ``ValueError`` for another spec or
        compression; in a run ``DataLossError`` for a damaged record.
        """
        from .saving import load  # where files are read

        if wait:
            raise ValueError(
                "load: wait must be False, as save writes a folder as a whole"
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
        """Create a data set of the items of ``generator(*args)``, called for each run.

        Args: ``args``: tensors, which the generator gets as NumPy arrays;
        ``output_signature``: a `TensorSpec` for each tensor, against which elements are
        checked; or ``output_types`` and ``output_shapes``.

        Raises: ``TypeError`` if ``generator`` is not callable, for ``output_types`` beside
        ``output_signature`` and, in a run, if an item does not fit ``output_signature``.

        Example:
            >>> import tapewright as tw
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
        from .hdf5 import hdf5_slices

        return Dataset(hdf5_slices(path, names, shuffle, seed, buffer_size))

    @staticmethod
    def range(
        *args: IntLike, output_type: DTypeLike = int64, name: str | None = None
    ) -> Dataset:
        """Create a data set of integers: ``range(stop)`` or ``range(start, stop, step)``.

        Raises: ``ValueError`` for a step of 0, and unless there are 1 to 3 numbers.
        """
        return Dataset(Counter(*args, output_type=output_type))

    @staticmethod
    def counter(
        start: IntLike = 0,
        step: IntLike = 1,
        dtype: DTypeLike = int64,
        name: str | None = None,
    ) -> Dataset:
        """Create an endless data set of ``start``, ``start + step``, ...

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
        """Create an endless data set of random int64 numbers, ``0 <= x < 2**32``.

        All runs have the same numbers, unless ``rerandomize_each_iteration`` is set.

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
        """Create a data set of the names of files that match patterns, as strings.

        Args: ``file_pattern``: one or several, with ``*``, ``?`` and ``[...]``;
        ``shuffle``: in random order, another one in each run, which is the default; else
        sorted.

        Raises: ``InvalidArgumentError`` (a ``ValueError``) if no file matches.

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

    # --- several data sets

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Join one element of each data set, in the structure of the arguments.

        Raises: ``TypeError`` for an argument that is no data set.

        Example:
            >>> from tapewright.data import Dataset
            >>> pairs = Dataset.zip(Dataset.range(2), Dataset.range(5, 9))
            >>> [(int(a), int(b)) for a, b in pairs]
            [(0, 5), (1, 6)]
        """
        if (datasets is None) == (not args):
            raise TypeError("zip: give data sets, or datasets=, one of them")
        if datasets is None:
            datasets = args[0] if len(args) == 1 else args
        if isinstance(datasets, list):
            raise TypeError("zip: a list is no structure of an element, give a tuple")
        nodes = [_require_dataset(each, "zip")._node for each in flatten(datasets)]
        return Dataset(Zip(lambda parts: pack(datasets, list(parts)), nodes))

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[Dataset],
        choice_dataset: Dataset,
        stop_on_empty_dataset: bool = True,
    ) -> Dataset:
        """Take each element from the data set whose number ``choice_dataset`` yields.

        It ends with the choices, or when a data set has no more elements; if
        ``stop_on_empty_dataset`` is False, choices of such data sets are left out.

        Raises: ``ValueError`` without data sets and, in a run, for a number that none has;
        ``TypeError`` for elements that differ in structure or dtype, and for choices that
        are no int64 scalars.

        Example:
            >>> from tapewright.data import Dataset
            >>> parts = [Dataset.range(3), Dataset.range(10, 13)]
            >>> choices = Dataset.range(2).repeat(2)
            >>> [int(x) for x in Dataset.choose_from_datasets(parts, choices)]
            [0, 10, 1, 11]
        """
        choice = _require_dataset(choice_dataset, "choose_from_datasets")
        spec = choice.declared_spec
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
        """Take each element from a data set that is drawn at random.

        Args: ``weights``: in proportion to the probabilities, equal by default; a `Dataset`
        yields the weights for each draw; ``stop_on_empty_dataset``: end when a data set has
        no more elements, rather than go on with the others; ``rerandomize_each_iteration``:
        draw anew in each run.

        Raises: ``ValueError`` without data sets, and for other weights; ``TypeError`` for
        elements that differ in structure or dtype.

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
                    f"{who}: weights must be one number for each of {len(datasets)} data "
                    f"sets, got {numbers!r}"
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
        """Call ``reduce_func(state, element)`` for each element; return the last state.

        Example:
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

    def enumerate(self, start: IntLike = 0, name: str | None = None) -> Dataset:
        """Pair each element with its number, counted from ``start``."""
        return Dataset(Enumerate(self._node, int(concrete(start))))

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """Append the elements of another data set.

        Raises: ``TypeError`` if ``dataset`` is none, or has elements of another structure
        or dtype.
        """
        return Dataset(
            Concatenate(self._node, _require_dataset(dataset, "concatenate")._node)
        )

    # --- properties

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """Set `Options`, which count before those that were set earlier.

        Raises: ``TypeError`` for other things than `Options`.
        """
        if not isinstance(options, Options):
            raise TypeError(
                f"with_options: expects Options, got {type(options).__name__}"
            )
        return Dataset(Configured(self._node, options.merge(Options())))

    def options(self) -> Options:
        """Return the `Options` of this data set, and of those that it is made of."""
        return options_of(self._node)

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

    def state(self) -> dict[str, Any]:
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

    def as_numpy_iterator(self) -> NumpyIterator:
        """Iterate over the elements with NumPy arrays in place of tensors."""
        return NumpyIterator(iter(self))

    def get_single_element(self, name: str | None = None) -> Any:
        """Return the only element.

        Raises: ``InvalidArgumentError`` (a ``ValueError``) if there is none, or more than
        one.
        """
        elements = list(self.take(2))
        if len(elements) != 1:
            raise InvalidArgumentError(
                "get_single_element: there must be one element, the data set "
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
        raise ValueError(f"{who}: datasets must have at least one data set")
    return datasets
