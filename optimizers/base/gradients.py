"""Preparation of gradients for an update: checks, sums over replicas, clipping.

No function changes its arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tapewright.core.communication.job import communicator
from tapewright.core.dtypes import kind_of
from tapewright.core.errors import DTypeError, ShapeError
from tapewright.core.hardware.blas import sum_of_squares
from tapewright.core.hardware.combine_at import combine_at
from tapewright.core.hardware.devices import array_module, to_numpy
from tapewright.core.tensor import (
    IndexedSlices,
    convert_to_tensor,
    is_tensor,
    to_array,
)
from tapewright.core.variable import Variable

from .flat_buffers import computed_in

# The square of a larger factor does not vanish, in float32 too.
LEAST = 1e-12

Method = TypeVar("Method", bound=Callable[..., Any])


def check_is_list(variables: Any) -> None:
    """Check that ``apply`` was not given one variable.

    Raises:
        TypeError: If it was.
    """
    if isinstance(variables, Variable):
        raise TypeError(
            "apply: gradients and variables must be lists: apply([gradient], [variable]); "
            f"got the variable '{variables.path}'"
        )


def in_pairs(apply_gradients: Method) -> Method:
    """Decorator: a call of ``apply_gradients`` with two lists says how to pair them."""

    @functools.wraps(apply_gradients)
    def call(self, *args, **kwargs):
        if len(args) > 1:
            raise TypeError(
                "apply_gradients: takes one argument, pairs of a gradient and a variable: "
                f"apply_gradients(zip(gradients, variables)); got {len(args)} arguments"
            )
        return apply_gradients(self, *args, **kwargs)

    return call  # type: ignore[return-value]


class SparseRows(NamedTuple):
    """Arrays of a sparse gradient: ``values[i]`` belongs to row ``indices[i]``.

    Gradients of an update are `merged`: nonlinear steps such as clipping then see the
    entries of the dense gradient.
    """

    indices: object
    values: object

    def merged(self, xp):
        """Return sorted rows without duplicates; the values of equal rows are added up."""
        rows, inverse = xp.unique(self.indices, return_inverse=True)
        values = xp.zeros((rows.size, *self.values.shape[1:]), self.values.dtype)
        if rows.size == self.indices.size:
            values[inverse] = self.values
        else:
            combine_at(xp, xp.add, values, inverse, self.values)
        return SparseRows(rows, values)


def to_gradient(gradient, variable):
    """Return a gradient as an array or merged `SparseRows`, in the variable's dtype.

    Raises:
        ShapeError: If the gradient does not have the shape of the variable.
        DTypeError: If the gradient is complex and the variable is real.
        ValueError: If an index is out of range.
    """
    if isinstance(gradient, IndexedSlices):
        return _to_rows(gradient, variable)
    target = variable._array
    if is_tensor(gradient):
        array = convert_to_tensor(gradient).array
    else:
        array = to_array(gradient, None, target.dtype, array_module(type(target)))
    check_gradient(array, variable)
    _check_device(array, variable)
    return array.astype(target.dtype, copy=False)


def check_gradient(array, variable):
    """Raise unless a gradient has the variable's shape and can be cast to its dtype."""
    if array.shape != variable._array.shape:
        _refuse(ShapeError, "shape", array, variable)
    _check_dtype(array, variable)


def _check_dtype(array, variable):
    dtype_kinds = "biufc" if variable._array.dtype.kind == "c" else "biuf"
    if kind_of(array.dtype) not in dtype_kinds:
        _refuse(DTypeError, "dtype, or a dtype that can be cast to it", array, variable)


def _to_rows(slices, variable):
    target = variable._array
    values = _array(slices.values)
    indices = _array(slices.indices)
    if slices.dense_shape is not None and tuple(slices.shape) != target.shape:
        raise ShapeError(
            "apply_gradients", f"the gradient of '{variable.path}' must have the shape "
                               f"of the variable, {target.shape}, got dense_shape "
                               f"{tuple(slices.shape)}",
        )  # fmt: skip
    if not target.ndim or values.shape != (*indices.shape[:1], *target.shape[1:]):
        raise ShapeError(
            "apply_gradients", f"a sparse gradient of '{variable.path}', {target.shape}, "
            "must have one index and one row of values per entry",
            values=values, indices=indices,
        )  # fmt: skip
    if indices.dtype.kind not in "iu":
        raise DTypeError(
            "apply_gradients", "the indices of a sparse gradient must be integers",
            indices=indices,
        )  # fmt: skip
    if indices.size and (indices.min() < 0 or indices.max() >= target.shape[0]):
        raise ValueError(
            f"apply_gradients: an index of the gradient of '{variable.path}' is "
            f"outside of its {target.shape[0]} rows"
        )
    _check_dtype(values, variable)
    _check_device(values, variable)
    rows = SparseRows(indices, values.astype(target.dtype, copy=False))
    return rows.merged(array_module(type(target)))


