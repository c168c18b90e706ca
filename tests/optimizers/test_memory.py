"""Memory stays flat over many steps, and everything dies by reference count alone."""

import gc
import itertools
import weakref

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware.devices import current_module
from tapewright.optimizers import SGD, Adam

from ..memory import grown

OURS = [f"{package.__path__[0]}/*" for package in (tw, tw.optimizers)]


def problem():
    shapes = (200, 100), (100,), (100, 3), (3,)
    variables = [tw.Variable(np.ones(s, np.float32)) for s in shapes]
    sparse = tw.IndexedSlices(tw.ones((2, 100)), tw.constant([3, 3]), shapes[0])
    return variables, [tw.ones(s) for s in shapes], sparse


@pytest.mark.parametrize("rule", [SGD(momentum=0.9), Adam(clipnorm=1.0), SGD(0.1)])
def test_a_thousand_steps_leave_memory_flat(rule):
    variables, gradients, sparse = problem()
    numbers = itertools.count()

    def step():
        i = next(numbers)
        first = sparse if i % 3 == 0 else gradients[0]
        held = variables[1].read() if i % 2 else None
        rule.apply_gradients(zip([first, *gradients[1:]], variables))
        return held

    # NumPy and the stand-in for CuPy fill caches of their own for a while.
    assert grown(step, 1000, OURS) < 4000  # one object in ten steps takes more
    if current_module() is np:
        assert grown(step, 600) < 16384  # an array in each third step takes more


def test_an_optimizer_dies_without_the_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        variables, gradients, sparse = problem()
        optimizer = Adam(clipnorm=1.0, weight_decay=0.1)
        optimizer.apply_gradients(zip([sparse, *gradients[1:]], variables))
        optimizer.apply_gradients(zip(gradients, variables))
        dead = [weakref.ref(optimizer), weakref.ref(optimizer.variables[2])]
        kept = [weakref.ref(v) for v in variables]
        del optimizer
        assert [ref() for ref in dead] == [None] * 2
        del variables
        assert [ref() for ref in kept] == [None] * 4
    finally:
        gc.enable()
