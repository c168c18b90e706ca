"""`tw.queue`: queues of tensors between threads, as ``tf.queue``.

In a traced function they end the trace, and the function runs eagerly.
`tw.data.Dataset` is the faster way to feed a training loop.
"""

from __future__ import annotations

import heapq
import random
from abc import ABC, abstractmethod
from collections import deque
from itertools import count
from threading import Condition
from typing import Any

from tapewright.compiler.tracing.tracer import fall_back
from tapewright.core import dtypes as dtypes_
from tapewright.core.messages.argument_validation import MAX_SIZE, whole
from tapewright.core.dtypes import DType, as_dtype
from tapewright.core.errors import (
    CancelledError,
    InvalidArgumentError,
    OutOfRangeError,
    ShapeError,
)
from tapewright.core.interpreters import active_tracer
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.typing import IntLike
from tapewright.ops.array.conversion import stop_gradient
from tapewright.ops.array.joining import pad, stack, unstack

__all__ = [
    "FIFOQueue",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "QueueBase",
    "RandomShuffleQueue",
]


class QueueBase(ABC):
    """Base class of queues whose elements consist of one or several tensors.

    A thread that adds to a full queue, or takes from a queue with too few elements,
    waits until another thread changes that or calls `close`.

    Args:
        capacity: Greatest number of elements, -1 for no bound.
        dtypes: Dtype of each component of an element.
        shapes: Shape of each component, or None.
        names: Name of each component, whose elements are then dicts, or None.
        shared_name: Must be None.
        name: Name of the queue.
    """

    _pads = False  # whether elements of different shapes make a batch
    _spare = 0  # elements that stay while the queue is open

    def __init__(self, capacity, dtypes, shapes, names, shared_name, name):
        who = type(self).__name__
        if shared_name is not None:
            raise ValueError(
                f"{who}: shared_name must be None, got {shared_name!r}; pass the queue "
                "object to its users"
            )
        several = isinstance(dtypes, (list, tuple))
        self._dtypes = [as_dtype(x) for x in (dtypes if several else [dtypes])]
        number = len(self._dtypes)
        shapes = [None] * number if shapes is None else _as_list(shapes)
        self._shapes = [TensorShape(x) for x in shapes]
        self._names = [names] if isinstance(names, str) else names and list(names)
        for what, given in (("shapes", self._shapes), ("names", self._names)):
            if given is not None and len(given) != number:
                raise ValueError(
                    f"{who}: {what} must have one for each of the {number} dtypes, got "
                    f"{given}"
                )
        self._capacity = None if capacity < 0 else whole(who, "capacity", capacity)
        self._name = name
        self._changed = Condition()
        self._closed = self._cancelled = False

    # --- what subclasses keep the elements in

    def __repr__(self) -> str:
        capacity = "any number" if self._capacity is None else self._capacity
        return f"<{type(self).__name__}: {int(self.size())} of {capacity} elements>"

    @abstractmethod
    def _put(self, element):
        """Store an element."""

    @abstractmethod
    def _take(self):
        """Remove and return the next element."""

    @abstractmethod
    def _count(self):
        """Return the number of elements."""

    # --- what it is

    @property
    def dtypes(self) -> list[DType]:
        """Dtype of each component."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """Shape of each component, as far as known."""
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        """Names of the components if elements are dicts, or None."""
        return self._names

    @property
    def name(self) -> str:
        """Name of the queue."""
        return self._name

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of elements, int32."""
        self._must_be_eager()
        return convert_to_tensor(self._count(), "int32")

    def is_closed(self, name: str | None = None) -> Tensor:
        """Return whether `close` was called."""
        self._must_be_eager()
        return convert_to_tensor(self._closed)

    def close(
        self, cancel_pending_enqueues: bool = False, name: str | None = None
    ) -> None:
        """Close the queue: new elements are rejected, remaining ones can still be removed.

        Args:
            cancel_pending_enqueues: If True, threads that wait to add an element are
                cancelled; otherwise they still add it.
        """
        self._must_be_eager()
        with self._changed:
            self._closed = True
            self._cancelled = self._cancelled or cancel_pending_enqueues
            self._changed.notify_all()

    # --- adding

    def enqueue(self, vals: Any, name: str | None = None) -> None:
        """Add an element.

        Args:
            vals: Tensor, list with one tensor for each dtype, or dict of tensors by
                name.

        Raises:
            CancelledError: If the queue is closed.
            TypeError: If components or dtypes differ from the queue's.
            ValueError: If shapes differ from the queue's.
        """
        self._must_be_eager()
        self._add([self._element(self._components("enqueue", vals))])

    def enqueue_many(self, vals: Any, name: str | None = None) -> None:
        """Add the rows of a tensor as elements.

        Args:
            vals: Tensor, or a list or dict of tensors with one size of the first axis.

        Raises:
            CancelledError: If the queue is closed.
            TypeError: If components or dtypes differ from the queue's.
            ValueError: If shapes differ from the queue's.
        """
        self._must_be_eager()
        columns = self._components("enqueue_many", vals)
        if any([not column.shape.rank for column in columns]):
            raise ShapeError(
                f"{self._title}.enqueue_many: each component must have an axis of elements"
            )
        sizes = {column.shape[0] for column in columns}
        if len(sizes) != 1:
            raise ShapeError(
                f"{self._title}.enqueue_many: the components must have one first size, got "
                f"{[tuple(column.shape) for column in columns]}"
            )
        rows = zip(*[unstack(column) for column in columns])
        self._add([self._element(row) for row in rows])

    def _components(self, method, vals):
        """Return the tensors of an element, or of a batch."""
        who = f"{self._title}.{method}"
        if (self._names is not None) != isinstance(vals, dict):
            wanted = "a dict" if self._names is not None else "a tensor or a list"
            raise ValueError(f"{who}: vals must be {wanted}, got {vals!r}")
        if self._names is not None:
            if set(vals) != set(self._names):
                raise ValueError(
                    f"{who}: vals must have the keys {self._names}, got {list(vals)}"
                )
            vals = [vals[key] for key in self._names]
        vals = vals if isinstance(vals, (list, tuple)) else [vals]
        if len(vals) != len(self._dtypes):
            raise InvalidArgumentError(
                f"{who}: vals must have {len(self._dtypes)} components, one for each "
                f"dtype, got {len(vals)}; a list of one tensor is [tensor]"
            )
        pairs = zip(vals, self._dtypes)
        return [stop_gradient(convert_to_tensor(x, dtype)) for x, dtype in pairs]

    def _element(self, components):
        for x, shape in zip(components, self._shapes):
            if not shape.is_compatible_with(x.shape):
                raise ShapeError(
                    f"{self._title}: an element must have the shapes {self._shapes}, got "
                    f"{[tuple(x.shape) for x in components]}"
                )
        return tuple(components)

    def _add(self, elements):
        with self._changed:
            if self._closed:
                raise CancelledError(f"{self._title}: the queue is closed")
            for element in elements:
                while self._capacity is not None and self._count() >= self._capacity:
                    self._changed.wait()
                    if self._cancelled:
                        raise CancelledError(f"{self._title}: the queue is closed")
                self._put(element)
                self._changed.notify_all()

    # --- taking

    def dequeue(self, name: str | None = None) -> Any:
        """Remove an element and return it: a tensor, a list of tensors, or a dict.

        Raises:
            OutOfRangeError: If the queue is closed and empty.
        """
        self._must_be_eager()
        return self._packed(self._taken(1, False)[0])

    def dequeue_many(self, n: IntLike, name: str | None = None) -> Any:
        """Remove ``n`` elements and return them, stacked along a new first axis.

        Args:
            n: Number of elements.

        Raises:
            OutOfRangeError: If the queue is closed and has fewer elements.
            InvalidArgumentError: If the queue was created without shapes (a
                ``ValueError``).
        """
        return self._batch("dequeue_many", int(n), False)

    def dequeue_up_to(self, n: IntLike, name: str | None = None) -> Any:
        """Remove up to ``n`` elements: fewer, but at least one, if the queue is closed.

        Args:
            n: Number of elements.

        Raises:
            OutOfRangeError: If the queue is closed and empty.
            InvalidArgumentError: If the queue was created without shapes (a
                ``ValueError``).
        """
        return self._batch("dequeue_up_to", int(n), True)

    def _batch(self, method, n, fewer):
        self._must_be_eager()
        if self._capacity is not None and n + self._spare > self._capacity:
            raise InvalidArgumentError(
                f"{self._title}.{method}: n must be at most the "
                f"{self._capacity - self._spare} elements that can be removed, got {n}"
            )
        known = [x.rank is not None if self._pads else x.is_fully_defined()
                 for x in self._shapes]  # fmt: skip
        if not all(known):
            raise InvalidArgumentError(
                f"{self._title}.{method}: the queue must have shapes to stack elements, got "
                f"{self._shapes}"
            )
        columns = zip(*self._taken(n, fewer))
        return self._packed([self._stacked(column) for column in columns])

    def _stacked(self, rows):
        if self._pads:
            largest = [max(sizes) for sizes in zip(*[x.shape for x in rows])]
            zero = "" if rows[0].dtype == dtypes_.string else 0
            rows = [
                pad(x, [(0, n - m) for n, m in zip(largest, x.shape)],
                    constant_values=zero) if largest else x for x in rows
            ]  # fmt: skip
        return stack(rows)

    def _taken(self, n, fewer):
        with self._changed:
            while not self._closed and self._count() < n + self._spare:
                self._changed.wait()
            there = self._count()
            if there < n and not (fewer and there):
                raise OutOfRangeError(
                    f"{self._title}: the queue is closed and has {there} elements, fewer "
                    f"than {n}"
                )
            elements = [self._take() for _ in range(min(n, there))]
            self._changed.notify_all()
        return elements

    def _packed(self, components):
        if self._names is not None:
            return dict(zip(self._names, components))
        return list(components) if len(components) > 1 else components[0]

    # --- words

    @property
    def _title(self):
        return f"{type(self).__name__} {self._name!r}"

    def _must_be_eager(self):
        if active_tracer() is not None:
            fall_back(
                f"{self._title} changes with each call, so the function runs eagerly"
            )


