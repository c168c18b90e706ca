"""The interpreter that applies batching rules: one call of an op for many values at once.

Its values are `BatchedTensor`: tensors with a leading mapped axis. Jacobians pull all
cotangents back in one batched backward pass: one for each index of each axis of the
target. Such an axis of the target is *sparse* in a value while each of its indices
affects only one index of one axis of the value. It is then stored as a diagonal (see
`rules`), and the zeros off the diagonal are never computed. An op that mixes the
indices makes the axis *dense*: its indices become part of the mapped axis.
"""

import math

from tapewright.core.dtypes import BY_NUMPY, as_dtype, bfloat16_is_loaded, is_bfloat16
from tapewright.core.errors import MappingError
from tapewright.core.interpreters import (
    Interpreter,
    active_interpreter,
    process_op,
    use_interpreters,
)
from tapewright.core.primitive import kernels_are_wrapped
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import Tensor, convert_to_tensor, new_tensor
from tapewright.ops.array.indexing import getitem
from tapewright.ops.array.joining import stack
from tapewright.ops.array.shape import broadcast_to, reshape, transpose
from tapewright.ops.linalg.diagonal import embed_diagonal


class NotDiagonal(Exception):
    """An op mixes the indices of an axis that must stay diagonal.

    In a backward pass, ``op_name`` is the op whose VJP rule called it.
    """

    def __init__(self, op):
        super().__init__(f"the op {op.name if op else '?'} mixes rows")
        self.op_name = None


class _AbstractValue:
    """The ``array`` of a batched tensor: shape and dtype without the mapped axis."""

    __slots__ = ("shape", "dtype", "ndim")

    def __init__(self, array):
        self.shape, self.dtype, self.ndim = array.shape[1:], array.dtype, array.ndim - 1

    @property
    def size(self):
        return math.prod(self.shape)

    def get(self):  # as of an array on a GPU
        raise MappingError("a batched tensor has no single array")


class BatchedTensor(Tensor):
    """Many tensors of one shape, which has the shape and dtype of one of them."""

    __slots__ = ("value", "axes", "owner")

    def __init__(self, value, owner, axes):
        self.value = value  # the tensor with the mapped axis in front
        self.axes = axes  # for each size of the owner: the diagonal axis; None: dense
        self.owner = owner
        self.array = _AbstractValue(value.array)
        self.key = None

    @property
    def shape(self):
        return TensorShape(self.value.array.shape[1:])

    @property
    def dtype(self):
        return BY_NUMPY.get(self.value.array.dtype) or as_dtype(self.value.array.dtype)

    @property
    def axis(self):
        """First diagonal axis, counted from the end, or None."""
        return next((axis for axis in self.axes if axis is not None), None)

    def _no_value(self, *args, **kwargs):
        raise MappingError(self.owner.no_value)

    numpy = __array__ = _scalar = __bool__ = __index__ = _no_value
    __dlpack__ = __dlpack_device__ = _no_value

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        return f"<BatchedTensor: {self.value.array.shape[0]} times shape={self.shape}>"

    __str__ = __repr__