def _array(value):
    return convert_to_tensor(value).array


def _check_device(array, variable):
    target = variable._array
    if array_module(type(array)) is not array_module(type(target)):
        raise ValueError(
            f"apply_gradients: the gradient of '{variable.path}' must be on the device of "
            f"the variable: it is a {type(array).__name__}, the variable a "
            f"{type(target).__name__}"
        )


def _refuse(error, attribute, array, variable):
    raise error(
        "apply_gradients", f"the gradient of '{variable.path}' must have its {attribute}",
        gradient=array, variable=variable._array,
    )  # fmt: skip


def all_reduce_gradients(gradients, op="sum", compression=None) -> list:
    """Return the sums of gradients over all replicas; dense gradients share one all-reduce."""
    dense = [i for i, g in enumerate(gradients) if type(g) is not SparseRows]
    arrays = [gradients[i] for i in dense]
    arrays = [a.astype(computed_in(a.dtype), copy=False) for a in arrays]
    totals = communicator().all_reduce(arrays, op, compression)
    sums = list(gradients)
    for i, total in zip(dense, totals):
        sums[i] = total
    return [all_gather_rows(g) if type(g) is SparseRows else g for g in sums]


def all_gather_rows(rows):
    """Return the sum of the `SparseRows` of all replicas."""
    xp = array_module(type(rows.values))
    parts = [communicator().all_gather(to_numpy(array)) for array in rows]
    return SparseRows(*[xp.asarray(np.concatenate(each)) for each in parts]).merged(xp)


class Scaling:
    """The ``clip(xp, block, out)`` of `clipping` that multiplies by ``factor``.

    ``folds``: the squares of the gradient and of the factor neither overflow nor
    underflow, so that a rule may multiply by them separately and save a pass.
    """

    __slots__ = ("factor", "folds")

    def __init__(self, array, factor, folds):
        self.folds = folds
        dtype = computed_in(array.dtype)
        if hasattr(factor, "astype") and not isinstance(array, np.ndarray):
            self.factor: Any = factor.astype(dtype, copy=False)
        else:
            self.factor = array_module(type(array)).asarray(factor, dtype)

    def __call__(self, xp, block, out):
        return xp.multiply(block, self.factor, out=out)


def clipping(
    gradients, clipnorm, clipvalue, global_clipnorm, share=1.0, update=None
) -> list:
    """Return for each gradient None, or ``clip(xp, block, out)``, which clips a block.

    The gradient times ``share`` is clipped. As in Keras on TensorFlow, a global norm
    that is not finite makes all gradients NaN. Unlike there, a sparse gradient is
    clipped like the dense gradient: the values of a row have been added up before. An
    ``update`` of parts sums norms over the processes.
    """
    if share == 1 and not (clipnorm or clipvalue or global_clipnorm):
        return [None] * len(gradients)
    arrays = [g.values if type(g) is SparseRows else g for g in gradients]
    if clipnorm:
        squares = [_square([a]) for a in arrays]
        squares = squares if update is None else update.sum_each(squares)
        norms = [square**0.5 * share for square in squares]
        scales = [share * clipnorm / _at_least(norm, clipnorm) for norm in norms]
    elif global_clipnorm:
        square = _square(arrays)
        square = square if update is None else update.sum_all(square)
        norm = square**0.5 * share
        scale = share * global_clipnorm / _at_least(norm, global_clipnorm)
        scale = scale + (norm - norm)
        scales = [scale] * len(arrays)
    elif clipvalue:
        return [_cutting(clipvalue, share)] * len(arrays)
    else:
        return [Scaling(a, share, False) for a in arrays]
    return [_scaling(a, scale) for a, scale in zip(arrays, scales)]


def _square(arrays):
    """Return the joint squared norm of all arrays: a float, or an array on a GPU."""
    total = 0.0
    for array in arrays:
        xp = array_module(type(array))
        if array.dtype.itemsize == 2:  # squares beyond 65504 are common
            array = array.astype(np.float32)
        square = sum_of_squares(xp, array).real
        total = total + (float(square) if xp is np else square)
    return total


def _at_least(norm, limit):
    if type(norm) is float:
        return norm if norm != norm else max(norm, limit)
    return array_module(type(norm)).maximum(norm, limit)


def _scaling(array, scale):
    if type(scale) is not float:
        return Scaling(array, scale, False)
    if scale == 1:
        return None
    # The norm is a sum of the squares: as it is finite, so are they.
    return Scaling(array, scale, scale > LEAST)


def _cutting(limit, share):
    def clip(xp, block, out):
        if share != 1:
            block = xp.multiply(block, share, out=out)
        block = xp.maximum(block, -limit, out=out)
        return xp.minimum(block, limit, out=out)

    return clip
