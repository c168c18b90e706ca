"""WAV files in strings, beside what TensorFlow writes and reads."""

import io
import wave

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import InvalidArgumentError, ShapeError

# tf.audio.encode_wav([[-1.2, ...], ..., [..., 1.2]], 8000) of 4 samples in 2 channels
STEREO = np.linspace(-1.2, 1.2, 8, dtype="float32").reshape(4, 2)
FILE = (
    b"RIFF4\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00@\x1f\x00\x00\x00}\x00\x00"
    b"\x04\x00\x10\x00data\x10\x00\x00\x00\x00\x80I\x92,\xbe\x0f\xea\xf1\x15\xd4A\xb7m\xff\x7f"
)
SAMPLES = [
    [-1.0, -0.857147216796875],
    [-0.5142822265625, -0.171417236328125],
    [0.171417236328125, 0.5142822265625],
    [0.857147216796875, 0.999969482421875],
]


def test_files_are_those_of_tensorflow():
    assert tw.audio.encode_wav(STEREO, 8000).numpy() == FILE
    sound = tw.audio.decode_wav(FILE)
    assert sound.audio.numpy().tolist() == SAMPLES
    assert int(sound.sample_rate) == 8000 and sound.sample_rate.dtype == tw.int32
    halves = np.float32([[0.5], [-0.5], [1.5], [2.5], [-1.5]]) / 2**15  # away from 0
    written = tw.audio.encode_wav(halves, 16000).numpy()
    assert np.frombuffer(written[44:], "<i2").tolist() == [1, -1, 2, 3, -2]
    empty = tw.audio.encode_wav(np.zeros((0, 1), "float32"), 8000)
    assert tw.audio.decode_wav(empty).audio.shape == (0, 1)


def test_channels_are_dropped_or_repeated_and_samples_cut_or_padded():
    def read(**options):
        return tw.audio.decode_wav(FILE, **options).audio.numpy()

    whole = np.array(SAMPLES)
    np.testing.assert_array_equal(read(desired_channels=1), whole[:, :1])
    np.testing.assert_array_equal(read(desired_channels=3), whole[:, [0, 1, 1]])
    np.testing.assert_array_equal(read(desired_samples=2), whole[:2])
    padded = read(desired_samples=6, desired_channels=2)
    np.testing.assert_array_equal(padded, np.pad(whole, ((0, 2), (0, 0))))
    assert read(desired_channels=0).shape == (4, 0)


def test_sounds_are_read_in_traced_functions_and_data_sets(tmp_path):
    path = str(tmp_path / "a.wav")
    tw.io.write_file(path, FILE)
    read = tw.function(lambda data: tw.audio.decode_wav(data, 1, 3).audio * 2)
    np.testing.assert_array_equal(
        read(tw.constant(FILE)), 2 * np.array(SAMPLES)[:3, :1]
    )
    written = tw.function(tw.audio.encode_wav)(tw.constant(STEREO), tw.constant(8000))
    assert written.numpy() == FILE
    sounds = tw.data.Dataset.from_tensor_slices([path, path]).map(
        lambda path: tw.audio.decode_wav(tw.io.read_file(path)).audio
    )
    assert [x.shape for x in sounds.batch(2)] == [(2, 4, 2)]


def wav(width):
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, width, 8000, 0, "NONE", ""))
        out.writeframes(bytes(4 * width))
    return file.getvalue()


def test_other_chunks_are_skipped_and_other_files_refused():
    odd = FILE[:36] + b"LIST\5\0\0\0abcde\0" + FILE[36:]
    assert tw.audio.decode_wav(odd).audio.numpy().tolist() == SAMPLES
    assert tw.audio.decode_wav(wav(2)).audio.shape == (4, 1)
    floating = FILE[:20] + b"\3" + FILE[21:]
    for data, message in (
        (wav(1), "got 8 bits"),
        (wav(3), "got 24 bits"),
        (floating, "format 3"),
        (FILE[:27] + b"\xff" + FILE[28:], "Hz"),
        (FILE[:-1], "cut off"),
        (FILE[:36], "one format chunk and one data chunk"),
        (FILE + FILE[36:], "one format chunk and one data chunk"),
        (b"RIFX", "must be a WAV file"),
        (b"", "must be a WAV file"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            tw.audio.decode_wav(data)
    for call, message in (
        (lambda: tw.audio.decode_wav(FILE, -2), "desired_channels must be at least -1"),
        (lambda: tw.audio.encode_wav(STEREO, 0), "sample_rate must be positive"),
        (lambda: tw.audio.encode_wav(STEREO.astype("float64"), 1), "float32"),
        (lambda: tw.audio.encode_wav(STEREO[:, :0], 1), "1 to 65535 channels"),
        (lambda: tw.audio.encode_wav(STEREO * np.nan, 1), "NaN"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            call()
    with pytest.raises(ShapeError):
        tw.audio.encode_wav(STEREO[0], 1)
