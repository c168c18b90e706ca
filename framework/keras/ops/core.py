"""Core functions of `keras.ops`: tensors and their shapes, control flow, scatter and slice."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tapewright.autodiff.custom_gradient import custom_gradient
from tapewright.autodiff.vectorized_map import vectorized_map as _vectorized_map
from tapewright.compiler.control_flow.cond import cond as _cond
from tapewright.compiler.control_flow.cond import switch_case
from tapewright.compiler.control_flow.map_fn import carry_along, map_fn
from tapewright.compiler.control_flow.while_loop import while_loop as _while_loop
from tapewright.core import nest
from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import ShapeError
from tapewright.core.rules import normalize_axis
from tapewright.core.shapes.symbolic_dim import UnknownSize
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.tensor import Tensor
from tapewright.core.tensor import convert_to_tensor as _convert
from tapewright.core.tensor import is_tensor as _is_tensor
from tapewright.core.typing import (
    Array,
    Axis,
    DTypeLike,
    ShapeLike,
    TensorLike,
    TensorNest,
)
from tapewright.layers.base.symbolic_tensor import KerasTensor
from tapewright.ops.array import conversion
from tapewright.ops.array import scatter as scattering
from tapewright.ops.array.creation import meshgrid
from tapewright.ops.array.creation import range as _range
from tapewright.ops.array.gather import gather, gather_nd
from tapewright.ops.array.indexing import getitem
from tapewright.ops.array.indexing import slice as _slice
from tapewright.ops.array.joining import concat, split, stack
from tapewright.ops.array.joining import reverse as _reversed
from tapewright.ops.array.joining import unstack as _unstack
from tapewright.ops.array.shape import squeeze
from tapewright.ops.math.comparison import logical_not
from tapewright.ops.math.elementwise import clip_by_value

from .elementwise import less_equal
from .indexing import where
from .operation import ANY, REALS, OperationFamily

__all__ = [
    "associative_scan",
    "cast",
    "cond",
    "convert_to_numpy",
    "convert_to_tensor",
    "custom_gradient",
    "dtype",
    "fori_loop",
    "is_tensor",
    "map",
    "saturate_cast",
    "scan",
    "scatter",
    "scatter_update",
    "shape",
    "slice",
    "slice_update",
    "stop_gradient",
    "switch",
    "unstack",
    "vectorized_map",
    "while_loop",
]

operation = OperationFamily(__name__, "core")

_python_slice = slice  # the name is ours below


# ------------------------------------------------------------------------- tensors


@operation
def convert_to_tensor(
    x: TensorLike,
    dtype: DTypeLike | None = None,
    sparse: bool | None = None,
    ragged: bool | None = None,
) -> Tensor:
    """Convert a value to a tensor.

    Args:
        x: Tensor, variable, array, number or nested list.
        dtype: Dtype of the result; None keeps the dtype of ``x``.
        sparse: Must not be True; there are no sparse tensors here.
        ragged: Must not be True; there are no ragged tensors here.

    Raises:
        ValueError: If ``sparse`` or ``ragged`` is True.

    Example:
        >>> keras.ops.convert_to_tensor([1, 2], dtype="float32").numpy()
        array([1., 2.], dtype=float32)
    """
    if sparse or ragged:
        raise ValueError(
            "convert_to_tensor: sparse and ragged must be None or False, got "
            f"{sparse} and {ragged}"
        )
    return _convert(x) if dtype is None else cast(x, dtype)


def convert_to_numpy(x: TensorLike) -> Array:
    """Convert a tensor to a NumPy array.

    Args:
        x: Tensor, variable, array, number or nested list.
    """
    return _convert(x).numpy()


@operation(same_as="cast", kinds=ANY)
def cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """Cast a tensor to another dtype; gradients pass between floating dtypes.

    Args:
        x: Input tensor.
        dtype: Dtype of the result.

    Example:
        >>> keras.ops.cast([1.9, -1.9], "int32").numpy()
        array([ 1, -1], dtype=int32)
    """
    return conversion.cast(x, dtype)


def is_tensor(x: TensorLike) -> bool:
    """Return True for tensors and variables.

    Arrays, numbers and symbolic tensors are no tensors.

    Args:
        x: Any object.
    """
    return _is_tensor(x) and type(x) is not KerasTensor


@operation(same_as="saturate_cast", kinds=REALS)
def saturate_cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """Cast to another dtype, clipping values to its range.

    Args:
        x: Input tensor.
        dtype: Dtype of the result.

    Example:
        >>> keras.ops.saturate_cast([-3.0, 300.0], "uint8").numpy()
        array([  0, 255], dtype=uint8)
    """
    x = _convert(x)
    if as_dtype(dtype).is_bool and not x.dtype.is_complex:
        return x if x.dtype.is_bool else logical_not(less_equal(x, 0))
    return cast(x, dtype) if x.dtype.is_bool else conversion.saturate_cast(x, dtype)


def dtype(x: TensorLike) -> str:
    """Return the name of a tensor's dtype.

    Args:
        x: Input tensor.

    Example:
        >>> keras.ops.dtype([1.0, 2.0])
        'float32'
    """
    return _convert(x).dtype.name


def shape(x: TensorLike) -> tuple[Any, ...]:
    """Return the shape as a tuple, with None for sizes that are unknown in a model.

    In a traced function an unknown size is a number that computes like an int.

    Args:
        x: Input tensor.

    Example:
        >>> keras.ops.shape([[1, 2, 3]])
        (1, 3)
    """
    sizes = tuple(_convert(x).shape)
    return tuple([n.as_number() if type(n) is UnknownSize else n for n in sizes])


@operation(same_as="stop_gradient", kinds=ANY)
def stop_gradient(variable: TensorLike) -> Tensor:
    """Return a tensor as a constant, through which no gradient passes.

    Args:
        variable: Input tensor.
    """
    return conversion.stop_gradient(variable)


def _specs_of_unstack(x, num=None, axis=0):
    (at,) = normalize_axis("unstack", axis, len(x.shape))
    if num is None and x.shape[at] is None:
        raise ValueError(f"unstack: num must be given for shape {tuple(x.shape)}")


@operation(specs=_specs_of_unstack)
def unstack(x: TensorLike, num: int | None = None, axis: Axis = 0) -> list[Tensor]:
    """Split a tensor into its slices along an axis, which they lack.

    Args:
        x: Input tensor.
        num: Number of slices, required if the size of the axis is unknown.
        axis: Axis to split along.

    Returns:
        List of the slices.

    Raises:
        ValueError: If ``num`` differs from the size of the axis.

    Example:
        >>> [part.numpy().tolist() for part in keras.ops.unstack([[1, 2], [3, 4]])]
        [[1, 2], [3, 4]]
    """
    x = _convert(x)
    (axis,) = normalize_axis("unstack", axis, x.ndim)
    if num is None or type(x.shape[axis]) is int:
        return _unstack(x, num, axis)
    return [squeeze(part, axis) for part in split(x, [1] * num, axis)]


# -------------------------------------------------------------------- control flow


def cond(
    pred: TensorLike, true_fn: Callable[..., Any], false_fn: Callable[..., Any]
) -> Any:
    """Call one of two functions, depending on a condition; see `tw.cond`.

    In a model, with a symbolic ``pred``, both are computed and one result is selected.

    Args:
        pred: Boolean scalar.
        true_fn: Function without arguments, called if ``pred`` is true.
        false_fn: Function without arguments, called if ``pred`` is false.

    Returns:
        Result of the function that is called.

    Raises:
        TypeError: If a function is not callable.

    Example:
        >>> keras.ops.cond(keras.ops.convert_to_tensor(True), lambda: 1, lambda: 2)
        1
    """
    if type(pred) is not KerasTensor:
        return _cond(pred, true_fn, false_fn)
    if pred.ndim:
        raise ValueError(f"cond: pred must be one value, got shape {tuple(pred.shape)}")
    return _select("cond", pred, true_fn(), false_fn())


def _select(who, pred, first, second):
    """Return the nest ``first`` if a symbolic ``pred`` is true, else ``second``."""
    nest.assert_same_structure(first, second)

    def choose(x, y):
        if x is None and y is None:
            return None
        x, y = _convert(x), _convert(y)
        if x.dtype is not y.dtype or not x.shape.is_compatible_with(y.shape):
            raise ValueError(
                f"{who}: the functions must return the same shapes and dtypes, got "
                f"{tuple(x.shape)} {x.dtype.name} and {tuple(y.shape)} {y.dtype.name}"
            )
        return where(pred, x, y)

    return nest.map_structure(choose, first, second)


@operation(class_name=None, call="cond body loop_vars", nested=True)
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: TensorNest,
    maximum_iterations: int | None = None,
) -> Any:
    """Repeat ``loop_vars = body(*loop_vars)`` as long as ``cond(*loop_vars)`` is true.

    Args:
        cond: Function of the loop variables that returns a boolean scalar.
        body: Function of the loop variables that returns their next values, in the same
            structure.
        loop_vars: First values: a tuple or list, or one value.
        maximum_iterations: Largest number of steps, or None for no limit.

    Returns:
        The last values, in the structure of ``loop_vars``.

    Raises:
        ValueError: If ``body`` returns another structure.

    Example:
        >>> cond, body = lambda i, s: i < 4, lambda i, s: (i + 1, s + i)
        >>> keras.ops.while_loop(cond, body, (0, 0))[1].numpy()
        np.int32(6)
    """
    is_single = not isinstance(loop_vars, (tuple, list))
    variables = (loop_vars,) if is_single else tuple(loop_vars)

    def step(*values):
        after = body(*values)
        return (after,) if is_single else tuple(after)

    variables = nest.map_structure(_convert, variables)
    result = _while_loop(cond, step, variables, maximum_iterations=maximum_iterations)
    return result[0] if is_single else tuple(result)


@operation(class_name=None, call="lower upper body_fun init_val", nested=True)
def fori_loop(
    lower: TensorLike,
    upper: TensorLike,
    body_fun: Callable[..., Any],
    init_val: TensorNest,
) -> Any:
    """Repeat ``value = body_fun(i, value)`` for i from ``lower`` to ``upper - 1``.

    Args:
        lower: First index, an integer scalar.
        upper: End of the indices, exclusive.
        body_fun: Function of the index and the value that returns the next value.
        init_val: First value, a nest of tensors.

    Returns:
        The last value; ``init_val`` if there is no step.

    Example:
        >>> keras.ops.fori_loop(0, 4, lambda i, total: total + i, 0).numpy()
        np.int32(6)
    """
    upper = _convert(upper)

    def step(i, value):
        return i + 1, body_fun(i, value)

    start = (conversion.cast(lower, upper.dtype), init_val)
    return while_loop(lambda i, value: i < upper, step, start)[1]


@operation(class_name=None, call="f init xs", nested=True)
def scan(
    f: Callable[..., Any],
    init: TensorNest,
    xs: TensorNest = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Repeat ``carry, y = f(carry, x)`` along the first axis of ``xs``.

    Args:
        f: Function of the carry and an entry that returns the next carry and an output.
        init: First carry, a nest of tensors.
        xs: Nest of tensors, or None for ``length`` steps without an ``x``.
        length: Number of steps, required if ``xs`` is None.
        reverse: If True, iterate from the last entry to the first.
        unroll: Ignored.

    Returns:
        ``(carry, ys)``: the last carry, and all ``y``, stacked.

    Raises:
        ValueError: If neither ``xs`` nor ``length`` is given.

    Example:
        >>> x = keras.ops.convert_to_tensor([1, 2, 3])
        >>> total, sums = keras.ops.scan(lambda c, x: (c + x, c + x), 0, x)
        >>> total.numpy(), sums.numpy()
        (np.int32(6), array([1, 3, 6], dtype=int32))
    """
    if not callable(f):
        raise TypeError(f"scan: f must be callable, got {f!r}")
    if xs is None and length is None:
        raise ValueError("scan: length must be given if xs is None, got None")
    if not isinstance(unroll, (bool, int)) or (unroll is not False and unroll < 1):
        raise ValueError(
            f"scan: unroll must be a positive integer or a bool, got {unroll!r}"
        )
    if xs is None:
        return _scan(lambda c, _: f(c, None), init, _range(length), reverse)
    xs = nest.map_structure(_convert, xs)
    first = nest.flatten(xs)[0]
    if first.shape.rank == 0:
        raise ShapeError("scan", "xs must have at least one axis", xs=first)
    count = first.shape[0]
    if length is not None and length != count:
        raise ValueError(
            f"scan: length must equal the size of xs, {count}, got {length}"
        )
    return _scan(f, init, xs, reverse)


