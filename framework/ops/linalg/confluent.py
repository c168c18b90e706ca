"""Derivatives of factorizations where eigenvalues or singular values coincide.

The vectors that belong to coinciding values are an arbitrary basis. Results that do not
depend on it, such as a function ``V @ diag(f(e)) @ V^H`` of the whole matrix, are
smooth there, but their derivative is a quotient 0 / 0 to the VJP rules, which see
cotangents and not ``f``. `over_gaps` divides and detects it.

The limit is a second derivative. A change ``V @ B @ V^H``, ``B`` Hermitian and zero
beyond the coinciding values, turns their vectors to the vectors of ``B`` and moves the
values by the eigenvalues of ``B``. To first order in the angle of a rotation K, this
says: the part of the gradient is ``V @ X @ V^H``, and ``X[i, j]`` is half the
derivative of the cotangent of value j along ``V @ K``. `autodiff.confluence` computes
these derivatives from a tape.
"""

from __future__ import annotations

from contextvars import ContextVar

from tapewright.core.dtypes import as_dtype, finfo
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.primitive import primitive
from tapewright.core.rules import all_mapped, batch_leading
from tapewright.core.tensor import TensorSpec
from tapewright.core.typing import TensorLike

from ..array.conversion import cast
from ..array.creation import eye, zeros_like
from ..array.joining import stack
from ..math.comparison import (
    equal,
    greater,
    logical_and,
    logical_not,
    logical_or,
    masked,
)
from ..math.elementwise import abs, divide_no_nan
from ..math.reduction import reduce_any, reduce_max
from .contraction import einsum
from .matmul import adjoint, beside, matmul_p

# What happens to the limits that `over_gaps` cannot know: the backward pass adds them
# ("added"); it does not, and there may be limits if the values have cotangents ("values"),
# or even if they have not, since they may be those of another call ("unknown").
LIMITS: ContextVar[str] = ContextVar("limits", default="values")

NO_DERIVATIVE = (
    "{who}: where {values} coincide, the vectors are an arbitrary basis (of a batch, those "
    "of one matrix). The result depends on the choice, so it has no derivative there"
)
UNKNOWN_DERIVATIVE = (
    "{who}: where {values} coincide (of a batch, those of one matrix), the derivative of a "
    "result that depends on them and on the vectors is a limit, which only "
    "GradientTape.gradient finds; in traced functions only the first derivative, for known "
    "sizes and a matrix that does not come from another factorization. Take the gradient "
    "outside of traced functions, or use functions of the whole matrix (tw.linalg.expm, "
    "sqrtm, logm, inv, pinv, det), which have all derivatives"
)

NO_ORDER = (
    "{who}: where values coincide, the derivative of a result that depends on values and "
    "vectors is known up to the second order (the first through several factorizations, "
    "the third of values alone), not beyond. Functions of the whole matrix "
    "(tw.linalg.expm, sqrtm, logm, inv) know all"
)


def gaps_of(values, dtype):
    """Return ``values[j] - values[i]`` at ``[i, j]``, exactly 0 where it is only rounding.

    A quotient of two rounding errors could be anything; division by such a gap returns
    0.
    """
    gaps = values[..., None, :] - values[..., :, None]
    return cast(without_rounding(gaps, values), dtype)


def sums_of(values, dtype):
    """Return ``values[j] + values[i]`` of singular values, as `gaps_of`."""
    sums = values[..., None, :] + values[..., :, None]
    return cast(without_rounding(sums, values), dtype)


def without_rounding(x, values):
    """Return ``x``, exactly 0 where it is only rounding relative to the largest value."""
    rounding = 4.0 * values.shape[-1] * float(finfo(as_dtype(values.dtype).dtype).eps)
    least = reduce_max(abs(values), -1, True)[..., None] * rounding
    return masked(x, greater(abs(x), least))


