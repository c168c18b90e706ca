"""Preprocessing layers for numbers: rescaling, normalization, binning, categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import one_of, whole
from tapewright.core.settings.floatx import epsilon
from tapewright.core.tensor import convert_to_tensor, is_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import reshape
from tapewright.ops.array.sorting import searchsorted
from tapewright.ops.math.elementwise import maximum, sqrt
from tapewright.serialization.object_config import plain

from ..base.layer import Layer, ShapePreserving
from .categories import (
    CategoryLayer,
    checked_sparse,
    encoded,
    encoded_shape,
    map_entries,
)

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, Shape, TensorLike
    from tapewright.core.variable import Variable

    from ..base.layer_types import RegularizedLayerOptions

__all__ = ["CategoryEncoding", "Discretization", "Normalization", "Rescaling"]

_BLOCK = 1 << 20  # numbers of an array that `adapt` looks at together


class Rescaling(ShapePreserving, Layer):
    """Rescale inputs: ``outputs = inputs * scale + offset``.

    Args:
        scale: Factor: a number, or an array that broadcasts to the inputs.
        offset: Number to add, or an array that broadcasts to the inputs.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[...]``; integers are cast to the compute dtype first.

    Example:
        >>> import numpy as np
        >>> layer = keras.layers.Rescaling(1 / 127.5, offset=-1)
        >>> layer(np.array([0, 255], np.uint8)).numpy()
        array([-1.,  1.], dtype=float32)
    """

    supports_masking = True

    def __init__(
        self,
        scale: TensorLike,
        offset: TensorLike = 0.0,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.scale = scale
        self.offset = offset

    def call(self, inputs: Any) -> Tensor:
        inputs = self._tw_as_own_dtype(inputs)
        return inputs * cast(self.scale, self.compute_dtype) + cast(
            self.offset, self.compute_dtype
        )


# ---------------------------------------------------------------------- normalization


class Normalization(ShapePreserving, Layer):
    """Normalize by statistics of a dataset: ``(inputs - mean) / sqrt(variance)``.

    A standard deviation below 1e-7 is replaced by 1e-7.

    Args:
        axis: Axis or axes along which each position has its own mean and variance; None
            for scalar statistics.
        mean: Mean; if it is omitted, `adapt` computes the statistics.
        variance: Variance; required if ``mean`` is given.
        invert: If True, undo the normalization: ``inputs * sqrt(variance) + mean``.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, ...]``; unless mean and variance are given,
        non-trainable weights ``mean`` and ``variance`` with the sizes along ``axis``,
        and ``count []``.

    Raises:
        ValueError: If only one of ``mean`` and ``variance`` is given, or their shapes
            differ.

    Example:
        >>> import numpy as np
        >>> layer = keras.layers.Normalization(axis=None)
        >>> layer.adapt(np.array([1.0, 3.0]))
        >>> layer(np.array([2.0, 5.0])).numpy()
        array([0., 3.], dtype=float32)
    """

    supports_masking = True

    def __init__(
        self,
        axis: Axes = -1,
        mean: TensorLike | None = None,
        variance: TensorLike | None = None,
        invert: bool = False,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        axes = () if axis is None else (axis,) if isinstance(axis, int) else axis
        self.axis: Any = tuple(axes)
        self.input_mean = mean
        self.input_variance = variance
        self.invert: bool = bool(invert)
        if (mean is None) != (variance is None):
            raise ValueError(
                "Normalization: mean and variance must both be given, or neither; got "
                f"mean={mean} and variance={variance}"
            )
        shape = np.shape(mean)
        if mean is not None and shape != np.shape(variance):
            raise ValueError(
                "Normalization: mean and variance must have the same shape, got "
                f"{shape} and {np.shape(variance)}"
            )
        if mean is not None and len(shape) > len(self.axis):
            raise ValueError(
                "Normalization: mean must have at most as many axes as "
                f"axis={self.axis}, got shape {shape}"
            )

    def build(self, input_shape: Any) -> None:
        rank = len(input_shape)
        if any([not -rank <= axis < rank for axis in self.axis]):
            raise ShapeError(
                self._tw_title,
                f"axis {self.axis} must be from {-rank} to {rank - 1} for inputs of "
                f"shape {tuple(input_shape)}",
            )
        kept = sorted({axis % rank for axis in self.axis})
        sizes = tuple([input_shape[axis] for axis in kept])
        if None in sizes:
            raise ShapeError(
                self._tw_title,
                f"the sizes along axis {self.axis} must be known, got inputs of shape "
                f"{tuple(input_shape)}",
            )
        self._tw_kept, self._tw_sizes = kept, sizes
        self._tw_reduced = tuple([i for i in range(rank) if i not in kept])
        self._tw_aligned = [input_shape[i] if i in kept else 1 for i in range(rank)]
        if self.input_mean is not None:
            self._tw_given = [
                self._tw_align(v) for v in (self.input_mean, self.input_variance)
            ]
            return
        self.adapt_mean: Variable = self._tw_state("mean", sizes, "zeros")
        self.adapt_variance: Variable = self._tw_state("variance", sizes, "ones")
        self.count: Variable = self._tw_state("count", (), "zeros", "int32")

    def _tw_state(self, name, shape, initializer, dtype=None):
        return self.add_weight(
            name=name,
            shape=shape,
            initializer=initializer,
            dtype=dtype,
            trainable=False,
        )

    def _tw_align(self, statistic):
        """Reshape a given statistic to broadcast with the inputs."""
        statistic = np.asarray(statistic, self._tw_compute_dtype.dtype)
        shape = [1] * len(self._tw_aligned)
        for axis, size in zip(reversed(self._tw_kept), reversed(statistic.shape)):
            shape[axis] = size
        wide = np.broadcast_to(statistic.reshape(shape), self._tw_aligned)
        return convert_to_tensor(np.array(wide))

    @property
    def mean(self) -> Tensor:
        """Mean, in a shape that broadcasts to the inputs; None before `build`."""
        return self._tw_statistic(0)

    @property
    def variance(self) -> Tensor:
        """Variance, in a shape that broadcasts to the inputs; None before `build`."""
        return self._tw_statistic(1)

    def _tw_statistic(self, which):
        if not hasattr(self, "_tw_kept"):
            return None
        if self.input_mean is not None:
            return self._tw_given[which]
        adapted = self.adapt_variance if which else self.adapt_mean
        return reshape(adapted, self._tw_aligned)

    def call(self, inputs: Any) -> Tensor:
        inputs = self._tw_as_own_dtype(inputs)
        deviation = maximum(sqrt(self._tw_statistic(1)), epsilon())
        if self.invert:
            return self._tw_statistic(0) + inputs * deviation
        return (inputs - self._tw_statistic(0)) / deviation

    def get_config(self) -> dict[str, Any]:
        mean, variance = plain(self.input_mean), plain(self.input_variance)
        return {**super().get_config(), "mean": mean, "variance": variance}

    def adapt(self, data: Any) -> None:
        """Compute mean and (biased) variance from ``data``; each call starts anew.

        Args:
            data: Array or tensor, or batches: a dataset, or an iterable of arrays or of
                tuples that start with an array.

        Raises:
            ValueError: If there is no data, or mean and variance were passed to the
                constructor.
            ShapeError: If the layer was built for other sizes.
            TypeError: If ``data`` is another object.
        """
        if self.input_mean is not None:
            raise ValueError(
                "Normalization.adapt: mean and variance were passed to the constructor; "
                "omit them there to use adapt"
            )
        count, mean, spread = 0, 0.0, 0.0  # spread: the sum of squared deviations
        for batch in _batches(data):
            if not self.built:
                self.build(batch.shape)
            self._tw_check_sizes(batch)
            batch = np.asarray(batch, np.float64)
            size = math.prod([batch.shape[i] for i in self._tw_reduced])
            if size == 0:
                continue
            # Chan, Golub & LeVeque, "Updating formulae and a pairwise algorithm for
            # computing sample variances" (1979)
            shift = batch.mean(axis=self._tw_reduced) - mean
            spread = spread + batch.var(axis=self._tw_reduced) * size
            spread = spread + shift**2 * (count * size / (count + size))
            count += size
            mean = mean + shift * (size / count)
        if count == 0:
            raise ValueError("Normalization.adapt: data must not be empty")
        self.adapt_mean.assign(np.asarray(mean, self._tw_variable_dtype.dtype))
        self.adapt_variance.assign(
            np.asarray(spread / count, self._tw_variable_dtype.dtype)
        )

    def _tw_check_sizes(self, batch):
        fits = batch.ndim == len(self._tw_aligned)
        if not fits or tuple([batch.shape[i] for i in self._tw_kept]) != self._tw_sizes:
            raise ShapeError(
                self._tw_title,
                f"adapt: data must have rank {len(self._tw_aligned)} and size "
                f"{self._tw_sizes} along axis {self.axis}, as the layer was built for; got "
                f"shape {batch.shape}",
            )


def _batches(data):
    """Iterate over the arrays of a dataset; an array is split into blocks of rows."""
    if is_tensor(data) or isinstance(data, np.ndarray) or hasattr(data, "__array__"):
        array = np.asarray(data.numpy() if hasattr(data, "numpy") else data)
        rows = array.reshape(-1) if array.ndim == 0 else array
        step = max(1, _BLOCK // max(1, math.prod(rows.shape[1:])))
        for start in range(0, len(rows), step):
            yield rows[start : start + step]
        return
    if not hasattr(data, "__iter__"):
        if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
            raise TypeError(
                "adapt: data must be an array or an iterable of batches, got "
                f"{type(data).__name__}"
            )
        data = (data[i] for i in range(len(data)))
    for batch in data:
        batch = batch[0] if isinstance(batch, (tuple, list)) else batch
        if not hasattr(batch, "shape"):
            raise TypeError(
                "adapt: data must be an array or an iterable of arrays, got an "
                f"element of type {type(batch).__name__}"
            )
        yield np.asarray(batch.numpy() if hasattr(batch, "numpy") else batch)


# ------------------------------------------------------------------------- categories


class CategoryEncoding(CategoryLayer):
    """Encode integers as one-hot, multi-hot or count vectors of size ``num_tokens``.

    Integers outside of 0 to ``num_tokens - 1`` are ignored.

    Args:
        num_tokens: Number of categories.
        output_mode: "multi_hot" (one vector per example, 1 for each integer in it),
            "one_hot" (one vector per integer) or "count" (one vector per example with
            the number of occurrences, or the sum of their ``count_weights``, an
            argument of the call).
        sparse: If True, return a `SparseTensor`; in traced functions only for
            "one_hot".
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, n]``, outputs ``[batch, num_tokens]``; for "one_hot", inputs
        ``[...]`` or ``[..., 1]``, outputs ``[..., num_tokens]``. The other modes also
        accept a `RaggedTensor` or `SparseTensor` ``[batch, n]``.

    Raises:
        ValueError: If ``num_tokens`` is missing, ``output_mode`` is unknown, or
            ``count_weights`` are passed in another mode than "count".

    Example:
        >>> keras.layers.CategoryEncoding(3, "count")([[0, 2, 2]]).numpy()
        array([[1., 0., 2.]], dtype=float32)
    """

    def __init__(
        self,
        num_tokens: int | None = None,
        output_mode: str = "multi_hot",
        sparse: bool = False,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        output_mode = "multi_hot" if output_mode == "binary" else output_mode
        self.num_tokens: int = whole(self, "num_tokens", num_tokens)
        modes = ("multi_hot", "one_hot", "count")
        self.output_mode: str = one_of(self, "output_mode", output_mode, modes)
        self.sparse = bool(sparse)

    def call(self, inputs: Any, count_weights: TensorLike | None = None) -> Tensor:
        if count_weights is not None and self.output_mode != "count":
            raise ValueError(
                "CategoryEncoding: count_weights require output_mode 'count', got "
                f"{self.output_mode!r}"
            )
        return encoded(
            inputs,
            self.output_mode,
            self.num_tokens,
            self.dtype,
            count_weights,
            self.sparse,
        )

    def compute_output_shape(self, input_shape: Any) -> Shape:
        return encoded_shape(input_shape, self.output_mode, self.num_tokens)


class Discretization(CategoryLayer):
    """Map numbers to bins: the index is the number of boundaries not above the input.

    Args:
        bin_boundaries: Boundaries of the bins, in ascending order.
        num_bins: Number of bins, instead of ``bin_boundaries``; `adapt` then computes
            quantiles as boundaries.
        epsilon: Error tolerance of the quantiles, as a fraction of the data.
        output_mode: "int" (int32 indices), or "one_hot", "multi_hot" or "count" as in
            `CategoryEncoding`.
        sparse: If True, return a `SparseTensor`; in traced functions only for
            "one_hot".
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, ...]``; outputs of the same shape ("int"), or as in
        `CategoryEncoding` with the number of bins.

    Raises:
        ValueError: If not exactly one of ``bin_boundaries`` and ``num_bins`` is given,
            or in a call before `adapt`.

    Example:
        >>> keras.layers.Discretization([0.0, 1.0])([[-1.5, 0.0, 3.0]]).numpy()
        array([[0, 1, 2]], dtype=int32)
    """

    _tw_omit_defaults: dict[str, Any] = {
        **Layer._tw_omit_defaults,
        "trainable": True,
    }  # Keras' class takes no such argument

    def __init__(
        self,
        bin_boundaries: Sequence[float] | None = None,
        num_bins: int | None = None,
        epsilon: float = 0.01,
        output_mode: str = "int",
        sparse: bool = False,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        if (bin_boundaries is None) == (num_bins is None):
            raise ValueError(
                "Discretization: either bin_boundaries or num_bins must be given, got "
                f"{bin_boundaries} and {num_bins}"
            )
        self.num_bins: int | None = (
            None if num_bins is None else whole(self, "num_bins", num_bins)
        )
        self.bin_boundaries: Any = _ascending(bin_boundaries)
        self.epsilon = epsilon
        modes = ("int", "one_hot", "multi_hot", "count")
        self.output_mode: str = one_of(self, "output_mode", output_mode, modes)
        self.sparse = checked_sparse(self, sparse, output_mode)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        boundaries = None
        if config.get("num_bins") is not None:  # boundaries beside it were adapted
            boundaries, config = config.get("bin_boundaries"), {**config}
            config["bin_boundaries"] = None
        layer = cls(**config)
        if boundaries is not None:
            layer.bin_boundaries = _ascending(boundaries)
        return layer

    def call(self, inputs: Any) -> Tensor:
        if self.bin_boundaries is None:
            raise ValueError(
                f"{self._tw_title}: there are no boundaries yet; call adapt(data) "
                "first, or pass bin_boundaries"
            )
        boundaries = convert_to_tensor(np.array(self.bin_boundaries, np.float32))
        indices = map_entries(
            lambda x: searchsorted(boundaries, cast(x, "float32"), side="right"), inputs
        )
        dtype = "int32" if self.output_mode == "int" else self.compute_dtype
        return encoded(
            indices, self.output_mode, self._tw_depth(), dtype, sparse=self.sparse
        )

    def compute_output_shape(self, input_shape: Any) -> Shape:
        return encoded_shape(input_shape, self.output_mode, self._tw_depth())

    def _tw_depth(self):
        boundaries = self.bin_boundaries
        return self.num_bins if boundaries is None else len(boundaries) + 1

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Compute ``num_bins - 1`` boundaries that divide ``data`` evenly.

        Args:
            data: Array or tensor, or batches: a dataset, or an iterable of arrays or of
                tuples that start with an array.
            steps: Maximum number of batches to use, or None for all.

        Raises:
            ValueError: If there is no data, or ``bin_boundaries`` were passed to the
                constructor.
        """
        if self.num_bins is None:
            raise ValueError(
                "Discretization.adapt: bin_boundaries were passed to the constructor; "
                "pass num_bins there to use adapt"
            )
        summary = np.zeros((2, 0))
        whole_array = is_tensor(data) or isinstance(data, np.ndarray)
        for i, batch in enumerate(
            [np.asarray(data)] if whole_array else _batches(data)
        ):
            if steps is not None and i >= steps:
                break
            both = np.concatenate([_summary(batch, self.epsilon), summary], axis=1)
            both = both[:, np.argsort(both[0])]
            summary = _compressed(both, self.epsilon)
        if not summary.size:
            raise ValueError("Discretization.adapt: data must not be empty")
        self.bin_boundaries: Any = _compressed(summary, 1 / self.num_bins)[
            0, :-1
        ].tolist()
        self._tw_constants_version += 1


