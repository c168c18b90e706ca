"""Arguments and shapes that no metric takes."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import metrics


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: metrics.Precision(1.5), r"Precision: thresholds .*0.*1.*got 1\.5"),
        (
            lambda: metrics.TruePositives([0.1, -1]),
            r"thresholds .*0.*1.*got \[0\.1, -1\]",
        ),
        (lambda: metrics.PrecisionAtRecall(2.0), r"recall .*0.*1.*got 2\.0"),
        (lambda: metrics.RecallAtPrecision(0.5, 0), "num_thresholds .*got 0"),
        (
            lambda: metrics.AUC(num_thresholds=1),
            "num_thresholds .* 2 or more, got 1",
        ),
        (
            lambda: metrics.AUC(curve="RCO"),
            r"curve .*\('ROC', 'PR', 'PRGAIN'\).*got 'RCO'",
        ),
        (
            lambda: metrics.AUC(summation_method="x"),
            r"summation_method .*\('interpolation', 'majoring', 'minoring'\).*got 'x'",
        ),
        (lambda: metrics.AUC(num_labels=2), "num_labels .*multi_label.*True"),
        (
            lambda: metrics.FBetaScore("all"),
            r"average .*'micro', 'macro', 'weighted'.*got 'all'",
        ),
        (lambda: metrics.FBetaScore(beta=-1.0), r"beta .*got -1\.0"),
        (lambda: metrics.F1Score(threshold=1.5), r"F1Score: threshold .*got 1\.5"),
        (lambda: metrics.MeanIoU(10**9), "MeanIoU: num_classes .*got 1000000000"),
        (lambda: metrics.IoU(2, [2]), r"IoU: target_class_ids .*0.*1.*got \[2\]"),
        (lambda: metrics.R2Score("mean"), "class_aggregation .*got 'mean'"),
        (lambda: metrics.R2Score(num_regressors=-1), "num_regressors .*got -1"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "make, y_true, y_pred, message",
    [
        (metrics.SparseCategoricalAccuracy, [4, 2], [4, 3], "class .*y_true"),
        (metrics.CategoricalAccuracy, [4, 2, 3], [4, 3], "class .*y_true"),
        (metrics.BinaryAccuracy, [4, 3], [4, 2], "shapes .*y_true.*y_pred"),
        (metrics.BinaryAccuracy, [3], [3, 3], "shapes .*y_true.*y_pred"),
        (metrics.RootMeanSquaredError, [3], [3, 3], "RootMeanSquaredError: the shapes"),
        (metrics.PearsonCorrelation, [4, 3], [4, 2], "pearson_correlation: the shapes"),
        (metrics.Precision, [4, 3], [4, 2], "Precision: y_true and y_pred must"),
        (metrics.F1Score, [4], [4, 2], "F1Score: y_true and y_pred must be"),
        (metrics.R2Score, [4, 1, 1], [4, 1, 1], "R2Score: y_true and y_pred must be"),
        (lambda: metrics.MeanIoU(2), [4], [5], "as many labels as y_pred"),
        (
            lambda: metrics.AUC(multi_label=True),
            [4],
            [4],
            r"\[batch, labels\].*got shape \(4,\)",
        ),
        (lambda: metrics.Recall(top_k=3), [4, 2], [4, 2], "top_k .*2.*got 3"),
        (lambda: metrics.Recall(class_id=2), [4, 2], [4, 2], "class_id.*2.*y_pred"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(make, y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        make().update_state(tw.zeros(y_true), tw.zeros(y_pred))


@pytest.mark.parametrize("make", [metrics.F1Score, metrics.R2Score])
def test_labels_of_another_shape_are_refused_after_the_first_batch_too(make):
    metric, scores = make(), np.eye(3, dtype=np.float32)
    metric.update_state(scores, scores)
    before = metric.result().numpy()
    for labels in (scores[:1], scores[:, :1]):
        with pytest.raises(ValueError, match="must be .batch, .* same shape"):
            metric.update_state(labels, scores)
    np.testing.assert_array_equal(metric.result().numpy(), before)
