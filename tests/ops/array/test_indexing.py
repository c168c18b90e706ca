"""Indexing with [], slices, one_hot, argmax: the op table, and every index of NumPy's."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.ops.array import indexing as ops
from tapewright.test import (
    case,
    check_op,
    complexes,
    floats,
    integers,
)

FULL = [None, None, None]


def scattered(g, shape, index):
    full = np.zeros(shape)
    full[index] = g
    return full


CASES = [
    case("getitem", floats(2, 3), index=(1,), expect=lambda x: x[1]),
    case("getitem", floats(2, 3), index=(-1, 0), expect=lambda x: x[-1, 0]),
    case("getitem", floats(2, 3), index=("...", 1), expect=lambda x: x[..., 1]),
    case("getitem", floats(4, 3), index=([1, None, 2], [None, None, -1]),
         expect=lambda x: x[1::2, ::-1]),
    case("getitem", floats(2, 3), index=("newaxis", FULL, "newaxis", 1),
         expect=lambda x: x[None, :, None, 1]),
    case("getitem", floats(2, 3, 2), index=(0, "...", "newaxis"),
         expect=lambda x: x[0, ..., None]),
    case("getitem", floats(2, 3, 2), index=(0,), expect=lambda x: x[0], label="first"),
    case("getitem", floats(2, 3), index=(), expect=lambda x: x),
    case("getitem", floats(3), index=([2, 2, None],), expect=lambda x: x[2:2]),
    case("getitem", complexes(3), index=([None, 2, None],), expect=lambda x: x[:2]),
    case("scatter_index", floats(3), shape=(2, 3), index=(1,),
         expect=lambda g: scattered(g, (2, 3), 1)),
    case("scatter_index", floats(2, 3), shape=(4, 3), index=([1, None, 2], [None, None, -1]),
         expect=lambda g: scattered(g, (4, 3), (slice(1, None, 2), slice(None, None, -1)))),
    case("scatter_index", floats(2), shape=(2, 3), index=("...", 1),
         expect=lambda g: scattered(g, (2, 3), (..., 1))),
    case("argmax", floats(2, 3), axis=1, expect=lambda x: x.argmax(1)),
    case("argmax", floats(2, 3), axis=-2, output_type="int32",
         expect=lambda x: x.argmax(0).astype("int32")),
    case("argmin", floats(2, 3), axis=1, expect=lambda x: x.argmin(1)),
    case("argmin", integers(4), expect=np.argmin, label="integers"),
    case("one_hot", np.array([2, 0, 5]), depth=3, expect=lambda i: np.array(
        [[0, 0, 1], [1, 0, 0], [0, 0, 0]], "float32")),
    case("one_hot", np.array([[1, 0]], np.uint8), depth=300, axis=0, dtype="int32",
         expect=lambda i: np.moveaxis(np.eye(300, dtype="int32")[i], -1, 0)),
    # composed of these
    case(lambda x: x[1:, None, 0], floats(3, 2), expect=lambda x: x[1:, None, 0], label="[]"),
    case(lambda x: x[tw.constant([1, -1])], floats(3, 2), expect=lambda x: x[[1, -1]],
         label="[tensor]"),
    case(lambda x: x[:, [1, 0, 1]], floats(2, 3), expect=lambda x: x[:, [1, 0, 1]],
         label="[:, list]"),
    case(lambda x: x[..., [1, 0]], floats(2, 3), expect=lambda x: x[..., [1, 0]],
         label="[..., list]"),
    case(lambda x: x[np.array([True, False, True])], floats(3, 2),
         expect=lambda x: x[[0, 2]], label="[mask]"),
    case(lambda x: x[:, np.array([True, False, True]), None], floats(2, 3),
         expect=lambda x: x[:, [0, 2], None], label="[:, mask, None]"),
    case(lambda x: x[[0, 1], [2, 0]], floats(2, 3), expect=lambda x: x[[0, 1], [2, 0]],
         label="[list, list]"),
    case(lambda x: x[:, [[0], [1]], [2, -1]], floats(2, 2, 3),
         expect=lambda x: x[:, [[0], [1]], [2, -1]], label="[:, column, row]"),
    case(lambda x: x[[0, 1], :, [2, 0]], floats(2, 3, 3),
         expect=lambda x: x[[0, 1], :, [2, 0]], label="[list, :, list]"),
    case(lambda x: x[:, 0, :, [1, 0]], floats(2, 2, 2, 2),
         expect=lambda x: x[:, 0, :, [1, 0]], label="[:, int, :, list]"),
    case(lambda x: x[::-1, [1, 1], 1], floats(2, 2, 2),
         expect=lambda x: x[::-1, [1, 1], 1], label="[::-1, list, int]"),
    case(lambda x: x[[0, 1], np.eye(2, dtype=bool)], floats(2, 2, 2),
         expect=lambda x: x[[0, 1], np.eye(2, dtype=bool)], label="[list, mask]"),
    case(lambda x: x[[]], floats(2, 3), expect=lambda x: x[:0], label="[empty list]"),
    case(tw.slice, floats(3, 4), begin=[1, 0], size=[-1, 2], expect=lambda x: x[1:, :2]),
    case(tw.strided_slice, floats(3, 4), begin=[-1, -1], end=[0, 0], strides=[-1, -2],
         expect=lambda x: x[-1:0:-1, -1:0:-2]),
    case(tw.strided_slice, floats(3, 4), begin=[1, 0, 1], end=[0, 0, 3], ellipsis_mask=2,
         shrink_axis_mask=1, expect=lambda x: x[1, ..., 1:3], label="..."),
    case(tw.strided_slice, floats(3, 4), begin=[9, 1, 1], end=[9, 2, 1], new_axis_mask=1,
         begin_mask=2, end_mask=4, expect=lambda x: x[None, :2, 1:], label="new axis"),
    case(tw.one_hot, np.array([2, 0, 5]), depth=3, label="last", expect=lambda i: np.array(
        [[0, 0, 1], [1, 0, 0], [0, 0, 0]], "float32")),
    case(tw.one_hot, np.array([1, 0]), depth=2, axis=0, dtype="float64", label="in front",
         expect=lambda i: np.array([[0.0, 1.0], [1.0, 0.0]])),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_every_index_is_numpys():
    """A thousand indices of all kinds, against NumPy's own."""
    rng = np.random.default_rng(5)
    for _ in range(1000):
        x = rng.normal(size=rng.integers(1, 4, rng.integers(1, 5)))
        index = random_index(rng, x.shape)
        try:
            wanted = x[index]
        except IndexError:
            continue
        got = tw.constant(x)[index].numpy()
        assert got.shape == wanted.shape, f"{x.shape}{list(index)}"
        assert np.array_equal(got, wanted), f"{x.shape}{list(index)}"


