"""What the tests of gradients through traced functions share."""

import numpy as np

import tapewright as tw

RNG = np.random.default_rng(7)


def floats(*shape):
    return tw.constant(RNG.uniform(0.2, 1.4, shape))


def derivatives_of(traced):
    """All that were made for the traces of a function, None where there is none."""
    families = [c.linearizations for c in traced.concrete_functions]
    return [d for f in families if f is not None for d in f.by_tracked.values()]


def assert_linearized(traced):
    """It was differentiated by graphs of its own, not node by node."""
    found = derivatives_of(traced)
    assert found and None not in found


def nested(f, args, order):
    """``f(*args)`` and the gradients of its sum, of theirs, and so on."""
    if order == 0:
        return [tw.convert_to_tensor(f(*args))]
    with tw.GradientTape() as tape:
        tape.watch(args)
        lower = nested(f, args, order - 1)
        total = tw.add_n([tw.reduce_sum(tw.sin(g)) for g in lower])
    found = tape.gradient(total, args, unconnected_gradients="zero")
    return [*lower, *[tw.convert_to_tensor(g) for g in found]]


def assert_same(found, wanted, tolerance=1e-11):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        if b is None:
            assert a is None
        else:
            np.testing.assert_allclose(a.numpy(), b.numpy(), tolerance, tolerance)
