"""String ops against recordings of TensorFlow, eager and traced; errors by hand."""

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
RECORDED = json.loads((REFERENCE / "strings.json").read_text())


def called(case, traced):
    run = lambda: eval(case, {"s": tw.strings})  # noqa: E731
    if traced:
        run = tw.function(run)
    return run()


def plain(value):
    if isinstance(value, tw.RaggedTensor):
        return record.plain(value.to_list())
    value = value.numpy()
    return record.plain(value if isinstance(value, bytes) else value.tolist())


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_results_are_those_of_tensorflow(number, traced):
    case, expected = record.CASES[number], RECORDED[number]
    if "error" in expected:
        with pytest.raises((ValueError, TypeError)):
            called(case, traced)
        return
    value = called(case, traced)
    assert value.dtype.name == expected["dtype"]
    np.testing.assert_equal(plain(value), expected["value"])
