"""Arguments that layers with spatial axes share, and the output sizes they imply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import one_of
from tapewright.core.settings.floatx import image_data_format

_LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def checked_format(who: Any, data_format: str | None) -> str:
    """Check ``data_format``; None means `image_data_format`."""
    known = ("channels_last", "channels_first")
    data_format = image_data_format() if data_format is None else data_format
    return one_of(who, "data_format", data_format, known)


def checked_padding(
    layer: Any, padding: Any, choices: Sequence[str] = ("valid", "same")
) -> str:
    """Return ``padding`` in lower case."""
    given = padding.lower() if isinstance(padding, str) else padding
    return one_of(layer, "padding", given, choices)


def format_of_ops(data_format: str, rank: int) -> str:
    """Return the data format that ops use: "NHWC", "NCW" and so on."""
    if data_format == "channels_first":
        return f"NC{_LETTERS[rank]}"
    return f"N{_LETTERS[rank]}C"


def spatial_axes(data_format: str, rank: int) -> tuple[int, ...]:
    """Return the axes other than batch and channels.

    Example:
        >>> from tapewright.layers.base.spatial import spatial_axes
        >>> spatial_axes("channels_last", 2), spatial_axes("channels_first", 2)
        ((1, 2), (2, 3))
    """
    first = 2 if data_format == "channels_first" else 1
    return tuple(range(first, first + rank))


def to_channels_last(shape: Any, data_format: str) -> Any:
    """Move the channels of a shape, or of any list with one item per axis, last."""
    if data_format == "channels_last":
        return tuple(shape)
    batch, channels, *sizes = shape
    return (batch, *sizes, channels)


def from_channels_last(shape: Any, data_format: str) -> Any:
    """Invert `to_channels_last`."""
    if data_format == "channels_last":
        return tuple(shape)
    batch, *sizes, channels = shape
    return (batch, channels, *sizes)


def window_counts(layer, sizes, window, strides, padding, dilations=None):
    """Return the number of windows along axes of these sizes; None for unknown sizes.

    Raises:
        ShapeError: If a window is larger than the inputs.
    """
    counts = []
    for i, size in enumerate(sizes):
        reach = (window[i] - 1) * (dilations[i] if dilations else 1) + 1
        if size is None:
            counts.append(None)
        elif padding == "valid":
            counts.append((size - reach) // strides[i] + 1)
            if reach > size:
                raise ShapeError(
                    layer._tw_title,
                    f"the inputs must not be smaller than a window of {reach} entries, "
                    f"got spatial sizes {tuple(sizes)}; use padding='same', a smaller "
                    "window or larger inputs",
                )
        else:
            counts.append(-(-size // strides[i]))
    return tuple(counts)


def transposed_sizes(sizes, window, strides, dilations, padding, output_padding=None):
    """Return ``(sizes, margins)`` of a transposed convolution's outputs.

    Spread out with the strides, n inputs cover ``(n - 1) * stride + reach`` entries.
    The outputs are these entries without the margins (before, after), by which the
    adjoint convolution pads its inputs, or with more entries at the end. None stays
    None.
    """
    output_sizes, margins = [], []
    for i, size in enumerate(sizes):
        reach, stride = (window[i] - 1) * dilations[i] + 1, strides[i]
        if output_padding is not None:
            kept = reach % 2 if padding == "same" else reach
            excess = reach - kept - output_padding[i]
        else:
            excess = reach - stride if padding == "same" else min(reach - stride, 0)
        output_sizes.append(
            None if size is None else (size - 1) * stride + reach - excess
        )
        total = max(excess, 0)
        margins.append((total // 2, total - total // 2))
    return output_sizes, margins
