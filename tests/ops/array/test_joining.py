"""Joining, splitting, padding, repeating: the op table, and what does not fit together."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import (
    booleans,
    case,
    check_op,
    complexes,
    floats,
)

CASES = [
    case("concat", floats(2, 3), floats(1, 3), axis=0, expect=lambda *v: np.concatenate(v)),
    case("concat", floats(2, 1), floats(2, 3), floats(2, 2), axis=-1,
         expect=lambda *v: np.concatenate(v, -1)),
    case("concat", floats(2), floats(0), axis=0, expect=lambda a, b: a),
    case("concat", floats(3), axis=0, expect=lambda a: a),
    case("stack", floats(2, 3), floats(2, 3), axis=1, expect=lambda *v: np.stack(v, 1)),
    case("stack", floats(2), floats(2), floats(2), axis=-1, expect=lambda *v: np.stack(v, -1)),
    case("stack", floats(), floats(), expect=lambda *v: np.stack(v)),
    case("split", floats(2, 5), sizes=(2, 0, 3), axis=1,
         expect=lambda x: (x[:, :2], x[:, :0], x[:, 2:])),
    case("split", floats(3, 2), sizes=(1, 2), axis=-2, expect=lambda x: (x[:1], x[1:])),
    case("unstack", floats(2, 3), expect=lambda x: (x[0], x[1])),
    case("unstack", floats(2, 3), axis=-1, expect=lambda x: tuple(x.T)),
    case("pad", floats(2, 3), np.array(0.7), paddings=((1, 0), (2, 1)),
         expect=lambda x, v: np.pad(x, ((1, 0), (2, 1)), constant_values=v)),
    case("pad", floats(3), np.array(0.0), paddings=((0, 0),), expect=lambda x, v: x),
    case("pad", floats(2, 2), np.array(0.0), paddings=((0, 0), (0, 1)),
         expect=lambda x, v: np.pad(x, ((0, 0), (0, 1)))),
    case("crop", floats(3, 4), paddings=((1, 0), (2, 1)), expect=lambda x: x[1:, 2:3]),
    case("reverse", floats(2, 3), axis=1, expect=lambda x: x[:, ::-1]),
    case("reverse", floats(2, 3), axis=(0, -1), expect=lambda x: x[::-1, ::-1]),
    case("roll", floats(5), shift=2, axis=0, expect=lambda x: np.roll(x, 2)),
    case("roll", floats(2, 3, 2), shift=(1, -2), axis=(0, -2),
         expect=lambda x: np.roll(x, (1, -2), (0, 1))),
    case("roll", floats(4, 2), shift=(1, 2), axis=(0, -2), expect=lambda x: np.roll(x, 3, 0)),
    case("roll", floats(0, 2), shift=1, axis=0, expect=lambda x: x),
    case("roll", complexes(3), shift=-1, axis=-1, expect=lambda x: np.roll(x, -1)),
    case("pad", booleans(2), np.array(False), paddings=((1, 1),),
         expect=lambda x, v: np.pad(x, 1), label="booleans"),
    case("concat", booleans(2), booleans(3), axis=0, expect=lambda *v: np.concatenate(v),
         label="booleans"),
    # composed of these
    case(tw.pad, floats(4), paddings=[[1, 2]], mode="REFLECT",
         expect=lambda x: np.pad(x, (1, 2), mode="reflect")),
    case(tw.pad, floats(2, 3), paddings=[[1, 0], [2, 3]], mode="SYMMETRIC",
         expect=lambda x: np.pad(x, ((1, 0), (2, 3)), mode="symmetric")),
    case(tw.tile, floats(2, 3), multiples=(2, 2), expect=lambda x: np.tile(x, (2, 2))),
    case(tw.tile, floats(2), multiples=(0,), expect=lambda x: x[:0]),
    case(tw.split, floats(4, 2), num_or_size_splits=2, expect=lambda x: (x[:2], x[2:])),
    case(tw.split, floats(5), num_or_size_splits=[2, -1], expect=lambda x: (x[:2], x[2:])),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


X = tw.constant(np.zeros((2, 3), np.float32))
MISFITS = [
    (lambda: tw.concat([X, tw.zeros((2, 2))], 0), "axes but 0 "),
    (lambda: tw.stack([X, tw.zeros((2, 2))]), "the same"),
    (lambda: tw.split(X, 2, axis=1), "multiple of 2"),
    (lambda: tw.split(X, [1, 1], axis=1), "do not add up to 3"),
    (lambda: tw.pad(X, [[1, 1]]), "one pair"),
    (lambda: tw.pad(X, [[2, 0], [0, 0]], "REFLECT"), "at most 1"),
    (lambda: tw.pad(X, [[1, 0]], "SYMMETRIC"), "one pair"),
    (lambda: tw.tile(X, [2]), "one entry for each axis"),
    (lambda: tw.split(X, [-1, 4], axis=1), "do not add up to 3"),
    (lambda: tw.split(X, [-1, -1, 3], axis=1), "do not add up to 3"),
]


@pytest.mark.parametrize("call, message", MISFITS)
def test_what_does_not_fit_is_explained(call, message):
    with pytest.raises(tw.errors.ShapeError, match=message):
        call()


def test_an_axis_out_of_range_is_explained():
    with pytest.raises(ValueError, match="axis .*-2.*1.*got 2"):
        tw.reverse(X, 2)


def test_a_gradient_of_zero_pieces_is_filled_in():
    x = tw.constant([1.0, 2.0, 3.0])
    with tw.GradientTape() as tape:
        tape.watch(x)
        first, _, last = tw.split(x, 3)
        y = first * last
    assert tape.gradient(y, x).numpy().tolist() == [3.0, 0.0, 1.0]


@pytest.mark.parametrize("call, message", [
    (lambda: tw.split(X, 2, axis=2), "split: axis .*-2.*1.*got 2"),
    (lambda: tw.split(X, [1, 2], axis=1, num=3), "number of sizes, 2, got 3"),
    (lambda: tw.unstack(X, num=3), "axis 0, 2, got 3"),
    (lambda: tw.function(lambda s: tw.roll(X, s, 0))(tw.constant([1, 2])), "shift and axis"),
    (lambda: tw.roll(X, 1, 2), "axis .*-2.*1.*got 2"),
    (lambda: tw.roll(X, [1, 2], 0), r"shift and axis.*got \(1, 2\) and 0"),
    (lambda: tw.pad(X, [[1, 1]], "EDGE"), "mode .*'CONSTANT'.*got 'EDGE'"),
])  # fmt: skip
def test_what_is_out_of_range_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_numbers_may_be_tensors():
    x, two = tw.constant([1.0, 2.0, 3.0, 4.0]), tw.constant(2)
    assert [len(part) for part in tw.split(x, two)] == [2, 2]
    assert [len(part) for part in tw.split(x, tw.constant([1, 3]))] == [1, 3]
    assert tw.pad(x, tw.constant([[1, 0]])).numpy().tolist() == [0, 1, 2, 3, 4]
    assert tw.tile(x[:1], tw.constant([2])).numpy().tolist() == [1, 1]
    assert tw.roll(x, two, tw.constant(0)).numpy().tolist() == [3, 4, 1, 2]
    assert tw.reshape(x, [two, -1]).shape == (2, 2)


def test_a_shift_that_a_trace_does_not_know_rolls_as_a_number_does():
    x = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")

    @tw.function
    def rolled(x, shift, axis):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.roll(x, shift, axis)
            loss = tw.reduce_sum(y * y[0, 0])
        return y, tape.gradient(loss, x)

    for shift, axis in [([1, -2], (0, 1)), ([-5, 9], (0, 0)), (3, -1)]:
        y, g = rolled(tw.constant(x), tw.constant(shift), axis)
        assert np.array_equal(y, np.roll(x, shift, axis))
        wanted = np.full(x.shape, y[0, 0])
        wanted[np.where(x == y[0, 0])] += x.sum()
        np.testing.assert_allclose(g, wanted, rtol=1e-5)


def test_booleans_are_padded_with_false():
    assert tw.pad([True], [[1, 1]]).numpy().tolist() == [False, True, False]


def test_a_list_passes_on_as_it_is():
    x = tw.constant(2.0)
    with tw.GradientTape() as tape:
        tape.watch(x)
        a, b = tw.identity_n([x, x * x])
        y = a * b
    assert tape.gradient(y, x).numpy() == 12.0


def test_concat_of_a_single_tensor_is_that_tensor():
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(tw.concat(tw.constant(x), axis=0), x)
    np.testing.assert_array_equal(tw.concat(tw.constant(x), 1), x)


def test_whole_numbers_beside_floats_are_floats():
    assert tw.stack([1, 2.5]).numpy().tolist() == [1.0, 2.5]


def test_the_rows_of_an_array_are_stacked():
    rows = np.arange(6.0).reshape(2, 3)
    assert tw.stack(rows).numpy().tolist() == rows.tolist()
    assert tw.stack(rows, axis=1).numpy().tolist() == rows.T.tolist()


def test_concat_of_tensors_of_different_ranks_speaks_of_the_ranks():
    with pytest.raises(
        tw.errors.ShapeError, match="must have the same rank; expand_dims"
    ):
        tw.concat([tw.ones([2]), tw.ones([2, 2])], 0)
