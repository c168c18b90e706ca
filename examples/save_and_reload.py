"""Save and load a model
=====================

Train a model, save it, and load it in new processes and in Keras.

::

    python examples/save_and_reload.py            (about 10 s; files in out/)

The script trains a digit classifier and saves it in three files: ``digits.keras`` and
``digits.h5`` contain layers, weights and optimizer state, ``digits.weights.h5`` only
the weights. New Python processes load each of the first two and predict, with
tapewright and, if it is installed, with Keras (``pip install keras jax``; its NumPy
backend requires parts of JAX). The script prints the difference from the predictions
before saving. It is 0 in tapewright; in Keras there are rounding errors, because the
order of operations differs.

Finally the script flips one bit in a copy of a file. The checksum detects the damage,
and loading raises an error.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import tapewright as tw
from tapewright import keras
from tapewright.keras import layers

# Code of the new process: identical for both libraries, except for the import.
READ = """
import sys
import numpy as np
model = keras.models.load_model(sys.argv[1])
np.save(sys.argv[3], model.predict(np.load(sys.argv[2]), verbose=0))
"""
IMPORTS = {"tapewright": "from tapewright import keras", "Keras": "import keras"}
NEEDED = {"tapewright": ["tapewright"], "Keras": ["keras", "jax"]}

# %%
# The model
# ---------


def network():
    """Map images ``[batch, 28, 28]`` in 0 ... 255 to probabilities of ten digits."""
    image = keras.Input((28, 28), name="image")
    x = layers.Reshape((28, 28, 1))(layers.Rescaling(1 / 255)(image))
    x = layers.Conv2D(12, 5, strides=2, use_bias=False)(x)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.Dropout(0.2)(layers.Flatten()(layers.MaxPooling2D()(x)))
    chances = layers.Dense(10, activation="softmax", name="chances")(x)
    model = keras.Model(image, chances, name="digits")
    adam = keras.optimizers.Adam(0.005)
    model.compile(adam, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


# %%
# New processes
# -------------
#
# The new processes use only the file, no code of this script.


def predicted_elsewhere(library, path, images, out):
    """Return the predictions of a new process that loads the file, or None."""
    if None in map(importlib.util.find_spec, NEEDED[library]):
        return None
    answer = out / "answer.npy"
    command = [sys.executable, "-c", IMPORTS[library] + READ, path, images, answer]
    env = os.environ | {"KERAS_BACKEND": "numpy"}  # requires parts of JAX
    subprocess.run(command, env=env, check=True)
    return np.load(answer)


def damaged(path):
    """Return a copy of a file with one bit flipped."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    copy = path.with_name(f"damaged_{path.name}")
    copy.write_bytes(content)
    return copy


# %%
# Train, save and load
# --------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default="out", help="output folder")
    args = parser.parse_args()

    keras.utils.set_random_seed(args.seed)
    (x_train, y_train), (x_test, y_test) = tw.datasets.digits.load_data()
    model = network()
    model.fit(x_train, y_train, batch_size=64, epochs=args.epochs, verbose=2)
    expected = model.predict(x_test, verbose=0)
    right = np.mean(expected.argmax(axis=1) == y_test)
    print(f"test accuracy {right:.1%}")

    args.out.mkdir(parents=True, exist_ok=True)
    images = args.out / "images.npy"
    np.save(images, x_test)
    model.save_weights(args.out / "digits.weights.h5")
    for name in ("digits.keras", "digits.h5"):
        path = args.out / name
        model.save(path)
        for library in IMPORTS:
            found = predicted_elsewhere(library, path, images, args.out)
            if found is None:
                print(f"{name:12} in {library}: not installed")
                continue
            difference = np.abs(found - expected).max()
            print(f"{name:12} in {library}: maximum difference {difference:.1e}")
            if difference > 1e-5:
                return f"predictions of {path} in {library} differ"

    try:
        keras.models.load_model(damaged(args.out / "digits.h5"))
    except tw.errors.SavingError as error:
        print(f"rejected: {error}")
    return 0


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
