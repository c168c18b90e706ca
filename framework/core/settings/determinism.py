"""Results that depend on the timing of threads, and how to exclude them.

Ops, traced functions and training return the same bits in each run, for any number of
threads. Only data sets with ``deterministic=False`` give up an order.
"""

_enforced = {"on": False}


def enable_op_determinism() -> None:
    """Keep the order of data set elements from now on, despite ``deterministic=False``.

    Everything else is deterministic anyway if the seeds are set: see
    `tw.keras.utils.set_random_seed`. Unlike in TensorFlow, random ops without a seed
    remain allowed.

    Example:
        >>> from tapewright.core.settings.determinism import enable_op_determinism
        >>> enable_op_determinism()  # doctest: +SKIP
    """
    _enforced["on"] = True


def is_enforced() -> bool:
    """Return whether `enable_op_determinism` was called."""
    return _enforced["on"]
