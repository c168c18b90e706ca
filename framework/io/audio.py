"""`tw.audio`: sound in WAV files of 16 bits, as ``tf.audio``."""

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
    """The result of `decode_wav`: ``audio`` and ``sample_rate``."""

    audio: Tensor
    sample_rate: Tensor


def decode_wav(
    contents: TensorLike,
    desired_channels: int = -1,
    desired_samples: int = -1,
    name: str | None = None,
) -> DecodeWav:
    """The samples of a WAV file of 16 bits, in ``[-1, 1)``, and their rate.

    Args: ``contents``: a string, such as that of `io.read_file`; ``desired_channels``: -1
    for those of the file; of more of them the last one of the file is repeated;
    ``desired_samples``: -1 for those of the file; more of them are zeros.

    Shapes: ``audio`` float32 ``[samples, channels]``, ``sample_rate`` an int32 scalar.

    Raises: ``InvalidArgumentError`` (a ``ValueError``) for other contents, or other than
    16 bits.

    Example:
        >>> sound = tw.audio.decode_wav(tw.audio.encode_wav([[0.0], [0.5]], sample_rate=8000))
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
    """A WAV file of 16 bits of samples in ``[-1, 1]``, as a string.

    Args: ``audio``: float32 ``[samples, channels]``; what is beyond the range is clipped;
    ``sample_rate``: samples in a second, a positive int.

    Raises: ``ShapeError`` for another rank; ``InvalidArgumentError`` for another dtype, no
    channels or more than 65535, NaN, or a ``sample_rate`` that is not positive (each a
    ``ValueError``); ``TypeError`` for a ``sample_rate`` that is no int.
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
