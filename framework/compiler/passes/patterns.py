"""Rewrite rules: a pattern of ops, and its replacement.

Both sides are written with `Op`: ``ADD("x", NEGATIVE("y"))`` becomes ``SUBTRACT("x",
"y")``. A name matches any input; a repeated name must match the same input. `Number`
and `Constant` match constants that hold one number throughout. Inputs of a commutative
op match in both orders; ``ADD(...)`` matches any inputs.
"""

import math
from typing import NamedTuple

import numpy as np

from tapewright.core.dtypes import kind_of

from ..tracing.graph import Value, is_value
from .rewriting import producer, same_shape, shaped

CONSTANT = "constant"  # in the place of the op that produces an input


class Op:
    """Builds terms of a primitive; called with inputs and attributes, like the op."""

    def __init__(self, op):
        self.primitive = getattr(op, "primitive", op)

    def __call__(self, *inputs, **attributes):
        return Term(self.primitive, inputs, attributes)


class Term:
    """An op on terms, names, values and constants."""

    __slots__ = ("op", "inputs", "attributes")

    def __init__(self, op, inputs, attributes):
        self.op, self.inputs, self.attributes = op, inputs, attributes

    def matches(self, inputs, bound):
        """Return whether the inputs match; ``bound`` collects the input of each name."""
        if self.inputs == (...,):
            bound["inputs"] = inputs
            return True
        if len(inputs) != len(self.inputs):
            return False
        for order in (1, -1) if self.op.commutative else (1,):
            trial = dict(bound)
            pairs = zip(self.inputs[::order], inputs)
            if all([_matches(each, x, trial) for each, x in pairs]):
                bound.update(trial)
                return True
        return False


def _matches(pattern, x, bound):
    if type(pattern) is str:
        return bound.setdefault(pattern, x) is x
    if type(pattern) is not Term:
        return pattern.matches(x, bound)
    node = producer(x, pattern.op)
    return node is not None and pattern.matches(node.inputs, bound)


class Constant:
    """A named constant that holds one number throughout."""

    def __init__(self, name):
        self.name = name

    def matches(self, x, bound):
        return uniform(x) is not None and bound.setdefault(self.name, x) is x


class Number:
    """A constant that holds this number throughout; the sign of a zero counts."""

    def __init__(self, number):
        self.number = number

    def matches(self, x, bound):
        if is_value(x) or not isinstance(x.array, np.ndarray):
            return False
        array = x.array
        if not array.size or kind_of(array.dtype) not in "biuf":
            return False
        if array[(0,) * array.ndim] != self.number:  # known without a look at the rest
            return False
        own = uniform(x)
        if own is None:
            return False
        negative = math.copysign(1, self.number) < 0
        return kind_of(own.dtype) != "f" or np.signbit(own) == negative


def uniform(x):
    """Return the number, of rank 0, that fills a constant; else None."""
    if is_value(x) or not isinstance(x.array, np.ndarray) or not x.array.size:
        return None
    array = x.array
    if kind_of(array.dtype) not in "biuf" or array.itemsize > 8:
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


# ------------------------------------------------------------------------------ rules


class RewriteRule(NamedTuple):
    """A pattern and its replacement: a term, a name, or a function that returns one.

    The function is called with the node and the input of each name. It returns a term
    of values and constants, one of these, or None to keep the node. The node is also
    kept if the replacement may have another shape or dtype.
    """

    name: str
    pattern: Term
    replacement: object

    def needs(self):
        """Return ops that must be among the producers of the inputs, as a fast test."""
        inputs = [x for x in self.pattern.inputs if type(x) is not str and x is not ...]
        return frozenset([getattr(x, "op", CONSTANT) for x in inputs])

    def apply(self, node, inputs):
        """Return the replacement of a node with these inputs, or None."""
        bound = {}
        if not self.pattern.matches(inputs, bound):
            return None
        result = self.replacement
        if callable(result):
            result = result(node, **bound)
        if type(result) is Term:
            inputs = [bound[x] if type(x) is str else x for x in result.inputs]
            return Term(result.op, inputs, result.attributes)
        result = bound[result] if type(result) is str else result
        return result if result is None or _fits(result, node.outputs[0]) else None


def _fits(x, out):
    spec = shaped(x)
    return spec.dtype == out.dtype and same_shape(spec, out)


class Rules:
    """A table of rules, name -> ``(pattern, replacement)`` pairs; the first match applies."""

    def __init__(self, **table):
        self.by_op = {}
        for name, pairs in table.items():
            for rule in [RewriteRule(name, *pair) for pair in pairs]:
                of_op = self.by_op.setdefault(rule.pattern.op, [])
                of_op.append((rule.needs(), rule))

    def names(self):
        return {rule.name for rules in self.by_op.values() for _, rule in rules}

    def replacement(self, rewriter, node, inputs):
        """Return the replacement of a node's output, itself simplified, or None."""
        rules = self.by_op.get(node.op)
        if rules is None:
            return None
        producers = {_producer_op(x) for x in inputs}
        for needs, rule in rules:
            replacement = rule.apply(node, inputs) if needs <= producers else None
            if replacement is not None:
                return self._insert(rewriter, node, replacement)
        return None

    def _insert(self, rewriter, node, term):
        """Add a term to the new graph in place of a node; return its value."""
        if type(term) is not Term:
            return term
        out = node.outputs[0]
        spec = out.shape, out.dtype
        value = rewriter.make(term.op, term.inputs, term.attributes, node.line, spec)
        made = rewriter.nodes.pop()
        other = self.replacement(rewriter, made, made.inputs)
        if other is None:
            rewriter.nodes.append(made)
            return value
        return other


def _producer_op(x):
    if type(x) is not Value:
        return CONSTANT
    return None if x.node is None else x.node.op
