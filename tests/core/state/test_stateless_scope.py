"""Other values of variables: layers, metrics and code in a scope, and gradients by them."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras


@pytest.fixture
def model():
    model = tw.Sequential(
        [tw.Input((2,)), tw.layers.Dense(3), tw.layers.BatchNormalization(momentum=0.5)]
    )
    model.layers[0].bias.assign([1.0, 2.0, 3.0])
    return model


X = np.float32([[1.0, 2.0], [3.0, 5.0]])


def values_of(variables, factor=1):
    return [tw.constant(v.numpy() * factor) for v in variables]


def stateless(model, trained, rest):
    return model.stateless_call(trained, rest, tw.constant(X), training=True)


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_a_stateless_call_computes_with_the_values_and_keeps_the_variables(model, wrap):
    before = model.get_weights()
    trained = values_of(model.trainable_variables, 2)
    rest = values_of(model.non_trainable_variables, 3)
    call = wrap(lambda *values: stateless(model, values[:4], values[4:]))
    for _ in range(2):
        outputs, after = call(*trained, *rest)
        for old, new in zip(before, model.get_weights()):
            assert np.array_equal(old, new)
    twin = keras.models.clone_model(model)
    for variable, value in zip(twin.trainable_variables, trained):
        variable.assign(value)
    for variable, value in zip(twin.non_trainable_variables, rest):
        variable.assign(value)
    np.testing.assert_allclose(outputs, twin(X, training=True), rtol=1e-5)
    for value, variable in zip(after, twin.non_trainable_variables, strict=True):
        np.testing.assert_allclose(value, variable, rtol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_gradients_by_the_values_are_those_by_the_variables(model, wrap):
    rest = values_of(model.non_trainable_variables)

    def gradients(*trained):
        model.layers[0].bias.assign([1.0, 2.0, 3.0])  # as it is
        with tw.GradientTape() as tape:
            tape.watch(trained)
            loss = tw.reduce_sum(stateless(model, trained, rest)[0] ** 3)
        return tape.gradient(loss, trained)

    found = wrap(gradients)(*values_of(model.trainable_variables))
    with tw.GradientTape() as tape:
        loss = tw.reduce_sum(model(X, training=True) ** 3)
    expected = tape.gradient(loss, model.trainable_variables)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_values_that_follow_from_others_have_gradients():
    layer = tw.layers.Dense(1, use_bias=False)
    layer.build((None, 2))
    scale = tw.constant(3.0)
    with tw.GradientTape() as tape:
        tape.watch(scale)
        kernel = scale * tw.ones((2, 1))
        outputs, _ = layer.stateless_call([kernel], [], tw.constant(X))
    assert tape.gradient(outputs, scale).numpy() == X.sum()


def test_a_step_without_side_effects_trains(model):
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    trained = values_of(model.trainable_variables)
    rest = values_of(model.non_trainable_variables)
    state = values_of(optimizer.variables)
    losses = []
    for _ in range(5):
        with tw.GradientTape() as tape:
            tape.watch(trained)
            outputs, rest = stateless(model, trained, rest)
            loss = tw.reduce_mean((outputs - 1.0) ** 2)
        gradients = tape.gradient(loss, trained)
        trained, state = optimizer.stateless_apply(state, gradients, trained)
        losses.append(float(loss))
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.7 * losses[0]
    assert state[0].numpy() == 5 and optimizer.iterations.numpy() == 0


def test_a_metric_works_on_given_state():
    metric = keras.metrics.Mean()
    state = metric.stateless_reset_state()
    state = metric.stateless_update_state(state, [1.0, 2.0, 6.0])
    assert metric.stateless_result(state).numpy() == 3 and metric.result().numpy() == 0
    with pytest.raises(ValueError, match="metric_variables must have 2 values, got 1"):
        metric.stateless_result([1.0])


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_a_scope_undoes_all_assignments(wrap):
    mapped, other = tw.Variable(1.0), tw.Variable([1.0, 2.0])

    def run():
        with keras.StatelessScope([(mapped, 5.0)]) as scope:
            mapped.assign_add(1.0)
            other.assign_add([10.0, 10.0])
            scope.add_update((other, other * 2.0))
        return scope.get_current_value(mapped), scope.get_current_value(other)

    one, two = wrap(run)()
    assert one.numpy() == 6 and two.numpy().tolist() == [22, 24]
    assert mapped.numpy() == 1 and other.numpy().tolist() == [1, 2]


def under_a_tape(call, x):
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = call(x)
    return y, tape.gradient(y, x)


def under_an_accumulator(call, x):
    with tw.autodiff.ForwardAccumulator(x, tw.ones_like(x)) as accumulator:
        y = call(x)
    return y, accumulator.jvp(y)


@pytest.mark.parametrize("under", [under_a_tape, under_an_accumulator])
@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_a_call_whose_ops_are_recorded_undoes_assignments_too(wrap, under):
    mapped, other = tw.Variable(1.0), tw.Variable(2.0)

    def run(x):
        with keras.StatelessScope([(mapped, 5.0)]):
            mapped.assign_add(x)
            other.assign(x * 3.0)
            return mapped * x + other * x**2

    call, x = wrap(run), tw.constant(2.0)
    for _ in range(2):
        y, slope = under(call, x)
        assert y.numpy() == 38 and slope.numpy() == 31  # not through assignments
        assert mapped.numpy() == 1 and other.numpy() == 2
    assert call(x).numpy() == 38 and mapped.numpy() == 1 and other.numpy() == 2


def test_errors_leave_the_variables_as_they_were(model):
    before = model.get_weights()
    rest = values_of(model.non_trainable_variables)
    trained = values_of(model.trainable_variables, 2)
    with pytest.raises(ValueError):
        model.stateless_call(trained, rest, np.ones((2, 7), "float32"))
    with pytest.raises(
        ValueError, match="trainable_variables must have 4 values, got 3"
    ):
        model.stateless_call(trained[1:], rest, X)
    with pytest.raises(ValueError, match="shape"):
        model.stateless_call([tw.ones((5,)), *trained[1:]], rest, X)
    for old, new in zip(before, model.get_weights()):
        assert np.array_equal(old, new)
    with pytest.raises(ValueError, match="must be built before stateless_call"):
        tw.layers.Dense(1).stateless_call([], [], X)


def test_losses_are_returned_if_asked_for():
    layer = tw.layers.Dense(1, kernel_regularizer="l2", use_bias=False)
    layer.build((None, 2))
    kernel = [tw.ones((2, 1))]
    _, _, losses = layer.stateless_call(kernel, [], X, return_losses=True)
    assert losses[0].numpy() == pytest.approx(0.02)


def test_assignments_of_traced_functions_stay_inside():
    v = tw.Variable(1.0)
    add = tw.function(v.assign_add)
    draw = tw.function(lambda: tw.random.normal([2]))
    with tw.keras.StatelessScope() as scope:
        add(2.0)
        first = draw()
    assert v.numpy() == 1.0 and scope.get_current_value(v).numpy() == 3.0
    np.testing.assert_array_equal(first, draw())


@pytest.mark.parametrize("kernels_are_checked", [False, True])
def test_assignments_in_a_loop_of_a_traced_function_stay_inside(kernels_are_checked):
    v = tw.Variable(1.0)

    @tw.function
    def step(x):
        with tw.keras.StatelessScope():
            for _ in tw.range(2):
                v.assign(v + x)
                x = x * v
        return x

    if kernels_are_checked:  # the graph is interpreted
        tw.debugging.enable_check_numerics()
    try:
        assert step(2.0).numpy() == 54.0 and v.numpy() == 1.0
        with tw.GradientTape():
            assert step(2.0).numpy() == 54.0 and v.numpy() == 1.0
    finally:
        tw.debugging.disable_check_numerics()


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_a_step_of_an_optimizer_stays_inside(wrap):
    v = tw.Variable([1.0, 2.0])
    optimizer = keras.optimizers.SGD(0.5, momentum=0.5)
    step = wrap(lambda: optimizer.apply([tw.constant([1.0, 2.0])], [v]))
    step()
    state = [*optimizer.variables, v]
    before = [each.numpy().copy() for each in state]
    with keras.StatelessScope() as scope:
        step()
    assert scope.get_current_value(v).numpy().tolist() == [-0.25, -0.5]
    assert scope.get_current_value(optimizer.iterations).numpy() == 2
    for variable, value in zip(state, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    step()
    assert v.numpy().tolist() == [-0.25, -0.5]


def test_a_step_of_an_optimizer_in_a_scope_is_refused_in_a_trace():
    v = tw.Variable([1.0])
    optimizer = keras.optimizers.SGD()
    optimizer.build([v])

    @tw.function
    def step():
        with keras.StatelessScope():
            optimizer.apply([tw.constant([1.0])])

    with pytest.raises(TypeError, match="stateless_apply"):
        step()
    assert v.numpy() == 1.0
