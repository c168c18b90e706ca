"""Passes in general: their switches, what they keep, and random programs through all."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.pipeline import optimize, stages
from tapewright.compiler.program.passes.pass_manager import SWITCHES, graph_stages
from tapewright.compiler.targets.numpy.target import TARGET

from ..changed_passes import change_passes
from .graphs import X, Y, assert_same, graph_of, names

NAMES = [each.__name__ for each in TARGET.graph_passes]


def step():
    """A train step: a model, two layers, and its update."""
    rng = np.random.default_rng(0)
    w = tw.Variable(rng.standard_normal((3, 5)).astype("f4"))
    b = tw.Variable(np.zeros(5, "f4"))
    optimizer = tw.keras.optimizers.SGD(0.1, momentum=0.9)

    def step(x, y):
        with tw.GradientTape() as tape:
            error = tw.nn.relu(x @ w + b) @ tw.transpose(w) - y
            loss = tw.reduce_mean(tw.square(error)) + 0.1 * tw.reduce_sum(w * w)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))
        return loss

    return step, [w, b, *optimizer.variables]


def test_the_graph_that_is_given_stays_as_it_was():
    function, _ = step()
    graph = graph_of(function, X, Y)
    before = [(n, n.inputs, n.outputs, dict(n.attributes)) for n in graph.nodes]
    outputs = list(graph.outputs)
    optimize(graph)
    assert [(n, n.inputs, n.outputs, n.attributes) for n in graph.nodes] == before
    assert graph.outputs == outputs
    graph.check()


def test_nodes_keep_the_line_of_the_user():
    function, _ = step()
    changed = optimize(graph_of(function, X, Y))
    assert all(__file__ in node.line for node in changed.nodes)


def names_of_stages(graph):
    return [name for name, _ in stages(graph)]


def test_the_stages_are_the_passes_of_the_target_in_order(numpy_target):
    found = names_of_stages(graph_of(lambda x: x * 1.0, X))
    assert found == [
        "trace",
        *NAMES,
        "lower",
        *[each.__name__ for each in TARGET.program_passes],
    ]


def test_pipeline_lists_passes_and_the_sizes_that_they_leave(numpy_target):
    f = tw.function(lambda x: -tw.negative(x) + 1.0)
    with pytest.raises(ValueError, match="was not traced yet"):
        f.pipeline()
    title, *lines = f.pipeline(tw.constant([1.0])).splitlines()
    assert title == "function <lambda> on the target numpy"
    rows = [line.split() for line in lines]
    assert [name for *_, name in rows] == names_of_stages(f.concrete_functions[0].graph)
    assert rows[:3] == [
        ["3", "nodes", "trace"],
        ["3", "nodes", "dead_nodes"],
        ["2", "nodes", "algebra"],
    ]
    assert rows[-1] == ["1", "instruction", "row_blocks"]


def test_pipeline_shows_the_sizes_of_the_latest_call_of_a_trace_of_all_sizes():
    f = tw.function(tw.exp, input_signature=[tw.TensorSpec([None])])
    f(tw.constant([1.0, 2.0]))
    assert "row_blocks" in f.pipeline() or "form_nests" in f.pipeline()


def test_a_pass_that_is_turned_off_does_not_run():
    graph = graph_of(lambda x: x * 1.0, X)
    with tw.config.graph_passes(algebra=False):
        assert names(optimize(graph)) == ["multiply"]
        assert "algebra" not in names_of_stages(graph)
    assert names(optimize(graph)) == []


def test_every_switch_is_a_pass_or_an_option_of_one():
    pytest.importorskip("llvmlite")
    from tapewright.compiler.targets.cuda.target import TARGET as CUDA
    from tapewright.compiler.targets.native.target import TARGET as NATIVE

    known = {
        each.__name__
        for target in (TARGET, NATIVE, CUDA)
        for each in (*target.graph_passes, *target.program_passes)
    }
    assert {*SWITCHES} <= known | {"loop_fusion"}


def test_a_pass_that_does_not_exist_is_refused_by_name():
    with pytest.raises(ValueError, match="pass foldd"):
        tw.config.set_graph_passes(foldd=False)
    with pytest.raises(ValueError, match="algebra"):
        tw.config.set_graph_passes(everything=False)


def test_the_configuration_report_tells_which_passes_are_off(capsys):
    tw.config.show()
    assert "graph passes all on\n" in capsys.readouterr().out
    with tw.config.graph_passes(algebra=False, pool_first=False):
        tw.config.show()
    assert "graph passes all but algebra, pool_first\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", [None, *NAMES])
def test_a_train_step_gives_the_same_bits_with_each_pass_alone_and_with_none(
    name, monkeypatch
):
    X2 = np.where(np.isfinite(X), X, 1.0).astype("f4")
    results = []
    for kept in ((), (name,)):
        function, variables = step()
        with monkeypatch.context() as patch:
            only = [each for each in TARGET.graph_passes if each.__name__ in kept]
            change_passes(patch, graph=lambda _, only=only: only)
            traced = tw.function(function)
            losses = [traced(X2, Y).numpy() for _ in range(3)]
        results.append([*losses, *[v.numpy() for v in variables]])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


# ---------------------------------------------------------------------- random programs


CONSTANTS = [1.0, -1.0, 0.0, -0.0, 2.0, 0.5, 3.0]
MAKERS = [
    lambda a, b, c: a + b,
    lambda a, b, c: a - b,
    lambda a, b, c: a * b,
    lambda a, b, c: a / b,
    lambda a, b, c: -a,
    lambda a, b, c: a * c,
    lambda a, b, c: a + c,
    lambda a, b, c: c - a,
    lambda a, b, c: a - c,
    lambda a, b, c: a / c,
    lambda a, b, c: c / a,
    lambda a, b, c: tw.identity(a),
    lambda a, b, c: tw.stop_gradient(a),
    lambda a, b, c: tw.transpose(tw.transpose(a)),
    lambda a, b, c: tw.cast(tw.cast(a, "float64"), "float32"),
    lambda a, b, c: tw.reshape(tw.expand_dims(tw.reshape(a, [3, 2]), 1), [2, 3]),
    lambda a, b, c: tw.where(c > 0, a, b),
    lambda a, b, c: a + tw.broadcast_to(b[:1], [2, 3]),
    lambda a, b, c: a @ tw.transpose(b) @ b,
    lambda a, b, c: tw.maximum(a, b),
    lambda a, b, c: tw.transpose(tw.transpose(a) @ tw.transpose(b[:, :2])),
]


def random_program(seed):
    """A function of two matrices and a vector, of ops for which there are rules."""
    rng = np.random.default_rng(seed)
    choices = rng.integers(0, 1 << 30, 100).tolist()

    def program(x, y, v):
        at = iter(choices)

        def pick(items):
            return items[next(at) % len(items)]

        values = [x, y, x * v, tw.transpose(tw.reshape(y, [3, 2]))]
        for _ in range(14):
            constant = tw.fill(pick([[], [3], [2, 3], [2, 1]]), pick(CONSTANTS))
            values.append(pick(MAKERS)(pick(values), pick(values), constant))
        return values[-1], values[-2], tw.reduce_sum(values[-3] * values[-4])

    return program


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_give_the_same_bits_after_each_pass_and_after_all(seed):
    rng = np.random.default_rng(seed)
    arrays = [
        rng.choice([-1.5, -0.0, 0.0, 1.0, 3.7, 1e-3], s).astype("f4")
        for s in ((2, 3), (2, 3), (3,))
    ]
    graph = graph_of(random_program(seed), *arrays)
    every = TARGET.graph_passes
    for changed in [each(graph) for each in every]:
        changed.check()
        assert_same(graph, changed, arrays)
    for left_out in [None, *every]:
        passes = [each for each in every if each is not left_out]
        *_, (_, changed) = graph_stages(graph, passes)
        changed.check()
        assert_same(graph, changed, arrays)
        assert len(changed.nodes) <= len(graph.nodes)
