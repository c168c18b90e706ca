"""Resampling of audio to another sampling rate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tapewright.core.tensor import TensorSpec
from tapewright.io.host_ops import host_op

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

ZEROS = 32  # of the sinc on each side
BLOCK = 1 << 14  # samples at a time, so that the weights stay in the cache


def resample(audio: Tensor, rate_in: Tensor, rate_out: int) -> Tensor:
    """Resample audio ``[samples, channels]`` to the rate ``rate_out``, float32."""

    def call(audio, rate_in):
        return [resampled(audio, int(rate_in), rate_out)]

    spec = TensorSpec([None, audio.shape[1]], "float32")
    return host_op("resample", call, [audio, rate_in], [spec])[0]


def resampled(audio: Any, rate_in: int, rate_out: int) -> np.ndarray[Any, Any]:
    """Compute `resample` for arrays: ``ceil(samples * rate_out / rate_in)`` samples.

    The samples, padded with zeros, are convolved with a sinc that passes frequencies up
    to half of the lower rate, with a Hann window of 32 zeros on each side.

    References:
        Smith, "Digital audio resampling" (2002).
    """
    if rate_in == rate_out:
        return audio
    count = -(-len(audio) * rate_out // rate_in)
    cutoff = min(1.0, rate_out / rate_in)
    reach = math.ceil(ZEROS / cutoff)
    framed = np.pad(audio, ((reach, reach + 1), (0, 0)))
    steps = np.arange(-reach + 1, reach + 1)
    output = np.empty((count, audio.shape[1]), np.float32)
    for start in range(0, count, BLOCK):
        times = np.arange(start, min(start + BLOCK, count)) * (rate_in / rate_out)
        whole = np.floor(times).astype(np.int64)
        distance = cutoff * (steps - (times - whole)[:, None])
        window = np.cos(np.pi / 2 / ZEROS * np.clip(distance, -ZEROS, ZEROS)) ** 2
        weights = cutoff * np.sinc(distance) * window
        samples = framed[whole[:, None] + steps + reach]
        output[start : start + len(times)] = np.einsum("ij,ijk->ik", weights, samples)
    return output
