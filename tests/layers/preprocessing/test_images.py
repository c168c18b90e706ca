"""`Resizing` and `CenterCrop`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import (
    CenterCrop,
    Resizing,
)


def numbers(*shape):
    return np.random.normal(size=shape).astype("float32")


def traced(layer, *shape):
    return tw.function(layer, input_signature=[tw.TensorSpec(shape)])


def test_resized_integers_are_rounded_and_keep_their_dtype():
    image = np.array([[[0], [3], [255]]], np.uint8)
    y = Resizing(1, 2)(image)  # sampled at 0.25 and 1.75
    assert y.dtype == "uint8" and y.numpy().ravel().tolist() == [1, 192]
    assert Resizing(1, 2, "nearest")(image).dtype == "uint8"


def test_images_of_unknown_size_can_be_resized_and_cropped():
    x = numbers(2, 5, 7, 3)
    for layer in (
        Resizing(4, 3),
        Resizing(4, 3, crop_to_aspect_ratio=True),
        Resizing(4, 3, pad_to_aspect_ratio=True),
        CenterCrop(4, 3),
        CenterCrop(6, 3),
    ):
        call = traced(layer, None, None, None, 3)
        np.testing.assert_allclose(call(x), layer(x), rtol=1e-5, atol=1e-6)
        assert layer.compute_output_shape((None,) * 3 + (3,))[0] is None


def test_other_ranks_are_refused():
    with pytest.raises(tw.errors.ShapeError, match=r"rank 3.*got shape \(4, 4\)"):
        Resizing(2, 2)(numbers(4, 4))
