"""A step that is interrupted, or fails, has happened as a whole or not at all."""

import random
import signal
import threading
from functools import partial

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.core.state.commit import Commit
from tapewright.layers.constraints import MaxNorm
from tapewright.optimizers import (
    SGD,
    Adafactor,
    Adam,
    Lamb,
    LossScaleOptimizer,
    MultiOptimizer,
    Muon,
    Nadam,
    OptimizerMap,
)

from .interrupted_steps import MODEL_STEPS, STEPS
from .interrupts import (
    after,
    at_bytecode,
    check_all,
    count_bytecodes,
    equal,
    model_step,
    some,
    step_of,
    the_end,
    values,
)

# An interrupt may come in a finalizer, which Python then only reports.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("few_passes"),
]


@pytest.fixture(params=["numpy", "native"])
def target(request):
    with tw.config.use_target(request.param):
        yield request.param


@pytest.mark.parametrize("traced", [False, True])
def test_before_whatever_bytecode_an_error_comes_the_step_is_whole(traced, target):
    check_all(lambda: step_of(Adam, traced), the_end)


RULES = {
    "gradients that are summed": lambda: Adam(0.1, gradient_accumulation_steps=2),
    "averages": lambda: SGD(0.1, momentum=0.9, use_ema=True),
    "clipped gradients": lambda: SGD(0.1, global_clipnorm=0.5),
    "state besides slots": lambda: Nadam(0.1),
    "a rule that looks at values": lambda: Lamb(0.1),
    "a rule in ops": lambda: Muon(0.1),
    "another rule in ops": lambda: Adafactor(0.1),
    "a scaled loss": lambda: LossScaleOptimizer(Adam(0.1), dynamic_growth_steps=3),
    "two rules": lambda: MultiOptimizer(OptimizerMap(Adam(0.1), {"v1": SGD(0.1)})),
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_all_that_belongs_to_a_step_is_in_its_commit(rule, traced):
    check_all(lambda: step_of(RULES[rule], traced), some)


@pytest.mark.parametrize("traced", [False, True])
def test_all_that_belongs_to_a_step_in_ops_is_in_its_commit(traced, target):
    averages = {"use_ema": True, "ema_overwrite_frequency": 3}
    rule = lambda: Muon(0.1, gradient_accumulation_steps=2, **averages)  # noqa: E731
    check_all(lambda: step_of(rule, traced, constraint=MaxNorm(0.5)), some)


@pytest.mark.parametrize("rule", [SGD, Adam])
def test_a_step_of_several_blocks_or_of_rows_is_whole(rule, target):
    shapes = (300, 500), (7,)
    check_all(lambda: step_of(rule, shapes=shapes), some)
    check_all(lambda: step_of(rule, shapes=shapes, sparse=True), some)


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_statistics_and_draws_belong_to_the_step_of_a_model(run_eagerly):
    check_all(lambda: model_step(run_eagerly), some)


def test_two_optimizers_in_one_function_make_one_step(target):
    def make():
        v, w = tw.Variable(tw.ones((5, 3))), tw.Variable(tw.ones((4,)))
        total = tw.Variable(0.0, trainable=False)
        first, second = Adam(0.1), SGD(0.1, momentum=0.9)

        @tw.function
        def step():
            with tw.GradientTape(persistent=True) as tape:
                loss = tw.reduce_sum(v * v) * tw.reduce_sum(w * w)
            total.assign_add(loss)
            first.apply_gradients([(tape.gradient(loss, v), v)])
            second.apply_gradients([(tape.gradient(loss, w), w)])

        step()
        return step, [v, w, total, *first.variables, *second.variables]

    check_all(make, some)


def test_steps_that_go_on_with_new_values_count_together():
    def make():
        v, total = tw.Variable(tw.ones((5, 3))), tw.Variable(0.0, trainable=False)
        optimizer = Adam(0.1)

        @tw.function
        def steps():
            for _ in range(3):  # each from the values that the one before has left
                with tw.GradientTape() as tape:
                    loss = tw.reduce_sum(v * v)
                optimizer.apply_gradients([(tape.gradient(loss, v), v)])
                total.assign_add(loss)

        steps()
        return steps, [v, total, *optimizer.variables]

    check_all(make, some)


@pytest.mark.parametrize("make", [*STEPS, *MODEL_STEPS], ids=lambda make: make.__name__)
def test_a_step_with_branches_loops_and_calls_is_whole(make, target):
    check_all(make, some)


HAS_TIMERS = hasattr(signal, "setitimer")


@pytest.mark.skipif(not HAS_TIMERS, reason="there are no timers here")
@pytest.mark.parametrize("traced", [False, True])
def test_signals_at_random_moments_leave_whole_steps(traced, target, device):
    if device != "cpu":
        pytest.skip("the stand-in launches graphs in Python")
    make = lambda: step_of(Adam, traced, ((300, 700), (700,)))  # noqa: E731
    (step, variables), (other_step, other_variables) = make(), make()
    moments = random.Random(0)
    for _ in range(60):
        count = 0

        def steps():
            nonlocal count
            while True:
                step()
                count += 1

        after(moments.uniform(0, 0.01), steps)
        for _ in range(count):
            other_step()
        if not equal(values(variables), values(other_variables)):
            other_step()  # the last one was made, and not counted any more
            assert equal(values(variables), values(other_variables))


@pytest.mark.skipif(not HAS_TIMERS, reason="there are no timers here")
def test_fit_goes_on_after_interrupts_at_random_moments(target, tmp_path, device):
    if device != "cpu":
        pytest.skip("the stand-in launches graphs in Python")

    def new():
        keras.utils.set_random_seed(0)
        layers = keras.layers
        model = keras.Sequential(
            [layers.Dense(64, "relu"), layers.BatchNormalization(), layers.Dense(3)]
        )
        model.compile("adam", "mse", metrics=["mae"])
        model.fit(x, y, **options)
        return model

    numbers = np.random.default_rng(1)
    x, y = (numbers.normal(size=(80, n)).astype("f4") for n in (50, 3))
    options = {"batch_size": 8, "shuffle": False, "verbose": 0}
    model, other, moments = new(), new(), random.Random(1)
    for _ in range(30):
        before = int(model.optimizer.iterations)
        after(moments.uniform(0, 0.03), lambda: model.fit(x, y, epochs=100, **options))
        epochs, steps = divmod(int(model.optimizer.iterations) - before, 10)
        if epochs:
            other.fit(x, y, epochs=epochs, **options)
        if steps:
            other.fit(x[: 8 * steps], y[: 8 * steps], **options)
        pairs = zip(model.weights, other.weights, strict=True)
        assert all([np.array_equal(a.numpy(), b.numpy()) for a, b in pairs])
        model.save(tmp_path / "model.keras")


@pytest.mark.skipif(not HAS_TIMERS, reason="there are no timers here")
def test_an_interrupt_of_the_first_fit_leaves_no_half_built_layers():
    def new():
        layers = keras.layers
        dense = layers.Dense(8, kernel_regularizer="l2")
        model = keras.Sequential([dense, layers.BatchNormalization(), layers.Dense(3)])
        model.compile(Muon(0.01), "mse")
        return model

    x, y = np.ones((8, 5), "f4"), np.ones((8, 3), "f4")
    whole, moments = new(), random.Random(2)
    whole.fit(x, y, verbose=0)
    for _ in range(60):
        model = new()
        after(moments.uniform(0, 0.05), partial(model.fit, x, y, verbose=0))
        model.fit(x, y, verbose=0)
        assert len(model.weights) == len(whole.weights)
        assert len(model.losses) == len(whole.losses)
        assert len(model.optimizer.variables) == len(whole.optimizer.variables)


def test_an_interrupted_step_keeps_no_lock():
    step, variables = step_of(Adam)
    count = count_bytecodes(step)
    for n in range(count // 2, count, 53):
        at_bytecode(n, step)
    thread = threading.Thread(target=lambda: [v.assign(v.numpy()) for v in variables])
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


# ------------------------------------------------------------------- errors of users' code


def failing(*args):
    raise ZeroDivisionError("on purpose")


def test_a_constraint_that_fails_leaves_the_step_undone():
    v, w = tw.Variable(tw.ones(3)), tw.Variable(tw.ones(4))
    optimizer = Adam(0.1)
    gradients = [tw.ones(3), tw.ones(4)]
    optimizer.apply(gradients, [v, w])
    w.constraint = failing
    optimizer = Adam(0.1)
    optimizer.build([v, w])
    before = values([v, w, *optimizer.variables])
    with pytest.raises(ZeroDivisionError):
        optimizer.apply(gradients, [v, w])
    assert equal(values([v, w, *optimizer.variables]), before)


@pytest.mark.parametrize("traced", [False, True])
def test_a_rule_that_fails_at_its_second_variable_leaves_the_first(traced):
    class Failing(SGD):
        def update_step(self, gradient, variable, learning_rate):
            if variable.shape == (4,) and int(self.iterations.numpy()) == 1:
                failing()
            self.assign_sub(variable, gradient * learning_rate)

    v, w = tw.Variable(tw.ones(3)), tw.Variable(tw.ones(4))
    optimizer = Failing(0.5)
    step = lambda: optimizer.apply([tw.ones(3), tw.ones(4)], [v, w])  # noqa: E731
    step = tw.function(step) if traced else step
    step()
    with pytest.raises(ZeroDivisionError):
        step()
    assert v.numpy().tolist() == [0.5] * 3 and w.numpy().tolist() == [0.5] * 4
    assert int(optimizer.iterations.numpy()) == 1


def test_memory_that_runs_out_leaves_the_step_undone(monkeypatch):
    step, variables = step_of(Adam)
    held = [v.read() for v in variables]  # so that the step needs new arrays
    before, made = values(variables), []

    def empty(*args, **options):
        made.append(args)
        if len(made) == 3:
            raise MemoryError("on purpose")
        return real(*args, **options)

    real = np.empty
    monkeypatch.setattr(np, "empty", empty)
    with pytest.raises(MemoryError):
        step()
    monkeypatch.undo()
    assert equal(values(variables), before)
    step()
    assert not equal(values(variables), before)
    assert equal([h.numpy() for h in held], before)


def test_no_function_of_python_runs_in_a_commit(target, device):
    if device != "cpu":
        pytest.skip("an eager step on a GPU writes to new arrays")
    step, _ = step_of(Adam, shapes=((300, 500), (7,)))
    run, kinds = Commit.run, set()

    def looking(change):
        kinds.update([type(each.func).__name__ for each in change.writes])
        return run(change)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Commit, "run", looking)
        step()
    assert kinds and kinds.isdisjoint({"function", "method", "partial"})
