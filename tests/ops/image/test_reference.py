"""Values recorded from TensorFlow, by ``reference/record.py``: eager, traced, in batches."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw

REFERENCE = Path(__file__).parent / "reference"
_spec = importlib.util.spec_from_file_location("record", REFERENCE / "record.py")
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)
RECORDED = json.loads((REFERENCE / "images.json").read_text())
# Their size depends on values, which a traced function does not know.
UNSIZED = ("suppression(", "with_scores(", "overlaps(", "padded(boxes")


def called(case, names):
    return record.listed(eval(case, {"i": tw.image, **names}))


def check(case, results):
    wanted = RECORDED[case]
    assert len(results) == len(wanted), case
    for found, (dtype, shape, numbers) in zip(results, wanted):
        assert (found.dtype, list(found.shape)) == (dtype, shape), case
        np.testing.assert_allclose(
            found.numpy().ravel(), numbers, rtol=2e-5, atol=5e-6, err_msg=case
        )


def constants():
    return {name: tw.constant(value) for name, value in record.INPUTS.items()}


def test_results_are_those_of_tensorflow():
    for case in record.CASES:
        check(case, called(case, constants()))


@pytest.mark.parametrize("known", [True, False])
def test_traced_functions_of_known_and_unknown_sizes_have_the_same_results(known):
    cases = [c for c in record.CASES if not any(name in c for name in UNSIZED)]
    cases += [c for c in record.CASES if "combined" in c]
    names = constants()
    specs = {
        name: tw.TensorSpec(x.shape if known else [None] * len(x.shape), x.dtype)
        for name, x in names.items()
    }
    if not known:  # these follow from values: the numbers of channels and of classes
        specs["dark"] = tw.TensorSpec([None, None, None, 3])
    traced = tw.function(
        lambda names: [called(case, names) for case in cases], input_signature=[specs]
    )
    for case, results in zip(cases, traced(names)):
        check(case, results)
