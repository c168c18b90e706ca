"""`LossScaleOptimizer`: scales, infinities, state, configs."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import optimizers
from tapewright.optimizers import SGD, Adam, LossScaleOptimizer

from .steps import run, variable


def test_a_loss_is_scaled_and_its_gradient_scaled_back():
    v, optimizer = variable(1.0, 2.0), SGD(1.0, loss_scale_factor=1024.0)
    with tw.GradientTape() as tape:
        loss = optimizer.scale_loss(tw.reduce_sum(v))
    assert float(loss) == 3072.0
    optimizer.apply(tape.gradient(loss, [v]), [v])
    assert v.numpy().tolist() == [0.0, 1.0]
    assert SGD().scale_loss(3.0) == 3.0


def test_what_is_clipped_is_scaled_back_first():
    v = variable(0.0, 0.0)
    run(SGD(1.0, loss_scale_factor=2.0, clipnorm=5.0), [v], [[6.0, 8.0]])
    assert v.numpy().tolist() == [-3.0, -4.0]


def test_a_scaled_sparse_gradient_is_scaled_back():
    v = tw.Variable(np.zeros((4, 2), np.float32))
    rows = tw.IndexedSlices(tw.ones((2, 2)), tw.constant([1, 1]), (4, 2))
    SGD(1.0, loss_scale_factor=4.0).apply([rows], [v])
    assert v.numpy()[:, 0].tolist() == [0.0, -0.5, 0.0, 0.0]


@pytest.mark.parametrize("traced", [False, True])
def test_a_dynamic_scale_halves_and_skips_at_infinity_and_doubles_after_a_while(traced):
    v = variable(1.0)
    inner = SGD(1.0)
    optimizer = LossScaleOptimizer(inner, 8.0, dynamic_growth_steps=2)
    scales = []
    for gradient in (8.0, np.inf, 4.0, 4.0, 8.0):
        run(optimizer, [v], [[gradient]], traced=traced)
        scales.append(float(optimizer.dynamic_scale))
    assert scales == [8.0, 4.0, 4.0, 8.0, 8.0]
    assert v.numpy() == 1.0 - 1 - 1 - 1 - 1
    assert inner.iterations.numpy() == optimizer.iterations.numpy() == 4


def stepper(optimizer, v, traced):
    """A function that applies one gradient."""

    def step(gradient):
        optimizer.apply([gradient], [v])

    step = tw.function(step) if traced else step
    return lambda gradient: step(tw.constant([gradient]))


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_row_of_bad_batches_leaves_a_scale_of_1_that_grows_again(traced, bad):
    v = variable(1.0)
    optimizer = LossScaleOptimizer(SGD(1.0), dynamic_growth_steps=1)
    step = stepper(optimizer, v, traced)
    for _ in range(200):  # 2**15 / 2**200 is 0 in float32
        step(bad)
    assert float(optimizer.dynamic_scale) == 1.0 and v.numpy() == 1.0
    for gradient in (1.0, 2.0, 4.0):
        step(gradient)
    assert float(optimizer.dynamic_scale) == 8.0 and v.numpy() == 1.0 - 3.0


@pytest.mark.parametrize("traced", [False, True])
def test_a_scale_that_begins_below_1_is_not_halved(traced):
    optimizer = LossScaleOptimizer(SGD(1.0), 0.25, dynamic_growth_steps=1)
    step, scales = stepper(optimizer, variable(1.0), traced), []
    for gradient in (np.inf, 1.0, np.inf, np.inf):
        step(gradient)
        scales.append(float(optimizer.dynamic_scale))
    assert scales == [0.25, 0.5, 0.25, 0.25]


@pytest.mark.parametrize("traced", [False, True])
def test_a_scale_that_grows_forever_stays_finite(traced):
    v = variable(1.0)
    optimizer = LossScaleOptimizer(SGD(1.0), 2.0**120, dynamic_growth_steps=1)
    step = stepper(optimizer, v, traced)
    for _ in range(20):
        step(2.0)
    assert float(optimizer.dynamic_scale) == 2.0**127
    step(2.0**127)
    assert v.numpy() == 0.0
    step(np.inf)
    assert float(optimizer.dynamic_scale) == 2.0**126


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("scale", [0.0, np.inf, np.nan, -1.0])
def test_a_restored_scale_that_no_step_can_use_is_set_back(traced, scale):
    v = variable(1.0)
    optimizer = LossScaleOptimizer(SGD(1.0), 8.0)
    optimizer.build([v])
    optimizer.dynamic_scale.assign(scale)
    step = stepper(optimizer, v, traced)
    step(3.0)  # a gradient of an unknown scale
    assert float(optimizer.dynamic_scale) == 8.0 and v.numpy() == 1.0
    step(8.0)
    assert v.numpy() == 0.0


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan, 1e300, 1e-300])
def test_a_scale_must_be_a_positive_float32(scale):
    with pytest.raises(ValueError, match="initial_scale must be a positive float32"):
        LossScaleOptimizer(SGD(), scale)


def test_a_traced_step_reads_the_scale_of_its_time():
    v = variable(2.0)
    optimizer = LossScaleOptimizer(SGD(0.25), 4.0, dynamic_growth_steps=1)

    @tw.function
    def step():
        with tw.GradientTape() as tape:
            loss = optimizer.scale_loss(tw.reduce_sum(v * v))
        optimizer.apply(tape.gradient(loss, [v]), [v])
        return loss

    assert [float(step()) for _ in range(3)] == [16.0, 8.0, 4.0]
    assert v.numpy() == 0.25


def test_finite_gradients_whose_sum_runs_over_are_taken():
    v = tw.Variable(np.zeros(2, np.float16))
    g = tw.constant(np.array([60000.0, 60000.0], np.float16))
    LossScaleOptimizer(SGD(1.0), 32768.0).apply([g], [v])
    assert (v.numpy() < 0).all()


def test_a_dynamic_scale_lists_its_state_before_that_of_the_inner_optimizer():
    optimizer = LossScaleOptimizer(SGD(momentum=0.5))
    optimizer.build([variable(1.0)])
    assert [v.path for v in optimizer.variables] == [
        "loss_scale_optimizer/iteration",
        "loss_scale_optimizer/learning_rate",
        "loss_scale_optimizer/step_counter",
        "loss_scale_optimizer/dynamic_scale",
        "sgd/iteration",
        "sgd/learning_rate",
        "sgd/v_momentum",
    ]


def test_a_dynamic_scale_hands_the_rest_to_the_inner_optimizer():
    v = variable(2.0)
    optimizer = LossScaleOptimizer(SGD(0.5, use_ema=True, weight_decay=0.1))
    optimizer.exclude_from_weight_decay(var_list=[v])
    optimizer.build([v])
    assert optimizer._tw_excluded_from_weight_decay() == [v]
    optimizer.learning_rate = 0.25
    assert float(optimizer.learning_rate) == 0.25
    run(optimizer, [v], [[32768.0]])
    assert v.numpy() == 1.75
    v.assign([9.0])
    optimizer.finalize_variable_values([v])
    assert v.numpy() == 1.75


def test_iterations_are_those_of_an_inner_optimizer_that_accumulates():
    optimizer = LossScaleOptimizer(SGD(1.0, gradient_accumulation_steps=2))
    run(optimizer, [variable(1.0)], *[[[1.0]]] * 4)
    assert int(optimizer.iterations) == 2


def test_a_traced_step_has_the_learning_rate_assigned_before_it():
    v, optimizer = variable(0.0), LossScaleOptimizer(SGD(1.0), 1.0)

    @tw.function
    def step(rate):
        optimizer.learning_rate.assign(rate)
        optimizer.apply([tw.ones(1)], [v])

    step(tw.constant(0.5))
    step(tw.constant(0.25))
    assert v.numpy() == -0.75


def test_a_dynamic_scale_comes_back_from_its_config():
    optimizer = LossScaleOptimizer(Adam(0.5), 4.0, 7, name="mine")
    twin = optimizers.deserialize(optimizers.serialize(optimizer))
    assert twin.get_config() == optimizer.get_config()
    assert type(twin.inner_optimizer) is Adam


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"clipnorm": 1.0}, ValueError, "'clipnorm'"),
        ({"dynamic": False}, ValueError, "dynamic .*True"),
        ({"speed": 1.0}, ValueError, "`speed`"),
    ],
)
def test_a_dynamic_scale_refuses_options_of_the_inner_optimizer(
    arguments, error, message
):
    with pytest.raises(error, match=message):
        LossScaleOptimizer(SGD(), **arguments)
    LossScaleOptimizer(SGD(), clipnorm=None, use_ema=False, dynamic=True)
    with pytest.raises(TypeError, match="inner_optimizer .*got 'sgd'"):
        LossScaleOptimizer("sgd")


def test_one_inside_another_divides_by_both_scales():
    v = variable(1.0)
    optimizer = LossScaleOptimizer(LossScaleOptimizer(SGD(1.0), 4.0), 2.0)
    run(optimizer, [v], [[8.0]])
    assert v.numpy() == 0.0


@pytest.mark.parametrize("traced", [False, True])
def test_a_sum_of_repeated_rows_that_overflows_skips_the_step(traced):
    v = tw.Variable(np.zeros((2, 1), np.float32))
    optimizer = LossScaleOptimizer(SGD(1.0), 8.0)

    def step(values):
        rows = tw.IndexedSlices(values, tw.constant([1, 1]), (2, 1))
        optimizer.apply([rows], [v])

    step = tw.function(step) if traced else step
    step(tw.constant([[3e38], [3e38]]))
    assert float(optimizer.dynamic_scale) == 4.0 and not v.numpy().any()
    step(tw.constant([[3e38], [-3e38]]))
    assert float(optimizer.dynamic_scale) == 4.0 and not v.numpy().any()
    assert optimizer.iterations.numpy() == 1
