"""Formulas of unknown sizes: they compute as ints do, and note what is asked of them."""

import math
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapewright import TensorShape
from tapewright.core.shapes.guards import Guards
from tapewright.core.shapes.symbolic_dim import (
    DimSymbol,
    NeedsSize,
    UnknownSize,
    evaluate,
)
from tapewright.core.shapes.symbolic_shape import (
    SymbolicShape,
    agree,
    as_size,
    definitely_equal,
    has_symbolic_shape,
    static_shapes,
    substitute,
)

N, M = DimSymbol(0, 0), DimSymbol(1, 0)


def two_dims(n=1009, m=1103, **options):
    scope = Guards({N: n, M: m}, **options)
    return UnknownSize.of(N, scope), UnknownSize.of(M, scope), scope


def number(x, n, m):
    return substitute(x, {N: n, M: m})


OPERATIONS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
}


@st.composite
def programs(draw):
    """A function of two ints made of whole arithmetic."""
    steps = draw(
        st.lists(
            st.tuples(
                st.sampled_from(sorted(OPERATIONS)),
                st.integers(0, 5),
                st.one_of(st.integers(0, 5), st.integers(-6, 6).map(lambda k: (k,))),
            ),
            min_size=1,
            max_size=5,
        )
    )

    def run(n, m):
        values = [n, m]
        for name, left, right in steps:
            y = right[0] if type(right) is tuple else values[right % len(values)]
            values.append(OPERATIONS[name](values[left % len(values)], y))
        return values[-1]

    return run


@pytest.mark.parametrize("divide", [operator.floordiv, operator.mod, divmod])
def test_a_division_with_remainder_by_a_float_needs_the_size(divide):
    x, _, _ = two_dims()
    for operands in ((x, 2.5), (7.5, x)):
        with pytest.raises(NeedsSize, match="float"):
            divide(*operands)


@settings(max_examples=300, deadline=None)
@given(program=programs(), n=st.integers(1, 40), m=st.integers(1, 40))
def test_a_formula_has_the_value_that_ints_give(program, n, m):
    x, y, scope = two_dims()
    try:
        formula = program(x, y)
    except ZeroDivisionError:
        return
    if scope.broken_by({N: n, M: m}) is None:
        assert number(formula, n, m) == program(n, m)


