"""Writes what the programs of this folder give in TensorFlow, to hold ours against.

Needs TensorFlow, which tapewright does not:

    python tests/compiler/autograph/reference/record.py

An entry ``NAME|NUMBER`` of ``tensorflow.npz`` is a result of a program.
"""

import pathlib

import numpy as np

FILE = pathlib.Path(__file__).parent / "tensorflow.npz"

if __name__ == "__main__":
    import tensorflow as tf
    from programs import PROGRAMS

    arrays = {}
    for name, run in PROGRAMS.items():
        for i, x in enumerate(run(tf)):
            arrays[f"{name}|{i}"] = np.asarray(x)
        print(name, [arrays[f"{name}|{j}"].shape for j in range(i + 1)])
    np.savez_compressed(FILE, **arrays)
