"""Products of matrices, and transposes.

Matrices are the last two axes; leading axes are a batch and broadcast.
"""

from __future__ import annotations

import math

import numpy as np

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.hardware import devices
from tapewright.core.op_definition.costs import size_of
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    batch_leading,
    checked_broadcast,
    known_rank,
    lift,
    same_dtype,
)
from tapewright.core.settings import config
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
)
from tapewright.core.typing import DTypeLike, TensorLike

from ..array.conversion import cast, conj
from ..array.creation import eye
from ..array.shape import expand_dims, reshape, squeeze, sum_to_shape, transpose

__all__ = [
    "adjoint",
    "cross",
    "eye",
    "matmul",
    "matrix_transpose",
    "matvec",
]


def matrix_transpose(
    a: TensorLike, name: str | None = None, conjugate: bool = False
) -> Tensor:
    """Transpose the last two axes of a tensor.

    Args:
        a: Matrices.
        conjugate: If True, also take the complex conjugate.

    Shapes:
        ``[..., m, n]`` to ``[..., n, m]``.

    Example:
        >>> tw.linalg.matrix_transpose([[1, 2], [3, 4]]).numpy()
        array([[1, 3],
               [2, 4]], dtype=int32)
    """
    a = a if hasattr(a, "shape") else convert_to_tensor(a)
    rank = len(a.shape)
    if rank < 2:
        raise ShapeError("matrix_transpose", "a must have two axes or more", a=a)
    return transpose(a, (*range(rank - 2), rank - 1, rank - 2), conjugate=conjugate)


