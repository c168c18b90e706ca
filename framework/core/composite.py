"""`CompositeTensor`: values that consist of tensors, such as sparse and ragged ones.

Whatever passes structures on (`nest`, traced functions, branches and loops, data sets)
takes such a value apart into its tensors, and makes one of other tensors: it needs no
knowledge of the classes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NoReturn

__all__ = ["CompositeSpec", "CompositeTensor"]


class CompositeTensor:
    """Base of classes whose objects consist of tensors, and are passed on as these.

    A subclass defines `components` and `with_components`, which undo each other. In
    the place of tensors there may be specs, or numbers of outputs.
    """

    __slots__ = ()
    advice = ""  # what to do where a tensor is needed

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuse: NumPy would take the rows of a value that has some one by one.

        Raises: ``TypeError``.
        """
        raise TypeError(
            f"Cannot convert {type(self).__name__} to a tensor{self._advised()}"
        )

    def _advised(self):
        return f"; {self.advice}" if self.advice else ""

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

    def gradient_part(self) -> Any:
        """The tensor through which gradients pass."""
        raise TypeError(f"there is no gradient by a {type(self).__name__}")

    def with_gradient(self, gradient: Any) -> Any:
        """The gradient by this value, from that by its `gradient_part`."""
        raise TypeError(f"there is no gradient by a {type(self).__name__}")

    def spec(self) -> Any:
        """The `CompositeSpec` of the value, the ``element_spec`` of a data set."""
        raise TypeError(f"a {type(self).__name__} is no element of a data set")

    def unstacked(self) -> list[Any]:
        """The rows, elements of a data set."""
        raise TypeError(f"a {type(self).__name__} has no rows")

    def stacked(self, rows: Sequence[Any]) -> Any:
        """A batch of several, of which this is one: an axis in front."""
        raise TypeError(f"a {type(self).__name__} is no element of a batch")

    def apply_op(self, op: Any, inputs: Sequence[Any], attributes: Any) -> Any:
        """The result of an op, of whose inputs this is one.

        Raises: ``TypeError`` if the class has no such ops.
        """
        raise self._refusal(op.name)

    def _refusal(self, name):
        """The error of an op, or of a function of ops, without a rule for the class."""
        return TypeError(
            f"{name}: the op takes no {type(self).__name__}{self._advised()}"
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

    def with_shape(self, shape: Any) -> Any:
        """The same spec of another shape."""
        raise NotImplementedError(f"{type(self).__name__} must define with_shape")

    def batched(self, count: int | None) -> Any:
        """The spec of `stacked`, of ``count`` rows."""
        raise TypeError(f"a {type(self).__name__} is no element of a batch")

    def stack_rows(self, rows: Sequence[Any]) -> Any:
        """A batch of rows of this spec."""
        return rows[0].stacked(rows)

    def of_a_row(self) -> Any:
        """The spec of the rows."""
        raise TypeError(f"a {type(self).__name__} has no rows")

    def fitted(self, value: Any) -> Any:
        """A compatible value in the form that has the `static_key` of this spec."""
        return value
