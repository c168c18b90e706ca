"""Discrete Fourier and cosine transforms, over the last axes.

Transforms keep the precision of their input. Forward transforms are not scaled, inverse
transforms divide by the number of entries. In the convention of backward passes (see
`record`) the gradient of a transform is the same transform of the cotangent: its matrix
is symmetric.
"""

from __future__ import annotations

import math

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    ShapeError,
    TracingError,
    cast_advice,
)
from tapewright.core.op_definition.costs import size_of
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    batch_leading,
    check_at_least,
    check_choice,
    infer_like_input,
    normalize_axis,
)
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.typing import (
    Axes,
    Axis,
    IntLike,
    ShapeLike,
    TensorLike,
    as_axes,
    as_shape,
)

from ..array.conversion import cast, conj, real
from ..array.joining import concat, pad, reverse, roll_p

__all__ = [
    "dct",
    "fft",
    "fft2d",
    "fft3d",
    "fftshift",
    "idct",
    "ifft",
    "ifft2d",
    "ifft3d",
    "ifftshift",
    "irfft",
    "irfft2d",
    "irfft3d",
    "rfft",
    "rfft2d",
    "rfft3d",
]


# ------------------------------------------------------------------ complex transforms


def _cost(inputs, outputs, axes=(-1,), **attributes):
    x = max(inputs[0], outputs[0], key=size_of)
    return sum([int(5 * size_of(x) * math.log2(max(x.shape[a], 1))) for a in axes])


@primitive(name="fft", type_name="FFT", linear=True, cost=_cost, batch=batch_leading)
def fourier(xp, input: TensorLike, axes: Axes = (-1,), inverse: bool = False):
    if (
        input.dtype.kind != "c"
        or input.ndim < len(axes)
        or not _differ(axes, input.ndim)
    ):
        raise ValueError("not complex, or too few axes")  # `infer` says it better
    if not input.size:
        normalize_axis("fft", tuple(axes), input.ndim)
        return input.copy()
    if len(axes) == 1:
        transform = xp.fft.ifft if inverse else xp.fft.fft
        return transform(input, axis=axes[0])
    return (xp.fft.ifftn if inverse else xp.fft.fftn)(input, axes=axes)


def _differ(axes, rank):
    return len(axes) == 1 or len({a % max(rank, 1) for a in axes}) == len(axes)


@fourier.infer
def _(input, axes, inverse):
    who = "ifft" if inverse else "fft"
    if not input.dtype.is_complex:
        what = f"input must be complex; {cast_advice('input', 'complex64')}"
        raise DTypeError(who, what, input=input)
    normalize_axis(who, tuple(axes), input.shape.rank)
    return input


@fourier.vjp("input")
def _(g, axes, inverse):
    return fourier(g, axes, inverse)


@fourier.diagonal
def _(diagonal, input, *, axes, inverse):
    return None if diagonal[0] in axes else diagonal[0]


