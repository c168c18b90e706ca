"""Many cotangents at once: axes stay diagonal until an op mixes them."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.autodiff import batching

from .jacobian_programs import B, jacobians, weights


def test_independent_rows_share_cotangents(widths):
    x = tw.Variable(weights(50, 3))
    with tw.GradientTape() as tape:
        y = tw.tanh(tw.matmul(x, B)) * x
    j = tape.jacobian(y, x)
    assert j.shape == (50, 3, 50, 3)
    assert widths == [3]


def test_an_elementwise_program_needs_one_cotangent(widths):
    x = tw.Variable(weights(40))
    with tw.GradientTape() as tape:
        y = tw.exp(x) * tw.sin(x)
    tape.jacobian(y, x)
    assert widths == [1]


def test_axes_are_spread_one_by_one(widths):
    x = tw.Variable(weights(5, 3))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.tanh(tw.tanh(tw.matmul(x, B)) - tw.reduce_mean(x, axis=0))
    fast = tape.jacobian(y, x)
    assert widths == [15]
    slow = tape.jacobian(y, x, experimental_use_pfor=False)
    np.testing.assert_allclose(fast, slow, atol=1e-12)


def test_coupled_rows_are_found_out(widths):
    x = tw.Variable(weights(4, 3))
    with tw.GradientTape(persistent=True) as tape:
        y = x - tw.reduce_mean(x, axis=0)
    j = tape.jacobian(y, x)
    expected = np.einsum("ik,jl->ijkl", np.eye(4) - 0.25, np.eye(3))
    np.testing.assert_allclose(j, expected, atol=1e-12)
    assert widths == [4]  # the columns are on their own


def test_rows_coupled_by_a_weight_that_is_no_source_do_not_matter(widths):
    x, w = tw.Variable(weights(9, 3)), tw.Variable(B)
    with tw.GradientTape() as tape:
        y = tw.matmul(x, w)
    tape.jacobian(y, x)
    assert widths == [3]


def test_one_source_may_be_coupled_and_another_not():
    x, w = tw.Variable(weights(4, 3)), tw.Variable(B)
    with tw.GradientTape(persistent=True) as tape:
        y = tw.tanh(tw.matmul(x, w))
    fast = tape.jacobian(y, [x, w])
    slow = tape.jacobian(y, [x, w], experimental_use_pfor=False)
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_one_axis_may_be_the_coupled_one(axis):
    x = weights(2, 3, 2)
    fast, slow = jacobians(lambda x: tw.nn.softmax(x, axis=axis) * x, x)
    np.testing.assert_allclose(fast, slow, atol=1e-12)


def test_rows_of_size_one_and_axes_of_equal_size_are_not_mixed_up():
    for shape in [(1, 3), (3, 1), (3, 3), (1, 1, 3), (3, 1, 3)]:
        fast, slow = (
            jacobians(
                lambda x: tw.transpose(x) * tw.reduce_sum(x, axis=-1), weights(*shape)
            )
            if len(shape) == 2 and shape[0] == shape[1]
            else jacobians(lambda x: tw.squeeze(x) ** 2, weights(*shape))
        )
        np.testing.assert_allclose(fast, slow, atol=1e-12)


def test_an_op_without_a_batch_rule_is_mapped_by_a_loop(monkeypatch):
    op = tw.tanh.primitive
    monkeypatch.setattr(op, "batch_rule", None)
    mul = tw.multiply.primitive
    monkeypatch.setattr(mul, "batch_rule", None)
    monkeypatch.setattr(mul, "diagonal_rule", None)
    fast, slow = jacobians(lambda x: tw.tanh(x) * x, weights(2, 2))
    np.testing.assert_allclose(fast, slow, atol=1e-12)


def test_a_mapped_value_shows_itself_and_refuses_to_be_one_array():
    mapped = batching.BatchInterpreter().map(tw.ones([5, 2, 3]))
    assert repr(mapped) == "<BatchedTensor: 5 times shape=(2, 3)>"
    assert mapped.shape == (2, 3) and len(mapped) == 2 and mapped.dtype == "float32"
    for look in (np.asarray, float, bool, lambda m: m.numpy()):
        with pytest.raises(TypeError, match="many at once"):
            look(mapped)
