"""Pooling to a given size: the windows are as large as it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.argument_validation import numbers
from tapewright.ops.array.indexing import getitem
from tapewright.ops.array.joining import stack
from tapewright.ops.math.reduction import reduce_max, reduce_mean

from .base.layer import InputSpec, Layer
from .spatial import (
    checked_format,
    from_channels_last,
    spatial_axes,
    to_channels_last,
)

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape, Sizes

    from .base.layer_types import RegularizedLayerOptions

__all__ = [
    "AdaptiveAveragePooling1D",
    "AdaptiveAveragePooling2D",
    "AdaptiveAveragePooling3D",
    "AdaptiveMaxPooling1D",
    "AdaptiveMaxPooling2D",
    "AdaptiveMaxPooling3D",
]


MOST = 4096  # windows


class _AdaptivePooling(Layer):
    """``reduced`` over ``output_size`` windows that cover each spatial axis.

    Of n entries and k windows, window i has those from ``i n / k``, rounded down, to
    ``(i + 1) n / k``, rounded up; neighbours may share an entry.
    """

    rank = None

    def __init__(
        self,
        output_size: Sizes,
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.output_size: tuple[int, ...] = numbers(
            self, "output_size", output_size, self.rank
        )
        if max(self.output_size) > MOST:  # each is a node of its own where it is traced
            raise ValueError(
                f"{type(self).__name__}: output_size must be at most {MOST} along an axis, "
                f"got {output_size!r:.100}"
            )
        self.data_format: str = checked_format(self, data_format)
        self.input_spec: InputSpec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Tensor) -> Tensor:
        axes = spatial_axes(self.data_format, self.rank)
        for axis, count in zip(axes, self.output_size):
            inputs = self._along(inputs, axis, count)
        return inputs

    def _along(self, inputs, axis, count):
        size, lead = inputs.shape[axis], (slice(None),) * axis
        if size == count:
            return inputs
        windows = []
        for i in range(count):
            start, stop = i * size // count, -(-(i + 1) * size // count)
            window = getitem(inputs, (*lead, slice(start, stop)))
            windows.append(self.reduced(window, axis))
        return stack(windows, axis=axis)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        batch, *_, channels = to_channels_last(input_shape, self.data_format)
        return from_channels_last(
            (batch, *self.output_size, channels), self.data_format
        )


class _AdaptiveAveragePooling(_AdaptivePooling):
    reduced: Any = staticmethod(reduce_mean)


class _AdaptiveMaxPooling(_AdaptivePooling):
    reduced: Any = staticmethod(reduce_max)


class AdaptiveAveragePooling1D(_AdaptiveAveragePooling):
    """The means of ``output_size`` windows; see `AdaptiveAveragePooling2D`."""

    rank = 1


class AdaptiveAveragePooling2D(_AdaptiveAveragePooling):
    """The means of ``output_size`` windows that cover each spatial axis.

    Of n entries and k windows, window i has those from ``i n / k``, rounded down, to
    ``(i + 1) n / k``, rounded up; neighbours may share an entry.

    Args: ``output_size``: an int or (height, width); ``data_format``: "channels_last"
    (default) or "channels_first".
    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, *output_size,
    channels]``.

    >>> AdaptiveAveragePooling2D((1, 2))([[[[1.0], [2.0], [6.0]]]]).numpy().ravel()
    array([1.5, 4. ], dtype=float32)
    """

    rank = 2


class AdaptiveAveragePooling3D(_AdaptiveAveragePooling):
    """The means of ``output_size`` windows; see `AdaptiveAveragePooling2D`."""

    rank = 3


class AdaptiveMaxPooling1D(_AdaptiveMaxPooling):
    """The maxima of ``output_size`` windows; see `AdaptiveAveragePooling2D`."""

    rank = 1


class AdaptiveMaxPooling2D(_AdaptiveMaxPooling):
    """The maxima of ``output_size`` windows; see `AdaptiveAveragePooling2D`."""

    rank = 2


class AdaptiveMaxPooling3D(_AdaptiveMaxPooling):
    """The maxima of ``output_size`` windows; see `AdaptiveAveragePooling2D`."""

    rank = 3
