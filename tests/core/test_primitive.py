"""Primitives: how an op is defined, called, and seen by interpreters."""

import inspect

import numpy as np
import pytest

import tapewright as tw
from tapewright.core import interpreters
from tapewright.core.hardware import devices
from tapewright.core.interpreters import (
    Interpreter,
    active_interpreter,
    active_interpreters,
    use_interpreters,
)
from tapewright.core.primitive import Primitive, get_primitive, primitive
from tapewright.core.rules import broadcast_shape, elementwise, normalize_axis
from tapewright.core.tape import Tape
from tapewright.core.typing import Axes, TensorLike, as_axes, as_shape, dtype_name


@primitive(type_name="ScaleForATest")
def scale_for_a_test(xp, x, *, factor=2.0, axis: Axes = None):
    """``factor * x``."""
    return x * x.dtype.type(factor)


@scale_for_a_test.vjp("x")
def _(g, factor):
    return g * factor


def test_the_signature_of_a_kernel_tells_inputs_from_attributes():
    def kernel(
        xp, x: TensorLike, y, axis: Axes = None, flag: bool = False, *, third: int
    ):
        return x + y

    op = Primitive(kernel, name="told_apart_for_a_test")
    assert op.inputs == ("x", "y")
    assert op.attributes == ("axis", "flag", "third")
    assert op.defaults == {"axis": None, "flag": False}
    assert op.bind((1, 2, [np.int32(0)], 1), {"third": np.int64(3)}) == (
        (1, 2),
        {"axis": (0,), "flag": True, "third": 3},
    )


def test_an_attribute_by_position_needs_a_type_and_follows_the_inputs():
    with pytest.raises(TypeError, match="untyped"):
        Primitive(lambda xp, x, axis=None: x, name="untyped")

    def misplaced(xp, axis: Axes, x: TensorLike):
        return x

    with pytest.raises(TypeError, match="misplaced"):
        Primitive(misplaced)


# ------------------------------------------------------------------------- calling


