"""`keras.ops` of NumPy that multiply: `matmul`, `einsum`, `tensordot`, `outer`, ..."""

from tapewright.core.dtypes import int8, int32
from tapewright.core.errors import ShapeError
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array import shape as shapes
from tapewright.ops.array.conversion import cast, conj
from tapewright.ops.convolution.conv import conv1d
from tapewright.ops.linalg import contraction
from tapewright.ops.linalg.matmul import cross as _cross
from tapewright.ops.linalg.matmul import matmul as _matmul
from tapewright.ops.math.elementwise import clip_by_value, sqrt
from tapewright.ops.math.reduction import reduce_any, reduce_mean, reduce_sum

from .arrays import diagonal, moveaxis, pad, ravel, transpose
from .elementwise import multiply
from .promotion import floating, together

__all__ = [
    "corrcoef",
    "correlate",
    "cross",
    "dot",
    "einsum",
    "inner",
    "kron",
    "matmul",
    "outer",
    "tensordot",
    "vdot",
]


def _factors(*operands):
    """The operands in their common dtype: int32 for int8 alone, whose sums overflow."""
    operands = [
        x if isinstance(x, (int, float)) else convert_to_tensor(x) for x in operands
    ]
    if all([getattr(x, "dtype", None) is int8 for x in operands]):
        return [cast(x, int32) for x in operands]
    return together(*operands)


def matmul(x1, x2):
    """The matrix product over the last two axes; leading axes broadcast.

    A vector is a row on the left and a column on the right, without that axis after.

    >>> matmul([1.0, 2.0], [[1.0], [3.0]]).numpy()
    array([7.], dtype=float32)
    """
    x1, x2 = _factors(x1, x2)
    if x1.ndim > 1 and x2.ndim > 1:
        return _matmul(x1, x2)
    left = x1[None, :] if x1.ndim == 1 else x1
    right = x2[:, None] if x2.ndim == 1 else x2
    out = _matmul(left, right)
    axes = (-2,) * (x1.ndim == 1) + (-1,) * (x2.ndim == 1)
    return shapes.squeeze(out, axes)


def dot(x1, x2):
    """Sums of products over the last axis of ``x1`` and the one before last of ``x2``."""
    x1, x2 = together(x1, x2)
    if not (x1.ndim and x2.ndim):
        return multiply(x1, x2)
    return tensordot(x1, x2, [[-1], [max(x2.ndim - 2, 0)]])


def inner(x1, x2):
    """Sums of products over the last axes of both."""
    x1, x2 = together(x1, x2)
    return tensordot(x1, x2, [[-1], [-1]]) if x1.ndim and x2.ndim else multiply(x1, x2)


def outer(x1, x2):
    """The products of each entry of ``x1`` with each of ``x2``, a matrix."""
    x1, x2 = together(x1, x2)
    return multiply(ravel(x1)[:, None], ravel(x2))


def vdot(x1, x2):
    """The sum of the products of all entries, those of ``x1`` conjugated."""
    x1, x2 = together(x1, x2)
    products = multiply(conj(ravel(x1)), ravel(x2))
    return reduce_any(products) if products.dtype.is_bool else reduce_sum(products)


def tensordot(x1, x2, axes=2):
    """Sums of products over ``axes``: a number of axes, or the lists of both sides."""
    x1, x2 = together(x1, x2)
    if isinstance(axes, int):
        return contraction.tensordot(x1, x2, axes)
    ours, theirs = ([a] if isinstance(a, int) else list(a) for a in axes)
    return contraction.tensordot(x1, x2, [ours, theirs])


def einsum(subscripts, *operands, **kwargs):
    """Sums of products by named axes: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    ``kwargs``: those of ``tw.einsum``.
    """
    return contraction.einsum(subscripts, *_factors(*operands), **kwargs)


def cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The vector product over one axis of each, of size 3 (or 2: the third is 0).

    Of two vectors of size 2, the third entry of it alone.
    """
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    x1, x2 = together(x1, x2)
    x1, x2 = moveaxis(x1, axisa, -1), moveaxis(x2, axisb, -1)
    sizes = x1.shape[-1], x2.shape[-1]
    if not {*sizes} <= {2, 3}:
        raise ValueError(f"cross: the axes must have size 2 or 3, got {sizes}")
    if sizes == (2, 2):
        return x1[..., 0] * x2[..., 1] - x1[..., 1] * x2[..., 0]
    out = _cross(*[_in_space(x) for x in (x1, x2)])
    return moveaxis(out, -1, axisc)


def _in_space(x):
    """A third entry of 0 for vectors of two."""
    return x if x.shape[-1] == 3 else pad(x, [(0, 0)] * (x.ndim - 1) + [(0, 1)])


def kron(x1, x2):
    """Each entry of ``x1`` times the whole of ``x2``, block beside block."""
    x1, x2 = together(x1, x2)
    rank = max(x1.ndim, x2.ndim)
    ours, theirs = ((1,) * (rank - x.ndim) + tuple(x.shape) for x in (x1, x2))
    x1 = shapes.reshape(x1, [n for size in ours for n in (size, 1)])
    x2 = shapes.reshape(x2, [n for size in theirs for n in (1, size)])
    return shapes.reshape(multiply(x1, x2), [m * n for m, n in zip(ours, theirs)])


def correlate(x1, x2, mode="valid"):
    """``sum_n x1[n + k] * x2[n]`` of two vectors, for each k, floating.

    ``mode``: "valid" (where they overlap wholly), "same" (as many as the longer has) or
    "full".
    """
    if mode not in ("valid", "same", "full"):
        raise ValueError(
            f"correlate: mode must be 'valid', 'same' or 'full', got {mode!r}"
        )
    x1, x2 = together(x1, x2, at_least=float)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError("correlate", "x1 and x2 must be vectors", x1=x1, x2=x2)
    n, m = x1.shape[0], x2.shape[0]
    if mode != "valid":
        x1 = pad(x1, m - 1)
    elif n < m:  # as NumPy: the longer one is gone along
        return correlate(x2, x1)[::-1]
    out = conv1d(x1[None, :, None], x2[:, None, None], 1, "VALID")[0, :, 0]
    if mode != "same":
        return out
    start = (n + m - 1 - max(n, m)) // 2
    return out[start : start + max(n, m)]


def corrcoef(x):
    """The correlations of the rows of ``x`` with each other, between -1 and 1."""
    x = floating(x)
    if x.ndim > 2:
        raise ValueError(f"corrcoef: x must be a matrix, got shape {tuple(x.shape)}")
    x = x if x.ndim else ravel(x)
    away = x - reduce_mean(x, -1, True)
    products = _matmul(away, transpose(away)) if x.ndim > 1 else reduce_sum(away * away)
    if x.ndim < 2:
        return products / products
    lengths = sqrt(diagonal(products))
    return clip_by_value(products / outer(lengths, lengths), -1.0, 1.0)
