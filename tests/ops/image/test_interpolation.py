"""Arrays at coordinates between their entries, and scaled: beside NumPy's and Keras'."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.ops.image import elastic_transform
from tapewright.ops.image.interpolation import map_coordinates, scale_and_translate
from tapewright.test import case, check_op, floats


def linear(inputs, coordinates):
    return map_coordinates(inputs, coordinates, 1)


def cubic(images, scale, translation):
    return scale_and_translate(images, (3, 1), scale, translation, (0,), "cubic")


CASES = [
    case(linear, floats(2, 3), floats(2, 2, low=0.1, high=0.9)),
    case(cubic, floats(4, 1), np.array([1.3]), np.array([0.24]), order=2),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


# Of this module, and of `numpy.pad`.
MODES = {"constant": "constant", "nearest": "edge", "wrap": "wrap", "mirror": "reflect",
         "reflect": "symmetric"}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_the_outside_continues_as_a_padded_array_does(mode):
    x = np.random.default_rng(0).random((3, 4)).astype("float32")
    fill = {"constant_values": 0.5} if mode == "constant" else {}
    padded = np.pad(x, 9, MODES[mode], **fill)
    places = np.random.default_rng(1).uniform(-8, 10, (2, 5, 9)).astype("float32")
    nearest = np.rint(places).astype(int) + 9
    found = map_coordinates(x, places, 0, mode, 0.5)
    np.testing.assert_array_equal(found, padded[tuple(nearest)])
    low = np.floor(places).astype(int)
    (v, u), (i, j) = places - low, low + 9
    wanted = (1 - v) * ((1 - u) * padded[i, j] + u * padded[i, j + 1])
    wanted += v * ((1 - u) * padded[i + 1, j] + u * padded[i + 1, j + 1])
    found = map_coordinates(x, places, 1, mode, 0.5)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    whole = (x * 99).astype("uint8")
    found = map_coordinates(whole, np.abs(places) / 5, 1, mode)
    assert found.dtype == "uint8" and found.shape == (5, 9)


def test_a_scale_that_fills_the_axis_is_that_of_resize():
    x = np.random.default_rng(0).random((5, 7, 2)).astype("float32")
    for size, antialias in ((9, True), (3, True), (3, False)):
        for method in ("cubic", "lanczos3", "lanczos5", "linear"):
            if method == "linear" and not antialias:
                continue  # which leaves the edge out
            found = scale_and_translate(
                x, (size, 7, 2), [size / 5], [0.0], [0], method, antialias
            )
            name = {"cubic": "bicubic", "linear": "bilinear"}.get(method, method)
            wanted = tw.image.resize(x, (size, 7), name, antialias=antialias)
            np.testing.assert_allclose(found, wanted, atol=2e-5)
    moved = scale_and_translate(x, (5, 4, 2), [1.0, 1.0], [2, -3], (0, 1), "triangle")
    np.testing.assert_allclose(
        moved, np.pad(x, [(2, 0), (0, 0), (0, 0)])[:5, 3:], atol=1e-6
    )
    whole = (x * 9).astype("int16")
    found = scale_and_translate(whole, (5, 7, 2), [0.5], [0.0], (0,), "linear").numpy()
    assert found.dtype == "int16" and not found[3:].any()


def test_pixels_move_at_random_and_smoothly():
    x = np.broadcast_to(np.arange(40.0, dtype="float32")[:, None, None], (2, 40, 30, 1))
    np.testing.assert_array_equal(elastic_transform(x, alpha=0.0), x)
    out = elastic_transform(x, 2.0, 3.0, seed=1)
    np.testing.assert_array_equal(out, elastic_transform(x, 2.0, 3.0, seed=1))
    shifts = (out.numpy() - x)[:, 12:-12, 9:-9]  # down: the image says where it was
    # A blur of independent draws has their deviation over 2 sqrt(pi) sigma.
    assert 0.3 < shifts.std() / (2.0 * 3.0 / (2 * np.pi**0.5 * 3.0)) < 2.0
    assert np.abs(np.diff(shifts, axis=2)).max() < shifts.std()
    assert (shifts[0] != shifts[1]).any()
    first = elastic_transform(np.moveaxis(x, -1, 1), 2.0, 3.0, seed=1,
                              data_format="channels_first")  # fmt: skip
    np.testing.assert_array_equal(np.moveaxis(first, 1, -1), out)
    whole = elastic_transform(x[0].astype("uint8"), 9.0, 2.0, "nearest", "wrap")
    assert whole.dtype == "uint8" and set(np.unique(whole)) <= set(range(40))
    inputs = tw.keras.Input((6, 6, 1))
    assert elastic_transform(inputs, seed=1).shape == (None, 6, 6, 1)


@pytest.mark.parametrize("call, words", [
    (lambda x: map_coordinates(x, np.zeros((2, 1)), 2), "order must be 0 or 1, got 2"),
    (lambda x: map_coordinates(x, np.zeros((2, 1)), 1, "edge"), "fill_mode .*'reflect'"),
    (lambda x: map_coordinates(x, np.zeros((3, 1)), 1), r"coordinates must be \[2, ...\]"),
    (lambda x: map_coordinates(x, np.zeros(2), 1), "coordinates must be"),
    (lambda x: scale_and_translate(x, (4, 3), [1.0], [0.0], (0,), "area"), "method must"),
    (lambda x: scale_and_translate(x, (4, 4), [1.0], [0.0], (0,), "cubic"), "output_shape"),
    (lambda x: scale_and_translate(x, (4, 3), [1.0], [0.0, 0.0], (0,), "cubic"),
     r"must be \[1\]"),
    (lambda x: elastic_transform(x), "3 or 4 axes"),
    (lambda x: elastic_transform(x[..., None], interpolation="cubic"), "'bilinear'"),
])  # fmt: skip
def test_a_wrong_argument_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call(np.ones((2, 3), "float32"))
