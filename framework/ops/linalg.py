"""Matrix products, contractions, linear systems.

Matrices are the last two axes; axes in front are a batch and broadcast.
"""

import math
import string

import numpy as np

from .. import backend
from ..errors import ShapeError
from ..primitive import primitive
from ..rules import broadcast_shape, lift, same_dtype
from ..tensor import Tensor, TensorSpec, convert_to_tensor, module_of
from .conversion import conj
from .creation import eye, ones
from .reduction import norm
from .shape import (
    broadcast_to,
    expand_dims,
    reshape,
    squeeze,
    sum_to_shape,
    transpose,
)

__all__ = [
    "adjoint",
    "affine",
    "einsum",
    "eye",
    "inv",
    "matmul",
    "matrix_transpose",
    "matvec",
    "norm",
    "solve",
    "tensordot",
    "trace",
]


def matrix_transpose(a, name=None, conjugate=False):
    """``a`` with its last two axes exchanged, and conjugated if asked."""
    a = a if hasattr(a, "shape") else convert_to_tensor(a)
    rank = len(a.shape)
    if rank < 2:
        raise ShapeError("matrix_transpose", "a must have two axes or more", a=a)
    return transpose(a, (*range(rank - 2), rank - 1, rank - 2), conjugate=conjugate)


def adjoint(matrix, name=None):
    """The conjugate transpose of the last two axes."""
    return matrix_transpose(matrix, conjugate=True)


# ------------------------------------------------------------------------- products


@primitive(name="matmul", type_name="MatMul", broadcasts=True)
def matmul_primitive(xp, a, b, *, transpose_a=False, transpose_b=False):
    if a.ndim == 2 and b.ndim == 2:
        return xp.dot(a.T if transpose_a else a, b.T if transpose_b else b)
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError("matmul needs two axes")  # `infer` says it better
    a = xp.swapaxes(a, -1, -2) if transpose_a else a
    b = xp.swapaxes(b, -1, -2) if transpose_b else b
    return xp.matmul(a, b)


def matrix_dims(spec, transposed, who, name):
    """Rows and columns. Raises: ``ShapeError`` for less than two axes."""
    if spec.shape.rank is not None and spec.shape.rank < 2:
        raise ShapeError(who, f"{name} must have two axes or more", **{name: spec})
    rows, columns = spec.shape[-2:]
    return (columns, rows) if transposed else (rows, columns)


@matmul_primitive.infer
def _(a, b, transpose_a, transpose_b):
    m, k = matrix_dims(a, transpose_a, "matmul", "a")
    k2, n = matrix_dims(b, transpose_b, "matmul", "b")
    if None not in (k, k2) and k != k2:
        raise ShapeError(
            "matmul", f"inner dimensions must agree: {k} and {k2}", a=a, b=b
        )
    try:
        lead = broadcast_shape(a.shape[:-2], b.shape[:-2])
    except ValueError as error:
        raise ShapeError("matmul", str(error), a=a, b=b) from None
    return TensorSpec(lead + (m, n), same_dtype("matmul", a=a, b=b))


@matmul_primitive.vjp("a")
def _(g, b, transpose_a, transpose_b):
    if transpose_a:
        return matmul_primitive(b, g, transpose_b, True)
    return matmul_primitive(g, b, False, not transpose_b)


@matmul_primitive.vjp("b")
def _(g, a, transpose_a, transpose_b):
    if transpose_b:
        return matmul_primitive(g, a, True, transpose_a)
    return matmul_primitive(a, g, not transpose_a, False)


@matmul_primitive.batch
def _(mapped, a, b, *, transpose_a, transpose_b):
    if mapped == (True, False) and not transpose_a and b.array.ndim == 2:
        return _rows_times(a, b, transpose_b)
    return matmul_primitive(*lift(mapped, a, b), transpose_a, transpose_b)


