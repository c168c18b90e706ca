"""Concrete functions: what they take, refuse, and tell of themselves."""

import numpy as np
import pytest

import tapewright as tw

from .counting import ones


@pytest.fixture
def power():
    @tw.function
    def power(a, b):
        return a**b

    return power


def test_a_concrete_function_knows_the_values_it_was_traced_for(power):
    square = power.get_concrete_function(a=tw.TensorSpec([], tw.float32), b=2)
    ten = tw.constant(10.0)
    for result in (square(ten), square(ten, b=2), square(ten, 2), square(a=ten)):
        assert result.numpy() == 100
    with pytest.raises(TypeError, match="'b'.*2.*got 3"):
        square(ten, b=3)


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), "'a'.*missing"),
        ((np.int32(1),), "float32"),
        ((np.ones(2, "f4"),), r"'a'.*shape \(\).*got shape \(2,\), float32"),
        (("x",), "'a'"),
    ],
)
def test_a_concrete_function_refuses_other_tensors(power, args, named):
    square = power.get_concrete_function(tw.TensorSpec([]), 2)
    with pytest.raises(TypeError, match=named):
        square(*[x if type(x) is str else tw.constant(x) for x in args])


def test_a_concrete_function_takes_its_tensors_alone():
    f = tw.function(lambda k, nest: nest["a"] * 10.0 + nest["b"] * k)
    nest = {"b": tw.constant(2.0), "a": tw.constant(1.0)}
    concrete = f.get_concrete_function(3.0, nest)
    assert concrete(3.0, nest).numpy() == 16
    assert concrete(nest["a"], nest["b"]).numpy() == 16
    assert concrete(nest_b=nest["b"], nest_a=nest["a"]).numpy() == 16


def test_a_concrete_function_is_the_trace_of_the_calls(power):
    concrete = power.get_concrete_function(tw.TensorSpec([3]), 2)
    power(ones(3), 2)
    assert power.experimental_get_tracing_count() == 1
    assert power.get_concrete_function(ones(3), 2) is concrete


def test_a_concrete_function_tells_what_it_is_made_of():
    v, w = tw.Variable(1.0, name="v"), tw.Variable(1.0, trainable=False, name="w")
    f = tw.function(lambda image, k: {"out": image * v * w * k})
    c = f.get_concrete_function(tw.TensorSpec([2, 3], name="x"), 2.0)
    assert c.name == "<lambda>"
    assert [(x.name, tuple(x.shape)) for x in c.inputs] == [("x", (2, 3))]
    assert [tuple(x.shape) for x in c.outputs] == [(2, 3)]
    assert c.structured_input_signature == ((tw.TensorSpec([2, 3]), 2.0), {})
    assert c.structured_input_signature[0][0].name == "x"
    assert c.structured_outputs == {"out": tw.TensorSpec([2, 3])}
    assert [x.name for x in c.variables] == ["v", "w"]
    assert [x.name for x in c.trainable_variables] == ["v"]
    assert c.captured_inputs == []
    assert c.graph.nodes


def test_captured_tensors_are_listed():
    x = tw.constant(2.0)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = x * 3.0
        c = tw.function(lambda: y + 1.0).get_concrete_function()
    assert [t is y for t in c.captured_inputs] == [True]
    assert c().numpy() == 7


def test_signatures_print_as_in_tensorflow(power):
    power.get_concrete_function(tw.TensorSpec([2], name="t"), 3)
    assert power.pretty_printed_concrete_signatures() == (
        "Input Parameters:\n"
        "  a (POSITIONAL_OR_KEYWORD): "
        "TensorSpec(shape=(2,), dtype=tf.float32, name='t')\n"
        "  b (POSITIONAL_OR_KEYWORD): Literal[3]\n"
        "Output Type:\n"
        "  TensorSpec(shape=(2,), dtype=tf.float32, name=None)\n"
        "Captures:\n"
        "  None"
    )


def test_pretty_shows_the_executable_of_the_latest_trace(power, numpy_target, device):
    with pytest.raises(ValueError, match="was not traced yet"):
        power.pretty()
    power(ones(2), 2.0)
    assert ("def power" if device == "cpu" else "graph_0") in power.pretty()
    assert power.pretty(ones(2), 2.0) == power.pretty()
    assert str(power.explain(ones(2), 2.0))
