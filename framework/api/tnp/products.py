"""`tw.experimental.numpy`: matrix products, and sums of products over axes."""

from __future__ import annotations

from typing import Any

from tapewright.core.messages.argument_validation import one_of
from tapewright.core.tensor import Tensor
from tapewright.core.typing import DTypeLike, TensorLike
from tapewright.keras import ops
from tapewright.ops.array import shape as shapes
from tapewright.ops.array.conversion import cast
from tapewright.ops.linalg import contraction

from .arrays import diagonal
from .definition import define
from .promotion import arrays, asarray, promote
from .reductions import sum as _sum

__all__ = [
    "cross",
    "dot",
    "einsum",
    "inner",
    "kron",
    "matmul",
    "outer",
    "polyval",
    "tensordot",
    "trace",
    "vdot",
]

cross = define(ops.cross, promote, "a b")
dot = define(ops.dot, promote, "a b")
inner = define(ops.inner, promote, "a b")
kron = define(ops.kron, promote, "a b")
outer = define(ops.outer, promote, "a b")
tensordot = define(ops.tensordot, promote, "a b")
vdot = define(ops.vdot, promote, "a b")


def matmul(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Matrix product over the last two axes; leading axes broadcast.

    Args:
        x1: First tensor; a vector is a row.
        x2: Second tensor; a vector is a column.

    Shapes:
        ``[..., m, k]`` and ``[..., k, n]`` to ``[..., m, n]``; the axis of a vector is
        removed from the result.

    Example:
        >>> tw.experimental.numpy.matmul([1, 2], [[1, 0], [3, 4]]).numpy()
        array([7, 8])
    """
    x1, x2 = promote(x1, x2)
    return cast(ops.matmul(x1, x2), x1.dtype)  # `keras.ops` sums int8 in int32


def einsum(subscripts: str, *operands: TensorLike, **kwargs: Any) -> Tensor:
    """Einstein summation: sums of products by named axes.

    ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    Args:
        subscripts: Names of the axes of each operand and of the result.
        *operands: Tensors to multiply.
        **kwargs: ``casting``: "safe" (operands are promoted) or "no"; ``optimize``: a
            bool, "greedy" or "optimal", which affects only the order of the sums.

    Raises:
        ValueError: If another keyword argument or value is given.

    Example:
        >>> tw.experimental.numpy.einsum("i,i->", [1, 2], [3, 0.5]).numpy()
        np.float64(4.0)
    """
    casting = one_of("einsum", "casting", kwargs.pop("casting", "safe"), ["safe", "no"])
    optimize = kwargs.pop("optimize", False)
    if optimize not in (False, True, "greedy", "optimal") or kwargs:
        raise ValueError(
            "einsum: keyword arguments must be casting, or optimize (a bool, 'greedy' or "
            "'optimal'); got "
            f"optimize={optimize!r} and {kwargs}"
        )
    operands = (promote if casting == "safe" else arrays)(*operands)
    method = "optimal" if optimize == "optimal" else "greedy"
    return contraction.einsum(subscripts, *operands, optimize=method)


def polyval(p: TensorLike, x: TensorLike) -> Tensor:
    """Evaluate a polynomial at ``x``.

    Args:
        p: Vector of coefficients, the highest power first.
        x: Input tensor.

    Shapes:
        The result has the shape of ``x``.

    Example:
        >>> tw.experimental.numpy.polyval([1, 0, 2], [3, 0.5]).numpy()
        array([11.  ,  2.25])
    """
    p, x = promote(p, x)
    value, *rest = [p] if p.ndim == 0 else list(p)
    for coefficient in rest:
        value = value * x + coefficient
    return value if rest else shapes.broadcast_to(value, x.shape)


def trace(
    a: TensorLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Sum along a diagonal of matrices.

    Args:
        a: Tensor with two axes or more.
        offset: Number of the diagonal: 0 for the main one, positive above, negative
            below.
        axis1: Axis of the rows.
        axis2: Axis of the columns.
        dtype: Dtype in which to compute, and dtype of the result.

    Shapes:
        The two axes are removed.

    Example:
        >>> tw.experimental.numpy.trace([[1, 2], [3, 4]]).numpy()
        np.int64(5)
    """
    return _sum(diagonal(asarray(a, dtype), offset, axis1, axis2), -1, dtype)
