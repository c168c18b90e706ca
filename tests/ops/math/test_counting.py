"""Counts of integers, histograms, confusion matrices: the op table, and the corners."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, floats, integers


def counts(arr, size):
    return np.array([[(row == k).sum() for k in range(size)] for row in arr], np.int32)


CASES = [
    case("bincount", integers(2, 5, high=6), size=4, expect=lambda x: counts(x, 4)),
    case("bincount", integers(5, high=6), size=6, dtype="float64",
         expect=lambda x: counts(x[None], 6)[0].astype(float)),
    case("bincount", integers(1, 2, 5, high=6), size=7, binary_output=True,
         expect=lambda x: (counts(x[0], 7)[None] > 0).astype(np.int32)),
    case("bincount", integers(2, 0), size=2, expect=lambda x: np.zeros((2, 2), np.int32)),
    *[case(lambda w, how=how: tw.math.bincount([[0, 2, 5], [2, 2, 1]], w, **how), floats(2, 3),
           expect=expect, label=f"weights {how}")
      for how, expect in (
          ({}, lambda w: np.bincount([0, 2, 5, 2, 2, 1], w.ravel())),
          ({"axis": -1, "maxlength": 3}, lambda w: np.array(
              [[w[0, 0], 0, w[0, 1]], [0, w[1, 2], w[1, 0] + w[1, 1]]])))],
    case(lambda w: tw.math.confusion_matrix([1, 0, 1], [0, 0, 0], weights=w, dtype=w.dtype),
         floats(3), expect=lambda w: np.array([[w[1], 0], [w[0] + w[2], 0]]),
         label="confusion_matrix"),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


@pytest.mark.parametrize("call, kind, message", [
    (lambda: tw.math.bincount([1, -2]), ValueError, "arr .*got -2"),
    (lambda: tw.math.bincount([1], axis=1), ValueError, "axis .*None.*0.*-1.*got 1"),
    (lambda: tw.math.bincount([1], [2.0], binary_output=True), ValueError, "combined"),
    (lambda: tw.math.bincount([1], [2.0, 3.0]), tw.errors.ShapeError, "weights .*shape"),
    (lambda: tw.math.bincount(3, axis=-1), ValueError, "scalar has no axis -1"),
    (lambda: tw.math.confusion_matrix([1, 4], [1, 1], 3), ValueError, "labels .*0.*2.*got 4"),
    (lambda: tw.math.confusion_matrix([-1, 1], [1, 1]), ValueError, "got -1"),
    (lambda: tw.math.confusion_matrix([1], [1, 1]), tw.errors.ShapeError, "length"),
    (lambda: tw.histogram_fixed_width([1.0], [1.0, 1.0]), ValueError, r"value_range .*1\. 1\."),
    (lambda: tw.histogram_fixed_width([1.0], [0.0, 1.0], 0), ValueError, "nbins .*1.*got 0"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


COUNTS = [  # recorded from TensorFlow 2.21
    ({}, [0, 2, 0, 0, 0, 1]),
    ({"minlength": 8}, [0, 2, 0, 0, 0, 1, 0, 0]),
    ({"maxlength": 4}, [0, 2, 0, 0]),
    ({"binary_output": True}, [0, 1, 0, 0, 0, 1]),
    ({"weights": [1.0, 2.0, 3.0]}, [0, 3, 0, 0, 0, 3]),
    ({"weights": [1.0, 2.0, 3.0], "maxlength": 2}, [0, 3]),
]


@pytest.mark.parametrize("how, wanted", COUNTS)
def test_numbers_are_counted_as_in_tensorflow(how, wanted):
    found = tw.math.bincount([1, 1, 5], **how)
    assert found.numpy().tolist() == wanted
    assert found.dtype == ("float32" if "weights" in how else "int32")


def test_counts_of_nothing_and_of_one_number():
    assert tw.math.bincount([]).numpy().tolist() == []
    assert tw.math.bincount(3, dtype=tw.int64).numpy().tolist() == [0, 0, 0, 1]
    assert tw.math.bincount([1.0, 2.0]).numpy().tolist() == [0, 1, 1]


def test_rows_are_counted_apart_along_the_last_axis():
    arr, weights = [[1, 1, 5], [0, 2, 2]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    found = tw.math.bincount(arr, axis=-1).numpy().tolist()
    assert found == [[0, 2, 0, 0, 0, 1], [1, 0, 2, 0, 0, 0]]
    found = tw.math.bincount(arr, weights, axis=-1).numpy().tolist()
    assert found == [[0, 3, 0, 0, 0, 3], [4, 0, 11, 0, 0, 0]]


def test_a_histogram_counts_what_is_outside_in_the_first_and_last_bin():
    values = [-1.0, 0.0, 1.5, 2.0, 5.0, 15]
    found = tw.histogram_fixed_width(values, [0.0, 5.0], nbins=5)
    assert found.numpy().tolist() == [2, 1, 1, 0, 2]
    bins = tw.histogram_fixed_width_bins(values, [0.0, 5.0], nbins=5, dtype=tw.int64)
    assert bins.dtype == tw.int64 and bins.numpy().tolist() == [0, 0, 1, 2, 4, 4]


def test_a_confusion_matrix_has_labels_in_rows_and_predictions_in_columns():
    found = tw.math.confusion_matrix([1, 2, 2], [[2], [2], [0]]).numpy().tolist()
    assert found == [[0, 0, 0], [0, 0, 1], [1, 0, 1]]
    found = tw.math.confusion_matrix([0, 1], [0, 1], 3, [0.5, 2.0], dtype=tw.float32)
    assert found.numpy().tolist() == [[0.5, 0, 0], [0, 2, 0], [0, 0, 0]]
    traced = tw.function(lambda x: tw.math.confusion_matrix(x, [0, 1], 2))
    assert traced(tw.constant([1, 1])).numpy().tolist() == [[0, 0], [1, 1]]
    with pytest.raises(ValueError, match="labels .*got 2"):
        traced(tw.constant([1, 2]))


def test_counts_without_a_dtype_are_int32():
    assert tw.math.bincount([1, 1], dtype=None).dtype == tw.int32


def test_rows_of_nothing_count_nothing():
    rows = np.zeros((0, 3), np.int32)
    counts = tw.math.bincount(rows, np.zeros((0, 3), np.float32), minlength=2, axis=-1)
    assert counts.shape == (0, 2)


def test_a_histogram_of_a_range_that_overflows():
    for dtype, top in (("float32", 3e38), ("float64", 1e308), ("int32", 2**31 - 1)):
        values = tw.constant([1, 2, 3], dtype)
        counts = tw.histogram_fixed_width(
            values, tw.constant([-top, top], dtype), nbins=4
        )
        assert counts.numpy().tolist() == [0, 0, 3, 0]


def test_a_histogram_refuses_nan_and_an_infinite_range():
    with pytest.raises(ValueError, match="NaN"):
        tw.histogram_fixed_width([np.nan, 1.0], [0.0, 1.0])
    with pytest.raises(ValueError, match="value_range"):
        tw.histogram_fixed_width([1.0], [-np.inf, np.inf])
    counts = tw.histogram_fixed_width([np.inf, -np.inf], [0.0, 1.0], nbins=2)
    assert counts.numpy().tolist() == [1, 1]


def test_numbers_can_be_counted_in_a_trace_where_the_length_is_given():
    call = tw.function(lambda x: tw.math.bincount(x, minlength=4, maxlength=4, axis=-1))
    x = np.array([[0, 1, 1], [3, 9, 3]])
    assert call(x).numpy().tolist() == [[1, 2, 0, 0], [0, 0, 0, 2]]
    with pytest.raises(ValueError, match="bincount.*must not be negative"):
        call(-x)
