"""Writes ``augmentation.npz``: what Keras' layers make of images and what belongs to them.

Needs Keras 3 and TensorFlow, which tapewright does not:

    KERAS_BACKEND=tensorflow python tests/layers/reference/record_augmentation.py

For each of `CASES` the transformation ``KEY|drawn|NAME`` that Keras drew, and what it makes
of the images, and of boxes, labels and masks where these change: ``KEY|images`` and so on.
For `BOXES` what the functions of ``keras.utils.bounding_boxes`` give. The configs of `CASES`
are in ``KEY|config``, as JSON. Inputs come from `inputs_of`.
"""

import json
import os
import pathlib
import zlib

import numpy as np

FIRST = {"data_format": "channels_first"}
UNIT = {"value_range": (0, 1)}
XYXY, REL = {"bounding_box_format": "xyxy"}, {"bounding_box_format": "rel_xywh"}
YX = {"bounding_box_format": "yxyx"}
COLORS, SQUARE = (3, 4, 5, 3), (3, 6, 6, 1)
ALL = ("boxes", "masks")


def case(layer, config, shape, dtype="float32", parts=()):
    """A layer, its images, and what else it is to transform."""
    return layer, config, shape, dtype, parts


CASES = [
    case("RandomFlip", XYXY, SQUARE, parts=ALL),
    case("RandomFlip", {"mode": "horizontal", **REL}, (3, 6, 5, 1), "uint8", ALL),
    case("RandomRotation", {"factor": 0.3, **XYXY}, SQUARE, parts=ALL),
    case("RandomTranslation", {"height_factor": 0.5, "width_factor": 0.3, **REL},
         (3, 6, 5, 1), "uint8", ALL),
    case("RandomZoom", {"height_factor": 0.5, "width_factor": 0.3, **YX}, (3, 6, 5, 1),
         parts=ALL),
    case("RandomShear", {"x_factor": 0.6, **XYXY}, SQUARE, parts=ALL),
    case("RandomShear", {"y_factor": (0.2, 0.7), "fill_mode": "constant", **REL}, SQUARE,
         "uint8", ("boxes",)),
    case("RandomShear", {"x_factor": 0.6, "y_factor": 0.5, "interpolation": "nearest",
         **FIRST}, (3, 2, 5, 4)),
    case("RandomPerspective", {"scale": 0.6, **XYXY}, (3, 6, 5, 1), parts=ALL),
    case("RandomPerspective", {"factor": 0.8, "fill_value": 7.0, **FIRST}, (3, 2, 5, 4),
         "uint8"),
    case("Resizing", {"height": 4, "width": 7, **XYXY}, (2, 6, 5, 1), parts=ALL),
    case("Resizing", {"height": 4, "width": 7, "crop_to_aspect_ratio": True, **REL},
         (2, 6, 5, 1), parts=ALL),
    case("Resizing", {"height": 4, "width": 7, "pad_to_aspect_ratio": True, **YX},
         (2, 6, 5, 1), parts=("boxes",)),
    case("CenterCrop", {"height": 4, "width": 3, **REL}, (2, 6, 5, 1), "uint8", ALL),
    case("CenterCrop", {"height": 7, "width": 4, **XYXY}, (2, 6, 5, 1), parts=ALL),
    case("MaxNumBoundingBoxes", {"max_number": 2, **XYXY}, (2, 6, 5, 1), parts=("boxes",)),
    case("MaxNumBoundingBoxes", {"max_number": 5, **XYXY}, (2, 6, 5, 1), parts=("boxes",)),
    case("RandomGrayscale", {"factor": 0.5}, COLORS, "uint8"),
    case("RandomGrayscale", {"factor": 0.5, **FIRST}, (3, 3, 4, 2)),
    case("RandomHue", {"factor": 0.9}, COLORS, "uint8"),
    case("RandomHue", {"factor": (0.2, 0.6), **UNIT, **FIRST}, (3, 3, 4, 2)),
    case("RandomSaturation", {"factor": 0.7}, COLORS),
    case("RandomSaturation", {"factor": (0.3, 0.9), **UNIT, **FIRST}, (3, 3, 4, 2)),
    case("RandomColorDegeneration", {"factor": 0.7}, COLORS, "uint8"),
    case("RandomColorDegeneration", {"factor": (0.1, 0.4), **FIRST}, (3, 3, 4, 2)),
    case("RandomInvert", {"factor": 0.7}, COLORS, "uint8"),
    case("RandomInvert", {**UNIT, **FIRST}, (3, 2, 4, 2)),
    case("RandomPosterization", {"factor": 7}, COLORS, "uint8"),
    case("RandomPosterization", {"factor": (3, 3), **UNIT}, COLORS),
    case("RandomSharpness", {"factor": 0.9}, COLORS, "uint8"),
    case("RandomSharpness", {"factor": (0.1, 0.3), **FIRST}, (3, 2, 5, 4)),
    case("RandomGaussianBlur", {"factor": 0.9, "kernel_size": 5}, COLORS, "uint8"),
    case("RandomGaussianBlur", {"sigma": (0.5, 0.9), **FIRST}, (3, 2, 5, 4)),
    case("Solarization", {"addition_factor": 0.3, "threshold_factor": 0.8}, COLORS,
         "uint8"),
    case("Solarization", {"threshold_factor": (0.2, 0.6), **UNIT}, COLORS),
    case("AutoContrast", {}, COLORS, "uint8"),
    case("AutoContrast", UNIT, COLORS),
    case("Equalization", {}, COLORS, "uint8"),
    case("Equalization", {"bins": 9}, COLORS, "uint8"),
    case("Equalization", {**UNIT, **FIRST}, (3, 2, 4, 5)),
    case("ContrastLimitedAdaptiveHistogramEqualization", {"tile_grid_size": (3, 2)},
         (2, 8, 7, 2), "uint8"),
    case("ContrastLimitedAdaptiveHistogramEqualization",
         {"tile_grid_size": (2, 2), "clip_limit": 40.0, **UNIT, **FIRST}, (2, 2, 6, 6)),
    case("ContrastLimitedAdaptiveHistogramEqualization",
         {"tile_grid_size": (2, 3), "clip_limit": 0}, (9, 9, 1)),
    case("CutMix", {"factor": 0.8}, SQUARE, "uint8", ("labels", "masks")),
    case("CutMix", FIRST, (3, 1, 4, 5), parts=("labels",)),
    case("MixUp", {"alpha": 0.5}, SQUARE, "uint8", ("labels",)),
    case("RandomErasing", {"factor": 0.9, "scale": (0.1, 0.6)}, SQUARE, "uint8"),
    case("RandomErasing", {"fill_value": (3, 4, 5), "scale": (0.1, 0.6)}, COLORS),
]  # fmt: skip

