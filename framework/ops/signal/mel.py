"""Mel spectra: weights of the mel bands, and cepstral coefficients."""

from __future__ import annotations

import math

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import DTypeError, InvalidArgumentError, ShapeError
from tapewright.core.rules import check_at_least
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import DTypeLike, IntLike, TensorLike, as_int

from .fft import dct

__all__ = ["linear_to_mel_weight_matrix", "mfccs_from_log_mel_spectrograms"]


def linear_to_mel_weight_matrix(
    num_mel_bins: IntLike = 20,
    num_spectrogram_bins: IntLike = 129,
    sample_rate: float = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Weight matrix that maps a linear-frequency spectrum to the mel scale.

    It sums a spectrum into bands of equal width on the mel scale,
    ``mel = 1127 log(1 + hertz / 700)``. Bands are triangles, each from the center of
    the previous band to the center of the next; the frequency 0 belongs to no band.

    Args:
        num_mel_bins: Number of mel bands.
        num_spectrogram_bins: Number of bins of the spectra, from 0 to half of
            ``sample_rate``.
        sample_rate: Samples per second of the signal.
        lower_edge_hertz: Lower end of the first band.
        upper_edge_hertz: Upper end of the last band.
        dtype: Floating dtype of the result.

    Shapes:
        ``[num_spectrogram_bins, num_mel_bins]``.

    Raises:
        ValueError: If 0, the lower edge, the upper edge and half of ``sample_rate`` are
            not in this order.
        TypeError: If ``dtype`` is not floating.

    Example:
        >>> weights = tw.signal.linear_to_mel_weight_matrix(2, 5, 8000, 0.0, 4000.0)
        >>> weights.numpy().round(2)
        array([[0.  , 0.  ],
               [0.6 , 0.4 ],
               [0.  , 0.87],
               [0.  , 0.38],
               [0.  , 0.  ]], dtype=float32)
    """
    who = "linear_to_mel_weight_matrix"
    bands = as_int(num_mel_bins)
    bins = as_int(num_spectrogram_bins)
    dtype = dtypes.as_dtype(dtype)
    check_at_least(who, 1, num_mel_bins=bands, num_spectrogram_bins=bins)
    low = float(lower_edge_hertz)
    high = float(upper_edge_hertz)
    rate = float(sample_rate)
    if not 0 <= low < high <= rate / 2:
        raise InvalidArgumentError(
            f"{who}: 0 <= lower_edge_hertz < upper_edge_hertz <= sample_rate / 2 must hold, "
            f"got {low}, {high} and a sample_rate of {rate}"
        )
    if not dtype.is_floating:
        raise DTypeError(who, f"dtype must be floating, got {dtype.name}")
    frequencies = _mel(np.linspace(0.0, rate / 2, bins))[1:, None]
    edges = np.linspace(_mel(low), _mel(high), bands + 2)
    rising = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    weights = np.maximum(0.0, np.minimum(rising, falling))
    return convert_to_tensor(np.pad(weights, [(1, 0), (0, 0)]), dtype)


def _mel(hertz):
    return 1127.0 * np.log1p(hertz / 700.0)


def mfccs_from_log_mel_spectrograms(
    log_mel_spectrograms: TensorLike, name: str | None = None
) -> Tensor:
    """Mel-frequency cepstral coefficients (MFCCs) of log-mel spectra.

    They are the `dct` over the bands, divided by ``sqrt(2 bands)``; often only the
    first 13 are used.

    Args:
        log_mel_spectrograms: Logarithms of mel spectra, ``[..., bands]``.

    Shapes:
        ``[..., bands]``, input and result.

    Raises:
        ValueError: If there are no bands.

    Example:
        >>> tw.signal.mfccs_from_log_mel_spectrograms([[1.0, 1.0]]).numpy()
        array([[2., 0.]], dtype=float32)
    """
    x = convert_to_tensor(log_mel_spectrograms)
    if x.shape.rank == 0 or x.shape[-1] == 0:
        what = "log_mel_spectrograms must have one band or more"
        raise ShapeError(
            "mfccs_from_log_mel_spectrograms", what, log_mel_spectrograms=x
        )
    return dct(x) * math.sqrt(0.5 / x.shape[-1])
