"""States of objects as plain values in a file."""

import os
import random

import numpy as np
import pytest

import tapewright as tw
from tapewright.formats.checkpoints.state_codec import decode_state, encode_state

from .training import assert_equal

Checkpoint = tw.train.Checkpoint
layers = tw.keras.layers


def test_states_of_objects_are_kept_with_their_types(tmp_path):
    class Counter:
        value = {"a": (1, [2.5, None, "x"]), 3: True, "inf": float("inf")}
        arrays = [np.arange(3), np.float32(0.1), np.array(2)]

        def get_state(self):
            return {"value": self.value, "arrays": self.arrays}

        def set_state(self, state):
            self.value, self.arrays = state["value"], state["arrays"]

    counter = Counter()
    path = Checkpoint(counter=counter).save(tmp_path / "ckpt")
    value, counter.value, counter.arrays = counter.value, None, None
    Checkpoint(counter=counter).restore(path).assert_consumed()
    assert counter.value == value
    assert [type(a) for a in counter.arrays] == [np.ndarray, np.float32, np.ndarray]
    assert_equal(counter.arrays, Counter.arrays)


def test_generators_of_numpy_and_python_are_kept(tmp_path):
    ours, theirs = np.random.default_rng(1), random.Random(1)
    path = Checkpoint(numpy=ours, python=theirs).save(tmp_path / "ckpt")
    expected = ours.random(), theirs.random()
    Checkpoint(numpy=ours, python=theirs).restore(path).assert_consumed()
    assert (ours.random(), theirs.random()) == expected


def test_callbacks_are_kept(tmp_path):
    early = tw.keras.callbacks.EarlyStopping()
    early.best, early.wait = 0.5, 2
    early.best_weights = [np.ones(3, "f4"), np.zeros((2, 2))]
    path = Checkpoint(early=early).save(tmp_path / "ckpt")
    other = tw.keras.callbacks.EarlyStopping()
    Checkpoint(early=other).restore(path)
    assert (other.best, other.wait) == (0.5, 2)
    assert_equal(other.best_weights, early.best_weights)


@pytest.mark.parametrize("part", [3, "text", None, object(), layers.Dense])
def test_what_cannot_be_kept_is_refused(part):
    with pytest.raises(ValueError, match="step cannot be saved"):
        Checkpoint(step=part)


def test_a_state_that_cannot_be_kept_is_named(tmp_path):
    class Odd:
        def get_state(self):
            return {"a": [1, object()]}

        def set_state(self, state):
            pass

    with pytest.raises(TypeError, match=r"'odd'\['a'\]\[1\]"):
        Checkpoint(odd=Odd()).write(tmp_path / "one")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "state",
    [{"dict": [["a"]]}, {"array": 5}, {"float": "1"}, {"other": 1}, {"array": True}],
)
def test_a_state_that_was_written_otherwise_is_refused(state):
    with pytest.raises(tw.errors.SavingError, match="state is invalid"):
        decode_state(state, [np.zeros(2)], "file", "place")


def test_plain_states_know_their_depth():
    nested = []
    for _ in range(100):
        nested = [nested]
    with pytest.raises(TypeError, match="nested deeper"):
        encode_state(nested, [])
