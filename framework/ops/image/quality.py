"""Measures of the similarity of two images."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapewright.core import dtypes
from tapewright.core.errors import ShapeError
from tapewright.core.rules import checked_broadcast
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.conversion import cast
from ..array.joining import concat, pad
from ..array.shape import broadcast_to, reshape
from ..convolution.conv import depthwise_conv2d
from ..convolution.pooling import avg_pool2d
from ..math.elementwise import exp, log, pow, square
from ..math.reduction import reduce_mean, reduce_sum
from ..nn.activation import relu
from .pixels import numbers_like, to_floating

__all__ = [
    "psnr",
    "ssim",
    "ssim_multiscale",
]


def psnr(
    a: TensorLike, b: TensorLike, max_val: TensorLike, name: str | None = None
) -> Tensor:
    """Peak signal-to-noise ratio of two images, in decibels.

    It is ``10 log10(max_val ** 2 / mean((a - b) ** 2))``, infinite for equal images.

    Args:
        a: First images ``[..., height, width, channels]``.
        b: Second images, of the same size; leading axes broadcast.
        max_val: Range of the values, such as 255 for uint8.

    Shapes:
        ``a`` and ``b`` ``[..., height, width, channels]``, result ``[...]``.

    Example:
        >>> tw.image.psnr([[[0.0]]], [[[0.1]]], max_val=1.0).numpy()
        np.float32(20.0)
    """
    x, y = _comparable("psnr", a, b, "a", "b")
    top = _scaled_range(max_val, a)
    mse = reduce_mean(square(x - y), (-3, -2, -1))
    ratio = log(mse) * (-10 / math.log(10)) + 20 * math.log10(top)
    return cast(ratio, dtypes.float32)


def _comparable(who, first, second, *names):
    """Return both as floating images of one shape; axes before the height broadcast."""
    first, second = convert_to_tensor(first), convert_to_tensor(second)
    given = dict(zip(names, (first, second)))
    if min(len(x.shape) for x in (first, second)) < 3 or not all(
        map(agree, first.shape[-3:], second.shape[-3:])
    ):
        raise ShapeError(who, f"{names[0]} and {names[1]} must be images of one shape, "
                         "[..., height, width, channels]", **given)  # fmt: skip
    first, second = to_floating(first), to_floating(second)
    if first.shape != second.shape:
        shape = checked_broadcast(who, first.shape, second.shape, **given)
        first, second = broadcast_to(first, shape), broadcast_to(second, shape)
    return first, second


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
    """Structural similarity index (SSIM) of two images, from -1 to 1.

    It compares means, variances and the covariance under a Gaussian window, with
    ``c1 = (k1 * max_val) ** 2`` and ``c2 = (k2 * max_val) ** 2`` added to numerators
    and denominators.

    Args:
        img1: First images ``[..., height, width, channels]``.
        img2: Second images, of the same shape.
        max_val: Range of the values, such as 255 for uint8.
        filter_size: Size of the Gaussian window in pixels.
        filter_sigma: Standard deviation of the Gaussian window in pixels.
        k1: Factor of ``c1 = (k1 * max_val) ** 2``, which stabilizes the comparison of
            means.
        k2: Factor of ``c2 = (k2 * max_val) ** 2``, which stabilizes the comparison of
            variances.
        return_index_map: If True, return one number per window instead of their mean.

    Shapes:
        Both ``[..., height, width, channels]``, to ``[...]``; with ``return_index_map``
        to ``[..., height - filter_size + 1, width - filter_size + 1]``.

    Raises:
        ShapeError: If the shapes differ, or are smaller than the window.

    References:
        Wang et al., "Image quality assessment" (2004).

    Example:
        >>> image = tw.random.stateless_uniform([16, 16, 1], seed=[1, 2])
        >>> tw.image.ssim(image, image, max_val=1.0).numpy().round(4)
        np.float32(1.0)
    """
    x, y = _comparable("ssim", img1, img2, "img1", "img2")
    top = _scaled_range(max_val, img1)
    index, _ = _structure("ssim", x, y, top, filter_size, filter_sigma, k1, k2)
    axes = -1 if return_index_map else (-3, -2, -1)
    return cast(reduce_mean(index, axes), dtypes.float32)


_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  # those of the paper


def ssim_multiscale(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    power_factors: Sequence[float] = _WEIGHTS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Multi-scale structural similarity (MS-SSIM) of two images.

    The images are also compared after averaging 2, 4, 8, ... pixels. The result is the
    product of the means of contrast and structure at each scale, and of `ssim` at the
    last one, each to the power of its factor; negative means count as 0.

    Args:
        img1: First images ``[..., height, width, channels]``.
        img2: Second images, of the same shape.
        max_val: Range of the values, such as 255 for uint8.
        power_factors: Exponent of each scale; their number is the number of scales.
        filter_size: Size of the Gaussian window in pixels.
        filter_sigma: Standard deviation of the Gaussian window in pixels.
        k1: Factor of ``c1 = (k1 * max_val) ** 2``, which stabilizes the comparison of
            means.
        k2: Factor of ``c2 = (k2 * max_val) ** 2``, which stabilizes the comparison of
            variances.

    Shapes:
        Both ``[..., height, width, channels]``, to ``[...]``.

    Raises:
        ShapeError: If the shapes differ, or are smaller than the window at the last
            scale.

    References:
        Wang, Simoncelli & Bovik, "Multi-scale structural similarity for image quality
        assessment" (2003).

    Example:
        >>> image = tw.random.stateless_uniform([32, 32, 1], seed=[1, 2])
        >>> tw.image.ssim_multiscale(image, image, 1.0, (0.5, 0.5)).numpy().round(4)
        np.float32(1.0)
    """
    who = "ssim_multiscale"
    x, y = _comparable(who, img1, img2, "img1", "img2")
    top, count = _scaled_range(max_val, img1), len(power_factors)
    product = 1.0
    for scale, power in enumerate(power_factors):
        if scale:
            x, y = _halved(x), _halved(y)
        maps = _structure(who, x, y, top, filter_size, filter_sigma, k1, k2)
        mean = reduce_mean(maps[0 if scale == count - 1 else 1], (-3, -2))
        product = product * pow(relu(mean), float(power))
    return cast(reduce_mean(product, -1), dtypes.float32)