def _ascending(boundaries):
    """Return the boundaries of bins as a list, or None."""
    if boundaries is None:
        return None
    ascending = np.asarray(boundaries, np.float64)
    if ascending.ndim != 1 or not (np.diff(ascending) >= 0).all():
        raise ValueError(
            "Discretization: bin_boundaries must be a list of numbers in ascending "
            f"order, got {boundaries!r}"
        )
    return ascending.tolist()


# A summary has in its first row some of the values, ascending, in its second how many
# values each stands for: about a share of epsilon. The values are float32, as in Keras;
# the counts are not, for float32 has no odd numbers beyond 2 ** 24.


def _summary(values, epsilon):
    values = np.sort(np.ravel(np.asarray(values, np.float32)))
    step = max(values.size * epsilon, 1)
    values = values[int(step - 1) :: int(step)]
    return np.stack([values, np.full(values.shape, step, np.float64)])


def _compressed(summary, epsilon):
    """Compress a summary to ``1 / epsilon`` values, by interpolation."""
    values, counts = summary
    if values.size * epsilon < 1:
        return summary
    totals = counts.cumsum()
    shares = epsilon + np.arange(0.0, 1.0, epsilon)
    columns = [
        np.interp(shares, totals / totals[-1], each) for each in (values, totals)
    ]
    counts = np.diff(columns[1], prepend=0)
    return np.stack([columns[0].astype(np.float32), counts])
