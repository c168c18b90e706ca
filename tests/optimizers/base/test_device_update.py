"""Steps of optimizers for a device: settings, numbers, and what is refused."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.core.state.commit import Commit
from tapewright.optimizers.schedules import ExponentialDecay


@pytest.fixture
def gpu(strict):
    """Functions become CUDA graphs on a stand-in for a GPU."""
    with tw.config.use_target("auto"), devices.use_module(strict):
        yield strict


def problem(rule):
    """A variable, a function that makes a step, and the same in eager mode."""
    v, w = tw.Variable([1.0, -2.0, 3.0]), tw.Variable([[0.5]])
    return [v, w], lambda x: rule.apply_gradients([(v * x, v), (w * w + x, w)])


def train(rule, between=(), steps=4, traced=True):
    """Values after steps; ``between[n](rule, variables)`` is called before step ``n``."""
    variables, step = problem(rule)
    step = tw.function(step) if traced else step
    found = []
    for n in range(steps):
        for change in between[n : n + 1]:
            if change is not None:
                change(rule, variables)
        step(tw.constant(0.5 + n))
        found += [each.numpy() for each in (*variables, *rule.variables)]
    return found


def same(make, between=()):
    with tw.config.use_target("numpy"), devices.use_module(np):
        wanted = train(make(), between, traced=False)
    for a, b in zip(train(make(), between), wanted, strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


def setting(**values):
    def change(rule, variables):
        for name, value in values.items():
            setattr(rule, name, value)

    return change


CHANGES = {
    "learning_rate": setting(learning_rate=0.01),
    "assigned rate": lambda rule, _: rule.learning_rate.assign(0.02),
    "clipnorm": setting(clipnorm=0.1),
    "clipvalue": setting(clipvalue=0.05),
    "global_clipnorm": setting(global_clipnorm=0.1),
    "weight_decay": setting(weight_decay=0.3),
    "loss_scale_factor": setting(loss_scale_factor=2.0),
    "a coefficient": setting(beta_1=0.5),
    "a setting of the rule": setting(amsgrad=False),
    "all": setting(beta_2=0.9, clipvalue=0.1, epsilon=1e-3),
}


@pytest.mark.parametrize("what", CHANGES)
def test_settings_that_change_after_tracing_count(what, gpu):
    change = CHANGES[what]
    back = setting(
        clipnorm=None, clipvalue=None, global_clipnorm=None, weight_decay=None
    )
    same(lambda: tw.optimizers.Adam(0.1, amsgrad=True), [None, None, change, back])


def test_a_setting_that_does_not_change_compiles_nothing_again(gpu):
    from ...stand_in import driver

    rule = tw.optimizers.Adam(0.1)
    variables, step = problem(rule)
    step = tw.function(step)
    step(tw.constant(0.5))
    driver.log.clear()
    rule.learning_rate = 0.2
    rule.clipnorm = None
    step(tw.constant(0.5))
    assert "compile" not in [what[0] for what in driver.log]
    rule.clipvalue = 0.1
    step(tw.constant(0.5))
    assert "compile" in [what[0] for what in driver.log]


def test_settings_that_python_has_to_serve_count_too(gpu):
    average = setting(use_ema=False)
    same(lambda: tw.optimizers.SGD(0.1, use_ema=True), [None, None, average])


def test_a_setting_that_changes_between_steps_of_a_loop_counts(gpu):
    rule, v = tw.optimizers.SGD(1.0), tw.Variable([1.0])

    @tw.function
    def step(n):
        def body(i):
            rule.apply_gradients([(v * 0.5, v)])
            return (i + 1,)

        tw.while_loop(lambda i: i < n, body, (0,))

    step(tw.constant(2))
    assert v.numpy() == 0.25
    rule.clipvalue = 0.1
    step(tw.constant(2))
    np.testing.assert_allclose(v.numpy(), 0.15 - 0.075, 1e-6)


def test_schedules_give_each_step_its_rate(gpu):
    same(lambda: tw.optimizers.SGD(ExponentialDecay(0.5, 2, 0.3), momentum=0.9))


def test_a_variable_of_the_cpu_holds_the_count_of_steps(gpu):
    rule = tw.optimizers.Adam(0.1)
    train(rule)
    assert isinstance(rule.iterations._array, np.ndarray) and int(rule.iterations) == 4


def test_what_is_assigned_between_steps_counts(gpu):
    def change(rule, variables):
        variables[0].assign([5.0, 6.0, 7.0])
        rule.variables[2].assign(rule.variables[2] * 0.0)

    same(lambda: tw.optimizers.Adam(0.1), [None, change, None, change])


def test_the_device_makes_no_step_with_averages_or_constraints(gpu):
    variables, _ = problem(None)
    for more in ({"use_ema": True}, {"gradient_accumulation_steps": 2}):
        rule = tw.optimizers.SGD(0.1, **more)
        update = rule._tw_update_of(tuple(variables), [v.read() for v in variables])
        assert rule._tw_device_update(update) is None
    rule = tw.optimizers.SGD(0.1)
    update = rule._tw_update_of(tuple(variables), [v.read() for v in variables])
    made = rule._tw_device_update(update)
    assert made.is_current() and [g.size for g in made.groups] == [4]
    rule.clipnorm = 1.0
    assert not made.is_current()


def test_holders_are_the_segments_of_the_optimizer(gpu):
    variables, _ = problem(None)
    first, second = tw.optimizers.SGD(0.1), tw.optimizers.SGD(0.1)
    holders = []
    for rule in (first, second):
        update = rule._tw_update_of(tuple(variables), [v.read() for v in variables])
        holders.append(rule._tw_device_update(update).holders())
    assert set(holders[0]) == set(holders[1]) == {id(v) for v in variables}
    assert holders[0][id(variables[0])] is not holders[1][id(variables[0])]


def test_all_numbers_of_a_step_are_given_before_it(gpu):
    variables, _ = problem(None)
    rule = tw.optimizers.SGD(0.25, weight_decay=0.5)
    update = rule._tw_update_of(tuple(variables), [v.read() for v in variables])
    made = rule._tw_device_update(update)
    (numbers,) = made.advance()
    assert numbers[0] == 0.125 and 0.25 in numbers[1:]
    assert int(rule.iterations) == 1
    for segment in made.segments:
        segment.gather(Commit())
    (flats,) = made.flats()
    assert set(made.arrays()) == {id(v) for v in variables}
    assert flats[0].get().tolist() == [1.0, -2.0, 3.0, 0.5]


class Mixed(tw.optimizers.SGD):
    more = 0

    def coefficients(self, step, learning_rate, real):
        return (learning_rate, *[0.25] * self.more)

    def update_block(self, xp, gradient, variable, scratch, coefficients):
        for number in coefficients:
            xp.multiply(gradient, number, out=scratch)
            xp.subtract(variable, scratch, out=variable)


def test_another_number_of_coefficients_is_an_error_once_and_then_compiled(gpu):
    optimizer, v = Mixed(0.5), tw.Variable([0.0, 0.0])
    step = tw.function(lambda: optimizer.apply([tw.ones(2)], [v]))
    step()
    optimizer.more = 1
    with pytest.raises(RuntimeError, match="Mixed.coefficients must return as many"):
        step()
    assert v.numpy().tolist() == [-0.5] * 2 and int(optimizer.iterations) == 1
    step()
    assert v.numpy().tolist() == [-1.25] * 2 and int(optimizer.iterations) == 2


class OfTheRate(tw.optimizers.SGD):
    def update_block(self, xp, gradient, variable, scratch, coefficients):
        xp.multiply(gradient, float(self.learning_rate), out=scratch)
        xp.subtract(variable, scratch, out=variable)


def test_a_rule_that_reads_a_variable_sees_its_value_of_each_step(gpu):
    optimizer, v = OfTheRate(0.5), tw.Variable([0.0, 0.0])
    step = tw.function(lambda: optimizer.apply([tw.ones(2)], [v]))
    step()
    optimizer.learning_rate = 0.25
    step()
    assert v.numpy().tolist() == [-0.75] * 2
