"""`tw.experimental.numpy`: arrays from values, constant arrays, ranges and unit matrices."""

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
    """Create a tensor from an array, a number or a nested list.

    Args:
        val: Value of the tensor.
        dtype: Dtype of the tensor; None infers it.
        copy: Has no effect, as tensors are immutable.
        ndmin: Least number of axes; new axes of size 1 come first.

    Example:
        >>> tw.experimental.numpy.array([1, 2], ndmin=2).numpy()
        array([[1, 2]])
        >>> tw.experimental.numpy.array(1.5).dtype
        tf.float64
    """
    x = conversion.identity(asarray(val, dtype))
    return shapes.reshape(x, [1] * max(ndmin - x.ndim, 0) + list(x.shape))


def ascontiguousarray(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Create a tensor with at least one axis; see `array`.

    Args:
        a: Value of the tensor.
        dtype: Dtype of the tensor; None infers it.
    """
    return array(a, dtype, ndmin=1)


def copy(a: TensorLike) -> Tensor:
    """Return a copy of an array; it is differentiable.

    Args:
        a: Input tensor.
    """
    return array(a)


# ---------------------------------------------------------------------------- filled


def _dtype(dtype):
    return result_type(0.0 if dtype is None else dtype)


def zeros(shape: ShapeLike, dtype: DTypeLike | None = float) -> Tensor:
    """Return a tensor filled with zeros.

    Args:
        shape: Shape of the tensor.
        dtype: Dtype of the tensor, float64 by default.
    """
    return creation.zeros(shape, _dtype(dtype))


def ones(shape: ShapeLike, dtype: DTypeLike | None = float) -> Tensor:
    """Return a tensor filled with ones.

    Args:
        shape: Shape of the tensor.
        dtype: Dtype of the tensor, float64 by default.
    """
    return creation.ones(shape, _dtype(dtype))


def empty(shape: ShapeLike, dtype: DTypeLike | None = float) -> Tensor:
    """Return a tensor with unspecified entries, in fact zeros.

    Args:
        shape: Shape of the tensor.
        dtype: Dtype of the tensor, float64 by default.
    """
    return zeros(shape, dtype)


def full(
    shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike | None = None
) -> Tensor:
    """Return a tensor filled with a value.

    Args:
        shape: Shape of the tensor.
        fill_value: Value, which broadcasts to ``shape``.
        dtype: Dtype of the tensor; None keeps the dtype of ``fill_value``.

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

    summary = f"Return a tensor of {name.partition('_')[0]} with the shape of ``a``."
    args = {
        "a": "Tensor that determines the shape and dtype.",
        "dtype": "Dtype of the result; None keeps the dtype of ``a``.",
    }
    return define(function, lambda a: [a], "a", summary, name=name, args=args)


zeros_like = _like("zeros_like", creation.zeros_like)
ones_like = _like("ones_like", creation.ones_like)


def empty_like(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor with the shape of ``a`` and unspecified entries, in fact zeros.

    Args:
        a: Tensor that determines the shape and dtype.
        dtype: Dtype of the result; None keeps the dtype of ``a``.
    """
    return zeros_like(a, dtype)


def full_like(
    a: TensorLike,
    fill_value: TensorLike,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: ShapeLike | None = None,
) -> Tensor:
    """Return a tensor with the shape of ``a``, filled with a value.

    Args:
        a: Tensor that determines the shape and dtype.
        fill_value: Value, which broadcasts to the shape.
        dtype: Dtype of the result; None keeps the dtype of ``a``.
        order: Must be "K".
        subok: Must be True.
        shape: Must be None.

    Raises:
        ValueError: If ``order``, ``subok`` or ``shape`` differs from its default.
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
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: Number of rows.
        M: Number of columns; None for ``N``.
        k: Number of the diagonal: 0 for the main one, positive above, negative below.
        dtype: Dtype of the matrix, float64 by default.

    Example:
        >>> tw.experimental.numpy.eye(2, 3, k=1).numpy()
        array([[0., 1., 0.],
               [0., 0., 1.]])
    """
    return ops.eye(int(N), int(M or N), int(k), _dtype(dtype))


def identity(n: int, dtype: DTypeLike | None = float) -> Tensor:
    """Return the identity matrix.

    Args:
        n: Number of rows and columns.
        dtype: Dtype of the matrix, float64 by default.
    """
    return eye(n, dtype=dtype)


def tri(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None
) -> Tensor:
    """Return a lower triangular matrix of ones: on and below a diagonal.

    Args:
        N: Number of rows.
        M: Number of columns; None for ``N``.
        k: Number of the diagonal: 0 for the main one, positive above, negative below.
        dtype: Dtype of the matrix; None for float64.

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
    """Return evenly spaced values: ``start, start + step, ...``, without ``stop``.

    Args:
        start: First value; ``arange(stop)`` starts at 0.
        stop: End of the values, exclusive.
        step: Difference between consecutive values.
        dtype: Dtype of the result; None promotes the dtypes of the arguments.

    Raises:
        ValueError: If ``step`` is 0.

    Example:
        >>> tw.experimental.numpy.arange(3).numpy()
        array([0, 1, 2])
        >>> tw.experimental.numpy.arange(1.0, 0.0, -0.5).numpy()
        array([1. , 0.5])
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
    """Return ``num`` evenly spaced values from ``start`` to ``stop``.

    Args:
        start: First value.
        stop: Last value, or the end if ``endpoint`` is False.
        num: Number of values.
        endpoint: If True, ``stop`` is the last value.
        retstep: If True, also return the distance between values.
        dtype: Has no effect: as in TensorFlow, the result has the dtype of
            ``start * 1.0`` and ``stop * 1.0``.
        axis: Position of the axis of the values in the result.

    Shapes:
        ``start`` and ``stop`` broadcast; the values have a new axis of size ``num``.

    Returns:
        The values; with ``retstep``, a pair of the values and the distance.

    Raises:
        ValueError: If ``num`` is negative.

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
    """Return ``base`` to the powers ``linspace(start, stop, num, endpoint)``.

    Args:
        start: First exponent.
        stop: Last exponent, or the end if ``endpoint`` is False.
        num: Number of values.
        endpoint: If True, ``stop`` is the last exponent.
        base: Base of the powers.
        dtype: Has no effect, as in `linspace`.
        axis: Position of the axis of the values in the result.

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
    """Return ``num`` values from ``start`` to ``stop`` with a constant ratio.

    Args:
        start: First value, not 0.
        stop: Last value, or the end if ``endpoint`` is False, not 0.
        num: Number of values.
        endpoint: If True, ``stop`` is the last value.
        dtype: Dtype of the result; None infers it.
        axis: Position of the axis of the values in the result.

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
    """Return the indices of the main diagonal: ``ndim`` times ``0, ..., n - 1``, int32.

    Args:
        n: Size of each axis.
        ndim: Number of axes.

    Raises:
        ValueError: If a number is negative.

    Example:
        >>> tw.experimental.numpy.diag_indices(2)[0].numpy()
        array([0, 1], dtype=int32)
    """
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: n and ndim must be 0 or more, got {n}, {ndim}")
    return (creation.range(n),) * ndim


def ix_(*args: TensorLike) -> list[Tensor]:
    """Return index vectors that broadcast to a grid, one along each axis.

    Args:
        *args: Vectors of integers; a vector of booleans selects the indices where it is
            true.

    Raises:
        ValueError: If an argument has another rank or dtype.

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
    """Return coordinate matrices from coordinate vectors.

    Each vector is repeated along the axes of all others.

    Args:
        *xi: Coordinate vectors.
        **kwargs: ``indexing``: "xy" (which swaps the first two axes of the result) or
            "ij"; ``sparse`` and ``copy``, which must be False and True.

    Raises:
        ValueError: If another keyword argument or value is given.

    Example:
        >>> [x.shape for x in tw.experimental.numpy.meshgrid([1, 2], [3, 4, 5], indexing="ij")]
        [TensorShape([2, 3]), TensorShape([2, 3])]
    """
    indexing = kwargs.pop("indexing", "xy")
    if kwargs.pop("sparse", False) or not kwargs.pop("copy", True) or kwargs:
        raise ValueError(
            "meshgrid: keyword arguments must be indexing, sparse=False or copy=True, "
            f"got {kwargs or 'sparse=True or copy=False'}"
        )
    return creation.meshgrid(*arrays(*xi), indexing=indexing)
