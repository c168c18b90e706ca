"""Shape, batching and diagonal rules shared by kinds of ops.

Each ``infer_...``, ``batch_...`` and ``diagonal_...`` returns the rule of an op, set by
an option: ``@primitive(batch=batch_leading)``.

A *batch* rule receives inputs with a mapped first axis (``mapped[i]`` says which) and
returns an output with a mapped first axis.

A *diagonal* rule serves Jacobians. A mapped value may be diagonal in one of its axes:
it then represents one value per index of that axis, each zero except at its index. The
rule receives the diagonal axis of each input, counted from the end (-1 is the last;
None if the input is not mapped), and returns the diagonal axis of the output, or None.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import index
from typing import Any, Unpack, overload

from .errors import DTypeError, InvalidArgumentError, ShapeError
from .op_definition.traits import ElementwiseTraits, Traits
from .primitive import get_primitive, primitive
from .shapes.symbolic_dim import NeedsSize
from .shapes.symbolic_shape import agree
from .shapes.tensor_shape import TensorShape, UnrankedShape
from .tensor import Tensor, TensorSpec
from .typing import Kernel, Op, P


def broadcast_shape(*shapes):
    """Return the shape to which all shapes broadcast; None is an unknown dimension.

    Raises:
        ValueError: If two known dimensions disagree.

    Example:
        >>> from tapewright.core.rules import broadcast_shape
        >>> broadcast_shape((3, 1), (2,))
        TensorShape([3, 2])
    """
    if any([getattr(s, "rank", 0) is None for s in shapes]):
        return _broadcast_unranked(shapes)
    result = []
    for i in range(-max(map(len, shapes), default=0), 0):
        size = 1
        for shape in shapes:
            other = shape[i] if len(shape) >= -i else 1
            if other is size or (type(other) is int and other == 1):
                continue
            if size is None or (type(size) is int and size == 1):
                size = other
            elif not agree(size, other):
                listing = " and ".join(str(tuple(s)) for s in shapes)
                raise InvalidArgumentError(
                    f"shapes {listing} do not broadcast together"
                )
            elif type(other) is int:  # the unknown size must be equal to it
                size = other
        result.append(size)
    return TensorShape(result)


def checked_broadcast(who, *shapes, **given):
    """Return `broadcast_shape`; errors show the inputs of ``who``.

    Raises:
        ShapeError: If two known dimensions disagree.
    """
    try:
        return broadcast_shape(*shapes)
    except ValueError as error:
        raise ShapeError(who, str(error), **given) from None


def _broadcast_unranked(shapes):
    """Return the broadcast shape for unknown ranks: known if all others are scalars."""
    result = None
    for shape in shapes:
        if getattr(shape, "rank", 0) is None:
            if result is not None and not (
                isinstance(result, UnrankedShape) and isinstance(shape, UnrankedShape)
                and result == shape
            ):  # fmt: skip
                return TensorShape(None)
            result = shape
        elif len(shape):
            return TensorShape(None)
    return result


def normalize_axis(who, axis, rank, name="axis"):
    """Return a tuple of axes from 0 to rank - 1; None means all.

    Raises:
        ValueError: If an axis is out of range or named twice.
    """
    if rank is None:
        raise NeedsSize(f"{who}: {name} needs the rank of a tensor, which is unknown")
    if axis is None:
        return tuple(range(rank))
    axes = (axis,) if hasattr(axis, "__index__") else tuple(axis)
    axes = tuple([index(a) for a in axes])
    for a in axes:
        if not -rank <= a < max(rank, 0):
            if not rank:
                raise InvalidArgumentError(f"{who}: a scalar has no {name} {a}")
            raise InvalidArgumentError(
                f"{who}: {name} must be from {-rank} to {rank - 1} for rank {rank}, got {a}"
            )
    axes = tuple([a % rank for a in axes])
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError(
            f"{who}: {name} must not contain an axis twice, got {axis}"
        )
    return axes


def known_rank(who, name, spec):
    """Return the rank of an input.

    Raises:
        NeedsSize: In a trace for all ranks.
    """
    if spec.shape.rank is None:
        raise NeedsSize(f"{who}: the rank of {name} is not known before the call")
    return spec.shape.rank


def check_choice(who, name, value, choices):
    """Raise ``ValueError`` unless ``value`` is among ``choices``."""
    if value not in choices:
        *known, last = map(repr, choices)
        wanted = f"{', '.join(known)} or {last}" if known else last
        raise InvalidArgumentError(f"{who}: {name} must be {wanted}, got {value!r}")


def check_at_least(who, least, **numbers):
    """Raise ``ValueError`` if a number is below ``least``."""
    for name, number in numbers.items():
        if number < least:
            raise InvalidArgumentError(
                f"{who}: {name} must be {least} or more, got {number}"
            )


def same_dtype(who, **specs):
    """Return the common dtype of the specs.

    Raises:
        DTypeError: If they differ.
    """
    dtypes = {spec.dtype for spec in specs.values()}
    if len(dtypes) > 1:
        raise DTypeError(who, "the dtypes must be the same", **specs)
    return dtypes.pop()


def infer_elementwise(op, result_dtype=None):
    """Infer rule: shapes broadcast; the dtype is the inputs' or ``result_dtype``."""

    def _(*specs, **attributes):
        given = dict(zip(op.inputs, specs))
        alike = {n: s for n, s in given.items() if n in op.same_dtype}
        dtype = same_dtype(op.name, **alike)
        if op.kinds and dtype.dtype.kind not in op.kinds:
            raise op.dtype_error(specs[0])
        shape = checked_broadcast(op.name, *[s.shape for s in specs], **given)
        if result_dtype is not None:
            dtype = result_dtype(dtype) if callable(result_dtype) else result_dtype
        return TensorSpec(shape, dtype)

    return _


