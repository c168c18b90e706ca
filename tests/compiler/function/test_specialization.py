"""One trace for all sizes, and for all ranks: held against eager mode for each of some."""

import math
import threading
import warnings

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.function import specialization
from tapewright.core.shapes.symbolic_dim import NeedsSize

from ...rounding import assert_as_eager

pytestmark = pytest.mark.gpu_first

Spec = tw.TensorSpec
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def weights(device):
    """Make the variables and the constant that all tests share, on their device."""
    global W, BIAS, ROW, FILTERS
    W = tw.Variable(RNG.standard_normal((4, 3)), dtype=tw.float32)
    BIAS = tw.Variable(RNG.standard_normal(3), dtype=tw.float32)
    ROW = tw.Variable(RNG.standard_normal((1, 3)), dtype=tw.float32)
    FILTERS = tw.constant(RNG.standard_normal((3, 3, 2, 5)), dtype=tw.float32)


def sample(spec, n, shape=None):
    """Values for a spec with ``n`` for its first axis, and others for further open ones."""
    if shape is None:
        sizes = [n, 5, 6, 7]
        shape = [s if d is None else d for d, s in zip(spec.shape, sizes)]
    if spec.dtype.is_integer:
        return tw.constant(RNG.integers(0, 3, shape), dtype=spec.dtype)
    return tw.constant(RNG.standard_normal(shape), dtype=spec.dtype)


def with_gradient(f):
    """The gradient by all arguments and variables, inside the function."""

    def gradients(*inputs):
        with tw.GradientTape() as tape:
            tape.watch([x for x in inputs if x.dtype.is_floating])
            y = f(*inputs)
        found = tape.gradient(y, [*inputs, W, BIAS, ROW])
        return [tw.convert_to_tensor(g) for g in found if g is not None]

    return gradients


def check(f, specs, sizes=(3, 1, 5), traces=1, same=None, shapes=None):
    """The traced function gives what the plain one does, for each size."""
    specs = [s if isinstance(s, Spec) else Spec(s) for s in specs]
    traced = tw.function(f, input_signature=specs)
    for n in shapes or sizes:
        inputs = [sample(s, n, n if shapes else None) for s in specs]
        wanted, got = tw.nest.flatten(f(*inputs)), tw.nest.flatten(traced(*inputs))
        for x, y in zip(wanted, got, strict=True):
            assert x.shape == y.shape and x.dtype == y.dtype
            np.testing.assert_allclose(y, x, rtol=2e-5, atol=2e-6)
    if traces is not None:
        assert traced.experimental_get_tracing_count() == traces
    return traced


X = [None, 4]
LABELS = Spec([None], "int32")
IMAGES = [None, 8, 8, 2]
SEQUENCES = [None, 6, 4]


