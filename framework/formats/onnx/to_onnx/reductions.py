"""Reductions, cumulative sums, normalization, softmax, sorting."""

import math

import numpy as np

from tapewright.core.shapes.symbolic_dim import is_symbolic

from ..operands import Deferred, First, Operand, Plan, channels_first
from .arrays import int64
from .elementwise import _like, _numpy_dtype, logaddexp

REDUCTIONS = {}


def _translates(function):
    REDUCTIONS[function.__name__] = function
    return function


def _axes(x, axis):
    """Return axes as a list of non-negative numbers; None stands for all."""
    if axis is None:
        return list(range(x.rank))
    return sorted({n % x.rank for n in ([axis] if isinstance(axis, int) else axis)})


def _reduced(w, op, x, axis, keepdims):
    axes = _axes(x, axis)
    if not axes:
        return w.emit("Identity", x)
    if isinstance(x, Operand) and x.is_first and 3 <= x.rank <= 5:
        order = channels_first(range(x.rank))
        axes_first = w.axes(*[order.index(axis) for axis in axes])
        if keepdims:
            return First(w.emit(op, x.first, axes_first, keepdims=1))
        rest = [axis for axis in order if axis not in axes]
        if rest == sorted(rest):
            return w.emit(op, x.first, axes_first, keepdims=0)
    return w.emit(op, x, w.axes(*axes), keepdims=int(keepdims))


def _reduction(name, op):
    def translate(w, input_tensor, *, axis, keepdims):
        return _reduced(w, op, input_tensor, axis, keepdims)

    translate.__name__ = name
    return _translates(translate)


_reduction("reduce_sum", "ReduceSum")
_reduction("reduce_prod", "ReduceProd")
_reduction("reduce_max", "ReduceMax")
_reduction("reduce_min", "ReduceMin")
_reduction("reduce_logsumexp", "ReduceLogSumExp")


@_translates
def reduce_mean(w, input_tensor, *, axis, keepdims):
    x = input_tensor
    if x.dtype.kind == "f":
        return _reduced(w, "ReduceMean", x, axis, keepdims)
    axes = _axes(x, axis)
    if not axes:
        return w.emit("Identity", x)
    total = w.emit("ReduceSum", int64(w, x), w.axes(*axes), keepdims=int(keepdims))
    count = w.number(math.prod([x.shape[i] for i in axes]))
    return w.cast(w.emit("Div", total, count), x.dtype)


def _of_truths(name, op):
    def translate(w, input_tensor, *, axis, keepdims):
        numbers = w.cast(input_tensor, np.int32)
        axes = _axes(input_tensor, axis)
        if not axes:
            return w.emit("Identity", input_tensor)
        extreme = w.emit(op, numbers, w.axes(*axes), keepdims=int(keepdims))
        return w.cast(extreme, np.bool_)

    translate.__name__ = name
    return _translates(translate)


_of_truths("reduce_any", "ReduceMax")
_of_truths("reduce_all", "ReduceMin")


@_translates
def count_nonzero(w, input_tensor, *, axis, keepdims):
    x = input_tensor
    counted = x if x.dtype.kind == "b" else w.cast(x, np.bool_)
    ones, axes = w.cast(counted, np.int64), _axes(x, axis)
    if not axes:
        return ones
    return w.emit("ReduceSum", ones, w.axes(*axes), keepdims=int(keepdims))


@_translates
def sum_to_shape(w, x, *, shape):
    lead = x.rank - len(shape)
    ones = [
        i
        for i, n in enumerate(shape, lead)
        if not is_symbolic(n)
        and n == 1
        and (is_symbolic(x.shape[i]) or x.shape[i] != 1)
    ]
    total = x
    if ones:
        total = w.emit("ReduceSum", total, w.axes(*ones), keepdims=1)
    if lead:
        total = w.emit("ReduceSum", total, w.axes(*range(lead)), keepdims=0)
    return w.emit("Identity", total)


@_translates
def l2_loss(w, t):
    total = w.emit("ReduceSumSquare", t, w.axes(*range(t.rank)), keepdims=0)
    return w.emit("Mul", total, _like(t, 0.5))


def _norm(w, x, axes, keepdims):
    if not axes:
        return w.emit("Abs", x)
    return w.emit("ReduceL2", x, w.axes(*axes), keepdims=keepdims)


@_translates
def global_norm(w, *t_list):
    squares = [
        w.emit("ReduceSumSquare", t, w.axes(*range(t.rank)), keepdims=0) for t in t_list
    ]
    return w.emit("Sqrt", w.emit("Sum", *squares))


@_translates
def clip_by_norm(w, t, clip_norm, *, axes):
    norm = _norm(w, t, _axes(t, axes), 1)
    return w.emit("Div", w.emit("Mul", t, clip_norm), w.emit("Max", norm, clip_norm))


# ----------------------------------------------------------------------- normalization