def random_index(rng, shape):
    items, axis = [], 0
    while axis < len(shape) and rng.random() < 0.85:
        size, kind = shape[axis], rng.choice("int slice array mask newaxis ...".split())
        if kind == "int":
            items.append(int(rng.integers(-size, size)))
        elif kind == "slice":
            ends = [None, *range(-4, 5)]
            first, last = (ends[i] for i in rng.integers(0, len(ends), 2))
            items.append(slice(first, last, [None, 1, 2, -1, -2][rng.integers(5)]))
        elif kind == "array":
            length = [(), (1,), (2,), (3, 1), (3, 2)][rng.integers(5)]
            array = np.asarray(rng.integers(-size, size, length))
            items.append(array if rng.random() < 0.5 else tw.constant(array))
        elif kind == "mask":
            items.append(rng.random(shape[axis : axis + rng.integers(0, 3)]) < 0.5)
            axis += np.ndim(items[-1]) - 1
        else:
            if kind == "newaxis" or Ellipsis not in [i for i in items if i is Ellipsis]:
                items.append(None if kind == "newaxis" else Ellipsis)
            continue
        axis += 1
    return tuple(items)


def test_tensors_of_rank_0_are_ints_in_an_index():
    x, one, two = tw.constant([1, 2, 3, 4]), tw.constant(1), tw.Variable(2)
    assert x[one].numpy() == 2 and x[one:two].numpy().tolist() == [2]
    assert x[two].numpy() == 3 and x[np.int64(3)].numpy() == 4


def test_a_mask_of_a_variable_is_its_own_index():
    v = tw.Variable([[1.0, -2.0], [-3.0, 4.0]])
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(v[v > 0] ** 2)
    assert tape.gradient(y, v).numpy().tolist() == [[2, 0], [0, 8]]


X = tw.constant(np.zeros((2, 3), np.float32))
OUT_OF_RANGE = [
    (lambda: X[2], "shape"),
    (lambda: X[0, 0, 0], "shape"),
    (lambda: X[[0], [0], [0]], r"3 axes.*\(2, 3\)"),
    (lambda: X[..., [0], ...], "one ellipsis"),
    (lambda: X[[0, 2]], "indices .*0.*1.*got 2"),
    (lambda: X[:, [-4]], r"index -4 .*axis 1 .*\(2, 3\)"),
    (lambda: X[[0, 1], [0, 3]], "indices .*-3.*2.*axis 1.*got 3"),
]  # fmt: skip


@pytest.mark.parametrize("call, message", OUT_OF_RANGE)
def test_an_index_out_of_range_is_explained(call, message):
    with devices.device("CPU"), pytest.raises(IndexError, match=message):
        call()


def test_slices_may_begin_where_tensors_of_a_trace_say():
    x = np.arange(24.0).reshape(2, 3, 4)
    mixed = tw.function(lambda x, i: tw.slice(x, [1, i, 0], [-1, 2, 3]))
    np.testing.assert_array_equal(mixed(x, tw.constant(1)), x[1:, 1:3, :3])
    together = tw.function(lambda x, begin: tw.slice(x, begin, [1, 1, 2]))
    np.testing.assert_array_equal(together(x, tw.constant([1, 2, 0])), x[1:, 2:, :2])
    with pytest.raises(tw.errors.ShapeError, match="size -1 of axis 1 needs a begin"):
        tw.function(lambda x, i: tw.slice(x, [0, i, 0], [1, -1, 1]))(x, tw.constant(1))


