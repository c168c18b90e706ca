"""`keras.ops` of NumPy that create arrays: constants, ranges, unit matrices, windows."""

from __future__ import annotations

import math
from operator import index
from typing import Any, Literal, overload

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.settings.floatx import default_float
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import DTypeLike, ShapeLike, TensorLike
from tapewright.ops.array import creation, joining
from tapewright.ops.array import shape as shapes
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import range as _range
from tapewright.ops.math.comparison import equal, less_equal, where
from tapewright.ops.math.elementwise import abs, exp, floor, log, sign
from tapewright.ops.math.elementwise import pow as _pow

from .operation import OperationFamily
from .promotion import common_dtype, kind_of, promote

__all__ = [
    "arange",
    "array",
    "bartlett",
    "blackman",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "geomspace",
    "hamming",
    "hanning",
    "identity",
    "kaiser",
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

operation = OperationFamily(__name__, "numpy")


@operation
def array(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Convert a value to a tensor.

    Args:
        x: Tensor, variable, array, number or nested list.
        dtype: Dtype of the result; None keeps the dtype of ``x``.
    """
    return convert_to_tensor(x) if dtype is None else cast(x, dtype)


@operation(class_name=None)
def zeros(shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    """Create a tensor of zeros.

    Args:
        shape: Shape of the result.
        dtype: Dtype of the result, `floatx` by default.

    Example:
        >>> keras.ops.zeros((2, 2)).numpy()
        array([[0., 0.],
               [0., 0.]], dtype=float32)
    """
    return creation.zeros(shape, dtype or default_float())


@operation(class_name=None)
def ones(shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    """Create a tensor of ones.

    Args:
        shape: Shape of the result.
        dtype: Dtype of the result, `floatx` by default.

    Example:
        >>> keras.ops.ones((2,), dtype="int32").numpy()
        array([1, 1], dtype=int32)
    """
    return creation.ones(shape, dtype or default_float())


@operation(class_name=None)
def empty(shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    """Create a tensor with unspecified entries, which are zeros here.

    Args:
        shape: Shape of the result.
        dtype: Dtype of the result, `floatx` by default.
    """
    return zeros(shape, dtype)


@operation(call="fill_value")
def full(
    shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike | None = None
) -> Tensor:
    """Create a tensor filled with a value.

    Args:
        shape: Shape of the result.
        fill_value: Value of the entries, which broadcasts to ``shape``.
        dtype: Dtype of the result, `floatx` by default.

    Raises:
        TypeError: If ``fill_value`` is complex and ``dtype`` is real.

    Example:
        >>> keras.ops.full((2, 2), 7.0).numpy()
        array([[7., 7.],
               [7., 7.]], dtype=float32)
    """
    value, dtype = convert_to_tensor(fill_value), as_dtype(dtype or default_float())
    if value.dtype.is_complex and not dtype.is_complex:
        raise TypeError(
            f"full: fill_value must be a valid {dtype.name}, got {fill_value!r}"
        )
    return shapes.broadcast_to(cast(value, dtype), shape)


@operation
def zeros_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Create a tensor of zeros in the shape of another tensor.

    Args:
        x: Tensor that has the shape.
        dtype: Dtype of the result; None keeps the dtype of ``x``.
    """
    return creation.zeros_like(x, dtype)


@operation
def ones_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Create a tensor of ones in the shape of another tensor.

    Args:
        x: Tensor that has the shape.
        dtype: Dtype of the result; None keeps the dtype of ``x``.
    """
    return creation.ones_like(x, dtype)


@operation
def empty_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Create a tensor with unspecified entries in the shape of another tensor; see `empty`.

    Args:
        x: Tensor that has the shape.
        dtype: Dtype of the result; None keeps the dtype of ``x``.
    """
    return zeros_like(x, dtype)


@operation(call="x fill_value")
def full_like(
    x: TensorLike, fill_value: TensorLike, dtype: DTypeLike | None = None
) -> Tensor:
    """Create a tensor filled with a value, in the shape of another tensor.

    Args:
        x: Tensor that has the shape.
        fill_value: Value of the entries, which broadcasts to the shape of ``x``.
        dtype: Dtype of the result; None keeps the dtype of ``x``.
    """
    x = convert_to_tensor(x)
    return full(x.shape, fill_value, dtype or x.dtype)


@operation(call="start stop step")
def arange(
    start: TensorLike,
    stop: TensorLike | None = None,
    step: TensorLike | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Create evenly spaced values ``start, start + step, ...``, up to ``stop`` exclusive.

    Args:
        start: First value; without ``stop``, the end of a range that starts at 0.
        stop: End of the range, exclusive.
        step: Distance between values, 1 by default.
        dtype: Dtype of the result, by default the common dtype of the numbers.

    Raises:
        TypeError: If a Python number is not whole and ``dtype`` is an integer dtype.

    Example:
        >>> keras.ops.arange(3).numpy(), keras.ops.arange(1.0, 2.0, 0.5).numpy()
        (array([0, 1, 2], dtype=int32), array([1. , 1.5], dtype=float32))
    """
    bounds = [n for n in (start, stop, step) if n is not None]
    dtype = common_dtype(*map(kind_of, bounds)) if dtype is None else as_dtype(dtype)
    if dtype.is_integer and any([type(n) is float and n % 1 for n in bounds]):
        raise TypeError(
            f"arange: numbers must be whole for dtype {dtype.name}, got {bounds}"
        )
    # In double precision: rounded to the dtype, 1 / 0.1 has one step more.
    start, stop = (0, start) if stop is None else (start, stop)
    bounds = [start, stop, 1 if step is None else step]
    bounds = [np.float64(n) if type(n) is float else n for n in bounds]
    return cast(_range(*bounds), dtype)


@overload
def linspace(
    start: TensorLike, stop: TensorLike, num: int = 50, endpoint: bool = True,
    retstep: Literal[False] = False, dtype: DTypeLike | None = None, axis: int = 0,
) -> Tensor: ...  # fmt: skip
@overload
def linspace(
    start: TensorLike, stop: TensorLike, num: int = 50, endpoint: bool = True, *,
    retstep: Literal[True], dtype: DTypeLike | None = None, axis: int = 0,
) -> tuple[Tensor, Tensor]: ...  # fmt: skip
@operation(call="start stop")
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """Create evenly spaced values between two ends.

    Args:
        start: First value, a number or tensor.
        stop: Last value; broadcasts with ``start``.
        num: Number of values.
        endpoint: If False, the values do not include ``stop``.
        retstep: If True, return the distance between the values as well.
        dtype: Dtype of the result, by default the common floating dtype of the ends.
        axis: Position of the new axis of size ``num`` in the result.

    Returns:
        The values, or ``(values, step)`` with ``retstep``.

    Raises:
        ValueError: If ``num`` is negative.

    Example:
        >>> keras.ops.linspace(0.0, 1.0, 4, endpoint=False).numpy()
        array([0.  , 0.25, 0.5 , 0.75], dtype=float32)
    """
    num = index(num)
    if num < 0:
        raise ValueError(f"linspace: num must be 0 or more, got {num}")
    start, stop = promote(start, stop, at_least=float)
    steps = num - 1 if endpoint else num
    step = (stop - start) / steps if steps > 0 else (stop - start) * math.nan
    last = stop if endpoint else stop - step
    if num:
        values = creation.linspace(start, stop if num == 1 else last, num, axis=axis)
    else:
        values = creation.zeros((0, *(start + stop).shape), start.dtype)
    if dtype is not None:
        values = floor(values) if as_dtype(dtype).is_integer else values
        values = cast(values, dtype)
    return (values, step) if retstep else values


@operation(call="start stop")
def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """Create values evenly spaced on a log scale: ``base ** linspace(start, stop)``.

    Args:
        start: First exponent, a number or tensor.
        stop: Last exponent; broadcasts with ``start``.
        num: Number of values.
        endpoint: If False, the exponents do not include ``stop``.
        base: Base of the powers.
        dtype: Dtype of the result, by default the common floating dtype of the
            exponents.
        axis: Position of the new axis of size ``num`` in the result.

    Example:
        >>> keras.ops.logspace(0.0, 2.0, 3).numpy()
        array([  1.,  10., 100.], dtype=float32)
    """
    powers = linspace(start, stop, num, endpoint, axis=axis)
    values = _pow(cast(base, powers.dtype), powers)
    return values if dtype is None else cast(values, dtype)


@operation(call="start stop")
def geomspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """Create values of a geometric progression between two ends.

    Args:
        start: First value, a number or tensor, not 0.
        stop: Last value, not 0; broadcasts with ``start``.
        num: Number of values.
        endpoint: If False, the values do not include ``stop``.
        dtype: Dtype of the result, by default the common floating dtype of the ends.
        axis: Position of the new axis of size ``num`` in the result.

    Example:
        >>> keras.ops.geomspace(1.0, 8.0, 4).numpy()
        array([1., 2., 4., 8.], dtype=float32)
    """
    start, stop = promote(start, stop, at_least=float)
    logs = linspace(log(abs(start)), log(abs(stop)), num, endpoint, axis=axis)
    values = exp(logs) * sign(start)
    return values if dtype is None else cast(values, dtype)


def _offsets(rows, columns, k):
    """Return the column of each entry of a matrix and, plus ``k``, its row."""
    return _range(columns), creation.range(rows)[:, None] + k


@operation(class_name=None)
def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None
) -> Tensor:
    """Create a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: Number of rows.
        M: Number of columns, ``N`` by default.
        k: Number of the diagonal: 0 for the main one, positive above, negative below.
        dtype: Dtype of the result, `floatx` by default.

    Example:
        >>> keras.ops.eye(2, 3, k=1).numpy()
        array([[0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    if k == 0:
        return creation.eye(N, M, dtype=dtype or default_float())
    return cast(equal(*_offsets(N, N if M is None else M, k)), dtype or default_float())


@operation(class_name=None)
def identity(n: int, dtype: DTypeLike | None = None) -> Tensor:
    """Create the identity matrix.

    Args:
        n: Number of rows and columns.
        dtype: Dtype of the result, `floatx` by default.
    """
    return eye(n, dtype=dtype)


@operation(class_name=None)
def tri(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None
) -> Tensor:
    """Create a matrix with ones on and below a diagonal and zeros above.

    Args:
        N: Number of rows.
        M: Number of columns, ``N`` by default.
        k: Number of the diagonal: 0 for the main one, positive above, negative below.
        dtype: Dtype of the result, `floatx` by default.

    Example:
        >>> keras.ops.tri(2).numpy()
        array([[1., 0.],
               [1., 1.]], dtype=float32)
    """
    return cast(
        less_equal(*_offsets(N, N if M is None else M, k)), dtype or default_float()
    )


def _check_matrix(who, x):
    x = convert_to_tensor(x)
    if x.ndim < 2:
        raise ValueError(
            f"{who}: x must have 2 axes or more, got shape {tuple(x.shape)}"
        )
    return x


@operation
def tril(x: TensorLike, k: int = 0) -> Tensor:
    """Return the lower triangle of matrices, with zeros above a diagonal.

    Args:
        x: Matrices ``[..., m, n]``.
        k: Number of the diagonal: 0 for the main one, positive above, negative below.

    Raises:
        ValueError: If ``x`` has fewer than two axes.

    Example:
        >>> keras.ops.tril([[1, 2], [3, 4]]).numpy()
        array([[1, 0],
               [3, 4]], dtype=int32)
    """
    x = _check_matrix("tril", x)
    kept = less_equal(*_offsets(*x.shape[-2:], k))
    return where(kept, x, creation.zeros_like(x))


@operation
def triu(x: TensorLike, k: int = 0) -> Tensor:
    """Return the upper triangle of matrices, with zeros below a diagonal.

    Args:
        x: Matrices ``[..., m, n]``.
        k: Number of the diagonal: 0 for the main one, positive above, negative below.

    Raises:
        ValueError: If ``x`` has fewer than two axes.

    Example:
        >>> keras.ops.triu([[1, 2], [3, 4]]).numpy()
        array([[1, 2],
               [0, 4]], dtype=int32)
    """
    x = _check_matrix("triu", x)
    dropped = less_equal(*_offsets(*x.shape[-2:], k - 1))
    return where(dropped, creation.zeros_like(x), x)


@operation
def meshgrid(*x: TensorLike, indexing: str = "xy") -> list[Tensor]:
    """Create the coordinates of a grid from a vector for each axis.

    Each vector is repeated along the axes of all the others.

    Args:
        *x: Vectors of ``m``, ``n``, ... entries.
        indexing: "xy" swaps the first two axes of the result, "ij" does not.

    Shapes:
        Tensors ``[n, m, ...]``, or ``[m, n, ...]`` with "ij".

    Returns:
        List with a tensor for each vector.

    Raises:
        ValueError: If ``indexing`` is unknown.

    Example:
        >>> x, y = keras.ops.meshgrid([1, 2], [3, 4])
        >>> x.numpy().tolist(), y.numpy().tolist()
        ([[1, 2], [1, 2]], [[3, 3], [4, 4]])
    """
    return creation.meshgrid(*x, indexing=indexing)


@operation
def vander(x: TensorLike, N: int | None = None, increasing: bool = False) -> Tensor:
    """Create a Vandermonde matrix, whose columns are powers of a vector.

    Args:
        x: Vector ``[n]``.
        N: Number of columns, ``n`` by default.
        increasing: If True, the powers increase from 0 to ``N - 1``; else they
            decrease.

    Shapes:
        ``[n]`` to ``[n, N]``.

    Raises:
        ValueError: If ``x`` is not a vector.

    Example:
        >>> keras.ops.vander([2, 3], 3).numpy()
        array([[4, 2, 1],
               [9, 3, 1]], dtype=int32)
    """
    x = convert_to_tensor(x)
    if x.ndim != 1:
        raise ValueError(f"vander: x must be a vector, got shape {tuple(x.shape)}")
    count = x.shape[0] if N is None else N
    base, powers = promote(x[:, None], _range(count), at_least=float)
    powers = powers if increasing else joining.reverse(powers, [0])
    return cast(_pow(base, powers), x.dtype)


_LENGTH = {"x": "Number of values."}
_WINDOW = """
Returns:
    Tensor ``[x]`` of `floatx`.
"""


def _window(function):
    def window(x: int) -> Tensor:
        return convert_to_tensor(function(int(x)), default_float())

    name = function.__name__
    summary = f"Create a symmetric {name.capitalize()} window, as NumPy does."
    return operation.named(name, window, summary, _WINDOW, _LENGTH, class_name=None)


bartlett = _window(np.bartlett)
blackman = _window(np.blackman)
hamming = _window(np.hamming)
hanning = _window(np.hanning)


@operation(class_name=None)
def kaiser(x: int, beta: float) -> Tensor:
    """Create a symmetric Kaiser window, as NumPy does.

    Args:
        x: Number of values.
        beta: Shape of the window: 0 for a rectangle; larger values make it narrower.

    Returns:
        Tensor ``[x]`` of `floatx`.

    Example:
        >>> keras.ops.kaiser(3, 0.0).numpy()
        array([1., 1., 1.], dtype=float32)
    """
    return convert_to_tensor(np.kaiser(int(x), float(beta)), default_float())
