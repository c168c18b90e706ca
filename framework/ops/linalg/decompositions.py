"""Factorizations of matrices: Cholesky, QR, singular values, eigenvalues.

Matrices are the last two axes; leading axes are a batch. Where factors are not unique
(signs and phases of vectors, a basis of a null space), derivatives are right for
results that do not depend on that choice, also where values coincide (see `confluent`).

The rules are written for cotangents in the convention of the papers, the conjugates of
cotangents in a backward pass (see `record`): hence ``conj`` at both ends.
"""

from __future__ import annotations

from typing import Literal, overload

import numpy as np

from tapewright.core.dtypes import as_dtype, finfo
from tapewright.core.interpreters import active_interpreters
from tapewright.core.op_definition.costs import cubic
from tapewright.core.primitive import primitive
from tapewright.core.rules import batch_leading
from tapewright.core.tape import Tape
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.conversion import cast, conj, real
from ..array.creation import eye, zeros_like
from ..array.joining import concat
from ..math.comparison import equal, greater, logical_and, masked, not_equal
from ..math.elementwise import abs
from ..math.reduction import reduce_max, reduce_sum
from .confluent import (
    LIMITS,
    beside_diagonal,
    difference,
    gaps_of,
    over_gaps,
    product,
    sums_of,
    total,
    without_rounding,
)
from .contraction import einsum
from .linear_systems import (
    NO_CONVERGENCE,
    MatrixError,
    by_lapack,
    infer_square,
    lapack_dims,
    solve_p,
    square_size,
    triangular_solve_p,
)
from .matmul import adjoint, beside, matmul_p, triangle

__all__ = [
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "matrix_rank",
    "qr",
    "svd",
]


def _scaled(matrix, factors):
    """Compute ``matrix @ diag(factors)``, the factors real or complex."""
    return matrix * cast(factors, matrix.dtype)[..., None, :]


def _skew(matrix):
    return matrix - adjoint(matrix)


# ------------------------------------------------------------------------- Cholesky


