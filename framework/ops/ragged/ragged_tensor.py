"""`RaggedTensor`: rows of different lengths, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tapewright.core import devices, dtypes
from tapewright.core.composite import CompositeSpec, CompositeTensor
from tapewright.core.dtypes import DType, as_dtype
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    MappingError,
    ShapeError,
)
from tapewright.core.operators import Operators
from tapewright.core.primitive import primitive
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.tensor_shape import TensorShape
from tapewright.core.typing import DTypeLike, IntLike, StaticShapeLike, TensorLike

from ..array.conversion import cast
from ..array.creation import range as arange
from ..array.gather import boolean_mask, gather
from ..array.joining import concat, stack
from ..array.segment import known_values
from ..array.shape import broadcast_to, reshape
from ..array.sorting import searchsorted
from ..math.comparison import less, not_equal, where
from ..math.reduction import reduce_any, reduce_max
from ..math.scan import cumsum
from ..sparse.sparse_tensor import SparseTensor
from ..strings.packing import (
    pack_rows,
    packed_lengths,
    packed_to_matrix,
    packed_values,
    unpack,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OP_RULES", "RaggedTensor", "RaggedTensorSpec", "from_packed", "same_splits"]

# op -> rule(inputs, attributes) for ops that are not entry by entry; see `rules.py`.
OP_RULES: dict[Any, Any] = {}


class RaggedTensor(CompositeTensor, Operators):
    """Rows of different lengths: `values`, one behind the other, cut at `row_splits`.

    The second axis is ragged; where `values` are themselves ragged, several are. The
    ``from_`` functions and `tw.ragged.constant` make one. Operators and ops that work
    entry by entry take it with numbers, with tensors ``[rows, 1, ...]``, and with ragged
    tensors of the same rows. Traced functions, `cond`, `while_loop` and data sets take
    and return it. Gradients pass through the values.

    In a traced function the number of values must be known. Rows of strings that
    `tw.strings.split` makes there are kept packed, so that all but their `values` can be
    used.

    >>> rows = RaggedTensor.from_row_lengths([1.0, 2.0, 3.0], [2, 0, 1])
    >>> rows
    <tf.RaggedTensor [[1.0, 2.0], [], [3.0]]>
    >>> (rows * 2.0).to_tensor(default_value=-1.0).numpy()
    array([[ 2.,  4.],
           [-1., -1.],
           [ 6., -1.]], dtype=float32)
    """

    __slots__ = ("_values", "_splits", "_packed", "__weakref__")

    def __init__(self, values: Any, row_partition: Any = None, internal: bool = False):
        raise ValueError(
            "RaggedTensor: use a function such as RaggedTensor.from_row_splits, or "
            "tw.ragged.constant"
        )

    @classmethod
    def _of(cls, values, splits, packed=None):
        """Parts that are known to fit, without checks."""
        ragged = object.__new__(cls)
        ragged._values, ragged._splits, ragged._packed = values, splits, packed
        return ragged

    # --- making

    @classmethod
    def from_row_splits(
        cls,
        values: Any,
        row_splits: TensorLike,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows ``values[row_splits[i] : row_splits[i + 1]]``.

        Shapes: ``values`` ``[n, ...]``, or ragged; ``row_splits`` ``[rows + 1]``, from 0
        to n.

        Raises: ``InvalidArgumentError`` for splits that decrease, or do not go from 0 to
        n; ``validate=False`` leaves them unchecked.

        >>> RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 2, 3])
        <tf.RaggedTensor [[1, 2], [], [3]]>
        """
        values = _as_values(values)
        splits = _numbers("from_row_splits", "row_splits", row_splits)
        if not splits.shape[0]:
            raise InvalidArgumentError("from_row_splits: row_splits must not be empty")
        if validate:
            splits = _checked_splits(splits, _count_of(values))
        return cls._of(values, splits)

    @classmethod
    def from_row_lengths(
        cls,
        values: Any,
        row_lengths: TensorLike,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows of these lengths, which sum up to the number of ``values``.

        >>> RaggedTensor.from_row_lengths(["a", "b"], [0, 2]).to_list()
        [[], [b'a', b'b']]
        """
        lengths = _numbers("from_row_lengths", "row_lengths", row_lengths)
        return cls.from_row_splits(values, _splits_of(lengths), validate=validate)

    @classmethod
    def from_value_rowids(
        cls,
        values: Any,
        value_rowids: TensorLike,
        nrows: IntLike | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows by the number of the row of each value; these must not decrease.

        Args: ``nrows``: the number of rows, by default that of the last value, and one,
        which traced functions do not know.

        >>> RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2])
        <tf.RaggedTensor [[1, 2], [], [3]]>
        """
        who = "from_value_rowids"
        values, ids = _as_values(values), _numbers(who, "value_rowids", value_rowids)
        if not _agree(ids.shape[0], _count_of(values)):
            raise ShapeError(who, "each value must have a row", value_rowids=ids)
        if nrows is None:
            array = known_values(who, "value_rowids", ids)
            nrows = int(array[-1]) + 1 if array.size else 0
        ids = _checked_rowids(ids, int(nrows)) if validate else ids
        # A split before each row: the number of values in rows before it.
        rows = arange(int(nrows) + 1, dtype=dtypes.int64)
        return cls._of(values, searchsorted(ids, rows, out_type=dtypes.int64))

    @classmethod
    def from_row_starts(
        cls,
        values: Any,
        row_starts: TensorLike,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows by the number of the first value of each."""
        values = _as_values(values)
        starts = _numbers("from_row_starts", "row_starts", row_starts)
        end = convert_to_tensor([_count_of(values)], dtype=dtypes.int64)
        return cls.from_row_splits(values, concat([starts, end], 0), validate=validate)

    @classmethod
    def from_row_limits(
        cls,
        values: Any,
        row_limits: TensorLike,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows by the number of the value behind each."""
        limits = _numbers("from_row_limits", "row_limits", row_limits)
        splits = concat([convert_to_tensor([0], dtype=dtypes.int64), limits], 0)
        return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_uniform_row_length(
        cls,
        values: Any,
        uniform_row_length: IntLike,
        nrows: IntLike | None = None,
        validate: bool = True,
        name: str | None = None,
    ) -> RaggedTensor:
        """Rows of one length; ``nrows`` is needed for length 0."""
        values, length = _as_values(values), int(uniform_row_length)
        if nrows is None:
            if length <= 0:
                raise InvalidArgumentError(
                    "from_uniform_row_length: uniform_row_length must be above 0 if nrows "
                    f"is not given, got {length}"
                )
            nrows = _count_of(values) // length
        splits = arange(int(nrows) + 1, dtype=dtypes.int64) * length
        return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_nested_row_splits(
        cls,
        flat_values: TensorLike,
        nested_row_splits: Sequence[TensorLike],
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows of rows, by the splits of each ragged axis, the outer one first.

        >>> RaggedTensor.from_nested_row_splits([1, 2, 3], [[0, 1, 3], [0, 2, 2, 3]])
        <tf.RaggedTensor [[[1, 2]], [[], [3]]]>
        """
        return _nested(cls.from_row_splits, flat_values, nested_row_splits, validate)

    @classmethod
    def from_nested_row_lengths(
        cls,
        flat_values: TensorLike,
        nested_row_lengths: Sequence[TensorLike],
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows of rows, by the lengths along each ragged axis, the outer one first."""
        return _nested(cls.from_row_lengths, flat_values, nested_row_lengths, validate)

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: TensorLike,
        nested_value_rowids: Sequence[TensorLike],
        nested_nrows: Sequence[IntLike] | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows of rows, by `from_value_rowids` for each ragged axis, the outer one first."""
        counts = nested_nrows or [None] * len(nested_value_rowids)
        pairs = list(zip(nested_value_rowids, counts, strict=True))

        def make(values, pair, validate):
            return cls.from_value_rowids(values, *pair, validate=validate)

        return _nested(make, flat_values, pairs, validate)

    @classmethod
    def from_tensor(
        cls,
        tensor: TensorLike,
        lengths: TensorLike | None = None,
        padding: TensorLike | None = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: DTypeLike = dtypes.int64,
    ) -> RaggedTensor:
        """The rows of ``tensor [rows, width, ...]``, without what fills them up.

        Args: ``lengths``: how many entries of each row count; ``padding``: a value, at
        the end of rows, that does not. In traced functions rows are taken as a whole.

        Raises: ``ValueError`` for both, or ``ragged_rank`` other than 1.

        >>> RaggedTensor.from_tensor([[1, 2], [3, 0]], padding=0)
        <tf.RaggedTensor [[1, 2], [3]]>
        """
        who, tensor = "from_tensor", convert_to_tensor(tensor)
        if ragged_rank != 1:
            raise ValueError(f"{who}: ragged_rank must be 1, got {ragged_rank}")
        if lengths is not None and padding is not None:
            raise ValueError(f"{who}: give lengths or padding, not both")
        if tensor.shape.rank is None or tensor.shape.rank < 2:
            raise ShapeError(who, "tensor must have two axes or more", tensor=tensor)
        rows, width, *inner = tensor.shape
        if lengths is None and padding is None:
            values = reshape(tensor, (rows * width, *inner))
            splits = arange(rows + 1, dtype=dtypes.int64) * width
            return cls._of(values, cast(splits, row_splits_dtype))
        steps = arange(width, dtype=dtypes.int64)
        if padding is not None:
            padding = convert_to_tensor(padding, dtype_hint=tensor.dtype)
            counts = not_equal(tensor, padding)
            if inner:
                counts = reduce_any(counts, tuple(range(2, tensor.shape.rank)))
            ends = where(counts, steps + 1, cast(0, dtypes.int64))
            lengths = (
                reduce_max(ends, 1)
                if width
                else reduce_max(
                    concat([ends, cast(np.zeros((rows, 1)), dtypes.int64)], 1), 1
                )
            )
        lengths = _numbers(who, "lengths", lengths)
        lengths = where(less(lengths, width), lengths, cast(width, dtypes.int64))
        lengths = where(less(lengths, 0), cast(0, dtypes.int64), lengths)
        kept = less(steps, reshape(lengths, (rows, 1)))
        values = boolean_mask(tensor, broadcast_to(kept, (rows, width)))
        return cls._of(values, cast(_splits_of(lengths), row_splits_dtype))

    @classmethod
    def from_sparse(
        cls,
        st_input: SparseTensor,
        name: str | None = None,
        row_splits_dtype: DTypeLike = dtypes.int64,
    ) -> RaggedTensor:
        """The rows of a sparse matrix whose entries are the first of each row, in order.

        Raises: ``InvalidArgumentError`` if an entry is missing before another.
        """
        who = "from_sparse"
        if not isinstance(st_input, SparseTensor):
            raise TypeError(f"{who}: st_input must be a SparseTensor, got {st_input!r}")
        if st_input.shape.rank != 2 or st_input.shape[0] is None:
            raise ShapeError(who, f"st_input must be a matrix, got {st_input.shape}")
        indices = st_input.indices
        ragged = cls.from_value_rowids(
            st_input.values, indices[:, 0], st_input.shape[0]
        )
        _check_equal(ragged._positions(), indices[:, 1], f"{who}: SparseTensor is not "
                     "right-ragged: an entry is missing before another")  # fmt: skip
        return ragged.with_row_splits_dtype(row_splits_dtype)

    # --- what it is

    @property
    def dtype(self) -> DType:
        """The `DType` of the values."""
        return dtypes.string if self._values is None else self._values.dtype

    @property
    def shape(self) -> TensorShape:
        """``(rows, None, ...)``."""
        if self._packed is not None:
            return TensorShape([*self._packed.shape, None])
        rows = self._splits.shape[0]
        rows = None if rows is None else rows - 1
        return TensorShape([rows, None, *self._values.shape[1:]])

    def get_shape(self) -> TensorShape:
        """``shape``, under TensorFlow's older name."""
        return self.shape

    @property
    def ragged_rank(self) -> int:
        """The number of ragged axes."""
        inner = self._values
        return 1 + (inner.ragged_rank if isinstance(inner, RaggedTensor) else 0)

    @property
    def uniform_row_length(self) -> None:
        """None: no length is the same for all rows by itself."""
        return None

    @property
    def values(self) -> Any:
        """The entries of all rows, one behind the other: ``[n, ...]``, or ragged.

        Of rows that are kept packed, not in traced functions.
        """
        return self._unpacked()._values

    @property
    def flat_values(self) -> Tensor:
        """The `values` within all ragged axes: a tensor."""
        values = self.values
        return values.flat_values if isinstance(values, RaggedTensor) else values

    @property
    def row_splits(self) -> Tensor:
        """The begin of each row in `values`, then the end of the last one: int64."""
        if self._packed is not None:
            return _splits_of(packed_lengths(self._packed))
        return self._splits

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The splits of each ragged axis, the outer one first."""
        inner = self._values
        more = inner.nested_row_splits if isinstance(inner, RaggedTensor) else ()
        return (self.row_splits, *more)

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The length of each row: ``[rows]``; along a further ragged axis, ragged."""
        if axis != 1:
            if 1 < axis <= self.ragged_rank:
                return self.with_values(self.values.row_lengths(axis - 1))
            raise ValueError(f"row_lengths: axis must be a ragged one, got {axis}")
        if self._packed is not None:
            return packed_lengths(self._packed)
        return self._splits[1:] - self._splits[:-1]

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The lengths along each ragged axis, the outer one first."""
        return tuple([splits[1:] - splits[:-1] for splits in self.nested_row_splits])

    def row_starts(self, name: str | None = None) -> Tensor:
        """The number of the first value of each row."""
        return self.row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """The number of the value behind each row."""
        return self.row_splits[1:]

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The row of each value: ``[n]``."""
        count = _count_of(self.values)
        numbers = arange(count, dtype=self._splits.dtype if self._splits is not None
                         else dtypes.int64)  # fmt: skip
        limits = self.row_limits()
        return searchsorted(limits, numbers, side="right", out_type=limits.dtype)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """`value_rowids` of each ragged axis, the outer one first."""
        values = self.values
        more = values.nested_value_rowids() if isinstance(values, RaggedTensor) else ()
        return (self.value_rowids(), *more)

    @property
    def row_count(self) -> Any:
        """The number of rows: an int, or a formula of sizes in a trace."""
        if self._packed is not None:
            return self._packed.shape[0]
        return self._splits.shape[0] - 1

    def nrows(
        self, out_type: DTypeLike | None = None, name: str | None = None
    ) -> Tensor:
        """The number of rows, int64 or ``out_type``."""
        return convert_to_tensor(self.row_count, dtype=out_type or dtypes.int64)

    def bounding_shape(
        self,
        axis: Any = None,
        name: str | None = None,
        out_type: DTypeLike | None = None,
    ) -> Tensor:
        """The shape of `to_tensor`: the number of rows, the longest row, the inner sizes.

        Not in traced functions. ``axis``: the size of one axis, or of several.
        """
        sizes = convert_to_tensor(self._bounds(), dtype=out_type or dtypes.int64)
        return sizes if axis is None else gather(sizes, axis)

    def _bounds(self):
        lengths = known_values("bounding_shape", "row lengths", self.row_lengths())
        longest, values = int(lengths.max()) if lengths.size else 0, self.values
        if isinstance(values, RaggedTensor):
            return [len(lengths), longest, *values._bounds()[1:]]
        return [len(lengths), longest, *values.shape[1:]]

    def _positions(self):
        """The number of each value in its row."""
        rows = self.value_rowids()
        return arange(_count_of(self._values), dtype=rows.dtype) - gather(
            self.row_starts(), rows
        )

    # --- other values

    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows of other values, of the same number.

        Raises: ``ShapeError`` for another number.
        """
        me, new_values = self._unpacked(), _as_values(new_values)
        if not _agree(_count_of(me._values), _count_of(new_values)):
            raise ShapeError(
                "with_values", f"there must be {_count_of(me._values)} values, got "
                f"{_count_of(new_values)}"
            )  # fmt: skip
        return self._of(new_values, me._splits)

    def with_flat_values(self, new_values: TensorLike) -> RaggedTensor:
        """The same rows of other `flat_values`, of the same number."""
        inner = self.values
        if isinstance(inner, RaggedTensor):
            return self.with_values(inner.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: DTypeLike) -> RaggedTensor:
        """The same with `row_splits` of int32 or int64."""
        if as_dtype(dtype) not in (dtypes.int32, dtypes.int64):
            raise ValueError(
                f"with_row_splits_dtype: dtype must be int32 or int64, got {dtype}"
            )
        me = self._unpacked() if as_dtype(dtype) != dtypes.int64 else self
        if me._packed is not None:
            return me
        inner = me._values
        if isinstance(inner, RaggedTensor):
            inner = inner.with_row_splits_dtype(dtype)
        return self._of(inner, cast(me._splits, dtype))

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """The rows of the axes from ``outer_axis`` to ``inner_axis`` as one axis.

        Raises: ``ValueError`` for axes other than ragged ones that follow each other.

        >>> RaggedTensor.from_row_lengths([1, 2, 3], [2, 1]).merge_dims(0, 1).numpy()
        array([1, 2, 3], dtype=int32)
        """
        rank = self.shape.rank
        first, last = [a + rank if a < 0 else a for a in (outer_axis, inner_axis)]
        if not 0 <= first < last <= self.ragged_rank:
            raise ValueError(
                "merge_dims: axes must increase, and be from 0 to the last ragged one, "
                f"{self.ragged_rank}; got {outer_axis} and {inner_axis}"
            )
        me = self._unpacked()
        if first > 1:
            return me.with_values(me._values.merge_dims(first - 1, last - 1))
        merged, splits = me._values, me._splits
        for _ in range(last - 1):
            splits, merged = gather(merged._splits, splits), merged._values
        return merged if first == 0 else self._of(merged, splits)

    # --- as other tensors

    def to_tensor(
        self,
        default_value: TensorLike | None = None,
        name: str | None = None,
        shape: Sequence[int | None] | None = None,
    ) -> Tensor:
        """The rows in a tensor, filled up with ``default_value``: 0, or "".

        Args: ``shape``: sizes to which rows are filled up or cut, with None for those
        of `bounding_shape`. A traced function does not know the longest row, and needs
        the sizes of ragged axes.

        >>> rows = RaggedTensor.from_row_lengths([1, 2, 3], [2, 1])
        >>> rows.to_tensor(shape=(None, 3)).numpy()
        array([[1, 2, 0],
               [3, 0, 0]], dtype=int32)
        """
        sizes = _wanted_sizes(shape, self.shape.rank)
        text = self.dtype == dtypes.string
        default = ("" if text else 0) if default_value is None else default_value
        default = convert_to_tensor(default, dtype_hint=self.dtype)
        if default.dtype != self.dtype:
            raise DTypeError(
                "to_tensor", f"default_value must be {self.dtype.name}", default=default
            )
        if self._packed is not None and sizes[0] is None:
            width = -1 if sizes[1] is None else sizes[1]
            return packed_to_matrix(self._packed, default, width)
        me, inner = self._unpacked(), self._unpacked()._values
        if isinstance(inner, RaggedTensor):
            inner = inner.to_tensor(default, shape=[None, *sizes[2:]])
        lengths, starts = me.row_lengths(), me.row_starts()
        width = sizes[1]
        if width is None:
            array = known_values(
                "to_tensor (give it shape=(None, width))", "row lengths", lengths
            )
            width = int(array.max()) if array.size else 0
        rows = lengths.shape[0]
        if sizes[0] is not None and sizes[0] != rows:
            lengths, starts = [_resized(x, sizes[0]) for x in (lengths, starts)]
            rows = sizes[0]
        steps = arange(width, dtype=starts.dtype)
        inside = less(steps, reshape(lengths, (rows, 1)))
        # What fills up is one more value, behind all others.
        behind = convert_to_tensor(_count_of(inner), dtype=starts.dtype)
        picks = where(inside, reshape(starts, (rows, 1)) + steps, behind)
        filling = broadcast_to(default, (1, *inner.shape[1:]))
        dense = gather(concat([inner, filling], 0), picks)
        for axis, wanted in enumerate(sizes[2:], 2):
            if wanted is not None and dense.shape[axis] != wanted:
                raise ShapeError(
                    "to_tensor", f"shape must have size {dense.shape[axis]} along axis "
                    f"{axis}, got {wanted}"
                )  # fmt: skip
        return dense

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """The entries as a `SparseTensor` of the shape `bounding_shape`.

        Not in traced functions.

        >>> RaggedTensor.from_row_lengths([7, 8], [0, 2]).to_sparse().indices.numpy()
        array([[1, 0],
               [1, 1]])
        """
        values = self.values
        if isinstance(values, RaggedTensor) or values.shape.rank != 1:
            raise ShapeError(
                "to_sparse", f"there must be one ragged axis, and no other; got "
                f"{self.shape}"
            )  # fmt: skip
        me = self._unpacked()
        indices = stack([me.value_rowids(), me._positions()], axis=1)
        return SparseTensor(indices, values, self._bounds())

    def to_list(self) -> list[Any]:
        """The rows as lists, of Python's numbers."""
        if self._packed is not None:
            return [unpack(row) for row in self._packed.numpy().tolist()]
        splits, inner = self._splits.numpy().tolist(), self._values
        flat = (
            inner.to_list()
            if isinstance(inner, RaggedTensor)
            else inner.numpy().tolist()
        )
        return [flat[a:b] for a, b in zip(splits, splits[1:])]

    def numpy(self) -> Any:
        """The rows as an array of objects; where all are of one length, as one array."""
        rows = [x.numpy() for x in self]
        if not rows:
            return np.zeros((0, 0), self.dtype.as_numpy_dtype)
        if len({row.shape for row in rows}) == 1 and rows[0].dtype != object:
            return np.stack(rows)
        array = np.empty(len(rows), object)
        array[:] = rows
        return array

    # --- parts

    def __len__(self) -> int:
        if self._packed is not None:
            return len(self._packed)
        return len(self._splits) - 1

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> NoReturn:
        raise TypeError("RaggedTensor may not be used as a boolean")

    def __getitem__(self, key: Any) -> Any:
        """A row, rows, or a part of each row: ``r[i]``, ``r[a:b]``, ``r[:, a:b]``, ``r[i, j]``.

        Raises: ``ValueError`` for one entry of each row, which not all have;
        ``IndexError`` for a row out of range.
        """
        key = key if isinstance(key, tuple) else (key,)
        key = tuple([k for k in key if k is not Ellipsis]) or (slice(None),)
        if any([k is None for k in key]):
            raise ValueError("RaggedTensor: a new axis is not supported")
        first, *rest = key
        if not isinstance(first, slice):
            row = self._row(first)
            return row[tuple(rest)] if rest else row
        rows = self if first == slice(None) else self._rows(first)
        if not rest:
            return rows
        part, *inner = rest
        if not isinstance(part, slice):
            raise ValueError(
                "RaggedTensor: cannot index into an inner ragged dimension"
            )
        rows = rows if part == slice(None) else rows._part_of_rows(part)
        if inner:
            return rows.with_values(rows.values[(slice(None), *inner)])
        return rows

    def _row(self, number):
        number = convert_to_tensor(number)
        if self._packed is not None:
            return packed_values(self._packed[number])
        at = int(known_values("RaggedTensor[row]", "the number of a row", number))
        count = len(self)
        if not -count <= at < count:
            raise IndexError(f"RaggedTensor: row {at} is out of range, of {count} rows")
        at %= count
        splits = known_values("RaggedTensor[row]", "row_splits", self._splits)
        return self._values[int(splits[at]) : int(splits[at + 1])]

    def _rows(self, part):
        if self._packed is not None:
            return self._of(None, None, self._packed[part])
        return self.rows_at(np.arange(len(self))[part])

    def rows_at(self, numbers: Any) -> RaggedTensor:
        """The rows of these numbers, an array of NumPy. Not in traced functions."""
        splits = devices.to_numpy(
            known_values("RaggedTensor: rows", "row_splits", self._splits)
        )
        lengths = splits[1:] - splits[:-1]
        return self._picked(splits[:-1][numbers], lengths[numbers])

    def _part_of_rows(self, part):
        me = self._unpacked()
        splits = devices.to_numpy(
            known_values("RaggedTensor[:, part]", "row_splits", me._splits)
        )
        found = [range(a, b)[part] for a, b in zip(splits[:-1], splits[1:])]
        starts = np.array([r.start for r in found], np.int64)
        lengths = np.array([len(r) for r in found], np.int64)
        return me._picked(starts, lengths, part.step or 1)

    def _picked(self, starts, lengths, step=1):
        """Rows that begin at these values, of these lengths."""
        ends = np.cumsum(lengths)
        inside = np.arange(ends[-1] if len(ends) else 0) - np.repeat(
            ends - lengths, lengths
        )
        picks = np.repeat(starts, lengths) + step * inside
        splits = np.concatenate([[0], ends]).astype(self._splits.array.dtype)
        xp = module_of(self._splits)
        values, picks = self._values, picks.astype(np.int64)
        if isinstance(values, RaggedTensor):
            values = values.rows_at(picks)
        else:
            values = gather(values, new_tensor(xp.asarray(picks)))
        return self._of(values, new_tensor(xp.asarray(splits)))

    # --- as a structure

    def components(self) -> list[Any]:
        """The flat values and the splits of each ragged axis; or the packed rows."""
        if self._packed is not None:
            return [self._packed]
        inner, splits = self._values, [self._splits]
        while isinstance(inner, RaggedTensor):
            splits.append(inner._splits)
            inner = inner._values
        return [inner, *splits]

    def with_components(self, components: Sequence[Any]) -> RaggedTensor:
        """One of these tensors."""
        if len(components) == 1:
            return self._of(None, None, components[0])
        values, *splits = components
        for each in reversed(splits):
            values = self._of(values, each)
        return values

    def static_key(self) -> Any:
        """The class, the number of ragged axes, and whether rows are packed."""
        return RaggedTensor, len(self.components())

    def gradient_part(self) -> Tensor:
        """The flat values."""
        return self.flat_values

    def with_gradient(self, gradient: TensorLike) -> RaggedTensor:
        """The gradient by the flat values, in their rows."""
        return self.with_flat_values(convert_to_tensor(gradient))

    # --- as an element of a data set

    def spec(self) -> RaggedTensorSpec:
        """The `RaggedTensorSpec`."""
        return RaggedTensorSpec.from_value(self)

    def unstacked(self) -> list[Any]:
        """The rows."""
        return list(self)

    def stacked(self, rows: Sequence[RaggedTensor]) -> RaggedTensor:
        """Ragged tensors along a new first axis: one more ragged axis."""
        lengths = np.array([x.row_count for x in rows], np.int64)
        return RaggedTensor.from_row_lengths(concat(list(rows), 0), lengths)

    def _unpacked(self):
        if self._packed is None:
            return self
        return self._of(packed_values(self._packed), self.row_splits)

    @property
    def packed(self) -> Tensor:
        """Rows of strings, packed: one string for each. See `tw.strings`."""
        if self._packed is not None:
            return self._packed
        if isinstance(self._values, RaggedTensor) or self.dtype != dtypes.string:
            raise TypeError(
                f"there must be one ragged axis, of strings; got {self.dtype.name} "
                f"{self.shape}"
            )
        return pack_rows(self._values, self.row_lengths())

    # --- ops

    def apply_op(self, op: Any, inputs: Sequence[Any], attributes: Any) -> Any:
        """An op entry by entry, of the flat values; for others, see `rules.py`.

        Raises: ``TypeError`` for an op without a rule for ragged tensors; ``ValueError``
        if the rows of two differ, or a tensor does not broadcast.
        """
        rule = OP_RULES.get(op)
        if rule is not None:
            return rule(op, inputs, attributes)
        if not op.elementwise:
            raise TypeError(
                f"{op.name}: the op takes no RaggedTensor; tw.ragged.map_flat_values "
                "applies an op to its values, and to_tensor makes it dense"
            )
        like = next(x for x in inputs if isinstance(x, RaggedTensor))._unpacked()
        others = [x for x in inputs if isinstance(x, RaggedTensor)]
        for x in others[1:]:
            like = same_splits(op.name, like, x)
        flat = [like._flat_of(op.name, x) for x in inputs]
        return like.with_flat_values(op.general(flat, attributes))

    def _flat_of(self, who, x):
        """An input as flat values, or as what broadcasts to them."""
        if isinstance(x, RaggedTensor):
            return x.flat_values
        if isinstance(x, CompositeTensor):
            raise TypeError(
                f"{who}: a RaggedTensor and a {type(x).__name__} do not mix"
            )
        rank = np.ndim(x) if not hasattr(x, "shape") else len(x.shape)
        own, depth = self.shape.rank, self.ragged_rank
        if rank <= own - depth - 1:
            return x  # a number, or along the axes behind the ragged ones
        x = convert_to_tensor(x, dtype_hint=self.dtype)
        sizes = [1] * (own - rank) + list(x.shape)
        outer = sizes[: depth + 1]
        rows = self.row_count
        if depth > 1 and any([n != 1 for n in outer]) or (
            depth == 1 and (sizes[1] != 1 or sizes[0] not in (1, rows))
        ):  # fmt: skip
            raise InvalidArgumentError(
                f"{who}: a tensor of shape {x.shape} does not broadcast to the rows of a "
                f"RaggedTensor of shape {self.shape}: its size must be 1 along ragged axes"
            )
        if outer[0] == 1:
            return reshape(x, sizes[depth + 1 :])
        return gather(reshape(x, [rows, *sizes[2:]]), self.value_rowids())

    def __repr__(self) -> str:
        parts = self.components()
        if all([type(x) is Tensor and devices.is_array(x.array) for x in parts]):
            return f"<tf.RaggedTensor {_text(self)}>"
        if self._packed is not None:
            return f"tf.RaggedTensor(packed={self._packed})"
        return f"tf.RaggedTensor(values={self._values}, row_splits={self._splits})"


class RaggedTensorSpec(CompositeSpec):
    """The shape, dtype and ragged axes of a `RaggedTensor`.

    Args: ``shape``: with None for ragged axes and unknown sizes; ``ragged_rank``: the
    number of ragged axes, by default all but the first. 0 stands for a tensor whose first
    size is unknown: a row of a ragged tensor.

    Raises: ``ValueError`` if neither a rank nor ``ragged_rank`` is given.

    >>> RaggedTensorSpec([None, None], "int32")
    RaggedTensorSpec(TensorShape([None, None]), tf.int32, 1, tf.int64)
    """

    __slots__ = ("shape", "dtype", "ragged_rank", "row_splits_dtype")

    def __init__(
        self,
        shape: StaticShapeLike = None,
        dtype: DTypeLike = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: DTypeLike = dtypes.int64,
        flat_values_spec: Any = None,
    ):
        if flat_values_spec is not None:
            raise ValueError("RaggedTensorSpec: flat_values_spec must be None")
        self.shape = TensorShape(shape)
        self.dtype, self.row_splits_dtype = as_dtype(dtype), as_dtype(row_splits_dtype)
        rank = self.shape.rank
        if rank is None and ragged_rank is None:
            raise ValueError("Must specify ragged_rank or a shape with a known rank.")
        self.ragged_rank: int = rank - 1 if ragged_rank is None else int(ragged_rank)
        if rank is not None and not 0 <= self.ragged_rank < max(rank, 1):
            raise ValueError(
                f"RaggedTensorSpec: ragged_rank must be from 0 to {rank - 1}, got "
                f"{ragged_rank}"
            )

    @property
    def value_type(self) -> type[Any]:
        """`RaggedTensor`, or `Tensor` without a ragged axis."""
        return RaggedTensor if self.ragged_rank else Tensor

    @classmethod
    def from_value(cls, value: RaggedTensor) -> RaggedTensorSpec:
        """The spec of a ragged tensor."""
        splits = value.row_splits.dtype
        return cls(value.shape, value.dtype, value.ragged_rank, splits)

    def components(self) -> list[Any]:
        """The specs of the flat values, and of the splits of each ragged axis."""
        if self.shape.rank is None or not self.ragged_rank:
            raise ValueError(
                "RaggedTensorSpec: a traced function needs a shape of known rank, and a "
                f"ragged axis; got {self}"
            )
        depth, rows = self.ragged_rank, self.shape[0]
        rows = None if rows is None else rows + 1
        splits = [TensorSpec([rows if i == 0 else None], self.row_splits_dtype)
                  for i in range(depth)]  # fmt: skip
        return [TensorSpec([None, *self.shape[depth + 1 :]], self.dtype), *splits]

    def with_components(self, components: Sequence[Any]) -> RaggedTensor:
        """A ragged tensor of these tensors."""
        return RaggedTensor._of(None, None).with_components(components)

    def static_key(self) -> Any:
        """The key of a ragged tensor of so many ragged axes."""
        return RaggedTensor, self.ragged_rank + 1

    def is_compatible_with(self, value: Any) -> bool:
        """Return whether a value or spec has this dtype, and fits shape and ragged axes."""
        if isinstance(value, (Tensor, TensorSpec)):
            depth = 0
        elif isinstance(value, (RaggedTensor, RaggedTensorSpec)):
            depth = value.ragged_rank
        else:
            return False
        same = self.dtype == value.dtype and depth == self.ragged_rank
        return same and self.shape.is_compatible_with(value.shape)

    def batched(self, count: int | None) -> RaggedTensorSpec:
        """The spec of a batch of ``count``."""
        shape, more = [count, *self.shape], self.ragged_rank + 1
        return RaggedTensorSpec(shape, self.dtype, more, self.row_splits_dtype)

    def stack_rows(self, rows: Sequence[Any]) -> RaggedTensor:
        """Rows of this spec along a new first axis: ragged tensors, or tensors."""
        if self.ragged_rank:
            return rows[0].stacked(rows)
        lengths = np.array([x.shape[0] for x in rows], np.int64)
        values = concat(list(rows), 0)
        return RaggedTensor.from_row_lengths(
            values, cast(lengths, self.row_splits_dtype)
        )

    def of_a_row(self) -> Any:
        """The spec of the rows: one ragged axis less."""
        shape = self.shape[1:]
        if self.ragged_rank < 1:
            return TensorSpec(shape, self.dtype)
        less = self.ragged_rank - 1
        return RaggedTensorSpec(shape, self.dtype, less, self.row_splits_dtype)

    def fitted(self, value: Any) -> Any:
        """The same rows, not packed, with splits of the dtype of this spec."""
        if not isinstance(value, RaggedTensor):
            return value
        return value._unpacked().with_row_splits_dtype(self.row_splits_dtype)

    def _key(self):
        rank = self.shape.rank
        return rank, *self.shape, self.dtype, self.ragged_rank, self.row_splits_dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedTensorSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"RaggedTensorSpec({self.shape!r}, {self.dtype!r}, {self.ragged_rank}, "
            f"{self.row_splits_dtype!r})"
        )


def from_packed(packed: Tensor) -> RaggedTensor:
    """A ragged tensor of packed rows of strings."""
    return RaggedTensor._of(None, None, packed)


# -------------------------------------------------------------------------- splits


@primitive(may_raise=True, no_gradient=True)
def _checked_splits(xp, splits: TensorLike, count: IntLike):
    first, last = int(splits[0]), int(splits[-1])
    if first != 0 or last != count or bool((splits[1:] < splits[:-1]).any()):
        raise InvalidArgumentError(
            f"RaggedTensor: row_splits must increase from 0 to {count}, the number of "
            f"values (as row_lengths sum up to it), got {devices.to_numpy(splits)}"
        )
    return splits


@primitive(may_raise=True, no_gradient=True)
def _checked_rowids(xp, ids: TensorLike, count: IntLike):
    if ids.size:
        first, last = int(ids[0]), int(ids[-1])
        if first < 0 or last >= count or bool((ids[1:] < ids[:-1]).any()):
            raise InvalidArgumentError(
                f"RaggedTensor: value_rowids must not decrease, and be from 0 to "
                f"{count - 1}, got {devices.to_numpy(ids)}"
            )
    return ids


@primitive(may_raise=True, no_gradient=True)
def _checked_equal(xp, x: TensorLike, y: TensorLike, message: str):
    if x.shape != y.shape or bool((x != y).any()):
        raise InvalidArgumentError(message)
    return x


for _op in (_checked_splits, _checked_rowids):
    _op.infer(lambda x, count: TensorSpec(x.shape, x.dtype))
_checked_equal.infer(lambda x, y, message: TensorSpec(x.shape, x.dtype))


def _refuse_mapped(mapped, *inputs, **attributes):
    raise MappingError("RaggedTensor: its rows cannot be mapped")


for _op in (_checked_splits, _checked_rowids, _checked_equal):
    _op.batch(_refuse_mapped)


def same_splits(who: str, x: RaggedTensor, y: RaggedTensor) -> RaggedTensor:
    """``x``, once its rows are known to be those of ``y``.

    Raises: ``InvalidArgumentError`` if they are not.
    """
    x, y = x._unpacked(), y._unpacked()
    if x.ragged_rank != y.ragged_rank:
        raise InvalidArgumentError(
            f"{who}: RaggedTensors of {x.ragged_rank} and {y.ragged_rank} ragged axes"
        )
    found = []
    for a, b in zip(x.nested_row_splits, y.nested_row_splits):
        if a is not b:
            b = cast(b, a.dtype)
            a = _check_equal(a, b, f"{who}: the rows of two RaggedTensors must have the "
                             "same lengths")  # fmt: skip
        found.append(a)
    return x.with_components([x.flat_values, *found])


def _check_equal(x, y, message):
    if tuple(x.shape) != tuple(y.shape):
        raise InvalidArgumentError(message)
    return _checked_equal(x, y, message)


def _splits_of(lengths):
    zero = convert_to_tensor(np.zeros(1, lengths.dtype.as_numpy_dtype))
    return concat([zero, cumsum(lengths)], 0)


def _numbers(who, name, value):
    """Row numbers as a tensor of int64, or of int32."""
    numbers = convert_to_tensor(value)
    if numbers.shape.rank != 1:
        raise ShapeError(who, f"{name} must have one axis", **{name: numbers})
    if not numbers.dtype.is_integer and numbers.shape[0] != 0:
        raise DTypeError(who, f"{name} must be integers", **{name: numbers})
    plain = not isinstance(value, Tensor) and getattr(value, "dtype", None) != np.int32
    if plain or numbers.dtype not in (dtypes.int32, dtypes.int64):
        return cast(numbers, dtypes.int64)
    return numbers


def _as_values(values):
    if isinstance(values, RaggedTensor):
        return values
    values = convert_to_tensor(values)
    if not values.shape.rank:
        raise ShapeError("RaggedTensor", "values must have an axis", values=values)
    return values


def _count_of(values):
    if isinstance(values, RaggedTensor):
        return values.row_count
    return values.shape[0]


def _agree(n, m):
    return n is None or m is None or n == m


def _nested(make, values, partitions, validate):
    if not partitions:
        raise ValueError("RaggedTensor: there must be a partition for each ragged axis")
    for each in reversed(list(partitions)):
        values = make(values, each, validate=validate)
    return values


def _wanted_sizes(shape, rank):
    shape = [None] * rank if shape is None else list(TensorShape(shape))
    if len(shape) > rank:
        raise ShapeError("to_tensor", f"shape must have {rank} sizes, got {shape}")
    return shape + [None] * (rank - len(shape))


def _resized(x, count):
    """The first entries, or all of them and zeros."""
    missing = count - x.shape[0]
    if missing <= 0:
        return x[:count]
    return concat([x, cast(np.zeros(missing, np.int64), x.dtype)], 0)


def _text(x):
    """Rows as they are printed: numbers as NumPy prints them."""
    if isinstance(x, RaggedTensor):
        return _bracketed(x, _text)
    return _listed(np.asarray(x.numpy()))


def _listed(x):
    if isinstance(x, np.ndarray) and x.ndim:
        return _bracketed(x, _listed)
    x = x[()] if isinstance(x, np.ndarray) else x
    return repr(x) if isinstance(x, bytes) else str(x)


def _bracketed(items, text):
    """A list as text; of a long one, both ends."""
    shown = [text(x) for x in (items if len(items) <= 100 else items[:3])]
    if len(items) > 100:
        shown += ["...", *[text(x) for x in items[-3:]]]
    return f"[{', '.join(shown)}]"
