"""Transforms of one image as an array, against Keras' numbers."""

from pathlib import Path

import numpy as np
import pytest

from tapewright.keras.preprocessing import image

MODES = ("nearest", "constant", "reflect", "wrap")


def test_affine_transforms_are_those_of_keras():
    recorded = np.load(Path(__file__).parent / "reference" / "image_transforms.npz")
    x = recorded["x"]
    for i, (row, expected) in enumerate(zip(recorded["numbers"], recorded["results"])):
        how = (MODES[i % 4], 7.0, i // 4 % 2)
        found = image.apply_affine_transform(x, *row, 0, 1, 2, *how)
        np.testing.assert_array_equal(found, expected, err_msg=str(how))


def test_random_transforms_follow_the_seed_of_numpy():
    x = np.arange(24.0).reshape(1, 4, 6)
    np.random.seed(3)
    expected = image.apply_affine_transform(x, theta=np.random.uniform(-30, 30))
    np.random.seed(3)
    np.testing.assert_array_equal(image.random_rotation(x, 30), expected)


def test_bad_arguments_are_refused():
    x = np.zeros((3, 3, 1))
    for axes in ((0, 2, 0), (1, 3, 0), (0, 2, 1)):
        with pytest.raises(
            ValueError, match=rf"must be 0, 1 and 2, .* got \({axes[0]}"
        ):
            image.apply_affine_transform(x, 0, 0, 0, 0, 1, 1, *axes)
    with pytest.raises(ValueError, match="x must have rank 3"):
        image.apply_affine_transform(x[0])
    with pytest.raises(ValueError, match="order"):
        image.apply_affine_transform(x, theta=1, order=3)
    with pytest.raises(ValueError, match="zoom_range must be two floats, got"):
        image.random_zoom(x, (1,))
