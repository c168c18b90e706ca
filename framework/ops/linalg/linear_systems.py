"""Linear systems: solvers for general, triangular and factored matrices, and inverses.

Matrices are the last two axes; leading axes are a batch and broadcast. A singular
matrix is an error (NumPy's LinAlgError, a ValueError); to detect it, a GPU is
synchronized.
"""

from __future__ import annotations

import numpy as np

from tapewright.core.dtypes import finfo
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    ShapeError,
    cast_advice,
)
from tapewright.core.hardware import devices
from tapewright.core.hardware.blas import trsm
from tapewright.core.op_definition.costs import cubic
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    batch_leading,
    checked_broadcast,
    lift,
    same_dtype,
)
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.conversion import conj
from ..array.shape import reshape, transpose
from .matmul import adjoint as adjoint_of
from .matmul import (
    matmul_p,
    matrix_dims,
    matrix_transpose,
    pair,
    triangle,
)

__all__ = ["cholesky_solve", "inv", "pinv", "solve", "triangular_solve"]

NO_CONVERGENCE = "the iteration did not converge; are there NaN or infinities in it?"
NOT_INVERTIBLE = "the matrix is not invertible (or one of a batch)"


def lapack_dims(op, x):
    """Return rows and columns of an input of `op`.

    Raises:
        ShapeError: If it has fewer than two axes.
        DTypeError: If it holds integers, or half precision, which LAPACK lacks.
    """
    dims = matrix_dims(x, False, op.name, op.inputs[0])
    if not x.dtype.is_differentiable:
        raise op.dtype_error(x)
    if x.dtype.size == 2:
        name = op.inputs[0]
        what = f"{name} must not be of half precision; {cast_advice(name, 'float32')}"
        raise DTypeError(op.name, what, **{name: x})
    return dims


def square_size(op, x):
    """Return the size of a square matrix, as `lapack_dims`."""
    rows, columns = lapack_dims(op, x)
    if None not in (rows, columns) and rows != columns:
        name = op.inputs[0]
        raise ShapeError(op.name, f"{name} must be square", **{name: x})
    return rows


def infer_square(op):
    """Make the infer rule of ops from square matrices to square matrices."""

    def _(input):
        square_size(op, input)
        return input

    return _


class MatrixError(InvalidArgumentError, np.linalg.LinAlgError):
    """Raised where LAPACK rejects a matrix."""


def by_lapack(who, complaint, function, matrix, *args, finite=False):
    """Apply a LAPACK function; where it fails, raise an error with the op's name.

    A matrix (of a batch) that holds a NaN results in NaN, for which LAPACK may well
    find numbers; with ``finite`` one that holds an infinity, too.
    """
    lost = _spoiled(matrix, finite)
    if lost is not None:
        xp = devices.array_module(type(matrix))
        unit = xp.eye(*matrix.shape[-2:], dtype=matrix.dtype)
        matrix = xp.where(lost[..., None, None], unit, matrix)
    try:
        with devices.linalg_errors(matrix):
            result = function(matrix, *args)
    except np.linalg.LinAlgError:
        raise MatrixError(f"{who}: {complaint}") from None
    if lost is None:
        return result
    if isinstance(result, tuple):
        return tuple([_with_nan(out, lost) for out in result])
    return _with_nan(result, lost)


def _spoiled(matrix, finite):
    """Find matrices with a NaN (or an infinity); None if there is none."""
    if not devices.is_array(matrix) or matrix.ndim < 2:
        return None
    xp = devices.array_module(type(matrix))
    sound = xp.isfinite(matrix) if finite else ~xp.isnan(matrix)
    return None if sound.all() else ~sound.all((-2, -1))


def _with_nan(out, lost):
    xp, rest = devices.array_module(type(out)), (1,) * (out.ndim - lost.ndim)
    return xp.where(lost.reshape(lost.shape + rest), out.dtype.type(np.nan), out)


# ----------------------------------------------------------------------- any matrix


@primitive(
    name="solve",
    type_name="MatrixSolve",
    broadcasts=True,
    floating=True,
    half=False,
    may_raise=True,
    linear=[{"rhs"}],
    cost=cubic(2 / 3),
)
def solve_p(xp, matrix: TensorLike, rhs: TensorLike):
    return by_lapack("solve", NOT_INVERTIBLE, xp.linalg.solve, *_alike(xp, matrix, rhs))