def _halved(x):
    """Average blocks of 2 x 2 pixels; an odd last row or column counts twice."""
    *lead, height, width, channels = x.shape
    x = reshape(x, (math.prod(lead), height, width, channels))
    if height % 2 or width % 2:
        x = pad(x, [(0, 0), (0, height % 2), (0, width % 2), (0, 0)], "SYMMETRIC")
    x = avg_pool2d(x, 2, 2, "VALID")
    return reshape(x, (*lead, *x.shape[1:]))


def _structure(who, x, y, top, filter_size, filter_sigma, k1, k2):
    """Return the similarity of each window and channel, and its factor without the means."""
    if min(tuple(x.shape)[-3:-1]) < filter_size:
        raise ShapeError(who, f"img1 and img2 must have at least filter_size = "
                         f"{filter_size} rows and columns", img1=x, img2=y)  # fmt: skip
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
    structure = (covariance + c2) / (variances + c2)
    index = (product + c1) / (squares + c1) * structure
    return [reshape(v, (*lead, *tuple(v.shape)[1:])) for v in (index, structure)]


def _gaussian_window(size, sigma, x):
    """Return Gaussian weights ``[size, size, channels, 1]``, with sum 1 for each channel."""
    squares = numbers_like([(i - (size - 1) / 2) ** 2 for i in range(size)], x)
    row = exp(squares * (-0.5 / sigma**2))
    row = row / reduce_sum(row)
    plane = reshape(row, (size, 1, 1, 1)) * reshape(row, (1, size, 1, 1))
    return concat([plane] * x.shape[-1], axis=2)
