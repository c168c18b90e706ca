"""Machine code as a person sees it: its loops as text, their times, memory and names."""

import re

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import tapewright as tw
from tapewright.compiler.inspection.timings import Timed
from tapewright.compiler.loops.loop_nest import LoopNest
from tapewright.compiler.loops.pretty import nest_text
from tapewright.compiler.loops.statements import (
    Access,
    Axis,
    Load,
    Loop,
    Reset,
    Scalar,
    Span,
    Store,
)
from tapewright.compiler.program.instructions.array_instructions import Copy
from tapewright.compiler.program.program import Buffer
from tapewright.core import hooks

pytest.importorskip("llvmlite")

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def native(device):
    if device != "cpu":
        pytest.skip("machine code is for arrays of the CPU")
    with tw.config.use_target("native"):
        yield


def floats(*shape):
    return tw.constant(RNG.normal(size=shape).astype(np.float32))


def shown(function, *args):
    """The text of a function below its heading, without what is behind ``#``."""
    concrete = tw.function(function).get_concrete_function(*args)
    text = concrete.pretty().partition("\n\n")[2]
    lines = [line.partition("#")[0].rstrip() for line in text.splitlines()]
    return [line for line in lines if line]


def dense_step():
    model = tw.Sequential([tw.layers.Dense(32, activation="tanh"), tw.layers.Dense(4)])
    optimizer = tw.optimizers.Adam(1e-2)

    def step(x, y):
        with tw.GradientTape() as tape:
            loss = tw.reduce_mean(tw.square(model(x) - y))
        variables = model.trainable_variables
        optimizer.apply_gradients(
            zip(tape.gradient(loss, variables), variables, strict=True)
        )
        return loss

    x, y = tw.ones((16, 8)), tw.zeros((16, 4))
    step(x, y)
    return step, x, y


# ------------------------------------------------------------------------------ text


def test_a_map_is_one_line_in_its_loops():
    lines = shown(lambda x, b: tw.tanh(x * 2.0 + b), floats(8, 4), floats(4))
    assert lines == [
        "segment_0: machine code for 1 instruction",
        "  for i in 8:",
        "    for j in 4:",
        "      tanh[i, j] = tanh(x[i, j] * 2.0 + b[j])",
        "return tanh",
    ]


def test_two_dimensions_that_are_run_through_at_once_have_one_index():
    assert "  for ij in 32:" in shown(tw.exp, floats(8, 4))


def test_what_is_kept_between_passes_is_named_with_its_size():
    lines = shown(tw.nn.softmax, floats(8, 100))
    (kept,) = [line for line in lines if "keeps" in line]
    assert re.search(r"softmax_\d float32, .*softmax_\d float32\[100\]", kept)
    assert sum("for j in 100:" in line for line in lines) == 3


def test_blocks_are_counted_and_said_to_be_parallel():
    assert "  in 8 blocks, in parallel:" in shown(
        lambda x: tw.reduce_sum(tw.exp(x), 0) + x, floats(512, 512)
    )
    lines = shown(lambda x: tw.reduce_sum(tw.exp(x)), floats(1024, 1024))
    assert "  after all blocks:" in lines
    assert "      reduce_sum_3 += parts[block]" in lines
    lines = shown(
        lambda x: (tw.square(x), tw.reduce_sum(tw.square(x), 0)), floats(4096, 64)
    )
    assert any(re.search(r"parts\[block, [ij]\] = reduce_sum", x) for x in lines)


def test_a_product_names_transposed_matrices_shapes_and_blocks():
    def f(a, b):
        return tw.matmul(a, b, transpose_b=True)

    concrete = tw.function(f).get_concrete_function(floats(512, 256), floats(300, 256))
    text = concrete.pretty()
    assert "matmul = a @ b.T\n" in text
    assert "[512,256] @ [256,300], 2 x 1 blocks in parallel" in text


def test_a_stack_of_products_is_counted():
    text = tw.function(tw.matmul).get_concrete_function(
        floats(6, 32, 24), floats(6, 24, 16)
    ).pretty()  # fmt: skip
    assert "6 x [32,24] @ [24,16], in parallel" in text


def test_slices_and_strides_are_seen_in_the_subscripts():
    lines = shown(lambda x: tw.exp(x[1:, 2:8:3]), floats(4, 9))
    assert "      exp[i, j] = exp(x[1 + i, 2 + 3*j])" in lines


def test_arrays_of_variables_have_the_ends_of_their_paths():
    step, x, y = dense_step()
    lines = shown(step, x, y)
    assert any(re.match(r"dense\w*_kernel = variable 'sequential", x) for x in lines)
    assert any(re.search(r"affine = x @ dense\w*_kernel$", line) for line in lines)


def test_nests_name_the_users_lines():
    def f(x):
        y = tw.exp(x)
        return y + 1.0

    text = tw.function(f).get_concrete_function(floats(3)).pretty()
    (note,) = [line for line in text.splitlines() if "exp+add" in line]
    first, second = re.search(r"test_native_pretty\.py:(\d+), (\d+)$", note).groups()
    assert int(second) == int(first) + 1


