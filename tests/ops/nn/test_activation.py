"""Activations: the op table, corners, and the far ends."""

import math

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, floats


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


def share(x):
    return np.vectorize(lambda x: math.erfc(-x / 2**0.5) / 2, otypes=[float])(x)


def density(x):
    return np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def cubic(x):
    return np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)


def bend(x):
    s = sigmoid(2 * cubic(x))
    return 2 * s * (1 - s) * np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x**2)


def slope_of_shares(g, p, axis=-1):
    """With shares that may add up to another number than 1."""
    along = {"axis": axis, "keepdims": True}
    total = (g * p).sum(**along)
    return p * (g - total * (2 - p.sum(**along)))


ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805

CASES = [
    *[case(op, floats(*shape), expect=f)
      for shape in [(2, 4), (3,), (), (0, 2)]
      for op, f in [
          ("relu", lambda x: np.maximum(x, 0)),
          ("elu", lambda x: np.where(x > 0, x, np.exp(x) - 1)),
          ("sigmoid", sigmoid),
          ("softplus", lambda x: np.log(1 + np.exp(x))),
          ("softsign", lambda x: x / (1 + np.abs(x))),
          ("leaky_relu", lambda x: np.where(x > 0, x, 0.2 * x))]],
    *[case("softmax_slope", floats(2, 3, 2), floats(2, 3, 2), axis=axis,
           expect=lambda g, p, a=axis: slope_of_shares(g, p, a))
      for axis in (-1, 1)],
    case("softmax_slope", floats(3), floats(3), expect=slope_of_shares),
    *[case("sigmoid_slope", floats(*m), floats(*n),
           expect=lambda g, x: g * sigmoid(x) * sigmoid(-x))
      for m, n in [((2, 3), (2, 3)), ((2, 1), (3,)), ((), (0,))]],
    case("leaky_relu", floats(4), alpha=0.3, expect=lambda x: np.where(x > 0, x, 0.3 * x)),
    *[case(op, floats(2, 3, 2), axis=axis, expect=lambda x, f=f, a=axis: f(softmax(x, a)))
      for op, f in [("softmax", lambda p: p), ("log_softmax", np.log)]
      for axis in (-1, 1, 0)],
    *[case(op, floats(2, 3), expect=lambda x, f=f: f(softmax(x)))
      for op, f in [("softmax", lambda p: p), ("log_softmax", np.log)]],
    *[case(op, floats(3), expect=lambda x, f=f: f(softmax(x)))
      for op, f in [("softmax", lambda p: p), ("log_softmax", np.log)]],
    case("softmax", floats(2, 70), order=0, expect=softmax),
    case("log_softmax", floats(2, 70), order=0, expect=lambda x: np.log(softmax(x))),
    *[case(op, floats(*shape), expect=f)
      for shape in [(2, 4), (), (0, 2)]
      for op, f in [
          ("gelu", lambda x: x * share(x)),
          ("gelu_slope", lambda x: share(x) + x * density(x)),
          ("gelu_by_tanh", lambda x: x * sigmoid(2 * cubic(x))),
          ("gelu_by_tanh_slope", lambda x: sigmoid(2 * cubic(x)) + x * bend(x))]],
    case(tw.nn.gelu, floats(4, low=-6.0, high=6.5), expect=lambda x: x * share(x)),
    # composed of these
    case(tw.nn.crelu, floats(2, 3),
         expect=lambda x: np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], -1)),
    case(tw.nn.crelu, floats(2, 3), axis=0,
         expect=lambda x: np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], 0)),
    case(tw.nn.relu6, floats(6, low=-3.0, high=9.1), expect=lambda x: np.clip(x, 0, 6)),
    case(tw.nn.selu, floats(4),
         expect=lambda x: SCALE * np.where(x > 0, x, ALPHA * (np.exp(x) - 1))),
    *[case(op, floats(*shape), expect=f)
      for shape in [(2, 4), (), (0, 2)]
      for op, f in [
          ("silu", lambda x: x * sigmoid(x)),
          ("silu_slope", lambda x: sigmoid(x) + x * sigmoid(x) * sigmoid(-x))]],
    case(tw.nn.silu, floats(4), expect=lambda x: x * sigmoid(x)),
    case(tw.nn.silu, floats(4), beta=2.0, expect=lambda x: x * sigmoid(2 * x)),
    case(tw.math.log_sigmoid, floats(4), expect=lambda x: np.log(sigmoid(x))),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def slope(f, x):
    x = tw.constant(x)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x).numpy().tolist()


