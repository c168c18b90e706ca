"""`keras.ops.linalg` and products: decompositions, inverses, norms, `matmul`, `einsum`, ..."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from tapewright.autodiff.forward import ForwardAccumulator
from tapewright.core.dtypes import finfo, int8, int32
from tapewright.core.errors import ShapeError
from tapewright.core.nest import map_structure
from tapewright.core.rules import normalize_axis
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import Axes, Axis, TensorLike
from tapewright.ops.array import shape as shapes
from tapewright.ops.array.conversion import cast, conj
from tapewright.ops.array.creation import eye, zeros_like
from tapewright.ops.array.sorting import argsort
from tapewright.ops.convolution.conv import conv1d
from tapewright.ops.linalg import (
    contraction,
    decompositions,
    linear_systems,
    matrix_functions,
)
from tapewright.ops.linalg import lu as _lu
from tapewright.ops.linalg.matmul import cross as _cross
from tapewright.ops.linalg.matmul import matmul as _matmul
from tapewright.ops.linalg.matmul import matrix_transpose
from tapewright.ops.math.comparison import not_equal
from tapewright.ops.math.elementwise import abs, clip_by_value, sqrt
from tapewright.ops.math.reduction import (
    reduce_any,
    reduce_mean,
    reduce_min,
    reduce_sum,
)

from .arrays import diagonal, moveaxis, pad, ravel, transpose
from .elementwise import multiply
from .operation import FLOATS, OperationFamily
from .promotion import promote, to_floating

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "corrcoef",
    "correlate",
    "cross",
    "det",
    "dot",
    "eig",
    "eigh",
    "einsum",
    "inner",
    "inv",
    "jvp",
    "kron",
    "logdet",
    "lstsq",
    "lu_factor",
    "matmul",
    "matrix_rank",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "tensordot",
    "vdot",
]

operation = OperationFamily(__name__, "linalg")


# ----------------------------------------------------------------------- products


def _promote_factors(*operands):
    """Return the operands in their common dtype: int32 for int8 alone, whose sums overflow."""
    operands = [
        x if isinstance(x, (int, float)) else convert_to_tensor(x) for x in operands
    ]
    if all([getattr(x, "dtype", None) is int8 for x in operands]):
        return [cast(x, int32) for x in operands]
    return promote(*operands)


@operation(call="x1 x2", module="numpy")
def matmul(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Matrix product over the last two axes; the axes in front broadcast.

    Args:
        x1: First tensor; a vector is a row.
        x2: Second tensor; a vector is a column.

    Shapes:
        ``[..., m, k]`` and ``[..., k, n]`` to ``[..., m, n]``; the result lacks the
        axis of a vector.

    Example:
        >>> keras.ops.matmul([1.0, 2.0], [[1.0], [3.0]]).numpy()
        array([7.], dtype=float32)
    """
    x1, x2 = _promote_factors(x1, x2)
    if x1.ndim > 1 and x2.ndim > 1:
        return _matmul(x1, x2)
    left = x1[None, :] if x1.ndim == 1 else x1
    right = x2[:, None] if x2.ndim == 1 else x2
    out = _matmul(left, right)
    axes = (-2,) * (x1.ndim == 1) + (-1,) * (x2.ndim == 1)
    return shapes.squeeze(out, axes)


