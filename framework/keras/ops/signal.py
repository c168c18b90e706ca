"""`keras.ops` of signals, segments and complex pairs: `fft`, `stft`, `segment_sum`, ...

As in Keras, complex numbers are pairs of tensors: the real and the imaginary part.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapewright.core.dtypes import float32, float64
from tapewright.core.errors import DTypeError, ShapeError, cast_advice
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import TensorLike
from tapewright.ops.array import segment
from tapewright.ops.array.conversion import complex as _complex
from tapewright.ops.array.conversion import imag, real
from tapewright.ops.array.indexing import getitem
from tapewright.ops.array.joining import stack
from tapewright.ops.math.elementwise import norm_sqrt, square
from tapewright.ops.math.reduction import reduce_max, reduce_sum
from tapewright.ops.signal import fft as transforms
from tapewright.ops.signal import window_functions
from tapewright.ops.signal.centered_stft import centered_stft, fitted_window

from .operation import OperationFamily
from .promotion import promote, to_floating

__all__ = [
    "cdist",
    "extract_sequences",
    "fft",
    "fft2",
    "ifft2",
    "irfft",
    "istft",
    "rfft",
    "segment_max",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "stft",
    "view_as_complex",
    "view_as_real",
]

operation = OperationFamily(__name__, "math")


# ------------------------------------------------------------------------ segments


def _specs_of_segments(data, segment_ids, num_segments=None, sorted=False):
    _check_segments(data, segment_ids)
    if num_segments is not None:
        return None
    return TensorSpec([None, *data.shape[1:]], data.dtype)


def _check_segments(data, segment_ids):
    if len(segment_ids.shape) != 1 or not len(data.shape):
        problem = "segment_ids must be a vector, with a number for each row of data"
    elif not agree(data.shape[0], segment_ids.shape[0]):
        problem = "segment_ids must have a number for each row of data"
    else:
        return
    raise ShapeError("segments", problem, data=data, segment_ids=segment_ids)


_SEGMENT_ARGUMENTS = {
    "data": "Input tensor.",
    "segment_ids": "Segment of each row, integers; rows with a negative id are ignored.",
    "num_segments": "Number of segments, by default the largest id plus 1; required in a "
    "traced function.",
    "sorted": "Ignored.",
}
_SEGMENTS = """
Shapes:
    ``data`` ``[n, ...]``, ``segment_ids`` ``[n]``, result ``[num_segments, ...]``.

Raises:
    ValueError: If an id is not below ``num_segments``.
"""


def _segment_reduction(name, op, noun, example):
    def function(
        data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None,
        sorted: bool = False,
    ) -> Tensor:  # fmt: skip
        data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        _check_segments(data, segment_ids)
        if num_segments is None:
            num_segments = reduce_max(segment_ids) + 1
        return op(data, segment_ids, num_segments)

    summary = f"Compute the {noun} of the rows of ``data`` in each segment."
    details = f"""{_SEGMENTS}
Example:
    >>> keras.ops.{name}([2, 3, 4], [0, 0, 1]).numpy()
    array({example}, dtype=int32)
