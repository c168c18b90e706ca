"""Passes for images: skip computing entries that pooling discards.

`pool_first`: ``max_pool(relu(x + bias))`` is ``relu(max_pool(x) + bias)``, since both
are monotonic in ``x``: the same values, with a quarter of the work. The same holds for
the backward pass, where the gradient of the bias is a sum over the quarter, in another
order. Among entries of a window that become equal when the bias is added (by rounding,
or because it is infinite), the gradient goes to the largest one before the addition. No
gradient flows through a maximum that is NaN.

`cropped_convolutions`: positions of a convolution beyond the last window of the pooling
behind it are not computed, nor their gradients. Their cotangents are zero, and so are
their gradients, even if an input that only they read is infinite or NaN.
"""

from functools import partial

from tapewright.core.dtypes import kind_of
from tapewright.ops.array import shape
from tapewright.ops.convolution import correlation, pooling
from tapewright.ops.convolution.windows import positions, window_positions
from tapewright.ops.math import comparison, elementwise
from tapewright.ops.nn.activation import relu

from ..tracing.graph import is_value
from .rewriting import is_op, is_static, producer, rewrite, users_of

ADD, RELU = elementwise.add.primitive, relu.primitive
GATE, SUM = comparison.where_positive.primitive, shape.sum_to_shape.primitive
MAX = pooling.window_max_p.primitive
ADD_TO_MAXIMA = pooling.add_to_maxima_p.primitive
SPREAD = pooling.spread_to_maxima_p.primitive
CONVOLVE = correlation.convolve.primitive
BACK = correlation.input_gradient.primitive
FILTERS = correlation.filter_gradient.primitive


class _NotExclusive(Exception):
    """Another node depends on a value that was to be replaced."""


def _select(nodes, primitive, value, number):
    """Select the nodes of this op that have ``value`` as input ``number``."""
    return [
        node for node in nodes
        if node is not None and is_op(node) and node.op is primitive
        and node.inputs[number] is value
    ]  # fmt: skip


class _Pooling:
    """Maxima over windows along several axes, one after another, and their gradients.

    ``levels``: the value that is pooled, the maxima along one axis, ..., the last maxima;
    ``pools``: the nodes between them. ``paths``: for each gradient of the first value the
    nodes that spread it, from the last axis to the first.
    """

    def __init__(self, value, users, longest):
        self.users, self.levels, self.pools, self.paths = users, [value], [], []
        axes = set()
        while len(self.pools) < longest:
            next_pools = _select(
                users.get(self.levels[-1], ()), MAX, self.levels[-1], 0
            )
            if len(next_pools) != 1 or next_pools[0].attributes["axis"] in axes:
                break
            axes.add(next_pools[0].attributes["axis"])
            self.pools += next_pools
            self.levels += next_pools[0].outputs
        if not self.pools:
            raise _NotExclusive

    def follow(self, ends):
        """Find the paths to the ``ends``, values that are spread to the first level."""
        for value in ends:
            path = []
            for own, maxima in zip(self.levels, self.levels[1:]):
                node = producer(value, SPREAD)
                if node is None or node.inputs[1] is not own:
                    raise _NotExclusive
                if node.inputs[2] is not maxima or (
                    path and self.users[value] != path[:1]
                ):
                    raise _NotExclusive
                path.insert(0, node)
                value = node.inputs[0]
            self.paths.append(path)

    def check(self, *others):
        """Raise unless only these nodes use the values in between."""
        ours = {*self.pools, *others}.union(*self.paths)
        for value in self.levels[:-1]:
            if not ours.issuperset(self.users[value]):
                raise _NotExclusive

    def axes(self):
        """The pooled axes, counted from the front."""
        rank = len(self.levels[0].shape)
        return [node.attributes["axis"] % rank for node in self.pools]

    def spread(self, rewriter, path, g, levels):
        """Return the gradient of the first of new ``levels``, given the last one's."""
        for node, own, maxima in zip(path, levels[-2::-1], levels[:0:-1]):
            g = rewriter.make(SPREAD, (g, own, maxima), node.attributes, node.line)
        return g


