"""`AUC`: areas by their definitions."""

import numpy as np
import pytest

from tapewright import metrics


def test_the_area_is_the_chance_that_a_positive_is_above_a_negative():
    random = np.random.default_rng(0)
    y_true = random.integers(0, 2, 200)
    y_pred = random.integers(1, 50, 200) / 50 + 0.001
    pairs = y_pred[y_true == 1][:, None] - y_pred[y_true == 0]
    chance = (pairs > 0).mean() + (pairs == 0).mean() / 2
    thresholds = (np.arange(1, 50) / 50).tolist()
    metric = metrics.AUC(thresholds=thresholds)
    np.testing.assert_allclose(metric(y_true, y_pred), chance, 1e-6)


def test_a_perfect_order_has_the_whole_area_and_its_reverse_none():
    scores = [0.1, 0.3, 0.6, 0.9]
    for curve in ("ROC", "PR"):
        metric = metrics.AUC(curve=curve)
        np.testing.assert_allclose(metric([0, 0, 1, 1], scores), 1.0, rtol=1e-5)
    assert metrics.AUC()([1, 1, 0, 0], scores).numpy() == pytest.approx(0, abs=1e-6)


def test_labels_have_areas_of_their_own():
    y_true, y_pred = [[0, 1], [1, 0]], [[0.2, 0.3], [0.8, 0.9]]
    metric = metrics.AUC(multi_label=True, num_labels=2)
    np.testing.assert_allclose(metric(y_true, y_pred), 0.5, rtol=1e-5)
    weighted = metrics.AUC(multi_label=True, label_weights=[3.0, 1.0])
    np.testing.assert_allclose(weighted(y_true, y_pred), 0.75, rtol=1e-5)
