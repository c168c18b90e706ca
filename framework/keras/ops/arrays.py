"""`keras.ops` of NumPy that reshape, join and split arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapewright.core.rules import normalize_axis
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import Axes, Axis, ShapeLike, TensorLike
from tapewright.ops.array import creation, joining
from tapewright.ops.array import gather as gathering
from tapewright.ops.array import shape as shapes
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.gather import repeat as _repeat
from tapewright.ops.linalg import diagonal as diagonals
from tapewright.ops.math.reduction import reduce_sum

from .operation import ANY, OperationFamily
from .promotion import promote, to_accumulator

__all__ = [
    "append",
    "array_split",
    "broadcast_to",
    "concatenate",
    "diag",
    "diagflat",
    "diagonal",
    "dsplit",
    "dstack",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "hsplit",
    "hstack",
    "moveaxis",
    "ndim",
    "pad",
    "ravel",
    "repeat",
    "reshape",
    "roll",
    "rot90",
    "size",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "trace",
    "transpose",
    "vsplit",
    "vstack",
]

operation = OperationFamily(__name__, "numpy")


# --------------------------------------------------------------------- another shape


@operation
def reshape(x: TensorLike, newshape: ShapeLike) -> Tensor:
    """Reshape a tensor, keeping its entries in row-major order.

    Args:
        x: Input tensor.
        newshape: New shape; one size may be -1 or None and is then inferred.

    Example:
        >>> keras.ops.reshape([[1, 2], [3, 4]], (4,)).numpy()
        array([1, 2, 3, 4], dtype=int32)
    """
    if isinstance(newshape, (tuple, list)) and -1 not in newshape:
        newshape = [-1 if n is None else n for n in newshape]
    return shapes.reshape(x, newshape)


@operation
def ravel(x: TensorLike) -> Tensor:
    """Flatten a tensor into a vector, in row-major order.

    Args:
        x: Input tensor.

    Example:
        >>> keras.ops.ravel([[1, 2], [3, 4]]).numpy()
        array([1, 2, 3, 4], dtype=int32)
    """
    return shapes.reshape(x, [-1])


@operation
def ndim(x: TensorLike) -> Tensor:
    """Return the number of axes as an int32 scalar.

    Args:
        x: Input tensor.
    """
    return convert_to_tensor(convert_to_tensor(x).ndim)


@operation
def size(x: TensorLike) -> Tensor:
    """Return the number of entries as an int32 scalar.

    Args:
        x: Input tensor.
    """
    return shapes.size(x)


@operation
def transpose(x: TensorLike, axes: Axes = None) -> Tensor:
    """Permute the axes of a tensor.

    Args:
        x: Input tensor.
        axes: Order of the axes of ``x`` in the result; None reverses the axes.

    Example:
        >>> keras.ops.transpose([[[1, 2, 3]]], axes=(0, 2, 1)).shape
        TensorShape([1, 3, 1])
    """
    return shapes.transpose(x, axes)


@operation
def swapaxes(x: TensorLike, axis1: Axis, axis2: Axis) -> Tensor:
    """Swap two axes of a tensor.

    Args:
        x: Input tensor.
        axis1: First axis.
        axis2: Second axis.

    Example:
        >>> keras.ops.swapaxes([[[1, 2, 3]]], 0, 2).shape
        TensorShape([3, 1, 1])
    """
    x = convert_to_tensor(x)
    order = list(range(x.ndim))
    (first,), (second,) = (
        normalize_axis("swapaxes", axis, x.ndim, name)
        for axis, name in ((axis1, "axis1"), (axis2, "axis2"))
    )
    order[first], order[second] = order[second], order[first]
    return shapes.transpose(x, order)


@operation
def moveaxis(x: TensorLike, source: Axes, destination: Axes) -> Tensor:
    """Move axes to new positions; the other axes keep their order.

    Args:
        x: Input tensor.
        source: Axis or axes to move.
        destination: New position of each of these axes.

    Raises:
        ValueError: If ``source`` and ``destination`` differ in length.

    Example:
        >>> keras.ops.moveaxis([[[1, 2, 3]]], 2, 0).shape
        TensorShape([3, 1, 1])
    """
    x = convert_to_tensor(x)
    sources, destinations = (
        normalize_axis("moveaxis", axis, x.ndim, name)
        for axis, name in ((source, "source"), (destination, "destination"))
    )
    if len(sources) != len(destinations):
        raise ValueError(
            "moveaxis: source and destination must have the same number of axes, got "
            f"{source} and {destination}"
        )
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for position, axis in sorted(zip(destinations, sources)):
        order.insert(position, axis)
    return shapes.transpose(x, order)


@operation(same_as="expand_dims", kinds=ANY)
def expand_dims(x: TensorLike, axis: Axes) -> Tensor:
    """Insert new axes of size 1.

    Args:
        x: Input tensor.
        axis: Position of the new axis in the result, or a tuple of positions.

    Example:
        >>> keras.ops.expand_dims([1, 2], (0, -1)).shape
        TensorShape([1, 2, 1])
    """
    return shapes.expand_dims(x, axis)


@operation(same_as="squeeze", kinds=ANY)
def squeeze(x: TensorLike, axis: Axes = None) -> Tensor:
    """Remove axes of size 1.

    Args:
        x: Input tensor.
        axis: Axis or tuple of axes to remove; None removes all axes of size 1.

    Raises:
        ShapeError: If an axis in ``axis`` has another size.

    Example:
        >>> keras.ops.squeeze([[[1], [2]]], axis=0).shape
        TensorShape([2, 1])
    """
    none = axis is not None and not hasattr(axis, "__index__") and not len(axis)
    return convert_to_tensor(x) if none else shapes.squeeze(x, axis)


@operation
def broadcast_to(x: TensorLike, shape: ShapeLike) -> Tensor:
    """Broadcast a tensor to a shape.

    The tensor is repeated along axes of size 1, and along new axes in front.

    Args:
        x: Input tensor.
        shape: Shape of the result.

    Example:
        >>> keras.ops.broadcast_to([1, 2], (2, 2)).numpy()
        array([[1, 2],
               [1, 2]], dtype=int32)
    """
    return shapes.broadcast_to(x, shape)


@operation(same_as="reverse", kinds=ANY)
def flip(x: TensorLike, axis: Axes = None) -> Tensor:
    """Reverse the order of the entries along axes.

    Args:
        x: Input tensor.
        axis: Axis or tuple of axes to reverse; None reverses all axes.

    Example:
        >>> keras.ops.flip([[1, 2], [3, 4]], axis=1).numpy()
        array([[2, 1],
               [4, 3]], dtype=int32)
    """
    x = convert_to_tensor(x)
    return joining.reverse(x, list(normalize_axis("flip", axis, x.ndim)))


@operation
def fliplr(x: TensorLike) -> Tensor:
    """Reverse the order of the columns: `flip` along axis 1.

    Args:
        x: Input tensor.
    """
    return flip(_check_rank("fliplr", x, 2), 1)


@operation
def flipud(x: TensorLike) -> Tensor:
    """Reverse the order of the rows: `flip` along axis 0.

    Args:
        x: Input tensor.
    """
    return flip(_check_rank("flipud", x, 1), 0)


def _check_rank(who, x, least):
    """Return ``x`` as a tensor.

    Raises:
        ValueError: If it has fewer axes than ``least``.
    """
    x = convert_to_tensor(x)
    if x.ndim < least:
        raise ValueError(
            f"{who}: x must have {least} axes or more, got shape {tuple(x.shape)}"
        )
    return x


@operation
def rot90(array: TensorLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """Rotate a tensor by multiples of 90 degrees in the plane of two axes.

    Args:
        array: Tensor with two axes or more.
        k: Number of rotations by 90 degrees.
        axes: Plane of the rotation, which turns the first axis towards the second.

    Raises:
        ValueError: If ``array`` has fewer than two axes.

    Example:
        >>> keras.ops.rot90([[1, 2], [3, 4]]).numpy()
        array([[2, 4],
               [1, 3]], dtype=int32)
    """
    array = _check_rank("rot90", array, 2)
    if len(axes) != 2:
        raise ValueError(f"rot90: axes must be two different axes, got {axes}")
    first, second = normalize_axis("rot90", axes, array.ndim, "axes")
    if k % 4 == 2:
        return flip(array, axes)
    if k % 4 == 1:
        return swapaxes(flip(array, second), first, second)
    return flip(swapaxes(array, first, second), second) if k % 4 else array


@operation(same_as="roll", kinds=ANY)
def roll(x: TensorLike, shift: int | Sequence[int], axis: Axes = None) -> Tensor:
    """Shift the entries along an axis; entries beyond the end reappear at the start.

    Args:
        x: Input tensor.
        shift: Number of places, or one number for each axis.
        axis: Axis or axes to shift along; None shifts the entries of the flattened
            ``x``.

    Example:
        >>> keras.ops.roll([1, 2, 3], 1).numpy()
        array([3, 1, 2], dtype=int32)
    """
    x = convert_to_tensor(x)
    if axis is None:
        return shapes.reshape(gathering.roll(ravel(x), shift, 0), x.shape)
    if not isinstance(axis, int) and isinstance(shift, int):
        shift = [shift] * len(axis)
    return gathering.roll(x, shift, axis)


@operation(call="x constant_values")
def pad(
    x: TensorLike,
    pad_width: int | Sequence[Any],
    mode: str = "constant",
    constant_values: TensorLike | None = None,
) -> Tensor:
    """Pad a tensor at both ends of each axis.

    Args:
        x: Input tensor.
        pad_width: Numbers of entries ``(before, after)`` for each axis; one pair or one
            number applies to all axes.
        mode: "constant", "reflect" (mirrored without the edge) or "symmetric" (mirrored
            with the edge).
        constant_values: Value of the padding for "constant", 0 by default.

    Raises:
        ValueError: If ``mode`` is unknown.

    Example:
        >>> keras.ops.pad([1, 2], 1).numpy()
        array([0, 1, 2, 0], dtype=int32)
        >>> keras.ops.pad([1, 2, 3], 2, mode="reflect").numpy()
        array([3, 2, 1, 2, 3, 2, 1], dtype=int32)
    """
    x = convert_to_tensor(x)
    if constant_values is not None and mode != "constant":
        raise ValueError(
            f"pad: constant_values is for mode 'constant', got mode {mode!r}"
        )
    alone = isinstance(pad_width, int) or is_symbolic(pad_width)
    widths = [pad_width] * 2 if alone else pad_width
    if isinstance(widths, (tuple, list)):
        pairs = (
            [widths]
            if all([isinstance(n, int) or is_symbolic(n) for n in widths])
            else widths
        )
        widths = [list(pair) for pair in pairs] * (x.ndim if len(pairs) == 1 else 1)
    fill = 0 if constant_values is None else constant_values
    return joining.pad(x, widths, mode.upper(), cast(fill, x.dtype))


# ------------------------------------------------------------------ joining, splitting


@operation
def concatenate(xs: Sequence[TensorLike], axis: Axis = 0) -> Tensor:
    """Join tensors along an existing axis.

    Args:
        xs: List of tensors, whose shapes differ along ``axis`` only.
        axis: Axis to join along.

    Example:
        >>> keras.ops.concatenate([[[1, 2]], [[3, 4]]], axis=1).numpy()
        array([[1, 2, 3, 4]], dtype=int32)
    """
    return joining.concat(promote(*xs), axis)


@operation
def stack(x: Sequence[TensorLike], axis: Axis = 0) -> Tensor:
    """Join tensors along a new axis.

    Args:
        x: List of tensors of one shape.
        axis: Position of the new axis in the result.

    Example:
        >>> keras.ops.stack([[1, 2], [3, 4]], axis=1).numpy()
        array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return joining.stack(promote(*x), axis)