def _found(nodes, primitive, describe, users):
    """Yield descriptions of nodes of this op, each with the longest matching pooling."""
    for node in nodes:
        if not is_op(node) or node.op is not primitive:
            continue
        if not is_static(node.outputs[0]):
            continue
        for longest in (3, 2, 1):
            try:
                yield describe(node, users, longest)
                break
            except _NotExclusive:
                continue


# ------------------------------------------------------------------- the bias and relu


class _Activated(_Pooling):
    """A pooling of ``relu(x + bias)``; ``bias`` may be None."""

    def __init__(self, node, users, longest):
        (value,) = node.outputs
        if kind_of(value.dtype) != "f":
            raise _NotExclusive
        super().__init__(value, users, longest)
        self.relu, self.x, self.bias, self.adding = node, node.inputs[0], None, None
        self.gates = _select(users[value], GATE, value, 1)
        if not is_value(self.x) or any([g.inputs[0] is value for g in self.gates]):
            raise _NotExclusive
        self.follow([gate.inputs[0] for gate in self.gates])
        if any([users[gate.inputs[0]] != [gate] for gate in self.gates]):
            raise _NotExclusive
        self.check(*self.gates)
        self._find_bias()

    def _find_bias(self):
        adding = producer(self.x, ADD)
        if adding is None or self.users[self.x] != [self.relu]:
            return
        for x, bias in (adding.inputs, adding.inputs[::-1]):
            own = bias.shape if is_value(bias) else bias.array.shape
            full = (1,) * (len(self.x.shape) - len(own)) + tuple(own)
            same = all([full[axis] == 1 for axis in self.axes()])
            if is_value(x) and x.shape == self.x.shape and same:
                self.x, self.bias, self.adding = x, bias, adding
                return

    def pool(self, rewriter, node, inputs):
        """Compute the maxima of ``x``, and apply bias and relu to them."""
        self.now = [rewriter.current(self.x)]
        for node in self.pools:
            inputs = (self.now[-1],)
            self.now.append(rewriter.make(MAX, inputs, node.attributes, node.line))
        value, line = self.now[-1], self.relu.line
        if self.bias is not None:
            inputs = (value, rewriter.current(self.bias), self.now[0])
            windows = {"windows": tuple(map(_window, self.pools, self.levels))}
            value = rewriter.make(ADD_TO_MAXIMA, inputs, windows, self.adding.line)
        self.out = rewriter.make(RELU, (value,), self.relu.attributes, line)
        return (self.out,)

    def pool_back(self, rewriter, gate, sums):
        """Compute the gradient of ``x``; record where its sums are to be taken."""
        path = self.paths[self.gates.index(gate)]
        g = rewriter.current(path[0].inputs[0])
        g = rewriter.make(GATE, (g, self.out), gate.attributes, gate.line)
        (value,) = gate.outputs
        sums[value] = g, set(self.axes())
        return (self.spread(rewriter, path, g, self.now),)


def _window(node, value):
    """Return the attributes of the maxima of ``value`` along an axis, padding as numbers."""
    axis, size, stride, padding, dilation = [node.attributes[n] for n in MAX.attributes]
    *margins, _ = window_positions(value.shape[axis], size, stride, padding, dilation)
    return axis, size, stride, tuple(margins), dilation


def pool_first(graph):
    """Move max pooling in front of ops that commute with it."""
    users, todo, gone, sums = users_of(graph), {}, set(), {}

    def pool_back(match, rewriter, node, inputs):
        return match.pool_back(rewriter, node, sums)

    for match in _found(graph.nodes, RELU, _Activated, users):
        gone |= {match.relu, match.adding, *match.pools[:-1]}.union(*match.paths)
        todo[match.pools[-1]] = match.pool
        todo.update(dict.fromkeys(match.gates, partial(pool_back, match)))
    if not todo:
        return graph

    def pooled(rewriter, node, inputs):
        if node in todo:
            return todo[node](rewriter, node, inputs)
        if is_op(node) and node.op is SUM and node.inputs[0] in sums:
            return _sum(rewriter, node, *sums[node.inputs[0]])
        return () if node in gone else None

    return rewrite(graph, pooled)