@operation(call="x1 x2", module="numpy")
def dot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Dot product over the last axis of ``x1`` and the second-to-last axis of ``x2``.

    Args:
        x1: First tensor; a scalar multiplies ``x2``.
        x2: Second tensor; a vector has only one axis to sum over, a scalar multiplies
            ``x1``.

    Shapes:
        ``[..., k]`` and ``[*other, k, n]`` to ``[..., *other, n]``.

    Example:
        >>> keras.ops.dot([1, 2], [3, 4]).numpy()
        np.int32(11)
    """
    x1, x2 = promote(x1, x2)
    if not (x1.ndim and x2.ndim):
        return multiply(x1, x2)
    return tensordot(x1, x2, [[-1], [max(x2.ndim - 2, 0)]])


@operation(call="x1 x2", module="numpy")
def inner(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Inner product over the last axes of both tensors.

    Args:
        x1: First tensor; a scalar multiplies ``x2``.
        x2: Second tensor; a scalar multiplies ``x1``.

    Shapes:
        ``[*left, k]`` and ``[*right, k]`` to ``[*left, *right]``.

    Example:
        >>> keras.ops.inner([[1, 2], [3, 4]], [1, 1]).numpy()
        array([3, 7], dtype=int32)
    """
    x1, x2 = promote(x1, x2)
    return tensordot(x1, x2, [[-1], [-1]]) if x1.ndim and x2.ndim else multiply(x1, x2)


