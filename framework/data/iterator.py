"""`DatasetIterator`: one iteration over a dataset, with a position to save and restore."""

from __future__ import annotations

import functools
import threading
from collections import deque
from typing import TYPE_CHECKING

from tapewright.compiler.tracing.handles import Resource
from tapewright.compiler.tracing.tracer import fall_back
from tapewright.core.errors import OutOfRangeError
from tapewright.core.interpreters import active_tracer, use_interpreters
from tapewright.core.nest import map_structure

from .elements import on_device, spec_of
from .nodes.node import copy_position
from .rng import warn_of_draws
from .tracing import Optional, next_element, next_optional, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tapewright.core.tensor import Tensor


class DatasetIterator(Resource):
    """Iterator over a `Dataset`, with a position that can be saved and restored.

    An iterator has state, as a variable has: in a traced function, too, each call
    continues after the last element, whether the iterator is an argument or a global
    name.

    Args:
        node: Node of the pipeline; programs call ``iter(dataset)`` instead.

    Example:
        >>> from tapewright.data import Dataset
        >>> ds = Dataset.range(100).shuffle(100, seed=1).batch(2)
        >>> iterator = iter(ds)
        >>> first, state = next(iterator), iterator.state()
        >>> second = next(iterator).numpy()
        >>> iterator.restore(state)
        >>> bool((next(iterator).numpy() == second).all())
        True
    """

    def __init__(self, node: Any):
        self._node = node
        self._lock = threading.RLock()  # one element goes to one thread
        # Elements that were peeked at, and the position after each.
        self._ahead = deque()
        self._go_to(node.begin())

    def __repr__(self) -> str:
        return f"<DatasetIterator {' < '.join(self._node.pipeline())}>"

    def _go_to(self, position):
        self._elements = self._node.elements(position)  # or raise, and stay
        self._ahead.clear()
        self._position = self._reached = position  # the latter with the elements ahead

    def __iter__(self) -> DatasetIterator:
        if active_tracer() is not None:
            refuse_loop("an iterator")
        return self

    def _tw_traced_steps(self) -> Any:
        """Return the steps of a `for` loop in a traced function."""
        return steps_of(self._tw_handle, self._declared_spec, "for ... in an iterator")

    def __next__(self) -> Any:
        if active_tracer() is not None:
            return next_element(self._tw_handle, self._declared_spec)
        with self._lock:
            return on_device(self._popped() if self._ahead else self._advanced())

    def _popped(self):
        """Return the next element, from the elements made ahead."""
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

    def _tw_peek_spec(self, number: int) -> Any:
        """Return the spec of an element ahead without taking it, or None at the end.

        Args:
            number: Number of elements before it, 0 for the next element.
        """
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

    def _take(self, check: Callable[[Any], object]) -> Any:
        """Return the next element in host memory, or None at the end.

        The element is not removed if ``check(element)`` raises.

        Args:
            check: Function of the element, called before it is removed.
        """
        with self._lock:
            element = self._peek(0)
            if element is None:
                return None
            check(element)
            return self._popped()

    def get_next(self, name: str | None = None) -> Any:
        """Return the next element.

        Raises:
            OutOfRangeError: If there are no more elements.
        """
        return next(self)

    def next(self) -> Any:
        """Return the next element, as ``next(iterator)``."""
        return next(self)

    def get_next_as_optional(self) -> Optional:
        """Return the next element as an `Optional`, which is empty at the end."""
        if active_tracer() is not None:
            return next_optional(self._tw_handle, self._declared_spec)
        element = next(self, None)
        if element is None:
            return Optional.empty(self.element_spec)
        return Optional.from_value(element)

    @property
    def element_spec(self) -> Any:
        """Structure of an element; see `Dataset.element_spec`."""
        return self._node.spec()

    @functools.cached_property
    def _declared_spec(self):
        return self._node.spec() if self._node.declares() else None

    @functools.cached_property
    def _tw_resource_spec(self) -> tuple[str, str]:
        return "iterator", repr(self._declared_spec)

    def _tw_stand_in(self, handle: Tensor) -> DatasetIterator:
        return _TracedIterator(handle, self._declared_spec)

    def state(self) -> dict[str, Any]:
        """Return the position after the last element, as plain values for JSON."""
        refuse_trace("the state() of an iterator")
        warn_of_draws(self._node)
        with self._lock:
            return {
                "pipeline": self._node.pipeline(),
                "place": copy_position(self._position),
                "runs": self._node.state(),
            }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved position, also of another iterator over the same transformations.

        Orders are restored, also for later iterations; functions are called again for
        elements that have to be made again.

        Args:
            state: Result of `state`.

        Raises:
            ValueError: If the state is from another chain of transformations.
        """
        refuse_trace("restore() of an iterator")
        check_state(self._node, state)
        position = copy_position(state["place"])
        with self._lock:
            self._node.adopt_state(position)
            self._node.set_state(state["runs"])
            self._go_to(position)


class NumpyIterator:
    """Iterator over a `Dataset` that converts tensors to NumPy arrays.

    Args:
        iterator: Iterator that yields the tensors.
    """

    def __init__(self, iterator: DatasetIterator):
        self._iterator = iterator

    def __repr__(self) -> str:
        return f"<NumpyIterator {' < '.join(self._iterator._node.pipeline())}>"

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        element = self._iterator._take(lambda element: None)
        if element is None:
            raise StopIteration
        return map_structure(
            lambda leaf: leaf.numpy() if hasattr(leaf, "numpy") else leaf, element
        )

    def next(self) -> Any:
        """Return the next element, as ``next(iterator)``."""
        return next(self)


class EndOfSequence(OutOfRangeError, StopIteration):
    """End of an iterator, for ``next`` and for code that expects TensorFlow's error."""

    def __init__(self):
        super().__init__("End of sequence: the iterator has no more elements")


class _TracedIterator(DatasetIterator):
    """Iterator that is an argument of the function being traced."""

    _tw_handle = None

    def __init__(self, handle, spec):
        self._tw_handle, self._declared_spec = handle, spec

    @property
    def element_spec(self):
        return self._declared_spec

    def __repr__(self):
        return f"<DatasetIterator of {self._declared_spec}>"


def refuse_trace(what):
    """End a trace for ``what``, which consists of plain values."""
    if active_tracer() is not None:
        fall_back(f"{what} returns plain values, so the function runs eagerly")


def refuse_loop(what):
    """End a trace for a loop over ``what``, whose steps are unknown."""
    fall_back(
        f"Python loops over {what} cannot be traced, since their length is unknown; "
        "use dataset.reduce(...), or tw.while_loop with next(iterator)"
    )


def check_state(node, state):
    """Reject a state of another chain of transformations."""
    ours = node.pipeline()
    if not isinstance(state, dict) or state.get("pipeline") != ours:
        theirs = state.get("pipeline") if isinstance(state, dict) else state
        raise ValueError(
            "restore: the state is from another dataset:\n"
            f"  this dataset: {ours}\n  the state: {theirs}"
        )


def _failed():
    raise RuntimeError(
        "the iterator has failed; create a new one, or restore() an earlier state"
    )
    yield