def _rows_times(a, b, transpose_b):
    """``[..., m, k] @ [k, n]`` as one product of all rows."""
    shape = a.array.shape
    rows = reshape(a, (math.prod(shape[:-1]), shape[-1]))
    product = matmul_primitive(rows, b, False, transpose_b)
    return reshape(product, (*shape[:-1], product.array.shape[-1]))


@matmul_primitive.diagonal
def _(axes, a, b, *, transpose_a, transpose_b):
    first, second = axes
    if first is not None and second is not None:
        alike = first == second and a.shape[first] == b.shape[second]
        return first if alike and first < -2 else None
    axis, flipped, kept = (
        (first, transpose_a, -2) if second is None else (second, transpose_b, -1)
    )
    if axis < -2:  # a batch axis, unless it is repeated
        own, other = (a, b) if second is None else (b, a)
        size = other.shape[axis] if len(other.shape) >= -axis else 1
        return axis if size in (1, own.shape[axis]) else None
    position = -3 - axis if flipped else axis
    return kept if position == kept else None


def matmul(
    a,
    b,
    transpose_a=False,
    transpose_b=False,
    adjoint_a=False,
    adjoint_b=False,
    name=None,
):
    """The product of the last two axes, ``[..., m, k] @ [..., k, n] -> [..., m, n]``.

    Axes in front broadcast. ``transpose_*`` exchanges the last two axes of an operand
    first; ``adjoint_*`` conjugates it too.

    Raises: ``ShapeError`` (a ValueError) if the inner dimensions differ or an operand
    has less than two axes; `matvec` takes vectors.

    >>> matmul([[1.0, 2.0]], [[3.0], [4.0]]).numpy()
    array([[11.]], dtype=float32)
    """
    if adjoint_a or adjoint_b:
        if (adjoint_a and transpose_a) or (adjoint_b and transpose_b):
            raise ValueError(
                "matmul: an operand is either transposed or its adjoint taken"
            )
        a, transpose_a = (conj(a), True) if adjoint_a else (a, transpose_a)
        b, transpose_b = (conj(b), True) if adjoint_b else (b, transpose_b)
    if transpose_a or transpose_b:
        return matmul_primitive(a, b, bool(transpose_a), bool(transpose_b))
    return matmul_primitive(a, b)


def matvec(a, b, transpose_a=False, adjoint_a=False, name=None):
    """Matrix times vector, ``[..., m, k] @ [..., k] -> [..., m]``."""
    a, b = _pair(a, b)
    column = expand_dims(b, -1)
    return squeeze(matmul(a, column, transpose_a, adjoint_a=adjoint_a), -1)


def _pair(a, b):
    """Both as tensors of one dtype, where one of them decides it."""
    if not hasattr(a, "shape") or isinstance(a, np.ndarray):
        b = convert_to_tensor(b)
        return convert_to_tensor(a, dtype_hint=b.dtype), b
    a = convert_to_tensor(a)
    return a, convert_to_tensor(b, dtype_hint=a.dtype)


@primitive(type_name="Affine")
def affine(xp, inputs, kernel, bias):
    """``inputs @ kernel + bias`` in one go: the sum is made in place.

    Shapes: ``inputs [..., k]``, ``kernel [k, n]``, ``bias [n]``, result ``[..., n]``.
    """
    if inputs.ndim < 2 or kernel.ndim != 2 or bias.shape != kernel.shape[1:]:
        raise ValueError("shapes do not fit")  # `infer` says it better
    outputs = xp.dot(inputs, kernel) if inputs.ndim == 2 else xp.matmul(inputs, kernel)
    return xp.add(outputs, bias, out=outputs)


