"""Random changes of images."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers
from tapewright.layers import (
    RandomBrightness,
    RandomContrast,
    RandomCrop,
    RandomFlip,
    RandomRotation,
    RandomTranslation,
    RandomZoom,
)

REFERENCE = Path(__file__).parent / "reference"
_spec = importlib.util.spec_from_file_location(
    "record_spatial", REFERENCE / "record_spatial.py"
)
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)
KERAS = dict(np.load(REFERENCE / "preprocessing.npz", allow_pickle=False))

ALL = [
    lambda **more: RandomFlip(**more),
    lambda **more: RandomRotation(0.2, **more),
    lambda **more: RandomTranslation(0.2, (0.1, 0.3), **more),
    lambda **more: RandomZoom(0.3, **more),
    lambda **more: RandomCrop(4, 3, **more),
    lambda **more: RandomBrightness(0.3, (-1, 1), **more),
    lambda **more: RandomContrast(0.3, (-1, 1), **more),
]


def numbers(*shape):
    return np.random.normal(size=shape).astype("float32")


@pytest.mark.parametrize(
    "name, config, shape",
    record.AUGMENTATION,
    ids=[record.key(*c) for c in record.AUGMENTATION],
)
def test_a_transformation_does_what_it_does_in_keras(name, config, shape):
    layer, entry = getattr(layers, name)(**config), record.key(name, config, shape)
    drawn = {
        part: tw.constant(KERAS[f"{entry}|{part}"])
        for part in record.PARTS
        if f"{entry}|{part}" in KERAS
    }
    if "top" in drawn:
        drawn = drawn["top"], drawn["left"]
    images = tw.constant(record.numbers(entry, shape))
    outputs = layer.transform_images(images, drawn)
    np.testing.assert_allclose(outputs, KERAS[entry], rtol=1e-5, atol=1e-5)


def test_an_angle_has_the_matrix_of_keras():
    name, config, shape = next(c for c in record.AUGMENTATION if "Rotation" in c[0])
    entry = record.key(name, config, shape)
    matrix = RandomRotation(0.4)._rotation(numbers(*shape), KERAS[f"{entry}|angle"])
    np.testing.assert_allclose(
        matrix, KERAS[f"{entry}|rotation_matrix"], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("make", ALL)
def test_a_seed_gives_the_same_eager_traced_and_in_a_copy(make):
    x, layer = numbers(3, 6, 5, 2), make(seed=7)
    first = layer(x)
    again = type(layer).from_config(layer.get_config())
    np.testing.assert_array_equal(again(x), first)
    layer.generator.reset_from_seed(7)
    call = tw.function(layer, input_signature=[tw.TensorSpec([None, 6, 5, 2])])
    np.testing.assert_allclose(call(x), first, rtol=1e-5, atol=1e-5)
    assert (call(x).numpy() != first.numpy()).any()  # the stream goes on


@pytest.mark.parametrize("make", ALL)
def test_outside_of_training_nothing_is_random(make):
    x = numbers(3, 6, 5, 2)
    layer = make()
    np.testing.assert_array_equal(layer(x, training=False), x)


@pytest.mark.parametrize("make", ALL)
def test_one_image_and_integers_are_welcome(make):
    layer, x = make(), np.random.randint(0, 255, (6, 5, 2)).astype(np.uint8)
    y = layer(x)
    assert y.dtype == "float32" and tuple(y.shape) == layer.compute_output_shape(
        x.shape
    )


@pytest.mark.parametrize("make", ALL)
def test_gradients_pass_to_the_images(make):
    x, layer = tw.constant(numbers(2, 6, 5, 1) / 9), make(seed=1)
    with tw.GradientTape() as tape:
        tape.watch(x)
        loss = tw.reduce_sum(layer(x))
    assert np.abs(tape.gradient(loss, x)).max() > 0


def test_a_flip_mirrors_about_half_of_the_images():
    x = np.tile(np.arange(2.0, dtype="float32").reshape(1, 1, 2, 1), (400, 1, 1, 1))
    y = RandomFlip("horizontal", seed=1)(x).numpy()
    assert 160 < (y[:, 0, 0, 0] == 1).sum() < 240


def test_a_full_range_of_translations_is_used():
    layer = RandomTranslation((0.1, 0.3), 0.5, seed=1)
    drawn = layer.get_random_transformation(numbers(500, 10, 20, 1))["translations"]
    right, down = drawn.numpy().T
    assert 1 <= down.min() < 1.1 and 2.9 < down.max() <= 3
    assert -10 <= right.min() < -9.5 and 9.5 < right.max() <= 10


def test_every_corner_of_a_crop_occurs():
    x = np.arange(9.0, dtype="float32").reshape(1, 3, 3, 1)
    layer = RandomCrop(2, 2, seed=1)
    assert {float(layer(x)[0, 0, 0, 0]) for _ in range(40)} == {0, 1, 3, 4}


def test_a_crop_of_images_that_are_not_larger_is_cut_around_the_middle():
    x = np.arange(8.0, dtype="float32").reshape(1, 2, 4, 1)
    y = RandomCrop(2, 2)(x)
    assert y.numpy().ravel().tolist() == [1, 2, 5, 6]
    assert RandomCrop(4, 4)(x).shape == (1, 4, 4, 1)


@pytest.mark.parametrize(
    ("height", "width", "total"),  # of Keras 3.15
    [(10, 4, 119.733), (10, 10, 296.464), (8, 3, 69.719), (8, 6, 144.767)],
)
def test_a_crop_of_images_that_are_not_larger_is_that_of_keras(height, width, total):
    x = np.random.RandomState(0).rand(2, 8, 6, 3).astype("float32")
    y = RandomCrop(height, width)(x, training=True)
    assert y.shape == (2, height, width, 3)
    np.testing.assert_allclose(y.numpy().sum(), total, atol=2e-3)


def test_brightness_and_contrast_stay_in_their_range():
    x = numbers(5, 4, 4, 3)
    for layer in (RandomBrightness(1.0, (0, 1)), RandomContrast(1.0, (0, 1))):
        y = layer(x).numpy()
        assert 0 <= y.min() and y.max() <= 1


def test_factors_are_kept_as_keras_keeps_them():
    assert RandomRotation(0.2).factor == (-0.2, 0.2)
    assert RandomBrightness((0.3, 0.1)).factor == (0.1, 0.3)
    assert RandomContrast(0.2).factor == (0.2, 0.2)
    assert RandomZoom(0.2).get_config()["width_factor"] is None


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: RandomFlip("both"), "mode .*'horizontal'.*got 'both'"),
        (lambda: RandomRotation(1.5), r"factor .*-1.*1.*got 1\.5"),
        (
            lambda: RandomRotation(0.1, fill_mode="mirror"),
            "fill_mode .*'constant'.*got 'mirror'",
        ),
        (
            lambda: RandomRotation(0.1, interpolation="cubic"),
            "interpolation .*'bilinear'.*got 'cubic'",
        ),
        (lambda: RandomTranslation(0.1, "x"), "width_factor .*-1.*got 'x'"),
        (
            lambda: RandomZoom((-1.0, 0.5)),
            r"height_factor and width_factor.*-1.*got \(-1\.0, 0\.5\) and None",
        ),
        (lambda: RandomCrop(0, 2), "height .*got 0"),
        (lambda: RandomContrast(-0.1), r"factor .*0.*1.*got \(-0\.1, -0\.1\)"),
        (lambda: RandomBrightness(0.1, 255), "value_range .*got 255"),
    ],
)
def test_wrong_arguments_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()
