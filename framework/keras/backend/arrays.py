"""Array functions of older Keras: `ALIASES` of ops, and those that differ from them.

As in `tf.keras.backend`, they are TensorFlow's ops with names and defaults of their own; they
do not promote dtypes as `keras.ops` does.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tapewright.compiler.control_flow import map_fn as loops
from tapewright.compiler.control_flow.cond import cond
from tapewright.core.floatx import floatx
from tapewright.core.symbolic_shape import static_shapes
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
    "softmax",
    "sqrt",
    "stop_gradient",
    "switch",
    "tile",
    "to_dense",
    "truncated_normal",
    "update",
    "update_add",
    "update_sub",
    "variable",
    "zeros",
]


def _numbers(x):
    """Booleans as numbers of `floatx`."""
    x = convert_to_tensor(x)
    return conversion.cast(x, floatx()) if x.dtype == "bool" else x


def _as_bool(reduce):
    return lambda x, *options: reduce(conversion.cast(x, bool), *options)


def _of_numbers(reduce):
    return lambda x, *options: reduce(_numbers(x), *options)


_REDUCED = "x axis=None keepdims=False"
# Name: the function, and the arguments that it gets, in this order.
ALIASES: dict[str, tuple[Callable[..., Any], str]] = {
    "abs": (elementwise.abs, "x"),
    "cos": (trigonometry.cos, "x"),
    "equal": (comparison.equal, "x y"),
    "exp": (elementwise.exp, "x"),
    "greater": (comparison.greater, "x y"),
    "greater_equal": (comparison.greater_equal, "x y"),
    "less": (comparison.less, "x y"),
    "less_equal": (comparison.less_equal, "x y"),
    "log": (elementwise.log, "x"),
    "maximum": (elementwise.maximum, "x y"),
    "minimum": (elementwise.minimum, "x y"),
    "not_equal": (comparison.not_equal, "x y"),
    "pow": (elementwise.pow, "x a"),
    "round": (elementwise.round, "x"),
    "sigmoid": (activation.sigmoid, "x"),
    "sign": (elementwise.sign, "x"),
    "sin": (trigonometry.sin, "x"),
    "softplus": (activation.softplus, "x"),
    "softsign": (activation.softsign, "x"),
    "square": (elementwise.square, "x"),
    "tanh": (trigonometry.tanh, "x"),
    "elu": (activations.elu, "x alpha=1.0"),
    "relu": (activations.relu, "x alpha=0.0 max_value=None threshold=0.0"),
    "all": (_as_bool(reduction.reduce_all), _REDUCED),
    "any": (_as_bool(reduction.reduce_any), _REDUCED),
    "argmax": (indexing.argmax, "x axis=-1"),
    "argmin": (indexing.argmin, "x axis=-1"),
    "cumprod": (scan.cumprod, "x axis=0"),
    "cumsum": (scan.cumsum, "x axis=0"),
    "l2_normalize": (normalization.l2_normalize, "x axis=None"),
    "max": (reduction.reduce_max, _REDUCED),
    "mean": (_of_numbers(reduction.reduce_mean), _REDUCED),
    "min": (reduction.reduce_min, _REDUCED),
    "prod": (reduction.reduce_prod, _REDUCED),
    "std": (_of_numbers(reduction.reduce_std), _REDUCED),
    "sum": (reduction.reduce_sum, _REDUCED),
    "var": (_of_numbers(reduction.reduce_variance), _REDUCED),
    "cast": (conversion.cast, "x dtype"),
    "concatenate": (joining.concat, "tensors axis=-1"),
    "expand_dims": (shapes.expand_dims, "x axis=-1"),
    "gather": (gathering.gather, "reference indices"),
    "ones_like": (creation.ones_like, "x dtype=None name=None"),
    "permute_dimensions": (shapes.transpose, "x pattern"),
    "repeat_elements": (gathering.repeat, "x rep axis"),
    "reshape": (shapes.reshape, "x shape"),
    "shape": (shapes.shape, "x"),
    "squeeze": (shapes.squeeze, "x axis"),
    "stack": (joining.stack, "x axis=0"),
    "transpose": (shapes.transpose, "x"),
    "zeros_like": (creation.zeros_like, "x dtype=None name=None"),
}  # fmt: skip


def _alias(name, function, parameters):
    """Return ``function`` under another name, with these arguments by position or name."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = []
    for text in parameters.split():
        key, _, default = text.partition("=")
        default = ast.literal_eval(default) if default else inspect.Parameter.empty
        found.append(inspect.Parameter(key, kind, default=default))
    signature = inspect.Signature(found)

    def alias(*args: Any, **kwargs: Any) -> Tensor:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return function(*bound.arguments.values())

    alias.__name__ = alias.__qualname__ = name
    alias.__signature__ = signature
    summary = (inspect.getdoc(function) or "").partition("\n")[0]
    alias.__doc__ = summary or f"Reduce the values over an axis: ``{name}``."
    return alias