@_translates
def moments(w, x, *, axes):
    if not _axes(x, axes):
        return [w.emit("Identity", x), w.emit("Sub", x, x)]
    axes = w.axes(*_axes(x, axes))
    mean = w.emit("ReduceMean", x, axes, keepdims=1)
    centred = w.emit("Sub", x, mean)
    variance = w.emit("ReduceMean", w.emit("Mul", centred, centred), axes, keepdims=1)
    return [mean, variance]


class LayerNormalization(Plan):
    """A normalization over the last axes, with a constant scale and offset."""

    def __init__(self, x, axis, epsilon, scale=None, offset=None):
        self.x, self.axis, self.epsilon = x, axis, epsilon
        self.scale, self.offset = scale, offset

    def absorbing(self, name, *operands):
        if name not in ("multiply", "add", "multiply_add") or self.offset is not None:
            return None
        if name == "multiply" and self.scale is not None:
            return None
        if name == "multiply_add" and self.scale is not None:
            return None
        dims = self.x.shape[self.axis :]
        if any([x.value is None or x.shape != dims for x in operands]):
            return None
        scale = self.scale if name == "add" else operands[0]
        offset = None if name == "multiply" else operands[-1]
        return LayerNormalization(self.x, self.axis, self.epsilon, scale, offset)

    def write(self, block):
        x, scale = self.x, self.scale
        if scale is None:
            scale = np.ones(x.shape[self.axis :], x.dtype)
        return block.emit(
            "LayerNormalization",
            x,
            scale,
            self.offset,
            axis=self.axis,
            epsilon=float(self.epsilon),
        )


@_translates
def standardize(w, x, *, axes, epsilon, centred):
    axes = _axes(x, axes)
    axes_tensor = w.axes(*axes)

    def mean(block):
        return block.emit("ReduceMean", x, axes_tensor, keepdims=1)

    def centre(block):
        return block.emit("Sub", x, mean(block)) if centred else x

    def variance(block):
        there = centre(block)
        return block.emit(
            "ReduceMean", block.emit("Mul", there, there), axes_tensor, keepdims=1
        )

    def normal(block):
        sum_ = block.emit("Add", variance(block), _like(x, epsilon))
        return block.emit("Div", centre(block), block.emit("Sqrt", sum_))

    def no_mean(block):
        return block.emit("Expand", _like(x, 0), block.emit("Shape", variance(block)))

    plan = Deferred(normal)
    rows = x.shape[axes[0] :] if axes else (None,)
    last = axes == list(range(x.rank - len(axes), x.rank))
    if centred and last and not any([is_symbolic(n) for n in rows]):
        plan = LayerNormalization(x, axes[0], epsilon)
    return [plan, Deferred(mean if centred else no_mean), Deferred(variance)]


@_translates
def adjust_contrast(w, images, contrast_factor):
    mean = w.emit("ReduceMean", images, w.axes(-3, -2), keepdims=1)
    scaled = w.emit("Mul", w.emit("Sub", images, mean), contrast_factor)
    return w.emit("Add", scaled, mean)


def _softmax(name, op):
    def translate(w, logits, *, axis):
        axes = _axes(logits, axis)
        if len(axes) == 1:
            return w.emit(op, logits, axis=axes[0])
        axes_tensor = w.axes(*axes)
        shifted = w.emit(
            "Sub", logits, w.emit("ReduceMax", logits, axes_tensor, keepdims=1)
        )
        exps = w.emit("Exp", shifted)
        total = w.emit("ReduceSum", exps, axes_tensor, keepdims=1)
        if op == "Softmax":
            return w.emit("Div", exps, total)
        return w.emit("Sub", shifted, w.emit("Log", total))

    translate.__name__ = name
    return _translates(translate)


_softmax("softmax", "Softmax")
_softmax("log_softmax", "LogSoftmax")


@_translates
def softmax_cross_entropy_with_logits(w, labels, logits):
    logs = w.emit("LogSoftmax", logits, axis=-1)
    # A label of zero counts nothing, also for a logit of -inf.
    product = w.emit("Mul", labels, logs)
    is_zero = w.emit("Equal", labels, _like(labels, 0))
    product = w.emit("Where", is_zero, _like(labels, 0), product)
    return w.emit("Neg", w.emit("ReduceSum", product, w.axes(-1), keepdims=0))


@_translates
def sparse_softmax_cross_entropy_with_logits(w, labels, logits):
    logs = w.emit("LogSoftmax", logits, axis=-1)
    indices = w.emit("Unsqueeze", w.cast(labels, np.int64), w.axes(-1))
    chosen = w.emit("GatherElements", logs, indices, axis=-1)
    return w.emit("Neg", w.emit("Squeeze", chosen, w.axes(-1)))


# ------------------------------------------------------------------- along one axis


@_translates
def cumsum(w, x, *, axis, exclusive, reverse):
    axis = np.int64(axis % x.rank)
    return w.emit("CumSum", x, axis, exclusive=int(exclusive), reverse=int(reverse))


