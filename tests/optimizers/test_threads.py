"""Optimizers that several threads use, or that write while other threads read."""

import threading

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.state.commit import Commit
from tapewright.optimizers import SGD, Adam, LossScaleOptimizer, Optimizer

SIZES = 3, 20_000  # one shares a segment with others, one goes alone


@pytest.fixture
def during_the_writes(monkeypatch):
    """``during_the_writes(do)``: the next commit calls ``do()`` before it writes."""

    def call(do):
        run = Commit.run

        def run_with(change):
            monkeypatch.undo()
            change.writes.insert(0, do)
            return run(change)

        monkeypatch.setattr(Commit, "run", run_with)

    return call


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("traced", [False, True])
def test_who_reads_while_a_step_writes_waits(size, traced, during_the_writes, device):
    if device != "cpu":
        pytest.skip("a step on a GPU writes to new arrays, or is launched")
    v, optimizer = tw.Variable(np.zeros(size, "f4")), SGD(1.0)
    step = lambda: optimizer.apply([tw.ones(size)], [v])  # noqa: E731
    step = tw.function(step) if traced else step
    step()
    seen, readers = [], []

    def switch():
        reader = threading.Thread(target=lambda: seen.append(v.read()))
        readers.append(reader)
        reader.start()
        reader.join(0.05)
        assert reader.is_alive()

    during_the_writes(switch)
    step()
    readers[0].join()
    step()
    assert (seen[0].numpy() == -2).all() and (v.numpy() == -3).all()


@pytest.mark.parametrize("size", SIZES)
def test_who_reads_just_before_a_step_writes_keeps_the_value(size, monkeypatch, device):
    if device != "cpu":
        pytest.skip("a step on a GPU writes to new arrays, or is launched")
    v, optimizer = tw.Variable(np.zeros(size, "f4")), SGD(1.0)
    optimizer.apply([tw.ones(size)], [v])
    run, seen = Commit.run, []

    def read_and_run(change):
        seen.append(v.read() if not seen else None)
        return run(change)

    monkeypatch.setattr(Commit, "run", read_and_run)
    optimizer.apply([tw.ones(size)], [v])
    assert len(seen) == 2  # the commit was made again
    assert (seen[0].numpy() == -1).all() and (v.numpy() == -2).all()


@pytest.mark.parametrize("way", ["assign", "_bind"])
def test_who_assigns_while_a_step_writes_waits(way, during_the_writes, device):
    if device != "cpu":
        pytest.skip("a step on a GPU writes to new arrays, or is launched")
    v, optimizer = tw.Variable([1.0, 2.0]), SGD(1.0)
    optimizer.apply([tw.ones(2)], [v])
    writers = []

    def switch():
        value = np.array([7.0, 7.0], "f4")
        writer = threading.Thread(target=getattr(v, way), args=(value,))
        writers.append(writer)
        writer.start()
        writer.join(0.05)
        assert writer.is_alive()

    during_the_writes(switch)
    optimizer.apply([tw.ones(2)], [v])
    writers[0].join()
    assert v.numpy().tolist() == [7.0, 7.0]


@pytest.mark.parametrize("rule", [SGD, Adam])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("traced", [False, True])
def test_a_value_is_read_whole_and_stays(rule, size, traced, in_threads):
    a, b = tw.Variable(np.zeros(size, "f4")), tw.Variable(np.zeros(size, "f4"))
    optimizer = rule(0.5)
    step = lambda: optimizer.apply([tw.ones(size)] * 2, [a, b])  # noqa: E731
    step = tw.function(step) if traced else step
    going = True

    def train():
        nonlocal going
        try:
            for _ in range(150):
                step()
        finally:
            going = False

    def look():
        while going:
            slots = [s for s in optimizer.variables if s.shape == a.shape]
            for variable in (a, b, *slots):
                value = variable.read()
                first = value.numpy()
                assert (first == first[0]).all()
                assert np.array_equal(value.numpy(), first)

    in_threads(train, look, look)
    assert optimizer.iterations.numpy() == 150
    if rule is SGD:
        assert (a.numpy() == -75).all() and (b.numpy() == -75).all()


class Plain(Optimizer):
    """As for Keras."""

    def build(self, variables):
        super().build(variables)
        self.counts = self.add_optimizer_variables(variables, "count")

    def update_step(self, gradient, variable, learning_rate):
        self.assign_add(self.counts[self._get_variable_index(variable)], 1.0)
        self.assign_sub(variable, gradient * learning_rate)


RULES = {
    "sgd": SGD,
    "momentum": lambda rate: SGD(rate, momentum=0.0, nesterov=True),
    "accumulating": lambda rate: SGD(rate, gradient_accumulation_steps=2),
    "scaled": lambda rate: LossScaleOptimizer(SGD(rate)),
    "for keras": Plain,
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("traced", [False, True])
def test_the_steps_of_all_threads_count(name, traced, in_threads):
    a, b = tw.Variable(np.zeros(3, "f4")), tw.Variable(np.zeros(20_000, "f4"))
    optimizer = RULES[name](0.5)
    scale = 1 / 0.5

    def step(x):
        with tw.GradientTape() as tape:
            loss = optimizer.scale_loss(tw.reduce_sum(a * x) + tw.reduce_sum(b * x))
        optimizer.apply_gradients(zip(tape.gradient(loss, [a, b]), [a, b]))

    step = tw.function(step) if traced else step

    def work():
        for _ in range(10):
            step(tw.constant(scale))

    in_threads(*[work] * 8)
    total = 40 if name == "accumulating" else 80
    assert int(optimizer.iterations) == total
    assert (a.numpy() == -total).all() and (b.numpy() == -total).all()


def test_two_optimizers_in_two_threads_share_their_variables(in_threads):
    v = tw.Variable(np.zeros(20_000, "f4"))
    w = tw.Variable(np.zeros(20_000, "f4"))
    one, two, g = SGD(1.0), SGD(0.25), tw.ones(20_000)

    def work(optimizer, variables):
        for _ in range(100):
            optimizer.apply([g, g], variables)

    in_threads(lambda: work(one, [v, w]), lambda: work(two, [w, v]))
    assert (v.numpy() == -125).all() and (w.numpy() == -125).all()


def test_an_assignment_comes_before_or_after_a_step(in_threads):
    v, optimizer, g = tw.Variable(np.zeros(20_000, "f4")), SGD(1.0), tw.ones(20_000)

    def train():
        for _ in range(200):
            optimizer.apply([g], [v])

    def add():
        for _ in range(200):
            v.assign_add(g)

    in_threads(train, add)
    assert (v.numpy() == 0).all()


@pytest.mark.parametrize("_", range(20))
def test_slots_are_made_once(_, in_threads):
    v, optimizer = tw.Variable(np.zeros(10, "f4")), Adam(0.1)
    in_threads(*[lambda: optimizer.apply([tw.ones(10)], [v])] * 4)
    assert len(optimizer.variables) == 4 and optimizer.iterations.numpy() == 4
    np.testing.assert_allclose(v.numpy(), -0.4, rtol=1e-4)


def test_a_step_that_fails_gives_the_arrays_back():
    class Failing(Optimizer):
        def update_block(self, xp, gradient, variable, scratch, coefficients):
            raise FloatingPointError("no")

    v = tw.Variable([1.0, 2.0])
    with pytest.raises(FloatingPointError):
        Failing(1.0).apply([tw.ones(2)], [v])
    assert v.numpy().tolist() == [1.0, 2.0]
