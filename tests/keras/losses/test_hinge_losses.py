"""Hinge losses: margins of labels in {-1, 1} and {0, 1}, and of one class."""

import numpy as np
import pytest

from tapewright import losses

SIGNS = np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
SCORES = np.array([[0.3, -2.0, 1.5], [0.5, -0.25, -1.0]])
MARGIN = np.maximum(1 - SIGNS * SCORES, 0)


@pytest.mark.parametrize("labels", [SIGNS, (SIGNS + 1) / 2])
def test_labels_of_0_and_1_stand_for_minus_1_and_1(labels):
    np.testing.assert_allclose(losses.hinge(labels, SCORES), MARGIN.mean(-1))
    squared = losses.squared_hinge(labels, SCORES)
    np.testing.assert_allclose(squared, (MARGIN**2).mean(-1))


def test_the_right_class_must_lead_by_1():
    y_true = [[0.0, 1.0, 0.0]] * 3
    y_pred = [[0.5, 2.0, 0.9], [0.5, 1.0, 0.9], [3.0, 1.0, 0.0]]
    found = losses.categorical_hinge(y_true, y_pred)
    np.testing.assert_allclose(found, [0.0, 0.9, 3.0], rtol=1e-6)


def test_an_impossible_class_counts_nothing_where_its_label_is_0():
    x = [[2.0, -np.inf, 0.5]]
    assert losses.categorical_hinge([[1.0, 0.0, 0.0]], x).numpy() == [0.0]
    assert losses.categorical_hinge([[0.0, 0.0, 1.0]], x).numpy() == [2.5]
    hinge = losses.hinge([[0.5, 0.0, 0.5]], x).numpy()  # of 0, 1 and 0.75
    np.testing.assert_allclose(hinge, [1.75 / 3], rtol=1e-6)
