"""The best value of one rate where another is at least so large."""

import numpy as np

from tapewright import metrics

Y_TRUE = np.array([0, 0, 0, 0, 1, 1, 1, 1])
Y_PRED = np.array([0.05, 0.15, 0.35, 0.75, 0.25, 0.45, 0.65, 0.85])
# The rates at thresholds between the predictions.
RATES = []
for cut in np.arange(0.1, 0.9, 0.1):
    said = Y_PRED > cut
    tp, fp = (said & (Y_TRUE == 1)).sum(), (said & (Y_TRUE == 0)).sum()
    RATES.append((tp / 4, 1 - fp / 4, tp / (tp + fp)))
SENSITIVITY, SPECIFICITY, PRECISION = np.array(RATES).T


def best(rate, other, least):
    return rate[other >= least].max()


def check(cls, rate, other):
    for least in (0.5, 0.75, 1.0):
        found = cls(least, num_thresholds=201)(Y_TRUE, Y_PRED)
        np.testing.assert_allclose(found, best(rate, other, least), rtol=1e-6)


def test_the_best_sensitivity_of_a_specificity():
    check(metrics.SensitivityAtSpecificity, SENSITIVITY, SPECIFICITY)


def test_the_best_specificity_of_a_sensitivity():
    check(metrics.SpecificityAtSensitivity, SPECIFICITY, SENSITIVITY)


def test_the_best_precision_of_a_recall():
    check(metrics.PrecisionAtRecall, PRECISION, SENSITIVITY)


def test_the_best_recall_of_a_precision():
    check(metrics.RecallAtPrecision, SENSITIVITY, PRECISION)


def test_a_rate_that_is_never_reached_gives_zero():
    metric = metrics.RecallAtPrecision(0.9)
    assert metric([0, 0, 1], [0.9, 0.8, 0.1]).numpy() == 0
