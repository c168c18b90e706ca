"""Rows of large arrays, which machine code gathers where it can."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.data.nodes import gathering
from tapewright.data.nodes.gathering import row_taker


def take_rows(array, rows):
    return row_taker(array, len(rows))(rows)


@pytest.fixture
def calls(monkeypatch):
    """All arrays are large; a list of what machine code answered."""
    from tapewright.compiler import pipeline

    made, answers = pipeline.make_gather, []

    def make():
        gather = made()

        def noted(*arrays):
            answers.append(gather(*arrays))
            return answers[-1]

        return noted

    monkeypatch.setattr(pipeline, "make_gather", make)
    for name in ("ARRAY", "BATCH", "ROW"):
        monkeypatch.setattr(gathering, name, 1)
    return answers


def machine_code(answers):
    """The answers that are expected: none for the NumPy target."""
    return answers if tw.config.target() == "native" else []


ARRAYS = {
    "floats": np.arange(600, dtype="f4").reshape(20, 5, 6),
    "one axis": np.arange(20, dtype="f8"),
    "booleans": np.arange(60).reshape(20, 3) % 2 == 0,
    "text": np.array([[f"row {i}", "x"] for i in range(20)]),
    "big-endian": np.arange(40, dtype=">i4").reshape(20, 2),
    "records": np.zeros(20, [("a", "i4"), ("b", "f8")]),
    "dates": np.arange(20).astype("datetime64[D]"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_machine_code_gathers_rows_of_every_dtype(calls, name):
    array = ARRAYS[name]
    rows = np.random.default_rng(0).permutation(20)[:13]
    found = take_rows(array, rows)
    assert calls == machine_code([None])
    assert found.dtype == array.dtype and found.flags.owndata
    np.testing.assert_array_equal(found, array[rows])


@pytest.mark.parametrize(
    "array",
    [
        np.arange(40).reshape(20, 2).astype(object),
        np.arange(80).reshape(20, 4)[:, ::2],
        np.asfortranarray(np.arange(40).reshape(20, 2)),
        np.broadcast_to(np.arange(3), (20, 3)),
        np.zeros((20, 0)),
        np.ma.masked_less(np.arange(20), 3),
    ],
)
def test_numpy_gathers_rows_that_do_not_lie_side_by_side(calls, array):
    rows = np.array([3, 0, 19, 3])
    found = take_rows(array, rows)
    assert type(found) is type(array) and not calls
    np.testing.assert_array_equal(found, array[rows])


def test_rows_are_counted_and_refused_as_numpy_does_it(calls):
    array = ARRAYS["floats"]
    np.testing.assert_array_equal(take_rows(array, np.array([-1, 2])), array[[-1, 2]])
    for wrong in (20, -21):
        with pytest.raises(IndexError):
            take_rows(array, np.array([0, wrong]))
    assert calls == machine_code([True, True, True])
    np.testing.assert_array_equal(
        take_rows(array, np.array([1, 2], "i4")), array[[1, 2]]
    )
    assert len(take_rows(array, np.array([], int))) == 0


def test_no_rows_are_an_empty_batch(calls):
    found = row_taker(ARRAYS["floats"], 4)(np.array([], np.int64))
    assert found.shape == (0, 5, 6) and found.dtype == np.float32


def test_small_arrays_and_small_batches_are_left_to_numpy(calls, monkeypatch):
    array, rows = ARRAYS["floats"], np.arange(4)
    for name, bound in (("ARRAY", 2401), ("BATCH", 481), ("ROW", 121)):
        with monkeypatch.context() as patch:
            patch.setattr(gathering, name, bound)
            take_rows(array, rows)
            assert not calls
            patch.setattr(gathering, name, bound - 1)
            take_rows(array, rows)
            assert calls == machine_code([None])
            calls.clear()


def test_training_does_not_depend_on_who_gathers(calls, monkeypatch):
    x, y = np.random.default_rng(1).random((70, 12), "f4"), np.arange(70) % 3

    def trained(pack):
        tw.random.set_seed(3)
        model = tw.Sequential([tw.layers.Dense(3)])
        loss = tw.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss, metrics=["accuracy"])
        return model.fit(*pack(x, y), epochs=2, verbose=0).history

    def shuffled(x, y):
        dataset = tw.data.Dataset.from_tensor_slices((x, y)).shuffle(70, seed=2)
        return (dataset.batch(32),)

    for pack in (lambda *arrays: arrays, shuffled):
        before = len(calls)
        found = trained(pack)
        assert len(calls) > before or tw.config.target() == "numpy"
        with monkeypatch.context() as patch:
            patch.setattr(gathering, "ARRAY", 1 << 60)
            assert trained(pack) == found


def test_a_batch_that_is_kept_stays_as_it_is(calls):
    x = np.arange(400.0).reshape(100, 4)
    dataset = tw.data.Dataset.from_tensor_slices(x).shuffle(100, seed=1).batch(10)
    batches = [batch.numpy() for batch in dataset]
    assert len(calls) == len(machine_code(batches))
    np.testing.assert_array_equal(np.sort(np.concatenate(batches), 0), x)