"""
    return operation.named(
        name, function, summary, details, _SEGMENT_ARGUMENTS,
        call="data segment_ids", specs=_specs_of_segments,
    )  # fmt: skip


segment_sum = _segment_reduction(
    "segment_sum", segment.unsorted_segment_sum, "sum", [5, 4]
)
segment_max = _segment_reduction(
    "segment_max", segment.unsorted_segment_max, "maximum", [3, 4]
)
segment_min = _segment_reduction(
    "segment_min", segment.unsorted_segment_min, "minimum", [2, 4]
)
segment_prod = _segment_reduction(
    "segment_prod", segment.unsorted_segment_prod, "product", [6, 4]
)


# ----------------------------------------------------------------- complex numbers


@operation
def view_as_complex(x: TensorLike) -> Tensor:
    """Convert pairs of real numbers to complex numbers: ``x[..., 0] + i x[..., 1]``.

    Args:
        x: Real and imaginary parts ``[..., 2]``.

    Shapes:
        ``[..., 2]`` to ``[...]``.

    Raises:
        ValueError: If the last axis does not have size 2.

    Example:
        >>> keras.ops.view_as_complex([[1.0, 2.0]]).numpy()
        array([1.+2.j], dtype=complex64)
    """
    x = to_floating(x)
    if x.shape[-1] != 2:
        raise ValueError(
            f"view_as_complex: the last axis of x must have size 2, got {tuple(x.shape)}"
        )
    return _complex(x[..., 0], x[..., 1])


@operation
def view_as_real(x: TensorLike) -> Tensor:
    """Convert complex numbers to pairs of real numbers, along a new last axis.

    Args:
        x: Complex tensor.

    Shapes:
        ``[...]`` to ``[..., 2]``.

    Example:
        >>> keras.ops.view_as_real([1.0 + 2j]).numpy()
        array([[1., 2.]])
    """
    x = convert_to_tensor(x)
    return stack([real(x), imag(x)], -1)


def _to_complex(who, x):
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(
            f"{who}: x must be a pair (real, imaginary), got {type(x).__name__}"
        )
    return _complex(*promote(*[_floating(who, part) for part in x]))


def _floating(who, x):
    """Return ``x`` as a floating tensor; as in Keras, integers are not cast but rejected."""
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        what = f"x must be floating; {cast_advice('x', 'float32')}"
        raise DTypeError(who, what, x=x)
    return x


def _to_pair(x):
    return real(x), imag(x)


# -------------------------------------------------------------------- transforms


@operation(class_name="FFT")
def fft(x: Sequence[TensorLike]) -> tuple[Tensor, Tensor]:
    """Discrete Fourier transform along the last axis.

    Args:
        x: Pair of floating tensors of one shape: the real and the imaginary part.

    Returns:
        Pair of the same shape.

    Raises:
        ValueError: If ``x`` is not a pair, or not floating.

    Example:
        >>> real, imaginary = keras.ops.fft(([1.0, 2.0], [0.0, 0.0]))
        >>> real.numpy(), imaginary.numpy()
        (array([ 3., -1.], dtype=float32), array([0., 0.], dtype=float32))
    """
    return _to_pair(transforms.fft(_to_complex("fft", x)))


@operation(class_name="FFT2")
def fft2(x: Sequence[TensorLike]) -> tuple[Tensor, Tensor]:
    """Discrete Fourier transform along the last two axes.

    Args:
        x: Pair of floating tensors of one shape: the real and the imaginary part.

    Returns:
        Pair of the same shape.

    Raises:
        ValueError: If ``x`` is not a pair, or not floating.
    """
    return _to_pair(transforms.fft2d(_to_complex("fft2", x)))


@operation(class_name="IFFT2")
def ifft2(x: Sequence[TensorLike]) -> tuple[Tensor, Tensor]:
    """Inverse discrete Fourier transform along the last two axes; see `fft2`.

    Args:
        x: Pair of floating tensors of one shape: the real and the imaginary part.

    Returns:
        Pair of the same shape.

    Raises:
        ValueError: If ``x`` is not a pair, or not floating.
    """
    return _to_pair(transforms.ifft2d(_to_complex("ifft2", x)))


@operation(class_name="RFFT")
def rfft(x: TensorLike, fft_length: int | None = None) -> tuple[Tensor, Tensor]:
    """Discrete Fourier transform of real numbers along the last axis.

    The result is the first half, which determines the other.

    Args:
        x: Floating tensor.
        fft_length: Length to which the last axis is cropped or padded with zeros, its
            size by default.

    Shapes:
        ``[..., n]`` to a pair of ``[..., fft_length // 2 + 1]``.

    Returns:
        Pair of the real and the imaginary part.

    Raises:
        ValueError: If ``x`` is not floating.

    Example:
        >>> real, imaginary = keras.ops.rfft([1.0, 2.0, 3.0, 4.0])
        >>> real.numpy(), imaginary.numpy()
        (array([10., -2., -2.], dtype=float32), array([0., 2., 0.], dtype=float32))
    """
    length = None if fft_length is None else [fft_length]
    return _to_pair(transforms.rfft(_floating("rfft", x), length))


@operation(class_name="IRFFT")
def irfft(x: Sequence[TensorLike], fft_length: int | None = None) -> Tensor:
    """Inverse of `rfft`: real numbers from a complex pair.

    Args:
        x: Pair of floating tensors ``[..., n]``: the real and the imaginary part.
        fft_length: Length of the result, ``2 * (n - 1)`` by default.

    Shapes:
        A pair of ``[..., n]`` to ``[..., fft_length]``.

    Raises:
        ValueError: If ``x`` is not a pair, or not floating.

    Example:
        >>> keras.ops.irfft(keras.ops.rfft([1.0, 2.0, 3.0, 4.0])).numpy()
        array([1., 2., 3., 4.], dtype=float32)
    """
    length = None if fft_length is None else [fft_length]
    return transforms.irfft(_to_complex("irfft", x), length)


@operation
def extract_sequences(
    x: TensorLike, sequence_length: int, sequence_stride: int
) -> Tensor:
    """Split the last axis into overlapping frames.

    Args:
        x: Input tensor ``[..., n]``.
        sequence_length: Length of the frames.
        sequence_stride: Distance between the starts of frames.

    Shapes:
        ``[..., n]`` to ``[..., frames, sequence_length]``.

    Raises:
        ValueError: If the length or the stride is below 1.

    Example:
        >>> keras.ops.extract_sequences([1, 2, 3, 4, 5], 3, 2).numpy()
        array([[1, 2, 3],
               [3, 4, 5]], dtype=int32)
    """
    return window_functions.frame(x, sequence_length, sequence_stride)


@operation(class_name="STFT")
def stft(
    x: TensorLike,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: str | TensorLike | None = "hann",
    center: bool = True,
) -> tuple[Tensor, Tensor]:
    """Short-time Fourier transform: `rfft` of overlapping windowed frames of a signal.

    Args:
        x: Signals ``[..., n]`` of float32 or float64.
        sequence_length: Length of the frames.
        sequence_stride: Distance between the starts of frames.
        fft_length: Length of the transforms, at least ``sequence_length``.
        window: "hann", "hamming", a vector, or None for no window.
        center: If True, mirror the signal at both ends, so that the middle of frame i
            is at ``i * sequence_stride``.

    Shapes:
        ``[..., n]`` to a pair of ``[..., frames, fft_length // 2 + 1]``.

    Returns:
        Pair of the real and the imaginary part.

    Raises:
        TypeError: If ``x`` is neither float32 nor float64.
        ValueError: If ``window`` is unknown, or ``fft_length`` is below
            ``sequence_length``.

    Example:
        >>> real, imaginary = keras.ops.stft([1.0] * 16, 8, 4, fft_length=8)
        >>> real.shape
        TensorShape([5, 5])
    """
    x = convert_to_tensor(x)
    if x.dtype not in (float32, float64):
        what = f"x must be float32 or float64; {cast_advice('x', 'float32')}"
        raise DTypeError("stft", what, x=x)
    spectra = centered_stft(
        "stft", x, sequence_length, sequence_stride, fft_length, window, center
    )
    return _to_pair(spectra)


@operation(class_name="ISTFT")
def istft(
    x: Sequence[TensorLike],
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: str | TensorLike | None = "hann",
    center: bool = True,
) -> Tensor:
    """Inverse short-time Fourier transform: reconstruct a signal from its `stft`.

    Args:
        x: Pair of floating tensors ``[..., frames, fft_length // 2 + 1]``: the real and
            the imaginary part.
        sequence_length: Length of the frames.
        sequence_stride: Distance between the starts of frames.
        fft_length: Length of the transforms.
        length: Length of the signal; None for all entries.
        window: "hann", "hamming", a vector, or None for no window.
        center: True if the signal was mirrored at both ends.

    Shapes:
        A pair of ``[..., frames, fft_length // 2 + 1]`` to ``[..., length]``.

    Raises:
        ValueError: If ``x`` is not a pair, or not floating, or ``window`` is unknown.

    Example:
        >>> signal = [1.0, 2.0, 3.0, 4.0] * 4
        >>> keras.ops.istft(keras.ops.stft(signal, 8, 4, 8), 8, 4, 8).numpy().round(4)[:4]
        array([1., 2., 3., 4.], dtype=float32)
    """
    x = _to_complex("istft", x)
    dtype = real(x).dtype
    weights = fitted_window("istft", window, sequence_length, fft_length, dtype)
    if weights is not None:
        weights = window_functions.inverse_stft_window_fn(sequence_stride, weights)
    signal = window_functions.inverse_stft(
        x, fft_length, sequence_stride, fft_length, window_fn=weights
    )
    start = fft_length // 2 if center else 0
    end = (
        -(fft_length // 2)
        if center
        else fft_length + sequence_stride * (x.shape[-2] - 1)
    )
    end = end if length is None else start + length
    return getitem(signal, (..., slice(start, end)))


@operation(call="x y", class_name="CDist")
def cdist(x: TensorLike, y: TensorLike) -> Tensor:
    """Compute the Euclidean distance between each row of ``x`` and each row of ``y``.

    Args:
        x: First points, ``[..., m, k]``.
        y: Second points, ``[..., n, k]``.

    Shapes:
        ``[..., m, k]`` and ``[..., n, k]`` to ``[..., m, n]``.

    Example:
        >>> keras.ops.cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]).numpy()
        array([[5., 1.]], dtype=float32)
    """
    x, y = promote(x, y, at_least=float)
    return norm_sqrt(reduce_sum(square(x[..., :, None, :] - y[..., None, :, :]), -1))
