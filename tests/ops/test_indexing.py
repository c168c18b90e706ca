"""Picking entries: the op table, indexing with [], sparse gradients."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import ShapeError
from tapewright.ops import indexing as ops
from tapewright.testing import case, check_op, complexes, floats, integers

FULL = [None, None, None]


def scattered(g, shape, index):
    full = np.zeros(shape)
    full[index] = g
    return full


def added(g, indices, shape, axis):
    full = np.zeros(shape)
    np.add.at(full, (slice(None),) * axis + (indices,), g)
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
    case("gather", floats(4, 2), np.array([2, 0, 2]), expect=lambda x, i: x[i]),
    case("gather", floats(2, 4), np.array([[1, 3], [1, 0]]), axis=1,
         expect=lambda x, i: x[:, i]),
    case("gather", floats(2, 4), np.array(3), axis=-1, expect=lambda x, i: x[:, i],
         label="scalar"),
    case("gather", floats(3, 2), np.zeros((0,), np.int64), expect=lambda x, i: x[i]),
    case("gather", complexes(3), np.array([2, 2]), expect=lambda x, i: x[i]),
    case("scatter_rows", floats(3, 2), np.array([2, 0, 2]), shape=(4, 2),
         expect=lambda g, i: added(g, i, (4, 2), 0)),
    case("scatter_rows", floats(2, 2, 2), np.array([[1, 3], [1, 0]]), shape=(2, 4), axis=1,
         expect=lambda g, i: added(g, i, (2, 4), 1)),
    case("scatter_rows", floats(2), np.array(3), shape=(2, 4), axis=-1,
         expect=lambda g, i: added(g, i, (2, 4), 1), label="scalar"),
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
    case(tw.boolean_mask, floats(2, 3), np.array([[True, False, True], [False, True, True]]),
         expect=lambda x, m: x[m]),
    case(tw.boolean_mask, floats(2, 3), np.array([True, False, True]), axis=1,
         expect=lambda x, m: x[:, m]),
    case(tw.slice, floats(3, 4), begin=[1, 0], size=[-1, 2], expect=lambda x: x[1:, :2]),
    case(tw.one_hot, np.array([2, 0, 5]), depth=3, label="last", expect=lambda i: np.array(
        [[0, 0, 1], [1, 0, 0], [0, 0, 0]], "float32")),
    case(tw.one_hot, np.array([1, 0]), depth=2, axis=0, dtype="float64", label="in front",
         expect=lambda i: np.array([[0.0, 1.0], [1.0, 0.0]])),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_the_gradient_of_gather_is_sparse():
    x = tw.constant(np.zeros((4, 2), np.float32))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.gather(x, [2, 0, 2])
    g = tape.gradient(y, x)
    assert isinstance(g, tw.IndexedSlices)
    assert g.indices.numpy().tolist() == [2, 0, 2] and g.values.shape == (3, 2)
    assert tw.convert_to_tensor(g).numpy().tolist() == [[1, 1], [0, 0], [2, 2], [0, 0]]


def test_two_sparse_gradients_stay_sparse_and_one_with_a_dense_one_is_dense():
    x = tw.constant([1.0, 2.0, 3.0])
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tw.reduce_sum(tw.gather(x, [0, 0])) + tw.reduce_sum(tw.gather(x, [2]))
        z = y + tw.reduce_sum(x * x)
    assert isinstance(tape.gradient(y, x), tw.IndexedSlices)
    assert tw.convert_to_tensor(tape.gradient(y, x)).numpy().tolist() == [2, 0, 1]
    assert tape.gradient(z, x).numpy().tolist() == [4, 4, 7]


def test_an_index_out_of_range_is_explained():
    with pytest.raises(IndexError, match="from 0 to 2, got 3"):
        tw.gather([1.0, 2.0, 3.0], [0, 3])
    with pytest.raises(IndexError, match="got -1"):
        tw.gather([1.0, 2.0, 3.0], [-1])
    with pytest.raises(IndexError, match="shape"):
        tw.constant([1.0, 2.0])[2]


def test_several_arrays_in_one_index_are_refused():
    with pytest.raises(TypeError, match="one array"):
        tw.zeros((2, 2))[[0], [1]]


def test_an_index_must_be_whole():
    with pytest.raises(TypeError, match="integers or booleans"):
        tw.zeros(3)[tw.constant([0.5])]


def test_a_mask_must_fit():
    with pytest.raises(ShapeError, match="boolean_mask"):
        tw.boolean_mask([1.0, 2.0], [True, False, True])


def test_the_first_of_equals_is_the_argmax():
    assert tw.argmax([1.0, 3.0, 3.0]).numpy() == 1


def test_one_hot_writes_the_values_asked_for():
    hot = tw.one_hot([1], 2, on_value=5.0, off_value=-1.0)
    assert hot.numpy().tolist() == [[-1.0, 5.0]]


def answer(axis, index):
    return ops._getitem.primitive.diagonal_rule(
        (axis,), tw.zeros((2, 3, 4)), index=index
    )


def test_an_index_leaves_the_diagonals_behind_it():
    assert answer(-1, (0,)) == -1
    assert answer(-2, (0, "...")) == -2
    assert answer(-3, (0,)) is None
    assert answer(-1, ("...", 0)) is None
