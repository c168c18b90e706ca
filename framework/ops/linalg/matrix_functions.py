"""Functions of matrices: determinants, the exponential, norms, least squares.

Matrices are the last two axes; leading axes are a batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tapewright.core.dispatch import composite
from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import DTypeError, InvalidArgumentError, cast_advice
from tapewright.core.op_definition.costs import cubic
from tapewright.core.primitive import primitive
from tapewright.core.rules import batch_leading
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import Axes, TensorLike

from ..array.conversion import cast, complex, conj, imag, real
from ..array.creation import eye, zeros_like
from ..array.joining import concat
from ..array.shape import expand_dims, squeeze, transpose
from ..math.comparison import masked, not_equal
from ..math.elementwise import abs, log, norm_sqrt, square
from ..math.reduction import reduce_max, reduce_sum
from .contraction import einsum
from .decompositions import cholesky, gram_factor, svd
from .linear_systems import (
    NOT_INVERTIBLE,
    by_lapack,
    cholesky_solve,
    infer_square,
    inv,
    pinv,
    square_size,
)
from .matmul import (
    adjoint,
    beside,
    matmul,
    matmul_p,
    matrix_transpose,
    pair,
)

__all__ = [
    "det",
    "expm",
    "logdet",
    "lstsq",
    "norm",
    "normalize",
    "slogdet",
]


# ----------------------------------------------------------------------- determinants


@primitive(
    type_name="MatrixDeterminant",
    ignores_float_errors=True,
    floating=True,
    half=False,
    cost=cubic(2 / 3),
    batch=batch_leading,
)
def det(xp, input: TensorLike):
    """Compute the determinant of each matrix.

    Its first and second derivatives are exact for singular matrices too.

    Args:
        input: Square matrices.

    Shapes:
        ``[..., n, n]`` to ``[...]``.

    Example:
        >>> tw.linalg.det([[1.0, 2.0], [3.0, 5.0]]).numpy()
        np.float32(-1.0)
    """
    result = by_lapack("det", NOT_INVERTIBLE, xp.linalg.det, input)
    return _unless_infinite(xp, input, result, result == 0)


def _unless_infinite(xp, matrix, result, singular):
    """Return ``result``; NaN where a zero pivot meets an infinite one, which LAPACK ignores."""
    lost = singular & ~xp.isfinite(matrix).all((-2, -1))
    return xp.where(lost, result.dtype.type(np.nan), result) if lost.any() else result


@det.infer
def _(input):
    square_size(det.primitive, input)
    return TensorSpec(input.shape[:-2], input.dtype)


@det.vjp("input")
def _(g, input):
    return g[..., None, None] * cofactor(input)


@primitive(
    floating=True, half=False, may_raise=True, infer=infer_square, batch=batch_leading
)
def cofactor(xp, x: TensorLike):
    """Compute the cofactors ``det(x) * inv(x)^T``, by singular values: right at any rank."""
    u, s, turned = xp.linalg.svd(x)
    sign = (xp.linalg.det(u) * xp.linalg.det(turned))[..., None, None]
    return sign * (
        (u.conj() * _products_of_others(xp, s)[..., None, :]) @ turned.conj()
    )


@cofactor.kernel_for("numpy")
def _(xp, x):
    try:
        inverse = np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return cofactor.primitive.kernel(np, x)
    return np.linalg.det(x)[..., None, None] * np.swapaxes(inverse, -1, -2)


def _products_of_others(xp, s):
    """Compute, for each entry of the last axis, the product of the others without division."""
    ones = xp.ones_like(s[..., :1])
    before = xp.cumprod(xp.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    behind = xp.concatenate([ones, s[..., :0:-1]], axis=-1)
    return before * xp.cumprod(behind, axis=-1)[..., ::-1]


@cofactor.vjp("x")
def _(g, x):
    return cofactor_slope(g, x)


@primitive(
    floating=True, half=False, may_raise=True, linear=[{"h"}], batch=batch_leading
)
def cofactor_slope(xp, h: TensorLike, x: TensorLike):
    """Compute the gradient of ``sum(h * cofactor(x))`` by ``x``, right at any rank too.

    For a diagonal matrix of the singular values it consists of products without two of
    them; the singular vectors rotate it to the gradient for ``x``.
    """
    u, s, turned = xp.linalg.svd(x)
    unit = xp.eye(s.shape[-1], dtype=s.dtype)
    without = _products_of_others(xp, s[..., None, :] * (1 - unit) + unit) * (1 - unit)
    inner = xp.swapaxes(u.conj(), -1, -2) @ h @ xp.swapaxes(turned.conj(), -1, -2)
    diagonal = (xp.diagonal(inner, axis1=-2, axis2=-1)[..., None, :] * without).sum(-1)
    slope = diagonal[..., None] * unit - xp.swapaxes(inner * without, -1, -2)
    sign = (xp.linalg.det(u) * xp.linalg.det(turned))[..., None, None]
    return sign * (u.conj() @ slope @ turned.conj())


@cofactor_slope.infer
def _(h, x):
    return x


@cofactor_slope.vjp("h")
def _(g, x):
    return cofactor_slope(g, x)


@cofactor_slope.vjp("x")
def _(g, h, x):
    """Use the inverse: beyond the second derivative a determinant must not be zero."""
    turned = matrix_transpose(inv(x))
    first, second = (matmul_p(turned, matmul_p(m, turned, True)) for m in (h, g))
    along_h, along_g = (reduce_sum(m * turned, (-2, -1), True) for m in (h, g))
    mixed = matmul_p(first, matmul_p(g, turned, True))
    other = matmul_p(second, matmul_p(h, turned, True))
    both = along_h * along_g - reduce_sum(g * first, (-2, -1), True)
    slope = both * turned - along_g * first - along_h * second + mixed + other
    return det(x)[..., None, None] * slope


class LogMatrixDeterminant(NamedTuple):
    """The result of `slogdet`."""

    sign: Tensor
    log_abs_determinant: Tensor


@primitive(
    type_name="LogMatrixDeterminant",
    multiple=True,
    ignores_float_errors=True,
    floating=True,
    half=False,
    cost=cubic(2 / 3),
    batch=batch_leading,
)
def _slogdet(xp, input: TensorLike):
    sign, size = by_lapack("slogdet", NOT_INVERTIBLE, xp.linalg.slogdet, input)
    size = _unless_infinite(xp, input, size, size == -np.inf)
    return sign, size.astype(input.dtype)


@_slogdet.infer
def _(input):
    square_size(_slogdet.primitive, input)
    spec = TensorSpec(input.shape[:-2], input.dtype)
    return spec, spec


@_slogdet.vjp("input")
def _(g, input, out, input_dtype):
    (g_sign, g_size), (sign, _) = g, out
    if as_dtype(input_dtype).is_complex:  # the sign turns, by the imaginary part
        g_size = complex(real(g_size), imag(g_sign * sign))
    return g_size[..., None, None] * matrix_transpose(inv(input))


def slogdet(input: TensorLike, name: str | None = None) -> LogMatrixDeterminant:
    """Compute the sign of the determinant of each matrix, and the logarithm of its modulus.

    ``det(input) = sign * exp(log_abs_determinant)``, which neither overflows nor
    underflows. A singular matrix results in 0 and -inf. Both results have the dtype of
    the input; the sign of a complex determinant is ``det / |det|``.

    Args:
        input: Square matrices.

    Shapes:
        ``[..., n, n]`` to ``[...]``, both results.

    Returns:
        A named tuple ``(sign, log_abs_determinant)``.

    Example:
        >>> tw.linalg.slogdet([[2.0, 0.0], [0.0, -2.0]]).sign.numpy()
        np.float32(-1.0)
    """
    return LogMatrixDeterminant(*_slogdet(input))


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Compute the logarithm of the determinant, a real number.

    Args:
        matrix: Hermitian positive definite matrices.

    Shapes:
        ``[..., n, n]`` to ``[...]``.

    Raises:
        ValueError: If a matrix is not positive definite (NumPy's LinAlgError).

    Example:
        >>> tw.linalg.logdet([[1.0, 0.0], [0.0, 1.0]]).numpy()
        np.float32(0.0)
    """
    diagonal = einsum("...ii->...i", cholesky(matrix))
    return reduce_sum(log(real(diagonal)), -1) * 2.0


