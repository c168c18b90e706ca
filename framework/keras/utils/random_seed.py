"""`set_random_seed`: one seed for all random numbers."""

from __future__ import annotations

import operator

import numpy as np

from tapewright.ops.random.generators import set_seed

__all__ = ["set_random_seed"]


def set_random_seed(seed: int) -> None:
    """Seed Python's ``random``, NumPy's global generator and tapewright's.

    They determine initial weights, dropout, and the orders of `fit` and of data sets.

    Raises: ``ValueError`` unless ``seed`` is an integer from 0 to ``2**32 - 1``.

    Example:
        >>> from tapewright import random
        >>> from tapewright.keras.utils.random_seed import set_random_seed
        >>> set_random_seed(7)
        >>> first = random.normal([2]).numpy()
        >>> set_random_seed(7)
        >>> bool((random.normal([2]).numpy() == first).all())
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
