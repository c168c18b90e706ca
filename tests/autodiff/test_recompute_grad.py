"""`recompute_grad`: the same gradients, with nothing of the forward pass kept."""

import functools
import gc
import weakref

import numpy as np
import pytest

import tapewright as tw


def test_recomputing_changes_no_gradient():
    w = tw.Variable([[1.0, 2.0], [3.0, 4.0]])

    def block(x, scale=1.0):
        return tw.tanh(tw.matmul(x, w)) * scale

    x = tw.Variable([[0.1, -0.2]])
    with tw.GradientTape(persistent=True) as tape:
        plain = block(x, scale=3.0)
        saved = tw.recompute_grad(block)(x, scale=3.0)
    np.testing.assert_array_equal(plain, saved)
    for a, b in zip(tape.gradient(plain, [x, w]), tape.gradient(saved, [x, w])):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_recomputing_keeps_nothing_of_the_forward_pass():
    kept = []

    def block(x):
        for _ in range(5):
            x = tw.exp(x * 0.1)  # whose rule keeps it
            kept.append(weakref.ref(x))
        return x

    x = tw.Variable([0.1, 0.2])
    gc.disable()
    try:
        with tw.GradientTape() as tape:
            y = tw.recompute_grad(block)(x)
        assert [r() for r in kept[:4]] == [None] * 4
        del y
        with tw.GradientTape() as tape:
            y = block(x)
        assert None not in [r() for r in kept[5:]]
        assert tape.gradient(y, x) is not None
    finally:
        gc.enable()


def test_recomputing_calls_the_function_once_more_for_each_gradient():
    calls = []

    def block(x):
        calls.append(1)
        return x * x

    x = tw.Variable(3.0)
    with tw.GradientTape(persistent=True) as tape:
        y = tw.recompute_grad(block)(x)
    assert len(calls) == 1
    assert tape.gradient(y, x).numpy() == 6.0 and len(calls) == 2
    assert tape.gradient(y, x).numpy() == 6.0 and len(calls) == 3


def test_the_second_order_of_what_is_recomputed_is_right():
    w = tw.Variable(2.0)
    x = tw.Variable(3.0)
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = tw.recompute_grad(lambda x: w * x**3)(x)
        g = inner.gradient(y, x)  # 3 w x^2
    assert g.numpy() == 54.0
    assert [d.numpy() for d in outer.gradient(g, [x, w])] == [36.0, 27.0]


def test_several_outputs_and_integers_can_be_recomputed():
    def block(x, n):
        return x * tw.cast(n, "float32"), n

    x, n = tw.Variable(3.0), tw.constant(4)
    with tw.GradientTape() as tape:
        y, m = tw.recompute_grad(block)(x, n)
    assert m.numpy() == 4
    assert tape.gradient(y, x).numpy() == 4.0


def test_recomputed_blocks_can_be_stacked_and_nested():
    block = tw.recompute_grad(tw.recompute_grad(lambda x: tw.sin(x) * x))
    x = tw.Variable(0.7, dtype="float64")
    with tw.GradientTape() as tape:
        y = block(block(x))
    inner = np.sin(0.7) * 0.7
    slope = np.cos(0.7) * 0.7 + np.sin(0.7)
    expected = (np.cos(inner) * inner + np.sin(inner)) * slope
    np.testing.assert_allclose(tape.gradient(y, x), expected)


def _derivatives(block, x):
    """The output, and its derivatives up to the third order."""
    with tw.GradientTape() as third:
        third.watch(x)
        with tw.GradientTape() as second:
            second.watch(x)
            with tw.GradientTape() as first:
                first.watch(x)
                y = block(x)
            g = first.gradient(y, x)
        h = second.gradient(g, x)
    return y, g, h, third.gradient(h, x)


def _draws_of_the_global_generator(x):
    for _ in range(2):
        x = tw.nn.dropout(x * x, 0.4)
    return x


def _draws_in_control_flow(x):
    for _ in tw.range(2):
        x = tw.nn.dropout(x * x, 0.2)
    return tw.cond(tw.reduce_sum(x) > 0, lambda: x * tw.random.uniform([6]), lambda: x)


def _draws_of_generators():
    generator = tw.random.Generator.from_seed(5)
    seeds = tw.keras.random.SeedGenerator(3)
    dropout = tw.keras.layers.Dropout(0.3, seed=4)

    def block(x):
        x = dropout(x * x * x, training=True) * generator.normal([6])
        return tw.keras.random.dropout(x, 0.3, seed=seeds)

    return block


