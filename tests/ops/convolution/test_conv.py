"""Convolutions: the op table, TensorFlow's values, formats, memory orders, and errors."""

import itertools

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.convolution import correlation, grouped, im2col
from tapewright.test import case, check_op, complexes, floats


def margin(size, window, stride, dilation):
    """What "SAME" puts before and behind an axis, as TensorFlow's guide defines it."""
    total = max(
        (-(-size // stride) - 1) * stride + (window - 1) * dilation + 1 - size, 0
    )
    return total // 2, total - total // 2


def convolved(x, filters, strides, padding, dilations, groups=1):
    """The definition: a sum over the taps of the window."""
    *window, depth, count = filters.shape
    if padding == "SAME":
        padding = [margin(*a) for a in zip(x.shape[1:-1], window, strides, dilations)]
    if padding != "VALID":
        x = np.pad(x, [(0, 0), *padding, (0, 0)])
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilations)]
    places = [(n - r) // s + 1 for n, r, s in zip(x.shape[1:-1], reach, strides)]
    out = np.zeros((len(x), *places, count), np.result_type(x, filters))
    for tap in itertools.product(*map(range, window)):
        starts = [i * d for i, d in zip(tap, dilations)]
        index = [
            slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, places, strides)
        ]
        seen = x[(slice(None), *index)]
        each = count // groups
        for k in range(groups):
            part = seen[..., k * depth : (k + 1) * depth]
            kernel = filters[tap][:, k * each : (k + 1) * each]
            out[..., k * each : (k + 1) * each] += part @ kernel
    return out


def transposed(function, shape, g):
    """The transpose of a linear function of arrays of that shape, applied to ``g``."""
    size = int(np.prod(shape))
    units = np.eye(size).reshape(size, *shape)
    return np.array([np.vdot(function(unit), g) for unit in units]).reshape(shape)


def line(
    x, filters, strides=None, padding="VALID", dilations=None, groups=1, **options
):
    """Lines for the convolution and for its two adjoints."""
    rank = len(x) - 2
    attributes = {
        "strides": strides or (1,) * rank,
        "padding": padding,
        "dilations": dilations or (1,) * rank,
        "groups": groups,
    }
    out = convolved(np.zeros(x), np.zeros(filters), **attributes).shape
    size, window = x[1:-1], filters[:-2]
    return [
        case("convolution", floats(*x), floats(*filters), **attributes, **options,
             expect=lambda a, f: convolved(a, f, **attributes)),
        case("convolution_input_gradient", floats(*out), floats(*filters), size=size,
             **attributes, **options,
             expect=lambda g, f: transposed(
                 lambda a: convolved(a, f, **attributes), x, g)),
        case("convolution_filter_gradient", floats(*x), floats(*out), window=window,
             **attributes, **options,
             expect=lambda a, g: transposed(
                 lambda f: convolved(a, f, **attributes), filters, g)),
    ]  # fmt: skip