def infer_like_input(op):
    """Infer rule: the spec of the first input."""

    def _(x, *others, **attributes):
        return x

    return _


def infer_along_axis(op):
    """Infer rule of ops along ``axis`` that keep the shape: the spec of the input."""

    def _(x, *others, axis, **attributes):
        normalize_axis(op.name, axis, x.shape.rank)
        return x

    return _


def lift(mapped, *inputs):
    """Insert axes of size 1 after the mapped axes, so that all inputs broadcast.

    With an unmapped ``[2, 3]``, a mapped ``[m, 3]`` becomes ``[m, 1, 3]``.
    """
    ranks = [x.array.ndim - m for x, m in zip(inputs, mapped)]
    rank = max(ranks)
    if min(ranks) == rank:
        return inputs
    reshape = get_primitive("reshape").entry
    lifted = []
    for x, is_mapped, its_rank in zip(inputs, mapped, ranks):
        if is_mapped and its_rank < rank:
            shape = x.array.shape
            x = reshape(x, shape[:1] + (1,) * (rank - its_rank) + shape[1:])
        lifted.append(x)
    return lifted


def all_mapped(mapped, values):
    """Return the values, with unmapped values repeated along a new first axis."""
    if all(mapped):
        return values
    broadcast_to = get_primitive("broadcast_to").entry
    size = next(v.array.shape[0] for v, m in zip(values, mapped) if m)
    return [
        v if m else broadcast_to(v, (size, *v.array.shape))
        for v, m in zip(values, mapped)
    ]


def batch_leading(op):
    """Batch rule of ops that broadcast, or that work on the last axes only.

    It is the op itself, after `lift`, on inputs with an additional first axis.
    """

    def _(mapped, *inputs, **attributes):
        if len(inputs) > 1:
            inputs = lift(mapped, *inputs)
        return op.general(inputs, attributes) if attributes else op.entry(*inputs)

    return _