def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Compute the conjugate transpose of each matrix.

    Args:
        matrix: Matrices.

    Shapes:
        ``[..., m, n]`` to ``[..., n, m]``.

    Example:
        >>> tw.linalg.adjoint([[1.0 + 1j, 2.0]]).numpy()
        array([[1.-1.j],
               [2.-0.j]])
    """
    return matrix_transpose(matrix, conjugate=True)


@primitive(linear=True, batch=batch_leading)
def triangle(xp, x: TensorLike, lower: bool = True, half: bool = False):
    """Return the lower or upper triangle of each matrix, optionally with a halved diagonal.

    With ``half`` it separates a sum ``T + T^H`` of a triangle and its adjoint again.
    """
    kept = xp.tril(x) if lower else xp.triu(x)
    if half:
        at = xp.arange(min(x.shape[-2:]))
        kept[..., at, at] *= 0.5
    return kept


@triangle.infer
def _(x, lower, half):
    matrix_dims(x, False, "triangle", "x")
    return TensorSpec(x.shape, x.dtype)


@triangle.vjp("x")
def _(g, lower, half):
    return triangle(g, lower, half)


def beside(x, make, *args, **kwargs):
    """Make a constant on the device of ``x``; an array in a backward pass on arrays."""
    bare = not isinstance(x, Tensor)
    with devices.use_module(devices.array_module(type(x)) if bare else module_of(x)):
        constant = make(*args, **kwargs)
    return constant.array if bare else constant


# ------------------------------------------------------------------------- products


def matmul_cost(inputs, outputs, transpose_a=False, **attributes):
    """Count two flops for each term of each sum."""
    a = inputs[0].shape
    inner = a[-2 if transpose_a and len(a) > 1 else -1] if a else 1
    return 2 * size_of(outputs[0]) * inner


def _affine_cost(inputs, outputs):
    return matmul_cost(inputs, outputs) + size_of(outputs[0])


@primitive(
    name="matmul",
    type_name="MatMul",
    broadcasts=True,
    sizes=True,
    linear="each",
    cost=matmul_cost,
)
def matmul_p(
    xp,
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
):
    if a.ndim == 2 and b.ndim == 2:
        return _dot(xp, a.T if transpose_a else a, b.T if transpose_b else b)
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError("matmul needs two axes")  # `infer` says it better
    a = xp.swapaxes(a, -1, -2) if transpose_a else a
    b = xp.swapaxes(b, -1, -2) if transpose_b else b
    return _rows_dot(xp, a, b) if b.ndim == 2 else xp.matmul(a, b)


# Multiplications from which on OpenBLAS shares a product among threads of its own.
SHARED = 1 << 18


def _dot(xp, a, b):
    """Compute ``a @ b`` of matrices. By a lone entry NumPy scales, and 0 then drops NaN."""
    if (a.size == 1 or b.size == 1) and a.shape[1] == b.shape[0]:
        return a * b
    if xp is np and a.size * b.shape[1] > SHARED:
        return _large_dot(a, b)
    return xp.dot(a, b)


def _rows_dot(xp, a, b):
    """Compute ``[..., m, k] @ [k, n]``: large ones as one product of all rows, on a target."""
    if a.ndim == 2:
        return _dot(xp, a, b)
    if (
        xp is np
        and a.size * b.shape[1] > SHARED
        and config.target_product() is not None
    ):
        if a.flags.c_contiguous and a.shape[-1] == b.shape[0]:
            product = _dot(xp, a.reshape(-1, a.shape[-1]), b)
            return product.reshape(*a.shape[:-1], b.shape[1])
    return xp.matmul(a, b)


def _large_dot(a, b):
    """Compute ``a @ b``, by the function of the target if it has one."""
    product = config.target_product()
    out = None if product is None else product(a, b)
    return np.dot(a, b) if out is None else out


def matrix_dims(spec, transposed, who, name):
    """Return rows and columns of a matrix.

    Raises:
        ShapeError: If it has fewer than two axes.
    """
    if spec.shape.rank is not None and spec.shape.rank < 2:
        raise ShapeError(who, f"{name} must have two axes or more", **{name: spec})
    rows, columns = spec.shape[-2:]
    return (columns, rows) if transposed else (rows, columns)


@matmul_p.infer
def _(a, b, transpose_a, transpose_b):
    if {a.shape.rank, b.shape.rank} in ({1}, {1, 2}):
        what = "a and b must have two axes or more; tw.tensordot(a, b, 1) takes vectors"
        raise ShapeError("matmul", what, a=a, b=b)
    m, k = matrix_dims(a, transpose_a, "matmul", "a")
    k2, n = matrix_dims(b, transpose_b, "matmul", "b")
    if not agree(k, k2):
        raise ShapeError(
            "matmul", f"inner dimensions must agree: {k} and {k2}", a=a, b=b
        )
    lead = checked_broadcast("matmul", a.shape[:-2], b.shape[:-2], a=a, b=b)
    return TensorSpec(lead + (m, n), same_dtype("matmul", a=a, b=b))


@matmul_p.vjp("a")
def _(g, b, transpose_a, transpose_b):
    if transpose_a:
        return matmul_p(b, g, transpose_b, True)
    return matmul_p(g, b, False, not transpose_b)


@matmul_p.vjp("b")
def _(g, a, transpose_a, transpose_b):
    if transpose_b:
        return matmul_p(g, a, True, transpose_a)
    return matmul_p(a, g, not transpose_a, False)


@matmul_p.batch_arrays
def _(mapped, a, b, transpose_a, transpose_b):
    """Compute ``[..., m, k] @ [k, n]`` as one product of all rows."""
    if a.ndim - mapped[0] != b.ndim - mapped[1] or not (a.size and b.size):
        return None
    if mapped == (True, False) and not transpose_a and b.ndim == 2:
        rows = a.reshape(-1, a.shape[-1]) @ (b.T if transpose_b else b)
        return rows.reshape(*a.shape[:-1], -1)
    a = a.swapaxes(-1, -2) if transpose_a else a
    return a @ (b.swapaxes(-1, -2) if transpose_b else b)


@matmul_p.densify
def _(position, axis, a, b, transpose_a, transpose_b):
    """Compute a product summed over the sparse axis: one outer product for each index."""
    x, other = (a, b) if position == 0 else (b, a)
    flipped = transpose_a if position == 0 else transpose_b
    contracted, kept = (-1, -2) if (position == 0) != flipped else (-2, -1)
    if axis != contracted or other.ndim != 2:
        return None
    transposed = transpose_b if position == 0 else not transpose_a
    xp, rank = devices.array_module(type(x)), x.ndim
    other = xp.ascontiguousarray(other.T) if transposed else other  # [n, columns]
    x = x.transpose(rank + contracted, *range(rank - 2), rank + kept)
    (n, *lead, rows), columns = x.shape, other.shape[1]
    if position == 0:  # einsum: in half the time of a product that broadcasts
        x = xp.ascontiguousarray(x.reshape(n, math.prod(lead) * rows))
        product = xp.einsum("nr,nc->nrc", x, other)
        return product.reshape(n, *lead, rows, columns)
    x = xp.ascontiguousarray(x.reshape(n, math.prod(lead), rows))
    product = xp.einsum("nlr,nc->nlcr", x, other)
    return product.reshape(n, *lead, columns, rows)


@matmul_p.batch
def _(mapped, a, b, *, transpose_a, transpose_b):
    if mapped == (True, False) and not transpose_a and b.array.ndim == 2:
        return _rows_times(a, b, transpose_b)
    return matmul_p(*lift(mapped, a, b), transpose_a, transpose_b)


def _rows_times(a, b, transpose_b):
    """Compute ``[..., m, k] @ [k, n]`` as one product of all rows."""
    shape = a.array.shape
    rows = reshape(a, (math.prod(shape[:-1]), shape[-1]))
    product = matmul_p(rows, b, False, transpose_b)
    return reshape(product, (*shape[:-1], product.array.shape[-1]))


@matmul_p.diagonal
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
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: DTypeLike | None = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Matrix product of the last two axes: ``[..., m, k] @ [..., k, n] -> [..., m, n]``.

    Leading axes broadcast.

    Args:
        a: First factor.
        b: Second factor.
        transpose_a: If True, transpose the last two axes of ``a`` first.
        transpose_b: If True, transpose the last two axes of ``b`` first.
        adjoint_a: If True, transpose and conjugate ``a`` first.
        adjoint_b: If True, transpose and conjugate ``b`` first.
        a_is_sparse: Ignored, a hint of TensorFlow.
        b_is_sparse: Ignored, a hint of TensorFlow.
        output_type: Dtype in which the product is computed; None keeps the dtype of the
            factors.
        grad_a: Ignored, a hint of TensorFlow.
        grad_b: Ignored, a hint of TensorFlow.

    Raises:
        ShapeError: If the inner dimensions differ, or a factor has fewer than two axes
            (use `matvec` for vectors) (a ``ValueError``).
        ValueError: If a factor is both transposed and adjoint.

    Example:
        >>> tw.matmul([[1.0, 2.0]], [[3.0], [4.0]]).numpy()
        array([[11.]], dtype=float32)
        >>> tw.matmul([[1.0, 2.0]], [[3.0, 4.0]], transpose_b=True).numpy()
        array([[11.]], dtype=float32)
    """
    if output_type is not None:
        a, b = (cast(x, output_type) for x in pair(a, b))
    if adjoint_a or adjoint_b:
        if (adjoint_a and transpose_a) or (adjoint_b and transpose_b):
            raise InvalidArgumentError(
                "matmul: a factor must not be both transposed and adjoint"
            )
        a, transpose_a = (conj(a), True) if adjoint_a else (a, transpose_a)
        b, transpose_b = (conj(b), True) if adjoint_b else (b, transpose_b)
    if transpose_a or transpose_b:
        return matmul_p(a, b, bool(transpose_a), bool(transpose_b))
    return matmul_p(a, b)


