"""`tw.experimental.numpy`: shapes, splitting, joining and indexing of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapewright.core.messages.argument_validation import one_of
from tapewright.core.dtypes import int64
from tapewright.core.rules import normalize_axis
from tapewright.core.tensor import Tensor
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.typing import Axis, ShapeLike, TensorLike
from tapewright.keras import ops
from tapewright.ops.array import conversion, joining
from tapewright.ops.array import gather as gathering
from tapewright.ops.array import shape as shapes
from tapewright.ops.math import elementwise
from tapewright.ops.math.comparison import where as _where

from .definition import define
from .promotion import arrays, asarray, bools, promote

__all__ = [
    "append",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_to",
    "compress",
    "concatenate",
    "diag",
    "diagflat",
    "diagonal",
    "diff",
    "dsplit",
    "dstack",
    "expand_dims",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "hsplit",
    "hstack",
    "isscalar",
    "moveaxis",
    "ndim",
    "nonzero",
    "pad",
    "ravel",
    "repeat",
    "reshape",
    "roll",
    "rot90",
    "select",
    "shape",
    "size",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "take",
    "take_along_axis",
    "tile",
    "transpose",
    "vsplit",
    "vstack",
    "where",
]

# ---------------------------------------- as in `keras.ops`, with other names and dtypes

diag = define(ops.diag, arrays, "v")
diagflat = define(ops.diagflat, arrays, "v")
diagonal = define(ops.diagonal, arrays, "a")
diff = define(ops.diff, arrays, "a")
expand_dims = define(ops.expand_dims, arrays, "a")
flip = define(ops.flip, arrays, "m")
fliplr = define(ops.fliplr, arrays, "m")
flipud = define(ops.flipud, arrays, "m")
moveaxis = define(ops.moveaxis, arrays, "a")
ravel = define(ops.ravel, arrays, "a")
repeat = define(ops.repeat, arrays, "a")
roll = define(ops.roll, arrays, "a")
rot90 = define(ops.rot90, arrays, "m")
squeeze = define(ops.squeeze, arrays, "a")
swapaxes = define(ops.swapaxes, arrays, "a")
transpose = define(ops.transpose, arrays, "a")

# ---------------------------------------------------------------------------- shapes


def shape(a: TensorLike) -> TensorShape:
    """Return the shape of an array.

    Args:
        a: Input tensor.
    """
    return asarray(a).shape


def ndim(a: TensorLike) -> int:
    """Return the number of axes.

    Args:
        a: Input tensor.
    """
    return asarray(a).ndim


def isscalar(num: TensorLike) -> bool:
    """Return whether a value has no axes.

    Args:
        num: Tensor or number.
    """
    return ndim(num) == 0


def size(x: TensorLike, axis: None = None) -> Any:
    """Return the number of entries: an int, or a tensor if a trace has unknown sizes.

    Args:
        x: Input tensor.
        axis: Must be None.

    Raises:
        NotImplementedError: If ``axis`` is given.
    """
    if axis is not None:
        raise NotImplementedError(f"size: axis must be None, got {axis!r}")
    x = asarray(x)
    count = x.shape.num_elements()
    return shapes.size(x) if count is None else count


def reshape(a: TensorLike, newshape: ShapeLike, order: str = "C") -> Tensor:
    """Change the shape of an array without changing its entries.

    Args:
        a: Input tensor.
        newshape: Shape of the result; one size may be -1, and is inferred.
        order: "C" reads and writes entries with the last axis changing fastest, "F"
            with the first axis changing fastest.

    Raises:
        ValueError: If ``order`` is unknown.

    Example:
        >>> tw.experimental.numpy.reshape([1, 2, 3, 4], (2, 2), order="F").numpy()
        array([[1, 3],
               [2, 4]])
    """
    one_of("reshape", "order", order, ["C", "F"])
    a = asarray(a)
    if order == "C":
        return ops.reshape(a, newshape)
    newshape = [newshape] if isinstance(newshape, int) else list(newshape)
    return shapes.transpose(shapes.reshape(shapes.transpose(a), newshape[::-1]))


def flatten(a: TensorLike, order: str = "C") -> Tensor:
    """Flatten an array into a vector.

    Args:
        a: Input tensor.
        order: "C", "A" and "K" read entries with the last axis changing fastest, "F"
            with the first axis changing fastest.

    Raises:
        ValueError: If ``order`` is unknown.
    """
    one_of("flatten", "order", order, ["C", "A", "K", "F"])
    a = asarray(a)
    return ravel(shapes.transpose(a) if order == "F" else a)


_LISTED = "\nReturns:\n    One tensor, or a list of tensors for several arguments."


def _atleast(rank: int, lift: Callable[[list[Any]], list[Any]], summary: str) -> Any:
    def function(*arys: TensorLike) -> Any:
        lifted = [
            x if x.ndim >= rank else shapes.reshape(x, lift(list(x.shape)))
            for x in arrays(*arys)
        ]
        return lifted[0] if len(lifted) == 1 else lifted

    args = {"arys": "Tensors to convert."}
    return define(
        function, arrays, "", summary, _LISTED, name=f"atleast_{rank}d", args=args
    )


atleast_1d = _atleast(1, lambda dims: [1], "Convert scalars to vectors of one entry.")
atleast_2d = _atleast(
    2,
    lambda dims: [1] * (2 - len(dims)) + dims,
    "Reshape to at least two axes; new axes of size 1 come first.",
)
atleast_3d = _atleast(
    3,
    lambda dims: [*([1] if len(dims) < 2 else []), *(dims or [1]), 1],
    "Reshape to at least three axes: ``[n]`` to ``[1, n, 1]``, ``[m, n]`` to ``[m, n, 1]``.",
)


def broadcast_to(array: TensorLike, shape: ShapeLike) -> Tensor:
    """Broadcast an array to a shape.

    The array is repeated along new first axes, and along axes of size 1.

    Args:
        array: Input tensor.
        shape: Shape of the result.
    """
    shape = [shape] if isinstance(shape, int) else shape
    return shapes.broadcast_to(asarray(array), shape)


def broadcast_arrays(*args: TensorLike, **kwargs: Any) -> list[Tensor]:
    """Broadcast arrays against each other.

    Args:
        *args: Tensors to broadcast.
        **kwargs: ``subok``, which must be False.

    Returns:
        List of tensors of one shape.

    Raises:
        ValueError: If another keyword argument is given.

    Example:
        >>> [x.shape for x in tw.experimental.numpy.broadcast_arrays([1, 2], [[3], [4]])]
        [TensorShape([2, 2]), TensorShape([2, 2])]
    """
    if kwargs.pop("subok", False) or kwargs:
        raise ValueError(
            f"broadcast_arrays: keyword arguments must be subok=False, got {kwargs}"
        )
    tensors = arrays(*args)
    if len(tensors) < 2:
        return tensors
    dims = shapes.shape(tensors[0])
    for x in tensors[1:]:
        dims = shapes.broadcast_dynamic_shape(dims, shapes.shape(x))
    return [shapes.broadcast_to(x, dims) for x in tensors]


def pad(array: TensorLike, pad_width: Any, mode: str, **kwargs: Any) -> Tensor:
    """Pad an array.

    Args:
        array: Input tensor.
        pad_width: Numbers of entries ``(before, after)`` to add on each axis.
        mode: "constant", "reflect" (mirrored without the edge) or "symmetric" (mirrored
            with the edge).
        **kwargs: ``constant_values``, 0 by default.

    Raises:
        ValueError: If ``mode`` is unknown, or another keyword argument is given.

    Example:
        >>> tw.experimental.numpy.pad([1, 2], [(1, 1)], "constant").numpy()
        array([0, 1, 2, 0])
    """
    fill = kwargs.pop("constant_values", None)
    if kwargs:
        raise ValueError(
            f"pad: keyword arguments must be constant_values, got {sorted(kwargs)}"
        )
    return ops.pad(
        asarray(array), pad_width, mode, fill if mode == "constant" else None
    )


# ---------------------------------------------------------------- splitting, joining


def split(ary: TensorLike, indices_or_sections: Any, axis: Axis = 0) -> list[Tensor]:
    """Split an array into a list of parts along an axis.

    Args:
        ary: Tensor to split.
        indices_or_sections: Number of equal parts, or the indices before which to cut;
            parts beyond the end are empty.
        axis: Axis to split.

    Raises:
        ShapeError: If the number of parts does not divide the axis (a ``ValueError``).

    Example:
        >>> [x.numpy().tolist() for x in tw.experimental.numpy.split([1, 2, 3], [2, 5])]
        [[1, 2], [3], []]
    """
    ary = asarray(ary)
    count = ary.shape[axis]
    if not isinstance(indices_or_sections, int) and count is not None:
        indices_or_sections = [min(int(i), count) for i in indices_or_sections]
    return ops.split(ary, indices_or_sections, axis)


_SECTIONS = "Number of equal parts, or the indices before which to cut."


def _split_along(name: str, axis: int) -> Callable[..., list[Tensor]]:
    def function(ary: TensorLike, indices_or_sections: Any) -> list[Tensor]:
        ary = asarray(ary)
        along = 0 if axis == 1 and ary.ndim == 1 else axis
        return split(ary, indices_or_sections, along)

    row = ", or axis 0 of a vector" if axis == 1 else ""
    args = {"ary": "Tensor to split.", "indices_or_sections": _SECTIONS}
    summary = f"Split a tensor along axis {axis}{row}; see `split`."
    return define(function, arrays, "ary", summary, name=name, args=args)


vsplit = _split_along("vsplit", 0)
hsplit = _split_along("hsplit", 1)
dsplit = _split_along("dsplit", 2)


def _listed(values):
    return list(values) if isinstance(values, (list, tuple)) else list(asarray(values))


def concatenate(arys: Sequence[TensorLike], axis: Axis = 0) -> Tensor:
    """Join arrays along an existing axis.

    Args:
        arys: List of tensors, which are promoted to a common dtype.
        axis: Axis to join along.

    Raises:
        ValueError: If the list is empty.

    Example:
        >>> tw.experimental.numpy.concatenate([[1, 2], [0.5]]).numpy()
        array([1. , 2. , 0.5])
    """
    arys = arys if isinstance(arys, (list, tuple)) else [arys]
    if not arys:
        raise ValueError("concatenate: arys must have at least one array, got none")
    return joining.concat(promote(*arys), axis)


def stack(arrays: Sequence[TensorLike], axis: Axis = 0) -> Tensor:
    """Join arrays of one shape along a new axis.

    Args:
        arrays: List of tensors of one shape, which are promoted to a common dtype.
        axis: Position of the new axis in the result.

    Example:
        >>> tw.experimental.numpy.stack([[1, 2], [3, 4]], axis=1).numpy()
        array([[1, 3],
               [2, 4]])
    """
    if not isinstance(arrays, (list, tuple)):
        return swapaxes(arrays, 0, axis)
    return joining.stack(promote(*arrays), axis)


def hstack(tup: Sequence[TensorLike]) -> Tensor:
    """Stack arrays horizontally: along axis 1, or along axis 0 for vectors.

    Args:
        tup: List of tensors.
    """
    return ops.hstack(promote(*[atleast_1d(x) for x in _listed(tup)]))


def vstack(tup: Sequence[TensorLike]) -> Tensor:
    """Stack arrays vertically: along axis 0, with vectors as rows.

    Args:
        tup: List of tensors.
    """
    return ops.vstack(promote(*[atleast_2d(x) for x in _listed(tup)]))


def dstack(tup: Sequence[TensorLike]) -> Tensor:
    """Stack arrays along axis 2, a new last axis for vectors and matrices.

    Args:
        tup: List of tensors.
    """
    return ops.dstack(promote(*[atleast_3d(x) for x in _listed(tup)]))


def append(arr: TensorLike, values: TensorLike, axis: Axis | None = None) -> Tensor:
    """Append values to the end of an array.

    Args:
        arr: Input tensor.
        values: Tensor to append.
        axis: Axis to join along; None flattens both.

    Example:
        >>> tw.experimental.numpy.append([1, 2], [[3]]).numpy()
        array([1, 2, 3])
    """
    if axis is None:
        arr, values, axis = ravel(arr), ravel(values), 0
    return concatenate([arr, values], axis)


def tile(a: TensorLike, reps: TensorLike) -> Tensor:
    """Repeat an array ``reps[i]`` times along axis ``i``.

    Args:
        a: Input tensor.
        reps: Numbers of repetitions. Fewer numbers than axes apply to the last axes;
            more numbers add new first axes.

    Example:
        >>> tw.experimental.numpy.tile([1, 2], (2, 1)).numpy()
        array([[1, 2],
               [1, 2]])
    """
    reps = reps if isinstance(reps, (list, tuple)) else list(ravel(reps))
    return ops.tile(asarray(a), reps)


# --------------------------------------------------------------------------- picking


def where(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None
) -> Any:
    """Select entries of ``x`` or ``y`` by a condition; without both, `nonzero`.

    Args:
        condition: Tensor of booleans; numbers other than 0 count as True.
        x: Entries where the condition is true.
        y: Entries where the condition is false.

    Shapes:
        All three broadcast.

    Raises:
        ValueError: If only one of ``x`` and ``y`` is given.

    Example:
        >>> tw.experimental.numpy.where([True, False], [1, 2], 0.5).numpy()
        array([1. , 0.5])
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("where: x and y must both be given, or neither")
    return _where(*bools(condition), *promote(x, y))


