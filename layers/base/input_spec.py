"""`InputSpec`: constraints of a layer on the shapes of its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapewright.core.dtypes import as_dtype
from tapewright.core.nest import flatten
from tapewright.core.tensor import Tensor

from .symbolic_tensor import KerasTensor

if TYPE_CHECKING:
    from tapewright.core.typing import DTypeLike, Shape


class InputSpec:
    """Constraints of a layer on an input: its rank, axis sizes and dtype.

    A `Layer` with the attribute ``input_spec`` checks each call, and raises
    `ShapeError`, a ``ValueError``, for inputs that do not match.

    Args:
        dtype: Required dtype, or None for any.
        shape: Rank and axis sizes together; None for an axis of any size.
        ndim: Required rank.
        max_ndim: Highest rank.
        min_ndim: Lowest rank.
        axes: Dict of required sizes by axis, ``{axis: size}``.
        allow_last_axis_squeeze: If True, ignore a last axis of size 1 in ``shape`` or
            in the input.
        name: Key of this input if the inputs are a dict.
        optional: If True, the input may be None.

    Example:
        >>> keras.layers.InputSpec(min_ndim=2, axes={-1: 3}).problem((5, 4))
        'expected size 3 on axis -1 of the inputs, got shape (5, 4)'
    """

    def __init__(
        self,
        dtype: DTypeLike | None = None,
        shape: Shape | None = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: dict[int, int | None] | None = None,
        allow_last_axis_squeeze: bool = False,
        name: str | None = None,
        optional: bool = False,
    ):
        self.dtype: str | None = None if dtype is None else as_dtype(dtype).name
        self.name = name
        self.optional = optional
        self.shape: tuple[int | None, ...] | None = (
            None if shape is None else tuple(shape)
        )
        self.ndim: int | None = ndim if shape is None else len(self.shape)
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        self.axes: dict[int, int | None] = {
            int(axis): size for axis, size in (axes or {}).items()
        }
        self.allow_last_axis_squeeze = allow_last_axis_squeeze
        if shape is not None and not allow_last_axis_squeeze:
            self.axes |= {i: n for i, n in enumerate(self.shape) if n is not None}

    def problem(
        self, shape: Shape | None, dtype: DTypeLike | None = None
    ) -> str | None:
        """Describe the violated constraint in words; return None if all hold.

        Args:
            shape: Shape of the input.
            dtype: Dtype of the input, or None to skip its check.
        """
        rank = len(shape)
        if self.allow_last_axis_squeeze and self.shape is not None:
            if not _same(_squeezed(self.shape), _squeezed(shape)):
                return f"expected inputs of shape {self.shape}, got shape {shape}"
        elif self.ndim is not None and rank != self.ndim:
            return f"expected inputs of rank {self.ndim}, got shape {shape}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"expected inputs of rank {self.min_ndim} or more, got shape {shape}"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"expected inputs of rank {self.max_ndim} or less, got shape {shape}"
        for axis, size in self.axes.items():
            if size is not None:
                if not -rank <= axis < rank or shape[axis] not in (size, None):
                    return (
                        f"expected size {size} on axis {axis} of the inputs, got shape "
                        f"{shape}"
                    )
        if self.dtype is not None and dtype is not None:
            if as_dtype(dtype).name != self.dtype:
                return f"expected inputs of dtype {self.dtype}, got {dtype.name}"
        return None

    def __repr__(self) -> str:
        return (
            f"InputSpec(ndim={self.ndim}, max_ndim={self.max_ndim}, "
            f"min_ndim={self.min_ndim}, axes={self.axes})"
        )


def problem_with(inputs: Any, spec: Any) -> str | None:
    """Describe the constraint of a spec that inputs violate; None if all hold."""
    if type(spec) is InputSpec and type(inputs) is Tensor:
        return spec.problem(inputs.array.shape, inputs.array.dtype)
    specs, tensors = flatten(spec), flatten(inputs)
    pairs = [(each, x) for each, x in zip(specs, tensors) if each is not None]
    if any([x is None and not each.optional for each, x in pairs]):
        return (
            "expected a tensor, got None: is a return statement missing in the function "
            "that made it?"
        )
    if len(specs) != len(tensors):
        return f"expected {len(specs)} inputs, got {len(tensors)}"
    for each, x in pairs:
        if x is not None:
            # what a symbolic tensor stands for is cast when the call is traced
            dtype = None if type(x) is KerasTensor else x.dtype
            if problem := each.problem(tuple(x.shape), dtype):
                return problem
    return None


def _squeezed(shape):
    return shape[:-1] if shape and shape[-1] == 1 else shape


def _same(a, b):
    return len(a) == len(b) and all([None in (m, n) or m == n for m, n in zip(a, b)])
