"""`gradients` and `hessians`: derivatives of tensors that a trace has computed.

The nodes between two tensors are known: they are interpreted again under a tape, which
computes the derivatives by the usual rules. So the derivatives consist of ops of the
trace and may be differentiated again; nodes that occur twice are merged by the
compiler.
"""

from __future__ import annotations

from typing import Any

from tapewright.autodiff.gradient_tape import GradientTape, UnconnectedGradients
from tapewright.core.composite import CompositeTensor
from tapewright.core.errors import RecordingError, TracingError
from tapewright.core.interpreters import active_interpreters, active_tracer
from tapewright.core.messages.source_lines import user_line
from tapewright.core.nest import flatten
from tapewright.core.tape import Tape
from tapewright.core.tensor import Tensor, is_tensor
from tapewright.core.variable import Variable, unwrap_value
from tapewright.ops.array.conversion import identity, stop_gradient
from tapewright.ops.array.creation import zeros

from .graph import Graph, Read, Value, Write
from .interpret import interpret
from .tracer import SymbolicTensor


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str | None = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> list[Any]:
    """Compute the gradients of the sum of ``ys`` by each of ``xs`` in a traced function.

    Outside traced functions, use `tw.GradientTape`.

    Args:
        ys: Tensor or list of tensors: arguments of the trace, or tensors that it has
            computed.
        xs: Like ``ys``; may also contain variables.
        grad_ys: Upstream gradient for each of ``ys``; None for ones.
        gate_gradients: Ignored.
        aggregation_method: Ignored.
        stop_gradients: Tensors that count as constants: no gradient flows through them.
        unconnected_gradients: "none" or "zero": the result for ``xs`` on which ``ys``
            do not depend.

    Returns:
        A list with an entry for each of ``xs``: a tensor, `tw.IndexedSlices` (from
        `tw.gather`) or None.

    Raises:
        RuntimeError: If called outside a traced function.
        TypeError: For a constant of the trace, whose uses are not recorded; for a
            tensor of another trace or branch; or for a variable that the trace has
            assigned to.
        TracingError: While a tape records in the same trace, or if there is an effect
            between ``xs`` and ``ys`` (a TypeError).

    Example:
        >>> @tw.function
        ... def slope(x):
        ...     return tw.gradients(x * x * x, x)
        >>> slope(tw.constant(2.0))[0].numpy()
        np.float32(12.0)
    """
    replay = _Replay("gradients", ys, xs, stop_gradients)
    seeds = None if grad_ys is None else _listed(grad_ys)
    if seeds is not None and len(seeds) != len(replay.ys):
        raise ValueError(
            f"gradients: grad_ys must be one for each of ys, {len(replay.ys)}; got "
            f"{len(seeds)}"
        )
    with GradientTape(watch_accessed_variables=False) as tape:
        targets, sources = replay.run([tape])
    pairs = [y for y in targets if y.dtype.is_differentiable]
    if seeds is not None:
        seeds = [s for s, y in zip(seeds, targets) if y.dtype.is_differentiable]
    slopes = tape.gradient(pairs, sources, seeds, unconnected_gradients)
    return replay.sums(slopes)


def hessians(
    ys: Any,
    xs: Any,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    name: str | None = "hessians",
) -> list[Tensor]:
    """Compute the Hessian of the sum of ``ys`` by each of ``xs`` in a traced function.

    Args:
        ys: Tensor or list of tensors: arguments of the trace, or tensors that it has
            computed.
        xs: Like ``ys``; may also contain variables.
        gate_gradients: Ignored.
        aggregation_method: Ignored.

    Shapes:
        The Hessian by ``x`` is ``x.shape + x.shape``.

    Returns:
        A list with a tensor for each of ``xs``.

    Raises:
        ValueError: If ``ys`` do not depend on one of ``xs``; other errors as in
            `tw.gradients`.

    Example:
        >>> @tw.function
        ... def curvature(x):
        ...     return tw.hessians(tw.reduce_sum(x * x * x), x)
        >>> curvature(tw.constant([1.0, 2.0]))[0].numpy()
        array([[ 6.,  0.],
               [ 0., 12.]], dtype=float32)
    """
    replay = _Replay("hessians", ys, xs, None)
    if replay.has_several():
        raise TypeError(
            "hessians: xs must be tensors, or variables that are read once in the trace"
        )
    with GradientTape(persistent=True, watch_accessed_variables=False) as outer:
        with GradientTape(watch_accessed_variables=False) as inner:
            targets, sources = replay.run([outer, inner])
        slopes = inner.gradient(targets, sources)
        slopes = [None if g is None else identity(g) for g in slopes]
    results = []
    for i, (slope, source) in enumerate(zip(slopes, sources)):
        if slope is None:
            raise ValueError(f"hessians: ys do not depend on xs[{i}]")
        hessian = outer.jacobian(slope, source)
        shape = tuple(source.shape) * 2
        results.append(zeros(shape, source.dtype) if hessian is None else hessian)
    return results


def _listed(x):
    return [unwrap_value(each) for each in (x if isinstance(x, (list, tuple)) else [x])]


