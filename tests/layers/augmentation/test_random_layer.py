"""Random changes of images: their draws, dtypes, errors, and what belongs to images."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers
from tapewright.layers import (
    AugMix,
    AutoContrast,
    ContrastLimitedAdaptiveHistogramEqualization,
    CutMix,
    Equalization,
    MaxNumBoundingBoxes,
    MixUp,
    RandAugment,
    RandomBrightness,
    RandomColorDegeneration,
    RandomColorJitter,
    RandomContrast,
    RandomCrop,
    RandomElasticTransform,
    RandomErasing,
    RandomFlip,
    RandomGaussianBlur,
    RandomGrayscale,
    RandomHue,
    RandomInvert,
    RandomPerspective,
    RandomPosterization,
    RandomRotation,
    RandomSaturation,
    RandomSharpness,
    RandomShear,
    RandomTranslation,
    RandomZoom,
    Resizing,
    Solarization,
)

REFERENCE = Path(__file__).parents[1] / "reference"
_spec = importlib.util.spec_from_file_location(
    "record_spatial", REFERENCE / "record_spatial.py"
)
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)
KERAS = dict(np.load(REFERENCE / "preprocessing.npz", allow_pickle=False))

BOXES = {"bounding_box_format": "xyxy"}
ALL = [
    lambda **more: RandomFlip(**more),
    lambda **more: RandomRotation(0.2, **more),
    lambda **more: RandomTranslation(0.2, (0.1, 0.3), **more),
    lambda **more: RandomZoom(0.3, **more),
    lambda **more: RandomCrop(4, 3, **more),
    lambda **more: RandomBrightness(0.3, (-1, 1), **more),
    lambda **more: RandomContrast(0.3, (-1, 1), **more),
]
# Of these, too, the seed decides all: what each makes of images from 0 to 1.
UNIT = {"value_range": (0, 1)}
MORE = [
    lambda **more: RandomShear(0.3, 0.2, **more),
    lambda **more: RandomPerspective(0.8, 0.5, **more),
    lambda **more: RandomElasticTransform((0.9, 1.0), **UNIT, **more),
    lambda **more: RandomHue(0.3, **UNIT, **more),
    lambda **more: RandomSaturation(0.8, **more),
    lambda **more: RandomGrayscale(0.5, **more),
    lambda **more: RandomColorDegeneration(0.5, **UNIT, **more),
    lambda **more: RandomColorJitter((0, 1), 0.2, 0.2, 0.8, 0.2, **more),
    lambda **more: RandomInvert((0.5, 0.5), **UNIT, **more),
    lambda **more: RandomPosterization(7, **UNIT, **more),
    lambda **more: Solarization(0.4, 0.5, **UNIT, **more),
    lambda **more: RandomSharpness(0.9, **UNIT, **more),
    lambda **more: RandomGaussianBlur(0.9, **UNIT, **more),
    lambda **more: CutMix(**more),
    lambda **more: MixUp(**more),
    lambda **more: RandomErasing(0.9, (0.2, 0.6), **UNIT, **more),
    lambda **more: RandAugment((0, 1), **more),
    lambda **more: AugMix((0, 1), num_chains=2, **more),
]
DETERMINISTIC = [
    lambda **more: AutoContrast((0, 1), **more),
    lambda **more: Equalization((0, 1), **more),
    lambda **more: ContrastLimitedAdaptiveHistogramEqualization(
        (0, 1), tile_grid_size=(2, 2), **more
    ),
    lambda **more: Resizing(4, 3, **more),
]


def numbers(*shape):
    return np.random.normal(size=shape).astype("float32")


@pytest.mark.parametrize(
    "name, config, shape",
    record.AUGMENTATION,
    ids=[record.key(*c) for c in record.AUGMENTATION],
)
def test_a_transformation_does_what_it_does_in_keras(name, config, shape):
    layer, entry = getattr(layers, name)(**config), record.key(name, config, shape)
    drawn = {
        part: tw.constant(KERAS[f"{entry}|{part}"])
        for part in record.PARTS
        if f"{entry}|{part}" in KERAS
    }
    if "top" in drawn:
        drawn = drawn["top"], drawn["left"]
    images = tw.constant(record.numbers(entry, shape))
    outputs = layer.transform_images(images, drawn)
    np.testing.assert_allclose(outputs, KERAS[entry], rtol=1e-5, atol=1e-5)


def test_an_angle_has_the_matrix_of_keras():
    name, config, shape = next(c for c in record.AUGMENTATION if "Rotation" in c[0])
    entry = record.key(name, config, shape)
    matrix = RandomRotation(0.4)._tw_rotation(shape, KERAS[f"{entry}|angle"])
    np.testing.assert_allclose(
        matrix, KERAS[f"{entry}|rotation_matrix"], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("make", ALL)
def test_a_seed_gives_the_same_eager_traced_and_in_a_copy(make):
    x, layer = numbers(3, 6, 5, 2), make(seed=7)
    first = layer(x)
    again = type(layer).from_config(layer.get_config())
    np.testing.assert_array_equal(again(x), first)
    layer.generator.reset_from_seed(7)
    call = tw.function(layer, input_signature=[tw.TensorSpec([None, 6, 5, 2])])
    np.testing.assert_allclose(call(x), first, rtol=1e-5, atol=1e-5)
    assert (call(x).numpy() != first.numpy()).any()  # the stream goes on


@pytest.mark.parametrize("make", ALL)
def test_outside_of_training_nothing_is_random(make):
    x = numbers(3, 6, 5, 2)
    layer = make()
    np.testing.assert_array_equal(layer(x, training=False), x)


@pytest.mark.parametrize("make", ALL)
def test_one_image_and_integers_are_welcome(make):
    layer, x = make(), np.random.randint(0, 255, (6, 5, 2)).astype(np.uint8)
    y = layer(x)
    assert y.dtype == "float32" and tuple(y.shape) == layer.compute_output_shape(
        x.shape
    )


@pytest.mark.parametrize("make", ALL)
def test_gradients_pass_to_the_images(make):
    x, layer = tw.constant(numbers(2, 6, 5, 1) / 9), make(seed=1)
    with tw.GradientTape() as tape:
        tape.watch(x)
        loss = tw.reduce_sum(layer(x))
    assert np.abs(tape.gradient(loss, x)).max() > 0


def test_a_flip_mirrors_about_half_of_the_images():
    x = np.tile(np.arange(2.0, dtype="float32").reshape(1, 1, 2, 1), (400, 1, 1, 1))
    y = RandomFlip("horizontal", seed=1)(x).numpy()
    assert 160 < (y[:, 0, 0, 0] == 1).sum() < 240


def test_a_full_range_of_translations_is_used():
    layer = RandomTranslation((0.1, 0.3), 0.5, seed=1)
    drawn = layer.get_random_transformation(numbers(500, 10, 20, 1))["translations"]
    right, down = drawn.numpy().T
    assert 1 <= down.min() < 1.1 and 2.9 < down.max() <= 3
    assert -10 <= right.min() < -9.5 and 9.5 < right.max() <= 10


def test_every_corner_of_a_crop_occurs():
    x = np.arange(9.0, dtype="float32").reshape(1, 3, 3, 1)
    layer = RandomCrop(2, 2, seed=1)
    assert {float(layer(x)[0, 0, 0, 0]) for _ in range(40)} == {0, 1, 3, 4}


def test_a_crop_of_images_that_are_not_larger_is_cut_around_the_middle():
    x = np.arange(8.0, dtype="float32").reshape(1, 2, 4, 1)
    y = RandomCrop(2, 2)(x)
    assert y.numpy().ravel().tolist() == [1, 2, 5, 6]
    assert RandomCrop(4, 4)(x).shape == (1, 4, 4, 1)


@pytest.mark.parametrize(
    ("height", "width", "total"),  # of Keras 3.15
    [(10, 4, 119.733), (10, 10, 296.464), (8, 3, 69.719), (8, 6, 144.767)],
)
def test_a_crop_of_images_that_are_not_larger_is_that_of_keras(height, width, total):
    x = np.random.RandomState(0).rand(2, 8, 6, 3).astype("float32")
    y = RandomCrop(height, width)(x, training=True)
    assert y.shape == (2, height, width, 3)
    np.testing.assert_allclose(y.numpy().sum(), total, atol=2e-3)


def test_brightness_and_contrast_stay_in_their_range():
    x = numbers(5, 4, 4, 3)
    for layer in (RandomBrightness(1.0, (0, 1)), RandomContrast(1.0, (0, 1))):
        y = layer(x).numpy()
        assert 0 <= y.min() and y.max() <= 1


def test_factors_are_kept_as_keras_keeps_them():
    assert RandomRotation(0.2).factor == (-0.2, 0.2)
    assert RandomBrightness((0.3, 0.1)).factor == (0.1, 0.3)
    assert RandomContrast(0.2).factor == (0.2, 0.2)
    assert RandomZoom(0.2).get_config()["width_factor"] is None


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: RandomFlip("both"), "mode .*'horizontal'.*got 'both'"),
        (lambda: RandomRotation(1.5), r"factor .*-1.*1.*got 1\.5"),
        (
            lambda: RandomRotation(0.1, fill_mode="mirror"),
            "fill_mode .*'constant'.*got 'mirror'",
        ),
        (
            lambda: RandomRotation(0.1, interpolation="cubic"),
            "interpolation .*'bilinear'.*got 'cubic'",
        ),
        (lambda: RandomTranslation(0.1, "x"), "width_factor .*-1.*got 'x'"),
        (
            lambda: RandomZoom((-1.0, 0.5)),
            r"height_factor and width_factor.*-1.*got \(-1\.0, 0\.5\) and None",
        ),
        (lambda: RandomCrop(0, 2), "height .*got 0"),
        (lambda: RandomContrast(-0.1), r"factor .*0.*1.*got \(-0\.1, -0\.1\)"),
        (lambda: RandomBrightness(0.1, 255), "value_range .*got 255"),
        (lambda: AutoContrast((1, 1)), r"AutoContrast: value_range .*got \(1, 1\)"),
        (
            lambda: RandomHue(0.1, ("0", "1")),
            r"RandomHue: value_range .*got \('0', '1'\)",
        ),
    ],
)
def test_wrong_arguments_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def all_at_once():
    """Three images from 0 to 1, and all that may belong to them."""
    random = np.random.RandomState(0)
    boxes = np.float32([[[1, 1, 4, 5]], [[0, 2, 3, 4]], [[2, 2, 2, 2]]])
    return {
        "images": random.rand(3, 6, 6, 3).astype("float32"),
        "labels": np.eye(3, dtype="float32"),
        "bounding_boxes": {"boxes": boxes, "labels": np.int32([[4], [5], [-1]])},
        "segmentation_masks": random.randint(0, 4, (3, 6, 6, 1)).astype("uint8"),
        "names": np.arange(3),
    }


def first_of(data):
    return tw.nest.map_structure(lambda x: x[0], data)


def assert_close(a, b, **more):
    tw.nest.map_structure(lambda x, y: np.testing.assert_allclose(x, y, **more), a, b)


@pytest.mark.parametrize("make", MORE + DETERMINISTIC)
def test_all_that_belongs_to_images_changes_with_them(make):
    data, seed = all_at_once(), {} if make in DETERMINISTIC else {"seed": 7}
    layer = make(**seed, bounding_box_format="xyxy")
    if isinstance(layer, CutMix | RandomElasticTransform):
        del data["bounding_boxes"]
    together = layer(data)
    assert together.keys() == data.keys()
    np.testing.assert_array_equal(make(**seed)(data["images"]), together["images"])
    np.testing.assert_array_equal(together["names"], data["names"])
    again = make(**seed, bounding_box_format="xyxy")
    again = type(layer).from_config(again.get_config())
    assert_close(again(data), together, rtol=1e-6)
    traced = tw.function(make(**seed, bounding_box_format="xyxy"))
    assert_close(traced(data), together, rtol=1e-4, atol=1e-5)
    one = layer(first_of(data))
    assert one["images"].shape == together["images"].shape[1:]
    assert one["segmentation_masks"].shape == together["segmentation_masks"].shape[1:]
    still = layer(data, training=False)
    if make not in DETERMINISTIC:
        assert_close(still, data)


@pytest.mark.parametrize("make", MORE + DETERMINISTIC[:3])
def test_channels_may_come_first_in_other_dtypes(make):
    x, seed = all_at_once()["images"], {} if make in DETERMINISTIC else {"seed": 7}
    y = make(**seed)(x)
    first = make(**seed, data_format="channels_first")(np.moveaxis(x, -1, 1))
    is_noise = type(make()) is RandomErasing
    assert is_noise or np.allclose(np.moveaxis(first.numpy(), 1, -1), y, atol=1e-5)
    for policy in ("mixed_float16", "float64"):
        layer = make(**seed, dtype=policy)
        assert layer(x).dtype == layer.compute_dtype
    keeps = isinstance(layer, (RandomGrayscale, type(DETERMINISTIC[2]())))
    whole = (255 * x).astype("uint8")
    assert layer(whole).dtype == ("uint8" if keeps else "float64")


def test_layers_are_in_models_and_data_sets_with_all_that_belongs_to_images():
    data = all_at_once()
    inputs = tw.nest.map_structure(
        lambda x: tw.keras.Input(x.shape[1:], dtype=x.dtype.name), data
    )
    chain = [RandomShear(0.2, seed=1, **BOXES), RandAugment((0, 1), seed=1, **BOXES)]
    chain += [Resizing(4, 5, **BOXES), MaxNumBoundingBoxes(3, **BOXES)]
    outputs = inputs
    for layer in chain:
        outputs = layer(outputs)
    model = tw.keras.Model(inputs, outputs)
    assert outputs["images"].shape == (None, 4, 5, 3)
    assert outputs["bounding_boxes"]["boxes"].shape == (None, 3, 4)
    found = model(data)
    assert found["bounding_boxes"]["labels"].numpy()[:, 1:].tolist() == [[-1, -1]] * 3
    examples = tw.data.Dataset.from_tensor_slices(data)
    for layer in chain:
        examples = examples.map(layer)
    shapes = [each["images"].shape for each in examples]
    assert shapes == [(4, 5, 3)] * 3
    for layer in chain[2:]:
        shapes = tw.nest.map_structure(np.shape, data)
        assert layer.compute_output_shape(shapes)["labels"] == (3, 3)


def test_boxes_stay_around_what_they_hold():
    """A bright box in a dark image, whose mask is where the image is bright."""
    image = np.zeros((1, 40, 40, 1), "float32")
    image[0, 10:20, 12:28] = 1.0
    data = {
        "images": image,
        "segmentation_masks": image.astype("uint8"),
        "bounding_boxes": {"boxes": [[[12.0, 10.0, 28.0, 20.0]]], "labels": [[3]]},
    }
    options = {"fill_mode": "constant", "seed": 3, **BOXES}
    for layer in (
        RandomFlip(seed=4, **BOXES),
        RandomRotation((0.1, 0.2), **options),
        RandomTranslation(0.2, 0.2, **options),
        RandomZoom((0.2, 0.4), (-0.2, 0.3), **options),
        RandomShear((0.1, 0.3), (0.1, 0.3), **options),
        RandomPerspective((1.0, 1.0), 0.5, seed=3, **BOXES),
        RandomCrop(30, 26, seed=2, **BOXES),
        RandomCrop(60, 50, seed=2, **BOXES),
        Resizing(20, 30, **BOXES),
    ):
        out = layer(data)
        mask = out["segmentation_masks"].numpy()[0, ..., 0] > 0
        assert ((out["images"].numpy()[0, ..., 0] > 0.5) == mask).mean() > 0.97
        rows, columns = np.nonzero(mask)
        seen = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        box = out["bounding_boxes"]["boxes"].numpy()[0, 0]
        np.testing.assert_allclose(box, seen, atol=2.0), layer


def test_boxes_need_their_format_and_both_parts():
    data = all_at_once()
    with pytest.raises(ValueError, match=r"by get_random_transformation.*got \(1, 2\)"):
        RandomCrop(2, 2, **BOXES).transform_bounding_boxes({}, (1, 2))
    with pytest.raises(ValueError, match="bounding_box_format must be given"):
        RandomFlip()(data)
    boxes = data["bounding_boxes"]["boxes"]
    data["bounding_boxes"] = {"boxes": boxes}
    with pytest.raises(ValueError, match="bounding_boxes .*'boxes' and 'labels'"):
        RandomFlip(**BOXES)(data)
    data["bounding_boxes"] = {"boxes": boxes, "labels": np.arange(len(boxes))}
    with pytest.raises(
        tw.errors.ShapeError, match="labels must be .*one label for each box"
    ):
        RandomFlip(**BOXES)(data, training=False)
    with pytest.raises(ValueError, match="must have 'images'.*'labels'"):
        RandomFlip()({"labels": data["labels"]})
    for layer in (CutMix(**BOXES), RandomElasticTransform(**BOXES)):
        with pytest.raises(
            NotImplementedError, match="bounding_boxes are not supported"
        ):
            layer(all_at_once())


# ------------------------------------------------------------------- single layers


def test_probabilities_are_drawn_for_each_image():
    x = np.ones((2000, 1, 1, 3), "float32")
    inverted = RandomInvert((0.3, 0.3), **UNIT, seed=1)(x).numpy()[:, 0, 0, 0]
    assert 0.25 < (inverted == 0).mean() < 0.35
    inverted = RandomInvert(1.0, **UNIT, seed=1)(x).numpy()[:, 0, 0, 0]
    assert 0.45 < (inverted == 0).mean() < 0.55  # the probability is from 0 to 1
    bits = RandomPosterization(4, seed=1).get_random_transformation(x)["shift_factor"]
    assert set(bits.numpy()) == {5, 6, 7}  # 1 to 3 of 8 bits stay
    factor = RandomHue((0.5, 1.0), seed=1).get_random_transformation(x)["factor"]
    assert 0.25 <= np.abs(factor).min() and np.abs(factor).max() <= 0.5
    assert 0.4 < (factor.numpy() > 0).mean() < 0.6


def test_cut_mix_and_mix_up_mix_labels_as_images():
    x = np.stack([np.full((20, 20, 1), i, "float32") for i in (0.0, 1.0)])
    data = {"images": x, "labels": np.eye(2, dtype="float32"), "segmentation_masks": x}
    for layer in (CutMix(seed=2), MixUp(2.0, seed=2)):
        out = layer(data)
        shares = out["images"].numpy().mean((1, 2, 3))
        np.testing.assert_allclose(out["labels"][:, 1], shares, atol=0.06)
        np.testing.assert_array_equal(out["segmentation_masks"], out["images"])
        assert 0.01 < shares[0] < 0.99
    weights = MixUp(0.2, seed=1).get_random_transformation(np.ones((4000, 1, 1, 1)))
    weights = weights["mix_weight"].numpy()
    assert abs(weights.mean() - 0.5) < 0.02
    assert abs(weights.var() - 0.25 / 1.4) < 0.01  # of a beta distribution


def test_rand_augment_and_aug_mix_are_what_the_layers_inside_make():
    data = all_at_once()
    layer = RandAugment((0, 1), num_ops=3, seed=1, **BOXES)
    drawn = layer.get_random_transformation(data)
    drawn["layer_idxes"] = tw.constant([0, 3, 0])
    x, masks, boxes = (data[key] for key in list(data)[:4] if key != "labels")
    boxes, masks = masks, boxes
    out = layer.transform_images(x, drawn)
    for name in ("random_shear", "random_brightness", "random_shear"):
        part, how = getattr(layer, name), drawn["transforms"][name]
        x = part.transform_images(x, how)
        masks = part.transform_segmentation_masks(masks, how)
        boxes = part.transform_bounding_boxes(boxes, how)
    np.testing.assert_array_equal(out, x)
    found = layer.transform_segmentation_masks(data["segmentation_masks"], drawn)
    np.testing.assert_array_equal(found, masks)
    found = layer.transform_bounding_boxes(data["bounding_boxes"], drawn)
    assert_close(found, boxes)
    layer = AugMix((0, 1), num_chains=2, chain_depth=2, seed=1)
    drawn = layer.get_random_transformation(data)
    drawn["layer_idxes"] = tw.constant([-1, 3, -1, -1])
    w, (a, b) = drawn["weight_sample"], drawn["chain_mixing_weights"].numpy()
    assert abs(a + b - 1) < 1e-6
    how = first_of(
        {k: v[1:] for k, v in drawn["chain_transforms"]["random_posterization"].items()}
    )
    x = tw.constant(data["images"])
    mixed = a * layer.random_posterization.transform_images(x, how) + b * x
    wanted = w * x + (1.0 - w) * mixed
    np.testing.assert_allclose(layer.transform_images(x, drawn), wanted, atol=1e-6)
    assert not hasattr(AugMix(all_ops=False), "random_sharpness")


def test_an_elastic_transform_moves_neighbours_alike():
    ramp = np.tile(np.arange(40.0, dtype="float32")[:, None], (1, 1, 40, 1))
    ramp = ramp.reshape(1, 40, 40, 1)
    layer = RandomElasticTransform((1.0, 1.0), (1.0, 1.0), fill_mode="nearest", seed=2)
    moves = layer(ramp).numpy()[0, 8:-8, 8:-8, 0] - ramp[0, 8:-8, 8:-8, 0]
    assert 0.2 < moves.std() < 3.0
    assert np.abs(np.diff(moves, axis=1)).mean() < 0.5 * moves.std()
    assert RandomElasticTransform(0.0).get_random_transformation(ramp) is None


def test_errors_of_single_layers_name_the_argument():
    for make, said in (
        (lambda: RandomShear("x"), "x_factor .*got 'x'"),
        (lambda: RandomPerspective(scale=2.0), r"scale .*0 to 1, got 2\.0"),
        (lambda: RandomGaussianBlur(kernel_size=4), "kernel_size .*odd.*got 4"),
        (lambda: RandomErasing(fill_value="black"), "fill_value .*got 'black'"),
        (lambda: RandomPosterization(9), "factor .*from 1 to 8.*got 9"),
        (lambda: Equalization(bins=0), "bins .*positive.*got 0"),
        (lambda: RandomFlip(bounding_box_format="xy"), "bounding_box_format .*'xyxy'"),
        (lambda: MaxNumBoundingBoxes(0), "max_number .*got 0"),
    ):
        with pytest.raises(ValueError, match=said):
            make()
    for layer in (RandomHue(0.2), RandomSaturation(0.2), RandomColorDegeneration(0.2)):
        with pytest.raises(tw.errors.ShapeError, match="three channels"):
            layer(np.ones((2, 3, 3, 2), "float32"))
