"""Traced optimizer step for a device: arithmetic on the flat buffers of segments.

It is `Update.step` in three parts: numbers and buffers from the host; the arithmetic,
which is traced once and runs on the device; and the step counter.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tapewright.compiler.program.instructions.variable_update import (
    DeviceUpdate,
    UpdateGroup,
)
from tapewright.compiler.program.lowering.array_functions import NotTraceable
from tapewright.compiler.program.lowering.array_tracer import ArrayTracer
from tapewright.core.communication.job import count_step

from .gradients import clipping
from .recording import are_current

# Attributes of an optimizer that decide what a step computes, beside those of its rule.
_SETTINGS = (
    *("clipnorm", "clipvalue", "global_clipnorm", "loss_scale_factor"),
    *("weight_decay", "use_ema", "gradient_accumulation_steps"),
)


def device_update(update, rule, block_rule, read):
    """Return the step of an `Update` as a `DeviceUpdate`, or None if it must run in Python.

    ``block_rule`` is the arithmetic of the rule; it records in ``read`` the settings
    that it reads.
    """
    is_plain = not (
        rule.use_ema or rule.gradient_accumulation_steps or update.constrained
    )
    for workspace in update.workspaces:
        is_plain = is_plain and workspace.computed == workspace.dtype
    return _Step(update, rule, block_rule, read) if is_plain else None


class _Step(DeviceUpdate):
    def __init__(self, update, rule, block_rule, read):
        self.update, self.rule = update, rule
        self.block_rule, self.read = block_rule, read
        for name in _SETTINGS:
            getattr(read, name)
        self.count = block_rule.numbers
        self.parts = [  # a group of the update, and one of its stretches
            (group, start, stop)
            for group in update.groups
            for start, stop in group.runs
            if start < stop
        ]
        flats = 1 + block_rule.slots
        self.groups = [
            UpdateGroup(
                group.segment.workspace.dtype, start, stop - start, flats, self.count
            )
            for group, start, stop in self.parts
        ]

    def trace(self, xp, gradients, groups, empty):
        if self.rule.clipnorm:  # each gradient has a norm of its own
            gradients = self._clipped(xp, gradients, empty)
        flat = [self._gathered(xp, part, gradients) for part in self.parts]
        if not self.rule.clipnorm:
            flat = self._clipped(xp, flat, empty)
        return [
            self._traced(xp, part, gradient, *group, empty)
            for part, gradient, group in zip(self.parts, flat, groups)
        ]

    def _clipped(self, xp, gradients, empty):
        share = 1.0 / (self.rule.loss_scale_factor or 1)
        clips = clipping(gradients, *self.rule._tw_limits, share)
        return [
            x if clip is None else clip(xp, x, empty(x))
            for x, clip in zip(gradients, clips)
        ]

    @staticmethod
    def _gathered(xp, part, gradients):
        """Return the gradients of one stretch in one flat array."""
        group, start, stop = part
        rows = [
            gradients[n].reshape(-1)
            for m, n in group.members
            if start <= group.segment.starts[m] < stop
        ]
        return rows[0] if len(rows) == 1 else xp.concatenate(rows)

    def _traced(self, xp, part, gradient, flats, numbers, empty):
        """Return the variable and slots of one stretch after the step."""
        decays = bool(self.rule.weight_decay and part[0].segment.decays)
        gradient = gradient.reshape(flats[0].shape)
        scratch = [empty(flats[0]) for _ in range(self.block_rule.scratch)]
        self.block_rule.function(xp, [gradient, *flats], scratch, numbers, decays)
        return flats

    def trace_advance(self, load):
        rule, counter = self.rule, self.rule._iterations
        if rule._tw_has_state:
            raise NotTraceable
        count = load(counter)
        rate = rule._tw_traced_rate(count, load)
        decay = rate * (rule.weight_decay or 0)
        step = (count + 1).astype(np.float64)
        numbers = []
        for group, *_ in self.parts:
            real = partial(_rounded, group.segment.workspace.computed)
            numbers.append([decay, *rule._tw_rule.coefficients(step, rate, real)])
        return numbers, [(counter, count + 1)]

    def columns(self):
        columns = []
        for group, start, stop in self.parts:
            segment = group.segment
            size, starts = len(segment.variables), segment.starts
            inside = [m for m in range(size) if start <= starts[m] < stop]
            rows = range(1 + self.block_rule.slots)
            columns.append(
                [[segment.owners[row * size + m] for m in inside] for row in rows]
            )
        return columns

    def is_current(self):
        return self.count is not None and are_current(self.rule, self.read._tw_values)

    @property
    def segments(self):
        return self.update.touched(self.rule)

    def holders(self):
        return {id(v): segment for segment in self.segments for v in segment.owners}

    def advance(self):
        rule = self.rule
        made = int(rule._iterations._array)
        state = rule._tw_rule.advance(made + 1) or ()
        self.update.set_coefficients(rule, made + 1)  # from the state before the step
        counts = [len(group.segment.workspace.numbers) for group, *_ in self.parts]
        if any([count != self.count for count in counts]):
            self.count = None
            raise RuntimeError(
                f"{type(rule).__name__}.coefficients must return as many coefficients "
                "as in previous steps, for which the step was compiled; nothing has "
                "changed. The next call compiles it again"
            )
        for variable, array in state:
            variable._bind(array)
        rule._iterations._bind(np.array(made + 1, np.int64))
        count_step()
        return [[*group.segment.workspace.numbers] for group, *_ in self.parts]

    def versions(self):
        return [group.segment.version for group, *_ in self.parts]

    def flats(self):
        return [group.segment.stretch(*stretch) for group, *stretch in self.parts]

    def arrays(self):
        return {
            id(variable): view
            for segment in self.update.changed
            for variable, view in zip(segment.owners, segment.views_of_owners())
        }


def _rounded(dtype, x):
    """Return a number or traced array of rank 0 in a dtype, like NumPy's scalar types."""
    return _Rounded(x.astype(dtype)) if type(x) is ArrayTracer else dtype.type(x)


class _Rounded:
    """A traced array as a scalar, of which code may ask for the `item`."""

    def __init__(self, array):
        self._array = array

    def item(self):
        return self._array.astype(np.float64)

    def __getattr__(self, name):
        raise NotTraceable(f"{name} needs a value")

    def __float__(self):
        raise NotTraceable("float needs a value")
