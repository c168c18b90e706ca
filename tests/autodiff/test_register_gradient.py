"""`RegisterGradient`: gradients of ops by their names."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.primitive import get_primitive, primitive, register_gradient

from .tapes import gradient_of


@pytest.fixture
def bare_op():
    """An op without any gradient; its name is free again afterwards."""

    @primitive(name="thrice_for_a_test", type_name="ThriceForATest")
    def thrice(xp, x):
        return x * 3

    return thrice


def test_an_op_learns_its_gradient_by_name(bare_op):
    with pytest.raises(LookupError, match="ThriceForATest"):
        gradient_of(bare_op, 2.0)

    @tw.RegisterGradient("ThriceForATest")
    def _(op, grad):
        assert op.type == "ThriceForATest" and op.name == "thrice_for_a_test"
        assert op.inputs[0].numpy() == 2.0 and op.outputs[0].numpy() == 6.0
        return grad * 30.0

    assert gradient_of(bare_op, 2.0).numpy() == 30.0


def test_our_own_name_works_too(bare_op):
    tw.RegisterGradient("thrice_for_a_test")(lambda op, grad: [grad * 7.0])
    assert gradient_of(bare_op, 2.0).numpy() == 7.0


def test_a_registered_gradient_has_higher_orders(bare_op):
    tw.RegisterGradient("ThriceForATest")(lambda op, grad: grad * op.inputs[0] ** 2)
    x = tw.Variable(2.0)
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = bare_op(x)
        g = inner.gradient(y, x)
    assert (g.numpy(), outer.gradient(g, x).numpy()) == (4.0, 4.0)


def test_a_registered_gradient_serves_jacobians(bare_op):
    tw.RegisterGradient("ThriceForATest")(lambda op, grad: grad * op.inputs[0])
    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as tape:
        y = bare_op(x)
    np.testing.assert_allclose(tape.jacobian(y, x), [[1.0, 0.0], [0.0, 2.0]])


def test_an_op_defined_later_finds_its_gradient():
    tw.RegisterGradient("LateForATest")(lambda op, grad: grad * op.get_attr("factor"))

    @primitive(type_name="LateForATest")
    def late_for_a_test(xp, x, *, factor=2.0):
        return x * factor

    assert gradient_of(lambda x: late_for_a_test(x, factor=5.0), 1.0).numpy() == 5.0


def test_complex_cotangents_reach_a_registered_gradient(bare_op):
    tw.RegisterGradient("ThriceForATest")(lambda op, grad: grad * 3.0)
    found = gradient_of(lambda z: bare_op(z) * (2 + 1j), 1 + 2j)
    np.testing.assert_allclose(found, 3 * (2 - 1j))


def test_registering_twice_is_a_key_error(bare_op):
    tw.RegisterGradient("ThriceForATest")(lambda op, grad: grad)
    with pytest.raises(KeyError, match="two gradients.*thrice_for_a_test"):
        tw.RegisterGradient("thrice_for_a_test")(lambda op, grad: grad)


def test_registering_twice_before_the_op_exists_is_a_key_error():
    register_gradient("NeverDefinedForATest", lambda op, grad: grad)
    with pytest.raises(KeyError, match="NeverDefinedForATest"):
        register_gradient("NeverDefinedForATest", lambda op, grad: grad)


@pytest.mark.parametrize(
    "name", ["MatMul", "matmul", "Tanh", "AddV2", "Floor", "ArgMax"]
)
def test_ops_that_have_a_gradient_keep_it(name):
    with pytest.raises(KeyError, match=name):
        tw.RegisterGradient(name)(lambda op, grad: grad)


def test_the_name_must_be_a_string():
    with pytest.raises(TypeError, match="op_type .*string"):
        tw.RegisterGradient(tw.matmul)


def test_adjust_contrast_can_be_taught(monkeypatch):
    op = get_primitive("adjust_contrast")
    monkeypatch.setattr(op, "registered", None)
    try:
        tw.RegisterGradient("AdjustContrastv2")(lambda op, grad: [grad * 2.0, None])
        images = np.ones((2, 2, 1), np.float32)
        g = gradient_of(lambda x: tw.image.adjust_contrast(x, 3.0), images)
        np.testing.assert_allclose(g, np.full((2, 2, 1), 2.0))
    finally:
        op.recorders.clear()


def test_a_wrong_number_of_registered_gradients_is_refused(bare_op):
    tw.RegisterGradient("ThriceForATest")(lambda op, grad: [grad, grad])
    with pytest.raises(ValueError, match="1 inputs, got 2"):
        gradient_of(bare_op, 2.0)
