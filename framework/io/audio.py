"""`tw.audio`: audio in 16-bit WAV files, under the names of ``tf.audio``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.tensor import TensorSpec, convert_to_tensor
from tapewright.core.text import make_text
from tapewright.storage.records.wav import wav_file, wav_samples

from .host_ops import host_op, scalar_text

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import TensorLike

__all__ = ["DecodeWav", "decode_wav", "encode_wav"]


class DecodeWav(NamedTuple):
    """Decoded WAV file, the result of `decode_wav`.

    Args:
        audio: Samples in ``[-1, 1)``, float32 ``[samples, channels]``.
        sample_rate: Samples per second, int32 scalar.
    """

    audio: Tensor
    sample_rate: Tensor


def decode_wav(
    contents: TensorLike,
    desired_channels: int = -1,
    desired_samples: int = -1,
    name: str | None = None,
) -> DecodeWav:
    """Decode a 16-bit WAV file to samples in ``[-1, 1)`` and the sample rate.

    Args:
        contents: Scalar string, such as the result of `io.read_file`.
        desired_channels: Number of channels, or -1 for the channels of the file.
            Missing channels repeat the last one.
        desired_samples: Number of samples, or -1 for all. Missing samples are zeros.

    Shapes:
        ``audio`` float32 ``[samples, channels]``, ``sample_rate`` int32 scalar.

    Returns:
        A `DecodeWav` tuple ``(audio, sample_rate)``.

    Raises:
        InvalidArgumentError: If the contents are not a WAV file of 16 bits (also a
            ``ValueError``).

    Example:
        >>> wav = tw.audio.encode_wav([[0.0], [0.5]], sample_rate=8000)
        >>> sound = tw.audio.decode_wav(wav)
        >>> sound.audio.numpy().ravel(), int(sound.sample_rate)
        (array([0. , 0.5], dtype=float32), 8000)
    """
    for key, count in (
        ("desired_channels", desired_channels),
        ("desired_samples", desired_samples),
    ):
        if count < -1:
            raise InvalidArgumentError(
                f"decode_wav: {key} must be at least -1, got {count}"
            )

    def call(text):
        samples, rate = wav_samples(text.item())
        audio = samples.astype(np.float32) / np.float32(2**15)
        count, channels = audio.shape
        if desired_channels >= 0:
            kept = np.minimum(np.arange(desired_channels), channels - 1)
            audio = audio[:, kept]
        if desired_samples >= 0:
            missing = max(desired_samples - count, 0)
            audio = np.pad(audio[:desired_samples], ((0, missing), (0, 0)))
        return [audio, np.array(rate, np.int32)]

    shape = [None if n < 0 else n for n in (desired_samples, desired_channels)]
    specs = [TensorSpec(shape, "float32"), TensorSpec((), "int32")]
    inputs = [scalar_text("decode_wav", "contents", contents)]
    return DecodeWav(*host_op("decode_wav", call, inputs, specs))


def encode_wav(
    audio: TensorLike, sample_rate: TensorLike, name: str | None = None
) -> Tensor:
    """Encode samples in ``[-1, 1]`` as a 16-bit WAV file, a scalar string.

    Args:
        audio: Float32 samples ``[samples, channels]``; values out of range are clipped.
        sample_rate: Samples per second, a positive integer.

    Raises:
        ShapeError: If ``audio`` has another rank (also a ``ValueError``).
        InvalidArgumentError: If ``audio`` has another dtype, contains NaN, or does not
            have 1 to 65535 channels, or ``sample_rate`` is not positive (also a
            ``ValueError``).
        TypeError: If ``sample_rate`` is not an integer.

    Example:
        >>> wav = tw.audio.encode_wav([[0.0], [0.5]], sample_rate=8000)
        >>> len(wav.numpy())
        48
    """
    x, rate = convert_to_tensor(audio), convert_to_tensor(sample_rate, "int32")
    if x.shape.rank != 2:
        raise ShapeError("encode_wav", "audio must be [samples, channels]", audio=x)
    channels = 1 if x.shape[1] is None else x.shape[1]
    if x.dtype.name != "float32" or not 0 < channels < 2**16:
        raise InvalidArgumentError(
            "encode_wav: audio must be float32 of 1 to 65535 channels, got "
            f"{x.dtype.name} of shape {tuple(x.shape)}"
        )

    def call(audio, rate):
        return [make_text([wav_file("encode_wav", audio, int(rate))], ())]

    return host_op("encode_wav", call, [x, rate], [TensorSpec((), "string")])[0]
