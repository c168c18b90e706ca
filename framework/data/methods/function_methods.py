"""Methods of `Dataset` that call functions on elements: map, filter, scan, interleave, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.messages.suggestions import suggesting_methods
from tapewright.core.settings.target_settings import threads

from ..elements import checked_count, concrete
from ..nodes.mapping import Filter, Map
from ..nodes.nesting import Interleave
from ..nodes.parallel import AUTOTUNE, ParallelMap, ProcessMap
from ..nodes.scanning import Scan
from ..resampling import resample
from .node_methods import NodeMethods

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from tapewright.core.typing import IntLike, TensorLike

TURNS = 4  # datasets that `interleave` opens by default: the order of 4 CPUs


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
        *,
        processes: bool = False,
    ) -> Self:
        """Apply ``map_func`` to each element; a tuple is passed as several arguments.

        The function runs as Python on the CPU, and variables that it reads must be
        there.

        With several threads, elements, their order and their random numbers are the
        same as with one thread. The first call is made alone; if it assigns to
        variables, so are all others. NumPy, Pillow, traced functions and file reads run
        in parallel; other Python code does so in processes.

        Args:
            map_func: Function of an element; its result, a tensor or a tuple or dict of
                tensors, is the new element.
            num_parallel_calls: Number of threads that call ``map_func`` ahead of use,
                or None to call it as elements are requested. `AUTOTUNE` times the first
                calls, and uses one thread per core if they take long enough.
            deterministic: If False, elements are yielded as they are finished, in any
                order; None follows `Options`.
            synchronous: Has no effect.
            use_unbounded_threadpool: Has no effect.
            processes: If True, ``num_parallel_calls`` processes call ``map_func``; None
                and `AUTOTUNE` mean one per core. Each iteration starts its processes,
                with a copy of the function, and ends them. ``map_func`` must not assign
                to variables. Generators of NumPy and Python are seeded for each
                element.

        Raises:
            ValueError: If ``num_parallel_calls`` is below 1 and not `AUTOTUNE`.
            TypeError: If ``processes`` is not a bool.

        Example:
            >>> from tapewright.data import Dataset
            >>> [int(x) for x in Dataset.range(4).map(lambda x: x * x)]
            [0, 1, 4, 9]
            >>> pairs = Dataset.from_tensor_slices(([1, 2], [3, 4]))
            >>> [int(x) for x in pairs.map(lambda x, y: x * y)]
            [3, 8]
            >>> squares = Dataset.range(4).map(lambda x: x * x, 2, processes=True)
            >>> [int(x) for x in squares]
            [0, 1, 4, 9]
        """
        calls = _threads("map", num_parallel_calls)
        if not isinstance(processes, bool):
            raise TypeError(
                f"map: processes must be True or False, got {processes!r}; "
                "num_parallel_calls is their number"
            )
        if processes:
            calls = AUTOTUNE if calls is None else calls
            return self._new(ProcessMap(self._node, map_func, calls, deterministic))
        if calls is None:
            return self._new(Map(self._node, map_func))
        return self._new(ParallelMap(self._node, map_func, calls, deterministic))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Keep the elements for which ``predicate`` is true.

        Args:
            predicate: Function of an element, called as in `map`, that returns a
                boolean scalar.

        Raises:
            TypeError: If it does not return a boolean scalar, during iteration.

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
        """Map with a state: yield the outputs of ``scan_func(state, element)``.

        Args:
            initial_state: State for the first element, a tensor or a nest.
            scan_func: Function that returns a pair: the next state and the output.

        Raises:
            TypeError: If it does not return a pair, or the state changes its structure
                or dtype, during iteration.

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
        """Drop or repeat elements so that their classes have a target distribution.

        Args:
            class_func: Function of an element that returns its class, an integer in
                ``[0, num_classes)``.
            target_dist: Probability of each class in the result.
            initial_dist: Probability of each class in this dataset; None estimates it
                from the elements so far.
            seed: Integer seed, or None for a random seed.

        Returns:
            Dataset of pairs: the class and the element.

        Raises:
            ValueError: If the numbers are not a distribution, or the lengths differ.

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
        """Map each element to a dataset, and concatenate these datasets.

        Args:
            map_func: Function of an element, called as in `map`, that returns a
                dataset.

        Raises:
            TypeError: If it does not return a dataset, during iteration.

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
        """Map each element to a dataset, and interleave the elements of these datasets.

        As `flat_map`, but ``cycle_length`` datasets are open at a time and take turns.

        Args:
            map_func: Function of an element, called as in `map`, that returns a
                dataset.
            cycle_length: Number of open datasets. By default ``num_parallel_calls`` if
                it is a number, otherwise 4; TensorFlow uses the number of CPUs, so that
                the order depends on the machine.
            block_length: Number of consecutive elements from each dataset, by default
                1.
            num_parallel_calls: Number of open datasets that threads read ahead, or
                `AUTOTUNE`; the order stays the same.
            deterministic: Has no effect, since the order is always the same.

        Raises:
            ValueError: If a number is below 1, or ``num_parallel_calls`` exceeds
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
    """Return the number of threads, `AUTOTUNE`, or None for no threads."""
    if calls is None or concrete(calls) == AUTOTUNE:
        return calls
    return checked_count(who, "num_parallel_calls", calls, 1)
