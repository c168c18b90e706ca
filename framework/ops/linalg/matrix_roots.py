"""The square root and the logarithm of matrices.

Matrices are the last two axes; leading axes are a batch. Both functions are computed
from the complex Schur form ``A = Q T Q^H`` with an upper triangle ``T``, which every
matrix has; NumPy and CuPy have no routine for it. Source:

    Higham, "Functions of matrices: theory and computation" (2008)
"""

from __future__ import annotations

import functools

import numpy as np

from tapewright.core.dtypes import finfo
from tapewright.core.errors import DTypeError, cast_advice
from tapewright.core.primitive import primitive
from tapewright.core.rules import batch_leading
from tapewright.core.typing import TensorLike

from ..array.creation import zeros_like
from ..array.joining import concat
from .decompositions import complex_of
from .linear_systems import NO_CONVERGENCE, by_lapack, infer_square, square_size
from .matmul import matrix_transpose

__all__ = ["logm", "sqrtm"]


# ------------------------------------------------------------------------ Schur form


def _schur(xp, a):
    """Return ``(q, t)`` of complex matrices ``[batch, n, n]``; ``t`` is exactly triangular."""
    count = a.shape[-1]
    unit = xp.zeros_like(a) + xp.eye(count, dtype=a.dtype)
    if not xp.tril(a, -1).any():
        return unit, a
    half = count // 2
    if count % 2 == 0 and not a[:, half:, :half].any():
        return _schur_of_halves(xp, a, half)
    # The eigenvectors, one after the other, span what A maps into itself.
    _, vectors = xp.linalg.eig(a)
    q, _ = xp.linalg.qr(vectors.astype(a.dtype))
    t = _turned(xp, q, a)
    rounding = 16.0 * count * float(finfo(a.dtype).eps)
    below = xp.abs(xp.tril(t, -1)).max((-2, -1))
    if (below <= rounding * xp.abs(t).max((-2, -1))).all():
        return q, xp.triu(t)
    return _schur_by_deflation(xp, a, unit)  # nearly dependent eigenvectors


def _turned(xp, q, a):
    return xp.swapaxes(q.conj(), -1, -2) @ a @ q


def _schur_of_halves(xp, a, half):
    """Compute the Schur form of a block triangle, whose blocks may share eigenvalues.

    Derivatives of the functions use such matrices.
    """
    q = xp.zeros_like(a)
    t = a.copy()
    first, second = slice(None, half), slice(half, None)
    for part in (first, second):
        q[:, part, part], t[:, part, part] = _schur(xp, a[:, part, part])
    turned = xp.swapaxes(q[:, first, first].conj(), -1, -2)
    t[:, first, second] = turned @ a[:, first, second] @ q[:, second, second]
    return q, t


def _schur_by_deflation(xp, a, unit):
    """Split off one eigenvector at a time by a reflection: for any matrix, but slow."""
    q, t = unit, a
    for k in range(a.shape[-1] - 1):
        _, vectors = xp.linalg.eig(t[:, k:, k:])
        block = unit.copy()
        block[:, k:, k:] = xp.linalg.qr(vectors[:, :, :1].astype(a.dtype), "complete")[
            0
        ]
        q = q @ block
        t = _turned(xp, block, t)
        t[:, k + 1 :, k] = 0
    return q, t


def _by_schur(xp, who, input, function):
    """Compute ``q @ function(t) @ q^H``; NaN for matrices that are not finite."""
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        raise ValueError("no square matrices")  # `infer` says it better
    if input.dtype.itemsize < 4:
        raise ValueError("half precision")  # here, too
    if not input.size:
        return input.copy()
    flat = input.reshape((-1, *input.shape[-2:])).astype(complex_of(input.dtype))

    def compute(flat):
        q, t = _schur(xp, flat)
        return q @ function(xp, t) @ xp.swapaxes(q.conj(), -1, -2)

    result = by_lapack(who, NO_CONVERGENCE, compute, flat, finite=True)
    return result.reshape(input.shape)


# ----------------------------------------------------------------------- square root


def _root_of_triangle(xp, t):
    """Apply algorithm 6.3, column by column."""
    count = t.shape[-1]
    rounding = count * float(finfo(t.dtype).eps) * xp.abs(t).max((-2, -1))
    diagonal = xp.diagonal(t, axis1=-2, axis2=-1)
    # A zero eigenvalue is rounded to a number whose sign and size mean nothing.
    diagonal = xp.where(xp.abs(diagonal) <= rounding[:, None], diagonal * 0, diagonal)
    roots = xp.sqrt(diagonal)
    r = xp.zeros_like(t)
    for j in range(count):
        r[:, j, j] = roots[:, j]
        for i in range(j - 1, -1, -1):
            inner = (r[:, i, i + 1 : j] * r[:, i + 1 : j, j]).sum(-1)
            rest, below = t[:, i, j] - inner, roots[:, i] + roots[:, j]
            rest = xp.where((below == 0) & (xp.abs(rest) <= rounding), rest * 0, rest)
            safe = xp.where((below == 0) & (rest == 0), below + 1, below)
            r[:, i, j] = rest / safe
    return r