def batch_along_axis(op):
    """Batch rule of ops along ``axis``, one or several: each is shifted by one.

    All inputs have the same rank.
    """

    def _(mapped, *inputs, axis, **attributes):
        inputs = all_mapped(mapped, inputs)
        rank = inputs[0].array.ndim - 1
        if isinstance(axis, tuple):
            attributes["axis"] = tuple([a % rank + 1 for a in axis])
        else:
            attributes["axis"] = axis % rank + 1
        return op.general(inputs, attributes)

    return _


def diagonal_elementwise(op):
    """Diagonal rule: the axis is kept if the op is zero off the diagonal."""

    def _(axes, *inputs, **attributes):
        mapped = {name for name, axis in zip(op.inputs, axes) if axis is not None}
        if mapped not in op.zero_when:
            return None
        axis = size = None
        for x, its_axis in zip(inputs, axes):
            if its_axis is not None:
                its_size = x.array.shape[its_axis]
                if axis is not None and (axis, size) != (its_axis, its_size):
                    return None
                axis, size = its_axis, its_size
        for x in inputs:
            shape = x.array.shape
            # an axis of size 1 may be broadcast, and then is not diagonal
            if len(shape) >= -axis and shape[axis] not in (1, size):
                return None
        return axis

    return _


def diagonal_along_axis(op):
    """Diagonal rule of ops along ``axis``, one or several: any other axis is kept.

    Only the first input may be mapped.
    """

    def _(axes, x, *others, axis, **attributes):
        if axes[0] is None or axes.count(None) < len(others):
            return None
        return beside_axis(axes[0], len(x.shape), axis)

    return _


def beside_axis(diagonal, rank, axis):
    """Return the diagonal axis, or None if it is ``axis`` or among them."""
    several = axis if isinstance(axis, tuple) else (axis,)
    return None if any([(diagonal - a) % rank == 0 for a in several]) else diagonal


def _unions(sets):
    """Return the unions of one or more of the sets."""
    unions = set()
    for each in sets:
        unions |= {each} | {each | other for other in unions}
    return unions


@overload
def elementwise(kernel: Kernel[P], /) -> Op[P, Tensor]: ...
@overload
def elementwise(
    **traits: Unpack[ElementwiseTraits],
) -> Callable[[Kernel[P]], Op[P, Tensor]]: ...
def elementwise(kernel=None, *, zero_when=(), result_dtype=None, **traits):
    """Decorator: define an element-wise op whose inputs are broadcast together.

    It has the three rules above. ``result_dtype`` is the dtype of the output, or a
    function of the inputs' dtype (default: the same). ``zero_when`` lists sets of
    inputs; the output is zero if exactly the inputs of one set are zero (``linear``
    implies some). See `primitive` for the other options.
    """
    if kernel is None:
        return functools.partial(
            elementwise, zero_when=zero_when, result_dtype=result_dtype, **traits
        )
    traits.setdefault("cost", (1, 0))
    op = primitive(**traits)(kernel).primitive
    op.broadcasts = traits.get("broadcasts", len(op.inputs) > 1)
    op.elementwise = True
    op.infer(infer_elementwise(op, result_dtype))
    op.batch(batch_leading(op))
    op.zero_when = {frozenset(names) for names in zero_when} | _unions(op.linear)
    if op.zero_when:
        op.diagonal(diagonal_elementwise(op))
    return op.entry


def check_attributes(op: Any, check: Callable[..., None]) -> None:
    """Call ``check(**attributes)``, which may raise, before ``infer`` of an op."""
    infer = op.primitive.infer_rule

    def rule(*specs, **attributes):
        check(**attributes)
        return infer(*specs, **attributes)

    op.primitive.infer(rule)


def along_axis(**traits: Unpack[Traits]) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator: define an op along its attribute ``axis`` that keeps the input's spec.

    It includes the rules; see `primitive` for the options.
    """
    diagonal = diagonal_along_axis if traits.get("linear") is True else None
    own = Traits(infer=infer_along_axis, batch=batch_along_axis, diagonal=diagonal)
    return primitive(**own | traits)
