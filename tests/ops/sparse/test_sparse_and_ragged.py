"""Sparse and ragged tensors against recordings of TensorFlow, eager and traced."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw

REFERENCE = Path(__file__).parent / "reference"
_spec = importlib.util.spec_from_file_location("record_sparse", REFERENCE / "record.py")
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)
RECORDED = json.loads((REFERENCE / "sparse.json").read_text())
PAIRS = [*zip(record.CASES, RECORDED, strict=True)]

# Of these TensorFlow has no gradient, None, or NaN, where there is one.
BETTER = re.compile(
    r"sparse\.(concat|maximum|minimum|reduce_max|split)\(|output_is_sparse=True|sp [*/] 2"
    r"|reduce_std"
)


def same(wanted, found):
    if isinstance(wanted, list):
        return len(wanted) == len(found) and all(map(same, wanted, found))
    if isinstance(wanted, float):
        return abs(wanted - found) <= 1e-5 * max(1, abs(wanted))
    return wanted == found


def test_values_and_errors_are_those_of_tensorflow():
    wrong = []
    for case, wanted in PAIRS:
        found = record.result(tw, case)
        if "error" in wanted:
            wrong += [] if "error" in found else [case]
        elif "error" in found or not same(wanted["value"], found["value"]):
            wrong.append((case, found))
    assert not wrong


def test_gradients_are_those_of_tensorflow():
    wrong = []
    for case, wanted in PAIRS:
        if wanted.get("gradient") is None or BETTER.search(case):
            continue
        with np.errstate(over="ignore"):  # the largest entry of no entries
            found = record.gradients(tw, case)
        for name, g in wanted["gradient"].items():
            if (g is None) != (found[name] is None) or not same(g, found[name]):
                wrong.append((case, name, found[name]))
    assert not wrong


def test_traced_results_are_the_eager_ones():
    wrong = []
    for case, wanted in PAIRS:
        values = {n: x for n, x in record.values(tw).items() if record.uses(case, n)}
        if "error" in wanted or not values:
            continue
        f = tw.function(lambda case, values: eval(case, {"tf": tw}, values))
        found = record.plain(tw, f(case, values))
        if not same(wanted["value"], found):
            wrong.append((case, found))
    assert not wrong


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_an_error_names_the_function_whose_result_has_no_shape(name):
    def f(indices):
        x = tw.SparseTensor(indices, [1.0, 2.0], [3])
        return getattr(tw.sparse, name)(x, x).values

    with pytest.raises(ValueError, match=f"{name}: .* the values of indices"):
        tw.vectorized_map(f, tw.zeros([2, 2, 1], "int64"), fallback_to_while_loop=False)
