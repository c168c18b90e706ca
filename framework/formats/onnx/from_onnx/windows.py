"""Convolution and pooling: ONNX puts channels behind the batch, in all dimensions.

``auto_pad`` and ``ceil_mode`` become pairs of margins. The margins of ``ceil_mode`` never
contribute to a mean; those of ``pads`` do if ``count_include_pad`` says so.
"""

from __future__ import annotations

import math

from tapewright.ops.array.joining import pad
from tapewright.ops.array.shape import reshape, transpose
from tapewright.ops.convolution.conv import convolution
from tapewright.ops.convolution.correlation import input_gradient
from tapewright.ops.convolution.pooling import pool
from tapewright.ops.math.elementwise import abs, pow
from tapewright.ops.math.reduction import reduce_max, reduce_mean, reduce_sum

from .static import dims

_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


class _Window:
    """The attributes of a window over the spatial axes of ``x``, all given for each axis.

    ``margins`` are pairs of a number before and one behind each axis, ``ceil`` what
    ``ceil_mode`` adds behind.
    """

    def __init__(self, x, kernel, strides, dilations, pads, auto_pad, ceil_mode=0):
        self.rank = rank = len(kernel)
        self.kernel = tuple(kernel)
        self.strides = tuple(strides or [1] * rank)
        self.dilations = tuple(dilations or [1] * rank)
        self.reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        sizes = dims(x)[2:]
        pads = pads or [0] * (2 * rank)
        self.margins = list(zip(pads[:rank], pads[rank:]))
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            self.margins = [
                _same(n, s, r, auto_pad)
                for n, s, r in zip(sizes, self.strides, self.reach)
            ]
        self.ceil = [0] * rank
        if ceil_mode:
            self.ceil = [
                _beyond(n, *margin, s, r)
                for n, margin, s, r in zip(
                    sizes, self.margins, self.strides, self.reach
                )
            ]

    @property
    def layout(self):
        return _LAYOUTS.get(self.rank)

    def padding(self, margins):
        return [(0, 0), (0, 0), *margins]

    @property
    def all_margins(self):
        return [(b, a + more) for (b, a), more in zip(self.margins, self.ceil)]


def _same(size, stride, reach, auto_pad):
    """Return margins that make ``ceil(size / stride)`` windows."""
    total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    less, more = total // 2, total - total // 2
    return (less, more) if auto_pad == "SAME_UPPER" else (more, less)


