"""Lowering rules: ops that are not lowered by tracing their kernels.

A rule is called with a `Builder`, the arrays of a node and the attributes, and returns
the outputs of the kernel. It may raise `NotTraceable`: then the kernel is traced, or
called.
"""

import math

import numpy as np

from tapewright.core.hardware.blas import sum_of_squares
from tapewright.core.primitive import get_primitive
from tapewright.ops.array.gather import gather_p, scatter_rows
from tapewright.ops.array.indexing import complete_index, scatter_index
from tapewright.ops.array.joining import concat_p
from tapewright.ops.convolution.windows import resized
from tapewright.ops.image import resampling
from tapewright.ops.linalg.diagonal import embed_diagonal
from tapewright.ops.math import elementwise
from tapewright.ops.math.comparison import where_positive
from tapewright.ops.math.reduction import clip_by_norm_p
from tapewright.ops.nn import activation, cross_entropy
from tapewright.ops.random import philox

from ..instructions.array_instructions import Copy, Index, Routine
from ..instructions.call_instructions import Draw, Gather, Scatter
from ..instructions.scalar_functions import bits_of, kept_bits, positive_bits
from ..passes.map_fusion import has_rows
from . import convolution_rules, window_rules
from .array_functions import NotTraceable, copy_array, join_into
from .array_tracer import HOST_FREE

# Of resampling by loops, whose code grows with both.
MOST_PARTS, MOST_TERMS = 8, 16


def lower_where_positive(builder, x, y):
    """Mask the bits of ``x`` with a mask of where ``y`` is positive."""
    plain = x.dtype == y.dtype and x.dtype.char in "fd" and x.shape == y.shape
    if not plain or not x.size:
        raise NotTraceable
    bits = builder.entrywise(positive_bits, (y.buffer,), y.shape, bits_of(y))
    return builder.entrywise(kept_bits, (x.buffer, bits.buffer), x.shape, x.dtype)


def limited(t, clip_norm, out=None):
    """Return ``t``, scaled down to the norm ``clip_norm`` if its norm is larger."""
    length = np.sqrt(sum_of_squares(np, t))
    if not length <= clip_norm:  # NaN in either
        return np.multiply(t, clip_norm / length, out=out)
    if out is None:
        return t.copy()
    if not np.may_share_memory(out, t):
        np.copyto(out, t)
    return out


def lower_clip_by_norm(builder, t, clip_norm, axes):
    """Compute the norm in one pass; scale in a second one, if need be."""
    if axes is not None or t.dtype.char not in "fd" or clip_norm.dtype != t.dtype:
        raise NotTraceable
    if not t.ndim or t.ndim > 2:
        raise NotTraceable
    operands = (t.buffer, clip_norm.buffer)
    instruction = Routine(limited, operands, builder.node, in_place=0)
    return builder.emit(instruction, t.shape, t.dtype)


def lower_concat(builder, *values, axis):
    """Copy all values of one dtype into one array."""
    if len({v.dtype for v in values}) > 1 or not values[0].ndim:
        raise NotTraceable
    shape = list(values[0].shape)
    shape[axis] = sum([v.shape[axis] for v in values])
    operands = [v.buffer for v in values]
    instruction = Copy(join_into, operands, builder.node, axis)
    return builder.emit(instruction, tuple(shape), values[0].dtype)


def lower_gelu(builder, x):
    """Trace the formula where its maps are fused: gelu and its slope share most of it.

    Otherwise the NumPy kernel, which already runs in blocks, is one call.
    """
    limits = builder.program.limits
    fused = x.size >= limits.fused_entries and has_rows(x, limits)
    if not fused or x.dtype.char not in "fd":
        raise NotTraceable
    return builder.node.op.kernel(np, x)


def lower_power(builder, x, y):
    """Compute the powers of common exponents by products and roots."""
    kernel, exponent = builder.node.op.kernel, y.buffer
    if exponent.is_constant and not exponent.is_view:
        kernel = elementwise.power_of(x, exponent.source) or kernel
    return kernel(np, x, y)


DIVISIONS = (
    elementwise.floordiv,
    elementwise.floormod,
    elementwise.truncatediv,
    elementwise.truncatemod,
)

LOWERING_RULES = {
    **{op.primitive: lower_gelu for op in activation.GELU},
    clip_by_norm_p.primitive: lower_clip_by_norm,
    concat_p.primitive: lower_concat,
    where_positive.primitive: lower_where_positive,
    **convolution_rules.LOWERING_RULES,
}


def lower_sparse_cross_entropy(builder, labels, logits):
    """Check the labels; select the entries by comparing each index with the label."""
    if labels.dtype.kind not in "iu" or labels.shape != logits.shape[:-1]:
        raise NotTraceable
    classes = logits.shape[-1]
    builder.check(cross_entropy.check_labels, labels, {"classes": classes})
    hits = labels[..., None] == np.arange(classes)
    picked = np.where(hits, logits, np.zeros((), logits.dtype)).sum(axis=-1)
    return cross_entropy.loss_of_picked(np, logits, picked)


def lower_division(builder, x, y):
    """Trace a division, of integers only by constants other than 0: it cannot raise."""
    kernel = builder.node.op.kernel
    if x.dtype.kind == "f":
        return kernel(HOST_FREE, x, y)
    if not y.buffer.is_constant or y.buffer.is_view or not y.buffer.source.all():
        raise NotTraceable
    return kernel(np, x, y.buffer.source)


def lower_pad(builder, tensor, constant_values, paddings):
    """Read the tensor within its bounds, and the constant elsewhere."""
    sizes = [n + sum(p) for n, p in zip(tensor.shape, paddings, strict=True)]
    axes = zip(paddings, sizes)
    return builder.read(
        tensor,
        constant_values.reshape(()),
        {i: (Index(1, -before), n) for i, ((before, _), n) in enumerate(axes)},
    )


