"""Merge two layers that share their weights: rows stacked, one product for all.

A discriminator sees real and generated examples, a siamese network two images: the same
ops with the same weights, twice. The pass finds such pairs, stacks their inputs once,
and keeps them stacked through products, biases and activations, forward and backward;
where the gradients of the two are added, one product over all rows computes the sum.

It starts from the most profitable candidates (sums of two gradients of one weight, then
products with one weight) and follows their inputs, op by op, as long as both sides are
equal (`Stacker.pair`). The cost of the copies is weighed against the calls saved. A
product of more rows may add in another order: results may differ by rounding.
"""

from tapewright.core.dtypes import kind_of
from tapewright.ops.array import conversion, shape
from tapewright.ops.linalg import matmul
from tapewright.ops.math import elementwise

from ..tracing.graph import is_value
from .rewriting import is_op, is_static, same_attributes, same_shape, shaped
from .stacks import Pair, Sum, Writer

__all__ = ["shared_weights"]

ADD, MATMUL = elementwise.add.primitive, matmul.matmul_primitive.primitive
SUM = shape.sum_to_shape.primitive
SET_APART = conversion.set_apart.primitive

# What was measured, in microseconds: a call of NumPy; a byte copied, of a weight that a
# product need not go through again, of a sum that is not made.
CALL, BYTE, WEIGHT_BYTE, ADDED_BYTE = 1.5, 4e-5, 3e-5, 4e-5
# Constants up to so many bytes are stacked, or compared, at compile time.
CONSTANT, SMALL = 1 << 20, 1 << 12
# How many products with one weight are tried with each other; how far up pairs are sought.
NEIGHBOURS, DEPTH = 4, 100


def shared_weights(graph):
    """Stack the rows of computations done twice with the same weights, where it pays.

    A product of more rows may add in another order: results may differ by rounding. So
    the pass is off by default.
    """
    products = [n for n in graph.nodes if n.op is MATMUL and _is_row_product(n)]
    if len(products) == len({n.inputs[1] for n in products}):
        return graph  # each weight is used once
    stacker = Stacker(graph)
    stacker.search()
    return Writer(stacker).written() if stacker.pairs else graph


# ------------------------------------------------------------------- finding the pairs


