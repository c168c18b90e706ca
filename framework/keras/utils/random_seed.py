"""`set_random_seed`: set the seed of all random generators."""

from __future__ import annotations

import operator

import numpy as np

from tapewright.ops.random.generators import set_seed


def set_random_seed(seed: int) -> None:
    """Set the seeds of Python's ``random``, NumPy's global generator, and tapewright.

    They determine initial weights, dropout, and the orders of `fit` and of data sets.

    Args:
        seed: Integer from 0 to ``2**32 - 1``.

    Raises:
        ValueError: If ``seed`` is out of range or not an integer.

    Example:
        >>> keras.utils.set_random_seed(7)
        >>> first = tw.random.normal([2]).numpy()
        >>> keras.utils.set_random_seed(7)
        >>> bool((tw.random.normal([2]).numpy() == first).all())
        True
    """
    try:
        seed = operator.index(seed)
    except TypeError:
        raise ValueError(
            f"set_random_seed: seed must be an integer, got {seed!r}"
        ) from None
    if not 0 <= seed < 2**32:
        raise ValueError(
            f"set_random_seed: seed must be from 0 to 2**32 - 1, got {seed}"
        )
    import random  # a good millisecond, and not needed before

    random.seed(seed)
    np.random.seed(seed)
    set_seed(seed)
