"""Intersections over unions: values by hand, weights."""

import numpy as np
import pytest

from tapewright import metrics


def test_weights_that_an_iou_of_integers_cannot_keep_are_told():
    metric = metrics.MeanIoU(2)
    with pytest.warns(UserWarning, match="MeanIoU: sample_weight is cast"):
        metric.update_state([0, 1], [0, 1], np.array([0.5, 0.5]))


def test_the_intersection_is_counted_over_all_batches():
    metric = metrics.MeanIoU(3)
    metric.update_state([0, 0, 1], [0, 1, 1])
    metric.update_state([1, 2, 2], [1, 2, 0])
    # of class 0: 1 of 3, of 1: 2 of 3, of 2: 1 of 2
    np.testing.assert_allclose(metric.result(), (1 / 3 + 2 / 3 + 1 / 2) / 3, rtol=1e-6)


def test_one_class_may_be_asked_for_and_another_ignored():
    y_true, y_pred = [0, 0, 1, 1, 255], [0, 1, 1, 1, 0]
    metric = metrics.IoU(2, target_class_ids=[1], ignore_class=255)
    np.testing.assert_allclose(metric(y_true, y_pred), 2 / 3, rtol=1e-6)


def test_a_class_that_never_came_does_not_count():
    np.testing.assert_allclose(metrics.MeanIoU(5)([0, 1], [0, 1]), 1.0, rtol=1e-6)


def test_one_hot_classes_are_those_of_their_largest_entries():
    hot, scores = np.eye(2)[[0, 1, 1]], [[0.6, 0.4], [0.7, 0.3], [0.1, 0.9]]
    found = metrics.OneHotMeanIoU(2)(hot, scores)
    np.testing.assert_allclose(found, metrics.MeanIoU(2)([0, 1, 1], [0, 0, 1]))


def test_a_binary_iou_has_a_threshold():
    metric = metrics.BinaryIoU(target_class_ids=[0, 1], threshold=0.3)
    # above 0.3 are the last two: each class has 1 of 3
    found = metric([0, 1, 0, 1], [0.1, 0.2, 0.4, 0.7])
    np.testing.assert_allclose(found, 1 / 3, rtol=1e-6)
