"""Rows as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from .ragged_rows import RaggedRows

__all__ = ["text_of_rows"]


def text_of_rows(x: Any) -> str:
    """Rows as they are printed: numbers as NumPy prints them."""
    if isinstance(x, RaggedRows):
        return _bracketed(x, text_of_rows)
    return _listed(np.asarray(x.numpy()))


def _listed(x):
    if isinstance(x, np.ndarray) and x.ndim:
        return _bracketed(x, _listed)
    x = x[()] if isinstance(x, np.ndarray) else x
    return repr(x) if isinstance(x, bytes) else str(x)


def _bracketed(items, text):
    """A list as text; of a long one, both ends."""
    shown = [text(x) for x in (items if len(items) <= 100 else items[:3])]
    if len(items) > 100:
        shown += ["...", *[text(x) for x in items[-3:]]]
    return f"[{', '.join(shown)}]"
