"""`keras.ops` of NumPy that give arrays another shape, join and split them."""

from tapewright.core.rules import normalize_axis
from tapewright.core.symbolic_dim import is_symbolic
from tapewright.core.tensor import TensorSpec, convert_to_tensor
from tapewright.ops.array import creation, joining
from tapewright.ops.array import shape as shapes
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.gather import repeat as _repeat
from tapewright.ops.linalg import diagonal as diagonals
from tapewright.ops.math.reduction import reduce_sum

from .promotion import counted, sized_by_values, together

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


# --------------------------------------------------------------------- another shape


def reshape(x, newshape):
    """The same entries, in order, in another shape; one size may be -1 (or None)."""
    if isinstance(newshape, (tuple, list)) and -1 not in newshape:
        newshape = [-1 if n is None else n for n in newshape]
    return shapes.reshape(x, newshape)


def ravel(x):
    """All entries in a row."""
    return shapes.reshape(x, [-1])


def ndim(x):
    """The number of axes, int32."""
    return convert_to_tensor(convert_to_tensor(x).ndim)


def size(x):
    """The number of entries, int32."""
    return shapes.size(x)


def transpose(x, axes=None):
    """``x`` with its axes in another order, reversed if none is given."""
    return shapes.transpose(x, axes)


def swapaxes(x, axis1, axis2):
    """``x`` with two axes exchanged."""
    x = convert_to_tensor(x)
    order = list(range(x.ndim))
    (first,), (second,) = (
        normalize_axis("swapaxes", axis, x.ndim, name)
        for axis, name in ((axis1, "axis1"), (axis2, "axis2"))
    )
    order[first], order[second] = order[second], order[first]
    return shapes.transpose(x, order)


def moveaxis(x, source, destination):
    """``x`` with the axes ``source`` at the places ``destination``, the rest in order."""
    x = convert_to_tensor(x)
    sources, places = (
        normalize_axis("moveaxis", axis, x.ndim, name)
        for axis, name in ((source, "source"), (destination, "destination"))
    )
    if len(sources) != len(places):
        raise ValueError(
            "moveaxis: source and destination must name as many axes, got "
            f"{source} and {destination}"
        )
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources)):
        order.insert(place, axis)
    return shapes.transpose(x, order)


def expand_dims(x, axis):
    """``x`` with new axes of size 1 at ``axis``, an int or a tuple."""
    return shapes.expand_dims(x, axis)


def squeeze(x, axis=None):
    """``x`` without its axes of size 1, or those of them in ``axis``."""
    none = axis is not None and not hasattr(axis, "__index__") and not len(axis)
    return convert_to_tensor(x) if none else shapes.squeeze(x, axis)


def broadcast_to(x, shape):
    """``x`` repeated to ``shape``."""
    return shapes.broadcast_to(x, shape)


def flip(x, axis=None):
    """The entries in reverse along ``axis``: an int, a tuple, None for all axes."""
    x = convert_to_tensor(x)
    return joining.reverse(x, list(normalize_axis("flip", axis, x.ndim)))


def fliplr(x):
    """The columns in reverse: `flip` of axis 1."""
    return flip(_of_rank("fliplr", x, 2), 1)


def flipud(x):
    """The rows in reverse: `flip` of axis 0."""
    return flip(_of_rank("flipud", x, 1), 0)


def _of_rank(who, x, least):
    """``x`` as a tensor. Raises: ``ValueError`` if it has fewer axes than ``least``."""
    x = convert_to_tensor(x)
    if x.ndim < least:
        raise ValueError(
            f"{who}: x must have {least} axes or more, got shape {tuple(x.shape)}"
        )
    return x


def rot90(array, k=1, axes=(0, 1)):
    """``array`` turned ``k`` times by 90 degrees, from the first of ``axes`` to the second."""
    array = _of_rank("rot90", array, 2)
    if len(axes) != 2:
        raise ValueError(f"rot90: axes must be two different axes, got {axes}")
    first, second = normalize_axis("rot90", axes, array.ndim, "axes")
    if k % 4 == 2:
        return flip(array, axes)
    if k % 4 == 1:
        return swapaxes(flip(array, second), first, second)
    return flip(swapaxes(array, first, second), second) if k % 4 else array


def roll(x, shift, axis=None):
    """The entries moved by ``shift`` along ``axis``; of all in a row, for None."""
    x = convert_to_tensor(x)
    if axis is None:
        return shapes.reshape(joining.roll(ravel(x), shift, 0), x.shape)
    if not isinstance(axis, int) and isinstance(shift, int):
        shift = [shift] * len(axis)
    return joining.roll(x, shift, axis)


