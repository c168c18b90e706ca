"""Steps in whose middle Python decides, waits or is called, for tests that interrupt them.

Each makes ``(step, variables)``; equal calls give steps with equal results.
"""

import numpy as np

import tapewright as tw
from tapewright import keras
from tapewright.optimizers import (
    SGD,
    Adam,
    LossScaleOptimizer,
    MultiOptimizer,
    OptimizerMap,
)

__all__ = ["MODEL_STEPS", "STEPS", "a_scaled_loss"]


class _Trained:
    """Two weights, a count, and two optimizers, which have made a step."""

    def __init__(self, first=None, second=None):
        self.v, self.w = tw.Variable(tw.ones((5, 3))), tw.Variable(tw.ones(4))
        self.count = tw.Variable(0.0, trainable=False)
        self.sums = tw.Variable(tw.zeros(3), trainable=False)
        self.first = first or Adam(0.1)
        self.second = second or SGD(0.1, momentum=0.9)
        self.first.apply([tw.ones((5, 3))], [self.v])
        self.second.apply([tw.ones(4)], [self.w])

    def update_v(self):
        self.first.apply([2 * self.v], [self.v])

    def update_w(self):
        self.second.apply([2 * self.w * tw.reduce_sum(self.v)], [self.w])

    def note(self):
        self.sums.assign_add(tw.reduce_sum(self.v, 0))

    def goes_on(self, n):
        """Whether a loop goes on, which only the values tell: three times."""
        return tw.logical_and(n < 3, tw.reduce_sum(self.v) > -1e9)

    def constrain(self):
        """Let Python make the updates of ``w``."""
        self.w.constraint = lambda w: tw.minimum(w, 2.0)
        self.second = SGD(0.1, momentum=0.9)
        self.second.apply([tw.ones(4)], [self.w])

    def made(self, step):
        """The step as a traced function, which was called, and all variables."""
        traced = tw.function(step)
        traced()
        variables = [self.v, self.w, self.count, self.sums]
        return traced, [*variables, *self.first.variables, *self.second.variables]


def update_in_a_branch():
    of = _Trained()

    def step():
        tw.cond(tw.reduce_sum(of.v) > -1e9, of.update_v, lambda: None)

    return of.made(step)


def changes_around_a_branch():
    of = _Trained()

    def step():
        of.note()
        tw.cond(tw.reduce_sum(of.v) > -1e9, of.update_v, lambda: None)
        of.sums.assign(of.sums * tw.reduce_sum(of.v))
        of.count.assign_add(1.0)

    return of.made(step)


def two_updates_in_a_branch():
    of = _Trained()

    def both():
        of.update_v()
        tw.cond(tw.reduce_sum(of.v) > -1e9, of.update_w, of.note)
        of.count.assign_add(1.0)

    def step():
        tw.cond(tw.reduce_sum(of.w) > -1e9, both, lambda: None)
        of.note()

    return of.made(step)


def one_of_three_branches():
    of = _Trained()

    def step():
        which = tw.cast(of.count, "int32") % 3
        tw.switch_case(which, [of.update_v, of.update_w, of.note])
        of.count.assign_add(1.0)

    return of.made(step)


def a_branch_behind_changes():
    of = _Trained()

    def step():
        tw.cond(tw.reduce_sum(of.v) > -1e9, of.update_v, lambda: None)
        of.sums.assign_add(tw.ones(3))
        of.count.assign_add(1.0)

    return of.made(step)


def a_branch_with_an_update_that_python_makes():
    of = _Trained()
    of.constrain()

    def step():
        of.note()
        tw.cond(tw.reduce_sum(of.v) > -1e9, of.update_w, lambda: None)

    return of.made(step)


def updates_in_a_loop():
    of = _Trained()

    def body(n):
        of.update_v()
        of.note()
        return (n + 1,)

    def step():
        tw.while_loop(of.goes_on, body, (tw.constant(0),))
        of.count.assign_add(1.0)

    return of.made(step)


def updates_and_branches_in_a_loop():
    of = _Trained()

    def body(n):
        tw.cond(n < 1, of.update_v, of.update_w)
        return (n + 1,)

    def step():
        tw.while_loop(of.goes_on, body, (tw.constant(0),))

    return of.made(step)


def assignments_in_a_map():
    of = _Trained()

    def row(x):
        of.sums.assign_add(x)
        return x * 2.0

    def step():
        of.count.assign_add(1.0)
        doubled = tw.map_fn(row, of.v * 1.0)
        of.v.assign(doubled * 0.5)

    return of.made(step)


def a_call_between_updates():
    of, spec = _Trained(), tw.TensorSpec((5, 3), tw.float32)

    def step():
        of.update_v()
        x = tw.numpy_function(lambda x: x * 2, [of.v * 1.0], spec)
        of.sums.assign(tw.reduce_sum(x, 0))
        of.update_w()
        of.count.assign_add(1.0)

    return of.made(step)


