"""Optimizer updates in traced functions: every value is that of eager mode.

Gradients that live side by side, across updates, branches, loops, nested functions and
Python; values stored after an update in place; several optimizers and subsets.
"""

import numpy as np
import pytest

import tapewright as tw

from ..rounding import without_overflow

pytestmark = pytest.mark.gpu_first

RULES = {
    "sgd": lambda: tw.optimizers.SGD(0.1),
    "momentum": lambda: tw.optimizers.SGD(0.1, momentum=0.9),
    "adam": lambda: tw.optimizers.Adam(0.05),
    "clipped": lambda: tw.optimizers.RMSprop(0.05, global_clipnorm=0.5),
}


class Setting:
    """Variables of several sizes, two optimizers, and two gradients of each variable."""

    def __init__(self, kind):
        rng = np.random.default_rng(3)
        shapes = [(3,), (2, 4), (), (150, 120)]  # the last has a segment of its own
        self.weights = [tw.Variable(rng.normal(size=s), name="w") for s in shapes]
        self.metric = tw.Variable(np.float64(0.0))
        self.rule, self.other = RULES[kind](), RULES[kind]()

    def gradients(self, x):
        with tw.GradientTape(persistent=True) as tape:
            first = tw.add_n([tw.reduce_sum(tw.sin(w) * x) for w in self.weights])
            second = tw.add_n([tw.reduce_sum(w * w + x) for w in self.weights])
        return [tape.gradient(y, self.weights) for y in (first, second)]

    def apply(self, gradients, rule=None):
        (rule or self.rule).apply_gradients(zip(gradients, self.weights))

    def values(self):
        rules = [v for rule in (self.rule, self.other) for v in rule.variables]
        return [v.numpy() for v in (*self.weights, self.metric, *rules)]


def one_after_the_other(s, x):
    first, second = s.gradients(x)
    s.apply(first)
    s.apply(second)


def second_first(s, x):
    first, second = s.gradients(x)
    s.apply(second)
    s.apply(first)


def swapped_variables(s, x):
    (a, b, *rest), second = s.gradients(x)
    s.apply([a, b, *rest])
    s.rule.apply_gradients([(second[3], s.weights[3]), (second[0], s.weights[0])])
    s.rule.apply_gradients([(a * 2.0, s.weights[0]), (b, s.weights[1])])


def two_optimizers(s, x):
    first, second = s.gradients(x)
    s.apply(first)
    s.apply(second, s.other)
    s.apply(first, s.other)


def read_after_the_update(s, x):
    first, second = s.gradients(x)
    s.apply(first)
    s.metric.assign_add(tw.linalg.global_norm(first))
    s.apply(second)
    s.metric.assign_add(tw.linalg.global_norm(second) + tw.reduce_sum(first[1]))


def one_gradient_for_two_variables(s, x):
    g = tw.sin(s.weights[0] * x)
    like = tw.Variable(np.ones(3)) if not hasattr(s, "like") else s.like
    s.like = like
    s.rule.apply_gradients([(g, s.weights[0]), (g, like)])
    s.metric.assign_add(tw.reduce_sum(g) + tw.reduce_sum(like))


def across_a_branch(s, x):
    first, second = s.gradients(x)
    tw.cond(x > 0.0, lambda: s.apply(second) or x, lambda: x)
    s.apply(first)
    s.metric.assign_add(tw.reduce_sum(first[0]) + tw.reduce_sum(s.weights[1]))


def across_a_loop(s, x):
    first, _ = s.gradients(x)

    def body(i):
        s.apply(s.gradients(x * 0.5)[1])
        return (i + 1,)

    tw.while_loop(lambda i: i < 3, body, (tw.constant(0),))
    s.apply(first)


def across_a_function(s, x):
    first, second = s.gradients(x)
    if not hasattr(s, "nested"):
        s.nested = tw.function(lambda *g: s.apply(list(g)))
    s.nested(*second)
    s.apply(first)
    s.nested(*first)


def across_python(s, x):
    first, _ = s.gradients(x)
    tw.py_function(lambda x: s.apply(s.gradients(x)[1]), [x], [])
    s.apply(first)


def stored_after_the_update(s, x):
    first, _ = s.gradients(x)
    y = tw.cos(s.weights[1] * x) * 2.0

    def branch():
        s.apply(first)
        s.weights[1].assign(y)
        s.weights[0].assign_add(tw.ones([3], "float64"))
        return x

    tw.cond(x > -9.0, branch, lambda: x)
    s.metric.assign(tw.reduce_sum(tw.exp(y) * s.weights[1]))