def test_divisions_that_come_out_even_leave_no_remainder():
    n, m, scope = two_dims()
    assert n * 784 // 784 - n == 0
    assert (n * m * 6) % (m * 2) == 0 and (n * m * 6) // (m * 2) - 3 * n == 0
    assert ((n + 1) * 7) // (n + 1) == 7
    assert (2 * n + 3) // 2 - n == 1
    assert [condition for condition in scope.conditions if condition[0] == "<"] == []


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_rounding_of_quotients_is_that_of_python(n):
    x, _, _ = two_dims()
    assert number(math.ceil(x / 4), n, 1) == math.ceil(n / 4)
    assert number(math.floor(x / 4), n, 1) == math.floor(n / 4)
    assert number(-(-x // 3), n, 1) == -(-n // 3)


def test_real_numbers_follow_from_sizes():
    x, y, _ = two_dims()
    assert number(1.0 / x, 8, 1) == 0.125
    assert number((x - 1) / (x * 2.0) + 3, 4, 1) == 3 / 8 + 3
    assert number(x**0.5 - 2 / y, 9, 4) == 2.5
    assert number(-(1.0 / x), 4, 1) == -0.25
    assert math.prod([x, 3, y]) - 3 * x * y == 0


def test_numbers_of_numpy_count_as_numbers():
    x, _, _ = two_dims()
    assert number(np.int64(3) * x + np.int32(1), 5, 1) == 16
    assert number(np.float32(0.5) * x, 5, 1) == 2.5
    assert number(np.prod([x, 4]), 5, 1) == 20


def test_a_comparison_is_answered_for_the_example_and_noted():
    x, y, scope = two_dims()
    assert x > 1 and not x == 1 and x != y and not x < 5
    assert scope.broken_by({N: 64, M: 3}) is None
    assert scope.broken_by({N: 64, M: 64}) is not None
    assert scope.broken_by({N: 1, M: 3}) is not None
    assert scope.broken_by({N: 4, M: 3}) is not None


def test_what_is_true_of_all_sizes_is_not_noted():
    x, y, scope = two_dims()
    assert x >= 0 and x + 1 > 0 and x == x and x * y >= 0 and not x + 2 == 0
    assert x - x == 0 and max(x, 0) is x
    assert scope.conditions == {}


def test_an_unknown_dimension_equals_none_as_tensorflow_shows_it():
    x, _, _ = two_dims()
    assert x == None and not x != None  # noqa: E711
    assert repr(x) == "None"


@pytest.mark.parametrize(
    "use",
    [
        int,
        float,
        complex,
        range,
        hash,
        lambda x: np.zeros((x,)),
        lambda x: [0] * x,
        math.sqrt,
    ],
)
def test_what_needs_the_number_says_so(use):
    x, _, scope = two_dims()
    with pytest.raises(NeedsSize, match="unknown dimension"):
        use(x)
    assert scope.reason is not None


def test_a_size_of_another_trace_is_refused():
    x, _, _ = two_dims()
    y, _, _ = two_dims()
    with pytest.raises(NeedsSize, match="another trace"):
        x + y


def test_sizes_that_must_agree_are_the_same_from_there_on():
    x, y, scope = two_dims()
    assert agree(x, y) and x == y and agree(2 * x, 2 * y)
    assert scope.broken_by({N: 4, M: 5}) is not None
    assert agree(x, 10) and y == 10
    assert scope.broken_by({N: 10, M: 10}) is None


def test_sizes_that_are_known_to_differ_do_not_agree():
    x, y, _ = two_dims(sizes={N: 4, M: 5})
    assert not agree(x, y) and not agree(x, 10)


def test_what_was_answered_before_is_not_taken_back():
    x, y, _ = two_dims()
    assert x != y
    assert not agree(x, y)


def test_shapes_of_another_rank_differ_without_a_question():
    x, y, scope = two_dims()
    assert SymbolicShape((x, 3)) != (10,) and SymbolicShape((x, 3)) != (y, 4)
    assert SymbolicShape((x, 3)) == (x, 3) and scope.conditions == {}
    assert (
        not definitely_equal(SymbolicShape((x, 3)), (y, 3)) and scope.conditions == {}
    )
    assert SymbolicShape((x, 3)) != (y, 3) and len(scope.conditions) == 1


def test_a_tensor_shape_shows_unknown_sizes_as_none():
    x, _, _ = two_dims()
    shape = TensorShape([x, 784])
    assert str(shape) == "(None, 784)" and repr(shape) == "TensorShape([None, 784])"
    assert shape.as_list() == [None, 784] and shape.num_elements() is None
    assert not shape.is_fully_defined() and shape == [None, 784] and shape.rank == 2


def test_attributes_are_searched_and_filled_in_at_any_depth():
    x, _, _ = two_dims()
    nest = {"shape": (x, 2), "index": [[None, x + 1, None], "..."], "name": "a"}
    assert has_symbolic_shape(nest) and not has_symbolic_shape({"shape": (1, 2)})
    wanted = {"shape": (5, 2), "index": [[None, 6, None], "..."], "name": "a"}
    assert substitute(nest, {N: 5}) == wanted


def test_when_a_trace_is_over_nothing_is_assumed_any_more():
    x, _, scope = two_dims()
    scope.closed = True
    assert not x == 5 and scope.conditions == {}
    assert TensorShape([x, 3]).is_compatible_with([5, 3])
    with pytest.raises(NeedsSize):
        assert x < 5


def test_whole_takes_ints_and_sizes():
    x, _, _ = two_dims()
    assert as_size(3) == 3 and as_size(np.int64(4)) == 4 and as_size(x) is x
    assert evaluate(x.expression, {N: 12}) == 12
    with pytest.raises(TypeError):
        as_size(1.5)


def test_static_shapes_have_none_for_sizes_that_are_unknown():
    x, _, _ = two_dims()
    nest = {"a": (x, 3), "b": [TensorShape([2 * x, 4]), 1.5, "text"]}
    static = static_shapes(nest)
    assert type(static["a"]) is tuple and static["a"][0] is None
    assert static["b"][1:] == [1.5, "text"]
    assert type(static["b"][0]) is TensorShape and static["b"][0][0] is None
    known = {"a": (2, 3), "b": [TensorShape([None, 4])]}
    assert static_shapes(known) is known


def test_an_unknown_size_is_none_in_a_copy_of_another_process():
    x, _, _ = two_dims()
    assert pickle.loads(pickle.dumps([x, x * 2, 1 / x])) == [None, None, None]


def test_a_shape_tells_its_sizes_from_numbers_to_compute_with():
    x, _, _ = two_dims()
    dimension = TensorShape([x * 2])[0]
    assert dimension.is_dimension and dimension == x * 2
    assert not (dimension + 1).is_dimension and not dimension.as_number().is_dimension
