"""`keras.ops` of signals, segments and complex pairs: `fft`, `stft`, `segment_sum`, ...

Complex numbers come and go as pairs of tensors, real and imaginary part, as in Keras.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapewright.core.dtypes import float32, float64
from tapewright.core.errors import DTypeError, ShapeError
from tapewright.core.symbolic_shape import agree
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


def _segment_reduction(name, op, noun):
    def function(
        data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None,
        sorted: bool = False,
    ) -> Tensor:  # fmt: skip
        data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        _check_segments(data, segment_ids)
        if num_segments is None:
            num_segments = reduce_max(segment_ids) + 1
        return op(data, segment_ids, num_segments)

    doc = f"The {noun} of the rows of ``data`` with each number of ``segment_ids``."
    details = """
Rows with a negative number count nowhere. ``sorted`` changes nothing.

Args: ``num_segments``: the largest number plus 1 if None; a traced function needs it.

Shapes: ``data`` ``[n, ...]``, ``segment_ids`` ``[n]``, result ``[num_segments, ...]``.

Raises: ``ValueError`` for a number that is not below ``num_segments``.
"""
    return operation.named(
        name, function, doc, details, call="data segment_ids", specs=_specs_of_segments
    )


segment_sum = _segment_reduction("segment_sum", segment.unsorted_segment_sum, "sum")
segment_max = _segment_reduction("segment_max", segment.unsorted_segment_max, "largest")
segment_min = _segment_reduction(
    "segment_min", segment.unsorted_segment_min, "smallest"
)
segment_prod = _segment_reduction(
    "segment_prod", segment.unsorted_segment_prod, "product"
)


# ----------------------------------------------------------------- complex numbers


@operation
def view_as_complex(x: TensorLike) -> Tensor:
    """``x[..., 0] + i x[..., 1]``.

    Shapes: ``[..., 2]`` to ``[...]``.

    Raises: ``ValueError`` for another size of the last axis.

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
    """The real and the imaginary part of ``x`` along a new last axis.

    Shapes: ``[...]`` to ``[..., 2]``.

    Example:
        >>> keras.ops.view_as_real([1.0 + 2j]).numpy()
        array([[1., 2.]])
    """
    x = convert_to_tensor(x)
    return stack([real(x), imag(x)], -1)


def _to_complex(who, x):
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"{who}: x must be a pair, real and imaginary part")
    return _complex(*promote(*[_floating(who, part) for part in x]))


def _floating(who, x):
    """``x`` as a tensor, if it is floating: as in Keras, integers are not cast."""
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        raise DTypeError(who, "x must be floating; cast it to float32", x=x)
    return x


def _to_pair(x):
    return real(x), imag(x)


# -------------------------------------------------------------------- transforms


@operation(class_name="FFT")
def fft(x: Sequence[TensorLike]) -> tuple[Tensor, Tensor]:
    """The discrete Fourier transform along the last axis.

    Args: ``x``: a pair of tensors of one shape, the real and the imaginary part.

    Returns: such a pair, of the same shape.

    Raises: ``ValueError`` if ``x`` is no pair, or not floating.

    Example:
        >>> real, imaginary = keras.ops.fft(([1.0, 2.0], [0.0, 0.0]))
        >>> real.numpy(), imaginary.numpy()
        (array([ 3., -1.], dtype=float32), array([0., 0.], dtype=float32))
    """
    return _to_pair(transforms.fft(_to_complex("fft", x)))


@operation(class_name="FFT2")
def fft2(x: Sequence[TensorLike]) -> tuple[Tensor, Tensor]:
    """The discrete Fourier transform along the last two axes.

    Arguments, results and errors are those of `fft`.
    """
    return _to_pair(transforms.fft2d(_to_complex("fft2", x)))


@operation(class_name="IFFT2")
def ifft2(x: Sequence[TensorLike]) -> tuple[Tensor, Tensor]:
    """The inverse of `fft2`, with pairs as in `fft`."""
    return _to_pair(transforms.ifft2d(_to_complex("ifft2", x)))


@operation(class_name="RFFT")
def rfft(x: TensorLike, fft_length: int | None = None) -> tuple[Tensor, Tensor]:
    """`fft` of real numbers: the first half, which determines the other.

    Args: ``fft_length``: crops the last axis, or fills it up with zeros.

    Shapes: ``[..., n]`` to a pair of ``[..., fft_length // 2 + 1]``.

    Returns: the pair of the real and the imaginary part.

    Raises: ``ValueError`` if ``x`` is not floating.

    Example:
        >>> real, imaginary = keras.ops.rfft([1.0, 2.0, 3.0, 4.0])
        >>> real.numpy(), imaginary.numpy()
        (array([10., -2., -2.], dtype=float32), array([0., 2., 0.], dtype=float32))
    """
    length = None if fft_length is None else [fft_length]
    return _to_pair(transforms.rfft(_floating("rfft", x), length))


@operation(class_name="IRFFT")
def irfft(x: Sequence[TensorLike], fft_length: int | None = None) -> Tensor:
    """The inverse of `rfft`: real numbers from a pair.

    Shapes: a pair of ``[..., n]`` to ``[..., fft_length]``, by default ``2 * (n - 1)``.

    Raises: ``ValueError`` if ``x`` is no pair, or not floating.

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
    """Overlapping pieces of the last axis, one every ``sequence_stride`` entries.

    Shapes: ``[..., n]`` to ``[..., pieces, sequence_length]``.

    Raises: ``ValueError`` for a length or stride below 1.

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
    """The spectra of overlapping pieces of a signal: `rfft` of each, weighted by ``window``.

    Args: ``window``: "hann", "hamming", a vector or None; ``center``: the signal is
    mirrored at both ends, so that piece i has its middle at ``i * sequence_stride``.

    Shapes: ``[..., n]`` to a pair of ``[..., pieces, fft_length // 2 + 1]``.

    Returns: the pair of the real and the imaginary part.

    Raises: ``TypeError`` for other dtypes than float32 and float64; ``ValueError`` for
    another ``window``, or an ``fft_length`` below ``sequence_length``.

    Example:
        >>> real, imaginary = keras.ops.stft([1.0] * 16, 8, 4, fft_length=8)
        >>> real.shape
        TensorShape([5, 5])
    """
    x = convert_to_tensor(x)
    if x.dtype not in (float32, float64):
        raise DTypeError("stft", "x must be float32 or float64; cast it", x=x)
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
    """The signal of which ``x`` is the `stft`.

    Args: ``length``: the number of its entries; the others are those of `stft`.

    Shapes: a pair of ``[..., pieces, fft_length // 2 + 1]`` to ``[..., length]``.

    Raises: ``ValueError`` if ``x`` is no pair, or not floating, or for another ``window``.

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
    """The Euclidean distance of each row of ``x`` from each row of ``y``.

    Shapes: ``[..., m, k]`` and ``[..., n, k]`` to ``[..., m, n]``.

    Example:
        >>> keras.ops.cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]).numpy()
        array([[5., 1.]], dtype=float32)
    """
    x, y = promote(x, y, at_least=float)
    return norm_sqrt(reduce_sum(square(x[..., :, None, :] - y[..., None, :, :]), -1))
