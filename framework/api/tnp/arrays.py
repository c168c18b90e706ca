"""`tw.experimental.numpy`: shapes, parts, joins, and entries picked from arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapewright.core.argument_validation import one_of
from tapewright.core.dtypes import int64
from tapewright.core.rules import normalize_axis
from tapewright.core.tensor import Tensor
from tapewright.core.tensor_shape import TensorShape
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
    """The sizes of the axes of ``a``."""
    return asarray(a).shape


def ndim(a: TensorLike) -> int:
    """The number of axes of ``a``."""
    return asarray(a).ndim


def isscalar(num: TensorLike) -> bool:
    """Return whether ``num`` has no axes."""
    return ndim(num) == 0


def size(x: TensorLike, axis: None = None) -> Any:
    """The number of entries of ``x``, an int; a tensor where a trace has unknown sizes.

    Raises:
        NotImplementedError: For an ``axis``.
    """
    if axis is not None:
        raise NotImplementedError(f"size: axis must be None, got {axis!r}")
    x = asarray(x)
    count = x.shape.num_elements()
    return shapes.size(x) if count is None else count


def reshape(a: TensorLike, newshape: ShapeLike, order: str = "C") -> Tensor:
    """The same entries in another shape; one size may be -1.

    Args:
        order: "C" reads and writes the last axis first, "F" the first one.

    Raises:
        ValueError: For another ``order``.

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
    """All entries as a vector.

    Args:
        order: "C", "A" and "K" read the last axis first, "F" the first one.

    Raises:
        ValueError: For another ``order``.
    """
    one_of("flatten", "order", order, ["C", "A", "K", "F"])
    a = asarray(a)
    return ravel(shapes.transpose(a) if order == "F" else a)


def _atleast(rank: int, lift: Callable[[list[Any]], list[Any]], doc: str) -> Any:
    def function(*arys: TensorLike) -> Any:
        lifted = [
            x if x.ndim >= rank else shapes.reshape(x, lift(list(x.shape)))
            for x in arrays(*arys)
        ]
        return lifted[0] if len(lifted) == 1 else lifted

    return define(function, arrays, "", doc, name=f"atleast_{rank}d")


_LISTED = "\n\nReturns: one tensor, or a list of them for several arguments.\n"
atleast_1d = _atleast(
    1, lambda dims: [1], "A scalar as a vector of one entry." + _LISTED
)
atleast_2d = _atleast(
    2,
    lambda dims: [1] * (2 - len(dims)) + dims,
    "Arrays with two axes or more; new ones of size 1 come first." + _LISTED,
)
atleast_3d = _atleast(
    3,
    lambda dims: [*([1] if len(dims) < 2 else []), *(dims or [1]), 1],
    "Arrays with three axes or more: ``[n]`` as ``[1, n, 1]``, ``[m, n]`` as ``[m, n, 1]``."
    + _LISTED,
)


def broadcast_to(array: TensorLike, shape: ShapeLike) -> Tensor:
    """``array`` repeated along new first axes, and along axes of size 1, to ``shape``."""
    shape = [shape] if isinstance(shape, int) else shape
    return shapes.broadcast_to(asarray(array), shape)


def broadcast_arrays(*args: TensorLike, **kwargs: Any) -> list[Tensor]:
    """The arrays, each broadcast to the shape that they have together.

    Args:
        kwargs: ``subok``, which must be False.

    Raises:
        ValueError: For other arguments.

    Example:
        >>> [x.shape for x in tw.experimental.numpy.broadcast_arrays([1, 2], [[3], [4]])]
        [TensorShape([2, 2]), TensorShape([2, 2])]
    """
    if kwargs.pop("subok", False) or kwargs:
        raise ValueError(f"broadcast_arrays: takes subok=False alone, got {kwargs}")
    tensors = arrays(*args)
    if len(tensors) < 2:
        return tensors
    dims = shapes.shape(tensors[0])
    for x in tensors[1:]:
        dims = shapes.broadcast_dynamic_shape(dims, shapes.shape(x))
    return [shapes.broadcast_to(x, dims) for x in tensors]


def pad(array: TensorLike, pad_width: Any, mode: str, **kwargs: Any) -> Tensor:
    """``array`` with a margin: ``pad_width[i] = (before, after)`` entries on axis ``i``.

    Args:
        mode: "constant", "reflect" (mirrored without the edge) or "symmetric" (mirrored
            with the edge).
        kwargs: ``constant_values``, 0 by default.

    Raises:
        ValueError: For another ``mode`` or other arguments.

    Example:
        >>> tw.experimental.numpy.pad([1, 2], [(1, 1)], "constant").numpy()
        array([0, 1, 2, 0])
    """
    fill = kwargs.pop("constant_values", None)
    if kwargs:
        raise ValueError(f"pad: takes constant_values alone, got {sorted(kwargs)}")
    return ops.pad(
        asarray(array), pad_width, mode, fill if mode == "constant" else None
    )


# ---------------------------------------------------------------- splitting, joining


def split(ary: TensorLike, indices_or_sections: Any, axis: Axis = 0) -> list[Tensor]:
    """A list of parts along ``axis``.

    Args:
        indices_or_sections: A number of equal parts, or the indices before which to
            cut; parts beyond the end are empty.

    Raises:
        ShapeError: If the number does not divide the axis (a ``ValueError``).

    Example:
        >>> [x.numpy().tolist() for x in tw.experimental.numpy.split([1, 2, 3], [2, 5])]
        [[1, 2], [3], []]
    """
    ary = asarray(ary)
    count = ary.shape[axis]
    if not isinstance(indices_or_sections, int) and count is not None:
        indices_or_sections = [min(int(i), count) for i in indices_or_sections]
    return ops.split(ary, indices_or_sections, axis)


