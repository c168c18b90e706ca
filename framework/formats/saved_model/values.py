"""Plain values as JSON and back, exactly: attributes of ops, arguments, results.

Numbers, strings, None and lists are represented by JSON. All else is a tagged object,
such as ``{"tuple": [...]}``; NaN and infinities are strings, ``{"float": "nan"}``.
"""

import math
from collections import namedtuple
from typing import Any

import numpy as np

from tapewright.compiler.control_flow.printing import SLOT, Slot
from tapewright.core.dtypes import DType, as_dtype, resource
from tapewright.core.nest import is_nested
from tapewright.core.shapes.guards import Guards
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import IndexedSlices, TensorSpec
from tapewright.ops.ragged.ragged_tensor import RaggedTensor, RaggedTensorSpec
from tapewright.ops.sparse.sparse_tensor import SparseTensor, SparseTensorSpec

from .symbolic_dims import (
    decode_number,
    decode_shape,
    encode_number,
    encode_shape,
    is_open,
)

__all__ = [
    "Numbered",
    "decode",
    "decode_dtype",
    "encode",
    "encode_dtype",
    "item_of",
    "nested_alike",
    "number_of",
]

# The dtypes of tensors; "object" are lists of arrays, inside of graphs only.
DTYPES = {
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "string", "object",
}  # fmt: skip
OBJECT = resource.dtype
DEEPEST = 50


def encode_dtype(dtype: np.dtype) -> str:
    """Return the name of a NumPy dtype; raise ``TypeError`` if files cannot store it."""
    name = "object" if dtype == OBJECT else as_dtype(dtype).name
    if name not in DTYPES:
        raise TypeError(f"the dtype {dtype} cannot be saved")
    return name


def decode_dtype(name: Any) -> np.dtype:
    """Return the NumPy dtype with that name."""
    if not isinstance(name, str) or name not in DTYPES:
        raise ValueError(f"{name!r} is not a dtype of tensors")
    return OBJECT if name == "object" else as_dtype(name).dtype


def encode(x: Any) -> Any:
    """Return a value as JSON; raise ``TypeError`` if it is not plain.

    Example:
        >>> from tapewright.formats.saved_model.values import encode
        >>> encode((1, float("inf"), [None]))
        {'tuple': [1, {'float': 'inf'}, [None]]}
    """
    kind = type(x)
    if x is None or kind in (bool, int, str):
        return x
    if kind is float:
        return x if math.isfinite(x) else {"float": repr(x)}
    if kind is list:
        return [encode(item) for item in x]
    for tag, kinds, write, _ in FORMS:
        if isinstance(x, kinds):
            return {tag: write(x)}
    if is_open(x):
        return {"size": encode_number(x)}
    raise TypeError(f"{x!r}, of type {kind.__name__}, cannot be saved")


