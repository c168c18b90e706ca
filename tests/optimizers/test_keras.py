"""Every rule, with every way of clipping and with decay, against steps of real Keras."""

import importlib.util
import pathlib

import numpy as np
import pytest

import tapewright as tw
from tapewright import backend, optimizers
from tapewright.optimizers import flat, mixing

REFERENCE = pathlib.Path(__file__).parent / "reference"
KERAS = np.load(REFERENCE / "keras.npz")
_spec = importlib.util.spec_from_file_location("record", REFERENCE / "record.py")
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)

RUNS = sorted(name for name in KERAS.files if "|" in name)
# Small variables share blocks, large ones go alone, very large ones in many blocks; here
# the same variables are told that they are small, large, very large, or worth a call of
# BLAS.
LAYOUTS = {
    "together": (1 << 14, 1 << 17, 1 << 15),
    "alone": (0, 1 << 17, 1 << 15),
    "in blocks": (0, 3, 1 << 15),
    "by BLAS": (1 << 14, 1 << 17, 0),
}


def optimizer_of(rule, extra):
    name, arguments = record.RULES[rule]
    return getattr(optimizers, name)(**arguments, **record.EXTRAS[extra])


def tensor_of(gradient):
    if not isinstance(gradient, tuple):
        return tw.constant(gradient)
    values, rows = gradient
    return tw.IndexedSlices(tw.constant(values), tw.constant(rows), record.SHAPES[0])


def history(optimizer, starts, steps):
    variables = [tw.Variable(start) for start in starts]
    seen = []
    for gradients in steps:
        optimizer.apply_gradients(zip(map(tensor_of, gradients), variables))
        seen += [v.numpy().ravel() for v in variables]
    seen += [v.numpy().ravel() for v in optimizer.variables[2:]]
    return np.concatenate(seen)


@pytest.fixture(params=LAYOUTS)
def layout(request, monkeypatch):
    pooled, block, worth = LAYOUTS[request.param]
    monkeypatch.setattr(flat, "POOLED", pooled)
    monkeypatch.setattr(flat, "POOLED_ON_GPU", pooled)
    monkeypatch.setattr(flat, "BLOCK", block)
    monkeypatch.setattr(mixing, "WORTH", worth)


@pytest.mark.parametrize("run", RUNS)
def test_eight_steps_are_those_of_keras(run, layout):
    rule, extra, kind = run.split("|")
    starts, steps = record.problem(kind)
    ours = history(optimizer_of(rule, extra), starts, steps)
    assert ours.dtype == KERAS[run].dtype
    np.testing.assert_allclose(ours, KERAS[run], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rule", ["adam", "amsgrad"])
def test_a_row_that_comes_twice_counts_as_the_sum_of_its_values(rule, layout):
    starts, steps = record.problem("repeated")
    sparse = history(optimizer_of(rule, "plain"), starts, steps)
    dense_steps = []
    for (values, rows), second in steps:
        dense = np.zeros(record.SHAPES[0], np.float32)
        for row, value in zip(rows, values):
            dense[row] += value
        dense_steps.append((dense, second))
    dense = history(optimizer_of(rule, "plain"), starts, dense_steps)
    np.testing.assert_allclose(sparse, dense, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("run", [run for run in RUNS if "float64" not in run])
def test_arrays_of_a_gpu_give_the_same_steps(run, strict, layout):
    rule, extra, kind = run.split("|")
    starts, steps = record.problem(kind)
    with backend.use_module(strict):
        ours = history(optimizer_of(rule, extra), starts, steps)
    np.testing.assert_allclose(ours, KERAS[run], rtol=1e-6, atol=1e-6)
