"""Rules in ops in a traced function: the ops of a step take the place of its Python code."""

from functools import partial

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.instructions.call_instructions import Update
from tapewright.layers.constraints import Constraint, MaxNorm
from tapewright.optimizers import SGD, Adafactor, LossScaleOptimizer, Muon, Nadam
from tapewright.optimizers.base import traced_step
from tapewright.optimizers.schedules import ExponentialDecay, LearningRateSchedule

from ..test_own_rules import GRADIENTS, RULES, Momentum, OpsAdam, OpsMomentum


@pytest.fixture(autouse=True)
def cpu(device):
    """On a GPU, rules in ops run as Python in each step."""
    with tw.device("CPU"):
        yield


def problem(optimizer, traced, constraint=None):
    v, w = tw.Variable(np.ones((4, 2), "f4")), tw.Variable(np.float32([0.5, -3]))
    v.constraint = constraint
    step = lambda g: optimizer.apply([g * v, g[0] * 3.0], [v, w])  # noqa: E731
    return [v, w], tw.function(step) if traced else step


def values_after(optimizer, traced, gradients, between=None, constraint=None):
    """Return for each step the values of all variables after it."""
    constraint = constraint and constraint()
    variables, step = problem(optimizer, traced, constraint)
    values = []
    for n, gradient in enumerate(gradients):
        if n == len(gradients) // 2 and between is not None:
            between(optimizer, constraint)
        step(tw.constant(gradient))
        values += [x.numpy() for x in (*variables, *optimizer.variables)]
    return values


def same(make, between=None, constraint=None, gradients=GRADIENTS, rtol=1e-4):
    """Compare traced steps with eager steps: on NumPy they have the same bits."""
    more = gradients, between, constraint
    with tw.config.use_target("numpy"):
        eager = values_after(make(), False, *more)
        for a, b in zip(values_after(make(), True, *more), eager, strict=True):
            np.testing.assert_array_equal(a, b)
    with tw.config.use_target("native"):
        for a, b in zip(values_after(make(), True, *more), eager, strict=True):
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def calls_python(optimizer, constraint=None):
    """Return whether a replay of a step calls the Python code of the optimizer."""
    _, step = problem(optimizer, True, constraint and constraint())
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


class Settings(Momentum):
    """Reads attributes of many kinds."""

    def __init__(self, learning_rate):
        super().__init__(learning_rate)
        self.factors = {"f": [0.5, 2.0], "dtype": tw.float32}
        self.none = [None, None]

    def build(self, variables):
        super().build(variables)
        names = ["first", "second"]
        self.pairs = self.add_optimizer_variables(variables, names)  # a tuple of lists

    @property
    def count(self):
        count = tw.cast(self.iterations + 1, self.factors["dtype"])
        return tw.cast(tw.sqrt(count), tw.float32)

    def update_step(self, gradient, variable, learning_rate):
        first, second = (
            each[self._get_variable_index(variable)] for each in self.pairs
        )
        assert self.none[0] is None
        first.assign_add(gradient * self.factors["f"][0] / self.count)
        second.assign(first * self.factors["f"][-1])
        super().update_step(second, variable, learning_rate)


def change_list(optimizer, _):
    optimizer.factors["f"][-1] = 0.3


def change_dict(optimizer, _):
    optimizer.factors["dtype"] = tw.float16


def change_entry(optimizer, _):
    optimizer.none[1] = 1.0


@pytest.mark.parametrize("change", [None, change_list, change_dict, change_entry])
def test_lists_dicts_and_properties_are_settings(change):
    same(lambda: Settings(0.1), change)
    assert not calls_python(Settings(0.1))


@pytest.mark.parametrize("shapes", [[(4, 3)], [(4, 3), (3, 3)]])
def test_a_step_of_muon_for_matrices_alone_calls_no_python(shapes):
    variables = [tw.Variable(np.eye(*shape, dtype="f4")) for shape in shapes]
    optimizer = Muon(0.1)
    step = tw.function(lambda: optimizer.apply([v * 2.0 for v in variables], variables))
    program = step.get_concrete_function().executable.program
    assert not any([isinstance(each, Update) for each in program.instructions])


