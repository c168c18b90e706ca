"""Scaled dot-product attention: the formula, masks, derivatives, errors."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, floats

attention = tw.nn.dot_product_attention


def formula(q, k, v, bias=0.0, mask=True, scale=None, cap=None):
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    groups = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, groups, axis=2), np.repeat(v, groups, axis=2)
    logits = np.einsum("btnh,bsnh->bnts", q, k) * scale
    logits = logits if cap is None else np.tanh(logits / cap) * cap
    logits = np.where(mask, logits + bias, -1e300)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bnts,bsnh->btnh", weights, v)


def numbers(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape)


MASK = np.array([[True, False, True], [True, True, False]])
PAST = np.tril(np.ones((2, 3), bool))
BIAS = numbers(2, 1, 3)
SHAPES = floats(2, 2, 2, 3), floats(2, 3, 2, 3), floats(2, 3, 2, 2)
SMALL = floats(1, 2, 1, 2), floats(1, 3, 1, 2), floats(1, 3, 1, 1)

CASES = [
    case(attention, *SHAPES, order=2, label="plain", expect=formula),
    case(attention, *SMALL, label="third order", expect=formula),
    case(attention, floats(1, 2, 4, 2), floats(1, 2, 2, 2), floats(1, 2, 2, 1), order=1,
         label="grouped heads", expect=formula),
    case(attention, *SMALL, mask=MASK, order=2, label="mask",
         expect=lambda q, k, v: formula(q, k, v, mask=MASK)),
    case(attention, *SMALL, is_causal=True, order=2, label="causal",
         expect=lambda q, k, v: formula(q, k, v, mask=PAST)),
    case(attention, *SMALL, mask=MASK, is_causal=True, order=1, label="mask, causal",
         expect=lambda q, k, v: formula(q, k, v, mask=MASK & PAST)),
    case(lambda q, k, v, b: attention(q, k, v, bias=b), *SHAPES, floats(2, 1, 3),
         order=2, label="bias", expect=formula),
    case(attention, *SMALL, scale=0.3, order=1, label="scale",
         expect=lambda q, k, v: formula(q, k, v, scale=0.3)),
    case(attention, *SMALL, attn_logits_soft_cap=0.5, order=2, label="soft cap",
         expect=lambda q, k, v: formula(q, k, v, cap=0.5)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_the_values_are_those_of_keras():
    # Recorded from keras.ops.dot_product_attention of Keras 3.15.
    q = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2) / 4
    k, v = np.cos(q), np.sin(q) * 3
    got = attention(q, k, v, bias=np.float32([[0.5, -0.5]]), is_causal=True)
    first = [[0.0, 0.7422118782997131], [1.4382766485214233, 2.0449163913726807]]
    second = [[0.32766181, 1.01540160], [1.51327658, 2.08868670]]
    np.testing.assert_allclose(got, [[first, second]], rtol=1e-5)


def test_a_query_that_may_look_nowhere_gets_the_mean_and_no_nan():
    q, k, v = (tw.constant(numbers(1, 2, 1, 2)) for _ in range(3))
    with tw.GradientTape() as tape:
        tape.watch([q, k, v])
        y = attention(q, k, v, mask=np.array([[False, False], [True, False]]))
    np.testing.assert_allclose(y.numpy()[0, 0, 0], v.numpy()[0, :, 0].mean(0))
    np.testing.assert_allclose(y.numpy()[0, 1], v.numpy()[0, 0])
    d_q, d_k, d_v = tape.gradient(y, [q, k, v])
    assert not d_q.numpy().any() and not d_k.numpy().any()
    np.testing.assert_allclose(d_v.numpy()[0, :, 0], [[1.5, 1.5], [0.5, 0.5]])


def test_large_logits_do_not_overflow():
    q = tw.constant(np.full((1, 2, 1, 1), 1e4, np.float32))
    assert np.isfinite(attention(q, q, q).numpy()).all()


def test_half_precision_is_weighed_in_single():
    q = tw.constant(np.full((1, 1, 1, 4), 100, np.float16))
    y = attention(q, q, q, scale=1.0)
    assert y.dtype == tw.float16 and y.numpy().tolist() == [[[[100.0] * 4]]]


@pytest.mark.parametrize(
    "shapes, message",
    [
        (((2, 3, 4), (2, 3, 4), (2, 3, 4)), r"\[batch, length, heads, dim\]"),
        (((1, 2, 2, 3), (1, 2, 2, 4), (1, 2, 2, 3)), "must agree"),
        (((1, 2, 2, 3), (1, 2, 2, 3), (1, 3, 2, 3)), "must agree"),
        (((1, 2, 3, 3), (1, 2, 2, 3), (1, 2, 2, 3)), "heads .*2"),
    ],
)
def test_shapes_that_do_not_fit_are_explained(shapes, message):
    with pytest.raises(tw.errors.ShapeError, match=message):
        attention(*[tw.zeros(s) for s in shapes])


def test_dtypes_that_differ_are_explained():
    x = tw.zeros([1, 1, 1, 1])
    with pytest.raises(tw.errors.DTypeError, match="all .*floating"):
        attention(x, x, tw.cast(x, tw.float64))


def test_flash_attention_is_refused():
    x = tw.zeros([1, 1, 1, 1])
    with pytest.raises(ValueError, match="flash_attention must be None"):
        attention(x, x, x, flash_attention=True)