def _scanned(w, inputs, axis, reverse, start, step):
    """Scan an axis with ``step(state, *entries) -> (state, output)``; return the outputs."""
    x = inputs[0]
    axis %= x.rank
    if 0 in [n for n in x.shape if not is_symbolic(n)]:
        return w.emit("Identity", inputs[-1])
    shape = [n for i, n in enumerate(x.shape) if i != axis]
    state = Operand(
        tuple(shape),
        x.dtype,
        w.block,
        w.emit("Expand", _like(x, start), w.sizes(shape)),
    )
    names = [w.new_name(hint) for hint in ("state", *["entry"] * len(inputs))]

    def write():
        own = [Operand(tuple(shape), x.dtype, w.block, name) for name in names]
        return [Operand(tuple(shape), x.dtype, w.block, name) for name in step(*own)]

    types = [w.value_info(name, x.dtype, x.rank - 1) for name in names]
    return w.emit(
        "Scan",
        state,
        *inputs,
        outputs=2,
        body=w.subgraph("step", write, types),
        num_scan_inputs=len(inputs),
        scan_input_axes=[axis] * len(inputs),
        scan_output_axes=[axis],
        scan_input_directions=[int(reverse)] * len(inputs),
        scan_output_directions=[int(reverse)],
    )[1]


@_translates
def cumprod(w, x, *, axis, exclusive, reverse):
    def step(state, entry):
        after = w.emit("Mul", state, entry)
        return after, w.emit("Identity", state if exclusive else after)

    return _scanned(w, [x], axis, reverse, 1, step)


@_translates
def linear_scan(w, a, b, *, axis, reverse):
    def step(state, factor, term):
        # The first factor, which may be infinite, meets a state of zero.
        is_zero = w.emit("Equal", state, _like(a, 0))
        product = w.emit("Mul", factor, state)
        product = w.emit("Where", is_zero, _like(a, 0), product)
        after = w.emit("Add", product, term)
        return after, w.emit("Identity", after)

    return _scanned(w, [a, b], axis, reverse, 0, step)


@_translates
def cumulative_logsumexp(w, x, *, axis, reverse):
    def step(state, entry):
        after = logaddexp(w, state, entry, log_base=1.0)
        return after, w.emit("Identity", after)

    return _scanned(w, [x], axis, reverse, -np.inf, step)


def _extreme(name, op):
    def translate(w, input, *, axis, output_type):
        if input.dtype.kind == "b":
            input = w.cast(input, np.int32)
        index = w.emit(op, input, axis=axis, keepdims=0)
        dtype = _numpy_dtype(output_type)
        return index if dtype == np.int64 else w.cast(index, dtype)

    translate.__name__ = name
    return _translates(translate)


_extreme("argmax", "ArgMax")
_extreme("argmin", "ArgMin")


def _top(w, x, axis, k, largest):
    return w.emit("TopK", x, w.size(k), outputs=2, axis=axis, largest=largest, sorted=1)


@_translates
def top_k(w, input, *, k, index_type):
    values, indices = _top(w, input, -1, k, 1)
    dtype = _numpy_dtype(index_type)
    return [values, indices if dtype == np.int64 else w.cast(indices, dtype)]


@_translates
def sort(w, values, *, axis, descending):
    axis %= values.rank
    return _top(w, values, axis, values.shape[axis], int(descending))[0]


@_translates
def argsort(w, values, *, axis, descending):
    axis %= values.rank
    indices = _top(w, values, axis, values.shape[axis], int(descending))[1]
    return w.cast(indices, np.int32)


@_translates
def searchsorted(w, sorted_sequence, values, *, right, out_type):
    # The count of smaller entries, for each value.
    rows = w.emit("Unsqueeze", sorted_sequence, w.axes(-2))
    columns = w.emit("Unsqueeze", values, w.axes(-1))
    op = "LessOrEqual" if right else "Less"
    before = w.cast(w.emit(op, rows, columns), np.int64)
    count = w.emit("ReduceSum", before, w.axes(-1), keepdims=0)
    dtype = _numpy_dtype(out_type)
    return count if dtype == np.int64 else w.cast(count, dtype)


@_translates
def bincount(w, arr, *, size, dtype, binary_output):
    values = w.emit("Unsqueeze", w.cast(arr, np.int64), w.axes(-1))
    numbers = np.arange(size) if not is_symbolic(size) else None
    if numbers is None:
        numbers = w.emit("Range", np.int64(0), w.number(size), np.int64(1))
    hits = w.cast(w.emit("Equal", values, numbers), np.int32)
    op = "ReduceMax" if binary_output else "ReduceSum"
    counts = w.emit(op, hits, w.axes(-2), keepdims=0)
    dtype = _numpy_dtype(dtype)
    return counts if dtype == np.int32 else w.cast(counts, dtype)
