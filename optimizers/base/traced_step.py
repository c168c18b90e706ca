"""A step of a rule in ops, traced: its ops replace the call of its Python code.

What Python decides in a step stays valid while the settings that the rule reads do:
`ReadState` records them. A rule or constraint that needs values, sets attributes, or
reads what may change unnoticed is not traced; its Python code runs in each step.
"""

from __future__ import annotations

from functools import cached_property, partial
from inspect import isfunction
from itertools import chain

import numpy as np

from tapewright.compiler.tracing.graph import Graph, Write
from tapewright.compiler.tracing.tracer import Tracer
from tapewright.core.communication.job import communicator
from tapewright.core.dtypes import float32
from tapewright.core.errors import TracingError
from tapewright.core.interpreters import active_tracer, use_interpreters
from tapewright.core.settings import config
from tapewright.core.variable import Variable

from ..schedules import LearningRateSchedule
from .ops_step import take_step
from .recording import NotRecordable, ReadState
from .rule_step import clipped_copies

RATE, CLIPPING = "learning_rate", "clip_gradients"  # the names of calls in a graph
MOST = 3000  # nodes in machine code: LLVM compiles more for longer than ten seconds


def traced_step(update, rule):
    """Return the graph of an `Update` by a rule in ops, and the settings that it read.

    The settings are pairs as for `are_current`. Returns ``(None, None)`` if the Python
    code of the rule must run in each step.
    """
    is_plain = isinstance(rule._learning_rate, (Variable, LearningRateSchedule))
    modules = {module for _, _, (_, _, module) in update.present}
    if not is_plain or modules != {np} or communicator().size > 1:
        return None, None
    tracer, settings = _StepTracer(Graph("apply_gradients")), _Settings(rule, {})
    try:
        with use_interpreters((tracer,)):
            _trace(tracer, update, settings)
            tracer.finish(())
    except (TracingError, NotRecordable):
        return None, None
    graph, nodes = tracer.graph, _all_nodes(tracer.graph)
    if len(nodes) > MOST and config.target() == "native":
        return None, None
    known = {id(v) for v in (*rule._tw_reads(), *rule._tw_writes(update))}
    accessed = {id(v) for v in graph.variables()}
    if tracer.created or not accessed <= known or not all(map(_is_simple, nodes)):
        return None, None
    return graph, settings._tw_all_read


class _StepTracer(Tracer):
    """Tracer that rejects Python code to which a variable is a number."""

    __slots__ = ()

    def before_value(self, variable):
        raise TracingError(f"the value of '{variable.path}' may change")


class _Settings(ReadState):
    """Record the settings of a rule and of the constraints on its variables."""

    def __init__(self, rule, values):
        super().__init__(rule, values)
        vars(self)["_tw_all_read"] = [(rule, values)]

    @cached_property
    def learning_rate(self):
        """The learning rate of the step: the variable, or the result of a call.

        A schedule computes with Python's numbers, as in eager mode, for the same bits.
        """
        rate, iterations = self._tw_optimizer._learning_rate, self._iterations
        if isinstance(rate, Variable):
            return rate

        def call():
            with use_interpreters(()):
                return (np.array(rate._tw_at(iterations._array.item()), np.float32),)

        (value,) = active_tracer().effect(
            RATE, call, specs=[((), float32.dtype)], reads=[iterations]
        )
        return value

    def _tw_constrain(self, variable):
        constraint, read = variable.constraint, {}
        self._tw_all_read.append((variable, {"constraint": constraint}))
        if not isfunction(constraint):
            self._tw_all_read.append((constraint, read))
            constraint = ReadState(constraint, read).__call__
        variable.assign(constraint(variable))


def _trace(tracer, update, settings):
    kinds = [spec for _, _, spec in update.present]
    gradients = [tracer.input(shape, dtype) for shape, dtype, _ in kinds]
    count, share = settings._iterations.read(), 1.0 / (settings.loss_scale_factor or 1)
    take_step(settings, update, count, gradients, share, partial(_clipped, kinds))
    settings._iterations.assign_add(1)


def _clipped(kinds, gradients, *limits):
    *norms, share = limits
    if share == 1 and not any(norms):
        return gradients

    def call(*arrays):
        return clipped_copies(arrays, kinds, *limits)

    specs = [(shape, dtype) for shape, dtype, _ in kinds]
    attributes = {"limits": limits}  # else it could access anything
    return active_tracer().effect(CLIPPING, call, gradients, attributes, specs)


def _all_nodes(graph):
    """Return the nodes of a graph and of its regions."""
    inner = [_all_nodes(part) for node in graph.nodes for part in node.regions]
    return [*graph.nodes, *chain.from_iterable(inner)]


def _is_simple(node):
    """Return whether a node is an op, accesses a variable, or is a call made here."""
    is_own = node.name in (RATE, CLIPPING)
    return not node.is_collective and (
        type(node) is Write or is_own or not node.is_effect or bool(node.regions)
    )
