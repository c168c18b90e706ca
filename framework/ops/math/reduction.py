"""Ops that reduce axes: sums, means, products, extremes, norms.

``axis`` is None (all axes), one axis or several; ``keepdims`` keeps them with size 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack, overload

import numpy as np

from tapewright.core import dtypes
from tapewright.core.dispatch import composite
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    ShapeError,
    cast_advice,
)
from tapewright.core.hardware.blas import sum_of_squares
from tapewright.core.op_definition.costs import per_input
from tapewright.core.op_definition.traits import Traits
from tapewright.core.primitive import primitive
from tapewright.core.rules import all_mapped, lift, normalize_axis
from tapewright.core.shapes.symbolic_shape import product
from tapewright.core.tensor import (
    IndexedSlices,
    Tensor,
    TensorSpec,
    convert_to_tensor,
)
from tapewright.core.typing import (
    Axes,
    DTypeLike,
    Kernel,
    Op,
    P,
    TensorLike,
    as_axes,
)

from ..array.conversion import cast, conj, real, stop_gradient
from ..array.creation import ones_like
from ..array.joining import concat, split, stack
from ..array.shape import broadcast_to, reshape, sum_sparse, summed, transpose
from .comparison import equal, greater, is_finite, masked, where
from .elementwise import (
    abs,
    divide_no_nan,
    maximum,
    multiply,
    norm_sqrt,
    square,
    zero_safe_divide,
)

__all__ = [
    "clip_by_global_norm",
    "clip_by_norm",
    "count_nonzero",
    "global_norm",
    "reduce_all",
    "reduce_any",
    "reduce_euclidean_norm",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_variance",
]


# ------------------------------------------------------------- rules of all reductions


def reduction(
    *,
    result_dtype: dtypes.DType | None = None,
    zero_at_zero: bool = False,
    **traits: Unpack[Traits],
) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator: an op over axes, with its shape, batching and diagonal rules.

    ``result_dtype`` is set if it differs from the input's dtype. ``zero_at_zero``:
    zeros result in zero, as they do where the op is ``linear``. The other options are
    passed to `primitive`.
    """

    def infer(op):
        def _(input_tensor, axis, keepdims):
            dtype = result_dtype or input_tensor.dtype
            if input_tensor.shape.rank is None and axis is None and not keepdims:
                return TensorSpec((), dtype)
            normalize_axis(op.name, axis, input_tensor.shape.rank)
            return TensorSpec(_reduced(input_tensor.shape, axis, keepdims), dtype)

        return _

    diagonal = _diagonal if zero_at_zero or traits.get("linear") else None
    own = Traits(
        kinds="iufc", cost=per_input(1), infer=infer, batch=_batch, diagonal=diagonal
    )
    return primitive(**own | traits)


def _batch(op):
    def _(mapped, input_tensor, *, axis, keepdims):
        axes = normalize_axis(op.name, axis, input_tensor.array.ndim - 1)
        return op.entry(input_tensor, tuple([a + 1 for a in axes]), keepdims)

    return _


def _diagonal(op):
    def _(axes, input_tensor, *, axis, keepdims):
        rank = input_tensor.shape.rank
        reduced = normalize_axis(op.name, axis, rank)
        at = rank + axes[0]
        if at in reduced:
            return None
        behind = len([a for a in reduced if a > at])
        return axes[0] if keepdims else axes[0] + behind

    return _


def expand_reduced(g, shape, axis, keepdims):
    """Repeat the output of a reduction to the ``shape`` of its input."""
    if axis is None and keepdims:
        g = reshape(g, ())
    return broadcast_to(restored(g, shape, axis, keepdims), shape)


def restored(reduced, shape, axis, keepdims):
    """Restore the axes of a reduction's output with size 1; unchanged if all are reduced."""
    if keepdims or axis is None:
        return reduced
    return reshape(reduced, _reduced(shape, axis, True))


def _count(shape, axis):
    if axis is None:
        return product(shape)
    count = 1
    for a in normalize_axis("reduction", axis, len(shape)):
        count *= shape[a]
    return count


# ------------------------------------------------------------------- sums and means