MISFITS = [
    (lambda: X[[0.5]], TypeError, "integer or boolean"),
    (lambda: X[0.5], TypeError, "integers, slices"),
    (lambda: X[True], TypeError, "integers, slices"),
    (lambda: X[[0], False], TypeError, "integers, slices"),
    (lambda: X["row"], TypeError, "integers, slices"),
    (lambda: X[0.5:], TypeError, "integer"),
    (lambda: X[[0, 1], [0, 1, 2]], tw.errors.ShapeError, "do not broadcast"),
    (lambda: X[np.array([True, False, True])], tw.errors.ShapeError, "mask"),
    (lambda: X[[0], np.array([True, False])], tw.errors.ShapeError, "mask"),
    (lambda: tw.slice(X, [0], [1]), tw.errors.ShapeError, "one entry for each axis"),
    (lambda: tw.slice(X, [0, 2], [1, 2]), tw.errors.ShapeError, "exceed axis 1"),
    (lambda: tw.strided_slice(X, [0], [1, 1]), ValueError, "the same length"),
    (lambda: tw.strided_slice(X, [0], [1], [0]), ValueError, r"strides\[0\].*0"),
    (lambda: tw.one_hot([True], 2), TypeError, "indices .*floating"),
    (lambda: tw.argmax(X, 2), ValueError, "axis .*-2.*1.*got 2"),
]  # fmt: skip


@pytest.mark.parametrize("call, error, message", MISFITS)
def test_what_is_no_index_is_explained(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_first_of_equals_is_the_argmax():
    assert tw.argmax([1.0, 3.0, 3.0]).numpy() == 1


def test_one_hot_writes_the_values_asked_for():
    hot = tw.one_hot([1], 2, on_value=5.0, off_value=-1.0)
    assert hot.numpy().tolist() == [[-1.0, 5.0]]


def answer(axis, index):
    return ops.getitem_p.primitive.diagonal_rule(
        (axis,), tw.zeros((2, 3, 4)), index=index
    )


def test_an_index_leaves_the_diagonals_behind_it():
    assert answer(-1, (0,)) == -1
    assert answer(-2, (0, "...")) == -2
    assert answer(-3, (0,)) is None
    assert answer(-1, ("...", 0)) is None


def test_no_output_type_is_int64():
    assert tw.argmax([1, 2], output_type=None).dtype == tw.int64


def test_one_hot_wants_one_dtype():
    for arguments in (
        {"on_value": 1.0, "off_value": tw.constant(0)},
        {"on_value": tw.constant(5), "dtype": "float32"},
        {"on_value": 1.0, "off_value": tw.constant(0.0, "float64")},
    ):
        with pytest.raises(TypeError, match="the same dtype"):
            tw.one_hot([0, 1], 2, **arguments)
    assert tw.one_hot([1], 2, 5, dtype="float32").numpy().tolist() == [[0.0, 5.0]]
    assert tw.one_hot([1], 2, True, False).dtype == "bool"
    assert tw.one_hot([1], 2, off_value=7).numpy().tolist() == [[7, 1]]


def test_floating_labels_that_are_whole_are_indices():
    one_hot = tw.function(lambda x: tw.one_hot(x, 3))
    for labels in ([0.0, 2.0], np.array([0.0, 2.0])):
        for f in (one_hot, lambda x: tw.one_hot(x, 3)):
            assert f(tw.constant(labels)).numpy().tolist() == [[1, 0, 0], [0, 0, 1]]
    for f in (one_hot, lambda x: tw.one_hot(x, 3)):
        for wrong in ([0.5], [np.nan]):
            with pytest.raises(ValueError, match="whole"):
                f(tw.constant(wrong))
    assert tw.one_hot([], 3).shape == (0, 3)


@pytest.mark.parametrize("op", [tw.argmax, tw.argmin, tw.nn.log_softmax, tw.nn.softmax])
def test_an_axis_of_a_scalar_is_refused(op):
    with pytest.raises(tw.errors.InvalidArgumentError, match="axis"):
        op(tw.constant(2.0), axis=0)


@pytest.mark.parametrize("op", [tw.argmax, tw.argmin])
def test_an_empty_axis_has_no_largest_entry_and_a_trace_says_so(op):
    w = tw.Variable([1.0])

    @tw.function
    def step(x):
        w.assign_add([1.0])
        return op(x, 0)

    with pytest.raises((tw.errors.ShapeError, ValueError), match="axis 0"):
        step(tw.zeros((0, 3)))
    assert w.numpy() == 1.0
    assert op(tw.zeros((2, 0)), 0).shape == (0,)
