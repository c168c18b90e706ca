"""`cache` in a file: what it holds, when it is made, positions in it."""

import json
import os

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset

from ..elements_of import values


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "cache")


def test_the_function_is_called_in_the_first_run_alone(path):
    calls = []

    def counted(x):
        calls.append(x)
        return x * x

    ds = Dataset.range(5).map(counted).cache(path)
    assert values(ds.repeat(2)) == 2 * [0, 1, 4, 9, 16] and len(calls) == 5
    again = Dataset.range(5).map(counted).cache(path)  # as in another process
    assert values(again.shuffle(5, seed=0).batch(5))[0] != values(again)
    assert values(again) == [0, 1, 4, 9, 16] and len(calls) == 5


def test_elements_of_all_kinds_come_back_as_they_were(path):
    def elements():
        yield {"a": (np.float32(1.5), np.zeros((2, 0), "int8")), "s": "é"}, 1
        yield {"a": (np.arange(3), True), "s": [["x", ""], ["\0", "yz"]]}, 1j

    ds = Dataset.from_generator(elements).cache(path)
    first, second = list(ds), list(ds)
    for a, b in zip(first, second, strict=True):
        tw.nest.assert_same_structure(a, b)
        for x, y in zip(tw.nest.flatten(a), tw.nest.flatten(b), strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape
            assert np.array_equal(x.numpy(), y.numpy())


def test_a_run_that_does_not_end_leaves_no_file(path):
    iterator = iter(Dataset.range(5).cache(path))
    next(iterator)
    del iterator
    failing = Dataset.range(3).map(lambda x: 1 // (2 - int(x))).cache(path)
    with pytest.raises(ZeroDivisionError):
        list(failing)
    assert os.listdir(os.path.dirname(path)) == []


@pytest.mark.parametrize("whole", [False, True])
def test_every_position_is_restored(path, whole):
    def chain():
        return Dataset.range(6).shuffle(6, seed=3).cache(path).repeat(2)

    for done in range(13):
        if not whole and os.path.exists(path):
            os.remove(path)
        iterator = iter(chain())
        for _ in range(done):
            next(iterator)
        state = json.loads(json.dumps(iterator.state()))
        rest = [int(x) for x in iterator]
        if not whole:
            os.remove(path)
        other = iter(chain())
        other.restore(state)
        assert [int(x) for x in other] == rest


def test_what_a_file_cannot_hold_is_refused(path):
    for ds in (Dataset.range(4).window(2), Dataset.from_tensors({1: 2})):
        with pytest.raises(TypeError, match="cache: (elements|dicts) in files"):
            list(ds.cache(path))
    list(Dataset.range(4).cache(path))
    with open(path, "r+b") as file:
        file.seek(20)
        file.write(b"?")
    with pytest.raises(tw.errors.DataLossError):
        list(Dataset.range(4).cache(path))
    with tw.io.TFRecordWriter(path) as writer:
        writer.write(b"something else")
    with pytest.raises(tw.errors.DataLossError, match="not an element"):
        list(Dataset.range(4).cache(path))