@primitive(
    floating=True,
    half=False,
    may_raise=True,
    cost=cubic(1 / 3),
    infer=infer_square,
    batch=batch_leading,
)
def cholesky(xp, input: TensorLike):
    """Cholesky decomposition: the lower triangular ``L`` with ``L @ L^H = input``.

    An input that is not Hermitian is replaced by its Hermitian part ``(A + A^H) / 2``,
    so that the gradient is Hermitian, as in TensorFlow.

    Args:
        input: Hermitian positive definite matrices.

    Shapes:
        ``[..., n, n]``, input and result.

    Raises:
        ValueError: If a matrix is not positive definite (NumPy's LinAlgError).

    Example:
        >>> tw.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]).numpy()
        array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    what = "the matrix is not positive definite (or one of a batch)"
    return _factor(xp, input, "cholesky", what)


def _factor(xp, input, who, what):
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        raise ValueError("no square matrices")  # `infer` says it better
    hermitian = (input + xp.swapaxes(input.conj(), -1, -2)) * 0.5
    return by_lapack(who, what, xp.linalg.cholesky, hermitian)


@primitive(
    floating=True,
    half=False,
    may_raise=True,
    cost=cubic(1 / 3),
    infer=infer_square,
    batch=batch_leading,
)
def gram_factor(xp, input: TensorLike):
    """Compute `cholesky` of ``A^H @ A``, where ``A`` has full rank in spite of rounding.

    A pivot is the square of the part of a column of ``A`` that the columns before it
    lack. Where it is no more than the rounding of the square of the column itself, it
    can be anything.
    """
    what = (
        "the matrix lacks full rank, or nearly (or one of a batch); fast=False "
        "accepts any rank"
    )
    factor = _factor(xp, input, "lstsq", what)
    pivots, squares = (
        xp.diagonal(each, axis1=-2, axis2=-1).real for each in (factor, input)
    )
    rounding = 2 * input.shape[-1] * float(finfo(input.dtype).eps)
    if (pivots**2 <= rounding * squares).any():
        raise MatrixError(f"lstsq: {what}")
    return factor


@cholesky.vjp("input")
@gram_factor.vjp("input")
def _(g, out):
    """Murray, "Differentiation of the Cholesky decomposition" (2016), equation 9."""
    turned = adjoint(out)
    inner = triangle(product(turned, conj(g)), True, True)
    left = triangular_solve_p(turned, inner, False)
    both = triangular_solve_p(turned, adjoint(left), False)
    return conj((both + adjoint(both)) * 0.5)


# ------------------------------------------------------------------------------- QR


@primitive(multiple=True, floating=True, half=False, cost=cubic(2), batch=batch_leading)
def _qr(xp, input: TensorLike, full_matrices: bool = False):
    q, r = xp.linalg.qr(input, "complete" if full_matrices else "reduced")
    return q, r


@_qr.infer
def _(input, full_matrices):
    rows, columns = lapack_dims(_qr.primitive, input)
    lead, inner = input.shape[:-2], _shorter(rows, columns)
    inner = rows if full_matrices else inner
    return (
        TensorSpec(lead + (rows, inner), input.dtype),
        TensorSpec(lead + (inner, columns), input.dtype),
    )


def _shorter(rows, columns):
    return None if None in (rows, columns) else min(rows, columns)


@_qr.vjp("input")
def _(g, input, out):
    """Keep the diagonal of ``R`` real. The first columns must be independent."""
    (g_q, g_r), (q, r) = [conj(x) for x in g], out
    rows, columns = input.shape[-2:]
    if rows >= columns:
        q, g_q = _without_the_null_space(q, g_q, columns)
        return conj(_qr_square(g_q, g_r[..., :columns, :], q, r[..., :columns, :]))
    rest = input[..., rows:]  # R2 = Q^H A2
    g_rest = g_r[..., rows:]
    g_q = g_q + product(rest, adjoint(g_rest))
    first = _qr_square(g_q, g_r[..., :rows], q, r[..., :rows])
    return conj(_beside(first, product(q, g_rest)))


def _beside(left, right):
    return concat([left, right], axis=len(left.shape) - 1)


def _without_the_null_space(q, g, count):
    """Return the first columns; pass on the cotangent of the others, orthogonal to them."""
    if q.shape[-1] == count:
        return q, g
    first, other = q[..., :count], q[..., count:]
    passed = product(other, adjoint(g[..., count:]), first)
    return first, g[..., :count] - passed


def _qr_square(g_q, g_r, q, r):
    along = product(adjoint(q), g_q)
    upper = product(g_r, adjoint(r))
    inner = upper + triangle(_skew(along - upper), True, True)
    change = g_q + product(q, inner - along)
    return adjoint(triangular_solve_p(r, adjoint(change), False))


def qr(
    input: TensorLike, full_matrices: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """QR decomposition: ``input = q @ r``, ``q`` orthonormal and ``r`` upper triangular.

    Derivatives need linearly independent columns (the first m of a wide matrix).

    Args:
        input: Matrices.
        full_matrices: If True, ``q`` is square.

    Shapes:
        ``[..., m, n]`` to ``q`` ``[..., m, k]`` and ``r`` ``[..., k, n]``, where k is
        the smaller of m and n, or m with ``full_matrices``.

    Returns:
        ``(q, r)``.

    Example:
        >>> q, r = tw.linalg.qr([[3.0, 0.0], [4.0, 5.0]])
        >>> bool(tw.abs(q @ r - [[3.0, 0.0], [4.0, 5.0]]).numpy().max() < 1e-6)
        True
    """
    return _qr(input, full_matrices=bool(full_matrices))


# ------------------------------------------------------------------ singular values


@primitive(
    multiple=True, takes_none=True, floating=True, half=False, batch=batch_leading
)
def _svd(xp, tensor: TensorLike, full_matrices: bool = False):
    function = xp.linalg.svd
    u, s, turned = by_lapack(
        "svd", NO_CONVERGENCE, function, tensor, full_matrices, finite=True
    )
    return s, u, xp.swapaxes(turned.conj(), -1, -2)


@_svd.infer
def _(tensor, full_matrices):
    rows, columns = lapack_dims(_svd.primitive, tensor)
    lead, inner = tensor.shape[:-2], _shorter(rows, columns)
    return (
        TensorSpec(lead + (inner,), tensor.dtype.real_dtype),
        TensorSpec(lead + (rows, rows if full_matrices else inner), tensor.dtype),
        TensorSpec(lead + (columns, columns if full_matrices else inner), tensor.dtype),
    )


@_svd.vjp("tensor")
def _(g, out):
    """Townsend (2016), with the parts that stay finite for coinciding values kept apart."""
    g_s, g_u, g_v = (x if x is None else conj(x) for x in g)
    s, u, v = out
    if g_u is None and g_v is None:
        count = s.shape[-1]
        return conj(product(_scaled(u[..., :count], g_s), adjoint(v[..., :count])))
    g_u, g_v = (zeros_like(x) if g is None else g for x, g in ((u, g_u), (v, g_v)))
    (rows, columns), count = (u.shape[-2], v.shape[-2]), s.shape[-1]
    u, g_u = _without_the_null_space(u, g_u, count)
    v, g_v = _without_the_null_space(v, g_v, count)
    along_u, along_v = product(adjoint(u), g_u), product(adjoint(v), g_v)
    both, apart = along_u + along_v, along_u - along_v
    slopes = g_s

    def quotient(part, along, gaps, corner=True):
        names = "svd", "singular values"
        return _over_gaps(part, along, slopes, gaps, *names, corner)

    sums = sums_of(s, u.dtype)
    # At singular values of 0, which have a corner, no basis is better than another.
    part = masked(_skew(both) * 0.5, not_equal(sums, 0.0))
    inner = quotient(part, both, gaps_of(s, u.dtype), False)
    inner = inner + quotient(_skew(apart) * 0.5, apart, sums)
    if g_s is not None:
        inner = inner + _scaled(_unit(inner), g_s)
    change = product(product(u, inner), adjoint(v))
    across = cast(without_rounding(s[..., None, :], s), u.dtype)
    if rows > count:
        outside = quotient(g_u - product(u, along_u), g_u, across + zeros_like(g_u))
        change = change + product(outside, adjoint(v))
    if columns > count:
        outside = quotient(g_v - product(v, along_v), g_v, across + zeros_like(g_v))
        change = change + product(u, adjoint(outside))
    return conj(change)


def _svd_turn(out, cotangents):
    (s, u, v), (g_u, g_v) = out, cotangents
    u, g_u = _without_the_null_space(u, g_u, s.shape[-1])
    v, g_v = _without_the_null_space(v, g_v, s.shape[-1])
    along = product(adjoint(u), g_u) + product(adjoint(v), g_v)
    near = beside_diagonal(gaps_of(s, s.dtype))
    near = logical_and(near, not_equal(sums_of(s, s.dtype), 0.0))
    return [masked(_skew(along), near)]


def _svd_part(out, slopes):
    """Return the parts between equal singular values, and where they are 0."""
    (s, u, v), (slope_u, slope_v) = out, slopes
    count = s.shape[-1]
    # One axis more, for the values.
    rows_u, slope_u = _without_the_null_space(u[..., None, :, :], slope_u, count)
    rows_v, slope_v = _without_the_null_space(v[..., None, :, :], slope_v, count)
    u, v = u[..., :count], v[..., :count]
    turned_u = product(adjoint(rows_u), slope_u)
    turned_v = product(adjoint(rows_v), slope_v)
    inner = difference(turned_u + turned_v)
    inner = masked(inner, beside_diagonal(gaps_of(s, s.dtype)))
    apart = total(turned_u - turned_v)
    halved = apart - _unit(apart) * apart * 0.5
    inner = inner + masked(halved, equal(sums_of(s, s.dtype), 0.0))
    change = product(u, inner, adjoint(v))
    if u.shape[-2] > count:
        outside = _outside(s, u, slope_u, turned_u)
        change = change + product(outside, adjoint(v))
    if v.shape[-2] > count:
        outside = _outside(s, v, slope_v, turned_v)
        change = change + product(u, adjoint(outside))
    return conj(change)


def _outside(s, vectors, slope, turned):
    """Return the slope of a zero singular value by its vector, outside the vectors' span."""
    outside = slope - product(vectors[..., None, :, :], turned)
    outside = einsum("...jmj->...mj", outside)
    return masked(outside, equal(without_rounding(s[..., None, :], s), 0.0))


