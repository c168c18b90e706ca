"""Shape and dtype of symbolic tensors, printed as in Keras: a tuple and a name."""

import functools

from tapewright.core.dtypes import DType, as_dtype
from tapewright.core.shapes.tensor_shape import TensorShape


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
