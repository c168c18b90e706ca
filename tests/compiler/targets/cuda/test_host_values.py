"""What the host computes of its own variables, and sends to a graph as numbers."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.program import Kind

from .runtime_runs import asked, both, executable_of, graphs, new_log


def masks(count=3):
    layer = tw.layers.Dropout(0.4, seed=3)
    f = tw.function(lambda x: layer(x, training=True))
    return [f(tw.ones([40, 5])) for _ in range(count)], layer.variables


def test_masks_of_dropout_are_those_of_numpy(gpu):
    both(lambda: [*masks()[0], *masks()[1]])


def test_the_state_of_a_generator_stays_on_the_host(gpu):
    _, (state, *_) = masks()
    assert isinstance(state._array, np.ndarray)


def test_a_mask_is_drawn_in_the_graph_from_numbers_of_the_host(gpu, unverified):
    layer = tw.layers.Dropout(0.4, seed=3)
    f = tw.function(lambda x: layer(x, training=True))
    x = tw.ones([40, 5])
    f(x)
    new_log()
    f(x)
    assert asked() == ["launch", "graph", "memcpy"] and graphs() == (0, 1)
    executable = executable_of(f, x)
    (segment,) = executable.segments
    assert segment.hosts and all([b.kind is Kind.HOST for b in segment.hosts])


DRAWS = {
    "uniform": lambda g: g.uniform([7]),
    "normal": lambda g: g.normal([7]),
    "integers": lambda g: g.uniform([7], 0, 10, "int32"),
    "truncated": lambda g: g.truncated_normal([7]),
}


@pytest.mark.parametrize("what", DRAWS)
def test_random_numbers_are_those_of_numpy(what, gpu):
    def train():
        generator = tw.random.Generator.from_seed(5)
        f = tw.function(lambda x: tw.cast(DRAWS[what](generator), "float32") * x)
        return [*[f(tw.constant(2.0)) for _ in range(3)], generator.state]

    both(train)


def test_a_variable_of_the_host_that_a_graph_reads_is_sent(gpu):
    def train():
        rule, v = tw.optimizers.SGD(0.1), tw.Variable([1.0, 2.0])

        @tw.function
        def step(x):
            rule.apply_gradients([(v * x, v)])
            return tw.cast(rule.iterations, "float32") * x + v

        return [step(tw.constant(0.5)) for _ in range(3)]

    both(train)


def test_values_of_the_host_are_returned_and_stored(gpu):
    def train():
        rule, v = tw.optimizers.SGD(0.1), tw.Variable([1.0, 2.0])
        seen = tw.Variable(0, dtype="int64")

        @tw.function
        def step(x):
            rule.apply_gradients([(v * x, v)])
            seen.assign(rule.iterations * 2)
            return rule.iterations + 1, rule.iterations

        return [*[y for _ in range(2) for y in step(tw.constant(0.5))], seen]

    both(train)


def test_many_numbers_are_sent_in_several_launches(gpu, unverified):
    layers = [tw.layers.Dropout(0.5, seed=n) for n in range(80)]

    @tw.function
    def f(x):
        return tw.add_n([layer(x, training=True) for layer in layers])

    x = tw.ones([5])
    first = f(x).numpy()
    new_log()
    second = f(x).numpy()
    assert asked().count("launch") >= 2 and asked().count("graph") == 1
    assert not np.array_equal(first, second)


def test_a_call_between_graphs_gets_values_of_the_host_as_arrays_of_the_gpu(gpu):
    def train():
        rule, v = tw.optimizers.SGD(0.1), tw.Variable([1.0, 2.0])
        spec = tw.TensorSpec([2], "float32")

        @tw.function
        def step(x):
            rule.apply_gradients([(v * x, v)])
            return tw.py_function(
                lambda a, n: a * tw.cast(n, "float32"), [v * 1.0, rule.iterations], spec
            )

        return [step(tw.constant(0.5)) for _ in range(3)]

    both(train)
