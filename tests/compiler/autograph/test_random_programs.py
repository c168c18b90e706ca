"""Random programs of nested control flow: Python against converted, gradients too."""

import os

import numpy as np
import pytest

import tapewright as tw

from .programs import random_program

# Machine code takes long to make. Set the variable to try more.
DEFAULT = 10 if os.environ.get("TAPEWRIGHT_TARGET") == "native" else 20
COUNT, GROUPS = int(os.environ.get("TAPEWRIGHT_PROGRAMS", DEFAULT)), 10


def results(function, x, xs, k):
    with tw.GradientTape() as tape:
        tape.watch([x, xs])
        outputs = function(x, xs, k)
        floats = [tw.convert_to_tensor(y) for y in (outputs[0], outputs[1], outputs[3])]
        total = tw.add_n([tw.cast(y, x.dtype) for y in floats])
    gradients = tape.gradient(total, [x, xs], unconnected_gradients="zero")
    return [np.asarray(y) for y in (*outputs, *gradients)]


@pytest.mark.parametrize("group", range(GROUPS))
def test_converted_programs_do_as_python(group):
    for seed in range(group, COUNT, GROUPS):
        program, source = random_program(seed, tw)
        converted = tw.function(program)
        for value in (0.7, -1.3):
            x, k = tw.constant(value), tw.constant(seed % 4)
            xs = tw.constant([0.5, -0.25, 1.5])
            expected = results(program, x, xs, k)
            try:
                found = results(converted, x, xs, k)
                for a, b in zip(expected, found, strict=True):
                    np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
            except Exception as error:
                error.add_note(f"program {seed} at {value}:\n{source}")
                raise
        assert not converted._eager
