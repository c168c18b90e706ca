"""Writes ``images.json``: what functions of TensorFlow's ``tf.image`` give.

Needs TensorFlow, which tapewright does not:

    python tests/ops/image/reference/record.py

A case is a call, written down as Python: ``i`` is the namespace, the other names are
`INPUTS`. Its results are recorded as ``[dtype, shape, numbers]``, all in one row.
"""

import json
import pathlib

import numpy as np

_RNG = np.random.default_rng(0)


def _floats(*shape, low=0.0, high=1.0):
    return _RNG.uniform(low, high, shape).astype("float32")


def _boxes(*shape):
    """Boxes inside of the image, or nearly so."""
    centers, sides = _floats(*shape, 2), _floats(*shape, 2, low=0.1, high=0.4)
    return np.concatenate([centers - sides, centers + sides], -1)


# Pixels of every order of the colours, on edges of the circle of hues, grey, and outside
# of 0 ... 1.
PIXELS = """
    .1 .5 .9  .1 .9 .5  .5 .1 .9  .5 .9 .1  .9 .1 .5  .9 .5 .1  .7 .7 .2  .2 .7 .7  .7 .2 .7
    .2 .2 .7  0 0 0  1 1 1  .5 .5 .5  1 0 0  0 0 1  -.5 .5 2  3 2 -1  -1 -.5 -.2  -2 -2 -2
"""
INPUTS = {
    "pixels": np.array(PIXELS.split(), "float32").reshape(1, 19, 3),
    "bytes": _RNG.integers(0, 256, (2, 2, 3, 3)).astype("uint8"),
    "a": _floats(2, 15, 17, 2),
    "image": _floats(2, 4, 5, 2),
    "places": np.array(
        [[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [0.9, 0.8, 0.2, 0.1], [-0.3, 0.5, 1.2, 0.5]],
        "float32",
    ),
    "owners": np.array([0, 1, 1, 0]),
    "dark": np.zeros((1, 6, 7, 3), "float32"),
    "frames": np.array(
        [[[0, 0, 1, 1], [0.5, 0.1, 0.9, 0.4], [-0.5, -0.2, 0.5, 0.3], [0.9, 0.9, 0.1, 0.1],
          [0.3, 0.3, 1.4, 1.2], [1.5, 0, 2, 1], [-0.05, 0.4, 0.2, 0.6]]], "float32"),
    "boxes": _boxes(12),
    "scores": _floats(12).round(1),
    "overlaps": _floats(8, 8),
    "many": _boxes(2, 9),
    "ranks": _floats(2, 9),
    "each": _boxes(2, 6, 2),
    "classes": _floats(2, 6, 2),
}  # fmt: skip
INPUTS["b"] = np.clip(
    INPUTS["a"] + _floats(2, 15, 17, 2, low=-0.2, high=0.2), 0.0, 1.0
).astype("float32")

CASES = [
    "i.rgb_to_hsv(pixels)",
    "i.hsv_to_rgb(pixels)",
    *[f"i.adjust_hue(pixels, {d})" for d in (-1.0, -0.3, 0.55)],
    "i.adjust_hue(bytes, 0.2)",
    *[f"i.adjust_saturation(pixels, {f})" for f in (0.0, 0.4, 3.0)],
    "i.adjust_saturation(bytes, 1.7)",
    "i.ssim(a, b, 1.0)",
    "i.ssim(a[:1], b, 1.0, filter_size=7)",
    "i.psnr(a[0], b, 1.0)",
    "i.ssim_multiscale(a, b, 1.0, (0.2, 0.3, 0.5), filter_size=3)",
    "i.ssim_multiscale(a, 1.0 - a, 1.0, (0.5, 0.5), 7, 1.0, 0.02, 0.05)",
    *[
        f"i.crop_and_resize(image, places, owners, {size}, {method!r}, -7.0)"
        for size in ((1, 1), (3, 4))
        for method in ("bilinear", "nearest")
    ],
    "i.crop_and_resize(bytes, places, owners, (2, 2))",
    *[
        f"i.extract_glimpse(image, (3, 6), {at}, {centered}, {normalized}, 'zero')"
        for centered, normalized, at in (
            (True, True, [[0, 0], [0.9, -0.7]]),
            (True, False, [[-1.7, 1], [0, -4]]),
            (False, True, [[0.6, 0.1], [-0.3, 0.9]]),
            (False, False, [[2, 1], [-1.2, 9]]),
        )
    ],
    "i.draw_bounding_boxes(dark, frames, None)",
    "i.draw_bounding_boxes(dark[..., :1], frames, None)",
    "i.draw_bounding_boxes(dark, frames, [[1, 2, 3, 4], [5, 6, 7, 8]])",
    *[
        f"i.non_max_suppression(boxes, scores, {count}, {iou}, {score})"
        for count in (3, 20)
        for iou, score in ((0.2, 0.3), (0.4, "float('-inf')"))
    ],
    *[
        f"i.non_max_suppression_with_scores(boxes, scores, {count}, 0.2, 0.1, {sigma})"
        for count, sigma in ((4, 0.0), (20, 0.3))
    ],
    "i.non_max_suppression_overlaps(overlaps, scores[:8], 6, 0.6)",
    "i.non_max_suppression_padded(many, ranks, 7, 0.2, 0.3, pad_to_max_output_size=True)",
    "i.non_max_suppression_padded(boxes, scores, 7, 0.2)",
    *[
        f"i.combined_non_max_suppression({boxes}, classes, 3, {total}, 0.2, 0.3, {pad})"
        for boxes, total, pad in (
            ("each[:, :, :1]", 4, "False"),
            ("each[:, :, :1]", 9, "True, False"),
            ("each", 8, "False"),
        )
    ],
]


def listed(results):
    return results if isinstance(results, (tuple, list)) else [results]


def main():
    import tensorflow as tf

    names = {name: tf.constant(value) for name, value in INPUTS.items()}
    names["owners"] = tf.constant(INPUTS["owners"], tf.int32)
    found = {"tensorflow": tf.__version__}
    for case in CASES:
        rows = [np.asarray(x) for x in listed(eval(case, {"i": tf.image, **names}))]
        found[case] = [
            [x.dtype.name, list(x.shape), [float(f"{n:.7g}") for n in x.ravel()]]
            for x in rows
        ]
    lines = [
        f" {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}"
        for key, value in found.items()
    ]
    path = pathlib.Path(__file__).with_name("images.json")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
