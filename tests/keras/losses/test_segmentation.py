"""`Dice` and `Tversky`: overlaps of soft masks."""

import numpy as np

from tapewright import losses

TRUE = np.array([[[1.0], [0.0]], [[1.0], [1.0]]])
PRED = np.array([[[0.8], [0.4]], [[0.5], [0.1]]])
BOTH = (TRUE * PRED).sum()


def test_dice_is_twice_the_overlap_by_the_sizes():
    expected = 1 - 2 * BOTH / (TRUE.sum() + PRED.sum())
    np.testing.assert_allclose(losses.dice(TRUE, PRED), expected, rtol=1e-6)


def test_an_axis_gives_a_loss_for_each_of_the_others():
    found = losses.dice(TRUE, PRED, axis=(1, 2))
    each = [float(losses.dice(t, p)) for t, p in zip(TRUE, PRED)]
    np.testing.assert_allclose(found, each, rtol=1e-6)


def test_tversky_weighs_what_is_missed_and_what_is_extra():
    missed, extra = TRUE.sum() - BOTH, PRED.sum() - BOTH  # in this order as in Keras
    expected = 1 - BOTH / (BOTH + 0.3 * missed + 0.7 * extra)
    found = losses.tversky(TRUE, PRED, alpha=0.3, beta=0.7)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    halves = losses.tversky(TRUE, PRED)
    np.testing.assert_allclose(halves, losses.dice(TRUE, PRED), rtol=1e-6)
