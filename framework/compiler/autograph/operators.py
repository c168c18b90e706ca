"""The functions that converted code calls, such as ``ag__.if_stmt``.

They behave like Python, unless a value is a tensor of the active trace.
"""

from tapewright.core.interpreters import converted

from .branches import if_stmt
from .conditions import check_caught, check_swallowed, conditional_error
from .expressions import (
    and_,
    assert_stmt,
    compare,
    if_exp,
    is_none,
    is_not_none,
    not_,
    or_,
)
from .iteration import iterable
from .loops import for_stmt, while_stmt

__all__ = [
    "and_",
    "assert_stmt",
    "check_caught",
    "check_swallowed",
    "compare",
    "conditional_error",
    "converted",
    "for_stmt",
    "if_exp",
    "if_stmt",
    "is_none",
    "is_not_none",
    "iterable",
    "not_",
    "or_",
    "while_stmt",
]
