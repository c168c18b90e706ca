"""Ops of gradients, for functions that compute derivatives, such as forces."""

import math

import numpy as np

from .arrays import arange, getitem, int64
from .elementwise import _like
from .reductions import _axes

GRADIENTS = {}


def _translates(function):
    GRADIENTS[function.__name__] = function
    return function


def _emit_product(w, *factors):
    first, *rest = factors
    for factor in rest:
        first = w.emit("Mul", first, factor)
    return first


# ------------------------------------------------------------- slopes of functions


@_translates
def tanh_grad(w, g, y):
    return w.emit("Sub", g, _emit_product(w, g, y, y))


@_translates
def tanh_slope(w, g, x):
    # 1 - tanh(x)**2 is 4 s (1 - s) of s = sigmoid(2 x), whose digits do not cancel.
    twice = w.emit("Mul", x, _like(x, 2))
    rest = w.emit("Sigmoid", w.emit("Neg", twice))
    return _emit_product(w, g, w.emit("Sigmoid", twice), rest, _like(x, 4))


@_translates
def sigmoid_slope(w, g, x):
    rest = w.emit("Sigmoid", w.emit("Neg", x))
    return _emit_product(w, g, w.emit("Sigmoid", x), rest)


@_translates
def silu_slope(w, x):
    rest = w.emit("Mul", x, w.emit("Sigmoid", w.emit("Neg", x)))
    return w.emit("Mul", w.emit("Sigmoid", x), w.emit("Add", rest, _like(x, 1)))


@_translates
def gelu_slope(w, x):
    half = w.emit("Erf", w.emit("Mul", x, _like(x, math.sqrt(0.5))))
    share = w.emit("Mul", w.emit("Add", half, _like(x, 1)), _like(x, 0.5))
    square = w.emit("Mul", w.emit("Mul", x, x), _like(x, -0.5))
    density = w.emit("Mul", w.emit("Exp", square), _like(x, 1 / math.sqrt(2 * math.pi)))
    return w.emit("Add", share, w.emit("Mul", x, density))


@_translates
def gelu_by_tanh_slope(w, x):
    # x * sigmoid(2 u) for u = a (x + b x**3)
    a, b = math.sqrt(2 / math.pi), 0.044715
    square = w.emit("Mul", x, x)
    inner = w.emit("Add", w.emit("Mul", square, _like(x, b)), _like(x, 1))
    twice = _emit_product(w, x, inner, _like(x, 2 * a))
    slope = w.emit("Add", w.emit("Mul", square, _like(x, 3 * b)), _like(x, 1))
    slope = w.emit("Mul", slope, _like(x, 2 * a))
    share, rest = w.emit("Sigmoid", twice), w.emit("Sigmoid", w.emit("Neg", twice))
    return w.emit("Add", share, _emit_product(w, x, share, rest, slope))


@_translates
def softmax_slope(w, g, p, *, axis):
    axes = w.axes(*_axes(p, axis))
    slope = w.emit("Mul", g, p)
    for _ in range(2):  # the second time rounding errors are left
        total = w.emit("ReduceSum", slope, axes, keepdims=1)
        slope = w.emit("Sub", slope, w.emit("Mul", p, total))
    return slope


@_translates
def squareplus_slope(w, x, *, b):
    root = w.emit("Sqrt", w.emit("Add", w.emit("Mul", x, x), _like(x, b)))
    share = w.emit("Add", w.emit("Div", x, root), _like(x, 1))
    return w.emit("Mul", share, _like(x, 0.5))


@_translates
def hypot_slope(w, x, y):
    root = w.emit("Add", w.emit("Mul", x, x), w.emit("Mul", y, y))
    quotient = w.emit("Div", x, w.emit("Sqrt", root))
    return w.emit("Where", w.emit("Equal", root, _like(x, 0)), _like(x, 0), quotient)


@_translates
def exp_square(w, x, *, sign):
    return w.emit("Exp", _emit_product(w, x, x, _like(x, sign)))


@_translates
def one_less_square(w, x):
    one = _like(x, 1)
    return w.emit("Mul", w.emit("Sub", one, x), w.emit("Add", one, x))


@_translates
def norm_sqrt(w, x):
    return w.emit("Sqrt", x)


@_translates
def log_or_zero(w, x):
    valid = w.emit("Greater", x, _like(x, 0))
    inside = w.emit("Where", valid, x, _like(x, 1))
    return w.emit("Log", inside)


@_translates
def zero_safe_multiply(w, x, y):
    zero = _like(x, 0)
    none = w.emit("Or", w.emit("Equal", x, zero), w.emit("Equal", y, zero))
    return w.emit("Where", none, zero, w.emit("Mul", x, y))


@_translates
def zero_safe_divide(w, x, y):
    zero = _like(x, 0)
    return w.emit("Where", w.emit("Equal", x, zero), zero, w.emit("Div", x, y))