class Stacker:
    """The search for values to stack: pairs of values, and sums of two terms."""

    def __init__(self, graph):
        self.graph, self.users = graph, {}  # of each value: the nodes that take it
        self.place, self.epoch = {}, {}  # of each node: its number, effects before it
        effects = 0
        for i, node in enumerate(graph.nodes):
            self.place[node], self.epoch[node] = i, effects
            # What is computed again is not to be there before its time.
            effects += node.is_effect or node.op is SET_APART
            for x in node.inputs:
                if is_value(x):
                    self.users.setdefault(x, []).append(node)
        self.outputs = {x.node for x in graph.outputs if is_value(x)}
        self.pairs = {}  # two values -> their Pair
        self.partner = {}  # a value -> the Pair in which it is made
        self.sums = {}  # node of an addition -> Sum
        self.log = []  # what was noted, so that it can be taken back
        self.below = {}  # two nodes -> what `furthest_below` found for them
        self._ancestors = None

    def search(self):
        """Find profitable pairs: up from sums and products, down from results, twice."""
        waiting = self.candidates()
        for _ in range(2):
            waiting = [n for n in waiting if self.stack_if_it_pays(*n) is None]
            pairs = [p for p in self.pairs.values() if p.node is not None]
            if not pairs:
                return
            for pair in pairs:  # which grows
                first, second = [self.users.get(v, ()) for v in pair.values]
                for node in first:
                    for other in second:
                        if self.roles(node, other) is not None:
                            pairs += self.stack_if_it_pays(node, other, None) or []

    def candidates(self):
        """Return ``(first node, second node, addition)``, the most profitable first."""
        sums, products, by_weight = [], [], {}
        for node in self.graph.nodes:
            if not is_op(node):
                continue
            if node.op is ADD:
                terms = [x.node if is_value(x) else None for x in node.inputs]
                if self.is_sum(*terms):
                    sums.append((*terms, node))
            elif node.op is MATMUL and _is_row_product(node):
                key = node.inputs[1], node.attributes["transpose_b"]
                by_weight.setdefault(key, []).append(node)
        sums.sort(key=lambda found: -found[2].outputs[0].nbytes)
        for nodes in by_weight.values():
            for i, first in enumerate(nodes):
                for second in nodes[i + 1 : i + NEIGHBOURS]:
                    below = self.furthest_below(first, second)
                    products += [(*below, None), (first, second, None)]
        return sums + products

    def furthest_below(self, first, second):
        """Return the last two nodes to which the same ops lead from two products."""
        passed = []
        while (first, second) not in self.below and len(passed) < DEPTH:
            passed.append((first, second))
            users = [self.users.get(n.outputs[0], ()) for n in (first, second)]
            both = ((u, v) for u in users[0] for v in users[1] if u is not v)
            below = next((p for p in both if self.roles(*p) is not None), None)
            if below is None:
                break
            first, second = below
        furthest = self.below.get((first, second), (first, second))
        self.below.update(dict.fromkeys(passed, furthest))
        return furthest

    def is_sum(self, first, second):
        """Return whether two nodes sum over the rows of their inputs, in the same way."""
        for node in (first, second):
            if node is None or not is_op(node) or node.op not in (MATMUL, SUM):
                return False
            if not all(map(_has_rows, node.inputs)):
                return False
            if len(self.users[node.outputs[0]]) > 1 or node in self.outputs:
                return False
        if first.op is not second.op or not same_attributes(first, second):
            return False
        if not same_shape(first.outputs[0], second.outputs[0]):
            return False
        if first.op is SUM:
            kept = first.outputs[0].shape
            return all([len(n.inputs[0].shape) > len(kept) for n in (first, second)])
        flags = first.attributes
        over_rows = flags["transpose_a"] and not flags["transpose_b"]
        return over_rows and all(map(_is_matrix, (*first.inputs, *second.inputs)))

    def stack_if_it_pays(self, first, second, node):
        """Stack the two in the better order: return the new pairs of ops, or None."""
        if node is None:
            ends = first.outputs[0], second.outputs[0]
            if any([x in self.partner for x in ends]) or not self.may_follow(*ends):
                return None
        ways, gains = [(first, second), (second, first)], []
        for way in ways:
            gains.append(self.stack(*way, node) or 0.0)
            self.undo(0)
        if max(gains) < CALL:
            return None
        self.stack(*ways[gains.index(max(gains))], node)
        made = [table[key] for table, key in self.log if table is self.pairs]
        self.log.clear()
        return [pair for pair in made if pair.node is not None]

    def note(self, table, key, value):
        table[key] = value
        self.log.append((table, key))

    def undo(self, mark):
        """Undo all notes since the log had this length."""
        while len(self.log) > mark:
            table, key = self.log.pop()
            del table[key]

    def stack(self, first, second, node):
        """Stack two nodes and their producers: return the gain, None if impossible."""
        if node is None:
            pair, gain = self.pair(first.outputs[0], second.outputs[0])
            return gain if pair is not None and pair.node is not None else None
        if self.epoch[first] != self.epoch[second]:
            return None
        gain = node.outputs[0].nbytes * ADDED_BYTE + CALL * (1 + (first.op is SUM))
        inputs = []
        for a, b in zip(first.inputs, second.inputs, strict=True):
            pair, more = self.pair(a, b)
            if pair is None:
                return None
            inputs.append(pair)
            gain += more
        self.note(self.sums, node, Sum(first, tuple(inputs)))
        return gain

    def pair(self, a, b, depth=0):
        """Return the `Pair` of two values and its gain, or (None, 0) without a pair."""
        both = is_value(a) and is_value(b)
        if both and (a, b) in self.pairs:
            return self.pairs[a, b], 0.0
        if not self.may_follow(a, b):
            return None, 0.0
        found, mark = self.copied(a, b), len(self.log)
        if both and depth < DEPTH:
            same = self.same_op(a, b, depth + 1)
            if same is not None and same[1] >= found[1]:
                found = same
            else:
                self.undo(mark)
        if both:
            self.note(self.pairs, (a, b), found[0])
            if found[0].node is not None:
                self.note(self.partner, a, found[0])
                self.note(self.partner, b, found[0])
        return found

    def may_follow(self, a, b):
        """Return whether the two can share a matrix, at one position in the program."""
        if not (_has_rows(a) and _has_rows(b)):
            return False
        x, y = shaped(a), shaped(b)
        return x.shape[1:] == y.shape[1:] and x.dtype == y.dtype

    def copied(self, a, b):
        """Return the two values copied into one array."""
        nbytes = shaped(a).nbytes + shaped(b).nbytes
        if not is_value(a) and not is_value(b):
            return Pair((a, b)), 0.0 if nbytes <= CONSTANT else -nbytes * BYTE
        return Pair((a, b)), -CALL - nbytes * BYTE

    def same_op(self, a, b, depth):
        """Return the pair as one op on pairs, and its gain; None if the ops differ."""
        first, second = a.node, b.node
        if a is b or first is None or second is None:
            return None
        if a in self.partner or b in self.partner:  # of another value
            return None
        if self.epoch[first] != self.epoch[second]:
            return None
        roles = self.roles(first, second)
        if roles is None or self.depends(first, second):
            return None
        inputs, gain = [], CALL
        if first.op is MATMUL:
            gain += first.inputs[1].nbytes * WEIGHT_BYTE
        for x, y, is_shared in zip(first.inputs, second.inputs, roles, strict=True):
            pair, more = (x, 0.0) if is_shared else self.pair(x, y, depth)
            if pair is None:
                return None
            inputs.append(pair)
            gain += more
        return Pair((a, b), first, tuple(inputs)), gain

    def roles(self, first, second):
        """Return for each input whether both share it or it has rows; None if not row-wise."""
        if not (is_op(first) and is_op(second)) or first.op is not second.op:
            return None
        if len(first.outputs) != 1 or not same_attributes(first, second):
            return None
        if first.op is MATMUL:
            is_one = all(map(_is_row_product, (first, second)))
            return (
                (False, True)
                if is_one and first.inputs[1] is second.inputs[1]
                else None
            )
        if not first.op.elementwise or not _has_rows(first.outputs[0]):
            return None
        roles = []
        for x, y in zip(first.inputs, second.inputs, strict=True):
            has_rows = _carries(x, first.outputs[0]) and _carries(y, second.outputs[0])
            if not has_rows and not _same(x, y):
                return None
            roles.append(not has_rows)
        return roles

    def depends(self, first, second):
        """Return whether one of two nodes depends on the other."""
        if self._ancestors is None:
            self._ancestors = masks = {}
            for node in self.graph.nodes:
                mask = 1 << self.place[node]
                for x in node.inputs:
                    if is_value(x) and x.node is not None:
                        mask |= masks[x.node]
                masks[node] = mask
        masks = self._ancestors
        return bool(
            masks[first] >> self.place[second] & 1
            or masks[second] >> self.place[first] & 1
        )


def _same(x, y):
    """Return whether two inputs are one value, or small constants with the same bytes."""
    if x is y or is_value(x) or is_value(y):
        return x is y
    x, y = x.array, y.array
    alike = (x.shape, x.dtype) == (y.shape, y.dtype) and x.nbytes <= SMALL
    return alike and x.tobytes() == y.tobytes()


def _has_rows(x):
    x = shaped(x)
    return is_static(x) and len(x.shape) > 1 and kind_of(x.dtype) in "biuf"


def _is_matrix(x):
    return _has_rows(x) and len(shaped(x).shape) == 2


def _is_row_product(node):
    """Return whether a node multiplies a matrix, row by row, with a weight matrix."""
    if node.attributes["transpose_a"] or not is_value(node.inputs[1]):
        return False
    return (
        all([_is_matrix(x) for x in node.inputs])
        and kind_of(node.outputs[0].dtype) == "f"
    )


def _carries(x, out):
    """Return whether an input of an op has the rows of its output."""
    x = shaped(x)
    return len(x.shape) == len(out.shape) and x.shape[0] == out.shape[0]
