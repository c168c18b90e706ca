"""Matrices with few diagonals: products, systems, eigenvalues.

They are given by their diagonals, ``[..., diagonals, n]``, the highest first and
"LEFT_RIGHT" aligned (see `diagonal`): the last entry of a superdiagonal and the first
entry of a subdiagonal are not read. Leading axes are a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.rules import all_mapped, check_choice, same_dtype
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.conversion import cast, conj, real
from ..array.creation import zeros_like
from ..array.indexing import boolean_mask
from ..array.joining import concat, pad, stack
from ..math.comparison import greater, less_equal, logical_and
from ..math.reduction import reduce_sum
from .decompositions import eigh, eigvalsh
from .diagonal import diag, diag_part
from .linear_systems import NOT_INVERTIBLE, MatrixError, lapack_dims, triangular_solve
from .matmul import matrix_transpose

__all__ = [
    "banded_triangular_solve",
    "eigh_tridiagonal",
    "tridiagonal_matmul",
    "tridiagonal_solve",
]

# Diagonals are one tensor, three, or those of a whole matrix.
_FORMATS = ("compact", "sequence", "matrix")


def _compact(who, diagonals, format):
    """Return the three diagonals as one tensor ``[..., 3, n]``."""
    check_choice(who, "diagonals_format", format, _FORMATS)
    if format == "compact":
        diagonals = convert_to_tensor(diagonals)
        if len(diagonals.shape) < 2 or diagonals.shape[-2] != 3:
            what = (
                "diagonals must be [..., 3, n], those above, on and below the main one"
            )
            raise ShapeError(who, what, diagonals=diagonals)
        return diagonals
    if format == "matrix":
        return diag_part(diagonals, k=(-1, 1), align="LEFT_RIGHT")
    if not isinstance(diagonals, (list, tuple)) or len(diagonals) != 3:
        raise InvalidArgumentError(
            f"{who}: diagonals must be three tensors with diagonals_format='sequence', "
            f"got {type(diagonals).__name__}"
        )
    upper, main, lower = map(convert_to_tensor, diagonals)
    size = main.shape[-1]
    full = [main]
    for each, side in ((upper, (0, 1)), (lower, (1, 0))):
        if each.shape[-1] == size - 1:
            each = pad(each, [(0, 0)] * (len(each.shape) - 1) + [side])
        if each.shape != main.shape:
            what = "diagonals must have the same shape; the outer ones may be shorter by one"
            raise ShapeError(who, what, upper=upper, main=main, lower=lower)
        full.append(each)
    return stack([full[1], full[0], full[2]], axis=-2)


def _shifted(x, by):
    """Shift ``x`` along the second last axis and fill with zeros."""
    zero = zeros_like(x[..., :1, :])
    last = len(x.shape) - 2
    if by > 0:
        return concat([zero, x[..., :-1, :]], axis=last)
    return concat([x[..., 1:, :], zero], axis=last)


def tridiagonal_matmul(
    diagonals: TensorLike | Sequence[TensorLike],
    rhs: TensorLike,
    diagonals_format: str = "compact",
    name: str | None = None,
) -> Tensor:
    """Multiply a tridiagonal matrix, given by its diagonals, by a matrix: ``A @ rhs``.

    Args:
        diagonals: Diagonals in the form of ``diagonals_format``.
        rhs: Right factor.
        diagonals_format: "compact", one tensor of the diagonals above, on and below the
            main one; "sequence", three tensors, of which the outer ones may be shorter
            by one; or "matrix", a whole matrix.

    Shapes:
        ``[..., 3, n]`` (compact) and ``[..., n, k]`` to ``[..., n, k]``.

    Raises:
        ValueError: If the format is unknown, or the shapes do not match.

    Example:
        >>> diagonals = [[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [0.0, 1.0, 1.0]]
        >>> tw.linalg.tridiagonal_matmul(diagonals, [[1.0], [2.0], [3.0]]).numpy()
        array([[4.],
               [8.],
               [8.]], dtype=float32)
    """
    compact = _compact("tridiagonal_matmul", diagonals, diagonals_format)
    rhs = convert_to_tensor(rhs, dtype_hint=compact.dtype)
    if len(rhs.shape) < 2 or rhs.shape[-2] != compact.shape[-1]:
        what = "rhs must be [..., n, k] for diagonals of n entries"
        raise ShapeError("tridiagonal_matmul", what, diagonals=compact, rhs=rhs)
    upper, main, lower = (compact[..., i, :, None] for i in range(3))
    return upper * _shifted(rhs, -1) + main * rhs + lower * _shifted(rhs, 1)


# -------------------------------------------------------------------------- systems


@primitive(
    name="tridiagonal_solve",
    type_name="TridiagonalSolve",
    ignores_float_errors=True,
    floating=True,
    half=False,
    may_raise=True,
    linear=[{"rhs"}],
)
def _tridiagonal(xp, diagonals: TensorLike, rhs: TensorLike, pivoting: bool = True):
    """Solve by Gaussian elimination, one row at a time for the batch, and substitution."""
    if diagonals.dtype.itemsize == 2:
        raise ValueError("half precision")  # `infer` says it better
    count = rhs.shape[-2]
    upper, main, lower = (xp.moveaxis(diagonals[..., i, :], -1, 0) for i in range(3))
    b = [xp.moveaxis(rhs, -2, 0)[k] for k in range(count)]
    rows, zero = [], xp.zeros_like(main[0]) if count else None
    row = (main[0], upper[0] if count > 1 else zero, zero) if count else None
    for k in range(1, count):
        after = upper[k] if k < count - 1 else zero
        below = (lower[k], main[k], after)
        if pivoting:
            swap = xp.abs(below[0]) > xp.abs(row[0])
            pairs = [
                (xp.where(swap, n, p), xp.where(swap, p, n)) for p, n in zip(row, below)
            ]
            row, below = zip(*pairs)
            b[k - 1], b[k] = (
                xp.where(swap[..., None], b[k], b[k - 1]),
                xp.where(swap[..., None], b[k - 1], b[k]),
            )
        rows.append(row)
        factor = below[0] / row[0]
        b[k] = b[k] - factor[..., None] * b[k - 1]
        row = (below[1] - factor * row[1], below[2] - factor * row[2], zero)
    rows.append(row)
    if count and xp.stack([row[0] == 0 for row in rows]).any():
        raise MatrixError(f"tridiagonal_solve: {NOT_INVERTIBLE}")
    solution = [None] * count
    for k in range(count - 1, -1, -1):
        pivot, first, second = (each[..., None] for each in rows[k])
        rest = b[k]
        if k + 1 < count:
            rest = rest - first * solution[k + 1]
        if k + 2 < count:
            rest = rest - second * solution[k + 2]
        solution[k] = rest / pivot
    return xp.stack(solution, axis=-2) if count else rhs.copy()


@_tridiagonal.infer
def _(diagonals, rhs, pivoting):
    op = _tridiagonal.primitive
    rows, size = lapack_dims(op, diagonals)
    height = rhs.shape[-2] if len(rhs.shape) > 1 else None
    fits = rows in (3, None) and (size == height or None in (size, height))
    lead, other = diagonals.shape[:-2], rhs.shape[:-2]
    if not fits or len(rhs.shape) < 2 or not lead.is_compatible_with(other):
        what = "diagonals must be [..., 3, n], and rhs [..., n, k], with one batch"
        raise ShapeError(op.name, what, diagonals=diagonals, rhs=rhs)
    same_dtype(op.name, diagonals=diagonals, rhs=rhs)
    return TensorSpec(rhs.shape, rhs.dtype)


@_tridiagonal.vjp("rhs")
def _(g, diagonals, pivoting):
    return _tridiagonal(_transposed(diagonals), g, pivoting)


@_tridiagonal.vjp("diagonals")
def _(g, diagonals, out, pivoting):
    solved = _tridiagonal(_transposed(diagonals), g, pivoting)
    # -solved @ out^T, of which only three diagonals count
    parts = [
        reduce_sum(solved * x, -1) for x in (_shifted(out, -1), out, _shifted(out, 1))
    ]
    rows = [part[..., None, :] for part in parts]
    return -concat(rows, axis=len(diagonals.shape) - 2)


@_tridiagonal.batch
def _(mapped, diagonals, rhs, *, pivoting):
    return _tridiagonal(*all_mapped(mapped, (diagonals, rhs)), pivoting=pivoting)


def _transposed(diagonals):
    upper, main, lower = (diagonals[..., i, :, None] for i in range(3))
    columns = [_shifted(lower, -1), main, _shifted(upper, 1)]
    return matrix_transpose(concat(columns, axis=len(diagonals.shape) - 1))


def tridiagonal_solve(
    diagonals: TensorLike | Sequence[TensorLike],
    rhs: TensorLike,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """Solve ``A @ x = rhs`` for a tridiagonal matrix, in linear time.

    Args:
        diagonals: Diagonals in the form of ``diagonals_format``.
        rhs: Right-hand sides.
        diagonals_format: "compact", "sequence" or "matrix", as in `tridiagonal_matmul`.
        transpose_rhs: If True, transpose ``rhs`` first.
        conjugate_rhs: If True, conjugate ``rhs`` first.
        partial_pivoting: If True, exchange neighbouring rows for a larger pivot.
        perturb_singular: Must be False.

    Shapes:
        ``[..., 3, n]`` (compact) and ``[..., n, k]`` or ``[..., n]`` to the shape of
        ``rhs``, with one batch.

    Raises:
        ValueError: If a pivot is 0 (NumPy's LinAlgError).
        TypeError: If the dtype is half precision.

    References:
        Golub & Van Loan, "Matrix computations", section 4.3.

    Example:
        >>> diagonals = [[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [0.0, 1.0, 1.0]]
        >>> tw.linalg.tridiagonal_solve(diagonals, [4.0, 8.0, 8.0]).numpy().round(4)
        array([1., 2., 3.], dtype=float32)
    """
    compact = _compact("tridiagonal_solve", diagonals, diagonals_format)
    if perturb_singular:
        raise InvalidArgumentError(
            "tridiagonal_solve: perturb_singular must be False; use "
            "tw.linalg.pinv for singular matrices"
        )
    rhs = convert_to_tensor(rhs, dtype_hint=compact.dtype)
    vector = len(rhs.shape) == len(compact.shape) - 1
    rhs = conj(rhs) if conjugate_rhs else rhs
    if vector:
        rhs = rhs[..., None]
    elif transpose_rhs:
        rhs = matrix_transpose(rhs)
    solution = _tridiagonal(compact, rhs, pivoting=bool(partial_pivoting))
    return solution[..., 0] if vector else solution


def banded_triangular_solve(
    bands: TensorLike,
    rhs: TensorLike,
    lower: bool = True,
    adjoint: bool = False,
    name: str | None = None,
) -> Tensor:
    """Solve ``A @ x = rhs`` for a triangular matrix with few diagonals.

    The full matrix of n times n entries is formed.

    Args:
        bands: Main diagonal in the first row and those below in the others; with
            ``lower=False``, the main diagonal in the last row and those above in the
            others.
        rhs: Right-hand sides.
        lower: True for a lower triangular matrix, False for an upper one.
        adjoint: If True, solve ``A^H @ x = rhs``.

    Shapes:
        ``[..., bands, n]`` and ``[..., n, k]`` to ``[..., n, k]``; leading axes
        broadcast.

    Raises:
        ValueError: If there is a zero on the diagonal (NumPy's LinAlgError).

    Example:
        >>> bands = [[2.0, 3.0, 4.0], [0.0, 2.0, 3.0]]
        >>> tw.linalg.banded_triangular_solve(bands, [[1.0]] * 3).numpy()
        array([[0.5 ],
               [0.  ],
               [0.25]], dtype=float32)
    """
    bands = convert_to_tensor(bands)
    if len(bands.shape) < 2:
        what = "bands must be [..., diagonals, n]"
        raise ShapeError("banded_triangular_solve", what, bands=bands)
    count = bands.shape[-2] - 1
    k = (-count, 0) if lower else (0, count)
    if count:
        matrix = diag(bands, k=k, align="LEFT_RIGHT")
    else:
        matrix = diag(bands[..., 0, :])
    return triangular_solve(matrix, rhs, lower=lower, adjoint=adjoint)


# ----------------------------------------------------------------------- eigenvalues


@overload
def eigh_tridiagonal(
    alpha: TensorLike,
    beta: TensorLike,
    eigvals_only: Literal[True] = True,
    select: str = "a",
    select_range: Sequence[float] | None = None,
    tol: float | None = None,
    name: str | None = None,
) -> Tensor: ...
@overload
def eigh_tridiagonal(
    alpha: TensorLike,
    beta: TensorLike,
    eigvals_only: Literal[False],
    select: str = "a",
    select_range: Sequence[float] | None = None,
    tol: float | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]: ...
def eigh_tridiagonal(
    alpha,
    beta,
    eigvals_only=True,
    select="a",
    select_range=None,
    tol=None,
    name=None,
):
    """Compute eigenvalues of a Hermitian tridiagonal matrix, in ascending order.

    The full matrix of n times n entries is formed.

    Args:
        alpha: Main diagonal; only its real part is used.
        beta: Diagonal above the main one.
        eigvals_only: If False, also return the eigenvectors.
        select: "a" for all eigenvalues, "i" for those with indices from
            ``select_range[0]`` to ``select_range[1]``, or "v" for those above the first
            and up to the second number.
        select_range: Pair of indices or numbers for ``select``.
        tol: Ignored; eigenvalues are exact to rounding.

    Shapes:
        ``[n]`` and ``[n - 1]`` to ``[m]``.

    Returns:
        The real eigenvalues; with ``eigvals_only=False``, a pair of the eigenvalues and
        the eigenvectors, the columns of ``[n, m]``.

    Raises:
        ValueError: If ``select`` is unknown, or the range is invalid.

    Example:
        >>> tw.linalg.eigh_tridiagonal([2.0, 2.0], [1.0]).numpy()
        array([1., 3.], dtype=float32)
    """
    who = "eigh_tridiagonal"
    alpha = convert_to_tensor(alpha)
    beta = convert_to_tensor(beta, dtype_hint=alpha.dtype)
    check_choice(who, "select", select, ("a", "i", "v"))
    if alpha.shape.rank != 1 or beta.shape.rank != 1 or len(beta) != len(alpha) - 1:
        what = "alpha must be a vector [n], and beta a vector [n - 1]"
        raise ShapeError(who, what, alpha=alpha, beta=beta)
    low, high = _range(who, select, select_range, alpha.shape[0])
    # Only the lower triangle is read.
    matrix = diag(cast(real(alpha), alpha.dtype)) + diag(conj(beta), k=-1)
    if eigvals_only:
        values, vectors = eigvalsh(matrix), None
    else:
        values, vectors = eigh(matrix)
    values = real(values)
    if select == "i":
        values = values[low : high + 1]
        vectors = None if eigvals_only else vectors[:, low : high + 1]
    elif select == "v":
        kept = logical_and(greater(values, low), less_equal(values, high))
        values = boolean_mask(values, kept)
        vectors = None if eigvals_only else boolean_mask(vectors, kept, axis=1)
    return values if eigvals_only else (values, vectors)


def _range(who, select, given, count):
    if select == "a":
        return None, None
    pair = list(given) if isinstance(given, (list, tuple)) else []
    fits = len(pair) == 2 and (
        pair[0] <= pair[1] if select == "i" else pair[0] < pair[1]
    )
    if not fits or (select == "i" and not 0 <= pair[0] <= pair[1] < count):
        want = f"two indices from 0 to {count - 1}" if select == "i" else "two numbers"
        raise InvalidArgumentError(
            f"{who}: select_range must be {want} in ascending order with "
            f"select={select!r}, got {given}"
        )
    return pair
