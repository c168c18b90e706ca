"""16-bit sound in WAV files, as the bytes of a file."""

import struct

import numpy as np

from tapewright.core.errors import InvalidArgumentError

PCM, BITS = 1, 16
# Of the chunk "fmt ": kind, channels, rate, bytes a second, block, bits.
FORMAT = "<HHIIHH"


def wav_samples(data):
    """Return the samples of a file, int16 ``[samples, channels]``, and their rate."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise InvalidArgumentError(
            f"decode_wav: contents must be a WAV file; they begin with {data[:12]!r}"
        )
    chunks, at = {}, 12
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<4sI", data, at)
        if kind in (b"fmt ", b"data"):
            chunks.setdefault(kind, []).append(data[at + 8 : at + 8 + size])
            if at + 8 + size > len(data):
                raise InvalidArgumentError(
                    f"decode_wav: contents are cut off: {size} bytes of samples are "
                    f"declared, {len(data) - at - 8} are left"
                )
        at += 8 + size + size % 2
    parts = chunks.get(b"fmt ", ()), chunks.get(b"data", ())
    if list(map(len, parts)) != [1, 1] or len(parts[0][0]) < struct.calcsize(FORMAT):
        raise InvalidArgumentError(
            "decode_wav: a WAV file must have one format chunk and one data chunk"
        )
    kind, channels, rate, _, _, bits = struct.unpack_from(FORMAT, parts[0][0])
    if kind != PCM or bits != BITS or not channels or rate >= 2**31:
        raise InvalidArgumentError(
            "decode_wav: only 16-bit PCM samples (format 1) are supported, got "
            f"{bits} bits of format {kind} in {channels} channels, {rate} Hz"
        )
    whole = len(parts[1][0]) // (2 * channels)
    samples = np.frombuffer(parts[1][0], "<i2", whole * channels)
    return samples.reshape(whole, channels), rate


def wav_file(who, audio, rate):
    """Return the bytes of a WAV file with samples, float32 ``[samples, channels]``."""
    if not 0 < rate < 2**32:
        raise InvalidArgumentError(f"{who}: sample_rate must be positive, got {rate}")
    if np.isnan(audio).any():
        raise InvalidArgumentError(f"{who}: audio must not hold NaN")
    channels = audio.shape[1]
    scaled = audio * np.float32(2**15)
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))  # halves away
    data = np.clip(rounded, -(2**15), 2**15 - 1).astype("<i2").tobytes()
    block = 2 * channels
    head = struct.pack(FORMAT, PCM, channels, rate, rate * block, block, BITS)
    form = b"WAVEfmt " + struct.pack("<I", len(head)) + head
    form += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(form)) + form