@primitive(
    type_name="MatrixSquareRoot",
    ignores_float_errors=True,
    floating=True,
    half=False,
    infer=infer_square,
    batch=batch_leading,
)
def sqrtm(xp, input: TensorLike):
    """Principal square root of each matrix: ``X @ X = input``.

    Its eigenvalues have positive real parts, or are 0. The result is NaN where a real
    matrix has a negative eigenvalue, and so no real square root of this kind: cast it
    to complex numbers. Derivatives need an invertible matrix.

    Args:
        input: Square matrices.

    Shapes:
        ``[..., n, n]``, input and result.

    References:
        Higham, "Functions of matrices: theory and computation" (2008), chapter 6.

    Example:
        >>> tw.matrix_square_root([[4.0, 1.0], [0.0, 9.0]]).numpy()
        array([[2. , 0.2],
               [0. , 3. ]], dtype=float32)
    """
    result = _by_schur(xp, "sqrtm", input, _root_of_triangle)
    if input.dtype.kind == "c" or not input.size:
        return result
    size, turned = (
        xp.abs(part).max((-2, -1), keepdims=True) for part in (result, result.imag)
    )
    real = turned <= float(finfo(input.dtype).eps) ** 0.5 * size
    return xp.where(real, result.real, input.dtype.type(np.nan))


# -------------------------------------------------------------------------- logarithm

# Up to this distance from 1, the quadrature with 8 nodes is exact to rounding: table 11.1.
NEAR = 0.25


@functools.cache
def _quadrature():
    """Return nodes and weights of Gauss-Legendre quadrature. NumPy's file is loaded here."""
    return list(zip(*[x.tolist() for x in np.polynomial.legendre.leggauss(8)]))


def _log_of_triangle(xp, t):
    """Apply algorithm 11.9: square roots until T is near 1, there a Pade approximant."""
    unit = xp.eye(t.shape[-1], dtype=t.dtype)
    exact = xp.log(xp.diagonal(t, axis1=-2, axis2=-1))
    halvings = 0
    while halvings < 100 and (xp.abs(t - unit).sum(-2).max(-1) > NEAR).any():
        t, halvings = _root_of_triangle(xp, t), halvings + 1
    t = t - unit
    total = xp.zeros_like(t)
    for node, weight in _quadrature():  # equation 11.18
        total += xp.linalg.solve(unit + t * (0.5 + 0.5 * node), t * (0.5 * weight))
    total = xp.triu(total, 1) * 2.0**halvings
    return total + unit * exact[:, None, :]


@primitive(
    type_name="MatrixLogarithm",
    ignores_float_errors=True,
    kinds="c",
    batch=batch_leading,
)
def logm(xp, input: TensorLike):
    """Principal logarithm of each complex matrix: ``expm(X) = input``.

    The imaginary parts of its eigenvalues are within pi. The result is NaN for a
    singular matrix.

    Args:
        input: Complex square matrices.

    Shapes:
        ``[..., n, n]``, input and result.

    Raises:
        TypeError: If ``input`` is real, since its logarithm may be complex, as in
            TensorFlow.

    References:
        Higham, "Functions of matrices: theory and computation" (2008), chapter 11.

    Example:
        >>> tw.linalg.logm([[1.0 + 0j, 1.0], [0.0, 1.0]]).numpy()
        array([[0.+0.j, 1.+0.j],
               [0.+0.j, 0.+0.j]])
    """

    def function(xp, t):
        lost = (xp.diagonal(t, axis1=-2, axis2=-1) == 0).any(-1)[:, None, None]
        unit = xp.eye(t.shape[-1], dtype=t.dtype)
        result = _log_of_triangle(xp, xp.where(lost, unit, t))
        return xp.where(lost, t.dtype.type(np.nan), result)

    return _by_schur(xp, "logm", input, function)


@logm.infer
def _(input):
    if not input.dtype.is_complex:
        what = f"input must be complex; {cast_advice('input', 'complex64')}"
        raise DTypeError("logm", what, input=input)
    square_size(logm.primitive, input)
    return input


def _by_corner(function):
    """Return the corner of ``f([[A^T, g], [0, A^T]])``: Higham (2008), equation 3.16."""

    def _(g, input):
        count, last = input.shape[-1], len(input.shape) - 1
        turned = matrix_transpose(input)
        upper = concat([turned, g], axis=last)
        lower = concat([zeros_like(turned), turned], axis=last)
        return function(concat([upper, lower], axis=last - 1))[..., :count, count:]

    return _


sqrtm.vjp("input")(_by_corner(sqrtm))
logm.vjp("input")(_by_corner(logm))
