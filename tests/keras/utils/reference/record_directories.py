"""Writes directories.npz: small directories of files, and what Keras makes of them.

Run with Keras 3 and TensorFlow: ``python record_directories.py``. ``file/<path>`` is a file,
``cases`` the arguments in JSON; ``<number>/paths`` the paths in the order of Keras, in JSON,
``<number>/<part>/<component>`` all elements of one data set.
"""

import contextlib
import io
import itertools
import json
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

IMAGES = ("b/d10.png b/d2.PNG b/d1.bmp b/deep/x.gif b/deep/a.png a/c3.png a/c1.png "
          "a/sub/c9.png c/1.png c/0.png .hidden/h.png").split()  # fmt: skip
METHODS = "bilinear nearest area lanczos3 lanczos5 gaussian mitchellcubic".split()
FIRST = {"shuffle": False, "image_size": (4, 5)}
CASES = [
    *[("image", "images", FIRST | options) for options in (
        {"label_mode": "categorical"},
        {"labels": None, "color_mode": "rgb"},
        {"class_names": ["c", "a"], "color_mode": "grayscale"},
        {"class_names": ["c", "a"], "color_mode": "rgba", "batch_size": 4},
        {"labels": [5, 5, 1, 1, 2, 2, 0, 0, 0, 3, 3], "image_size": 3},
        {"labels": [2, 2, 1, 1, 2, 2, 0, 0, 0, 1, 1], "label_mode": "categorical"},
        {"data_format": "channels_first", "batch_size": None},
        {"validation_split": 0.3, "subset": "validation"},
        {"validation_split": 0.3, "subset": "both"},
        *[{"class_names": ["c", "a"], "interpolation": m} for m in METHODS],
        *[{"class_names": ["b"], "interpolation": m, k: True} for m, k in itertools.product(
            METHODS[:2], ("crop_to_aspect_ratio", "pad_to_aspect_ratio"))],
    )],
    *[("image", "images", {"seed": seed, "image_size": 1, **options}) for seed, options in
      itertools.product((0, 7), (
        {}, {"validation_split": 0.4, "subset": "both"},
        {"labels": [5, 5, 1, 1, 2, 2, 0, 0, 0, 3, 3]}, {"labels": None},
    ))],
    *[("text", "texts", {"shuffle": False, **options}) for options in (
        {}, {"max_length": 5, "label_mode": "binary"}, {"batch_size": 3, "labels": None},
        {"validation_split": 0.3, "subset": "both", "verbose": False},
    )],
    *[("audio", "sounds", {"shuffle": False, **options}) for options in (
        {"batch_size": 3}, {"output_sequence_length": 7, "label_mode": "categorical"},
        {"labels": None, "batch_size": None},
        {"validation_split": 0.3, "subset": "both", "label_mode": "binary"},
    )],
]  # fmt: skip


def make_files(root):
    import tensorflow as tf

    rng = np.random.default_rng(0)
    for number, name in enumerate(IMAGES):
        path = root / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        x = rng.integers(0, 256, (5 + number, 12 - number, 3)).astype(np.uint8)
        image = Image.fromarray(x)
        kind = {"d10.png": "L", "1.png": "LA", "a.png": "RGBA"}.get(path.name, "RGB")
        image.convert(kind).save(path)
    (root / "images" / "a" / "note.txt").write_text("no image")
    for number in range(7):
        path = root / "texts" / ("pos" if number % 3 else "neg") / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"text %d h\xc3\xa9llo " % number * (number % 3))
        path = root / "sounds" / ("left" if number % 2 else "right") / f"{number}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        sound = rng.uniform(-1, 1, (5 + number, 2)).astype(np.float32)
        path.write_bytes(tf.audio.encode_wav(sound, 8000).numpy())


def main():
    import keras

    root = Path(tempfile.mkdtemp())
    make_files(root)
    found = {"cases": np.array(json.dumps(CASES))}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            key = f"file/{path.relative_to(root).as_posix()}"
            found[key] = np.frombuffer(path.read_bytes(), np.uint8)
    for number, (kind, folder, options) in enumerate(CASES):
        printed = io.StringIO()
        function = getattr(keras.utils, f"{kind}_dataset_from_directory")
        with contextlib.redirect_stdout(printed):
            parts = function(str(root / folder), **options)
        parts = parts if isinstance(parts, (list, tuple)) else [parts]
        told = {
            "printed": printed.getvalue(),
            "class_names": parts[0].class_names,
            "paths": [
                [str(Path(path).relative_to(root)) for path in part.file_paths]
                for part in parts
                if kind == "image"
            ],
            "specs": [str(part.element_spec) for part in parts],
        }
        found[f"{number}/told"] = np.array(json.dumps(told))
        for place, part in enumerate(parts):
            if options.get("shuffle", True):  # by TensorFlow's generator
                continue
            elements = list(part.as_numpy_iterator())
            columns = zip(*elements) if isinstance(elements[0], tuple) else [elements]
            for component, column in enumerate(columns):
                for position, value in enumerate(column):
                    value = np.asarray(value)
                    if value.dtype == object:
                        value = value.astype("S")
                    found[f"{number}/{place}/{position}/{component}"] = value
    np.savez_compressed(Path(__file__).with_name("directories.npz"), **found)


if __name__ == "__main__":
    main()