def _as_list(shapes):
    """Return one shape for each component; a list of sizes is the shape of a single one."""
    is_single = isinstance(shapes, TensorShape) or all(
        [size is None or isinstance(size, int) for size in shapes]
    )
    return [shapes] if is_single else list(shapes)


class FIFOQueue(QueueBase):
    """First-in, first-out queue: it returns elements in the order in which they were added.

    Args:
        capacity: Greatest number of elements, -1 for no bound.
        dtypes: Dtype, or a list with a dtype for each component of an element.
        shapes: Shapes of the components, which `dequeue_many` needs, or None.
        names: Names of the components, whose elements are then dicts, or None.
        shared_name: Must be None.
        name: Name of the queue.

    Raises:
        ValueError: If there is not one shape or name for each dtype, or a
            ``shared_name`` is given.

    Example:
        >>> queue = tw.queue.FIFOQueue(10, ["int32", "float32"], shapes=[[], [2]])
        >>> queue.enqueue([1, [1.0, 2.0]])
        >>> queue.enqueue_many([[2, 3], [[3.0, 4.0], [5.0, 6.0]]])
        >>> queue.dequeue_many(3)[0].numpy(), queue.size().numpy()
        (array([1, 2, 3], dtype=int32), np.int32(0))
    """

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None,
        shared_name: str | None = None, name: str = "fifo_queue",
    ):  # fmt: skip
        super().__init__(capacity, dtypes, shapes, names, shared_name, name)
        self._elements = deque()

    def _put(self, element):
        self._elements.append(element)

    def _take(self):
        return self._elements.popleft()

    def _count(self):
        return len(self._elements)