def nonzero(a: TensorLike) -> list[Tensor]:
    """Return the indices of the nonzero entries: an int64 vector for each axis.

    Args:
        a: Input tensor.

    Example:
        >>> [x.numpy() for x in tw.experimental.numpy.nonzero([[0, 1], [2, 0]])]
        [array([0, 1]), array([1, 0])]
    """
    indices = conversion.cast(_where(*bools(atleast_1d(a))), int64)
    return [indices[:, i] for i in range(indices.shape[-1])]


def select(
    condlist: Sequence[TensorLike],
    choicelist: Sequence[TensorLike],
    default: TensorLike = 0,
) -> Tensor:
    """Select entries by the first condition that is true.

    Args:
        condlist: List of tensors of booleans.
        choicelist: List of tensors to select from, one for each condition.
        default: Entry where no condition is true.

    Shapes:
        Conditions and choices broadcast.

    Raises:
        ValueError: If the lists differ in length.

    Example:
        >>> conditions = [[True, False], [True, True]]
        >>> tw.experimental.numpy.select(conditions, [[1, 2], [30, 40]]).numpy()
        array([ 1, 40])
    """
    default, *choices = promote(default, *choicelist)
    return ops.select(bools(*condlist), choices, default)


def take(
    a: TensorLike,
    indices: TensorLike,
    axis: Axis | None = None,
    out: None = None,
    mode: str = "clip",
) -> Tensor:
    """Take slices of an array at indices along an axis.

    Args:
        a: Input tensor.
        indices: Tensor of integers.
        axis: Axis to index; None flattens ``a``.
        out: Must be None.
        mode: Index to use for one out of range: "clip" (the last one, or the first for
            negative ones) or "wrap" (counted around the end).

    Shapes:
        The shape of ``a``, with the axis replaced by the shape of ``indices``.

    Raises:
        ValueError: If ``mode`` is unknown, or ``out`` is given.

    Example:
        >>> tw.experimental.numpy.take([10, 20, 30], [0, 3]).numpy()
        array([10, 30])
        >>> tw.experimental.numpy.take([10, 20, 30], -1, mode="wrap").numpy()
        np.int64(30)
    """
    if out is not None:
        raise ValueError(
            f"take: out must be None, since tensors are immutable; got {out!r}"
        )
    one_of("take", "mode", mode, ["clip", "wrap"])
    a, indices = arrays(a, indices)
    a, axis = (ravel(a), 0) if axis is None else (a, axis)
    (axis,) = normalize_axis("take", axis, a.ndim)
    count = conversion.cast(shapes.shape(a)[axis], indices.dtype)
    if mode == "clip":
        indices = elementwise.clip_by_value(indices, 0, count - 1)
    else:
        indices = elementwise.floormod(indices, count)
    return gathering.gather(a, indices, axis=axis)


