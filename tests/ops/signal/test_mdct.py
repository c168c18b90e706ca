"""The modified cosine transform, mel spectra, windows, Fourier transforms along any axes."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, complexes, floats

signal = tw.signal


def vorbis(length):
    angles = np.pi * (np.arange(length) + 0.5) / length
    return np.sin(np.pi / 2 * np.sin(angles) ** 2)


def mdct(x):
    """By the definition, of pieces of 8: twice the sum with the cosines."""
    half, n, k = 4, np.arange(8)[:, None], np.arange(4)
    basis = 2 * np.cos(np.pi / half * (n + 0.5 + half / 2) * (k + 0.5))
    pieces = [x[..., at : at + 8] for at in range(0, x.shape[-1] - 7, half)]
    return np.stack(pieces, axis=-2) * vorbis(8) @ basis


def eights(x):
    return signal.mdct(x, 8)


def restored(x):
    return signal.inverse_mdct(signal.mdct(x, 8, norm="ortho"), norm="ortho")[..., 4:-4]


def cepstrum(x):
    k, n = np.arange(5), np.arange(5)[:, None]
    return 2 * x @ np.cos(np.pi * k * (2 * n + 1) / 10) / np.sqrt(10)


def over_two(name, axes, length=None):
    function = getattr(signal, name)
    reference = getattr(np.fft, name.replace("nd", "n"))
    return case(
        lambda x: function(x, length, axes, "ortho"),
        (floats if name == "rfftnd" else complexes)(2, 3, 4),
        expect=lambda x: reference(x, length, axes, "ortho"), order=1,
        label=f"{name} {axes} {length}",
    )  # fmt: skip


CASES = [
    case(eights, floats(2, 18), expect=mdct, order=2),
    case(restored, floats(16), expect=lambda x: x[4:-4], order=1),
    case(signal.mfccs_from_log_mel_spectrograms, floats(2, 5), expect=cepstrum, order=1),
    over_two("fftnd", (0, 2), (3, 5)), over_two("ifftnd", (2, 0)),
    over_two("rfftnd", (2, 1)), over_two("rfftnd", (0,), (3,)),
    over_two("irfftnd", (1, 0), (3, 5)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_transforms_along_all_axes_are_numpys():
    x = np.random.default_rng(0).normal(size=(3, 4, 6))
    for norm in (None, "backward", "forward", "ortho"):
        for name in ("fftnd", "ifftnd", "rfftnd", "irfftnd"):
            given = x if name == "rfftnd" else x + 1j * x[::-1]
            wanted = getattr(np.fft, name.replace("nd", "n"))(given, norm=norm)
            found = getattr(signal, name)(given, norm=norm)
            np.testing.assert_allclose(found.numpy(), wanted, atol=1e-12)
    assert tw.fftnd is signal.fftnd and signal.rfftnd(x, [2, 2]).shape == (3, 2, 2)
    with pytest.raises(ValueError, match="fft_length must be 2 integers"):
        signal.fftnd(x + 0j, [2], axes=[0, 1])
    with pytest.raises(ValueError, match="rfftnd: norm must be"):
        signal.rfftnd(x, norm="unitary")


def test_a_padded_end_gives_further_pieces():
    x = np.random.default_rng(0).normal(size=18)
    found = signal.mdct(x, 8, pad_end=True)
    np.testing.assert_allclose(found.numpy(), mdct(np.pad(x, (0, 6))), atol=1e-12)
    plain = signal.mdct(np.ones(8), 8, window_fn=None, norm="ortho")
    whole = signal.mdct(np.ones(8), 8, window_fn=lambda n, dtype: tw.ones([n], dtype))
    np.testing.assert_allclose(plain * 8**0.5 * 2**0.5, whole.numpy(), atol=1e-12)
    with pytest.raises(ValueError, match="multiple of 4, got 6"):
        signal.mdct(x, 6)


# Of TensorFlow 2.21
WINDOWS = [
    (lambda: signal.kaiser_window(5, 5.0),
     [0.03671089, 0.55285168, 1.0, 0.55285168, 0.03671089]),
    (lambda: signal.kaiser_bessel_derived_window(8),
     [0.00607183, 0.38820618, 0.92157257, 0.99998152, 0.99998152, 0.92157257, 0.38820618,
      0.00607183]),
    (lambda: signal.kaiser_bessel_derived_window(5),
     [0.00726415, 0.9999736, 0.9999736, 0.00726415]),
    (lambda: signal.vorbis_window(5, tw.float64),
     [0.14943586, 0.85631905, 1.0, 0.85631905, 0.14943586]),
    (lambda: signal.kaiser_window(1), [1.0]), (lambda: signal.kaiser_window(0), []),
]  # fmt: skip
MEL = [
    [0, 0.96946634, 0.28889862, 0, 0, 0], [0, 0, 0.71110138, 0.68812988, 0.18316219, 0],
    [0, 0, 0, 0.31187012, 0.81683781, 0.74760272],
]  # fmt: skip


def test_windows_and_bands_are_tensorflows():
    for make, wanted in WINDOWS:
        np.testing.assert_allclose(make().numpy(), wanted, atol=1e-7)
    weights = signal.linear_to_mel_weight_matrix(7, 33, 16000, 0.0, 8000.0, tw.float64)
    assert weights.shape == (33, 7)
    np.testing.assert_allclose(weights.numpy()[:6, :3].T, MEL, atol=1e-7)
    beta = tw.constant(5.0, tw.float64)
    with tw.GradientTape() as tape:
        tape.watch(beta)
        window = signal.kaiser_window(5, beta, tw.float64)
    more, less = (signal.kaiser_window(5, 5 + e, tw.float64) for e in (1e-5, -1e-5))
    wanted = (tw.reduce_sum(more) - tw.reduce_sum(less)).numpy() / 2e-5
    np.testing.assert_allclose(tape.gradient(window, beta).numpy(), wanted, rtol=1e-8)


@pytest.mark.parametrize("call, error, text", [
    (lambda: signal.linear_to_mel_weight_matrix(upper_edge_hertz=5000.0), ValueError,
     "upper_edge_hertz <= sample_rate / 2"),
    (lambda: signal.linear_to_mel_weight_matrix(dtype="int32"), TypeError, "floating"),
    (lambda: signal.linear_to_mel_weight_matrix(0), ValueError, "num_mel_bins"),
    (lambda: signal.kaiser_window(4, dtype="int32"), TypeError, "floating"),
    (lambda: signal.inverse_mdct([1.0, 2.0]), ValueError, "two axes"),
    (lambda: signal.inverse_mdct([[1.0, 2.0]], norm="forward"), ValueError, "norm must be"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