_svd.confluent((_svd_turn, _svd_part, "singular values"))


def _over_gaps(part, along, slopes, gaps, who, values, corner=False):
    """Apply `over_gaps`; without cotangents of the values there is no limit to miss."""
    limits = LIMITS.get()
    strict = limits != "added" and (slopes is not None or limits == "unknown")
    if slopes is None:
        slopes = real(along[..., :1, :]) * 0.0
    else:
        slopes = abs(slopes)[..., None, :]
    corner = corner or limits == "added"  # then the pass has looked at all calls
    names = {"who": who, "values": values}
    return over_gaps(part, along, slopes, gaps, **names, strict=strict, corner=corner)


@primitive(floating=True, half=False, batch=batch_leading)
def singular_values(xp, tensor: TensorLike):
    return by_lapack(
        "svd", NO_CONVERGENCE, xp.linalg.svd, tensor, False, False, finite=True
    )


singular_values.primitive.values_of = _svd.primitive


@singular_values.infer
def _(tensor):
    rows, columns = lapack_dims(_svd.primitive, tensor)
    shape = tensor.shape[:-2] + (_shorter(rows, columns),)
    return TensorSpec(shape, tensor.dtype.real_dtype)


@singular_values.vjp("tensor")
def _(g, tensor):
    s, u, v = _svd(tensor)
    return matmul_p(_scaled(conj(u), _tied(g, s)), v, False, True)


