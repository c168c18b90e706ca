"""The LU decomposition, and matrices, solutions and inverses from its factors.

Matrices are the last two axes; leading axes are a batch. Neither NumPy nor CuPy has a
decomposition of batches, so it is computed here, block by block.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tapewright.core import dtypes
from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.hardware import devices
from tapewright.core.op_definition.costs import cubic
from tapewright.core.primitive import primitive
from tapewright.core.rules import batch_leading, check_choice, checked_broadcast
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import DTypeLike, TensorLike

from ..array.conversion import conj
from ..array.creation import eye
from ..array.gather import whole_numbers
from ..array.shape import broadcast_to
from ..array.sorting import place_along_axis, take_along_axis
from .diagonal import clear_diag
from .linear_systems import (
    NOT_INVERTIBLE,
    MatrixError,
    square_size,
    triangular_solve_p,
)
from .matmul import adjoint, beside, matmul_p, triangle

__all__ = ["lu", "lu_matrix_inverse", "lu_reconstruct", "lu_solve"]

PANEL = 32  # columns up to which products of matrices gain nothing


class Lu(NamedTuple):
    """The result of `lu`."""

    lu: Tensor
    p: Tensor


@primitive(
    type_name="Lu",
    multiple=True,
    ignores_float_errors=True,
    floating=True,
    half=False,
    may_raise=True,
    cost=cubic(2 / 3),
    strict=True,
    batch=batch_leading,
)
def _lu(xp, input: TensorLike, index_type: DTypeLike = "int32"):
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        raise ValueError("no square matrices")  # `infer` says it better
    count = input.shape[-1]
    packed = input.reshape((math.prod(input.shape[:-2]), count, count)).copy()
    rows = _factor(xp, packed, _in_order(xp, packed, index_type))
    if (xp.diagonal(packed, axis1=-2, axis2=-1) == 0).any():
        raise MatrixError(f"lu: {NOT_INVERTIBLE}")
    return packed.reshape(input.shape), rows.reshape(input.shape[:-1])


@_lu.infer
def _(input, index_type):
    square_size(_lu.primitive, input)
    check_choice(
        "lu", "index_type", dtypes.as_dtype(index_type).name, ("int32", "int64")
    )
    return input, TensorSpec(input.shape[:-1], index_type)


def _in_order(xp, a, dtype):
    return xp.zeros(a.shape[:2], dtype) + xp.arange(a.shape[1], dtype=dtype)


def _factor(xp, a, rows):
    """Factorize the columns of ``a`` ``[batch, m, n]`` in place; return the new row order."""
    if a.shape[-1] <= PANEL:
        return _factor_panel(xp, a, rows)
    half, batch = a.shape[-1] // 2, xp.arange(a.shape[0])[:, None]
    left, right = a[..., :half], a[..., half:]
    order = _factor(xp, left, _in_order(xp, left, xp.int64))
    right[...] = right[batch, order]
    rows = rows[batch, order]
    lower = xp.tril(left[:, :half], -1) + xp.eye(half, dtype=a.dtype)
    right[:, :half] = xp.linalg.solve(lower, right[:, :half])
    right[:, half:] -= left[:, half:] @ right[:, :half]
    order = _factor(xp, right[:, half:], _in_order(xp, right[:, half:], xp.int64))
    left[:, half:] = left[:, half:][batch, order]
    rows[:, half:] = rows[:, half:][batch, order]
    return rows


def _factor_panel(xp, a, rows):
    batch = xp.arange(a.shape[0])
    for j in range(min(a.shape[-2:])):
        pivot = xp.argmax(xp.abs(a[:, j:, j]), axis=-1) + j  # of equals the first
        for each in (a, rows):
            lower = each[batch, pivot]
            each[batch, pivot] = each[:, j]
            each[:, j] = lower
        a[:, j + 1 :, j] /= a[:, j, j, None]
        a[:, j + 1 :, j + 1 :] -= a[:, j + 1 :, j, None] * a[:, j, None, j + 1 :]
    return rows


@_lu.vjp("input")
def _(g, out):
    """With ``P^T dA = L F U``: the lower part of ``L F`` changes L, the upper of ``F U`` U."""
    g, (packed, rows) = conj(g[0]), out
    upper = triangle(packed, False)
    lower_turned = adjoint(_unit_lower(packed))
    inner = _strictly_lower(matmul_p(lower_turned, _strictly_lower(g)))
    inner = inner + triangle(matmul_p(triangle(g, False), adjoint(upper)), False)
    inner = triangular_solve_p(lower_turned, inner, False)
    change = adjoint(triangular_solve_p(upper, adjoint(inner), False))
    return conj(_put_rows(change, rows))


def _strictly_lower(matrix):
    return clear_diag(triangle(matrix, True), k=(0, 0))


def _unit_lower(packed):
    unit = beside(packed, eye, packed.shape[-1], dtype=as_dtype(packed.dtype).name)
    return _strictly_lower(packed) + unit


def _take_rows(matrix, rows):
    rows = broadcast_to(rows[..., None], shape=matrix.shape)
    return take_along_axis(matrix, rows, -2)


def _put_rows(matrix, rows):
    """Invert `_take_rows`."""
    rows = broadcast_to(rows[..., None], shape=matrix.shape)
    return place_along_axis(matrix, rows, size=matrix.shape[-2], axis=-2)


def lu(
    input: TensorLike, output_idx_type: DTypeLike = "int32", name: str | None = None
) -> Lu:
    """LU decomposition with partial pivoting: rows ``p`` of ``input`` are ``L @ U``.

    Args:
        input: Square matrices.
        output_idx_type: Dtype of ``p``, int32 or int64.

    Shapes:
        ``[..., n, n]`` to ``lu`` ``[..., n, n]`` and ``p`` ``[..., n]``.

    Returns:
        A named tuple ``(lu, p)``. ``lu`` holds the upper triangle U, and below the
        diagonal the lower triangle L, with 1 on its diagonal; ``p`` is a permutation of
        the rows.

    Raises:
        ValueError: If a matrix is singular (NumPy's LinAlgError).

    References:
        Golub & Van Loan, "Matrix computations", section 3.4.

    Example:
        >>> factors = tw.linalg.lu([[1.0, 2.0], [2.0, 1.0]])
        >>> factors.lu.numpy(), factors.p.numpy()
        (array([[2. , 1. ],
               [0.5, 1.5]], dtype=float32), array([1, 0], dtype=int32))
    """
    return Lu(*_lu(input, index_type=output_idx_type))


def lu_reconstruct(
    lower_upper: TensorLike,
    perm: TensorLike,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """Reconstruct matrices from their LU decomposition.

    Args:
        lower_upper: Factors, as returned by `lu`.
        perm: Permutation, as returned by `lu`.
        validate_args: Ignored.

    Shapes:
        ``[..., n, n]`` and ``[..., n]`` to ``[..., n, n]``.

    Raises:
        ValueError: If the shapes do not match, or ``perm`` is not a permutation.

    Example:
        >>> tw.linalg.lu_reconstruct(*tw.linalg.lu([[1.0, 2.0], [2.0, 1.0]])).numpy()
        array([[1., 2.],
               [2., 1.]], dtype=float32)
    """
    packed, perm = _factors("lu_reconstruct", lower_upper, perm)
    product = matmul_p(_unit_lower(packed), triangle(packed, False))
    return _put_rows(product, perm)


def lu_solve(
    lower_upper: TensorLike,
    perm: TensorLike,
    rhs: TensorLike,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """Solve ``matrix @ x = rhs``, given the LU decomposition of a matrix.

    Args:
        lower_upper: Factors, as returned by `lu`.
        perm: Permutation, as returned by `lu`.
        rhs: Right-hand sides.
        validate_args: Ignored.

    Shapes:
        ``[..., n, n]``, ``[..., n]`` and ``[..., n, k]`` to ``[..., n, k]``; leading
        axes broadcast.

    Raises:
        ValueError: If the shapes do not match, or ``perm`` is not a permutation.

    Example:
        >>> tw.linalg.lu_solve(*tw.linalg.lu([[1.0, 2.0], [2.0, 1.0]]), [[3.0], [3.0]]).numpy()
        array([[1.],
               [1.]], dtype=float32)
    """
    packed, perm = _factors("lu_solve", lower_upper, perm)
    rhs = convert_to_tensor(rhs, dtype_hint=packed.dtype)
    if len(rhs.shape) < 2:
        raise ShapeError("lu_solve", "rhs must have two axes or more", rhs=rhs)
    lead = checked_broadcast(
        "lu_solve", rhs.shape[:-2], perm.shape[:-1], rhs=rhs, perm=perm
    )
    rhs = broadcast_to(rhs, shape=lead + rhs.shape[-2:])
    moved = _take_rows(rhs, broadcast_to(perm, shape=lead + perm.shape[-1:]))
    halfway = triangular_solve_p(_unit_lower(packed), moved, True)
    return triangular_solve_p(packed, halfway, False)


def lu_matrix_inverse(
    lower_upper: TensorLike,
    perm: TensorLike,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """Compute the inverse of a matrix, given its LU decomposition.

    Args:
        lower_upper: Factors, as returned by `lu`.
        perm: Permutation, as returned by `lu`.
        validate_args: Ignored.

    Shapes:
        ``[..., n, n]`` and ``[..., n]`` to ``[..., n, n]``.

    Raises:
        ValueError: If the shapes do not match, or ``perm`` is not a permutation.

    Example:
        >>> tw.linalg.lu_matrix_inverse(*tw.linalg.lu([[0.0, 2.0], [4.0, 0.0]])).numpy()
        array([[0.  , 0.25],
               [0.5 , 0.  ]], dtype=float32)
    """
    packed, perm = _factors("lu_matrix_inverse", lower_upper, perm)
    unit = beside(packed, eye, packed.shape[-1], dtype=packed.dtype.name)
    return lu_solve(packed, perm, broadcast_to(unit, shape=packed.shape))


def _factors(who, packed, perm):
    packed = convert_to_tensor(packed, dtype_hint="float32")
    perm = whole_numbers(who, perm, "perm")
    if len(packed.shape) < 2 or packed.shape[:-1] != perm.shape:
        what = "lower_upper must be [..., n, n], and perm [..., n]"
        raise ShapeError(who, what, lower_upper=packed, perm=perm)
    square_size(_lu.primitive, packed)
    return packed, checked_permutation(perm, who)


@primitive(may_raise=True, no_gradient=True, view=True, batch=batch_leading)
def checked_permutation(xp, perm: TensorLike, who: str):
    """Return ``perm``, after a check that its rows are permutations of 0, 1, ..."""
    count = perm.shape[-1]
    if bool((xp.sort(perm, -1) != xp.arange(count)).any()):
        raise InvalidArgumentError(
            f"{who}: perm must be a permutation of 0 to {count - 1}, got "
            f"{devices.to_numpy(perm)}"
        )
    return perm


@checked_permutation.infer
def _(perm, who):
    return TensorSpec(perm.shape, perm.dtype)