def _beyond(size, before, after, stride, reach):
    """Compute the end padding of ``ceil_mode``; no window starts beyond the input."""
    room = size + before + after - reach
    count = -(-room // stride) + 1
    if (count - 1) * stride >= size + before:
        count = count - 1
    return max((count - 1) * stride - room, 0)


# --------------------------------------------------------------------------- convolution


def _channels_last(x):
    return transpose(x, (0, *range(2, len(dims(x))), 1))


def _biased(y, b):
    return y if b is None else y + reshape(b, (-1,) + (1,) * (len(dims(y)) - 2))


def conv(
    x, w, b=None, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None,
    pads=None, strides=None,
):  # fmt: skip
    """Convolve ``[batch, channels, ...]`` with ``w`` ``[filters, channels / group, ...]``."""
    kernel = dims(w)[2:]
    _check_kernel(kernel, kernel_shape)
    if dims(x)[1] != dims(w)[1] * group:
        raise ValueError(
            f"w of shape {dims(w)} in {group} groups needs {dims(w)[1] * group} channels, "
            f"got x of shape {dims(x)}"
        )
    window = _Window(x, kernel, strides, dilations, pads, auto_pad)
    filters = transpose(w, (*range(2, len(dims(w))), 1, 0))
    y = convolution(
        x, filters, window.strides, window.padding(window.margins), window.layout,
        window.dilations,
    )  # fmt: skip
    return _biased(y, b)


def _check_kernel(kernel, given):
    if given is not None and tuple(given) != tuple(kernel):
        raise ValueError(f"kernel_shape is {given}, but w has a window {kernel}")


def _conv_transpose(
    x, w, b=None, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None,
    output_padding=None, output_shape=None, pads=None, strides=None,
):  # fmt: skip
    """The adjoint of a convolution that maps the output's size to the input's."""
    kernel = dims(w)[2:]
    _check_kernel(kernel, kernel_shape)
    window = _Window(x, kernel, strides, dilations, pads, "NOTSET")
    extra = output_padding or [0] * window.rank
    full = [
        (n - 1) * s + e + r
        for n, s, e, r in zip(dims(x)[2:], window.strides, extra, window.reach)
    ]
    margins = window.margins
    if output_shape is None and auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        output_shape = [n * s for n, s in zip(dims(x)[2:], window.strides)]
    if output_shape is not None:
        margins = []
        for n, m in zip(full, output_shape[-window.rank :]):
            less, more = (n - m) // 2, (n - m) - (n - m) // 2
            upper = auto_pad == "SAME_UPPER"
            margins.append((less, more) if upper else (more, less))
    # Where less is cut than nothing, rows of zeros are behind: the adjoint needs none.
    missing = [(max(-b, 0), max(-a, 0)) for b, a in margins]
    margins = [(max(b, 0), max(a, 0)) for b, a in margins]
    size = [n - b - a for n, (b, a) in zip(full, margins)]
    groups, per_group = group, dims(w)[0] // group
    filters = reshape(w, (groups, per_group, dims(w)[1], *kernel))
    # [window, output channels of a group, all input channels]
    order = (*range(3, 3 + window.rank), 2, 0, 1)
    filters = reshape(transpose(filters, order), (*kernel, dims(w)[1], -1))
    y = input_gradient(
        _channels_last(x), filters, size, window.strides, margins, window.dilations,
        groups,
    )  # fmt: skip
    y = transpose(y, (0, window.rank + 1, *range(1, window.rank + 1)))
    if any([pair != (0, 0) for pair in missing]):
        y = pad(y, [(0, 0), (0, 0), *missing])
    return _biased(y, b)


# -------------------------------------------------------------------------------- pooling


def _max_pool(
    x, auto_pad="NOTSET", ceil_mode=0, dilations=None, kernel_shape=None, pads=None,
    storage_order=0, strides=None,
):  # fmt: skip
    window = _Window(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    return _pooled(x, window, "MAX", window.all_margins)


def _pooled(x, window, kind, margins):
    return pool(
        x, window.kernel, kind, window.strides, window.padding(margins), window.layout,
        window.dilations,
    )  # fmt: skip


def _average_pool(
    x, auto_pad="NOTSET", ceil_mode=0, count_include_pad=0, dilations=None,
    kernel_shape=None, pads=None, strides=None,
):  # fmt: skip
    window = _Window(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    if not count_include_pad:
        return _pooled(x, window, "AVG", window.all_margins)
    x = pad(x, window.padding(window.margins))
    return _pooled(x, window, "AVG", [(0, more) for more in window.ceil])


def _lp_pool(
    x, auto_pad="NOTSET", ceil_mode=0, dilations=None, kernel_shape=None, p=2,
    pads=None, strides=None,
):  # fmt: skip
    window = _Window(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    x = pad(pow(abs(x), float(p)), window.padding(window.all_margins))
    means = _pooled(x, window, "AVG", [(0, 0)] * window.rank)
    return pow(means * float(math.prod(window.kernel)), 1.0 / p)


def _spatial(x):
    return list(range(2, len(dims(x))))


def _global_lp_pool(x, p=2):
    return pow(reduce_sum(pow(abs(x), float(p)), _spatial(x), True), 1.0 / p)


OPS = {
    "AveragePool": _average_pool,
    "Conv": conv,
    "ConvTranspose": _conv_transpose,
    "GlobalAveragePool": lambda x: reduce_mean(x, _spatial(x), True),
    "GlobalLpPool": _global_lp_pool,
    "GlobalMaxPool": lambda x: reduce_max(x, _spatial(x), True),
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
}
LIMITS = {
    "MaxPool": lambda attributes, step: (
        "indices of maxima" if any(step.outputs[1:]) else None
    )
}
