"""`CompositeTensor`: values that consist of tensors, such as sparse and ragged ones.

Whatever passes structures on (`nest`, traced functions, branches and loops, data sets)
takes such a value apart into its tensors, and makes one of other tensors: it needs no
knowledge of the classes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

__all__ = ["CompositeSpec", "CompositeTensor"]


class CompositeTensor:
    """Base of classes whose objects consist of tensors, and are passed on as these.

    A subclass defines `components` and `with_components`, which undo each other. In
    the place of tensors there may be specs, or numbers of outputs.
    """

    __slots__ = ()

    def components(self) -> list[Any]:
        """The tensors."""
        raise NotImplementedError(f"{type(self).__name__} must define components")

    def with_components(self, components: Sequence[Any]) -> Any:
        """The same of other tensors."""
        raise NotImplementedError(f"{type(self).__name__} must define with_components")

    def static_key(self) -> Hashable:
        """The class, and all beside the tensors on which a trace depends."""
        return type(self)

    def is_like(self, other: Any) -> bool:
        """Return whether loops and branches may have one in the place of the other."""
        return (
            isinstance(other, CompositeTensor)
            and self.static_key() == other.static_key()
        )

    def apply_op(self, op: Any, inputs: Sequence[Any], attributes: Any) -> Any:
        """The result of an op, of whose inputs this is one.

        Raises: ``TypeError`` if the class has no such ops.
        """
        raise TypeError(
            f"{op.name}: a {type(self).__name__} is no tensor, and the op takes none"
        )


class CompositeSpec(CompositeTensor):
    """Base of the descriptions of such values, as `TensorSpec` is one of a tensor.

    Its components are specs; `with_components` makes a value of tensors.
    """

    __slots__ = ()

    def is_compatible_with(self, value: Any) -> bool:
        """Return whether a value, or a spec, is one that this describes."""
        raise NotImplementedError(
            f"{type(self).__name__} must define is_compatible_with"
        )

    def fitted(self, value: Any) -> Any:
        """A compatible value in the form that has the `static_key` of this spec."""
        return value
