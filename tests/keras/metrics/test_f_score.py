"""F scores: precision and recall in one number, by class and averaged."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import metrics

Y_TRUE = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]], np.float32)
Y_PRED = np.array([[0.9, 0.6, 0.2], [0.1, 0.8, 0.7], [0.4, 0.3, 0.6], [0.2, 0.1, 0.9]])


def scores(beta, threshold=0.5):
    said = Y_PRED > threshold
    both, said, there = (Y_TRUE * said).sum(0), said.sum(0), Y_TRUE.sum(0)
    precision, recall = both / said, both / there
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_a_score_for_each_class(beta):
    metric = metrics.FBetaScore(beta=beta, threshold=0.5)
    for rows in (slice(0, 1), slice(1, 4)):  # in batches
        metric.update_state(Y_TRUE[rows], Y_PRED[rows])
    np.testing.assert_allclose(metric.result(), scores(beta), rtol=1e-5)


def test_averages_are_of_classes_or_weighted_by_their_samples():
    each, samples = scores(1.0), Y_TRUE.sum(0)
    for average, expected in (
        ("macro", each.mean()), ("weighted", (each * samples).sum() / samples.sum())
    ):  # fmt: skip
        metric = metrics.F1Score(average=average, threshold=0.5)
        np.testing.assert_allclose(metric(Y_TRUE, Y_PRED), expected, rtol=1e-5)


def test_without_a_threshold_the_largest_score_is_the_answer():
    metric = metrics.F1Score(average="micro")
    hot = np.eye(3, dtype=np.float32)[[0, 1, 1, 2]]
    # one right of four: largest are 0, 1, 2, 2
    right = (Y_PRED.argmax(1) == [0, 1, 1, 2]).mean()
    np.testing.assert_allclose(metric(hot, Y_PRED), right, rtol=1e-6)


def test_a_subclass_may_count_by_itself_as_in_keras():
    class Counted(tw.keras.metrics.F1Score):
        def update_state(self, y_true, y_pred, sample_weight=None):
            if not self._built:
                self._build(y_true.shape, y_pred.shape)
            hits = tw.reduce_sum(y_true * y_pred, axis=self.axis)
            self.true_positives.assign(self.true_positives + hits)

    for average, score in ("micro", 1.0), (None, [1.0, 1.0]):
        metric = Counted(average=average)
        metric.update_state(tw.eye(2), tw.eye(2))
        assert np.allclose(metric.result(), score)