class PaddingFIFOQueue(FIFOQueue):
    """`FIFOQueue` that pads elements of different sizes in batches, with 0 or "".

    Args:
        capacity: Greatest number of elements, -1 for no bound.
        dtypes: Dtype, or a list with a dtype for each component of an element.
        shapes: Shapes of the components, with None for sizes that vary.
        names: Names of the components, whose elements are then dicts, or None.
        shared_name: Must be None.
        name: Name of the queue.

    Example:
        >>> queue = tw.queue.PaddingFIFOQueue(10, ["int32"], shapes=[[None]])
        >>> queue.enqueue([[1]])
        >>> queue.enqueue([[2, 3]])
        >>> queue.dequeue_many(2).numpy()
        array([[1, 0],
               [2, 3]], dtype=int32)
    """

    _pads = True

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any, names: Any = None,
        shared_name: str | None = None, name: str = "padding_fifo_queue",
    ):  # fmt: skip
        super().__init__(capacity, dtypes, shapes, names, shared_name, name)


class RandomShuffleQueue(QueueBase):
    """Queue that returns its elements in random order, which differs from TensorFlow's.

    Args:
        capacity: Greatest number of elements, -1 for no bound.
        min_after_dequeue: Least number of elements that remain in the queue, so that
            they are well mixed, until it is closed.
        dtypes: Dtype, or a list with a dtype for each component of an element.
        shapes: Shapes of the components, which `dequeue_many` needs, or None.
        names: Names of the components, whose elements are then dicts, or None.
        seed: Integer seed of the order, or None for a random seed.
        shared_name: Must be None.
        name: Name of the queue.

    Example:
        >>> queue = tw.queue.RandomShuffleQueue(10, 0, "int32", shapes=[[]])
        >>> queue.enqueue_many([[1, 2, 3]])
        >>> sorted(queue.dequeue_many(3).numpy().tolist())
        [1, 2, 3]
    """

    def __init__(
        self, capacity: int, min_after_dequeue: int, dtypes: Any, shapes: Any = None,
        names: Any = None, seed: int | None = None, shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ):  # fmt: skip
        super().__init__(capacity, dtypes, shapes, names, shared_name, name)
        self._spare = whole(
            "RandomShuffleQueue", "min_after_dequeue", min_after_dequeue, least=0,
            most=capacity - 1 if capacity > 0 else MAX_SIZE,
        )  # fmt: skip
        self._random = random.Random(seed)
        self._elements = []

    def _put(self, element):
        self._elements.append(element)

    def _take(self):
        elements, chosen = self._elements, self._random.randrange(self._count())
        elements[chosen], elements[-1] = elements[-1], elements[chosen]
        return elements.pop()

    def _count(self):
        return len(self._elements)


