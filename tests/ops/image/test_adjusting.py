"""Brightness, contrast and standardization: the op table, integers, no gradient."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.image.adjusting import _standardized
from tapewright.test import case, check_op, floats


def contrast(images, factor):
    mean = images.mean((-3, -2), keepdims=True)
    return (images - mean) * factor + mean


CASES = [
    case("adjust_contrast", floats(2, 3, 2), np.array(2.0), order=0, expect=contrast),
    case(
        "adjust_contrast", floats(2, 2, 2, 1), np.array(0.5), order=0, expect=contrast
    ),
    case(_standardized, floats(2, 3, 2, 1), order=2,
         expect=lambda x: (x - x.mean((1, 2, 3), keepdims=True))
         / np.maximum(x.std((1, 2, 3), keepdims=True), 6**-0.5)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_adjust_contrast_has_no_gradient_and_says_so():
    x = tw.ones((2, 2, 1))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.image.adjust_contrast(x, 2.0)
    with pytest.raises(LookupError, match="AdjustContrastv2"):
        tape.gradient(y, x)


def test_images_must_have_three_axes():
    with pytest.raises(tw.errors.ShapeError, match="height, width, channels"):
        tw.image.adjust_contrast(tw.ones((2, 2)), 2.0)


STANDARDIZED = [-1.593255, -1.3035723, -1.0138896, -0.7242068, -0.4345241, -0.14484136]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float16", "float64"])
def test_any_dtype_is_standardized_by_its_values(dtype):
    x = np.arange(12).reshape(2, 2, 3).astype(dtype)
    for images in (x, x[None], np.stack([x, x])[None]):
        out = tw.image.per_image_standardization(images)
        assert out.dtype == tw.float32 and out.shape == images.shape
        rows = out.numpy().reshape(-1, 12)
        np.testing.assert_allclose(rows[:, :6], np.tile(STANDARDIZED, (len(rows), 1)),
                                   rtol=1e-5)  # fmt: skip
    assert tw.image.per_image_standardization(x[None][:0]).shape == (0, 2, 2, 3)


def test_the_contrast_of_integers_is_adjusted_and_saturates():
    x = np.arange(0, 240, 20).reshape(2, 2, 3).astype("uint8")
    by_hand = (x - x.mean((0, 1))) * 2 + x.mean((0, 1))
    for dtype in ("uint8", "int32"):
        out = tw.image.adjust_contrast(x.astype(dtype), 2.0)
        assert out.dtype == dtype
    out = tw.image.adjust_contrast(x, 2.0).numpy()
    np.testing.assert_array_equal(out, np.clip(by_hand, 0, 255).astype("uint8"))


def test_dtypes_of_images_are_scaled_to_their_ranges():
    convert = tw.image.convert_image_dtype
    assert convert(np.uint8([0, 51, 255]), "float32").numpy().tolist() == pytest.approx(
        [0, 0.2, 1]
    )
    assert convert(np.float32([-0.5, 0.5, 2]), "uint8", saturate=True).numpy().tolist() == [
        0, 127, 255
    ]  # fmt: skip
    assert convert(np.uint8([1, 255]), "uint16").numpy().tolist() == [256, 65280]
    assert convert(np.uint16([256, 65535]), "uint8").numpy().tolist() == [1, 255]


def test_integer_images_are_brightened_on_the_scale_from_0_to_1():
    x = np.uint8([[[0], [100], [250]]])
    assert tw.image.adjust_brightness(x, 0.1).numpy().ravel().tolist() == [25, 125, 255]
    assert tw.image.adjust_gamma(x, 2.0).numpy().ravel().tolist() == [0, 39, 245]


def test_a_constant_image_is_standardized_to_zeros_with_a_finite_slope():
    x = tw.constant(np.full((1, 2, 2, 1), 5.0))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.image.per_image_standardization(x)
    assert not y.numpy().any()
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


def test_a_negative_gamma_is_refused():
    with pytest.raises(ValueError, match="gamma .*got -1"):
        tw.image.adjust_gamma(tw.ones((4, 4, 3)), -1)