@pytest.mark.parametrize(
    "function, reason",
    [
        (lambda x: tw.cumsum(x), "no machine code for cumsum"),
        (lambda x: tw.cast(x, tw.complex64) * 2, "no machine code for complex64"),
        (lambda x: tw.matmul(x[:, ::2], x[::2]), r"no machine code for dot of \[4, 2"),
    ],
)
def test_what_numpy_computes_says_why(function, reason):
    text = tw.function(function).get_concrete_function(floats(4, 4)).pretty()
    assert re.search(f"# {reason}", text)
    working = re.search(r"machine code for (\d+) of (\d+) instruction", text)
    assert int(working[1]) < int(working[2])


def test_regions_are_shown_below_their_call():
    def f(x):
        return tw.cond(tw.reduce_sum(x) > 0, lambda: tw.exp(x), lambda: tw.sin(x))

    text = tw.function(f).get_concrete_function(floats(3)).pretty()
    cond = text.index("regions are compiled separately")
    assert cond < text.index("exp[i] = exp(") < text.index("sin[i] = sin(")


def test_the_other_target_can_be_shown():
    f = tw.function(lambda x: tw.tanh(x) + 1.0)
    x = floats(4, 4)
    f(x)
    assert "machine code" in f.pretty() and f.pretty() == f.pretty(target="native")
    assert "def <lambda>" not in f.pretty() and "add_" in f.pretty(target="numpy")
    with tw.config.use_target("numpy"):
        g = tw.function(lambda x: tw.tanh(x) + 1.0)
        g(x)
        assert "tanh(x[ij]) + 1.0" in g.pretty(target="native")
        assert "machine code" not in g.pretty() and tw.config.target() == "numpy"
    with pytest.raises(ValueError, match="target .*'native'.*got 'gpu'"):
        f.pretty(target="gpu")


def test_machine_code_is_not_shown_where_there_is_none(monkeypatch):
    compiler = hooks.compiler.call()._replace(
        why_native_unavailable=lambda: "llvmlite is not installed"
    )
    monkeypatch.setattr(hooks.compiler, "call", lambda: compiler)
    f = tw.function(lambda x: x + 1.0)
    f(floats(2))
    with pytest.raises(
        ValueError, match="machine code is not available: llvmlite is not inst"
    ):
        f.pretty(target="native")


def test_an_argument_named_target_is_an_argument():
    f = tw.function(lambda x, target: x - target)
    assert "x - target" in f.pretty(floats(4), target=floats(4)).replace("[i]", "")


# ----------------------------------------------------------------------------- times


def test_explain_times_each_nest_and_product_by_itself():
    step, x, y = dense_step()
    f = tw.function(step)
    f(x, y)
    before = [v.numpy() for v in f.get_concrete_function(x, y).variables]
    report = f.explain(x, y)
    concrete = f.get_concrete_function(x, y)
    program = concrete.executable.program
    working = [each for each in program.instructions if not each.is_free]
    assert len(concrete.executable.segments) == 1 and len(report.rows) == len(working)
    assert all(row.microseconds > 0 and row.count == 1 for row in report.rows)
    assert all("test_native_pretty.py:" in row.line for row in report.rows)
    for v, value in zip(concrete.variables, before, strict=True):
        np.testing.assert_array_equal(v.numpy(), value)


def test_single_calls_compute_what_all_at_once_do():
    def f(x, y):
        return tw.nn.softmax(tw.matmul(tw.tanh(x), y)), tw.reduce_sum(x, 0)

    x, y = floats(64, 32), floats(32, 16)
    concrete = tw.function(f).get_concrete_function(x, y)
    timed = Timed(concrete.executable)
    for a, b in zip(timed(x.array, y.array), concrete(x, y), strict=True):
        np.testing.assert_array_equal(a, b.numpy())
    assert len(timed.executable.segments) == len(concrete.executable.calls()[0]) > 2


def test_calls_with_copies_count_once():
    x = tw.transpose(floats(64, 32))
    assert not x.array.flags.c_contiguous
    f = tw.function(lambda x: tw.exp(x) + 1.0)
    assert [row.count for row in f.explain(x).rows] == [1]


def test_peak_memory_is_what_is_measured():
    def f(x):
        return tw.exp(tw.matmul(tw.tanh(x), x)), tw.nn.softmax(x), tw.cumsum(x)

    explanation = tw.function(f).explain(floats(300, 300))
    slack = 50_000
    measured = explanation.measured_peak_bytes
    assert measured - slack <= explanation.peak_bytes <= measured + slack


def test_the_profiler_names_nests_and_products_with_the_users_lines():
    def f(x):
        return tw.tanh(tw.matmul(x, x)) * 2.0

    g, x = tw.function(f), floats(64, 64)
    g(x)
    with tw.profiler.trace(table=False) as profile:
        g(x)
    events = [e for e in profile.events if e.category == "instruction"]
    assert [e.name for e in events] == ["matmul", "tanh+multiply"]
    assert all("test_native_pretty.py:" in e.data["line"] for e in events)