def _split_along(name: str, axis: int) -> Callable[..., list[Tensor]]:
    def function(ary: TensorLike, indices_or_sections: Any) -> list[Tensor]:
        ary = asarray(ary)
        along = 0 if axis == 1 and ary.ndim == 1 else axis
        return split(ary, indices_or_sections, along)

    row = ", of a vector along axis 0" if axis == 1 else ""
    return define(
        function, arrays, "ary", f"`split` along axis {axis}{row}.", name=name
    )


vsplit = _split_along("vsplit", 0)
hsplit = _split_along("hsplit", 1)
dsplit = _split_along("dsplit", 2)


def _listed(values):
    return list(values) if isinstance(values, (list, tuple)) else list(asarray(values))


def concatenate(arys: Sequence[TensorLike], axis: Axis = 0) -> Tensor:
    """Join the arrays of a list along an existing axis, in the dtype where they meet.

    Raises:
        ValueError: For an empty list.

    Example:
        >>> tw.experimental.numpy.concatenate([[1, 2], [0.5]]).numpy()
        array([1. , 2. , 0.5])
    """
    arys = arys if isinstance(arys, (list, tuple)) else [arys]
    if not arys:
        raise ValueError("concatenate: arys must have an array or more, got none")
    return joining.concat(promote(*arys), axis)


def stack(arrays: Sequence[TensorLike], axis: Axis = 0) -> Tensor:
    """Join the arrays of a list, all of one shape, along a new axis.

    Example:
        >>> tw.experimental.numpy.stack([[1, 2], [3, 4]], axis=1).numpy()
        array([[1, 3],
               [2, 4]])
    """
    if not isinstance(arrays, (list, tuple)):
        return swapaxes(arrays, 0, axis)
    return joining.stack(promote(*arrays), axis)


def hstack(tup: Sequence[TensorLike]) -> Tensor:
    """Join the arrays of a list along axis 1, vectors along axis 0."""
    return ops.hstack(promote(*[atleast_1d(x) for x in _listed(tup)]))


def vstack(tup: Sequence[TensorLike]) -> Tensor:
    """Join the arrays of a list along axis 0; vectors become rows."""
    return ops.vstack(promote(*[atleast_2d(x) for x in _listed(tup)]))


def dstack(tup: Sequence[TensorLike]) -> Tensor:
    """Join the arrays of a list along axis 2, a new last axis for vectors and matrices."""
    return ops.dstack(promote(*[atleast_3d(x) for x in _listed(tup)]))


def append(arr: TensorLike, values: TensorLike, axis: Axis | None = None) -> Tensor:
    """Join ``arr`` and ``values`` along ``axis``; None flattens both.

    Example:
        >>> tw.experimental.numpy.append([1, 2], [[3]]).numpy()
        array([1, 2, 3])
    """
    if axis is None:
        arr, values, axis = ravel(arr), ravel(values), 0
    return concatenate([arr, values], axis)


def tile(a: TensorLike, reps: TensorLike) -> Tensor:
    """``a`` repeated ``reps[i]`` times along axis ``i``.

    With fewer numbers than axes they count for the last axes; with more, ``a`` gets
    new first axes.

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
    """``x`` where ``condition`` is true, else ``y``; with neither, `nonzero`.

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
    """The coordinates of the entries that are not 0, an int64 vector for each axis.

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
    """The entry of the first choice whose condition is true there, else ``default``.

    Shapes:
        Conditions and choices broadcast.

    Raises:
        ValueError: If the lists differ in length.

    Example:
        >>> tw.experimental.numpy.select([[True, False], [True, True]], [[1, 2], [30, 40]]).numpy()
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
    """The slices of ``a`` at ``indices`` along ``axis``; None flattens ``a``.

    Args:
        out: Must be None.
        mode: The index for one out of range, "clip" (the first, also for negative ones,
            or the last) or "wrap" (around the end).

    Shapes:
        The shape of ``a``, its axis replaced by the shape of ``indices``.

    Raises:
        ValueError: For another ``mode``, or an ``out``.

    Example:
        >>> tw.experimental.numpy.take([10, 20, 30], [0, 3]).numpy(), tw.experimental.numpy.take([10, 20, 30], -1, mode="wrap").numpy()
        (array([10, 30]), np.int64(30))
    """
    if out is not None:
        raise ValueError(f"take: out must be None: tensors are immutable, got {out!r}")
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
    """The entries ``arr[..., indices[..., i, ...], ...]``, with indices along ``axis``.

    Negative indices count from the end; None flattens ``arr``.

    Shapes:
        Both broadcast but for ``axis``; the result has the shape of ``indices``.

    Example:
        >>> tw.experimental.numpy.take_along_axis([[1, 7], [5, 2]], [[1], [0]], axis=1).numpy()
        array([[7],
               [5]])
    """
    return ops.take_along_axis(*arrays(arr, indices), axis)


def compress(condition: TensorLike, a: TensorLike, axis: Axis | None = None) -> Tensor:
    """The slices of ``a`` along ``axis`` where ``condition`` is true; None flattens ``a``.

    Shapes:
        ``condition`` ``[n]``; what it lacks at the end counts as false.

    Raises:
        ValueError: For a ``condition`` of another rank.

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
