"""Writes promotion.json: the dtypes in which functions of `keras.ops` answer mixed ones.

Run with Keras 3 and TensorFlow: ``KERAS_BACKEND=tensorflow python record_promotion.py``.
For each table that functions share: their names, and a row for each kind of the first
operand with a letter of `KINDS` for each of the second, "." where Keras refuses. Left out
are the dtypes that Keras narrows on its own: uint64, and complex64 beside float64.
"""

import json
from pathlib import Path

import ml_dtypes
import numpy as np

KINDS = {
    "bool": "b", "int8": "1", "int16": "2", "int32": "4", "int64": "8", "uint8": "u",
    "uint16": "v", "uint32": "w", "bfloat16": "g", "float16": "h", "float32": "f",
    "float64": "d", "complex64": "c",
}  # fmt: skip
PYTHON = {"True": True, "2": 2, "1.5": 1.5}


def operand(kind):
    """Three values of this dtype, or the Python number of that name."""
    if kind in PYTHON:
        return PYTHON[kind]
    return np.array([1, 2, 3], getattr(ml_dtypes, kind, kind))


_OF_TWO = """
    add subtract multiply divide true_divide divide_no_nan floor_divide mod fmod power
    maximum minimum fmax fmin logaddexp logaddexp2 equal not_equal greater greater_equal
    less less_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor
    isclose allclose append matmul dot inner outer vdot cross isin"""

_OF_LISTS = "concatenate stack vstack dstack"


def _call(name):
    if name in _OF_LISTS.split():
        return lambda ops, x, y: getattr(ops, name)([x, y])
    return lambda ops, x, y: getattr(ops, name)(x, y)


# name -> function of the module and two operands of shape (3,)
CALLS = {name: _call(name) for name in (_OF_TWO + " " + _OF_LISTS).split()} | {
    "where": lambda ops, x, y: ops.where([True, False, True], x, y),
    "einsum": lambda ops, x, y: ops.einsum("i,j->ij", x, y),
    "tensordot": lambda ops, x, y: ops.tensordot(x, y, axes=1),
    "average": lambda ops, x, y: ops.average(x, weights=y),
}


def letter(keras, call, first, second):
    def given(kind, values):
        if kind in PYTHON:
            return PYTHON[kind]
        return keras.KerasTensor((3,), kind)

    if {first, second} == {"complex64", "float64"}:
        return "."
    try:
        call(keras.ops, *(operand(k) for k in (first, second)))
        found = call(keras.ops, given(first, 0), given(second, 1))
    except Exception:
        return "."
    dtype = found.dtype if hasattr(found, "dtype") else None
    return KINDS.get(str(getattr(dtype, "name", dtype)), ".")


def main():
    import keras

    tables = {}
    for name, call in CALLS.items():
        rows = [
            "".join([letter(keras, call, a, b) for b in (*KINDS, *PYTHON)])
            for a in (*KINDS, *PYTHON)
        ]
        tables.setdefault(" ".join(rows), []).append(name)
    lines = [[" ".join(names), rows] for rows, names in tables.items()]
    text = json.dumps(lines, indent=1)
    Path(__file__).with_name("promotion.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