@pytest.mark.parametrize("f", [tw.nn.relu, tw.nn.relu6])
def test_relu_has_no_slope_at_zero(f):
    assert slope(f, [0.0]) == [0.0]
    assert slope(lambda x: x * f(x), [0.0]) == [0.0]


@pytest.mark.parametrize("f", [tw.nn.relu, tw.nn.relu6, tw.nn.leaky_relu, tw.nn.crelu])
def test_relu_is_differentiated_twice_at_zero_with_one_slope(f):
    x = tw.constant([0.0])
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = f(x) * x
        first = tape.gradient(y, x)
    at_zero = f(x).numpy()  # the rule of the product: f + x * f'
    assert first.numpy() == at_zero.sum() == 0
    assert outer.gradient(first, x).numpy() == 2 * np.sum(slope(f, [0.0]))


def test_relu_of_an_overflowing_branch_has_no_slope_instead_of_nan():
    assert slope(lambda x: tw.sqrt(tw.nn.relu(x)), [-1.0, 4.0]) == [0.0, 0.25]


@pytest.mark.parametrize("f, low, high", [
    (tw.sigmoid, 0.0, 1.0), (tw.nn.softplus, 0.0, 1e4), (tw.nn.elu, -1.0, 1e4),
    (tw.nn.softsign, -1e4 / 10001, 1e4 / 10001), (tw.math.log_sigmoid, -1e4, 0.0),
    (tw.nn.silu, 0.0, 1e4), (tw.nn.gelu, 0.0, 1e4),
    (lambda x: tw.nn.gelu(x, approximate=True), 0.0, 1e4),
])  # fmt: skip
def test_activations_are_right_far_out(f, low, high):
    assert f([-1e4, 1e4]).numpy().tolist() == [np.float32(low), np.float32(high)]
    assert np.isfinite(slope(f, [-1e4, 1e4])).all()


def test_softmax_does_not_overflow():
    assert tw.nn.softmax([1e4, 0.0]).numpy().tolist() == [1.0, 0.0]
    assert tw.nn.log_softmax([1e4, 0.0]).numpy().tolist() == [0.0, -1e4]


def test_softmax_knows_no_minus_infinity_beside_a_number():
    assert tw.nn.softmax([0.0, -np.inf]).numpy().tolist() == [1.0, 0.0]
    assert slope(lambda x: tw.nn.softmax(x)[0], [0.0, -np.inf]) == [0.0, 0.0]


@pytest.mark.parametrize(
    "op, at, slope",
    [(tw.nn.relu6, 0.0, 0.0), (tw.nn.relu6, 6.0, 0.0), (tw.nn.selu, 0.0, SCALE)],
)
def test_slopes_at_a_corner_are_tensorflows(op, at, slope):
    x = tw.Variable(at)
    with tw.GradientTape() as tape:
        y = op(x)
    assert tape.gradient(y, x).numpy() == np.float32(slope)


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("dtype, far", [("float32", 1e30), ("float64", 1e200)])
def test_all_derivatives_of_gelu_are_those_of_its_branches_far_out(
    approximate, dtype, far
):
    x = tw.constant([-far, far], dtype)
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.nn.gelu(x, approximate)
        first = tape.gradient(y, x)
    assert first.numpy().tolist() == [0.0, 1.0]
    assert outer.gradient(first, x).numpy().tolist() == [0.0, 0.0]


def test_gelu_is_right_in_single_precision_and_in_parts():
    x = np.random.default_rng(0).normal(size=(3, 40000)) * 2
    for values, rtol in ((x, 1e-13), (x.astype(np.float32), 5e-7)):
        np.testing.assert_allclose(
            tw.nn.gelu(values).numpy(), x * share(x), atol=rtol, rtol=rtol
        )


def test_crelu_has_no_slope_at_zero():
    assert slope(tw.nn.crelu, [0.0, 1.0, -1.0]) == [0.0, 1.0, -1.0]


def test_leaky_relu_of_integers_is_float32():  # recorded from TensorFlow 2.21
    result = tw.nn.leaky_relu([1, -4])
    assert result.dtype == tw.float32
    np.testing.assert_allclose(result.numpy(), [1.0, -0.8])


def test_activations_refuse_integers_as_tensorflow_does():
    for op in (tw.nn.gelu, tw.nn.silu, tw.nn.elu, tw.nn.softplus, tw.nn.softsign):
        with pytest.raises(TypeError, match="must be floating"):
            op([1])


@pytest.mark.parametrize("op", [tw.nn.softmax, tw.nn.log_softmax])
def test_a_softmax_over_an_empty_axis_is_empty(op):
    assert op(tw.zeros((0, 3)), axis=0).shape == (0, 3)
    assert op(tw.zeros((2, 0))).shape == (2, 0)


