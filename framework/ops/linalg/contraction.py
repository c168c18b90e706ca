"""Sums of products over named axes: `einsum`, `tensordot`, `trace`.

NumPy's einsum does not use BLAS where there are batch axes; here each step is one
matrix product, on axes moved and merged for it, and the plan of steps is cached.
"""

from __future__ import annotations

import math
import string
from functools import lru_cache
from operator import index

import numpy as np

from tapewright.core.dispatch import composite
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.rules import normalize_axis, same_dtype
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    is_tensor,
)
from tapewright.core.typing import TensorLike

from ..array.creation import eye, ones
from ..array.shape import broadcast_to, reshape, transpose
from .matmul import beside, matmul, pair

__all__ = ["einsum", "tensordot", "trace"]

# What TensorFlow lets one choose, in NumPy's words.
OPTIMIZERS = {None: "greedy", True: "greedy", False: "greedy", "greedy": "greedy",
              "auto": "greedy", "optimal": "optimal", "branch-2": "optimal",
              "branch-all": "optimal"}  # fmt: skip


# -------------------------------------------------------------------------- einsum


def _einsum_cost(inputs, outputs, equation, **attributes):
    """Return the cost of one or two factors; for more, the order is unknown here: 0."""
    equation = equation.replace(" ", "")
    terms = equation.partition("->")[0].split(",")
    if len(inputs) > 2 or "." in equation or len(terms) != len(inputs):
        return 0
    sizes = {}
    for term, x in zip(terms, inputs, strict=True):
        sizes.update(zip(term, x.shape, strict=True))
    return len(inputs) * math.prod(sizes.values())


@primitive(linear="each", cost=_einsum_cost)
def _einsum(xp, *inputs: TensorLike, equation, optimize: str = "greedy"):
    operands = list(inputs)
    for at, step in _plan(equation, tuple([x.shape for x in inputs]), optimize):
        operands.append(step(xp, *[operands.pop(i) for i in at]))
    return operands[0]


@lru_cache(maxsize=1024)
def _plan(equation, shapes, optimize):
    """Return steps ``(positions, function)``: each pops operands of a list and appends one."""
    terms, result = _terms(equation)
    sizes = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise ValueError("sizes differ")  # `infer` says it better
    if len(terms) == 1:
        return [((0,), _single(terms[0], result))]
    path = [(0, 1)]
    if len(terms) > 2:
        weightless = [np.broadcast_to(0.0, shape) for shape in shapes]
        limit = 2.0**62  # of entries between two steps: none
        path = np.einsum_path(equation, *weightless, optimize=(optimize, limit))[0][1:]
    steps = []
    for positions in _by_two(path, len(terms)):
        taken = [terms.pop(i) for i in positions]
        wanted = set("".join(terms) + result)
        own = dict.fromkeys("".join(taken))
        made = "".join(c for c in own if c in wanted) if terms else result
        a, b = taken
        if _comes_in_order(b, a, made) and not _comes_in_order(a, b, made):
            step = _swapped(_double(b, a, made, sizes))
        else:
            step = _double(a, b, made, sizes)
        steps.append((positions, step))
        terms.append(made)
    return steps


def _by_two(path, count):
    """Return the steps of a path, each with two operands, the later position first."""
    for positions in path:
        positions = sorted(positions, reverse=True)
        while len(positions) > 1:
            yield tuple(positions[:2])
            positions = [count - 2, *positions[2:]]  # what was just made stands last
            count -= 1


def _swapped(step):
    return lambda xp, a, b: step(xp, b, a)


def _comes_in_order(term_a, term_b, result):
    """Return whether a product of these operands has the axes of the result in order."""
    both = [c for c in result if c in term_a and c in term_b]
    rows = [c for c in dict.fromkeys(term_a) if c in result and c not in term_b]
    columns = [c for c in dict.fromkeys(term_b) if c in result and c not in term_a]
    return "".join(both + rows + columns) == result


