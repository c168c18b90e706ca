"""Protocols of operands without values, which higher floors implement.

`SymbolicOperand` is the base of `KerasTensor`, `TracedOperand` of the tensors of a trace.
Sparse and ragged tensors only have `FunctionOverride`, a protocol like NumPy's
``__array_function__`` and PyTorch's ``__torch_function__``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from ..typing import Array


class FunctionOverride:
    """Base of operands that replace a call of a `dispatch.composite` function.

    The function consists of several ops, which need sizes or values that the operand
    does not have.
    """

    __slots__ = ()

    def _tw_record_function(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return the result of the function, which has the operand among its arguments.

        Args:
            function: Function that is called.
            args: Its positional arguments.
            kwargs: Its keyword arguments.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define _tw_record_function"
        )


class SymbolicOperand(FunctionOverride):
    """Base of tensors without values: a call of an op is recorded, no kernel runs."""

    __slots__ = ()

    def _tw_record_op(
        self, op: Any, inputs: Sequence[Any], attributes: dict[str, Any]
    ) -> Any:
        """Record a call of an op with this operand, and return its symbolic outputs.

        Args:
            op: Primitive that is called.
            inputs: Its positional inputs, as tensors.
            attributes: Its attributes by name.
        """
        raise NotImplementedError(f"{type(self).__name__} must define _tw_record_op")


class TracedOperand:
    """Base of the tensors of a function that is being traced."""

    __slots__ = ()

    def known_sizes(self) -> Array | None:
        """Return the sizes in the tensor if it consists of sizes only, else None."""
        raise NotImplementedError(f"{type(self).__name__} must define known_sizes")

    def raise_outside_trace(self) -> NoReturn:
        """Raise ``TracingError`` for an op that uses the tensor unseen by the tracer."""
        raise NotImplementedError(
            f"{type(self).__name__} must define raise_outside_trace"
        )
