"""Schedules: rates by hand, in updates and traces, names and configs."""

import math

import numpy as np
import pytest

import tapewright as tw
from tapewright import optimizers
from tapewright.optimizers import SGD, LossScaleOptimizer, schedules


def trained(optimizer, steps, traced):
    v, seen = tw.Variable([0.0]), []

    def step(g):
        optimizer.apply([g], [v])
        return tw.convert_to_tensor(optimizer.learning_rate)

    step = tw.function(step) if traced else step
    rates = [float(step(tw.constant([1.0]))) for _ in range(steps)]
    seen.append(float(v.numpy()[0]))
    return seen[-1], rates


@pytest.mark.parametrize("traced", [False, True])
def test_each_update_has_the_rate_of_its_iteration(traced):
    schedule = schedules.PiecewiseConstantDecay([1, 2], [1.0, 0.5, 0.25])
    total, rates = trained(SGD(schedule), 5, traced)
    assert total == -(1 + 1 + 0.5 + 0.25 + 0.25)
    assert rates == [1.0, 0.5, 0.25, 0.25, 0.25]  # that of the next update


@pytest.mark.parametrize("traced", [False, True])
def test_a_schedule_of_the_user_is_given_the_step(traced):
    class Root(schedules.LearningRateSchedule):
        def __init__(self, first):
            self.first = first

        def __call__(self, step):
            assert step.dtype == "int64"
            return self.first * tw.math.rsqrt(tw.cast(step + 1, tw.float32))

    total, rates = trained(SGD(Root(0.5)), 3, traced)
    expected = [0.5 / math.sqrt(i) for i in (1, 2, 3, 4)]
    np.testing.assert_allclose(rates, expected[1:], rtol=1e-6)
    np.testing.assert_allclose(total, -sum(expected[:3]), rtol=1e-6)
    config = SGD(Root(0.5)).get_config()["learning_rate"]
    assert config["class_name"] == "Root" and config["config"] == {"first": 0.5}
    twin = SGD.from_config({"learning_rate": config}, custom_objects={"Root": Root})
    assert type(twin._learning_rate) is Root


def test_a_schedule_can_be_set_and_takes_the_variable_away():
    optimizer = SGD(0.5)
    optimizer.learning_rate = schedules.ExponentialDecay(0.5, 1, 0.5)
    assert [v.name for v in optimizer.variables] == ["iteration"]
    assert float(optimizer.learning_rate) == 0.5
    with pytest.raises(TypeError, match="not settable"):
        optimizer.learning_rate = 0.1


def test_a_rate_is_a_float32_tensor_as_in_keras():
    schedule = schedules.CosineDecay(0.5, 10)
    for rate in (schedule(5), schedule(tw.constant(5)), SGD(schedule).learning_rate):
        assert rate.dtype == "float32" and rate.shape == ()


def test_many_steps_at_once_give_as_many_rates():
    schedule = schedules.CosineDecay(0.1, 30, 0.1, warmup_target=0.5, warmup_steps=8)
    steps = np.arange(50)
    found = [schedule._tw_at(int(step)) for step in steps]
    np.testing.assert_allclose(schedule(steps), found, rtol=1e-5)


def test_restarts_come_on_time_where_logarithms_are_rounded():
    schedule = schedules.CosineDecayRestarts(0.5, 2, t_mul=3.0)
    begins = [2 * (3**n - 1) // 2 for n in range(12)]
    assert [schedule._tw_at(step) for step in begins] == [0.5] * 12
    assert all(schedule._tw_at(step - 1) < 0.5 for step in begins[1:])


def test_shorter_and_shorter_cycles_end_in_nan_and_not_in_an_error():
    schedule = schedules.CosineDecayRestarts(0.5, 10, t_mul=0.5)
    assert schedule._tw_at(0) == 0.5 and math.isnan(schedule._tw_at(25))


EVERY = [
    schedules.ExponentialDecay(0.5, 10, 0.5, staircase=True, name="mine"),
    schedules.InverseTimeDecay(0.5, 10, 0.5),
    schedules.PiecewiseConstantDecay([1, 2], [1.0, 0.5, 0.25]),
    schedules.PolynomialDecay(0.5, 10, 0.1, 2.0, True),
    schedules.CosineDecay(0.5, 10, 0.1, warmup_target=1.0, warmup_steps=3),
    schedules.CosineDecayRestarts(0.5, 10, 1.5, 0.9, 0.1),
]


@pytest.mark.parametrize("schedule", EVERY, ids=lambda s: type(s).__name__)
def test_a_config_makes_the_same_schedule(schedule):
    config = schedules.serialize(schedule)
    twin = schedules.deserialize({**config, "module": "keras.optimizers.schedules"})
    assert type(twin) is type(schedule) and twin.get_config() == schedule.get_config()
    for optimizer in (SGD(schedule), LossScaleOptimizer(SGD(schedule))):
        again = optimizers.deserialize(optimizers.serialize(optimizer))
        assert again.get_config() == optimizer.get_config()
        assert float(again.learning_rate) == float(optimizer.learning_rate)


@pytest.mark.parametrize("schedule", EVERY, ids=lambda s: type(s).__name__)
def test_a_variable_counts_the_steps_too(schedule):
    step = tw.Variable(7, dtype="int64", trainable=False)
    np.testing.assert_allclose(schedule(step), schedule._tw_at(7), rtol=1e-6)
    np.testing.assert_allclose(
        tw.function(schedule)(step), schedule._tw_at(7), rtol=1e-6
    )


def test_arguments_out_of_range_are_refused():
    with pytest.raises(ValueError, match="decay_steps .*got 0"):
        schedules.ExponentialDecay(0.5, 0, 0.5)
    with pytest.raises(ValueError, match="first_decay_steps .*0.*got -1"):
        schedules.CosineDecayRestarts(0.5, -1)
    with pytest.raises(ValueError, match="boundaries .*got 2 and 2"):
        schedules.PiecewiseConstantDecay([1, 2], [0.5, 0.1])
    with pytest.raises(ValueError, match="schedule 'CosineDecy'.*mean 'CosineDecay'"):
        schedules.deserialize({"class_name": "CosineDecy", "config": {}})


@pytest.mark.parametrize("run_eagerly", [True, False])
def test_the_step_of_a_schedule_promotes_as_in_keras(run_eagerly):
    class Warmup(tw.keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return tw.minimum(0.25 * step + step / 4, 1.0)

    model = tw.keras.Sequential([tw.keras.Input((1,)), tw.keras.layers.Dense(1)])
    optimizer = tw.keras.optimizers.SGD(Warmup())
    model.compile(optimizer, "mse", run_eagerly=run_eagerly)
    model.fit(np.ones((3, 1)), np.ones((3, 1)), batch_size=1, verbose=0)
    assert optimizer.iterations.numpy() == 3
    assert optimizer.learning_rate.numpy() == 1.0 and Warmup()._tw_at(1) == 0.5
