"""Callbacks led through made-up epochs do what was recorded of Keras'."""

import importlib.util
import json
import pathlib

import pytest

import tapewright as tw
from tapewright.keras import callbacks

REFERENCE = pathlib.Path(__file__).parent.parent / "reference"
KERAS = json.loads((REFERENCE / "callbacks.json").read_text())
_spec = importlib.util.spec_from_file_location(
    "record_callbacks", REFERENCE / "record_callbacks.py"
)
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)


@pytest.mark.parametrize("case", record.CASES)
def test_a_callback_does_what_keras_does(case, tmp_path):
    optimizer = tw.optimizers.SGD(0.1)
    found = record.drive(callbacks, case, optimizer, tmp_path)
    assert found == {**found, **KERAS[case]}
    assert set(KERAS[case]) == set(found)
