"""Edges, and the likeness of images."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, floats

CASES = [
    case(tw.image.total_variation, floats(2, 3, 2, 1), order=2,
         expect=lambda x: np.abs(np.diff(x, axis=1)).sum((1, 2, 3))
         + np.abs(np.diff(x, axis=2)).sum((1, 2, 3))),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


IMAGE = np.arange(24.0).reshape(1, 4, 3, 2)


def test_gradients_are_differences_to_the_next_pixel():
    dy, dx = tw.image.image_gradients(IMAGE)
    np.testing.assert_array_equal(dy.numpy()[:, :-1], np.diff(IMAGE, axis=1))
    np.testing.assert_array_equal(dx.numpy()[:, :, :-1], np.diff(IMAGE, axis=2))
    assert not dy.numpy()[:, -1].any() and not dx.numpy()[:, :, -1].any()


def test_sobel_edges_of_a_slope_are_eight_times_the_slope():
    edges = tw.image.sobel_edges(IMAGE).numpy()  # 6 a row, 2 a column
    np.testing.assert_array_equal(edges[:, 1:-1, 1:-1, :, 0], 48.0)
    np.testing.assert_array_equal(edges[:, 1:-1, 1:-1, :, 1], 16.0)
    assert not edges[:, 0, :, :, 0].any()  # mirrored


def test_distances_have_the_values_of_tensorflow():
    places = np.arange(2 * 12 * 13 * 2).reshape(2, 12, 13, 2)
    a, b = (places * 37 % 101 / 101).astype("f4"), (places * 53 % 97 / 97).astype("f4")
    # tf.image.ssim(a, b, 1.0) and tf.image.psnr(a, b, 1.0), 2.21
    np.testing.assert_allclose(
        tw.image.ssim(a, b, 1.0).numpy(), [0.03642942, 0.01113862], atol=1e-6
    )
    np.testing.assert_allclose(
        tw.image.psnr(a, b, 1.0).numpy(), [8.144471, 7.5231476], rtol=1e-6
    )
    whole = tw.image.ssim(a, b, 1.0, return_index_map=True).numpy()
    np.testing.assert_allclose(whole.mean((1, 2)), [0.03642942, 0.01113862], atol=1e-6)
    assert tw.image.ssim(a[0], a[0], 1.0).numpy() == pytest.approx(1.0)


RGB = tw.ones((4, 4, 3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tw.image.psnr(RGB, RGB[:2], 1.0), "a and b must be images of one shape"),
        (lambda: tw.image.ssim(RGB, RGB, 1.0), "filter_size = 11 rows"),
        (lambda: tw.image.total_variation(tw.cast(RGB, "uint8")), "images must be signed"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
