"""A closed tape, and gradients in one call."""

import tapewright as tw


def power_tape(value=3.0, **options):
    """A closed tape with ``y = x * x``; gives (tape, x, y)."""
    x = tw.Variable(value)
    with tw.GradientTape(**options) as tape:
        y = x * x
    return tape, x, y


def gradient_of(function, *values, **options):
    """Gradients of ``function`` by variables of these values."""
    variables = [tw.Variable(v) for v in values]
    with tw.GradientTape() as tape:
        y = function(*variables)
    found = tape.gradient(y, variables, **options)
    return found[0] if len(found) == 1 else found
