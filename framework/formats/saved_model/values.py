"""Plain values as JSON and back, exactly: attributes of ops, arguments, results.

The forms of plain values (see `value_codec`), shapes, dtypes, specs, and parts of graphs.
"""

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
from tapewright.serialization.value_codec import (
    MAX_DEPTH,
    PLAIN_FORMS,
    Form,
    ValueCodec,
)

from .symbolic_dims import (
    decode_number,
    decode_shape,
    encode_number,
    encode_shape,
    is_open,
)

# The dtypes of tensors; "object" are lists of arrays, inside of graphs only.
DTYPES = {
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "string", "object",
}  # fmt: skip
OBJECT = resource.dtype


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
    return _GraphCodec(None).encode(x)


def decode(value: Any, scope: Guards | None = None) -> Any:
    """Decode the result of `encode`; formulas of sizes belong to ``scope``.

    Raises:
        ValueError: For JSON that `encode` never returns.
    """
    return _GraphCodec(scope).decode(value)


class _GraphCodec(ValueCodec):
    def __init__(self, scope):
        super().__init__()
        self.scope = scope


# -------------------------------------------------------- each kind of value: write and read


def _write_named(codec, x, path):
    return [type(x).__name__, list(x._fields), codec.encode_items(x, path)]


def _read_named(codec, value, depth):
    name, fields, items = value
    names = [name, *fields]
    if not all(isinstance(n, str) and n.isidentifier() for n in names):
        raise ValueError("a named tuple must have names that are identifiers")
    if len(names) > 200 or len(items) != len(fields):
        raise ValueError("a named tuple must have a name for each item, 200 at most")
    return namedtuple(name, fields)(*codec.decode_items(items, depth))


def _write_components(codec, x, path):
    """Write a sparse or ragged tensor of specs, or of numbers of outputs."""
    shape = tuple(x.shape) if isinstance(x, SparseTensor) else (None, None)
    shape = [_known(n) for n in shape]
    return [shape, *codec.encode_items(x._tw_components(), path)]


def _read_components(kind):
    def read(codec, value, depth):
        shape, *parts = codec.decode_items(value, depth)
        if not isinstance(shape, list) or not 1 <= len(parts) <= MAX_DEPTH:
            raise ValueError("a sparse or ragged value must have a shape and parts")
        return kind(shape)._tw_with_components(parts)

    return read


def _write_spec(codec, x, path):
    return [x.dtype.name, _sizes(x), x.name if isinstance(x.name, str) else None]


def _sizes(spec):
    return None if spec.shape.rank is None else [_known(n) for n in spec.shape]


def _known(n):
    return None if n is None or is_open(n) else int(n)


def _read_spec(codec, value, depth):
    dtype, shape, name = value
    if not (name is None or isinstance(name, str)):
        raise ValueError("the name of a spec must be a string")
    decode_dtype(dtype)
    return TensorSpec(shape, dtype, name)


def _read_shape(codec, value, depth):
    shape = decode_shape(value, codec.scope)
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def _read_scalar(codec, value, depth):
    name, number = value
    return decode_dtype(name).type(codec.decode(number, depth))


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


def _of(*kinds):
    return lambda x: isinstance(x, kinds)


def _by_parts(tag, kind, parts, count):
    """Return the form of objects that ``kind`` creates from values: ``parts(x)``."""
    return Form(
        tag,
        _of(kind),
        lambda codec, x, path: codec.encode_items(parts(x), path),
        lambda codec, v, depth: kind(*codec.decode_items(v, depth, count)),
    )


def _by_itself(tag, kind, write, read):
    """Return the form of objects that contain no other values."""
    return Form(
        tag, _of(kind), lambda _, x, path: write(x), lambda _, v, depth: read(v)
    )


_GraphCodec.forms = (
    Form("shape", _of(TensorShape), lambda _, x, path: encode_shape(x), _read_shape),
    Form("namedtuple", lambda x: isinstance(x, tuple) and _is_named(type(x)),
         _write_named, _read_named),
    Form("list", _of(list), ValueCodec.encode_items, ValueCodec.decode_items),
    Form("tuple", _of(tuple), ValueCodec.encode_items,
         lambda codec, v, depth: tuple(codec.decode_items(v, depth))),
    *PLAIN_FORMS,
    _by_parts("slice", slice, lambda x: (x.start, x.stop, x.step), 3),
    _by_parts("range", range, lambda x: (x.start, x.stop, x.step), 3),
    _by_itself("variable", Numbered, lambda x: x.number, Numbered),
    _by_itself("slot", Slot, lambda x: True, lambda v: SLOT),
    _by_itself("ellipsis", type(...), lambda x: True, lambda v: ...),
    _by_itself("bytes", bytes, bytes.hex, bytes.fromhex),
    _by_itself("dtype", DType, lambda x: x.name, lambda v: as_dtype(decode_dtype(v))),
    _by_itself("numpy_dtype", np.dtype, encode_dtype, decode_dtype),
    Form("scalar", _of(np.generic),
         lambda codec, x, path: [encode_dtype(x.dtype), codec.encode(x.item(), path)],
         _read_scalar),
    _by_parts("complex", complex, lambda x: (x.real, x.imag), 2),
    Form("spec", _of(TensorSpec), _write_spec, _read_spec),
    _by_parts("indexed_slices", IndexedSlices,
              lambda x: (x.values, x.indices, x.dense_shape), 3),
    Form("sparse_tensor", _of(SparseTensor), _write_components,
         _read_components(SparseTensorSpec)),
    Form("ragged_tensor", _of(RaggedTensor), _write_components,
         _read_components(RaggedTensorSpec)),
    _by_parts("sparse_spec", SparseTensorSpec, lambda x: (_sizes(x), x.dtype.name), 2),
    _by_parts("ragged_spec", RaggedTensorSpec,
              lambda x: (_sizes(x), x.dtype.name, x.ragged_rank, x.row_splits_dtype.name),
              4),
    Form("size", is_open, lambda _, x, path: encode_number(x),
         lambda codec, v, depth: decode_number(v, codec.scope)),
)  # fmt: skip


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