class _Replay:
    """The part of the active trace between two sets of tensors."""

    def __init__(self, who, ys, xs, stops):
        self.who, self.tracer = who, active_tracer()
        if self.tracer is None:
            raise RecordingError(
                f"tw.{who} is not supported when eager execution is enabled: call it in a "
                "traced function, or use tw.GradientTape instead"
            )
        if any([isinstance(r, Tape) for r in active_interpreters()]):
            raise TracingError(
                f"{user_line(always=True)}: {who}: a GradientTape records in this trace, and "
                "would not see what the gradients depend on. Use tapes for both"
            )
        self.graph = self.tracer.graph
        self.ys = [self._target(y) for y in _listed(ys)]
        # The values of each of xs: several, if it is a variable that is read again.
        self.xs = [self._values_of(x) for x in _listed(xs)]
        stops = [] if stops is None else flatten(_listed(stops))
        self.stops = {v for x in stops for v in self._values_of(x)}
        self.cuts = {v for values in self.xs for v in values} | self.stops

    def has_several(self):
        """Return whether one of xs consists of more than one value."""
        return any([len(values) != 1 for values in self.xs])

    # --- tensors as values of the graph

    def _refuse(self, x, what):
        raise TypeError(
            f"{user_line(always=True)}: {self.who}: {x!r} {what}. tw.GradientTape "
            "differentiates whatever is computed while it records"
        )

    def _target(self, y):
        if isinstance(y, Variable):
            y = y.read()
        if isinstance(y, CompositeTensor) or not is_tensor(y):
            self._refuse(y, "must be a tensor")
        if isinstance(y, SymbolicTensor) and y.tracer is not self.tracer:
            self._refuse(y, "is of a trace, or a branch, around this one")
        return y

    def _values_of(self, x):
        if isinstance(x, Variable):
            return self._reads_of(x)
        if isinstance(x, CompositeTensor) or not isinstance(x, Tensor):
            self._refuse(x, "must be a tensor or a variable")
        value = self.tracer.value_of(x)
        if type(value) is not Value:
            self._refuse(x, "is a constant of the trace, whose uses are not recorded")
        return [value]

    def _reads_of(self, variable):
        reads = [
            node.outputs[0]
            for node in self.graph.nodes
            if isinstance(node, Read) and node.variable is variable
        ]
        stored = [n for n in self.graph.nodes if variable in _stored_by(n)]
        bound = self.tracer.bindings.get(id(variable))
        if stored or (
            bound is not None and getattr(bound, "symbol", None) not in reads
        ):
            self._refuse(variable, "is assigned to in this trace")
        return reads or [self.tracer.value_of(self.tracer.value_of_variable(variable))]

    # --- running it again

    def run(self, tapes):
        """Return ys and the values of xs, recomputed while tapes watch the latter."""
        wanted = [y.symbol for y in self.ys if isinstance(y, SymbolicTensor)]
        nodes = self._between(wanted)
        env, watched = {}, {}
        for value in self.cuts:
            if value.node is None or value.node not in nodes:
                self._cut(value, self._outside(value), env, watched, tapes)
        part = []
        for node in nodes:
            part.append(node)
            if not self.cuts.isdisjoint(node.outputs):
                self._interpret(part, env)
                part = []
                for value in self.cuts.intersection(node.outputs):
                    self._cut(value, env[value], env, watched, tapes)
        self._interpret(part, env)
        targets = [
            env.get(y.symbol, y) if isinstance(y, SymbolicTensor) else y
            for y in self.ys
        ]
        return targets, [watched[v] for values in self.xs for v in values]

    def _between(self, wanted):
        """Return the nodes from the cuts to these values, in order."""
        depends, after = set(self.cuts), []
        for node in self.graph.nodes:
            if not depends.isdisjoint([x for x in node.inputs if type(x) is Value]):
                depends.update(node.outputs)
                after.append(node)
        needed, nodes = set(wanted), []
        for node in reversed(after):
            if needed.isdisjoint(node.outputs):
                continue
            if _has_effects(node):
                raise TracingError(
                    f"{user_line(always=True)}: {self.who}: {node.name} (made at "
                    f"{node.line}), between xs and ys, has an effect, which would "
                    "happen twice. Use tw.GradientTape"
                )
            needed.update([x for x in node.inputs if type(x) is Value])
            nodes.append(node)
        return nodes[::-1]

    def _outside(self, value):
        return SymbolicTensor(value, self.tracer)

    def _cut(self, value, tensor, env, watched, tapes):
        """Turn a value into a separate tensor, which tapes watch."""
        tensor = (stop_gradient if value in self.stops else identity)(tensor)
        env[value] = watched[value] = tensor
        if tensor.dtype.is_differentiable:
            for tape in tapes:
                tape.watch(tensor)

    def _interpret(self, nodes, env):
        if not nodes:
            return
        part, made = Graph(self.graph.name), set()
        for node in nodes:
            for x in node.inputs:
                if type(x) is Value and x not in env and x not in made:
                    env[x] = self._outside(x)
            made.update(node.outputs)
        part.nodes, part.finished = nodes, True
        interpret(part, [], env)

    def sums(self, gradients):
        """Return the gradients by xs, given the gradients by each of their values."""
        gradients, sums = iter(gradients), []
        for values in self.xs:
            parts = [g for g in [next(gradients) for _ in values] if g is not None]
            sums.append(sum(parts[1:], parts[0]) if parts else None)
        return sums


def _stored_by(node):
    return [node.variable] if type(node) is Write else list(node.writes)


def _has_effects(node):
    if node.is_kept or node.is_host_call or node.writes:
        return True
    return any([_has_effects(inner) for part in node.regions for inner in part.nodes])
