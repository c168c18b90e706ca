"""Record what the functions of `tf.keras.backend` return for the calls of `backend_cases`.

    python tests/keras/legacy/reference/record_backend.py

It was run with TensorFlow 2.21 and Keras 3.15.1.
"""

import os
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

    import backend_cases
    import tensorflow as tf

    recorded = {}
    for call in backend_cases.CALLS:
        arrays = backend_cases.evaluate(call, tf.keras.backend, tf.constant)
        for i, array in enumerate(arrays):
            recorded[f"{call}|{i}"] = array
    np.savez_compressed(Path(__file__).with_name("backend.npz"), **recorded)
    print(len(backend_cases.CALLS), "calls")
