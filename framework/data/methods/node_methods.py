"""`NodeMethods`: the base of the methods of `Dataset`, which have a file for each purpose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tapewright.core.names.reserved_names import Guarding

if TYPE_CHECKING:
    from typing import Any


class NodeMethods(ABC, Guarding):
    """Base of the methods of `Dataset`: each returns a dataset of a node over this one."""

    _node: Any

    @abstractmethod
    def _new(self, node: Any) -> Any:
        """Return a dataset of the elements of a node."""