FACTOR = tw.Variable(0.5)
MANY = np.random.default_rng(1).normal(size=(13, 4, 2)).astype("f4")
DECAY = {"weight_decay": 0.1, "clipnorm": 0.5, "loss_scale_factor": 3.0}
MORE = {
    "averages": dict(use_ema=True),
    "averages of one step": dict(use_ema=True, ema_momentum=0.0),
    "averages that overwrite": dict(
        use_ema=True, ema_momentum=0.6, ema_overwrite_frequency=3
    ),
    "accumulation": dict(gradient_accumulation_steps=3, **DECAY),
    "accumulation and averages": dict(
        gradient_accumulation_steps=2,
        use_ema=True,
        ema_momentum=0.6,
        ema_overwrite_frequency=2,
        weight_decay=0.1,
    ),
    "accumulation by a schedule": dict(
        gradient_accumulation_steps=3,
        learning_rate=ExponentialDecay(0.3, 2, 0.7),
        weight_decay=0.1,
    ),
}
OWN = {"Momentum": Momentum, "Moments": RULES["Moments"], "Adam": OpsAdam}


@pytest.mark.parametrize("what", MORE)
@pytest.mark.parametrize("rule", OWN)
def test_averages_and_sums_of_gradients_are_traced(rule, what):
    make = lambda: OWN[rule](**({"learning_rate": 0.1} | MORE[what]))  # noqa: E731
    same(make, gradients=MANY, rtol=1e-6)
    assert not calls_python(make())


@pytest.mark.parametrize("what", MORE)
def test_averages_and_sums_of_gradients_are_those_of_rules_in_blocks(what):
    options = {"learning_rate": 0.1, "momentum": 0.9} | MORE[what]
    found, expected = (
        values_after(rule(**options), False, MANY, constraint=Bounded)
        for rule in (OpsMomentum, SGD)
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


class Bounded(Constraint):
    limits = (-0.5, 0.5)

    def __call__(self, w):
        return self.cut(tw.convert_to_tensor(w))

    def cut(self, w):
        return tw.clip_by_value(w, *self.limits)


class Slotted:
    __slots__ = ("limit",)

    def __init__(self):
        self.limit = 0.5

    def __call__(self, w):
        return tw.minimum(w, self.limit)


class Counted(Bounded):
    calls = 0

    def __call__(self, w):
        self.calls += 1
        return super().__call__(w) / self.calls


CONSTRAINTS = {
    "a class": (lambda: MaxNorm(0.5), True),
    "a class of the users": (Bounded, True),
    "a function": (lambda: lambda w: tw.minimum(w, 0.5), True),
    "an op": (lambda: tw.nn.relu, True),
    "a class without a dict": (Slotted, True),
    "a method": (lambda: Bounded().cut, False),
    "a traced function": (lambda: tw.function(lambda w: tw.minimum(w, 0.5)), False),
    "a partial function": (lambda: partial(tw.minimum, 0.5), False),
    "a class with a state": (Counted, False),
    "a function of values": (lambda: lambda w: w.numpy().clip(-0.5, 0.5), False),
    "a function of a variable": (lambda: lambda w: tw.minimum(w, FACTOR), False),
}


@pytest.mark.parametrize("what", CONSTRAINTS)
@pytest.mark.parametrize("options", [{}, MORE["accumulation and averages"]])
def test_constraints_are_traced_if_they_are_ops(options, what):
    constraint, is_traced = CONSTRAINTS[what]
    make = lambda: Momentum(0.3, **options)  # noqa: E731
    same(make, constraint=constraint, gradients=MANY, rtol=1e-6)
    assert calls_python(make(), constraint) is not is_traced


def test_a_setting_of_a_constraint_counts_when_it_changes():
    def change(_, constraint):
        constraint.limits = (-0.2, 0.3)

    same(lambda: Momentum(0.3), change, Bounded, MANY, 1e-6)


def test_another_constraint_counts():
    v = tw.Variable([1.0, 2.0])
    v.constraint = lambda w: tw.minimum(w, 0.5)
    optimizer = Momentum(0.0)
    step = tw.function(lambda: optimizer.apply([tw.ones(2)], [v]))
    step()
    assert v.numpy().tolist() == [0.5, 0.5]
    v.constraint = lambda w: tw.minimum(w, 0.25)
    step()
    assert v.numpy().tolist() == [0.25, 0.25]


def setting(**values):
    def change(optimizer, _):
        for name, value in values.items():
            setattr(optimizer, name, value)

    return change


def move_slots(optimizer, _):
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


CHANGES_OF_MORE = {
    "the momentum of averages": setting(ema_momentum=0.3),
    "when averages overwrite": setting(ema_overwrite_frequency=4),
    "no averages": setting(use_ema=False),
    "the number of gradients": setting(gradient_accumulation_steps=3),
    **{name: CHANGES[name] for name in ("weight decay", "loss scale", "the rate")},
    "clipping": setting(clipnorm=0.1),
}


@pytest.mark.parametrize("what", CHANGES_OF_MORE)
def test_a_setting_of_averages_and_sums_counts_when_it_changes(what):
    make = lambda: Momentum(0.1, **MORE["accumulation and averages"])  # noqa: E731
    same(make, CHANGES_OF_MORE[what], Bounded, MANY, 1e-6)


def test_averages_of_variables_without_a_gradient_move():
    found = []
    for wrapped in (tw.function, lambda step: step):
        v, w = tw.Variable([1.0, 2.0]), tw.Variable([3.0])
        options = {"use_ema": True, "gradient_accumulation_steps": 2}
        optimizer = Momentum(0.5, ema_momentum=0.5, **options)
        optimizer.build([v, w])
        steps = [
            wrapped(lambda v=v: optimizer.apply([v * 2.0], [v])),  # noqa: B023
            wrapped(lambda v=v, w=w: optimizer.apply([v, w], [v, w])),  # noqa: B023
        ]
        for n in (0, 1, 1, 0, 0, 1, 0, 0):
            steps[n]()
            w.assign_add([1.0])
        found += [[x.numpy() for x in (v, w, *optimizer.variables)]]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, 1e-6)


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


