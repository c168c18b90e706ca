"""`Circle`: similarities of embeddings within and between classes."""

import numpy as np

from tapewright import losses


def expected(labels, x, gamma, margin):
    """The paper's formula, a pair at a time."""
    found = []
    for i, anchor in enumerate(labels):
        positive = negative = 0.0
        for j, other in enumerate(labels):
            s = x[i] @ x[j]
            if i != j and anchor == other:
                weight = max(1 + margin - s, 0)
                positive += np.exp(-gamma * weight * (s - (1 - margin)))
            elif anchor != other:
                weight = max(s + margin, 0)
                negative += np.exp(gamma * weight * (s - margin))
        found.append(np.log1p(positive * negative))
    return found


def test_the_loss_is_the_papers_pair_by_pair():
    x = np.random.default_rng(0).normal(size=(6, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    labels = np.array([0, 1, 0, 2, 1, 0])
    for gamma, margin in ((4.0, 0.25), (8.0, 0.4)):
        loss = losses.Circle(gamma=gamma, margin=margin, reduction="none")
        wanted = expected(labels, x, gamma, margin)
        np.testing.assert_allclose(loss(labels, x), wanted, rtol=1e-4)
