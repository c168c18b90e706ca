"""Operators of tensors, variables and IndexedSlices; assignments to parts of variables.

Operators are set on the classes from outside, once the ops exist. Only
`experimental_enable_numpy_behavior` does so, too, when a program calls it.
"""

import math

import numpy as np

from tapewright.core import hooks
from tapewright.core.errors import DTypeError, ShapeError
from tapewright.core.operators import Operators
from tapewright.core.state.autocast import autocast, autocast_dtype
from tapewright.core.tensor import (
    IndexedSlices,
    Tensor,
    convert_to_tensor,
    is_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.variable import Variable, on_device_of

from .array import (
    conversion,
    creation,
    gather,
    indexed_slices,
    indexing,
    joining,
    scatter,
)
from .array.shape import broadcast_to, reshape
from .linalg.matmul import matmul
from .math import comparison, elementwise
from .promotion import promote

_BINARY = {
    "add": elementwise.add,
    "sub": elementwise.subtract,
    "mul": elementwise.multiply,
    "truediv": elementwise.divide,
    "floordiv": elementwise.floordiv,
    "mod": elementwise.floormod,
    "pow": elementwise.pow,
    "matmul": matmul,
    "and": comparison.bitwise_and,
    "or": comparison.bitwise_or,
    "xor": comparison.bitwise_xor,
}
_COMPARE = {
    "lt": comparison.less,
    "le": comparison.less_equal,
    "gt": comparison.greater,
    "ge": comparison.greater_equal,
}


def _reflected(op):
    def operator(self, other):
        return op(other, self)

    return operator


def _equal(self, other):
    return _compared(comparison.equal, self, other, misfit=False)


def _not_equal(self, other):
    return _compared(comparison.not_equal, self, other, misfit=True)


def _compared(op, x, y, misfit):
    if y is None:
        return NotImplemented
    try:
        return op(x, y)
    except ShapeError:
        # What does not broadcast is unequal as a whole, as in TensorFlow.
        return convert_to_tensor(misfit)


def _unhashable(self):
    kind = type(self).__name__
    raise TypeError(f"{kind} is unhashable. Instead, use its ref() as the key.")


def _round(self, ndigits=None):
    if ndigits is not None:
        raise TypeError(f"round: ndigits of a tensor must be None, got {ndigits!r}")
    return elementwise.round(self)


def _invert(self):
    if self.dtype.is_bool:
        return comparison.logical_not(self)
    return comparison.invert(self)


for _name, _op in _BINARY.items():
    setattr(Operators, f"__{_name}__", _op)
    setattr(Operators, f"__r{_name}__", _reflected(_op))
for _name, _op in _COMPARE.items():
    setattr(Operators, f"__{_name}__", _op)
Operators.__eq__, Operators.__ne__ = _equal, _not_equal
Operators.__hash__ = _unhashable
Operators.__neg__ = elementwise.negative
Operators.__pos__ = conversion.identity
Operators.__abs__ = elementwise.abs
Operators.__invert__, Operators.__round__ = _invert, _round
Operators.__getitem__ = indexing.getitem
hooks.cast.fill(conversion.cast)


# ------------------------------------------------------------ dtypes of Keras' variables


_NUMBERS = int, float, complex, Tensor, Variable, np.ndarray, np.number, np.bool_


def _promoting(name, operator):
    """Make an operator of variables; Keras variables promote dtypes as in `keras.ops`."""
    at_least = float if "truediv" in name else None

    def promoted(self, other):
        if self._path is None or _meets(self, other) or not isinstance(other, _NUMBERS):
            return operator(self, other)
        with on_device_of(self):  # of numbers, such as those beside a count of updates
            return operator(*promote(self, other, at_least=at_least))

    return promoted


def _meets(variable, other):
    """Return whether a floating variable keeps its dtype beside ``other``: the usual case."""
    dtype = variable._array.dtype
    if dtype.kind != "f":
        return False
    kind = type(other)
    if kind is Tensor:
        return other.array.dtype is dtype and autocast_dtype() is None
    return kind is float or kind is int


_arithmetic = [name for name in _BINARY if name not in ("and", "or", "xor")]
_reflections = [f"r{name}" for name in _arithmetic]
for _name in (*_arithmetic, *_reflections, *_COMPARE, "eq", "ne"):
    _operator = getattr(Operators, f"__{_name}__")
    setattr(Variable, f"__{_name}__", _promoting(_name, _operator))
Variable.__hash__ = _unhashable


# ------------------------------------------------------------------- operators in place


def _in_place(operator, sign, assignment):
    """Reject ``variable += value``, because it would rebind the name to a tensor.

    As in TensorFlow; for a Keras variable the result is the tensor, as in Keras.
    """

    def in_place(self, other):
        if self._path is not None:
            return operator(self, other)
        raise RuntimeError(
            f"variable {sign}= value is not supported, it would not change the variable "
            f"'{self.name}'. Use {assignment} to modify it, or out = variable {sign} "
            "value for a new tensor"
        )

    return in_place


for _name, _sign, _assignment in (
    ("add", "+", "variable.assign_add(value)"),
    ("sub", "-", "variable.assign_sub(value)"),
    ("mul", "*", "variable.assign(variable * value)"),
    ("truediv", "/", "variable.assign(variable / value)"),
    ("pow", "**", "variable.assign(variable ** value)"),
):
    _operator = getattr(Variable, f"__{_name}__")
    setattr(Variable, f"__i{_name}__", _in_place(_operator, _sign, _assignment))


# ------------------------------------------------------------ assignments to some entries


def _part(self, index):
    """Index a variable: ``v[index]``, which can be assigned to."""
    part = indexing.getitem(self, index)
    part._tw_part_of = self, index
    return part


@hooks.assign_part.fill
def _assign_part(variable, index, value):
    """Write ``value`` to the entries that an index picks, in any of its forms.

    The index is applied to the positions of the entries as well.
    """
    with autocast(None):
        whole, shape = variable.read(), tuple(variable.shape)
        positions = module_of(whole).arange(math.prod(shape)).reshape(shape)
        positions = indexing.getitem(new_tensor(positions), index)
        with on_device_of(variable):
            dtype = None if is_tensor(value) else whole.dtype
            value = convert_to_tensor(value, dtype)
        rows = _fitting_part(variable, positions.shape, value)
        flat = scatter.tensor_scatter_nd_update(
            reshape(whole, [-1]), reshape(positions, [-1, 1]), reshape(rows, [-1])
        )
        return variable.assign(reshape(flat, shape))


def _fitting_part(variable, shape, value):
    """Broadcast ``value`` to the shape of the part; an error names the variable."""
    who = "Variable[index].assign"
    if value.dtype != variable.dtype:
        problem = f"'{variable.path}' has dtype {variable.dtype.name}"
        raise DTypeError(who, problem, value=value)
    try:
        return broadcast_to(value, shape)
    except ShapeError:
        problem = f"the part of '{variable.path}' has shape {tuple(shape)}"
        raise ShapeError(who, problem, value=value) from None


Variable.__getitem__ = _part


def _assign_rows(write, doc):
    """Make a method that writes IndexedSlices: rows, as in `embedding_lookup`."""

    def method(self, sparse_delta, use_locking=False, name=None):
        if not isinstance(sparse_delta, IndexedSlices):
            kind = type(sparse_delta).__name__
            raise TypeError(f"sparse_delta must be IndexedSlices, got {kind}")
        indices = convert_to_tensor(sparse_delta.indices)[..., None]
        return self.assign(write(self, indices, sparse_delta.values))

    method.__doc__ = doc
    return method


def _assign_entries(write, doc):
    """Make a method that writes entries at coordinates, as in `scatter_nd`."""

    def method(self, indices, updates, name=None):
        return self.assign(write(self, indices, updates))

    method.__doc__ = doc
    return method


_ROWS = """{} rows at the indices of ``sparse_delta`` by its values. Returns self.

Args:
    sparse_delta: `IndexedSlices` with the indices and the values of the rows.
    use_locking: Ignored.

Raises:
    TypeError: If ``sparse_delta`` is not `IndexedSlices`.
    IndexError: If an index is out of range.
"""
_ENTRIES = """{} entries at ``indices`` by ``updates``. Returns self.

Args:
    indices: Integers with the coordinates in the last axis.
    updates: Values for the entries at the coordinates.

Shapes:
    As in `scatter_nd`, with the shape of the variable.

Raises:
    IndexError: If a coordinate is out of range.
"""

for _suffix, _write, _verb in (
    ("add", scatter.tensor_scatter_nd_add, "Increase the"),
    ("sub", scatter.tensor_scatter_nd_sub, "Decrease the"),
    ("update", scatter.tensor_scatter_nd_update, "Replace the"),
    ("max", scatter.tensor_scatter_nd_max, "Replace smaller"),
    ("min", scatter.tensor_scatter_nd_min, "Replace larger"),
):
    _rows = _assign_rows(_write, _ROWS.format(_verb))
    _entries = _assign_entries(_write, _ENTRIES.format(_verb))
    setattr(Variable, f"scatter_{_suffix}", _rows)
    setattr(Variable, f"scatter_nd_{_suffix}", _entries)


def _scale_rows(combine):
    """Multiply or divide the rows of a variable at given indices."""

    def write(variable, indices, values):
        whole, values = variable.read(), convert_to_tensor(values)
        size, who = whole.shape[0], "Variable.scatter"
        flat = gather.flat_index(indices, dims=(size,), who=who)
        from .array.segment import unsorted_segment_prod  # takes 2 ms

        return combine(whole, unsorted_segment_prod(values, flat, size))

    return write


def _quotient(x, y):
    return elementwise.truncatediv(x, y) if x.dtype.is_integer else x / y


for _suffix, _combine, _verb in (
    ("mul", elementwise.multiply, "Multiply the"),
    ("div", _quotient, "Divide the"),
):
    _rows = _assign_rows(_scale_rows(_combine), _ROWS.format(_verb))
    setattr(Variable, f"scatter_{_suffix}", _rows)


def _batch_scatter_update(self, sparse_delta, use_locking=False, name=None):
    """Replace rows along the last axis of the indices of ``sparse_delta``. Returns self.

    Args:
        sparse_delta: `IndexedSlices` with the indices and the new rows.
        use_locking: Ignored.

    Shapes:
        Indices ``[b0, ..., k]`` and values ``[b0, ..., k, ...]`` of a variable
        ``[b0, ..., n, ...]``: index ``[i, ..., j]`` names a row of ``self[i, ...]``.

    Raises:
        TypeError: If ``sparse_delta`` is not `IndexedSlices`.
        IndexError: If an index is out of range.
        ShapeError: If the shapes do not match (a ``ValueError``).
    """
    if not isinstance(sparse_delta, IndexedSlices):
        kind = type(sparse_delta).__name__
        raise TypeError(f"sparse_delta must be IndexedSlices, got {kind}")
    indices = gather.whole_numbers("batch_scatter_update", sparse_delta.indices)
    lead = tuple(indices.shape)[:-1]
    axes = [creation.range(n, dtype=indices.dtype) for n in lead]
    coordinates = [
        broadcast_to(reshape(axis, [-1] + [1] * (len(lead) - i)), indices.shape)
        for i, axis in enumerate(axes)
    ]
    coordinates = joining.stack([*coordinates, indices], axis=-1)
    write = scatter.tensor_scatter_nd_update
    return self.assign(write(self, coordinates, sparse_delta.values))


Variable.batch_scatter_update = _batch_scatter_update


def _gather_nd(self, indices, name=None):
    """Return the entries at the coordinates ``indices``; see `gather_nd`.

    Args:
        indices: Coordinates, integers ``[..., k]``.
    """
    return gather.gather_nd(self, indices)


def _sparse_read(self, indices, name=None):
    """Return the rows at ``indices``; see `gather`.

    Args:
        indices: Integers from 0 to the number of rows less 1.
    """
    return gather.gather(self, indices)


Variable.gather_nd, Variable.sparse_read = _gather_nd, _sparse_read

IndexedSlices.__add__ = IndexedSlices.__radd__ = indexed_slices.add_slices
IndexedSlices.__tensor__ = indexed_slices.dense
IndexedSlices._tw_sum_repeated = indexed_slices.sum_repeated
