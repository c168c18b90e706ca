"""Arguments that layers with spatial axes share, and the sizes that follow from them."""

import operator

from tapewright.errors import ShapeError

__all__ = [
    "checked_format",
    "checked_padding",
    "format_of_ops",
    "from_channels_last",
    "numbers",
    "one_of",
    "spatial_axes",
    "to_channels_last",
    "whole",
    "window_counts",
]

_LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def whole(layer, name, value, least=1):
    """``value`` as an int. Raises: ``ValueError`` if it is none, or below ``least``."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        what = "a positive integer" if least == 1 else f"an integer of {least} or more"
        raise ValueError(
            f"{type(layer).__name__}: {name} must be {what}, got {value!r}"
        )
    return number


def numbers(layer, name, value, count, least=1):
    """``count`` ints: from one for all, or a list of that many."""
    values = value if isinstance(value, (list, tuple)) else [value] * count
    try:
        found = tuple([whole(layer, name, n, least) for n in values])
    except ValueError:
        found = ()
    if len(found) != count:
        kind = "positive integer" if least == 1 else f"integer of {least} or more"
        many = f" or {count} of them" if count > 1 else ""
        raise ValueError(
            f"{type(layer).__name__}: {name} must be one {kind}{many}, got {value!r}"
        )
    return found


def one_of(layer, name, value, choices):
    """``value``. Raises: ``ValueError`` unless it is among ``choices``."""
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(
            f"{type(layer).__name__}: {name} must be one of {known}, got {value!r}"
        )
    return value


def checked_format(layer, data_format):
    """``data_format``, "channels_last" for None."""
    data_format = data_format or "channels_last"
    return one_of(
        layer, "data_format", data_format, ("channels_last", "channels_first")
    )


def checked_padding(layer, padding, choices=("valid", "same")):
    """``padding`` in small letters."""
    given = padding.lower() if isinstance(padding, str) else padding
    return one_of(layer, "padding", given, choices)


def format_of_ops(data_format, rank):
    """The name that ops have for it: "NHWC", "NCW" and so on."""
    if data_format == "channels_first":
        return f"NC{_LETTERS[rank]}"
    return f"N{_LETTERS[rank]}C"


def spatial_axes(data_format, rank):
    """The axes that are neither the batch nor the channels.

    >>> spatial_axes("channels_last", 2), spatial_axes("channels_first", 2)
    ((1, 2), (2, 3))
    """
    first = 2 if data_format == "channels_first" else 1
    return tuple(range(first, first + rank))


def to_channels_last(shape, data_format):
    """A shape, or any list of axes, with the channels moved to the end."""
    if data_format == "channels_last":
        return tuple(shape)
    batch, channels, *sizes = shape
    return (batch, *sizes, channels)


def from_channels_last(shape, data_format):
    """The inverse of `to_channels_last`."""
    if data_format == "channels_last":
        return tuple(shape)
    batch, *sizes, channels = shape
    return (batch, channels, *sizes)


def window_counts(layer, sizes, window, strides, padding, dilations=None):
    """How many windows there are along axes of these sizes; None where one is None.

    Raises: ``ShapeError`` if a window is larger than the inputs.
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
                    layer._title,
                    f"a window that reaches over {reach} entries does not fit into the "
                    f"inputs, whose spatial axes have sizes {tuple(sizes)}; padding "
                    "'same' adds margins",
                )
        else:
            counts.append(-(-size // strides[i]))
    return tuple(counts)
