"""Array functions of older Keras: `ALIASES` of ops, and functions that differ from them.

As in `tf.keras.backend`, they are TensorFlow's ops with other names and defaults; they
do not promote dtypes as `keras.ops` does.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tapewright.compiler.control_flow import map_fn as loops
from tapewright.compiler.control_flow.cond import cond
from tapewright.core.messages.docstrings import compose, summary_of
from tapewright.core.settings.floatx import floatx
from tapewright.core.shapes.symbolic_shape import static_shapes
from tapewright.core.tensor import Tensor, convert_to_tensor, is_tensor
from tapewright.core.tensor import constant as new_constant
from tapewright.core.typing import DTypeLike, IntLike, ShapeLike, TensorLike
from tapewright.core.variable import Variable
from tapewright.layers import activations, constraints
from tapewright.ops.array import conversion, creation, indexing, joining, sorting
from tapewright.ops.array import gather as gathering
from tapewright.ops.array import shape as shapes
from tapewright.ops.linalg.contraction import einsum, tensordot
from tapewright.ops.math import comparison, elementwise, reduction, scan, trigonometry
from tapewright.ops.nn import activation, normalization
from tapewright.ops.random import sampling

__all__ = [
    "arange",
    "batch_dot",
    "batch_flatten",
    "batch_get_value",
    "batch_set_value",
    "cast_to_floatx",
    "clip",
    "constant",
    "count_params",
    "dot",
    "dtype",
    "eval",
    "eye",
    "flatten",
    "foldl",
    "foldr",
    "gather",
    "get_value",
    "hard_sigmoid",
    "in_top_k",
    "int_shape",
    "is_sparse",
    "map_fn",
    "moving_average_update",
    "ndim",
    "one_hot",
    "ones",
    "random_bernoulli",
    "random_normal",
    "random_normal_variable",
    "random_uniform",
    "random_uniform_variable",
    "repeat",
    "reverse",
    "set_value",
    "shape",
    "softmax",
    "sqrt",
    "stop_gradient",
    "switch",
    "tile",
    "to_dense",
    "transpose",
    "truncated_normal",
    "update",
    "update_add",
    "update_sub",
    "variable",
    "zeros",
]


def _numbers(x):
    """Return ``x`` as a tensor; booleans are cast to `floatx`."""
    x = convert_to_tensor(x)
    return conversion.cast(x, floatx()) if x.dtype == "bool" else x


def _prepared(reduce, prepare):
    """Return the reduction of ``prepare(x)``."""
    return functools.wraps(reduce)(lambda x, *options: reduce(prepare(x), *options))


def _as_bool(x):
    return conversion.cast(x, bool)


_REDUCED = "x axis=None keepdims=False"
_TRUTH = {"x": "Tensor of booleans; numbers other than 0 count as True."}
_SEARCHED = {"axis": "Axis to search."}
_ACCUMULATED = {"axis": "Axis to accumulate along."}
# Name: the function, its arguments in order, and sentences about them; see
# `core.messages.docstrings`.
ALIASES: dict[str, tuple[Callable[..., Any], str, dict[str, str]]] = {
    "abs": (elementwise.abs, "x", {}),
    "cos": (trigonometry.cos, "x", {}),
    "equal": (comparison.equal, "x y", {}),
    "exp": (elementwise.exp, "x", {}),
    "greater": (comparison.greater, "x y", {}),
    "greater_equal": (comparison.greater_equal, "x y", {}),
    "less": (comparison.less, "x y", {}),
    "less_equal": (comparison.less_equal, "x y", {}),
    "log": (elementwise.log, "x", {}),
    "maximum": (elementwise.maximum, "x y", {}),
    "minimum": (elementwise.minimum, "x y", {}),
    "not_equal": (comparison.not_equal, "x y", {}),
    "pow": (elementwise.pow, "x a", {"a": "Exponent; broadcasts with ``x``."}),
    "round": (elementwise.round, "x", {}),
    "sigmoid": (activation.sigmoid, "x", {}),
    "sign": (elementwise.sign, "x", {}),
    "sin": (trigonometry.sin, "x", {}),
    "softplus": (activation.softplus, "x", {}),
    "softsign": (activation.softsign, "x", {}),
    "square": (elementwise.square, "x", {}),
    "tanh": (trigonometry.tanh, "x", {}),
    "elu": (activations.elu, "x alpha=1.0", {"alpha": "Scale of the negative part."}),
    "relu": (activations.relu, "x alpha=0.0 max_value=None threshold=0.0", {
        "alpha": "Slope below ``threshold``.",
        "max_value": "Upper limit of the result, or None.",
        "threshold": "Value below which the slope is ``alpha``.",
    }),
    "all": (_prepared(reduction.reduce_all, _as_bool), _REDUCED, _TRUTH),
    "any": (_prepared(reduction.reduce_any, _as_bool), _REDUCED, _TRUTH),
    "argmax": (indexing.argmax, "x axis=-1", _SEARCHED),
    "argmin": (indexing.argmin, "x axis=-1", _SEARCHED),
    "cumprod": (scan.cumprod, "x axis=0", _ACCUMULATED),
    "cumsum": (scan.cumsum, "x axis=0", _ACCUMULATED),
    "l2_normalize": (
        normalization.l2_normalize, "x axis=None",
        {"axis": "Axis or axes of the norm; None for all."},
    ),
    "max": (reduction.reduce_max, _REDUCED, {}),
    "mean": (_prepared(reduction.reduce_mean, _numbers), _REDUCED, {}),
    "min": (reduction.reduce_min, _REDUCED, {}),
    "prod": (reduction.reduce_prod, _REDUCED, {}),
    "std": (_prepared(reduction.reduce_std, _numbers), _REDUCED, {}),
    "sum": (reduction.reduce_sum, _REDUCED, {}),
    "var": (_prepared(reduction.reduce_variance, _numbers), _REDUCED, {}),
    "cast": (conversion.cast, "x dtype", {"dtype": "Dtype of the result."}),
    "concatenate": (joining.concat, "tensors axis=-1", {
        "tensors": "Tensors whose shapes differ along ``axis`` only.",
        "axis": "Axis to join along.",
    }),
    "expand_dims": (
        shapes.expand_dims, "x axis=-1",
        {"axis": "Position of the new axis in the result."},
    ),
    "ones_like": (creation.ones_like, "x dtype=None name=None", {}),
    "permute_dimensions": (
        shapes.transpose, "x pattern",
        {"pattern": "Order of the axes."},
    ),
    "repeat_elements": (
        gathering.repeat, "x rep axis",
        {"rep": "Number of repetitions.", "axis": "Axis to repeat along."},
    ),
    "reshape": (shapes.reshape, "x shape", {"shape": "New shape; one size may be -1."}),
    "squeeze": (shapes.squeeze, "x axis", {"axis": "Axis of size 1 to remove."}),
    "stack": (
        joining.stack, "x axis=0",
        {"x": "List of tensors of one shape.", "axis": "Position of the new axis."},
    ),
    "zeros_like": (creation.zeros_like, "x dtype=None name=None", {}),
}  # fmt: skip
__all__ += ALIASES
__all__.sort()


def _alias(name, function, parameters, args):
    """Return ``function`` under another name, with these arguments by position or name."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    declared = []
    for text in parameters.split():
        key, _, default = text.partition("=")
        default = ast.literal_eval(default) if default else inspect.Parameter.empty
        declared.append(inspect.Parameter(key, kind, default=default))
    signature = inspect.Signature(declared)

    def alias(*args: Any, **kwargs: Any) -> Tensor:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return function(*bound.arguments.values())

    alias.__name__ = alias.__qualname__ = name
    alias.__signature__ = signature
    alias.__doc__ = compose(
        alias, summary_of(function, signature.parameters), args=args
    )
    return alias


