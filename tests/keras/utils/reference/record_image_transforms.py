"""Records affine transforms of arrays by Keras 3.15.1 in image_transforms.npz."""

from pathlib import Path

import numpy as np

MODES = ("nearest", "constant", "reflect", "wrap")


def record():
    from keras.src.legacy.preprocessing.image import apply_affine_transform

    draw = np.random.default_rng(0)
    x = draw.integers(0, 256, (7, 9, 3)).astype("uint8")
    low, high = (-90, -5, -5, -40, 0.4, 0.4), (90, 5, 5, 40, 2, 2)
    numbers = draw.uniform(low, high, (16, 6))
    results = [
        apply_affine_transform(x, *row, 0, 1, 2, MODES[i % 4], 7.0, i // 4 % 2)
        for i, row in enumerate(numbers)
    ]
    path = Path(__file__).with_name("image_transforms.npz")
    np.savez_compressed(path, x=x, numbers=numbers, results=results)


if __name__ == "__main__":
    record()
