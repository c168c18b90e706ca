"""Reductions over segments: the op table, and the corners."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import (
    case,
    check_op,
    complexes,
    floats,
    integers,
)

DTypeError = tw.errors.DTypeError
ShapeError = tw.errors.ShapeError

MIXED = np.array([2, 0, -1, 2, 0])  # no entry of segment 1, one of none
PAIRS = np.array([[1, 0, 1], [0, -1, 1]])
SORTED = np.array([0, 0, 1, 3])
LOWEST, HIGHEST = np.finfo("float64").min, np.finfo("float64").max


def reduced(function, empty):
    """A reduction of each segment, by a loop."""

    def segments(data, ids, num_segments=None):
        rows = data.reshape(-1, *data.shape[ids.ndim :])
        count = int(ids.max()) + 1 if num_segments is None else num_segments
        result = np.full((count, *rows.shape[1:]), empty, data.dtype)
        for i in range(count):
            if (ids == i).any():
                result[i] = function(rows[ids.ravel() == i], axis=0)
        return result

    return segments


def over_root(x, axis):
    return x.sum(axis) / np.sqrt(len(x))


UNSORTED = [
    (tw.math.unsorted_segment_sum, reduced(np.sum, 0)),
    (tw.math.unsorted_segment_prod, reduced(np.prod, 1)),
    (tw.math.unsorted_segment_mean, reduced(np.mean, 0)),
    (tw.math.unsorted_segment_sqrt_n, reduced(over_root, 0)),
]
EXTREMES = [
    ("unsorted_segment_max", reduced(np.max, LOWEST)),
    ("unsorted_segment_min", reduced(np.min, HIGHEST)),
]
IN_ORDER = [
    (tw.math.segment_sum, reduced(np.sum, 0)),
    (tw.math.segment_prod, reduced(np.prod, 1)),
    (tw.math.segment_mean, reduced(np.mean, 0)),
    (tw.math.segment_max, reduced(np.max, 0)),
    (tw.math.segment_min, reduced(np.min, 0)),
]


def rows_of(params, ids):
    found = params[np.maximum(ids, 0)]
    found[ids < 0] = 0
    return found


CASES = [
    *[case(op, x, ids, num_segments=n, expect=lambda x, i, f=f, n=n: f(x, i, n))
      for op, f in UNSORTED for x, ids, n in (
          (floats(5), MIXED, 3), (floats(5, 2), MIXED, 4), (floats(2, 3), PAIRS, 2),
          (floats(2, 3, 2), PAIRS, 2))],
    *[case(op, x, ids, num_segments=2, expect=lambda x, i, f=f: f(x, i, 2))
      for op, f in EXTREMES for x, ids in (
          (floats(4), np.array([0, 1, -1, 0])), (floats(2, 3, 2), PAIRS))],
    *[case(op, floats(5, 2), MIXED, num_segments=3, order=0, single=False,
           expect=lambda x, i, f=f: f(x, i, 3)) for op, f in EXTREMES],
    *[case(op, x, SORTED, expect=f)
      for op, f in IN_ORDER for x in (floats(4), floats(4, 2))],
    *[case(op, floats(0, 2), np.zeros(0, int), expect=lambda x, i: x)
      for op, _ in IN_ORDER],
    *[case(op, floats(0, 2), np.zeros(0, int), num_segments=2, single=False,
           expect=lambda x, i, f=f: f(x, i, 2)) for op, f in UNSORTED[:2]],
    case("unsorted_segment_sum", floats(2, 0), np.array([1, 0]), num_segments=3,
         expect=lambda x, i: np.zeros((3, 0))),
    case("unsorted_segment_sum", floats(0), np.zeros(0, int), num_segments=0,
         expect=lambda x, i: np.zeros(0)),
    case("unsorted_segment_sum", floats(), np.array(0), num_segments=2,
         expect=lambda x, i: np.array([x, 0])),
    *[case(op, x, MIXED, num_segments=3, expect=lambda x, i, f=f: f(x, i, 3))
      for op, f in UNSORTED[:2] for x in (complexes(5), complexes(5, 1), integers(5, 3))],
    *[case(op, integers(4), np.array([0, 1, -1, 0]), num_segments=2,
           expect=lambda x, i, f=f: f(x, i, 2), label="integers")
      for op, f in (("unsorted_segment_max", reduced(np.max, 0)),
                    ("unsorted_segment_min", reduced(np.min, 0)))],
    *[case("unsorted_segment_prod", np.array(x), np.array([0, 1, 0, 1, 0]), num_segments=2,
           expect=lambda x, i: UNSORTED[1][1](x, i, 2), label=f"zeros, {len(x)}{k}")
      for k, x in enumerate([[0.0, 1.5, 2.0, 0.0, 0.0], [0.0, 1.5, 2.0, 0.7, 3.0]])],
    case("unsorted_segment_prod", floats(9), np.array([4, 1, 4, 4, 0, 4, 1, 4, 4]),
         num_segments=5, order=2, expect=lambda x, i: UNSORTED[1][1](x, i, 5)),
    *[case("segment_rows", x, ids, expect=rows_of)
      for x in (floats(3), floats(3, 2), complexes(3)) for ids in (MIXED, PAIRS)],
    case("segment_rows", floats(3, 2), np.array([2, 0]), expect=rows_of),
    case("segment_rows", floats(0, 2), np.array([-1, -1]),
         expect=lambda x, i: np.zeros((2, 2))),
    case("stable_order", np.array([[2, 0, 2, 1], [1, 1, 0, 0]]),
         expect=lambda x: np.argsort(x, -1, kind="stable")),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def slope(f, x):
    x = tw.constant(x)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x).numpy().tolist()


@pytest.mark.parametrize("op", [tw.math.segment_max, tw.math.segment_min])
def test_ties_for_an_extreme_share_the_gradient_of_their_segment(op):
    found = slope(lambda x: op(x, [0, 0, 0, 2]), [2.0, 2.0, 2.0, 5.0])
    np.testing.assert_allclose(found, [1 / 3, 1 / 3, 1 / 3, 1])


def test_a_zero_in_a_segment_leaves_the_product_of_the_others():
    ids = [0, 0, 1, 1, 1]
    found = slope(lambda x: tw.math.segment_prod(x, ids), [0.0, 5.0, 0.0, 0.0, 2.0])
    assert found == [5.0, 0.0, 0.0, 0.0, 0.0]


def test_empty_segments_hold_what_tensorflow_puts_there():
    ids, limits = [0, 0, -1], np.finfo(np.float32)
    x = tw.constant([1.0, 2.0, 3.0])
    found = [getattr(tw.math, f"unsorted_segment_{name}")(x, ids, 2).numpy()[1]
             for name in ("sum", "mean", "sqrt_n", "prod", "max", "min")]  # fmt: skip
    assert found == [0, 0, 0, 1, limits.min, limits.max]
    assert tw.math.unsorted_segment_min([1, 2, 3], ids, 2).numpy().tolist() == [
        1,
        2**31 - 1,
    ]
    assert tw.math.segment_max([-1.0, -2.0], [0, 2]).numpy().tolist() == [-1, 0, -2]
    assert tw.math.segment_prod([3.0, 2.0], [0, 2]).numpy().tolist() == [3, 1, 2]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_mean_of_integers_is_whole_if_sorted_and_double_precision_if_not(dtype):
    x = tw.constant([-1, -2, 4], dtype)
    whole = tw.math.segment_mean(x, [0, 0, 2])
    assert whole.dtype == dtype and whole.numpy().tolist() == [-1, 0, 4]
    broken = tw.math.unsorted_segment_mean(x, [0, 0, 2], 3)
    assert broken.dtype == "float64" and broken.numpy().tolist() == [-1.5, 0, 4]


def test_many_segments_give_the_same_as_a_loop():
    rng = np.random.default_rng(0)
    ids, data = rng.integers(-1, 300, 2000), rng.standard_normal((2000, 3))
    for op, f in UNSORTED:
        np.testing.assert_allclose(
            op(data, ids, 300).numpy(), f(data, ids, 300), atol=1e-12
        )
    for name, f in EXTREMES:
        found = getattr(tw.math, name)(data, ids, 300).numpy()
        np.testing.assert_array_equal(found, f(data, ids, 300))


def test_a_jacobian_of_a_segment_stays_diagonal_beside_the_ids():
    x = tw.constant(np.arange(1.0, 7.0).reshape(3, 2))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.transpose(tw.math.segment_sum(tw.square(x), [0, 0, 1]))
    found = tape.jacobian(y, x).numpy()
    assert found[1, 0].tolist() == [[0, 4], [0, 8], [0, 0]]


@pytest.mark.parametrize("call, kind, message", [
    (lambda m, x: m.segment_sum(x, [1, 0, 2]), ValueError, r"segment_ids .*got \[1 0 2\]"),
    (lambda m, x: m.segment_max(x, [-1, 0, 2]), ValueError, "unsorted_segment_max accepts"),
    (lambda m, x: m.segment_mean(x, [0, 1]), ShapeError, "segment_ids .*each row of data"),
    (lambda m, x: m.segment_prod(x, [[0, 1, 1]]), ShapeError, "must be a vector"),
    (lambda m, x: m.segment_min(x, [0.0, 1.0, 1.0]), DTypeError, "segment_ids .*integer"),
    (lambda m, x: m.unsorted_segment_sum(x, [0, 1], 2), ShapeError, "segment_ids .*shape"),
    (lambda m, x: m.unsorted_segment_sum(x, [0.0, 1, 2], 2), DTypeError, "ids .*integer"),
    (lambda m, x: m.unsorted_segment_sum(x, [0, 1, 2], -2), ValueError, "num_segm.*got -2"),
    (lambda m, x: m.unsorted_segment_max([True], [0], 2), DTypeError, "data .*floating"),
    (lambda m, x: m.unsorted_segment_min([1j], [0], 2), DTypeError, "data .*floating"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call(tw.math, tw.constant([1.0, 2.0, 3.0]))


def test_an_id_without_a_segment_is_refused(device):
    if device != "cpu":  # a GPU passes over it: a check would have to wait
        pytest.skip("checked on the CPU only")
    with pytest.raises(ValueError, match=r"below num_segments \(3\), got 5"):
        tw.math.unsorted_segment_sum([1.0, 2.0], [0, 5], 3)


def test_means_of_complex_numbers():
    data = tw.constant([1 + 2j, 3, 5], "complex64")
    for mean in (
        tw.math.segment_mean(data, [0, 0, 1]),
        tw.math.unsorted_segment_mean(data, [0, 0, 1], 2),
    ):
        np.testing.assert_array_equal(mean.numpy(), np.array([2 + 1j, 5], np.complex64))
