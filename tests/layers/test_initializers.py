"""Initializers: values, moments, names, seeds."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import constraints, initializers

SHAPE = (3, 3, 20, 60)  # fan_in 180, fan_out 540


# The bounds and deviations of the papers, for these fans.
UNIFORM = {
    "glorot_uniform": np.sqrt(6 / (180 + 540)),
    "he_uniform": np.sqrt(6 / 180),
    "lecun_uniform": np.sqrt(3 / 180),
    "random_uniform": 0.05,
}


NORMAL = {
    "glorot_normal": np.sqrt(2 / (180 + 540)),
    "he_normal": np.sqrt(2 / 180),
    "lecun_normal": np.sqrt(1 / 180),
    "random_normal": 0.05,
}


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform_ones_fill_their_interval(name):
    values = initializers.get(name)(SHAPE).numpy()
    limit = UNIFORM[name]
    assert values.dtype == np.float32 and values.shape == SHAPE
    assert -limit <= values.min() < -0.99 * limit
    assert 0.99 * limit < values.max() <= limit


@pytest.mark.parametrize("name", NORMAL)
def test_normal_ones_have_their_deviation(name):
    values = initializers.get(name)(SHAPE).numpy()
    assert values.std() == pytest.approx(NORMAL[name], rel=0.02)
    assert abs(values.mean()) < 0.02 * NORMAL[name]


def test_a_truncated_normal_stays_within_two_deviations():
    values = initializers.TruncatedNormal(mean=1.0, stddev=0.5)((50, 50)).numpy()
    assert values.min() >= 0.0 and values.max() <= 2.0


@pytest.mark.parametrize(
    "shape, fans", [((), (1, 1)), ((7,), (7, 7)), ((2, 3), (2, 3))]
)
def test_fans_of_small_shapes(shape, fans):
    scaling = initializers.VarianceScaling(3.0, "fan_avg", "uniform", seed=1)
    limit = np.sqrt(9 / (sum(fans) / 2))
    assert np.abs(scaling(shape)).max() <= limit


@pytest.mark.parametrize(
    "initializer, expected",
    [
        ("zeros", [[0, 0], [0, 0]]),
        ("ones", [[1, 1], [1, 1]]),
        (initializers.Constant(2.5), [[2.5, 2.5], [2.5, 2.5]]),
        (initializers.Constant([1.0, 2.0]), [[1, 2], [1, 2]]),
        (initializers.Identity(gain=2.0), [[2, 0], [0, 2]]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constants(initializer, expected, dtype):
    values = initializers.get(initializer)((2, 2), dtype=dtype)
    assert values.dtype == dtype and values.numpy().tolist() == expected


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (3, 2, 4)])
def test_orthogonal_rows_or_columns(shape):
    q = initializers.Orthogonal(gain=3.0)(shape).numpy().reshape(-1, shape[-1]) / 3
    small = q.T @ q if q.shape[0] >= q.shape[1] else q @ q.T
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-6)


def test_identity_and_orthogonal_name_their_wrong_shapes():
    with pytest.raises(ValueError, match=r"two axes, got \(3,\)"):
        initializers.Identity()((3,))
    with pytest.raises(ValueError, match=r"shape .*got \(3,\)"):
        initializers.Orthogonal()((3,))


@pytest.mark.parametrize("name", [*UNIFORM, *NORMAL, "orthogonal", "truncated_normal"])
def test_a_seed_gives_the_same_values_every_time(name):
    cls = type(initializers.get(name))
    first, second = cls(seed=3), cls(seed=3)
    np.testing.assert_array_equal(first((4, 4)), second((4, 4)))
    np.testing.assert_array_equal(first((4, 4)), first((4, 4)))
    assert not np.array_equal(first((4, 4)), cls(seed=4)((4, 4)))


def test_without_a_seed_the_global_stream_decides():
    tw.random.set_seed(5)
    first = initializers.get("glorot_uniform")((3,)).numpy()
    second = initializers.get("glorot_uniform")((3,)).numpy()
    tw.random.set_seed(5)
    np.testing.assert_array_equal(initializers.get("glorot_uniform")((3,)), first)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("name", ["he_normal", "HeNormal"])
def test_both_spellings_are_known(name):
    assert type(initializers.get(name)) is initializers.HeNormal


def test_classes_configs_callables_and_none_are_accepted():
    assert type(initializers.get(initializers.Ones)) is initializers.Ones
    config = {"class_name": "Constant", "config": {"value": 3.0}}
    assert initializers.get(config).value == 3.0
    assert initializers.get(np.zeros) is np.zeros
    assert initializers.get(None) is None


def test_configs_come_back():
    scaling = initializers.VarianceScaling(2.0, "fan_out", "uniform", seed=1)
    assert scaling.get_config() == {
        "scale": 2.0,
        "mode": "fan_out",
        "distribution": "uniform",
        "seed": 1,
    }
    assert repr(type(scaling).from_config(scaling.get_config())) == repr(scaling)


def test_unknown_names_and_settings_are_answered_with_known_names():
    with pytest.raises(ValueError, match="initializer 'glorot'.*glorot_normal"):
        initializers.get("glorot")
    with pytest.raises(ValueError, match="mode .*fan_in.*got 'fan'"):
        initializers.VarianceScaling(mode="fan")
    with pytest.raises(ValueError, match="scale .*got 0"):
        initializers.VarianceScaling(scale=0)
    with pytest.raises(TypeError, match="initializer: must be a name.*got 3"):
        initializers.get(3)


def test_a_constant_has_the_precision_of_its_dtype():
    values = initializers.Constant(0.1)((2,), dtype="float64")
    assert values.numpy().tolist() == [0.1, 0.1]


@pytest.mark.parametrize(
    "name, cls",
    [
        ("zero", "Zeros"),
        ("one", "Ones"),
        ("normal", "RandomNormal"),
        ("uniform", "RandomUniform"),
        ("IdentityInitializer", "Identity"),
        ("OrthogonalInitializer", "Orthogonal"),
    ],
)
def test_further_names_of_keras_are_known(name, cls):
    assert type(initializers.get(name)).__name__ == cls


def test_the_modules_have_lower_case_names_too():
    assert initializers.glorot_uniform is initializers.GlorotUniform
    assert initializers.OrthogonalInitializer is initializers.Orthogonal


def test_an_array_initializes_a_weight_of_its_shape():
    give = initializers.get(np.array([1.0, 2.0]))
    values = give((2,), dtype="float32")
    assert values.dtype == "float32" and values.numpy().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"shape \(2,\).*shape \(3,\)"):
        give((3,))


def test_axes_can_be_named_for_the_count_of_inputs_and_outputs():
    scaling = initializers.VarianceScaling(
        1.0, "fan_in", "uniform", seed=1, input_axes=[0, 2], output_axes=[1]
    )
    values = scaling((4, 90, 25)).numpy()
    limit = np.sqrt(3 / 100)
    assert 0.99 * limit < np.abs(values).max() <= limit
    config = scaling.get_config()
    assert (config["input_axes"], config["output_axes"]) == ([0, 2], [1])
    assert initializers.GlorotUniform(None, [0], [1]).output_axes == [1]


def test_a_config_of_keras_is_understood():
    config = {
        "module": "keras.initializers",
        "class_name": "HeNormal",
        "config": {"seed": 3, "input_axes": None, "output_axes": None},
        "registered_name": None,
    }
    found = initializers.deserialize(config)
    assert type(found) is initializers.HeNormal and found.seed == 3
    twin = found.clone()
    assert twin is not found and twin.get_config() == found.get_config()
    assert initializers.serialize(found)["class_name"] == "HeNormal"


def test_a_convolution_with_waves_is_a_short_time_fourier_transform():
    signal = np.sin(np.arange(20.0, dtype="float32") ** 1.3)
    expected = tw.signal.stft(signal, 8, 4, 8).numpy()  # with the periodic Hann window
    for side, part in (("real", expected.real), ("imag", expected.imag)):
        waves = initializers.STFTInitializer(side, "hann", None, periodic=True)(
            (8, 1, 5)
        )
        found = tw.nn.conv1d(signal[None, :, None], waves, 4, "VALID")[0]
        np.testing.assert_allclose(found, part, atol=2e-6)


def test_waves_are_scaled_by_their_window():
    symmetric = np.hamming(6)
    for scaling, scale in (("density", (symmetric**2).sum() ** 0.5),
                           ("spectrum", symmetric.sum())):  # fmt: skip
        waves = initializers.STFT("real", "hamming", scaling)((6, 1, 2))
        np.testing.assert_allclose(waves[:, 0, 0], symmetric / scale, rtol=1e-6)
    own = initializers.get(initializers.serialize(initializers.STFT(window=[1, 2])))
    np.testing.assert_allclose(own((2, 1, 2))[:, 0, 0], [5**-0.5, 2 * 5**-0.5])
    with pytest.raises(ValueError, match="must be 3 numbers"):
        own((3, 1, 2))
    with pytest.raises(ValueError, match="window must be one of 'boxcar'"):
        initializers.STFT(window="triangle")


@pytest.mark.parametrize("cls", [initializers.Zeros, constraints.NonNeg])
def test_a_class_without_arguments_refuses_them(cls):
    with pytest.raises(TypeError, match=rf"{cls.__name__}\(\) accepts no arguments"):
        cls(5)
