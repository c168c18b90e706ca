"""Writes images.npz: small image files of all kinds, and what TensorFlow decodes of them.

Run with TensorFlow and Pillow installed: ``python record_images.py``. ``file/<name>`` is a
file; ``<op>/<name>/<channels>/<dtype>`` an array, or no array where TensorFlow refuses it;
``jpeg/<name>/<channels>/<ratio>`` is with ``dct_method="INTEGER_ACCURATE"``.
"""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

RNG = np.random.default_rng(0)
FILES = {}


def pixels(height, width, channels):
    """Smooth, with some noise, as photographs are."""
    y, x = np.mgrid[:height, :width]
    waves = [127 + 100 * np.sin(x / (3 + k) + y / (5 + k)) for k in range(channels)]
    noisy = np.stack(waves, -1) + RNG.normal(0, 6, (height, width, channels))
    return np.clip(noisy, 0, 255).astype(np.uint8)


def add(name, image, **options):
    file = io.BytesIO()
    image.save(file, name.rpartition(".")[2].replace("jpg", "jpeg"), **options)
    FILES[name] = file.getvalue()


def add_png(name, array, kind, depth, *chunks):
    """A PNG file whose rows have the filters 0 to 4 in turn, bytes or wider samples."""
    rows = array.astype(">u2" if depth == 16 else "u1").reshape(len(array), -1)
    if depth < 8:
        bits = np.unpackbits(rows[..., None], axis=-1)[..., -depth:]
        rows = np.packbits(bits.reshape(len(array), -1), axis=-1)
    rows = rows.view(np.uint8).astype(int)
    step = max(array.shape[-1] * depth // 8, 1)
    above, content = np.zeros_like(rows[0]), b""
    for number, row in enumerate(rows):
        left, corner = (np.pad(x, (step, 0))[: len(row)] for x in (row, above))
        near = np.abs(left + above - corner - np.stack([left, above, corner]))
        paeth = np.choose(near.argmin(0), [left, above, corner])
        guess = [0 * row, left, above, (left + above) // 2, paeth][number % 5]
        content += bytes([number % 5]) + (row - guess).astype(np.uint8).tobytes()
        above = row
    header = struct.pack(
        ">IIBBBBB", array.shape[1], array.shape[0], depth, kind, 0, 0, 0
    )
    parts = [
        (b"IHDR", header),
        *chunks,
        (b"IDAT", zlib.compress(content)),
        (b"IEND", b""),
    ]
    FILES[name] = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
        for t, d in parts
    )


def make_files():
    colors = Image.fromarray(pixels(11, 14, 3))
    gray = Image.fromarray(pixels(11, 14, 1)[..., 0])
    for name, image, options in (
        ("rgb.jpg", colors, {}),
        ("progressive.jpg", colors, {"progressive": True, "subsampling": 0}),
        ("gray.jpg", gray, {}),
        ("cmyk.jpg", colors.convert("CMYK"), {}),
        ("la.png", Image.fromarray(pixels(5, 4, 2), "LA"), {}),
        ("palette.png", colors.quantize(40), {}),
        ("transparent.png", colors.quantize(20), {"transparency": bytes(range(0, 200, 9))}),
        ("entry.png", colors.quantize(20), {"transparency": 3}),
        ("rgb.bmp", colors, {}),
        ("gray.bmp", gray, {}),
        ("rgba.bmp", Image.fromarray(pixels(5, 4, 4)), {}),
        ("rgb.gif", colors.quantize(30), {}),
        ("transparent.gif", colors.quantize(30), {"transparency": 5}),
        ("interlaced.gif", colors.quantize(30), {"interlace": True}),
        ("rgb.tiff", colors, {}),
    ):  # fmt: skip
        add(name, image, **options)
    add("lossless.webp", colors, lossless=True)
    add("alpha.webp", Image.fromarray(pixels(5, 4, 4)))
    frames = [Image.new("RGB", (9, 7), (10, 200, 30)) for _ in range(4)]
    for number, frame in enumerate(frames):
        frame.paste((200, 20 * number, 99), (number, number, number + 4, number + 3))
    add("moving.gif", frames[0], save_all=True, append_images=frames[1:], disposal=2)
    add(
        "moving.webp", frames[0], save_all=True, append_images=frames[1:], lossless=True
    )
    wide = RNG.integers(0, 2**16, (6, 5, 4))
    for channels, kind in ((1, 0), (2, 4), (3, 2), (4, 6)):
        add_png(f"wide{channels}.png", wide[..., :channels], kind, 16)
        add_png(f"bytes{channels}.png", wide[..., :channels] >> 8, kind, 8)
    key = np.ascontiguousarray(wide[2, 3, :3], ">u2").tobytes()
    add_png("key.png", wide[..., :3], 2, 16, (b"tRNS", key))
    add_png("gamma.png", wide[..., :3] >> 8, 2, 8, (b"gAMA", struct.pack(">I", 45455)))
    for depth in (1, 2, 4):
        key = struct.pack(">H", 1)
        few = RNG.integers(0, 2**depth, (6, 9, 1))
        add_png(f"few{depth}.png", few, 0, depth, (b"tRNS", key))
    for name in (
        "rgb.jpg",
        "bytes3.png",
        "rgb.bmp",
        "rgb.gif",
        "moving.gif",
        "alpha.webp",
    ):
        FILES[f"cut_{name}"] = FILES[name][: len(FILES[name]) * 2 // 3]
    FILES["text.png"] = b"no image"


def main():
    import tensorflow as tf

    make_files()
    found = {f"file/{name}": np.frombuffer(FILES[name], np.uint8) for name in FILES}

    def try_to(key, decode, *arguments, **options):
        try:
            found[key] = decode(*arguments, **options).numpy()
        except tf.errors.InvalidArgumentError:
            pass

    for name, data in FILES.items():
        for channels in (0, 1, 3, 4):
            if not name.endswith("jpg"):
                for dtype in ("uint8", "uint16"):
                    try_to(
                        f"image/{name}/{channels}/{dtype}", tf.io.decode_image, data,
                        channels=channels, dtype=tf.as_dtype(dtype),
                    )  # fmt: skip
            for ratio in (1, 2, 4, 8):
                if name.endswith("jpg") and channels != 3:
                    try_to(
                        f"jpeg/{name}/{channels}/{ratio}", tf.io.decode_jpeg, data,
                        channels=channels, ratio=ratio, dct_method="INTEGER_ACCURATE",
                    )  # fmt: skip
    np.savez_compressed(Path(__file__).with_name("images.npz"), **found)


if __name__ == "__main__":
    main()