def pad(x, pad_width, mode="constant", constant_values=None):
    """``x`` with a margin: ``pad_width[i] = (before, after)`` entries on axis ``i``.

    A pair, or a number, stands for all axes. ``mode``: "constant" (``constant_values``,
    0 if None), "reflect" (mirrored, the edge once) or "symmetric" (the edge twice).

    >>> pad([1, 2], 1).numpy()
    array([0, 1, 2, 0], dtype=int32)
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


def concatenate(xs, axis=0):
    """The tensors of a list, one after the other along ``axis``."""
    return joining.concat(together(*xs), axis)


def stack(x, axis=0):
    """The tensors of a list, all of one shape, along a new axis."""
    return joining.stack(together(*x), axis)


def append(x1, x2, axis=None):
    """``x1``, then ``x2``, along ``axis``; all entries of both in a row, for None."""
    if axis is None:
        x1, x2, axis = ravel(x1), ravel(x2), 0
    return concatenate([x1, x2], axis)


def hstack(xs):
    """The tensors of a list along axis 1; vectors along axis 0."""
    xs = [ravel(x) if convert_to_tensor(x).ndim == 0 else x for x in xs]
    return concatenate(xs, 0 if convert_to_tensor(xs[0]).ndim == 1 else 1)


def vstack(xs):
    """The tensors of a list along axis 0, vectors as rows."""
    xs = [convert_to_tensor(x) for x in xs]
    return concatenate([shapes.reshape(x, [1, -1]) if x.ndim < 2 else x for x in xs], 0)


def dstack(xs):
    """The tensors of a list along axis 2, which vectors and matrices get at the end."""
    xs = [convert_to_tensor(x) for x in xs]
    xs = [shapes.reshape(x, [1, -1]) if x.ndim < 2 else x for x in xs]
    return concatenate([x[..., None] if x.ndim == 2 else x for x in xs], 2)


def split(x, indices_or_sections, axis=0):
    """A list of pieces along ``axis``: so many equal ones, or cut before these indices.

    >>> [part.numpy().tolist() for part in split([1, 2, 3, 4], [1, 3])]
    [[1], [2, 3], [4]]
    """
    if isinstance(indices_or_sections, int):
        return joining.split(x, indices_or_sections, axis)
    cuts = [0, *[int(i) for i in indices_or_sections]]
    sizes = [after - before for before, after in zip(cuts, cuts[1:])]
    return joining.split(x, [*sizes, -1], axis)


def array_split(x, indices_or_sections, axis=0):
    """`split` into so many pieces, of which the first ones may be longer by one."""
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


def hsplit(x, indices_or_sections):
    """`split` along axis 1; of a vector, along axis 0."""
    x = _of_rank("hsplit", x, 1)
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(x, indices_or_sections):
    """`split` along axis 0."""
    return split(_of_rank("vsplit", x, 2), indices_or_sections, 0)


def dsplit(x, indices_or_sections):
    """`split` along axis 2."""
    return split(_of_rank("dsplit", x, 3), indices_or_sections, 2)


def tile(x, repeats):
    """``x`` repeated ``repeats[i]`` times along axis ``i``; the last axes, for fewer."""
    x = convert_to_tensor(x)
    counts = [repeats] if isinstance(repeats, int) else list(repeats)
    counts = [1] * (x.ndim - len(counts)) + counts
    if len(counts) > x.ndim:
        x = shapes.expand_dims(x, tuple(range(len(counts) - x.ndim)))
    return joining.tile(x, counts)


def _specs_of_repeat(x, repeats, axis=None):
    """Keras infers no size from how many ``repeats`` are listed."""
    if hasattr(repeats, "__index__") or len(repeats) == 1:
        return None
    dims = list(x.shape)
    if axis is None:
        return TensorSpec([None], x.dtype) if None in dims else None
    (at,) = normalize_axis("repeat", axis, len(dims))
    return TensorSpec(dims, x.dtype) if dims[at] is None else None


@sized_by_values(_specs_of_repeat)
def repeat(x, repeats, axis=None):
    """Each entry along ``axis`` ``repeats`` times; of all in a row, for None.

    >>> repeat([1, 2], 2).numpy()
    array([1, 1, 2, 2], dtype=int32)
    """
    if isinstance(repeats, (list, tuple)) and len(repeats) == 1:
        repeats = repeats[0]
    return _repeat(x, repeats, axis)


# ------------------------------------------------------------------------- diagonals


def diagonal(x, offset=0, axis1=0, axis2=1):
    """The ``offset``-th diagonals of the matrices in two axes, as a last axis.

    >>> diagonal([[1, 2], [3, 4]]).numpy()
    array([1, 4], dtype=int32)
    """
    x = moveaxis(_of_rank("diagonal", x, 2), (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    if None not in (rows, columns) and not -rows < offset < columns:
        return creation.zeros((*x.shape[:-2], 0), x.dtype)
    return diagonals.diag_part(x, k=offset)


def diag(x, k=0):
    """The ``k``-th diagonal of a matrix; of a vector, the matrix that has it there."""
    x = convert_to_tensor(x)
    if x.ndim not in (1, 2):
        raise ValueError(f"diag: x must be a vector or a matrix, got {tuple(x.shape)}")
    return diagonals.diag(x, k=k) if x.ndim == 1 else diagonal(x, k)


def diagflat(x, k=0):
    """The matrix with the entries of ``x`` on its ``k``-th diagonal."""
    return diagonals.diag(ravel(x), k=k)


def trace(x, offset=0, axis1=0, axis2=1):
    """The sum of the ``offset``-th diagonal of the matrices in two axes."""
    return reduce_sum(counted(diagonal(x, offset, axis1, axis2)), -1)