@operation(call="x1 x2")
def append(x1: TensorLike, x2: TensorLike, axis: Axis | None = None) -> Tensor:
    """Join two tensors along an axis.

    Args:
        x1: First tensor.
        x2: Second tensor.
        axis: Axis to join along; None flattens both tensors.

    Example:
        >>> keras.ops.append([[1, 2]], [[3, 4]]).numpy()
        array([1, 2, 3, 4], dtype=int32)
    """
    if axis is None:
        x1, x2, axis = ravel(x1), ravel(x2), 0
    return concatenate([x1, x2], axis)


@operation
def hstack(xs: Sequence[TensorLike]) -> Tensor:
    """Join tensors horizontally: along axis 1, or along axis 0 for vectors.

    Args:
        xs: List of tensors.

    Example:
        >>> keras.ops.hstack([[[1], [2]], [[3], [4]]]).numpy()
        array([[1, 3],
               [2, 4]], dtype=int32)
    """
    xs = [ravel(x) if convert_to_tensor(x).ndim == 0 else x for x in xs]
    return concatenate(xs, 0 if convert_to_tensor(xs[0]).ndim == 1 else 1)


@operation
def vstack(xs: Sequence[TensorLike]) -> Tensor:
    """Join tensors vertically, along axis 0; vectors become rows.

    Args:
        xs: List of tensors.

    Example:
        >>> keras.ops.vstack([[1, 2], [3, 4]]).numpy()
        array([[1, 2],
               [3, 4]], dtype=int32)
    """
    xs = [convert_to_tensor(x) for x in xs]
    return concatenate([shapes.reshape(x, [1, -1]) if x.ndim < 2 else x for x in xs], 0)


