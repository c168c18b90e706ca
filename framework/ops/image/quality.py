"""Measures of the likeness of two images."""

from __future__ import annotations

import math

from tapewright.core.errors import ShapeError
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.joining import concat
from ..array.shape import reshape
from ..convolution.conv import depthwise_conv2d
from ..math.elementwise import exp, log, square
from ..math.reduction import reduce_mean, reduce_sum
from .pixels import numbers_like, to_floating

__all__ = [
    "psnr",
    "ssim",
]


def psnr(
    a: TensorLike, b: TensorLike, max_val: TensorLike, name: str | None = None
) -> Tensor:
    """The peak signal-to-noise ratio of two images, in decibels.

    It is ``10 log10(max_val ** 2 / mean((a - b) ** 2))``, infinite for equal images.

    Args: ``max_val``: the range of the values, such as 255 for uint8.

    Shapes: ``a`` and ``b`` ``[..., height, width, channels]``, result ``[...]``.

    >>> psnr([[[0.0]]], [[[0.1]]], max_val=1.0).numpy()
    np.float32(20.0)
    """
    x, y = _comparable("psnr", a, b, "a", "b")
    top = _scaled_range(max_val, a)
    mse = reduce_mean(square(x - y), (-3, -2, -1))
    return log(mse) * (-10 / math.log(10)) + 20 * math.log10(top)


def _comparable(who, first, second, *names):
    first, second = convert_to_tensor(first), convert_to_tensor(second)
    given = dict(zip(names, (first, second)))
    if first.shape != second.shape or len(first.shape) < 3:
        raise ShapeError(who, f"{names[0]} and {names[1]} must be images of one shape, "
                         "[..., height, width, channels]", **given)  # fmt: skip
    return to_floating(first), to_floating(second)


def _scaled_range(max_val, image):
    dtype = convert_to_tensor(image).dtype
    return float(max_val) if dtype.is_floating else float(max_val) / dtype.max


def ssim(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """The structural similarity of two images, from -1 to 1.

    Means, variances and the covariance under a Gaussian window of ``filter_size``
    pixels and width ``filter_sigma`` are compared, with ``c1 = (k1 * max_val) ** 2``
    and ``c2 = (k2 * max_val) ** 2`` added to numerators and denominators.

    Args: ``max_val``: the range of the values, such as 255 for uint8;
    ``return_index_map``: one number for each window, not their mean.

    Shapes: ``[..., height, width, channels]``, both, to ``[...]``; with
    ``return_index_map`` to ``[..., height - filter_size + 1, width - filter_size +
    1]``.

    Raises: ``ShapeError`` for shapes that differ, or smaller than the window.

    Reference: Wang et al., "Image quality assessment" (2004).

    >>> import tapewright as tw
    >>> image = tw.random.stateless_uniform([16, 16, 1], seed=[1, 2])
    >>> ssim(image, image, max_val=1.0).numpy().round(4)
    np.float32(1.0)
    """
    x, y = _comparable("ssim", img1, img2, "img1", "img2")
    if min(tuple(x.shape)[-3:-1]) < filter_size:
        raise ShapeError("ssim", f"img1 and img2 must have at least filter_size = "
                         f"{filter_size} rows and columns", img1=x, img2=y)  # fmt: skip
    top = _scaled_range(max_val, img1)
    c1, c2 = (k1 * top) ** 2, (k2 * top) ** 2
    window = _gaussian_window(filter_size, filter_sigma, x)
    lead = tuple(x.shape)[:-3]
    x, y = (reshape(v, (math.prod(lead), *v.shape[-3:])) for v in (x, y))

    def blurred(v):
        return depthwise_conv2d(v, window, [1, 1, 1, 1], "VALID")

    mean_x, mean_y = blurred(x), blurred(y)
    product, squares = mean_x * mean_y * 2.0, square(mean_x) + square(mean_y)
    covariance = blurred(x * y) * 2.0 - product
    variances = blurred(square(x) + square(y)) - squares
    luminance = (product + c1) / (squares + c1)
    index = luminance * ((covariance + c2) / (variances + c2))
    axes = -1 if return_index_map else (-3, -2, -1)
    index = reduce_mean(index, axes)
    return reshape(index, (*lead, *tuple(index.shape)[1:]))


def _gaussian_window(size, sigma, x):
    """``[size, size, channels, 1]``, with sum 1 for each channel."""
    places = numbers_like([(i - (size - 1) / 2) ** 2 for i in range(size)], x)
    row = exp(places * (-0.5 / sigma**2))
    row = row / reduce_sum(row)
    plane = reshape(row, (size, 1, 1, 1)) * reshape(row, (1, size, 1, 1))
    return concat([plane] * x.shape[-1], axis=2)
