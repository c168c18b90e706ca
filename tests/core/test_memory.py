"""Memory: a tape keeps what rules name, and lets go of it by reference count alone."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices

from ..memory import grown

pytestmark = pytest.mark.gpu_first

WIDTH = 50


@pytest.fixture(autouse=True, scope="module")
def without_others():
    """What earlier tests have left is collected once, and then stays out of the way."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def without_collector(device):
    """Nothing here may need the garbage collector."""
    if devices.current_module() is not np:
        pytest.skip("looks at NumPy's arrays")
    gc.disable()
    yield
    gc.enable()


class Watched:
    """Weak references to tensors, by name."""

    def __init__(self):
        self.references = {}

    def __call__(self, name, tensor):
        self.references[name] = weakref.ref(tensor)
        return tensor

    @property
    def alive(self):
        return {name for name, r in self.references.items() if r() is not None}


def variable(*shape, dtype="float32"):
    values = np.random.default_rng(0).uniform(0.5, 1.5, shape)
    return tw.Variable(values, dtype=dtype)


# --------------------------------------------------------------- what a tape keeps

x0 = tw.constant(np.linspace(0.5, 1.5, WIDTH, dtype=np.float32).reshape(5, 10))


@pytest.mark.parametrize(
    ("op", "kept"),
    [
        (tw.tanh, {"in"}),
        (tw.exp, {"out"}),
        (tw.sqrt, {"out"}),
        (tw.nn.sigmoid, {"in", "out"}),
        (tw.sin, {"in"}),
        (tw.square, {"in"}),
        (tw.math.log, {"in"}),
        (lambda x: x + 1.0, set()),
        (lambda x: x - x0, set()),
        (lambda x: x0 - x, set()),
        (lambda x: x * 3.0, set()),
        (lambda x: x / 3.0, set()),
        (lambda x: -x, set()),
        (lambda x: x * x, {"in"}),
        (tw.reduce_sum, set()),
        (tw.reduce_mean, set()),
        (lambda x: tw.reduce_sum(x, axis=0, keepdims=True), set()),
        (lambda x: tw.reshape(x, [10, 5]), set()),
        (tw.transpose, set()),
        (lambda x: x[1:, ::2], set()),
        (lambda x: tw.concat([x, x0], 0), set()),
        (lambda x: tw.stack([x, x0]), set()),
        (lambda x: tw.split(x, 5)[0], set()),
        (lambda x: tw.pad(x, [[1, 1], [0, 0]]), set()),
        (lambda x: tw.broadcast_to(x, [3, 5, 10]), set()),
        (lambda x: tw.cast(x, "float64"), set()),
        (tw.identity, set()),
        (lambda x: tw.matmul(x, x0, transpose_b=True), set()),
        (tw.stop_gradient, set()),
        (tw.round, set()),
    ],
)
def test_a_tape_keeps_what_the_rule_names_and_no_more(op, kept):
    watched = Watched()
    x = variable(5, 10)
    with tw.GradientTape() as tape:
        h = watched("in", x * x0)
        y = watched("out", op(h))
        z = y * 1.0
        del h, y
    assert watched.alive == kept
    del tape, z
    assert watched.alive == set()


def test_a_product_keeps_the_other_factor_only():
    watched, x, w = Watched(), variable(4, 4), variable(4, 4)
    with tw.GradientTape() as tape:
        tape.watch(w)
        a = watched("tracked", x + 1.0)
        b = watched("constant", tw.constant(np.ones((4, 4), np.float32)))
        y = a * b
        del a, b
    assert watched.alive == {"constant"}
    assert tape.gradient(y, x) is not None


# ------------------------------------------------------------------ when it lets go


def chain(watched, x):
    for i in range(5):
        x = watched(f"product {i}", x * x)
        x = watched(f"tanh {i}", tw.tanh(x))
    return tw.reduce_sum(x)


def test_a_gradient_frees_a_tape_that_is_not_persistent():
    watched, x = Watched(), variable(3)
    with tw.GradientTape() as tape:
        y = chain(watched, x)
    assert watched.alive
    tape.gradient(y, x)
    assert watched.alive == set()


@pytest.mark.parametrize("method", ["jacobian", "batch_jacobian"])
def test_a_jacobian_frees_it_too(method):
    watched, x = Watched(), variable(3, 2)
    with tw.GradientTape() as tape:
        y = watched("y", tw.tanh(watched("h", x * x)) * 2.0)
    getattr(tape, method)(y, x)
    del y
    assert watched.alive == set()


def test_a_persistent_tape_frees_it_when_it_goes():
    watched, x = Watched(), variable(3)
    with tw.GradientTape(persistent=True) as tape:
        y = chain(watched, x)
    for _ in range(2):
        tape.gradient(y, x)
    tape.jacobian(y, x)
    assert watched.alive
    del tape
    assert watched.alive == set()


def test_reset_frees_what_was_recorded():
    watched, x = Watched(), variable(3)
    with tw.GradientTape() as tape:
        chain(watched, x)
        assert watched.alive
        tape.reset()
        assert watched.alive == set()


