"""Instructions that do the same with other arrays have one kernel."""

import re

import numpy as np
import pytest

import tapewright as tw
from tapewright import config
from tapewright.compiler.loops import grouping
from tapewright.compiler.loops.loop_nest import LoopNest
from tapewright.compiler.targets.native import engine

pytest.importorskip("llvmlite")

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True)
def native():
    with config.use_target("native"):
        yield


@pytest.fixture
def texts(monkeypatch):
    """The text of programs with their kernels."""
    found, compiled = [], engine.compiled

    def noted(text, *args, kernels=(), **options):
        found.append("".join([text, *[each for each, _ in kernels]]))
        return compiled(text, *args, kernels=kernels, **options)

    monkeypatch.setattr(engine, "compiled", noted)
    return found


def bodies(text):
    return re.findall(r"define internal .* @(kernel_\w+\.body)\(.*", text)


def check(run, texts, count):
    """Compare with eager mode; the nests of the trace must have ``count`` bodies."""
    x = tw.constant(X)
    traced = tw.function(run)
    traced(x)
    np.testing.assert_allclose(traced(x), run(x), rtol=2e-6, atol=1e-6)
    assert len(bodies(texts[-1])) == count


def test_nests_that_differ_in_their_arrays_share_code(texts):
    biases = [tw.constant(X[0] + n) for n in range(4)]
    w = tw.constant(np.eye(4, dtype=np.float32)[::-1].copy())

    def run(x):
        for b in biases:
            x = tw.tanh(x @ w + b)
        return x @ w  # so that all nests before write in place

    check(run, texts, 1)


def test_nests_that_differ_in_a_number_do_not(texts):
    w = tw.constant(np.eye(4, dtype=np.float32))

    def run(x):
        for n in (2.0, 3.0, 2.0):
            x = tw.tanh(x @ w * n)
        return x @ w  # so that all nests before write in place

    check(run, texts, 2)


def test_nests_that_differ_in_a_function_do_not(texts):
    w = tw.constant(np.eye(4, dtype=np.float32))

    def run(x):
        for f in (tw.sin, tw.cos, tw.sin):
            x = f(x @ w)
        return x @ w  # so that all nests before write in place

    check(run, texts, 2)


def test_operands_may_come_in_another_order_of_memory(texts):
    w = tw.constant(np.eye(4, dtype=np.float32))

    def run(x):
        y, z = x @ w, tw.tanh(x) @ w
        a = tw.sin(y - z) @ w
        b = tw.sin(z - y) @ w
        return a, b, y, z

    x = tw.constant(X)
    for own, wanted in zip(tw.function(run)(x), run(x)):
        np.testing.assert_allclose(own, wanted, rtol=2e-6, atol=1e-6)
    assert len(bodies(texts[-1])) <= 3


def test_results_are_the_same_for_any_number_of_threads():
    x = tw.constant(np.linspace(-2, 2, 40_000, dtype=np.float32))

    @tw.function
    def run(x):
        for _ in range(200):
            x = tw.tanh(x * 1.01) + 0.01
        return x

    found = []
    try:
        for n in (1, 2, 4):
            config.set_threads(n)
            found.append(run(x).numpy())
    finally:
        config.set_threads(None)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_long_chain_is_cut_into_nests_of_the_same_code(texts):
    length = grouping.MOST

    def run(x):
        for _ in range(length):
            x = tw.tanh(x)
        return x

    check(run, texts, 2)  # the first does not write in place
    program = tw.function(run).get_concrete_function(tw.constant(X)).executable.program
    nests = [each for each in program.instructions if type(each) is LoopNest]
    assert len(nests) == 8


@pytest.mark.parametrize(("columns", "stay"), [(3, 0), (10, 1), (100, 0)])
def test_loops_over_a_few_entries_are_left_for_vectors(texts, columns, stay):
    x = np.linspace(-1, 1, 7 * columns, dtype=np.float32).reshape(7, columns)
    traced = tw.function(lambda x, b: tw.nn.relu(x + b))
    found = traced(tw.constant(x), tw.constant(x[0]))
    np.testing.assert_array_equal(found, np.maximum(x + x[0], 0))
    assert texts[-1].count(", !llvm.loop !0") == stay