def _single(term, result):
    """Take diagonals and sums of one operand, and reorder its axes."""
    labels = "".join(dict.fromkeys(term))
    gone = tuple([i for i, c in enumerate(labels) if c not in result])
    kept = [c for c in labels if c in result]
    order = [kept.index(c) for c in result if c in kept]

    def step(xp, x):
        x = x if labels == term else xp.einsum(f"{term}->{labels}", x)
        x = x.sum(axis=gone, dtype=x.dtype) if gone else x
        return x if order == sorted(order) else xp.transpose(x, order)

    return step


def _double(term_a, term_b, result, sizes):
    """Compute one matrix product, or a product of entries if no axis is summed over."""
    both = [c for c in dict.fromkeys(term_a) if c in term_b]
    batch, inner = ([c for c in both if (c in result) == w] for w in (True, False))
    rows, columns = (
        [c for c in dict.fromkeys(own) if c in result and c not in other]
        for own, other in ((term_a, term_b), (term_b, term_a))
    )
    order = batch + rows + columns

    def size(labels):
        return math.prod(sizes[c] for c in labels)

    lead = [sizes[c] for c in batch]
    if inner:
        first, second = batch + rows + inner, batch + inner + columns
        shape_a = [*lead, size(rows), size(inner)]
        shape_b = [*lead, size(inner), size(columns)]
    else:
        first, second = batch + rows, batch + columns
        shape_a = [*lead, *[sizes[c] for c in rows], *[1] * len(columns)]
        shape_b = [*lead, *[1] * len(rows), *[sizes[c] for c in columns]]
    left, right = _single(term_a, "".join(first)), _single(term_b, "".join(second))
    shape = [sizes[c] for c in order]
    final = [order.index(c) for c in result]

    def step(xp, a, b):
        a, b = left(xp, a).reshape(shape_a), right(xp, b).reshape(shape_b)
        product = xp.matmul(a, b).reshape(shape) if inner else a * b
        return product if final == sorted(final) else xp.transpose(product, final)

    return step


def _terms(equation):
    operands, _, result = equation.partition("->")
    return operands.split(","), result


@_einsum.infer
def _(*inputs, equation, optimize):
    terms, result = _terms(equation)
    sizes = {}
    for term, spec in zip(terms, inputs):
        if spec.shape.rank != len(term):
            raise ShapeError("einsum", f"'{term}' does not name the axes of its operand",
                             operand=spec)  # fmt: skip
        for label, size in zip(term, spec.shape):
            if sizes.get(label) is None:
                sizes[label] = size
            if not agree(size, sizes[label]):
                raise ShapeError("einsum", f"'{label}' has sizes {sizes[label]} and {size}",
                                 operand=spec)  # fmt: skip
    dtype = same_dtype("einsum", **{f"input_{i}": x for i, x in enumerate(inputs)})
    return TensorSpec([sizes[label] for label in result], dtype)


@_einsum.vjp("inputs")
def _(g, inputs, inputs_shape, equation, optimize):
    terms, result = _terms(equation)
    return [
        _einsum_vjp(g, inputs, inputs_shape, terms, result, i, optimize)
        for i in range(len(terms))
    ]


def _einsum_vjp(g, inputs, shapes, terms, result, at, optimize):
    """Contract the cotangent with all other operands.

    A label that occurs only in operand ``at`` was summed: its cotangent is repeated. A
    label that occurs there twice was a diagonal: identity matrices put it back in
    place.
    """
    others = [(t, x) for i, (t, x) in enumerate(zip(terms, inputs)) if i != at]
    known = set(result).union(*[t for t, _ in others]) if others else set(result)
    unused = iter([c for c in string.ascii_letters if c not in "".join(terms) + result])
    dtype = g.dtype if not hasattr(g.dtype, "name") else g.dtype.name
    target, factors, seen = [], [(result, g), *others], set()
    for label, size in zip(terms[at], shapes[at]):
        if label in seen:
            fresh = next(unused)
            factors.append((label + fresh, beside(g, eye, size, dtype=dtype)))
            label = fresh
        elif label not in known:
            factors.append((label, beside(g, ones, [size], dtype=dtype)))
        seen.add(label)
        target.append(label)
    equation = ",".join(t for t, _ in factors) + "->" + "".join(target)
    return _einsum([x for _, x in factors], equation=equation, optimize=optimize)