@affine.infer
def _(inputs, kernel, bias):
    if kernel.shape.rank != 2 or not bias.shape.is_compatible_with(kernel.shape[1:]):
        raise ShapeError("affine", "kernel must be [k, n] and bias [n]",
                         kernel=kernel, bias=bias)  # fmt: skip
    if inputs.shape.rank < 2:
        raise ShapeError("affine", "inputs must have two axes or more", inputs=inputs)
    k, n = kernel.shape
    if k is not None and inputs.shape[-1] not in (None, k):
        raise ShapeError("affine", f"the last axis of inputs must have size {k}",
                         inputs=inputs, kernel=kernel)  # fmt: skip
    dtype = same_dtype("affine", inputs=inputs, kernel=kernel, bias=bias)
    return TensorSpec(inputs.shape[:-1] + (n,), dtype)


@affine.vjp("inputs")
def _(g, kernel):
    return matmul_primitive(g, kernel, False, True)


@affine.vjp("kernel")
def _(g, inputs, inputs_shape, kernel_shape):
    if len(inputs_shape) > 2:  # all rows of all examples
        count = math.prod(inputs_shape[:-1])
        inputs = reshape(inputs, (count, inputs_shape[-1]))
        g = reshape(g, (count, kernel_shape[-1]))
    return matmul_primitive(inputs, g, True, False)


@affine.vjp("bias")
def _(g, bias_shape):
    return sum_to_shape(g, bias_shape)


@affine.batch
def _(mapped, inputs, kernel, bias):
    if mapped == (True, False, False):
        return affine(inputs, kernel, bias)
    product = matmul_primitive(*lift(mapped[:2], inputs, kernel))
    if not mapped[2]:
        return product + bias
    rank = product.array.ndim - (mapped[0] or mapped[1])
    shape = bias.array.shape
    bias = reshape(bias, shape[:1] + (1,) * (rank - 1) + shape[1:])
    if not (mapped[0] or mapped[1]):
        product = expand_dims(product, 0)
    return product + bias


# ------------------------------------------------------------------- contractions


@primitive(name="einsum", type_name="Einsum")
def _einsum(xp, *inputs, equation):
    return xp.einsum(equation, *inputs, **({"optimize": True} if xp is np else {}))


def _terms(equation):
    operands, _, result = equation.partition("->")
    return operands.split(","), result


@_einsum.infer
def _(*inputs, equation):
    terms, result = _terms(equation)
    sizes = {}
    for term, spec in zip(terms, inputs):
        if spec.shape.rank != len(term):
            raise ShapeError("einsum", f"'{term}' does not name the axes of its operand",
                             operand=spec)  # fmt: skip
        for label, size in zip(term, spec.shape):
            if sizes.get(label) is None:
                sizes[label] = size
            if size not in (None, sizes[label]):
                raise ShapeError("einsum", f"'{label}' has sizes {sizes[label]} and {size}",
                                 operand=spec)  # fmt: skip
    return TensorSpec([sizes[label] for label in result], inputs[0].dtype)


@_einsum.vjp("inputs")
def _(g, inputs, inputs_shape, equation):
    terms, result = _terms(equation)
    return [
        _einsum_vjp(g, inputs, inputs_shape, terms, result, i)
        for i in range(len(terms))
    ]


def _einsum_vjp(g, inputs, shapes, terms, result, at):
    """Contracts the cotangent with all other operands.

    A label that stands only in operand ``at`` was summed: its cotangent is repeated. A
    label that stands there twice was a diagonal: unit matrices put it back in place.
    """
    others = [(t, x) for i, (t, x) in enumerate(zip(terms, inputs)) if i != at]
    known = set(result).union(*[t for t, _ in others]) if others else set(result)
    unused = iter([c for c in string.ascii_letters if c not in "".join(terms) + result])
    dtype = g.dtype if not hasattr(g.dtype, "name") else g.dtype.name
    target, factors, seen = [], [(result, g), *others], set()
    for label, size in zip(terms[at], shapes[at]):
        if label in seen:
            fresh = next(unused)
            factors.append((label + fresh, _beside(g, eye, size, dtype=dtype)))
            label = fresh
        elif label not in known:
            factors.append((label, _beside(g, ones, [size], dtype=dtype)))
        seen.add(label)
        target.append(label)
    equation = ",".join(t for t, _ in factors) + "->" + "".join(target)
    return _einsum([x for _, x in factors], equation=equation)


