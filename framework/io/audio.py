"""`tw.audio`: sound in WAV files of 16 bits, as ``tf.audio``."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.tensor import TensorSpec, convert_to_tensor
from tapewright.core.text import make_text

from .host_ops import host_op, scalar_text

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import TensorLike

__all__ = ["DecodeWav", "decode_wav", "encode_wav"]

PCM, BITS = 1, 16
FORMAT = (
    "<HHIIHH"  # of the chunk "fmt ": kind, channels, rate, bytes a second, block, bits
)


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

    >>> sound = decode_wav(encode_wav([[0.0], [0.5]], sample_rate=8000))
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
        samples, rate = _samples(text.item())
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


def _samples(data):
    """The samples of a file, int16 ``[samples, channels]``, and their rate."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise InvalidArgumentError(
            f"decode_wav: contents are no WAV file: they begin with {data[:12]!r}"
        )
    chunks, at = {}, 12
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<4sI", data, at)
        if kind in (b"fmt ", b"data"):
            chunks.setdefault(kind, []).append(data[at + 8 : at + 8 + size])
            if at + 8 + size > len(data):
                raise InvalidArgumentError(
                    f"decode_wav: contents are cut off: {size} bytes of samples are "
                    f"announced, {len(data) - at - 8} are left"
                )
        at += 8 + size + size % 2
    parts = chunks.get(b"fmt ", ()), chunks.get(b"data", ())
    if list(map(len, parts)) != [1, 1] or len(parts[0][0]) < struct.calcsize(FORMAT):
        raise InvalidArgumentError(
            "decode_wav: a WAV file must have one chunk of format and one of data"
        )
    kind, channels, rate, _, _, bits = struct.unpack_from(FORMAT, parts[0][0])
    if kind != PCM or bits != BITS or not channels or rate >= 2**31:
        raise InvalidArgumentError(
            "decode_wav: only samples of 16 bits of the format 1 (PCM) can be read, got "
            f"{bits} bits of the format {kind} in {channels} channels, {rate} a second"
        )
    whole = len(parts[1][0]) // (2 * channels)
    samples = np.frombuffer(parts[1][0], "<i2", whole * channels)
    return samples.reshape(whole, channels), rate


def encode_wav(
    audio: TensorLike, sample_rate: TensorLike, name: str | None = None
) -> Tensor:
    """A WAV file of 16 bits of samples in ``[-1, 1]``, as a string.

    Args: ``audio``: float32 ``[samples, channels]``; what is beyond the range is clipped;
    ``sample_rate``: samples in a second, a positive int.

    Raises: ``ShapeError`` for another rank; ``InvalidArgumentError`` for another dtype, no
    channels or more than 65535, NaN, or another ``sample_rate`` (each a ``ValueError``).
    """
    x, rate = convert_to_tensor(audio), convert_to_tensor(sample_rate)
    if x.shape.rank != 2:
        raise ShapeError("encode_wav", "audio must be [samples, channels]", audio=x)
    channels = 1 if x.shape[1] is None else x.shape[1]
    if x.dtype.name != "float32" or not 0 < channels < 2**16:
        raise InvalidArgumentError(
            "encode_wav: audio must be float32 of 1 to 65535 channels, got "
            f"{x.dtype.name} of shape {tuple(x.shape)}"
        )

    def call(audio, rate):
        rate, channels = int(rate), audio.shape[1]
        if not 0 < rate < 2**32:
            raise InvalidArgumentError(
                f"encode_wav: sample_rate must be positive, got {rate}"
            )
        if np.isnan(audio).any():
            raise InvalidArgumentError("encode_wav: audio must not hold NaN")
        scaled = audio * np.float32(2**15)
        rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))  # halves away
        data = np.clip(rounded, -(2**15), 2**15 - 1).astype("<i2").tobytes()
        block = 2 * channels
        head = struct.pack(FORMAT, PCM, channels, rate, rate * block, block, BITS)
        form = b"WAVEfmt " + struct.pack("<I", len(head)) + head
        form += b"data" + struct.pack("<I", len(data)) + data
        return [make_text([b"RIFF" + struct.pack("<I", len(form)) + form], ())]

    return host_op("encode_wav", call, [x, rate], [TensorSpec((), "string")])[0]