def lower_scatter_index(builder, g, shape, index):
    """Read ``g`` at the positions that the index selects, and zeros elsewhere."""
    ranges = _selected(shape, index)
    if math.prod(map(len, ranges)) != g.size:  # NumPy broadcasts
        raise NotTraceable
    turns = [slice(None, None, -1 if each.step < 0 else 1) for each in ranges]
    ranges = [each if each.step > 0 else each[::-1] for each in ranges]
    indices = [Index(1, -each.start, each.step) for each in ranges]
    part = g.reshape([len(each) for each in ranges])[tuple(turns)]
    return builder.read(part, 0, dict(enumerate(zip(indices, shape))))


def _selected(shape, index):
    """Return the range of entries that a basic index selects, for each axis."""
    items = [item for item in complete_index(index, len(shape)) if item != "newaxis"]
    return [
        range(n)[item : item + 1 or None]
        if type(item) is int
        else range(n)[slice(*item)]
        for n, item in zip(shape, items, strict=True)
    ]


def lower_upsample(builder, images, axis, times):
    """Broadcast each entry along a new axis behind its own."""
    shape, at = images.shape, images.ndim + axis + 1
    each = images.reshape(*shape[:at], 1, *shape[at:])
    each = np.broadcast_to(each, (*shape[:at], times, *shape[at:]))
    return copy_array(builder, each).reshape(resized(shape, axis, shape[axis] * times))


def lower_embed_diagonal(builder, x, axis):
    """Keep ``x`` where the index along the new axis equals the index along ``axis``."""
    count = x.shape[axis]
    sizes = [count if i == axis % x.ndim else 1 for i in range(x.ndim)]
    picks = np.eye(count, dtype=bool).reshape(count, *sizes)
    return np.where(picks, x, np.zeros((), x.dtype))


def lower_resample(builder, images, axis, size, method, antialias):
    """Apply the matrix of the resampling, by `_banded`."""
    matrix = resampling.matrix_of(size, images.shape[axis], method, antialias)
    return _banded(builder, images, axis, matrix)


def lower_resample_back(builder, g, extent, axis, size, method, antialias):
    """Apply the transposed matrix of the resampling, by `_banded`."""
    matrix = resampling.matrix_of(size, extent, method, antialias)
    return _banded(builder, g, axis, matrix.T)


def _banded(builder, x, axis, matrix):
    """Multiply an axis by a banded matrix, if one of its sizes divides the other.

    Entry ``times * i + r`` of the result is a sum over entries ``step * i + offset``,
    with few offsets for each ``r``.
    """
    count, extent = matrix.shape
    times, step = max(count // extent, 1), max(extent // count, 1)
    if count * step != extent * times or times > MOST_PARTS or x.dtype.kind != "f":
        raise NotTraceable
    parts = [
        _weighted_sum(builder, x, axis, matrix[r::times], step) for r in range(times)
    ]
    if times == 1:
        return parts[0]
    shape, at = list(x.shape), x.ndim + axis
    shape[at] = count
    return np.stack(parts, at + 1).reshape(shape)


def _weighted_sum(builder, x, axis, rows, step):
    """Multiply an axis by a matrix whose band moves by ``step`` columns a row."""
    (count, extent), total = rows.shape, None
    at, columns = np.nonzero(rows)
    offsets = np.unique(columns - step * at) if len(at) else np.array([extent])
    if len(offsets) > MOST_TERMS:
        raise NotTraceable
    for offset in offsets.tolist():
        column = step * np.arange(count) + offset
        inside = (column >= 0) & (column < extent)
        weights = np.where(inside, rows[np.arange(count), column % extent], 0)
        weights = weights.astype(x.dtype).reshape(-1, *(1,) * (-axis - 1))
        entries = builder.read(x, 0, {x.ndim + axis: (Index(step, offset), count)})
        term = entries * weights
        total = term if total is None else total + term
    return total


# Rules for targets that compile loops: for ops that raise on some values, or that write
# into parts of an array.
LOOP_RULES = {
    cross_entropy.sparse_cross_entropy.primitive: lower_sparse_cross_entropy,
    **{op.primitive: lower_division for op in DIVISIONS},
    elementwise.power.primitive: lower_power,
    get_primitive("pad"): lower_pad,
    get_primitive("upsample"): lower_upsample,
    embed_diagonal.primitive: lower_embed_diagonal,
    scatter_index.primitive: lower_scatter_index,
    **convolution_rules.LOOP_RULES,
    **window_rules.LOOP_RULES,
}

# Further ones for the CPU; a GPU has kernels of its own for these ops.
CPU_LOOP_RULES = {
    resampling.resample.primitive: lower_resample,
    resampling.resample_back.primitive: lower_resample_back,
}

# Rules for arithmetic that NumPy computes faster in another way than the kernel's.
HOST_RULES = (
    lower_gelu,
    lower_clip_by_norm,
    lower_where_positive,
    convolution_rules.lower_relu,
)

# Whole kernels of which a target knows the meaning: primitive -> class of instructions.
KERNEL_INSTRUCTIONS = {
    gather_p.primitive: Gather,
    scatter_rows.primitive: Scatter,
    philox.dropout_mask.primitive: Draw,
    philox.random_binomial.primitive: Draw,
    philox.random_categorical.primitive: Draw,
    philox.random_integers.primitive: Draw,
    philox.random_normal.primitive: Draw,
    philox.random_permutation.primitive: Draw,
    philox.random_poisson.primitive: Draw,
    philox.random_seeds.primitive: Draw,
    philox.random_standard_gamma.primitive: Draw,
    philox.random_uniform.primitive: Draw,
}
