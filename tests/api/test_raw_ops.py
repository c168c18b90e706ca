"""`tw.raw_ops.ImageProjectiveTransformV3`, with TensorFlow's numbers."""

import numpy as np
import pytest

import tapewright as tw

IMAGES = np.arange(24, dtype=np.float32).reshape(1, 4, 6, 1)
TRANSFORM = [[1.0, 0.1, 0.3, -0.1, 0.9, 0.2, 0.0, 0.0]]


def warped(images=IMAGES, transforms=TRANSFORM, output_shape=(3, 7), **options):
    options = {"fill_value": 7.0, "interpolation": "BILINEAR"} | options
    return tw.raw_ops.ImageProjectiveTransformV3(
        images=images, transforms=transforms, output_shape=output_shape, **options
    )


@pytest.mark.parametrize("options, last_row", [
    ({}, [12.5, 12.9, 13.3, 13.7, 14.1, 10.5, 7.0]),
    ({"fill_mode": "NEAREST"}, [12.5, 12.9, 13.3, 13.7, 14.1, 14.0, 13.4]),
    ({"fill_mode": "REFLECT"}, [12.5, 12.9, 13.3, 13.7, 14.1, 14.0, 12.9]),
    ({"fill_mode": "WRAP"}, [12.5, 12.9, 13.3, 13.7, 14.1, 9.0, 8.9]),
    ({"interpolation": "NEAREST"}, [13.0, 14.0, 15.0, 16.0, 17.0, 7.0, 7.0]),
])  # fmt: skip
def test_images_of_another_size_are_those_of_tensorflow(options, last_row):
    result = warped(**options)
    assert result.shape == (1, 3, 7, 1)
    np.testing.assert_allclose(result[0, 2, :, 0], last_row, rtol=1e-5)


@pytest.mark.parametrize("dtype, last_row", [
    ("uint8", [180, 184, 188, 192, 195, 81]),
    ("int32", [180, 184, 188, 192, 195, 81]),
    ("float16", [180.0, 184.0, 188.0, 192.0, 196.0, 81.8125]),
])  # fmt: skip
def test_the_dtype_is_kept(dtype, last_row):
    result = warped((IMAGES * 10).astype(dtype), output_shape=[4, 6])
    assert result.dtype == dtype
    np.testing.assert_allclose(result[0, 3, :, 0], last_row, rtol=1e-3)


def test_one_transform_serves_a_batch_also_in_a_function():
    batch = np.repeat(IMAGES, 2, 0)
    function = tw.function(lambda x: warped(x, output_shape=tw.shape(x)[1:3] - 2))
    result = function(batch)
    np.testing.assert_allclose(
        result[1, :, :, 0], [[1.5, 1.9, 2.3, 3.67], [7, 7.4, 7.8, 8.2]], rtol=1e-5
    )


@pytest.mark.parametrize("options, message", [
    ({"interpolation": "bilinear"}, "interpolation must be one of 'BILINEAR', 'NEAREST'"),
    ({"fill_mode": "EDGE"}, "fill_mode must be one of 'CONSTANT'.*got 'EDGE'"),
    ({"images": IMAGES[0]}, "images must have rank 4"),
    ({"transforms": TRANSFORM[0]}, r"transforms must be \[1, 8\]"),
    ({"transforms": TRANSFORM * 2}, r"transforms must be \[1, 8\]"),
    ({"output_shape": [3]}, "output_shape must be a height and a width"),
])  # fmt: skip
def test_what_makes_no_image_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        warped(**options)