def stored_in_a_loop(s, x):
    rows = tw.stack([tw.sin(s.weights[0] * x), tw.cos(s.weights[0] * x)]) * 2.0

    def body(i):
        s.apply(s.gradients(x)[0])
        s.weights[0].assign(rows[i])
        return (i + 1,)

    tw.while_loop(lambda i: i < 2, body, (tw.constant(0),))
    s.metric.assign(tw.reduce_sum(tw.exp(rows)))


PROGRAMS = [
    one_after_the_other,
    second_first,
    swapped_variables,
    two_optimizers,
    read_after_the_update,
    one_gradient_for_two_variables,
    across_a_branch,
    across_a_loop,
    across_a_function,
    across_python,
    stored_after_the_update,
    stored_in_a_loop,
]


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_traced_step_changes_all_variables_as_eager_mode_does(program, kind):
    eager, traced = Setting(kind), Setting(kind)
    step = tw.function(lambda x: program(traced, x))
    for x in (0.5, -0.25, 1.5):
        program(eager, tw.constant(x, "float64"))
        step(tw.constant(x, "float64"))
        for a, b in zip(traced.values(), eager.values(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_what_a_branch_stores_stays_when_other_functions_run():
    v, rule = tw.Variable(tw.zeros([4])), tw.optimizers.SGD(0.5)
    x = tw.constant([0.5, 1.0, 1.5, 2.0])

    @tw.function
    def step(x):
        y = tw.sin(x) * 2.0

        def branch():
            rule.apply_gradients([(y * 1.0, v)])
            v.assign(y)
            return 0.0

        tw.cond(x[0] > 0.0, branch, lambda: 1.0)
        return tw.reduce_sum(tw.exp(y))

    step(x)
    held = v.read()
    step(x * 3.0)
    np.testing.assert_allclose(held.numpy(), 2 * np.sin(x.numpy()), rtol=1e-6)
    np.testing.assert_allclose(v.numpy(), 2 * np.sin(3 * x.numpy()), rtol=1e-6)


def test_the_states_of_a_loop_that_updates_a_variable_outlive_the_loop():
    counter = tw.Variable(0.0, trainable=False)
    rule = tw.optimizers.SGD(1.0)

    @tw.function
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.sin(x) * 2.0

            def body(y):
                rule.apply_gradients([(tw.constant(-1.0), counter)])
                return (y * y,)

            (z,) = tw.while_loop(lambda y: tw.reduce_sum(y) < 50.0, body, (y,))
        other = tw.cos(x) + 1.0  # takes memory that is free by now
        return tape.gradient(z, x), tw.reduce_sum(tw.exp(other))

    x = tw.constant([0.9, 1.0, 1.1])
    y, slope, steps = 2 * np.sin(x.numpy()), 2 * np.cos(x.numpy()), 0
    while y.sum() < 50:
        y, slope, steps = y * y, 2 * y * slope, steps + 1
    for _ in range(2):
        np.testing.assert_allclose(f(x)[0].numpy(), slope, rtol=1e-5)
    assert float(counter) == 2 * steps


@pytest.mark.parametrize("n", [4, 4096, 20000])
@pytest.mark.parametrize("factor", [0.5, -0.5, 0.0, 1.0, 3.0, np.nan, np.inf])
def test_sums_with_a_factor_keep_sign_nan_and_infinity(n, factor):
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 3e38, 1e-42]
    pairs = np.array([(a, b) for a in special for b in special], np.float32)
    x, y = (tw.constant(np.resize(part, n)) for part in pairs.T.copy())
    programs = {
        "c*x - y": lambda x, y: factor * x - tw.abs(y),
        "y - c*x": lambda x, y: tw.abs(y) - factor * x,
        "c*x + y": lambda x, y: factor * x + tw.abs(y),
        "y + x*c": lambda x, y: tw.abs(y) + x * factor,
        "x/c - y": lambda x, y: x / factor - tw.abs(y),
    }
    with np.errstate(all="ignore"):
        for name, f in programs.items():
            found, wanted = tw.function(f)(x, y).numpy(), f(x, y).numpy()
            found = without_overflow(found, wanted)
            np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=name)