@primitive(
    may_raise=True,
    ignores_float_errors=True,
    floating=True,
    same_dtype=("part", "along", "gaps"),
    no_gradient=("along", "slopes"),
)
def over_gaps(
    xp,
    part: TensorLike,
    along: TensorLike,
    slopes: TensorLike,
    gaps: TensorLike,
    *,
    who: str,
    values: str,
    strict: bool,
    corner: bool = False,
):
    """Compute ``part / gaps``, and 0 where a gap is 0: there ``part`` must be 0, too.

    Args:
        part: Numerator, ``[..., n, m]``.
        along: Matrix that ``part`` belongs to; its largest entry scales the tolerance.
        slopes: Row of the cotangents of the values, which broadcasts against ``gaps``.
        gaps: Differences of values, ``[..., n, m]``.
        who: Name of the factorization, for errors.
        values: Name of its values, for errors.
        strict: Also raise where the limit of the quotient may not be 0.
        corner: Accept any ``part`` where a gap is 0.

    Raises:
        ValueError: If a numerator is not 0 where a gap is, or a limit is unknown.
    """
    near = _near(xp, gaps)
    if near is None:
        return part / gaps
    limit = _limit(xp, along)
    if not corner and (near & (xp.abs(part) > limit)).any():
        raise InvalidArgumentError(NO_DERIVATIVE.format(who=who, values=values))
    if strict:
        moving = slopes != 0
        unknown = moving | (xp.abs(along) > limit)
        if part.shape[-1] == part.shape[-2]:
            unknown = unknown | xp.swapaxes(unknown, -1, -2)
        if (near & unknown).any():
            raise InvalidArgumentError(
                UNKNOWN_DERIVATIVE.format(who=who, values=values)
            )
    return _quotient(xp, part, gaps)


def _near(xp, gaps):
    """Return a mask of zero gaps, without the diagonal of a square; None if it is empty."""
    near = gaps == 0
    if not near.any():
        return None
    if gaps.shape[-1] == gaps.shape[-2]:
        near = near & ~xp.eye(gaps.shape[-1], dtype=bool)
    return near


def _quotient(xp, part, gaps):
    near = gaps == 0
    return xp.where(near, part.dtype.type(0), part / xp.where(near, 1, gaps))


def _limit(xp, matrix):
    """Return the size up to which an entry is rounding, relative to the largest entry."""
    rounding = float(finfo(matrix.dtype).eps) ** 0.5
    return xp.abs(matrix).max((-2, -1), keepdims=True) * rounding


def _infer(part, *others, **attributes):
    return TensorSpec(part.shape, part.dtype)


over_gaps.infer(_infer)


@over_gaps.batch
def _(mapped, *inputs, **attributes):
    return over_gaps(*all_mapped(mapped, inputs), **attributes)


@over_gaps.vjp("part")
def _(g, gaps, strict):
    return over_gaps_turned(g, gaps, strict=strict)


@over_gaps.vjp("gaps")
def _(g, out, gaps):
    return -divide_no_nan(g * out, gaps)


@primitive(
    ignores_float_errors=True,
    floating=True,
    linear=[{"part"}],
    batch=batch_leading,
)
def over_gaps_turned(xp, part: TensorLike, gaps: TensorLike, *, strict: bool):
    """The transpose of `over_gaps`: NaN where ``strict`` and the quotient is unknown."""
    near = _near(xp, gaps)
    if near is None:
        return part / gaps
    quotient = _quotient(xp, part, gaps)
    if not strict:
        return quotient
    lost = near & (xp.abs(part) > _limit(xp, part))
    return xp.where(lost, part.dtype.type("nan"), quotient)


over_gaps_turned.infer(_infer)


@over_gaps_turned.vjp("part")
def _(g, gaps, strict):
    return over_gaps_turned(g, gaps, strict=strict)


@over_gaps_turned.vjp("gaps")
def _(g, out, gaps):
    return -divide_no_nan(g * out, gaps)


# ------------------------------------------------------------- the limits of quotients


