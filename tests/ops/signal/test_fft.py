"""Fourier and cosine transforms, windows: the op table, lengths, round trips."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.primitive import get_primitive
from tapewright.test import (
    case,
    check_op,
    complexes,
    floats,
    integers,
)

signal = tw.signal


def weighed(x, length, weight):
    weights = np.full(length // 2 + 1, weight)
    weights[0] = 1
    if length % 2 == 0:
        weights[-1] = 1
    return x * weights


def cosine(kind, count):
    """The matrix of a cosine transform, from its definition."""
    k, n = np.arange(count)[:, None], np.arange(count)
    if kind == 1:
        matrix = 2 * np.cos(np.pi * k * n / (count - 1))
        matrix[:, 0] /= 2
        matrix[:, -1] /= 2
    elif kind == 2:
        matrix = 2 * np.cos(np.pi * k * (2 * n + 1) / (2 * count))
    elif kind == 3:
        matrix = 2 * np.cos(np.pi * n * (2 * k + 1) / (2 * count))
        matrix[:, 0] /= 2
    else:
        matrix = 2 * np.cos(np.pi * (2 * k + 1) * (2 * n + 1) / (4 * count))
    return matrix


def orthogonal(kind, count):
    """The same with rows (and for type 3 columns) scaled to length 1."""
    matrix = cosine(kind, count) / np.sqrt(2 * count)
    if kind == 2:
        matrix[0] /= np.sqrt(2)
    if kind == 3:
        matrix[:, 0] *= np.sqrt(2)
    return matrix


def pieces(x, length, step, count):
    return np.stack([x[..., i * step : i * step + length] for i in range(count)], -2)


def overlapped(x, step):
    *lead, count, length = x.shape
    total = np.zeros((*lead, (count - 1) * step + length))
    for i in range(count):
        total[..., i * step : i * step + length] += x[..., i, :]
    return total


HANN = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(4) / 4)

CASES = [
    case("fft", complexes(5), expect=np.fft.fft),
    case("fft", complexes(2, 4), expect=np.fft.fft),
    case("fft", complexes(2, 4), inverse=True, expect=np.fft.ifft),
    case("fft", complexes(3, 2), axes=(-2,), expect=lambda x: np.fft.fft(x, axis=0)),
    case("fft", complexes(3, 2), axes=(-2, -1), expect=np.fft.fft2),
    case("fft", complexes(2, 2, 3), axes=(-2, -1), inverse=True, expect=np.fft.ifft2),
    case("fft", complexes(2, 2, 2), axes=(-3, -2, -1), order=2, expect=np.fft.fftn),
    case("fft", complexes(0, 3), expect=lambda x: x),
    case("fft", complexes(1), expect=lambda x: x),
    *[case("rfft", floats(*shape), expect=np.fft.rfft)
      for shape in [(1,), (2,), (5,), (2, 4), (2, 1, 3), (0, 4)]],
    *[case("irfft", complexes(*lead, n // 2 + 1), length=n,
           expect=lambda x, n=n: np.fft.irfft(x, n))
      for lead, n in [((), 1), ((), 2), ((), 5), ((2,), 4), ((2, 1), 3), ((0,), 4)]],
    case("weigh_half_spectrum", complexes(2, 3), length=4, weight=2.0,
         expect=lambda x: weighed(x, 4, 2.0)),
    case("weigh_half_spectrum", complexes(2, 3), length=5, weight=0.5,
         expect=lambda x: weighed(x, 5, 0.5)),
    # composed of these
    *[case(getattr(signal, name), complexes(2, 2, 3), order=1, expect=f)
      for name, f in [
          ("fft", np.fft.fft), ("ifft", np.fft.ifft), ("fft2d", np.fft.fft2),
          ("ifft2d", np.fft.ifft2), ("fft3d", np.fft.fftn), ("ifft3d", np.fft.ifftn),
      ]],
    case(signal.rfft, floats(2, 5), fft_length=[4], expect=lambda x: np.fft.rfft(x, 4)),
    case(signal.rfft, floats(2, 5), fft_length=[7], expect=lambda x: np.fft.rfft(x, 7)),
    case(signal.irfft, complexes(2, 4), expect=np.fft.irfft),
    case(signal.irfft, complexes(2, 4), fft_length=[5], expect=lambda x: np.fft.irfft(x, 5)),
    case(signal.irfft, complexes(2, 4), fft_length=[9], expect=lambda x: np.fft.irfft(x, 9)),
    case(signal.rfft2d, floats(3, 4), expect=np.fft.rfft2),
    case(signal.rfft2d, floats(2, 3, 4), fft_length=[4, 3], order=2,
         expect=lambda x: np.fft.rfft2(x, [4, 3])),
    case(signal.irfft2d, complexes(3, 3), expect=np.fft.irfft2),
    case(signal.irfft2d, complexes(3, 3), fft_length=[2, 5],
         expect=lambda x: np.fft.irfft2(x, [2, 5])),
    case(signal.rfft3d, floats(2, 2, 3), expect=np.fft.rfftn),
    case(signal.irfft3d, complexes(2, 2, 2), fft_length=[2, 2, 3], order=2,
         expect=lambda x: np.fft.irfftn(x, [2, 2, 3], (0, 1, 2))),
    case(signal.fftshift, floats(3, 4), expect=np.fft.fftshift),
    case(signal.fftshift, complexes(5), axes=0, expect=np.fft.fftshift),
    case(signal.ifftshift, floats(3, 5), axes=[1], expect=lambda x: np.fft.ifftshift(x, 1)),
    case(signal.ifftshift, integers(5), expect=np.fft.ifftshift),
    *[case(signal.dct, floats(2, n), type=kind, order=2,
           expect=lambda x, k=kind, n=n: x @ cosine(k, n).T)
      for kind in (1, 2, 3, 4) for n in (4, 5)],
    *[case(signal.dct, floats(2, n), type=kind, norm="ortho", order=1,
           expect=lambda x, k=kind, n=n: x @ orthogonal(k, n).T)
      for kind in (2, 3, 4) for n in (4, 5)],
    case(signal.dct, floats(2, 4), n=3, expect=lambda x: x[:, :3] @ cosine(2, 3).T),
    case(signal.dct, floats(2, 4), n=6, expect=lambda x: x @ cosine(2, 6)[:, :4].T),
    case(signal.frame, floats(2, 7), frame_length=3, frame_step=2,
         expect=lambda x: pieces(x, 3, 2, 3)),
    case(signal.frame, floats(7), frame_length=4, frame_step=3, pad_end=True, pad_value=0.5,
         expect=lambda x: pieces(np.append(x, [0.5] * 3), 4, 3, 3)),
    case(signal.frame, floats(5, 2), frame_length=2, frame_step=1, axis=0,
         expect=lambda x: np.stack([x[i : i + 2] for i in range(4)])),
    case(signal.frame, floats(2), frame_length=3, frame_step=1,
         expect=lambda x: np.zeros((0, 3))),
    case(signal.overlap_and_add, floats(2, 3, 4), frame_step=3, order=2,
         expect=lambda x: overlapped(x, 3)),
    case(signal.stft, floats(9), frame_length=4, frame_step=2,
         expect=lambda x: np.fft.rfft(pieces(x, 4, 2, 3) * HANN)),
    case(signal.stft, floats(9), frame_length=3, frame_step=2, window_fn=None, label="fill",
         expect=lambda x: np.fft.rfft(pieces(x, 3, 2, 4), 4)),
    case(signal.inverse_stft, complexes(3, 3), frame_length=4, frame_step=2, order=2,
         expect=lambda x: overlapped(np.fft.irfft(x) * HANN, 2)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_the_inverse_of_a_cosine_transform_restores(kind):
    x = np.random.default_rng(0).normal(size=(2, 6))
    scale = 2 * (6 - 1) if kind == 1 else 2 * 6
    back = signal.idct(signal.dct(x, kind), kind).numpy() / scale
    np.testing.assert_allclose(back, x, atol=1e-14)


def test_a_signal_comes_back_from_its_spectra():
    x = np.random.default_rng(0).normal(size=64)
    spectra = signal.stft(x, frame_length=16, frame_step=4)
    window = signal.inverse_stft_window_fn(4)
    back = signal.inverse_stft(spectra, 16, 4, window_fn=window).numpy()
    np.testing.assert_allclose(back[16:-16], x[16:48], atol=1e-14)


def test_windows_are_raised_cosines():
    np.testing.assert_allclose(
        signal.hann_window(4).numpy(), [0, 0.5, 1, 0.5], atol=1e-7
    )
    np.testing.assert_allclose(
        signal.hamming_window(4, periodic=False, dtype="float64").numpy(),
        [0.08, 0.77, 0.77, 0.08],
    )
    odd = [0.0, 0.5, 1.0, 0.5, 0.0]  # TensorFlow's periods are even
    np.testing.assert_allclose(signal.hann_window(5).numpy(), odd, atol=1e-7)
    assert signal.hann_window(1).numpy().tolist() == [1.0]


@pytest.mark.parametrize(
    "op", [signal.fft, signal.ifft2d, signal.irfft, signal.irfft2d]
)
def test_real_numbers_are_refused_where_complex_ones_are_wanted(op):
    with pytest.raises(tw.errors.DTypeError, match="must be complex"):
        op(tw.ones((4, 4)))


@pytest.mark.parametrize("op", [signal.rfft, signal.rfft2d])
def test_complex_numbers_and_integers_are_refused_where_real_ones_are_wanted(op):
    for dtype in (tw.complex64, tw.int32):
        with pytest.raises(tw.errors.DTypeError, match="input_tensor .*float"):
            op(tw.ones((4, 4), dtype))


def test_too_few_axes_are_named():
    with pytest.raises(ValueError, match="axis .*-1.*0.*got -2"):
        signal.fft2d(tw.ones(4, tw.complex64))
    with pytest.raises(tw.errors.ShapeError, match="input_tensor .*2"):
        signal.rfft2d(tw.ones(4))


@pytest.mark.parametrize("length", [[4, 4], 2.5, [[4]]])
def test_a_length_that_is_none_is_explained(length):
    with pytest.raises(ValueError, match="fft_length .*1 .*got"):
        signal.rfft(tw.ones(8), length)


@pytest.mark.parametrize("how, message", [
    ({"type": 5}, "type .*1.*2.*3.*4.*got 5"), ({"axis": 0}, "axis .*-1.*got 0"),
    ({"norm": "backward"}, "norm .*None"), ({"type": 1, "norm": "ortho"}, "norm .*None"),
])  # fmt: skip
def test_a_cosine_transform_of_an_unknown_kind_is_explained(how, message):
    with pytest.raises(ValueError, match=message):
        signal.dct(tw.ones(4), **how)


def test_cosine_transforms_are_of_floating_numbers():
    with pytest.raises(tw.errors.DTypeError, match="float32 or float64"):
        signal.dct(tw.ones(4, tw.int32))


def test_pieces_have_a_length_and_a_step():
    with pytest.raises(ValueError, match="frame_step .*1.*got 0"):
        signal.frame(tw.ones(4), 2, 0)
    with pytest.raises(ValueError, match="frame_length .*1.*got 0"):
        signal.frame(tw.ones(4), 0, 1)


def answer(name, axis, **attributes):
    op = get_primitive(name)
    return op.diagonal_rule((axis,), tw.zeros((2, 3, 4), tw.complex64), **attributes)


def test_a_transform_keeps_what_is_diagonal_in_another_axis():
    assert answer("fft", -2, axes=(-1,), inverse=False) == -2
    assert answer("fft", -1, axes=(-1,), inverse=False) is None
    assert answer("rfft", -3) == -3 and answer("rfft", -1) is None


def test_transforms_of_nothing_are_nothing():
    for shape in ((0,), (3, 0)):
        spectrum = tw.signal.rfft(tw.zeros(shape))
        assert (spectrum.shape, spectrum.dtype) == (shape, "complex64")
        signal = tw.signal.irfft(tw.zeros(shape, "complex128"))
        assert (signal.shape, signal.dtype) == (shape, "float64")
        x = tw.zeros(shape)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.function(tw.signal.rfft)(x)
        assert tape.gradient(y, x).shape == shape
    assert tw.signal.rfft(tw.zeros([0]), [4]).numpy().tolist() == [0, 0, 0]
    assert tw.signal.rfft(tw.ones([4]), [0]).shape == (0,)