@operation
def dstack(xs: Sequence[TensorLike]) -> Tensor:
    """Join tensors along axis 2, a new last axis for vectors and matrices.

    Args:
        xs: List of tensors.

    Example:
        >>> keras.ops.dstack([[1, 2], [3, 4]]).shape
        TensorShape([1, 2, 2])
    """
    xs = [convert_to_tensor(x) for x in xs]
    xs = [shapes.reshape(x, [1, -1]) if x.ndim < 2 else x for x in xs]
    return concatenate([x[..., None] if x.ndim == 2 else x for x in xs], 2)


@operation
def split(
    x: TensorLike, indices_or_sections: int | Sequence[int], axis: Axis = 0
) -> list[Tensor]:
    """Split a tensor into parts along an axis.

    Args:
        x: Input tensor.
        indices_or_sections: Number of equal parts, or the indices to split before.
        axis: Axis to split along.

    Returns:
        List of the parts.

    Raises:
        ShapeError: If the number of parts does not divide the size of the axis.

    Example:
        >>> [part.numpy().tolist() for part in keras.ops.split([1, 2, 3, 4], [1, 3])]
        [[1], [2, 3], [4]]
    """
    if isinstance(indices_or_sections, int):
        return joining.split(x, indices_or_sections, axis)
    cuts = [0, *[int(i) for i in indices_or_sections]]
    sizes = [after - before for before, after in zip(cuts, cuts[1:])]
    return joining.split(x, [*sizes, -1], axis)