SMOOTH = {
    "dense": ([X], lambda x: tw.nn.relu(x @ W + BIAS)),
    "row": ([X], lambda x: x @ W + ROW),
    "softmax": ([X], lambda x: tw.reduce_mean(tw.nn.softmax(x @ W) ** 2)),
    "cross entropy": (
        [X, LABELS],
        lambda x, y: tw.losses.SparseCategoricalCrossentropy(from_logits=True)(
            y, x @ W
        ),
    ),
    "mean squared error": ([X, X], lambda x, y: tw.losses.MeanSquaredError()(x, y)),
    "mean over the batch": ([X], lambda x: x - tw.reduce_mean(x, 0, keepdims=True)),
    "moments": ([X], lambda x: tw.nn.moments(x, [0])[1]),
    "variance": ([X], lambda x: tw.math.reduce_variance(x, 0)),
    "maxima": ([X], lambda x: tw.reduce_max(x, 1) + tw.reduce_max(x)),
    "logsumexp": ([X], lambda x: tw.reduce_logsumexp(x, [0, 1])),
    "product": ([X], lambda x: tw.reduce_prod(x, 1)),
    "convolution": ([IMAGES], lambda x: tw.nn.conv2d(x, FILTERS, 1, "SAME")),
    "strides": ([IMAGES], lambda x: tw.nn.conv2d(x, FILTERS, 2, "VALID")),
    "max pool": ([IMAGES], lambda x: tw.nn.max_pool2d(x, 2, 2, "VALID")),
    "average pool": ([IMAGES], lambda x: tw.nn.avg_pool2d(x, 3, 2, "SAME")),
    "images of any size": (
        [[None, None, None, 2]],
        lambda x: tw.reduce_mean(
            tw.nn.relu(tw.nn.conv2d(x, FILTERS, 1, "SAME")), [1, 2]
        ),
    ),
    "attention": (
        [SEQUENCES, SEQUENCES],
        lambda q, k: tw.nn.softmax(tw.matmul(q, k, transpose_b=True) / 2.0) @ k,
    ),
    "self attention": (
        [[None, None, 4]],
        lambda q: tw.nn.softmax(tw.matmul(q, q, transpose_b=True) / 2.0) @ q,
    ),
    "gather": ([LABELS], lambda i: tw.gather(W, i)),
    "concat along the batch": ([X], lambda x: tw.concat([x, x * 2.0], 0) * 1.5),
    "concat": ([X], lambda x: tw.concat([x, x * 2.0], 1)),
    "split": ([X], lambda x: math.prod(tw.split(x, 2, axis=1))),
    "stack": ([X], lambda x: tw.stack([x, x * x], 1)),
    "unstack": ([X], lambda x: sum(tw.unstack(x * x, axis=1))),
    "pad": ([X], lambda x: tw.pad(x * x, [[1, 2], [0, 1]])),
    "tile": ([X], lambda x: tw.tile(x, [2, 3])),
    "einsum": ([SEQUENCES], lambda x: tw.einsum("bti,bsi->bts", x, x)),
    "matmul of itself": ([X], lambda x: tw.matmul(x, x, transpose_a=True)),
    "both dimensions open": ([[None, None], [None, None]], lambda x, y: x * y),
    "where": ([X], lambda x: tw.where(x > 0, x, tw.zeros_like(x))),
    "cumsum": ([X], lambda x: tw.cumsum(x, axis=0)),
    "top_k": ([X], lambda x: tw.math.top_k(x, 2).values),
    "sort": ([X], lambda x: tw.sort(x, axis=1)),
    "reverse": ([X], lambda x: x[::-1] * x),
    "every second row": ([X], lambda x: x[::2] ** 2),
    "roll": ([X], lambda x: tw.roll(x, 1, axis=0) * x),
    "clip_by_norm": ([X], lambda x: tw.clip_by_norm(x, 1.0)),
    "map_fn": ([X], lambda x: tw.map_fn(lambda row: row * tw.reduce_sum(row), x)),
    "cond": ([X], lambda x: tw.cond(tw.reduce_sum(x) > 0, lambda: x * x, lambda: -x)),
    "loop": (
        [X],
        lambda x: tw.while_loop(
            lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [tw.constant(0), x]
        )[1],
    ),
}


# -------------------------------------------------------------- one trace for all sizes


@pytest.mark.parametrize("name", SMOOTH)
def test_one_trace_gives_what_eager_mode_gives_for_every_size(name):
    specs, f = SMOOTH[name]
    check(f, specs)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_inside_are_those_of_eager_mode_for_every_size(name):
    specs, f = SMOOTH[name]
    check(with_gradient(f), specs)


