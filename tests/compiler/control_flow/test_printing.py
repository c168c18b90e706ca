"""`print` and `Assert`: what is printed and asserted, eagerly and in each replay."""

import io
import logging
import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.strings.array_text import array_text

from ...ways import ways

# -------------------------------------------------------------------------------- print


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
        (np.array(["\n\t\x01\x7f'\\"]), r"""["\n\t\001\177\'\\"]"""),
        (np.array([b"a", "é".encode()], object), '["a" "é"]'),
        (np.array([[b"a"], [b"\xff"]], object), '[["a"]\n ["\ufffd"]]'),
        (np.array(b"a", object), '"a"'),
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
def test_a_string_that_is_the_only_argument_has_no_quotes(wrap, capsys):
    def f(x):
        tw.print(x)
        tw.print(x, x)

    wrap(f)(tw.constant('a "b"\n'))
    assert capsys.readouterr().err == 'a "b"\n\n"a \\"b\\"\\n" "a \\"b\\"\\n"\n'


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
    with pytest.raises(ValueError, match="output_stream .*'file://path'.*got 3"):
        tw.print("x", output_stream=3)


# ------------------------------------------------------------------------------- Assert


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