for _name, _row in ALIASES.items():
    globals()[_name] = _alias(_name, *_row)


# ------------------------------------------------------------------- values and variables


def variable(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    constraint: Any = None,
) -> Variable:
    """Create a `Variable`.

    Args:
        value: Initial value.
        dtype: Dtype of the variable, `floatx` by default.
        name: Name of the variable.
        constraint: Constraint that optimizers apply after updates, or None.
    """
    made = Variable(value, dtype=dtype or floatx(), name=name)
    if constraint is not None:
        made.constraint = constraints.get(constraint)
    return made


def zeros(
    shape: ShapeLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable | Tensor:
    """Create a `Variable` of zeros; a tensor if the shape has a 0.

    Args:
        shape: Shape of the variable.
        dtype: Dtype of the variable, `floatx` by default.
        name: Name of the variable.
    """
    return _filled(creation.zeros, shape, dtype, name)


def ones(
    shape: ShapeLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable | Tensor:
    """Create a `Variable` of ones; a tensor if the shape has a 0.

    Args:
        shape: Shape of the variable.
        dtype: Dtype of the variable, `floatx` by default.
        name: Name of the variable.
    """
    return _filled(creation.ones, shape, dtype, name)


def _filled(fill, shape, dtype, name):
    dtype = dtype or floatx()
    value = fill(shape, dtype)
    return variable(value, dtype, name) if math.prod(value.shape) else value


def eye(
    size: IntLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable:
    """Create a `Variable` that is the identity matrix.

    Args:
        size: Number of rows and columns.
        dtype: Dtype of the variable, `floatx` by default.
        name: Name of the variable.
    """
    dtype = dtype or floatx()
    return variable(creation.eye(size, dtype=dtype), dtype, name)


def random_normal_variable(
    shape: ShapeLike,
    mean: float,
    scale: float,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Variable:
    """Create a `Variable` of normally distributed random numbers.

    Args:
        shape: Shape of the variable.
        mean: Mean of the distribution.
        scale: Standard deviation of the distribution.
        dtype: Dtype of the variable, `floatx` by default.
        name: Name of the variable.
        seed: Integer seed, or None for a random seed.
    """
    return variable(random_normal(shape, mean, scale, dtype, seed), dtype, name)


def random_uniform_variable(
    shape: ShapeLike,
    low: float,
    high: float,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Variable:
    """Create a `Variable` of uniformly distributed random numbers.

    Args:
        shape: Shape of the variable.
        low: Lower end of the distribution.
        high: Upper end of the distribution, exclusive.
        dtype: Dtype of the variable, `floatx` by default.
        name: Name of the variable.
        seed: Integer seed, or None for a random seed.
    """
    return variable(random_uniform(shape, low, high, dtype, seed), dtype, name)


def get_value(x: Any) -> Any:
    """Return the NumPy array of a tensor or variable; other values unchanged.

    Args:
        x: Tensor, variable or other value.
    """
    return x.numpy() if is_tensor(x) or isinstance(x, Variable) else x


def eval(x: Any) -> Any:
    """Return the NumPy array of a tensor or variable; same as `get_value`.

    Args:
        x: Tensor, variable or other value.
    """
    return get_value(x)


def set_value(x: Variable, value: Any) -> None:
    """Assign an array to a variable.

    Args:
        x: Variable.
        value: New value, which is converted to the dtype of the variable.
    """
    x.assign(np.asarray(value, x.dtype.name))


def batch_get_value(tensors: Iterable[Any]) -> list[Any]:
    """Return the NumPy arrays of several tensors or variables.

    Args:
        tensors: Tensors or variables.
    """
    return [x.numpy() for x in tensors]


def batch_set_value(tuples: Iterable[tuple[Variable, Any]]) -> None:
    """Assign arrays to several variables.

    Args:
        tuples: Pairs of a variable and its new value.
    """
    for x, value in tuples:
        set_value(x, value)


def update(x: Variable, new_x: TensorLike) -> Variable:
    """Assign a value to a variable, and return the variable.

    Args:
        x: Variable.
        new_x: New value.
    """
    return x.assign(new_x)


def update_add(x: Variable, increment: TensorLike) -> Variable:
    """Add a value to a variable, and return the variable.

    Args:
        x: Variable.
        increment: Value to add.
    """
    return x.assign_add(increment)


def update_sub(x: Variable, decrement: TensorLike) -> Variable:
    """Subtract a value from a variable, and return the variable.

    Args:
        x: Variable.
        decrement: Value to subtract.
    """
    return x.assign_sub(decrement)


def moving_average_update(x: Variable, value: TensorLike, momentum: float) -> Variable:
    """Update a moving average: ``x <- x * momentum + value * (1 - momentum)``.

    Args:
        x: Variable that holds the average.
        value: New value.
        momentum: Weight of the old average, from 0 to 1.
    """
    rest = 1 - conversion.cast(momentum, x.dtype)
    return x.assign_sub((x - conversion.cast(value, x.dtype)) * rest)


def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Create a constant tensor.

    Args:
        value: Array, number or nested list.
        dtype: Dtype of the result, `floatx` by default.
        shape: Shape of the result, by default the shape of ``value``.
        name: Ignored.
    """
    return new_constant(value, dtype=dtype or floatx(), shape=shape)


def cast_to_floatx(x: Any) -> Any:
    """Cast a tensor or variable to a tensor of `floatx`, other values to a NumPy array.

    Args:
        x: Tensor, variable, array, number or nested list.
    """
    if is_tensor(x) or isinstance(x, Variable):
        return conversion.cast(x, floatx())
    return np.asarray(x, floatx())


# ------------------------------------------------------------------- questions about shapes


def ndim(x: Any) -> int:
    """Return the number of axes.

    Args:
        x: Tensor or variable.
    """
    return len(x.shape)


def shape(x: TensorLike) -> Tensor:
    """Return the shape as an int32 tensor.

    Args:
        x: Input tensor.
    """
    return shapes.shape(x)


def int_shape(x: Any) -> tuple[int | None, ...]:
    """Return the shape as a tuple, with None for unknown sizes.

    Args:
        x: Tensor or variable.
    """
    return static_shapes(tuple(x.shape))


def count_params(x: Any) -> int:
    """Return the number of entries.

    Args:
        x: Tensor or variable.
    """
    return math.prod(int_shape(x))


def dtype(x: Any) -> str:
    """Return the name of the dtype.

    Args:
        x: Tensor or variable.
    """
    return x.dtype.name


def is_sparse(tensor: Any) -> bool:
    """Return False, as all tensors are dense.

    Args:
        tensor: Input tensor.
    """
    return False


def to_dense(tensor: Any) -> Any:
    """Return the tensor unchanged, as all tensors are dense.

    Args:
        tensor: Input tensor.
    """
    return tensor


# -------------------------------------------------------------------------------- arrays


def arange(
    start: TensorLike,
    stop: TensorLike | None = None,
    step: TensorLike = 1,
    dtype: DTypeLike = "int32",
) -> Tensor:
    """Create the numbers from ``start`` up to ``stop``, exclusive.

    Args:
        start: First number; without ``stop``, the end of a range that starts at 0.
        stop: End of the range, exclusive.
        step: Distance between numbers.
        dtype: Dtype of the result.
    """
    if stop is None and start < 0:
        start = 0
    result = creation.range(start, stop, step)
    return result if dtype == "int32" else conversion.cast(result, dtype)


def clip(
    x: TensorLike, min_value: TensorLike | None, max_value: TensorLike | None
) -> Tensor:
    """Clip values to a range.

    Args:
        x: Input tensor.
        min_value: Lower limit, or None for no limit.
        max_value: Upper limit, or None for no limit; if it is below ``min_value``, both
            being numbers, ``min_value`` applies.
    """
    are_numbers = all([isinstance(v, (int, float)) for v in (min_value, max_value)])
    if are_numbers and max_value < min_value:
        max_value = min_value
    low = -np.inf if min_value is None else min_value
    return elementwise.clip_by_value(x, low, np.inf if max_value is None else max_value)


def sqrt(x: TensorLike) -> Tensor:
    """Element-wise square root, where negative values count as 0.

    Args:
        x: Input tensor.
    """
    x = convert_to_tensor(x)
    return elementwise.sqrt(elementwise.maximum(x, conversion.cast(0, x.dtype)))


def hard_sigmoid(x: TensorLike) -> Tensor:
    """Keras 2's hard sigmoid activation: ``0.2 * x + 0.5``, clipped to [0, 1].

    Args:
        x: Input tensor.
    """
    return elementwise.clip_by_value(convert_to_tensor(x) * 0.2 + 0.5, 0.0, 1.0)


def softmax(x: TensorLike, axis: int | tuple[int, ...] = -1) -> Tensor:
    """Softmax activation over one axis or several.

    Args:
        x: Tensor with two axes or more.
        axis: Axis or tuple of axes to normalize.

    Raises:
        ValueError: If ``x`` has fewer than two axes.
    """
    x = convert_to_tensor(x)
    if len(x.shape) <= 1:
        raise ValueError(
            f"softmax: x must have two axes or more, got shape {tuple(x.shape)}"
        )
    return activations.softmax(x, axis)


def dot(x: TensorLike, y: TensorLike) -> Tensor:
    """Dot product over the last axis of ``x`` and the second-to-last axis of ``y``.

    Args:
        x: First tensor.
        y: Second tensor.
    """
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    return tensordot(x, y, [[ndim(x) - 1], [ndim(y) - 2]])


def batch_dot(
    x: TensorLike, y: TensorLike, axes: int | tuple[int, int] | None = None
) -> Tensor:
    """Dot product of two batches, example by example, over one axis of each.

    Args:
        x: First batch, with two axes or more.
        y: Second batch, with two axes or more.
        axes: Axis of each batch, or one axis for both; by default the last axis of
            ``x``, and the second-to-last of ``y``, or its last if it has two axes.

    Shapes:
        ``[batch, *x without its axis, *y without batch and axis]``, or ``[batch, 1]``
        if nothing else remains.

    Raises:
        ValueError: If a batch has fewer than two axes, or ``axes`` contains the batch
            axis.
    """
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    ranks = ndim(x), ndim(y)
    if min(ranks) < 2:
        raise ValueError(
            f"batch_dot: x and y must have two axes or more, got shapes {tuple(x.shape)} "
            f"and {tuple(y.shape)}"
        )
    if axes is None:
        axes = ranks[0] - 1, ranks[1] - 1 if ranks[1] == 2 else ranks[1] - 2
    pair = (axes, axes) if isinstance(axes, int) else tuple(axes)
    at_x, at_y = [axis % rank for axis, rank in zip(pair, ranks)]
    if 0 in (at_x, at_y):
        raise ValueError(f"batch_dot: axes must not contain the batch, got {axes!r}")
    letters = iter("bcdefghijklmnopqrstuvwxy")
    of_x = ["a", *[next(letters) for _ in range(ranks[0] - 1)]]
    of_y = ["a", *[next(letters) for _ in range(ranks[1] - 1)]]
    of_x[at_x] = of_y[at_y] = "z"
    kept = "a" + "".join([i for i in of_x[1:] + of_y[1:] if i != "z"])
    result = einsum(f"{''.join(of_x)},{''.join(of_y)}->{kept}", x, y)
    return shapes.expand_dims(result, -1) if ranks == (2, 2) else result


def flatten(x: TensorLike) -> Tensor:
    """Flatten a tensor into a vector.

    Args:
        x: Input tensor.
    """
    return shapes.reshape(x, [-1])


def batch_flatten(x: TensorLike) -> Tensor:
    """Flatten each example: return a matrix with a row per example.

    Args:
        x: Tensor ``[batch, ...]``.
    """
    x = convert_to_tensor(x)
    sizes = shapes.shape(x)[1:]
    return shapes.reshape(x, joining.stack([-1, reduction.reduce_prod(sizes)]))


def repeat(x: TensorLike, n: int) -> Tensor:
    """Repeat each row of a matrix: ``[batch, features]`` to ``[batch, n, features]``.

    Args:
        x: Matrix.
        n: Number of repetitions.

    Raises:
        ValueError: If ``x`` does not have two axes.
    """
    x = convert_to_tensor(x)
    if ndim(x) != 2:
        raise ValueError(f"repeat: x must have two axes, got shape {tuple(x.shape)}")
    return joining.tile(shapes.expand_dims(x, 1), [1, n, 1])


def tile(x: TensorLike, n: int | ShapeLike) -> Tensor:
    """Repeat a tensor as a whole along its axes.

    Args:
        x: Input tensor.
        n: Number of repetitions of each axis; an int for a vector.
    """
    return joining.tile(x, [n] if isinstance(n, int) else n)


def transpose(x: TensorLike) -> Tensor:
    """Reverse the order of the axes.

    Args:
        x: Input tensor.
    """
    return shapes.transpose(x)


def reverse(x: TensorLike, axes: int | Iterable[int]) -> Tensor:
    """Reverse the order of the entries along axes.

    Args:
        x: Input tensor.
        axes: Axis or axes to reverse.
    """
    return joining.reverse(x, [axes] if isinstance(axes, int) else axes)


def gather(reference: TensorLike, indices: TensorLike) -> Tensor:
    """Return the slices of a tensor at given indices along the first axis.

    Args:
        reference: Tensor to take slices from.
        indices: Integers, of any shape.
    """
    return gathering.gather(reference, indices)


def one_hot(indices: TensorLike, num_classes: int) -> Tensor:
    """One-hot encoding in float32: 1 at each index along a new last axis, else 0.

    Args:
        indices: Indices, integers.
        num_classes: Size of the new axis.
    """
    return indexing.one_hot(indices, num_classes)


def in_top_k(predictions: TensorLike, targets: TensorLike, k: int) -> Tensor:
    """Test whether each target is among the ``k`` largest predictions of its row.

    Args:
        predictions: Scores ``[batch, classes]``.
        targets: Classes, integers ``[batch]``.
        k: Number of largest predictions.
    """
    return sorting.in_top_k(targets, predictions, k)


def stop_gradient(variables: Any) -> Any:
    """Return tensors as constants, through which no gradient passes.

    Args:
        variables: Tensor, or a list of tensors, which returns a list.
    """
    if isinstance(variables, (list, tuple)):
        return [conversion.stop_gradient(x) for x in variables]
    return conversion.stop_gradient(variables)


# ------------------------------------------------------------------------ random numbers


def random_normal(
    shape: ShapeLike,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> Tensor:
    """Draw normally distributed random numbers.

    Args:
        shape: Shape of the result.
        mean: Mean of the distribution.
        stddev: Standard deviation of the distribution.
        dtype: Dtype of the result, `floatx` by default.
        seed: Integer seed, or None for a random seed.
    """
    return sampling.normal(shape, mean, stddev, dtype or floatx(), seed)


def truncated_normal(
    shape: ShapeLike,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> Tensor:
    """Draw normally distributed random numbers within two standard deviations.

    Args:
        shape: Shape of the result.
        mean: Mean of the distribution.
        stddev: Standard deviation before the truncation.
        dtype: Dtype of the result, `floatx` by default.
        seed: Integer seed, or None for a random seed.
    """
    return sampling.truncated_normal(shape, mean, stddev, dtype or floatx(), seed)


def random_uniform(
    shape: ShapeLike,
    minval: float = 0.0,
    maxval: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> Tensor:
    """Draw uniformly distributed random numbers.

    Args:
        shape: Shape of the result.
        minval: Lower end of the distribution.
        maxval: Upper end of the distribution, exclusive.
        dtype: Dtype of the result, `floatx` by default.
        seed: Integer seed, or None for a random seed.
    """
    return sampling.uniform(shape, minval, maxval, dtype or floatx(), seed)


def random_bernoulli(
    shape: ShapeLike,
    p: float = 0.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> Tensor:
    """Draw random numbers that are 1 with probability ``p``, else 0.

    Args:
        shape: Shape of the result.
        p: Probability of 1.
        dtype: Dtype of the result, `floatx` by default.
        seed: Integer seed, or None for a random seed.
    """
    drawn = random_uniform(shape, dtype=dtype, seed=seed)
    return conversion.cast(drawn <= p, drawn.dtype)


# ------------------------------------------------------------------------ control flow


def switch(condition: TensorLike, then_expression: Any, else_expression: Any) -> Any:
    """Select one of two values, or call one of two functions, by a condition.

    A scalar condition selects one of them. Another condition selects entries of both:
    with a single axis it broadcasts against the last axis, with more it may lack the
    last axes.

    Args:
        condition: Boolean tensor.
        then_expression: Tensor, or function without arguments, for True.
        else_expression: Tensor, or function without arguments, for False.

    Raises:
        ValueError: If ``condition`` has more axes than the values.
    """
    condition = conversion.cast(condition, bool)
    branches = [
        each if callable(each) else (lambda value=each: value)
        for each in (then_expression, else_expression)
    ]
    if not ndim(condition):
        return cond(condition, *branches)
    then_value, else_value = [convert_to_tensor(branch()) for branch in branches]
    missing = ndim(then_value) - ndim(condition)
    if missing < 0:
        raise ValueError(
            f"switch: condition must not have more axes than then_expression, got shapes "
            f"{tuple(condition.shape)} and {tuple(then_value.shape)}"
        )
    for _ in range(missing if ndim(condition) > 1 else 0):
        condition = shapes.expand_dims(condition, -1)
    return comparison.where(condition, then_value, else_value)


def map_fn(
    fn: Callable[[Any], Any], elems: Any, name: str | None = None, dtype: Any = None
) -> Any:
    """Apply a function to each entry along the first axis, and stack the results.

    Args:
        fn: Function of an entry.
        elems: Nest of tensors ``[n, ...]``.
        name: Ignored.
        dtype: Dtype of the results, by default the dtype of ``elems``.
    """
    return loops.map_fn(fn, elems, dtype)


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    name: str | None = None,
) -> Any:
    """Combine the entries along the first axis by ``fn(result, entry)``.

    Args:
        fn: Function of the result so far and an entry.
        elems: Nest of tensors ``[n, ...]``.
        initializer: First result, by default the first entry.
        name: Ignored.
    """
    return loops.foldl(fn, elems, initializer)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    name: str | None = None,
) -> Any:
    """Combine the entries along the first axis, from the last to the first.

    Args:
        fn: Function of the result so far and an entry.
        elems: Nest of tensors ``[n, ...]``.
        initializer: First result, by default the last entry.
        name: Ignored.
    """
    return loops.foldr(fn, elems, initializer)