# ------------------------------------------------------------------------- exponential

# Coefficients of the diagonal Pade approximant, and the 1-norm up to which it is exact to
# rounding: Higham, "The scaling and squaring method revisited" (2005), table 2.3.
PADE = {
    "float32": (3.925724783138660, (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1)),
    "float64": (5.371920351148152, (
        64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800,
        129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920,
        40840800, 960960, 16380, 182, 1,
    )),
}  # fmt: skip


@primitive(
    type_name="MatrixExponential",
    ignores_float_errors=True,
    floating=True,
    half=False,
    infer=infer_square,
    batch=batch_leading,
)
def expm(xp, input: TensorLike):
    """Matrix exponential: ``1 + A + A @ A / 2 + ...`` of each matrix.

    It is computed by scaling and squaring around a Pade approximant.

    Args:
        input: Square matrices.

    Shapes:
        ``[..., n, n]``, input and result.

    References:
        Higham, "The scaling and squaring method for the matrix exponential revisited"
        (2005).

    Example:
        >>> tw.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).numpy()
        array([[1., 1.],
               [0., 1.]], dtype=float32)
    """
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        raise ValueError("no square matrices")  # `infer` says it better
    reach, coefficients = PADE[xp.real(input[..., :1, :1]).dtype.name]
    if not input.size:
        return input.copy()
    sizes = xp.abs(input).sum(axis=-2).max(axis=-1)[..., None, None]
    sizes = xp.where(xp.isfinite(sizes), sizes, xp.zeros_like(sizes))
    halvings = xp.ceil(xp.log2(xp.maximum(sizes / reach, 1)))
    result = _pade(xp, input / xp.exp2(halvings).astype(sizes.dtype), coefficients)
    for done in range(int(halvings.max())):
        result = xp.where(halvings > done, result @ result, result)
    return result


