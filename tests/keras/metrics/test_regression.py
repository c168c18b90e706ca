"""Errors and scores of numbers."""

import numpy as np
import pytest

from tapewright import metrics


def test_a_score_without_samples_to_spare_is_not_adjusted():
    metric = metrics.R2Score(num_regressors=5)
    metric.update_state([[1.0], [2.0]], [[1.0], [3.0]])
    with pytest.warns(UserWarning, match="R2Score: 5 regressors"):
        assert metric.result().numpy() == -1


def test_the_root_is_taken_of_the_mean_of_all_batches():
    metric = metrics.RootMeanSquaredError()
    metric.update_state([[0.0], [0.0]], [[1.0], [2.0]])
    metric.update_state([[0.0]], [[4.0]])
    assert metric.result().numpy() == pytest.approx(np.sqrt(21 / 3))


def test_r2_is_the_share_of_the_variance_that_is_explained():
    y_true, y_pred = np.array([1.0, 2.0, 4.0]), np.array([1.5, 2.0, 3.0])
    rest = ((y_true - y_pred) ** 2).sum() / ((y_true - y_true.mean()) ** 2).sum()
    metric = metrics.R2Score()
    metric.update_state(y_true[:2, None], y_pred[:2, None])
    metric.update_state(y_true[2:, None], y_pred[2:, None])
    assert metric.result().numpy() == pytest.approx(1 - rest, rel=1e-5)


def test_several_outputs_of_r2_are_averaged_as_asked():
    y_true = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 60.0]])
    y_pred = np.array([[1.5, 10.0], [2.0, 30.0], [3.0, 50.0]])
    rests = ((y_true - y_pred) ** 2).sum(0)
    totals = ((y_true - y_true.mean(0)) ** 2).sum(0)
    expected = {
        None: 1 - rests / totals,
        "uniform_average": (1 - rests / totals).mean(),
        "variance_weighted_average": 1 - rests.sum() / totals.sum(),
    }
    for aggregation, value in expected.items():
        metric = metrics.R2Score(class_aggregation=aggregation)
        np.testing.assert_allclose(metric(y_true, y_pred), value, rtol=1e-5)