def _sum(rewriter, node, pooled, axes):
    """Return the sum over the pooled gradient, if the node sums over all pooled axes."""
    (value,) = node.outputs
    rank = len(node.inputs[0].shape)
    full = (1,) * (rank - len(value.shape)) + value.shape
    if any([full[axis] != 1 for axis in axes]):
        return None
    return (rewriter.make(SUM, (pooled,), node.attributes, node.line),)


# ------------------------------------------------------------------- what is not pooled


class _Cropped(_Pooling):
    """A pooling of a convolution that ignores some of its positions."""

    def __init__(self, node, users, longest):
        (value,) = node.outputs
        super().__init__(value, users, longest)
        self.node, self.attributes = node, dict(node.attributes)
        spreads = _select(users[value], SPREAD, value, 1)
        self.follow([spread.outputs[0] for spread in spreads])
        self.check(*_select(users[value], ADD_TO_MAXIMA, value, 2))
        self._crop()
        self.gradients = []
        for spread in spreads:
            for user in users.get(spread.outputs[0], ()):
                if not self._is_gradient(user, spread.outputs[0]):
                    raise _NotExclusive
                self.gradients.append(user)

    def _crop(self):
        """Reduce the padding at the end by the positions outside of all windows."""
        a = self.attributes
        sizes, window = (x.shape for x in self.node.inputs)
        margins, _ = positions(
            sizes[1:-1], window[:-2], a["strides"], a["padding"], a["dilations"]
        )
        dropped = 0
        for node, axis in zip(self.pools, self.axes()):
            size, extent = node.attributes["size"], self.levels[0].shape[axis]
            stride, dilation = node.attributes["stride"], node.attributes["dilation"]
            before, _, count = window_positions(
                extent, size, stride, node.attributes["padding"], dilation
            )
            rest = extent - (count - 1) * stride - (size - 1) * dilation - 1
            if before or rest <= 0 or not count or not 0 < axis < len(sizes) - 1:
                continue
            front, behind = margins[axis - 1]
            margins[axis - 1] = front, behind - rest * a["strides"][axis - 1]
            dropped += rest
        if not dropped:
            raise _NotExclusive
        a["padding"] = tuple(margins)

    def _is_gradient(self, node, g):
        """Return whether a node is a gradient of this convolution."""
        for primitive, number in ((BACK, 0), (FILTERS, 1)):
            if node in _select([node], primitive, g, number):
                own, ours = node.attributes, self.node.attributes
                names = "strides", "padding", "dilations", "groups"
                same = all([own[name] == ours[name] for name in names])
                full = own["size"] if primitive is BACK else node.inputs[0].shape[1:-1]
                return same and tuple(full) == tuple(self.node.inputs[0].shape[1:-1])
        return False

    def crop(self, rewriter, node, inputs):
        return (rewriter.make(CONVOLVE, inputs, self.attributes, node.line),)

    def crop_gradient(self, rewriter, node, inputs):
        attributes = {**node.attributes, "padding": self.attributes["padding"]}
        return (rewriter.make(node.op, inputs, attributes, node.line),)


def cropped_convolutions(graph):
    """Compute only the part of a convolution that the pooling behind it reads."""
    users, todo = users_of(graph), {}
    for match in _found(graph.nodes, CONVOLVE, _Cropped, users):
        todo[match.node] = match.crop
        todo.update(dict.fromkeys(match.gradients, match.crop_gradient))
        todo.update(dict.fromkeys({*match.pools}.union(*match.paths), _made_again))

    def cropped(rewriter, node, inputs):
        rule = todo.get(node)
        return rule and rule(rewriter, node, inputs)

    return rewrite(graph, cropped) if todo else graph


def _made_again(rewriter, node, inputs):
    """Recreate the node on its new inputs; its output has their shape."""
    return (rewriter.make(node.op, inputs, node.attributes, node.line),)
