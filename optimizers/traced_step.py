"""A step of a rule in ops, traced: its ops replace the call of its Python code.

What Python decides in a step stays valid while the settings that the rule reads do:
`ReadState` records them. A rule that needs values, sets attributes, or reads what may
change unnoticed is not traced; its Python code runs in each step.
"""

from __future__ import annotations

import numpy as np

from tapewright.compiler.tracing.graph import Graph, Write
from tapewright.compiler.tracing.tracer import Tracer
from tapewright.core.communication.job import communicator
from tapewright.core.dtypes import float32
from tapewright.core.errors import TracingError
from tapewright.core.interpreters import use_interpreters
from tapewright.core.variable import Variable

from .device_update import SETTINGS
from .recording import NotRecordable, ReadState
from .rule_step import clipped_copies
from .schedules import LearningRateSchedule

__all__ = ["traced_step"]

RATE, CLIPPING = "learning_rate", "clip_gradients"  # the names of calls in a graph
MOST = 3000  # nodes of a step: LLVM compiles more for longer than ten seconds


def traced_step(update, rule):
    """Return the graph of an `Update` by a rule in ops, and the settings that it read.

    Returns ``(None, None)`` if the Python code of the rule must run in each step.
    """
    rate = rule._learning_rate
    is_plain = isinstance(rate, (Variable, LearningRateSchedule)) and not (
        rule.use_ema or rule.gradient_accumulation_steps or update.constrained
    )
    modules = {module for _, _, (_, _, module) in update.present}
    if not is_plain or modules != {np} or communicator().size > 1:
        return None, None
    tracer, read = _StepTracer(Graph("apply_gradients")), {}
    try:
        with use_interpreters((tracer,)):
            _trace(tracer, update, rule, read)
            tracer.finish(())
    except (TracingError, NotRecordable):
        return None, None
    graph = tracer.graph
    if len(graph.nodes) > MOST:
        return None, None
    known = {id(v) for v in (*rule._tw_reads(), *rule._tw_writes(update))}
    accessed = {id(v) for v in graph.variables()}
    if tracer.created or not accessed <= known or not all(map(_is_simple, graph.nodes)):
        return None, None
    return graph, read


class _StepTracer(Tracer):
    """Tracer that rejects Python code to which a variable is a number."""

    __slots__ = ()

    def before_value(self, variable):
        raise TracingError(f"the value of '{variable.path}' may change")


def _trace(tracer, update, rule, read):
    settings = ReadState(rule, read, _rate(tracer, rule))
    for name in SETTINGS:
        getattr(settings, name)
    variables = [variable for _, variable, _ in update.present]
    gradients = [
        tracer.input(shape, dtype) for _, _, (shape, dtype, _) in update.present
    ]
    gradients = _clipped(tracer, update, rule, gradients)
    cls = type(rule)
    cls._apply_weight_decay(settings, variables)
    cls._backend_update_step(settings, gradients, variables, settings.learning_rate)
    rule._iterations.assign_add(1)


def _rate(tracer, rule):
    """Return the learning rate of the step: the variable, or the result of a call.

    A schedule computes with Python's numbers, as in eager mode, for the same bits.
    """
    rate = rule._learning_rate
    if isinstance(rate, Variable):
        return rate

    def call():
        with use_interpreters(()):
            return (np.array(rate._tw_at(rule._iterations._array.item()), np.float32),)

    (found,) = tracer.effect(
        RATE, call, specs=[((), float32.dtype)], reads=[rule._iterations]
    )
    return found


def _clipped(tracer, update, rule, gradients):
    share = 1.0 / (rule.loss_scale_factor or 1)
    limits = rule._tw_limits
    if share == 1 and not any(limits):
        return gradients
    kinds = [spec for _, _, spec in update.present]

    def call(*arrays):
        return clipped_copies(arrays, kinds, *limits, share)

    specs = [(shape, dtype) for shape, dtype, _ in kinds]
    attributes = {"limits": limits, "share": share}  # else it could access anything
    return tracer.effect(CLIPPING, call, gradients, attributes, specs)


def _is_simple(node):
    """Return whether a node is an op, accesses a variable, or is a call made here."""
    is_own = node.name in (RATE, CLIPPING)
    return not node.is_collective and (
        type(node) is Write or is_own or not node.is_effect
    )
