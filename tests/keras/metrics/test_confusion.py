"""Counts of true and false answers: thresholds, classes, NaN."""

import numpy as np

from tapewright import metrics


def test_predictions_that_are_no_numbers_are_never_positive():
    for thresholds in (0.5, [0.2, 0.5, 0.7], [0.1, 0.2]):
        metric = metrics.TruePositives(thresholds)
        metric.update_state([1, 1], [np.nan, 0.9])
        assert np.all(metric.result().numpy() == 1)


def test_thresholds_keep_their_order():
    metric = metrics.TruePositives([0.9, 0.1, 0.5])
    metric.update_state([1, 1, 1], [0.3, 0.7, 0.95])
    assert metric.result().numpy().tolist() == [1, 3, 2]


def test_the_last_class_may_be_counted_from_the_end():
    first, second = metrics.Recall(class_id=-1), metrics.Recall(class_id=2)
    y_true, y_pred = [[0, 1, 1], [1, 0, 1]], [[0.1, 0.2, 0.3], [0.2, 0.8, 0.9]]
    assert first(y_true, y_pred).numpy() == second(y_true, y_pred).numpy() == 0.5
