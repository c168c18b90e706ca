"""Sorting, the largest entries, unique entries, places: the op table, and the corners."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, floats, integers

DTypeError = tw.errors.DTypeError
ShapeError = tw.errors.ShapeError


def backwards(x, axis=-1):
    return np.flip(np.sort(x, axis), axis)


def largest(x, k, index="int32"):
    indices = np.argsort(-x, -1, kind="stable")[..., :k]
    return np.take_along_axis(x, indices, -1), indices.astype(index)


def placed(x, indices, size):
    result = np.zeros((*x.shape[:-1], size), x.dtype)
    np.put_along_axis(result, indices, x, -1)
    return result


def among_the_best(targets, predictions, k):
    ranks = [(row > row[t]).sum() for t, row in zip(targets, predictions)]
    return np.array(ranks) < k


def first_come(x):
    y = np.array(list(dict.fromkeys(x.tolist())), x.dtype)
    idx = np.array([y.tolist().index(v) for v in x.tolist()], np.int32)
    return y, idx, np.bincount(idx, minlength=len(y)).astype(np.int32)


ROWS = np.array([[3, 0, 1], [2, 1, 3]])

CASES = [
    case(tw.sort, floats(4), expect=np.sort),
    case(tw.sort, floats(2, 3), direction="DESCENDING", expect=backwards),
    case("sort", floats(5), expect=np.sort),
    case("sort", floats(2, 3, 2), axis=1, expect=lambda x: np.sort(x, 1)),
    case("sort", floats(3, 2), axis=-2, descending=True, expect=lambda x: backwards(x, 0)),
    case("sort", floats(2, 0), expect=lambda x: x),
    case("sort", integers(2, 5), descending=True, expect=backwards),
    case("argsort", floats(2, 3), expect=lambda x: np.argsort(x).astype(np.int32)),
    case("argsort", floats(3, 2), axis=0, descending=True,
         expect=lambda x: np.argsort(-x, 0).astype(np.int32)),
    case("argsort", integers(7),
         expect=lambda x: np.argsort(x, kind="stable").astype(np.int32)),
    *[case("top_k", x, k=k, expect=lambda x, k=k: largest(x, k))
      for x, k in ((floats(5), 2), (floats(2, 3), 3), (floats(2, 2, 3), 1), (floats(2, 3), 0))],
    case("top_k", floats(2, 40), k=2, order=1, index_type="int64",
         expect=lambda x: largest(x, 2, "int64")),
    case("top_k", integers(2, 40), k=3, expect=lambda x: largest(x, 3), label="ties"),
    case("in_top_k", np.array([0, 2]), floats(2, 3), k=2,
         expect=lambda t, p: among_the_best(t, p, 2)),
    case("take_along_axis", floats(2, 4), ROWS,
         expect=lambda x, i: np.take_along_axis(x, i, 1)),
    case("take_along_axis", floats(4, 2), ROWS.T, axis=0,
         expect=lambda x, i: np.take_along_axis(x, i, 0)),
    case("place_along_axis", floats(2, 3), ROWS, size=4, expect=lambda x, i: placed(x, i, 4)),
    case("place_along_axis", floats(3, 2), ROWS.T, size=5, axis=0,
         expect=lambda x, i: placed(x.T, i.T, 5).T),
    case("place_along_axis", floats(2, 0), np.zeros((2, 0), int), size=3,
         expect=lambda x, i: np.zeros((2, 3))),
    case("unique", integers(7), unmapped=("x",), expect=first_come),
    case("unique", np.array([1.5, -2.0, 1.5]), unmapped=("x",), expect=first_come),
    case("unique", integers(0), unmapped=("x",), expect=first_come),
    case("searchsorted", np.array([0.0, 0.5, 0.5, 2.0]), floats(2, 3), out_type="int32",
         expect=lambda s, v: np.searchsorted(s, v).astype(np.int32)),
    case("searchsorted", np.array([0, 1, 1, 2]), integers(5), right=True, out_type="int64",
         expect=lambda s, v: np.searchsorted(s, v, "right")),
    case("searchsorted", np.array([[0, 1, 1], [1, 2, 2]]), integers(2, 4), out_type="int32",
         expect=lambda s, v: np.int32([np.searchsorted(*row) for row in zip(s, v)])),
    case("searchsorted", np.zeros((2, 0)), floats(2, 2), out_type="int32",
         expect=lambda s, v: np.zeros((2, 2), np.int32)),
    case("invert_permutation", np.array([2, 0, 1, 3]), expect=np.argsort),
    case("invert_permutation", integers(0), expect=lambda x: x),
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


def test_a_gradient_goes_where_the_sorted_entry_came_from():
    weights = tw.constant([1.0, 10.0, 100.0])
    assert slope(lambda x: tw.sort(x) * weights, [5.0, 3.0, 4.0]) == [100, 1, 10]


def test_equal_entries_get_the_gradients_of_their_own_places():
    weights = tw.constant([1.0, 10.0, 100.0])
    assert slope(lambda x: tw.sort(x) * weights, [4.0, 4.0, 4.0]) == [1, 10, 100]
    down = slope(
        lambda x: tw.sort(x, direction="DESCENDING") * weights, [4.0, 4.0, 4.0]
    )
    assert down == [1, 10, 100]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "float16"])
def test_the_extremes_of_a_dtype_sort_both_ways(dtype):
    dtype = tw.dtypes.as_dtype(dtype)
    x = tw.constant([1, dtype.max, dtype.min, 0], dtype)
    wanted = sorted(x.numpy().tolist())
    assert tw.sort(x).numpy().tolist() == wanted
    assert tw.sort(x, direction="DESCENDING").numpy().tolist() == wanted[::-1]
    assert tw.math.top_k(x, 2).values.numpy().tolist() == wanted[:1:-1]


@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
def test_nan_comes_last(direction):
    found = tw.sort([1.0, np.nan, 3.0], direction=direction).numpy()
    assert np.isnan(found[2]) and not np.isnan(found[:2]).any()
    assert tw.argsort([1.0, np.nan, 3.0], direction=direction).numpy()[2] == 1


@pytest.mark.parametrize("size", [4, 50])
def test_of_equal_entries_the_first_are_the_largest(size):
    x = np.zeros(size, np.float32)
    x[[1, 3]] = 7
    values, indices = tw.math.top_k(x, 3)
    assert values.numpy().tolist() == [7, 7, 0] and indices.numpy().tolist() == [
        1,
        3,
        0,
    ]


def test_the_largest_of_many_are_found_without_a_sort_and_with_one_alike():
    x = np.random.default_rng(0).permutation(600).reshape(3, 200).astype(np.float32)
    values, indices = tw.math.top_k(x, 5)
    np.testing.assert_array_equal(values.numpy(), largest(x, 5)[0])
    np.testing.assert_array_equal(indices.numpy(), largest(x, 5)[1])
    x[1, 7] = np.nan
    assert tw.math.top_k(x, 5).indices.numpy().shape == (3, 5)


def test_results_have_tensorflow_s_names():
    assert tw.math.top_k([1.0, 2.0])._fields == ("values", "indices")
    assert tw.unique([1, 2])._fields == ("y", "idx")
    assert tw.unique_with_counts([1, 2])._fields == ("y", "idx", "count")


def test_a_class_counts_if_tied_with_the_last_and_never_in_a_row_that_is_not_finite():
    # as TensorFlow has it
    rows = [[1.0, 2.0, 2.0], [1.0, 3.0, 3.0], [1.0, 2.0, 3.0], [np.nan, 2.0, 2.0],
            [1.0, np.inf, 3.0]]  # fmt: skip
    found = tw.math.in_top_k([0, 1, 5, 1, 1], rows, 1).numpy().tolist()
    assert found == [False, True, False, False, False]
    assert tw.math.in_top_k([0], tw.zeros((1, 0)), 1).numpy().tolist() == [False]


def test_unique_entries_come_in_the_order_of_their_first_and_take_an_index_type():
    y, idx, count = tw.unique_with_counts([3, 1, 3, 2], tw.int64)
    assert y.numpy().tolist() == [3, 1, 2] and y.dtype == tw.int32
    assert idx.numpy().tolist() == [0, 1, 0, 2] and idx.dtype == tw.int64
    assert count.numpy().tolist() == [2, 1, 1] and count.dtype == tw.int64


def test_places_in_sorted_rows_are_counted_from_either_side():
    rows, values = [[1, 3, 5], [2, 4, 6]], [[0, 3, 6], [4, 5, 7]]
    assert tw.searchsorted(rows, values).numpy().tolist() == [[0, 1, 3], [1, 2, 3]]
    found = tw.searchsorted(rows, values, side="right", out_type=tw.int64)
    assert found.numpy().tolist() == [[0, 2, 3], [2, 2, 3]] and found.dtype == tw.int64


def test_an_order_is_told_from_none():
    assert tw.math.is_non_decreasing([1, 1, 2]).numpy()
    assert not tw.math.is_strictly_increasing([1, 1, 2]).numpy()
    assert tw.math.is_strictly_increasing([[1, 2], [3, 4]]).numpy()
    assert not tw.math.is_non_decreasing([2, 1]).numpy()
    assert tw.math.is_strictly_increasing([]).numpy()


@pytest.mark.parametrize("call, kind, message", [
    (lambda: tw.sort([1.0], direction="UP"), ValueError, "direction .*'ASCENDING'.*got 'UP'"),
    (lambda: tw.argsort([1.0], direction="up"), ValueError, "argsort: direction"),
    (lambda: tw.sort([1.0, 2.0], axis=1), ValueError, "axis .*-1.*0.*got 1"),
    (lambda: tw.argsort(1.0), ValueError, "scalar has no axis -1"),
    (lambda: tw.sort([1j]), DTypeError, "complex numbers have no order"),
    (lambda: tw.math.top_k([1.0, 2.0], 3), ShapeError, "k .*0.*got 3"),
    (lambda: tw.math.top_k([1.0, 2.0], -1), ShapeError, "got -1"),
    (lambda: tw.math.top_k(1.0), ShapeError, "input .*an axis"),
    (lambda: tw.math.in_top_k([0, 1], [[1.0, 2.0]], 1), ShapeError, r"targets .*\[batch\]"),
    (lambda: tw.math.in_top_k([0.0], [[1.0, 2.0]], 1), DTypeError, "targets .*integer"),
    (lambda: tw.unique([[1]]), ShapeError, "x .*axis"),
    (lambda: tw.searchsorted([1], [1], side="up"), ValueError, "side .*'left'.*got 'up'"),
    (lambda: tw.searchsorted([1, 2], 1), ShapeError, "both must have rows"),
    (lambda: tw.searchsorted([[1, 2]], [[1], [2]]), ShapeError, "the same axes before"),
    (lambda: tw.math.invert_permutation([[0]]), ShapeError, "x .*integers"),
    (lambda: tw.math.invert_permutation([0.0]), DTypeError, "x .*integer"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("x", [[2, 0, 0], [0, 3, 1], [0, -1, 1]])
def test_what_is_no_permutation_is_not_inverted(x, device):
    if device != "cpu":  # a GPU is not asked: it would have to wait
        pytest.skip("checked on the CPU only")
    with pytest.raises(ValueError, match="x .*0.*2"):
        tw.math.invert_permutation(x)


@pytest.mark.parametrize(
    "op", [tw.math.is_non_decreasing, tw.math.is_strictly_increasing]
)
def test_nan_is_in_no_order(op):
    assert not op([1.0, np.nan, 3.0]).numpy()
    assert op([1.0, 2.0, 3.0]).numpy() and op([]).numpy()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", "i8"])
@pytest.mark.parametrize("shape", [(60,), (5, 60), (2, 3, 40), (0, 60)])
def test_few_of_many_are_the_first_of_equals(dtype, shape):
    rng = np.random.default_rng(0)
    for k in (1, 4):
        x = rng.integers(0, 9, shape).astype(dtype)
        if x.dtype.kind == "f" and x.size:
            x.reshape(-1)[::7] = np.nan, *[-0.0] * (len(x.reshape(-1)[::7]) - 1)
            x.reshape(-1)[1::9] = np.inf
        values, indices = tw.math.top_k(x, k)
        keys = -x.astype("f8")
        wanted = np.argsort(keys, axis=-1, kind="stable")[..., :k]
        np.testing.assert_array_equal(indices.numpy(), wanted)
        picked = np.take_along_axis(x, wanted, axis=-1)
        np.testing.assert_array_equal(values.numpy(), picked)
