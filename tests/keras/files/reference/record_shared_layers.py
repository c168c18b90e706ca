"""A file of Keras 3 with a layer in a model and beside it: ``shared_layers.keras``.

Run with Keras 3 installed, ``KERAS_BACKEND=numpy python record_shared_layers.py``. Of the
entries of the layer only the second has a ``shared_object_id`` there.
"""

from pathlib import Path

import numpy as np


def main():
    import keras

    shared = keras.layers.Dense(3, name="d")
    sub = keras.Sequential([keras.Input((3,)), shared], name="sub")
    x = keras.Input((3,))
    model = keras.Model(x, shared(keras.ops.relu(sub(x))))
    model.set_weights([2 * np.eye(3), np.array([-1.0, 0.0, 1.0])])
    model.save(Path(__file__).parent / "shared_layers.keras")


if __name__ == "__main__":
    main()
