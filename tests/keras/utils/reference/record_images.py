"""Writes images.npz: files of all modes, and what Keras makes of them and of arrays.

Run with Keras 3 and Pillow installed: ``KERAS_BACKEND=numpy python record_images.py``.
``file/<mode>`` is a PNG file (TIFF for the modes that PNG lacks); ``read/<mode>/<color
mode>``, ``resized/<arguments>``, ``drawn/<arguments>`` are arrays of what Keras returns.
"""

import io
import itertools
from pathlib import Path

import numpy as np
from PIL import Image

MODES = {"1": 1, "L": 1, "LA": 2, "P": 1, "RGB": 3, "RGBA": 4, "I;16": 1, "CMYK": 4}
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")
SIZES = ((4, 4), (10, 8), (2, 7))


def file_of(mode):
    rng = np.random.default_rng(MODES[mode])
    x = rng.integers(0, 256, (5, 7, MODES[mode]), np.uint8)
    if mode == "I;16":
        image = Image.fromarray(x[..., 0].astype(np.uint16) * 257)
    elif mode in ("1", "P"):
        image = Image.fromarray(x[..., 0]).convert(mode)
    else:
        image = Image.fromarray(x[..., 0] if x.shape[2] == 1 else x, mode)
    out = io.BytesIO()
    image.save(out, "TIFF" if mode == "CMYK" else "PNG")
    return out.getvalue()


def main():
    import keras

    found = {}
    for mode in MODES:
        content = file_of(mode)
        found[f"file/{mode}"] = np.frombuffer(content, np.uint8)
        for color_mode in ("grayscale", "rgb", "rgba"):
            image = keras.utils.load_img(io.BytesIO(content), color_mode)
            key = f"read/{mode}/{color_mode}"
            found[key] = keras.utils.img_to_array(image, "channels_first")
    content = file_of("RGB")
    for size, how, keep in itertools.product(SIZES, INTERPOLATIONS, (False, True)):
        image = keras.utils.load_img(io.BytesIO(content), "rgb", size, how, keep)
        key = f"resized/{size[0]},{size[1]}/{how}/{keep}"
        found[key] = keras.utils.img_to_array(image, dtype="uint8")
    rng = np.random.default_rng(0)
    for channels, scale in itertools.product((1, 3, 4), (False, True)):
        x = rng.uniform(0, 200, (3, 2, channels)).astype(np.float32)
        found[f"array/{channels}/{scale}"] = x
        image = keras.utils.array_to_img(x, scale=scale)
        found[f"drawn/{channels}/{scale}"] = np.asarray(image)
    np.savez_compressed(Path(__file__).with_name("images.npz"), **found)


if __name__ == "__main__":
    main()