def any_coincide(outputs):
    """Return whether any matrix of a batch has repeated eigenvalues or singular values."""
    values, *vectors = outputs
    repeated = reduce_any(beside_diagonal(gaps_of(values, values.dtype)))
    if len(vectors) > 1:  # a singular value of 0 coincides with its negative
        repeated = logical_or(
            repeated, reduce_any(equal(sums_of(values, values.dtype), 0.0))
        )
    return repeated


def free_of_turns(part, turns, sizes, who, values):
    """Return ``part``; raise if a result depends on the basis, so that ``turns`` are not 0.

    ``sizes`` are tensors; their largest entry scales the tolerance.
    """
    size = reduce_max(stack([_largest(x) for x in sizes]))
    limits = [float(finfo(x.array.dtype).eps) ** 0.5 for x in turns]
    excess = stack([_largest(x) - limit * size for x, limit in zip(turns, limits)])
    return unless_turned(part, reduce_max(excess), who=who, values=values)


def _largest(x):
    return reduce_max(abs(x))


@primitive(
    may_raise=True,
    same_dtype=("part",),
    linear=[{"part"}],
    no_gradient=("excess",),
    view=True,
)
def unless_turned(xp, part: TensorLike, excess: TensorLike, *, who: str, values: str):
    """Return ``part``; raise if it depends on the basis.

    Raises:
        ValueError: If ``excess`` is positive or NaN.
    """
    if not (excess <= 0).all():
        raise InvalidArgumentError(NO_DERIVATIVE.format(who=who, values=values))
    return part


unless_turned.infer(_infer)


@unless_turned.batch
def _(mapped, *inputs, **attributes):
    return unless_turned(*all_mapped(mapped, inputs), **attributes)


@unless_turned.vjp("part")
def _(g, part, who):
    return counting_derivatives(g, part, who=who, left=1)


@primitive(linear=[{"g", "part"}], view=True)
def counting_derivatives(xp, g: TensorLike, part: TensorLike, *, who: str, left: int):
    """Return ``g``, in the first derivative by ``part``; ``left`` further ones are known.

    It counts as a function of ``part``, so that a tape has a record of each derivative.
    """
    return g


counting_derivatives.infer(_infer)


@counting_derivatives.batch
def _(mapped, *inputs, **attributes):
    return counting_derivatives(*all_mapped(mapped, inputs), **attributes)


@counting_derivatives.vjp("g")
def _(g):
    return g


@counting_derivatives.vjp("part")
def _(g, part, who, left):
    if not left:
        return unknown_order(g, who=who)
    return counting_derivatives(zeros_like(g), part, who=who, left=left - 1)


@primitive(may_raise=True, view=True, batch=batch_leading)
def unknown_order(xp, g: TensorLike, *, who: str):
    """Return zeros, for a derivative of unknown order.

    Raises:
        ValueError: If ``g`` is not 0.
    """
    if g.any():
        raise InvalidArgumentError(NO_ORDER.format(who=who))
    return g


unknown_order.infer(_infer)


@unknown_order.vjp("g")
def _(g, who):
    return unknown_order(g, who=who)


def beside_diagonal(gaps):
    """Return a mask of zero gaps, except on the diagonal."""
    count = gaps.shape[-1]
    on = beside(gaps, eye, count, dtype="bool")
    return logical_and(equal(gaps, 0.0), logical_not(on))


def difference(turned):
    """Return ``X``; ``turned[..., j, :, :]`` is ``V^H @ R``, R the slope of cotangent j."""
    skew = turned - adjoint(turned)
    return (einsum("...jij->...ij", skew) - einsum("...iij->...ij", skew)) * 0.25


def total(turned):
    """Return the skew part where singular values are 0, as `difference`.

    The argument is ``U^H RU - V^H RV``: left and right vectors turn against each other.
    """
    skew = turned - adjoint(turned)
    both = einsum("...jij->...ij", skew) + einsum("...iij->...ij", skew)
    return both * 0.25


def product(*factors):
    """Return the product of several matrices."""
    result = factors[0]
    for factor in factors[1:]:
        result = matmul_p(result, factor)
    return result
