"""`CompositeTensor`: values that consist of tensors, such as sparse and ragged tensors.

Code that handles structures (`nest`, traced functions, branches and loops, data sets)
takes such a value apart into its tensors and rebuilds it from others, without knowledge
of the class.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NoReturn


class CompositeTensor:
    """Base of classes whose objects consist of tensors.

    A subclass defines `_tw_components` and its inverse `_tw_with_components`. The components
    may be replaced by specs or by numbers of outputs.
    """

    __slots__ = ()
    _tw_advice = ""  # what to do where a tensor is needed

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Reject the conversion: NumPy would iterate over the rows.

        Raises:
            TypeError: Always.
        """
        raise TypeError(
            f"Cannot convert {type(self).__name__} to a tensor{self._advised()}"
        )

    def _advised(self):
        return f"; {self._tw_advice}" if self._tw_advice else ""

    def _tw_components(self) -> list[Any]:
        """Return the component tensors."""
        raise NotImplementedError(f"{type(self).__name__} must define _tw_components")

    def _tw_with_components(self, components: Sequence[Any]) -> Any:
        """Return the same value with other component tensors.

        Args:
            components: Tensors in the order of ``_tw_components``.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define _tw_with_components"
        )

    def _tw_static_key(self) -> Hashable:
        """Return the class and everything except the tensors on which a trace depends."""
        return type(self)

    def _tw_is_like(self, other: Any) -> bool:
        """Return whether loops and branches may replace this value by ``other``.

        Args:
            other: Any value.
        """
        return (
            isinstance(other, CompositeTensor)
            and self._tw_static_key() == other._tw_static_key()
        )

    def _tw_gradient_part(self) -> Any:
        """Return the tensor through which gradients pass."""
        raise TypeError(
            f"gradients with respect to a {type(self).__name__} are not supported"
        )

    def _tw_with_gradient(self, gradient: Any) -> Any:
        """Return the gradient of this value from the gradient of its `_tw_gradient_part`.

        Args:
            gradient: Gradient of the part.
        """
        raise TypeError(
            f"gradients with respect to a {type(self).__name__} are not supported"
        )

    def _tw_spec(self) -> Any:
        """Return the `CompositeSpec` of the value, the ``element_spec`` of a data set."""
        raise TypeError(f"a {type(self).__name__} cannot be an element of a data set")

    def _tw_unstacked(self) -> list[Any]:
        """Return the rows, as elements of a data set."""
        raise TypeError(f"a {type(self).__name__} has no rows")

    def _tw_stacked(self, rows: Sequence[Any]) -> Any:
        """Return a batch of several values like this one, with an additional first axis.

        Args:
            rows: Values with the same spec.
        """
        raise TypeError(f"a {type(self).__name__} cannot be batched")

    def _tw_apply_op(self, op: Any, inputs: Sequence[Any], attributes: Any) -> Any:
        """Return the result of an op that has this value among its inputs.

        Args:
            op: The primitive.
            inputs: Inputs in the order of its signature.
            attributes: Attributes by name.

        Raises:
            TypeError: If the class does not support the op.
        """
        raise self._refusal(op.name)

    def _refusal(self, name):
        """Return the error for an op or function that has no rule for the class."""
        return TypeError(
            f"{name}: the op does not accept a {type(self).__name__}{self._advised()}"
        )


class CompositeSpec(CompositeTensor):
    """Base of the specs of such values, the counterpart of `TensorSpec`.

    The components are specs; `_tw_with_components` returns a value of tensors.
    """

    __slots__ = ()

    def is_compatible_with(self, value: Any) -> bool:
        """Return whether this spec describes a value or another spec.

        Args:
            value: Value or spec.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define is_compatible_with"
        )

    def _tw_with_shape(self, shape: Any) -> Any:
        """Return the same spec with another shape.

        Args:
            shape: The new shape.
        """
        raise NotImplementedError(f"{type(self).__name__} must define _tw_with_shape")

    def _tw_batched(self, count: int | None) -> Any:
        """Return the spec of a batch of rows, see `_tw_stacked`.

        Args:
            count: Number of rows, or None if unknown.
        """
        raise TypeError(f"a {type(self).__name__} cannot be batched")

    def _tw_stack_rows(self, rows: Sequence[Any]) -> Any:
        """Return a batch of rows of this spec.

        Args:
            rows: Values with this spec.
        """
        return rows[0]._tw_stacked(rows)

    def _tw_of_a_row(self) -> Any:
        """Return the spec of the rows."""
        raise TypeError(f"a {type(self).__name__} has no rows")

    def _tw_fitted(self, value: Any) -> Any:
        """Convert a compatible value to the form with the `_tw_static_key` of this spec.

        Args:
            value: Value that is compatible with this spec.
        """
        return value
