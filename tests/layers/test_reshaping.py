"""Layers that arrange entries anew: what the numbers of Keras do not show."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import (
    Cropping1D,
    Cropping2D,
    Cropping3D,
    Flatten,
    Permute,
    RepeatVector,
    Reshape,
    UpSampling1D,
    UpSampling2D,
    ZeroPadding1D,
    ZeroPadding2D,
    ZeroPadding3D,
)


def numbers(*shape):
    return np.random.normal(size=shape).astype("float32")


@pytest.mark.parametrize(
    "target, expected", [((-1,), (2, 24)), ((4, -1), (2, 4, 6)), ((2, 3, 4), None)]
)
def test_reshape_keeps_the_batch_and_finds_the_missing_size(target, expected):
    x = numbers(2, 6, 4)
    y = Reshape(target)(x)
    assert y.shape == (expected or (2, *target))
    np.testing.assert_array_equal(np.ravel(y), x.ravel())


def test_reshape_of_an_empty_batch_still_knows_the_missing_size():
    assert Reshape((3, -1))(numbers(0, 6)).shape == (0, 3, 2)


def test_reshape_with_unknown_sizes():
    layer = Reshape((-1, 2))
    assert layer.compute_output_shape((None, 6)) == (None, 3, 2)
    assert layer.compute_output_shape((None, None)) == (None, None, 2)
    traced = tw.function(layer, input_signature=[tw.TensorSpec([None, None])])
    assert traced(numbers(3, 8)).shape == (3, 4, 2)


@pytest.mark.parametrize("target", [(4,), (-1, 4), (0, -1)])
def test_reshape_refuses_what_does_not_fit(target):
    with pytest.raises(tw.errors.ShapeError, match="must have the 6 entries"):
        Reshape(target)(numbers(1, 6))


def test_flatten_with_unknown_sizes():
    assert Flatten().compute_output_shape((None, None, 3)) == (None, None)
    traced = tw.function(Flatten(), input_signature=[tw.TensorSpec([None, None, 3])])
    assert traced(numbers(2, 5, 3)).shape == (2, 15)


def test_integers_keep_their_dtype():
    x = np.arange(6, dtype=np.int32).reshape(1, 6, 1)
    for layer in (Flatten(), UpSampling1D(), ZeroPadding1D(), Cropping1D()):
        assert layer(x).dtype == "int32"


def test_an_int_or_pairs_say_the_margins():
    assert ZeroPadding2D(2).padding == ((2, 2), (2, 2))
    assert ZeroPadding2D((1, 2)).padding == ((1, 1), (2, 2))
    assert ZeroPadding2D(((1, 0), 2)).padding == ((1, 0), (2, 2))
    assert ZeroPadding1D((1, 3)).padding == (1, 3)
    assert ZeroPadding3D(1).padding == ((1, 1),) * 3
    assert Cropping1D(2).cropping == (2, 2)
    assert Cropping2D().cropping == ((0, 0), (0, 0))
    assert Cropping3D().cropping == ((1, 1),) * 3


def test_configs_are_those_of_keras():
    def own(layer):
        given = layer.get_config()
        return {
            k: v for k, v in given.items() if k not in ("name", "trainable", "dtype")
        }

    assert own(UpSampling1D(3)) == {"size": 3}
    assert own(UpSampling2D(3)) == {
        "size": (3, 3),
        "data_format": "channels_last",
        "interpolation": "nearest",
    }
    assert own(Cropping1D(1)) == {"cropping": (1, 1)}
    assert own(Reshape((2, -1))) == {"target_shape": (2, -1)}
    assert own(RepeatVector(2)) == {"n": 2}
    assert own(Permute((2, 1))) == {"dims": (2, 1)}


@pytest.mark.parametrize("layer", [UpSampling2D(2), UpSampling2D(3, None, "bilinear")])
def test_upsampling_of_images_of_unknown_size(layer):
    x = numbers(2, 3, 4, 2)
    traced = tw.function(layer, input_signature=[tw.TensorSpec([None, None, None, 2])])
    np.testing.assert_allclose(traced(x), layer(x), rtol=1e-6)
    assert layer.compute_output_shape((None, None, 4, 2))[:2] == (None, None)


def test_cropping_refuses_to_leave_nothing():
    with pytest.raises(tw.errors.ShapeError, match="must be smaller than the inputs"):
        Cropping1D((2, 1))(numbers(1, 3, 1))
    with pytest.raises(tw.errors.ShapeError, match="must be smaller than the inputs"):
        Cropping2D(2).compute_output_shape((None, 4, 9, 1))


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: Permute((0, 1)), r"dims .*axes 1.*2.*got \(0, 1\)"),
        (lambda: RepeatVector(0), "n must be a positive integer"),
        (lambda: RepeatVector(True), "n must be a positive integer"),
        (lambda: Reshape((-1, -1)), r"axis.*-1.*got \(-1, -1\)"),
        (lambda: Reshape((2, -3)), "target_shape.*0.*got -3"),
        (
            lambda: UpSampling2D(interpolation="linear"),
            "interpolation .*'nearest'.*got 'linear'",
        ),
        (lambda: ZeroPadding2D((1, 2, 3)), r"padding .*0.*2.*got \(1, 2, 3\)"),
        (lambda: ZeroPadding1D(-1), r"padding .*0.*got \[-1\]"),
        (lambda: Cropping2D(((1, 2, 3), 1)), r"cropping .*0.*got \(\(1, 2, 3\), 1\)"),
        (lambda: Flatten("last"), "data_format .*'channels_last'.*got 'last'"),
    ],
)
def test_wrong_arguments_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()
