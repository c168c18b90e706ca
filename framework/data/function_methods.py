"""Methods of `Dataset` that call functions of elements: map, filter, scan, interleave, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.suggestions import suggesting_methods
from tapewright.core.target_settings import threads

from .elements import checked_count, concrete
from .mapping import Filter, Map
from .nesting import Interleave
from .node_methods import NodeMethods
from .parallel import AUTOTUNE, ParallelMap
from .resampling import resample
from .scanning import Scan

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from tapewright.core.typing import IntLike, TensorLike

__all__ = ["FunctionMethods"]

TURNS = 4  # data sets that `interleave` opens by default: the order is that of 4 CPUs


@suggesting_methods
class FunctionMethods(NodeMethods):
    """See `Dataset`."""

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: IntLike | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Self:
        """Apply ``map_func`` to each element; a tuple arrives as several arguments.

        It runs as Python on the CPU, where the variables that it reads must be.

        Args: ``num_parallel_calls``: so many threads call it, some elements ahead.
        NumPy, Pillow, traced functions and reads of files run at once, other Python code
        does not. `AUTOTUNE` times the first calls, and takes as many threads as there are
        cores if they are long enough. The elements, their order and their random numbers
        are those of one thread; ``deterministic=False`` gives up the order, and yields
        elements as they are done. The first call is made alone; if it assigns to variables,
        all are. The last two arguments have no effect.

        Raises: ``ValueError`` for a number below 1.

        Example:
            >>> from tapewright.data import Dataset
            >>> pairs = Dataset.from_tensor_slices(([1, 2], [3, 4]))
            >>> [int(x) for x in pairs.map(lambda x, y: x * y)]
            [3, 8]
        """
        calls = _threads("map", num_parallel_calls)
        if calls is None:
            return self._new(Map(self._node, map_func))
        return self._new(ParallelMap(self._node, map_func, calls, deterministic))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Keep the elements for which ``predicate`` is true; see `map` for its arguments.

        Raises: ``TypeError``, in a run, if it returns no boolean scalar.

        Example:
            >>> from tapewright.data import Dataset
            >>> [int(x) for x in Dataset.range(5).filter(lambda x: x % 2 == 1)]
            [1, 3]
        """
        return self._new(Filter(self._node, predicate))

    def scan(
        self,
        initial_state: Any,
        scan_func: Callable[[Any, Any], tuple[Any, Any]],
        name: str | None = None,
    ) -> Self:
        """Yield the outputs of ``(state, output) = scan_func(state, element)``.

        The first state is ``initial_state``.

        Raises: ``TypeError``, in a run, if it returns no pair, or a state of another
        structure or dtype.

        Example:
            >>> import numpy as np
            >>> from tapewright.data import Dataset
            >>> sums = Dataset.range(5).scan(np.int64(0), lambda s, x: (s + x, s + x))
            >>> [int(x) for x in sums]
            [0, 1, 3, 6, 10]
        """
        return self._new(Scan(self._node, initial_state, scan_func))

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: TensorLike,
        initial_dist: TensorLike | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Self:
        """Drop or repeat elements so that their classes have another distribution.

        Args: ``class_func``: an integer in ``[0, num_classes)`` for an element;
        ``target_dist``: the probability of each class; ``initial_dist``: that in this data
        set, by default estimated from the elements so far.

        Returns: pairs of the class and the element.

        Raises: ``ValueError`` for numbers that are no distribution, or different lengths.

        Example:
            >>> from tapewright.data import Dataset
            >>> ds = Dataset.range(1000).map(lambda x: x % 4 // 3)  # a quarter is of class 1
            >>> ds = ds.rejection_resample(lambda x: x, [0.5, 0.5], [0.75, 0.25], seed=0)
            >>> classes = [int(number) for number, _ in ds]
            >>> 0.45 < sum(classes) / len(classes) < 0.55
            True
        """
        return resample(
            self._new(self._node), class_func, target_dist, initial_dist, seed
        )

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Self:
        """Join the data sets that ``map_func`` returns, one after the other.

        Raises: ``TypeError``, in a run, if it returns no data set.

        Example:
            >>> from tapewright.data import Dataset
            >>> [int(x) for x in Dataset.range(4).flat_map(lambda n: Dataset.range(n))]
            [0, 0, 1, 0, 1, 2]
        """
        return self._new(Interleave(self._node, map_func))

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: IntLike | None = None,
        block_length: IntLike | None = None,
        num_parallel_calls: IntLike | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """`flat_map` with ``cycle_length`` data sets open, which take turns.

        Each gives ``block_length`` elements at a time. So many of them as
        ``num_parallel_calls`` says are read ahead by threads, in the same order.

        Args:
            cycle_length: By default ``num_parallel_calls`` if that is a number, else 4,
                where TensorFlow takes the number of CPUs, so that each machine has an
                order of its own.
            deterministic: Accepted, the order is always the same.

        Raises: ``ValueError`` for numbers below 1, and for more calls than
        ``cycle_length``.

        Example:
            >>> from tapewright.data import Dataset
            >>> twice = Dataset.range(4).interleave(
            ...     lambda n: Dataset.from_tensors(n).repeat(2), cycle_length=2
            ... )
            >>> [int(x) for x in twice]
            [0, 1, 0, 1, 2, 3, 2, 3]
        """
        calls = _threads("interleave", num_parallel_calls)
        if cycle_length in (None, AUTOTUNE):
            cycle_length = TURNS if calls in (None, AUTOTUNE) else calls
        cycle = checked_count("interleave", "cycle_length", cycle_length, 1)
        block = 1 if block_length is None else block_length
        block = checked_count("interleave", "block_length", block, 1)
        if (calls or 0) > cycle:
            raise ValueError(
                f"interleave: num_parallel_calls must be at most cycle_length, {cycle}, "
                f"got {calls}"
            )
        calls = min(threads(), cycle) if calls == AUTOTUNE else calls or 0
        return self._new(Interleave(self._node, map_func, cycle, block, calls))


def _threads(who, calls):
    """The number of threads, `AUTOTUNE`, or None for none."""
    if calls is None or concrete(calls) == AUTOTUNE:
        return calls
    return checked_count(who, "num_parallel_calls", calls, 1)