class NeedsNumberInBranch(Momentum):
    def update_step(self, gradient, variable, learning_rate):
        def smaller():
            variable.assign_sub(gradient * float(self._learning_rate))

        tw.cond(self.iterations > 2, smaller, lambda: None)
        super().update_step(gradient, variable, learning_rate)


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


class KeepsGradient(Momentum):
    previous = None

    def build(self, variables):
        super().build(variables)
        self.previous = [None for _ in variables]

    def update_step(self, gradient, variable, learning_rate):
        i = self._get_variable_index(variable)
        if self.previous[i] is not None:
            super().update_step(gradient + self.previous[i], variable, learning_rate)
        self.previous[i] = gradient


class CallsFunction(Momentum):
    def __init__(self, learning_rate):
        super().__init__(learning_rate)
        values = iter(np.linspace(1, 2, 100))
        self.factor = lambda: next(values)

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient * self.factor(), variable, learning_rate)


class OpsNadam(Nadam):
    def update_step(self, gradient, variable, learning_rate):
        self.assign_sub(variable, gradient * learning_rate)


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
    "a number in a branch": lambda: NeedsNumberInBranch(0.1),
    "a branch": lambda: Branches(0.1),
    "a function": lambda: CallsFunction(0.1),
    "state in a list": lambda: KeepsGradient(0.1),
    "state of a rule in blocks": lambda: OpsNadam(0.1),
    "an attribute": lambda: SetsAttribute(0.1),
    "a list": lambda: ReadsList(0.1),
    "another variable": lambda: ReadsAnotherVariable(0.1),
    "a rate by a call": lambda: Momentum(lambda: 0.1),
}


@pytest.mark.parametrize("what", PYTHON)
def test_what_may_change_from_step_to_step_runs_as_python(what):
    same(PYTHON[what])
    assert calls_python(PYTHON[what]())


def test_random_numbers_differ_in_each_step():
    assert calls_python(Draws(0.1))


def test_a_step_of_very_many_nodes_is_no_machine_code(monkeypatch):
    assert not calls_python(OpsAdam(0.1))
    monkeypatch.setattr(traced_step, "MOST", 10)
    for target in ("numpy", "native"):
        with tw.config.use_target(target):
            assert calls_python(OpsAdam(0.1)) is (target == "native")
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
