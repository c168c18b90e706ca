"""`CTC`: all ways to spell the labels, blanks among them, too few steps."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import losses
from tapewright.test import check_gradients

from ...rounding import assert_as_eager

pytestmark = pytest.mark.gpu_first


def test_a_sequence_with_too_few_steps_has_a_large_loss_and_a_finite_gradient():
    p = tw.Variable(np.zeros((1, 2, 3), np.float32))
    with tw.GradientTape() as tape:
        value = losses.CTC()([[1, 1]], p)  # which needs a blank in between
    assert 9e4 < float(value) < 1.1e5
    assert np.isfinite(tape.gradient(value, p)).all()


SPELLINGS = ((np.arange(24).reshape(2, 4, 3) - 12) / 100).astype("float32")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [  # of Keras 3.15 on JAX
        ([[1, 2, 1, 0], [1, 2, 0, 2]], [2.4429314, 2.4543598]),
        ([[1, 2], [0, 2]], [1.6844572, 2.131997]),
        ([[0, 0], [2, 0]], [4.434582, 2.0917964]),
        ([[1, 1, 1, 1], [2, 2, 2, 0]], [100000.96, 100000.86]),
    ],
)
def test_a_label_may_be_the_class_of_the_blank(labels, expected):
    value = losses.CTC(reduction="none")(labels, SPELLINGS)
    np.testing.assert_allclose(value, expected, rtol=2e-6)
    traced = tw.function(losses.ctc)(tw.constant(labels), tw.constant(SPELLINGS))
    assert_as_eager(traced, value)


@pytest.mark.parametrize("labels", [[[1, 2, 0, 2]], [[0, 1, 0, 0]], [[0, 0, 0, 0]]])
def test_derivatives_of_ctc_with_blanks_among_the_labels(labels):
    point = tw.constant(np.random.default_rng(3).normal(size=(1, 5, 3)))
    check_gradients(lambda p: losses.ctc(labels, p), [point], order=2)


def test_ctc_adds_up_all_ways_to_spell_the_labels():
    p = np.array([[0.2, 0.5, 0.3], [0.1, 0.6, 0.3], [0.4, 0.1, 0.5]])
    log_p = np.log(p).astype("float32")[None]
    # over three steps: 12 is spelt 112, 122, 012, 102, 120
    paths = [(1, 1, 2), (1, 2, 2), (0, 1, 2), (1, 0, 2), (1, 2, 0)]
    expected = -np.log(sum(np.prod(p[range(3), path]) for path in paths))
    assert float(losses.CTC()([[1, 2]], log_p)) == pytest.approx(expected, rel=1e-6)
