"""`keras.ops` on operands of two dtypes: Keras' dtypes, and no value that overflows."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import ops
from tapewright.keras.ops.promotion import result_type

FOLDER = Path(__file__).parent
TABLES = json.loads((FOLDER / "promotion.json").read_text())
_recorder = runpy.run_path(str(FOLDER / "record_promotion.py"))
CALLS, KINDS, PYTHON = (_recorder[name] for name in ("CALLS", "KINDS", "PYTHON"))


def operand(kind):
    value = _recorder["operand"](kind)
    return value if kind in PYTHON else tw.constant(value)


NAMES = {letter: kind for kind, letter in KINDS.items()}
ALL = (*KINDS, *PYTHON)


def eager(calls):
    return [call(ops, x, y).dtype for call, x, y in calls]


def traced(calls):
    """The dtypes of one function that makes all calls with the tensors that it gets."""
    given = {id(v): v for _, *pair in calls for v in pair if isinstance(v, tw.Tensor)}

    @tw.function
    def run(*values):
        inner = dict(zip(given, values))
        return [
            call(ops, inner.get(id(x), x), inner.get(id(y), y)) for call, x, y in calls
        ]

    return [found.dtype for found in run(*given.values())]


def symbolic(calls):
    def spec(v):
        return tw.keras.KerasTensor(v.shape, v.dtype) if isinstance(v, tw.Tensor) else v

    return [call(ops, spec(x), spec(y)).dtype for call, x, y in calls]


@pytest.mark.parametrize("way", [eager, traced, symbolic])
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table[0])
def test_two_dtypes_meet_in_that_of_keras(table, way):
    names, rows = table
    wrong = {}
    for first, row in zip(ALL, rows.split()):
        cells = {
            (name, second): NAMES[letter]
            for second, letter in zip(ALL, row)
            if letter != "." and not (first in PYTHON and second in PYTHON)
            for name in names.split()
        }
        x, ys = operand(first), {kind: operand(kind) for kind in ALL}
        found = way([(CALLS[name], x, ys[second]) for name, second in cells])
        for (name, second), dtype in zip(cells, found, strict=True):
            if dtype != cells[name, second]:
                wrong[name, first, second] = dtype.name, cells[name, second]
    assert not wrong


LARGE = {"bool": True, "int8": 100, "uint8": 200, "float32": 1e5, "float64": 1e5,
         "complex64": 1e5}  # fmt: skip


@pytest.mark.parametrize(
    "name", "add subtract multiply divide maximum minimum equal not_equal less".split()
)
def test_values_of_two_dtypes_meet_without_overflow(name):
    (rows,) = [rows for names, rows in TABLES if name in names.split()]
    wrong = {}
    for first, row in zip(KINDS, rows.split()):
        for second, letter in zip(KINDS, row):
            if letter == ".":
                continue
            x, y = (np.array(LARGE.get(k, 1000)).astype(k) for k in (first, second))
            wide = "complex128" if "complex64" in (first, second) else "float64"
            exact = getattr(np, name)(x.astype(wide), y.astype(wide))
            dtype = np.dtype(NAMES[letter])
            if (
                dtype.kind in "iu"
                and not np.iinfo(dtype).min <= exact <= np.iinfo(dtype).max
            ):
                continue  # of equal dtypes: it wraps, as everywhere
            if dtype.kind == "f" and abs(exact) > np.finfo(dtype).max:
                continue
            found = getattr(ops, name)(x, y).numpy()
            rtol = 2.0**-8 if dtype == "bfloat16" else 1e-3
            if not np.allclose(found, exact, rtol=rtol):
                wrong[first, second] = found, exact
    assert not wrong


def test_a_python_number_is_told_from_the_dtype_that_equals_it():
    assert [tw.float32, tw.bool] == [float, bool]  # as in TensorFlow
    half = ops.add(tw.constant([1000.0], "float16"), tw.constant([1e5]))
    assert half.dtype == "float32" and half.numpy() == 101000
    assert ops.add(tw.constant([100], "int8"), tw.constant([1000])).numpy() == 1100
    assert result_type("float16", float) == "float16"
    assert result_type("float16", tw.float32) == "float32"
    assert result_type("int8", tw.int32) == "int32"
    assert result_type("int8", int) == "int8"


@pytest.mark.parametrize(("name", "expected"), [("matmul", 20000), ("einsum", 20000)])
def test_products_of_int8_are_summed_in_int32(name, expected):
    x = tw.constant([100, 100], "int8")
    found = ops.matmul(x, x) if name == "matmul" else ops.einsum("i,i->", x, x)
    assert found.dtype == "int32" and found.numpy() == expected


def test_a_complex_number_brings_no_size_along():
    assert ops.add(tw.constant([1.0]), 2j).dtype == "complex64"
    assert ops.multiply(2j, tw.constant([1.0], "float64")).dtype == "complex128"