@_einsum.batch
def _(mapped, *inputs, equation, optimize):
    terms, result = _terms(equation)
    label = next(c for c in string.ascii_letters if c not in equation)
    terms = [label + t if m else t for t, m in zip(terms, mapped)]
    equation = f"{','.join(terms)}->{label}{result}"
    return _einsum(list(inputs), equation=equation, optimize=optimize)


def einsum(
    equation: str,
    *inputs: TensorLike,
    optimize: str = "greedy",
    name: str | None = None,
) -> Tensor:
    """Einstein summation: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    A label that occurs twice in one operand takes its diagonal; a label missing from
    the result is summed over. Without ``->`` the result has the labels that occur once,
    in alphabetical order. An ellipsis denotes further axes, which broadcast.

    Args:
        equation: Labels of the axes of each operand and of the result.
        *inputs: Operands, one for each term of the equation.
        optimize: Search for the order of three and more operands: "greedy", "optimal",
            "auto", "branch-2" or "branch-all".

    Raises:
        ValueError: If the equation is invalid or does not match the operands, or
            ``optimize`` is unknown.

    Example:
        >>> tw.einsum("ij,jk->ik", [[1, 2]], [[3], [4]]).numpy()
        array([[11]], dtype=int32)
        >>> tw.einsum("ii->i", [[1, 2], [3, 4]]).numpy()
        array([1, 4], dtype=int32)
    """
    if optimize not in OPTIMIZERS:
        listing = ", ".join(repr(o) for o in OPTIMIZERS if isinstance(o, str))
        raise InvalidArgumentError(
            f"einsum: optimize must be one of {listing}, got {optimize!r}"
        )
    if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) and "," in equation:
        inputs = inputs[0]
    hint = next((x.dtype for x in inputs if is_tensor(x)), None)
    tensors = []
    for x in inputs:
        tensors.append(convert_to_tensor(x, dtype_hint=hint))
        hint = hint or tensors[0].dtype
    equation = equation.replace(" ", "")
    terms, result = _terms(equation)
    if len(terms) != len(tensors):
        raise InvalidArgumentError(
            f"einsum: '{equation}' needs {len(terms)} operands, got {len(tensors)}"
        )
    if "->" not in equation:
        labels = "".join(terms).replace("...", "")
        result = "".join(sorted(c for c in set(labels) if labels.count(c) == 1))
        result = ("..." if "..." in equation else "") + result
    terms, result = _spell_out_ellipsis(terms, result, tensors, equation)
    valid = set(string.ascii_letters)
    if not set("".join(terms) + result) <= valid or not set(result) <= set(
        "".join(terms)
    ):
        raise InvalidArgumentError(f"einsum: '{equation}' is not a valid equation")
    if len(set(result)) != len(result):
        raise InvalidArgumentError(
            f"einsum: '{equation}' names an axis of the result twice"
        )
    spelled = f"{','.join(terms)}->{result}"
    return _einsum(tensors, equation=spelled, optimize=OPTIMIZERS[optimize])


def _spell_out_ellipsis(terms, result, tensors, equation):
    """Label each axis in the terms; repeated axes of ``tensors`` are written out."""
    if "..." not in equation:
        return terms, result
    if "..." not in result:
        _refuse_hidden_axes(terms, tensors, equation)
    ranks = [
        len(x.shape) - len(t.replace("...", "")) if "..." in t else 0
        for t, x in zip(terms, tensors)
    ]
    if min(ranks) < 0:
        at = ranks.index(min(ranks))
        raise ShapeError("einsum", f"'{terms[at]}' names more axes than its operand has",
                         operand=tensors[at])  # fmt: skip
    most = max(ranks)
    unused = [c for c in string.ascii_letters if c not in equation][:most]
    full = [1] * most  # the sizes behind the ellipsis, once they are broadcast
    for term, rank, x in zip(terms, ranks, tensors):
        start = term.find("...")
        for j in range(rank):
            full[most - rank + j] = max(full[most - rank + j], x.shape[start + j])
    spelled = []
    for i, (term, rank) in enumerate(zip(terms, ranks)):
        dims = list(tensors[i].shape)
        for at, size in enumerate(full[most - rank :], term.find("...")):
            dims[at] = size if dims[at] == 1 else dims[at]
        if dims != list(tensors[i].shape):  # a repeated axis is none of the equation's
            tensors[i] = broadcast_to(tensors[i], dims)
        spelled.append(term.replace("...", "".join(unused[most - rank :])))
    return spelled, result.replace("...", "".join(unused))


