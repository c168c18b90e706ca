"""Colour spaces, hue and saturation: the op table, ties, grey, and wrong arguments."""

import colorsys

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, floats

PIXELS = floats(2, 3, low=0.1, high=0.9)


def each(function):
    return lambda x: np.apply_along_axis(lambda pixel: function(*pixel), -1, x)


def turned(x, delta):
    hsv = each(colorsys.rgb_to_hsv)(x)
    hsv[..., 0] += delta
    return each(colorsys.hsv_to_rgb)(hsv)


CASES = [
    case(tw.image.rgb_to_hsv, PIXELS, expect=each(colorsys.rgb_to_hsv)),
    case(tw.image.hsv_to_rgb, PIXELS, expect=each(colorsys.hsv_to_rgb)),
    case(tw.image.adjust_hue, floats(1, 2, 3, low=0.1, high=0.9), np.array(0.3),
         order=2, expect=turned),
    case(tw.image.adjust_saturation, floats(1, 2, 3, low=0.1, high=0.9), np.array(0.7),
         order=2),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_gray_is_a_weighted_mean_and_back_three_equal_channels():
    gray = tw.image.rgb_to_grayscale([[[0.0, 1.0, 0.0]]])
    assert gray.shape == (1, 1, 1) and gray.numpy().item() == np.float32(0.587)
    red = np.uint8([[[255, 0, 0]]])  # 0.2989 * 255.5, rounded down
    assert tw.image.rgb_to_grayscale(red).numpy().item() == 76
    assert tw.image.grayscale_to_rgb(gray).shape == (1, 1, 3)


def test_colour_systems_are_inverses():
    x = np.random.default_rng(0).random((2, 3, 3))
    yiq, yuv = tw.image.rgb_to_yiq(x), tw.image.rgb_to_yuv(x)
    luminance = x @ [0.299, 0.587, 0.114]
    np.testing.assert_allclose(yiq.numpy()[..., 0], luminance, atol=1e-12)
    np.testing.assert_allclose(yuv.numpy()[..., 0], luminance, atol=1e-12)
    np.testing.assert_allclose(tw.image.yiq_to_rgb(yiq).numpy(), x, atol=1e-4)
    np.testing.assert_allclose(tw.image.yuv_to_rgb(yuv).numpy(), x, atol=1e-4)


def test_each_image_may_have_a_change_of_its_own():
    x = np.random.default_rng(0).random((2, 3, 4, 3), "float32")
    for change in (tw.image.adjust_hue, tw.image.adjust_saturation):
        found = change(x, tw.constant([0.2, 0.7], shape=(2, 1, 1)))
        wanted = [change(x[0], 0.2), change(x[1], 0.7)]
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_at_ties_the_gradient_is_that_of_tensorflow():
    x = tw.constant([[0.7, 0.7, 0.2], [0.2, 0.7, 0.7], [0.7, 0.2, 0.7], [0.5, 0.5, 0.5],
                     [0.2, 0.2, 0.7], [0.7, 0.2, 0.2]])  # fmt: skip
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.reduce_sum(tw.image.rgb_to_hsv(x) * [1.0, 2.0, 4.0])
    # tf.image.rgb_to_hsv, 2.21
    wanted = [
        [4.482993125915527, 0.3333333432674408, -2.857142925262451],
        [-2.857142925262451, 4.482993125915527, 0.3333333432674408],
        [5.149660110473633, -2.857142925262451, -0.3333333432674408],
        [8.0, 0.0, -4.0],
        [0.3333333432674408, -3.190476179122925, 4.81632661819458],
        [4.81632661819458, 0.3333333432674408, -3.190476179122925],
    ]
    np.testing.assert_allclose(tape.gradient(y, x), wanted, rtol=1e-5)


def test_what_is_no_number_stays_none():
    x = tw.constant([[np.nan, 0.5, 0.2], [0.1, np.nan, 0.2]])
    assert np.isnan(tw.image.rgb_to_hsv(x)).all()


@pytest.mark.parametrize("call, error, words", [
    (lambda x: tw.image.rgb_to_hsv(x[..., :2]), ValueError, "three channels"),
    (lambda x: tw.image.rgb_to_grayscale(x[..., :2]), ValueError, "three channels"),
    (lambda x: tw.image.rgb_to_yuv(x[..., :2]), ValueError, "three channels"),
    (lambda x: tw.image.grayscale_to_rgb(x), ValueError, "one channel"),
    (lambda x: tw.image.hsv_to_rgb([[1, 2, 3]]), TypeError, "images must be floating"),
    (lambda x: tw.image.adjust_hue(x, 1.5), ValueError, "delta .*-1 to 1, got 1.5"),
    (lambda x: tw.image.adjust_hue(x[0], 0.5), ValueError, "height, width, 3"),
    (lambda x: tw.image.adjust_saturation(x[..., :1], 0.5), ValueError, "three"),
    (lambda x: tw.image.ssim_multiscale(x, x, 1.0), ValueError, "filter_size = 11"),
    (lambda x: tw.image.ssim(x, x[:, :1], 1.0), ValueError, "images of one shape"),
    (lambda x: tw.image.psnr([x, x], [x, x, x], 1.0), ValueError, "broadcast"),
])  # fmt: skip
def test_a_wrong_argument_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call(tw.ones((4, 4, 3)))
