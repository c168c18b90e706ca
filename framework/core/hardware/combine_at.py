"""Reduction of array rows with the same index, in a deterministic order.

NumPy's ``ufunc.at`` does this. CuPy's adds floats in the order in which threads arrive,
so sums vary from run to run, and it supports few dtypes.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def combine_at(xp: Any, ufunc: Any, target: Any, indices: Any, rows: Any) -> None:
    """Compute ``target[p] = ufunc(target[p], row)`` for each ``p`` of ``indices``.

    All ``indices`` must be in range. On a GPU, which is synchronized, the rows are
    first sorted by index.

    Example:
        >>> import numpy as np
        >>> from tapewright.core.hardware.combine_at import combine_at
        >>> total = np.zeros(3)
        >>> combine_at(np, np.add, total, np.array([0, 2, 0]), np.array([1.0, 2.0, 3.0]))
        >>> total
        array([4., 0., 2.])
    """
    if xp is np:
        _combine_on_the_host(ufunc, target, indices, rows)
    elif rows.size:
        order = xp.argsort(indices)  # equals stay as they stand, in CuPy
        indices, rows = indices[order], rows[order]
        combine_runs(xp, ufunc, indices, rows)
        last = xp.ones(len(indices), bool)
        last[:-1] = indices[1:] != indices[:-1]
        indices = indices[last]
        target[indices] = ufunc(target[indices], rows[last])


def _combine_on_the_host(ufunc, target, indices, rows):
    width = target[:1].size
    if rows.ndim > 1 and target.flags.c_contiguous:  # many times faster than by rows
        indices = (indices.astype(np.intp)[:, None] * width + np.arange(width)).reshape(
            -1
        )
        target, rows = target.reshape(-1), rows.reshape(-1)
    ufunc.at(target, indices, rows)


def combine_runs(xp: Any, ufunc: Any, names: Any, rows: Any) -> None:
    """Replace each row by the reduction, by ``ufunc``, of its run up to that row.

    A run consists of adjacent rows with the same name.
    """
    done = 1  # each row holds what is made of so many, or of its run up to it
    while done < len(names):
        goes_on = names[done:] == names[:-done]
        if not goes_on.any():
            break
        goes_on = goes_on.reshape((-1,) + (1,) * (rows.ndim - 1))
        rows[done:] = xp.where(goes_on, ufunc(rows[:-done], rows[done:]), rows[done:])
        done *= 2
