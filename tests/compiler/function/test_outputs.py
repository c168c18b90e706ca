"""What traced functions return."""

import numpy as np
import pytest

import tapewright as tw

from .counting import Point, Thing


def test_nests_with_none_numbers_and_variables_are_returned():
    v = tw.Variable(4.0)
    f = tw.function(lambda x: {"a": [x, None], "b": Point(v, 7), "c": ()})
    for _ in range(2):
        out = f(tw.constant(1.0))
        assert out["a"][1] is None and out["c"] == ()
        assert type(out["b"]) is Point
        assert [out["a"][0].numpy(), out["b"].x.numpy(), out["b"].y.numpy()] == [
            1,
            4,
            7,
        ]
        assert type(out["b"].x) is tw.Tensor


def test_a_list_is_returned_anew_in_every_call():
    f = tw.function(lambda x: [x, x + 1.0])
    first = f(tw.constant(1.0))
    first.clear()
    assert [x.numpy() for x in f(tw.constant(1.0))] == [1, 2]


def test_nothing_is_returned_by_a_function_without_return():
    v = tw.Variable(0.0)

    @tw.function
    def f():
        v.assign_add(1.0)

    assert f() is None and f() is None
    assert v.numpy() == 2


def test_an_array_that_is_returned_is_a_tensor():
    assert tw.function(lambda: np.arange(3))().numpy().tolist() == [0, 1, 2]


def test_an_object_cannot_be_returned():
    with pytest.raises(TypeError, match="'f'.*Thing"):

        @tw.function
        def f():
            return Thing()

        f()
