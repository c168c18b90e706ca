"""Calls of ufuncs that are noted for a commit, and what a rule must not do meanwhile."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.optimizers import SGD
from tapewright.optimizers.recording import NotRecordable, Recorded, Recorder


def test_calls_are_made_later_and_in_order():
    writes = []
    xp, x = Recorder(writes), np.float32([1, 2])
    array = Recorded(x)
    assert xp.add(array, 1.0, out=array) is array
    xp.multiply(array, array, out=array)
    xp.maximum(array, 5.0, out=array)
    assert x.tolist() == [1, 2] and len(writes) == 3
    for write in writes:
        write()
    assert x.tolist() == [5, 9]


LOOKS = {
    "an operator": lambda xp, x: x + 1.0,
    "an operator in place": lambda xp, x: x.__isub__(1.0),
    "a comparison": lambda xp, x: x > 0,
    "a condition": lambda xp, x: bool(x),
    "a method": lambda xp, x: x.sum(),
    "an entry": lambda xp, x: x[0],
    "a function that is no ufunc": lambda xp, x: xp.where(x, x, x),
    "NumPy itself": lambda xp, x: np.asarray(x),
    "a loop": lambda xp, x: list(x),
}


@pytest.mark.parametrize("look", LOOKS)
def test_who_looks_at_values_is_told_that_they_are_not_there(look):
    with pytest.raises(NotRecordable):
        LOOKS[look](Recorder([]), Recorded(np.ones(3, np.float32)))


def test_a_ufunc_of_numpy_itself_does_not_take_recorded_arrays():
    with pytest.raises(TypeError):
        np.add(Recorded(np.ones(3)), 1.0)


@pytest.mark.parametrize("size", [5, 40_000])
def test_a_rule_that_looks_at_values_makes_the_same_steps(size):
    class Plain(SGD):
        def update_block(self, xp, gradient, variable, scratch, coefficients):
            xp.multiply(gradient, coefficients[0], out=scratch)
            xp.subtract(variable, scratch, out=variable)

    class Looking(SGD):
        def update_block(self, xp, gradient, variable, scratch, coefficients):
            if float(abs(gradient).max()) > 0:
                variable -= gradient * coefficients[0]

    found = []
    for rule in (Plain, Looking):
        v = tw.Variable(np.ones(size, np.float32))
        optimizer = rule(0.5)
        held = []
        for _ in range(3):
            optimizer.apply([tw.fill([size], 0.25)], [v])
            held.append(v.read())
        found.append([h.numpy() for h in held])
    assert np.array_equal(*found)
    assert found[0][2].tolist() == [1 - 3 * 0.125] * size
