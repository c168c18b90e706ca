"""Algebraic simplification: rules that replace an op by a cheaper one, or by none.

Every rule preserves the values of the ops that it replaces, in floating point too: ``x
* 1`` is ``x``, but ``x + 0`` is not where ``x`` is -0.0. (The sign of a NaN may
differ.) Rules that reorder arithmetic have no place here.
"""

import math

import numpy as np

from tapewright.core.dtypes import finfo, kind_of
from tapewright.core.op_definition.op_registry import list_ops
from tapewright.core.tensor import new_tensor
from tapewright.ops.array import conversion, joining, shape
from tapewright.ops.linalg import matmul
from tapewright.ops.math import comparison, elementwise

from ..tracing.graph import is_value
from .patterns import Constant, Number, Op, Rules, Term, uniform
from .rewriting import is_op, is_static, producer, rewrite, same_shape, shaped

ADD, SUBTRACT = Op(elementwise.add), Op(elementwise.subtract)
MULTIPLY, DIVIDE = Op(elementwise.multiply), Op(elementwise.divide)
NEGATIVE = Op(elementwise.negative)
RESHAPE, TRANSPOSE = Op(shape.reshape), Op(shape.transpose)
SQUEEZE, EXPAND = Op(shape.squeeze), Op(shape.expand_dims)
BROADCAST, SUM_TO = Op(shape.broadcast_to), Op(shape.sum_to_shape)
CAST, WHERE = Op(conversion.cast_p), Op(comparison.where_p)
IDENTITY, STOP = Op(conversion.identity), Op(conversion.stop_gradient)
CONCAT, MATMUL = Op(joining.concat_p), Op(matmul.matmul_p)


def algebra(graph):
    """Replace ops by cheaper ones with the same results, or remove them: `RULES`."""

    def replaced(rewriter, node, inputs):
        if node.is_alias:
            return inputs[: len(node.outputs)]
        replacement = RULES.replacement(rewriter, node, inputs) if is_op(node) else None
        return None if replacement is None else (replacement,)

    return rewrite(graph, replaced)


def narrower(node, inputs):
    """``f(broadcast(x), y)`` is ``f(x, y)`` if ``y`` has the shape of the result."""
    narrowed = [_narrowed(x) for x in inputs]
    if narrowed.count(None) == len(narrowed):
        return None
    out = node.outputs[0]
    full = [i for i, x in enumerate(inputs) if same_shape(shaped(x), out)]
    narrow = list(inputs)
    for i, smaller in enumerate(narrowed):
        others = [j for j in full if j != i]
        if smaller is not None and others:
            narrow[i], full = smaller, others
    if all([a is b for a, b in zip(narrow, inputs, strict=True)]):
        return None
    return Term(node.op, narrow, node.attributes)


def _narrowed(x):
    """Return the operand of the broadcast that produced ``x``, or None."""
    if is_value(x):
        node = producer(x, BROADCAST.primitive)
        return None if node is None else node.inputs[0]
    number = uniform(x) if x.array.ndim else None
    return None if number is None else new_tensor(number)


# ------------------------------------------------------------------------- arithmetic


def over_constant(node, x, c):
    """``x / 2^k`` is a product with ``2^-k``, equally exact."""
    dtype, number = node.outputs[0].dtype, uniform(c)
    if shaped(x).dtype != dtype or kind_of(dtype) != "f":
        return None
    if abs(math.frexp(number)[0]) != 0.5:
        return None
    inverse, limits = 1 / float(number), finfo(dtype)
    if not float(limits.tiny) <= abs(inverse) <= float(limits.max):
        return None
    return MULTIPLY(x, _filled(inverse, c))


def _filled(number, x):
    """Return a scalar in the dtype and shape of a constant."""
    array = np.asarray(number, x.array.dtype)
    return new_tensor(np.broadcast_to(array, x.array.shape) if x.array.ndim else array)


def without_signs(node, x, y):
    """``(-x) * (-y)`` is ``x * y``; the same for quotients."""
    return Term(node.op, (x, y), {}) if _is_floating(node) else None


def negated_constant(node, x, c):
    """``(-x) * c`` is ``x * (-c)``; the same for quotients."""
    return (
        Term(node.op, (x, _filled(-uniform(c), c)), {}) if _is_floating(node) else None
    )


def negated_dividend(node, x, c):
    """``c / (-x)`` is ``(-c) / x``."""
    return DIVIDE(_filled(-uniform(c), c), x) if _is_floating(node) else None


def _is_floating(node):
    return kind_of(node.outputs[0].dtype) == "f"


# ---------------------------------------------------------------- values passed on


