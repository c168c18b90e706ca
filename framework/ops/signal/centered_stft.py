"""Spectra of pieces whose middles are at multiples of the stride, as Keras and librosa."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapewright.core.tensor import Tensor
from tapewright.core.typing import TensorLike

from ..array.conversion import cast
from ..array.joining import pad
from .window_functions import hamming_window, hann_window, stft

__all__ = []  # the public name is `keras.ops.stft`

WINDOWS = {"hann": hann_window, "hamming": hamming_window}


def fitted_window(
    who: str,
    window: str | TensorLike | None,
    sequence_length: int,
    fft_length: int,
    dtype: Any,
) -> Callable[..., Tensor] | None:
    """The window, in the middle of zeros up to ``fft_length``; None for none.

    Raises: ``ValueError`` for another name or length.
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
    """The spectra of pieces, weighted by ``window``; ``center``: of a signal with margins.

    The margins of half of ``fft_length`` mirror the signal.

    Shapes: ``[..., n]``, floating, to ``[..., pieces, fft_length // 2 + 1]``, complex.
    """
    weights = fitted_window(who, window, sequence_length, fft_length, x.dtype)
    if center:
        margin = (fft_length // 2, fft_length // 2)
        x = pad(x, [(0, 0)] * (len(x.shape) - 1) + [margin], "REFLECT")
    return stft(x, fft_length, sequence_stride, fft_length, weights)
