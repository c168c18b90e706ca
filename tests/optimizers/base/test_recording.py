"""Calls that are noted for a commit, and planned for later steps; what a rule may do."""

import contextlib

import numpy as np
import pytest

import tapewright as tw
from tapewright.optimizers import SGD
from tapewright.optimizers.base.recording import (
    NotRecordable,
    Recorded,
    Recorder,
    bound,
)
from tapewright.optimizers.base.rule_step import RuleStep


def test_calls_are_made_later_and_in_order():
    xp, x = Recorder(), np.float32([1, 2])
    array = Recorded(x)
    assert xp.add(array, 1.0, out=array) is array
    xp.multiply(array, array, out=array)
    xp.maximum(array, 5.0, out=array)
    assert x.tolist() == [1, 2] and len(xp.calls) == 3
    for call in xp.calls:
        bound(call)()
    assert x.tolist() == [5, 9]


LOOKS = {
    "an operator": lambda xp, x: x + 1.0,
    "an operator in place": lambda xp, x: x.__isub__(1.0),
    "a comparison": lambda xp, x: x > 0,
    "a condition": lambda xp, x: bool(x),
    "a method": lambda xp, x: x.sum(),
    "an entry": lambda xp, x: x[0],
    "a function that is no ufunc": lambda xp, x: xp.where(x, x, x),
    "NumPy itself": lambda xp, x: np.asarray(x),
    "a loop": lambda xp, x: list(x),
}


@pytest.mark.parametrize("look", LOOKS)
def test_who_looks_at_values_is_told_that_they_are_not_there(look):
    with pytest.raises(NotRecordable):
        LOOKS[look](Recorder(), Recorded(np.ones(3, np.float32)))


def test_a_ufunc_of_numpy_itself_does_not_take_recorded_arrays():
    with pytest.raises(TypeError):
        np.add(Recorded(np.ones(3)), 1.0)


@pytest.mark.parametrize("size", [5, 40_000])
def test_a_rule_that_looks_at_values_makes_the_same_steps(size):
    class Plain(SGD):
        def update_block(self, xp, gradient, variable, scratch, coefficients):
            xp.multiply(gradient, coefficients[0], out=scratch)
            xp.subtract(variable, scratch, out=variable)

    class Looking(SGD):
        def update_block(self, xp, gradient, variable, scratch, coefficients):
            if float(abs(gradient).max()) > 0:
                variable -= gradient * coefficients[0]

    found = []
    for rule in (Plain, Looking):
        v = tw.Variable(np.ones(size, np.float32))
        optimizer = rule(0.5)
        held = []
        for _ in range(3):
            optimizer.apply([tw.fill([size], 0.25)], [v])
            held.append(v.read())
        found.append([h.numpy() for h in held])
    assert np.array_equal(*found)
    assert found[0][2].tolist() == [1 - 3 * 0.125] * size


# ------------------------------------------------------------------- plans of steps


LATER = {
    "weight_decay": 0.5,
    "clipnorm": 0.1,
    "clipvalue": 0.01,
    "global_clipnorm": 0.1,
    "loss_scale_factor": 4.0,
    "momentum": 0.1,
    "nesterov": True,
    "learning_rate": 0.01,
}


@pytest.fixture
def without_plans(monkeypatch):
    """Return a context in which every step records its calls."""

    @contextlib.contextmanager
    def context():
        with monkeypatch.context() as patch:
            patch.setattr(RuleStep, "_plan", lambda self: None)
            yield

    return context


def values_after(optimizer, change=None, traced=False):
    """Return the variables after some steps, with a setting that changes after three."""
    rng = np.random.default_rng(0)
    # a group of one stretch, a variable alone, and one of several blocks
    v = [tw.Variable(tw.ones(size)) for size in (3, 4, 20_000, 150_000)]
    step = lambda *gradients: optimizer.apply(gradients, v)  # noqa: E731
    step = tw.function(step) if traced else step
    for number in range(6):
        if number == 3 and change:
            setattr(optimizer, *change)
        step(*[tw.constant(rng.uniform(0.1, 0.3, x.shape), x.dtype) for x in v])
    return np.concatenate([x.numpy() for x in v])


