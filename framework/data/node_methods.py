"""`NodeMethods`: what the methods of `Dataset` share, a file for each purpose of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tapewright.core.reserved_names import Guarding

if TYPE_CHECKING:
    from typing import Any

__all__ = ["NodeMethods"]


class NodeMethods(ABC, Guarding):
    """Base of the methods of `Dataset`: each makes a data set of a node over its own."""

    _node: Any

    @abstractmethod
    def _new(self, node: Any) -> Any:
        """A data set of the elements of a node."""
