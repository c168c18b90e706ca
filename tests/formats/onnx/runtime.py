"""Run ONNX models with onnxruntime, and compare with eager results."""

import numpy as np
import pytest

import tapewright as tw

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

__all__ = ["assert_close", "load", "run", "same_as_eager"]


def load(path):
    """A model, after all checks that the package onnx has."""
    model = onnx.load(str(path))
    onnx.checker.check_model(model, full_check=True)
    return model


def run(path, *inputs):
    """The outputs for inputs in order."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    names = [i.name for i in session.get_inputs()]
    feeds = {name: np.asarray(x) for name, x in zip(names, inputs, strict=True)}
    return session.run(None, feeds)


def assert_close(got, wanted, tolerance=1e-5):
    """Raise unless shapes and dtypes are equal, and values to a share of the largest."""
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted)
        return
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(got[~finite], wanted[~finite])
    largest = np.abs(wanted[finite]).max(initial=0)
    assert np.abs(got[finite] - wanted[finite]).max(initial=0) <= tolerance * largest


def same_as_eager(function, signature, *calls, path, tolerance=1e-5):
    """Save a function and compare its outputs for some calls; return the model."""
    tw.onnx.save(function, signature, path)
    model = load(path)
    for inputs in calls:
        eager = function(*[tw.constant(x) for x in inputs])
        for got, wanted in zip(run(path, *inputs), tw.nest.flatten(eager), strict=True):
            assert_close(got, wanted, tolerance)
    return model