# Those whose transformations are made of other things here, for their configs.
OTHERS = [
    case("RandomElasticTransform", {"scale": 0.5, "seed": 3}, COLORS),
    case(
        "RandomColorJitter",
        {"brightness_factor": 0.5, "hue_factor": (0.1, 0.2)},
        COLORS,
    ),
    case("RandAugment", {"num_ops": 3, "factor": 0.25, "seed": 3}, COLORS),
    case("AugMix", {"num_chains": 2, "all_ops": False}, COLORS),
]

FORMATS = ("xyxy yxyx xywh center_xywh center_yxhw rel_xyxy rel_yxyx rel_xywh "
           "rel_center_xywh").split()  # fmt: skip


def key(name, config, shape, dtype, parts):
    """The name of an entry."""
    return f"{name} {config} {shape} {dtype}"


def inputs_of(entry, config, shape, dtype):
    """Images, boxes, labels and masks, the same for the same text ``entry``."""
    random = np.random.default_rng(zlib.crc32(entry.encode()))
    images = random.integers(0, 256, shape)
    if config.get("value_range") == (0, 1):
        images = images / 255.0
    batch, n = shape[0], 3
    first = config.get("data_format") == "channels_first"
    height, width = shape[-2:] if first else shape[-3:-1]
    start = random.uniform(0, 0.7, (batch, n, 2))
    size = np.minimum(random.uniform(0.1, 0.5, (batch, n, 2)), 1 - start)
    if not config.get("bounding_box_format", "").startswith("rel"):
        start, size = start * (width, height), size * (width, height)
    boxes = np.concatenate([start, start + size], -1)
    if config.get("bounding_box_format") == "yxyx":
        boxes = boxes[..., [1, 0, 3, 2]]
    if config.get("bounding_box_format") == "rel_xywh":
        boxes = np.concatenate([start, size], -1)
    return {
        "images": images.astype(dtype),
        "boxes": boxes.astype("float32"),
        "classes": random.integers(0, 9, (batch, n)).astype("int32"),
        "labels": np.eye(4, dtype="float32")[random.integers(0, 4, batch)],
        "masks": random.integers(0, 9, shape).astype("uint8"),
    }