def _alike(xp, matrix, rhs):
    """Broadcast the leading axes of both: not all solvers broadcast as products do."""
    if rhs.ndim < 2 or matrix.ndim < 2 or matrix.dtype.kind not in "fc":
        raise ValueError("two axes or more, floating")  # `infer` says it better
    if matrix.shape[:-2] != rhs.shape[:-2]:
        lead = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
        matrix = xp.broadcast_to(matrix, lead + matrix.shape[-2:])
        rhs = xp.broadcast_to(rhs, lead + rhs.shape[-2:])
    return matrix, rhs


def _infer_system(op):
    def infer(matrix, rhs, **attributes):
        rows = square_size(op, matrix)
        height, columns = matrix_dims(rhs, False, op.name, "rhs")
        if None not in (rows, height) and rows != height:
            raise ShapeError(op.name, "matrix and rhs must have the same number of rows",
                             matrix=matrix, rhs=rhs)  # fmt: skip
        lead = checked_broadcast(op.name, matrix.shape[:-2], rhs.shape[:-2],
                                 matrix=matrix, rhs=rhs)  # fmt: skip
        dtype = same_dtype(op.name, matrix=matrix, rhs=rhs)
        return TensorSpec(lead + (height if rows is None else rows, columns), dtype)

    return infer


solve_p.infer(_infer_system(solve_p.primitive))


@solve_p.vjp("rhs")
def _(g, matrix):
    return solve_p(matrix_transpose(matrix), g)


@solve_p.vjp("matrix")
def _(g, matrix, out):
    return -matmul_p(solve_p(matrix_transpose(matrix), g), out, False, True)


@solve_p.batch
def _(mapped, matrix, rhs):
    matrix, rhs = lift(mapped, matrix, rhs)
    if mapped == (False, True) and rhs.array.ndim == 3 and matrix.array.ndim == 2:
        return _in_one(solve_p, matrix, rhs)
    return solve_p(matrix, rhs)


def _in_one(solver, matrix, rhs):
    """Factorize once for the columns of all right-hand sides ``[m, n, k]``."""
    moved = transpose(rhs, (1, 2, 0))
    n, columns, count = moved.array.shape
    solved = solver(matrix, reshape(moved, (n, columns * count)))
    return transpose(reshape(solved, (n, columns, count)), (2, 0, 1))


