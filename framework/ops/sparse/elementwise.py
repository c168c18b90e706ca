"""Element-wise ops of sparse tensors, and their products with numbers and tensors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tapewright.core import dtypes
from tapewright.core.composite import CompositeTensor
from tapewright.core.errors import ShapeError
from tapewright.core.shapes.symbolic_operand import FunctionOverride
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.tensor import Tensor, convert_to_tensor, module_of, new_tensor

from ..array.conversion import cast
from ..array.creation import zeros_like
from ..array.gather import gather_nd
from ..array.joining import stack, unstack
from ..array.shape import shape, size
from ..math.elementwise import divide, multiply, negative
from ..math.reduction import reduce_prod

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from tapewright.core.dtypes import DType
    from tapewright.core.shapes.tensor_shape import TensorShape
    from tapewright.core.typing import TensorLike

# op -> rule(*inputs, **attributes) for ops that are not entry by entry.
OP_RULES: dict[Any, Any] = {}


class OpMethods(FunctionOverride, CompositeTensor):
    """Element-wise ops of `SparseTensor`, which holds the entries."""

    __slots__ = ()
    __array_ufunc__ = None  # ndarray * sparse reaches our operator
    _tw_advice = (
        "tw.sparse has ops of sparse tensors, such as add and maximum; "
        "tw.sparse.map_values applies an op to the values, and tw.sparse.to_dense makes "
        "it dense"
    )

    if TYPE_CHECKING:
        indices: Tensor
        values: Tensor
        dense_shape: Tensor
        shape: TensorShape
        dtype: DType

        def with_values(self, new_values: TensorLike) -> Self: ...
        def __mul__(self, other: TensorLike) -> Self: ...
        def __rmul__(self, other: TensorLike) -> Self: ...
        def __truediv__(self, other: TensorLike) -> Self: ...
        def __neg__(self) -> Self: ...

    else:

        def __mul__(self, other):
            return multiply(self, other)

        def __rmul__(self, other):
            return multiply(self, other)

        def __truediv__(self, other):
            return divide(self, other)

        def __neg__(self):
            return negative(self)

    def _tw_apply_op(self, op: Any, inputs: Sequence[Any], attributes: Any) -> Self:
        """Apply an op that maps 0 to 0 to each entry; multiply or divide by a tensor.

        Matrix products, as layers use them, are in `products.py`.

        Raises:
            TypeError: If the op is not supported.
        """
        import_module("tapewright.ops.sparse.products")  # fills the table
        if op in OP_RULES:
            return OP_RULES[op](*inputs, **attributes)
        if len(inputs) == 1 and op.elementwise and self._keeps_zero(op, attributes):
            return self.with_values(op.general([self.values], attributes))
        scaled = {multiply.primitive: (0, 1), divide.primitive: (0,)}.get(op, ())
        at = next(i for i, x in enumerate(inputs) if x is self)
        if len(inputs) == 2 and at in scaled:
            other = inputs[1 - at]
            if not isinstance(other, CompositeTensor):
                other = convert_to_tensor(other, dtype_hint=self.dtype)
                return self.with_values(
                    op.general([self.values, self._factors(op.name, other)], {})
                )
        return super()._tw_apply_op(op, inputs, attributes)  # raises

    def _tw_record_function(self, function: Any, args: Any, kwargs: Any) -> Tensor:
        """Apply `tw.shape` or `tw.size`; see `dispatch.composite`.

        Args:
            function: The composite function.
            args: Its positional arguments.
            kwargs: Its keyword arguments.

        Raises:
            TypeError: If the function is any other composite.
        """
        rule = FUNCTION_RULES.get(function)
        if rule is None:
            raise TypeError(
                f"{function.__name__}: the function does not accept a SparseTensor"
                f"{self._advised()}"
            )
        return rule(*args, **kwargs)

    def _keeps_zero(self, op, attributes):
        """Return whether an op maps 0 to 0, so that missing entries stay missing."""
        if self.dtype == dtypes.string:
            return False
        zero = op.run(
            [new_tensor(_zero(module_of(self.values), self.dtype))], attributes
        )
        return isinstance(zero, Tensor) and bool(zero.array == 0)

    def _factors(self, who, other):
        """Return the entries of a dense tensor, broadcast to the shape, at the indices."""
        rank, own = other.shape.rank, tuple(self.shape)
        if rank == 0:
            return other
        sizes = tuple(other.shape)
        fits = rank <= len(own) and all(
            [_is_one(n) or agree(n, m) for n, m in zip(sizes, own[len(own) - rank :])]
        )
        if not fits:
            raise ShapeError(
                who, f"a dense tensor must broadcast to {self.shape}, the shape of the "
                "sparse one", other=other,
            )  # fmt: skip
        columns = unstack(self.indices, axis=1)[len(own) - rank :]
        picks = [zeros_like(at) if _is_one(n) else at for n, at in zip(sizes, columns)]
        return gather_nd(other, stack(picks, axis=1))


def _shape(input, out_type=dtypes.int32, name=None):
    return cast(input.dense_shape, out_type)


def _size(input, out_type=dtypes.int32, name=None):
    return cast(reduce_prod(input.dense_shape), out_type)


# function of several ops -> rule with its arguments
FUNCTION_RULES = {shape.__wrapped__: _shape, size.__wrapped__: _size}


def _zero(xp, dtype):
    return xp.zeros((), dtype.dtype)


def _is_one(n):
    return type(n) is int and n == 1
