"""Another shape: the op table, and the shapes that do not fit."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.ops.array import shape as ops
from tapewright.test import (
    case,
    check_op,
    complexes,
    floats,
    integers,
)


def mosaic(x):
    """[row in block, column in block, channel, height, width] as [1, c, h * 2, w * 2]."""
    full = np.zeros((1, x.shape[2], x.shape[3] * 2, x.shape[4] * 2))
    for i, j in np.ndindex(2, 2):
        full[0, :, i::2, j::2] = x[i, j]
    return full


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
    case("squeeze", floats(1, 2, 1), axis=(), expect=np.squeeze, label="empty list"),
    case("unravel_index", np.array([4, 2, 0]), dims=(2, 3),
         expect=lambda i: np.array([[1, 0, 0], [1, 2, 0]])),
    case("unravel_index", np.array(4, np.int32), dims=(2, 3),
         expect=lambda i: np.array([1, 1], np.int32)),
    case("transpose", integers(2, 3), expect=np.transpose, label="integers"),
    # composed of these
    case(tw.nn.space_to_depth, floats(1, 4, 2, 2), block_size=2,
         expect=lambda x: np.stack([x[:, :2].reshape(1, 1, 8), x[:, 2:].reshape(1, 1, 8)], 1)),
    case(tw.nn.depth_to_space, floats(1, 1, 2, 4), block_size=2, expect=lambda x: np.stack(
        [x[0, 0, :, :2].ravel(), x[0, 0, :, 2:].ravel()])[None, ..., None]),
    case(tw.nn.space_to_depth, floats(1, 2, 4, 6), block_size=2, data_format="NCHW",
         expect=lambda x: np.concatenate(
             [x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)], 1)),
    case(tw.nn.depth_to_space, floats(1, 8, 1, 2), block_size=2, data_format="NCHW",
         expect=lambda x: mosaic(x.reshape(2, 2, 2, 1, 2))),
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
    (lambda: tw.broadcast_static_shape([2], [3]), "do not broadcast"),
    (lambda: tw.broadcast_dynamic_shape([2], [3]), "do not broadcast"),
    (lambda: tw.nn.space_to_depth(X, 2), "four axes"),
    (
        lambda: tw.nn.space_to_depth(tw.zeros((1, 3, 2, 1)), 2),
        "height and width .*multiples of 2",
    ),
    (
        lambda: tw.nn.depth_to_space(tw.zeros((1, 3, 2, 1)), 2),
        "channels .*multiple of 4",
    ),
]


@pytest.mark.parametrize("call, message", MISFITS)
def test_a_shape_that_does_not_fit_is_explained(call, message):
    with pytest.raises(tw.errors.ShapeError, match=message):
        call()


def answer(op, axis, x, **attributes):
    op = getattr(ops, op, None) or getattr(ops, f"_{op}")
    return op.primitive.diagonal_rule((axis,), tw.constant(x), **attributes)


def test_nothing_broadcasts_to_an_unknown_size():
    for shape in ([-1], [-1, 1], [2, -1]):
        with pytest.raises(tw.errors.InvalidArgumentError):
            tw.broadcast_to([1], shape)


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


def test_blocks_and_channels_are_inverses():
    x = tw.constant(np.arange(48.0).reshape(1, 4, 4, 3))
    for layout in ("NHWC", "NCHW"):
        packed = tw.nn.space_to_depth(tw.reshape(x, (1, 3, 4, 4)), 2, "NCHW")
        if layout == "NHWC":
            packed = tw.nn.space_to_depth(x, 2)
        back = tw.nn.depth_to_space(packed, 2, layout)
        assert back.numpy().ravel().tolist() == list(range(48))


def test_what_space_to_depth_does_not_know_is_refused():
    with pytest.raises(
        ValueError, match="data_format .*'NHWC'.*'NCHW'.*got 'NCHW_VECT_C'"
    ):
        tw.nn.space_to_depth(tw.zeros((1, 2, 2, 1)), 2, "NCHW_VECT_C")
    with pytest.raises(ValueError, match="block_size .*2.*got 1"):
        tw.nn.depth_to_space(tw.zeros((1, 2, 2, 1)), 1)


def test_shapes_broadcast_as_values():
    assert tw.broadcast_static_shape([None, 1], [5]).as_list() == [None, 5]
    shape = tw.broadcast_dynamic_shape(tw.shape(X), tw.constant([4, 1, 1]))
    assert shape.numpy().tolist() == [4, 2, 3] and shape.dtype == tw.int32


def test_an_index_too_large_to_unravel_is_an_error_on_the_cpu():
    with (
        devices.device("CPU"),
        pytest.raises(ValueError, match=r"indices .*0.*5.*got \[6\]"),
    ):
        tw.unravel_index([6], [2, 3])
    with pytest.raises(TypeError, match="indices .*integer"):
        tw.unravel_index([0.5], [2, 3])


@pytest.mark.parametrize(
    ("dims", "shape", "wanted"),  # as TensorFlow has them
    [
        ((0, 6), (0, -1, 3), (0, 2, 3)),
        ((0, 6), (-1, 0), (6, 0)),
        ((0, 0), (-1, 0, 0), (1, 0, 0)),
        ((0,), (0, -1), (0, 1)),
        ((0, 6), (-1, 3), (0, 3)),
        ((0, 3, 4), (0, -1, 4, 2), (0, 1, 4, 2)),
    ],
)
def test_what_is_left_of_nothing(dims, shape, wanted):
    x = tw.zeros(dims)
    for reshape in (tw.reshape, tw.function(lambda x, shape: tw.reshape(x, shape))):
        assert reshape(x, shape).shape == wanted
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.reshape(x, shape)
    assert tape.gradient(y, x).shape == dims
    rows = tw.vectorized_map(lambda x: tw.reshape(x, shape), tw.zeros((2, *dims)))
    assert rows.shape == (2, *wanted)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_a_matrix_are_the_same_bits_eager_and_traced_however_it_lies(
    axis, dtype, numpy_target
):
    x = tw.constant(np.random.default_rng(0).normal(size=(64, 257)).astype(dtype))
    views = [tw.transpose, lambda x: x[::-1], lambda x: tw.transpose(x)[:-1, ::2]]
    for view in views:

        def total(x, view=view):
            return tw.reduce_sum(view(x), axis)

        np.testing.assert_array_equal(tw.function(total)(x), total(x))


@pytest.mark.parametrize("axis", [None, (0, 1), 0])
def test_sums_of_everything_are_the_same_bits_eager_and_traced_however_it_lies(
    axis, numpy_target
):
    x = tw.constant(np.random.default_rng(0).normal(size=(600, 257)).astype("f4"))
    for view in [tw.identity, tw.transpose, lambda x: x[::-1, ::2]]:

        def total(x, view=view):
            return tw.reduce_sum(view(x), axis), tw.reduce_mean(view(x), axis)

        for a, b in zip(tw.function(total)(x), total(x)):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("shape", [(1 << 22, 1), (1 << 21, 2), (3, 1_500_001)])
def test_a_sum_keeps_its_digits_over_many_entries(shape, axis):
    x = np.full(shape, 0.1, np.float32)
    x[7 % shape[0], 1_000_000 % shape[1]] = 3.0
    wanted = x.sum(axis, dtype=np.float64)
    found = tw.reduce_sum(x, axis)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-5)
    np.testing.assert_allclose(tw.reduce_mean(x, axis), x.mean(axis, "f8"), rtol=2e-5)


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2), (0,), (1, 2)])
@pytest.mark.parametrize("lies", ["transposed", "in steps"])
def test_a_sum_keeps_its_digits_however_its_array_lies(lies, axes):
    if lies == "transposed":
        x = np.full((1 << 20, 2, 3), 0.1, np.float32).transpose(0, 2, 1)
    else:
        x = np.full((1 << 20, 3, 4), 0.1, np.float32)[:, :, ::2]
    x[7, 1, 1] = 3.0
    wanted = x.sum(axes, dtype=np.float64)
    found = tw.reduce_sum(x, axes)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-5)
    mean, variance = tw.nn.moments(x, axes)
    np.testing.assert_allclose(mean, x.mean(axes, "f8"), rtol=2e-5)
    np.testing.assert_allclose(variance, x.var(axes, "f8"), rtol=2e-3, atol=1e-10)


@pytest.mark.parametrize("special", [[np.nan], [np.inf], [np.inf, -np.inf]])
def test_a_sum_of_many_entries_has_their_infinities(special):
    x = np.ones((9, 5000), np.float32)
    x[3, : len(special)] = special
    for axis in (None, 0, 1):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(tw.reduce_sum(x, axis), x.sum(axis))


def test_sizes_in_a_list_may_be_whole_floats_of_rank_0():
    x = tw.constant([[1.0, 2.0]])

    def sizes(half):
        return tw.tile(x, [half, 1]), tw.reshape(x, [half * 2.0, 1]), tw.zeros([half])

    def halved(y):
        return sizes(tw.math.ceil(tw.shape(y)[0] / 2))

    for call in halved, tw.function(halved):
        assert [tuple(y.shape) for y in call(tw.ones([1]))] == [(1, 2), (2, 1), (1,)]
    for refused in 2.7, np.nan, np.inf:
        with pytest.raises(TypeError, match="integers"):
            tw.tile(x, [tw.constant(refused), 1])
    with pytest.raises(TypeError, match="integers"):
        tw.tile(x, [2.0, 1])  # a Python float is a mistake, as in TensorFlow