@pytest.mark.parametrize(
    "call",
    [
        lambda op: op([1.0], 3.0),
        lambda op: op([1.0], factor=3.0),
        lambda op: op(x=[1.0], factor=3.0),
        lambda op: op([1.0], 3.0, None),
        lambda op: op([1.0], 3.0, name="scaled"),
        lambda op: op(np.array([1.0], np.float32), 3.0, axis=0),
    ],
)
def test_inputs_and_attributes_come_by_position_or_name(call):
    assert call(scale_for_a_test).numpy() == [3.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda op: op(), "scale_for_a_test: the argument 'x' is missing"),
        (lambda op: op(1.0, 2.0, None, 4), "scale_for_a_test: .*got 4"),
        (
            lambda op: op(1.0, factors=2.0),
            "scale_for_a_test: .*argument 'factors'.*Did you mean 'factor'",
        ),
        (lambda op: op(1.0, 2.0, factor=3.0), "got 'factor' twice"),
        (lambda op: op(object()), "argument 'x': .*object"),
        (lambda op: op(1.0, axis="first"), "argument 'axis'"),
    ],
)
def test_a_wrong_call_names_the_op_and_the_argument(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(scale_for_a_test)


def test_an_op_has_the_name_docstring_and_module_of_its_kernel():
    assert scale_for_a_test.__name__ == "scale_for_a_test"
    assert scale_for_a_test.__doc__ == "``factor * x``."
    assert scale_for_a_test.__module__ == __name__
    assert (
        repr(scale_for_a_test.primitive)
        == "<Primitive scale_for_a_test(x, factor, axis)>"
    )


def test_both_names_find_the_primitive():
    assert get_primitive("matmul") is get_primitive("MatMul") is not None
    assert get_primitive("scale_for_a_test") is scale_for_a_test.primitive
    with pytest.raises(ValueError, match="op 'no_such'"):
        get_primitive("no_such")


@pytest.mark.parametrize(
    ("op", "arguments"),
    [
        (tw.add, ([1.0, 2.0], [1.0, 2.0, 3.0])),
        (tw.matmul, ([[1.0]], [[1.0], [2.0]])),
        (tw.concat, ([[1.0], [[2.0]]], 0)),
        (tw.reshape, ([1.0, 2.0], [3])),
        (tw.transpose, ([[1.0]], [0, 0])),
        (tw.reduce_sum, ([1.0], 3)),
        (tw.squeeze, ([1.0, 2.0], 0)),
        (tw.broadcast_to, ([1.0, 2.0], [3])),
    ],
)
def test_a_shape_error_names_the_op_and_what_was_given(op, arguments):
    with pytest.raises(ValueError) as caught:
        op(*arguments)
    assert op.__name__ in str(caught.value)


def test_a_dtype_error_shows_both():
    with pytest.raises(
        TypeError, match=r"(?s)add.*float32 and int32.*x: shape \(\).*y: "
    ):
        tw.add(tw.constant(1.0), tw.constant(1))


def test_an_error_of_the_kernel_alone_says_where_it_was():
    @primitive
    def fails_for_a_test(xp, x):
        raise RuntimeError("no luck")

    with pytest.raises(RuntimeError, match="no luck") as caught:
        fails_for_a_test([1.0, 2.0])
    assert "in the op fails_for_a_test on (2,) float32" in caught.value.__notes__


# ------------------------------------------------------------------------- defining


def test_a_rule_for_an_unknown_input_is_refused():
    with pytest.raises(TypeError, match="scale_for_a_test .*'y'"):
        scale_for_a_test.vjp("y")
    with pytest.raises(TypeError, match="scale_for_a_test .*'y'"):
        scale_for_a_test.no_gradient("y")


def test_a_rule_that_names_an_unknown_residual_is_refused():
    with pytest.raises(TypeError, match="residual 'factr'"):

        @scale_for_a_test.vjp("x")
        def _(g, factr):
            return g * factr


def test_a_rule_sees_what_it_names():
    seen = {}

    @primitive
    def curious_for_a_test(xp, x, y, *, power=2.0):
        return x * y

    @curious_for_a_test.vjp("x")
    def _(g, x, y, out, power, x_shape, y_dtype):
        seen.update(x=x, y=y, out=out, power=power, x_shape=x_shape, y_dtype=y_dtype)
        return g * y

    @curious_for_a_test.vjp("y")
    def _(g, x):
        return g * x

    v = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as tape:
        z = curious_for_a_test(v, [3.0, 4.0], power=5.0)
    np.testing.assert_array_equal(tape.gradient(z, v), [3.0, 4.0])
    np.testing.assert_array_equal(devices.to_numpy(seen["out"]), [3.0, 8.0])
    assert seen["power"] == 5.0 and seen["x_shape"] == (2,)
    assert seen["y_dtype"] == np.float32


def test_an_op_with_several_outputs_gets_all_cotangents():
    @primitive(multiple=True)
    def both_for_a_test(xp, x):
        return x + 1, x * x

    @both_for_a_test.vjp("x")
    def _(g, x):
        return g[0] + g[1] * (x + x)

    x = tw.Variable(3.0)
    with tw.GradientTape(persistent=True) as tape:
        a, b = both_for_a_test(x)
        y = a * b
    assert tape.gradient(a, x).numpy() == 1.0
    assert tape.gradient(b, x).numpy() == 6.0
    assert tape.gradient(y, x).numpy() == 9.0 + 4.0 * 6.0
    assert [g.numpy() for g in tape.gradient(y, [a, b])] == [9.0, 4.0]


def test_a_variadic_op_takes_a_list_or_its_items():
    @primitive
    def total_for_a_test(xp, *values, scale=1.0):
        return sum(values) * values[0].dtype.type(scale)

    @total_for_a_test.vjp("values")
    def _(g, values, scale):
        return [g * scale for _ in values]

    a, b = tw.Variable(1.0), tw.Variable(2.0)
    with tw.GradientTape(persistent=True) as tape:
        y, z = total_for_a_test([a, 3.0, b], scale=2.0), total_for_a_test(a, b)
    assert (y.numpy(), z.numpy()) == (12.0, 3.0)
    assert [g.numpy() for g in tape.gradient(y, [a, b])] == [2.0, 2.0]


def test_broadcasting_is_undone_without_the_rules_help():
    @elementwise
    def plus_for_a_test(xp, x, y):
        return x + y

    @plus_for_a_test.vjp("x", "y")
    def _(g):
        return g

    x, y = tw.Variable(np.ones((2, 1, 3))), tw.Variable(np.ones((4, 1)))
    with tw.GradientTape() as tape:
        z = plus_for_a_test(x, y)
    by_x, by_y = tape.gradient(z, [x, y])
    np.testing.assert_array_equal(by_x, np.full((2, 1, 3), 4.0))
    np.testing.assert_array_equal(by_y, np.full((4, 1), 6.0))


def test_an_attribute_without_default_is_required():
    @primitive
    def needs_for_a_test(xp, x, *, axis: Axes):
        return x

    with pytest.raises(TypeError, match="'axis'.*missing"):
        needs_for_a_test(1.0)


@pytest.mark.parametrize(
    ("convert", "value", "plain"),
    [
        (as_axes, None, None),
        (as_axes, [np.int64(0), tw.constant(1)], (0, 1)),
        (as_axes, tw.constant([0, 2]), (0, 2)),
        (as_axes, np.int32(-1), -1),
        (as_shape, [2, tw.constant(3), np.int64(-1)], (2, 3, -1)),
        (as_shape, tw.constant([4, 5]), (4, 5)),
        (as_shape, tw.TensorShape([4, 5]), (4, 5)),
        (as_shape, 7, (7,)),
        (as_shape, tw.constant(7), (7,)),
        (dtype_name, np.float32, "float32"),
        (dtype_name, None, None),
    ],
)
def test_attributes_become_plain_values(convert, value, plain):
    converted = convert(value)
    assert converted == plain and type(converted) is type(plain)
    if isinstance(converted, tuple):
        assert {type(n) for n in converted} == {int}


def test_axes_and_shapes_are_checked_in_words():
    assert normalize_axis("op", (-1, 0), 3) == (2, 0)
    assert normalize_axis("op", None, 2) == (0, 1)
    with pytest.raises(ValueError, match="op: axis .*-2.*1.*rank 2, got 2"):
        normalize_axis("op", 2, 2)
    with pytest.raises(ValueError, match="axis .*twice"):
        normalize_axis("op", (0, -2), 2)
    assert broadcast_shape((2, 1), (None, 3), ()) == (2, 3)
    assert broadcast_shape((1, None), (4, 1)) == (4, None)
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        broadcast_shape((2,), (3,))


# ------------------------------------------------------------------------- interpreters


class Counting(Interpreter):
    def __init__(self):
        self.names, self.variables = [], []

    def process(self, op, inputs, attributes, below):
        self.names.append(op.name)
        return super().process(op, inputs, attributes, below)

    def read_variable(self, variable, tensor):
        self.variables.append(variable)


def test_a_reader_sees_every_op_and_every_read():
    v, counting = tw.Variable(2.0), Counting()
    with use_interpreters((counting,)):
        tw.reduce_sum(tw.exp(v) * [1.0, 2.0])
    assert counting.names == ["exp", "multiply", "reduce_sum"]
    assert counting.variables == [v]


def test_the_innermost_reader_sees_an_op_first_and_tapes_below_still_record():
    x, counting = tw.Variable(3.0), Counting()
    with (
        tw.GradientTape() as tape,
        use_interpreters((*active_interpreters(), counting)),
    ):
        y = x * x
    assert counting.names == ["multiply"]
    assert tape.gradient(y, x).numpy() == 6.0


def test_reading_restores_what_was_there_even_after_an_error():
    with tw.GradientTape():
        before = active_interpreter()
        with pytest.raises(KeyError), use_interpreters(()):
            assert active_interpreter() is None
            raise KeyError
        assert active_interpreter() is before
    assert active_interpreters() == ()


def test_one_tape_is_the_interpreter_itself_and_several_are_a_tuple():
    with tw.GradientTape():
        assert type(active_interpreter()) is Tape
        with tw.GradientTape():
            assert type(active_interpreter()) is interpreters.InterpreterStack
            assert len(active_interpreters()) == 2


def test_a_walk_that_nobody_records_runs_on_arrays_and_any_other_on_tensors():
    seen = []

    @primitive
    def watched_for_a_test(xp, x):
        return x * 2

    @watched_for_a_test.vjp("x")
    def _(g, x):
        seen.append((type(g), type(x)))
        return g * 2.0

    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as tape:
        y = watched_for_a_test(x)
    tape.gradient(y, x)
    with tw.GradientTape(), tw.GradientTape() as tape:
        y = watched_for_a_test(x)
        tape.gradient(y, x)
    assert seen[1:] == [(tw.Tensor, tw.Tensor)] and tw.Tensor not in seen[0]


def test_no_input_may_take_the_name_of_the_output():
    with pytest.raises(TypeError, match="named.*'out'"):

        @primitive
        def takes_out(xp, out):
            return out


def test_inputs_go_by_the_names_of_the_kernel():
    assert tw.nn.relu(features=[-1.0, 2.0]).numpy().tolist() == [0.0, 2.0]
    assert tw.stop_gradient(input=[1.0]).numpy().tolist() == [1.0]
    with pytest.raises(TypeError, match="relu.* 'features'"):
        tw.nn.relu()


def test_signatures_tell_the_attributes_and_their_defaults():
    shown = str(inspect.signature(tw.reduce_sum))
    assert shown == "(input_tensor, axis=None, keepdims=False, name=None)"


def test_a_kernel_that_checks_values_keeps_its_check():
    """Kernels that only forward their inputs are replaced by NumPy's function."""

    def check(xp, x):
        if (x < 0).any():
            raise ValueError("x must not be negative")

    @primitive
    def checked_sqrt_for_a_test(xp, x):
        check(xp, x)
        return xp.sqrt(x)

    assert inspect.unwrap(tw.tanh.primitive.kernels[np.ndarray]) is np.tanh
    assert float(checked_sqrt_for_a_test(tw.constant([4.0]))[0]) == 2.0
    with pytest.raises(ValueError, match="negative"):
        checked_sqrt_for_a_test(tw.constant([-1.0]))


def test_a_trace_names_the_rule_for_shapes_that_an_op_lacks():
    with pytest.raises(NotImplementedError, match="@scale_for_a_test.infer"):
        tw.function(lambda x: scale_for_a_test(x))(tw.constant([1.0]))


@pytest.mark.parametrize("name", ["tanh", "matmul", "MatMul"])
def test_an_op_of_a_user_needs_a_name_of_its_own(name):
    known = get_primitive(name)
    with pytest.raises(ValueError, match=f"{name}.* of tapewright; choose another"):
        Primitive(lambda xp, x: x, name=name)
    assert get_primitive(name) is known


def test_a_misspelt_trait_is_refused_with_the_right_name():
    with pytest.raises(TypeError, match="'linaer'.*Did you mean 'linear'"):
        primitive(linaer=True)(lambda xp, x: x)
    with pytest.raises(
        TypeError, match="'speed' .*the arguments are batch, broadcasts"
    ):
        elementwise(speed=2)(lambda xp, x: x)