def _scan(f, init, xs, reverse):
    """`carry_along` where ``f`` may return a None among its outputs."""
    structure = []

    def step(carry, x):
        carry, y = f(carry, x)
        structure[:] = [y]
        return carry, [leaf for leaf in nest.flatten(y) if leaf is not None]

    carry, stacks = carry_along(step, init, xs, reverse)
    left, (y,) = list(stacks), structure
    return carry, nest.map_structure(lambda v: None if v is None else left.pop(0), y)


@operation(class_name=None, call="f elems", nested=True)
def associative_scan(
    f: Callable[..., Any], elems: TensorNest, reverse: bool = False, axis: Axis = 0
) -> Any:
    """Compute ``a0, f(a0, a1), f(f(a0, a1), a2), ...`` along an axis (prefix sums).

    It makes log2(n) calls of ``f``.

    Args:
        f: Associative function of two nests like ``elems``, of any size along ``axis``,
            that returns such a nest.
        elems: Nest of tensors of the same size along ``axis``.
        reverse: If True, combine from the last entry to the first.
        axis: Axis to scan along.

    References:
        Hillis & Steele, "Data parallel algorithms" (1986).

    Example:
        >>> x = keras.ops.convert_to_tensor([1, 2, 3, 4])
        >>> keras.ops.associative_scan(lambda a, b: a + b, x).numpy()
        array([ 1,  3,  6, 10], dtype=int32)
    """
    if not callable(f):
        raise TypeError(f"associative_scan: f must be callable, got {f!r}")
    elems = nest.map_structure(_convert, elems)
    (axis,) = normalize_axis("associative_scan", axis, nest.flatten(elems)[0].ndim)
    sizes = [x.shape[axis] for x in nest.flatten(elems)]
    if not all([agree(sizes[0], n) for n in sizes]):
        raise ValueError(
            f"associative_scan: elems must have equal sizes along axis {axis}, got {sizes}"
        )

    def flip(x):
        return _reversed(x, [axis]) if reverse else x

    def part(x, start, stop):
        return getitem(x, (_python_slice(None),) * axis + (_python_slice(start, stop),))

    elems = nest.map_structure(flip, elems)
    count, step = nest.flatten(elems)[0].shape[axis], 1
    while step < count:
        before = nest.map_structure(lambda x, n=step: part(x, None, -n), elems)
        after = nest.map_structure(lambda x, n=step: part(x, n, None), elems)
        elems = nest.map_structure(
            lambda x, y, n=step: concat([part(x, None, n), y], axis),
            elems,
            f(before, after),
        )
        step *= 2
    return nest.map_structure(flip, elems)


