"""`TensorArray`: a list of tensors with one dtype, written one by one."""

from __future__ import annotations

from collections.abc import Iterator
from operator import index as as_int
from typing import Any

from tapewright.core.composite import CompositeTensor
from tapewright.core.dtypes import DType, as_dtype
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    OutOfBoundsError,
    OutOfRangeError,
    ShapeError,
)
from tapewright.core.interpreters import active_tracer
from tapewright.core.messages.source_lines import user_line
from tapewright.core.nest import flatten, map_structure, pack
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import Tensor, convert_to_tensor, is_composite
from tapewright.core.typing import (
    DTypeLike,
    IntLike,
    StaticShapeLike,
    TensorLike,
    as_shape,
)
from tapewright.ops.array.conversion import stop_gradient
from tapewright.ops.array.creation import zeros
from tapewright.ops.array.gather import gather
from tapewright.ops.array.joining import concat, split, stack, unstack
from tapewright.ops.array.scatter import put_row
from tapewright.ops.array.shape import reshape

from ..tracing.graph import spec_of
from ..tracing.tracer import fall_back, inside_function
from .regions import any_traced

_GROWS = (
    "TensorArray.write: in a traced function an array cannot grow at a traced index: pass "
    "its size, without dynamic_size=True"
)
# The line that makes an array -> the shape of the elements that a trace saw written to it;
# None if it saw two. In the eager run after the trace, what is not written has this shape.
_seen: dict[str, TensorShape | None] = {}


class ElementError(OutOfBoundsError, OutOfRangeError):
    """A `TensorArray` has no element at that index."""


