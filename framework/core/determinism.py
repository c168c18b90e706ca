"""Results that depend on the timing of threads, and how to rule them out.

Ops, traced functions and training give the same bits from run to run, whatever the number
of threads. Only data sets with ``deterministic=False`` give up an order.
"""

__all__ = ["enable_op_determinism", "is_enforced"]

_enforced = {"on": False}


def enable_op_determinism() -> None:
    """Let data sets keep the order of elements from now on, ``deterministic=False`` or not.

    All else is the same from run to run anyway, if the seeds are: see
    `tw.keras.utils.set_random_seed`. Unlike in TensorFlow, random ops without a seed stay
    allowed.

    Example:
        >>> from tapewright.core.determinism import enable_op_determinism
        >>> enable_op_determinism()  # doctest: +SKIP
    """
    _enforced["on"] = True


def is_enforced() -> bool:
    """Return whether `enable_op_determinism` was called."""
    return _enforced["on"]