@reduction(type_name="Sum", sizes=True, linear=True)
def reduce_sum(xp, input_tensor: TensorLike, axis: Axes = None, keepdims: bool = False):
    """Sum of the entries over axes.

    Args:
        input_tensor: Input tensor of numbers.
        axis: Axis or list of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        The result lacks the axes in ``axis``, or has size 1 there with ``keepdims``.

    Example:
        >>> tw.reduce_sum([[1, 2], [3, 4]]).numpy()
        np.int32(10)
        >>> tw.reduce_sum([[1, 2], [3, 4]], axis=0).numpy()
        array([4, 6], dtype=int32)
        >>> tw.reduce_sum([[1, 2], [3, 4]], axis=1, keepdims=True).numpy()
        array([[3],
               [7]], dtype=int32)
    """
    _check_axis(input_tensor, axis)
    return _total(xp, input_tensor, axis, keepdims)


def _total(xp, x, axis, keepdims):
    if x.size < 4096 or x.dtype.kind != "f":
        return x.sum(axis=axis, dtype=x.dtype, keepdims=keepdims)
    axes = sorted(normalize_axis("reduction", axis, x.ndim))
    return summed(xp, x, axes).reshape(_reduced(x.shape, axes, keepdims))


def _check_axis(x, axis):
    """Reject an axis of a scalar, which NumPy would accept."""
    if not x.ndim and axis is not None and axis != ():
        raise ValueError("a scalar has no axis")  # `infer` says it better


@reduce_sum.vjp("input_tensor")
def _(g, input_tensor_shape, axis, keepdims):
    return expand_reduced(g, input_tensor_shape, axis, keepdims)


@reduce_sum.densify
def _(position, sparse_axis, x, axis, keepdims):
    rank = x.ndim - 1
    if axis is None:
        axis = range(rank)
    elif type(axis) is int:
        axis = (axis,)
    axes = {a % rank for a in axis}
    shape = [1 if a in axes else n for a, n in enumerate(x.shape[1:])]
    if not keepdims:
        shape = [n for a, n in enumerate(shape) if a not in axes]
    return sum_sparse(x, sparse_axis + rank, axes, shape)


