"""The rules of algebra by which an op gives way to a cheaper one, or to none.

Every rule gives the very numbers of the ops that it replaces, in floating point as well:
``x * 1`` is ``x``, but ``x + 0`` is not where ``x`` is -0.0. (The sign of a NaN may be
another.) Rules that reorder arithmetic have no place here.
"""

import math

import numpy as np

from tapewright.core.tensor import new_tensor
from tapewright.ops.array import conversion, joining, shape
from tapewright.ops.linalg import matmul
from tapewright.ops.math import comparison, elementwise
from tapewright.ops.nn.bias import multiply_add

from ..tracing.graph import is_value
from .rewriting import is_op, is_static, maker, rewrite, same_shape

__all__ = ["COMMUTATIVE", "RULES", "algebra"]

ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATIVE = (
    function.primitive
    for function in (
        elementwise.add,
        elementwise.subtract,
        elementwise.multiply,
        elementwise.divide,
        elementwise.negative,
    )
)
RESHAPE, TRANSPOSE = shape.reshape.primitive, shape.transpose.primitive
BROADCAST, CAST = shape.broadcast_to.primitive, conversion.cast_p.primitive

COMMUTATIVE = {ADD, MULTIPLY}
# Entry by entry, and to the bit the same whatever the strides of their inputs are.
EXACT = {ADD, SUBTRACT, MULTIPLY, DIVIDE, multiply_add.primitive} | {
    getattr(comparison, name).primitive
    for name in ("equal", "not_equal", "less", "less_equal", "greater",
                 "greater_equal", "logical_and", "logical_or", "logical_xor")
}  # fmt: skip

RULES = {}  # primitive -> functions (rewriter, node, *inputs) -> what replaces it, or None


def rule(*ops):
    """Decorator: a rule for these ops."""

    def attach(function):
        for op in ops:
            op = getattr(op, "primitive", op)
            RULES.setdefault(op, []).append(function)
        return function

    return attach


def algebra(graph):
    """Replace ops by cheaper ones that give the same numbers, or by none."""

    def replaced(rewriter, node, inputs):
        if node.hands_on:
            return inputs[: len(node.outputs)]
        found = simplified(rewriter, node, inputs) if is_op(node) else None
        return None if found is None else (found,)

    return rewrite(graph, replaced)


def simplified(rewriter, node, inputs):
    """What takes the place of a node's one output; None if the node is to stay."""
    for function in RULES.get(node.op, ()):
        found = function(rewriter, node, *inputs)
        if found is not None:
            return found
    return None


def _again(rewriter, node, op, inputs, attributes=None):
    """Another op in the place of a node, simplified in turn."""
    out = node.outputs[0]
    spec = out.shape, out.dtype
    value = rewriter.make(op, inputs, attributes or {}, node.line, spec)
    made = rewriter.nodes.pop()
    found = simplified(rewriter, made, made.inputs)
    if found is not None:
        return found
    rewriter.nodes.append(made)
    return value


# --------------------------------------------------------------------------- constants


