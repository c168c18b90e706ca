"""Focal losses: factors on cross-entropies, the generalized cross-entropy."""

import numpy as np
import pytest

from tapewright import losses

P = np.array([[0.9, 0.2, 0.4], [0.6, 0.1, 0.8]])
BITS = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
HOT = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize("gamma", [0.5, 2.0])
@pytest.mark.parametrize("balanced", [False, True])
def test_binary_crossentropy_is_weighted_by_its_error(gamma, balanced):
    right = np.where(BITS == 1, P, 1 - P)
    alpha = np.where(BITS == 1, 0.25, 0.75) if balanced else 1.0
    expected = (alpha * (1 - right) ** gamma * -np.log(right)).mean(-1)
    found = losses.binary_focal_crossentropy(
        BITS, P, apply_class_balancing=balanced, gamma=gamma
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_categorical_crossentropy_is_weighted_by_its_error():
    shares = P / P.sum(-1, keepdims=True)
    right = (shares * HOT).sum(-1)
    found = losses.categorical_focal_crossentropy(HOT, shares, alpha=0.5, gamma=3.0)
    np.testing.assert_allclose(
        found, -0.5 * (1 - right) ** 3 * np.log(right), rtol=1e-5
    )


def test_logits_are_squashed_first():
    logits = np.log(P / (1 - P))
    np.testing.assert_allclose(
        losses.binary_focal_crossentropy(BITS, logits, from_logits=True),
        losses.binary_focal_crossentropy(BITS, P),
        rtol=1e-5,
    )


def test_the_generalized_crossentropy_leads_from_crossentropy_to_absolute_error():
    shares, labels = P / P.sum(-1, keepdims=True), [2, 0]
    right = shares[[0, 1], labels]
    for q in (0.3, 1.0):
        found = losses.categorical_generalized_cross_entropy(labels, shares, q)
        np.testing.assert_allclose(found, (1 - right**q) / q, rtol=1e-5)
