"""`Hashing` and `HashedCrossing`: hash categories, or combinations of them, into bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from tapewright.core import dtypes
from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import one_of, whole
from tapewright.core.settings.floatx import floatx
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import Shape
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import zeros_like
from tapewright.ops.math.comparison import equal, where
from tapewright.ops.strings.categories import fingerprint, hashed_cross

from ..base.layer_types import DTypePolicyLike, RegularizedLayerOptions
from .categories import (
    CategoryLayer,
    checked_sparse,
    encoded,
    encoded_shape,
    map_entries,
)
from .index_lookup import checked_salt
from .vocabulary import hash_bucket

__all__ = ["HashedCrossing", "Hashing"]


class Hashing(CategoryLayer):
    """Hash strings or integers into ``num_bins`` bins (the hashing trick).

    Integers are hashed as their decimal text; floating inputs are truncated to
    integers.

    Args:
        num_bins: Number of bins, positive.
        mask_value: Input value that is mapped to bin 0, which no other value uses; None
            for no such value.
        salt: Integer, or list of two integers, used as the key of SipHash; None for
            FarmHash.
        output_mode: "int" for bin numbers, or "one_hot", "multi_hot" or "count", as for
            `CategoryEncoding`.
        sparse: If True, return a `SparseTensor`; not for "int".
        **kwargs: Base class arguments; see `keras.layers.Layer`. ``dtype`` defaults to
            int64 for "int", else to `keras.config.floatx`.

    Shapes:
        Inputs ``[batch, ...]``; outputs have the same shape for "int", else the shape
        of a `CategoryEncoding`. In a `RaggedTensor` or `SparseTensor`, the entries are
        hashed.

    Raises:
        ValueError: If ``num_bins`` is not positive, ``salt`` is invalid, or ``dtype``
            is not int32 or int64 for "int".

    Example:
        >>> keras.layers.Hashing(3)([["A"], ["B"], ["C"], ["D"], ["E"]]).numpy().ravel()
        array([1, 0, 1, 1, 2])
        >>> keras.layers.Hashing(3, mask_value="")([["A"], [""], ["B"]]).numpy().ravel()
        array([1, 0, 1])
    """

    def __init__(
        self,
        num_bins: int,
        mask_value: str | int | None = None,
        salt: int | Sequence[int] | None = None,
        output_mode: str = "int",
        sparse: bool = False,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        if kwargs.get("dtype") is None:
            kwargs["dtype"] = "int64" if output_mode == "int" else floatx()
        super().__init__(**kwargs)
        self.num_bins: int = whole(self, "num_bins", num_bins)
        self.mask_value = mask_value
        modes = ("int", "one_hot", "multi_hot", "count")
        self.output_mode: str = one_of(self, "output_mode", output_mode, modes)
        if output_mode == "int" and self.dtype not in ("int32", "int64"):
            raise ValueError(
                "Hashing: dtype must be int32 or int64 for output_mode 'int', got "
                f"{self.dtype}"
            )
        self.salt: list[int] | None = checked_salt(self, salt)
        self.sparse = checked_sparse(self, sparse, output_mode)

    def call(self, inputs: Any) -> Tensor:
        bins = map_entries(lambda x: self._tw_bins(convert_to_tensor(x)), inputs)
        return encoded(
            bins, self.output_mode, self.num_bins, self.dtype, sparse=self.sparse
        )

    def _tw_bins(self, values):
        if self.mask_value is None or self.num_bins == 1:
            return hash_bucket(_whole(values), self.num_bins, self.salt)
        is_mask = equal(values, self.mask_value)
        bins = hash_bucket(_whole(values), self.num_bins - 1, self.salt) + 1
        return where(is_mask, zeros_like(bins), bins)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        return encoded_shape(input_shape, self.output_mode, self.num_bins)


def _whole(values):
    return cast(values, dtypes.int64) if values.dtype.is_floating else values


class HashedCrossing(CategoryLayer):
    """Hash combinations of categorical features (feature crosses) into ``num_bins`` bins.

    Args:
        num_bins: Number of bins, positive.
        output_mode: "int" for bin numbers, or "one_hot".
        sparse: If True, return a `SparseTensor` for "one_hot".
        name: Name of the layer, unique by default.
        dtype: Dtype of the outputs; defaults to int64 for "int", else to
            `keras.config.dtype_policy`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Two or more inputs, strings or integers, all ``[]``, ``[batch]`` or
        ``[batch, 1]``; outputs have the same shape for "int", else
        ``[batch, num_bins]``.

    Raises:
        ValueError: If there are fewer than two inputs, or an input is floating.
        ShapeError: If the inputs have another shape, or different shapes.

    Example:
        >>> keras.layers.HashedCrossing(5)((["A", "B", "A"], [101, 101, 102])).numpy()
        array([1, 4, 3])
    """

    def __init__(
        self,
        num_bins: int,
        output_mode: str = "int",
        sparse: bool = False,
        name: str | None = None,
        dtype: DTypePolicyLike = None,
        **kwargs: Any,
    ):
        kwargs.pop("trainable", None)
        if output_mode == "int" and dtype is None:
            dtype = "int64"
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.num_bins: int = whole(self, "num_bins", num_bins)
        modes = ("int", "one_hot")
        self.output_mode: str = one_of(self, "output_mode", output_mode, modes)
        self.sparse = bool(sparse)

    def _tw_converted(self, inputs):
        if isinstance(inputs, list | tuple):
            return [convert_to_tensor(x) for x in inputs]
        return super()._tw_converted(inputs)

    def call(self, inputs: Any) -> Tensor:
        self._tw_check(inputs)
        values = [
            fingerprint(x) if x.dtype == dtypes.string else cast(x, dtypes.int64)
            for x in inputs
        ]
        bins = hashed_cross(values, num_buckets=self.num_bins)
        return encoded(
            bins,
            self.output_mode,
            self.num_bins,
            self.compute_dtype,
            sparse=self.sparse,
        )

    def _tw_check(self, inputs):
        if not isinstance(inputs, list | tuple) or len(inputs) < 2:
            raise ValueError(
                f"{self._tw_title}: inputs must be a list of two tensors or more, got "
                f"{inputs!r:.200}"
            )
        shapes = {tuple(x.shape) for x in inputs}
        shape = min(shapes, key=len)
        if len(shapes) > 1 or len(shape) > 2 or shape[1:] not in ((), (1,)):
            raise ShapeError(
                self._tw_title,
                "all inputs must have the same shape, [], [batch] or [batch, 1]; got "
                f"{sorted(shapes)}",
            )
        for x in inputs:
            if x.dtype != dtypes.string and not x.dtype.is_integer:
                raise ValueError(
                    f"{self._tw_title}: inputs must be strings or integers, got {x.dtype.name}"
                )

    def compute_output_shape(self, input_shape: Any) -> Shape:
        return encoded_shape(input_shape[0], self.output_mode, self.num_bins)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("trainable", None)
        return config
