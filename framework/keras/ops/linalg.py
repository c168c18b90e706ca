"""`keras.ops.linalg`: factors, inverses, norms and solutions of matrices."""

import math

import numpy as np

from tapewright.autodiff.forward import ForwardAccumulator
from tapewright.core.nest import map_structure
from tapewright.core.rules import normalize_axis
from tapewright.ops.array.conversion import cast, conj
from tapewright.ops.array.creation import eye, zeros_like
from tapewright.ops.array.shape import expand_dims, reshape, squeeze, transpose
from tapewright.ops.linalg import decompositions, linear_systems, matrix_functions
from tapewright.ops.linalg.matmul import matmul, matrix_transpose
from tapewright.ops.math.comparison import not_equal
from tapewright.ops.math.elementwise import abs
from tapewright.ops.math.reduction import reduce_min, reduce_sum

from .promotion import christen, floating, floats, together

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "det",
    "eig",
    "eigh",
    "inv",
    "jvp",
    "logdet",
    "lstsq",
    "matrix_rank",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
]

det = floats(matrix_functions.det)
eig = floats(decompositions.eig)
eigh = floats(decompositions.eigh)
inv = floats(linear_systems.inv)
logdet = floats(matrix_functions.logdet)
slogdet = floats(lambda x: tuple(matrix_functions.slogdet(x)), "``(sign, log|det|)``.")


def cholesky(x, upper=False):
    """The lower triangle L with ``x = L @ L^H``; its transpose, if ``upper``."""
    found = decompositions.cholesky(floating(x))
    return conj(matrix_transpose(found)) if upper else found


def cholesky_inverse(x, upper=False):
    """The inverse of the matrix whose `cholesky` factor is ``x``."""
    x = floating(x)
    x = conj(matrix_transpose(x)) if upper else x
    return linear_systems.cholesky_solve(x, _unit_like(x))


def _unit_like(x):
    return zeros_like(x) + eye(x.shape[-1], dtype=x.dtype)


def pinv(x, rcond=None):
    """The Moore-Penrose inverse; see ``tw.linalg.pinv``."""
    return linear_systems.pinv(floating(x), rcond)


def matrix_rank(x, tol=None):
    """The number of singular values above ``tol``, int32."""
    return cast(decompositions.matrix_rank(floating(x), tol), "int32")


