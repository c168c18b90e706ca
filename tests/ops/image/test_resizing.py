"""Resizing: the op table, values recorded from TensorFlow, wrong arguments."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.convolution.windows import fold
from tapewright.ops.image.resampling import METHODS, resample, resample_back
from tapewright.ops.image.resizing import resize_keeping_dtype
from tapewright.test import case, check_op, floats


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
    case(resize_keeping_dtype, floats(1, 3, 2, 1), size=(2, 3), order=2,
         expect=lambda x: bilinear(bilinear(x, 1, 2), 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


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


def test_half_precision_is_resized_in_single():
    x = np.linspace(0, 1, 8, dtype=np.float16).reshape(2, 4, 1)
    np.testing.assert_array_equal(
        tw.image.resize(x, (5, 7)), tw.image.resize(x.astype(np.float32), (5, 7))
    )


def test_the_aspect_ratio_may_be_kept():
    x = tw.ones((2, 4, 6, 1))
    assert tw.image.resize(x, (8, 9), preserve_aspect_ratio=True).shape == (2, 6, 9, 1)


def test_resize_with_pad_and_crop_end_in_the_size_that_is_asked_for():
    x = tw.constant(np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3, 1))
    padded = tw.image.resize_with_pad(x, 4, 3).numpy()[..., 0]
    np.testing.assert_array_equal(padded, [[0] * 3, [1, 2, 3], [4, 5, 6], [0] * 3])
    cropped = tw.image.resize_with_crop_or_pad(x, 4, 1).numpy()[..., 0]
    np.testing.assert_array_equal(cropped, [[0], [2], [5], [0]])


RGB = tw.ones((4, 4, 3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tw.image.resize(RGB[0], (2, 2)), "images .*height"),
        (lambda: tw.image.resize(RGB, (2, 2, 2)), "size must be two positive numbers"),
        (lambda: tw.image.resize(RGB, (0, 2)), "size must be two positive numbers"),
        (lambda: tw.image.resize(RGB, (2, 2), "linear"), "method .*'area'.*got 'linear'"),
        (lambda: tw.image.resize(RGB[:0], (2, 2)), "is empty"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_the_ops_explain_what_does_not_fit():
    with pytest.raises(TypeError, match="'bilinear'.*got int32"):
        resample(tw.ones((2, 2), tw.int32), -2, 3, "bilinear")
    with pytest.raises(tw.errors.ShapeError, match="axis -2.*size 3"):
        resample_back(tw.ones((2, 2)), 4, -2, 3, "bilinear")
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


RATIOS = [
    ((2, 5, 6, 3), (10, 12)), ((2, 6, 8, 1), (3, 4)), ((1, 4, 4, 2), (16, 8)),
    ((1, 9, 6, 2), (3, 18)), ((1, 3, 3, 2), (3, 3)), ((1, 1, 4, 2), (8, 8)),
    ((1, 5, 5, 2), (7, 8)),
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape, size", RATIOS)
@pytest.mark.parametrize("antialias", [False, True])
def test_traced_images_and_their_gradients_are_those_of_eager_mode(
    method, shape, size, antialias, few_passes, device
):
    x = tw.constant(np.random.default_rng(0).normal(size=shape), "float64")
    # Images are float32, and CUDA's square of them is not rounded as a product is.
    near = 1e-11 if device == "cpu" else 2e-6

    def resized(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.image.resize(x, size, method, antialias=antialias)
            loss = tw.reduce_sum(y**3)
        return y, tape.gradient(loss, x)

    with tw.config.use_target("native"):
        traced = tw.function(resized)
        for found, wanted in zip(traced(x), resized(x)):
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), near, near)
        text = traced.get_concrete_function(x).pretty()
    divides = all(n % m == 0 or m % n == 0 for n, m in zip(shape[1:3], size))
    if divides and method in ("area", "bilinear", "bicubic", "nearest"):
        assert "no machine code" not in text
