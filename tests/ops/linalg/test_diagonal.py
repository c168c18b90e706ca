"""Diagonals and bands: the op table, TensorFlow's alignments, what does not fit."""

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

ShapeError = tw.errors.ShapeError


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


def written(diagonals, rows, cols):
    """A matrix with the diagonals of a dict, by their numbers."""
    full = np.zeros((rows, cols))
    for k, values in diagonals.items():
        for i, value in enumerate(values):
            full[i - min(k, 0), i + max(k, 0)] = value
    return full


def outside(x, k):
    rows, cols = np.indices(x.shape[-2:])
    return np.where((cols - rows >= k[0]) & (cols - rows <= k[1]), 0, x)


CASES = [
    case("diag", floats(2, 3), k=0, rows=3, cols=3,
         expect=lambda d: np.stack([np.diag(d[0]), np.diag(d[1])])),
    case("diag", floats(2), k=-1, rows=3, cols=2, expect=lambda d: written({-1: d}, 3, 2)),
    case("diag", floats(3, 3), k=(-1, 1), rows=3, cols=3, expect=lambda d: written(
        {1: d[0, 1:], 0: d[1], -1: d[2, :2]}, 3, 3)),
    case("diag", floats(2, 2), k=(1, 2), rows=2, cols=3, align="LEFT_RIGHT",
         expect=lambda d: written({2: d[0, :1], 1: d[1]}, 2, 3)),
    case("diag", floats(0), k=0, rows=0, cols=0, expect=lambda d: np.zeros((0, 0))),
    case("diag", complexes(2), k=0, rows=2, cols=2, expect=np.diag),
    case("diag_part", floats(2, 3, 4), k=1,
         expect=lambda x: np.diagonal(x, 1, axis1=1, axis2=2)),
    case("diag_part", floats(3, 4), k=(-1, 1), expect=lambda x: np.stack(
        [np.diag(x, 1), np.diag(x), [*np.diag(x, -1), 0]])),
    case("diag_part", floats(3, 3), k=(-1, 1), align="LEFT_RIGHT", expect=lambda x: np.stack(
        [[*np.diag(x, 1), 0], np.diag(x), [0, *np.diag(x, -1)]])),
    case("diag_part", complexes(2, 2), k=0, expect=np.diag),
    case("set_diag", floats(2, 3), floats(2), k=1,
         expect=lambda x, d: outside(x, (1, 1)) + written({1: d}, 2, 3)),
    case("set_diag", floats(3, 3), floats(2, 3), k=(-1, 0),
         expect=lambda x, d: outside(x, (-1, 0)) + written({0: d[0], -1: d[1, :2]}, 3, 3)),
    case("set_diag", floats(2, 2, 2), floats(2, 2), k=0, expect=lambda x, d: np.stack(
        [outside(x[i], (0, 0)) + np.diag(d[i]) for i in (0, 1)])),
    case("clear_diag", floats(2, 3, 4), k=(-1, 1), expect=lambda x: outside(x, (-1, 1))),
    case("band_part", floats(2, 3, 4), num_lower=1, num_upper=0,
         expect=lambda x: np.tril(np.triu(x, -1))),
    case("band_part", floats(3, 3), num_lower=-1, num_upper=1, expect=lambda x: np.tril(x, 1)),
    case("band_part", floats(3, 2), num_lower=0, num_upper=-1, expect=np.triu),
    case("band_part", floats(2, 2), num_lower=-1, num_upper=-1, expect=lambda x: x),
    case("band_part", integers(3, 3), num_lower=0, num_upper=0,
         expect=lambda x: np.diag(np.diag(x)), label="integers"),
    case("embed_diagonal", floats(2, 3), axis=-1, expect=lambda x: embedded(x, -1)),
    case("embed_diagonal", floats(2, 3), axis=-2, expect=lambda x: embedded(x, -2)),
    case("take_diagonal", floats(3, 2, 3), axis=-1, expect=lambda x: diagonal_of(x, -1)),
    case("take_diagonal", floats(2, 2, 3), axis=-2, expect=lambda x: diagonal_of(x, -2)),
    # composed of these
    case(tw.linalg.diag, floats(2), k=1, expect=lambda d: np.diag(d, 1)),
    case(tw.linalg.diag, floats(2), num_rows=2, num_cols=4, padding_value=7.0,
         expect=lambda d: np.where(np.eye(2, 4), written({0: d}, 2, 4), 7.0)),
    case(tw.linalg.diag_part, floats(2, 3), k=(0, 2), padding_value=7.0,
         expect=lambda x: np.stack([[7.0, x[0, 2]], np.diag(x, 1), np.diag(x)])),
    case(tw.linalg.set_diag, floats(2, 3), floats(1), k=-1,
         expect=lambda x, d: outside(x, (-1, -1)) + written({-1: d}, 2, 3)),
    case(tw.linalg.tensor_diag, floats(2, 2),
         expect=lambda d: np.diag(d.ravel()).reshape(2, 2, 2, 2)),
    case(tw.linalg.tensor_diag_part, floats(2, 3, 2, 3),
         expect=lambda x: np.einsum("ijij->ij", x)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


BANDS = {  # the diagonals from -1 to 2 of 1 to 12 in three rows, from TensorFlow
    "RIGHT_LEFT": [[0, 3, 8], [2, 7, 12], [1, 6, 11], [5, 10, 0]],
    "LEFT_RIGHT": [[3, 8, 0], [2, 7, 12], [1, 6, 11], [0, 5, 10]],
    "LEFT_LEFT": [[3, 8, 0], [2, 7, 12], [1, 6, 11], [5, 10, 0]],
    "RIGHT_RIGHT": [[0, 3, 8], [2, 7, 12], [1, 6, 11], [0, 5, 10]],
}


@pytest.mark.parametrize("align", BANDS)
def test_a_band_is_aligned_as_in_tensorflow(align):
    x = np.arange(1, 13).reshape(3, 4)
    band = tw.linalg.diag_part(x, k=(-1, 2), align=align)
    assert band.numpy().tolist() == BANDS[align]
    back = tw.linalg.diag(band, k=(-1, 2), num_rows=3, num_cols=4, align=align)
    assert back.numpy().tolist() == [[1, 2, 3, 0], [5, 6, 7, 8], [0, 10, 11, 12]]


def test_what_lies_outside_of_a_band_may_be_infinite():
    x = tw.constant([[1.0, np.inf], [np.nan, 2.0]])
    assert tw.linalg.band_part(x, 0, 0).numpy().tolist() == [[1, 0], [0, 2]]
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.linalg.set_diag(tw.linalg.band_part(x, 0, 0), [3.0, 4.0])
    assert tape.gradient(y, x).numpy().tolist() == [[0, 0], [0, 0]]


X = tw.constant(np.zeros((2, 3), np.float32))
MISFITS = [
    (lambda: tw.linalg.diag(1.0), ShapeError, "diagonal .*entries"),
    (lambda: tw.linalg.diag([[1.0]], k=(0, 1)), ShapeError, "2 rows"),
    (lambda: tw.linalg.diag([1.0, 2.0], num_rows=1), ShapeError, "num_rows .*2.*got 1"),
    (lambda: tw.linalg.diag([1.0], num_rows=2, num_cols=2), ShapeError, "one of them"),
    (lambda: tw.linalg.diag([1.0], k=(1, 0)), ValueError, "pair"),
    (lambda: tw.linalg.diag_part(X, k=3), ShapeError, "k=3.*-2.*3"),
    (lambda: tw.linalg.diag_part(X, align="LEFT"), ValueError, "align .*got 'LEFT'"),
    (lambda: tw.linalg.diag_part([1.0]), ShapeError, "two axes"),
    (lambda: tw.linalg.set_diag(X, [1.0]), ShapeError, r"shape \(2,\)"),
    (lambda: tw.linalg.set_diag(X, tw.constant([1, 2])), TypeError, "dtypes"),
    (lambda: tw.linalg.band_part([1.0], 0, 0), ShapeError, "two axes"),
    (lambda: tw.linalg.tensor_diag_part(X), ShapeError, r"shape .*d0, \.\.\., dk, d0"),
]  # fmt: skip


@pytest.mark.parametrize("call, error, message", MISFITS)
def test_what_does_not_fit_is_explained(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function], ids=["eager", "traced"])
@pytest.mark.parametrize("k", [-2, 0, 1])
def test_a_diagonal_of_no_entries_makes_zeros(wrap, k):
    found = wrap(lambda x: tw.linalg.diag(x, k=k))(tw.zeros([0]))
    np.testing.assert_array_equal(found.numpy(), np.zeros((abs(k), abs(k))))
