"""Layers that make one tensor of several: entry by entry, side by side, or by products.

Each has a function of the same name, in lower case, for the same.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import ones_like
from tapewright.ops.array.joining import concat
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.linalg.contraction import einsum
from tapewright.ops.math import elementwise as ops
from tapewright.ops.math.comparison import logical_and, logical_or, where
from tapewright.ops.math.reduction import reduce_any
from tapewright.ops.nn.normalization import l2_normalize

from .base.layer import Layer
from .base.masks import mask_of

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, Shape

    from .base.layer_types import RegularizedLayerOptions

__all__ = [
    "Add",
    "Average",
    "Concatenate",
    "Dot",
    "Maximum",
    "Minimum",
    "Multiply",
    "Subtract",
    "add",
    "average",
    "concatenate",
    "dot",
    "maximum",
    "minimum",
    "multiply",
    "subtract",
]


class _Merge(Layer):
    """Base: ``_merged(inputs)`` of inputs that broadcast, batch by batch.

    Inputs of lower rank get axes of size 1 behind the batch axis. The outputs have a mask
    if all inputs have one: what counts in any of them.
    """

    supports_masking = True

    def build(self, input_shape: Any) -> None:
        shapes = self._tw_checked_shapes(input_shape)
        self._tw_merged_shape(shapes)  # raises if they do not fit

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        if not isinstance(inputs, list | tuple):
            raise ValueError(f"{self._tw_title}: inputs must be a list of tensors")
        rank = max([len(x.shape) for x in inputs])
        return self._tw_merged([_of_rank(x, rank) for x in inputs])

    def _tw_merged(self, inputs):
        return reduce(self._tw_function, inputs)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        return self._tw_merged_shape(self._tw_checked_shapes(input_shape))

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> Any:
        if mask is None:
            return None
        masks = self._tw_checked_masks(inputs, mask)
        return None if any([m is None for m in masks]) else reduce(logical_or, masks)

    def _tw_checked_masks(self, inputs, masks):
        """The mask of each input as a boolean tensor, or None."""
        for what, given in (("inputs", inputs), ("mask", masks)):
            if not isinstance(given, list | tuple):
                raise ValueError(
                    f"{self._tw_title}: {what} must be a list, got {type(given).__name__}"
                )
        if len(inputs) != len(masks):
            raise ValueError(
                f"{self._tw_title}: mask must have an entry, perhaps None, for each of the "
                f"{len(inputs)} inputs, got {len(masks)}"
            )
        return [m if m is None else cast(m, "bool") for m in masks]

    def _tw_checked_shapes(self, shapes):
        if not shapes or not all([isinstance(s, list | tuple) for s in shapes]):
            raise ValueError(
                f"{self._tw_title}: inputs must be a list of at least 1 tensor, got shapes "
                f"{shapes}"
            )
        return [tuple(s) for s in shapes]

    def _tw_merged_shape(self, shapes):
        rank = max([len(s) for s in shapes])
        batch = {s[0] for s in shapes if s and isinstance(s[0], int)}
        padded = [s[:1] + (1,) * (rank - len(s)) + s[1:] for s in shapes]
        merged = [_broadcast([s[i] for s in padded]) for i in range(1, rank)]
        if len(batch) > 1 or "misfit" in merged:
            raise ValueError(
                f"{self._tw_title}: the shapes of the inputs must have one batch size and "
                f"broadcast, got {', '.join(map(str, shapes))}"
            )
        return (batch.pop() if batch else shapes[0][0], *merged) if rank else ()


def _broadcast(sizes):
    """The size of an axis of the outputs; None if it is open, "misfit" for a clash."""
    known = {n for n in sizes if isinstance(n, int)} - {1}
    if len(known) > 1:
        return "misfit"
    open_sizes = [n for n in sizes if not isinstance(n, int)]
    return known.pop() if known and not open_sizes else (open_sizes or [1])[0]


def _of_rank(x, rank):
    for _ in range(rank - len(x.shape)):
        x = expand_dims(x, 1)
    return x


class Add(_Merge):
    """The sum of a list of inputs.

    Shapes: each input ``[batch, ...]``, outputs the broadcast shape. Inputs of lower
    rank get axes of size 1 behind the batch. The outputs have a mask if all inputs have
    one: it is True where any of them is.

    Raises: ``ValueError`` if the inputs are no list, or their shapes do not broadcast.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.Add()([constant([[1.0, 2.0]]), constant([[3.0, 4.0]])]).numpy()
        array([[4., 6.]], dtype=float32)
    """

    _tw_function: Any = staticmethod(ops.add)


class Subtract(_Merge):
    """The difference of two inputs: ``inputs[0] - inputs[1]``.

    Shapes: as for `Add`.

    Raises: ``ValueError`` for another number of inputs, or shapes that do not
    broadcast.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.Subtract()([constant([[1.0, 2.0]]), constant([[3.0, 5.0]])]).numpy()
        array([[-2., -3.]], dtype=float32)
    """

    _tw_function: Any = staticmethod(ops.subtract)

    def _tw_checked_shapes(self, shapes):
        if len(shapes) != 2:
            raise ValueError(f"{self._tw_title}: takes 2 inputs, got {len(shapes)}")
        return super()._tw_checked_shapes(shapes)


class Average(_Merge):
    """The mean of a list of inputs, entry by entry.

    Shapes: as for `Add`. Integers are cast.

    Raises: ``ValueError`` if the inputs are no list, or their shapes do not broadcast.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.Average()([constant([[1.0, 2.0]]), constant([[3.0, 4.0]])]).numpy()
        array([[2., 3.]], dtype=float32)
    """

    _tw_function: Any = staticmethod(ops.add)

    def _tw_merged(self, inputs):
        inputs = [
            x if x.dtype.is_differentiable else cast(x, self.compute_dtype)
            for x in inputs
        ]
        return super()._tw_merged(inputs) / float(len(inputs))


class Multiply(_Merge):
    """The product of a list of inputs; entries that a mask leaves out count as 1.

    Where the masks of all inputs are False the outputs are 0.

    Shapes: as for `Add`.

    Raises: ``ValueError`` if the inputs are no list, or their shapes do not broadcast.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.Multiply()([constant([[1.0, 2.0]]), constant([[3.0, 4.0]])]).numpy()
        array([[3., 8.]], dtype=float32)
    """

    _tw_function: Any = staticmethod(ops.multiply)

    def _tw_merged(self, inputs):
        masks = [_along(mask_of(x)) for x in inputs]
        kept = [x if m is None else where(m, x, cast(1, x.dtype))
                for x, m in zip(inputs, masks)]  # fmt: skip
        outputs = super()._tw_merged(kept)
        if any([m is None for m in masks]):
            return outputs
        return where(reduce(logical_or, masks), outputs, cast(0, outputs.dtype))


class _Extremum(_Merge):
    """Base of `Maximum` and `Minimum`: an input that its mask leaves out does not count."""

    def _tw_merged(self, inputs):
        outputs, kept = inputs[0], _along(mask_of(inputs[0]))
        for x in inputs[1:]:
            mask = _along(mask_of(x))
            x = x if mask is None else where(mask, x, outputs)
            outputs = outputs if kept is None else where(kept, outputs, x)
            kept = None if kept is None or mask is None else logical_or(kept, mask)
            outputs = self._tw_function(outputs, x)
        return outputs


class Maximum(_Extremum):
    """The greatest of a list of inputs, entry by entry; masked entries do not count.

    Shapes: as for `Add`.

    Raises: ``ValueError`` if the inputs are no list, or their shapes do not broadcast.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.Maximum()([constant([[1.0, 5.0]]), constant([[3.0, 4.0]])]).numpy()
        array([[3., 5.]], dtype=float32)
    """

    _tw_function: Any = staticmethod(ops.maximum)


class Minimum(_Extremum):
    """The least of a list of inputs, entry by entry; masked entries do not count.

    Shapes: as for `Add`.

    Raises: ``ValueError`` if the inputs are no list, or their shapes do not broadcast.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.Minimum()([constant([[1.0, 5.0]]), constant([[3.0, 4.0]])]).numpy()
        array([[1., 4.]], dtype=float32)
    """

    _tw_function: Any = staticmethod(ops.minimum)


def _along(mask):
    """A mask that lacks the last axis, made to broadcast; None for None."""
    return None if mask is None else expand_dims(mask, -1)


class Concatenate(_Merge):
    """Joins a list of inputs along ``axis``.

    Integers beside floating inputs become floating.

    Shapes: each input ``[batch, ...]``, of the same sizes on all axes but ``axis``,
    whose sizes add up in the outputs.

    Raises: ``ValueError`` if the inputs are no list, or disagree on another axis.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.Concatenate()([constant([[1.0, 2.0]]), constant([[3.0]])]).numpy()
        array([[1., 2., 3.]], dtype=float32)
    """

    def __init__(self, axis: Axes = -1, **kwargs: Unpack[RegularizedLayerOptions]):
        super().__init__(**kwargs)
        if not hasattr(axis, "__index__"):
            raise ValueError(f"Concatenate: axis must be an integer, got {axis!r}")
        self.axis: int = operator.index(axis)

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        if not isinstance(inputs, list | tuple):
            raise ValueError(f"{self._tw_title}: inputs must be a list of tensors")
        floats = {x.dtype for x in inputs if x.dtype.is_floating}
        if len(floats) == 1:  # counts and indices beside other features
            dtype = floats.pop()
            inputs = [x if x.dtype == dtype else cast(x, dtype) for x in inputs]
        return concat(inputs, self.axis)

    def _tw_merged_shape(self, shapes):
        rank = len(shapes[0])
        if any([len(s) != rank for s in shapes]):
            raise self._tw_misfit(shapes)
        if not -rank <= self.axis < rank:
            raise ValueError(
                f"{self._tw_title}: axis must be from {-rank} to {rank - 1} for inputs of "
                f"rank {rank}, got {self.axis}"
            )
        at, merged = self.axis % rank, []
        for i, sizes in enumerate(zip(*shapes)):
            known = {n for n in sizes if isinstance(n, int)}
            if i == at:
                merged.append(None if None in sizes else sum(sizes))
            elif len(known) > 1:
                raise self._tw_misfit(shapes)
            else:
                merged.append(known.pop() if known else sizes[0])
        return tuple(merged)

    def _tw_misfit(self, shapes):
        return ValueError(
            f"{self._tw_title}: the inputs must agree in all axes but {self.axis}, got "
            f"shapes {', '.join(map(str, shapes))}"
        )

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> Any:
        if mask is None:
            return None
        masks = self._tw_checked_masks(inputs, mask)
        if all([m is None for m in masks]):
            return None
        whole = [_of_shape(x, m) for x, m in zip(inputs, masks)]
        return reduce_any(concat(whole, self.axis), axis=-1)


def _of_shape(x, mask):
    """The mask of ``x`` with its last axis; true everywhere for None."""
    if mask is None:
        return ones_like(x, dtype="bool")
    if len(mask.shape) == len(x.shape):
        return mask
    return logical_and(expand_dims(mask, -1), ones_like(x, dtype="bool"))


class Dot(_Merge):
    """Sums of products over one axis of each of two inputs, example by example.

    Args: ``axes``: that of both, or a pair, none of them the batch axis 0;
    ``normalize``: first scale both to length 1 along it, which gives cosines.

    Shapes: two inputs ``[batch, ...]``, outputs ``[batch, other axes of the first,
    other axes of the second]``, and ``[batch, 1]`` for inputs of rank 2. The outputs
    have no mask.

    Raises: ``ValueError`` for another number of inputs, axes that these do not have, or
    sizes along them that differ.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.Dot(axes=1)([constant([[1.0, 2.0]]), constant([[3.0, 4.0]])]).numpy()
        array([[11.]], dtype=float32)
    """

    def __init__(
        self,
        axes: int | Sequence[int],
        normalize: bool = False,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        pair = [axes, axes] if isinstance(axes, int) else axes
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(
            [hasattr(a, "__index__") for a in pair]
        ):  # fmt: skip
            raise ValueError(
                f"Dot: axes must be an int or a pair of ints, got {axes!r}"
            )
        self.axes = axes
        self.normalize = normalize

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        (x, y), axes = inputs, self._tw_both_axes([x.shape for x in inputs])
        if self.normalize:
            x, y = (l2_normalize(z, a, epsilon=1e-14) for z, a in zip((x, y), axes))
        letters = iter("bcdefghijklmnopqrstuvw")
        first, second = (["a", *[next(letters) for _ in z.shape[1:]]] for z in (x, y))
        first[axes[0]] = second[axes[1]] = "z"
        rest = [c for c in first + second[1:] if c != "z"]
        terms = ["".join(term) for term in (first, second, rest)]
        outputs = einsum("{},{}->{}".format(*terms), x, y)
        return outputs if len(rest) > 1 else expand_dims(outputs, 1)

    def _tw_checked_shapes(self, shapes):
        if len(shapes) != 2 or isinstance(shapes[0], int | type(None)):
            raise ValueError(
                f"{self._tw_title}: takes a list of 2 inputs, got {shapes}"
            )
        return super()._tw_checked_shapes(shapes)

    def _tw_merged_shape(self, shapes):
        (x, y), (i, j) = shapes, self._tw_both_axes(shapes)
        if _clash(x[i], y[j]) or _clash(x[0], y[0]):
            raise ValueError(
                f"{self._tw_title}: the sizes of axis {i} of the first and axis {j} of the "
                f"second input must agree, and the batch sizes; got shapes {x} and {y}"
            )
        merged = (*x[:i], *x[i + 1 :], *y[1:j], *y[j + 1 :])
        return merged if len(merged) > 1 else (*merged, 1)

    def _tw_both_axes(self, shapes):
        pair = [self.axes] * 2 if isinstance(self.axes, int) else self.axes
        axes = []
        for axis, shape in zip(pair, shapes):
            rank = len(shape)
            at = operator.index(axis) + (rank if axis < 0 else 0)
            if not 0 < at < rank:
                raise ValueError(
                    f"{self._tw_title}: axes must name an axis of each input after the "
                    f"batch axis, got {self.axes} for shapes "
                    f"{', '.join([str(tuple(s)) for s in shapes])}"
                )
            axes.append(at)
        return axes

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> Any:
        return None


def _clash(m, n):
    return isinstance(m, int) and isinstance(n, int) and m != n


# ---------------------------------------------------------------- the same as functions


def add(inputs: Tensor, **kwargs: Any) -> Tensor:
    """The sum of a list of inputs: ``Add(**kwargs)(inputs)``.

    Shapes: as for `Add`.

    Raises: as `Add`.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.add([constant([[1.0, 2.0]]), constant([[3.0, 4.0]])]).numpy()
        array([[4., 6.]], dtype=float32)
    """
    return Add(**kwargs)(inputs)


def subtract(inputs: Tensor, **kwargs: Any) -> Tensor:
    """The difference of two inputs: ``Subtract(**kwargs)(inputs)``.

    Shapes: as for `Add`.

    Raises: as `Subtract`.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.subtract([constant([[1.0, 2.0]]), constant([[3.0, 5.0]])]).numpy()
        array([[-2., -3.]], dtype=float32)
    """
    return Subtract(**kwargs)(inputs)


def multiply(inputs: Tensor, **kwargs: Any) -> Tensor:
    """The product of a list of inputs: ``Multiply(**kwargs)(inputs)``.

    Shapes: as for `Add`.

    Raises: as `Multiply`.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.multiply([constant([[1.0, 2.0]]), constant([[3.0, 5.0]])]).numpy()
        array([[ 3., 10.]], dtype=float32)
    """
    return Multiply(**kwargs)(inputs)


def average(inputs: Tensor, **kwargs: Any) -> Tensor:
    """The mean of a list of inputs: ``Average(**kwargs)(inputs)``.

    Shapes: as for `Add`.

    Raises: as `Average`.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.average([constant([[1.0, 2.0]]), constant([[3.0, 4.0]])]).numpy()
        array([[2., 3.]], dtype=float32)
    """
    return Average(**kwargs)(inputs)


def maximum(inputs: Tensor, **kwargs: Any) -> Tensor:
    """The greatest of a list of inputs, entry by entry: ``Maximum(**kwargs)(inputs)``.

    Shapes: as for `Add`.

    Raises: as `Maximum`.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.maximum([constant([[1.0, 5.0]]), constant([[3.0, 4.0]])]).numpy()
        array([[3., 5.]], dtype=float32)
    """
    return Maximum(**kwargs)(inputs)


def minimum(inputs: Tensor, **kwargs: Any) -> Tensor:
    """The least of a list of inputs, entry by entry: ``Minimum(**kwargs)(inputs)``.

    Shapes: as for `Add`.

    Raises: as `Minimum`.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.minimum([constant([[1.0, 5.0]]), constant([[3.0, 4.0]])]).numpy()
        array([[1., 4.]], dtype=float32)
    """
    return Minimum(**kwargs)(inputs)


def concatenate(inputs: Tensor, axis: Axes = -1, **kwargs: Any) -> Tensor:
    """Joins a list of inputs along ``axis``: ``Concatenate(axis, **kwargs)(inputs)``.

    Shapes: as for `Concatenate`.

    Raises: as `Concatenate`.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.concatenate([constant([[1.0, 2.0]]), constant([[3.0]])]).numpy()
        array([[1., 2., 3.]], dtype=float32)
    """
    return Concatenate(axis=axis, **kwargs)(inputs)


def dot(inputs: Tensor, axes: int | Sequence[int] = -1, **kwargs: Any) -> Tensor:
    """Sums of products over an axis of two inputs: ``Dot(axes, **kwargs)(inputs)``.

    Shapes: as for `Dot`.

    Raises: as `Dot`.

    Example:
        >>> from tapewright import constant
        >>> keras.layers.dot([constant([[1.0, 2.0]]), constant([[3.0, 4.0]])], axes=1).numpy()
        array([[11.]], dtype=float32)
    """
    return Dot(axes=axes, **kwargs)(inputs)