def fft(input: TensorLike, name: str | None = None) -> Tensor:
    """Discrete Fourier transform (FFT) along the last axis, of complex numbers.

    It is ``sum_n input[n] * exp(-2 pi i k n / N)``.

    Args:
        input: Complex tensor ``[..., N]``.

    Shapes:
        ``[..., N]``, input and result.

    Example:
        >>> tw.signal.fft([1.0 + 0j, 2.0, 3.0, 4.0]).numpy()
        array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return fourier(input, (-1,), False)


def ifft(input: TensorLike, name: str | None = None) -> Tensor:
    """Inverse discrete Fourier transform along the last axis.

    It is the inverse of `fft`: ``sum_k input[k] * exp(2 pi i k n / N) / N``.

    Args:
        input: Complex tensor ``[..., N]``.

    Shapes:
        ``[..., N]``, input and result.

    Example:
        >>> tw.signal.ifft(tw.signal.fft([1.0 + 0j, 2.0])).numpy()
        array([1.+0.j, 2.+0.j])
    """
    return fourier(input, (-1,), True)


def fft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """2-D discrete Fourier transform, along the last two axes; see `fft`.

    Args:
        input: Complex tensor ``[..., M, N]``.

    Example:
        >>> tw.signal.fft2d([[1.0 + 0j, 2.0], [3.0, 4.0]]).numpy()
        array([[10.+0.j, -2.+0.j],
               [-4.+0.j,  0.+0.j]])
    """
    return fourier(input, (-2, -1), False)


def ifft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """Inverse 2-D discrete Fourier transform, the inverse of `fft2d`.

    Args:
        input: Complex tensor ``[..., M, N]``.
    """
    return fourier(input, (-2, -1), True)


def fft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """3-D discrete Fourier transform, along the last three axes; see `fft`.

    Args:
        input: Complex tensor ``[..., L, M, N]``.
    """
    return fourier(input, (-3, -2, -1), False)


def ifft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """Inverse 3-D discrete Fourier transform, the inverse of `fft3d`.

    Args:
        input: Complex tensor ``[..., L, M, N]``.
    """
    return fourier(input, (-3, -2, -1), True)


# --------------------------------------------------------- transforms of real numbers


@primitive(
    name="rfft",
    type_name="RFFT",
    half=False,
    linear=True,
    cost=_cost,
    batch=batch_leading,
)
def half_spectrum(xp, input: TensorLike):
    wide = input.dtype.kind == "f" and input.dtype.itemsize > 2
    if not wide or not input.ndim:
        raise ValueError("not real, or nothing there")  # `infer` says it better
    if not input.shape[-1]:
        return xp.zeros(input.shape, xp.result_type(input.dtype, xp.complex64))
    return xp.fft.rfft(input)


@half_spectrum.infer
def _(input):
    if input.dtype not in ("float32", "float64"):
        advice = cast_advice("input_tensor", "float32")
        what = f"input_tensor must be float32 or float64; {advice}"
        raise DTypeError("rfft", what, input_tensor=input)
    if input.shape.rank == 0:
        raise ShapeError("rfft", "input_tensor must have an axis", input_tensor=input)
    size = input.shape[-1]
    size = None if size is None else half_size(size)
    return TensorSpec(input.shape[:-1] + (size,), _complex_of(input.dtype))


def half_size(length):
    """Return the size of the half spectrum of ``length`` real numbers; 0 for 0."""
    return 0 if type(length) is int and length == 0 else length // 2 + 1


def whole_size(half):
    """Return the even number of real numbers with a half spectrum of this size."""
    return 0 if type(half) is int and half == 0 else 2 * (half - 1)


def _complex_of(dtype):
    return dtypes.complex64 if dtype == dtypes.float32 else dtypes.complex128


@half_spectrum.vjp("input")
def _(g, input_shape):
    count = input_shape[-1]
    halved = _weighed(conj(g), count, 0.5)
    return from_half_spectrum(halved, count) * float(count)


@primitive(
    name="irfft", type_name="IRFFT", linear=True, cost=_cost, batch=batch_leading
)
def from_half_spectrum(xp, input: TensorLike, length: int):
    if (
        input.dtype.kind != "c"
        or length < 0
        or input.shape[-1:] != (half_size(length),)
    ):
        raise ValueError("not complex, or of another length")  # `infer` says it better
    if not length:
        return xp.zeros(input.shape, input.real.dtype)
    return xp.fft.irfft(input, length)


@from_half_spectrum.infer
def _(input, length):
    if not input.dtype.is_complex:
        raise DTypeError("irfft", "input_tensor must be complex", input_tensor=input)
    check_at_least("irfft", 0, fft_length=length)
    if input.shape.rank == 0 or input.shape[-1] not in (None, half_size(length)):
        what = f"the last axis of input_tensor must have size {half_size(length)}"
        raise ShapeError("irfft", what, input_tensor=input)
    return TensorSpec(input.shape[:-1] + (length,), input.dtype.real_dtype)


@from_half_spectrum.vjp("input")
def _(g, length):
    doubled = _weighed(conj(half_spectrum(g)), length, 2.0)
    return doubled * (1.0 / max(length, 1))


@half_spectrum.diagonal
@from_half_spectrum.diagonal
def _(axes, input, **attributes):
    return None if axes[0] == -1 else axes[0]


@primitive(
    name="weigh_half_spectrum", linear=True, infer=infer_like_input, batch=batch_leading
)
def _weighed(xp, x: TensorLike, length: int, weight: float):
    """Multiply by ``weight``, except for entries that occur once in a whole spectrum.

    These are the entries 0 and N / 2.
    """
    result = x * x.dtype.type(weight)
    if not length:
        return result
    result[..., 0] = x[..., 0]
    if length % 2 == 0:
        result[..., -1] = x[..., -1]
    return result


@_weighed.vjp("x")
def _(g, length, weight):
    return _weighed(g, length, weight)


@_weighed.diagonal
def _(axes, x, *, length, weight):
    return axes[0]


def _lengths(who, fft_length, count, default):
    """Return the sizes to transform, of the last ``count`` axes."""
    if fft_length is None:
        return list(default)
    try:
        given = as_shape(fft_length)
    except TracingError:
        raise
    except TypeError:
        given = ()
    if len(given) != count or any([n < 0 for n in given]):
        raise InvalidArgumentError(
            f"{who}: fft_length must be {count} integer{'s' * (count > 1)}, 0 or more, "
            f"got {fft_length}"
        )
    return list(given)


def fitted(x, lengths):
    """Crop ``x``, or pad it with zeros, to these sizes of its last axes."""
    sizes = tuple(x.shape)[len(x.shape) - len(lengths) :]
    if list(sizes) == lengths:
        return x
    x = x[(..., *[slice(n) for n in lengths])]
    behind = [(0, max(n - size, 0)) for n, size in zip(lengths, sizes)]
    return pad(x, [(0, 0)] * (len(x.shape) - len(lengths)) + behind)


def _forward(who, input, fft_length, count):
    x = convert_to_tensor(input)
    _check_rank(who, x, count)
    x = fitted(x, _lengths(who, fft_length, count, x.shape[len(x.shape) - count :]))
    half = half_spectrum(x)
    return half if count == 1 else fourier(half, tuple(range(-count, -1)), False)


def _backward(who, input, fft_length, count):
    x = convert_to_tensor(input)
    _check_rank(who, x, count)
    *outer, last = x.shape[len(x.shape) - count :]
    lengths = _lengths(who, fft_length, count, [*outer, whole_size(last)])
    x = fitted(x, [*lengths[:-1], half_size(lengths[-1])])
    if count > 1:
        x = fourier(x, tuple(range(-count, -1)), True)
    return from_half_spectrum(x, length=lengths[-1])


def _check_rank(who, x, count):
    if len(x.shape) < count:
        raise ShapeError(
            who, f"input_tensor must have {count} axes or more", input_tensor=x
        )


def rfft(
    input_tensor: TensorLike,
    fft_length: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Discrete Fourier transform of real numbers, along the last axis.

    The result has the first ``N // 2 + 1`` entries of `fft`, which determine the
    others.

    Args:
        input_tensor: Real tensor ``[..., n]``.
        fft_length: Length N of the transform, an integer or a list of one, to which the
            last axis is cropped or zero-padded; its size by default.

    Shapes:
        ``[..., n]`` to ``[..., N // 2 + 1]``, complex.

    Raises:
        ValueError: If ``fft_length`` is negative or a longer list.

    Example:
        >>> tw.signal.rfft([1.0, 2.0, 3.0, 4.0]).numpy()
        array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _forward("rfft", input_tensor, fft_length, 1)


def irfft(
    input_tensor: TensorLike,
    fft_length: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Inverse of `rfft`: a real signal of ``fft_length`` entries.

    Args:
        input_tensor: Complex tensor ``[..., n]``, a half spectrum.
        fft_length: Length of the result, an integer or a list of one; by default the
            even length ``2 * (n - 1)``.

    Shapes:
        ``[..., n]``, complex, to ``[..., fft_length]``.

    Example:
        >>> tw.signal.irfft([10.0 + 0j, -2.0 + 2j, -2.0]).numpy()
        array([1., 2., 3., 4.])
    """
    return _backward("irfft", input_tensor, fft_length, 1)


