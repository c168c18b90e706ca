"""Python in traced functions: what is printed, called and asserted in each replay."""

import io
import logging
import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright.graph.control.text import array_text

ways = pytest.mark.parametrize(
    "wrap", [lambda f: f, tw.function], ids=["eager", "traced"]
)


# --------------------------------------------------------------------------- print


# What TensorFlow 2.21 prints.
@pytest.mark.parametrize(
    "array, text",
    [
        (np.float32(1 / 3), "0.333333343"),
        (np.float32(0.1), "0.1"),
        (np.float32(2.5e10), "2.5e+10"),
        (np.float32(16777216), "16777216"),
        (np.float32(1e6), "1e+06"),
        (np.float32(-0.0), "0"),
        (np.float16(0.1), "0.0999755859"),
        (np.float64(1 / 3), "0.33333333333333331"),
        (np.float64(1e16), "1e+16"),
        (np.array([True, False]), "[1 0]"),
        (np.array(["a", 'q"q']), '["a" "q\\"q"]'),
        (np.arange(7), "[0 1 2 ... 4 5 6]"),
        (np.arange(6), "[0 1 2 3 4 5]"),
        (np.zeros((0, 3)), "[]"),
        (np.array([np.nan, np.inf, -np.inf]), "[nan inf -inf]"),
        (np.arange(8.0).reshape(2, 2, 2), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"),
    ],
)
def test_arrays_are_printed_as_tensorflow_does(array, text):
    assert array_text(array) == text


def test_the_ends_of_each_axis_are_shown():
    text = array_text(np.arange(27).reshape(3, 3, 3), 1)
    assert text == (
        "[[[0 ... 2]\n  ...\n  [6 ... 8]]\n\n ...\n\n [[18 ... 20]\n  ...\n  [24 ... 26]]]"
    )


@ways
def test_a_line_holds_tensors_nests_and_anything_else(wrap, capsys):
    def f(x):
        tw.print(
            "in", x, [x, (x,)], {"b": 1, "a": x}, True, None, output_stream=sys.stdout
        )

    wrap(f)(tw.constant([1.0, 2.0]))
    line = "in [1 2] [[1 2], ([1 2],)] {'a': [1 2], 'b': 1} True None\n"
    assert capsys.readouterr().out == line


@ways
def test_each_call_prints_in_order(wrap, capsys):
    v = tw.Variable(1)

    def f(x):
        tw.print("first", v, sep=": ")
        v.assign_add(x)
        tw.cond(x > 1, lambda: tw.print("large"), lambda: tw.print("small"))
        tw.print("last", v, end="!\n")

    f = wrap(f)
    for x in (1, 2):
        f(tw.constant(x))
    lines = ["first: 1", "small", "last 2!", "first: 2", "large", "last 4!"]
    assert capsys.readouterr().err.splitlines() == lines


@ways
def test_a_loop_prints_in_each_step(wrap, capsys):
    def f(n):
        def body(i):
            tw.print(i)
            return i + 1

        return tw.while_loop(lambda i: i < n, body, [0])

    wrap(f)(tw.constant(3))
    assert capsys.readouterr().err.split() == ["0", "1", "2"]


@ways
def test_lines_are_printed_once_where_a_gradient_computes_again(wrap, capsys):
    def f(x):
        def step(a, x):
            tw.print(x)
            return a * x

        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.foldl(step, x, initializer=1.0)
        return tape.gradient(y, x)

    x = tw.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    gradient = tw.convert_to_tensor(wrap(f)(x)).numpy()
    np.testing.assert_allclose(gradient, 720.0 / x.numpy(), rtol=1e-6)
    assert capsys.readouterr().err.split() == list("123456")


def test_streams(tmp_path, capsys, caplog):
    text, path = io.StringIO(), tmp_path / "lines.txt"
    for stream in (text, f"file://{path}", sys.stdout, sys.stderr):
        tw.print("x", tw.constant(1), output_stream=stream)
        tw.print("y", output_stream=stream)
    found = capsys.readouterr()
    assert {text.getvalue(), path.read_text(), found.out, found.err} == {"x 1\ny\n"}
    with caplog.at_level(logging.INFO):
        tw.print("logged", output_stream=logging.info)
    assert caplog.messages == ["logged"]
    with pytest.raises(ValueError, match="output_stream must be"):
        tw.print("x", output_stream=3)


# --------------------------------------------------------------------- py_function


@ways
def test_py_function_sees_values(wrap):
    f = wrap(lambda x: tw.py_function(lambda x: float(x) ** 2, [x], "float32"))
    assert f(tw.constant(3.0)).numpy() == 9.0
    assert f(tw.constant(4.0)).numpy() == 16.0


@ways
def test_py_function_returns_as_many_values_as_tout(wrap):
    f = wrap(
        lambda x: tw.py_function(lambda x: (x + 1.0, x > 0.0), [x], ["float32", "bool"])
    )
    a, b = f(tw.constant(3.0))
    assert a.numpy() == 4.0 and b.numpy()


@ways
def test_py_function_for_its_effect_alone(wrap):
    seen = []
    f = wrap(lambda x: tw.py_function(lambda x: seen.append(float(x)), [x], []))
    assert f(tw.constant(1.0)) == []
    f(tw.constant(2.0))
    assert seen == [1.0, 2.0]


def test_py_function_as_a_decorator():
    @tw.py_function(Tout="float32")
    def half(x):
        return x / 2.0

    assert half(tw.constant(3.0)).numpy() == 1.5


def cube(x):
    return tw.py_function(lambda x: x**3, [x], tw.TensorSpec([], "float64")) * x


def test_gradients_pass_through_py_function_at_every_order():
    def derivatives(f, x):
        with tw.GradientTape() as third:
            third.watch(x)
            with tw.GradientTape() as second:
                second.watch(x)
                with tw.GradientTape() as first:
                    first.watch(x)
                    y = f(x)
                dy = first.gradient(y, x)
            ddy = second.gradient(dy, x)
        return [t.numpy() for t in (y, dy, ddy, third.gradient(ddy, x))]

    x = tw.constant(2.0, dtype="float64")
    exact = [16.0, 32.0, 48.0, 48.0]  # of x ** 4
    assert derivatives(cube, x) == exact
    assert derivatives(tw.function(cube), x) == exact

    @tw.function
    def inside(x):
        with tw.GradientTape() as second:
            second.watch(x)
            with tw.GradientTape() as first:
                first.watch(x)
                y = cube(x)
            dy = first.gradient(y, x)
        return y, dy, second.gradient(dy, x)

    assert [t.numpy() for t in inside(x)] == exact[:3]


def test_a_gradient_takes_what_the_forward_call_has_done():
    calls = []

    def noisy(x):
        calls.append(1)
        return x * float(len(calls))

    @tw.function
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.py_function(noisy, [x], tw.TensorSpec([], "float32"))
        return y, tape.gradient(y, x)

    for count in (1, 2, 3):
        y, g = f(tw.constant(1.0))
        assert (y.numpy(), g.numpy(), len(calls)) == (count, count, count)


def test_py_function_inside_a_scan_with_gradient():
    calls = []

    def power(x):
        calls.append(1)
        return x**3

    def f(xs, call):
        with tw.GradientTape() as tape:
            tape.watch(xs)
            y = tw.reduce_sum(
                tw.scan(lambda a, x: a * 0.5 + call(x) * a, xs, initializer=1.0)
            )
        return y, tape.gradient(y, xs)

    spec = tw.TensorSpec([], "float32")
    traced = tw.function(lambda xs: f(xs, lambda x: tw.py_function(power, [x], spec)))
    xs = tw.constant(np.linspace(0.1, 0.9, 6).astype("float32"))
    found, expected = traced(xs), f(xs, lambda x: x**3)
    assert len(calls) == 6
    for a, b in zip(found, expected):
        a, b = tw.convert_to_tensor(a).numpy(), tw.convert_to_tensor(b).numpy()
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_what_py_function_keeps_is_not_overwritten():
    kept = []
    f = tw.function(
        lambda x: tw.py_function(lambda x: kept.append(x), [x * 2.0 + 1.0], []) or x
    )
    f(tw.constant([1.0, 2.0]))
    f(tw.constant([5.0, 6.0]))
    assert [k.numpy().tolist() for k in kept] == [[3.0, 5.0], [11.0, 13.0]]


@ways
def test_another_number_of_values_is_refused(wrap):
    spec = tw.TensorSpec([], "float32")
    f = wrap(lambda x: tw.py_function(lambda x: (x, x), [x], [spec]))
    with pytest.raises(tw.errors.InvalidArgumentError, match="must return 1 values"):
        f(tw.constant(1.0))


@ways
def test_another_dtype_is_refused(wrap):
    spec = tw.TensorSpec([], "float32")
    f = wrap(lambda x: tw.py_function(lambda x: tw.cast(x, "int32"), [x], spec))
    with pytest.raises(TypeError, match="dtype must be float32"):
        f(tw.constant(1.0))


def test_another_shape_than_that_of_the_trace_is_refused():
    f = tw.function(lambda x: tw.py_function(lambda x: x[x > 0.0], [x], "float32"))
    f(tw.constant([1.0, 2.0]))
    with pytest.raises(tw.errors.InvalidArgumentError, match="was traced for"):
        f(tw.constant([1.0, -2.0]))


def test_a_shape_that_cannot_be_found_out_is_to_be_given():
    def picky(x):
        if float(x) != 7.0:
            raise RuntimeError("seven")
        return x

    f = tw.function(lambda x: tw.py_function(picky, [x], "float32"))
    with pytest.raises(tw.errors.TracingError, match="Give Tout=TensorSpec"):
        f(tw.constant(7.0))


def test_tout_must_be_given():
    with pytest.raises(TypeError, match="Tout must be given"):
        tw.py_function(lambda x: x, [tw.constant(1.0)])


@ways
def test_numpy_function_sees_arrays_and_has_no_gradient(wrap):
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.numpy_function(lambda x: np.sort(x) * 2, [x], "float32")
        return y, tape.gradient(y, x, unconnected_gradients="zero")

    y, g = wrap(f)(tw.constant([3.0, 1.0]))
    assert y.numpy().tolist() == [2.0, 6.0] and g.numpy().tolist() == [0.0, 0.0]


# ---------------------------------------------------------------------- assertions


@ways
def test_an_assertion_that_fails_leaves_variables_alone(wrap):
    v = tw.Variable(1.0)

    def f(x):
        tw.debugging.assert_positive(x, message="the rate")
        v.assign(x)
        return v + 1.0

    f = wrap(f)
    assert f(tw.constant(2.0)).numpy() == 3.0
    with pytest.raises(tw.errors.InvalidArgumentError, match="the rate"):
        f(tw.constant(-1.0))
    assert v.numpy() == 2.0


def test_in_a_trace_it_does_not_matter_that_the_assertion_comes_after():
    v = tw.Variable(1.0)

    @tw.function
    def f(x):
        v.assign(x)
        tw.Assert(x > 0.0, ["x is", x])

    f(tw.constant(2.0))
    with pytest.raises(tw.errors.InvalidArgumentError, match="x is\n  -3"):
        f(tw.constant(-3.0))
    assert v.numpy() == 2.0


@ways
def test_an_assertion_in_a_loop(wrap):
    def f(x):
        def body(i, x):
            tw.debugging.assert_less(x, 100.0)
            return i + 1, x * x

        return tw.while_loop(lambda i, x: i < 10, body, (0, x))[1]

    f = wrap(f)
    assert f(tw.constant(1.0)).numpy() == 1.0
    with pytest.raises(tw.errors.InvalidArgumentError, match="x < y must hold"):
        f(tw.constant(3.0))


HOLD = {
    "assert_equal": (([1, 2], [1, 2]), ([1, 2], [1, 3])),
    "assert_none_equal": (([1, 2], [2, 1]), ([1, 2], [3, 2])),
    "assert_greater": (([1, 2], 0), ([1, 2], 1)),
    "assert_greater_equal": (([1, 2], 1), ([1, 2], 2)),
    "assert_less": (([1, 2], 3), ([1, 2], 2)),
    "assert_less_equal": (([1, 2], 2), ([1, 2], 1)),
    "assert_near": (([1.0], [1.0 + 1e-6]), ([1.0], [1.1])),
    "assert_positive": (([1, 2],), ([0, 2],)),
    "assert_non_negative": (([0, 2],), ([-1, 2],)),
    "assert_negative": (([-1],), ([0],)),
    "assert_non_positive": (([0, -1],), ([1],)),
    "assert_all_finite": (([1.0], "m"), ([np.nan], "m")),
}


@ways
@pytest.mark.parametrize("name", HOLD)
def test_assertions_about_values(name, wrap):
    good, bad = HOLD[name]
    assertion = getattr(tw.debugging, name)

    def f(x):
        assertion(x, *rest)
        return x

    *_, rest = good[0], good[1:]
    wrap(f)(tw.constant(good[0]))
    *_, rest = bad[0], bad[1:]
    with pytest.raises(tw.errors.InvalidArgumentError, match=name):
        wrap(f)(tw.constant(bad[0]))


@pytest.mark.parametrize(
    "name, arguments, error",
    [
        ("assert_rank", ([1.0], 2), ValueError),
        ("assert_rank_at_least", ([1.0], 2), ValueError),
        ("assert_rank_in", ([1.0], (0, 2)), ValueError),
        ("assert_scalar", ([1.0],), ValueError),
        ("assert_type", ([1.0], "int32"), TypeError),
        ("assert_integer", ([1.0],), TypeError),
        ("assert_proper_iterable", (1,), TypeError),
        ("assert_same_float_dtype", ([np.float32(1), np.float64(1)],), ValueError),
        ("assert_shapes", ([([[1.0]], ("n", 2))],), ValueError),
        ("assert_shapes", ([([1.0], ("n",)), ([1.0, 2.0], ("n",))],), ValueError),
        ("assert_shapes", ([([1.0], ("n", "m"))],), ValueError),
    ],
)
def test_assertions_about_shapes_and_dtypes(name, arguments, error):
    with pytest.raises(error, match=name):
        getattr(tw.debugging, name)(*arguments)


def test_assertions_about_shapes_that_hold():
    x = tw.zeros((2, 3))
    tw.debugging.assert_rank(x, 2)
    tw.debugging.assert_rank_at_least(x, 1)
    tw.debugging.assert_rank_in(x, (0, 2))
    tw.debugging.assert_shapes([(x, ("n", "m")), (tw.zeros(3), ("m",)), (x, (..., 3))])
    assert tw.debugging.assert_same_float_dtype([x]) == tw.float32
    assert tw.debugging.is_numeric_tensor(x)


def test_check_numerics_looks_in_each_call():
    f = tw.function(lambda x: tw.debugging.check_numerics(tw.math.log(x), "the loss"))
    assert f(tw.constant(1.0)).numpy() == 0.0
    with pytest.raises(FloatingPointError, match="the loss"):
        f(tw.constant(0.0))


def test_python_sees_the_values_that_were_assigned_before_it():
    v, seen = tw.Variable([0.0, 0.0]), []

    @tw.function
    def step(i):
        v.assign(tw.fill([2], i))
        return tw.numpy_function(
            lambda i: (seen.append(v.numpy()[0]), i)[1], [i], tw.TensorSpec([])
        )

    for i in range(1, 4):
        step(tw.constant(float(i)))
    assert seen == [1.0, 2.0, 3.0]


def test_what_python_assigns_is_what_comes_after():
    v = tw.Variable(0.0)

    def more():
        v.assign_add(10.0)

    @tw.function
    def step():
        v.assign_add(1.0)
        tw.py_function(more, [], [])
        v.assign_add(1.0)

    for _ in range(3):
        step()
    assert v.numpy() == 36.0
