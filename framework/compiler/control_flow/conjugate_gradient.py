"""Conjugate gradient method for linear operators."""

from __future__ import annotations

from typing import Any, NamedTuple

from tapewright.core.errors import InvalidArgumentError
from tapewright.core.rules import checked_broadcast
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import IntLike, TensorLike, as_int
from tapewright.ops.array.conversion import cast, conj
from tapewright.ops.array.creation import zeros_like
from tapewright.ops.array.shape import broadcast_to
from tapewright.ops.linalg.matmul import matvec
from tapewright.ops.linalg.matrix_functions import norm
from tapewright.ops.math.comparison import greater, less, logical_and
from tapewright.ops.math.elementwise import divide_no_nan
from tapewright.ops.math.reduction import reduce_any, reduce_sum

from .while_loop import while_loop


class CGState(NamedTuple):
    """The result of `conjugate_gradient`."""

    i: Tensor
    x: Tensor
    r: Tensor
    p: Tensor
    gamma: Tensor


def conjugate_gradient(
    operator: Any,
    rhs: TensorLike,
    preconditioner: Any = None,
    x: TensorLike | None = None,
    tol: float = 1e-5,
    max_iter: IntLike = 20,
    name: str = "conjugate_gradient",
) -> CGState:
    """Solve ``A @ x = rhs`` by conjugate gradients, for Hermitian positive definite ``A``.

    Args:
        operator: ``A``: a tensor ``[..., n, n]``, or an object whose method ``matvec``
            computes ``A @ v``.
        rhs: Right-hand side, ``[..., n]``.
        preconditioner: Approximate inverse of ``A``, a tensor or an object like
            ``operator``; None for no preconditioning.
        x: Initial guess of the solution, ``[..., n]``; zeros by default.
        tol: Relative tolerance: stop when the norm of ``rhs - A @ x`` is at most
            ``tol`` times the norm of ``rhs`` for all systems of the batch.
        max_iter: Maximum number of iterations.

    Returns:
        A named tuple ``(i, x, r, p, gamma)``: the number of iterations, the solution
        ``[..., n]``, the residual, the last search direction, and the squared norm of
        the residual ``r``.

    Raises:
        ValueError: If an operator declares that it is not self-adjoint or not positive
            definite.

    References:
        Golub & Van Loan, "Matrix computations", section 11.3.

    Example:
        >>> tw.linalg.experimental.conjugate_gradient(
        ...     [[4.0, 1.0], [1.0, 3.0]], [1.0, 2.0]
        ... ).x.numpy().round(4)
        array([0.0909, 0.6364], dtype=float32)
    """
    for trait in ("is_self_adjoint", "is_positive_definite"):
        if getattr(operator, trait, True) is False:
            raise InvalidArgumentError(
                f"conjugate_gradient: operator.{trait} must be true"
            )
    apply, improve = _product(operator), _product(preconditioner)
    rhs, count = convert_to_tensor(rhs), as_int(max_iter)
    shape = checked_broadcast(
        "conjugate_gradient", rhs.shape, apply(zeros_like(rhs)).shape, rhs=rhs
    )
    rhs = broadcast_to(rhs, shape=shape)
    limit = _norm(rhs) * tol
    if x is None:
        start, rest = zeros_like(rhs), rhs
    else:
        start = broadcast_to(convert_to_tensor(x, dtype_hint=rhs.dtype), shape=shape)
        rest = rhs - apply(start)
    better = improve(rest)
    state = CGState(convert_to_tensor(0), start, rest, better, _dot(rest, better))

    def goes_on(*state):
        far = reduce_any(greater(_norm(state[2]), limit))
        return logical_and(less(state[0], count), far)

    def step(i, x, r, p, gamma):
        moved = apply(p)
        # 0 / 0 where a system of the batch is solved exactly
        alpha = divide_no_nan(gamma, _dot(p, moved))[..., None]
        x, r = x + alpha * p, r - alpha * moved
        better = improve(r)
        after = _dot(r, better)
        p = better + divide_no_nan(after, gamma)[..., None] * p
        return i + 1, x, r, p, after

    return CGState(*while_loop(goes_on, step, tuple(state)))


def _product(operator):
    if operator is None:
        return lambda v: v
    method = getattr(operator, "matvec", None)
    if method is not None:
        return method
    matrix = convert_to_tensor(operator)
    return lambda v: matvec(matrix, v)


def _dot(x, y):
    return reduce_sum(conj(x) * y, -1)


def _norm(x):
    return cast(norm(x, axis=-1), x.dtype.real_dtype)