class PriorityQueue(QueueBase):
    """Priority queue: it returns the element with the lowest number first.

    The first component of each element is its priority, int64; elements of equal
    priority are returned in the order in which they were added.

    Args:
        capacity: Greatest number of elements, -1 for no bound.
        types: Dtypes of the components after the priority.
        shapes: Shapes of the components after the priority, or None.
        names: Names of the components, whose elements are then dicts, or None.
        shared_name: Must be None.
        name: Name of the queue.

    Example:
        >>> queue = tw.queue.PriorityQueue(10, ["string"], shapes=[[]])
        >>> queue.enqueue([2, "later"])
        >>> queue.enqueue([1, "soon"])
        >>> queue.dequeue()[1].numpy()
        b'soon'
    """

    def __init__(
        self, capacity: int, types: Any, shapes: Any = None, names: Any = None,
        shared_name: str | None = None, name: str = "priority_queue",
    ):  # fmt: skip
        types = types if isinstance(types, (list, tuple)) else [types]
        shapes = [None] * len(types) if shapes is None else _as_list(shapes)
        types, shapes = [dtypes_.int64, *types], [(), *shapes]
        super().__init__(capacity, types, shapes, names, shared_name, name)
        self._heap, self._number = [], count()

    def _put(self, element):
        heapq.heappush(self._heap, (int(element[0]), next(self._number), element))

    def _take(self):
        return heapq.heappop(self._heap)[-1]

    def _count(self):
        return len(self._heap)
