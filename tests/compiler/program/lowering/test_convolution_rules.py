"""Convolution and pooling in programs: as in eager mode, whatever the passes make of them."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import config
from tapewright.compiler.pipeline import optimize, stages
from tapewright.compiler.program.instructions.array_instructions import Map
from tapewright.compiler.program.instructions.call_instructions import Opaque

RNG = np.random.default_rng(0)


@pytest.fixture
def native_target():
    """Functions become machine code, in whose pipeline are the passes for pooling."""
    pytest.importorskip("llvmlite")
    with config.use_target("native"):
        yield


def numbers(*shape, dtype="float32"):
    return tw.constant(RNG.standard_normal(shape), dtype)


def concrete(function, *inputs):
    return tw.function(function).get_concrete_function(*inputs)


def ops_of(graph):
    return [node.name for node in graph.nodes]


def nodes_of(graph, name):
    return [node for node in graph.nodes if node.name == name]


def with_gradients(function):
    """The value of a function and the gradients of its weighted sum."""

    def run(*inputs):
        with tw.GradientTape() as tape:
            tape.watch(inputs)
            out = function(*inputs)
            weights = tw.reshape(
                tw.sin(tw.range(float(np.prod(out.shape)), dtype=out.dtype)), out.shape
            )
            total = tw.reduce_sum(out * weights)
        return [out, *tape.gradient(total, inputs)]

    return run


def check(function, *inputs, rtol=2e-5, atol=2e-5):
    """Traced and eager agree, replay after replay; the first value to the bit."""
    expected = function(*inputs)
    traced = tw.function(function)
    for _ in range(3):
        found = traced(*inputs)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=rtol, atol=atol)
    return traced.get_concrete_function(*inputs)


# ------------------------------------------------------------------------- convolution


@pytest.mark.parametrize(
    "dtype, size, window, strides, padding, dilations",
    [
        ("float64", (9, 8), (3, 3), 1, "VALID", 1),
        ("float32", (9, 8), (3, 3), 1, "SAME", 1),
        ("float64", (9, 8), (2, 3), 2, "SAME", 1),
        ("float32", (9, 8), (3, 2), (2, 1), "VALID", 1),
        ("float64", (9, 8), (3, 3), 1, "SAME", 2),
        ("float32", (9, 8), (2, 2), 1, "VALID", (1, 3)),
        ("float64", (9, 8), (1, 1), 1, "VALID", 1),
        ("float32", (9, 8), (1, 1), 2, "VALID", 1),
        ("float64", (9, 8), (9, 8), 1, "VALID", 1),
        ("float32", (9, 8), (4, 4), 5, "SAME", 1),
        ("float64", (7, 6), (3, 3), 1, [(0, 0), (2, 0), (1, 3), (0, 0)], 1),
    ],
)
def test_a_convolution_and_its_gradients_agree_with_eager_mode(
    dtype, size, window, strides, padding, dilations
):
    for batch, depth, count in (4, 3, 5), (17, 6, 2), (1, 1, 3):
        x = numbers(batch, *size, depth, dtype=dtype)
        filters = numbers(*window, depth, count, dtype=dtype)
        check(
            with_gradients(
                lambda x, f: tw.nn.conv2d(x, f, strides, padding, dilations=dilations)
            ),
            x,
            filters,
        )


@pytest.mark.parametrize("format", ["NHWC", "NCHW"])
def test_grouped_and_depthwise_convolutions_agree(format):
    x = numbers(3, 6, 7, 6) if format == "NHWC" else numbers(3, 6, 6, 7)
    strides = (1, 1, 1, 1)
    for function, filters in (
        (lambda x, f: tw.nn.conv2d(x, f, 1, "SAME", format), numbers(3, 3, 2, 9)),
        (
            lambda x, f: tw.nn.depthwise_conv2d(x, f, strides, "SAME", format),
            numbers(3, 3, 6, 2),
        ),
    ):
        check(with_gradients(function), x, filters)


def test_one_and_three_dimensions_agree():
    check(
        with_gradients(lambda x, f: tw.nn.conv1d(x, f, 1, "SAME")),
        numbers(5, 11, 3),
        numbers(4, 3, 6),
    )
    check(
        with_gradients(lambda x, f: tw.nn.conv3d(x, f, (1,) * 5, "VALID")),
        numbers(2, 5, 6, 4, 3),
        numbers(2, 3, 2, 3, 4),
    )


def test_a_transposed_convolution_agrees():
    check(
        with_gradients(
            lambda x, f: tw.nn.conv2d_transpose(x, f, (4, 9, 12, 3), 2, "SAME")
        ),
        numbers(4, 5, 6, 5),
        numbers(3, 3, 3, 5),
    )


def test_gradients_of_the_second_order_agree():
    def run(x, f):
        with tw.GradientTape() as outer:
            outer.watch([x, f])
            with tw.GradientTape() as inner:
                inner.watch(x)
                y = tw.nn.max_pool2d(
                    tw.nn.relu(tw.nn.conv2d(x, f, 1, "VALID")), 2, 2, "VALID"
                )
                out = tw.reduce_sum(y**2)
            g = inner.gradient(out, x)
            penalty = tw.reduce_sum(g * g)
        return outer.gradient(penalty, [x, f])

    check(
        run, numbers(3, 8, 7, 2, dtype="float64"), numbers(3, 3, 2, 4, dtype="float64")
    )


def test_values_that_are_kept_are_not_overwritten_by_the_next_replay():
    f = numbers(3, 3, 2, 4)

    @tw.function
    def run(x):
        return tw.nn.conv2d(x, f, 1, "VALID")

    x = numbers(4, 6, 6, 2)
    first = run(x)
    kept = first.numpy().copy()
    run(x * 2)
    np.testing.assert_array_equal(first.numpy(), kept)


def test_the_columns_are_scratch_of_the_executable(numpy_target):
    x, f = numbers(16, 12, 12, 8), numbers(3, 3, 8, 8)
    executable = concrete(
        lambda x: tw.reduce_sum(tw.nn.conv2d(x, f, 1, "SAME")), x
    ).executable
    image = 16 * 12 * 12 * 8 * 4
    columns = 3 * image
    assert columns <= executable.arena_size < 2 * columns
    assert Opaque not in {type(each) for each in executable.program.instructions}


def test_work_between_convolutions_stays_in_their_order_of_memory(numpy_target):
    f, g, b = numbers(3, 3, 2, 4), numbers(3, 3, 4, 4), numbers(4)

    def run(x):
        y = tw.tanh(tw.nn.conv2d(x, f, 1, "SAME") + b) * 2.0
        return tw.nn.conv2d(y, g, 1, "SAME")

    instructions = concrete(run, numbers(8, 6, 5, 2)).executable.program.instructions
    maps = [each for each in instructions if isinstance(each, Map)]
    assert len(maps) == 3
    assert {each.outputs[0].shape for each in maps} == {(4, 5, 6, 8)}


# -------------------------------------------------------------------------- pooling


def pooled(x, f, b, size=2, padding="VALID", pool_padding="VALID", strides=None):
    y = tw.nn.relu(tw.nn.conv2d(x, f, 1, padding) + b)
    return tw.nn.max_pool2d(y, size, strides or size, pool_padding)


@pytest.mark.parametrize(
    "size, strides", [(2, 2), (3, 3), (2, 1), (3, 2), ((1, 2), (1, 2))]
)
@pytest.mark.parametrize("pool_padding", ["VALID", "SAME"])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("height, width", [(10, 8), (11, 9)])
def test_pooling_first_gives_the_numbers_of_pooling_last(
    numpy_target, size, strides, padding, pool_padding, height, width
):
    x, f, b = numbers(3, height, width, 2), numbers(3, 3, 2, 5), numbers(5)
    run = with_gradients(
        lambda x, f, b: pooled(x, f, b, size, padding, pool_padding, strides)
    )
    made = check(run, x, f, b)
    np.testing.assert_array_equal(
        made.flat_call([x, f, b])[0].numpy(), run(x, f, b)[0].numpy()
    )


def test_bias_and_relu_are_applied_after_pooling(native_target):
    x, f, b = numbers(3, 8, 8, 2), numbers(3, 3, 2, 5), numbers(5)
    graph = optimize(concrete(with_gradients(pooled), x, f, b).graph)
    names = ops_of(graph)
    assert names.index("relu") > names.index("window_max")
    (relu,) = nodes_of(graph, "relu")
    assert relu.outputs[0].shape == (3, 3, 3, 5)
    assert {n.outputs[0].shape for n in nodes_of(graph, "where_positive")} == {
        (3, 3, 3, 5)
    }


def test_ties_go_where_eager_mode_sends_them(native_target):
    x = tw.constant(RNG.integers(-1, 2, (4, 8, 8, 2)), "float32")
    f = tw.constant(RNG.integers(-1, 2, (3, 3, 2, 3)), "float32")
    b = tw.constant([0.0, 1.0, -1.0])
    run = with_gradients(pooled)
    for a, e in zip(
        concrete(run, x, f, b).flat_call([x, f, b]), run(x, f, b), strict=True
    ):
        np.testing.assert_allclose(a.numpy(), e.numpy(), rtol=1e-5, atol=1e-5)


def test_infinities_and_nan_pass_as_in_eager_mode():
    x = np.array(numbers(2, 6, 6, 1).numpy())
    x[0, 0, 0], x[0, 3, 3], x[1, 1, 2] = np.inf, np.nan, -np.inf
    f, b = tw.ones((1, 1, 1, 2)), numbers(2)
    out = tw.function(pooled)(x, f, b)
    np.testing.assert_array_equal(out.numpy(), pooled(tw.constant(x), f, b).numpy())


@pytest.mark.parametrize(
    "extra",
    [
        lambda y, p: [p, y],
        lambda y, p: [p, tw.reduce_sum(y)],
        lambda y, p: [p, tw.nn.max_pool2d(y, 3, 3, "VALID")],
        lambda y, p: [tw.nn.max_pool2d(p, 2, 2, "VALID")],
        lambda y, p: [tw.nn.avg_pool2d(p, 2, 2, "VALID"), tw.nn.relu(p)],
    ],
)
def test_other_uses_of_what_is_pooled_are_seen(extra, native_target):
    x, f, b = numbers(3, 13, 12, 2), numbers(3, 3, 2, 4), numbers(4)

    def run(x, f, b):
        with tw.GradientTape() as tape:
            tape.watch([x, f, b])
            y = tw.nn.relu(tw.nn.conv2d(x, f, 1, "VALID") + b)
            outputs = extra(y, tw.nn.max_pool2d(y, 2, 2, "VALID"))
            total = sum([tw.reduce_sum(out * out) for out in outputs])
        return [*outputs, *tape.gradient(total, [x, f, b])]

    check(run, x, f, b, rtol=1e-4, atol=1e-2)  # of gradients up to 1e4


def test_a_bias_that_differs_from_place_to_place_is_added_before(native_target):
    x, f, b = numbers(3, 6, 6, 2), numbers(3, 3, 2, 4), numbers(4, 4, 1)
    made = check(with_gradients(pooled), x, f, b)
    names = ops_of(optimize(made.graph))
    assert names.index("add") < names.index("window_max")


def test_a_gradient_of_what_relu_gives_is_seen(native_target):
    x, f = numbers(3, 8, 8, 2), numbers(3, 3, 2, 4)

    def run(x, f):
        with tw.GradientTape() as tape:
            tape.watch([x, f])
            y = tw.nn.relu(tw.nn.conv2d(x, f, 1, "VALID"))
            out = tw.reduce_sum(tw.nn.max_pool2d(y, 2, 2, "VALID") ** 2)
        return tape.gradient(out, [y, x, f])

    check(run, x, f)


# ------------------------------------------------------------------------ cropping


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_places_that_pooling_drops_are_not_computed(padding, size, native_target):
    x, f, b = numbers(3, 13, 15, 2), numbers(3, 3, 2, 5), numbers(5)
    run = with_gradients(lambda x, f, b: pooled(x, f, b, size, padding))
    made = check(run, x, f, b)
    (node,) = nodes_of(optimize(made.graph), "convolution")
    places = [n - (2 if padding == "VALID" else 0) for n in (13, 15)]
    assert node.outputs[0].shape[1:3] == tuple([n // size * size for n in places])


def test_windows_with_margins_in_front_are_not_cropped(native_target):
    x, f, b = numbers(3, 13, 13, 2), numbers(3, 3, 2, 5), numbers(5)
    run = with_gradients(lambda x, f, b: pooled(x, f, b, 3, "VALID", "SAME", 2))
    (node,) = nodes_of(optimize(check(run, x, f, b).graph), "convolution")
    assert node.outputs[0].shape[1:3] == (11, 11)


def test_strided_and_dilated_convolutions_are_cropped_rightly(native_target):
    x, f = numbers(3, 23, 22, 2), numbers(3, 3, 2, 5)
    for options in {"strides": 2}, {"strides": 1, "dilations": 2}:
        run = with_gradients(
            lambda x, f, options=options: tw.nn.max_pool2d(
                tw.nn.conv2d(x, f, padding="SAME", **options), 3, 3, "VALID"
            )
        )
        check(run, x, f)


def test_a_convolution_that_is_also_used_whole_is_not_cropped(native_target):
    x, f = numbers(3, 13, 13, 2), numbers(3, 3, 2, 5)

    def run(x, f):
        with tw.GradientTape() as tape:
            tape.watch([x, f])
            y = tw.nn.conv2d(x, f, 1, "VALID")
            total = tw.reduce_sum(tw.nn.max_pool2d(y, 2, 2, "VALID")) + tw.reduce_sum(y)
        return tape.gradient(total, [x, f])

    made = check(run, x, f)
    (node,) = nodes_of(optimize(made.graph), "convolution")
    assert node.outputs[0].shape[1:3] == (11, 11)


def test_an_input_that_pooling_drops_does_not_reach_the_gradients(native_target):
    x = np.array(numbers(2, 9, 9, 1))
    x[0, 8, 8] = np.nan  # seen by the last row and column alone
    x, f = tw.constant(x), numbers(3, 3, 1, 2)
    run = with_gradients(
        lambda x, f: tw.nn.max_pool2d(tw.nn.conv2d(x, f, 1, "VALID"), 2, 2, "VALID")
    )
    found = tw.function(run)(x, f)
    wanted = run(tw.where(tw.math.is_nan(x), tw.zeros_like(x), x), f)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=2e-5)


def test_an_infinite_bias_makes_nan_of_its_negative():
    x = np.array(numbers(1, 4, 4, 1))
    x[0, 0, 0], x[0, 2:, 2:] = -np.inf, -np.inf

    @tw.function
    def run(x, b):
        return tw.nn.max_pool2d(tw.nn.relu(x + b), 2, 2, "VALID")

    found = run(tw.constant(x), tw.constant([np.inf]))[0, :, :, 0]
    np.testing.assert_array_equal(found, [[np.nan, np.inf], [np.inf, np.nan]])


@pytest.mark.parametrize("name", ["pool_first", "cropped_convolutions"])
def test_a_pass_can_be_turned_off(name, native_target):
    x, f, b = numbers(3, 13, 13, 2), numbers(3, 3, 2, 5), numbers(5)
    run = with_gradients(pooled)
    with config.graph_passes(**{name: False}):
        made = check(run, x, f, b)
        assert name not in [stage for stage, _ in stages(made.graph)]


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("size", [2, 3])
def test_all_bits_are_those_of_eager_mode_on_numpy(size, padding, numpy_target):
    x, f, b = numbers(3, 13, 14, 2), numbers(3, 3, 2, 5), numbers(5)
    run = with_gradients(lambda x, f, b: pooled(x, f, b, size, padding))
    for a, e in zip(tw.function(run)(x, f, b), run(x, f, b), strict=True):
        np.testing.assert_array_equal(a.numpy(), e.numpy())


# ---------------------------------------------------------------------- whole networks


def test_a_training_step_of_a_convnet_agrees_with_eager_mode():
    x, y = numbers(16, 14, 14, 1), tw.one_hot(RNG.integers(0, 5, 16), 5)

    def trained(wrap):
        tw.random.set_seed(0)
        start = np.random.default_rng(1)
        shapes = [(3, 3, 1, 4), (4,), (3, 3, 4, 6), (6,), (24, 5)]
        weights = [
            tw.Variable(start.standard_normal(s).astype("f4") / 3) for s in shapes
        ]
        optimizer = tw.optimizers.Adam(0.01)

        def step(x, y):
            k1, b1, k2, b2, w = weights
            with tw.GradientTape() as tape:
                h = pooled(x, k1, b1)
                h = pooled(h, k2, b2)
                logits = tw.reshape(h, (16, 24)) @ w
                loss = tw.reduce_mean(
                    tw.nn.softmax_cross_entropy_with_logits(y, logits)
                )
            grads = tape.gradient(loss, weights)
            optimizer.apply_gradients(zip(grads, weights, strict=True))
            return loss

        step = wrap(step)
        losses = [step(x, y).numpy() for _ in range(8)]
        return losses, [w.numpy() for w in weights]

    losses, weights = trained(tw.function)
    expected_losses, expected = trained(lambda step: step)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    for a, b in zip(weights, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("window", "groups"), [(1, 1), (3, 1), (3, 6)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (0, 3, 1, 2)])
def test_an_input_is_turned_once_for_several_products(
    window, groups, order, numpy_target
):
    rng = np.random.default_rng(4)
    arrays = []
    for _ in range(2):
        x = rng.normal(size=(5, 9, 8, 6)).astype("float32")
        arrays.append(
            np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
        )
    filters = rng.normal(size=(window, window, 6 // groups, 6))
    filters = tw.constant(filters, "float32")

    @tw.function
    def step(x, g, filters):
        with tw.GradientTape() as tape:
            tape.watch([x, filters])
            y = tw.nn.conv2d(x, filters, 1, "SAME")
        return y, *tape.gradient(y, [x, filters], output_gradients=g)

    arguments = *map(tw.constant, arrays), filters
    program = step.get_concrete_function(*arguments).executable.program
    names = [each.name for each in program.instructions]
    expected = 0 if window == 1 else 1 if groups == 1 else 2
    assert names.count("turned_copy") == expected
    found, plain = step(*arguments), step.python_function(*arguments)
    for a, b in zip(found, plain, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