@operation
def array_split(
    x: TensorLike, indices_or_sections: int | Sequence[int], axis: Axis = 0
) -> list[Tensor]:
    """Split a tensor into parts of nearly equal size; the first parts may be longer by one.

    Args:
        x: Input tensor.
        indices_or_sections: Number of parts, or the indices to split before.
        axis: Axis to split along.

    Returns:
        List of the parts.

    Raises:
        ValueError: If the number of parts is below 1.

    Example:
        >>> [part.numpy().tolist() for part in keras.ops.array_split([1, 2, 3], 2)]
        [[1, 2], [3]]
    """
    x = convert_to_tensor(x)
    (axis,) = normalize_axis("array_split", axis, x.ndim)
    size = x.shape[axis]
    if not isinstance(indices_or_sections, int) or size is None:
        return split(x, indices_or_sections, axis)
    if indices_or_sections < 1:
        raise ValueError(
            f"array_split: indices_or_sections must be positive, got {indices_or_sections}"
        )
    least, longer = divmod(size, indices_or_sections)
    rest = indices_or_sections - longer
    return joining.split(x, [least + 1] * longer + [least] * rest, axis)


@operation
def hsplit(x: TensorLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Split a tensor horizontally: along axis 1, or along axis 0 for a vector.

    Args:
        x: Input tensor.
        indices_or_sections: Number of equal parts, or the indices to split before.

    Returns:
        List of the parts.
    """
    x = _check_rank("hsplit", x, 1)
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


@operation
def vsplit(x: TensorLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Split a tensor vertically, along axis 0.

    Args:
        x: Tensor with two axes or more.
        indices_or_sections: Number of equal parts, or the indices to split before.

    Returns:
        List of the parts.

    Raises:
        ValueError: If ``x`` has fewer than two axes.
    """
    return split(_check_rank("vsplit", x, 2), indices_or_sections, 0)


@operation
def dsplit(x: TensorLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Split a tensor along axis 2.

    Args:
        x: Tensor with three axes or more.
        indices_or_sections: Number of equal parts, or the indices to split before.

    Returns:
        List of the parts.

    Raises:
        ValueError: If ``x`` has fewer than three axes.
    """
    return split(_check_rank("dsplit", x, 3), indices_or_sections, 2)


@operation
def tile(x: TensorLike, repeats: ShapeLike) -> Tensor:
    """Repeat a tensor as a whole along its axes.

    Args:
        x: Input tensor.
        repeats: Number of repetitions of each axis. Fewer numbers than axes apply to
            the last axes; with more numbers, ``x`` gets new axes in front.

    Example:
        >>> keras.ops.tile([[1, 2]], [2, 1]).numpy()
        array([[1, 2],
               [1, 2]], dtype=int32)
    """
    x = convert_to_tensor(x)
    counts = [repeats] if isinstance(repeats, int) else list(repeats)
    counts = [1] * (x.ndim - len(counts)) + counts
    if len(counts) > x.ndim:
        x = shapes.expand_dims(x, tuple(range(len(counts) - x.ndim)))
    return joining.tile(x, counts)


def _specs_of_repeat(x, repeats, axis=None):
    """Return the spec that Keras infers: a list of ``repeats`` makes the size unknown."""
    if hasattr(repeats, "__index__") or len(repeats) == 1:
        return None
    dims = list(x.shape)
    if axis is None:
        return TensorSpec([None], x.dtype) if None in dims else None
    (at,) = normalize_axis("repeat", axis, len(dims))
    return TensorSpec(dims, x.dtype) if dims[at] is None else None


@operation(specs=_specs_of_repeat)
def repeat(
    x: TensorLike, repeats: int | Sequence[int] | TensorLike, axis: Axis | None = None
) -> Tensor:
    """Repeat each entry along an axis.

    Args:
        x: Input tensor.
        repeats: Number of repetitions, or one number for each entry.
        axis: Axis to repeat along; None flattens ``x``.

    Raises:
        ValueError: If a number of repetitions is negative.

    Example:
        >>> keras.ops.repeat([1, 2], 2).numpy()
        array([1, 1, 2, 2], dtype=int32)
        >>> keras.ops.repeat([1, 2], [1, 3]).numpy()
        array([1, 2, 2, 2], dtype=int32)
    """
    if isinstance(repeats, (list, tuple)) and len(repeats) == 1:
        repeats = repeats[0]
    return _repeat(x, repeats, axis)


# ------------------------------------------------------------------------- diagonals


@operation
def diagonal(
    x: TensorLike, offset: int = 0, axis1: Axis = 0, axis2: Axis = 1
) -> Tensor:
    """Return the diagonals of matrices.

    Args:
        x: Tensor with two axes or more.
        offset: Number of the diagonal: 0 for the main one, positive above, negative
            below.
        axis1: Axis of the rows.
        axis2: Axis of the columns.

    Shapes:
        The result lacks the two axes, and has the diagonal as its last axis.

    Raises:
        ValueError: If ``x`` has fewer than two axes.

    Example:
        >>> keras.ops.diagonal([[1, 2], [3, 4]]).numpy()
        array([1, 4], dtype=int32)
    """
    x = moveaxis(_check_rank("diagonal", x, 2), (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    if None not in (rows, columns) and not -rows < offset < columns:
        return creation.zeros((*x.shape[:-2], 0), x.dtype)
    return diagonals.diag_part(x, k=offset)


@operation
def diag(x: TensorLike, k: int = 0) -> Tensor:
    """Extract the diagonal of a matrix, or create the matrix with a vector as its diagonal.

    Args:
        x: Matrix or vector.
        k: Number of the diagonal: 0 for the main one, positive above, negative below.

    Raises:
        ValueError: If ``x`` is neither a vector nor a matrix.

    Example:
        >>> keras.ops.diag([[1, 2], [3, 4]]).numpy()
        array([1, 4], dtype=int32)
        >>> keras.ops.diag([1, 2]).numpy()
        array([[1, 0],
               [0, 2]], dtype=int32)
    """
    x = convert_to_tensor(x)
    if x.ndim not in (1, 2):
        raise ValueError(f"diag: x must be a vector or a matrix, got {tuple(x.shape)}")
    return diagonals.diag(x, k=k) if x.ndim == 1 else diagonal(x, k)


@operation
def diagflat(x: TensorLike, k: int = 0) -> Tensor:
    """Create a matrix with all entries of a tensor on its diagonal.

    Args:
        x: Input tensor, which is flattened.
        k: Number of the diagonal: 0 for the main one, positive above, negative below.

    Example:
        >>> keras.ops.diagflat([1, 2]).numpy()
        array([[1, 0],
               [0, 2]], dtype=int32)
    """
    return diagonals.diag(ravel(x), k=k)


@operation
def trace(x: TensorLike, offset: int = 0, axis1: Axis = 0, axis2: Axis = 1) -> Tensor:
    """Sum the diagonals of matrices.

    Args:
        x: Tensor with two axes or more.
        offset: Number of the diagonal: 0 for the main one, positive above, negative
            below.
        axis1: Axis of the rows.
        axis2: Axis of the columns.

    Shapes:
        The result lacks the two axes.

    Raises:
        ValueError: If ``x`` has fewer than two axes.

    Example:
        >>> keras.ops.trace([[1, 2], [3, 4]]).numpy()
        np.int32(5)
    """
    return reduce_sum(to_accumulator(diagonal(x, offset, axis1, axis2)), -1)