def cast_back(node, x):
    """A cast to a wider dtype of the same kind and back is the original value.

    float16 and bfloat16 have the same size, and neither can represent the other.
    """
    source, between = shaped(x).dtype, shaped(node.inputs[0]).dtype
    alike = kind_of(source) == kind_of(between) and kind_of(source) in "iufc"
    fits = source.itemsize < between.itemsize or source == between
    return x if alike and fits else None


def chosen(node, condition, x, y):
    """A selection whose condition is known."""
    return x if uniform(condition) else y


# ------------------------------------------------------------------------------ shapes


def reshaped(node, x):
    """One reshape for a chain of reshapes."""
    out = node.outputs[0]
    return RESHAPE(x, shape=out.shape) if is_static(out) else None


def broadcast_at_once(node, x):
    """One broadcast for two."""
    return Term(node.op, (x,), node.attributes)


def one_transpose(node, a):
    """One transpose for two, or none if the order is unchanged."""
    if not _is_plain_transpose(node, a):
        return None
    order, inner = _order(node), producer(a, TRANSPOSE.primitive)
    if inner is not None and _is_plain_transpose(inner, inner.inputs[0]):
        before = _order(inner)
        return TRANSPOSE(inner.inputs[0], perm=tuple([before[p] for p in order]))
    return a if order == tuple(range(len(order))) else None


def product_of_transposed(node, a, b):
    """A product that absorbs the transposes of its factors."""
    flags, inputs, changed = dict(node.attributes), [a, b], False
    for i, (x, flag) in enumerate(((a, "transpose_a"), (b, "transpose_b"))):
        inner = producer(x, TRANSPOSE.primitive)
        if inner is None or not _is_plain_transpose(inner, inner.inputs[0]):
            continue
        rank = len(x.shape)
        if _order(inner) == (*range(rank - 2), rank - 1, rank - 2):
            inputs[i], flags[flag], changed = inner.inputs[0], not flags[flag], True
    return Term(node.op, inputs, flags) if changed else None


def _is_plain_transpose(node, a):
    return not (node.attributes["conjugate"] and shaped(a).dtype.kind == "c")


def _order(node):
    """Return the axes of a transpose, counted from 0."""
    rank, perm = len(node.outputs[0].shape), node.attributes["perm"]
    return tuple(range(rank))[::-1] if perm is None else tuple([p % rank for p in perm])


# --------------------------------------------------------------------------- the rules

c = Constant("c")

RULES = Rules(
    narrower=[(Op(op)(...), narrower) for op in list_ops() if op.exact],
    times_one=[(MULTIPLY("x", Number(1)), "x")],
    over_constant=[(DIVIDE("x", Number(1)), "x"), (DIVIDE("x", c), over_constant)],
    plus_nothing=[(ADD("x", Number(-0.0)), "x"), (SUBTRACT("x", Number(0.0)), "x")],
    plus_negative=[(ADD("x", NEGATIVE("y")), SUBTRACT("x", "y"))],
    minus_negative=[(SUBTRACT("x", NEGATIVE("y")), ADD("x", "y"))],
    two_negatives=[
        (MULTIPLY(NEGATIVE("x"), NEGATIVE("y")), without_signs),
        (DIVIDE(NEGATIVE("x"), NEGATIVE("y")), without_signs),
        (MULTIPLY(NEGATIVE("x"), c), negated_constant),
        (DIVIDE(NEGATIVE("x"), c), negated_constant),
        (DIVIDE(c, NEGATIVE("x")), negated_dividend),
    ],
    double_negative=[(NEGATIVE(NEGATIVE("x")), "x")],
    # Their gradients were decided when the graph was traced.
    passed_on=[(IDENTITY("x"), "x"), (STOP("x"), "x")],
    cast_back=[(CAST("x"), "x"), (CAST(CAST("x")), cast_back)],
    known_condition=[(WHERE(Constant("condition"), "x", "y"), chosen)],
    sum_of_nothing=[(SUM_TO("x"), "x")],
    broadcast_of_broadcast=[
        (BROADCAST("x"), "x"),
        (BROADCAST(BROADCAST("x")), broadcast_at_once),
    ],
    concat_of_one=[(CONCAT("x"), "x")],
    one_reshape=[
        (RESHAPE("x"), "x"),
        (SQUEEZE("x"), "x"),
        (EXPAND("x"), "x"),
        (SQUEEZE("x"), reshaped),
        (EXPAND("x"), reshaped),
        (RESHAPE(RESHAPE("x")), reshaped),
    ],
    one_transpose=[(TRANSPOSE("a"), one_transpose)],
    product_of_transposed=[(MATMUL("a", "b"), product_of_transposed)],
)
