"""Images cut, padded, turned, and their patches."""

import numpy as np
import pytest

import tapewright as tw

IMAGE = np.arange(24.0).reshape(1, 4, 3, 2)


def test_boxes_are_cut_and_filled():
    cut = tw.image.crop_to_bounding_box(IMAGE, 1, 0, 2, 3).numpy()
    np.testing.assert_array_equal(cut, IMAGE[:, 1:3])
    framed = tw.image.pad_to_bounding_box(cut, 2, 1, 5, 5).numpy()
    np.testing.assert_array_equal(framed[:, 2:4, 1:4], cut)
    assert framed.shape == (1, 5, 5, 2) and framed.sum() == cut.sum()
    middle = tw.image.central_crop(IMAGE, 0.5).numpy()
    np.testing.assert_array_equal(middle, IMAGE[:, 1:3])


@pytest.mark.parametrize("jit_compile", [False, True])
def test_boxes_may_stand_where_tensors_of_a_trace_say(jit_compile):
    @tw.function(jit_compile=jit_compile)
    def cut_and_fill(image, top, left):
        cut = tw.image.crop_to_bounding_box(image, top, left, 2, 2)
        return cut, tw.image.pad_to_bounding_box(cut, top, left, 5, 4)

    cut, framed = cut_and_fill(IMAGE, tw.constant(1), tw.constant(0))
    np.testing.assert_array_equal(cut, IMAGE[:, 1:3, :2])
    np.testing.assert_array_equal(framed[:, 1:3, :2], cut)
    assert framed.shape == (1, 5, 4, 2)
    assert float(tw.reduce_sum(framed)) == float(tw.reduce_sum(cut))
    with tw.device("CPU"), pytest.raises(tw.errors.OutOfBoundsError):
        cut_and_fill(IMAGE, tw.constant(3), tw.constant(0))


def test_sizes_of_boxes_and_turns_may_be_traced():
    n, image = tw.constant(2), tw.constant(IMAGE)
    for call in (
        lambda n: tw.image.crop_to_bounding_box(image, n, 1, n, n),
        lambda n: tw.image.pad_to_bounding_box(image, n, 1, n + 5, n + 4),
        lambda n: tw.image.resize_with_crop_or_pad(image, n, n + 3),
        lambda n: tw.image.rot90(image, n),
    ):
        np.testing.assert_array_equal(tw.function(call)(n), call(n))


def test_images_are_turned_and_mirrored_as_arrays_are():
    image = IMAGE[0]
    for k in range(-1, 6):
        np.testing.assert_array_equal(
            tw.image.rot90(image, k).numpy(), np.rot90(image, k)
        )
    np.testing.assert_array_equal(
        tw.image.flip_left_right(IMAGE).numpy(), IMAGE[:, :, ::-1]
    )
    np.testing.assert_array_equal(tw.image.flip_up_down(IMAGE).numpy(), IMAGE[:, ::-1])


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_patches_are_windows_row_by_row(padding):
    out = tw.image.extract_patches(
        IMAGE, [1, 2, 2, 1], [1, 2, 1, 1], [1, 1, 1, 1], padding
    ).numpy()
    framed = np.pad(IMAGE, [(0, 0), (0, 0), (0, padding == "SAME"), (0, 0)])
    for i in range(2):
        for j in range(framed.shape[2] - 1):
            window = framed[0, 2 * i : 2 * i + 2, j : j + 2]
            np.testing.assert_array_equal(out[0, i, j], window.ravel())
    assert out.shape == (1, 2, framed.shape[2] - 1, 8)


RGB = tw.ones((4, 4, 3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tw.image.central_crop(RGB, 0.0), r"central_fraction .*0.*got 0\.0"),
        (lambda: tw.image.crop_to_bounding_box(RGB, 2, 0, 3, 4), "-1 rows or columns below"),
        (lambda: tw.image.pad_to_bounding_box(RGB, 0, 0, 4, 3), "-1 rows or columns right"),
        (lambda: tw.image.extract_patches(RGB, 2, 1, 1, "SAME"), "images .*batch"),
        (lambda: tw.image.extract_patches(RGB[None], 5, 1, 1, "VALID"), "must not exceed"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
