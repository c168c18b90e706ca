"""Kinds of dropout and noise, and `ActivityRegularization`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import (
    ActivityRegularization,
    AlphaDropout,
    Dropout,
    GaussianDropout,
    GaussianNoise,
    SpatialDropout1D,
    SpatialDropout2D,
    SpatialDropout3D,
)
from tapewright.layers.base import masks


def numbers(*shape):
    return np.random.normal(size=shape).astype("float32")


# -------------------------------------------------------------------------- Dropout


def test_dropout_zeroes_a_share_and_scales_the_rest():
    y = Dropout(0.2)(tw.ones([200, 100]), training=True).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1.25)}
    assert (y == 0).mean() == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("training", [False, None])
def test_dropout_does_nothing_outside_training(training):
    x = tw.constant([1.0, 2.0])
    assert Dropout(0.9)(x, training=training) is x


def test_dropout_at_its_ends():
    x = tw.ones([50])
    assert Dropout(0)(x, training=True) is x
    assert not Dropout(1.0)(x, training=True).numpy().any()


def test_the_gradient_of_dropout_is_its_mask():
    x = tw.constant(numbers(20, 10))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = Dropout(0.5)(x, training=True)
    np.testing.assert_allclose(tape.gradient(y, x), y.numpy() / x.numpy(), rtol=1e-6)


def test_the_noise_shape_says_which_axes_share_a_draw():
    y = Dropout(0.5, noise_shape=(None, 1, None))(tw.ones([4, 30, 5]), training=True)
    assert (y.numpy() == y.numpy()[:, :1]).all()
    assert len(np.unique(y.numpy()[:, 0])) == 2


def test_a_noise_shape_of_another_rank_is_refused():
    layer = Dropout(0.5, noise_shape=(None, 1), name="drop")
    with pytest.raises(
        ValueError, match=r"'drop'.*noise_shape must be \(2, 3, 4\).*got \(None, 1\)"
    ):
        layer(tw.ones([2, 3, 4]), training=True)


@pytest.mark.parametrize("noise_shape", [(None, 0), (1.5, 1), "12"])
def test_a_noise_shape_has_positive_sizes(noise_shape):
    with pytest.raises(ValueError, match="Dropout: .*noise_shape must be"):
        Dropout(0.5, noise_shape)


def test_a_seed_makes_a_stream_of_its_own():
    x = tw.ones([100])
    first, second = Dropout(0.5, seed=7), Dropout(0.5, seed=7)
    y = first(x, training=True).numpy()
    tw.random.normal([3])
    np.testing.assert_array_equal(second(x, training=True), y)
    assert not np.array_equal(first(x, training=True), y)


def test_without_a_seed_the_global_stream_decides():
    layer, x = Dropout(0.5), tw.ones([100])
    tw.random.set_seed(3)
    y = layer(x, training=True).numpy()
    tw.random.set_seed(3)
    np.testing.assert_array_equal(layer(x, training=True), y)


@pytest.mark.parametrize("rate", [-0.1, 1.5])
def test_rates_lie_between_0_and_1(rate):
    with pytest.raises(ValueError, match=f"rate .*got {rate}"):
        Dropout(rate)


def test_dropout_config_makes_the_same_layer():
    config = Dropout(0.5, noise_shape=(None, 1), seed=3).get_config()
    assert config["noise_shape"] == (None, 1)
    assert Dropout.from_config(config).get_config() == config


# ------------------------------------------------------------------- SpatialDropout


@pytest.mark.parametrize(
    "layer, shape, steps",
    [
        (SpatialDropout1D(0.5), (4, 9, 5), (1,)),
        (SpatialDropout2D(0.5), (4, 3, 3, 5), (1, 2)),
        (SpatialDropout2D(0.5, "channels_first"), (4, 5, 3, 3), (2, 3)),
        (SpatialDropout3D(0.5), (4, 2, 3, 2, 5), (1, 2, 3)),
        (
            SpatialDropout3D(0.5, data_format="channels_first"),
            (4, 5, 2, 3, 2),
            (2, 3, 4),
        ),
    ],
)
def test_spatial_dropout_drops_whole_channels_of_an_example(layer, shape, steps):
    y = layer(tw.ones(shape), training=True).numpy()
    of_channels = y.mean(axis=steps)
    assert set(np.unique(of_channels)) == {0.0, 2.0} and of_channels.shape == (4, 5)
    np.testing.assert_array_equal(y.max(axis=steps), of_channels)


def test_spatial_dropout_refuses_other_ranks_and_formats():
    with pytest.raises(ValueError, match="rank 4"):
        SpatialDropout2D(0.5)(tw.ones([2, 3, 4]))
    with pytest.raises(ValueError, match="SpatialDropout3D: data_format .*got 'NCHW'"):
        SpatialDropout3D(0.5, data_format="NCHW")


def test_the_config_of_spatial_dropout_has_the_keys_of_keras():
    config = SpatialDropout2D(0.25, seed=1, name="s").get_config()
    assert config == {
        "rate": 0.25, "data_format": "channels_last", "seed": 1, "name": "s",
        "dtype": "float32",
    }  # fmt: skip
    assert SpatialDropout2D.from_config(config).get_config() == config
    assert set(SpatialDropout1D(0.5).get_config()) == {"rate", "seed", "name", "dtype"}


# ------------------------------------------------------------------- Gaussian noises


def test_gaussian_noise_has_mean_0_and_the_given_deviation():
    y = GaussianNoise(0.3, seed=1)(tw.ones([200, 100]), training=True).numpy() - 1
    assert y.mean() == pytest.approx(0, abs=0.01)
    assert y.std() == pytest.approx(0.3, rel=0.02)


def test_gaussian_dropout_multiplies_by_noise_around_1():
    y = GaussianDropout(0.2, seed=1)(tw.fill([200, 100], 2.0), training=True).numpy()
    assert y.mean() == pytest.approx(2, abs=0.02)
    assert y.std() == pytest.approx(2 * np.sqrt(0.2 / 0.8), rel=0.02)


def test_alpha_dropout_keeps_mean_and_variance():
    x = numbers(300, 200)
    y = AlphaDropout(0.3, seed=1)(x, training=True).numpy()
    assert y.mean() == pytest.approx(0, abs=0.02)
    assert y.std() == pytest.approx(1, abs=0.02)


def test_alpha_dropout_drops_to_the_low_end_of_selu():
    layer = AlphaDropout(0.25, noise_shape=(None, 1), seed=1)
    y = layer(tw.zeros([50, 4]), training=True).numpy()
    assert (y == y[:, :1]).all()
    low = -1.6732632423543772 * 1.0507009873554805
    a = (0.75 * (1 + 0.25 * low**2)) ** -0.5
    b = -a * low * 0.25
    np.testing.assert_allclose(np.unique(y), [a * low + b, b], rtol=1e-5)


NOISES = [
    Dropout(0.5, seed=1),
    SpatialDropout1D(0.5, seed=1),
    GaussianNoise(0.5, seed=1),
    GaussianDropout(0.5, seed=1),
    AlphaDropout(0.5, seed=1),
]


@pytest.mark.parametrize("layer", NOISES, ids=lambda layer: layer.name)
def test_noise_is_for_training_and_passes_masks_on(layer):
    x, mask = tw.constant(numbers(2, 3, 4)), tw.constant(np.ones((2, 3), bool))
    assert layer(x) is x
    masks.attach(x, mask)
    assert masks.mask_of(layer(x, training=True)) is mask
    assert layer.compute_output_shape((None, 3, 4)) == (None, 3, 4)


@pytest.mark.parametrize("layer", NOISES, ids=lambda layer: layer.name)
def test_a_trace_draws_the_same_for_any_batch_size(layer):
    config = layer.get_config()
    x = tw.constant(numbers(3, 2, 4))
    eager = type(layer).from_config(config)
    traced = type(layer).from_config(config)
    signature = [tw.TensorSpec([None, 2, 4])]
    call = tw.function(lambda x: traced(x, training=True), input_signature=signature)
    for _ in range(2):
        np.testing.assert_allclose(call(x), eager(x, training=True), rtol=1e-6)
        np.testing.assert_allclose(call(x[:2]), eager(x[:2], training=True), rtol=1e-6)


@pytest.mark.parametrize("cls", [GaussianDropout, AlphaDropout])
def test_these_cannot_drop_everything(cls):
    with pytest.raises(ValueError, match=r"rate .*got 1\.0"):
        cls(1.0)


def test_the_deviation_of_noise_is_not_negative():
    with pytest.raises(ValueError, match="stddev .*got -1"):
        GaussianNoise(-1)


# ----------------------------------------------------------- ActivityRegularization


def test_activity_regularization_adds_a_penalty_per_example():
    layer = ActivityRegularization(l1=0.1, l2=0.01)
    x = tw.constant([[1.0, -2.0], [3.0, 0.0]])
    assert layer(x) is x
    assert [float(v) for v in layer.losses] == pytest.approx([(0.6 + 0.14) / 2])


def test_the_config_of_activity_regularization_has_its_factors():
    config = ActivityRegularization(l1=0.5, name="a").get_config()
    assert config["l1"] == 0.5 and "activity_regularizer" not in config
    assert ActivityRegularization.from_config(config).get_config() == config
