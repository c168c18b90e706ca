"""Shapes as values: tuples of sizes, each an int, or None if it is unknown.

While a function is traced for all sizes, an unknown size is an `UnknownSize`, which
computes like an int and prints as None.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, overload

from .symbolic_dim import DimSymbol, UnknownSize, is_symbolic

if TYPE_CHECKING:
    from ..typing import StaticShapeLike


class TensorShape(tuple[int | Any, ...]):
    """Sizes of the axes of a tensor; ``TensorShape(None)`` if the rank is unknown.

    Unknown sizes are None. A shape compares, hashes, indexes and unpacks like a tuple.

    Args:
        dims: Sequence of sizes, another shape, a single size, or None for an unknown
            rank.

    Raises:
        ValueError: If a size is negative.

    Example:
        >>> tw.TensorShape([7, 10]), str(tw.TensorShape([7, None]))
        (TensorShape([7, 10]), '(7, None)')
        >>> tw.TensorShape([2, 3])[1:]
        TensorShape([3])
    """

    rank: int | None

    def __new__(cls, dims: StaticShapeLike = ()) -> Self:
        if type(dims) is not tuple:  # the usual case: the shape of an array
            if isinstance(dims, TensorShape):
                return dims
            if dims is None:
                shape = tuple.__new__(cls)
                shape.rank = None
                return shape
            if not hasattr(dims, "__iter__"):
                dims = (dims,)
        sizes = [n if type(n) is int and n >= 0 else _dimension(n) for n in dims]
        shape = tuple.__new__(cls, sizes)
        shape.rank = len(sizes)
        return shape

    @property
    def dims(self) -> list[int | None] | None:
        """The sizes as a list, or None if the rank is unknown."""
        return None if self.rank is None else self.as_list()

    @property
    def ndims(self) -> int | None:
        """The rank, or None if it is unknown."""
        return self.rank

    def as_list(self) -> list[int | None]:
        """Return the sizes as a list, with None for unknown sizes.

        Raises:
            ValueError: If the rank is unknown.

        Example:
            >>> tw.TensorShape([None, 3]).as_list()
            [None, 3]
        """
        if self.rank is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape")
        return [None if is_symbolic(d) else d for d in self]

    def num_elements(self) -> int | None:
        """Return the product of the sizes, or None if a size is unknown.

        Example:
            >>> tw.TensorShape([2, 3]).num_elements()
            6
        """
        if not self.is_fully_defined():
            return None
        return math.prod(self)

    def is_fully_defined(self) -> bool:
        """Return whether the rank and all sizes are known."""
        return self.rank is not None and not any(
            [d is None or is_symbolic(d) for d in self]
        )

    def is_compatible_with(self, other: StaticShapeLike) -> bool:
        """Return whether both shapes can describe the same tensor.

        Unknown sizes and an unknown rank are compatible with any.

        Args:
            other: Shape to compare with.

        Example:
            >>> tw.TensorShape([None, 3]).is_compatible_with([2, 3])
            True
        """
        other = TensorShape(other)
        if self.rank is None or other.rank is None:
            return True
        return len(self) == len(other) and all(
            _is_open(a) or _is_open(b) or a == b
            for a, b in zip(self, other, strict=True)
        )

    def assert_is_compatible_with(self, other: StaticShapeLike) -> None:
        """Raise an error unless the shapes are compatible.

        Args:
            other: Shape to compare with.

        Raises:
            ValueError: If `is_compatible_with` returns False.
        """
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible")

    def merge_with(self, other: StaticShapeLike) -> TensorShape:
        """Return the shape with the sizes that are known in either shape.

        Args:
            other: Compatible shape.

        Raises:
            ValueError: If the shapes are incompatible.

        Example:
            >>> tw.TensorShape([1, None]).merge_with([None, 3])
            TensorShape([1, 3])
        """
        other = TensorShape(other)
        self.assert_is_compatible_with(other)
        if self.rank is None or other.rank is None:
            return other if self.rank is None else self
        pairs = zip(self, other, strict=True)
        return TensorShape([b if a is None else a for a, b in pairs])

    def concatenate(self, other: StaticShapeLike) -> TensorShape:
        """Return the sizes of this shape followed by the sizes of another shape.

        Args:
            other: Shape to append.

        Example:
            >>> tw.TensorShape([2]).concatenate([3, None])
            TensorShape([2, 3, None])
        """
        other = TensorShape(other)
        if self.rank is None or other.rank is None:
            return TensorShape(None)
        return TensorShape(tuple(self) + tuple(other))

    def __add__(self, other: StaticShapeLike) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: StaticShapeLike) -> TensorShape:
        return TensorShape(other).concatenate(self)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> int | Any: ...
    @overload
    def __getitem__(self, index: slice, /) -> TensorShape: ...
    def __getitem__(self, index):
        if self.rank is None:
            return TensorShape(None) if isinstance(index, slice) else None
        item = tuple.__getitem__(self, index)
        return TensorShape(item) if isinstance(index, slice) else item

    def __eq__(self, other: object) -> bool:
        if other is None:
            return self.rank is None
        if isinstance(other, TensorShape):
            return self.rank == other.rank and _same_dims(self, other)
        if isinstance(other, (list, tuple)):
            return self.rank is not None and _same_dims(self, other)
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return super().__hash__()

    def __bool__(self) -> bool:
        return self.rank is not None

    def __str__(self) -> str:
        return "<unknown>" if self.rank is None else str(tuple(self.as_list()))

    def __repr__(self) -> str:
        return f"TensorShape({None if self.dims is None else list(self.dims)})"

    def __reduce__(self) -> Any:
        return TensorShape, (self.dims,)


class UnrankedShape(TensorShape):
    """The shape of input ``input`` of a function that is traced for all ranks.

    It equals itself. As with an `UnknownSize`, a comparison with another shape is
    answered for the example shapes and adds a guard; everything else raises
    `NeedsSize`.
    """

    def __new__(cls, input: Any, scope: Any) -> Self:  # noqa: A002  (as in `DimSymbol`)
        shape = tuple.__new__(cls)
        shape.rank = None
        shape.shape_symbol = DimSymbol(input, None)
        shape.scope = scope
        return shape

    @property
    def size(self) -> Any:
        """The number of elements."""
        return UnknownSize.of(self.shape_symbol, self.scope)

    def _needs_rank(self, *args):
        raise self.scope.missing(
            "the rank of a tensor, or one of its dimensions,", True
        )

    __len__ = __iter__ = __getitem__ = __contains__ = concatenate = _needs_rank
    __hash__ = as_list = _needs_rank

    def is_fully_defined(self) -> bool:
        return False

    def num_elements(self) -> int | None:
        return None

    def __eq__(self, other: object) -> bool:
        if other is None:
            return True
        if not isinstance(other, (tuple, list)):
            return NotImplemented
        if isinstance(other, UnrankedShape):
            if other.shape_symbol == self.shape_symbol:
                return True
            return self.scope.same_shape(self.shape_symbol, other.shape_symbol)
        return self.scope.same_shape(self.shape_symbol, tuple(other))

    def __reduce__(self) -> Any:
        return TensorShape, (None,)


def _is_open(dim):
    """Return whether a dimension may be any number: None, or from a finished trace."""
    return dim is None or (is_symbolic(dim) and dim.scope.closed)


def _same_dims(shape, other):
    """Compare the ranks first, since comparing unknown sizes would add guards."""
    return len(shape) == len(other) and tuple(shape) == tuple(other)


def _dimension(value):
    if value is None:
        return None
    if type(value) is UnknownSize:
        return value.as_dimension()
    try:
        number = value.__index__()
    except AttributeError:
        raise TypeError(
            f"TensorShape: dimensions must be integers, or None, got {value!r}"
        ) from None
    if number < 0:
        raise ValueError(
            f"TensorShape: dimensions must be 0 or more, or None, got {number}"
        )
    return number
