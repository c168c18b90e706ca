"""Gives Tensor and Variable their operators, and IndexedSlices their sums.

The only file that writes on a class from outside: operators arrive when the ops exist.
"""

from ..tensor import IndexedSlices, Tensor
from ..variable import Variable
from . import elementwise, indexing
from .linalg import matmul

__all__ = []

_BINARY = {
    "add": elementwise.add,
    "sub": elementwise.subtract,
    "mul": elementwise.multiply,
    "truediv": elementwise.divide,
    "floordiv": elementwise.floordiv,
    "mod": elementwise.floormod,
    "pow": elementwise.pow,
    "matmul": matmul,
    "and": elementwise.bitwise_and,
    "or": elementwise.bitwise_or,
    "xor": elementwise.bitwise_xor,
}
_COMPARE = {
    "lt": elementwise.less,
    "le": elementwise.less_equal,
    "gt": elementwise.greater,
    "ge": elementwise.greater_equal,
}


def _reflected(op):
    def operator(self, other):
        return op(other, self)

    return operator


def _equal(self, other):
    return NotImplemented if other is None else elementwise.equal(self, other)


def _not_equal(self, other):
    return NotImplemented if other is None else elementwise.not_equal(self, other)


def _invert(self):
    if self.dtype.is_bool:
        return elementwise.logical_not(self)
    return elementwise.bitwise_xor(self, -1)


for _cls in (Tensor, Variable):
    for _name, _op in _BINARY.items():
        setattr(_cls, f"__{_name}__", _op)
        setattr(_cls, f"__r{_name}__", _reflected(_op))
    for _name, _op in _COMPARE.items():
        setattr(_cls, f"__{_name}__", _op)
    _cls.__eq__, _cls.__ne__ = _equal, _not_equal
    _cls.__hash__ = None
    _cls.__neg__ = elementwise.negative
    _cls.__pos__ = elementwise.identity
    _cls.__abs__ = elementwise.abs
    _cls.__invert__ = _invert
    _cls.__getitem__ = indexing.getitem

IndexedSlices.__add__ = IndexedSlices.__radd__ = indexing.add_slices
IndexedSlices.__tensor__ = indexing.dense