for _name, (_function, _parameters) in ALIASES.items():
    globals()[_name] = _alias(_name, _function, _parameters)
__all__ += ALIASES
__all__.sort()


# ------------------------------------------------------------------- values and variables


def variable(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    constraint: Any = None,
) -> Variable:
    """Return a `Variable`, of `floatx` by default; optimizers apply its ``constraint``."""
    made = Variable(value, dtype=dtype or floatx(), name=name)
    if constraint is not None:
        made.constraint = constraints.get(constraint)
    return made


def zeros(
    shape: ShapeLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable | Tensor:
    """Return a `Variable` of zeros; a tensor if the shape has a 0."""
    return _filled(creation.zeros, shape, dtype, name)


def ones(
    shape: ShapeLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable | Tensor:
    """Return a `Variable` of ones; a tensor if the shape has a 0."""
    return _filled(creation.ones, shape, dtype, name)


def _filled(fill, shape, dtype, name):
    dtype = dtype or floatx()
    value = fill(shape, dtype)
    return variable(value, dtype, name) if math.prod(value.shape) else value


def eye(
    size: IntLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Variable:
    """Return the identity matrix as a `Variable`."""
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
    """Return a `Variable` with normal random numbers."""
    return variable(random_normal(shape, mean, scale, dtype, seed), dtype, name)


def random_uniform_variable(
    shape: ShapeLike,
    low: float,
    high: float,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Variable:
    """Return a `Variable` with random numbers from ``low`` to ``high``."""
    return variable(random_uniform(shape, low, high, dtype, seed), dtype, name)


def get_value(x: Any) -> Any:
    """Return the NumPy array of a tensor or variable; other values as they are."""
    return x.numpy() if is_tensor(x) or isinstance(x, Variable) else x


def eval(x: Any) -> Any:
    """Return the NumPy array of a tensor or variable, as `get_value` does."""
    return get_value(x)


def set_value(x: Variable, value: Any) -> None:
    """Assign an array, converted to the dtype of the variable."""
    x.assign(np.asarray(value, x.dtype.name))


def batch_get_value(tensors: Iterable[Any]) -> list[Any]:
    """Return the NumPy arrays of several tensors or variables."""
    return [x.numpy() for x in tensors]


def batch_set_value(tuples: Iterable[tuple[Variable, Any]]) -> None:
    """Assign to each variable of the pairs its array."""
    for x, value in tuples:
        set_value(x, value)


def update(x: Variable, new_x: TensorLike) -> Variable:
    """Assign ``new_x``, and return the variable."""
    return x.assign(new_x)


def update_add(x: Variable, increment: TensorLike) -> Variable:
    """Add ``increment`` to a variable, and return it."""
    return x.assign_add(increment)


def update_sub(x: Variable, decrement: TensorLike) -> Variable:
    """Subtract ``decrement`` from a variable, and return it."""
    return x.assign_sub(decrement)


def moving_average_update(x: Variable, value: TensorLike, momentum: float) -> Variable:
    """``x <- x * momentum + value * (1 - momentum)``, for a variable."""
    rest = 1 - conversion.cast(momentum, x.dtype)
    return x.assign_sub((x - conversion.cast(value, x.dtype)) * rest)


def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return a tensor, of `floatx` by default."""
    return new_constant(value, dtype=dtype or floatx(), shape=shape)


def cast_to_floatx(x: Any) -> Any:
    """Cast to `floatx`: a tensor or variable to a tensor, others to a NumPy array."""
    if is_tensor(x) or isinstance(x, Variable):
        return conversion.cast(x, floatx())
    return np.asarray(x, floatx())


# ------------------------------------------------------------------- questions about shapes


def ndim(x: Any) -> int:
    """Return the number of axes."""
    return len(x.shape)


def int_shape(x: Any) -> tuple[int | None, ...]:
    """Return the shape as a tuple, with None for unknown sizes."""
    return static_shapes(tuple(x.shape))


def count_params(x: Any) -> int:
    """Return the number of elements."""
    return math.prod(int_shape(x))


def dtype(x: Any) -> str:
    """Return the name of the dtype."""
    return x.dtype.name


def is_sparse(tensor: Any) -> bool:
    """Return False: all tensors are dense."""
    return False


def to_dense(tensor: Any) -> Any:
    """Return the tensor: all are dense."""
    return tensor


# -------------------------------------------------------------------------------- arrays


def arange(
    start: TensorLike,
    stop: TensorLike | None = None,
    step: TensorLike = 1,
    dtype: DTypeLike = "int32",
) -> Tensor:
    """Return the numbers from ``start`` up to ``stop``; from 0 to ``start`` without it."""
    if stop is None and start < 0:
        start = 0
    result = creation.range(start, stop, step)
    return result if dtype == "int32" else conversion.cast(result, dtype)


def clip(
    x: TensorLike, min_value: TensorLike | None, max_value: TensorLike | None
) -> Tensor:
    """Limit the values; None is no limit, and of two numbers the lower one wins."""
    are_numbers = all([isinstance(v, (int, float)) for v in (min_value, max_value)])
    if are_numbers and max_value < min_value:
        max_value = min_value
    low = -np.inf if min_value is None else min_value
    return elementwise.clip_by_value(x, low, np.inf if max_value is None else max_value)


def sqrt(x: TensorLike) -> Tensor:
    """Square root; negative values count as 0."""
    x = convert_to_tensor(x)
    return elementwise.sqrt(elementwise.maximum(x, conversion.cast(0, x.dtype)))


def hard_sigmoid(x: TensorLike) -> Tensor:
    """``0.2 * x + 0.5``, limited to [0, 1]: that of Keras 2."""
    return elementwise.clip_by_value(convert_to_tensor(x) * 0.2 + 0.5, 0.0, 1.0)


def softmax(x: TensorLike, axis: int | tuple[int, ...] = -1) -> Tensor:
    """Softmax over one axis or several.

    Raises: ``ValueError`` for a tensor of less than two axes.
    """
    x = convert_to_tensor(x)
    if len(x.shape) <= 1:
        raise ValueError(
            f"softmax: x must have two axes or more, got shape {tuple(x.shape)}"
        )
    return activations.softmax(x, axis)


def dot(x: TensorLike, y: TensorLike) -> Tensor:
    """Product over the last axis of ``x`` and the last but one of ``y``."""
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    return tensordot(x, y, [[ndim(x) - 1], [ndim(y) - 2]])


def batch_dot(
    x: TensorLike, y: TensorLike, axes: int | tuple[int, int] | None = None
) -> Tensor:
    """Product over one axis of each of two batches: the first axis of both stays.

    Args: ``axes``: one for each, or one for both; by default the last one of ``x`` and
    the last but one of ``y``, or its last one if there are two.

    Shapes: ``[batch, *x without its axis, *y without batch and axis]``, ``[batch, 1]`` if
    nothing else is left.

    Raises: ``ValueError`` for less than two axes, or the batch among ``axes``.
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
        raise ValueError(f"batch_dot: axes must not be the batch, got {axes!r}")
    letters = iter("bcdefghijklmnopqrstuvwxy")
    of_x = ["a", *[next(letters) for _ in range(ranks[0] - 1)]]
    of_y = ["a", *[next(letters) for _ in range(ranks[1] - 1)]]
    of_x[at_x] = of_y[at_y] = "z"
    kept = "a" + "".join([i for i in of_x[1:] + of_y[1:] if i != "z"])
    result = einsum(f"{''.join(of_x)},{''.join(of_y)}->{kept}", x, y)
    return shapes.expand_dims(result, -1) if ranks == (2, 2) else result


def flatten(x: TensorLike) -> Tensor:
    """Return all values on one axis."""
    return shapes.reshape(x, [-1])


def batch_flatten(x: TensorLike) -> Tensor:
    """Return a matrix with a row for each example."""
    x = convert_to_tensor(x)
    sizes = shapes.shape(x)[1:]
    return shapes.reshape(x, joining.stack([-1, reduction.reduce_prod(sizes)]))


def repeat(x: TensorLike, n: int) -> Tensor:
    """Return ``[batch, n, features]``: each row of a matrix ``n`` times.

    Raises: ``ValueError`` unless ``x`` has two axes.
    """
    x = convert_to_tensor(x)
    if ndim(x) != 2:
        raise ValueError(f"repeat: x must have two axes, got shape {tuple(x.shape)}")
    return joining.tile(shapes.expand_dims(x, 1), [1, n, 1])


def tile(x: TensorLike, n: int | ShapeLike) -> Tensor:
    """Repeat the whole tensor ``n`` times along each axis."""
    return joining.tile(x, [n] if isinstance(n, int) else n)


def reverse(x: TensorLike, axes: int | Iterable[int]) -> Tensor:
    """Reverse the order along axes."""
    return joining.reverse(x, [axes] if isinstance(axes, int) else axes)


def one_hot(indices: TensorLike, num_classes: int) -> Tensor:
    """Return vectors with a 1 at each index, in float32."""
    return indexing.one_hot(indices, num_classes)


def in_top_k(predictions: TensorLike, targets: TensorLike, k: int) -> Tensor:
    """Return whether each target is among the ``k`` largest predictions of its row."""
    return sorting.in_top_k(targets, predictions, k)


def stop_gradient(variables: Any) -> Any:
    """Return the values, through which no gradient passes; a list for several."""
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
    """Return normal random numbers."""
    return sampling.normal(shape, mean, stddev, dtype or floatx(), seed)


def truncated_normal(
    shape: ShapeLike,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> Tensor:
    """Return normal random numbers within two standard deviations."""
    return sampling.truncated_normal(shape, mean, stddev, dtype or floatx(), seed)


def random_uniform(
    shape: ShapeLike,
    minval: float = 0.0,
    maxval: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> Tensor:
    """Return random numbers from ``minval`` to ``maxval``."""
    return sampling.uniform(shape, minval, maxval, dtype or floatx(), seed)


def random_bernoulli(
    shape: ShapeLike,
    p: float = 0.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> Tensor:
    """Return 1 with probability ``p``, and else 0."""
    drawn = random_uniform(shape, dtype=dtype, seed=seed)
    return conversion.cast(drawn <= p, drawn.dtype)


# ------------------------------------------------------------------------ control flow


def switch(condition: TensorLike, then_expression: Any, else_expression: Any) -> Any:
    """Return one of two values, or of the results of two functions.

    A scalar condition runs one of them. Another selects entries of both: one of a single
    axis broadcasts against the last axis, others may lack the last axes.

    Raises: ``ValueError`` if the condition has more axes than the values.
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
    """Return the results of ``fn`` for each entry along the first axis, stacked."""
    return loops.map_fn(fn, elems, dtype)


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    name: str | None = None,
) -> Any:
    """Combine the entries along the first axis by ``fn(result, entry)``."""
    return loops.foldl(fn, elems, initializer)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    name: str | None = None,
) -> Any:
    """Combine the entries from the last to the first by ``fn(result, entry)``."""
    return loops.foldr(fn, elems, initializer)
