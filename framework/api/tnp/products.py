"""`tw.experimental.numpy`: matrix products, and sums of products over axes."""

from __future__ import annotations

from typing import Any

from tapewright.core.argument_validation import one_of
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
    """The matrix product over the last two axes; the axes in front broadcast.

    Shapes:
        ``[..., m, k]`` and ``[..., k, n]`` to ``[..., m, n]``. A vector is a row on the
        left and a column on the right, and the result lacks its axis.

    Example:
        >>> tw.experimental.numpy.matmul([1, 2], [[1, 0], [3, 4]]).numpy()
        array([7, 8])
    """
    x1, x2 = promote(x1, x2)
    return cast(ops.matmul(x1, x2), x1.dtype)  # `keras.ops` sums int8 in int32


def einsum(subscripts: str, *operands: TensorLike, **kwargs: Any) -> Tensor:
    """Sums of products by named axes: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    Args:
        kwargs: ``casting``, "safe" (operands meet in one dtype) or "no"; ``optimize``,
            a bool, "greedy" or "optimal", which changes the order of the sums alone.

    Raises:
        ValueError: For others.

    Example:
        >>> tw.experimental.numpy.einsum("i,i->", [1, 2], [3, 0.5]).numpy()
        np.float64(4.0)
    """
    casting = one_of("einsum", "casting", kwargs.pop("casting", "safe"), ["safe", "no"])
    optimize = kwargs.pop("optimize", False)
    if optimize not in (False, True, "greedy", "optimal") or kwargs:
        raise ValueError(
            "einsum: takes casting, and optimize: a bool, 'greedy' or 'optimal'; got "
            f"optimize={optimize!r} and {kwargs}"
        )
    operands = (promote if casting == "safe" else arrays)(*operands)
    method = "optimal" if optimize == "optimal" else "greedy"
    return contraction.einsum(subscripts, *operands, optimize=method)


def polyval(p: TensorLike, x: TensorLike) -> Tensor:
    """The polynomial with coefficients ``p``, the highest power first, at ``x``.

    Shapes:
        ``p`` ``[n]``; the result has the shape of ``x``.

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
    """The sum of the ``offset``-th diagonal of the matrices in ``axis1`` and ``axis2``.

    Shapes:
        The result lacks the two axes.

    Example:
        >>> tw.experimental.numpy.trace([[1, 2], [3, 4]]).numpy()
        np.int64(5)
    """
    return _sum(diagonal(asarray(a, dtype), offset, axis1, axis2), -1, dtype)