@operation(class_name=None, call="f xs", nested=True)
def map(f: Callable[..., Any], xs: TensorNest) -> Any:  # noqa: A001
    """Apply a function to each entry along the first axis, one by one.

    Args:
        f: Function of an entry.
        xs: Nest of tensors ``[n, ...]``.

    Returns:
        The results, stacked along a new first axis.

    Example:
        >>> keras.ops.map(lambda x: x * x, keras.ops.convert_to_tensor([1, 2, 3])).numpy()
        array([1, 4, 9], dtype=int32)
    """
    return map_fn(f, xs)


def switch(
    index: TensorLike, branches: Sequence[Callable[..., Any]], *operands: Any
) -> Any:
    """Call one of several functions: ``branches[index](*operands)``.

    Args:
        index: Integer scalar; an index out of range selects the nearest branch.
        branches: List of functions of the operands.
        *operands: Arguments of the branches.

    Example:
        >>> keras.ops.switch(1, [lambda a, b: a + b, lambda a, b: a * b], 3, 4)
        12
    """
    if not branches:
        raise ValueError("switch: branches must hold at least one function, got none")
    calls = [functools.partial(branch, *operands) for branch in branches]
    if type(index) is KerasTensor:
        *outputs, result = [call() for call in calls]
        for i in reversed(range(len(outputs))):
            result = _select("switch", less_equal(index, i), outputs[i], result)
        return result
    if isinstance(index, int):
        return calls[min(max(index, 0), len(calls) - 1)]()
    return switch_case(clip_by_value(_convert(index), 0, len(calls) - 1), calls)