def uniform(x):
    """The one number of which a constant is made, as an array of rank 0; else None."""
    if is_value(x) or not isinstance(x.array, np.ndarray) or not x.array.size:
        return None
    array = x.array
    if array.dtype.kind not in "biuf" or array.itemsize > 8:
        return None
    first = array[(0,) * array.ndim]
    if any(array.strides) and array.size > 1:
        bits = np.ascontiguousarray(array).reshape(-1)
        if bits[-1] != bits[0] or bits[bits.size // 2] != bits[0]:
            return None
        bits = bits.view(f"u{array.itemsize}")  # which tell -0.0 from 0.0
        if not (bits == bits[0]).all():
            return None
    return np.asarray(first, array.dtype)


def is_number(x, number):
    """Whether a constant is this number throughout; the sign of a zero counts."""
    if is_value(x) or not isinstance(x.array, np.ndarray):
        return False
    array = x.array
    if not array.size or array.dtype.kind not in "biuf":
        return False
    if array[(0,) * array.ndim] != number:  # known of most without a look at the rest
        return False
    found = uniform(x)
    if found is None:
        return False
    return found.dtype.kind != "f" or np.signbit(found) == (
        math.copysign(1, number) < 0
    )


@rule(*EXACT)
def narrower(rewriter, node, *inputs):
    """``f(broadcast(x), y)`` is ``f(x, y)`` where ``y`` is as large as the result."""
    found = [_narrowed(x) for x in inputs]
    if found.count(None) == len(found):
        return None
    out = node.outputs[0]
    full = [i for i, x in enumerate(inputs) if same_shape(_spec(x), out)]
    narrow = list(inputs)
    for i, smaller in enumerate(found):
        others = [j for j in full if j != i]
        if smaller is not None and others:
            narrow[i], full = smaller, others
    if all([a is b for a, b in zip(narrow, inputs, strict=True)]):
        return None
    return _again(rewriter, node, node.op, narrow, node.attributes)


def _narrowed(x):
    """What was repeated to make ``x``, or None."""
    if is_value(x):
        node = maker(x, BROADCAST)
        return None if node is None else node.inputs[0]
    number = uniform(x) if x.array.ndim else None
    return None if number is None else new_tensor(number)


def _spec(x):
    return x if is_value(x) else x.array


# ------------------------------------------------------------------------- arithmetic


@rule(MULTIPLY)
def times_one(rewriter, node, x, y):
    """``x * 1`` is ``x``."""
    for one, other in ((x, y), (y, x)):
        if is_number(one, 1) and same_shape(_spec(other), node.outputs[0]):
            return other
    return None


@rule(DIVIDE)
def over_constant(rewriter, node, x, y):
    """``x / 1`` is ``x``; ``x / 2^k`` is a product with ``2^-k``, exact like it."""
    out = node.outputs[0]
    if is_value(y) or _spec(x).dtype != out.dtype or out.dtype.kind != "f":
        return None
    if is_number(y, 1):
        return x if same_shape(_spec(x), out) else None
    number = uniform(y)
    if number is None or abs(math.frexp(number)[0]) != 0.5:
        return None
    inverse, limits = 1 / float(number), np.finfo(out.dtype)
    if not float(limits.tiny) <= abs(inverse) <= float(limits.max):
        return None
    return _again(rewriter, node, MULTIPLY, (x, _filled(inverse, y)))


def _filled(number, x):
    """A number in the dtype and shape of a constant."""
    array = np.asarray(number, x.array.dtype)
    return new_tensor(np.broadcast_to(array, x.array.shape) if x.array.ndim else array)


@rule(ADD, SUBTRACT)
def plus_nothing(rewriter, node, x, y):
    """``x - 0`` and ``x + -0.0`` are ``x``; of integers ``x + 0``, too."""
    out, zero = node.outputs[0], 0.0 if node.op is SUBTRACT else -0.0
    pairs = [(x, y)] if node.op is SUBTRACT else [(x, y), (y, x)]
    for kept, other in pairs:
        if is_number(other, zero) and same_shape(_spec(kept), out):
            return kept
    return None


@rule(ADD)
def plus_negative(rewriter, node, x, y):
    """``x + (-y)`` is ``x - y``."""
    for first, second in ((x, y), (y, x)):
        inner = maker(second, NEGATIVE)
        if inner is not None:
            return _again(rewriter, node, SUBTRACT, (first, inner.inputs[0]))
    return None


@rule(SUBTRACT)
def minus_negative(rewriter, node, x, y):
    """``x - (-y)`` is ``x + y``."""
    inner = maker(y, NEGATIVE)
    return inner and _again(rewriter, node, ADD, (x, inner.inputs[0]))


@rule(MULTIPLY, DIVIDE)
def two_negatives(rewriter, node, x, y):
    """``(-x) * (-y)`` is ``x * y``, and ``(-x) * c`` is ``x * (-c)``; quotients, too."""
    first, second = maker(x, NEGATIVE), maker(y, NEGATIVE)
    if first is second is None or node.outputs[0].dtype.kind != "f":
        return None
    if first is not None and second is not None:
        inputs = first.inputs[0], second.inputs[0]
    elif first is not None and uniform(y) is not None:
        inputs = first.inputs[0], _filled(-uniform(y), y)
    elif second is not None and uniform(x) is not None:
        inputs = _filled(-uniform(x), x), second.inputs[0]
    else:
        return None
    return _again(rewriter, node, node.op, inputs)


@rule(NEGATIVE)
def double_negative(rewriter, node, x):
    """``-(-x)`` is ``x``."""
    inner = maker(x, NEGATIVE)
    return inner and inner.inputs[0]


# ---------------------------------------------------------------- values passed on


@rule(conversion.identity, conversion.stop_gradient)
def passed_on(rewriter, node, x):
    """The identity; what gradients it lets pass was settled when the graph was traced."""
    return x


@rule(CAST)
def cast_back(rewriter, node, x):
    """A cast to the dtype that is there, or back from a wider one."""
    out, inner = node.outputs[0], maker(x, CAST)
    if _spec(x).dtype == out.dtype:
        return x
    if inner is None:
        return None
    source, between = _spec(inner.inputs[0]).dtype, _spec(x).dtype
    alike = source.kind == between.kind and source.kind in "iufc"
    wider = alike and source.itemsize <= between.itemsize
    return inner.inputs[0] if wider and source == out.dtype else None


@rule(comparison.where_p)
def known_condition(rewriter, node, condition, x, y):
    """A choice whose outcome is known."""
    number = uniform(condition)
    if number is None:
        return None
    chosen = x if number else y
    return chosen if same_shape(_spec(chosen), node.outputs[0]) else None


@rule(shape.sum_to_shape)
def sum_of_nothing(rewriter, node, x):
    """A sum down to the shape that is there."""
    return x if same_shape(_spec(x), node.outputs[0]) else None


@rule(BROADCAST)
def broadcast_of_broadcast(rewriter, node, x):
    """One broadcast for two, none where the shape stays."""
    if same_shape(_spec(x), node.outputs[0]):
        return x
    inner = maker(x, BROADCAST)
    if inner is None:
        return None
    return _again(rewriter, node, BROADCAST, inner.inputs, node.attributes)


@rule(joining.concat_p)
def concat_of_one(rewriter, node, *values):
    """A list of one tensor, joined."""
    return values[0] if len(values) == 1 else None


# ------------------------------------------------------------------------------ shapes


@rule(RESHAPE, shape.squeeze, shape.expand_dims)
def one_reshape(rewriter, node, x):
    """One reshape for a chain of changes of shape, none where the shape stays."""
    out = node.outputs[0]
    if not is_static(out):
        return None
    if same_shape(_spec(x), out):
        return x
    inner = maker(x, RESHAPE)
    if inner is None and node.op is RESHAPE:
        return None
    source = x if inner is None else inner.inputs[0]
    return _again(rewriter, node, RESHAPE, (source,), {"shape": out.shape})


@rule(TRANSPOSE)
def one_transpose(rewriter, node, a):
    """One transpose for two, none where the order stays."""
    if not _is_plain_transpose(node, a):
        return None
    order, inner = _order(node), maker(a, TRANSPOSE)
    if inner is not None and _is_plain_transpose(inner, inner.inputs[0]):
        before = _order(inner)
        source, order = inner.inputs[0], tuple([before[p] for p in order])
    elif order == tuple(range(len(order))):
        return a
    else:
        return None
    return _again(rewriter, node, TRANSPOSE, (source,), {"perm": order})


@rule(matmul.matmul_primitive)
def product_of_transposed(rewriter, node, a, b):
    """A product that takes over the transposes of its factors."""
    flags, inputs, changed = dict(node.attributes), [a, b], False
    for i, (x, flag) in enumerate(((a, "transpose_a"), (b, "transpose_b"))):
        inner = maker(x, TRANSPOSE)
        if inner is None or not _is_plain_transpose(inner, inner.inputs[0]):
            continue
        rank = len(x.shape)
        if _order(inner) == (*range(rank - 2), rank - 1, rank - 2):
            inputs[i], flags[flag], changed = inner.inputs[0], not flags[flag], True
    return _again(rewriter, node, node.op, inputs, flags) if changed else None


def _is_plain_transpose(node, a):
    return not (node.attributes["conjugate"] and _spec(a).dtype.kind == "c")


def _order(node):
    """The axes of a transpose, each from 0 on."""
    rank, perm = len(node.outputs[0].shape), node.attributes["perm"]
    return tuple(range(rank))[::-1] if perm is None else tuple([p % rank for p in perm])