def test_relu6_takes_integers():
    np.testing.assert_array_equal(tw.nn.relu6([-1, 3, 9]), [0, 3, 6])


# gelu and its first three derivatives, by mpmath with 40 digits
GELU = {
    False: {
        -12.0: [-2.1317785344932148e-32, -2.5578956616748956e-31, -3.0478649046415457e-30,
                -3.6059246759139414e-29],
        -8.0: [-4.9767684594174273e-15, -3.979607261086796e-14, -3.1324080717928732e-13,
               -2.4250901200977083e-12],
        -5.0: [-1.4332578593959696e-6, -7.1469460017922946e-6, -3.4194548838888847e-5,
               -0.00015610554904710126],
        -2.5: [-0.015524163314440338, -0.037611085908145208, -0.074495277097666284,
               -0.098596690276323023],
        0.3: [0.18537342665668578, 0.73232776682710985, 0.72845072752960101,
              -0.44736790753519474],
        4.0: [3.9998733150326675, 1.0005036496612264, -0.0018736231607083949,
              0.006423850836714498],
    },
    True: {
        -8.0: [-3.1077829375011112e-21, -4.7147845041068416e-20, -7.0458213960972919e-19,
               -1.0366020188743248e-17],
        -5.0: [-2.291796196629506e-7, -1.5463619875325946e-6, -9.9341322249962021e-6,
               -6.0379675784258781e-5],
        -2.5: [-0.015084266089998582, -0.037951576212666183, -0.076245392073612953,
               -0.098102170727981875],
        0.3: [0.18537092354275924, 0.73229545163880181, 0.72814844843391194,
              -0.44904373507101077],
        4.0: [3.9999297540518076, 1.0003351231971227, -0.0014740596637653364,
              0.005870094264273697],
    },
}  # fmt: skip


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 2e-5), ("float64", 3e-13)])
def test_gelu_keeps_its_digits_in_the_tail(approximate, dtype, rtol):
    table = GELU[approximate]
    x = tw.constant(list(table), dtype)
    with tw.GradientTape() as first:
        first.watch(x)
        with tw.GradientTape() as second:
            second.watch(x)
            with tw.GradientTape() as third:
                third.watch(x)
                orders = [tw.nn.gelu(x, approximate)]
            orders.append(third.gradient(orders[0], x))
        orders.append(second.gradient(orders[1], x))
    orders.append(first.gradient(orders[2], x))
    for order, wanted in zip(orders, np.array(list(table.values())).T):
        np.testing.assert_allclose(order.numpy(), wanted, rtol=rtol)


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gelu_of_infinities(approximate, dtype):
    x = tw.constant([np.inf, -1e4, np.nan], dtype)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.nn.gelu(x, approximate)
    np.testing.assert_array_equal(y.numpy(), [np.inf, 0, np.nan])
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [1, 0, np.nan])


def test_the_slope_of_softsign_keeps_its_digits_far_out():
    x = tw.constant([1e4, -1e8])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.nn.softsign(x)
    np.testing.assert_allclose(tape.gradient(y, x), [0.99980003e-8, 1e-16], rtol=1e-6)


# x, and the first three derivatives of silu there, by mpmath
SILU = {
    "float32": [(-90, -7.292671235351559e-38, -7.210731109111653e-38,
                 -7.128790982871749e-38),
                (-89, -1.9600799343802546e-37, -1.937806298762297e-37,
                 -1.9155326631443398e-37)],
    "float64": [(-712, -4.30723419046123e-307, -4.301176195819231e-307,
                 -4.2951182011772326e-307),
                (-710, -3.173686934003667e-306, -3.169210647777992e-306,
                 -3.164734361552317e-306)],
}  # fmt: skip


def derivative(f, x, order):
    if not order:
        return f(x)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = derivative(f, x, order - 1)
    return tape.gradient(y, x)


@pytest.mark.parametrize("dtype", SILU)
def test_derivatives_of_silu_are_there_where_its_sigmoid_is_no_normal_number(dtype):
    x, *wanted = np.array(SILU[dtype]).T
    for order, values in enumerate(wanted, 1):
        found = derivative(tw.nn.silu, tw.constant(x, dtype), order)
        np.testing.assert_allclose(found.numpy(), values, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_slope_of_silu_reaches_its_limits(dtype):
    x = tw.constant([-np.inf, -1e4, 60.0, 1e4, np.inf, np.nan], dtype)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.nn.silu(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [0, 0, 1, 1, 1, np.nan])
