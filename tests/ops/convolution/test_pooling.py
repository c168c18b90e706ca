"""Pooling: the op table, ties, margins, formats, and errors."""

import itertools

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.convolution import pooling
from tapewright.ops.convolution.windows import window_positions
from tapewright.test import case, check_op, floats


def margin(size, window, stride, dilation):
    """What "SAME" puts before and behind an axis, as TensorFlow's guide defines it."""
    total = max(
        (-(-size // stride) - 1) * stride + (window - 1) * dilation + 1 - size, 0
    )
    return total // 2, total - total // 2


def windows(x, axis, size, stride, padding, dilation=1):
    """The windows along an axis: NaN in the margins, the entries on a new last axis."""
    if padding == "SAME":
        padding = margin(x.shape[axis], size, stride, dilation)
    if padding != "VALID":
        pads = [(0, 0)] * x.ndim
        pads[axis] = padding
        x = np.pad(x, pads, constant_values=np.nan)
    count = (x.shape[axis] - (size - 1) * dilation - 1) // stride + 1
    starts = np.arange(count) * stride
    return np.stack(
        [np.take(x, starts + i * dilation, axis) for i in range(size)], axis=-1
    )


def pooled(kind, x, **attributes):
    """``np.nanmax`` or ``np.nanmean`` of the windows."""
    return kind(windows(x, **attributes), axis=-1)


def first_maxima(x, **attributes):
    """For each window one over a grid of x's entries: where its first maximum is."""
    ids = np.arange(x.size, dtype=float).reshape(x.shape)
    seen, places = windows(x, **attributes), windows(ids, **attributes)
    picks = np.nanargmax(seen, axis=-1)[..., None]
    return np.take_along_axis(places, picks, -1)[..., 0].astype(int)


def spread(g, x, **attributes):
    out = np.zeros(x.size)
    np.add.at(out, first_maxima(x, **attributes).ravel(), g.ravel())
    return out.reshape(x.shape)


def spread_means(g, x, **attributes):
    """The transpose of the mean, from its matrix."""
    units = np.eye(x.size).reshape(-1, *x.shape)
    return np.array(
        [np.vdot(pooled(np.nanmean, u, **attributes), g) for u in units]
    ).reshape(x.shape)


def line(shape, axis, size, stride=1, padding="VALID", dilation=1):
    """Lines for maxima, means and their adjoints."""
    a = dict(axis=axis, size=size, stride=stride, padding=padding, dilation=dilation)
    x = np.random.default_rng(sum(shape)).permutation(int(np.prod(shape))) / 7 - 1
    x = x.reshape(shape)
    top = pooled(np.nanmax, x, **a)
    *margins, _ = window_positions(shape[axis], size, stride, padding, dilation)
    g = floats(*top.shape)
    return [
        case("window_max", x, expect=lambda x: pooled(np.nanmax, x, **a), **a),
        case("add_to_maxima", top, floats(1), x,
             windows=[(axis, size, stride, tuple(margins), dilation)],
             expect=lambda top, bias, x: top + bias),
        case("spread_to_maxima", g, x, top, single=False,
             expect=lambda g, x, _: spread(g, x, **a), **a),
        case("pick_at_maxima", floats(*shape), x, top, single=False,
             expect=lambda c, x, _: c.ravel()[first_maxima(x, **a)], **a),
        case("window_mean", floats(*shape),
             expect=lambda x: pooled(np.nanmean, x, **a), **a),
        case("spread_means", g, extent=shape[axis],
             expect=lambda g: spread_means(g, x, **a), **a),
    ]  # fmt: skip


CASES = [
    *line((2, 4, 3), -2, 2, 2),  # halves
    *line((5, 2), -2, 2, 2),  # and one left over
    *line((2, 5, 2), -2, 3, 1),  # windows overlap
    *line((5, 2), -2, 3, 2, "SAME"),
    *line((2, 4), -1, 2, 3, (1, 1)),
    *line((6, 1), -2, 2, 1, "SAME", 2),
    *line((3, 2), -2, 1, 2),
    *line((4, 2), -1, 2, 1),
    case("window_max", floats(0, 4, 2), axis=-2, size=2, stride=2, padding="VALID"),
    case("window_mean", floats(0, 4, 2), axis=-2, size=2, stride=2, padding="VALID"),
    case("add_to_maxima", np.array([1.0, 2.0]), np.array([np.inf]),
         np.array([1.0, -np.inf, 0.0, 2.0]), windows=[(-1, 2, 2, (0, 0), 1)], order=0,
         expect=lambda top, bias, x: np.array([np.nan, np.inf])),
    # composed of these
    case(lambda x: tw.nn.max_pool_with_argmax(x, 2, 1, "SAME"), floats(1, 3, 2, 2),
         label="max_pool_with_argmax", order=2),
    case(tw.nn.avg_pool2d, floats(1, 3, 3, 1), ksize=2, strides=1, padding="SAME",
         expect=lambda x: pooled(np.nanmean, pooled(
             np.nanmean, x, axis=2, size=2, stride=1, padding="SAME"),
             axis=1, size=2, stride=1, padding="SAME")),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


@pytest.mark.parametrize(("part", "large"), [(1, 0), (50, 0), (50, 1 << 20)])
@pytest.mark.parametrize("axis", [-3, -2, -1])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_parts_of_any_memory_order_agree_with_the_definition(
    order, axis, part, large, threads, monkeypatch
):
    monkeypatch.setattr(pooling, "PART", part)
    monkeypatch.setattr(pooling, "LARGE", large)
    rng = np.random.default_rng(5)
    for size, stride, padding, dilation in [
        (2, 2, "VALID", 1),
        (3, 2, "SAME", 1),
        (3, 1, (1, 2), 1),
        (2, 3, "SAME", 1),
        (3, 2, "SAME", 2),
        (2, 2, "VALID", 2),
        (1, 2, "VALID", 1),
    ]:
        a = dict(
            axis=axis, size=size, stride=stride, padding=padding, dilation=dilation
        )
        x = np.round(rng.normal(size=(6, 8, 7)) * 2)  # many ties
        x = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
        top = pooled(np.nanmax, x, **a)
        found = pooling.window_max_p(x, **a).numpy()
        np.testing.assert_array_equal(found, top)
        g, c = rng.normal(size=top.shape), rng.normal(size=x.shape)
        back = pooling.spread_to_maxima_p(g, x, found, **a).numpy()
        np.testing.assert_allclose(back, spread(g, x, **a), atol=1e-14)
        picked = pooling.pick_at_maxima_p(c, x, found, **a).numpy()
        np.testing.assert_array_equal(picked, c.ravel()[first_maxima(x, **a)])
        mean = pooling.window_mean_p(c, **a).numpy()
        np.testing.assert_allclose(mean, pooled(np.nanmean, c, **a), atol=1e-14)
        back = pooling.spread_means_p(g, x.shape[axis], **a).numpy()
        ids = windows(np.arange(x.size, dtype=float).reshape(x.shape), **a)
        share = g / np.isfinite(ids).sum(-1)
        wanted = np.zeros(x.size)
        for tap in np.moveaxis(ids, -1, 0):
            met = np.isfinite(tap)
            np.add.at(wanted, tap[met].astype(int), share[met])
        np.testing.assert_allclose(back, wanted.reshape(x.shape), atol=1e-14)


def test_mapped_cotangents_are_spread_in_one_part(monkeypatch):
    monkeypatch.setattr(pooling, "PART", 4)
    rng = np.random.default_rng(4)
    for size in (2, 3):
        a = dict(axis=-1, size=size, stride=2, padding="SAME", dilation=1)
        x, g = rng.normal(size=(5, 6)), rng.normal(size=(4, 5, 3))
        top = pooled(np.nanmax, x, **a)
        back = pooling.spread_to_maxima_p(g, x, top, **a).numpy()
        wanted = [spread(each, x, **a) for each in g]
        np.testing.assert_allclose(back, wanted, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize("size", [2, 3])
def test_cotangents_are_kept_by_their_bits(size, dtype, monkeypatch):
    monkeypatch.setattr(pooling, "PART", 4)
    a = dict(axis=-1, size=size, stride=size, padding="VALID", dilation=1)
    x = np.random.default_rng(3).permutation(24).reshape(4, 6).astype(dtype)
    g = np.array([[np.inf, -np.inf, np.nan, -2.0, 3.0, 7.0]] * 4)[:, : 6 // size]
    if dtype == "int32":
        g = np.arange(4 * (6 // size)).reshape(4, -1) - 5
    g, top = g.astype(dtype), pooled(np.nanmax, x.astype(float), **a).astype(dtype)
    back = pooling.spread_to_maxima_p(g, x, top, **a).numpy()
    wanted = np.zeros(24, dtype)
    wanted[first_maxima(x.astype(float), **a)] = g
    np.testing.assert_array_equal(back, wanted.reshape(4, 6))


def windows_of(x, size, stride, padding):
    """All windows ``[*places, entries]`` over the middle axes, row by row."""
    rank = x.ndim - 2
    for i in range(rank):  # an axis of entries after another, the first the slowest
        x = windows(x, i + 1, size, stride, padding)
    return x.reshape(*x.shape[: rank + 2], size**rank)


RANDOM = np.random.default_rng(0)
FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_pooling_agrees_with_its_definition_in_every_format(rank, padding):
    x = RANDOM.normal(size=(2, *[6, 5, 4][:rank], 3))
    kinds = [
        (tw.nn.max_pool, np.nanmax, [tw.nn.max_pool1d, tw.nn.max_pool2d, tw.nn.max_pool3d]),
        (tw.nn.avg_pool, np.nanmean, [tw.nn.avg_pool1d, tw.nn.avg_pool2d, tw.nn.avg_pool3d]),
    ]  # fmt: skip
    for (op, kind, named), size, stride in itertools.product(kinds, (2, 3), (1, 2)):
        wanted = kind(windows_of(x, size, stride, padding), axis=-1)
        out = op(x, size, stride, padding).numpy()
        np.testing.assert_allclose(out, wanted, atol=1e-12)
        out = named[rank - 1](x, size, stride, padding, FORMATS[rank][0]).numpy()
        np.testing.assert_allclose(out, wanted, atol=1e-12)
        turned = np.moveaxis(x, -1, 1).copy()
        out = op(turned, size, stride, padding, FORMATS[rank][1]).numpy()
        np.testing.assert_allclose(np.moveaxis(out, 1, -1), wanted, atol=1e-12)


@pytest.mark.parametrize(
    ("size", "stride", "padding"), [(2, 2, "VALID"), (3, 2, "SAME")]
)
def test_of_equal_maxima_the_first_row_by_row_gets_the_gradient(size, stride, padding):
    x = RANDOM.integers(0, 2, size=(3, 6, 6, 2)).astype(float)
    grid = np.arange(x.size, dtype=float).reshape(x.shape)
    seen, places = (windows_of(a, size, stride, padding) for a in (x, grid))
    picks = np.take_along_axis(places, np.nanargmax(seen, -1)[..., None], -1)[..., 0]
    g = RANDOM.normal(size=picks.shape)
    wanted = np.zeros(x.size)
    np.add.at(wanted, picks.astype(int).ravel(), g.ravel())
    for order in [(0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2)]:  # whatever the memory's
        v = tw.constant(x.transpose(order).copy().transpose(np.argsort(order)))
        with tw.GradientTape() as tape:
            tape.watch(v)
            y = tw.nn.max_pool2d(v, size, stride, padding)
        found = tape.gradient(y, v, output_gradients=tw.constant(g)).numpy()
        np.testing.assert_allclose(found, wanted.reshape(x.shape), atol=1e-12)


def test_ties_go_where_tensorflow_sends_them():
    # of tf.nn.max_pool2d(zeros, 3, 2, "SAME"), 2.21: the first entry in no margin
    x = tw.zeros((1, 4, 4, 1))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.nn.max_pool2d(x, 3, 2, "SAME")
    g = tape.gradient(y, x).numpy()[0, ..., 0]
    wanted = [[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(g, wanted)


def test_an_infinite_cotangent_stays_where_its_maximum_is():
    x = tw.constant([[[1.0], [2.0], [4.0], [3.0]]])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.nn.max_pool1d(x, 2, 2, "VALID")
    g = tape.gradient(y, x, output_gradients=tw.constant([[[np.inf], [1.0]]]))
    assert g.numpy().ravel().tolist() == [0.0, np.inf, 1.0, 0.0]


def test_margins_never_win_and_never_count():
    x = tw.constant(-np.ones((1, 3, 3, 1), np.float32))
    assert (tw.nn.max_pool2d(x, 3, 1, "SAME").numpy() == -1).all()
    assert (tw.nn.avg_pool2d(x, 3, 1, "SAME").numpy() == -1).all()
    integers = tw.constant([[[-5], [-7], [-6]]])
    assert tw.nn.max_pool(integers, 2, 2, "SAME").numpy().ravel().tolist() == [-5, -6]


def test_padding_may_be_listed_for_every_axis():
    x = tw.constant([[[1.0], [2.0], [3.0]]])
    y = tw.nn.max_pool1d(x, 2, 2, [[0, 0], [1, 0], [0, 0]])
    assert y.numpy().ravel().tolist() == [1.0, 3.0]
    y = tw.nn.avg_pool1d(x, 2, 2, [[0, 0], [1, 0], [0, 0]])
    assert y.numpy().ravel().tolist() == [1.0, 2.5]


def test_pool_has_holes_and_steps_of_one_by_default():
    x = tw.constant([[[1.0], [2.0], [5.0], [3.0]]])
    assert tw.nn.pool(x, [2], "MAX").numpy().ravel().tolist() == [2.0, 5.0, 5.0]
    y = tw.nn.pool(x, [2], "AVG", dilations=[2])
    assert y.numpy().ravel().tolist() == [3.0, 2.5]


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_argmax_points_to_the_maximum(padding):
    x = RANDOM.normal(size=(2, 5, 4, 3))
    out, places = tw.nn.max_pool_with_argmax(x, 2, 2, padding)
    each = np.stack([image.ravel()[p] for image, p in zip(x, places.numpy())])
    np.testing.assert_array_equal(each, out.numpy())
    np.testing.assert_array_equal(
        out.numpy(), tw.nn.max_pool2d(x, 2, 2, padding).numpy()
    )
    _, places = tw.nn.max_pool_with_argmax(
        x, 2, 2, padding, output_dtype=tw.int32, include_batch_in_index=True
    )
    assert places.dtype == tw.int32
    np.testing.assert_array_equal(x.ravel()[places.numpy()], out.numpy())


IMAGE = tw.ones((1, 4, 4, 2))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tw.nn.max_pool2d(IMAGE[0], 2, 2, "SAME"), "input .*rank 4"),
        (lambda: tw.nn.max_pool(IMAGE[0, 0], 2, 2, "SAME"), "input .*rank 3.*4.*5"),
        (lambda: tw.nn.max_pool2d(IMAGE, 5, 2, "VALID"), "must not exceed the input"),
        (lambda: tw.nn.max_pool2d(IMAGE, 0, 2, "VALID"), "ksize .*2.*got 0"),
        (lambda: tw.nn.max_pool2d(IMAGE, [1, 2, 2, 2], 2, "VALID"), r"ksize .*\[1, 2, 2, 2\]"),
        (lambda: tw.nn.avg_pool2d(IMAGE, 2, [1, 2, 3], "VALID"), r"strides .*\[1, 2, 3\]"),
        (lambda: tw.nn.avg_pool2d(IMAGE, 2, 2, "FULL"), "padding .*'SAME'.*'FULL'"),
        (lambda: tw.nn.avg_pool2d(IMAGE, 2, 2, [[2, 0], [0, 0]]), r"size 2, got \(2, 0\)"),
        (lambda: tw.nn.avg_pool2d(IMAGE, 2, 2, "SAME", "NWC"), "data_format .*'NWC'"),
        (lambda: tw.nn.pool(IMAGE, 2, "MEAN"), "pooling_type .*'MAX'.*'AVG'.*got 'MEAN'"),
        (lambda: tw.nn.max_pool_with_argmax(IMAGE, 2, 2, "SAME", "NCHW"), "format .*'NCHW'"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_the_mean_of_integers_is_refused():
    with pytest.raises(tw.errors.DTypeError, match="input .*floating"):
        tw.nn.avg_pool2d(tw.cast(IMAGE, tw.int32), 2, 2, "VALID")


def test_the_adjoint_of_means_explains_what_does_not_fit():
    from tapewright.ops.convolution.pooling import spread_means_p

    with pytest.raises(tw.errors.ShapeError, match="axis -2.*size 2"):
        spread_means_p(tw.ones((3, 1)), 4, -2, 2, 2, "VALID")


@pytest.mark.parametrize("shape", [(2, 1, 1), (1, 7, 1), (1, 1, 7), (2, 5, 4)])
def test_windows_of_two_give_each_maximum_its_gradient(shape):
    x = np.random.default_rng(0).permutation(int(np.prod(shape))).reshape(shape)
    x = tw.constant(x[..., None], tw.float32)
    for strides in ([2, 2], [3, 2]):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.nn.max_pool2d(x, 2, strides, "SAME")
        g = tape.gradient(y, x).numpy()
        assert g.sum() == y.numpy().size
        assert set(x.numpy()[g > 0]) == set(y.numpy().ravel())