class BatchInterpreter(Interpreter):
    """Interpreter that runs batch rules on `BatchedTensor` inputs.

    The mapped axis of a value is the product of its dense axes, in the order of
    ``sizes``, followed by the mapped axis of the argument of `map`.

    Args:
        sizes: Sizes of the axes of the target that may be sparse, 1 for the others.
        strict: Positions in ``sizes`` of the axes that must stay sparse.
    """

    __slots__ = ("sizes", "strict")
    sees_plain_tensors = False
    no_value = (
        "This tensor stands for many at once (all cotangents of a Jacobian), so it has "
        "no one value: code that looks at values needs experimental_use_pfor=False"
    )

    def __init__(self, sizes=(), strict=()):
        self.sizes, self.strict = tuple(sizes), strict

    def map(self, value, axes=None):
        """Make a batched tensor, dense, or diagonal in ``axes`` (one or many)."""
        if axes is None:
            axes = (None,) * len(self.sizes)
        elif type(axes) is int:
            self.sizes, axes = (value.array.shape[axes],), (axes,)
        return BatchedTensor(value, self, axes)

    def process(self, op, inputs, attributes, below):
        mapped = tuple([type(x) is BatchedTensor and x.owner is self for x in inputs])
        if True not in mapped:
            return process_op(op, inputs, attributes, below)
        narrow = bfloat16_is_loaded() and any(
            [is_bfloat16(x.array.dtype) for x in inputs]
        )
        plain = not below and not kernels_are_wrapped() and not narrow
        first = inputs[mapped.index(True)].axes
        if first.count(None) == len(first) and mapped.count(True) == 1:
            axes, deferred = first, None
        else:
            with use_interpreters(below):
                axes, deferred, inputs = self._resolve_axes(
                    op,
                    inputs,
                    mapped,
                    attributes,
                    plain and op.densify_rule is not None,
                )
        self.check_cost(op, inputs, mapped, attributes, axes, deferred)
        values = [x.value if m else x for x, m in zip(inputs, mapped)]
        result = None
        if plain:
            result = self._run_on_arrays(
                op, inputs, values, mapped, attributes, deferred
            )
        if result is None:
            with use_interpreters(below):
                if deferred is not None:
                    at = mapped.index(True)
                    values[at] = self.densify(inputs[at], deferred).value
                if op.batch_rule is None:
                    result = _loop(op, values, mapped, attributes)
                else:
                    result = op.batch_rule(mapped, *values, **attributes)
        if isinstance(result, (tuple, list)):
            return tuple([self.wrap(r, axes) for r in result])
        return self.wrap(result, axes)

    def _run_on_arrays(self, op, inputs, values, mapped, attributes, deferred):
        """Return the result of a faster rule on arrays, or None if there is no such rule."""
        if deferred is not None:
            at = mapped.index(True)
            x, arrays = inputs[at], [v.array for v in values]
            result = op.densify_rule(at, x.axes[deferred], *arrays, **attributes)
            if result is None:
                return None
            return self._merge_rows(new_tensor(result), x, deferred)
        if op.batch_arrays_rule is not None:
            arrays = [v.array for v in values]
            result = op.batch_arrays_rule(mapped, *arrays, **attributes)
            return None if result is None else new_tensor(result)
        if op.elementwise and _axes_line_up(values, mapped):
            return op.run(values, attributes)
        return None

    def check_cost(self, op, inputs, mapped, attributes, axes, deferred):
        """Hook before an op runs, which may raise."""

    def wrap(self, value, axes):
        """Return the result of an op as a batched tensor."""
        return BatchedTensor(value, self, axes)

    def _resolve_axes(self, op, inputs, mapped, attributes, op_densifies):
        """Find the sparse axes of the output; densify inputs until the op applies.

        Returns these axes, the position of the axis that the op itself makes dense (if
        ``op_densifies``, else None), and the inputs.
        """
        inputs, count = list(inputs), mapped.count(True)
        axes, deferred = [None] * len(self.sizes), None
        for t in range(len(axes)):
            own = tuple([x.axes[t] if m else None for x, m in zip(inputs, mapped)])
            diagonal = len(own) - own.count(None)
            if not diagonal:
                continue
            if diagonal == count and op.diagonal_rule is not None:
                axis = op.diagonal_rule(own, *inputs, **attributes)
                if axis is not None and axis not in axes:
                    axes[t] = axis
                    continue
            if t in self.strict:
                raise NotDiagonal(op)
            if count == 1 and op_densifies and deferred is None:
                self.before_densify(inputs[mapped.index(True)], t)
                deferred = t
                continue
            for i, axis in enumerate(own):
                if axis is not None:
                    inputs[i] = self.densify(inputs[i], t)
        return tuple(axes), deferred, inputs

    def before_densify(self, x, t):
        """Hook before a sparse axis becomes dense, which may raise."""

    def densify(self, x, t):
        """Return a batched tensor with one sparse axis made dense, zeros included."""
        self.before_densify(x, t)
        axes = (*x.axes[:t], None, *x.axes[t + 1 :])
        value = self._merge_rows(embed_diagonal(x.value, x.axes[t]), x, t)
        return self.wrap(value, axes)

    def _merge_rows(self, full, x, t):
        """Merge the n indices of axis ``t`` of ``[n, m, ...]`` into the mapped axis m."""
        n, m, *rest = full.array.shape
        outer = 1
        for size, axis in zip(self.sizes[:t], x.axes[:t]):
            outer *= size if axis is None else 1
        if outer > 1:
            full = reshape(full, (n, outer, m // outer, *rest))
            full = transpose(full, (1, 0, *range(2, len(rest) + 3)))
        if active_interpreter() is None:
            return new_tensor(full.array.reshape(n * m, *rest))
        return reshape(full, (n * m, *rest))

    def densify_like(self, x, seeds):
        """Densify as `densify_all`; repeat a tensor that is not batched for each seed."""
        if type(x) is BatchedTensor and x.owner is self:
            return self.densify_all(x)
        x, count = convert_to_tensor(x), seeds.value.array.shape[0]
        for size, axis in zip(self.sizes, seeds.axes):
            count *= 1 if axis is None else size
        return broadcast_to(x, (count, *x.array.shape))

    def densify_all(self, x):
        """Return a batched tensor as a tensor with all sparse axes made dense."""
        for t, axis in enumerate(x.axes):
            if axis is not None:
                x = self.densify(x, t)
        return x.value


def _axes_line_up(values, mapped):
    """Return whether mapped inputs broadcast with the others without `lift`."""
    ranks = [v.array.ndim - m for v, m in zip(values, mapped)]
    most = max(ranks)
    return all([rank == most for rank, m in zip(ranks, mapped) if m])


def _loop(op, values, mapped, attributes):
    """Run an op without a batch rule once for each mapped value."""
    count = next(v.array.shape[0] for v, m in zip(values, mapped) if m)
    results = []
    for i in range(count):
        row = [getitem(v, i) if m else v for v, m in zip(values, mapped)]
        results.append(op.general(row, attributes))
    if isinstance(results[0], tuple):
        return tuple([stack(list(parts)) for parts in zip(*results)])
    return stack(results)