def _pade(xp, a, coefficients):
    unit = xp.eye(a.shape[-1], dtype=a.dtype)
    squared = a @ a
    even, odd = unit * coefficients[0], unit * coefficients[1]
    powers = squared
    for c, d in zip(coefficients[2::2], coefficients[3::2]):
        even, odd = even + powers * c, odd + powers * d
        powers = powers @ squared if d > 1 else None
    odd = a @ odd
    return by_lapack("expm", NOT_INVERTIBLE, xp.linalg.solve, even - odd, even + odd)


@expm.vjp("input")
def _(g, input):
    """The corner of ``expm([[A^T, g], [0, A^T]])``: Higham, "Functions of matrices", 3.6."""
    count, last = input.shape[-1], len(input.shape) - 1
    turned = matrix_transpose(input)
    upper = concat([turned, g], axis=last)
    lower = concat([zeros_like(turned), turned], axis=last)
    return expm(concat([upper, lower], axis=last - 1))[..., :count, count:]


# ------------------------------------------------------------------------------- norms


@composite
def norm(
    tensor: TensorLike,
    ord: str | float = "euclidean",
    axis: Axes = None,
    keepdims: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the norm of vectors over one axis, or of matrices over a pair of axes.

    Where the norm is 0, its derivatives of every order are 0.

    Args:
        tensor: Input tensor.
        ord: For vectors "euclidean" (or 2), ``inf`` for the largest modulus, or a
            number p > 0 for ``sum(|x| ** p) ** (1 / p)``; for matrices "euclidean" or
            "fro", 1 for the largest column sum, ``inf`` for the largest row sum, 2 for
            the largest singular value, or "nuc" for the sum of the singular values.
        axis: Axis of vectors, or pair of axes of matrices; None flattens the tensor to
            one vector.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        The result lacks the axes in ``axis``, or has size 1 there with ``keepdims``.

    Returns:
        A tensor of the dtype of ``tensor``; for complex numbers of its real dtype,
        except for "euclidean".

    Raises:
        ValueError: If ``ord`` or ``axis`` is unknown.

    Example:
        >>> tw.norm([3.0, 4.0]).numpy()
        np.float32(5.0)
        >>> tw.norm([[3.0, 4.0], [6.0, 8.0]], axis=1).numpy()
        array([ 5., 10.], dtype=float32)
    """
    x, keepdims = convert_to_tensor(tensor), bool(keepdims)
    if isinstance(axis, (list, tuple)):
        return _matrix_norm(x, ord, axis, keepdims)
    if not (ord == "euclidean" if isinstance(ord, str) else ord > 0):
        raise InvalidArgumentError(
            "norm: ord must be 'euclidean', inf or a positive number for vectors, got "
            f"{ord!r} with axis {axis}"
        )
    if ord in ("euclidean", 2):
        if not x.dtype.is_differentiable:
            advice = cast_advice("tensor", "float32")
            what = f"tensor must be floating or complex; {advice}"
            raise DTypeError("norm", what, tensor=x)
        return _euclidean(x, axis, keepdims)
    size = abs(x)
    if ord == np.inf:
        return reduce_max(size, axis, keepdims)
    if ord == 1:
        return reduce_sum(size, axis, keepdims)
    return reduce_sum(size**ord, axis, keepdims) ** (1.0 / ord)


def _euclidean(x, axis, keepdims):
    squares = cast(real(x * conj(x)), x.dtype) if x.dtype.is_complex else square(x)
    return norm_sqrt(reduce_sum(squares, axis, keepdims))


def _matrix_norm(x, ord, axis, keepdims):
    rank, axes = len(x.shape), [int(a) for a in axis]
    inside = len(axes) == 2 and all(-rank <= a < rank for a in axes)
    if not inside or axes[0] % rank == axes[1] % rank:
        raise InvalidArgumentError(
            "norm: axis must be None, an integer or a pair of different axes from "
            f"{-rank} to {rank - 1}, got {axis}"
        )
    rows, columns = (a % rank for a in axes)
    if ord in ("euclidean", "fro"):
        return _euclidean(x, (rows, columns), keepdims)
    if ord in (1, np.inf):
        first, second = (rows, columns) if ord == 1 else (columns, rows)
        result = reduce_max(reduce_sum(abs(x), first, True), second, True)
    elif ord in (2, "nuc"):
        order = [i for i in range(rank) if i not in (rows, columns)]
        s = svd(transpose(x, [*order, rows, columns]), compute_uv=False)
        s = masked(s, not_equal(s, 0.0))  # where it is 0 it has a corner
        over = reduce_max if ord == 2 else reduce_sum
        result = expand_dims(over(s, -1), sorted((rows, columns)))
    else:
        raise InvalidArgumentError(
            "norm: ord must be 'euclidean', 'fro', 1, 2, inf or 'nuc' for matrices, got "
            f"{ord!r}"
        )
    return result if keepdims else squeeze(result, (rows, columns))


def normalize(
    tensor: TensorLike,
    ord: str | float = "euclidean",
    axis: Axes = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Divide a tensor by its `norm` over ``axis``; return the quotient and the norm.

    Entries of norm 0 become NaN; with `l2_normalize` they become 0.

    Args:
        tensor: Input tensor.
        ord: Kind of norm, as in `norm`.
        axis: Axis of vectors, or pair of axes of matrices; None flattens the tensor to
            one vector.

    Shapes:
        The norm keeps the axes in ``axis``, with size 1.

    Returns:
        ``(tensor / norm, norm)``.

    Raises:
        ValueError: If `norm` does not support ``ord`` or ``axis``.

    Example:
        >>> tw.linalg.normalize([3.0, 4.0])[0].numpy()
        array([0.6, 0.8], dtype=float32)
    """
    tensor = convert_to_tensor(tensor)
    length = cast(norm(tensor, ord, axis, True), tensor.dtype)
    return tensor / length, length


# ----------------------------------------------------------------------- least squares


def lstsq(
    matrix: TensorLike,
    rhs: TensorLike,
    l2_regularizer: TensorLike = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """Solve linear least-squares problems, with optional L2 regularization.

    The result minimizes ``|matrix @ x - rhs| ** 2 + l2_regularizer * |x| ** 2``.

    Args:
        matrix: Matrices.
        rhs: Right-hand sides.
        l2_regularizer: Factor of the regularization, a scalar.
        fast: If True, solve the normal equations by a Cholesky decomposition, which
            loses half of the digits where the matrix is nearly rank-deficient; a wide
            matrix results in the shortest solution. If False, use the pseudo-inverse,
            for any rank, and ignore the regularizer.

    Shapes:
        ``[..., m, n]`` and ``[..., m, k]`` to ``[..., n, k]``.

    Raises:
        ValueError: (NumPy's LinAlgError) With ``fast``, if a matrix lacks full rank, or
            nearly so, with no digits left.

    Example:
        >>> tw.linalg.lstsq([[2.0], [0.0]], [[4.0], [3.0]]).numpy()
        array([[2.]], dtype=float32)
    """
    matrix, rhs = pair(matrix, rhs)
    if not fast:
        return matmul(pinv(matrix), rhs)
    turned = adjoint(matrix)
    rows, columns = matrix.shape[-2:]
    if rows >= columns:
        gram = _regularized(matmul(turned, matrix), l2_regularizer)
        return cholesky_solve(gram_factor(gram), matmul(turned, rhs))
    gram = _regularized(matmul(matrix, turned), l2_regularizer)
    return matmul(turned, cholesky_solve(gram_factor(gram), rhs))


def _regularized(gram, amount):
    if isinstance(amount, (int, float)) and amount == 0:
        return gram
    amount = convert_to_tensor(amount, dtype_hint=gram.dtype)
    unit = beside(gram, eye, gram.shape[-1], dtype=gram.dtype.name)
    return gram + unit * cast(amount, gram.dtype)