def record_layer(name, config, shape, dtype, parts):
    import keras

    entry = key(name, config, shape, dtype, parts)
    layer = getattr(keras.layers, name)(**config)
    given = inputs_of(entry, config, shape, dtype)
    images = keras.ops.convert_to_tensor(given["images"])
    if isinstance(layer, keras.layers.RandomGrayscale | keras.layers.Equalization):
        layer.build(shape)
    drawn = layer.get_random_transformation(images, seed=5)
    if len(shape) == 3:
        out = layer(images)
    else:
        out = layer.transform_images(images, drawn)
    found = {"images": out}
    if "boxes" in parts:
        boxes = {"boxes": keras.ops.convert_to_tensor(given["boxes"]),
                 "labels": keras.ops.convert_to_tensor(given["classes"])}  # fmt: skip
        boxes = layer.transform_bounding_boxes(boxes, drawn)
        found |= {"boxes": boxes["boxes"], "classes": boxes["labels"]}
    if "labels" in parts:
        labels = keras.ops.convert_to_tensor(given["labels"])
        found["labels"] = layer.transform_labels(labels, drawn)
    if "masks" in parts:
        masks = keras.ops.convert_to_tensor(given["masks"])
        found["masks"] = layer.transform_segmentation_masks(masks, drawn)
    if isinstance(drawn, dict):
        left_out = ("input_shape", "image_height", "image_width", "batch_size")
        for part in drawn.keys() - set(left_out):
            found[f"drawn|{part}"] = drawn[part]
    elif keras.ops.is_tensor(drawn):
        found["drawn"] = drawn
    return {f"{entry}|{part}": np.array(x) for part, x in found.items()}


def box_functions(module, boxes, others):
    """Calls of ``module``, that of the bounding boxes, with boxes "xyxy" ``[2, 3, 4]``."""
    size = {"height": 20, "width": 30}
    converted = []
    for source in FORMATS:
        given = module.convert_format(boxes, "xyxy", source, **size)
        for target in FORMATS:
            converted.append(module.convert_format(given, source, target, **size))
    yield "formats", np.array(converted)
    clipped = module.clip_to_image_size(
        {"boxes": boxes - 4, "labels": np.arange(6).reshape(2, 3)}, 12, 11
    )
    yield "clipped", clipped["boxes"]
    yield "clipped labels", clipped["labels"]
    yield "crop", module.crop(boxes, 3, 4, 9, 8)
    yield "pad", module.pad(boxes, 3, 4)
    pair = [np.float32(n) for n in ([30, -70], [0.1, -0.2], [0.2, 0.3], [1.5, 0.5],
                                    [10, -5], [20, 3])]  # fmt: skip
    yield "affine", module.affine_transform(boxes, *pair, 20, 30)
    yield (
        "affine, elsewhere",
        module.affine_transform(boxes, *pair, 20, 30, center_x=0.2, center_y=0.9),
    )
    for batches in ((boxes, others), (boxes[0], others), (boxes, others[0])):
        shapes = [each.shape for each in batches]
        yield f"iou {shapes}", module.compute_iou(*batches, "xyxy")
    masked = np.where(np.arange(3)[:, None] == 1, np.float32(-1), boxes[0])
    yield "masked", module.compute_iou(masked, others[0], "xyxy", True, -2)
    yield (
        "relative",
        module.compute_iou(
            boxes[0] / 30, others[0] / 30, "rel_xyxy", image_shape=(20, 30, 3)
        ),
    )
    yield "ciou", module.compute_ciou(boxes, others, "xyxy")
    how = {"variance": [0.1, 0.1, 0.2, 0.2]}
    yield "deltas", module.encode_box_to_deltas(others[0], boxes, "xyxy", "xyxy", **how)
    yield (
        "other deltas",
        module.encode_box_to_deltas(
            others[0], boxes / 30, "xyxy", "rel_xyxy", "center_xywh", None, (20, 30, 3)
        ),
    )
    yield (
        "decoded",
        module.decode_deltas_to_boxes(
            others[0],
            boxes / 20,
            "xyxy",
            "rel_yxyx",
            "center_xywh",
            image_shape=(20, 30, 3),
        ),
    )


def some_boxes():
    random = np.random.default_rng(0)
    start = random.uniform(0, 10, (2, 2, 3, 2))
    boxes = np.concatenate([start, start + random.uniform(1, 9, start.shape)], -1)
    return boxes.astype("float32")


def main():
    import keras

    found = {}
    for each in CASES:
        found |= record_layer(*each)
    configs = {}
    for name, config, *_ in [*CASES, *OTHERS]:
        layer = getattr(keras.layers, name)(**config, name="layer")
        configs[f"{name} {config}"] = layer.get_config()
        if name == "RandomShear":  # Keras cannot read what it writes for one number
            configs[f"{name} {config}"] |= {"x_factor": 0.0, "y_factor": 0.0} | {
                key: value for key, value in config.items() if "_factor" in key
            }
    found["configs"] = json.dumps(configs)
    for name, value in box_functions(keras.utils.bounding_boxes, *some_boxes()):
        found[f"boxes|{name}"] = np.array(value)
    path = pathlib.Path(__file__).with_name("augmentation.npz")
    np.savez_compressed(path, version=keras.__version__, **found)
    print(path, os.path.getsize(path), "bytes, Keras", keras.__version__)


if __name__ == "__main__":
    main()
