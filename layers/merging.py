"""Layers that merge several tensors: element-wise, by concatenation, or by dot products.

Each layer has a function of the same name in lower case.
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
    """Base of merging layers; subclasses reduce the broadcast inputs with ``_tw_function``.

    Inputs of lower rank are expanded with axes of size 1 after the batch. The outputs
    have a mask if all inputs have one: the logical or of the masks.
    """

    supports_masking = True

    def build(self, input_shape: Any) -> None:
        shapes = self._tw_checked_shapes(input_shape)
        self._tw_merged_shape(shapes)  # raises if they do not fit

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        if not isinstance(inputs, list | tuple):
            raise ValueError(
                f"{self._tw_title}: inputs must be a list of tensors, got "
                f"{type(inputs).__name__}"
            )
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
        """Return the mask of each input as a boolean tensor, or None."""
        for what, given in (("inputs", inputs), ("mask", masks)):
            if not isinstance(given, list | tuple):
                raise ValueError(
                    f"{self._tw_title}: {what} must be a list, got {type(given).__name__}"
                )
        if len(inputs) != len(masks):
            raise ValueError(
                f"{self._tw_title}: mask must have an entry, which may be None, for each of "
                f"the {len(inputs)} inputs, got {len(masks)}"
            )
        return [m if m is None else cast(m, "bool") for m in masks]

    def _tw_checked_shapes(self, shapes):
        if not shapes or not all([isinstance(s, list | tuple) for s in shapes]):
            raise ValueError(
                f"{self._tw_title}: inputs must be a list of one tensor or more, got shapes "
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
                f"{self._tw_title}: the inputs must have the same batch size and shapes that "
                f"broadcast, got {', '.join(map(str, shapes))}"
            )
        return (batch.pop() if batch else shapes[0][0], *merged) if rank else ()


def _broadcast(sizes):
    """Broadcast sizes of an axis: None if unknown, "misfit" if they do not fit."""
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
    """Add a list of inputs element-wise.

    Shapes:
        Each input ``[batch, ...]``, outputs the broadcast shape. Inputs of lower rank
        are expanded with axes of size 1 after the batch. If all inputs have a mask, the
        outputs have the logical or of the masks.

    Raises:
        ValueError: If the inputs are not a list, or their shapes do not broadcast.

    Example:
        >>> inputs = [tw.constant([[1.0, 2.0]]), tw.constant([[3.0, 4.0]])]
        >>> keras.layers.Add()(inputs).numpy()
        array([[4., 6.]], dtype=float32)
    """

    _tw_function: Any = staticmethod(ops.add)


class Subtract(_Merge):
    """Subtract the second input from the first: ``inputs[0] - inputs[1]``.

    Shapes:
        Each input ``[batch, ...]``, outputs the broadcast shape. Inputs of lower rank
        are expanded with axes of size 1 after the batch. If all inputs have a mask, the
        outputs have the logical or of the masks.

    Raises:
        ValueError: If there are not exactly two inputs, or their shapes do not
            broadcast.

    Example:
        >>> inputs = [tw.constant([[1.0, 2.0]]), tw.constant([[3.0, 5.0]])]
        >>> keras.layers.Subtract()(inputs).numpy()
        array([[-2., -3.]], dtype=float32)
    """

    _tw_function: Any = staticmethod(ops.subtract)

    def _tw_checked_shapes(self, shapes):
        if len(shapes) != 2:
            raise ValueError(
                f"{self._tw_title}: inputs must be a list of 2 tensors, got {len(shapes)}"
            )
        return super()._tw_checked_shapes(shapes)


class Average(_Merge):
    """Average a list of inputs element-wise.

    Integers are cast.

    Shapes:
        Each input ``[batch, ...]``, outputs the broadcast shape. Inputs of lower rank
        are expanded with axes of size 1 after the batch. If all inputs have a mask, the
        outputs have the logical or of the masks.

    Raises:
        ValueError: If the inputs are not a list, or their shapes do not broadcast.

    Example:
        >>> inputs = [tw.constant([[1.0, 2.0]]), tw.constant([[3.0, 4.0]])]
        >>> keras.layers.Average()(inputs).numpy()
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
    """Multiply a list of inputs element-wise.

    Masked entries count as 1; outputs are 0 where all inputs are masked.

    Shapes:
        Each input ``[batch, ...]``, outputs the broadcast shape. Inputs of lower rank
        are expanded with axes of size 1 after the batch. If all inputs have a mask, the
        outputs have the logical or of the masks.

    Raises:
        ValueError: If the inputs are not a list, or their shapes do not broadcast.

    Example:
        >>> inputs = [tw.constant([[1.0, 2.0]]), tw.constant([[3.0, 4.0]])]
        >>> keras.layers.Multiply()(inputs).numpy()
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
    """Base of `Maximum` and `Minimum`: masked entries are ignored."""

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
    """Compute the element-wise maximum of a list of inputs.

    Masked entries are ignored.

    Shapes:
        Each input ``[batch, ...]``, outputs the broadcast shape. Inputs of lower rank
        are expanded with axes of size 1 after the batch. If all inputs have a mask, the
        outputs have the logical or of the masks.

    Raises:
        ValueError: If the inputs are not a list, or their shapes do not broadcast.

    Example:
        >>> inputs = [tw.constant([[1.0, 5.0]]), tw.constant([[3.0, 4.0]])]
        >>> keras.layers.Maximum()(inputs).numpy()
        array([[3., 5.]], dtype=float32)
    """

    _tw_function: Any = staticmethod(ops.maximum)


class Minimum(_Extremum):
    """Compute the element-wise minimum of a list of inputs.

    Masked entries are ignored.

    Shapes:
        Each input ``[batch, ...]``, outputs the broadcast shape. Inputs of lower rank
        are expanded with axes of size 1 after the batch. If all inputs have a mask, the
        outputs have the logical or of the masks.

    Raises:
        ValueError: If the inputs are not a list, or their shapes do not broadcast.

    Example:
        >>> inputs = [tw.constant([[1.0, 5.0]]), tw.constant([[3.0, 4.0]])]
        >>> keras.layers.Minimum()(inputs).numpy()
        array([[1., 4.]], dtype=float32)
    """

    _tw_function: Any = staticmethod(ops.minimum)


def _along(mask):
    """Expand a mask without the last axis so that it broadcasts; None for None."""
    return None if mask is None else expand_dims(mask, -1)


class Concatenate(_Merge):
    """Concatenate a list of inputs along ``axis``.

    If some inputs are floating, integer inputs are cast to their dtype.

    Args:
        axis: Axis along which to concatenate.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Each input ``[batch, ...]``, with equal sizes on all axes except ``axis``;
        outputs have the sum of the sizes along ``axis``.

    Raises:
        ValueError: If the inputs are not a list, or disagree on another axis.

    Example:
        >>> layer = keras.layers.Concatenate()
        >>> layer([tw.constant([[1.0, 2.0]]), tw.constant([[3.0]])]).numpy()
        array([[1., 2., 3.]], dtype=float32)
    """

    def __init__(self, axis: Axes = -1, **kwargs: Unpack[RegularizedLayerOptions]):
        super().__init__(**kwargs)
        if not hasattr(axis, "__index__"):
            raise ValueError(f"Concatenate: axis must be an integer, got {axis!r}")
        self.axis: int = operator.index(axis)

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        if not isinstance(inputs, list | tuple):
            raise ValueError(
                f"{self._tw_title}: inputs must be a list of tensors, got "
                f"{type(inputs).__name__}"
            )
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
    """Expand the mask of ``x`` to its shape; True everywhere for None."""
    if mask is None:
        return ones_like(x, dtype="bool")
    if len(mask.shape) == len(x.shape):
        return mask
    return logical_and(expand_dims(mask, -1), ones_like(x, dtype="bool"))


class Dot(_Merge):
    """Compute dot products of two inputs along one axis of each, per example.

    Args:
        axes: Axis of both inputs, or pair of axes; not the batch axis 0.
        normalize: If True, first scale the inputs to norm 1 along the axis, for cosine
            similarity.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Two inputs ``[batch, ...]``, outputs ``[batch, other axes of the first, other
        axes of the second]``, or ``[batch, 1]`` for inputs of rank 2. The outputs have
        no mask.

    Raises:
        ValueError: If there are not exactly two inputs, an axis does not exist, or the
            sizes along the axes differ.

    Example:
        >>> layer = keras.layers.Dot(axes=1)
        >>> layer([tw.constant([[1.0, 2.0]]), tw.constant([[3.0, 4.0]])]).numpy()
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
                f"{self._tw_title}: inputs must be a list of 2 tensors, got shapes {shapes}"
            )
        return super()._tw_checked_shapes(shapes)

    def _tw_merged_shape(self, shapes):
        (x, y), (i, j) = shapes, self._tw_both_axes(shapes)
        if _clash(x[i], y[j]) or _clash(x[0], y[0]):
            raise ValueError(
                f"{self._tw_title}: axis {i} of the first input and axis {j} of the second "
                f"must have the same size, and so must the batch axes; got shapes {x} and {y}"
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
    """Add a list of inputs element-wise: ``Add(**kwargs)(inputs)``.

    Args:
        inputs: List of tensors whose shapes broadcast.
        **kwargs: Arguments of `keras.layers.Add`, such as ``name``.

    Raises:
        ValueError: If the inputs are not a list, or their shapes do not broadcast.

    Example:
        >>> inputs = [tw.constant([[1.0, 2.0]]), tw.constant([[3.0, 4.0]])]
        >>> keras.layers.add(inputs).numpy()
        array([[4., 6.]], dtype=float32)
    """
    return Add(**kwargs)(inputs)


def subtract(inputs: Tensor, **kwargs: Any) -> Tensor:
    """Subtract the second input from the first: ``Subtract(**kwargs)(inputs)``.

    Args:
        inputs: List of two tensors whose shapes broadcast.
        **kwargs: Arguments of `keras.layers.Subtract`, such as ``name``.

    Raises:
        ValueError: If there are not exactly two inputs, or their shapes do not
            broadcast.

    Example:
        >>> inputs = [tw.constant([[1.0, 2.0]]), tw.constant([[3.0, 5.0]])]
        >>> keras.layers.subtract(inputs).numpy()
        array([[-2., -3.]], dtype=float32)
    """
    return Subtract(**kwargs)(inputs)


def multiply(inputs: Tensor, **kwargs: Any) -> Tensor:
    """Multiply a list of inputs element-wise: ``Multiply(**kwargs)(inputs)``.

    Args:
        inputs: List of tensors whose shapes broadcast.
        **kwargs: Arguments of `keras.layers.Multiply`, such as ``name``.

    Raises:
        ValueError: If the inputs are not a list, or their shapes do not broadcast.

    Example:
        >>> inputs = [tw.constant([[1.0, 2.0]]), tw.constant([[3.0, 5.0]])]
        >>> keras.layers.multiply(inputs).numpy()
        array([[ 3., 10.]], dtype=float32)
    """
    return Multiply(**kwargs)(inputs)


def average(inputs: Tensor, **kwargs: Any) -> Tensor:
    """Average a list of inputs element-wise: ``Average(**kwargs)(inputs)``.

    Args:
        inputs: List of tensors whose shapes broadcast.
        **kwargs: Arguments of `keras.layers.Average`, such as ``name``.

    Raises:
        ValueError: If the inputs are not a list, or their shapes do not broadcast.

    Example:
        >>> inputs = [tw.constant([[1.0, 2.0]]), tw.constant([[3.0, 4.0]])]
        >>> keras.layers.average(inputs).numpy()
        array([[2., 3.]], dtype=float32)
    """
    return Average(**kwargs)(inputs)


def maximum(inputs: Tensor, **kwargs: Any) -> Tensor:
    """Element-wise maximum of a list of inputs: ``Maximum(**kwargs)(inputs)``.

    Args:
        inputs: List of tensors whose shapes broadcast.
        **kwargs: Arguments of `keras.layers.Maximum`, such as ``name``.

    Raises:
        ValueError: If the inputs are not a list, or their shapes do not broadcast.

    Example:
        >>> inputs = [tw.constant([[1.0, 5.0]]), tw.constant([[3.0, 4.0]])]
        >>> keras.layers.maximum(inputs).numpy()
        array([[3., 5.]], dtype=float32)
    """
    return Maximum(**kwargs)(inputs)


def minimum(inputs: Tensor, **kwargs: Any) -> Tensor:
    """Element-wise minimum of a list of inputs: ``Minimum(**kwargs)(inputs)``.

    Args:
        inputs: List of tensors whose shapes broadcast.
        **kwargs: Arguments of `keras.layers.Minimum`, such as ``name``.

    Raises:
        ValueError: If the inputs are not a list, or their shapes do not broadcast.

    Example:
        >>> inputs = [tw.constant([[1.0, 5.0]]), tw.constant([[3.0, 4.0]])]
        >>> keras.layers.minimum(inputs).numpy()
        array([[1., 4.]], dtype=float32)
    """
    return Minimum(**kwargs)(inputs)


def concatenate(inputs: Tensor, axis: Axes = -1, **kwargs: Any) -> Tensor:
    """Concatenate a list of inputs: ``Concatenate(axis, **kwargs)(inputs)``.

    Args:
        inputs: List of tensors with equal sizes on all axes except ``axis``.
        axis: Axis along which to concatenate.
        **kwargs: Arguments of `keras.layers.Concatenate`, such as ``name``.

    Raises:
        ValueError: If the inputs are not a list, or disagree on another axis.

    Example:
        >>> inputs = [tw.constant([[1.0, 2.0]]), tw.constant([[3.0]])]
        >>> keras.layers.concatenate(inputs).numpy()
        array([[1., 2., 3.]], dtype=float32)
    """
    return Concatenate(axis=axis, **kwargs)(inputs)


def dot(inputs: Tensor, axes: int | Sequence[int] = -1, **kwargs: Any) -> Tensor:
    """Compute dot products of two inputs: ``Dot(axes, **kwargs)(inputs)``.

    Args:
        inputs: List of two tensors.
        axes: Axis of both inputs, or pair of axes; not the batch axis 0.
        **kwargs: Arguments of `keras.layers.Dot`, such as ``name``.

    Raises:
        ValueError: If there are not exactly two inputs, an axis does not exist, or the
            sizes along the axes differ.

    Example:
        >>> inputs = [tw.constant([[1.0, 2.0]]), tw.constant([[3.0, 4.0]])]
        >>> keras.layers.dot(inputs, axes=1).numpy()
        array([[11.]], dtype=float32)
    """
    return Dot(axes=axes, **kwargs)(inputs)
