"""`SymbolicOperand`: operands that record the calls on them, such as `KerasTensor`.

NumPy's ``__array_function__`` and PyTorch's ``__torch_function__`` are such protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["FunctionOverride", "SymbolicOperand"]


class FunctionOverride:
    """Base of operands that replace a call of a `dispatch.composite` function.

    The function consists of several ops, which need sizes or values that the operand
    does not have.
    """

    __slots__ = ()

    def record_function(
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
        raise NotImplementedError(f"{type(self).__name__} must define record_function")


class SymbolicOperand(FunctionOverride):
    """Base of tensors without values: a call of an op is recorded, no kernel runs."""

    __slots__ = ()

    def record_op(
        self, op: Any, inputs: Sequence[Any], attributes: dict[str, Any]
    ) -> Any:
        """Record a call of an op with this operand, and return its symbolic outputs.

        Args:
            op: Primitive that is called.
            inputs: Its positional inputs, as tensors.
            attributes: Its attributes by name.
        """
        raise NotImplementedError(f"{type(self).__name__} must define record_op")
