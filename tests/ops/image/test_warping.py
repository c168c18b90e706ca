"""`affine_transform`: images sampled where a map says."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.image.warping import affine_transform

REFERENCE = Path(__file__).parents[2] / "layers" / "reference"
_spec = importlib.util.spec_from_file_location(
    "record_spatial", REFERENCE / "record_spatial.py"
)
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)
KERAS = dict(np.load(REFERENCE / "preprocessing.npz", allow_pickle=False))
TRANSFORMS = np.array(record.TRANSFORMS, "float32")


@pytest.mark.parametrize("modes", record.WARPS, ids=str)
def test_the_numbers_are_those_of_keras(modes):
    images = record.numbers(str(modes), record.WARPED)
    out = affine_transform(images, TRANSFORMS, *modes, fill_value=0.5)
    np.testing.assert_allclose(out, KERAS[str(modes)], rtol=1e-5, atol=1e-6)
    traced = tw.function(
        lambda x, t: affine_transform(x, t, *modes, fill_value=0.5),
        input_signature=[tw.TensorSpec([None] * 3 + [1]), tw.TensorSpec([None, 8])],
    )
    np.testing.assert_allclose(traced(images, TRANSFORMS), out, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("fill_mode", ["constant", "reflect", "wrap", "nearest"])
def test_gradients_are_those_of_differences(fill_mode):
    images = tw.constant(record.numbers("warp", (2, 3, 4, 1)))
    # A shift by parts of a pixel: no step below reaches a corner of the interpolation.
    maps = tw.constant([[1, 0, 0.4, 0, 1, 0.3, 0, 0], [1, 0, -1.3, 0, 1, 0.6, 0, 0.0]])
    c = record.numbers("c warp", images.shape)

    def loss(images, maps):
        return tw.reduce_sum(affine_transform(images, maps, fill_mode=fill_mode) * c)

    with tw.GradientTape() as tape:
        tape.watch([images, maps])
        value = loss(images, maps)
    d_images, d_maps = tape.gradient(value, [images, maps])
    for at, gradient, step in ((0, d_images, 1.0), (1, d_maps, 4e-3)):
        direction = record.numbers(f"direction {at}", gradient.shape)
        both = []
        for sign in (1, -1):
            moved = [images, maps]
            moved[at] = moved[at] + sign * step * direction
            both.append(float(loss(*moved)))
        difference = (both[0] - both[1]) / (2 * step)
        slope = float(tw.reduce_sum(gradient * direction))
        assert slope == pytest.approx(difference, rel=2e-3, abs=2e-3)


def test_one_map_serves_all_images_and_one_image_needs_no_batch():
    images = record.numbers("one", (2, 3, 4, 2))
    each = affine_transform(images, np.stack([TRANSFORMS[0]] * 2))
    np.testing.assert_array_equal(affine_transform(images, TRANSFORMS[0]), each)
    alone = affine_transform(images[0], TRANSFORMS[0])
    np.testing.assert_array_equal(alone, each[0])


def test_channels_may_come_first():
    images = record.numbers("first", (2, 3, 4, 2))
    out = affine_transform(
        images.transpose(0, 3, 1, 2), TRANSFORMS[0], data_format="channels_first"
    )
    expected = affine_transform(images, TRANSFORMS[0])
    np.testing.assert_array_equal(np.transpose(out, (0, 2, 3, 1)), expected)


def test_integers_become_floating():
    out = affine_transform(np.ones((1, 2, 2, 1), np.int32), [1, 0, 0.5, 0, 1, 0, 0, 0])
    assert out.dtype == "float32" and out.numpy().ravel().tolist() == [1, 0.5, 1, 0.5]


def test_wrong_arguments_are_refused():
    image, same = np.ones((2, 2, 1), "float32"), TRANSFORMS[0]
    with pytest.raises(ValueError, match="fill_mode .*'constant'.*got 'mirror'"):
        affine_transform(image, same, fill_mode="mirror")
    with pytest.raises(ValueError, match="interpolation .*'bilinear'.*got 'cubic'"):
        affine_transform(image, same, "cubic")
    with pytest.raises(tw.errors.ShapeError, match="images .*rank 3.*4"):
        affine_transform(image[0], same)
    with pytest.raises(tw.errors.ShapeError, match=r"transform .*\[8\]"):
        affine_transform(image, same[:6])