@pytest.mark.parametrize(
    "block",
    [
        lambda: _draws_of_the_global_generator,
        lambda: _draws_in_control_flow,
        lambda: tw.function(_draws_of_the_global_generator),
        _draws_of_generators,
    ],
)
def test_what_is_recomputed_draws_the_same_numbers(block):
    x = tw.constant(np.linspace(1.0, 1.5, 6), "float32")

    def run(wrap, inside, outside):
        tw.random.set_seed(1)
        recomputed = inside(wrap(block()))
        step = outside(lambda x: _derivatives(recomputed, x))
        steps = [step(x), step(x), [tw.random.uniform([3])]]
        return [np.asarray(result) for results in steps for result in results]

    def as_it_is(f):
        return f

    expected = run(as_it_is, as_it_is, as_it_is)
    assert not np.allclose(expected[0], expected[4])  # each step draws anew
    jitted = functools.partial(tw.function, jit_compile=True)
    for inside, outside in [
        (as_it_is, as_it_is),
        (as_it_is, tw.function),
        (as_it_is, jitted),
        (tw.function, as_it_is),
    ]:
        for found, wanted in zip(
            run(tw.recompute_grad, inside, outside), expected, strict=True
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("traced", [False, True])
def test_assignments_in_what_is_recomputed_count_once(traced):
    def run(wrap):
        w = tw.Variable([1.0, 2.0])
        count = tw.Variable(1.0, trainable=False)

        def block(x):
            y = tw.tanh(x * w) * count
            w.assign(w * 0.5)
            count.assign_add(1.0)
            return y * w * (count + x)

        block = wrap(block)

        def step(x):
            with tw.GradientTape() as outer:
                outer.watch(x)
                with tw.GradientTape() as inner:
                    inner.watch(x)
                    y = block(x)
                by_x, by_w = inner.gradient(y, [x, w])
            return y, by_x, by_w, outer.gradient(by_x, x)

        step = tw.function(step) if traced else step
        x = tw.constant([0.3, 0.4])
        return [*step(x), *step(x), w, count]

    plain, recomputed = run(lambda f: f), run(tw.recompute_grad)
    assert plain[-1].numpy() == recomputed[-1].numpy() == 3.0
    for a, b in zip(plain, recomputed, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("options", [{"run_eagerly": True}, {}])
def test_a_recomputed_part_of_a_layer_trains_like_the_layer(options):
    layers = tw.keras.layers

    class Block(layers.Layer):
        def __init__(self, wrap):
            super().__init__()
            self.inner = [layers.BatchNormalization(), layers.Dropout(0.4, seed=1)]
            self.hidden = wrap(self.hidden_part)

        def hidden_part(self, x):
            for layer in self.inner:  # they train if the layer around does
                x = layer(x)
            return x

        def call(self, x):
            return self.hidden(x)

    def trained(wrap):
        tw.keras.utils.set_random_seed(0)
        model = tw.keras.Sequential([layers.Dense(3), Block(wrap), layers.Dense(1)])
        model.compile("sgd", "mse", **options)
        x = np.linspace(-1.0, 1.0, 24, dtype="float32").reshape(8, 3)
        losses = model.fit(
            x, x[:, :1], batch_size=4, epochs=2, verbose=0, shuffle=False
        )
        return [*losses.history["loss"], *model.get_weights()]

    for a, b in zip(trained(lambda f: f), trained(tw.recompute_grad), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_a_generator_of_the_trace_is_refused_unless_f_makes_it():
    def step(x, state, made_by_f):
        outside = tw.random.Generator.from_state(state)

        def block(x):
            inside = tw.random.Generator.from_state(state)
            return x * (inside if made_by_f else outside).normal([2])

        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.recompute_grad(block)(x)
        return y, tape.gradient(y, x)

    step = tw.function(step)
    x, state = tw.constant([1.0, 1.0]), tw.constant([4, 0], "int64")
    np.testing.assert_array_equal(*step(x, state, True))
    with pytest.raises(tw.errors.TracingError, match="outside of .*, or in f"):
        step(x, state, False)


def test_a_loss_inside_of_what_is_recomputed_is_refused():
    layer = tw.keras.layers.Dense(2, activity_regularizer="l2")
    x = tw.constant([[1.0, 2.0]])
    tw.recompute_grad(layer)(x)
    assert len(layer.losses) == 1
    with tw.GradientTape(), pytest.raises(ValueError, match="add_loss .* no gradient"):
        tw.recompute_grad(layer)(x)
