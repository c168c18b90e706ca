"""Writes ``applications.{keras,h5}``: a model with the layers of `keras.applications`.

    KERAS_BACKEND=tensorflow python tests/keras/files/reference/record_applications.py

with Keras 3.15 installed. Its outputs are ``inputs * (1 + gamma / 4)``, and ``gamma`` is
1, 2, 4.
"""

from pathlib import Path

import numpy as np


def main():
    from keras.src.applications.convnext import LayerScale, StochasticDepth
    from keras.src.applications.inception_resnet_v2 import CustomScaleLayer

    import keras

    inputs = keras.Input((3,), name="inputs")
    scaled = LayerScale(1e-6, 3, name="scaled")(inputs)
    dropped = StochasticDepth(0.5, name="dropped")(scaled)
    outputs = CustomScaleLayer(0.25, name="sum")([inputs, dropped])
    model = keras.Model(inputs, outputs, name="net")
    model.set_weights([np.array([1, 2, 4], "f4")])
    for ending in ("keras", "h5"):
        model.save(Path(__file__).with_name(f"applications.{ending}"))


if __name__ == "__main__":
    main()
