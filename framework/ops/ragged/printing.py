"""Format ragged rows as text."""

from __future__ import annotations

from typing import Any

import numpy as np


def text_of_rows(x: Any) -> str:
    """Format rows as TensorFlow prints them: like NumPy arrays, with commas.

    Example:
        >>> from tapewright.ops.ragged.printing import text_of_rows
        >>> from tapewright import ragged
        >>> text_of_rows(ragged.constant([[1, 2], [3]]))
        '[[1, 2], [3]]'
    """
    # array2string leaves out the separator in arrays of arrays: they come to _listed again
    with np.printoptions(formatter={"all": _listed}):
        return _listed(x.numpy())


def _listed(x):
    if not isinstance(x, np.ndarray):
        return str(x)
    if not x.size:  # the axes of an array without entries
        return repr(x.tolist())
    return np.array2string(x, separator=", ")
