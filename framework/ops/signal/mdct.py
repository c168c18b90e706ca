"""Modified discrete cosine transform, of frames that overlap by half."""

from __future__ import annotations

import math
from collections.abc import Callable

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.rules import check_choice
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import IntLike, TensorLike, as_int

from ..array.joining import concat, reverse, split
from .fft import dct
from .window_functions import frame, overlap_and_add, vorbis_window

__all__ = ["inverse_mdct", "mdct"]


def mdct(
    signals: TensorLike,
    frame_length: IntLike,
    window_fn: Callable[..., TensorLike] | None = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Modified discrete cosine transform (MDCT) of frames of ``signals``.

    Args:
        signals: Real tensor ``[..., n]``.
        frame_length: Length of a frame, a multiple of 4; frames start half a length
            apart.
        window_fn: Function of the length and a ``dtype`` that returns the weights of a
            frame, or None.
        pad_end: If True, pad the end of the signal with zeros, as in `frame`.
        norm: None or "ortho", as in `dct`.

    Shapes:
        ``[..., n]`` to ``[..., frames, frame_length // 2]``.

    Raises:
        ValueError: If ``frame_length`` is not a multiple of 4.

    Example:
        >>> signal = [1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0, 0.0]
        >>> tw.signal.inverse_mdct(tw.signal.mdct(signal, 4)).numpy().round(4)[2:-2]
        array([3., 4., 3., 2.], dtype=float32)
    """
    length = as_int(frame_length)
    if length < 4 or length % 4:
        raise InvalidArgumentError(
            f"mdct: frame_length must be a positive multiple of 4, got {length}"
        )
    pieces = _weighted(frame(signals, length, length // 2, pad_end), length, window_fn)
    a, b, c, d = split(pieces, 4, axis=-1)
    folded = concat([-reverse(c, [-1]) - d, a - reverse(b, [-1])], axis=-1)
    return dct(folded, type=4, norm=norm)


def inverse_mdct(
    mdcts: TensorLike,
    window_fn: Callable[..., TensorLike] | None = vorbis_window,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Inverse of `mdct`: the signal, except for its first and last half frame.

    It is exact if the squares of the window and of the window shifted by half its
    length sum to 1.

    Args:
        mdcts: Real tensor ``[..., frames, n]``.
        window_fn: Window function of the `mdct`.
        norm: Norm of the `mdct`.

    Shapes:
        ``[..., frames, n]`` to ``[..., (frames + 1) * n]``.
    """
    check_choice("inverse_mdct", "norm", norm, (None, "ortho"))
    mdcts = convert_to_tensor(mdcts)
    if len(mdcts.shape) < 2:
        raise ShapeError(
            "inverse_mdct", "mdcts must have two axes or more", mdcts=mdcts
        )
    half = mdcts.shape[-1]
    folded = dct(mdcts, type=4, norm=norm)
    folded = folded * (0.5 / half) if norm is None else folded
    a, b = split(folded, 2, axis=-1)
    pieces = concat([b, -reverse(b, [-1]), -reverse(a, [-1]), -a], axis=-1)
    return overlap_and_add(_weighted(pieces, 2 * half, window_fn), half)


def _weighted(pieces, length, window_fn):
    if window_fn is None:
        return pieces * math.sqrt(0.5)
    return pieces * window_fn(length, dtype=pieces.dtype)