def a_call_between_updates_of_the_same_weights():
    of, spec = _Trained(), tw.TensorSpec((5, 3), tw.float32)

    def step():
        for _ in range(2):
            of.update_v()
            x = tw.numpy_function(lambda x: x * 2, [of.v * 1.0], spec)
            of.sums.assign_add(tw.reduce_sum(x, 0))

    return of.made(step)


def two_optimizers_of_the_same_weights():
    of, other = _Trained(), Adam(0.05)
    other.apply([tw.ones((5, 3))], [of.v])

    def step():
        of.update_v()
        other.apply([3 * of.v], [of.v])
        of.v.assign(of.v * 0.5)

    traced, variables = of.made(step)
    return traced, [*variables, *other.variables]


def an_assignment_then_an_update_of_the_same_weights():
    of = _Trained()

    def step():
        of.v.assign(of.v * 0.5)
        of.update_v()
        of.note()

    return of.made(step)


def an_update_that_python_makes():
    of = _Trained()
    of.constrain()

    def step():
        of.note()
        of.update_v()
        of.update_w()
        of.count.assign_add(1.0)

    return of.made(step)


def an_update_that_python_makes_last():
    of = _Trained()
    of.constrain()

    def step():
        of.update_v()
        of.update_w()

    return of.made(step)


def averages_and_sums_of_gradients():
    of = _Trained(
        Adam(0.1, gradient_accumulation_steps=2), SGD(0.1, momentum=0.9, use_ema=True)
    )

    def step():
        of.update_v()
        of.update_w()
        of.note()

    return of.made(step)


def random_numbers_on_both_sides_of_a_branch():
    of, generator = _Trained(), tw.random.Generator.from_seed(1)

    def noisy():
        of.first.apply([generator.normal((5, 3))], [of.v])

    def step():
        of.sums.assign(generator.normal((3,)))
        tw.cond(tw.reduce_sum(of.v) > -1e9, noisy, lambda: None)
        of.w.assign(generator.normal((4,)))

    traced, variables = of.made(step)
    return traced, [*variables, generator.state]


def _model(optimizer, **options):
    keras.utils.set_random_seed(0)
    layers = keras.layers
    policy = options.pop("policy", None)
    model = keras.Sequential(
        [
            layers.Dense(8, dtype=policy),
            layers.BatchNormalization(dtype=policy),
            layers.Dropout(0.3, seed=1),
            layers.Dense(3, dtype=policy),
        ]
    )
    model.compile(optimizer, "mse", metrics=["mae"], **options)
    random = np.random.default_rng(1)
    data = [tw.constant(random.normal(size=(8, n)), "float32") for n in (5, 3)]
    return model, data


def _variables_of(model):
    return [*model.variables, *model.optimizer.variables]


def a_scaled_loss():
    """As `mixed_float16` trains, with a scale that doubles in every third step."""
    optimizer = LossScaleOptimizer(Adam(0.1), dynamic_growth_steps=3)
    model, data = _model(optimizer, policy="mixed_float16")
    train = model.make_train_function()
    train(data)
    return lambda: train(data), _variables_of(model)


def several_steps_of_an_execution():
    return _several(Adam(0.1))


def several_steps_with_a_scaled_loss():
    optimizer = LossScaleOptimizer(Adam(0.1), dynamic_growth_steps=2)
    return _several(optimizer, policy="mixed_float16")


def _several(optimizer, **options):
    """Steps as `fit` makes them with ``steps_per_execution``."""
    model, data = _model(optimizer, steps_per_execution=3, **options)
    train = model.make_train_function()
    train(data)
    train.execute_together([data] * 3)
    return lambda: train.execute_together([data] * 3), _variables_of(model)


def two_rules():
    optimizer = MultiOptimizer(OptimizerMap(Adam(0.1), {"dense_1": SGD(0.1)}))
    model, data = _model(optimizer)
    train = model.make_train_function()
    train(data)
    return lambda: train(data), _variables_of(model)


STEPS = [
    update_in_a_branch,
    changes_around_a_branch,
    a_branch_behind_changes,
    a_branch_with_an_update_that_python_makes,
    two_updates_in_a_branch,
    one_of_three_branches,
    updates_in_a_loop,
    updates_and_branches_in_a_loop,
    assignments_in_a_map,
    a_call_between_updates,
    a_call_between_updates_of_the_same_weights,
    two_optimizers_of_the_same_weights,
    an_assignment_then_an_update_of_the_same_weights,
    an_update_that_python_makes,
    an_update_that_python_makes_last,
    averages_and_sums_of_gradients,
    random_numbers_on_both_sides_of_a_branch,
]
# Those of a model, which have many bytecodes.
MODEL_STEPS = [
    a_scaled_loss,
    several_steps_of_an_execution,
    several_steps_with_a_scaled_loss,
    two_rules,
]
