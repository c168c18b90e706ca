"""Shapes and dtypes of symbolic tensors, printed as in Keras: a tuple and a name."""

import functools

from tapewright.core.dtypes import DType, as_dtype
from tapewright.core.nest import is_nested, map_structure
from tapewright.core.shapes.symbolic_shape import static_shapes
from tapewright.core.shapes.tensor_shape import TensorShape

from .layer_serialization import is_shape


class SymbolicShape(TensorShape):
    """Shape of a symbolic tensor: it prints and slices like a tuple."""

    def __new__(cls, shape):
        made = tuple.__new__(cls, shape)
        made.rank = shape.rank
        return made

    def __getitem__(self, key):
        if self.rank is None:
            return super().__getitem__(key)
        return tuple.__getitem__(self, key)

    def __add__(self, other):
        return tuple(self) + tuple(other)

    def __radd__(self, other):
        return tuple(other) + tuple(self)

    __repr__ = TensorShape.__str__


class _SymbolicDType(DType):
    """Dtype of a symbolic tensor: it prints as its name."""

    __slots__ = ()

    def __eq__(self, other):
        return as_dtype(self.name) == other

    __hash__ = DType.__hash__

    def __str__(self):
        return self.name

    def __repr__(self):
        return repr(self.name)


@functools.cache
def named_dtype(dtype):
    """Return the dtype that prints as its name."""
    return _SymbolicDType(dtype.name, dtype.dtype)


def map_shapes(function, shapes):
    """Apply ``function`` to each shape in a nest of shapes."""
    if is_shape(shapes):
        return function(tuple(shapes))
    if isinstance(shapes, dict):
        return {key: map_shapes(function, s) for key, s in shapes.items()}
    return type(shapes)([map_shapes(function, s) for s in shapes])


def shapes_in(tensors):
    """Return the shape of each tensor in a nest, and None for leaves without a shape.

    Unknown sizes are None, also in functions that are traced for all sizes.
    """
    if is_nested(tensors):
        return map_structure(shapes_in, tensors)
    shape = getattr(tensors, "shape", None)
    return None if shape is None else static_shapes(tuple(shape))
