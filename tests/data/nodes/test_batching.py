"""`batch`, `padded_batch`, `unbatch`, `window`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset

from ..elements_of import RAGGED, X, Y, lengths, values


@pytest.mark.parametrize("mapped", [False, True])
def test_the_last_batch_may_be_shorter(mapped):
    ds = Dataset.from_tensor_slices(Y)
    ds = ds.map(lambda y: y) if mapped else ds  # gathered or collected
    assert [len(batch) for batch in ds.batch(5)] == [5, 5, 2]
    assert [len(batch) for batch in ds.batch(5, drop_remainder=True)] == [5, 5]
    assert values(ds.batch(5))[2] == [10, 11]


def test_batches_of_different_shapes_are_refused():
    ds = Dataset.from_generator(lengths, output_signature=RAGGED)
    with pytest.raises(ValueError, match=r"component 1 .*\(3,\).*\(1,\).*padded_batch"):
        list(ds.batch(2))


def test_padded_batch_pads_to_the_longest():
    ds = Dataset.from_generator(lengths, output_signature=RAGGED).padded_batch(2)
    assert values(ds)[0] == ([3, 1], [[3.0, 3.0, 3.0], [1.0, 0.0, 0.0]])


def test_padded_batch_takes_shapes_and_values():
    ds = Dataset.from_generator(lengths, output_signature=RAGGED)
    ds = ds.padded_batch(3, padded_shapes=((), [4]), padding_values=(0, -1.0))
    assert values(ds)[0][1][1] == [1.0, -1.0, -1.0, -1.0]
    with pytest.raises(ValueError, match="larger"):
        list(
            Dataset.from_generator(lengths, output_signature=RAGGED).padded_batch(
                3, padded_shapes=((), [2])
            )
        )


def test_padded_strings_are_bytes():
    ds = Dataset.from_tensor_slices((["a", "b"], [["c"], ["d"]]))
    first, second = next(iter(ds.padded_batch(2, padded_shapes=((), [2]))))
    assert first.numpy().tolist() == [b"a", b"b"]
    assert [type(x) for x in first.numpy()] == [bytes, bytes]
    assert second.numpy().tolist() == [[b"c", b""], [b"d", b""]]


def test_unbatch_undoes_batch():
    ds = Dataset.from_tensor_slices((X, Y))
    assert values(ds.batch(5).unbatch()) == values(ds)


def test_of_an_unknown_number_of_batches_no_element_is_read_to_count():
    ds = Dataset.range(0).flat_map(lambda n: Dataset.range(n).batch(2)).unbatch()
    assert int(ds.cardinality()) == tw.data.UNKNOWN_CARDINALITY
    assert values(ds.batch(2)) == values(ds.batch(2).rebatch(3)) == []


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ((3,), [[0, 1, 2], [3, 4, 5], [6]]),
        ((3, 2, 2), [[0, 2, 4], [2, 4, 6], [4, 6], [6]]),
        ((2, 4), [[0, 1], [4, 5]]),
        ((3, 2, 1, True), [[0, 1, 2], [2, 3, 4], [4, 5, 6]]),
    ],
)
def test_windows_shift_and_stride(arguments, expected):
    ds = Dataset.range(7).window(*arguments)
    assert len(ds) == len(expected)
    assert values(ds.flat_map(lambda w: w.batch(3))) == expected


def test_a_padded_shape_may_be_one_number():
    ds = Dataset.from_tensor_slices([[1, 2], [3, 4]])
    expected = [[[1, 2, 0, 0], [3, 4, 0, 0]]]
    for shape in (4, np.int64(4), tw.constant(4)):
        assert values(ds.padded_batch(2, shape)) == expected
    pairs = Dataset.zip((ds, ds)).padded_batch(2, (2, 3))
    assert [spec.shape.as_list() for spec in pairs.element_spec] == [
        [None, 2],
        [None, 3],
    ]


def test_a_padded_size_of_minus_one_is_that_of_the_longest():
    ds = Dataset.from_generator(lengths, output_signature=RAGGED)
    batches = [ds.padded_batch(3, padded_shapes=((), [n])) for n in (None, -1)]
    assert values(batches[0]) == values(batches[1])
    assert batches[1].element_spec[1].shape.as_list() == [None, None]
