"""Rules in ops in a traced function: the ops of a step take the place of its Python code."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.call_instructions import Update
from tapewright.optimizers import Adafactor, LossScaleOptimizer, Muon, traced_step
from tapewright.optimizers.schedules import ExponentialDecay, LearningRateSchedule

from .test_own_rules import GRADIENTS, RULES, Momentum, OpsAdam, OpsMomentum


@pytest.fixture(autouse=True)
def cpu(device):
    """On a GPU, rules in ops run as Python in each step."""
    with tw.device("CPU"):
        yield


def problem(optimizer, traced):
    v, w = tw.Variable(np.ones((4, 2), "f4")), tw.Variable(np.float32([0.5, -3]))
    step = lambda g: optimizer.apply([g * v, g[0] * 3.0], [v, w])  # noqa: E731
    return [v, w], tw.function(step) if traced else step


def after_steps(optimizer, traced, between=None):
    variables, step = problem(optimizer, traced)
    for n, gradient in enumerate(GRADIENTS):
        if n == 2 and between is not None:
            between(optimizer)
        step(tw.constant(gradient))
    return [x.numpy() for x in (*variables, *optimizer.variables)]


def same(make, between=None):
    """Compare traced steps with eager steps: on NumPy they have the same bits."""
    with tw.config.use_target("numpy"):
        eager = after_steps(make(), False, between)
        for a, b in zip(after_steps(make(), True, between), eager, strict=True):
            np.testing.assert_array_equal(a, b)
    for a, b in zip(after_steps(make(), True, between), eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def calls_python(optimizer):
    """Return whether a replay of a step calls the Python code of the optimizer."""
    _, step = problem(optimizer, True)
    program = step.get_concrete_function(tw.constant(GRADIENTS[0])).executable.program
    return any([isinstance(each, Update) for each in program.instructions])


TRACED = {
    **{name: (lambda rule=rule: rule(0.1)) for name, rule in RULES.items()},
    "Adafactor": lambda: Adafactor(0.1),
    "Muon": lambda: Muon(0.1, adam_weight_decay=0.1, weight_decay=0.2),
    "Adam": lambda: OpsAdam(0.1),
    "SGD": lambda: OpsMomentum(0.1, 0.9),
    "weight decay": lambda: Momentum(0.3, weight_decay=0.1),
    "clipnorm": lambda: Momentum(0.1, clipnorm=0.2),
    "clipvalue": lambda: Momentum(0.1, clipvalue=0.1),
    "global norm": lambda: Momentum(0.1, global_clipnorm=0.2),
    "no gradient clipped": lambda: Momentum(0.1, global_clipnorm=1e3),
    "loss scale": lambda: Momentum(0.1, loss_scale_factor=3.0),
    "schedule": lambda: Momentum(ExponentialDecay(0.3, 2, 0.7), weight_decay=0.1),
}


@pytest.mark.parametrize("what", TRACED)
def test_traced_steps_are_eager_steps_without_python(what):
    same(TRACED[what])
    assert not calls_python(TRACED[what]())


def setting(**values):
    def change(optimizer):
        for name, value in values.items():
            setattr(optimizer, name, value)

    return change


def move_slots(optimizer):
    optimizer.momenta = optimizer.momenta[:1] + [tw.Variable(np.float32([1, 2]))]


CHANGES = {
    "a setting of the rule": setting(momentum=0.5),
    "weight decay": setting(weight_decay=0.1),
    "clipping": setting(clipvalue=0.1),
    "loss scale": setting(loss_scale_factor=2.0),
    "the rate": setting(learning_rate=0.2),
    "the slots": move_slots,
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_setting_that_changes_after_tracing_counts(what):
    same(lambda: Momentum(0.1), CHANGES[what])


def test_settings_of_a_step_in_a_loop_count():
    optimizer, v = Momentum(1.0, momentum=0.0), tw.Variable([1.0])

    @tw.function
    def steps(n):
        tw.while_loop(lambda i: i < n, lambda i: step(i), (0,))

    def step(i):
        optimizer.apply([v * 0.5], [v])
        return (i + 1,)

    steps(tw.constant(2))
    assert v.numpy() == 0.25
    optimizer.clipvalue = 0.1
    steps(tw.constant(2))
    np.testing.assert_allclose(v.numpy(), 0.15 - 0.075, 1e-6)


def test_nothing_is_traced_again_without_a_change():
    calls = []

    class Counted(Momentum):
        def update_step(self, gradient, variable, learning_rate):
            calls.append(variable.path)
            super().update_step(gradient, variable, learning_rate)

    _, step = problem(Counted(0.1), True)
    for gradient in GRADIENTS:
        step(tw.constant(gradient))
    assert len(calls) == 2  # once for each variable


class NeedsNumber(Momentum):
    def update_step(self, gradient, variable, learning_rate):
        rate = float(learning_rate) * (1 + int(self.iterations.numpy()))
        super().update_step(gradient, variable, rate)


class Branches(Momentum):
    def update_step(self, gradient, variable, learning_rate):
        if self.iterations % 2 == 0:
            super().update_step(gradient, variable, learning_rate)


class SetsAttribute(Momentum):
    seen = 0

    def update_step(self, gradient, variable, learning_rate):
        self.seen += 1
        super().update_step(gradient, variable, learning_rate * self.seen)


class ReadsList(Momentum):
    def __init__(self, learning_rate):
        super().__init__(learning_rate)
        self.factors = [0.5, 2.0]

    def update_step(self, gradient, variable, learning_rate):
        self.factors.append(self.factors[-1] * 1.5)
        super().update_step(gradient, variable, learning_rate * self.factors[-1])


FACTOR = tw.Variable(2.0)


class ReadsAnotherVariable(Momentum):
    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient * FACTOR, variable, learning_rate)


class Draws(Momentum):
    def update_step(self, gradient, variable, learning_rate):
        noise = tw.random.uniform(variable.shape)
        super().update_step(gradient + noise, variable, learning_rate)


class OfStep(LearningRateSchedule):
    def __call__(self, step):
        return 0.1 / (tw.cast(step, "float32") + 1.0)


PYTHON = {
    "a number": lambda: NeedsNumber(0.1),
    "a branch": lambda: Branches(0.1),
    "an attribute": lambda: SetsAttribute(0.1),
    "a list": lambda: ReadsList(0.1),
    "another variable": lambda: ReadsAnotherVariable(0.1),
    "a rate by a call": lambda: Momentum(lambda: 0.1),
    "averages": lambda: Momentum(0.1, use_ema=True),
    "accumulation": lambda: Momentum(0.1, gradient_accumulation_steps=2),
}


@pytest.mark.parametrize("what", PYTHON)
def test_what_may_change_from_step_to_step_runs_as_python(what):
    same(PYTHON[what])
    assert calls_python(PYTHON[what]())


def test_random_numbers_differ_in_each_step():
    assert calls_python(Draws(0.1))


def test_a_step_of_very_many_nodes_runs_as_python(monkeypatch):
    assert not calls_python(OpsAdam(0.1))
    monkeypatch.setattr(traced_step, "MOST", 10)
    assert calls_python(OpsAdam(0.1))
    same(lambda: OpsAdam(0.1))


def test_a_scaled_loss_runs_the_rule_as_python():
    assert calls_python(LossScaleOptimizer(Momentum(0.1)))


def test_a_schedule_of_the_users_is_called_in_each_step():
    same(lambda: Momentum(OfStep()))
    assert not calls_python(Momentum(OfStep()))


def test_python_takes_over_when_an_attribute_is_no_setting_any_more():
    same(lambda: Momentum(0.1), setting(momentum=np.float32([0.5, 0.25])))


def test_an_error_of_a_rule_leaves_all_variables():
    class Failing(Momentum):
        def update_step(self, gradient, variable, learning_rate):
            super().update_step(gradient, variable, learning_rate)
            if variable.shape.rank == 1:
                raise ZeroDivisionError("here")

    optimizer = Failing(0.1)
    variables, step = problem(optimizer, True)
    before = [x.numpy() for x in variables]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="here"):
            step(tw.constant(GRADIENTS[0]))
    for a, b in zip(variables, before):
        np.testing.assert_array_equal(a.numpy(), b)
    assert optimizer.iterations.numpy() == 0
