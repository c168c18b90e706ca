"""Functions of a GPU as text, with the times of their steps, and their memory."""

import re

import numpy as np
import pytest

import tapewright as tw


@pytest.fixture
def step(gpu):
    """A traced step with two graphs, a call of Python and a branch; its arguments."""
    kernel, optimizer = tw.Variable(tw.ones([3, 2]), name="kernel"), tw.optimizers.SGD()
    optimizer.build([kernel])

    @tw.function
    def step(x):
        with tw.GradientTape() as tape:
            loss = tw.reduce_mean(tw.square(tw.matmul(x, kernel)))
        optimizer.apply_gradients([(tape.gradient(loss, kernel), kernel)])
        seen = tw.py_function(lambda a: a, [loss], tw.TensorSpec([], tw.float32))
        return tw.cond(loss > 0.0, lambda: tw.linalg.det(x), lambda: loss) + seen

    x = tw.constant(np.eye(3, dtype="float32") * 2)
    step(x)
    return step.get_concrete_function(x), x


def test_graphs_and_the_calls_between_are_listed_in_order(step):
    concrete, _ = step
    head, *parts = concrete.pretty().split("\n\n")
    assert re.search(r"2 CUDA graphs of \d+ steps for \d+ of \d+ instructions", head)
    firsts = [part.lstrip().split("\n")[0] for part in parts]
    firsts = [line for line in firsts if not line.startswith("# ")]
    kinds = (
        "variable",
        "graph_0",
        "py_function",
        "region",
        "region",
        "graph_1",
        "return",
    )
    found = [next((k for k in kinds if k in line), None) for line in firsts]
    assert [kind for kind in found if kind] == list(kinds)


def test_a_graph_has_the_blocks_and_threads_of_its_launches(step):
    text = step[0].pretty()
    assert re.search(r"\n    \d+( x \d+)* blocks of \d+( x \d+)* threads\n", text)


def test_a_store_is_shown_as_a_copy(gpu):
    v = tw.Variable(tw.zeros([3]), name="v")

    @tw.function
    def f(x):
        v.assign(tw.exp(x))

    x = tw.ones([3])
    f(x)
    (store,) = [s for s in f.pretty(x).split("\n\n") if re.search("# store", s)]
    assert store.endswith(" blocks of 256 threads"), store


def test_calls_between_graphs_say_why(step):
    text = step[0].pretty()
    assert re.search(r"py_function = .*# calls Python;", text)
    assert re.search(r"det = det\(.*# no kernel for det;", text)
    assert "regions are compiled separately" in text


def test_a_function_of_a_gpu_can_be_shown_for_the_cpu(step):
    concrete, _ = step
    assert concrete.pretty() == concrete.pretty("cuda")
    assert "CUDA" not in concrete.pretty("numpy")
    assert "matmul" in concrete.dot()


def test_a_function_of_the_cpu_is_not_shown_for_a_gpu():
    concrete = tw.function(tw.tanh).get_concrete_function(tw.constant([1.0]))
    with pytest.raises(ValueError, match="pretty: 'tanh' is not a GPU function"):
        concrete.pretty("cuda")


def test_a_trace_that_was_not_called_is_for_the_device_of_the_trace(gpu):
    concrete = tw.function(tw.tanh).get_concrete_function(tw.constant([1.0]))
    assert "1 CUDA graph of 1 step" in concrete.pretty()


def test_explain_times_every_instruction_and_changes_nothing(step):
    concrete, x = step
    (kernel,) = [v for v in concrete.variables if v.ndim]
    before = kernel.numpy()
    found = concrete.explain(x, repeats=2)
    np.testing.assert_array_equal(kernel.numpy(), before)
    ops = {row.op for row in found.rows}
    assert {"apply_gradients", "py_function", "cond"} <= ops
    assert all([row.microseconds >= 0 and row.count == 1 for row in found.rows])
    assert found.measured_peak_bytes is None and found.peak_bytes > 0
    assert found.skipped == ("py_function",)
    assert concrete.explain().microseconds > 0  # on ones


def test_products_of_one_size_in_a_row_are_not_mixed_up(gpu):
    def recurrent(h, kernel):
        for _ in range(2):
            z = tw.sigmoid(h @ kernel[:, :3])
            h = z * h + tw.tanh((z * h) @ kernel[:, 3:])
        return h

    rng = np.random.default_rng(0)
    h, kernel = [tw.constant(rng.normal(size=s), "float32") for s in ((2, 3), (3, 6))]
    wanted = recurrent(h, kernel)
    np.testing.assert_allclose(tw.function(recurrent)(h, kernel), wanted, rtol=1e-5)
