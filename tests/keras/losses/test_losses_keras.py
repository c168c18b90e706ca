"""Every loss, with every way of weighing and reducing, against recorded numbers of Keras.

And the same traced, with a batch of unknown size.
"""

import importlib.util
import pathlib

import numpy as np
import pytest

import tapewright as tw
from tapewright import losses

REFERENCE = pathlib.Path(__file__).parent.parent / "reference"
KERAS = np.load(REFERENCE / "losses.npz")
_spec = importlib.util.spec_from_file_location(
    "record_losses", REFERENCE / "record_losses.py"
)
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)


def loss_of(case, reduction):
    name, arguments, kind = record.CASES[case]
    return getattr(losses, name)(reduction=reduction, **arguments), kind


def runs(case, weights, wrap):
    """The entries of a recording, as we compute them."""
    y_true, y_pred = record.problem(record.CASES[case][2])
    shape = tuple(loss_of(case, "none")[0](y_true, y_pred).shape)
    given = [y_true, y_pred, *record.weighting(weights, shape)]
    *values, gradient = wrap(step_of(case), given)
    return np.concatenate([value.numpy().ravel() for value in values]), gradient.numpy()


def step_of(case):
    """A function that returns the loss by each reduction, and the gradient of the mean."""
    every = [loss_of(case, reduction)[0] for reduction in record.REDUCTIONS]

    def step(y_true, y_pred, weight, mask):
        p = tw.identity(y_pred)
        with tw.GradientTape(persistent=True) as tape:
            tape.watch(p)
            if mask is not None:
                p._keras_mask = mask
            values = [loss(y_true, p, sample_weight=weight) for loss in every]
        mean = values[record.REDUCTIONS.index("mean")]
        return *values, tape.gradient(mean, p)

    return step


def eager(step, given):
    return step(*[None if x is None else tw.constant(x) for x in given])


def traced(step, given):
    """The step, traced once for batches of any size."""
    there = [x for x in given if x is not None]
    specs = [tw.TensorSpec([None, *x.shape[1:]], x.dtype.name) for x in there]

    def call(*tensors):
        tensors = iter(tensors)
        return step(*[None if x is None else next(tensors) for x in given])

    function = tw.function(call, input_signature=specs)
    function(*[tw.constant(np.concatenate([x, x])) for x in there])
    result = function(*[tw.constant(x) for x in there])
    assert function.experimental_get_tracing_count() == 1
    return result


def check(case, weights, wrap):
    expected = KERAS[f"{case}|{weights}"]
    values, gradient = runs(case, weights, wrap)
    np.testing.assert_allclose(values, expected[: len(values)], rtol=2e-6, atol=1e-6)
    expected = expected[len(values) :].reshape(gradient.shape)
    assert np.isfinite(gradient).all()
    there = np.isfinite(expected)  # a row without partners has NaN in Keras, here 0
    assert there.all() or case == "circle"
    np.testing.assert_allclose(gradient[there], expected[there], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("weights", record.WEIGHTS)
@pytest.mark.parametrize("case", record.CASES)
def test_values_and_gradients_are_those_of_keras(case, weights):
    check(case, weights, eager)


@pytest.mark.parametrize("weights", ["plain", "column", "masked weight"])
@pytest.mark.parametrize("case", record.CASES)
def test_a_trace_for_any_batch_gives_the_same(case, weights):
    check(case, weights, traced)
