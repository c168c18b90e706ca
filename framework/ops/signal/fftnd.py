"""Discrete Fourier transforms along any axes; see `fft` for the last axes."""

from __future__ import annotations

import math

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.rules import check_choice, normalize_axis
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import Axes, ShapeLike, TensorLike, as_axes, as_shape

from ..array.shape import transpose
from .fft import (
    fitted,
    fourier,
    from_half_spectrum,
    half_size,
    half_spectrum,
    whole_size,
)

__all__ = ["fftnd", "ifftnd", "irfftnd", "rfftnd"]


def fftnd(
    input_tensor: TensorLike,
    fft_length: ShapeLike | None = None,
    axes: Axes = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Discrete Fourier transform along ``axes``, of complex numbers.

    Args:
        input_tensor: Complex tensor.
        fft_length: Size per axis to which it is cropped or zero-padded; the axes' sizes
            by default.
        axes: Axes to transform; by default all, or the last ones, one for each
            ``fft_length``.
        norm: None or "backward" divides the inverse by the number of entries, "forward"
            divides the forward transform by it, "ortho" divides both by its square
            root.

    Raises:
        ValueError: If ``norm`` is invalid, or lengths and axes do not match.

    Example:
        >>> tw.fftnd([[1.0 + 0j, 2.0], [3.0, 4.0]]).numpy()
        array([[10.+0.j, -2.+0.j],
               [-4.+0.j,  0.+0.j]])
    """
    x, axes, lengths = _prepared("fftnd", input_tensor, fft_length, axes, norm)
    x = fourier(fitted(x, lengths), _last(axes), False)
    return _scaled(_back(x, axes), math.prod(lengths), norm, False)


def ifftnd(
    input_tensor: TensorLike,
    fft_length: ShapeLike | None = None,
    axes: Axes = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Inverse discrete Fourier transform along ``axes``, the inverse of `fftnd`.

    Args:
        input_tensor: Complex tensor.
        fft_length: Size per axis to which it is cropped or zero-padded; the axes' sizes
            by default.
        axes: Axes to transform; by default all, or the last ones, one for each
            ``fft_length``.
        norm: None or "backward" divides the inverse by the number of entries, "forward"
            divides the forward transform by it, "ortho" divides both by its square
            root.

    Raises:
        ValueError: If ``norm`` is invalid, or lengths and axes do not match.

    Example:
        >>> tw.ifftnd(tw.fftnd([[1.0 + 0j, 2.0], [3.0, 4.0]])).numpy()
        array([[1.+0.j, 2.+0.j],
               [3.+0.j, 4.+0.j]])
    """
    x, axes, lengths = _prepared("ifftnd", input_tensor, fft_length, axes, norm)
    x = fourier(fitted(x, lengths), _last(axes), True)
    return _scaled(_back(x, axes), math.prod(lengths), norm, True)


def rfftnd(
    input_tensor: TensorLike,
    fft_length: ShapeLike | None = None,
    axes: Axes = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Discrete Fourier transform of real numbers along ``axes``.

    It is `fftnd`, with only the first ``N // 2 + 1`` entries along the last of
    ``axes``.

    Args:
        input_tensor: Real tensor.
        fft_length: Size per axis to which it is cropped or zero-padded; the axes' sizes
            by default.
        axes: Axes to transform; by default all, or the last ones, one for each
            ``fft_length``.
        norm: None or "backward" divides the inverse by the number of entries, "forward"
            divides the forward transform by it, "ortho" divides both by its square
            root.

    Raises:
        ValueError: If ``norm`` is invalid, or lengths and axes do not match.

    Example:
        >>> tw.rfftnd([[1.0, 2.0, 3.0, 4.0]]).numpy()
        array([[10.+0.j, -2.+2.j, -2.+0.j]], dtype=complex64)
    """
    x, axes, lengths = _prepared("rfftnd", input_tensor, fft_length, axes, norm)
    x = half_spectrum(fitted(x, lengths))
    if len(axes) > 1:
        x = fourier(x, _last(axes)[:-1], False)
    return _scaled(_back(x, axes), math.prod(lengths), norm, False)


def irfftnd(
    input_tensor: TensorLike,
    fft_length: ShapeLike | None = None,
    axes: Axes = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Inverse of `rfftnd`, with a real result.

    By default the last of ``axes`` has the even length ``2 * (n - 1)`` in the result.

    Args:
        input_tensor: Complex tensor.
        fft_length: Size per axis to which it is cropped or zero-padded; the axes' sizes
            by default.
        axes: Axes to transform; by default all, or the last ones, one for each
            ``fft_length``.
        norm: None or "backward" divides the inverse by the number of entries, "forward"
            divides the forward transform by it, "ortho" divides both by its square
            root.

    Raises:
        ValueError: If ``norm`` is invalid, or lengths and axes do not match.

    Example:
        >>> tw.irfftnd(tw.rfftnd([[1.0, 2.0, 3.0, 4.0]])).numpy()
        array([[1., 2., 3., 4.]], dtype=float32)
    """
    x, axes, lengths = _prepared("irfftnd", input_tensor, fft_length, axes, norm, True)
    x = fitted(x, [*lengths[:-1], half_size(lengths[-1])])
    if len(axes) > 1:
        x = fourier(x, _last(axes)[:-1], True)
    x = from_half_spectrum(x, length=lengths[-1])
    return _scaled(_back(x, axes), math.prod(lengths), norm, True)


def _prepared(who, input, fft_length, axes, norm, halved=False):
    """Return the input with the axes moved to the end, the axes, and the lengths."""
    x = convert_to_tensor(input)
    check_choice(who, "norm", norm, (None, "backward", "forward", "ortho"))
    rank = len(x.shape)
    if axes is None:
        count = rank if fft_length is None else len(as_shape(fft_length))
        if not 0 < count <= rank:
            what = f"input_tensor must have {max(count, 1)} axes or more"
            raise ShapeError(who, what, input_tensor=x)
        axes = range(rank - count, rank)
    else:
        axes = normalize_axis(who, as_axes(axes), rank, "axes")
    order = [axis for axis in range(rank) if axis not in axes] + list(axes)
    x = transpose(x, order)
    if fft_length is None:
        lengths = list(x.shape[rank - len(axes) :])
        lengths[-1] = whole_size(lengths[-1]) if halved else lengths[-1]
        return x, order[rank - len(axes) :], lengths
    lengths = list(as_shape(fft_length))
    if len(lengths) != len(axes) or min(lengths) < 0:
        raise InvalidArgumentError(
            f"{who}: fft_length must be {len(axes)} integers, 0 or more, one for each of "
            f"the axes; got {fft_length}"
        )
    return x, list(axes), lengths


def _last(axes):
    return tuple(range(-len(axes), 0))


def _back(x, axes):
    """Move the last axes of ``x`` back to their positions."""
    rank = len(x.shape)
    order = [axis for axis in range(rank) if axis not in axes] + list(axes)
    return transpose(x, [order.index(axis) for axis in range(rank)])


def _scaled(x, count, norm, inverse):
    if norm in (None, "backward") or not count:
        return x
    factor = count**-0.5 if norm == "ortho" else 1.0 / count
    return x * (1.0 / factor if inverse else factor)
