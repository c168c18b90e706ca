"""Kernels are shared by instructions, programs and processes."""

import re

import numpy as np
import pytest

import tapewright as tw
from tapewright import config
from tapewright.compiler.loops import grouping
from tapewright.compiler.loops.loop_nest import LoopNest
from tapewright.compiler.targets.native.jit import engine

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


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """The texts that LLVM compiles, with an empty cache."""
    monkeypatch.setenv("TAPEWRIGHT_CACHE", str(tmp_path))
    found, compile_all = [], engine._compile

    def noted(modules):
        found.extend([text for text, *_ in modules])
        return compile_all(modules)

    monkeypatch.setattr(engine, "_compile", noted)
    return found


def convolution(size, channels):
    x = tw.ones([2, size, size, channels])
    kernel = tw.ones([3, 3, channels, channels])
    return tw.function(lambda x, k: tw.nn.conv2d(x, k, 1, "SAME"))(x, kernel)


def test_a_changed_program_compiles_only_what_is_new(compiled):
    x, y = tw.constant(X), tw.ones([5, 7])

    def run(x, y):
        return tw.exp(tw.reduce_sum(tw.sin(x), 0)), y

    tw.function(run)(x, y)
    assert any(["define internal" in text for text in compiled])
    compiled.clear()
    tw.function(lambda x, y: (*run(x, y), tw.tanh(y)))(x, y)
    kernels = [text for text in compiled if "define internal" in text]
    assert len(kernels) == 1 and len(compiled) == 2
    compiled.clear()
    tw.function(run)(x, y)
    assert compiled == []


def test_contractions_of_other_sizes_share_their_code(compiled):
    convolution(12, 16)
    compiled.clear()
    np.testing.assert_array_equal(convolution(20, 16)[:, 1:-1, 1:-1], 9 * 16.0)
    assert not any(
        [".thread" in text and "define internal" in text for text in compiled]
    )


def test_threads_compile_the_same_code(compiled):
    convolution(12, 16)
    modules = [(text, level, "name") for text in compiled for level in (0, 2)]
    assert len(modules) > 4
    found = []
    try:
        for n in (1, 3):
            config.set_threads(n)
            found.append(engine._compile(modules))
    finally:
        config.set_threads(None)
    assert found[0] == found[1] and all(found[0])


def test_an_error_of_one_module_is_raised(compiled):
    wrong = "define i64 @f() { ret i64 %x }"
    modules = [(wrong, 0, "wrong"), *[(f"; {n}\n", 0, "empty") for n in range(3)]]
    try:
        config.set_threads(2)
        with pytest.raises(RuntimeError, match="LLVM refuses module 'wrong'"):
            engine._compile(modules)
    finally:
        config.set_threads(None)
