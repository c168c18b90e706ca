"""Normalization: the op table, and derivatives through mean and variance, to the third."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import ShapeError
from tapewright.testing import case, check_gradients, check_op, floats


def normalized(x, scale, offset, axes, epsilon=1e-3):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    outputs = (x - mean) / np.sqrt(variance + epsilon) * scale.reshape(mean.shape)
    outputs = outputs + offset.reshape(mean.shape)
    return outputs, mean.reshape(scale.shape), variance.reshape(scale.shape)


def fused(shape, kept, axes, **options):
    return case(
        "fused_batch_norm", floats(*shape), floats(*kept), floats(*kept), axes=axes,
        expect=lambda x, s, o: normalized(x, s, o, axes, options.get("epsilon", 1e-3)),
        **options,
    )  # fmt: skip


CASES = [
    fused((4, 3), (3,), (0,)),
    fused((2, 2, 3), (3,), (0, 1)),
    fused((3, 2), (3,), (1,), epsilon=0.1),
    fused((2, 3, 2), (3,), (0, 2), epsilon=0.01),
    # composed of others
    case(tw.nn.moments, floats(3, 2), axes=[0], expect=lambda x: (x.mean(0), x.var(0))),
    case(tw.nn.moments, floats(2, 3, 2), axes=[0, 2], keepdims=True,
         expect=lambda x: (x.mean((0, 2), keepdims=True), x.var((0, 2), keepdims=True))),
    case(tw.nn.batch_normalization, floats(3, 2), floats(2), floats(2, low=0.4), floats(2),
         floats(2), variance_epsilon=0.01,
         expect=lambda x, m, v, o, s: (x - m) / np.sqrt(v + 0.01) * s + o),
    case(lambda x, m, v: tw.nn.batch_normalization(x, m, v, None, None, 0.1), floats(3, 2),
         floats(2), floats(2, low=0.4), label="batch_normalization, plain",
         expect=lambda x, m, v: (x - m) / np.sqrt(v + 0.1)),
    case(tw.nn.l2_normalize, floats(2, 3), axis=1,
         expect=lambda x: x / np.linalg.norm(x, axis=1, keepdims=True)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def through_moments(h, scale, offset):
    mean, variance = tw.nn.moments(h, [0])
    return tw.nn.batch_normalization(h, mean, variance, offset, scale, 1e-3)


def through_the_fused_op(h, scale, offset):
    return tw.nn.fused_batch_norm(h, scale, offset, [0])[0]


@pytest.mark.parametrize("normalize", [through_moments, through_the_fused_op])
def test_the_gradient_penalty_of_a_normalized_network_is_exact(normalize):
    rng = np.random.default_rng(0)
    scale, offset = tw.constant(rng.normal(size=4)), tw.constant(rng.normal(size=4))

    def penalty(x, kernel):
        with tw.GradientTape() as tape:
            tape.watch(x)
            out = normalize(tw.matmul(tw.tanh(x), kernel), scale, offset)
            loss = tw.reduce_sum(out * out * out)
        return tw.reduce_sum(tw.square(tape.gradient(loss, x)))

    args = [rng.normal(size=(5, 3)), rng.normal(size=(3, 4))]
    check_gradients(penalty, args, order=2, rtol=1e-6, delta=1e-6)


@pytest.mark.parametrize("normalize", [through_moments, through_the_fused_op])
def test_a_constant_added_to_the_inputs_changes_nothing(normalize):
    x = tw.constant(np.random.default_rng(0).normal(size=(4, 2)))
    scale, offset = tw.ones(2, tw.float64), tw.zeros(2, tw.float64)
    shift = tw.constant(0.5, tw.float64)
    with tw.GradientTape() as tape:
        tape.watch(shift)
        y = tw.reduce_sum(normalize(x + shift, scale, offset) ** 3.0)
    np.testing.assert_allclose(tape.gradient(y, shift).numpy(), 0, atol=1e-12)


def test_l2_normalize_of_zero_is_zero():
    assert tw.nn.l2_normalize([0.0, 0.0]).numpy().tolist() == [0.0, 0.0]


def test_a_scale_of_the_wrong_shape_is_explained():
    with pytest.raises(ShapeError, match=r"scale must have shape \(3,\)"):
        tw.nn.fused_batch_norm(tw.zeros((2, 3)), tw.ones(2), tw.zeros(3), [0])
