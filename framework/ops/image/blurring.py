"""`gaussian_blur`: the mean of the pixels around each pixel, with Gaussian weights."""

from __future__ import annotations

from collections.abc import Sequence

from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.conversion import cast
from ..array.creation import range as arange
from ..array.joining import unstack
from ..array.shape import broadcast_to, expand_dims, reshape
from ..convolution.conv import depthwise_conv2d
from ..math.comparison import less_equal, where
from ..math.elementwise import abs, exp, square
from ..math.reduction import reduce_sum


def gaussian_blur(
    images: Tensor, kernel_size: Sequence[int], sigma: TensorLike
) -> Tensor:
    """Gaussian blur: convolve each channel with a Gaussian of widths ``sigma``.

    The images are padded with zeros. ``kernel_size`` and ``sigma`` have two numbers
    each, for the horizontal and the vertical axis.

    Shapes:
        ``images`` ``[batch, height, width, channels]``.
    """
    widths = unstack(cast(convert_to_tensor(sigma), images.dtype))
    across, down = [
        gaussian_window(size, width) for size, width in zip(kernel_size, widths)
    ]
    return blurred(images, expand_dims(down, -1) * across, kernel_size)


def blurred(images: Tensor, kernel: Tensor, kernel_size: Sequence[int]) -> Tensor:
    """Convolve each channel with the kernel, zero-padded."""
    kernel = reshape(kernel, (*kernel_size, 1, 1))  # as Keras, not transposed
    kernel = broadcast_to(kernel, (*kernel_size, images.shape[-1], 1))
    return depthwise_conv2d(images, kernel, (1, 1, 1, 1), "SAME")


def gaussian_window(size: int, sigma: Tensor, within: Tensor | None = None) -> Tensor:
    """Return ``size`` Gaussian weights with sum 1; 0 if beyond ``within`` from the center."""
    x = arange(size, dtype=sigma.dtype) - (size - 1) / 2
    weights = exp(square(x / sigma) * -0.5)
    if within is not None:
        weights = where(less_equal(abs(x), within), weights, 0.0)
    return weights / reduce_sum(weights)