def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Product of matrices and vectors: ``[..., m, k] @ [..., k] -> [..., m]``.

    Args:
        a: Matrices.
        b: Vectors.
        transpose_a: If True, transpose the last two axes of ``a`` first.
        adjoint_a: If True, transpose and conjugate ``a`` first.
        a_is_sparse: Ignored, a hint of TensorFlow.
        b_is_sparse: Ignored, a hint of TensorFlow.

    Example:
        >>> tw.linalg.matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).numpy()
        array([3., 7.], dtype=float32)
    """
    a, b = pair(a, b)
    if len(b.shape) < 1:
        raise ShapeError("matvec", "b must have one axis or more", a=a, b=b)
    return squeeze(matmul(a, expand_dims(b, -1), transpose_a, False, adjoint_a), -1)


def pair(a, b):
    """Convert both to tensors of one dtype, where one of them determines it."""
    if not hasattr(a, "shape") or isinstance(a, np.ndarray):
        b = convert_to_tensor(b)
        return convert_to_tensor(a, dtype_hint=b.dtype), b
    a = convert_to_tensor(a)
    return a, convert_to_tensor(b, dtype_hint=a.dtype)


@primitive(linear=[{"inputs", "bias"}, {"kernel", "bias"}], cost=_affine_cost)
def affine(xp, inputs: TensorLike, kernel: TensorLike, bias: TensorLike):
    """Affine map ``inputs @ kernel + bias`` in one op, which adds the bias in place.

    Args:
        inputs: Tensor to multiply, floating.
        kernel: Matrix of the same dtype.
        bias: Vector to add to each row of the product.

    Shapes:
        ``inputs`` ``[..., k]``, ``kernel`` ``[k, n]``, ``bias`` ``[n]``, result
        ``[..., n]``.

    Example:
        >>> tw.nn.affine([[1.0, 2.0]], [[3.0], [4.0]], [0.5]).numpy()
        array([[11.5]], dtype=float32)
    """
    if inputs.ndim < 2 or kernel.ndim != 2 or bias.shape != kernel.shape[1:]:
        raise ValueError("shapes do not fit")  # `infer` says it better
    outputs = _rows_dot(xp, inputs, kernel)
    return xp.add(outputs, bias, out=outputs)


@affine.infer
def _(inputs, kernel, bias):
    if kernel.shape.rank != 2 or not bias.shape.is_compatible_with(kernel.shape[1:]):
        raise ShapeError("affine", "kernel must be [k, n] and bias [n]",
                         kernel=kernel, bias=bias)  # fmt: skip
    if known_rank("affine", "inputs", inputs) < 2:
        raise ShapeError("affine", "inputs must have two axes or more", inputs=inputs)
    k, n = kernel.shape
    if k is not None and inputs.shape[-1] not in (None, k):
        raise ShapeError("affine", f"the last axis of inputs must have size {k}",
                         inputs=inputs, kernel=kernel)  # fmt: skip
    dtype = same_dtype("affine", inputs=inputs, kernel=kernel, bias=bias)
    return TensorSpec(inputs.shape[:-1] + (n,), dtype)


@affine.vjp("inputs")
def _(g, kernel):
    return matmul_p(g, kernel, False, True)


@affine.vjp("kernel")
def _(g, inputs, inputs_shape, kernel_shape):
    if len(inputs_shape) > 2:  # all rows of all examples
        count = math.prod(inputs_shape[:-1])
        inputs = reshape(inputs, (count, inputs_shape[-1]))
        g = reshape(g, (count, kernel_shape[-1]))
    return matmul_p(inputs, g, True, False)


@affine.vjp("bias")
def _(g, bias_shape):
    return sum_to_shape(g, bias_shape)


@affine.batch
def _(mapped, inputs, kernel, bias):
    if mapped == (True, False, False):
        return affine(inputs, kernel, bias)
    product = matmul_p(*lift(mapped[:2], inputs, kernel))
    if not mapped[2]:
        return product + bias
    rank = product.array.ndim - (mapped[0] or mapped[1])
    shape = bias.array.shape
    bias = reshape(bias, shape[:1] + (1,) * (rank - 1) + shape[1:])
    if not (mapped[0] or mapped[1]):
        product = expand_dims(product, 0)
    return product + bias


@primitive(broadcasts=True, linear="each", batch=batch_leading)
def cross(xp, a: TensorLike, b: TensorLike):
    """Cross product of vectors.

    Args:
        a: First vectors.
        b: Second vectors.

    Shapes:
        ``[..., 3]`` each; leading axes broadcast.

    Example:
        >>> tw.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).numpy()
        array([0., 0., 1.], dtype=float32)
    """
    if a.shape[-1:] != (3,) or b.shape[-1:] != (3,):
        raise ValueError("no vectors in space")  # `infer` says it better
    turned = [1, 2, 0]
    return (a * b[..., turned] - a[..., turned] * b)[..., turned]


@cross.infer
def _(a, b):
    for name, spec in (("a", a), ("b", b)):
        if spec.shape.rank == 0 or spec.shape[-1] not in (3, None):
            raise ShapeError("cross", f"the last axis of {name} must have size 3",
                             a=a, b=b)  # fmt: skip
    lead = checked_broadcast("cross", a.shape[:-1], b.shape[:-1], a=a, b=b)
    return TensorSpec(lead + (3,), same_dtype("cross", a=a, b=b))


@cross.vjp("a")
def _(g, b):
    return cross(b, g)


@cross.vjp("b")
def _(g, a):
    return cross(g, a)
