"""Branches and loops that depend on data: `cond`, `while_loop`, `scan` and their kin."""

from .cond import case, cond, switch_case
from .map_fn import foldl, foldr, map_fn, scan
from .tensor_array import TensorArray
from .while_loop import while_loop

__all__ = [
    "TensorArray",
    "case",
    "cond",
    "foldl",
    "foldr",
    "map_fn",
    "scan",
    "switch_case",
    "while_loop",
]
