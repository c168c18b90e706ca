"""Another shape: the op table, and the shapes that do not fit."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import ShapeError
from tapewright.ops import shape as ops
from tapewright.testing import case, check_op, complexes, floats, integers


def embedded(x, axis):
    full = np.zeros((x.shape[axis], *x.shape))
    for i in range(x.shape[axis]):
        at = [slice(None)] * x.ndim
        at[axis] = i
        full[(i, *at)] = x[tuple(at)]
    return full


def diagonal_of(x, axis):
    parts = [np.take(x[i], i, axis) for i in range(x.shape[0])]
    return np.stack(parts, axis)


CASES = [
    case("reshape", floats(2, 3), shape=(3, 2), expect=lambda x: x.reshape(3, 2)),
    case("reshape", floats(2, 3), shape=(-1,), expect=np.ravel),
    case("reshape", floats(2, 3, 2), shape=(2, -1), expect=lambda x: x.reshape(2, 6)),
    case("reshape", floats(1), shape=(), expect=lambda x: x[0]),
    case("reshape", floats(2, 0), shape=(0, 3), expect=lambda x: x.reshape(0, 3)),
    case("reshape", complexes(2, 2), shape=(4,), expect=np.ravel),
    case("expand_dims", floats(2, 3), axis=1, expect=lambda x: x[:, None]),
    case("expand_dims", floats(2, 3), axis=-1, expect=lambda x: x[..., None]),
    case("expand_dims", floats(), axis=0, expect=lambda x: x[None]),
    case("expand_dims", floats(2, 3), axis=(0, -1), expect=lambda x: x[None, ..., None]),
    case("squeeze", floats(1, 2, 1, 3), expect=np.squeeze),
    case("squeeze", floats(1, 2, 1, 3), axis=2, expect=lambda x: x[:, :, 0]),
    case("squeeze", floats(1, 2, 1), axis=(0, -1), expect=lambda x: x[0, :, 0]),
    case("transpose", floats(2, 3), expect=np.transpose),
    case("transpose", floats(2, 3, 2), perm=(1, 2, 0),
         expect=lambda x: x.transpose(1, 2, 0)),
    case("transpose", floats(2, 3, 2), perm=(0, -1, 1),
         expect=lambda x: x.transpose(0, 2, 1)),
    case("transpose", complexes(2, 3), conjugate=True, expect=lambda x: x.conj().T),
    case("transpose", floats(), expect=lambda x: x),
    case("broadcast_to", floats(3), shape=(2, 3), expect=lambda x: np.stack([x, x])),
    case("broadcast_to", floats(2, 1, 3), shape=(2, 2, 3),
         expect=lambda x: np.repeat(x, 2, 1)),
    case("broadcast_to", floats(2, 1), shape=(4, 2, 3),
         expect=lambda x: np.broadcast_to(x, (4, 2, 3))),
    case("broadcast_to", floats(), shape=(2, 2), expect=lambda x: np.full((2, 2), x)),
    case("broadcast_to", floats(1), shape=(0,), expect=lambda x: x[:0]),
    case("sum_to_shape", floats(4, 2, 3), shape=(2, 1),
         expect=lambda x: x.sum((0, 2))[:, None]),
    case("sum_to_shape", floats(2, 3), shape=(3,), expect=lambda x: x.sum(0)),
    case("sum_to_shape", floats(2, 3), shape=(), expect=np.sum),
    case("sum_to_shape", floats(2, 3), shape=(1, 3), expect=lambda x: x.sum(0, keepdims=True)),
    case("sum_to_shape", floats(2, 1, 3), shape=(1, 3), expect=lambda x: x.sum(0)),
    case("sum_to_shape", complexes(2, 3), shape=(3,), expect=lambda x: x.sum(0)),
    case("sum_to_shape", floats(0, 3), shape=(3,), expect=lambda x: np.zeros(3)),
    case("embed_diagonal", floats(2, 3), axis=-1, expect=lambda x: embedded(x, -1)),
    case("embed_diagonal", floats(2, 3), axis=-2, expect=lambda x: embedded(x, -2)),
    case("take_diagonal", floats(3, 2, 3), axis=-1, expect=lambda x: diagonal_of(x, -1)),
    case("take_diagonal", floats(2, 2, 3), axis=-2, expect=lambda x: diagonal_of(x, -2)),
    case("transpose", integers(2, 3), expect=np.transpose, label="integers"),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


X = tw.constant(np.zeros((2, 3), np.float32))
MISFITS = [
    (lambda: tw.reshape(X, (4, 2)), "does not hold 6 entries"),
    (lambda: tw.reshape(X, (-1, -1)), "does not hold 6 entries"),
    (lambda: tw.squeeze(X, 0), "must have size 1"),
    (lambda: tw.transpose(X, (0, 0)), "name each axis once"),
    (lambda: tw.broadcast_to(X, (4, 4)), "does not broadcast"),
    (lambda: tw.ensure_shape(X, (None, 2)), "must be"),
]


@pytest.mark.parametrize("call, message", MISFITS)
def test_a_shape_that_does_not_fit_is_explained(call, message):
    with pytest.raises(ShapeError, match=message):
        call()


def answer(op, axis, x, **attributes):
    op = getattr(ops, op, None) or getattr(ops, f"_{op}")
    return op.primitive.diagonal_rule((axis,), tw.constant(x), **attributes)


def test_a_reshape_keeps_a_diagonal_whose_surroundings_stay_grouped():
    x = np.zeros((2, 3, 4), np.float32)
    assert answer("reshape", -2, x, shape=(2, 3, 2, 2)) == -3
    assert answer("reshape", -1, x, shape=(6, 4)) == -1
    assert answer("reshape", -2, x, shape=(-1, 4)) is None


def test_a_transpose_takes_a_diagonal_along():
    x = np.zeros((2, 3, 4), np.float32)
    assert answer("transpose", -3, x, perm=(1, 2, 0), conjugate=False) == -1


def test_a_sum_over_the_diagonal_axis_ends_it():
    x = np.zeros((2, 3), np.float32)
    assert answer("sum_to_shape", -1, x, shape=(3,)) == -1
    assert answer("sum_to_shape", -2, x, shape=(3,)) is None
