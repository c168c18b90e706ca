"""Random programs: a traced function is the Python function, call after call.

Programs of a few ops on tensors and variables of several shapes and dtypes are made up by
hypothesis; each runs eagerly and traced, several times, with other inputs. What is true of
one is true of the other: outputs, variables, generators; and nobody writes into an array
that somebody else holds.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import tapewright as tw
from tapewright.graph.control.effects import assert_true, host_effect

REORDERING = ("shared_weights", "sum_of_squares", "scaled_sums", "accumulated_products")
EXACTLY = {
    name: False for name in REORDERING if name in tw.config.report()["graph_passes"]
}
SHAPES = [(), (3,), (2, 3), (1, 3), (2, 1), (0, 3), (2, 2, 3)]
DTYPES = ["float32", "float64", "int32", "bool"]

# ------------------------------------------------------------------- the programs


def fitted(x, shape, dtype):
    """A tensor of this shape and dtype that depends on ``x``."""
    x = tw.cast(x, dtype) if x.dtype != dtype else x
    if tuple(x.shape) == tuple(shape):
        return x
    return tw.broadcast_to(tw.reduce_max(tw.reshape(number(x), [-1])[:1]), shape)


def number(x):
    return tw.cast(x, "int32") if x.dtype == tw.bool else x


def beside(x, y):
    """``x`` and ``y`` of one dtype, not boolean, and of shapes that broadcast."""
    x = number(x)
    y = tw.cast(y, x.dtype) if y.dtype != x.dtype else y
    try:
        np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    except ValueError:
        y = tw.reduce_sum(y)
    return x, y


def floating(x):
    return x if x.dtype.is_floating else tw.cast(x, tw.float64)


def axis(x, k):
    return k % len(x.shape)


OPS = {
    "negative": lambda x, y, k: -number(x),
    "tanh": lambda x, y, k: tw.tanh(floating(x)),
    "square": lambda x, y, k: tw.square(number(x)),
    "relu": lambda x, y, k: tw.nn.relu(floating(x)),
    "exp": lambda x, y, k: tw.exp(-tw.abs(floating(x))),
    "identity": lambda x, y, k: tw.identity(x),
    "same": lambda x, y, k: x,
    "number": lambda x, y, k: number(x) * (k + 1) + 1,
    "add": lambda x, y, k: tw.add(*beside(x, y)),
    "subtract": lambda x, y, k: tw.subtract(*beside(x, y)),
    "multiply": lambda x, y, k: tw.multiply(*beside(x, y)),
    "maximum": lambda x, y, k: tw.maximum(*beside(x, y)),
    "divide": lambda x, y, k: tw.math.divide_no_nan(*beside(floating(x), y)),
    "less": lambda x, y, k: tw.less(*beside(x, y)),
    "where": lambda x, y, k: tw.where(tw.greater(*beside(x, y)), *beside(x, y)),
    "cast": lambda x, y, k: tw.cast(x, DTYPES[k % 3]),
    "sum": lambda x, y, k: tw.reduce_sum(number(x), axis(x, k), k > 2) if x.ndim else x,
    "mean": lambda x, y, k: tw.reduce_mean(floating(x), keepdims=k > 2),
    "max": lambda x, y, k: tw.reduce_max(number(x), -1) if x.ndim and x.shape[-1] else x,
    "flat": lambda x, y, k: tw.reshape(x, [-1]),
    "transpose": lambda x, y, k: tw.transpose(x),
    "expand": lambda x, y, k: tw.expand_dims(x, k % (x.ndim + 1)) if x.ndim < 4 else x,
    "half": lambda x, y, k: x[1:] if x.ndim else x,
    "back": lambda x, y, k: x[..., ::-1] if x.ndim else x,
    "row": lambda x, y, k: x[0] if x.ndim and x.shape[0] else x,
    "pick": lambda x, y, k: tw.gather(x, [0, 0]) if x.ndim and x.shape[0] else x,
    "concat": lambda x, y, k: tw.concat([x, x], axis(x, k)) if x.ndim else x,
    "stack": lambda x, y, k: tw.stack(beside(x, x)) if x.ndim < 4 else x,
    "split": lambda x, y, k: tw.unstack(x)[-1] if x.ndim and x.shape[0] else x,
    "matmul": lambda x, y, k: matmul(x, y),
    "draw": lambda x, y, k: tw.random.normal(x.shape, dtype=tw.float64),
    "dropout": lambda x, y, k: tw.nn.dropout(floating(x), 0.5),
    "slope": lambda x, y, k: slope(x, y),
}  # fmt: skip


def matmul(x, y):
    x, y = floating(x), floating(y)
    y = fitted(y, (x.shape[-1], 2), x.dtype) if x.ndim == 2 else x
    return x @ y if x.ndim == 2 else x


def slope(x, y):
    x, y = beside(floating(x), y)
    with tw.GradientTape() as tape:
        tape.watch(x)
        z = tw.sin(x * y) * x
    return tape.gradient(z, x)


def assign(variable, x, k):
    method = (variable.assign, variable.assign_add, variable.assign_sub)[k % 3]
    method(fitted(x, variable.shape, variable.dtype))


steps = some.lists(
    some.tuples(
        some.sampled_from([*OPS, "read", "read", "assign", "assign", "assign"]),
        some.integers(0, 30),
        some.integers(0, 30),
        some.integers(0, 5),
    ),
    min_size=3,
    max_size=15,
)
shapes = some.lists(
    some.tuples(some.sampled_from(SHAPES), some.sampled_from(DTYPES)),
    min_size=1,
    max_size=3,
)


def program(steps, variables, returned):
    """A function of tensors that makes these steps; ``returned`` picks the outputs."""

    def run(*inputs):
        made = list(inputs)
        for name, i, j, k in steps:
            x, y = made[-1 - i % len(made)], made[-1 - j % len(made)]
            variable = variables[j % len(variables)]
            if name == "read":
                made.append(variable.read())
            elif name == "assign":
                assign(variable, x, k)
            else:
                made.append(OPS[name](x, y, k))
        return [made[-1 - i % len(made)] for i in returned]

    return run


def arrays(shapes, seed):
    rng = np.random.default_rng(seed)
    found = [rng.uniform(-2, 2, shape).astype(dtype) for shape, dtype in shapes]
    return [np.asarray(a) for a in found]


def new_variables():
    return [
        tw.Variable(np.array([0.5, -1.0, 2.0], "float32")),
        tw.Variable(np.arange(6.0).reshape(2, 3)),
        tw.Variable(np.array(3, "int32"), trainable=False),
    ]


def values(tensors):
    return [np.array(t) for t in tensors]


def assert_same(found, wanted, what):
    assert len(found) == len(wanted), what
    for a, b in zip(found, wanted):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), what
        np.testing.assert_array_equal(a, b, err_msg=what)


def assert_alike(wanted_run, traced_run, shapes, calls=3, exactly=True):
    """Both make the same of the same, and keep their hands off what others hold."""
    kept = []
    for call in range(calls):
        inputs = [tw.constant(a) for a in arrays(shapes, call)]
        tw.random.set_seed(call)
        with np.errstate(all="ignore"):
            outputs, variables = wanted_run(inputs)
        state = tw.random.get_global_generator().state.numpy()
        tw.random.set_seed(call)
        found, own = traced_run(inputs)
        if exactly:
            assert_same(values(found), values(outputs), f"outputs of call {call}")
            assert_same(values(own), values(variables), f"variables after call {call}")
        assert_same([tw.random.get_global_generator().state.numpy()], [state], "state")
        assert_same(values(inputs), arrays(shapes, call), f"inputs of call {call}")
        held = [*found, *[v.read() for v in own]]
        kept.append((held, values(held)))
    for call, (held, were) in enumerate(kept):
        assert_same(values(held), were, f"what is kept of call {call}")


bounded = settings(
    max_examples=120,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@bounded
@given(steps, shapes, some.lists(some.integers(0, 9), min_size=1, max_size=4))
def test_a_traced_program_is_the_eager_one_bit_for_bit(steps, shapes, returned):
    runs = []
    for wrap in (lambda f: f, tw.function):
        variables = new_variables()
        run = wrap(program(steps, variables, returned))
        runs.append(lambda inputs, run=run, own=variables: (run(*inputs), own))
    with tw.config.graph_passes(**EXACTLY):
        assert_alike(*runs, shapes)


@bounded
@given(steps, shapes, some.lists(some.integers(0, 9), min_size=1, max_size=4))
def test_with_every_step_on_nobody_writes_into_what_others_hold(
    steps, shapes, returned
):
    runs = []
    for wrap in (lambda f: f, tw.function):
        variables = new_variables()
        run = wrap(program(steps, variables, returned))
        runs.append(lambda inputs, run=run, own=variables: (run(*inputs), own))
    assert_alike(*runs, shapes, exactly=False)


# ----------------------------------------------------------------- steps of training


def optimizer(name):
    if name == "momentum":
        return tw.optimizers.SGD(0.1, momentum=0.9)
    return tw.optimizers.Adam(0.05, **({"clipnorm": 0.5} if name == "clipped" else {}))


def training(kind, order, seen):
    """A step of training: reads of the weights at places that ``order`` names."""
    rng = np.random.default_rng(0)
    w = tw.Variable(rng.normal(size=(4, 3)))
    b = tw.Variable(rng.normal(size=3))
    steps = tw.Variable(0, trainable=False)
    rule = optimizer(kind)

    def step(x):
        found = []
        if "before" in order:
            found += [w.read(), b * 2.0]
        if "count before" in order:
            steps.assign_add(1)
        with tw.GradientTape() as tape:
            y = tw.nn.tanh(x @ w + b)
            y = tw.nn.dropout(y, 0.3) if "dropout" in order else y
            loss = tw.reduce_mean(tw.square(y))
        if "twice" in order:
            rule.apply_gradients(zip(tape_gradient(x, w, b), [w, b]))
        rule.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b]))
        if "after" in order:
            found += [w.read(), tw.reduce_sum(w * x[0, 0])]
        if "shrink" in order:
            w.assign(w * 0.99)
        if "count after" in order:
            steps.assign_add(1)
        return [loss, *found]

    def tape_gradient(x, *variables):
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(tw.sin(x @ w)) + tw.reduce_sum(b * b)
        return tape.gradient(loss, variables)

    return step, [w, b, steps, rule.iterations, *rule.variables]


places = some.sets(
    some.sampled_from(
        ["before", "after", "count before", "count after", "dropout", "twice", "shrink"]
    )
)


@settings(bounded, max_examples=40)
@given(some.sampled_from(["momentum", "adam", "clipped"]), places)
def test_traced_steps_of_training_are_the_eager_ones(kind, order):
    shapes, runs = [((5, 4), "float64")], []
    for wrap in (lambda f: f, tw.function):
        step, variables = training(kind, order, [])
        run = wrap(step)
        runs.append(lambda inputs, run=run, own=variables: (run(*inputs), own))
    with tw.config.graph_passes(**EXACTLY):
        assert_alike(*runs, shapes, calls=4)


def test_a_tape_and_a_tensor_from_before_keep_the_old_value_of_a_variable():
    step, (w, *_) = training("momentum", set(), [])
    traced, x = tw.function(step), tw.constant(np.ones((5, 4)))
    for _ in range(3):
        before = w.numpy()
        old = w.read()
        with tw.GradientTape() as tape:
            y = tw.reduce_sum(w * w)
        traced(x)
        assert (w.numpy() != before).any()
        np.testing.assert_array_equal(old, before)
        np.testing.assert_array_equal(tape.gradient(y, w), 2 * before)


# ------------------------------------------------------ an exception in mid-replay

X = np.array([[2.0, 1.0], [1.0, 3.0]])
BAD = -X  # not positive definite


def fallible(x, where):
    """Fails for `BAD`: in the matrix, an index, or a number drawn."""
    return {
        "matrix": lambda: tw.linalg.cholesky(x),
        "index": lambda: tw.gather(x, tw.cast(x[0], tw.int32) - 1),
        "draw": lambda: tw.random.poisson((2,), x[0, 0]),
    }[where]()


@pytest.mark.parametrize("where", ["matrix", "index", "draw"])
@pytest.mark.parametrize("place", ["before", "between", "after"])
@pytest.mark.parametrize("kind", ["momentum", "adam"])
def test_an_exception_leaves_all_as_before_the_step(where, place, kind):
    rule = optimizer(kind)
    w, count = tw.Variable(np.ones((2, 2))), tw.Variable(0)
    last = tw.Variable(np.zeros((2, 2)))

    @tw.function
    def step(x):
        count.assign_add(1)
        noise = tw.random.normal((2, 2), dtype=tw.float64)
        results = [fallible(x, where)] if place == "before" else []
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(tw.square(w @ x + noise))
        rule.apply_gradients([(tape.gradient(loss, w), w)])
        results += [fallible(x, where)] if place == "between" else []
        last.assign(w * 2.0)
        results += [fallible(x, where)] if place == "after" else []
        return loss, results

    tw.random.set_seed(3)
    step(tw.constant(X))
    generator = tw.random.get_global_generator()
    held = [w, count, last, generator.state, rule.iterations, *rule.variables]
    before = values(held)
    with pytest.raises((ValueError, IndexError, np.linalg.LinAlgError)):
        step(tw.constant(BAD))
    assert_same(values(held), before, "after the exception")
    step(tw.constant(X))  # and goes on
    assert int(count) == 2


def test_of_two_updates_in_a_step_neither_is_made_if_the_second_cannot_be():
    first, second = (tw.Variable(np.ones((2, 2))) for _ in range(2))
    rules = tw.optimizers.SGD(0.5), tw.optimizers.SGD(0.5)

    @tw.function
    def step(x):
        rules[0].apply_gradients([(x * 1.0, first)])
        rules[1].apply_gradients([(tw.linalg.cholesky(x), second)])

    step(tw.constant(X))
    before = values([first, second])
    with pytest.raises((ValueError, np.linalg.LinAlgError)):
        step(tw.constant(BAD))
    assert_same(values([first, second]), before, "variables")


def test_what_needs_an_update_and_fails_takes_the_update_back():
    w, rule = tw.Variable(X), tw.optimizers.SGD(1.0, momentum=0.9)
    count = tw.Variable(0)

    @tw.function
    def step(x):
        count.assign_add(1)
        rule.apply_gradients([(x, w)])
        w.assign_add(x)
        rule.apply_gradients([(x, w)])
        return tw.linalg.cholesky(w)

    held = [w, count, rule.iterations, *rule.variables]
    step(tw.constant(X * 0.1))
    before = values(held)
    for _ in range(2):
        with pytest.raises((ValueError, np.linalg.LinAlgError)):
            step(tw.constant(X * 9.0))
        assert_same(values(held), before, "variables")
    step(tw.constant(X * 0.1))
    assert int(rule.iterations) == 4


def test_what_is_shown_before_and_after_an_update_is_shown_in_this_order():
    w, rule, seen = tw.Variable(1.0), tw.optimizers.SGD(1.0), []

    @tw.function
    def step(x):
        host_effect("print", lambda w: seen.append(float(w)), [w])
        rule.apply_gradients([(x, w)])
        host_effect("print", lambda w: seen.append(float(w)), [w])
        host_effect("print", lambda x: seen.append(float(x)), [x])

    step(tw.constant(0.25))
    step(tw.constant(-0.5))
    assert seen == [1.0, 0.75, 0.25, 0.75, 1.25, -0.5]


@pytest.mark.parametrize("of", ["the input", "the update"])
def test_an_assertion_after_an_update_leaves_it_unmade(of):
    w, rule = tw.Variable(1.0), tw.optimizers.SGD(1.0)

    @tw.function
    def step(x):
        rule.apply_gradients([(x, w)])
        assert_true(x > 0.0 if of == "the input" else w < 1.0, "it grows")

    step(tw.constant(0.25))
    with pytest.raises(tw.errors.InvalidArgumentError, match="it grows"):
        step(tw.constant(-0.5))
    assert w.numpy() == 0.75 and int(rule.iterations) == 1
