"""`TensorArray`: tensors of one dtype under numbers, written one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tapewright.core.composite import CompositeTensor
from tapewright.core.dtypes import DType, as_dtype
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    OutOfBoundsError,
    OutOfRangeError,
    ShapeError,
    TracingError,
)
from tapewright.core.interpreters import active_tracer
from tapewright.core.nest import flatten, map_structure, pack
from tapewright.core.tensor import Tensor, convert_to_tensor, is_composite
from tapewright.core.tensor_shape import TensorShape
from tapewright.core.typing import DTypeLike, IntLike, StaticShapeLike, TensorLike
from tapewright.ops.array.conversion import stop_gradient
from tapewright.ops.array.creation import zeros
from tapewright.ops.array.gather import gather
from tapewright.ops.array.joining import concat, split, stack, unstack
from tapewright.ops.array.scatter import put_row

from ..tracing.tracer import fall_back
from .regions import any_traced

__all__ = [
    "TensorArray",
    "as_tensors",
    "stop_gradients",
]


class ElementError(OutOfBoundsError, OutOfRangeError):
    """A `TensorArray` has no element of that number."""


class TensorArray(CompositeTensor):
    """A list of tensors of one dtype and shape, for loops to write to and read from.

    `write` and the other methods that change it return the array with the change:
    continue with that one. (In eager mode it is the same object; in a traced function
    another.)

    Args: ``size``: the number of elements; ``dynamic_size``: it grows when written to
    beyond that (where the index is known while tracing); ``element_shape``: their
    shape, by default that of the first one written. ``clear_after_read``,
    ``colocate_with_first_write_call`` and names change nothing: elements may be read again.

    Raises: ``ValueError`` for a ``handle`` or ``flow``, of an array of a graph.

    >>> array = TensorArray("float32", size=2)
    >>> array = array.write(0, 1.0)
    >>> array = array.write(1, 2.0)
    >>> array.stack().numpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(
        self,
        dtype: DTypeLike,
        size: IntLike | None = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: StaticShapeLike = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ):
        if handle is not None or flow is not None:
            raise ValueError(
                "TensorArray: handle and flow must be None: an array is an object, which "
                f"a loop takes along; got {handle!r} and {flow!r}"
            )
        self._dtype = as_dtype(dtype)
        self._dynamic = bool(dynamic_size)
        self._shape = TensorShape(element_shape)
        self._infers = infer_shape
        self._items = [None] * int(0 if size is None else size)
        # Whether writes have made it larger, or will: then the size is not known to a trace.
        self._grows = self._dynamic and not self._items
        self._rows = None  # all elements as one tensor, once the index is traced

    # --- what it is

    @property
    def dtype(self) -> DType:
        """The `DType` of the elements."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """True if it grows when written to beyond its size."""
        return self._dynamic

    @property
    def element_shape(self) -> TensorShape:
        """The `TensorShape` of the elements, as far as it is known."""
        return self._shape

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, an int32 tensor."""
        return convert_to_tensor(self._count(), dtype="int32")

    def _count(self):
        return len(self._items) if self._rows is None else self._rows.shape[0]

    def __repr__(self) -> str:
        return (
            f"<TensorArray: size={self._count()}, element_shape={self._shape}, "
            f"dtype={self._dtype.name}>"
        )

    # --- writing

    def write(
        self, index: IntLike, value: TensorLike, name: str | None = None
    ) -> TensorArray:
        """The array with ``value`` at ``index``.

        Raises: ``IndexError`` for an index out of range; ``ShapeError`` (a ValueError)
        or ``DTypeError`` (a TypeError) for a value of another shape or dtype.
        """
        value = self._fitting("write", value)
        index = convert_to_tensor(index)
        if self._rows is None and not any_traced([index]):
            array = self._open(value)
            array._put(int(index), value)
            return array
        if self._grows:
            fall_back(
                "TensorArray.write: in a traced function an array cannot grow at a traced "
                "index: pass its size"
            )
        array = self._open(value)
        rows = array._as_rows("write")
        array._rows = put_row(rows, index, value)
        return array

    def _put(self, index, value):
        if index < 0 or (index >= len(self._items) and not self._dynamic):
            raise ElementError(
                f"TensorArray.write: index must be from 0 to {len(self._items) - 1}, got "
                f"{index}; dynamic_size=True lets it grow"
            )
        missing = index + 1 - len(self._items)
        self._items += [None] * missing
        self._grows = self._grows or missing > 0
        self._items[index] = value

    def _fitting(self, who, value):
        value = convert_to_tensor(value, dtype_hint=self._dtype)
        self._check_dtype(who, value)
        if not self._shape.is_compatible_with(value.shape):
            raise ShapeError(
                f"TensorArray.{who}", f"elements have shape {self._shape}", value=value
            )
        return value

    def _check_dtype(self, who, value):
        if value.dtype != self._dtype:
            raise DTypeError(
                f"TensorArray.{who}", f"the dtype is {self._dtype.name}", value=value
            )

    def _open(self, value=None):
        """Return the array to write into: itself in eager mode, a copy in a trace."""
        array = self if active_tracer() is None else self._copy()
        if value is not None and self._infers:
            array._shape = self._shape.merge_with(value.shape)
        return array

    def _copy(self):
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._items = list(self._items)
        return twin

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array with the rows of ``value`` as its first elements."""
        value = convert_to_tensor(value, dtype_hint=self._dtype)
        if not value.ndim:
            raise ShapeError("TensorArray.unstack", "value must have rows", value=value)
        count = value.shape[0]
        if count > self._count() and not self._dynamic:
            raise ShapeError(
                "TensorArray.unstack",
                f"the array has {self._count()} elements",
                value=value,
            )
        if count == self._count() and any_traced([value]):
            array = self._open()
            array._shape = self._shape.merge_with(value.shape[1:])
            self._check_dtype("unstack", value)
            array._rows, array._items = value, []
            return array
        return self.scatter(range(count), value)

    def scatter(
        self, indices: TensorLike, value: TensorLike, name: str | None = None
    ) -> TensorArray:
        """The array with the rows of ``value`` at ``indices``."""
        array = self
        indices = indices if isinstance(indices, range) else list(unstacked(indices))
        for index, row in zip(indices, unstacked(value, self._dtype), strict=True):
            array = array.write(index, row)
        return array

    def split(
        self, value: TensorLike, lengths: TensorLike, name: str | None = None
    ) -> TensorArray:
        """The array with consecutive pieces of ``value``, of these ``lengths``.

        Raises: ``ShapeError`` (a ValueError) if the lengths do not add up to the size
        of the first axis, or are too many.
        """
        sizes = [int(n) for n in convert_to_tensor(lengths)]
        value = convert_to_tensor(value, dtype_hint=self._dtype)
        if len(sizes) != self._count() and not self._dynamic:
            what = (
                f"lengths must name the sizes of {self._count()} elements, got {sizes}"
            )
            raise ShapeError("TensorArray.split", what, value=value)
        array = self._open()
        for index, part in enumerate(split(value, sizes)):
            array._put(index, self._fitting("split", part))
        if self._infers:
            size = sizes[0] if len(set(sizes)) == 1 else None
            array._shape = self._shape.merge_with((size, *value.shape[1:]))
        return array

    # --- reading

    def read(self, index: IntLike, name: str | None = None) -> Tensor:
        """The element at ``index``; zeros if it was never written and its shape is known.

        Raises: ``IndexError`` for an index out of range.
        """
        index = convert_to_tensor(index)
        if self._rows is not None or any_traced([index]):
            return gather(self._as_rows("read"), index)
        number = int(index)
        if not 0 <= number < len(self._items):
            raise ElementError(
                f"TensorArray.read: index must be from 0 to {len(self._items) - 1}, got "
                f"{number}"
            )
        return self._element("read", number)

    def _element(self, who, number):
        found = self._items[number]
        if found is not None:
            return found
        if not self._shape.is_fully_defined():
            raise InvalidArgumentError(
                f"TensorArray.{who}: element {number} was never written, and its "
                "shape is unknown: pass element_shape"
            )
        return zeros(tuple(self._shape), self._dtype)

    def stack(self, name: str | None = None) -> Tensor:
        """All elements as one tensor ``[size, ...]``; those never written are zeros.

        Raises: ``ValueError`` if an element was never written and its shape is unknown.
        """
        if self._rows is not None:
            return self._rows
        if not self._items:
            shape = tuple(self._shape) if self._shape.is_fully_defined() else ()
            return zeros((0, *shape), self._dtype)
        return self._stacked()

    def _stacked(self):
        """Stack the elements; missing ones are zeros."""
        parts, missing = [], 0
        for i, item in enumerate([*self._items, None]):
            last = i == len(self._items)
            if item is not None or last:
                if missing:
                    element = self._element("stack", i - missing)
                    parts.append(zeros((missing, *element.shape), self._dtype))
                    missing = 0
                if not last:
                    if not parts or type(parts[-1]) is not list:
                        parts.append([])
                    parts[-1].append(item)
            else:
                missing += 1
        parts = [stack(part) if type(part) is list else part for part in parts]
        return parts[0] if len(parts) == 1 else concat(parts, 0)

    def gather(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The elements at ``indices`` as one tensor, stacked."""
        return gather(self.stack(), indices)

    def concat(self, name: str | None = None) -> Tensor:
        """The elements joined along their first axis."""
        if self._rows is not None:
            return concat(unstack(self._rows), 0)
        return concat([self._element("concat", i) for i in range(len(self._items))], 0)

    def identity(self) -> TensorArray:
        """The array itself."""
        return self

    def close(self, name: str | None = None) -> None:
        """Do nothing: memory is freed when it is not referenced any more."""

    def __iter__(self) -> Iterator[Tensor]:
        for index in range(self._count()):
            yield self.read(index)

    # --- for loops

    def _as_rows(self, who):
        if self._rows is not None:
            return self._rows
        if self._dynamic and not self._items:
            fall_back(
                f"TensorArray.{who}: in a traced function an array cannot grow at a "
                "traced index: pass its size"
            )
        rows = self.stack()
        self._rows, self._items = rows, []
        return rows

    def static_key(self) -> Any:
        """The class, the number of elements, and what they must be."""
        shape = self._shape.rank, *self._shape
        flags = self._dtype, self._dynamic, self._infers
        return TensorArray, self._count(), shape, flags

    def is_like(self, other: Any) -> bool:
        """Return whether the other is one, of any size: elements are checked."""
        return isinstance(other, TensorArray)

    def components(self) -> list[Any]:
        """Return its tensors as operands of a node; None for one of unknown shape."""
        known = self._rows is not None or self._shape.is_fully_defined()
        if not known and any(x is not None for x in self._items):
            return list(self._items)
        return [self.stack()] if known else [None]

    def with_components(self, components: Any) -> TensorArray:
        """Return an array like this one that consists of these tensors."""
        twin = self._copy()
        if len(components) != 1:
            twin._items = list(components)
        elif components[0] is not None:
            twin._rows, twin._items = components[0], []
        return twin

    def of_elements(self, other: TensorArray) -> TensorArray:
        """Return this array with the element shape of another."""
        if not other.element_shape.is_fully_defined():
            raise TracingError(
                "while_loop: the element shape of a TensorArray is unknown: pass "
                "element_shape"
            )
        twin = self._copy()
        twin._shape = other.element_shape
        return twin


def unstacked(value, dtype=None):
    """Return the rows of a tensor."""
    return unstack(convert_to_tensor(value, dtype_hint=dtype))


# ---------------------------------------------------- nests that hold such arrays


def as_tensors(structure, like=None):
    """Convert the leaves of a nest to tensors, numbers to the dtypes of ``like``.

    What consists of tensors, and is none itself, stays.
    """
    leaves = flatten(structure)
    hints = [None] * len(leaves) if like is None else flatten(like)
    found = [
        x
        if is_composite(x)
        else convert_to_tensor(x, dtype_hint=getattr(hint, "dtype", None))
        for x, hint in zip(leaves, hints)
    ]
    return pack(structure, found)


def stop_gradients(structure):
    """Stop gradients of the tensors in a nest; of a `TensorArray` they pass."""
    return map_structure(
        lambda x: x if isinstance(x, TensorArray) else _stopped(x), structure
    )


def _stopped(x):
    return map_structure(stop_gradient, x, expand_composites=True)