@pytest.mark.parametrize("target", ["native", "numpy"])
@pytest.mark.parametrize("name", LATER)
@pytest.mark.parametrize("traced", [False, True])
def test_a_setting_that_changes_after_some_steps_counts(
    name, traced, target, without_plans
):
    make = lambda: tw.optimizers.SGD(0.1, momentum=0.9)  # noqa: E731
    change = name, LATER[name]
    with tw.config.use_target(target):
        changed = values_after(make(), change, traced)
        with without_plans():
            np.testing.assert_array_equal(changed, values_after(make(), change, traced))
        assert np.abs(changed - values_after(make(), None, traced)).min() > 1e-3


RULES = {
    "SGD": lambda o: o.SGD(0.1),
    "SGD with momentum": lambda o: o.SGD(0.1, momentum=0.9, nesterov=True),
    "RMSprop": lambda o: o.RMSprop(0.1),
    "RMSprop, centered": lambda o: o.RMSprop(0.1, momentum=0.5, centered=True),
    "Adam": lambda o: o.Adam(0.1, weight_decay=0.1),
    "Adam with amsgrad": lambda o: o.Adam(0.1, amsgrad=True),
    "Adamax": lambda o: o.Adamax(0.1),
    "Nadam": lambda o: o.Nadam(0.1),
    "Lamb": lambda o: o.Lamb(0.1),
    "Adagrad": lambda o: o.Adagrad(0.1),
    "Adadelta": lambda o: o.Adadelta(0.1),
    "Ftrl": lambda o: o.Ftrl(0.1),
    "Lion": lambda o: o.Lion(0.1),
    "ScheduleFreeAdamW": lambda o: o.ScheduleFreeAdamW(0.1),
}


@pytest.mark.parametrize("target", ["native", "numpy"])
@pytest.mark.parametrize("name", RULES)
def test_planned_steps_are_those_that_are_recorded(name, target, without_plans):
    make = lambda: RULES[name](tw.optimizers)  # noqa: E731
    with tw.config.use_target(target):
        planned = values_after(make())
        with without_plans():
            np.testing.assert_array_equal(planned, values_after(make()))


@pytest.mark.parametrize("target", ["native", "numpy"])
def test_a_target_that_changes_between_steps_counts(target, without_plans):
    def values():
        v = [tw.Variable(tw.ones(size)) for size in (3, 4, 20_000)]
        optimizer = tw.optimizers.Adam(0.1)
        for first in (target, {"native": "numpy", "numpy": "native"}[target]):
            with tw.config.use_target(first):
                for _ in range(3):
                    optimizer.apply([tw.fill(x.shape, 0.3) for x in v], v)
        return np.concatenate([x.numpy() for x in v])

    planned = values()
    with without_plans():
        np.testing.assert_array_equal(planned, values())


@pytest.mark.parametrize("rule", ["SGD", "Adagrad", "Adam"])
@pytest.mark.parametrize("target", ["native", "numpy"])
def test_sparse_gradients_are_never_planned(rule, target):
    found = []
    for sparse in (True, False):
        with tw.config.use_target(target):
            v = [tw.Variable(tw.ones([4, 3])), tw.Variable(tw.ones([300, 100]))]
            optimizer = RULES[rule](tw.optimizers)
            for number in range(5):
                slices = [
                    tw.IndexedSlices(
                        tw.fill([2, x.shape[1]], 0.5), [0, number % 4], x.shape
                    )
                    for x in v
                ]
                dense = slices if sparse else [tw.convert_to_tensor(x) for x in slices]
                optimizer.apply(dense, v)
            found.append([x.numpy() for x in v])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@pytest.mark.parametrize("rule", ["SGD", "RMSprop, centered"])  # planned, recorded
@pytest.mark.parametrize("target", ["native", "numpy"])
def test_a_gradient_in_another_order_lives_until_it_is_used(rule, target):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(400, 300)).astype(np.float32) for _ in range(4)]
    found = []
    for order in (lambda x: tw.constant(x.T), lambda x: tw.transpose(tw.constant(x))):
        with tw.config.use_target(target):
            optimizer, v = RULES[rule](tw.optimizers), tw.Variable(tw.ones([300, 400]))
            for array in arrays:
                optimizer.apply([order(array)], [v])
            found.append(v.numpy())
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("target", ["native", "numpy"])
def test_a_rule_with_another_number_of_coefficients_makes_other_calls(target):
    class Mixed(tw.optimizers.SGD):
        more = 0

        def coefficients(self, step, learning_rate, real):
            return (learning_rate, *[0.25] * self.more)

        def update_block(self, xp, gradient, variable, scratch, coefficients):
            for number in coefficients:
                xp.multiply(gradient, number, out=scratch)
                xp.subtract(variable, scratch, out=variable)

    with tw.config.use_target(target):
        optimizer, v = Mixed(0.5), tw.Variable([0.0, 0.0])
        for more in (0, 0, 0, 1, 1, 1):
            optimizer.more = more
            optimizer.apply([tw.ones(2)], [v])
    assert v.numpy().tolist() == [-(3 * 0.5 + 3 * 0.75)] * 2


