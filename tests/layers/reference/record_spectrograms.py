"""Writes ``spectrograms.npz``: what Keras' `MelSpectrogram` and `STFTSpectrogram` give.

Needs Keras 3 with JAX, whose convolutions do everything on a CPU, and SciPy:

    KERAS_BACKEND=jax python tests/layers/reference/record_spectrograms.py

For each of `CASES` the outputs, then the gradients of ``sum(outputs * c)`` by the inputs and
by each weight, all flat and one after the other; the configs as JSON. Inputs and ``c`` come
from `numbers`.
"""

import json
import os
import pathlib
import zlib

import numpy as np

FIRST = {"data_format": "channels_first"}
SMALL = {"fft_length": 32, "sequence_stride": 10, "num_mel_bins": 6}
SHORT = {"frame_length": 12, "frame_step": 5}

CASES = [
    ("MelSpectrogram", SMALL, (2, 90)),
    ("MelSpectrogram", {**SMALL, "sequence_length": 20, "window": "hamming",
                        "sampling_rate": 8000, "min_freq": 100.0, "max_freq": 3000.0,
                        "top_db": 12.0, "ref_power": 3.0}, (77,)),
    ("MelSpectrogram", {**SMALL, "power_to_db": False, "mag_exp": 1.0, "window": None},
     (2, 60)),
    ("STFTSpectrogram", {**SHORT, "mode": "log"}, (2, 41, 2)),
    ("STFTSpectrogram", {**SHORT, "mode": "magnitude", "window": "hamming",
                         "expand_dims": True}, (2, 41, 2)),
    ("STFTSpectrogram", {**SHORT, "mode": "psd", "scaling": "spectrum", **FIRST},
     (2, 2, 41)),
    ("STFTSpectrogram", {**SHORT, "mode": "real", "periodic": True, "expand_dims": True,
                         **FIRST}, (2, 2, 41)),
    ("STFTSpectrogram", {"frame_length": 8, "mode": "imag", "scaling": None,
                         "padding": "same"}, (2, 30, 1)),
    ("STFTSpectrogram", {**SHORT, "mode": "stft", "fft_length": 32, "window": None},
     (2, 41, 2)),
    ("STFTSpectrogram", {**SHORT, "mode": "angle", "padding": "same"}, (2, 41, 1)),
]  # fmt: skip


def numbers(seed, shape):
    """Normally distributed ones, the same for the same text ``seed``."""
    random = np.random.default_rng(zlib.crc32(seed.encode()))
    return random.normal(size=tuple(shape)).astype("float32")


def main():
    import jax

    import keras

    found, configs = {}, []
    for name, config, shape in CASES:
        entry = f"{name} {config}"
        layer = getattr(keras.layers, name)(**config, name="layer")
        layer.build(shape)

        def call(x, *weights, layer=layer):
            return layer.stateless_call(list(weights), [], x)[0]

        weights = [v.value for v in layer.trainable_variables]
        y, back = jax.vjp(call, numbers(entry, shape), *weights)
        values = [y, *back(numbers(f"c {entry}", y.shape))]
        found[entry] = np.concatenate([np.ravel(v) for v in values])
        found[f"{entry}|shape"] = np.array(y.shape)
        assert tuple(y.shape) == tuple(layer.compute_output_shape(shape)), entry
        configs.append(layer.get_config())
    path = pathlib.Path(__file__).with_name("spectrograms.npz")
    found["configs"] = json.dumps(configs)
    np.savez_compressed(path, version=keras.__version__, **found)
    print(path, os.path.getsize(path), "bytes, Keras", keras.__version__)


if __name__ == "__main__":
    main()
