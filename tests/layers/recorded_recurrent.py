"""Recordings of recurrent layers of Keras."""

import importlib.util
from pathlib import Path

import tapewright as tw
from tapewright import layers

REFERENCE = Path(__file__).parent / "reference"


def _script():
    path = REFERENCE / "record_recurrent.py"
    spec = importlib.util.spec_from_file_location("record_recurrent", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


record = _script()
ALL = {"return_sequences": True, "return_state": True}
KINDS = [layers.SimpleRNN, layers.LSTM, layers.GRU]


def some(*shape):
    return tw.constant(record.numbers(*shape))
