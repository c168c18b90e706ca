"""Boxes: the op table, noise around glimpses, boxes drawn at random, wrong arguments."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.image.boxes import crop_in_double
from tapewright.test import case, check_op, floats

PLACES = np.array([[0.1, 0.2, 0.83, 0.95], [0.9, 0.65, -0.4, 0.1]])
IMAGE = np.arange(12.0, dtype="float32").reshape(1, 3, 4, 1)


def crop(image, boxes, owners):
    crops = crop_in_double(image, boxes, owners, (2, 1))
    return tw.cast(crops, image.dtype)


CASES = [
    case(crop, floats(2, 2, 3, 1), PLACES[:1], np.array([1])),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_the_gradient_of_the_nearest_pixels_does_not_pass_to_the_boxes():
    image, places = tw.constant(IMAGE), tw.constant(PLACES)
    with tw.GradientTape() as tape:
        tape.watch([image, places])
        y = tw.image.crop_and_resize(image, places, [0, 0], (2, 2), "nearest")
    d_image, d_places = tape.gradient(y, [image, places])
    assert d_image.numpy().sum() == 6 and d_places is None  # two of eight lie outside


def test_noise_surrounds_a_glimpse():
    tw.random.set_seed(1)
    x = np.tile(IMAGE, (1, 1, 1, 2)) + [0.0, 100.0]
    for noise, low, high in (("uniform", 0, 111), ("gaussian", -20, 131)):
        out = tw.image.extract_glimpse(x, (40, 50), [[0.0, 0.0]], noise=noise).numpy()
        np.testing.assert_array_equal(out[:, 18:21, 23:27], x)
        assert low <= out.min() < out.max() <= high and np.unique(out).size > 3900
    mean, spread = out.mean((0, 1, 2)), out.std((0, 1, 2))
    np.testing.assert_allclose(mean, [5.5, 105.5], atol=0.3)
    np.testing.assert_allclose(spread, IMAGE.std(), rtol=0.1)


def sampled(seed, **options):
    sample = tw.image.stateless_sample_distorted_bounding_box
    boxes = [[[0.2, 0.1, 0.5, 0.4], [0.0, 0.0, 0.01, 0.01]]]
    begin, size, box = sample(tw.constant([30, 40, 3]), boxes, seed, **options)
    assert begin.dtype == size.dtype == "int32" and box.shape == (1, 1, 4)
    (top, left, zero), (height, width, rest) = begin.numpy(), size.numpy()
    assert zero == 0 and rest == -1
    corners = np.array([top, left, top + height, left + width])
    np.testing.assert_allclose(box[0, 0], corners / [30, 40, 30, 40], rtol=1e-6)
    return corners


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_a_box_at_random_satisfies_what_is_asked_for(wrap):
    sample = tw.image.stateless_sample_distorted_bounding_box
    options = {"min_object_covered": 0.6, "aspect_ratio_range": (0.5, 2.0),
               "area_range": (0.1, 0.5)}  # fmt: skip
    boxes = tw.constant([[[0.2, 0.1, 0.5, 0.4], [0.0, 0.0, 0.01, 0.01]]])
    size = tw.constant([30, 40, 3])
    call = wrap(lambda seed: sample(size, boxes, seed, **options)[2])
    found = set()
    for i in range(30):
        top, left, down, right = np.rint(
            call(tw.constant([i, 1]))[0, 0] * [30.0, 40.0, 30.0, 40.0]
        )
        high, wide = down - top, right - left
        assert min(top, left) >= 0 and down <= 30 and right <= 40
        assert 120 <= high * wide <= 600 and 0.45 <= wide / high <= 2.2
        inside = min(down, 15) - max(top, 6), min(right, 16) - max(left, 4)
        assert min(inside) > 0 and inside[0] * inside[1] >= 0.6 * 9 * 12
        found.add((top, left, down, right))
    assert len(found) > 20


def test_equal_seeds_give_equal_boxes_and_no_seed_others():
    assert (sampled([1, 2]) == sampled([1, 2])).all()
    assert (sampled([1, 2]) != sampled([1, 3])).any()
    sample = tw.image.sample_distorted_bounding_box

    def draws(seed):
        tw.random.set_seed(3)
        args = [90, 90, 1], [[[0, 0, 1, 1]]], seed
        return [sample(*args)[2].numpy().tolist() for _ in range(2)]

    assert draws(7) == draws(7) != draws(0)
    assert draws(7)[0] != draws(7)[1] and draws(0)[0] != draws(0)[1]


def test_the_whole_image_is_left_if_no_box_fits():
    assert sampled([1, 2], min_object_covered=1.1).tolist() == [0, 0, 30, 40]
    begin, size, _ = tw.image.stateless_sample_distorted_bounding_box(
        [20, 20, 1], np.zeros((1, 0, 4)), [1, 2], 0.9, area_range=(1.0, 1.0),
        aspect_ratio_range=(1.0, 1.0), use_image_if_no_bounding_boxes=True,
    )  # fmt: skip
    assert begin.numpy().tolist() == [0, 0, 0] and size.numpy().tolist() == [20, 20, -1]


def proposed(size=(9, 9, 1), boxes=((((0, 0, 1, 1)),),), **options):
    return tw.image.sample_distorted_bounding_box(list(size), boxes, **options)


@pytest.mark.parametrize("call, error, words", [
    (lambda: tw.image.crop_and_resize(IMAGE, PLACES, [0, 1], (2, 2)), IndexError,
     "crop_and_resize: .*axis 0"),
    (lambda: tw.image.crop_and_resize(IMAGE, PLACES, [0, 0], (0, 2)), ValueError,
     "crop_size .*positive"),
    (lambda: tw.image.crop_and_resize(IMAGE, PLACES, [0, 0], 2, "cubic"), ValueError,
     "method .*'nearest'"),
    (lambda: tw.image.crop_and_resize(IMAGE, PLACES[0], [0], (2, 2)), ValueError,
     r"boxes must be \[n, 4\]"),
    (lambda: tw.image.extract_glimpse([[[[1]]]], (1, 1), [[0.0, 0.0]]), TypeError,
     "input must be floating"),
    (lambda: tw.image.extract_glimpse(IMAGE, (1, 1), [[0.0]]), ValueError, "offsets must"),
    (lambda: tw.image.extract_glimpse(IMAGE, (1, 1), [[0.0, 0.0]], noise="pink"),
     ValueError, "noise .*'zero'"),
    (lambda: tw.image.draw_bounding_boxes(IMAGE[..., :0], PLACES[None], None), ValueError,
     "1, 3 or 4 channels"),
    (lambda: tw.image.draw_bounding_boxes(IMAGE, PLACES, None), ValueError, "boxes must"),
    (lambda: tw.image.draw_bounding_boxes(IMAGE, PLACES[None], [1.0]), ValueError,
     "colors must"),
    (lambda: proposed((9, 9)), ValueError, r"image_size must be \[3\]"),
    (lambda: proposed(boxes=np.zeros((1, 0, 4))), ValueError, "has no boxes"),
    (lambda: proposed(boxes=[[[0, 0, 1, 1.5]]]), ValueError, "from 0 to 1"),
    (lambda: proposed(area_range=(0.5, 1.5)), ValueError, "area_range .*up to 1"),
    (lambda: proposed(aspect_ratio_range=(2, 1)), ValueError, "aspect_ratio_range"),
    (lambda: proposed(max_attempts=0), ValueError, "max_attempts .*1 or more"),
])  # fmt: skip
def test_a_wrong_argument_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