SHAPES = {
    "reshape": ([X], lambda x: tw.reshape(x, [tw.shape(x)[0], -1])),
    "reshape to the rest": ([[None, 2, 2]], lambda x: tw.reshape(x, [-1, 4]) @ W),
    "shape of the tensor": ([[None, 2, 2]], lambda x: tw.reshape(x, [x.shape[0], 4])),
    "flat": ([[None, 2, 2]], lambda x: tw.reshape(x, [-1])),
    "zeros": ([X], lambda x: x[:, :3] + tw.zeros([tw.shape(x)[0], 3])),
    "ones": ([X], lambda x: x * tw.ones(tw.shape(x))),
    "fill": ([X], lambda x: x + tw.fill([tw.shape(x)[0], 4], 2.0)),
    "range": ([X], lambda x: x * tw.cast(tw.range(tw.shape(x)[0]), x.dtype)[:, None]),
    "range of two": ([X], lambda x: tw.range(1, 2 * tw.shape(x)[0], 2)),
    "eye": ([X], lambda x: tw.eye(tw.shape(x)[0]) @ x),
    "broadcast_to": ([X], lambda x: tw.broadcast_to(tw.reduce_sum(x), tw.shape(x))),
    "mean by hand": (
        [X],
        lambda x: tw.reduce_sum(x) / tw.cast(tw.shape(x)[0], x.dtype),
    ),
    "mean by size": ([X], lambda x: tw.reduce_sum(x) / tw.cast(tw.size(x), x.dtype)),
    "mean by x.shape": ([X], lambda x: tw.reduce_sum(x) / x.shape[0]),
    "stack of sizes": ([X], lambda x: tw.reshape(x, tw.stack([tw.shape(x)[0] * 2, 2]))),
    "concat of shapes": (
        [X],
        lambda x: tw.reshape(x, tw.concat([tw.shape(x)[:1], [2, 2]], 0)),
    ),
    "product of a shape": ([X], lambda x: tw.reshape(x, [tw.reduce_prod(tw.shape(x))])),
    "half of the rows": ([X], lambda x: x[: (tw.shape(x)[0] + 1) // 2]),
    "the shape itself": ([X], lambda x: tw.shape(x)),
    "sizes as numbers": ([X], lambda x: tw.shape(x)[0] * 2 + tw.size(x) % 3),
    "one_hot": ([X], lambda x: tw.one_hot(tw.argmax(x, 1), tw.shape(x)[1])),
    "mask": (
        [[None, None, 4], LABELS],
        lambda x, n: tw.reduce_sum(
            x * tw.sequence_mask(n, tw.shape(x)[1], x.dtype)[:, :, None], 1
        ),
    ),
    "loop over rows": (
        [X],
        lambda x: tw.while_loop(
            lambda i, a: i < tw.shape(x)[0],
            lambda i, a: (i + 1, a + tw.gather(x, i)),
            [tw.constant(0), tw.zeros([4])],
        )[1],
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_arithmetic_on_shapes_holds_for_every_size(name):
    specs, f = SHAPES[name]
    check(f, specs)


def test_random_numbers_of_an_open_shape_are_those_of_eager_mode():
    check(lambda x: x + tw.random.stateless_normal(tw.shape(x), [1, 2]), [X])
    check(lambda x: tw.nn.experimental.stateless_dropout(x, 0.5, [1, 2]), [X])


def test_second_order_inside_holds_for_every_size():
    def f(x):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = tw.reduce_sum(tw.tanh(x @ W) ** 3)
            g = tape.gradient(y, x)
        return outer.gradient(g, x)

    check(f, [X])


def test_a_batch_jacobian_inside_holds_for_every_size():
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.tanh(x @ W)
        return tape.batch_jacobian(y, x)

    check(f, [X])


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_from_outside_hold_for_every_size(order):
    traced = tw.function(lambda x: tw.tanh(x @ W), input_signature=[Spec(X)])

    def gradient(f, x):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            g = tape.gradient(y, x)
        return g if order == 1 else outer.gradient(g, x)

    for n in (3, 1, 5):
        x = sample(Spec(X), n)
        wanted = gradient(traced.python_function, x)
        np.testing.assert_allclose(gradient(traced, x), wanted, rtol=1e-5, atol=1e-6)
    assert traced.experimental_get_tracing_count() == 1


def test_a_train_step_of_any_batch_size_is_that_of_eager_mode():
    # With 64 classes or less, eager gradients of the loss lie transposed in memory, and
    # NumPy sums them in another order.
    def network():
        model = tw.Sequential(
            [tw.layers.Dense(8, activation="relu"), tw.layers.Dense(65)]
        )
        model(tw.zeros([1, 4]))
        return model, tw.optimizers.Adam(0.01)

    loss = tw.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step_of(model, optimizer):
        def step(x, y):
            with tw.GradientTape() as tape:
                value = loss(y, model(x))
            gradients = tape.gradient(value, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return value

        return step

    (model, optimizer), (other, its_optimizer) = network(), network()
    for variable, value in zip(model.trainable_variables, other.trainable_variables):
        variable.assign(value)
    step = step_of(model, optimizer)
    traced = tw.function(
        step_of(other, its_optimizer), input_signature=[Spec(X), LABELS]
    )
    counts = []
    for n in (3, 1, 64, 65, 3):
        x, y = sample(Spec(X), n), sample(LABELS, n)
        assert_as_eager(traced(x, y), step(x, y), ulps=64)
        counts.append(traced.experimental_get_tracing_count())
    assert counts == [counts[0]] * 5  # two: the slots are made in the first
    for variable, value in zip(model.trainable_variables, other.trainable_variables):
        assert_as_eager(value, variable, ulps=64)


def test_batch_normalization_updates_its_moments_for_every_size():
    layer, other = tw.layers.BatchNormalization(), tw.layers.BatchNormalization()
    layer(tw.zeros([2, 4])), other(tw.zeros([2, 4]))
    traced = tw.function(lambda x: layer(x, training=True), input_signature=[Spec(X)])
    for n in (3, 5, 4):
        x = sample(Spec(X), n)
        np.testing.assert_allclose(traced(x), other(x, training=True), rtol=1e-5)
        np.testing.assert_allclose(layer.moving_mean, other.moving_mean, rtol=1e-6)
    assert traced.experimental_get_tracing_count() == 1


# ----------------------------------------------------------------- what a trace assumes


def test_sizes_asked_for_are_traced_for_again():
    def f(x):
        return x * 2.0 if x.shape[0] == 1 else x * 3.0

    traced = check(f, [X], sizes=(3, 1, 5, 1, 7), traces=2)
    assert traced(tw.ones([1, 4])).numpy()[0, 0] == 2.0


def test_a_size_that_picks_the_code_has_a_trace_for_each_choice():
    def f(x):
        return tw.reduce_sum(x, 0) if x.shape[0] < 10 else tw.reduce_mean(x, 0)

    check(f, [X], sizes=(3, 12, 5, 40, 9, 10), traces=2)


def test_slices_reach_over_the_end_for_small_sizes():
    check(lambda x: x[:4] * 2.0, [X], sizes=(3, 9, 4, 2, 11), traces=2)
    check(lambda x: x[-2:] * 2.0, [X], sizes=(3, 9, 1, 2), traces=None)
    check(lambda x: x[1:] - x[:-1], [X], sizes=(3, 9, 1, 2), traces=1)


def test_a_dimension_that_must_be_a_certain_number_is_found_to_be_it():
    traced = check(lambda x: x @ W, [[None, None]], sizes=(), traces=0)
    assert traced(tw.ones([2, 4])).shape == (2, 3)
    assert traced(tw.ones([7, 4])).shape == (7, 3)
    assert traced.experimental_get_tracing_count() == 1
    with pytest.raises(tw.errors.ShapeError, match="inner dimensions"):
        traced(tw.ones([2, 5]))


def test_an_open_dimension_broadcasts_when_it_is_one():
    traced = tw.function(lambda x, y: x + y, input_signature=[Spec(X), Spec(X)])
    assert traced(tw.ones([3, 4]), tw.ones([3, 4])).shape == (3, 4)
    assert traced(tw.ones([3, 4]), tw.ones([1, 4])).shape == (3, 4)
    assert traced(tw.ones([1, 4]), tw.ones([5, 4])).shape == (5, 4)
    with pytest.raises(tw.errors.ShapeError, match="broadcast"):
        traced(tw.ones([2, 4]), tw.ones([3, 4]))


def test_arguments_beside_the_signature_are_refused():
    traced = tw.function(lambda x: x, input_signature=[Spec(X)])
    with pytest.raises(TypeError, match=r"'x'.*shape \(None, 4\)"):
        traced(tw.ones([2, 5]))


def test_wrong_sizes_raise_what_eager_mode_raises():
    loss = tw.nn.sparse_softmax_cross_entropy_with_logits
    traced = tw.function(lambda x, y: loss(y, x @ W), input_signature=[Spec(X), LABELS])
    traced(tw.ones([3, 4]), [0, 1, 2])
    with pytest.raises(tw.errors.ShapeError, match="labels .*logits"):
        traced(tw.ones([3, 4]), [0, 1])


def test_an_error_of_the_users_own_comes_through():
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tw.function(f, input_signature=[Spec(X)])(tw.ones([2, 4]))


# ---------------------------------------------------------- where one trace will not do


def sum_of_rows(x):
    total = 0.0
    for i in range(x.shape[0]):
        total = total + x[i]
    return total


def test_code_that_needs_a_size_is_traced_for_each():
    traced = check(sum_of_rows, [X], sizes=(3, 2, 5, 3, 2), traces=3)
    family = traced.get_concrete_function().specializations
    assert "test_specialization.py" in family.reason and "range()" in family.reason


def test_many_traces_for_a_size_each_give_one_warning():
    traced = tw.function(sum_of_rows, input_signature=[Spec(X)])
    with pytest.warns(UserWarning, match=r"test_specialization.py:\d+: .*size") as told:
        for n in range(1, 12):
            traced(tw.ones([n, 4]))
    assert len(told) == 1


def test_code_that_needs_a_size_has_no_outputs_before_it_is_called():
    concrete = tw.function(
        sum_of_rows, input_signature=[Spec(X)]
    ).get_concrete_function()
    with pytest.raises(
        tw.errors.TracingError, match=r"test_specialization.py:\d+: .*range\(\)"
    ):
        concrete.structured_outputs  # noqa: B018
    for n in (3, 1):
        x = tw.random.normal((n, 4))
        np.testing.assert_array_equal(concrete(x), sum_of_rows(x))
        np.testing.assert_array_equal(concrete.flat_call([x])[0], sum_of_rows(x))
    assert "depends on the sizes" in str(concrete) and "x: " in str(concrete)


def test_a_size_does_not_outlive_its_trace():
    kept = []

    def f(x):
        kept.append(x.shape[0])
        return x

    tw.function(f, input_signature=[Spec(X)])(tw.ones([2, 4]))
    with pytest.raises(NeedsSize, match="after its function was traced"):
        tw.constant([1.0, 2.0]) * kept[0]


def test_an_error_that_no_size_would_mend_is_raised_by_get_concrete_function():
    traced = tw.function(lambda x: x.no_such_attribute)
    with pytest.raises(AttributeError, match="no_such_attribute"):
        traced.get_concrete_function(tw.TensorSpec([None]))


# ------------------------------------------------------------------------- unknown rank


@tw.custom_gradient
def clip_gradient(y):
    return y, lambda g: tw.clip_by_norm(g, 0.5)


RANKS = [(), (3,), (2, 3), (2, 3, 4), (1,)]
ANY_RANK = {
    "arithmetic": lambda x: tw.sin(x) * 2.0 + x**3,
    "sum": lambda x: tw.reduce_sum(x * x),
    "mean": lambda x: tw.reduce_mean(x * x),
    "maximum": lambda x: tw.reduce_max(x),
    "logsumexp": lambda x: tw.reduce_logsumexp(x),
    "variance": lambda x: tw.math.reduce_variance(x),
    "norm": lambda x: tw.norm(x),
    "where": lambda x: tw.where(x > 0, x, tw.zeros_like(x)),
    "cast": lambda x: tw.cast(x, tw.float64) * 2.0,
    "clip_by_norm": lambda x: tw.clip_by_norm(x, 1.0),
    "clip_by_value": lambda x: tw.clip_by_value(x, -1.0, 1.0),
    "clip_by_global_norm": lambda x: tw.clip_by_global_norm([x, x * 2.0], 1.0)[0],
    "custom gradient": lambda x: clip_gradient(x * 3.0) ** 2,
    "activations": lambda x: tw.nn.sigmoid(x) + tw.nn.relu(x) + tw.nn.softplus(x),
    "flat": lambda x: tw.reshape(x, [-1]) ** 2,
    "size": lambda x: tw.reduce_sum(x) / tw.cast(tw.size(x), x.dtype),
    "ones_like": lambda x: tw.ones_like(x) * x,
}


@pytest.mark.parametrize("name", ANY_RANK)
def test_one_trace_serves_all_ranks(name):
    check(ANY_RANK[name], [None], shapes=RANKS)


@pytest.mark.parametrize("name", ANY_RANK)
def test_gradients_inside_serve_all_ranks(name):
    check(with_gradient(ANY_RANK[name]), [None], shapes=RANKS)


def test_two_arguments_of_one_rank_share_a_trace():
    f = with_gradient(lambda x, y: x * y + tw.reduce_sum(x))
    check(f, [None, None], shapes=RANKS)


def test_code_that_asks_for_the_rank_is_traced_for_each_rank():
    def f(x):
        return tw.reduce_sum(x, axis=-1)

    shapes = [(3,), (2, 3), (5,), (4, 3), (1, 2), (2, 3, 4)]
    traced = check(f, [None], shapes=shapes, traces=3)
    assert (
        "rank"
        in traced._find(
            traced.signature.arguments((tw.ones(3),), {})
        ).specializations.reason
    )


def test_an_unknown_shape_shows_itself_as_unknown():
    shown = []

    def f(x):
        shown.append((str(x.shape), x.shape.rank, x.shape.is_fully_defined()))
        return x

    tw.function(f, input_signature=[Spec(None)])(tw.ones([2]))
    assert shown == [("<unknown>", None, False)]


# ----------------------------------------------------------------- shapes, as they show


def test_an_open_dimension_shows_itself_as_none():
    shown = []

    def f(x):
        shape = x.shape
        shown.append(
            (str(shape), shape.as_list(), shape.is_fully_defined(), shape.rank)
        )
        shown.append((str(x.shape[0]), x.shape[0] == None, x.shape[1:]))  # noqa: E711
        shown.append((f"{x}", shape.num_elements(), shape == [None, 4]))
        return x

    tw.function(f, input_signature=[Spec(X)])(tw.ones([2, 4]))
    assert shown == [
        ("(None, 4)", [None, 4], False, 2),
        ("None", True, (4,)),
        ('Tensor("x:0", shape=(None, 4), dtype=float32)', None, True),
    ]


def test_a_tensor_of_unknown_rank_prints_no_shape():
    shown = []
    traced = tw.function(lambda x: shown.append(str(x)) or x)
    traced.get_concrete_function(tw.TensorSpec(None, tw.string))
    assert shown == ['Tensor("x:0", dtype=string)']


def test_known_dimensions_of_an_open_shape_are_plain_numbers():
    def f(x):
        assert type(x.shape[1]) is int and tw.shape(x)[1].numpy() == 4
        assert [0] * int(tw.shape(x)[1]) == [0] * 4
        return x

    check(f, [X])


def test_sizes_are_tensors_of_the_dtype_asked_for():
    check(lambda x: (tw.shape(x, tw.int64), tw.size(x, tw.int64)), [X])
    check(lambda x: tw.cast(tw.shape(x), tw.float64) * 0.5, [X])
    check(lambda x: tw.constant([1.0, 2.0]) * tw.cast(tw.shape(x)[0], tw.float32), [X])


def test_a_number_that_follows_from_a_size_takes_the_dtype_beside_it():
    check(lambda x: x * (1.0 / x.shape[0]), [Spec(X, tw.float64)])
    check(lambda x: x * x.shape[0], [Spec(X, tw.float64)])


# --------------------------------------------------------------- functions in functions


def test_an_open_function_within_an_open_one_takes_its_sizes():
    inner = tw.function(lambda x: tw.tanh(x @ W), input_signature=[Spec(X)])
    check(lambda x: inner(x) * 2.0 + inner(x[:1]), [X])


def test_a_plain_function_within_an_open_one_takes_its_sizes():
    inner = tw.function(lambda x: x / tw.cast(tw.shape(x)[0], x.dtype))
    outer = tw.function(lambda x: inner(x) + inner(x * 2.0), input_signature=[Spec(X)])
    for n in (3, 1, 4):
        assert np.allclose(outer(tw.ones([n, 4])), 3 / n)
    assert outer.experimental_get_tracing_count() == 1
    assert inner(tw.ones([2])).numpy().tolist() == [0.5, 0.5]


def test_an_open_function_within_one_of_a_fixed_size():
    inner = tw.function(lambda x: tw.reduce_mean(x, 0), input_signature=[Spec(X)])
    outer = tw.function(lambda x: inner(x) + 1.0)
    for n in (3, 5):
        assert outer(tw.ones([n, 4])).numpy().tolist() == [2.0] * 4


# ---------------------------------------------------------------- keeping and replaying


def test_reduce_retracing_leaves_dimensions_open_that_vary():
    traced = tw.function(lambda x: x * 2.0 + tw.reduce_mean(x), reduce_retracing=True)
    for n in (2, 3, 4, 5, 1):
        wanted = np.full((n, 3), 3.0, np.float32)
        np.testing.assert_array_equal(traced(tw.ones([n, 3])), wanted)
    assert traced.experimental_get_tracing_count() == 2


def test_a_size_that_comes_again_takes_the_executable_that_was_made():
    traced = tw.function(lambda x: x * 2.0, input_signature=[Spec(X)])
    traced(tw.ones([3, 4]))
    family = traced.get_concrete_function().specializations
    first = family.latest
    traced(tw.ones([5, 4]))
    traced(tw.ones([3, 4]))
    assert family.latest is first


def test_executables_are_kept_for_the_latest_sizes_only(monkeypatch):
    monkeypatch.setattr(specialization, "MANY_SIZES", 32)
    traced = tw.function(lambda x: x * 2.0, input_signature=[Spec(X)])
    for n in range(1, 50):
        assert traced(tw.ones([n, 4])).shape == (n, 4)
    family = traced.get_concrete_function().specializations
    assert len(family._fixed) == 32
    assert traced.experimental_get_tracing_count() == 1


def test_threads_share_one_trace():
    traced = tw.function(lambda x: tw.reduce_sum(x, 1), input_signature=[Spec(X)])
    failures = []

    def work(seed):
        for n in np.random.default_rng(seed).integers(1, 9, 20):
            if traced(tw.ones([int(n), 4])).numpy().tolist() != [4.0] * n:
                failures.append(n)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and traced.experimental_get_tracing_count() == 1


def test_an_empty_batch_is_a_size_like_any_other():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(lambda x: tw.nn.relu(x @ W), [X], sizes=(3, 0, 2))
        check(lambda x: tw.reduce_sum(x, 0), [X], sizes=(0, 3, 0))