# ------------------------------------------------------------------------- switches


def nests(function, *args):
    executable = tw.function(function).get_concrete_function(*args).executable
    return [x for x in executable.program.instructions if type(x) is LoopNest]


def test_without_fusion_each_map_and_reduction_is_a_nest():
    x = floats(8, 8)
    assert len(nests(tw.nn.softmax, x)) == 1
    with tw.config.graph_passes(loop_fusion=False):
        made = nests(tw.nn.softmax, x)
        assert len(made) > 3 and all(len(each.steps) == 1 for each in made)
        y = tw.function(tw.nn.softmax)(x)
    np.testing.assert_allclose(y.numpy(), tw.nn.softmax(x).numpy(), 1e-6)


# ---------------------------------------------------------------------- subscripts


@pytest.mark.parametrize(
    "make, subscripts",
    [
        (lambda x: x, "i, j, k"),
        (lambda x: x[::-1], "3 - i, j, k"),
        (lambda x: x[1:, :, ::-2], "1 + i, j, 5 - 2*k"),
        (lambda x: x.transpose(2, 0, 1), "j, k, i"),
        (lambda x: x.reshape(20, 6), "i, j"),
        (lambda x: x.reshape(120)[3:50:7], "3 + 7*i"),
        (lambda x: x.reshape(4, 5, 2, 3)[:, 1, ::-1], "i, 1, 3 - 3*j + k"),
        (lambda x: x[:, 2:3, 4], "i, 2, 4"),
        (lambda x: np.einsum("iji->ji", x[:, :, :4]), "6*i + 31*j"),
        (lambda x: sliding_window_view(x, 3, 1), "i, j + l, k"),
    ],
)
def test_subscripts_name_the_entry_that_is_read(make, subscripts):
    x = np.arange(4 * 5 * 6).reshape(4, 5, 6)
    view = make(x)
    strides = [s // x.itemsize for s in view.strides]
    axes = [Axis(f"i{n}", size) for n, size in enumerate(view.shape)]
    value = Scalar("value.1", np.dtype(np.float32))
    pairs = tuple([p for p in zip(axes, strides, strict=True) if p[0].extent > 1])
    array, out = [Buffer(x.shape, value.dtype) for _ in range(2)]
    body = [
        Load(value, Access(array, int(view.flat[0]), pairs)),
        Store(Access(out, 0, ()), value),
    ]
    for axis in reversed(axes):
        body = [Loop(axis, Span.WHOLE, 0, body)]
    step = Copy(np.copyto, (array,), None)
    nest = LoopNest([step], [array], [out], Axis("block", 1), (), body, [], [], 1)
    assert f"= in0[{subscripts}]" in nest_text(nest)


def test_a_value_that_is_overwritten_before_its_last_use_has_a_line():
    a, b = [Scalar(name, np.dtype(np.float32)) for name in ("a.1", "b.1")]
    first, second = [Buffer((), a.dtype) for _ in range(2)]
    here, there = Access(first, 0, ()), Access(second, 0, ())
    body = [Load(a, here), Load(b, there), Store(here, b), Store(there, a)]
    step = Copy(np.copyto, (first,), None)
    nest = LoopNest([step], [first, second], [], Axis("block", 1), (), body, [], [], 1)
    assert nest_text(nest).splitlines() == ["a = in0", "in0 = in1", "in1 = a"]


@pytest.mark.parametrize(
    "ufunc, dtype, text",
    [
        ("add", "float32", "0"),
        ("multiply", "int32", "1"),
        ("maximum", "float32", "-inf"),
        ("minimum", "float64", "inf"),
        ("maximum", "int8", "-128"),
        ("minimum", "int8", "127"),
        ("maximum", "bool", "False"),
        ("minimum", "bool", "True"),
    ],
)
def test_a_reduction_begins_with_the_number_that_changes_none(ufunc, dtype, text):
    out = Buffer((), np.dtype(dtype))
    step = Copy(np.copyto, (out,), None)
    body = [Reset(Access(out, 0, ()), ufunc)]
    nest = LoopNest([step], [], [out], Axis("block", 1), (), body, [], [], 1)
    assert nest_text(nest) == f"out0 = {text}"


@pytest.mark.parametrize(
    "function, text",
    [
        (lambda x: -(x + 1.0) * x, "-(x[i] + 1.0) * x[i]"),
        (lambda x: tw.math.reciprocal(tw.exp(x) - x), "1 / (exp(x[i]) - x[i])"),
        (lambda x: x - (x - 2.0), "x[i] - (x[i] - 2.0)"),
        (lambda x: tw.cast(x > 2.0, "float32") + x, "float32(x[i] > 2.0) + x[i]"),
    ],
)
def test_expressions_have_the_brackets_that_they_need(function, text):
    with tw.config.graph_passes(algebra=False):
        (line,) = [x for x in shown(function, floats(9)) if "[i] =" in x]
    assert line.partition(" = ")[2] == text