def rfft2d(
    input_tensor: TensorLike,
    fft_length: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """2-D discrete Fourier transform of real numbers.

    It is `rfft` along the last axis and `fft` along the one before.

    Args:
        input_tensor: Real tensor ``[..., m, n]``.
        fft_length: Two lengths ``(M, N)``, to which the axes are cropped or
            zero-padded; their sizes by default.

    Shapes:
        ``[..., m, n]`` to ``[..., M, N // 2 + 1]``, complex.

    Example:
        >>> tw.signal.rfft2d([[1.0, 2.0], [3.0, 4.0]]).numpy()
        array([[10.+0.j, -2.+0.j],
               [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return _forward("rfft2d", input_tensor, fft_length, 2)


def irfft2d(
    input_tensor: TensorLike,
    fft_length: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Inverse of `rfft2d`: a real signal, along the last two axes.

    Args:
        input_tensor: Complex tensor ``[..., m, n]``.
        fft_length: Two lengths of the result, by default ``(m, 2 * (n - 1))``.

    Shapes:
        ``[..., m, n]``, complex, to ``[..., *fft_length]``.

    Example:
        >>> tw.signal.irfft2d(tw.signal.rfft2d([[1.0, 2.0], [3.0, 4.0]])).numpy()
        array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    return _backward("irfft2d", input_tensor, fft_length, 2)


def rfft3d(
    input_tensor: TensorLike,
    fft_length: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """3-D discrete Fourier transform of real numbers.

    It is `rfft` along the last axis and `fft` along the two before.

    Args:
        input_tensor: Real tensor ``[..., l, m, n]``.
        fft_length: Three lengths ``(L, M, N)``, to which the axes are cropped or
            zero-padded; their sizes by default.

    Shapes:
        ``[..., l, m, n]`` to ``[..., L, M, N // 2 + 1]``, complex.
    """
    return _forward("rfft3d", input_tensor, fft_length, 3)


def irfft3d(
    input_tensor: TensorLike,
    fft_length: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Inverse of `rfft3d`: a real signal, along the last three axes.

    Args:
        input_tensor: Complex tensor ``[..., l, m, n]``.
        fft_length: Three lengths of the result, by default ``(l, m, 2 * (n - 1))``.

    Shapes:
        ``[..., l, m, n]``, complex, to ``[..., *fft_length]``.
    """
    return _backward("irfft3d", input_tensor, fft_length, 3)


def fftshift(x: TensorLike, axes: Axes = None, name: str | None = None) -> Tensor:
    """Shift the zero frequency to the middle of ``axes``.

    Args:
        x: Spectrum, a tensor of any rank.
        axes: Axes to shift, all by default.

    Example:
        >>> tw.signal.fftshift([0, 1, 2, -2, -1]).numpy()
        array([-2, -1,  0,  1,  2], dtype=int32)
    """
    return _shifted("fftshift", x, axes, lambda n: n // 2)


def ifftshift(x: TensorLike, axes: Axes = None, name: str | None = None) -> Tensor:
    """Inverse of `fftshift`.

    Args:
        x: Shifted spectrum, a tensor of any rank.
        axes: Axes to shift, all by default.

    Example:
        >>> tw.signal.ifftshift([-2, -1, 0, 1, 2]).numpy()
        array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))


def _shifted(who, x, axes, shift):
    x = convert_to_tensor(x)
    axes = normalize_axis(who, as_axes(axes), len(x.shape), "axes")
    return roll_p(x, [shift(x.shape[a]) for a in axes], list(axes))


# ------------------------------------------------------------------- cosine transforms


def dct(
    input: TensorLike,
    type: int = 2,
    n: IntLike | None = None,
    axis: Axis = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Discrete cosine transform (DCT) of ``type`` 1, 2, 3 or 4 along the last axis.

    Type 2 is ``2 sum_n input[n] * cos(pi k (2 n + 1) / 2 N)``; type 3 is its inverse,
    times 2 N.

    Args:
        input: Real tensor ``[..., N]``.
        type: Type of the transform: 1, 2, 3 or 4.
        n: Size to which the axis is cropped or zero-padded; its size by default.
        axis: -1, the only supported axis.
        norm: None, or "ortho" for a transform with an orthogonal matrix.

    Shapes:
        ``[..., N]``, input and result.

    Raises:
        ValueError: If ``type``, ``axis`` or ``norm`` is invalid, or type 1 has a norm.

    Example:
        >>> tw.signal.dct([1.0, 1.0]).numpy()
        array([4., 0.], dtype=float32)
    """
    x = convert_to_tensor(input)
    _check_cosine(x, type, axis, norm)
    if n is not None:
        lengths = _lengths("dct", n, 1, None)
        if lengths[0] == 0:
            raise InvalidArgumentError(
                f"dct: n must be a positive integer or None, got {n}"
            )
        x = fitted(x, lengths)
    return _COSINE[type](x, x.shape[-1], norm)


def idct(
    input: TensorLike,
    type: int = 2,
    n: IntLike | None = None,
    axis: Axis = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Inverse discrete cosine transform of ``type`` 1, 2, 3 or 4 along the last axis.

    Without a norm, the result is multiplied by 2 N (by 2 N - 2 for type 1).

    Args:
        input: Real tensor ``[..., N]``.
        type: Type of the transform: 1, 2, 3 or 4.
        n: Size to which the axis is cropped or zero-padded; its size by default.
        axis: -1, the only supported axis.
        norm: None, or "ortho" for a transform with an orthogonal matrix.

    Shapes:
        ``[..., N]``, input and result.

    Raises:
        ValueError: If ``type``, ``axis`` or ``norm`` is invalid, or type 1 has a norm.

    Example:
        >>> tw.signal.idct(tw.signal.dct([1.0, 1.0])).numpy() / 4
        array([1., 1.], dtype=float32)
    """
    return dct(input, {2: 3, 3: 2}.get(type, type), n, axis, norm)


def _check_cosine(x, kind, axis, norm):
    check_choice("dct", "type", kind, (1, 2, 3, 4))
    check_choice("dct", "axis", axis, (-1,))
    if norm not in (None, "ortho") or (norm and kind == 1):
        raise InvalidArgumentError(
            f"dct: norm must be None, or 'ortho' for types 2 to 4, got {norm!r}"
        )
    if x.dtype not in ("float32", "float64"):
        what = f"input must be float32 or float64; {cast_advice('input', 'float32')}"
        raise DTypeError("dct", what, input=x)
    if x.shape.rank == 0 or x.shape[-1] < 1 + (kind == 1):
        least = 1 + (kind == 1)
        raise ShapeError(
            "dct", f"the last axis must have size {least} or more", input=x
        )


def _first(x, count, norm):
    back = reverse(x[..., 1:-1], [-1])
    return real(half_spectrum(concat([x, back], -1)))


def _second(x, count, norm):
    spectrum = rfft(x, [2 * count])[..., :count]
    result = real(spectrum * constant_like(x, _turns(count, -1)))
    if norm is None:
        return result
    return result * constant_like(
        x, _ends(count, 0.5 / math.sqrt(count), math.sqrt(2.0))
    )


def _third(x, count, norm):
    if norm is None:
        x = x * float(count)
    else:
        x = x * constant_like(x, _ends(count, math.sqrt(count), math.sqrt(0.5)))
    spectrum = cast(x, _complex_of(x.dtype)) * constant_like(x, _turns(count, 1))
    return irfft(spectrum, [2 * count])[..., :count]


def _fourth(x, count, norm):
    result = _second(fitted(x, [2 * count]), 2 * count, None)[..., 1::2]
    return result if norm is None else result * math.sqrt(0.5 / count)


_COSINE = {1: _first, 2: _second, 3: _third, 4: _fourth}


def _turns(count, sign):
    return 2.0 * np.exp(sign * 0.5j * np.pi / count * np.arange(count))


def _ends(count, first, ratio):
    """Return ``first``, then ``first * ratio`` for all other entries."""
    return np.where(np.arange(count) == 0, first, first * ratio)


def constant_like(x, values):
    """Convert NumPy numbers to a tensor in the precision and on the device of ``x``."""
    kind = _complex_of(x.dtype) if values.dtype.kind == "c" else x.dtype
    return new_tensor(module_of(x).asarray(values.astype(kind.dtype)))
