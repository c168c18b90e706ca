"""Python's operators on tensors, variables, numbers and arrays, in any order."""

import operator

import numpy as np
import pytest

import tapewright as tw

LEFT, RIGHT = [5.0, -3.0], [2.0, 2.0]
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
    operator.mod, operator.lt, operator.le, operator.gt, operator.ge, operator.eq,
    operator.ne,
]  # fmt: skip
MAKERS = {
    "tensor": tw.constant,
    "variable": tw.Variable,
    "array": lambda v: np.array(v, np.float32),
    "list": list,
}


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("left, right", [
    ("tensor", "tensor"), ("tensor", "variable"), ("variable", "tensor"),
    ("tensor", "array"), ("array", "tensor"), ("array", "variable"), ("variable", "array"),
    ("tensor", "list"), ("list", "tensor"), ("variable", "variable"),
])  # fmt: skip
def test_an_operator_is_numpys(op, left, right):
    wanted = op(np.array(LEFT, np.float32), np.array(RIGHT, np.float32))
    result = op(MAKERS[left](LEFT), MAKERS[right](RIGHT))
    assert isinstance(result, tw.Tensor)
    assert result.numpy().dtype == wanted.dtype
    assert result.numpy().tolist() == wanted.tolist()


@pytest.mark.parametrize("x", [tw.constant, tw.Variable], ids=["tensor", "variable"])
def test_a_python_number_takes_the_dtype_of_the_other_side(x):
    v = x(np.array([1.0, 2.0]))
    for result in (v + 1, 1 + v, v * 0.5, 0.5 * v, v / 2, 2 - v, v**2, 2**v):
        assert result.dtype == tw.float64
    assert (x([1, 2]) + 1).dtype == tw.int32


def test_a_number_in_front_keeps_its_sign_and_its_type():
    x = tw.constant([1.0, 2.0])
    assert np.signbit((0.0 * x).numpy()).tolist() == [False, False]
    assert np.signbit((-0.0 * x).numpy()).tolist() == [True, True]
    for _ in range(2):  # made, then known
        assert (3 - x).dtype == tw.float32 and (3 - x).numpy().tolist() == [2.0, 1.0]
        assert (1 / tw.constant([2, 4])).dtype == tw.float64
        assert (True + x).numpy().tolist() == [2.0, 3.0]


def test_unary_operators():
    x = tw.constant([1.0, -2.0])
    assert (-x).numpy().tolist() == [-1.0, 2.0]
    assert (+x).numpy().tolist() == [1.0, -2.0]
    assert abs(x).numpy().tolist() == [1.0, 2.0]
    assert (~tw.constant([True, False])).numpy().tolist() == [False, True]
    assert (~tw.constant([0, 5])).numpy().tolist() == [-1, -6]
    assert round(tw.constant([1.5, 2.5])).numpy().tolist() == [2.0, 2.0]


def test_logic_of_booleans_and_bits_of_integers():
    a, b = tw.constant([True, True]), tw.constant([True, False])
    assert [(a & b).numpy().tolist(), (a | b).numpy().tolist(), (a ^ b).numpy().tolist()] == [
        [True, False], [True, True], [False, True]
    ]  # fmt: skip
    assert (tw.constant(6) & 3).numpy() == 2


def test_a_matrix_product_with_an_array_on_either_side():
    a, b = np.array([[1.0, 2.0]], np.float32), tw.Variable([[3.0], [4.0]])
    assert (a @ b).numpy().tolist() == [[11.0]]
    assert (b @ a).numpy().tolist() == [[3.0, 6.0], [4.0, 8.0]]
    assert ([[1.0, 2.0]] @ b).numpy().tolist() == [[11.0]]


def test_gradients_pass_through_reflected_operators():
    x = tw.constant(2.0)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = 1.0 / x + 3.0 * x - (5.0 - x) + 2.0**x
    np.testing.assert_allclose(
        tape.gradient(y, x).numpy(), -0.25 + 3 + 1 + 4 * np.log(2), rtol=1e-6
    )


def test_comparing_with_none_is_plain_false():
    assert (tw.constant(1.0) == None) is False  # noqa: E711
    assert (tw.constant(1.0) != None) is True  # noqa: E711


def test_what_no_op_takes_is_a_type_error():
    with pytest.raises(TypeError):
        tw.constant(1.0) + "text"
    with pytest.raises(TypeError):
        tw.constant([1.0]) + tw.constant([1])