def qr(x, mode="reduced"):
    """``(q, r)`` with ``x = q @ r``; with ``mode`` "complete" q is square."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode must be 'reduced' or 'complete', got {mode!r}")
    return tuple(decompositions.qr(floating(x), mode == "complete"))


def svd(x, full_matrices=True, compute_uv=True):
    """``(u, s, v^H)`` with ``x = u @ diag(s) @ v^H``; without ``compute_uv`` just ``s``."""
    found = decompositions.svd(floating(x), full_matrices, compute_uv)
    if not compute_uv:
        return found
    s, u, v = found
    return u, s, conj(matrix_transpose(v))


def _as_columns(a, b):
    """``b`` as a matrix, and whether it was a vector (or several) without that axis."""
    a, b = together(a, b, at_least=float)
    alone = b.ndim == a.ndim - 1
    return a, (b[..., None] if alone else b), alone


def solve(a, b):
    """``x`` with ``a @ x = b``; ``b`` holds columns, or is one axis short and a column.

    >>> solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]).numpy()
    array([1. , 0.5], dtype=float32)
    """
    a, b, alone = _as_columns(a, b)
    found = linear_systems.solve(a, b)
    return found[..., 0] if alone else found


def solve_triangular(a, b, lower=False):
    """`solve` for a triangle, ``lower`` or upper; the other half of ``a`` is not read."""
    a, b, alone = _as_columns(a, b)
    found = linear_systems.triangular_solve(a, b, lower)
    return found[..., 0] if alone else found


def lstsq(a, b, rcond=None):
    """The shortest ``x`` that makes ``|a @ x - b|`` smallest.

    Singular values up to ``rcond`` times the largest count as zero.
    """
    a, b, alone = _as_columns(a, b)
    if rcond is None:
        rcond = float(np.finfo(a.dtype.dtype).eps) * max(a.shape[-2:])
    found = matmul(linear_systems.pinv(a, rcond), b)
    return found[..., 0] if alone else found


def norm(x, ord=None, axis=None, keepdims=False):
    """The norm over ``axis``: of vectors over one axis, of matrices over a pair of axes.

    ``ord``: None is the Euclidean norm; of vectors a number, ``inf`` or ``-inf``; of
    matrices 1, -1, 2, -2, ``inf``, ``-inf``, "fro" or "nuc". Without an axis all entries
    count as one vector, or a matrix as one, for an ``ord``.

    >>> norm([[3.0, 4.0], [6.0, 8.0]], axis=1).numpy()
    array([ 5., 10.], dtype=float32)
    """
    x = floating(x)
    if axis is None and x.ndim == 2 and ord is not None:
        axis = (0, 1)
    if axis is None and ord is not None and x.ndim != 1:
        raise ValueError(f"norm: axis must be given for ord {ord!r} and {x.ndim} axes")
    axes = normalize_axis("norm", axis, x.ndim)
    if ord is None:  # over any number of axes
        found = matrix_functions.norm(_joined(x, axes), axis=-1)
        return expand_dims(found, sorted(axes)) if keepdims else found
    if len(axes) not in (1, 2):
        raise ValueError(
            f"norm: axis must be one axis or two for ord {ord!r}, got {axis}"
        )
    if len(axes) == 2:
        return _of_matrices(x, ord, axes, keepdims)
    (axis,) = axes
    if ord == -math.inf:
        return reduce_min(abs(x), axis, keepdims)
    if ord == 0:
        return reduce_sum(cast(not_equal(x, 0.0), x.dtype), axis, keepdims)
    if not isinstance(ord, str) and ord < 0:
        return reduce_sum(abs(x) ** ord, axis, keepdims) ** (1.0 / ord)
    return matrix_functions.norm(x, ord, axis, keepdims)


def _joined(x, axes):
    """These axes as one, the last."""
    kept = [a for a in range(x.ndim) if a not in axes]
    sizes = [*[x.shape[a] for a in kept], math.prod([x.shape[a] for a in axes])]
    return reshape(transpose(x, [*kept, *axes]), sizes)


def _of_matrices(x, ord, axes, keepdims):
    rows, columns = axes
    if ord in (-1, -math.inf):
        first, second = (rows, columns) if ord == -1 else (columns, rows)
        found = reduce_min(reduce_sum(abs(x), first, True), second, True)
        return found if keepdims else squeeze(found, axes)
    if ord == -2:
        kept = [a for a in range(x.ndim) if a not in axes]
        values = decompositions.svd(transpose(x, [*kept, *axes]), compute_uv=False)
        found = reduce_min(values, -1)
        return expand_dims(found, sorted(axes)) if keepdims else found
    return matrix_functions.norm(x, ord, axes, keepdims)


def jvp(fun, primals, tangents, has_aux=False):
    """``(outputs, their tangents)`` of ``fun(*primals)`` along ``tangents``.

    ``has_aux``: ``fun`` returns a pair, of which the second is passed on, undifferentiated,
    as a third result.

    >>> value, slope = jvp(lambda x: x * x, [3.0], [1.0])
    >>> float(value), float(slope)
    (9.0, 6.0)
    """
    primals, tangents = (
        [map_structure(floating, x) for x in values] for values in (primals, tangents)
    )
    with ForwardAccumulator(primals, tangents) as accumulator:
        outputs = fun(*primals)
    outputs, *aux = outputs if has_aux else (outputs,)

    def slope(x):
        found = accumulator.jvp(x)
        return zeros_like(x) if found is None else found

    return (outputs, map_structure(slope, outputs), *aux)


christen(globals())