def solve(
    matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solve the linear systems ``matrix @ x = rhs`` for square matrices.

    Args:
        matrix: Square matrices.
        rhs: Right-hand sides.
        adjoint: If True, solve ``matrix^H @ x = rhs``.

    Shapes:
        ``[..., n, n]`` and ``[..., n, k]`` to ``[..., n, k]``; leading axes broadcast.

    Raises:
        ValueError: If a matrix is singular (NumPy's LinAlgError).

    Example:
        >>> tw.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [[1.0], [1.0]]).numpy()
        array([[0.5 ],
               [0.25]], dtype=float32)
    """
    matrix, rhs = pair(matrix, rhs)
    return solve_p(adjoint_of(matrix) if adjoint else matrix, rhs)


@primitive(
    type_name="MatrixInverse",
    floating=True,
    half=False,
    may_raise=True,
    cost=cubic(2),
    infer=infer_square,
    batch=batch_leading,
)
def _inv(xp, input: TensorLike):
    return by_lapack("inv", NOT_INVERTIBLE, xp.linalg.inv, input)


@_inv.vjp("input")
def _(g, out):
    turned = matrix_transpose(out)
    return -matmul_p(matmul_p(turned, g), turned)


def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Compute the inverse of each matrix.

    Args:
        input: Square matrices.
        adjoint: If True, compute the inverse of the adjoint.

    Shapes:
        ``[..., n, n]``, input and result.

    Raises:
        ValueError: If a matrix is singular (NumPy's LinAlgError).

    Example:
        >>> tw.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).numpy()
        array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    return _inv(adjoint_of(input) if adjoint else input)


@primitive(type_name="PseudoInverse", floating=True, half=False, batch=batch_leading)
def _pinv(xp, a: TensorLike, rcond: float):
    return by_lapack("pinv", NO_CONVERGENCE, xp.linalg.pinv, a, rcond, finite=True)


@_pinv.infer
def _(a, rcond):
    rows, columns = lapack_dims(_pinv.primitive, a)
    return TensorSpec(a.shape[:-2] + (columns, rows), a.dtype)


@_pinv.vjp("a")
def _(g, a, out):
    """Golub & Pereyra (1973), for changes that keep the rank."""
    g = conj(g)
    p, turned = adjoint_of(out), adjoint_of(g)
    outside = turned - matmul_p(a, matmul_p(out, turned))
    inside = turned - matmul_p(matmul_p(turned, out), a)
    change = (
        matmul_p(matmul_p(outside, out), p)
        + matmul_p(p, matmul_p(out, inside))
        - matmul_p(matmul_p(p, g), p)
    )
    return conj(change)


def pinv(
    a: TensorLike,
    rcond: TensorLike | None = None,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """Compute the Moore-Penrose pseudo-inverse of each matrix.

    Derivatives are taken along changes that keep the rank.

    Args:
        a: Matrices.
        rcond: Singular values up to ``rcond`` times the largest one count as zero;
            defaults to ten times the rounding error times the longer side.
        validate_args: Ignored.

    Shapes:
        ``[..., m, n]`` to ``[..., n, m]``.

    Example:
        >>> tw.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]).numpy()
        array([[0.5, 0. ],
               [0. , 0. ]], dtype=float32)
    """
    a = convert_to_tensor(a)
    if rcond is None and a.dtype.is_differentiable and len(a.shape) >= 2:
        rounding = finfo(a.dtype.dtype).eps
        rcond = 10.0 * max(a.shape[-2:]) * float(rounding)
    return _pinv(a, rcond=0.0 if rcond is None else rcond)


# ----------------------------------------------------------------- triangular ones


@primitive(
    name="triangular_solve",
    type_name="MatrixTriangularSolve",
    broadcasts=True,
    floating=True,
    half=False,
    may_raise=True,
    linear=[{"rhs"}],
    cost=cubic(0),
)
def triangular_solve_p(xp, matrix: TensorLike, rhs: TensorLike, lower: bool = True):
    matrix, rhs = _alike(xp, matrix, rhs)
    if matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] != rhs.shape[-2]:
        raise ValueError("shapes do not fit")  # `infer` says it better
    solution = _by_blas(matrix, rhs, lower) if xp is np else None
    return _substituted(xp, matrix, rhs, lower) if solution is None else solution


def _by_blas(matrix, rhs, lower):
    """Solve each system with BLAS; return None if it cannot, or if the result holds a NaN.

    Batches of small systems are left to NumPy, which solves all of them in one call.
    """
    if matrix.ndim > 2 and matrix.shape[-1] <= BLOCK:
        return None
    # BLAS multiplies by the inverses of the diagonal, which must be finite.
    diagonal = np.diagonal(matrix, axis1=-2, axis2=-1)
    if (np.abs(diagonal) < finfo(matrix.dtype).tiny).any():
        return None
    if matrix.ndim == 2:
        solution = trsm(matrix, rhs, lower)
    else:
        solution = np.empty(rhs.shape, rhs.dtype)
        for index in np.ndindex(matrix.shape[:-2]):
            solved = trsm(matrix[index], rhs[index], lower)
            if solved is None:
                return None
            solution[index] = solved
    return None if solution is None or np.isnan(solution).any() else solution


BLOCK = 64  # rows up to which LU of a block costs no more than calls for its halves


def _substituted(xp, matrix, rhs, lower):
    """Substitute block by block: for NaN, batches of small systems, and GPUs.

    Most of the work is products; only the blocks on the diagonal are LU-factorized.
    """
    count = matrix.shape[-1]
    if count <= BLOCK:
        block = xp.tril(matrix) if lower else xp.triu(matrix)
        what = "the triangular matrix is not invertible: its diagonal has a zero"
        solution = by_lapack("triangular_solve", what, xp.linalg.solve, block, rhs)
        return _after_nan(xp, block, rhs, solution, lower)
    parts = slice(None, count // 2), slice(count // 2, None)
    first, second = parts if lower else parts[::-1]
    known = _substituted(xp, matrix[..., first, first], rhs[..., first, :], lower)
    rest = rhs[..., second, :] - xp.matmul(matrix[..., second, first], known)
    solution = _substituted(xp, matrix[..., second, second], rest, lower)
    return xp.concatenate([known, solution] if lower else [solution, known], axis=-2)


def _after_nan(xp, block, rhs, solution, lower):
    """Return NaN from the first row on, in order of substitution, that depends on a NaN."""
    rows = xp.isnan(block).any(-1, keepdims=True)
    spoiled = rows | xp.isnan(rhs)
    if not spoiled.any():
        return solution
    order = slice(None) if lower else slice(None, None, -1)
    spoiled = (xp.cumsum(spoiled[..., order, :], axis=-2) > 0)[..., order, :]
    kept = xp.where(rows, xp.eye(block.shape[-1], dtype=block.dtype), block)
    clean = xp.where(spoiled, rhs.dtype.type(0), rhs)
    solution = xp.linalg.solve(kept, clean)
    return xp.where(spoiled, solution.dtype.type(np.nan), solution)


triangular_solve_p.infer(_infer_system(triangular_solve_p.primitive))


@triangular_solve_p.vjp("rhs")
def _(g, matrix, lower):
    return triangular_solve_p(matrix_transpose(matrix), g, not lower)


@triangular_solve_p.vjp("matrix")
def _(g, matrix, out, lower):
    solved = triangular_solve_p(matrix_transpose(matrix), g, not lower)
    return triangle(-matmul_p(solved, out, False, True), lower)


@triangular_solve_p.batch
def _(mapped, matrix, rhs, *, lower):
    matrix, rhs = lift(mapped, matrix, rhs)
    if mapped == (False, True) and rhs.array.ndim == 3 and matrix.array.ndim == 2:
        return _in_one(lambda m, r: triangular_solve_p(m, r, lower), matrix, rhs)
    return triangular_solve_p(matrix, rhs, lower)


def triangular_solve(
    matrix: TensorLike,
    rhs: TensorLike,
    lower: bool = True,
    adjoint: bool = False,
    name: str | None = None,
) -> Tensor:
    """Solve ``matrix @ x = rhs`` for lower or upper triangular matrices.

    Args:
        matrix: Triangular matrices; the other triangle is not read.
        rhs: Right-hand sides.
        lower: True for lower triangular matrices, False for upper ones.
        adjoint: If True, solve ``matrix^H @ x = rhs``.

    Shapes:
        ``[..., n, n]`` and ``[..., n, k]`` to ``[..., n, k]``; leading axes broadcast.

    Raises:
        ValueError: If there is a zero on the diagonal (NumPy's LinAlgError).

    Example:
        >>> tw.linalg.triangular_solve([[2.0, 9.0], [1.0, 1.0]], [[2.0], [3.0]]).numpy()
        array([[1.],
               [2.]], dtype=float32)
    """
    matrix, rhs = pair(matrix, rhs)
    if adjoint:
        return triangular_solve_p(adjoint_of(matrix), rhs, not lower)
    return triangular_solve_p(matrix, rhs, bool(lower))


def cholesky_solve(
    chol: TensorLike, rhs: TensorLike, name: str | None = None
) -> Tensor:
    """Solve ``chol @ chol^H @ x = rhs``, given a Cholesky factor.

    Args:
        chol: Result of `cholesky`.
        rhs: Right-hand sides.

    Shapes:
        ``[..., n, n]`` and ``[..., n, k]`` to ``[..., n, k]``.

    Raises:
        ValueError: If there is a zero on the diagonal (NumPy's LinAlgError).

    Example:
        >>> tw.linalg.cholesky_solve([[2.0, 0.0], [0.0, 1.0]], [[4.0], [1.0]]).numpy()
        array([[1.],
               [1.]], dtype=float32)
    """
    chol, rhs = pair(chol, rhs)
    halfway = triangular_solve_p(chol, rhs, True)
    return triangular_solve_p(adjoint_of(chol), halfway, False)