@operation(class_name=None, call="function elements", nested=True)
def vectorized_map(function: Callable[..., Any], elements: TensorNest) -> Any:
    """Apply a function to each entry along the first axis, with one call of each op.

    Args:
        function: Function of an entry.
        elements: Nest of tensors ``[n, ...]``.

    Shapes:
        The results are stacked to ``[n, ...]``.

    Example:
        >>> x = keras.ops.convert_to_tensor([1, 2, 3])
        >>> keras.ops.vectorized_map(lambda x: x * x, x).numpy()
        array([1, 4, 9], dtype=int32)
    """
    return _vectorized_map(function, elements)


# ------------------------------------------------------------- parts of a tensor


@operation(call="indices values")
def scatter(indices: TensorLike, values: TensorLike, shape: ShapeLike) -> Tensor:
    """Add values into a tensor of zeros at given coordinates.

    Args:
        indices: Coordinates, integers ``[..., k]``.
        values: Values to add.
        shape: Shape of the result.

    Shapes:
        ``values`` has the shape ``indices.shape[:-1] + shape[k:]``.

    Raises:
        IndexError: If a coordinate is out of range.

    Example:
        >>> keras.ops.scatter([[0], [2], [2]], [1.0, 2.0, 3.0], (4,)).numpy()
        array([1., 0., 5., 0.], dtype=float32)
    """
    return scattering.scatter_nd(indices, values, shape)


