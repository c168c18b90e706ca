"""Correlations along an axis."""

import numpy as np

from tapewright import metrics

RNG = np.random.default_rng(4)
A, B = RNG.normal(size=(2, 5, 7))


def test_pearsons_correlation_is_that_of_numpy():
    each = [np.corrcoef(a, b)[0, 1] for a, b in zip(A, B)]
    found = metrics.PearsonCorrelation()(A, B)
    np.testing.assert_allclose(found, np.mean(each), rtol=1e-5)
    across = [np.corrcoef(a, b)[0, 1] for a, b in zip(A.T, B.T)]
    found = metrics.PearsonCorrelation(axis=0)(A, B)
    np.testing.assert_allclose(found, np.mean(across), rtol=1e-5)


def test_concordance_falls_where_means_and_scales_differ():
    metric = metrics.ConcordanceCorrelation()
    np.testing.assert_allclose(metric(A, A), 1.0, rtol=1e-5)
    a, b = A[:1], 2 * A[:1] + 1
    expected = 2 * np.cov(a, b, ddof=0)[0, 1] / (
        a.var() + b.var() + (a.mean() - b.mean()) ** 2
    )  # fmt: skip
    found = metrics.ConcordanceCorrelation()(a, b)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
