"""Short-time spectra with frames centered at multiples of the stride, as in librosa.

Keras has the same convention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapewright.core.tensor import Tensor
from tapewright.core.typing import TensorLike

from ..array.conversion import cast
from ..array.joining import pad
from .window_functions import hamming_window, hann_window, stft

WINDOWS = {"hann": hann_window, "hamming": hamming_window}


def fitted_window(
    who: str,
    window: str | TensorLike | None,
    sequence_length: int,
    fft_length: int,
    dtype: Any,
) -> Callable[..., Tensor] | None:
    """Return the window, zero-padded on both sides to ``fft_length``; None for no window.

    Raises:
        ValueError: If the name or the length is invalid.
    """
    if fft_length < sequence_length:
        raise ValueError(
            f"{who}: fft_length must be at least sequence_length, got {fft_length} and "
            f"{sequence_length}"
        )
    if window is None:
        return None
    if isinstance(window, str):
        if window not in WINDOWS:
            raise ValueError(
                f"{who}: window must be 'hann', 'hamming' or a tensor, got {window!r}"
            )
        window = WINDOWS[window](sequence_length, dtype=dtype)
    window = cast(window, dtype)
    if tuple(window.shape) != (sequence_length,):
        raise ValueError(
            f"{who}: window must have shape ({sequence_length},), got "
            f"{tuple(window.shape)}"
        )
    before = (fft_length - sequence_length) // 2
    window = pad(window, [(before, fft_length - sequence_length - before)])
    return lambda length, dtype=None: window


def centered_stft(
    who: str,
    x: Tensor,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: str | TensorLike | None = "hann",
    center: bool = True,
) -> Tensor:
    """Compute the spectra of frames, weighted by ``window``.

    If ``center`` is True, the signal is mirrored at its ends in margins of half of
    ``fft_length``.

    Shapes:
        ``[..., n]``, floating, to ``[..., frames, fft_length // 2 + 1]``, complex.
    """
    weights = fitted_window(who, window, sequence_length, fft_length, x.dtype)
    if center:
        margin = (fft_length // 2, fft_length // 2)
        x = pad(x, [(0, 0)] * (len(x.shape) - 1) + [margin], "REFLECT")
    return stft(x, fft_length, sequence_stride, fft_length, weights)
