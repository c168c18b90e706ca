"""Regularizers: penalties on weights, collected in ``layer.losses``."""

from tapewright import registry
from tapewright.ops.elementwise import abs, square
from tapewright.ops.reduction import reduce_sum

__all__ = ["L1", "L1L2", "L2", "Regularizer", "get"]


class Regularizer(registry.Configured):
    """Base: a subclass defines ``__call__(x)``, which gives a scalar."""

    kind = "regularizer"

    def __call__(self, x):
        raise NotImplementedError(f"{type(self).__name__} must define __call__")


class L1(Regularizer):
    """``l1 * sum(|x|)``.

    >>> L1(0.5)([1.0, -3.0]).numpy()
    np.float32(2.0)
    """

    def __init__(self, l1=0.01):
        self.l1 = _checked("L1", "l1", l1)

    def __call__(self, x):
        return reduce_sum(abs(x)) * self.l1


class L2(Regularizer):
    """``l2 * sum(x ** 2)``.

    >>> L2(0.5)([1.0, -3.0]).numpy()
    np.float32(5.0)
    """

    def __init__(self, l2=0.01):
        self.l2 = _checked("L2", "l2", l2)

    def __call__(self, x):
        return reduce_sum(square(x)) * self.l2


class L1L2(Regularizer):
    """``l1 * sum(|x|) + l2 * sum(x ** 2)``."""

    def __init__(self, l1=0.0, l2=0.0):
        self.l1 = _checked("L1L2", "l1", l1 or 0.0)
        self.l2 = _checked("L1L2", "l2", l2 or 0.0)

    def __call__(self, x):
        return reduce_sum(abs(x)) * self.l1 + reduce_sum(square(x)) * self.l2


def get(identifier):
    """The regularizer that a name, class, config or callable stands for; None for None.

    Raises: ``ValueError`` that lists the known names; ``TypeError`` for what is neither.

    >>> get("l2")
    L2(l2=0.01)
    """
    return registry.resolve("regularizer", identifier)


def _checked(who, name, factor):
    """The factor as a float. Raises: ``ValueError`` if it is negative or no number."""
    try:
        factor = float(factor)
    except (TypeError, ValueError):
        raise ValueError(f"{who}: {name} must be a number, got {factor!r}") from None
    if not 0 <= factor < float("inf"):
        raise ValueError(f"{who}: {name} must be 0 or more, and finite: got {factor}")
    return factor