class TensorArray(CompositeTensor):
    """List of tensors with the same dtype and shape, to write and read in loops.

    `write` and the other methods that modify the array return the modified array:
    continue with the result. In eager mode it is the same object, in a traced function
    a new one.

    Args:
        dtype: Dtype of the elements.
        size: Number of elements, 0 by default.
        dynamic_size: If True, the array grows when written beyond its size. A traced
            function then runs eagerly, unless the index is known while tracing.
        clear_after_read: If True (the default), `read` removes the element in eager
            mode, and `stack` returns zeros in its place. In functions it may be read
            again, as in a TensorFlow graph.
        tensor_array_name: Ignored.
        handle: Must be None.
        flow: Must be None.
        infer_shape: If False, each element may have a different shape.
        element_shape: Shape of the elements, by default the shape of the first element
            written.
        colocate_with_first_write_call: Ignored.
        name: Ignored.

    Raises:
        ValueError: If ``handle`` or ``flow`` is given.

    Example:
        >>> array = tw.TensorArray("float32", size=2)
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
                "TensorArray: handle and flow must be None, since an array is a "
                f"Python object; got {handle!r} and {flow!r}"
            )
        self._dtype = as_dtype(dtype)
        self._dynamic = bool(dynamic_size)
        self._shape = TensorShape(element_shape)
        self._infers = infer_shape
        self._clears = clear_after_read is None or bool(clear_after_read)
        self._cleared: set[int] = set()  # numbers of elements that were read
        self._items = [None] * as_int(0 if size is None else size)
        self._rows = None  # all elements as one tensor, once the index is traced
        self._line = user_line(always=True) if dynamic_size else None
        self._grows = False  # by an unknown number: the trace falls back at its end

    # --- what it is

    @property
    def dtype(self) -> DType:
        """The `tw.DType` of the elements."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """True if the array grows when written beyond its size."""
        return self._dynamic

    @property
    def element_shape(self) -> TensorShape:
        """The `tw.TensorShape` of the elements, as far as it is known."""
        return self._shape

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of elements as an int32 tensor."""
        if self._grows:  # a loop of Python may go on until it has changed
            fall_back(_GROWS)
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
        """Return the array with ``value`` at ``index``.

        Args:
            index: Integer scalar.
            value: The new element.

        Raises:
            IndexError: If ``index`` is out of range.
            ShapeError: If ``value`` has a different shape than the elements (a
                ValueError).
            DTypeError: If ``value`` has a different dtype (a TypeError).
        """
        value = self._fitting("write", value)
        index = convert_to_tensor(index)
        array = self._open()
        is_known = not any_traced([index])
        if is_known and self._rows is not None and self._dynamic:
            array._set_items(unstack(self._rows))
        if is_known and array._rows is None:
            array._put(int(index), value)
            array._infer(value.shape)
            return array
        if self._dynamic:
            if self._line is not None:
                same = _seen.setdefault(self._line, value.shape) == value.shape
                _seen[self._line] = value.shape if same else None
            fall_back(_GROWS, at_end=True)  # until then other arrays are written
            array._grows = True
            array._infer(value.shape)
            return array
        rows = self._as_rows("write", value)
        array._set_rows(put_row(rows, index, value))
        return array

    def _put(self, index, value):
        if index < 0 or (index >= len(self._items) and not self._dynamic):
            raise ElementError(
                f"TensorArray.write: index must be from 0 to {len(self._items) - 1}, got "
                f"{index}; dynamic_size=True lets it grow"
            )
        self._items += [None] * (index + 1 - len(self._items))
        self._items[index] = value
        self._cleared.discard(index)

    def _set_items(self, items):
        self._rows, self._items, self._cleared = None, items, set()

    def _set_rows(self, rows):
        self._rows, self._items = rows, []
        self._shape = self._shape.merge_with(rows.shape[1:])

    def _infer(self, shape):
        if self._infers:
            self._shape = self._shape.merge_with(shape)

    def _fitting(self, who, value):
        value = convert_to_tensor(value, dtype_hint=self._dtype)
        self._check(who, value, value.shape)
        return value

    def _check(self, who, value, shape):
        """Raise if the elements of a value cannot have this shape or its dtype."""
        if value.dtype != self._dtype:
            raise DTypeError(
                f"TensorArray.{who}", f"the dtype is {self._dtype.name}", value=value
            )
        if not self._shape.is_compatible_with(shape):
            if not self._infers and active_tracer() is not None:
                _refuse_trace(who)
            raise ShapeError(
                f"TensorArray.{who}", f"elements have shape {self._shape}", value=value
            )

    def _open(self):
        """Return the array to write into: itself in eager mode, a copy in a trace."""
        return self if active_tracer() is None else self._copy()

    def _copy(self):
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._items, twin._cleared = list(self._items), set(self._cleared)
        return twin

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """Return the array with the rows of ``value`` as elements.

        Args:
            value: Tensor ``[size, ...]``.
        """
        value = convert_to_tensor(value, dtype_hint=self._dtype)
        if not value.ndim:
            raise ShapeError(
                "TensorArray.unstack", "value must have a first axis", value=value
            )
        if value.shape[0] > self._count() and not self._dynamic:
            raise ShapeError(
                "TensorArray.unstack",
                f"the array has {self._count()} elements",
                value=value,
            )
        self._check("unstack", value, value.shape[1:])
        array = self._open()
        if any_traced([value]):
            array._set_rows(value)
        else:
            array._set_items(unstack(value))
            array._infer(value.shape[1:])
        return array

    def scatter(
        self, indices: TensorLike, value: TensorLike, name: str | None = None
    ) -> TensorArray:
        """Return the array with the rows of ``value`` at ``indices``.

        Args:
            indices: Integer vector ``[n]``.
            value: Tensor ``[n, ...]``.
        """
        array = self
        indices = indices if isinstance(indices, range) else list(unstacked(indices))
        for index, row in zip(indices, unstacked(value, self._dtype), strict=True):
            array = array.write(index, row)
        return array

    def split(
        self, value: TensorLike, lengths: TensorLike, name: str | None = None
    ) -> TensorArray:
        """Return the array with consecutive pieces of ``value`` as elements.

        Args:
            value: Tensor to split along its first axis.
            lengths: Integer vector, the size of each piece.

        Raises:
            ShapeError: If the lengths do not add up to the size of the first axis, or
                if there are too many (a ValueError).
        """
        sizes = as_shape(lengths)
        value = convert_to_tensor(value, dtype_hint=self._dtype)
        if len(sizes) != self._count() and not self._dynamic:
            what = (
                f"lengths must contain the sizes of {self._count()} elements, got "
                f"{list(sizes)}"
            )
            raise ShapeError("TensorArray.split", what, value=value)
        array = self._open()
        array._set_items([self._fitting("split", part) for part in split(value, sizes)])
        size = sizes[0] if len(set(sizes)) == 1 else None
        array._infer((size, *value.shape[1:]))
        return array

    # --- reading

    def read(self, index: IntLike, name: str | None = None) -> Tensor:
        """Return the element at ``index``.

        An element that was never written is zeros, if its shape is known.

        Args:
            index: Integer scalar.

        Raises:
            IndexError: If ``index`` is out of range.
            InvalidArgumentError: If an earlier read has cleared the element.
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
        if number in self._cleared:
            raise InvalidArgumentError(
                f"TensorArray.read: element {number} was cleared by an earlier read; "
                "clear_after_read=False keeps elements"
            )
        element = self._element("read", number)
        if self._clears and active_tracer() is None and not inside_function():
            self._items[number] = None
            self._cleared.add(number)
        return element

    def _element(self, who, number):
        element = self._items[number]
        if element is not None:
            return element
        shape = self._shape_unwritten()
        if not _is_known(shape):
            message = (
                f"TensorArray.{who}: element {number} was never written, and its "
                "shape is unknown: pass element_shape"
            )
            if active_tracer() is not None:  # a step of a loop before may write it
                fall_back(message)
            raise InvalidArgumentError(message)
        return zeros(tuple(shape), self._dtype)

    def _shape_unwritten(self):
        """Return the shape of elements that were not written."""
        if self._shape.rank is None and self._line is not None and inside_function():
            return _seen.get(self._line) or self._shape
        return self._shape

    def stack(self, name: str | None = None) -> Tensor:
        """Return all elements as one tensor ``[size, ...]``; missing elements are zeros.

        Raises:
            ValueError: If an element was never written and its shape is unknown.
        """
        if self._rows is not None:
            return self._rows
        if not self._items:
            shape = self._shape_unwritten()
            return zeros((0, *(shape if _is_known(shape) else ())), self._dtype)
        return self._stacked()

    def _stacked(self):
        """Stack the elements; missing elements are zeros."""
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
        """Return the elements at ``indices``, stacked to one tensor.

        Args:
            indices: Integer vector.
        """
        return gather(self.stack(), indices)

    def concat(self, name: str | None = None) -> Tensor:
        """Return the elements concatenated along their first axis."""
        if self._rows is not None or not self._items:
            rows = self.stack()
            if rows.ndim > 1:
                count, size, *rest = rows.array.shape
                return reshape(rows, (count * size, *rest))
            return concat(unstack(rows), 0)
        return concat([self._element("concat", i) for i in range(len(self._items))], 0)

    def identity(self) -> TensorArray:
        """Return the array itself."""
        return self

    def close(self, name: str | None = None) -> None:
        """Do nothing: memory is freed automatically."""

    def __iter__(self) -> Iterator[Tensor]:
        for number in range(self._count()):
            traced = self._rows is not None
            yield self.read(number) if traced else self._element("iter", number)

    # --- for branches and loops

    def _as_rows(self, who, value=None):
        """Return all elements as one tensor, with the shape of ``value`` if it is given."""
        if self._rows is not None:
            return self._rows
        written = [x for x in [value, *self._items] if x is not None]
        if any([spec_of(x) != spec_of(written[0]) for x in written]):
            _refuse_trace(who)
        if self._dynamic and not self._items:
            fall_back(f"TensorArray.{who}: the array has no elements to read")
        twin = self._copy()
        twin._shape = self._shape.merge_with(written[0].shape if written else None)
        return twin.stack()

    def _tw_static_key(self) -> Any:
        """Return the class, the number of elements, and their required shape and dtype."""
        shape = self._shape.rank, *self._shape
        flags = self._dtype, self._dynamic, self._infers
        return TensorArray, self._count(), shape, flags

    def _tw_is_like(self, other: Any) -> bool:
        """Return whether ``other`` is a `tw.TensorArray` of any size.

        The elements are checked separately.

        Args:
            other: Any object.
        """
        return isinstance(other, TensorArray)

    def _tw_components(self) -> list[Any]:
        """Return the tensors as operands of a node; None for an element of unknown shape."""
        if self._tw_is_blank():
            return [None]
        return list(self._items) if self._is_list() else [self.stack()]

    def _tw_with_components(self, components: Any) -> TensorArray:
        """Return an array like this one with other tensors.

        Args:
            components: The tensors, as `_tw_components` returns them.
        """
        twin = self._copy()
        if self._is_list():
            twin._items = list(components)
        elif components[0] is not None:
            twin._rows, twin._items = components[0], []
        return twin

    def _tw_is_blank(self) -> bool:
        """Return whether nothing is known about the elements: neither values nor a shape."""
        return not self._is_stack() and all([x is None for x in self._items])

    def _is_stack(self):
        return self._rows is not None or _is_known(self._shape)

    def _is_list(self):
        """Return whether the elements may have different shapes."""
        return not self._is_stack() and not self._tw_is_blank()

    def _form(self) -> Any:
        """Return the size and the element shapes, which loops and branches must keep."""
        if self._is_list():
            return [None if x is None else spec_of(x) for x in self._items]
        return self._count(), tuple(self._shape) if self._is_stack() else None

    def _of_elements(self, other: TensorArray) -> TensorArray:
        """Return this array with the element shape of another.

        Args:
            other: The `tw.TensorArray` with the shape.
        """
        twin = self._copy()
        twin._shape = other.element_shape
        return twin


def with_common_elements(who: str, arrays: Any) -> Any:
    """Unify the arrays that branches return: arrays without elements get a shape.

    Objects other than arrays are returned unchanged. The trace ends if sizes or element
    shapes depend on the branch.
    """
    if not all([isinstance(x, TensorArray) for x in arrays]):
        return arrays
    known = [x for x in arrays if not x._tw_is_blank()]
    stacks = [x for x in known if _is_known(x.element_shape)]
    if stacks:
        arrays = [x._of_elements(stacks[0]) if x._tw_is_blank() else x for x in arrays]
    for x in arrays:
        check_form(who, arrays[0], x)
    return arrays


def check_form(who: str, before: TensorArray, after: TensorArray) -> None:
    """End the trace if two arrays differ in size or in the shapes of their elements."""
    if before._form() != after._form():
        fall_back(
            f"{who}: the size of a TensorArray or the shapes of its elements are not "
            f"known before it runs: {before!r} or {after!r}"
        )


def _is_known(shape):
    """Return whether zeros of a shape can be created: in a trace, sizes may be formulas."""
    return shape.rank is not None and not any([d is None for d in shape])


def _refuse_trace(who):
    fall_back(
        f"TensorArray.{who}: in a traced function, elements of different shapes "
        "cannot be accessed by a traced index"
    )


def unstacked(value, dtype=None):
    """Return the rows of a tensor."""
    return unstack(convert_to_tensor(value, dtype_hint=dtype))


# ---------------------------------------------------- nests that hold such arrays


def as_tensors(structure, like=None):
    """Convert the leaves of a nest to tensors, numbers to the dtypes of ``like``.

    Composite objects, which consist of tensors, stay unchanged.
    """
    leaves = flatten(structure)
    hints = [None] * len(leaves) if like is None else flatten(like)
    converted = [
        x
        if is_composite(x)
        else convert_to_tensor(x, dtype_hint=getattr(hint, "dtype", None))
        for x, hint in zip(leaves, hints)
    ]
    return pack(structure, converted)


def stop_gradients(structure):
    """Stop the gradients of the tensors in a nest, except for a `TensorArray`."""
    return map_structure(
        lambda x: x if isinstance(x, TensorArray) else _stopped(x), structure
    )


def _stopped(x):
    return map_structure(stop_gradient, x, expand_composites=True)