CASES = [
    *line((2, 3, 4, 2), (2, 3, 2, 2)),
    *line((1, 4, 3, 1), (3, 2, 1, 2), (2, 1), "SAME"),
    *line((2, 5, 4, 1), (2, 2, 1, 1), (2, 1), ((1, 0), (0, 2)), (1, 2)),
    *line((2, 2, 3, 4), (1, 2, 2, 2), groups=2),  # two groups
    *line((1, 3, 3, 2), (2, 2, 1, 4), padding="SAME", groups=2, order=2),  # depthwise
    *line((2, 2, 2, 2), (1, 1, 2, 3)),  # a product for each place
    *line((2, 4, 2), (3, 2, 1)),
    *line((2, 5, 1), (2, 1, 2), (2,), "SAME", (2,)),
    *line((1, 2, 3, 2, 1), (2, 2, 1, 1, 2), (1, 2, 1), "SAME", order=2),
    *line((0, 3, 3, 1), (2, 2, 1, 2)),  # no images
    case("convolution", complexes(1, 3, 2), complexes(2, 2, 1), strides=(1,),
         padding="SAME", dilations=(1,), order=2,
         expect=lambda x, f: convolved(x, f, (1,), "SAME", (1,))),
    # composed of these
    case(tw.nn.conv2d, floats(1, 3, 3, 1), floats(2, 2, 1, 1), strides=1, padding="VALID",
         order=2, expect=lambda x, f: convolved(x, f, (1, 1), "VALID", (1, 1))),
    case(tw.nn.separable_conv2d, floats(1, 3, 3, 2), floats(2, 2, 2, 1), floats(1, 1, 2, 1),
         strides=1, padding="VALID", order=2,
         expect=lambda x, d, p: convolved(convolved(
             x, d.reshape(2, 2, 1, 2), (1, 1), "VALID", (1, 1), 2), p, (1, 1), "VALID", (1, 1)
         )),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


RANDOM = np.random.default_rng(0)
FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}
FUNCTIONS = {1: tw.nn.conv1d, 2: tw.nn.conv2d, 3: tw.nn.conv3d}


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("batch", [3, 9])
def test_strides_and_dilations_and_formats_agree_with_the_definition(
    rank, padding, batch
):
    # both sides of every choice that a kernel makes: many channels or few, many images
    for stride, dilation, depth in [(1, 1, 4), (1, 2, 1), (2, 1, 4), (3, 2, 1)]:
        x = RANDOM.normal(size=(batch, *[7, 6, 5][:rank], depth))
        filters = RANDOM.normal(size=(*[2, 3, 2][:rank], depth, 2))
        wanted = convolved(x, filters, (stride,) * rank, padding, (dilation,) * rank)
        for data_format in FORMATS[rank]:
            first = data_format.startswith("NC")
            given = np.moveaxis(x, -1, 1).copy() if first else x
            out = FUNCTIONS[rank](
                given, filters, stride, padding, data_format, dilation
            ).numpy()
            out = np.moveaxis(out, 1, -1) if first else out
            np.testing.assert_allclose(out, wanted, atol=1e-12)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_the_order_in_memory_does_not_matter(order):
    x = RANDOM.normal(size=(9, 5, 4, 3)).transpose(order)
    x = x.transpose(np.argsort(order))
    filters = RANDOM.normal(size=(2, 2, 3, 4))
    out = tw.nn.conv2d(tw.constant(x), filters, 1, "SAME").numpy()
    wanted = convolved(x, filters, (1, 1), "SAME", (1, 1))
    np.testing.assert_allclose(out, wanted, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("turned", [*itertools.product([False, True], repeat=2)])
@pytest.mark.parametrize(("strides", "padding"), [(1, "SAME"), (2, [(1, 1), (1, 1)])])
def test_filters_of_one_entry_meet_their_own_pixels(strides, padding, turned, groups):
    """Also where margins and strides make as many places as there are pixels."""
    rng = np.random.default_rng(6)
    x, g = rng.normal(size=(3, 2, 2, 4)), rng.normal(size=(3, 2, 2, 6))
    x, g = [np.asfortranarray(a) if f else a for a, f in zip((x, g), turned)]
    attributes = dict(
        strides=(strides,) * 2, padding=padding, dilations=(1, 1), groups=groups
    )
    found = correlation.filter_gradient(x, g, window=(1, 1), **attributes).numpy()
    shape = (1, 1, 4 // groups, 6)
    expected = transposed(lambda f: convolved(x, f, **attributes), shape, g)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_small_blocks_of_columns_make_the_same_sums(monkeypatch):
    monkeypatch.setattr(im2col, "BLOCK", 64)
    check_op(CASES[0], order=1)
    check_op(CASES[3], order=1)
    check_op(CASES[6], order=1)


def adjoint_of_input(g, filters, size, strides, margins, dilations, groups):
    """The definition of the gradient of the input: a sum over the taps of the window."""
    *window, depth, count = filters.shape
    reach = [
        max(n + before, (places - 1) * s + (k - 1) * d + 1) + after
        for n, (before, after), places, s, k, d in zip(
            size, margins, g.shape[1:-1], strides, window, dilations
        )
    ]
    out = np.zeros((len(g), *reach, groups * depth), g.dtype)
    each = count // groups
    for tap in itertools.product(*map(range, window)):
        index = [
            slice(i * d, i * d + (n - 1) * s + 1, s)
            for i, d, n, s in zip(tap, dilations, g.shape[1:-1], strides)
        ]
        for k in range(groups):
            part = g[..., k * each : (k + 1) * each]
            kernel = filters[tap][:, k * each : (k + 1) * each]
            channels = slice(k * depth, (k + 1) * depth)
            out[(slice(None), *index, channels)] += part @ kernel.T
    inner = [slice(b, b + n) for n, (b, _) in zip(size, margins)]
    return out[(slice(None), *inner)]


GEOMETRIES = np.random.default_rng(7)


def geometry(rank, is_thin=False):
    """A random convolution in groups: ``(x shape, filters shape, attributes)``.

    A thin one has one group, stride 1, and few channels in its output.
    """
    pick = GEOMETRIES.integers
    groups, depth, each = pick(2, 5), pick(1, 4), pick(1, 4)
    window, strides = pick(1, 5, rank), pick(1, 4, rank)
    if is_thin:
        groups, depth, each = 1, pick(8, 14), pick(1, 3)
        window, strides = pick(1, 6, rank), np.ones(rank, int)
    dilations = pick(1, 4, rank) if pick(2) else np.ones(rank, int)
    reach = (window - 1) * dilations + 1
    size = pick(np.maximum(1, reach // 2), reach + 9)
    batch = pick(1, 20)
    kind = pick(3)
    padding = "SAME"
    if kind:
        before = pick(0, 5, rank)
        least = np.maximum(reach - size - before, 0)
        padding = tuple(zip(before.tolist(), (least + pick(0, 3, rank)).tolist()))
    attributes = {
        "strides": tuple(strides.tolist()),
        "padding": padding,
        "dilations": tuple(dilations.tolist()),
        "groups": int(groups),
    }
    x = batch, *size, groups * depth
    return x, (*window, depth, groups * each), attributes


@pytest.mark.parametrize("small", [0, 1 << 30])
@pytest.mark.parametrize("block", [100, 3000, 1 << 20])
@pytest.mark.parametrize("long", [1, 1 << 30])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_groups_agree_with_the_definition(
    rank, long, block, small, threads, monkeypatch
):
    monkeypatch.setattr(grouped, "LONG", long)
    monkeypatch.setattr(grouped, "BLOCK", block)
    monkeypatch.setattr(grouped, "SMALL", small)
    for _ in range(12):
        check_three(*geometry(rank))


@pytest.mark.parametrize("block", [100, 1 << 22])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_thin_outputs_agree_with_the_definition(rank, block, monkeypatch):
    monkeypatch.setattr(im2col, "BLOCK", block)
    for _ in range(40):
        check_three(*geometry(rank, is_thin=True))


def test_groups_of_large_images_agree_with_the_definition(threads):
    attributes = dict(strides=(1, 1), padding="SAME", dilations=(1, 1), groups=12)
    x = GEOMETRIES.normal(size=(16, 40, 40, 12))
    f = GEOMETRIES.normal(size=(3, 3, 1, 12))
    wanted = convolved(x, f, **attributes)
    for _ in range(3):
        space, out = np.full(1 << 22, np.nan), np.empty(wanted.T.shape).T
        correlation.convolve_into(np, x, f, space, out, **attributes)
        np.testing.assert_allclose(out, wanted, atol=1e-11)


def check_three(shape, filters_shape, attributes):
    """A convolution and its two gradients against the definition."""
    x = GEOMETRIES.normal(size=shape)
    filters = GEOMETRIES.normal(size=filters_shape)
    wanted = convolved(x, filters, **attributes)
    g = GEOMETRIES.normal(size=wanted.shape)
    size, window = shape[1:-1], filters_shape[:-2]
    strides, dilations = attributes["strides"], attributes["dilations"]
    margins = attributes["padding"]
    if margins == "SAME":
        margins = [margin(*a) for a in zip(size, window, strides, dilations)]
    groups = attributes["groups"]
    out = correlation.convolve(x, filters, **attributes).numpy()
    np.testing.assert_allclose(out, wanted, atol=1e-11)
    back = correlation.input_gradient(g, filters, size=size, **attributes).numpy()
    wanted = adjoint_of_input(g, filters, size, strides, margins, dilations, groups)
    np.testing.assert_allclose(back, wanted, atol=1e-11)
    found = correlation.filter_gradient(x, g, window=window, **attributes).numpy()
    units = GEOMETRIES.normal(size=filters_shape)
    inner = np.vdot(convolved(x, units, **attributes), g)
    np.testing.assert_allclose(np.vdot(found, units), inner, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
@pytest.mark.parametrize("each", [1, 2])
def test_groups_of_any_dtype_agree_with_double_precision(dtype, each):
    x = GEOMETRIES.normal(size=(40, 9, 8, 6)).astype(dtype)
    f = GEOMETRIES.normal(size=(3, 2, 1, 6 * each)).astype(dtype)
    attributes = {
        "strides": (1, 2),
        "padding": "SAME",
        "dilations": (2, 1),
        "groups": 6,
    }
    wide = "c16" if dtype == "complex64" else "f8"
    wanted = convolved(x.astype(wide), f.astype(wide), **attributes)
    out = correlation.convolve(x, f, **attributes)
    close = {"atol": 2e-2, "rtol": 2e-2} if dtype == "float16" else {"atol": 1e-4}
    assert out.dtype.name == dtype
    np.testing.assert_allclose(out.numpy(), wanted, **close)
    units = GEOMETRIES.normal(size=f.shape)
    g = GEOMETRIES.normal(size=wanted.shape).astype(dtype)
    found = correlation.filter_gradient(x, g, window=(3, 2), **attributes)
    assert found.dtype.name == dtype
    total = (convolved(x.astype(wide), units, **attributes) * g.astype(wide)).sum()
    scale = np.abs(found.numpy().astype(wide) * units).sum()
    assert abs((found.numpy().astype(wide) * units).sum() - total) < 2e-3 * scale


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
def test_an_entry_reaches_no_window_of_groups_that_it_is_not_in(bad, strides):
    x, f = np.ones((70, 9, 8, 3)), GEOMETRIES.normal(size=(3, 3, 1, 3))
    attributes = {
        "strides": strides,
        "padding": "SAME",
        "dilations": (1, 1),
        "groups": 3,
    }
    finite = convolved(x, f, **attributes)
    x[1, 4, 4, 1] = bad
    wanted = convolved(x, f, **attributes)
    for out in (
        correlation.convolve(x, f, **attributes).numpy(),
        tw.function(lambda x: correlation.convolve(x, f, **attributes))(x).numpy(),
    ):
        np.testing.assert_array_equal(np.isfinite(out), np.isfinite(wanted))
    g = finite.copy()
    g[1, 2, 2, 1] = bad
    wanted = transposed_finite(g, f, x.shape, attributes)
    back = correlation.input_gradient(g, f, size=(9, 8), **attributes).numpy()
    np.testing.assert_array_equal(np.isfinite(back), wanted)


def transposed_finite(g, f, shape, attributes):
    """A mask of the finite entries of that gradient: those in no window of a bad entry."""
    bad = (~np.isfinite(g)).astype(float)
    margins = [
        margin(*a)
        for a in zip(
            shape[1:-1], f.shape[:-2], attributes["strides"], attributes["dilations"]
        )
    ]
    met = adjoint_of_input(
        bad, np.ones_like(f), shape[1:-1], attributes["strides"], margins,
        attributes["dilations"], attributes["groups"],
    )  # fmt: skip
    return met == 0


def test_the_margins_of_one_block_of_groups_are_those_of_the_next(monkeypatch):
    monkeypatch.setattr(grouped, "BLOCK", 1)
    x, f = GEOMETRIES.normal(size=(70, 4, 5, 3)), GEOMETRIES.normal(size=(3, 3, 1, 3))
    space = np.full(1 << 16, np.nan)
    attributes = {
        "strides": (1, 1),
        "padding": "SAME",
        "dilations": (1, 1),
        "groups": 3,
    }
    out = np.full((3, 5, 4, 70), np.nan).transpose()
    correlation.convolve_into(np, x, f, space, out, **attributes)
    np.testing.assert_allclose(out, convolved(x, f, **attributes), atol=1e-12)


@pytest.mark.parametrize("is_thin", [False, True])
def test_the_scratch_memory_of_groups_is_what_columns_take(is_thin, monkeypatch):
    taken = []
    take = im2col.Room.take
    monkeypatch.setattr(
        im2col.Room,
        "take",
        lambda room, *shape: taken.append(np.prod(shape)) or take(room, *shape),
    )
    for _ in range(40):
        shape, filters_shape, attributes = geometry(2, is_thin)
        x = GEOMETRIES.normal(size=shape)
        filters = GEOMETRIES.normal(size=filters_shape)
        x = np.ascontiguousarray(x.transpose()).transpose()
        taken.clear()
        y = correlation.convolve_into(np, x, filters, None, None, **attributes)
        correlation.input_gradient_into(
            np, y, filters, None, None, shape[1:-1], **attributes
        )
        size = grouped.group_columns_size(shape, filters_shape, **attributes)
        assert max(taken, default=0) <= size


def test_half_precision_is_computed_in_single():
    x, f = RANDOM.normal(size=(1, 4, 4, 2)), RANDOM.normal(size=(3, 3, 2, 2))
    x, f = tw.constant(x, tw.float16), tw.constant(f, tw.float16)
    with tw.GradientTape() as tape:
        tape.watch([x, f])
        y = tw.nn.conv2d(x, f, 1, "SAME")
    assert y.dtype == tw.float16
    assert [g.dtype for g in tape.gradient(y, [x, f])] == [tw.float16, tw.float16]
    double = convolved(
        x.numpy().astype("f8"), f.numpy().astype("f8"), (1, 1), "SAME", (1, 1)
    )
    np.testing.assert_allclose(y.numpy(), double, atol=2e-3, rtol=2e-3)


def test_further_batch_axes_stay_in_front():
    x, f = RANDOM.normal(size=(2, 3, 4, 4, 1)), RANDOM.normal(size=(2, 2, 1, 2))
    y = tw.nn.conv2d(x, f, 1, "VALID")
    assert y.shape == (2, 3, 3, 3, 2)
    np.testing.assert_array_equal(
        y[1].numpy(), tw.nn.conv2d(x[1], f, 1, "VALID").numpy()
    )


def test_strides_may_name_batch_and_channels_in_either_format():
    x, f = RANDOM.normal(size=(1, 4, 6, 1)), RANDOM.normal(size=(1, 1, 1, 1))
    assert tw.nn.conv2d(x, f, [1, 2, 3, 1], "SAME").shape == (1, 2, 2, 1)
    x = x.transpose(0, 3, 1, 2)
    assert tw.nn.conv2d(x, f, [1, 1, 2, 3], "SAME", "NCHW").shape == (1, 1, 2, 2)


def test_padding_may_be_listed_for_every_axis():
    x, f = RANDOM.normal(size=(1, 3, 3, 1)), RANDOM.normal(size=(2, 2, 1, 1))
    out = tw.nn.conv2d(x, f, 1, [[0, 0], [1, 0], [0, 2], [0, 0]]).numpy()
    wanted = convolved(x, f, (1, 1), [(1, 0), (0, 2)], (1, 1))
    np.testing.assert_allclose(out, wanted, atol=1e-12)


def test_depthwise_convolution_has_filters_of_its_own_for_each_channel():
    x, f = RANDOM.normal(size=(2, 5, 4, 3)), RANDOM.normal(size=(3, 2, 3, 2))
    out = tw.nn.depthwise_conv2d(x, f, [1, 2, 2, 1], "SAME").numpy()
    for c in range(3):
        wanted = convolved(
            x[..., c : c + 1], f[:, :, c : c + 1], (2, 2), "SAME", (1, 1)
        )
        np.testing.assert_allclose(out[..., 2 * c : 2 * c + 2], wanted, atol=1e-12)


def test_transposed_convolution_is_the_gradient_of_convolution():
    for strides, padding, dilation in [
        (2, "SAME", 1),
        (1, "VALID", 2),
        (3, "VALID", 1),
    ]:
        x, f = RANDOM.normal(size=(2, 7, 6, 3)), RANDOM.normal(size=(3, 2, 3, 2))
        x = tw.constant(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.nn.conv2d(x, f, strides, padding, dilations=dilation)
        g = tw.constant(RANDOM.normal(size=tuple(y.shape)))
        wanted = tape.gradient(y, x, output_gradients=g).numpy()
        out = tw.nn.conv2d_transpose(
            g, f, tuple(x.shape), strides, padding, dilations=dilation
        )
        np.testing.assert_array_equal(out.numpy(), wanted)
        back = tw.nn.conv_transpose(
            tw.transpose(g, [0, 3, 1, 2]),
            f,
            (2, 3, 7, 6),
            strides,
            padding,
            "NCHW",
            dilation,
        )
        np.testing.assert_array_equal(back.numpy().transpose(0, 2, 3, 1), wanted)


def test_transposed_convolution_has_the_values_of_tensorflow():
    # tf.nn.conv1d_transpose([[[1.], [2.], [3.]]], [[[1.]], [[10.]], [[100.]]], (1, 6, 1), 2)
    x, f = [[[1.0], [2.0], [3.0]]], [[[1.0]], [[10.0]], [[100.0]]]
    out = tw.nn.conv1d_transpose(x, f, (1, 6, 1), 2).numpy().ravel()
    assert out.tolist() == [1.0, 10.0, 102.0, 20.0, 203.0, 30.0]


def test_holes_are_dilations():
    x, f = RANDOM.normal(size=(1, 6, 6, 1)), RANDOM.normal(size=(2, 2, 1, 1))
    out = tw.nn.atrous_conv2d(x, f, 2, "VALID").numpy()
    np.testing.assert_allclose(
        out, convolved(x, f, (1, 1), "VALID", (2, 2)), atol=1e-12
    )
    back = tw.nn.atrous_conv2d_transpose(out, f, (1, 6, 6, 1), 2, "VALID")
    assert back.shape == (1, 6, 6, 1)


def test_convolution_takes_its_rank_from_the_filters():
    for rank in (1, 2, 3):
        x, f = tw.ones((1, *[3] * rank, 1)), tw.ones((*[2] * rank, 1, 1))
        out = tw.nn.convolution(x, f)
        assert out.shape == (1, *[2] * rank, 1)
        assert out.numpy().ravel()[0] == 2**rank


def test_the_jacobian_of_one_image_by_another_is_zero_and_not_computed():
    x = tw.constant(RANDOM.normal(size=(2, 3, 3, 1)))
    f = RANDOM.normal(size=(2, 2, 1, 1))
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tw.nn.conv2d(x, f, 1, "VALID")
    blocks = tape.batch_jacobian(y, x, check=True).numpy()
    full = tape.jacobian(y, x).numpy()
    assert not full[0, ..., 1, :, :, :].any()
    np.testing.assert_allclose(blocks[1], full[1, :, :, :, 1], atol=1e-12)


IMAGE, FILTERS = tw.ones((1, 4, 4, 2)), tw.ones((3, 3, 2, 4))
SHAPES = [
    (tw.nn.conv2d, (IMAGE, tw.ones((3, 3, 3, 1)), 1, "SAME"), "input .*3"),
    (tw.nn.conv2d, (IMAGE, tw.ones((3, 3, 1, 3)), 1, "SAME"), "input .*divides 3"),
    (tw.nn.conv2d, (IMAGE[0], FILTERS, 1, "SAME"), "input .*rank 4"),
    (tw.nn.conv2d, (IMAGE, FILTERS[0], 1, "SAME"), "filters rank 4"),
    (tw.nn.conv2d, (IMAGE, tw.ones((5, 1, 2, 1)), 1, "VALID"), "must not exceed the input"),
    (tw.nn.depthwise_conv2d, (IMAGE, tw.ones((2, 2, 1, 2)), 1, "SAME"), "input .*1"),
    (tw.nn.convolution, (IMAGE, tw.ones((2, 2))), "filters .*rank 3.*4.*5"),
    (tw.nn.conv_transpose, (IMAGE, tw.ones((2, 2)), (1, 1), 1), "filters .*rank 3.*4.*5"),
    (tw.nn.conv2d_transpose, (IMAGE, FILTERS, (1, 9, 9, 2), 1), "output_shape"),
    (tw.nn.conv2d_transpose, (IMAGE, FILTERS, (1, 4, 4, 2), 1), "channels"),
    (tw.nn.separable_conv2d, (IMAGE, FILTERS, FILTERS, 1, "SAME"), "pointwise_filter"),
    (tw.nn.separable_conv2d, (IMAGE, FILTERS, FILTERS[:1, :1], 1, "SAME"), "multiplier, 8"),
]  # fmt: skip
VALUES = [
    ((0, "SAME"), "strides .*2.*got 0"),
    (([2, 1, 1, 1], "SAME"), r"strides .*1.*got \[2, 1, 1, 1\]"),
    (([1, 2, 3], "SAME"), r"strides .*2.*4.*got \[1, 2, 3\]"),
    ((1, "FULL"), "padding .*'VALID'.*got 'FULL'"),
    ((1, [[1, 1]]), r"padding .*'VALID'.*'SAME'.*4.*got \[\[1, 1\]\]"),
    ((1, [[1, 0], [0, 0], [0, 0], [0, 0]]), "padding must be"),
    ((1, "SAME", "NWC"), "data_format .*'NHWC'.*'NCHW'.*got 'NWC'"),
    ((1, "SAME", "NHWC", [1, 2, 3]), r"dilations .*2.*got \[1, 2, 3\]"),
]


@pytest.mark.parametrize(("function", "arguments", "words"), SHAPES)
def test_shapes_that_do_not_fit_are_explained(function, arguments, words):
    with pytest.raises(tw.errors.ShapeError, match=words):
        function(*arguments)


@pytest.mark.parametrize(("arguments", "words"), VALUES)
def test_a_wrong_argument_is_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        tw.nn.conv2d(IMAGE, FILTERS, *arguments)


def test_dtypes_must_agree_and_be_numbers():
    with pytest.raises(tw.errors.DTypeError, match="filters: shape"):
        tw.nn.conv2d(IMAGE, tw.cast(FILTERS, tw.float64), 1, "SAME")
    with pytest.raises(TypeError, match="input .*numbers"):
        tw.nn.conv2d(IMAGE > 0, FILTERS > 0, 1, "SAME")


def test_the_adjoints_explain_what_does_not_fit():
    op = correlation.convolve
    options = {"strides": (1, 1), "padding": "VALID", "dilations": (1, 1)}
    with pytest.raises(tw.errors.ShapeError, match="input .*1.*3"):
        op(IMAGE, tw.ones((1, 1, 3, 1)), **options)
    with pytest.raises(tw.errors.ShapeError, match="filters .*multiple of 2 .*got 3"):
        op(IMAGE, tw.ones((1, 1, 1, 3)), **options, groups=2)
    with pytest.raises(tw.errors.ShapeError, match=r"\(7, 7\).*input of size \(9, 9\)"):
        correlation.input_gradient(IMAGE, FILTERS, size=(9, 9), **options)
    with pytest.raises(tw.errors.ShapeError, match=r"g .*batch .*\(3, 3\)"):
        correlation.filter_gradient(IMAGE, FILTERS, window=(2, 2), **options)


@pytest.mark.parametrize("of", ["images", "filters"])
def test_a_numpy_array_beside_a_tensor_takes_its_dtype(of):
    images, filters = np.ones([1, 4, 4, 2]), np.ones([3, 3, 2, 5])
    if of == "images":
        filters = tw.constant(filters, tw.float32)
    else:
        images = tw.constant(images, tw.float32)
    assert tw.nn.conv2d(images, filters, 1, "VALID").dtype == tw.float32
    assert tw.nn.convolution(images, filters).dtype == tw.float32