def test_a_tape_that_is_never_asked_frees_it_when_it_goes():
    watched, x = Watched(), variable(3)
    with tw.GradientTape() as tape:
        chain(watched, x)
    del tape
    assert watched.alive == set()


def test_the_walk_frees_records_as_it_goes():
    watched, x, seen = Watched(), variable(3), []

    @tw.custom_gradient
    def look(x):
        def gradient(dy):
            seen.append(watched.alive)
            return dy

        return x, gradient

    with tw.GradientTape() as tape:
        y = tw.reduce_sum(tw.tanh(watched("late", look(x * 1.0) * x)))
    tape.gradient(y, x)
    assert seen == [set()]


def test_nested_tapes_free_everything():
    watched, x = Watched(), variable(3)
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = chain(watched, x)
        g = watched("g", inner.gradient(y, x))
    assert watched.alive
    outer.gradient(g, x)
    del g, y
    assert watched.alive == set()


def test_a_custom_gradient_is_freed_with_its_closure():
    watched, x = Watched(), variable(3)

    @tw.custom_gradient
    def f(x):
        h = watched("closure", tw.tanh(x))
        return watched("value", h * 2.0), lambda dy: dy * h

    with tw.GradientTape() as tape:
        y = f(x)
    assert "closure" in watched.alive
    tape.gradient(y, x)
    del y
    assert watched.alive == set()


def test_a_failed_gradient_frees_the_tape():
    watched = Watched()
    images = tw.Variable(np.ones((2, 2, 1), np.float32))
    with tw.GradientTape() as tape:
        y = watched("y", tw.image.adjust_contrast(watched("h", tw.tanh(images)), 2.0))
    with pytest.raises(LookupError):
        tape.gradient(y, images)
    del y
    assert watched.alive == set()


def test_an_error_in_the_context_frees_the_tape():
    watched, x = Watched(), variable(3)

    def fails():
        with tw.GradientTape():
            chain(watched, x)
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert watched.alive == set()


def test_variables_are_not_kept_by_a_spent_tape_that_is_gone():
    watched = Watched()
    v = watched("v", variable(3))
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(v * v)
    tape.gradient(y, v)
    del v
    assert watched.alive == {"v"}  # watched_variables() still answers
    del tape
    assert watched.alive == set()


def test_nothing_of_a_model_step_is_left_for_the_collector():
    w, b = variable(8, 4), variable(4)
    x = tw.constant(np.ones((16, 8), np.float32))

    def step():
        with tw.GradientTape() as tape:
            logits = tw.matmul(tw.tanh(x), w) + b
            loss = tw.reduce_mean(
                tw.nn.sparse_softmax_cross_entropy_with_logits([0] * 16, logits)
            )
        for v, g in zip((w, b), tape.gradient(loss, [w, b]), strict=True):
            v.assign_sub(0.01 * g)

    step()
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        step()
        gc.collect()
        ours = [o for o in gc.garbage if type(o).__module__.startswith("tapewright")]
        arrays = [o for o in gc.garbage if isinstance(o, np.ndarray)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert ours == [] and arrays == []


# ---------------------------------------------------------------------- over time


def test_a_thousand_training_steps_leave_memory_flat():
    w, b = variable(20, 10), variable(10)
    x = tw.constant(np.random.default_rng(1).normal(size=(32, 20)).astype(np.float32))
    labels = tw.constant(np.arange(32) % 10)

    def step():
        with tw.GradientTape() as tape:
            logits = tw.nn.relu(tw.matmul(x, w) + b)
            loss = tw.reduce_mean(
                tw.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            )
        for v, g in zip((w, b), tape.gradient(loss, [w, b]), strict=True):
            v.assign_sub(0.01 * g)

    assert grown(step, 1000) < 16384  # 16 bytes a step: less than any object takes


def test_higher_orders_and_jacobians_leave_memory_flat():
    x = variable(4)

    @tw.custom_gradient
    def scaled(x):
        return x, lambda dy: dy * 2.0

    def step():
        with tw.GradientTape(persistent=True) as outer:
            with tw.GradientTape() as inner:
                y = tw.reduce_sum(scaled(tw.tanh(x)) ** 3)
            g = inner.gradient(y, x)
        outer.jacobian(g, x)
        outer.gradient(g, x)

    assert grown(step, 60) < 8192


def test_fresh_numbers_beside_tensors_do_not_pile_up():
    x, count = variable(3), iter(range(10**6))

    def step():
        for _ in range(20):
            x * (1.0 + next(count) * 1e-3)

    # The 1,000 that are kept take up to 400 kB, all 6,000 would take 1.4 MB.
    assert grown(step, 300) < 600_000


def test_a_large_intermediate_is_gone_before_the_next_one_is_made():
    megabyte, x = 2**18, variable(1)
    tracemalloc.start()
    try:
        for _ in range(10):
            with tw.GradientTape() as tape:
                y = tw.reduce_sum(tw.tanh(tw.broadcast_to(x, [megabyte])))
            tape.gradient(y, x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 2**20
