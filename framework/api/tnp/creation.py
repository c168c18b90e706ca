"""`tw.experimental.numpy`: arrays from values, filled ones, ranges and unit matrices."""

from __future__ import annotations

from typing import Any

from tapewright.core.tensor import Tensor
from tapewright.core.typing import DTypeLike, ShapeLike, TensorLike
from tapewright.keras import ops
from tapewright.ops.array import conversion
from tapewright.ops.array import creation
from tapewright.ops.array import shape as shapes

from .definition import define
from .promotion import arrays, asarray, default_float, promote, result_type

__all__ = [
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "ascontiguousarray",
    "copy",
    "diag_indices",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "geomspace",
    "identity",
    "ix_",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tri",
    "tril",
    "triu",
    "vander",
    "zeros",
    "zeros_like",
]

asanyarray = asarray


def array(
    val: TensorLike, dtype: DTypeLike | None = None, copy: bool = True, ndmin: int = 0
) -> Tensor:
    """``val`` as a tensor, cast to ``dtype`` if one is given.

    Args:
        copy: Changes nothing, as tensors are immutable.
        ndmin: The least number of axes; new ones of size 1 come first.

    Example:
        >>> tw.experimental.numpy.array([1, 2], ndmin=2).numpy(), tw.experimental.numpy.array(1.5).dtype
        (array([[1, 2]]), tf.float64)
    """
    x = conversion.identity(asarray(val, dtype))
    return shapes.reshape(x, [1] * max(ndmin - x.ndim, 0) + list(x.shape))