@reduction(type_name="Mean", ignores_float_errors=True, linear=True)
def reduce_mean(
    xp, input_tensor: TensorLike, axis: Axes = None, keepdims: bool = False
):
    """Mean of the entries over axes.

    The result has the dtype of the input; the mean of integers is rounded towards 0.

    Args:
        input_tensor: Input tensor of numbers.
        axis: Axis or list of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        As in `reduce_sum`.

    Example:
        >>> tw.reduce_mean([[1.0, 2.0], [3.0, 6.0]], axis=1).numpy()
        array([1.5, 4.5], dtype=float32)
    """
    dtype = input_tensor.dtype
    count = _count(input_tensor.shape, axis)
    if dtype.kind in "iu":  # the sum may be larger than the dtype holds
        wide = xp.uint64 if dtype.kind == "u" else xp.int64
        total = input_tensor.sum(axis=axis, dtype=wide, keepdims=keepdims)
        return (xp.sign(total) * (xp.abs(total) // wide(max(count, 1)))).astype(dtype)
    if dtype == xp.float16:
        total = _total(xp, input_tensor.astype(xp.float32), axis, keepdims)
        return (total / xp.float32(count)).astype(dtype)
    total = _total(xp, input_tensor, axis, keepdims)
    return total * dtype.type(1 / count) if count else total / 0


@reduce_mean.vjp("input_tensor")
def _(g, input_tensor_shape, axis, keepdims):
    share = g * (1.0 / max(_count(input_tensor_shape, axis), 1))
    return expand_reduced(share, input_tensor_shape, axis, keepdims)


@composite
def reduce_variance(
    input_tensor: TensorLike,
    axis: Axes = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Variance over axes: ``mean(|x - mean(x)| ** 2)``.

    Args:
        input_tensor: Floating or complex tensor.
        axis: Axis or list of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        As in `reduce_sum`.

    Raises:
        DTypeError: If ``input_tensor`` holds integers, whose mean would be rounded (a
            ``TypeError``).

    Example:
        >>> tw.reduce_variance([1.0, 3.0]).numpy()
        np.float32(1.0)
    """
    x = _differentiable("reduce_variance", input_tensor)
    deviation = x - reduce_mean(x, axis, axis is not None)
    if x.dtype.is_complex:
        deviation = abs(deviation)
    return reduce_mean(square(deviation), axis, keepdims)


@composite
def reduce_std(
    input_tensor: TensorLike,
    axis: Axes = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Standard deviation over axes: the square root of `reduce_variance`.

    Where all entries are equal, its derivatives are 0.

    Args:
        input_tensor: Floating or complex tensor.
        axis: Axis or list of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        As in `reduce_sum`.

    Raises:
        DTypeError: If ``input_tensor`` holds integers (a ``TypeError``).

    Example:
        >>> tw.reduce_std([1.0, 3.0]).numpy()
        np.float32(1.0)
    """
    x = _differentiable("reduce_std", input_tensor)
    # Taken from the first entry on: the mean of equal numbers is rounded, and what is
    # left of each then would look like a deviation, with a slope of its own.
    shifted = x - stop_gradient(_first(x, axis)) if x.array.size else x
    return norm_sqrt(reduce_variance(shifted, axis, keepdims))


def _differentiable(who, input_tensor):
    x = convert_to_tensor(input_tensor)
    if not x.dtype.is_differentiable:
        advice = cast_advice("input_tensor", "float32")
        what = f"input_tensor must be floating or complex; {advice}"
        raise DTypeError(who, what, input_tensor=x)
    return x


def _first(x, axis):
    """Return the first entry over ``axis``, which stays with size 1."""
    for a in normalize_axis("reduce_std", as_axes(axis), x.shape.rank):
        x = split(x, [1, -1], a)[0]
    return x


# --------------------------------------------------------------- extremes, products


@reduction(type_name="Max", kinds="iuf", sizes=True)
def reduce_max(xp, input_tensor: TensorLike, axis: Axes = None, keepdims: bool = False):
    """Maximum over axes; ties share the gradient equally.

    The result is NaN if an entry is NaN, and the lowest value of the dtype (-inf) if
    there are no entries.

    Args:
        input_tensor: Input tensor of real numbers.
        axis: Axis or list of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        As in `reduce_sum`.

    Example:
        >>> tw.reduce_max([[1, 7], [5, 2]], axis=1).numpy()
        array([7, 5], dtype=int32)
    """
    _check_axis(input_tensor, axis)
    if not input_tensor.size and not _count(input_tensor.shape, axis):
        dtype = input_tensor.dtype
        lowest = -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
        return xp.full(_reduced(input_tensor.shape, axis, keepdims), lowest, dtype)
    return input_tensor.max(axis=axis, keepdims=keepdims)


@reduction(type_name="Min", kinds="iuf", sizes=True)
def reduce_min(xp, input_tensor: TensorLike, axis: Axes = None, keepdims: bool = False):
    """Minimum over axes; ties share the gradient equally.

    The result is NaN if an entry is NaN, and the highest value of the dtype (inf) if
    there are no entries.

    Args:
        input_tensor: Input tensor of real numbers.
        axis: Axis or list of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        As in `reduce_sum`.

    Example:
        >>> tw.reduce_min([[1, 7], [5, 2]], axis=1).numpy()
        array([1, 2], dtype=int32)
    """
    _check_axis(input_tensor, axis)
    if not input_tensor.size and not _count(input_tensor.shape, axis):
        dtype = input_tensor.dtype
        highest = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
        return xp.full(_reduced(input_tensor.shape, axis, keepdims), highest, dtype)
    return input_tensor.min(axis=axis, keepdims=keepdims)


def _reduced(shape, axis, keepdims):
    axes = normalize_axis("reduction", axis, len(shape))
    kept = [1 if i in axes else n for i, n in enumerate(shape)]
    return kept if keepdims else [n for i, n in enumerate(shape) if i not in axes]


@reduce_max.vjp("input_tensor")
@reduce_min.vjp("input_tensor")
def _(g, input_tensor, input_tensor_shape, input_tensor_dtype, out, axis, keepdims):
    shape = input_tensor_shape
    winners = cast(
        equal(input_tensor, restored(out, shape, axis, keepdims)), input_tensor_dtype
    )
    count = reduce_sum(winners, axis, axis is not None)
    share = zero_safe_divide(restored(g, shape, axis, keepdims), count)
    return winners * share


@reduction(
    type_name="Prod",
    sizes=True,
    cost=per_input(1),
    stable_form="exp(reduce_sum(log(x))), or logarithms throughout",
)
def reduce_prod(
    xp, input_tensor: TensorLike, axis: Axes = None, keepdims: bool = False
):
    """Product of the entries over axes, with exact derivatives where factors are zero.

    Args:
        input_tensor: Input tensor of numbers.
        axis: Axis or list of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        As in `reduce_sum`.

    Example:
        >>> tw.reduce_prod([[1, 2], [3, 4]], axis=1).numpy()
        array([ 2, 12], dtype=int32)
    """
    _check_axis(input_tensor, axis)
    return input_tensor.prod(axis=axis, dtype=input_tensor.dtype, keepdims=keepdims)


@reduce_prod.vjp("input_tensor")
def _(g, input_tensor, input_tensor_shape, axis, keepdims):
    shape = input_tensor_shape
    axes = normalize_axis("reduce_prod", axis, len(shape))
    kept = [i for i in range(len(shape)) if i not in axes]
    order = kept + list(axes)
    moved = transpose(input_tensor, order)
    lead = [shape[i] for i in kept]
    others = _products_of_others(reshape(moved, [*lead, _count(shape, axis)]))
    back = sorted(range(len(order)), key=order.__getitem__)
    others = transpose(reshape(others, [shape[i] for i in order]), back)
    return others * restored(g, shape, axis, keepdims)


def _products_of_others(x):
    """Compute, for each entry of the last axis, the product of all others without division.

    Up a tree of pairs, and down again: n products, log n steps, exact with zeros.
    """
    *lead, count = x.shape
    if count < 2:
        return ones_like(x)
    if count % 2:
        odd = ones_like(split(x, [1, count - 1], axis=-1)[0])
        parts = _products_of_others(concat([x, odd], axis=-1))
        return split(parts, [count, 1], axis=-1)[0]
    pairs = reshape(x, [*lead, count // 2, 2])
    left, right = (reshape(h, [*lead, count // 2]) for h in split(pairs, 2, axis=-1))
    above = _products_of_others(left * right)
    return reshape(stack([above * right, above * left], axis=-1), [*lead, count])


@reduction(type_name="All", kinds="b", result_dtype=dtypes.bool, no_gradient=True)
def reduce_all(xp, input_tensor: TensorLike, axis: Axes = None, keepdims: bool = False):
    """Logical and over axes: True where all entries are True.

    Args:
        input_tensor: Boolean tensor.
        axis: Axis or list of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        As in `reduce_sum`.

    Example:
        >>> tw.reduce_all([[True, False], [True, True]], axis=1).numpy()
        array([False,  True])
    """
    _check_axis(input_tensor, axis)
    return input_tensor.all(axis=axis, keepdims=keepdims)


@reduction(type_name="Any", kinds="b", result_dtype=dtypes.bool, no_gradient=True)
def reduce_any(xp, input_tensor: TensorLike, axis: Axes = None, keepdims: bool = False):
    """Logical or over axes: True where any entry is True.

    Args:
        input_tensor: Boolean tensor.
        axis: Axis or list of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        As in `reduce_sum`.

    Example:
        >>> tw.reduce_any([[True, False], [False, False]], axis=1).numpy()
        array([ True, False])
    """
    _check_axis(input_tensor, axis)
    return input_tensor.any(axis=axis, keepdims=keepdims)


@reduction(
    kinds="biufcO", result_dtype=dtypes.int64, zero_at_zero=True, no_gradient=True
)
def _count_nonzero(
    xp, input_tensor: TensorLike, axis: Axes = None, keepdims: bool = False
):
    count = xp.asarray(xp.count_nonzero(input_tensor, axis=axis), dtype=xp.int64)
    return count.reshape(_reduced(input_tensor.shape, axis, keepdims))


def count_nonzero(
    input: TensorLike,
    axis: Axes = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Count the entries over axes that are not zero, False or an empty string.

    Args:
        input: Input tensor.
        axis: Axis or list of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.
        dtype: Dtype of the counts.

    Shapes:
        As in `reduce_sum`.

    Example:
        >>> tw.count_nonzero([[0, 1, 0], [1, 1, 0]], axis=1).numpy()
        array([1, 2])
    """
    return cast(_count_nonzero(input, axis, bool(keepdims)), dtype)


# --------------------------------------------------------------- logarithms, norms


@reduction(
    type_name="LogSumExp", kinds="f", ignores_float_errors=True, cost=per_input(3, 1)
)
def reduce_logsumexp(
    xp, input_tensor: TensorLike, axis: Axes = None, keepdims: bool = False
):
    """Logarithm of the sum of exponentials over axes: ``log(sum(exp(x)))``.

    It does not overflow, and is -inf where all entries are -inf.

    Args:
        input_tensor: Floating tensor.
        axis: Axis or list of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        As in `reduce_sum`.

    Example:
        >>> tw.reduce_logsumexp([1000.0, 1000.0]).numpy()
        np.float32(1000.6932)
    """
    top = reduce_max.primitive.kernel(xp, input_tensor, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    total = xp.exp(input_tensor - top).sum(axis=axis, keepdims=True)
    result = xp.log(total) + top
    return result.reshape(_reduced(input_tensor.shape, axis, keepdims))


def reduce_euclidean_norm(
    input_tensor: TensorLike,
    axis: Axes = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Euclidean norm over axes: ``sqrt(sum(|x| ** 2))``; its derivatives at 0 are 0.

    The norm of integers is rounded down to an integer.

    Args:
        input_tensor: Input tensor of numbers.
        axis: Axis or list of axes to reduce; None reduces all axes.
        keepdims: If True, keep reduced axes with size 1.

    Shapes:
        As in `reduce_sum`.

    Example:
        >>> tw.reduce_euclidean_norm([3.0, 4.0]).numpy()
        np.float32(5.0)
    """
    x = convert_to_tensor(input_tensor)
    if x.dtype.is_integer:
        length = reduce_euclidean_norm(cast(x, "float64"), axis, keepdims)
        return cast(length, x.dtype)
    x = _differentiable("reduce_euclidean_norm", input_tensor)
    squares = cast(real(x * conj(x)), x.dtype) if x.dtype.is_complex else square(x)
    return norm_sqrt(reduce_sum(squares, axis, keepdims))


# ---------------------------------------------------------------------- clipping


@primitive(name="clip_by_norm", cost=(3, 0))
def clip_by_norm_p(xp, t: TensorLike, clip_norm: TensorLike, axes: Axes = None):
    if axes is None:
        length = xp.sqrt(sum_of_squares(xp, t).real)
    else:
        length = xp.sqrt(xp.square(xp.abs(t)).sum(axis=axes, keepdims=True))
    if xp is np and axes is None:  # a short tensor is its own answer: no pass over it
        return t if length <= clip_norm else t * (clip_norm / length)
    return t * (clip_norm / xp.maximum(length, clip_norm)).astype(t.dtype)


@clip_by_norm_p.infer
def _(t, clip_norm, axes):
    if clip_norm.shape.rank != 0:
        raise ShapeError(
            "clip_by_norm", "clip_norm must be a scalar", clip_norm=clip_norm
        )
    if axes is not None:
        normalize_axis("clip_by_norm", axes, t.shape.rank, "axes")
    return TensorSpec(t.shape, t.dtype)


@clip_by_norm_p.vjp("t")
def _(g, t, clip_norm, axes):
    length = _length(t, axes)
    longest = maximum(length, clip_norm)
    scale = clip_norm / longest
    along = reduce_sum(g * t, axes, axes is not None)
    outside = masked(divide_no_nan(scale, longest * length), greater(length, clip_norm))
    return g * scale - t * (along * outside)


@clip_by_norm_p.vjp("clip_norm")
def _(g, t, clip_norm, axes):
    length = _length(t, axes)
    slope = divide_no_nan(reduce_sum(g * t, axes, axes is not None), length)
    return reduce_sum(masked(slope, greater(length, clip_norm)))


def _length(t, axes):
    return norm_sqrt(reduce_sum(square(t), axes, axes is not None))


@clip_by_norm_p.batch
def _(mapped, t, clip_norm, *, axes):
    axes = normalize_axis("clip_by_norm", axes, t.array.ndim - mapped[0])
    if mapped[1]:  # one limit each
        t, clip_norm = lift((True, True), *all_mapped(mapped, (t, clip_norm)))
        limited = maximum(_length(t, tuple([a + 1 for a in axes])), clip_norm)
        return t * (clip_norm / limited)
    return clip_by_norm_p(t, clip_norm, axes=tuple([a + 1 for a in axes]))


@overload
def clip_by_norm(
    t: IndexedSlices, clip_norm: TensorLike, axes: Axes = None, name: str | None = None
) -> IndexedSlices: ...
@overload
def clip_by_norm(
    t: TensorLike, clip_norm: TensorLike, axes: Axes = None, name: str | None = None
) -> Tensor: ...
def clip_by_norm(t, clip_norm, axes=None, name=None):
    """Clip a tensor to a maximum norm: ``t * clip_norm / max(norm(t), clip_norm)``.

    `IndexedSlices` stay sparse; rows with the same index are added first.

    Args:
        t: Tensor or `IndexedSlices`.
        clip_norm: Maximum of the Euclidean norm.
        axes: Axes over which the norm is computed; None means all.

    Example:
        >>> tw.clip_by_norm([3.0, 4.0], 1.0).numpy()
        array([0.6, 0.8], dtype=float32)
    """
    if isinstance(t, IndexedSlices):
        t = t._tw_sum_repeated()
        return t.with_values(clip_by_norm_p(t.values, clip_norm, axes))
    return clip_by_norm_p(t, clip_norm, axes)


@primitive(cost=per_input(2))
def _global_norm(xp, *t_list: TensorLike):
    total = 0.0
    for t in t_list:
        total = total + sum_of_squares(xp, t).real
    return xp.sqrt(total)


@_global_norm.infer
def _(*t_list):
    return TensorSpec((), t_list[0].dtype)


@_global_norm.vjp("t_list")
def _(g, t_list, out):
    scale = divide_no_nan(g, out)
    return [t * scale for t in t_list]


@_global_norm.batch
def _(mapped, *t_list):
    total = 0.0
    for t, is_mapped in zip(t_list, mapped):
        axes = tuple(range(1 if is_mapped else 0, t.array.ndim))
        total = reduce_sum(square(t), axes) + total
    return norm_sqrt(total)


def global_norm(t_list: Sequence[TensorLike | None], name: str | None = None) -> Tensor:
    """Compute the Euclidean norm of all entries of a list of tensors.

    Args:
        t_list: List of tensors; None entries are skipped, and `IndexedSlices` count as
            the dense tensor they represent.

    Raises:
        ValueError: If the list has no tensor.

    Example:
        >>> tw.global_norm([[3.0], [[4.0]]]).numpy()
        np.float32(5.0)
    """
    present = [_values(t) for t in t_list if t is not None]
    if not present:
        raise InvalidArgumentError(
            "global_norm: t_list must contain at least one tensor"
        )
    return _global_norm(present)


def _values(t):
    """Return the entries of a tensor; of `IndexedSlices`, the entries that may not be zero."""
    if isinstance(t, IndexedSlices):
        return t._tw_sum_repeated().values
    return convert_to_tensor(t)


def clip_by_global_norm(
    t_list: Sequence[TensorLike | None],
    clip_norm: TensorLike,
    use_norm: TensorLike | None = None,
    name: str | None = None,
) -> tuple[list[Any], Tensor]:
    """Scale all tensors of a list by one factor to limit their `global_norm`.

    The factor is ``clip_norm / max(global_norm, clip_norm)``. A norm that is not finite
    makes every entry NaN.

    Args:
        t_list: List of tensors; None entries stay None and `IndexedSlices` stay sparse.
        clip_norm: Maximum of the global norm.
        use_norm: Global norm, if it is known already; None computes it.

    Returns:
        ``(list of tensors, global_norm)``.

    Raises:
        ValueError: If the list has no tensor.

    Example:
        >>> clipped, norm = tw.clip_by_global_norm([[3.0], [4.0]], 1.0)
        >>> [t.numpy().tolist() for t in clipped], norm.numpy()
        ([[0.6000000238418579], [0.800000011920929]], np.float32(5.0))
    """
    total = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    clip_norm = convert_to_tensor(clip_norm, dtype_hint=total.dtype)
    scale = clip_norm / maximum(total, clip_norm)
    scale = where(is_finite(total), scale, np.nan)
    clipped = []
    for t in t_list:
        if isinstance(t, IndexedSlices):
            clipped.append(t.with_values(multiply(t.values, scale)))
        else:
            clipped.append(None if t is None else multiply(t, scale))
    return clipped, total