@operation(call="x1 x2", module="numpy")
def outer(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Outer product: multiply each entry of ``x1`` by each entry of ``x2``.

    Args:
        x1: First tensor, which is flattened to ``[m]``.
        x2: Second tensor, which is flattened to ``[n]``.

    Shapes:
        The result is ``[m, n]``.

    Example:
        >>> keras.ops.outer([1, 2], [3, 4]).numpy()
        array([[3, 4],
               [6, 8]], dtype=int32)
    """
    x1, x2 = promote(x1, x2)
    return multiply(ravel(x1)[:, None], ravel(x2))


@operation(call="x1 x2", module="numpy")
def vdot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Dot product of all entries, with ``x1`` conjugated.

    Args:
        x1: First tensor, which is flattened.
        x2: Second tensor, which is flattened.

    Returns:
        A scalar.

    Example:
        >>> keras.ops.vdot([1 + 1j], [1 + 1j]).numpy()
        np.complex128(2+0j)
    """
    x1, x2 = promote(x1, x2)
    products = multiply(conj(ravel(x1)), ravel(x2))
    return reduce_any(products) if products.dtype.is_bool else reduce_sum(products)


@operation(call="x1 x2", module="numpy")
def tensordot(x1: TensorLike, x2: TensorLike, axes: int | Sequence[Any] = 2) -> Tensor:
    """Tensor contraction: sums of products over given axes.

    Args:
        x1: First tensor.
        x2: Second tensor.
        axes: Number n, to contract the last n axes of ``x1`` with the first n axes of
            ``x2``; or a pair of an axis or a list of axes for each tensor.

    Shapes:
        The remaining axes of ``x1``, then the remaining axes of ``x2``.

    Raises:
        ValueError: If the number of axes exceeds the smaller rank.

    Example:
        >>> keras.ops.tensordot([[1, 2], [3, 4]], [1, 1], axes=1).numpy()
        array([3, 7], dtype=int32)
    """
    x1, x2 = promote(x1, x2)
    if isinstance(axes, int):
        return contraction.tensordot(x1, x2, axes)
    ours, theirs = ([a] if isinstance(a, int) else list(a) for a in axes)
    return contraction.tensordot(x1, x2, [ours, theirs])


@operation(module="numpy")
def einsum(subscripts: str, *operands: TensorLike, **kwargs: Any) -> Tensor:
    """Einstein summation: sums of products over named axes.

    Args:
        subscripts: Names of the axes of the operands and the result, such as
            "ij,jk->ik".
        *operands: Tensors.
        **kwargs: Options of `tw.einsum`.

    Example:
        >>> keras.ops.einsum("ij,jk->ik", [[1, 2]], [[3], [4]]).numpy()
        array([[11]], dtype=int32)
    """
    return contraction.einsum(subscripts, *_promote_factors(*operands), **kwargs)


@operation(call="x1 x2", module="numpy")
def cross(
    x1: TensorLike,
    x2: TensorLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: Axis | None = None,
) -> Tensor:
    """Cross product of vectors of size 3 or 2.

    A vector of size 2 has a third entry of 0. Two vectors of size 2 give only the third
    entry of their product.

    Args:
        x1: First tensor.
        x2: Second tensor; broadcasts with ``x1``.
        axisa: Axis of the vectors in ``x1``.
        axisb: Axis of the vectors in ``x2``.
        axisc: Axis of the vectors in the result.
        axis: Axis of the vectors in all three tensors; overrides the other arguments.

    Raises:
        ValueError: If the vectors have another size.

    Example:
        >>> keras.ops.cross([1, 0, 0], [0, 1, 0]).numpy()
        array([0, 0, 1], dtype=int32)
    """
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    x1, x2 = promote(x1, x2)
    x1, x2 = moveaxis(x1, axisa, -1), moveaxis(x2, axisb, -1)
    sizes = x1.shape[-1], x2.shape[-1]
    if not {*sizes} <= {2, 3}:
        raise ValueError(f"cross: the axes must have size 2 or 3, got {sizes}")
    if sizes == (2, 2):
        return x1[..., 0] * x2[..., 1] - x1[..., 1] * x2[..., 0]
    out = _cross(*[_pad_to_3(x) for x in (x1, x2)])
    return moveaxis(out, -1, axisc)


def _pad_to_3(x):
    """Append a third entry of 0 to vectors of two."""
    return x if x.shape[-1] == 3 else pad(x, [(0, 0)] * (x.ndim - 1) + [(0, 1)])


@operation(call="x1 x2", module="numpy")
def kron(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Kronecker product: a block matrix with each entry of ``x1`` times ``x2``.

    Args:
        x1: First tensor.
        x2: Second tensor.

    Shapes:
        The size of each axis is the product of both sizes.

    Example:
        >>> keras.ops.kron([[1, 2]], [[1], [1]]).numpy()
        array([[1, 2],
               [1, 2]], dtype=int32)
    """
    x1, x2 = promote(x1, x2)
    rank = max(x1.ndim, x2.ndim)
    ours, theirs = ((1,) * (rank - x.ndim) + tuple(x.shape) for x in (x1, x2))
    x1 = shapes.reshape(x1, [n for size in ours for n in (size, 1)])
    x2 = shapes.reshape(x2, [n for size in theirs for n in (1, size)])
    return shapes.reshape(multiply(x1, x2), [m * n for m, n in zip(ours, theirs)])


@operation(call="x1 x2", module="numpy")
def correlate(x1: TensorLike, x2: TensorLike, mode: str = "valid") -> Tensor:
    """Cross-correlation of two vectors: ``sum_n x1[n + k] * x2[n]`` for each k.

    Args:
        x1: First vector.
        x2: Second vector.
        mode: "valid" for complete overlaps only, "same" for the length of the longer
            vector, or "full" for all overlaps.

    Raises:
        ValueError: If ``mode`` is unknown.

    Example:
        >>> keras.ops.correlate([1.0, 2.0, 3.0], [0.0, 1.0]).numpy()
        array([2., 3.], dtype=float32)
    """
    if mode not in ("valid", "same", "full"):
        raise ValueError(
            f"correlate: mode must be 'valid', 'same' or 'full', got {mode!r}"
        )
    x1, x2 = promote(x1, x2, at_least=float)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError("correlate", "x1 and x2 must be vectors", x1=x1, x2=x2)
    n, m = x1.shape[0], x2.shape[0]
    if mode != "valid":
        x1 = pad(x1, m - 1)
    elif n < m:  # as NumPy: the longer one is gone along
        return correlate(x2, x1)[::-1]
    out = conv1d(x1[None, :, None], x2[:, None, None], 1, "VALID")[0, :, 0]
    if mode != "same":
        return out
    start = (n + m - 1 - max(n, m)) // 2
    return out[start : start + max(n, m)]


@operation(module="numpy")
def corrcoef(x: TensorLike) -> Tensor:
    """Compute the Pearson correlation coefficients of the rows of a matrix.

    Args:
        x: Matrix ``[m, n]`` with a variable in each row.

    Shapes:
        ``[m, n]`` to ``[m, m]``.

    Example:
        >>> keras.ops.corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).numpy().round(4)
        array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    x = to_floating(x)
    if x.ndim > 2:
        raise ValueError(f"corrcoef: x must be a matrix, got shape {tuple(x.shape)}")
    x = x if x.ndim else ravel(x)
    away = x - reduce_mean(x, -1, True)
    products = _matmul(away, transpose(away)) if x.ndim > 1 else reduce_sum(away * away)
    if x.ndim < 2:
        return products / products
    lengths = sqrt(diagonal(products))
    return clip_by_value(products / outer(lengths, lengths), -1.0, 1.0)


# ---------------------------------------------------------------------- factors

_SQUARE = {"x": "Square matrices ``[..., n, n]``; integers are cast to `floatx`."}

det = operation.floats(
    "det", matrix_functions.det, args=_SQUARE, details="""
Shapes:
    ``[..., n, n]`` to ``[...]``.

Example:
    >>> keras.ops.det([[2.0, 0.0], [0.0, 4.0]]).numpy()
    np.float32(8.0)
""",
)  # fmt: skip
eig = operation.floats(
    "eig", decompositions.eig, kinds="", args=_SQUARE, details="""
``x @ v = v @ diag(e)``; the eigenvalues are in no order.

Shapes:
    ``[..., n, n]`` to ``e`` ``[..., n]`` and ``v`` ``[..., n, n]``.

Returns:
    ``(e, v)``.
""",
)  # fmt: skip
eigh = operation.floats(
    "eigh", decompositions.eigh, kinds="", args={
        "x": "Hermitian matrices ``[..., n, n]``, of which only the lower triangle is "
        "read; integers are cast to `floatx`.",
    }, details="""
``x @ v = v @ diag(e)``.

Shapes:
    ``[..., n, n]`` to ``e`` ``[..., n]`` and ``v`` ``[..., n, n]``.

Returns:
    ``(e, v)``.

Example:
    >>> keras.ops.eigh([[2.0, 0.0], [0.0, 1.0]])[0].numpy()
    array([1., 2.], dtype=float32)
""",
)  # fmt: skip
inv = operation.floats(
    "inv", linear_systems.inv, "Compute the inverse of square matrices.",
    same_as="inv", args=_SQUARE, details="""
Shapes:
    ``[..., n, n]``, input and result.

Raises:
    ValueError: If a matrix is singular (NumPy's LinAlgError).

Example:
    >>> keras.ops.inv([[2.0, 0.0], [0.0, 4.0]]).numpy()
    array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
""",
)  # fmt: skip
logdet = operation.floats(
    "logdet", matrix_functions.logdet,
    "Compute the log-determinant of Hermitian positive definite matrices.",
    kinds="", module="math", args=_SQUARE, details="""
The result is real.

Shapes:
    ``[..., n, n]`` to ``[...]``.

Raises:
    ValueError: If a matrix is not positive definite (NumPy's LinAlgError).
""",
)  # fmt: skip
slogdet = operation.floats(
    "slogdet", lambda x: tuple(matrix_functions.slogdet(x)),
    "Compute the sign and the logarithm of the absolute value of the determinant.",
    module="numpy", args=_SQUARE, details="""
Shapes:
    ``[..., n, n]`` to ``[...]``, both.

Returns:
    ``(sign, log_abs_determinant)``.
""",
)  # fmt: skip


@operation(same_as="cholesky", kinds=FLOATS)
def cholesky(x: TensorLike, upper: bool = False) -> Tensor:
    """Cholesky decomposition: the lower triangular L with ``x = L @ L^H``.

    Args:
        x: Hermitian positive definite matrices ``[..., n, n]``.
        upper: If True, return the conjugate transpose of L.

    Shapes:
        ``[..., n, n]``, input and result.

    Raises:
        ValueError: If a matrix is not positive definite (NumPy's LinAlgError).

    Example:
        >>> keras.ops.cholesky([[4.0, 2.0], [2.0, 5.0]]).numpy()
        array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    result = decompositions.cholesky(to_floating(x))
    return conj(matrix_transpose(result)) if upper else result


@operation
def cholesky_inverse(x: TensorLike, upper: bool = False) -> Tensor:
    """Compute the inverse of a matrix from its `cholesky` factor.

    Args:
        x: Cholesky factors ``[..., n, n]``.
        upper: If True, ``x`` is upper triangular, else lower.

    Shapes:
        ``[..., n, n]``, input and result.

    Example:
        >>> keras.ops.cholesky_inverse([[2.0, 0.0], [0.0, 1.0]]).numpy()
        array([[0.25, 0.  ],
               [0.  , 1.  ]], dtype=float32)
    """
    x = to_floating(x)
    x = conj(matrix_transpose(x)) if upper else x
    return linear_systems.cholesky_solve(x, _identity_like(x))


def _identity_like(x):
    return zeros_like(x) + eye(x.shape[-1], dtype=x.dtype)


@operation
def pinv(x: TensorLike, rcond: float | None = None) -> Tensor:
    """Compute the Moore-Penrose pseudo-inverse of matrices.

    Args:
        x: Matrices ``[..., m, n]``.
        rcond: Singular values up to ``rcond`` times the largest one count as zero.

    Shapes:
        ``[..., m, n]`` to ``[..., n, m]``.

    Example:
        >>> keras.ops.pinv([[2.0, 0.0], [0.0, 0.0]]).numpy()
        array([[0.5, 0. ],
               [0. , 0. ]], dtype=float32)
    """
    return linear_systems.pinv(to_floating(x), rcond)


@operation
def matrix_rank(x: TensorLike, tol: float | None = None) -> Tensor:
    """Compute the rank of matrices: the number of singular values above ``tol``.

    Args:
        x: Matrices ``[..., m, n]``.
        tol: Tolerance; by default the largest singular value times the longer side
            times the rounding error of the dtype.

    Returns:
        Tensor ``[...]`` of int32.

    Example:
        >>> keras.ops.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).numpy()
        np.int32(1)
    """
    return cast(decompositions.matrix_rank(to_floating(x), tol), "int32")


@operation
def qr(x: TensorLike, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """QR decomposition: orthonormal columns ``q`` and a triangle ``r`` with ``x = q @ r``.

    Args:
        x: Matrices ``[..., m, n]``.
        mode: "reduced" or "complete".

    Shapes:
        ``q`` ``[..., m, k]`` and ``r`` ``[..., k, n]``, where k is the smaller of m and
        n, or m with "complete".

    Returns:
        ``(q, r)``.

    Raises:
        ValueError: If ``mode`` is unknown.
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode must be 'reduced' or 'complete', got {mode!r}")
    return tuple(decompositions.qr(to_floating(x), mode == "complete"))