def take_along_axis(arr: TensorLike, indices: TensorLike, axis: Axis | None) -> Tensor:
    """Take entries of an array along an axis, at the indices of a second array.

    Args:
        arr: Input tensor.
        indices: Tensor of integers; negative ones count from the end.
        axis: Axis to index; None flattens ``arr``.

    Shapes:
        Both broadcast, except along ``axis``; the result has the shape of ``indices``.

    Example:
        >>> tw.experimental.numpy.take_along_axis([[1, 7], [5, 2]], [[1], [0]], axis=1).numpy()
        array([[7],
               [5]])
    """
    return ops.take_along_axis(*arrays(arr, indices), axis)


def compress(condition: TensorLike, a: TensorLike, axis: Axis | None = None) -> Tensor:
    """Take the slices of an array along an axis where a condition is true.

    Args:
        condition: Vector of booleans; missing entries at the end count as False.
        a: Input tensor.
        axis: Axis to select from; None flattens ``a``.

    Raises:
        ValueError: If ``condition`` is not a vector.

    Example:
        >>> tw.experimental.numpy.compress([False, True], [1, 2, 3]).numpy()
        array([2])
    """
    (condition,) = bools(condition)
    if condition.ndim != 1:
        raise ValueError(
            f"compress: condition must be a vector, got shape {tuple(condition.shape)}"
        )
    a = atleast_1d(a)
    a, axis = (ravel(a), 0) if axis is None else (a, axis)
    return gathering.gather(a, nonzero(condition)[0], axis=axis)