@pytest.mark.parametrize(
    "x", [tw.constant(1.0), tw.Variable(1.0)], ids=["tensor", "variable"]
)
def test_hashing_and_rounding_to_digits_are_refused(x):
    with pytest.raises(TypeError, match=r"unhashable. Instead, use its ref\(\)"):
        hash(x)
    with pytest.raises(TypeError, match="round: .*got 1"):
        round(x, 1)


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor])
def test_logic_is_reflected(op):
    for left, right in (([True, False], [True, True]), ([6, 1], [3, 3])):
        wanted = op(np.array(left), np.array(right)).tolist()
        for a, b in ((tw.constant(left), right), (left, tw.Variable(right))):
            assert op(a, b).numpy().tolist() == wanted


def test_an_augmented_assignment_binds_a_new_tensor():
    x = before = tw.constant([1.0])
    x += 1.0
    x *= 3.0
    assert x.numpy().tolist() == [6.0] and before.numpy().tolist() == [1.0]


# ------------------------------------------------------------- assignments to some rows

WRITTEN = {  # onto [[1, 2], [3, 4], [5, 6]]; row 0 is named twice
    "add": [[21.0, 22.0], [3.0, 4.0], [6.0, 7.0]],
    "sub": [[-19.0, -18.0], [3.0, 4.0], [4.0, 5.0]],
    "update": [[10.0, 10.0], [3.0, 4.0], [1.0, 1.0]],
    "max": [[10.0, 10.0], [3.0, 4.0], [5.0, 6.0]],
    "min": [[1.0, 2.0], [3.0, 4.0], [1.0, 1.0]],
}


@pytest.mark.parametrize("how", WRITTEN)
def test_rows_of_a_variable_are_assigned(how):
    rows, values = [0, 2, 0], tw.constant([[10.0] * 2, [1.0] * 2, [10.0] * 2])
    v = tw.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    delta = tw.IndexedSlices(values, tw.constant(rows))
    assert getattr(v, f"scatter_{how}")(delta) is v
    assert v.numpy().tolist() == WRITTEN[how]
    w = tw.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert getattr(w, f"scatter_nd_{how}")([[r] for r in rows], values) is w
    assert w.numpy().tolist() == WRITTEN[how]


@pytest.mark.parametrize("traced", [False, True])
def test_rows_of_a_variable_are_scaled(traced):
    start = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    values = tw.constant([[2.0, 5.0], [4.0, 0.5]])
    wanted = {
        "mul": ([[2, 10], [3, 4], [20, 3]], [[8, 5], [3, 4], [5, 6]]),
        "div": ([[0.5, 0.4], [3, 4], [1.25, 12]], [[0.125, 0.8], [3, 4], [5, 6]]),
    }
    v = tw.Variable(start)
    for how, results in wanted.items():
        for rows, result in zip(([0, 2], [0, 0]), results):
            v.assign(start)
            delta = tw.IndexedSlices(values, tw.constant(rows))

            def write(how=how, delta=delta):
                getattr(v, f"scatter_{how}")(delta)

            (tw.function(write) if traced else write)()
            np.testing.assert_allclose(v, result, rtol=1e-6)
    whole = tw.Variable([7, -7])
    whole.scatter_div(tw.IndexedSlices(tw.constant([2, 2]), tw.constant([0, 1])))
    assert whole.numpy().tolist() == [3, -3]
    with pytest.raises(IndexError, match="0 to 2"):
        v.scatter_mul(tw.IndexedSlices(values, tw.constant([0, -1])))


def test_rows_of_batches_of_a_variable_are_replaced():
    v = tw.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    rows = tw.IndexedSlices(
        tw.constant([[9.0], [8.0], [7.0]]), tw.constant([[0], [1], [0]])
    )
    assert v.batch_scatter_update(rows) is v
    assert v.numpy().tolist() == [[9, 2], [3, 8], [7, 6]]
    w = tw.Variable(tw.zeros([2, 2, 2]))
    rows = tw.constant([[[1.0, 2.0]], [[3.0, 4.0]]])
    w.batch_scatter_update(tw.IndexedSlices(rows, tw.constant([[0], [1]])))
    assert w.numpy().tolist() == [[[1, 2], [0, 0]], [[0, 0], [3, 4]]]
    with pytest.raises(TypeError, match="IndexedSlices"):
        v.batch_scatter_update(rows)


def test_a_dense_value_for_some_rows_is_refused():
    with pytest.raises(TypeError, match="sparse_delta .*IndexedSlices.*got Tensor"):
        tw.Variable([1.0]).scatter_add(tw.constant([1.0]))


def test_entries_and_rows_of_a_variable_are_read_and_carry_gradients():
    v = tw.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(v.sparse_read([1])) + tw.reduce_sum(v.gather_nd([[0, 1]]))
    assert float(y) == 9.0
    assert tw.convert_to_tensor(tape.gradient(y, v)).numpy().tolist() == [
        [0, 1],
        [1, 1],
    ]