def _beside(g, make, *args, **kwargs):
    """A constant on the device of ``g``; an array where the walk is on arrays."""
    bare = not isinstance(g, Tensor)
    with backend.use_module(backend.array_module(type(g)) if bare else module_of(g)):
        constant = make(*args, **kwargs)
    return constant.array if bare else constant


@_einsum.batch
def _(mapped, *inputs, equation):
    terms, result = _terms(equation)
    label = next(c for c in string.ascii_letters if c not in equation)
    terms = [label + t if m else t for t, m in zip(terms, mapped)]
    return _einsum(list(inputs), equation=f"{','.join(terms)}->{label}{result}")


def einsum(equation, *inputs, optimize=None, name=None):
    """Sums of products by named axes: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    A label twice in one operand takes its diagonal; one that is missing in the result is
    summed over. Without ``->`` the result has the labels that stand once, in order. An
    ellipsis stands for further axes, which broadcast.

    >>> einsum("ii->i", [[1, 2], [3, 4]]).numpy()
    array([1, 4], dtype=int32)
    """
    if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) and "," in equation:
        inputs = inputs[0]
    tensors = []
    for x in inputs:
        hint = tensors[0].dtype if tensors else None
        tensors.append(convert_to_tensor(x, dtype_hint=hint))
    equation = equation.replace(" ", "")
    terms, result = _terms(equation)
    if len(terms) != len(tensors):
        raise ValueError(
            f"einsum: '{equation}' names {len(terms)} operands, {len(tensors)} are given"
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
        raise ValueError(f"einsum: '{equation}' is no equation of named axes")
    if len(set(result)) != len(result):
        raise ValueError(f"einsum: '{equation}' names an axis of the result twice")
    return _einsum(tensors, equation=f"{','.join(terms)}->{result}")


def _spell_out_ellipsis(terms, result, tensors, equation):
    if "..." not in equation:
        return terms, result
    counts = [
        len(x.shape) - len(t.replace("...", "")) if "..." in t else 0
        for t, x in zip(terms, tensors)
    ]
    unused = [c for c in string.ascii_letters if c not in equation][: max(counts)]
    spelled = []
    for i, (term, count) in enumerate(zip(terms, counts)):
        labels = unused[len(unused) - count :] if count else []
        shape = tensors[i].shape
        if "..." in term:
            start = term.index("...")
            for j in range(
                count
            ):  # a repeated axis of size 1 is no axis of the equation
                full = max(
                    t.shape[u.index("...") + c - count + j]
                    for t, u, c in zip(tensors, terms, counts)
                    if "..." in u and c - count + j >= 0
                )
                if shape[start + j] == 1 and full > 1:
                    dims = list(tensors[i].shape)
                    dims[start + j] = full
                    tensors[i] = broadcast_to(tensors[i], dims)
        spelled.append(term.replace("...", "".join(labels)))
    return spelled, result.replace("...", "".join(unused))


def tensordot(a, b, axes, name=None):
    """Sums of products over ``axes``: a number of axes, or the lists of both sides.

    >>> tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]], axes=2).numpy()
    np.int32(5)
    """
    a, b = _pair(a, b)
    rank_a, rank_b = len(a.shape), len(b.shape)
    if isinstance(axes, int):
        axes_a, axes_b = list(range(rank_a - axes, rank_a)), list(range(axes))
    else:
        axes_a, axes_b = (
            [int(s)] if not hasattr(s, "__iter__") else [int(n) for n in s]
            for s in axes
        )
    if len(axes_a) != len(axes_b):
        raise ValueError(
            f"tensordot: axes must name as many axes of a as of b, got {axes}"
        )
    axes_a, axes_b = [n % rank_a for n in axes_a], [n % rank_b for n in axes_b]
    free_a = [i for i in range(rank_a) if i not in axes_a]
    free_b = [i for i in range(rank_b) if i not in axes_b]
    inner = math.prod(a.shape[i] for i in axes_a)
    dims_a, dims_b = [a.shape[i] for i in free_a], [b.shape[i] for i in free_b]
    rows = reshape(transpose(a, free_a + axes_a), [math.prod(dims_a), inner])
    columns = reshape(transpose(b, axes_b + free_b), [inner, math.prod(dims_b)])
    return reshape(matmul(rows, columns), dims_a + dims_b)


def trace(x, name=None):
    """The sum of the diagonal of the last two axes."""
    return einsum("...ii->...", x)


# ------------------------------------------------------------------- linear systems


@primitive(name="solve", type_name="MatrixSolve", broadcasts=True)
def _solve(xp, matrix, rhs):
    if rhs.ndim < 2:
        raise ValueError("rhs must have two axes or more")  # `infer` says it better
    return xp.linalg.solve(matrix, rhs)


def _check_square(who, matrix):
    rows, columns = matrix_dims(matrix, False, who, "matrix")
    if None not in (rows, columns) and rows != columns:
        raise ShapeError(who, "matrix must be square", matrix=matrix)
    return rows


@_solve.infer
def _(matrix, rhs):
    rows = _check_square("solve", matrix)
    height, columns = matrix_dims(rhs, False, "solve", "rhs")
    if None not in (rows, height) and rows != height:
        raise ShapeError("solve", "matrix and rhs must have as many rows",
                         matrix=matrix, rhs=rhs)  # fmt: skip
    lead = broadcast_shape(matrix.shape[:-2], rhs.shape[:-2])
    return TensorSpec(
        lead + (rows, columns), same_dtype("solve", matrix=matrix, rhs=rhs)
    )


@_solve.vjp("rhs")
def _(g, matrix):
    return _solve(matrix_transpose(matrix), g)


@_solve.vjp("matrix")
def _(g, matrix, out):
    return -matmul_primitive(_solve(matrix_transpose(matrix), g), out, False, True)


@_solve.batch
def _(mapped, matrix, rhs):
    matrix, rhs = lift(mapped, matrix, rhs)
    if mapped == (False, True):  # one factorization for all columns
        moved = (
            transpose(rhs, (*range(1, rhs.array.ndim), 0))
            if rhs.array.ndim == 3
            else None
        )
        if moved is not None:
            n, columns, count = moved.array.shape
            solved = _solve(matrix, reshape(moved, (n, columns * count)))
            return transpose(reshape(solved, (n, columns, count)), (2, 0, 1))
    return _solve(matrix, rhs)


def solve(matrix, rhs, adjoint=False, name=None):
    """``x`` with ``matrix @ x = rhs``: ``[..., n, n]`` and ``[..., n, k]`` to ``[..., n, k]``.

    Raises: ``ValueError`` (NumPy's LinAlgError) if a matrix is singular.
    """
    matrix, rhs = _pair(matrix, rhs)
    if adjoint:
        matrix = matrix_transpose(matrix, conjugate=True)
    return _solve(matrix, rhs)


@primitive(name="inv", type_name="MatrixInverse")
def _inv(xp, input):
    return xp.linalg.inv(input)


@_inv.infer
def _(input):
    _check_square("inv", input)
    return input


@_inv.vjp("input")
def _(g, out):
    turned = matrix_transpose(out)
    return -matmul_primitive(matmul_primitive(turned, g), turned)


@_inv.batch
def _(mapped, input):
    return _inv(input)


def inv(input, adjoint=False, name=None):
    """The inverse of each matrix ``[..., n, n]`` (of its adjoint, if asked).

    Raises: ``ValueError`` (NumPy's LinAlgError) if a matrix is singular.
    """
    return _inv(matrix_transpose(input, conjugate=True) if adjoint else input)
