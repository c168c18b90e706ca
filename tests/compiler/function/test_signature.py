"""Parameters of traced functions, and what an ``input_signature`` says of them."""

import numpy as np
import pytest

import tapewright as tw

from .counting import ones

# --------------------------------------------------------------------------- parameters


def test_defaults_and_keywords_share_the_trace_of_positions():
    seen = []

    @tw.function
    def f(x, factor=2.0, *, shift=1.0):
        seen.append(factor)
        return x * factor + shift

    x = tw.constant(3.0)
    results = [f(x), f(x, 2.0), f(x=x), f(factor=2.0, x=x), f(x, shift=1.0)]
    assert [r.numpy() for r in results] == [7] * 5
    assert seen == [2.0]


def test_further_arguments_come_by_position_and_by_name():
    @tw.function
    def f(*args, **kwargs):
        return sum(args) + kwargs["a"] * 10.0 + kwargs["b"] * 100.0

    one = tw.constant(1.0)
    assert f(one, one * 2, b=one, a=one * 3).numpy() == 1 + 2 + 30 + 100
    assert f(one, one, a=one * 3, b=one).numpy() == 1 + 1 + 30 + 100
    assert f.experimental_get_tracing_count() == 1


def test_missing_and_unknown_arguments_are_named():
    f = tw.function(lambda x, y: x)
    with pytest.raises(TypeError, match="required.*'y'"):
        f(ones(1))
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        f(ones(1), ones(1), z=1)
    with pytest.raises(TypeError, match="too many positional arguments"):
        f(1, 2, 3)


# ---------------------------------------------------------------------- input_signature


@pytest.fixture
def signed():
    @tw.function(
        input_signature=[
            tw.TensorSpec([None, 2], name="image"),
            tw.TensorSpec([], tw.int32),
        ]
    )
    def f(a, b):
        return tw.reduce_sum(a) + tw.cast(b, tw.float32)

    return f


def test_one_trace_serves_a_signature(signed):
    values = [signed(ones(n, 2), 1).numpy() for n in (3, 4, 5)]
    assert values == [7, 9, 11]
    assert signed.experimental_get_tracing_count() == 1


def test_arguments_are_converted_as_the_signature_says(signed):
    assert signed([[1, 2]], 1).numpy() == 4
    assert signed(b=tw.Variable(1), a=np.ones((3, 2))).numpy() == 7


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((np.ones(3, "f4"), 1), r"'a'.*shape \(None, 2\).*float32"),
        ((tw.ones([3, 2], "float64"), 1), r"'a' .* got TensorSpec.*float64"),
        ((tw.ones([3, 2]), 1.5), r"'b'.*shape \(\).*int32.*got 1\.5"),
        (("text", 1), r"'a'.*shape \(None, 2\).*got 'text'"),
        ((tw.ones([3, 2]),), "required.*'b'"),
        ((tw.ones([3, 2]), 1, 2), "too many positional arguments"),
    ],
)
def test_what_a_signature_does_not_allow_is_refused(signed, args, named):
    with pytest.raises(TypeError, match=named):
        signed(*args)


def test_a_signature_may_hold_nests():
    f = tw.function(
        lambda d: d["q"][0] - d["p"],
        input_signature=[{"q": [tw.TensorSpec([])], "p": tw.TensorSpec([])}],
    )
    assert f({"p": 1.0, "q": [3.0]}).numpy() == 2
    with pytest.raises(TypeError, match=r"d\['q'\].*list of 1.*got \[1\.0, 2\.0\]"):
        f({"q": [1.0, 2.0], "p": 1.0})
    with pytest.raises(TypeError, match=r"'d'.*\['q', 'p'\].*got \[1\.0\]"):
        f([1.0])


def test_parameters_beyond_the_signature_keep_their_defaults():
    f = tw.function(lambda a, b=2.0: a * b, input_signature=[tw.TensorSpec([])])
    assert f(3.0).numpy() == f(3.0, 2.0).numpy() == 6
    with pytest.raises(TypeError, match=r"'b'.*2\.0.*got 3\.0"):
        f(3.0, 3.0)


def test_a_signature_for_any_number_of_arguments():
    f = tw.function(lambda *xs: xs[0] - xs[1], input_signature=[tw.TensorSpec([])] * 2)
    assert f(5.0, 3.0).numpy() == 2
    with pytest.raises(TypeError, match=r"2.*'\*xs'.*got 1"):
        f(1.0)


@pytest.mark.parametrize(
    ("signature", "named"),
    [
        ([tw.TensorSpec([])] * 2, "1.*extra.*constraints"),
        ([], "missing type constraint for a"),
        ([3], r"input_signature .*TensorSpec.*got \[3\]"),
        (tw.TensorSpec([]), "input_signature .*got TensorSpec"),
    ],
)
def test_a_signature_that_does_not_fit_the_function_is_refused(signature, named):
    with pytest.raises(TypeError, match=named):
        tw.function(lambda a: a, input_signature=signature)


def test_a_signature_of_a_method_leaves_out_self():
    class Model:
        @tw.function(input_signature=[tw.TensorSpec([None])])
        def double(self, x):
            return x * 2.0

    model = Model()
    assert model.double([1.0]).numpy() == [2]
    assert model.double([1.0, 2.0]).numpy().tolist() == [2, 4]
    assert Model.double(model, [3.0]).numpy() == [6]
    assert model.double.experimental_get_tracing_count() == 1


def test_names_of_inputs_come_from_specs_or_parameters(signed):
    concrete = signed.get_concrete_function()
    assert [x.name for x in concrete.inputs] == ["image", "b"]
    assert concrete(image=ones(1, 2), b=tw.constant(1)).numpy() == 3
    assert "name='image'" in str(concrete) and "name='b'" not in str(concrete)
