"""Fewer traces by `reduce_retracing`, and the warning of many."""

import pytest

import tapewright as tw

from .counting import counted, ones, traces


def test_reduce_retracing_leaves_open_what_differs():
    shapes = []

    @tw.function(reduce_retracing=True)
    def f(x):
        shapes.append(str(x.shape))
        return x + 1.0

    for n in (1, 2, 3, 4):
        assert f(ones(n)).shape == (n,)
    assert shapes[:2] == ["(1,)", "(None,)"]
    assert f.experimental_get_tracing_count() == 2


def test_experimental_relax_shapes_is_reduce_retracing():
    f = counted(experimental_relax_shapes=True)
    assert traces(f, *[[ones(n)] for n in (2, 3, 4, 5)])[2:] == [0, 0]


def test_tracing_again_and_again_warns_once_and_names_the_argument():
    f = tw.function(lambda x, rate: x * rate)
    with pytest.warns(UserWarning) as found:
        for n in range(12):
            f(ones(2), n)
    assert len(found) == 1
    text = str(found[0].message)
    assert "traced 5 times" in text
    assert "'rate' varies (0, 1, 2, 3, 4)" in text
    assert "tw.constant" in text and "'x'" not in text
    assert found[0].filename == __file__


def test_the_warning_of_changing_shapes_names_the_ways_out():
    f = tw.function(lambda x: x)
    with pytest.warns(UserWarning, match="reduce_retracing.*True.*input_signature"):
        for n in range(6):
            f(ones(n))


def test_traces_that_are_used_often_are_no_reason_to_warn():
    f = tw.function(lambda x: x)
    for n in range(6):
        for _ in range(10):
            f(ones(n))
