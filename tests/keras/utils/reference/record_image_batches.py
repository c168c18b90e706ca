"""Records batches of `ImageDataGenerator` of Keras 3.15.1 in image_batches.npz."""

import json
import os
import tempfile
from pathlib import Path

import numpy as np

MOVES = {
    "rotation_range": 30,
    "width_shift_range": 0.2,
    "height_shift_range": [1, 2],
    "shear_range": 10,
    "zoom_range": 0.3,
    "channel_shift_range": 20.0,
    "horizontal_flip": True,
    "vertical_flip": True,
}
ALL = MOVES | {
    "brightness_range": [0.5, 1.5],
    "featurewise_std_normalization": True,
    "featurewise_center": True,
    "rescale": 0.5,
}
SMALL = {"target_size": [4, 3], "batch_size": 2}
# Arguments of the generator, the method, and its arguments.
CASES = [
    (ALL, "flow", {"batch_size": 4}),
    (
        {"zca_whitening": True, "featurewise_center": True, "width_shift_range": 2},
        "flow",
        {"seed": 3, "batch_size": 4},
    ),
    (
        {"samplewise_center": True, "samplewise_std_normalization": True, **MOVES},
        "flow",
        {"shuffle": False, "batch_size": 5},
    ),
    (
        {"data_format": "channels_first", "zoom_range": [0.5, 0.8]},
        "flow_from_directory",
        {"color_mode": "rgba", **SMALL},
    ),
    (
        MOVES | {"validation_split": 0.4},
        "flow_from_directory",
        {"subset": "training", "class_mode": "sparse", **SMALL},
    ),
    (
        {"validation_split": 0.5},
        "flow_from_dataframe",
        {"subset": "validation", "y_col": "many", "weight_col": "weight", **SMALL},
    ),
    (
        {},
        "flow_from_dataframe",
        {"y_col": ["weight", "row"], "class_mode": "multi_output", **SMALL},
    ),
]


def record():
    import pandas as pd
    from keras.src.legacy.preprocessing.image import ImageDataGenerator

    from keras.utils import save_img

    x = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3)).astype("uint8")
    names = [f"{'ab'[i % 2]}/{i}.png" for i in range(6)]
    table = {
        "filename": [*names, "gone.png"],
        "class": [*"ababab", "c"],
        "many": [["a"], ["b", "a"], ["c"], ["a", "c"], ["b"], ["a"], ["d"]],
        "weight": [0.5, 1.0, 2.0, 0.0, 1.0, 4.0, 9.0],
        "row": list(range(7)),
    }
    found = {"x": x, "table": json.dumps(table), "cases": json.dumps(CASES)}
    with tempfile.TemporaryDirectory() as directory:
        for name, image in zip(names, x):
            os.makedirs(os.path.join(directory, name[0]), exist_ok=True)
            save_img(os.path.join(directory, name), image, scale=False)
        for i, (options, method, arguments) in enumerate(CASES):
            sources = {
                "flow": (x, range(6)),
                "flow_from_directory": (directory,),
                "flow_from_dataframe": (pd.DataFrame(table), directory),
            }
            np.random.seed(i)
            generator = ImageDataGenerator(**options)
            if method == "flow":
                generator.fit(x, augment=True, rounds=2)
            batches = getattr(generator, method)(*sources[method], **arguments)
            for j, array in enumerate(flat([next(batches), next(batches), batches[0]])):
                found[f"{i}/{j}"] = array
    np.savez_compressed(Path(__file__).with_name("image_batches.npz"), **found)


def flat(value):
    if isinstance(value, tuple | list):
        return [array for each in value for array in flat(each)]
    return [value]


if __name__ == "__main__":
    record()