_REDUCTIONS = {
    None: scattering.tensor_scatter_nd_update,
    "add": scattering.tensor_scatter_nd_add,
    "max": scattering.tensor_scatter_nd_max,
    "min": scattering.tensor_scatter_nd_min,
}


@operation(call="inputs indices updates")
def scatter_update(
    inputs: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    reduction: str | None = None,
) -> Tensor:
    """Update the entries of a tensor at given coordinates.

    Args:
        inputs: Tensor to update.
        indices: Coordinates, integers ``[..., k]``.
        updates: New values.
        reduction: Combination of an entry with its update: "add", "mul", "max" or
            "min"; None replaces the entry.

    Shapes:
        ``updates`` has the shape ``indices.shape[:-1] + inputs.shape[k:]``.

    Raises:
        IndexError: If a coordinate is out of range.
        ValueError: If ``reduction`` is unknown.

    Example:
        >>> keras.ops.scatter_update([1, 2, 3], [[0], [2]], [7, 9]).numpy()
        array([7, 2, 9], dtype=int32)
    """
    inputs = _convert(inputs)
    updates = conversion.cast(updates, inputs.dtype)
    if reduction == "mul":
        return _scatter_multiply(inputs, _convert(indices), updates)
    if reduction not in _REDUCTIONS:
        raise ValueError(
            "scatter_update: reduction must be None, 'add', 'mul', 'max' or 'min', got "
            f"{reduction!r}"
        )
    return _REDUCTIONS[reduction](inputs, indices, updates)


def _scatter_multiply(inputs, indices, updates):
    def step(i, result):
        at = getitem(indices, (i, None))
        new = gather_nd(result, at) * getitem(updates, (i, None))
        return scattering.tensor_scatter_nd_update(result, at, new)

    return fori_loop(0, indices.shape[0], step, inputs)


@operation(call="inputs start_indices")
def slice(inputs: TensorLike, start_indices: TensorLike, shape: ShapeLike) -> Tensor:  # noqa: A001
    """Extract a block from a tensor.

    Args:
        inputs: Input tensor.
        start_indices: First index of the block, for each axis.
        shape: Shape of the block.

    Raises:
        ShapeError: If the block exceeds ``inputs``.

    Example:
        >>> keras.ops.slice([[1, 2, 3], [4, 5, 6]], (0, 1), (2, 2)).numpy()
        array([[2, 3],
               [5, 6]], dtype=int32)
    """
    if not _is_tensor(start_indices):
        return _slice(inputs, start_indices, shape)
    result, starts = _convert(inputs), _unstack(start_indices)
    if len(starts) != result.ndim or len(shape) != result.ndim:
        raise ValueError(
            "slice: start_indices and shape must have an entry for each axis of inputs, "
            f"{result.ndim}, got {len(starts)} and {len(shape)}"
        )
    for axis, (start, count) in enumerate(zip(starts, shape)):
        result = gather(
            result, _range(count) + conversion.cast(start, "int32"), axis=axis
        )
    return result


@operation(call="inputs start_indices updates")
def slice_update(
    inputs: TensorLike, start_indices: TensorLike, updates: TensorLike
) -> Tensor:
    """Replace a block of a tensor.

    A block that would exceed the end is moved back.

    Args:
        inputs: Input tensor.
        start_indices: First index of the block, for each axis.
        updates: New values, with as many axes as ``inputs``.

    Example:
        >>> keras.ops.slice_update([1, 2, 3, 4], [1], [8, 9]).numpy()
        array([1, 8, 9, 4], dtype=int32)
    """
    inputs = _convert(inputs)
    updates = conversion.cast(updates, inputs.dtype)
    starts = _unstack(conversion.cast(start_indices, "int32"), inputs.ndim)
    lines = [
        clip_by_value(start, 0, size - count) + _range(count)
        for start, size, count in zip(starts, inputs.shape, updates.shape)
    ]
    indices = stack(meshgrid(*lines, indexing="ij"), -1)
    return scattering.tensor_scatter_nd_update(inputs, indices, updates)