# ---------------------------------------------- what else `update_block` may read and do


class OfTheRate(tw.optimizers.SGD):
    def update_block(self, xp, gradient, variable, scratch, coefficients):
        xp.multiply(gradient, float(self.learning_rate), out=scratch)
        xp.subtract(variable, scratch, out=variable)


class OfTheCount(tw.optimizers.SGD):
    def update_block(self, xp, gradient, variable, scratch, coefficients):
        xp.multiply(gradient, 0.5 + float(self.iterations), out=scratch)
        xp.subtract(variable, scratch, out=variable)


class OfAList(tw.optimizers.SGD):
    rates = (0.5,)

    def update_block(self, xp, gradient, variable, scratch, coefficients):
        xp.multiply(gradient, self.rates[0], out=scratch)
        xp.subtract(variable, scratch, out=variable)


class OfATuple(OfAList):
    def update_block(self, xp, gradient, variable, scratch, coefficients):
        xp.multiply(gradient, self.pair[0][0], out=scratch)
        xp.subtract(variable, scratch, out=variable)


class Counting(tw.optimizers.SGD):
    calls = 0

    def update_block(self, xp, gradient, variable, scratch, coefficients):
        self.calls += 1
        xp.multiply(gradient, 0.5 * self.calls, out=scratch)
        xp.subtract(variable, scratch, out=variable)


class Extending(tw.optimizers.SGD):
    def update_block(self, xp, gradient, variable, scratch, coefficients):
        super().update_block(xp, gradient, variable, scratch, coefficients)
        xp.multiply(variable, self.share(), out=variable)

    @staticmethod
    def share():
        return 0.5


class Named(tw.optimizers.SGD):  # attributes with names of what stands in for it
    values, add, read = 1.0, 2.0, 4.0

    def update_block(self, xp, gradient, variable, scratch, coefficients):
        xp.multiply(gradient, self.values * self.add / self.read, out=scratch)
        xp.subtract(variable, scratch, out=variable)


RULES_OF_USERS = {  # a change after two of four steps, and the sum of the updates by 1
    OfTheRate: (lambda o: setattr(o, "learning_rate", 0.25), 2 * 0.5 + 2 * 0.25),
    OfTheCount: (lambda o: None, 4 * 0.5 + 0 + 1 + 2 + 3),
    OfAList: (lambda o: o.rates.__setitem__(0, 0.25), 2 * 0.5 + 2 * 0.25),
    OfATuple: (lambda o: o.rates.__setitem__(0, 0.25), 2 * 0.5 + 2 * 0.25),
    Counting: (lambda o: None, 0.5 * (1 + 2 + 3 + 4)),
    Extending: (lambda o: None, 0.5 - 0.5**5),  # v <- (v - 0.5) / 2
    Named: (lambda o: setattr(o, "add", 1.0), 2 * 0.5 + 2 * 0.25),
}


@pytest.mark.parametrize("rule", RULES_OF_USERS)
@pytest.mark.parametrize("target", ["native", "numpy"])
@pytest.mark.parametrize("traced", [False, True])
def test_a_rule_of_the_users_may_read_what_it_likes(rule, target, traced):
    change, expected = RULES_OF_USERS[rule]
    with tw.config.use_target(target):
        optimizer, v = rule(0.5), tw.Variable([0.0, 0.0])
        if issubclass(rule, OfAList):
            optimizer.rates = [0.5]
            optimizer.pair = (optimizer.rates, None)
        step = lambda: optimizer.apply([tw.ones(2)], [v])  # noqa: E731
        step = tw.function(step) if traced else step
        for number in range(4):
            if number == 2:
                change(optimizer)
            step()
    np.testing.assert_allclose(v.numpy(), -expected, 1e-6)
