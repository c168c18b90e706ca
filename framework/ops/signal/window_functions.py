"""Frames of signals: cut, weight with a window, transform, and add up again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import DTypeError, ShapeError
from tapewright.core.rules import check_at_least, normalize_axis
from tapewright.core.tensor import (
    Tensor,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.typing import Axis, DTypeLike, IntLike, TensorLike, as_int

from ..array.conversion import cast
from ..array.creation import ones
from ..array.gather import gather, scatter_rows
from ..array.joining import concat, pad, tile
from ..array.shape import reshape
from ..math.bessel import bessel_i0e
from ..math.elementwise import divide, exp, sqrt, square
from ..math.reduction import reduce_sum
from ..math.scan import cumsum
from .fft import constant_like, fitted, irfft, rfft

__all__ = [
    "frame",
    "hamming_window",
    "hann_window",
    "inverse_stft",
    "inverse_stft_window_fn",
    "kaiser_bessel_derived_window",
    "kaiser_window",
    "overlap_and_add",
    "stft",
    "vorbis_window",
]


def frame(
    signal: TensorLike,
    frame_length: IntLike,
    frame_step: IntLike,
    pad_end: bool = False,
    pad_value: TensorLike = 0,
    axis: Axis = -1,
    name: str | None = None,
) -> Tensor:
    """Split ``signal`` into overlapping frames, one every ``frame_step`` entries.

    Args:
        signal: Tensor ``[..., n]``.
        frame_length: Number of entries of a frame, 1 or more.
        frame_step: Distance between the starts of frames, 1 or more.
        pad_end: If True, a frame starts at every multiple of ``frame_step``, and the
            last frames are padded.
        pad_value: Value of the padding.
        axis: Axis to split.

    Shapes:
        ``[..., n]`` to ``[..., frames, frame_length]``; ``axis`` is replaced by two.

    Raises:
        ValueError: If the length or the step is less than 1.

    Example:
        >>> tw.signal.frame([1, 2, 3, 4, 5], 3, 2).numpy()
        array([[1, 2, 3],
               [3, 4, 5]], dtype=int32)
        >>> tw.signal.frame([1, 2, 3, 4], 3, 2, pad_end=True).numpy()
        array([[1, 2, 3],
               [3, 4, 0]], dtype=int32)
    """
    signal = convert_to_tensor(signal)
    length, step = as_int(frame_length), as_int(frame_step)
    rank = len(signal.shape)
    (at,) = normalize_axis("frame", as_int(axis), rank)
    check_at_least("frame", 1, frame_length=length, frame_step=step)
    size = signal.shape[at]
    count = -(-size // step) if pad_end else max(0, 1 + (size - length) // step)
    missing = (count - 1) * step + length - size
    if pad_end and missing > 0:
        sides = [(0, missing if i == at else 0) for i in range(rank)]
        signal = pad(signal, sides, constant_values=pad_value)
    return gather(signal, _beside(signal, _pieces(count, length, step)), axis=at)


def _pieces(count, length, step):
    return np.arange(count)[:, None] * step + np.arange(length)


def _beside(x, indices):
    return new_tensor(module_of(x).asarray(indices.astype(np.int64)))


def overlap_and_add(
    signal: TensorLike, frame_step: IntLike, name: str | None = None
) -> Tensor:
    """Add overlapping frames into one signal, ``frame_step`` apart: the adjoint of `frame`.

    Args:
        signal: Frames ``[..., frames, length]``.
        frame_step: Distance between the starts of frames, 1 or more.

    Shapes:
        ``[..., frames, length]`` to ``[..., (frames - 1) * frame_step + length]``.

    Raises:
        ValueError: If the step is less than 1.

    Example:
        >>> frames = [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
        >>> tw.signal.overlap_and_add(frames, 2).numpy()
        array([1., 1., 2., 1., 1.], dtype=float32)
    """
    signal, step = convert_to_tensor(signal), as_int(frame_step)
    if len(signal.shape) < 2:
        raise ShapeError("overlap_and_add", "signal must have two axes or more",
                         signal=signal)  # fmt: skip
    check_at_least("overlap_and_add", 1, frame_step=step)
    *lead, count, length = signal.shape
    total = (count - 1) * step + length if count else 0
    pieces = _beside(signal, _pieces(count, length, step))
    return scatter_rows(signal, pieces, shape=(*lead, total), axis=len(lead))


def hann_window(
    window_length: IntLike,
    periodic: bool = True,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Hann window, a raised cosine: ``0.5 - 0.5 cos(2 pi n / N)``.

    N is ``window_length`` if it is even and ``periodic``; otherwise
    ``window_length - 1``.

    Args:
        window_length: Number of entries.
        periodic: If True, the window is periodic, for spectral analysis; otherwise
            symmetric.
        dtype: Floating dtype of the result.

    Shapes:
        ``[window_length]``.

    Raises:
        ValueError: If the length is negative.
        TypeError: If ``dtype`` is not floating.

    Example:
        >>> tw.signal.hann_window(4).numpy()
        array([0. , 0.5, 1. , 0.5], dtype=float32)
    """
    return _raised_cosine("hann_window", window_length, periodic, dtype, 0.5)


def hamming_window(
    window_length: IntLike,
    periodic: bool = True,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Hamming window, a raised cosine: ``0.54 - 0.46 cos(2 pi n / N)``.

    N is ``window_length`` if it is even and ``periodic``; otherwise
    ``window_length - 1``.

    Args:
        window_length: Number of entries.
        periodic: If True, the window is periodic, for spectral analysis; otherwise
            symmetric.
        dtype: Floating dtype of the result.

    Shapes:
        ``[window_length]``.

    Raises:
        ValueError: If the length is negative.
        TypeError: If ``dtype`` is not floating.

    Example:
        >>> tw.signal.hamming_window(4).numpy()
        array([0.08, 0.54, 1.  , 0.54], dtype=float32)
    """
    return _raised_cosine("hamming_window", window_length, periodic, dtype, 0.54)


def _ones(who, length, dtype):
    length, dtype = as_int(length), dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise DTypeError(who, f"dtype must be floating, got {dtype.name}")
    return ones([length], dtype), length


def _raised_cosine(who, length, periodic, dtype, middle):
    window, length = _ones(who, length, dtype)
    if length < 2:
        return window
    period = length - 1 + (bool(periodic) and length % 2 == 0)
    phases = 2 * np.pi / period * np.arange(length)
    return window * constant_like(window, middle - (1 - middle) * np.cos(phases))


def kaiser_window(
    window_length: IntLike,
    beta: TensorLike = 12.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Kaiser window: ``I0(beta * sqrt(1 - (2 n / N - 1) ** 2)) / I0(beta)``.

    N is ``window_length - 1``, and I0 a modified Bessel function.

    Args:
        window_length: Number of entries.
        beta: Shape parameter; a larger value makes a narrower window.
        dtype: Floating dtype of the result.

    Shapes:
        ``[window_length]``.

    Raises:
        ValueError: If the length is negative.
        TypeError: If ``dtype`` is not floating.

    Example:
        >>> tw.signal.kaiser_window(3, beta=1.0).numpy()
        array([0.78984827, 1.        , 0.78984827], dtype=float32)
    """
    window, length = _ones("kaiser_window", window_length, dtype)
    if length < 2:
        return window
    beta = cast(convert_to_tensor(beta, dtype_hint=window.dtype), window.dtype)
    at = 2.0 * np.arange(length) / (length - 1) - 1.0
    falling = constant_like(window, np.sqrt(np.maximum(1.0 - at * at, 0.0)))
    inner = beta * falling
    return exp(inner - beta) * (bessel_i0e(inner) / bessel_i0e(beta))


def kaiser_bessel_derived_window(
    window_length: IntLike,
    beta: TensorLike = 12.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Kaiser-Bessel derived (KBD) window, for `mdct`.

    Its squares are normalized partial sums of a `kaiser_window`.

    Args:
        window_length: Number of entries, even; for an odd number, the result has one
            entry less.
        beta: Shape parameter of the `kaiser_window`.
        dtype: Floating dtype of the result.

    Shapes:
        ``[window_length]``.

    Raises:
        ValueError: If the length is negative.
        TypeError: If ``dtype`` is not floating.

    Example:
        >>> tw.signal.kaiser_bessel_derived_window(4).numpy().round(4)
        array([0.0073, 1.    , 1.    , 0.0073], dtype=float32)
    """
    _, length = _ones("kaiser_bessel_derived_window", window_length, dtype)
    sums = cumsum(kaiser_window(length // 2 + 1, beta, dtype))
    half = sqrt(sums[:-1] / sums[-1])
    return concat([half, half[::-1]], axis=0)


def vorbis_window(
    window_length: IntLike,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Vorbis window ``sin(pi / 2 * sin(pi * (n + 0.5) / N) ** 2)``, for `mdct`.

    N is ``window_length``.

    Args:
        window_length: Number of entries.
        dtype: Floating dtype of the result.

    Shapes:
        ``[window_length]``.

    Raises:
        ValueError: If the length is negative.
        TypeError: If ``dtype`` is not floating.

    Example:
        >>> tw.signal.vorbis_window(4).numpy().round(4)
        array([0.228 , 0.9737, 0.9737, 0.228 ], dtype=float32)
    """
    window, length = _ones("vorbis_window", window_length, dtype)
    angles = np.pi * (np.arange(length) + 0.5) / max(length, 1)
    return window * constant_like(window, np.sin(np.pi / 2 * np.sin(angles) ** 2))


def stft(
    signals: TensorLike,
    frame_length: IntLike,
    frame_step: IntLike,
    fft_length: IntLike | None = None,
    window_fn: Callable[..., TensorLike] | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """Short-time Fourier transform (STFT): the spectra of overlapping frames of a signal.

    Args:
        signals: Real tensor ``[..., n]``.
        frame_length: Number of entries of a frame.
        frame_step: Distance between the starts of frames.
        fft_length: Length of the `rfft` of each frame, by default the smallest power of
            two that is not less than ``frame_length``.
        window_fn: Function of the length and a ``dtype`` that returns the weights of a
            frame, or None.
        pad_end: If True, pad the end of the signal with zeros, as in `frame`.

    Shapes:
        ``[..., n]`` to ``[..., frames, fft_length // 2 + 1]``, complex.

    Example:
        >>> tw.signal.stft(tw.ones([16]), frame_length=8, frame_step=4).shape
        TensorShape([3, 5])
    """
    signals = convert_to_tensor(signals)
    pieces = frame(signals, frame_length, frame_step, pad_end)
    if window_fn is not None:
        pieces = pieces * window_fn(as_int(frame_length), dtype=signals.dtype)
    return rfft(pieces, [_enclosing(fft_length, frame_length)])


def _enclosing(fft_length, frame_length):
    if fft_length is not None:
        return as_int(fft_length)
    return 1 << (as_int(frame_length) - 1).bit_length()


def inverse_stft(
    stfts: TensorLike,
    frame_length: IntLike,
    frame_step: IntLike,
    fft_length: IntLike | None = None,
    window_fn: Callable[..., TensorLike] | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """Inverse short-time Fourier transform: the signal of an `stft`.

    It is exact, except at the ends, if ``window_fn`` is created by
    `inverse_stft_window_fn`.

    Args:
        stfts: Complex tensor ``[..., frames, bins]``.
        frame_length: Number of entries of a frame.
        frame_step: Distance between the starts of frames.
        fft_length: Length of the transform of each frame, by default the smallest power
            of two that is not less than ``frame_length``.
        window_fn: Function of the length and a ``dtype`` that returns the weights of a
            frame, or None.

    Shapes:
        ``[..., frames, bins]``, complex, to
        ``[..., (frames - 1) * frame_step + frame_length]``.

    Example:
        >>> spectra = tw.signal.stft(tw.ones([12]), frame_length=4, frame_step=2)
        >>> window_fn = tw.signal.inverse_stft_window_fn(2)
        >>> signal = tw.signal.inverse_stft(spectra, 4, 2, window_fn=window_fn)
        >>> signal.numpy().round(4)[2:-2]
        array([1., 1., 1., 1., 1., 1., 1., 1.], dtype=float32)
    """
    length = as_int(frame_length)
    pieces = irfft(stfts, [_enclosing(fft_length, length)])
    pieces = fitted(pieces, [length])
    if window_fn is not None:
        pieces = pieces * window_fn(length, dtype=pieces.dtype)
    return overlap_and_add(pieces, frame_step)


def inverse_stft_window_fn(
    frame_step: IntLike,
    forward_window_fn: Callable[..., TensorLike] = hann_window,
    name: str | None = None,
) -> Callable[..., Tensor]:
    """Create the window with which `inverse_stft` inverts an `stft`.

    Args:
        frame_step: Distance between the starts of frames.
        forward_window_fn: Window function of the `stft`.

    Returns:
        A function of the length of a frame and a ``dtype``, for ``window_fn`` of
        `inverse_stft`.
    """
    step = as_int(frame_step)

    def inverse_window(frame_length, dtype):
        length = as_int(frame_length)
        forward = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        squares = reshape(fitted(square(forward), [overlaps * step]), [overlaps, step])
        total = tile(reduce_sum(squares, 0), [overlaps])
        return divide(forward, total[:length])

    return inverse_window