def ascontiguousarray(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """`array` with one axis or more."""
    return array(a, dtype, ndmin=1)


def copy(a: TensorLike) -> Tensor:
    """``a`` as a new tensor; gradients pass."""
    return array(a)


# ---------------------------------------------------------------------------- filled


def _dtype(dtype):
    return result_type(0.0 if dtype is None else dtype)


def zeros(shape: ShapeLike, dtype: DTypeLike | None = float) -> Tensor:
    """Zeros of this shape, float64 unless ``dtype`` is given."""
    return creation.zeros(shape, _dtype(dtype))


def ones(shape: ShapeLike, dtype: DTypeLike | None = float) -> Tensor:
    """Ones of this shape, float64 unless ``dtype`` is given."""
    return creation.ones(shape, _dtype(dtype))


def empty(shape: ShapeLike, dtype: DTypeLike | None = float) -> Tensor:
    """A tensor with unspecified entries: zeros, here."""
    return zeros(shape, dtype)


def full(
    shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike | None = None
) -> Tensor:
    """``fill_value``, which broadcasts to ``shape``, in its own dtype or in ``dtype``.

    Example:
        >>> tw.experimental.numpy.full([2], 7).numpy()
        array([7, 7])
    """
    shape = [shape] if isinstance(shape, int) else shape
    return shapes.broadcast_to(asarray(fill_value, dtype), shape)


def _like(name, fill):
    def function(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
        a = asarray(a)
        return fill(a, a.dtype if dtype is None else result_type(dtype))

    noun = name.partition("_")[0].capitalize()
    doc = f"{noun} in the shape of ``a``, and in its dtype unless ``dtype`` is given."
    return define(function, lambda a: [a], "a", doc, name=name)


zeros_like = _like("zeros_like", creation.zeros_like)
ones_like = _like("ones_like", creation.ones_like)


def empty_like(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """`empty` in the shape of ``a``, and in its dtype unless ``dtype`` is given."""
    return zeros_like(a, dtype)


def full_like(
    a: TensorLike,
    fill_value: TensorLike,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: ShapeLike | None = None,
) -> Tensor:
    """``fill_value`` in the shape of ``a``, and in its dtype unless ``dtype`` is given.

    Raises:
        ValueError: For another ``order``, ``subok`` or ``shape`` than by default.
    """
    if order != "K" or not subok or shape:
        raise ValueError(
            "full_like: order must be 'K', subok True and shape None, got "
            f"{order!r}, {subok} and {shape}"
        )
    a = asarray(a)
    return full(a.shape, fill_value, a.dtype if dtype is None else dtype)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = float
) -> Tensor:
    """Ones on the ``k``-th diagonal of an ``N x M`` matrix of zeros, float64; M is N if None.

    Example:
        >>> tw.experimental.numpy.eye(2, 3, k=1).numpy()
        array([[0., 1., 0.],
               [0., 0., 1.]])
    """
    return ops.eye(int(N), int(M or N), int(k), _dtype(dtype))


def identity(n: int, dtype: DTypeLike | None = float) -> Tensor:
    """The identity matrix of size ``n``, float64 unless ``dtype`` is given."""
    return eye(n, dtype=dtype)


def tri(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None
) -> Tensor:
    """Ones on and below the ``k``-th diagonal of an ``N x M`` matrix of zeros, float64.

    Example:
        >>> tw.experimental.numpy.tri(2).numpy()
        array([[1., 0.],
               [1., 1.]])
    """
    return ops.tri(N, M, k, _dtype(float if dtype is None else dtype))


tril = define(ops.tril, arrays, "m")
triu = define(ops.triu, arrays, "m")
vander = define(ops.vander, arrays, "x")

# ---------------------------------------------------------------------------- ranges


def arange(
    start: TensorLike,
    stop: TensorLike | None = None,
    step: TensorLike = 1,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """``start, start + step, ...`` up to and without ``stop``; ``arange(stop)`` from 0.

    Raises:
        ValueError: For a ``step`` of 0.

    Example:
        >>> tw.experimental.numpy.arange(3).numpy(), tw.experimental.numpy.arange(1.0, 0.0, -0.5).numpy()
        (array([0, 1, 2]), array([1. , 0.5]))
    """
    if not step:
        raise ValueError("arange: step must not be 0")
    bounds = [x for x in (start, stop, step) if x is not None]
    dtype = result_type(*bounds) if dtype is None else result_type(dtype)
    start, stop = (0, start) if stop is None else (start, stop)
    if (step > 0 and start > stop) or (step < 0 and start < stop):
        return creation.zeros([0], dtype)
    start, stop, step = promote(start, stop, step)
    return conversion.cast(creation.range(start, stop, step), dtype)


def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = float,
    axis: int = 0,
) -> Any:
    """``num`` evenly spaced values from ``start`` to ``stop``, with ``stop`` if ``endpoint``.

    Args:
        dtype: As in TensorFlow, the dtype of ``start * 1.0`` and ``stop * 1.0``
            whatever is given.

    Shapes:
        ``start`` and ``stop`` broadcast; the values have a new ``axis`` of size
        ``num``.

    Returns:
        The values; with ``retstep`` also the distance between them.

    Raises:
        ValueError: For a negative ``num``.

    Example:
        >>> tw.experimental.numpy.linspace(0, 1, 4, endpoint=False).numpy()
        array([0.  , 0.25, 0.5 , 0.75])
    """
    start, stop = promote(start, stop, 0.0)[:2]
    return ops.linspace(start, stop, num, endpoint, retstep, axis=axis)


def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """``base`` to the powers ``linspace(start, stop, num, endpoint)``; ``dtype`` as there.

    Example:
        >>> tw.experimental.numpy.logspace(0, 2, 3).numpy()
        array([  1.,  10., 100.])
    """
    start, stop = promote(start, stop, 0.0)[:2]
    return ops.logspace(start, stop, num, endpoint, base, axis=axis)


def geomspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """``num`` values from ``start`` to ``stop``, each the same multiple of the one before.

    They have a new ``axis`` of size ``num``. ``start`` and ``stop`` are not 0.

    Example:
        >>> tw.experimental.numpy.geomspace(1, 8, 4).numpy()
        array([1., 2., 4., 8.])
    """
    wide = result_type(start, stop, default_float())
    wanted = wide if dtype is None else result_type(dtype)
    start, stop = asarray(start, wide), asarray(stop, wide)
    return conversion.cast(ops.geomspace(start, stop, num, endpoint, axis=axis), wanted)


# --------------------------------------------------------------------------- indices


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """``ndim`` times the int32 vector ``0, ..., n - 1``: the indices of a diagonal.

    Raises:
        ValueError: For negative numbers.

    Example:
        >>> tw.experimental.numpy.diag_indices(2)[0].numpy()
        array([0, 1], dtype=int32)
    """
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: n and ndim must be 0 or more, got {n}, {ndim}")
    return (creation.range(n),) * ndim


def ix_(*args: TensorLike) -> list[Tensor]:
    """Return index vectors that broadcast to a grid, one along each axis.

    A vector of booleans stands for the indices where it is true.

    Raises:
        ValueError: For other ranks or dtypes.

    Example:
        >>> [x.shape for x in tw.experimental.numpy.ix_([0, 1], [2, 3, 4])]
        [TensorShape([2, 1]), TensorShape([1, 3])]
    """
    grid = []
    for i, a in enumerate(args):
        a = asarray(a)
        if a.ndim != 1 or a.dtype.is_differentiable:
            raise ValueError(
                f"ix_: arguments must be vectors of integers or booleans, got {a.dtype.name} "
                f"of shape {tuple(a.shape)} as number {i}"
            )
        if a.dtype.is_bool:
            a = conversion.cast(ops.nonzero(a)[0], "int64")
        grid.append(shapes.reshape(a, [-1 if j == i else 1 for j in range(len(args))]))
    return grid


def meshgrid(*xi: TensorLike, **kwargs: Any) -> list[Tensor]:
    """The coordinates of a grid: each vector repeated along the axes of all the others.

    Args:
        kwargs: ``indexing``, "xy" (exchanges the first two axes of the result) or "ij";
            ``sparse=False`` and ``copy=True``, which cannot be changed.

    Raises:
        ValueError: For other arguments.

    Example:
        >>> [x.shape for x in tw.experimental.numpy.meshgrid([1, 2], [3, 4, 5], indexing="ij")]
        [TensorShape([2, 3]), TensorShape([2, 3])]
    """
    indexing = kwargs.pop("indexing", "xy")
    if kwargs.pop("sparse", False) or not kwargs.pop("copy", True) or kwargs:
        raise ValueError(
            "meshgrid: takes indexing, sparse=False and copy=True; other arguments are not "
            f"supported, got {kwargs or 'sparse=True or copy=False'}"
        )
    return creation.meshgrid(*arrays(*xi), indexing=indexing)
