"""The reader that applies batching rules: one call of an op for many values at once.

Values in flight are `Mapped`: a tensor with a mapped axis in front. Jacobians send all
cotangents through one backward walk this way. Where each row of a result depends on one
row of the input only, a mapped value may stay *diagonal* (see `rules`): one value then
stands for one value a row, and the zeros between the rows are never computed.
"""

import math

from .dtypes import BY_NUMPY
from .ops.indexing import getitem
from .ops.joining import stack
from .ops.shape import broadcast_to, embed_diagonal, reshape
from .readers import Reader, perform, reading
from .tensor import Tensor, convert_to_tensor
from .tensor_shape import TensorShape

__all__ = ["Batcher", "Mapped", "NotDiagonal"]


class NotDiagonal(Exception):
    """An op mixes the rows of a value that was diagonal until then.

    ``adjoint`` is that of the op whose rule was at work, when a tape raises it.
    """

    def __init__(self, op):
        super().__init__(f"the op {op.name} mixes rows")
        self.adjoint = None


class _Outline:
    """What ops may know of a mapped value: shape and dtype without the mapped axis."""

    __slots__ = ("shape", "dtype", "ndim")

    def __init__(self, array):
        self.shape, self.dtype, self.ndim = array.shape[1:], array.dtype, array.ndim - 1

    @property
    def size(self):
        return math.prod(self.shape)


class Mapped(Tensor):
    """Many tensors of one shape, as one; to the code that uses it, any one of them."""

    __slots__ = ("value", "axis", "owner")

    def __init__(self, value, owner, axis=None):
        self.value = value  # the tensor with the mapped axis in front
        self.axis = axis  # where it is diagonal, counted from the end; None: nowhere
        self.owner = owner
        self.array = _Outline(value.array)
        self.key = None

    @property
    def shape(self):
        return TensorShape(self.value.array.shape[1:])

    @property
    def dtype(self):
        return BY_NUMPY[self.value.array.dtype]

    def _no_value(self, *args, **kwargs):
        raise TypeError(
            "This tensor stands for many at once (all cotangents of a Jacobian), so it has "
            "no one value: code that looks at values needs experimental_use_pfor=False"
        )

    numpy = __array__ = _scalar = __bool__ = __index__ = _no_value

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        return f"<Mapped: {self.value.array.shape[0]} times shape={self.shape}>"

    __str__ = __repr__


class Batcher(Reader):
    """Runs batch rules on `Mapped` inputs; ``strict`` refuses to leave the diagonal."""

    __slots__ = ("strict",)
    sees_plain = False  # only what is `Mapped` concerns it

    def __init__(self, strict=False):
        self.strict = strict

    def map(self, value, axis=None):
        return Mapped(value, self, axis)

    def read(self, op, inputs, attributes, below):
        mapped = tuple([type(x) is Mapped and x.owner is self for x in inputs])
        if True not in mapped:
            return perform(op, inputs, attributes, below)
        with reading(below):
            axis = self._diagonal(op, inputs, mapped, attributes)
            values = []
            for x, is_mapped in zip(inputs, mapped):
                if is_mapped:
                    x = x.value if x.axis is None or axis is not None else self.dense(x)
                values.append(x)
            if op.batch_rule is None:
                result = _loop(op, values, mapped, attributes)
            else:
                result = op.batch_rule(mapped, *values, **attributes)
        if isinstance(result, (tuple, list)):
            return tuple([Mapped(r, self, axis) for r in result])
        return Mapped(result, self, axis)

    def _diagonal(self, op, inputs, mapped, attributes):
        """Where the output is diagonal, or None."""
        axes = tuple([x.axis if m else None for x, m in zip(inputs, mapped)])
        count = axes.count(None)
        if count == len(axes):
            return None
        axis = None
        if count == mapped.count(False) and op.diagonal_rule is not None:
            axis = op.diagonal_rule(axes, *inputs, **attributes)
        if axis is None and self.strict:
            raise NotDiagonal(op)
        return axis

    def spell_out(self, x, seeds):
        """As `dense`; what does not depend on the seeds is repeated for each of them."""
        if type(x) is Mapped and x.owner is self:
            return self.dense(x)
        x, (count, *shape) = convert_to_tensor(x), seeds.value.array.shape
        count *= 1 if seeds.axis is None else shape[seeds.axis]
        return broadcast_to(x, (count, *x.array.shape))

    def dense(self, x):
        """The tensor with every mapped value spelled out, row by row."""
        if x.axis is None:
            return x.value
        full = embed_diagonal(x.value, x.axis)
        rows, each = full.array.shape[:2]
        return reshape(full, (rows * each, *full.array.shape[2:]))


def _loop(op, values, mapped, attributes):
    """The op once for each mapped value: for ops without a batch rule."""
    count = next(v.array.shape[0] for v, m in zip(values, mapped) if m)
    results = []
    for i in range(count):
        row = [getitem(v, i) if m else v for v, m in zip(values, mapped)]
        results.append(op.general(row, attributes))
    if isinstance(results[0], tuple):
        return tuple([stack(list(parts)) for parts in zip(*results)])
    return stack(results)