def _tied(g, values):
    """Return ``g`` as a function of the values, which it is: so second derivatives notice."""
    return g + values * 0.0


@overload
def svd(
    tensor: TensorLike,
    full_matrices: bool = False,
    compute_uv: Literal[True] = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def svd(
    tensor: TensorLike,
    full_matrices: bool = False,
    *,
    compute_uv: Literal[False],
    name: str | None = None,
) -> Tensor: ...
@overload
def svd(
    tensor: TensorLike,
    full_matrices: bool,
    compute_uv: Literal[False],
    name: str | None = None,
) -> Tensor: ...
def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    """Singular value decomposition: ``tensor = u @ diag(s) @ v^H``.

    The singular values ``s`` are in descending order. The order of the results is
    TensorFlow's; NumPy returns u, s, v^H.

    Args:
        tensor: Matrices.
        full_matrices: If True, ``u`` and ``v`` are square.
        compute_uv: If False, return ``s`` only.

    Shapes:
        ``[..., m, n]`` to ``s`` ``[..., k]``, ``u`` ``[..., m, k]`` and ``v``
        ``[..., n, k]``, where k is the smaller of m and n.

    Returns:
        ``(s, u, v)``, or ``s`` alone without ``compute_uv``.

    Example:
        >>> tw.linalg.svd([[0.0, 2.0], [1.0, 0.0]], compute_uv=False).numpy()
        array([2., 1.], dtype=float32)
    """
    if not compute_uv:
        return _svd(tensor)[0] if _is_on_tape() else singular_values(tensor)
    return _svd(tensor, full_matrices=bool(full_matrices))


def matrix_rank(
    a: TensorLike,
    tol: TensorLike | None = None,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """Compute the rank of each matrix: the number of singular values above ``tol``, int32.

    Args:
        a: Matrices.
        tol: Threshold; defaults to the largest singular value times the longer side
            times the rounding error.
        validate_args: Ignored.

    Shapes:
        ``a`` ``[..., m, n]``, ``tol`` broadcasts to ``[..., min(m, n)]``, result
        ``[...]``.

    Example:
        >>> tw.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).numpy()
        np.int32(1)
    """
    a = convert_to_tensor(a)
    s = singular_values(a)
    if tol is None:
        rounding = max(a.shape[-2:]) * float(finfo(a.dtype.dtype).eps)
        tol = reduce_max(s, -1, True) * rounding
    else:
        tol = convert_to_tensor(tol, dtype_hint=s.dtype)
    return reduce_sum(cast(greater(s, tol), "int32"), -1)


# ----------------------------------------------------- eigenvalues, Hermitian matrices


def _lower(xp, tensor):
    """Return the half that LAPACK reads: a NaN in the other half is ignored."""
    return xp.tril(tensor) if tensor.ndim > 1 else tensor


@primitive(
    type_name="SelfAdjointEigV2",
    multiple=True,
    takes_none=True,
    floating=True,
    half=False,
    batch=batch_leading,
)
def _eigh(xp, tensor: TensorLike):
    e, v = by_lapack(
        "eigh", NO_CONVERGENCE, xp.linalg.eigh, _lower(xp, tensor), finite=True
    )
    return e, v


@_eigh.infer
def _(tensor):
    rows = square_size(_eigh.primitive, tensor)
    values = TensorSpec(tensor.shape[:-2] + (rows,), tensor.dtype.real_dtype)
    return values, tensor


@_eigh.vjp("tensor")
def _(g, out):
    g_e, g_v = (x if x is None else conj(x) for x in g)
    e, v = out
    if g_v is None:
        return conj(_of_the_lower_half(product(_scaled(v, g_e), adjoint(v))))
    along = product(adjoint(v), g_v)
    gaps = gaps_of(e, v.dtype)
    inner = _over_gaps(_skew(along) * 0.5, along, g_e, gaps, "eigh", "eigenvalues")
    change = product(v, inner)
    if g_e is not None:
        change = change + _scaled(v, g_e)
    return conj(_of_the_lower_half(product(change, adjoint(v))))


def _eigh_turn(out, cotangents):
    (e, v), (g_v,) = out, cotangents
    near = beside_diagonal(gaps_of(e, e.dtype))
    return [masked(_skew(product(adjoint(v), g_v)), near)]


def _eigh_part(out, slopes):
    (e, v), (slope,) = out, slopes
    inner = difference(product(adjoint(v)[..., None, :, :], slope))
    inner = masked(inner, beside_diagonal(gaps_of(e, e.dtype)))
    return conj(_of_the_lower_half(product(v, inner, adjoint(v))))


_eigh.confluent((_eigh_turn, _eigh_part, "eigenvalues"))


def _of_the_lower_half(change):
    """Return the gradient of the entries read: an entry below the diagonal represents two."""
    return triangle(change + change, True, True)


@primitive(
    type_name="SelfAdjointEigenvalues", floating=True, half=False, batch=batch_leading
)
def _eigvalsh(xp, tensor: TensorLike):
    return by_lapack(
        "eigvalsh", NO_CONVERGENCE, xp.linalg.eigvalsh, _lower(xp, tensor), finite=True
    )


_eigvalsh.primitive.values_of = _eigh.primitive


@_eigvalsh.infer
def _(tensor):
    rows = square_size(_eigvalsh.primitive, tensor)
    return TensorSpec(tensor.shape[:-2] + (rows,), tensor.dtype.real_dtype)


@_eigvalsh.vjp("tensor")
def _(g, tensor):
    e, v = _eigh(tensor)
    return conj(_of_the_lower_half(product(_scaled(v, _tied(g, e)), adjoint(v))))


def _is_on_tape():
    """Return whether a tape records: it needs the vectors anyway, from one call."""
    return any([isinstance(each, Tape) for each in active_interpreters()])


def eigh(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Compute eigenvalues, in ascending order, and eigenvectors of Hermitian matrices.

    ``tensor @ v = v @ diag(e)``, with orthonormal columns of ``v``. Only the lower
    triangle is read, and only it gets a gradient. Both results have the dtype of the
    input. Where eigenvalues coincide, gradients of functions of the matrix are exact,
    and a result that depends on the basis raises an error; see
    "Derivatives at kinks and edges" in the documentation.

    Args:
        tensor: Hermitian matrices.

    Shapes:
        ``[..., n, n]`` to ``e`` ``[..., n]`` and ``v`` ``[..., n, n]``.

    Returns:
        ``(e, v)``.

    Example:
        >>> tw.linalg.eigh([[2.0, 0.0], [0.0, 1.0]])[0].numpy()
        array([1., 2.], dtype=float32)
    """
    e, v = _eigh(tensor)
    return cast(e, v.dtype), v


def eigvalsh(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Compute the eigenvalues of Hermitian matrices, in ascending order; see `eigh`.

    Args:
        tensor: Hermitian matrices; only the lower triangle is read.

    Shapes:
        ``[..., n, n]`` to ``[..., n]``.

    Example:
        >>> tw.linalg.eigvalsh([[2.0, 0.0], [0.0, 1.0]]).numpy()
        array([1., 2.], dtype=float32)
    """
    tensor = convert_to_tensor(tensor)
    e = _eigh(tensor)[0] if _is_on_tape() else _eigvalsh(tensor)
    return cast(e, tensor.dtype)


# ------------------------------------------------------ eigenvalues, square matrices


@primitive(
    multiple=True, takes_none=True, floating=True, half=False, batch=batch_leading
)
def _eig(xp, tensor: TensorLike):
    if tensor.shape[-1] == 0:
        # LAPACK, which refuses half precision, is not asked.
        square_size(_eig.primitive, TensorSpec(tensor.shape, tensor.dtype))
        e, v = tensor.reshape(tensor.shape[:-1]), tensor
    else:
        e, v = by_lapack("eig", NO_CONVERGENCE, xp.linalg.eig, tensor, finite=True)
    kind = complex_of(tensor.dtype)  # NumPy gives real ones if all of a batch are real
    return e.astype(kind), v.astype(kind)


def complex_of(dtype):
    """Return the complex dtype of the same precision."""
    return np.result_type(as_dtype(dtype).dtype, np.complex64)


@_eig.infer
def _(tensor):
    rows = square_size(_eig.primitive, tensor)
    kind = complex_of(tensor.dtype)
    return (
        TensorSpec(tensor.shape[:-2] + (rows,), kind),
        TensorSpec(tensor.shape, kind),
    )


@_eig.vjp("tensor")
def _(g, out, tensor_dtype):
    """Boeddeker et al., "On the computation of complex-valued gradients" (2017), 4.77."""
    g_e, g_v = (x if x is None else conj(x) for x in g)
    e, v = out
    turned, inner = adjoint(v), 0.0
    if g_v is not None:
        inner = _eig_inner(g_e, g_v, e, v)
    if g_e is not None:
        inner = _scaled(_unit(v), g_e) + inner
    change = product(solve_p(turned, inner), turned)
    return cast(conj(change), tensor_dtype)


def _eig_inner(g_e, g_v, e, v):
    turned = adjoint(v)
    # What would lengthen a vector is taken off: each has length 1.
    longer = cast(real(reduce_sum(conj(v) * g_v, -2)), v.dtype)
    across = product(turned, g_v) - _scaled(product(turned, v), longer)
    gaps, names = conj(gaps_of(e, v.dtype)), ("eig", "eigenvalues")
    token = LIMITS.set("values")  # no pass adds limits of `eig`
    try:
        return _over_gaps(across, across, g_e, gaps, *names)
    finally:
        LIMITS.reset(token)


def _unit(matrix):
    return beside(matrix, eye, matrix.shape[-1], dtype=as_dtype(matrix.dtype).name)


def eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Compute eigenvalues and eigenvectors of square matrices, both complex.

    ``tensor @ v = v @ diag(e)``; the columns of ``v`` have length 1. The eigenvalues
    are not sorted. Derivatives need linearly independent eigenvectors.

    Args:
        tensor: Square matrices.

    Shapes:
        ``[..., n, n]`` to ``e`` ``[..., n]`` and ``v`` ``[..., n, n]``.

    Returns:
        ``(e, v)``.

    Example:
        >>> tw.eig([[0.0, 1.0], [-4.0, 0.0]])[0].numpy()
        array([0.+2.j, 0.-2.j], dtype=complex64)
    """
    return _eig(tensor)


def eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Compute the eigenvalues of square matrices, complex and not sorted; see `eig`.

    Args:
        tensor: Square matrices.

    Shapes:
        ``[..., n, n]`` to ``[..., n]``.

    Example:
        >>> tw.eigvals([[0.0, 1.0], [-4.0, 0.0]]).numpy()
        array([0.+2.j, 0.-2.j], dtype=complex64)
    """
    return _eig(tensor)[0]