@_translates
def distance(w, x, y):
    difference = w.emit("Sub", x, y)
    alike = w.emit("And", w.emit("IsNaN", difference), w.emit("Equal", x, y))
    return w.emit("Where", alike, w.emit("Min", x, _like(x, 0)), difference)


# ------------------------------------------------------------ slopes of losses, norms


@_translates
def sigmoid_minus(w, logits, labels):
    yes, no = w.emit("Sigmoid", logits), w.emit("Sigmoid", w.emit("Neg", logits))
    rest = w.emit("Sub", _like(logits, 1), labels)
    return w.emit("Sub", w.emit("Mul", yes, rest), w.emit("Mul", no, labels))


@_translates
def softmax_excess(w, labels, logits):
    shares = w.emit("Softmax", logits, axis=-1)
    total = w.emit("ReduceSum", labels, w.axes(-1), keepdims=1)
    return w.emit("Sub", w.emit("Mul", shares, total), labels)


@_translates
def sparse_softmax_excess(w, labels, logits):
    columns = w.emit("Unsqueeze", w.cast(labels, np.int64), w.axes(-1))
    numbers = arange(w, count=logits.shape[-1], dtype="int64")
    hits = w.cast(w.emit("Equal", columns, numbers), logits.dtype)
    return w.emit("Sub", w.emit("Softmax", logits, axis=-1), hits)


@_translates
def standardize_grad(w, g, normal, inverse, slope, shift, *, axes, centred):
    # inverse * (g - mean(g) - normal * mean(g * normal)) + normal * slope + shift
    axes_tensor = w.axes(*_axes(normal, axes))

    def share(x):
        mean = w.emit("ReduceMean", x, axes_tensor, keepdims=1)
        return w.emit("Mul", inverse, mean)

    slope = w.emit("Sub", slope, share(w.emit("Mul", g, normal)))
    if centred:
        shift = w.emit("Sub", shift, share(g))
    total = w.emit("Add", w.emit("Mul", normal, slope), shift)
    return w.emit("Add", total, w.emit("Mul", g, inverse))


# -------------------------------------------------------------------- adjoints


@_translates
def scatter_index(w, g, *, shape, index):
    # The positions of all entries, indexed in the same way, are those of ``g``.
    count = math.prod(shape)
    positions = w.emit("Reshape", arange(w, count=count, dtype="int64"), w.sizes(shape))
    positions = type(g)(shape, np.dtype(np.int64), w.block, positions)
    chosen = w.emit("Reshape", getitem(w, positions, index=index), w.axes(-1))
    zeros = w.emit("Expand", np.zeros((), g.dtype), w.size(count))
    flat = w.emit("Reshape", g, w.axes(-1))
    full = w.emit("ScatterElements", zeros, chosen, flat, axis=0)
    return w.emit("Reshape", full, w.sizes(shape))


@_translates
def place_along_axis(w, x, indices, *, size, axis):
    shape = list(x.shape)
    shape[axis] = size
    zeros = w.emit("Expand", np.zeros((), x.dtype), w.sizes(shape))
    positions = int64(w, indices)
    return w.emit("ScatterElements", zeros, positions, x, axis=axis % x.rank)


@_translates
def embed_diagonal(w, x, *, axis):
    # x * (position == index)
    size = x.shape[axis]
    numbers = arange(w, count=size, dtype="int64")
    rows = w.emit("Reshape", numbers, w.axes(-1, *[1] * x.rank))
    shape = [1] * (x.rank + 1)
    shape[axis] = -1
    columns = w.emit("Reshape", numbers, w.axes(*shape))
    hits = w.emit("Equal", rows, columns)
    return w.emit("Where", hits, x, _like(x, 0))


@_translates
def take_diagonal(w, x, *, axis):
    axis %= x.rank - 1
    numbers = arange(w, count=x.shape[0], dtype="int64")
    rows = w.emit("Reshape", numbers, w.axes(-1, *[1] * (x.rank - 1)))
    shape = [1] * x.rank
    shape[axis + 1] = -1
    hits = w.emit("Equal", rows, w.emit("Reshape", numbers, w.axes(*shape)))
    chosen = w.emit("Where", hits, x, _like(x, 0))
    return w.emit("ReduceSum", chosen, w.axes(0), keepdims=0)


@_translates
def segment_rows(w, params, segment_ids):
    ids = int64(w, segment_ids)
    low = w.emit("GreaterOrEqual", ids, np.int64(0))
    valid = w.emit("And", low, w.emit("Less", ids, w.number(params.shape[0])))
    rows = w.emit("Gather", params, w.emit("Where", valid, ids, np.int64(0)), axis=0)
    more = range(segment_ids.rank, segment_ids.rank + params.rank - 1)
    if more:
        valid = w.emit("Unsqueeze", valid, w.axes(*more))
    return w.emit("Where", valid, rows, _like(params, 0))
