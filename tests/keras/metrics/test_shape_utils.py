"""Shapes of labels and predictions, batch after batch."""

import numpy as np
import pytest

from tapewright import metrics


@pytest.mark.parametrize("make", [metrics.F1Score, metrics.R2Score])
def test_labels_of_another_shape_are_refused_after_the_first_batch_too(make):
    metric, scores = make(), np.eye(3, dtype=np.float32)
    metric.update_state(scores, scores)
    before = metric.result().numpy()
    for labels in (scores[:1], scores[:, :1]):
        with pytest.raises(ValueError, match="must be .batch, .* both"):
            metric.update_state(labels, scores)
    np.testing.assert_array_equal(metric.result().numpy(), before)
