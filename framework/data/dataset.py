"""`Dataset`: chains of transformations that yield elements, with positions to keep.

The names, arguments and defaults are those of ``tf.data``. Functions run as Python, on
tensors in host memory; nothing runs before an element is asked for.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections import deque
from typing import TYPE_CHECKING

from tapewright.compiler.tracing.handles import Resource
from tapewright.compiler.tracing.tracer import fall_back
from tapewright.core.dtypes import int64
from tapewright.core.errors import OutOfRangeError
from tapewright.core.interpreters import active_tracer, use_interpreters
from tapewright.core.nest import flatten, map_structure, pack
from tapewright.core.tensor import constant

from .batching import Batch, PaddedBatch, Unbatch
from .caching import Cache, Prefetch
from .elements import as_element, call_function, concrete, spec_of
from .mapping import Concatenate, Enumerate, Filter, Map, Zip
from .nesting import Interleave, Window
from .node import INFINITE, UNKNOWN, copy_position
from .ordering import Repeat, Shard, Shuffle, Skip, Take
from .rng import warn_of_draws
from .sources import Counter, Elements, FromGenerator, signature, tensor_slices
from .tracing import Optional, next_element, next_optional, traced_reduce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Iterator as ElementIterator
    from typing import Any

    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, IntLike

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
    set. The position of an iterator can be saved and restored: see `DatasetIterator`.

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

        Arrays are copied once. With `shuffle` and `batch`, directly behind, whole batches
        are gathered.
        """
        return Dataset(tensor_slices(tensors))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """Create a data set of one element, ``tensors`` as a whole."""
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

        Args: ``output_signature``: a `TensorSpec` for each tensor, against which elements
        are checked; or ``output_types`` and ``output_shapes``.
        """
        spec = signature(output_signature, output_types, output_shapes)
        return Dataset(FromGenerator(generator, args or (), spec))

    @staticmethod
    def range(*args: IntLike, output_type: DTypeLike = int64) -> Dataset:
        """Create a data set of integers: ``range(stop)`` or ``range(start, stop, step)``."""
        return Dataset(Counter(*args, output_type=output_type))

    @staticmethod
    def zip(*args: Any, datasets: Any = None) -> Dataset:
        """Join one element of each data set, in the structure in which they are given.

        >>> from tapewright.data import Dataset
        >>> pairs = Dataset.zip(Dataset.range(2), Dataset.range(5, 9))
        >>> [(int(a), int(b)) for a, b in pairs]
        [(0, 5), (1, 6)]
        """
        given = (
            datasets if datasets is not None else args[0] if len(args) == 1 else args
        )
        nodes = [_require_dataset(each, "zip")._node for each in flatten(given)]
        return Dataset(Zip(lambda parts: pack(given, list(parts)), nodes))

    # --- functions of elements

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Dataset:
        """Apply ``map_func`` to each element; a tuple arrives as several arguments.

        It runs in Python, one call after the other, whatever ``num_parallel_calls`` says;
        `prefetch` runs it in a thread.
        """
        return Dataset(Map(self._node, map_func))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """Keep the elements for which ``predicate`` is true."""
        return Dataset(Filter(self._node, predicate))

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """Join the data sets that ``map_func`` makes, one after the other."""
        return Dataset(Interleave(self._node, map_func))

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Dataset:
        """Like `flat_map`, with ``cycle_length`` data sets open, which take turns.

        Each gives ``block_length`` elements at a time.
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
        state = as_element(initial_state)
        for element in self:
            state = as_element(call_function(reduce_func, (state, element)))
        return state

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Return ``transformation_func`` of this data set."""
        return _require_dataset(transformation_func(self), "apply")

    # --- elements together

    def batch(
        self,
        batch_size: IntLike,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Dataset:
        """Join ``batch_size`` elements along a new axis; the last batch may be shorter."""
        batch_size = _count("batch", "batch_size", batch_size, 1)
        return Dataset(Batch(self._node, batch_size, drop_remainder))

    def padded_batch(
        self,
        batch_size: IntLike,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Like `batch`, with each element padded at the end to the longest, or as given.

        Args: ``padded_shapes``: for each component a shape, None for an axis padded to
        the longest of the batch; ``padding_values``: by default 0, or "" for strings.
        """
        batch_size = _count("padded_batch", "batch_size", batch_size, 1)
        return Dataset(
            PaddedBatch(
                self._node, batch_size, padded_shapes, padding_values, drop_remainder
            )
        )

    def unbatch(self) -> Dataset:
        """Split each element into its rows."""
        return Dataset(Unbatch(self._node))

    def window(
        self,
        size: IntLike,
        shift: IntLike | None = None,
        stride: IntLike = 1,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Make data sets of ``size`` elements, ``stride`` apart, each ``shift`` after the last.

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
        """Append the elements of another data set."""
        return Dataset(
            Concatenate(self._node, _require_dataset(dataset, "concatenate")._node)
        )

    # --- which, and in which order

    def shuffle(
        self,
        buffer_size: IntLike,
        seed: int | None = None,
        reshuffle_each_iteration: bool = True,
    ) -> Dataset:
        """Shuffle the elements through a buffer of ``buffer_size``.

        A buffer as large as the data set gives each order the same chance. Without
        ``seed`` the order follows from `random.set_seed` or
        ``keras.utils.set_random_seed``; each run has another one, unless told not to.
        """
        buffer_size = _count("shuffle", "buffer_size", buffer_size, 1)
        again = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        return Dataset(Shuffle(self._node, buffer_size, seed, again))

    def repeat(self, count: IntLike | None = None) -> Dataset:
        """Repeat the elements ``count`` times, without end for None or -1."""
        if count is not None:
            count = _count("repeat", "count", count, -1)
        return Dataset(Repeat(self._node, count))

    def take(self, count: IntLike) -> Dataset:
        """Keep the first ``count`` elements, all of them for -1."""
        return Dataset(Take(self._node, _count("take", "count", count, -1)))

    def skip(self, count: IntLike) -> Dataset:
        """Drop the first ``count`` elements, all of them for -1."""
        return Dataset(Skip(self._node, _count("skip", "count", count, -1)))

    def shard(self, num_shards: IntLike, index: IntLike) -> Dataset:
        """Keep every ``num_shards``-th element, from number ``index`` on."""
        num_shards = _count("shard", "num_shards", num_shards, 1)
        index = _count("shard", "index", index, 0)
        if index >= num_shards:
            raise ValueError(
                f"shard: index must be below num_shards, got {index} and {num_shards}"
            )
        return Dataset(Shard(self._node, num_shards, index))

    # --- kept, and ahead

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
        """Make up to ``buffer_size`` elements ahead, in a thread; `AUTOTUNE` is 2."""
        buffer_size = _count("prefetch", "buffer_size", buffer_size, -1)
        return Dataset(Prefetch(self._node, buffer_size))

    # --- what it is

    @property
    def element_spec(self) -> Any:
        """The structure of an element, a `TensorSpec` for each tensor; None for varying sizes.

        For `map` the function is traced once, or else the first element looked at.
        """
        return self._node.spec()

    @property
    def declared_spec(self) -> Any:
        """`element_spec` if it is known without making an element; else None."""
        return self._node.spec() if self._node.declares() else None

    def cardinality(self) -> Tensor:
        """The number of elements, an int64 tensor: -1 for endless, -2 for unknown."""
        return constant(self._node.size(), int64)

    def __len__(self) -> int:
        size = self._node.size()
        if size < 0:
            kind = "endless" if size == INFINITE else "of unknown length"
            raise TypeError(f"The data set is {kind}; see cardinality()")
        return size

    def __bool__(self):
        return True

    def __iter__(self) -> DatasetIterator:
        if active_tracer() is not None:
            _refuse_loop("a Dataset")
        return DatasetIterator(self._node)

    def state(self) -> dict:
        """Return the state of the orders of later runs, as plain values.

        The position within a run is that of a `DatasetIterator`.
        """
        _refuse_trace("Dataset.state()")
        return {"pipeline": self._node.pipeline(), "runs": self._node.runs()}

    def restore(self, state: dict[str, Any]) -> None:
        """Make the next runs those that followed when `state` was called.

        Raises: ``ValueError`` if the state is of another chain of transformations.
        """
        _refuse_trace("Dataset.restore()")
        _check_state(self._node, state)
        self._node.set_runs(state["runs"])

    def as_numpy_iterator(self) -> ElementIterator[Any]:
        """Iterate over the elements with NumPy arrays in place of tensors."""
        for element in self:
            yield map_structure(
                lambda leaf: leaf.numpy() if hasattr(leaf, "numpy") else leaf, element
            )

    def get_single_element(self) -> Any:
        """Return the only element. Raises: ``ValueError`` if there is none, or more."""
        elements = list(self.take(2))
        if len(elements) != 1:
            raise ValueError(
                "get_single_element: there must be one element, the data set "
                f"{'is empty' if not elements else 'has more'}"
            )
        return elements[0]

    def __repr__(self):
        return f"<Dataset {' < '.join(self._node.pipeline())}>"


class DatasetIterator(Resource):
    """One run through a `Dataset`, with a position that can be saved.

    It has a state, as a variable does: in a traced function, too, each call goes on where
    the last one ended, whether it is an argument or found by name.

    >>> from tapewright.data import Dataset
    >>> ds = Dataset.range(100).shuffle(100, seed=1).batch(2)
    >>> iterator = iter(ds)
    >>> first, state = next(iterator), iterator.state()
    >>> second = next(iterator).numpy()
    >>> iterator.restore(state)
    >>> bool((next(iterator).numpy() == second).all())
    True
    """

    def __init__(self, node: Node):
        self._node = node
        self._lock = threading.RLock()  # one element goes to one thread
        self._ahead = (
            deque()
        )  # elements that were peeked at, and the position after each
        self._go_to(node.begin())

    def _go_to(self, position):
        self._ahead.clear()
        self._position = self._reached = position  # the latter with the elements ahead
        self._elements = self._node.run(position)

    def __iter__(self) -> DatasetIterator:
        if active_tracer() is not None:
            _refuse_loop("an iterator")
        return self

    def __next__(self) -> Any:
        if active_tracer() is not None:
            return next_element(self.handle, self._declared_spec)
        with self._lock:
            return self._popped() if self._ahead else self._advanced()

    def _popped(self):
        """The next element, of those ahead."""
        element, self._position = self._ahead.popleft()
        if not self._ahead:
            self._position = self._reached
        return element

    def _advanced(self):
        try:
            return next(self._elements)
        except StopIteration:
            raise EndOfSequence from None
        except BaseException:
            self._elements = _failed()
            raise

    def peek_spec(self, number: int) -> Any:
        """Return the spec of the element after ``number`` others; None if there is none."""
        element = self._peek(number)
        return None if element is None else spec_of(element)

    def _peek(self, number):
        with self._lock, use_interpreters(()):
            while len(self._ahead) <= number:
                before = copy_position(self._reached)
                try:
                    element = self._advanced()
                except EndOfSequence:
                    return None
                if not self._ahead:
                    self._position = before
                self._ahead.append((element, copy_position(self._reached)))
            return self._ahead[number][0]

    def take(self, check: Callable[[Any], object]) -> Any:
        """Take the next element, None at the end; if ``check`` of it raises, it stays next."""
        with self._lock:
            element = self._peek(0)
            if element is None:
                return None
            check(element)
            return self._popped()

    def get_next(self, name: str | None = None) -> Any:
        """Return the next element. Raises: ``OutOfRangeError`` if there is none."""
        return next(self)

    def get_next_as_optional(self) -> Optional:
        """Return the next element, if there is one, as an `Optional`."""
        if active_tracer() is not None:
            return next_optional(self.handle, self._declared_spec)
        element = next(self, None)
        if element is None:
            return Optional.empty(self.element_spec)
        return Optional.from_value(element)

    @property
    def element_spec(self) -> Any:
        """See `Dataset.element_spec`."""
        return self._node.spec()

    @functools.cached_property
    def _declared_spec(self):
        return self._node.spec() if self._node.declares() else None

    @functools.cached_property
    def resource_spec(self) -> tuple[str, str]:
        return "iterator", repr(self._declared_spec)

    def stand_in(self, handle: Tensor) -> DatasetIterator:
        return _TracedIterator(handle, self._declared_spec)

    def state(self) -> dict:
        """Return the position after the last element, as plain values for ``json``."""
        _refuse_trace("the state() of an iterator")
        warn_of_draws(self._node)
        with self._lock:
            return {
                "pipeline": self._node.pipeline(),
                "place": copy_position(self._position),
                "runs": self._node.runs(),
            }

    def restore(self, state: dict[str, Any]) -> None:
        """Go to the position at which an iterator of the same chain gave ``state``.

        Orders are as they were there, also those of the runs that begin later; functions
        are called again where elements have to be found by going through them.

        Raises: ``ValueError`` if the state is of another chain of transformations.
        """
        _refuse_trace("restore() of an iterator")
        _check_state(self._node, state)
        position = copy_position(state["place"])
        with self._lock:
            self._node.adopt(position)
            self._node.set_runs(state["runs"])
            self._go_to(position)


Iterator = DatasetIterator


class EndOfSequence(OutOfRangeError, StopIteration):
    """The end of an iterator, for ``next`` and for those who know TensorFlow's error."""

    def __init__(self):
        super().__init__("End of sequence: the iterator has no more elements")


class _TracedIterator(DatasetIterator):
    """An iterator that is an argument of the function that is being traced."""

    handle = None

    def __init__(self, handle, spec):
        self.handle, self._declared_spec = handle, spec

    @property
    def element_spec(self):
        return self._declared_spec

    def __repr__(self):
        return f"<DatasetIterator of {self._declared_spec}>"


def _refuse_trace(what):
    if active_tracer() is not None:
        fall_back(f"{what} is of plain values, and runs in each call: eagerly")


def _refuse_loop(what):
    fall_back(
        f"Python's loops over {what} cannot be traced: their steps are not known before "
        "they run. Write dataset.reduce(...), or tw.while_loop with next(iterator)"
    )


def _check_state(node, state):
    ours = node.pipeline()
    if not isinstance(state, dict) or state.get("pipeline") != ours:
        theirs = state.get("pipeline") if isinstance(state, dict) else state
        raise ValueError(
            "restore: the state is of another data set:\n"
            f"  this one: {ours}\n  the state: {theirs}"
        )


def _failed():
    raise RuntimeError(
        "The iterator failed before; make a new one, or restore() an earlier state"
    )
    yield


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
