"""Programs with control flow give what TensorFlow 2.21 gives; see `reference/record.py`."""

from pathlib import Path

import numpy as np
import pytest

import tapewright as tw

from .reference.programs import PROGRAMS

RECORDED = np.load(Path(__file__).parent / "reference" / "tensorflow.npz")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_as_in_tensorflow(name):
    found = PROGRAMS[name](tw)
    for i, x in enumerate(found):
        expected = RECORDED[f"{name}|{i}"]
        x = np.asarray(x)
        assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(x, expected, rtol=3e-5, atol=1e-5)
    assert f"{name}|{len(found)}" not in RECORDED