def decode(value: Any, scope: Guards | None = None, depth: int = 0) -> Any:
    """Decode the result of `encode`; formulas of sizes belong to ``scope``.

    Raises:
        ValueError: For JSON that `encode` never returns.
    """
    if depth > DEEPEST:
        raise ValueError(f"values are nested deeper than {DEEPEST}")
    if isinstance(value, list):
        return [decode(item, scope, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError(f"a value must have one tag, got {sorted(value)[:5]}")
    ((tag, inner),) = value.items()
    if tag == "size":
        return decode_number(inner, scope)
    for its_tag, _, _, read in FORMS:
        if its_tag == tag:
            return read(inner, scope, depth + 1)
    raise ValueError(f"{tag!r} is not a tag of a value")


# ------------------------------------------------- each kind: tag, types, writing, reading


def _several(value, scope, depth, count=None):
    if not isinstance(value, list) or (count is not None and len(value) != count):
        raise ValueError("a list of values is too short, too long, or not a list")
    return [decode(item, scope, depth) for item in value]


def _write_pairs(x):
    return [[encode(key), encode(item)] for key, item in x.items()]


def _read_pairs(value, scope, depth):
    pairs = [_several(pair, scope, depth, 2) for pair in value]
    if any(not isinstance(key, (str, int, float, bool)) for key, _ in pairs):
        raise ValueError("the keys of a dict must be strings or numbers")
    return dict(pairs)


def _write_named(x):
    return [type(x).__name__, list(x._fields), [encode(item) for item in x]]


def _read_named(value, scope, depth):
    name, fields, items = value
    names = [name, *fields]
    if not all(isinstance(n, str) and n.isidentifier() for n in names):
        raise ValueError("a named tuple must have names that are identifiers")
    if len(names) > 200 or len(items) != len(fields):
        raise ValueError("a named tuple must have a name for each item, 200 at most")
    return namedtuple(name, fields)(*_several(items, scope, depth))


def _write_slices(x):
    return [encode(part) for part in (x.values, x.indices, x.dense_shape)]


def _write_parts(x, shape):
    shape = [_known(n) for n in shape]
    return [shape, *[encode(part) for part in x.components()]]


def _read_parts(kind, value, scope, depth):
    """Return a sparse or ragged tensor of specs, or of numbers of outputs."""
    shape, *parts = _several(value, scope, depth)
    if not isinstance(shape, list) or not 1 <= len(parts) <= DEEPEST:
        raise ValueError("a sparse or ragged value must have a shape and parts")
    return kind(shape).with_components(parts)


def _write_spec(x):
    return [x.dtype.name, _sizes(x), x.name if isinstance(x.name, str) else None]


def _sizes(spec):
    return None if spec.shape.rank is None else [_known(n) for n in spec.shape]


def _known(n):
    return None if n is None or is_open(n) else int(n)


def _read_spec(value, scope, depth):
    dtype, shape, name = value
    if not (name is None or isinstance(name, str)):
        raise ValueError("the name of a spec must be a string")
    decode_dtype(dtype)
    return TensorSpec(shape, dtype, name)


def _read_float(value, scope, depth):
    if value not in ("nan", "inf", "-inf"):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _read_scalar(value, scope, depth):
    name, number = value
    return decode_dtype(name).type(decode(number, scope, depth))


def _is_named(kind):
    return hasattr(kind, "_fields")


class Numbered:
    """A placeholder for the variable with a number."""

    def __init__(self, number):
        self.number = number


def number_of(thing: Any, listed: list) -> int:
    """Return the index of an object in a list; append it if necessary."""
    for number, known in enumerate(listed):
        if known is thing:
            return number
    listed.append(thing)
    return len(listed) - 1


def item_of(listed: list, number: Any, title: str) -> Any:
    """Return the item with a number in a file; raise ``ValueError`` if it does not exist."""
    if type(number) is not int or not 0 <= number < len(listed):
        raise ValueError(f"there is no {title} {number!r}")
    return listed[number]


class _NamedTuple(type):
    def __instancecheck__(cls, x):
        return isinstance(x, tuple) and _is_named(type(x))


class _Named(metaclass=_NamedTuple):
    """Any named tuple, for ``isinstance``."""


FORMS = [
    ("shape", TensorShape, encode_shape, lambda v, s, d: _as_shape(decode_shape(v, s))),
    ("namedtuple", _Named, _write_named, _read_named),
    ("tuple", tuple, lambda x: [encode(i) for i in x],
     lambda v, s, d: tuple(_several(v, s, d))),
    ("list", list, lambda x: [encode(i) for i in x], _several),
    ("dict", dict, _write_pairs, _read_pairs),
    ("slice", slice, lambda x: [encode(i) for i in (x.start, x.stop, x.step)],
     lambda v, s, d: slice(*_several(v, s, d, 3))),
    ("range", range, lambda x: [x.start, x.stop, x.step],
     lambda v, s, d: range(*_several(v, s, d, 3))),
    ("variable", Numbered, lambda x: x.number, lambda v, s, d: Numbered(v)),
    ("slot", Slot, lambda x: True, lambda v, s, d: SLOT),
    ("ellipsis", type(...), lambda x: True, lambda v, s, d: ...),
    ("bytes", bytes, lambda x: x.hex(), lambda v, s, d: bytes.fromhex(v)),
    ("dtype", DType, lambda x: x.name,
     lambda v, s, d: as_dtype(decode_dtype(v))),
    ("numpy_dtype", np.dtype, encode_dtype, lambda v, s, d: decode_dtype(v)),
    ("scalar", np.generic, lambda x: [encode_dtype(x.dtype), encode(x.item())],
     _read_scalar),
    ("float", float, repr, _read_float),
    ("complex", complex, lambda x: [encode(x.real), encode(x.imag)],
     lambda v, s, d: complex(*_several(v, s, d, 2))),
    ("spec", TensorSpec, _write_spec, _read_spec),
    ("indexed_slices", IndexedSlices, _write_slices,
     lambda v, s, d: IndexedSlices(*_several(v, s, d, 3))),
    ("sparse_tensor", SparseTensor, lambda x: _write_parts(x, tuple(x.shape)),
     lambda v, s, d: _read_parts(SparseTensorSpec, v, s, d)),
    ("ragged_tensor", RaggedTensor, lambda x: _write_parts(x, (None, None)),
     lambda v, s, d: _read_parts(RaggedTensorSpec, v, s, d)),
    ("sparse_spec", SparseTensorSpec, lambda x: [_sizes(x), x.dtype.name],
     lambda v, s, d: SparseTensorSpec(*_several(v, s, d, 2))),
    ("ragged_spec", RaggedTensorSpec,
     lambda x: [_sizes(x), x.dtype.name, x.ragged_rank, x.row_splits_dtype.name],
     lambda v, s, d: RaggedTensorSpec(*_several(v, s, d, 4))),
]  # fmt: skip


def _as_shape(shape):
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def nested_alike(x: object, y: object) -> bool:
    """Return whether two values are containers of one kind, of the same length or keys."""
    if not is_nested(x) or not is_nested(y):
        return False
    if isinstance(x, dict) or isinstance(y, dict):
        return isinstance(x, dict) and isinstance(y, dict) and x.keys() == y.keys()
    if _is_named(type(x)) or _is_named(type(y)):
        same = getattr(x, "_fields", 0) == getattr(y, "_fields", 1)
        return same or _is_plain_tuple(x) or _is_plain_tuple(y)
    return isinstance(x, list) == isinstance(y, list) and len(x) == len(y)


def _is_plain_tuple(x):
    return type(x) is tuple
