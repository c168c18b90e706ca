"""Images: the op table, values recorded from TensorFlow, and what each function promises."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.autodiff.testing import case, check_op, floats
from tapewright.ops.convolution.windows import fold
from tapewright.ops.image.adjusting import _standardized
from tapewright.ops.image.resampling import _resample_back, resample
from tapewright.ops.image.resizing import resize_keeping_dtype


def contrast(images, factor):
    mean = images.mean((-3, -2), keepdims=True)
    return (images - mean) * factor + mean


def bilinear(x, axis, size):
    """Interpolation between pixel centers, as NumPy has it."""
    extent = x.shape[axis]
    centers = (np.arange(size) + 0.5) * extent / size - 0.5
    sample = lambda row: np.interp(centers, np.arange(extent), row)  # noqa: E731
    return np.apply_along_axis(sample, axis, x)


def matrix(extent, size):
    return np.stack([bilinear(row, 0, size) for row in np.eye(extent)], axis=1)


def sliced(x, size, stride):
    """Windows of the axis before the last, one behind the other."""
    starts = range(0, x.shape[-2] - size + 1, stride)
    return np.stack([x[..., i : i + size, :] for i in starts], axis=-3)


def line(shape, axis, size, method="bilinear", antialias=False, expect=(None, None)):
    """Lines for resampling and its adjoint."""
    attributes = {"axis": axis, "size": size, "method": method, "antialias": antialias}
    out = list(shape)
    out[axis] = size
    return [
        case("resample", floats(*shape), expect=expect[0], **attributes),
        case("resample_back", floats(*out), extent=shape[axis], expect=expect[1], **attributes),
    ]  # fmt: skip


CASES = [
    case("adjust_contrast", floats(2, 3, 2), np.array(2.0), order=0, expect=contrast),
    case(
        "adjust_contrast", floats(2, 2, 2, 1), np.array(0.5), order=0, expect=contrast
    ),
    *line((2, 3, 2), -2, 5, expect=(
        lambda x: bilinear(x, -2, 5), lambda g: matrix(3, 5).T @ g)),
    *line((5, 2), -2, 2, expect=(
        lambda x: bilinear(x, -2, 2), lambda g: matrix(5, 2).T @ g)),
    *line((5, 2), -2, 3, antialias=True),
    *line((3, 1), -2, 7, "nearest", expect=(
        lambda x: x[[0, 0, 1, 1, 1, 2, 2]],
        lambda g: np.array([g[:2].sum(0), g[2:5].sum(0), g[5:].sum(0)]))),
    *line((4, 2), -2, 2, "area", expect=(
        lambda x: (x[::2] + x[1::2]) / 2, lambda g: np.repeat(g, 2, 0) / 2)),
    *line((4, 1), -2, 5, "bicubic"),
    *line((0, 4, 1), -2, 2, "lanczos3"),
    case("upsample", floats(2, 3, 2), axis=-2, times=3,
         expect=lambda x: np.repeat(x, 3, axis=1)),
    case("add_neighbours", floats(2, 6, 2), axis=-2, times=3,
         expect=lambda g: np.stack([g[:, :3].sum(1), g[:, 3:].sum(1)], axis=1)),
    case("unfold", floats(2, 5, 2), axis=-2, size=2, stride=2, padding="VALID",
         expect=lambda x: sliced(x, 2, 2)),
    case("unfold", floats(4, 1), axis=-2, size=2, stride=1, padding="SAME", dilation=2,
         expect=lambda x: np.array([[[0.0], x[1]], [x[0], x[2]], [x[1], x[3]], [x[2], [0.0]]])),
    case("fold", floats(3, 2, 1), extent=4, axis=-2, stride=1, padding="VALID",
         expect=lambda g: np.array([g[0, 0], g[0, 1] + g[1, 0], g[1, 1] + g[2, 0], g[2, 1]])),
    # composed of others
    case(resize_keeping_dtype, floats(1, 3, 2, 1), size=(2, 3), order=2,
         expect=lambda x: bilinear(bilinear(x, 1, 2), 2, 3)),
    case(tw.image.total_variation, floats(2, 3, 2, 1), order=2,
         expect=lambda x: np.abs(np.diff(x, axis=1)).sum((1, 2, 3))
         + np.abs(np.diff(x, axis=2)).sum((1, 2, 3))),
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


# ---------------------------------------------------------------------------- resizing

# tf.image.resize([[[1], [4], [9], [16], [25]]], (1, n), method, antialias=...), 2.21
RECORDED = [
    ("area", 3, False, [2.2, 9.4, 21.4]),
    ("area", 8, False, [1.0, 2.2, 4.0, 8.0, 10.4, 16.0, 21.4, 25.0]),
    ("bilinear", 3, False, [2.0, 9.0, 22.0]),
    ("bilinear", 3, True, [2.28571, 9.44444, 21.14286]),
    ("nearest", 3, False, [1.0, 9.0, 25.0]),
    ("nearest", 8, False, [1.0, 1.0, 4.0, 9.0, 9.0, 16.0, 25.0, 25.0]),
    ("bicubic", 3, True, [1.87692, 9.19535, 21.63077]),
    ("gaussian", 3, True, [2.82737, 9.68204, 20.12456]),
    ("gaussian", 3, False, [2.01773, 9.21301, 21.94681]),
    ("lanczos3", 3, True, [1.74649, 9.0, 21.8873]),
    ("lanczos3", 3, False, [1.52727, 9.0, 23.01945]),
    ("lanczos5", 3, True, [1.82949, 8.91359, 21.93496]),
    ("mitchellcubic", 3, True, [2.30866, 9.42768, 20.91403]),
    (
        "mitchellcubic", 8, False,
        [0.9578, 2.10134, 4.36502, 7.33377, 11.08377, 15.61502, 21.45485, 25.12659],
    ),
    (
        "bicubic", 8, False,
        [0.78413, 1.93264, 4.25391, 7.22266, 10.97266, 15.50391, 21.79929, 25.6476],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("method", "size", "antialias", "wanted"), RECORDED)
def test_every_method_has_the_values_of_tensorflow(method, size, antialias, wanted):
    x = tw.constant(np.arange(1, 6, dtype=np.float32).reshape(1, 5, 1) ** 2)
    out = tw.image.resize(x, (1, size), method, antialias=antialias).numpy().ravel()
    np.testing.assert_allclose(out, wanted, atol=1e-3 if method == "bicubic" else 2e-5)
    turned = tw.image.resize(
        tw.image.transpose(x), (size, 1), method, antialias=antialias
    )
    np.testing.assert_array_equal(turned.numpy().ravel(), out)


def test_images_are_resized_to_float32_unless_pixels_are_copied():
    for dtype in ("uint8", "int32", "float16", "float32", "float64"):
        x = tw.constant(np.arange(8).reshape(2, 4, 1).astype(dtype))
        assert tw.image.resize(x, (4, 3)).dtype == tw.float32
        assert tw.image.resize(x, (2, 4), "bicubic").dtype == tw.float32
        assert tw.image.resize(x, (4, 3), "nearest").dtype == dtype


# tf.image of np.arange(12).reshape(2, 2, 3), TensorFlow 2.21
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


def test_resized_integers_are_floats_unless_pixels_are_copied():
    x = tw.constant(np.arange(8, dtype=np.uint8).reshape(2, 4, 1))
    assert tw.image.resize(x, (4, 4)).dtype == tw.float32
    assert tw.image.resize(x, (2, 4)).dtype == tw.float32
    assert tw.image.resize(x, (4, 4), "nearest").dtype == tw.uint8


def test_the_aspect_ratio_may_be_kept():
    x = tw.ones((2, 4, 6, 1))
    assert tw.image.resize(x, (8, 9), preserve_aspect_ratio=True).shape == (2, 6, 9, 1)


def test_resize_with_pad_and_crop_end_in_the_size_that_is_asked_for():
    x = tw.constant(np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3, 1))
    padded = tw.image.resize_with_pad(x, 4, 3).numpy()[..., 0]
    np.testing.assert_array_equal(padded, [[0] * 3, [1, 2, 3], [4, 5, 6], [0] * 3])
    cropped = tw.image.resize_with_crop_or_pad(x, 4, 1).numpy()[..., 0]
    np.testing.assert_array_equal(cropped, [[0], [2], [5], [0]])


# ---------------------------------------------------------------------- boxes, turning

IMAGE = np.arange(24.0).reshape(1, 4, 3, 2)


def test_boxes_are_cut_and_filled():
    cut = tw.image.crop_to_bounding_box(IMAGE, 1, 0, 2, 3).numpy()
    np.testing.assert_array_equal(cut, IMAGE[:, 1:3])
    framed = tw.image.pad_to_bounding_box(cut, 2, 1, 5, 5).numpy()
    np.testing.assert_array_equal(framed[:, 2:4, 1:4], cut)
    assert framed.shape == (1, 5, 5, 2) and framed.sum() == cut.sum()
    middle = tw.image.central_crop(IMAGE, 0.5).numpy()
    np.testing.assert_array_equal(middle, IMAGE[:, 1:3])


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


# ------------------------------------------------------------------------------ colours


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


def test_a_constant_image_is_standardized_to_zeros_with_a_finite_slope():
    x = tw.constant(np.full((1, 2, 2, 1), 5.0))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.image.per_image_standardization(x)
    assert not y.numpy().any()
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


# ----------------------------------------------------------------- edges and distances


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
        (lambda: tw.image.resize(RGB[0], (2, 2)), "images .*height"),
        (lambda: tw.image.resize(RGB, (2, 2, 2)), "size must be two positive numbers"),
        (lambda: tw.image.resize(RGB, (0, 2)), "size must be two positive numbers"),
        (lambda: tw.image.resize(RGB, (2, 2), "linear"), "method .*'area'.*got 'linear'"),
        (lambda: tw.image.resize(RGB[:0], (2, 2)), "is empty"),
        (lambda: tw.image.central_crop(RGB, 0.0), r"central_fraction .*0.*got 0\.0"),
        (lambda: tw.image.crop_to_bounding_box(RGB, 2, 0, 3, 4), "-1 rows or columns below"),
        (lambda: tw.image.pad_to_bounding_box(RGB, 0, 0, 4, 3), "-1 rows or columns right"),
        (lambda: tw.image.extract_patches(RGB, 2, 1, 1, "SAME"), "images .*batch"),
        (lambda: tw.image.extract_patches(RGB[None], 5, 1, 1, "VALID"), "reach beyond"),
        (lambda: tw.image.adjust_gamma(RGB, -1), "gamma .*got -1"),
        (lambda: tw.image.rgb_to_grayscale(RGB[..., :2]), "three channels"),
        (lambda: tw.image.rgb_to_yuv(RGB[..., :2]), "three channels"),
        (lambda: tw.image.grayscale_to_rgb(RGB), "one channel"),
        (lambda: tw.image.psnr(RGB, RGB[:2], 1.0), "a and b must be images of one shape"),
        (lambda: tw.image.ssim(RGB, RGB, 1.0), "filter_size = 11 rows"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_the_ops_explain_what_does_not_fit():
    with pytest.raises(TypeError, match="'bilinear'.*got int32"):
        resample(tw.ones((2, 2), tw.int32), -2, 3, "bilinear")
    with pytest.raises(tw.errors.ShapeError, match="axis -2.*size 3"):
        _resample_back(tw.ones((2, 2)), 4, -2, 3, "bilinear")
    with pytest.raises(tw.errors.ShapeError, match="axis -3.*size 3"):
        fold(tw.ones((2, 2, 1)), 4, -2, 1, "VALID")


def test_many_repetitions_of_an_entry_are_made_at_once():
    x = tw.constant(np.arange(6.0).reshape(1, 2, 3, 1))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.keras.layers.UpSampling2D((1, 1 << 20))(x)
        total = tw.reduce_sum(y * y)
    assert y.shape == (1, 2, 3 << 20, 1)
    np.testing.assert_array_equal(y.numpy()[:, :, :: 1 << 20], x.numpy())
    np.testing.assert_array_equal(tape.gradient(total, x), 2.0 * x.numpy() * (1 << 20))
