"""Traced functions that several threads call."""

import threading
from functools import partial

import numpy as np
import pytest

import tapewright as tw


@pytest.mark.parametrize("_", range(5))
def test_eight_threads_trace_once_and_get_their_own_results(_, in_threads):
    counter, traces = tw.Variable(0.0), []

    @tw.function
    def square_sum(x):
        traces.append(x)
        counter.assign_add(1.0)
        return tw.reduce_sum(x * x)

    def work(n):
        x = tw.fill((5000,), float(n))
        for _ in range(10):
            assert square_sum(x).numpy() == 5000 * n * n

    in_threads(*[partial(work, n) for n in range(8)])
    assert counter.numpy() == 80 and len(traces) == 1


@pytest.mark.parametrize("_", range(10))
def test_a_method_has_one_trace_of_each_owner_for_all_threads(_, in_threads):
    class Model(tw.Module):
        def __init__(self):
            self.v, self.traces = None, 0

        @tw.function
        def scaled(self, x):
            self.traces += 1
            if self.v is None:
                self.v = tw.Variable(2.0)
            return self.v * x

    model = Model()

    def work():
        for _ in range(5):
            assert model.scaled(tw.constant(3.0)).numpy() == 6

    in_threads(*[work] * 8)
    assert model.traces == 2  # one that makes the variable, and one that is kept


def test_functions_that_store_in_other_orders_do_not_wait_for_each_other(in_threads):
    a, b = tw.Variable(0), tw.Variable(0)

    @tw.function
    def one():
        a.assign_add(1)
        b.assign(b + 1)

    @tw.function
    def two():
        b.assign_add(1)
        a.assign(a + 1)

    def work(function):
        for _ in range(200):
            function()

    in_threads(*[partial(work, f) for f in (one, two, one, two)])
    assert a.numpy() == b.numpy() == 800


def test_shapes_that_vary_between_threads_are_told_apart(in_threads):
    function = tw.function(lambda x: tw.reduce_sum(x * 2.0), reduce_retracing=True)

    def work(first):
        for n in range(first, first + 15):
            assert function(tw.ones(n)).numpy() == 2 * n

    in_threads(*[partial(work, first) for first in range(1, 9)])


def test_tapes_of_several_threads_differentiate_one_function(in_threads):
    cube = tw.function(lambda x: tw.reduce_sum(x * x * x))

    def work(n):
        x = tw.fill((3000,), float(n))
        for _ in range(10):
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = cube(x)
            assert (tape.gradient(y, x).numpy() == 3 * n * n).all()

    in_threads(*[partial(work, n) for n in range(6)])


@pytest.mark.parametrize("kind", ["eager", "traced", "both", "global", "seeds"])
def test_no_random_number_is_drawn_twice(kind, in_threads):
    generator, found = tw.random.Generator.from_seed(1), []
    seeds = tw.keras.random.SeedGenerator(1)

    def draw():
        if kind == "seeds":
            return seeds.next()
        return (tw.random if kind == "global" else generator).uniform((3,))

    traced = tw.function(draw)

    def work(function):
        for _ in range(40):
            found.append(tuple(function().numpy()))

    ways = {"traced": [traced], "both": [draw, traced]}.get(kind, [draw])
    in_threads(*[partial(work, function) for function in ways * (8 // len(ways))])
    assert len(found) == len(set(found)) == 320


def test_an_iterator_gives_each_element_to_one_thread(in_threads):
    dataset = tw.data.Dataset.range(300).map(lambda x: x * 2).batch(2).prefetch(2)
    iterator, found = iter(dataset), []

    def work():
        while (element := next(iterator, None)) is not None:
            found.append(tuple(element.numpy()))

    in_threads(*[work] * 4)
    assert sorted(found) == [(4 * k, 4 * k + 2) for k in range(150)]


def test_metrics_count_what_all_threads_give_them(in_threads):
    mean = tw.keras.metrics.Mean()

    def work():
        for _ in range(50):
            mean.update_state([1.0, 2.0, 6.0])

    in_threads(*[work] * 8)
    assert np.array_equal([mean.total.numpy(), mean.count.numpy()], [3600, 1200])


def test_one_function_serves_several_threads():
    made = []

    @tw.function
    def f(x):
        made.append(1)
        for _ in range(20):
            x = x * 1.5 - 1.0
        return x

    starts = [np.full(1000, n, np.float32) for n in range(4)]
    expected = [f.python_function(tw.constant(x)).numpy() for x in starts]
    made.clear()
    wrong, gate = [], threading.Barrier(4)

    def work(n):
        gate.wait()
        for _ in range(50):
            if not (f(tw.constant(starts[n])).numpy() == expected[n]).all():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert made == [1]


def test_a_trace_is_seen_by_its_own_thread_only():
    eager = []

    @tw.function
    def f(x):
        thread = threading.Thread(target=lambda: eager.append(tw.executing_eagerly()))
        thread.start()
        thread.join()
        return x

    f(tw.constant(1.0))
    assert eager == [True]