def _refuse_hidden_axes(terms, tensors, equation):
    for term, x in zip(terms, tensors):
        if "..." in term and len(x.shape) > len(term) - 3:
            raise ShapeError(
                "einsum", f"the result of '{equation}' must include the axes of '...'",
                operand=x)  # fmt: skip


# ------------------------------------------------------------- tensordot and trace


@composite
def tensordot(
    a: TensorLike, b: TensorLike, axes: TensorLike, name: str | None = None
) -> Tensor:
    """Contract two tensors: sum products over pairs of axes.

    Args:
        a: First tensor.
        b: Second tensor.
        axes: Number n, for the last n axes of ``a`` with the first n of ``b``; or a
            pair with an axis or list of axes of each.

    Shapes:
        The remaining axes of ``a``, then the remaining axes of ``b``.

    Raises:
        ShapeError: If the sizes of a pair of axes differ (a ``ValueError``).
        ValueError: If the number exceeds the smaller rank.

    Example:
        >>> tw.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]], axes=2).numpy()
        np.int32(5)
    """
    a, b = pair(a, b)
    rank_a, rank_b = len(a.shape), len(b.shape)
    axes_a, axes_b = _paired_axes(axes, rank_a, rank_b)
    if [a.shape[i] for i in axes_a] != [b.shape[i] for i in axes_b]:
        what = f"the axes {axes_a} of a and {axes_b} of b must have the same sizes"
        raise ShapeError("tensordot", what, a=a, b=b)
    free_a = [i for i in range(rank_a) if i not in axes_a]
    free_b = [i for i in range(rank_b) if i not in axes_b]
    inner = math.prod(a.shape[i] for i in axes_a)
    dims_a, dims_b = [a.shape[i] for i in free_a], [b.shape[i] for i in free_b]
    left = reshape(transpose(a, free_a + axes_a), [math.prod(dims_a), inner])
    right = reshape(transpose(b, axes_b + free_b), [inner, math.prod(dims_b)])
    return reshape(matmul(left, right), dims_a + dims_b)


def _paired_axes(axes, rank_a, rank_b):
    """Return the axes of both sides, from 0 on."""
    if hasattr(axes, "__iter__") and getattr(axes, "ndim", 1):
        sides = list(axes)
        if len(sides) != 2:
            raise InvalidArgumentError(
                f"tensordot: axes must be a number or two lists, got {axes}"
            )
        sides = [
            [int(n) for n in s] if np.ndim(s) or hasattr(s, "__len__") else [int(s)]
            for s in sides
        ]
        if len(sides[0]) != len(sides[1]):
            raise InvalidArgumentError(
                f"tensordot: axes must name as many axes of a as of b, got {axes}"
            )
    else:
        count = index(axes)
        if not 0 <= count <= min(rank_a, rank_b):
            raise InvalidArgumentError(
                f"tensordot: axes must be from 0 to {min(rank_a, rank_b)}, the smaller "
                f"rank, got {count}"
            )
        sides = list(range(rank_a - count, rank_a)), list(range(count))
    return (
        list(normalize_axis("tensordot", sides[0], rank_a, "axes[0]")),
        list(normalize_axis("tensordot", sides[1], rank_b, "axes[1]")),
    )


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """Sum the main diagonal of each matrix.

    Args:
        x: Matrices.

    Shapes:
        ``[..., m, n]`` to ``[...]``.

    Example:
        >>> tw.linalg.trace([[1.0, 2.0], [3.0, 4.0]]).numpy()
        np.float32(5.0)
    """
    x = convert_to_tensor(x)
    if len(x.shape) < 2:
        raise ShapeError("trace", "x must have two axes or more", x=x)
    rows, columns = x.shape[-2:]
    if rows != columns:
        shorter = min(rows, columns)
        x = x[..., :shorter, :shorter]
    return einsum("...ii->...", x)