@operation
def lu_factor(x: TensorLike) -> tuple[Tensor, Tensor]:
    """LU decomposition of square matrices, with row pivoting.

    Args:
        x: Square matrices ``[..., n, n]``.

    Returns:
        ``(lu, p)``: the packed factors ``[..., n, n]``, as in `tw.linalg.lu`, and the
        int32 indices ``[..., n]`` of the rows of ``L @ U`` that are the rows of ``x``.

    Raises:
        ValueError: If a matrix is singular.

    Example:
        >>> lu, p = keras.ops.lu_factor([[1.0, 2.0], [2.0, 1.0]])
        >>> lu.numpy().tolist(), p.numpy().tolist()
        ([[2.0, 1.0], [0.5, 1.5]], [1, 0])
    """
    packed, rows = _lu.lu(to_floating(x))
    return packed, argsort(rows)


@overload
def svd(
    x: TensorLike, full_matrices: bool = True, compute_uv: Literal[True] = True
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def svd(
    x: TensorLike, full_matrices: bool = True, *, compute_uv: Literal[False]
) -> Tensor: ...
@operation(class_name="SVD")
def svd(x: TensorLike, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Singular value decomposition: ``x = u @ diag(s) @ v^H``.

    Args:
        x: Matrices ``[..., m, n]``.
        full_matrices: If False, compute only the first k columns of ``u`` and rows of
            ``v^H``, where k is the smaller of m and n.
        compute_uv: If False, return ``s`` alone.

    Shapes:
        ``u`` ``[..., m, m]``, ``s`` ``[..., k]`` and ``v^H`` ``[..., n, n]``; without
        ``full_matrices`` ``u`` ``[..., m, k]`` and ``v^H`` ``[..., k, n]``.

    Returns:
        ``(u, s, v^H)``, with ``s`` in descending order, or ``s``.

    Example:
        >>> keras.ops.svd([[0.0, 2.0], [1.0, 0.0]], compute_uv=False).numpy()
        array([2., 1.], dtype=float32)
    """
    result = decompositions.svd(to_floating(x), full_matrices, compute_uv)
    if not compute_uv:
        return result
    s, u, v = result
    return u, s, conj(matrix_transpose(v))


def _as_columns(a, b):
    """Return ``b`` with an axis of columns, and True if it had one axis less than ``a``."""
    a, b = promote(a, b, at_least=float)
    is_vector = b.ndim == a.ndim - 1
    return a, (b[..., None] if is_vector else b), is_vector


@operation(call="a b", same_as="solve", kinds=FLOATS)
def solve(a: TensorLike, b: TensorLike) -> Tensor:
    """Solve the linear systems ``a @ x = b``.

    Args:
        a: Square matrices ``[..., n, n]``.
        b: Right-hand sides, ``[..., n, k]`` for columns or ``[..., n]`` for one.

    Shapes:
        The result has the shape of ``b``.

    Raises:
        ValueError: If a matrix is singular (NumPy's LinAlgError).

    Example:
        >>> keras.ops.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]).numpy()
        array([1. , 0.5], dtype=float32)
    """
    a, b, is_vector = _as_columns(a, b)
    result = linear_systems.solve(a, b)
    return result[..., 0] if is_vector else result


@operation(call="a b")
def solve_triangular(a: TensorLike, b: TensorLike, lower: bool = False) -> Tensor:
    """Solve linear systems ``a @ x = b`` with triangular matrices.

    Args:
        a: Triangular matrices ``[..., n, n]``; the other half is not read.
        b: Right-hand sides, ``[..., n, k]`` for columns or ``[..., n]`` for one.
        lower: If True, ``a`` is lower triangular, else upper.

    Shapes:
        The result has the shape of ``b``.

    Raises:
        ValueError: If there is a zero on a diagonal (NumPy's LinAlgError).

    Example:
        >>> keras.ops.solve_triangular([[2.0, 1.0], [0.0, 4.0]], [2.0, 4.0]).numpy()
        array([0.5, 1. ], dtype=float32)
    """
    a, b, is_vector = _as_columns(a, b)
    result = linear_systems.triangular_solve(a, b, lower)
    return result[..., 0] if is_vector else result


@operation(call="a b")
def lstsq(a: TensorLike, b: TensorLike, rcond: float | None = None) -> Tensor:
    """Least-squares solution: the shortest ``x`` that minimizes ``|a @ x - b|``.

    Args:
        a: Matrices ``[..., m, n]``.
        b: Right-hand sides, ``[..., m, k]`` for columns or ``[..., m]`` for one.
        rcond: Singular values up to ``rcond`` times the largest one count as zero.

    Shapes:
        The result is ``[..., n, k]`` or ``[..., n]``.
    """
    a, b, is_vector = _as_columns(a, b)
    if rcond is None:
        rcond = float(finfo(a.dtype.dtype).eps) * max(a.shape[-2:])
    result = _matmul(linear_systems.pinv(a, rcond), b)
    return result[..., 0] if is_vector else result


@operation
def norm(
    x: TensorLike,
    ord: float | str | None = None,
    axis: Axes = None,
    keepdims: bool = False,
) -> Tensor:
    """Compute the norm of vectors over one axis, or of matrices over two axes.

    Args:
        x: Input tensor.
        ord: Order of the norm; None is the Euclidean norm. For vectors a number,
            ``inf`` or ``-inf``; for matrices 1, -1, 2, -2, ``inf``, ``-inf``, "fro" or
            "nuc".
        axis: Axis of the vectors, or pair of axes of the matrices. None computes the
            norm of all entries or, with an ``ord``, of ``x`` as one vector or matrix.
        keepdims: If True, keep reduced axes with size 1.

    Raises:
        ValueError: If ``ord`` is unknown, or the number of axes does not fit it.

    Example:
        >>> keras.ops.norm([[3.0, 4.0], [6.0, 8.0]], axis=1).numpy()
        array([ 5., 10.], dtype=float32)
    """
    x = to_floating(x)
    if axis is None and x.ndim == 2 and ord is not None:
        axis = (0, 1)
    if axis is None and ord is not None and x.ndim != 1:
        raise ValueError(f"norm: axis must be given for ord {ord!r} and {x.ndim} axes")
    axes = normalize_axis("norm", axis, x.ndim)
    if ord is None:  # over any number of axes
        result = matrix_functions.norm(_merge_axes(x, axes), axis=-1)
        return shapes.expand_dims(result, sorted(axes)) if keepdims else result
    if len(axes) not in (1, 2):
        raise ValueError(
            f"norm: axis must be one axis or two for ord {ord!r}, got {axis}"
        )
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    (axis,) = axes
    if ord == -math.inf:
        return reduce_min(abs(x), axis, keepdims)
    if ord == 0:
        return reduce_sum(cast(not_equal(x, 0.0), x.dtype), axis, keepdims)
    if not isinstance(ord, str) and ord < 0:
        return reduce_sum(abs(x) ** ord, axis, keepdims) ** (1.0 / ord)
    return matrix_functions.norm(x, ord, axis, keepdims)


def _merge_axes(x, axes):
    """Join these axes to one, the last."""
    kept = [a for a in range(x.ndim) if a not in axes]
    sizes = [*[x.shape[a] for a in kept], math.prod([x.shape[a] for a in axes])]
    return shapes.reshape(shapes.transpose(x, [*kept, *axes]), sizes)


def _matrix_norm(x, ord, axes, keepdims):
    rows, columns = axes
    if ord in (-1, -math.inf):
        first, second = (rows, columns) if ord == -1 else (columns, rows)
        result = reduce_min(reduce_sum(abs(x), first, True), second, True)
        return result if keepdims else shapes.squeeze(result, axes)
    if ord == -2:
        kept = [a for a in range(x.ndim) if a not in axes]
        values = decompositions.svd(
            shapes.transpose(x, [*kept, *axes]), compute_uv=False
        )
        result = reduce_min(values, -1)
        return shapes.expand_dims(result, sorted(axes)) if keepdims else result
    return matrix_functions.norm(x, ord, axes, keepdims)


def jvp(
    fun: Callable[..., Any],
    primals: Sequence[TensorLike],
    tangents: Sequence[TensorLike],
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Compute the outputs of a function and its Jacobian-vector product (forward mode).

    Args:
        fun: Function of the primals.
        primals: Arguments of ``fun``.
        tangents: Tangents of the arguments, in their shapes.
        has_aux: If True, ``fun`` returns a pair, of which the second is not
            differentiated and becomes a third result.

    Returns:
        ``(outputs, tangents)``.

    Example:
        >>> value, slope = keras.ops.jvp(lambda x: x * x, [3.0], [1.0])
        >>> float(value), float(slope)
        (9.0, 6.0)
    """
    primals, tangents = (
        [map_structure(to_floating, x) for x in values]
        for values in (primals, tangents)
    )
    with ForwardAccumulator(primals, tangents) as accumulator:
        outputs = fun(*primals)
    outputs, *aux = outputs if has_aux else (outputs,)

    def slope(x):
        result = accumulator.jvp(x)
        return zeros_like(x) if result is None else result

    return (outputs, map_structure(slope, outputs), *aux)
