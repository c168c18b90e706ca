"""`Update`: one call of ``apply``, worked out once for its variables and gradients.

What does not change from step to step is found when the pattern is first seen: which
gradients are missing, which are sparse, which stretches of which segments change.
"""

from __future__ import annotations

import copy
import warnings
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from tapewright.compiler.control_flow.effects import effect_maker
from tapewright.compiler.program.variable_update import VariableUpdate
from tapewright.core.devices import array_module, use_module
from tapewright.core.interpreters import use_interpreters
from tapewright.core.tensor import (
    IndexedSlices,
    Tensor,
    convert_to_tensor,
    new_tensor,
)
from tapewright.core.variable import Variable, writing
from tapewright.ops.array.conversion import cast

from .arithmetic import accumulate, average, clear, pays
from .flat_buffers import InPlace, Segment, Workspace, split
from .gradients import Scaling, SparseRows, check_gradient, clipping, to_gradient

__all__ = ["Update", "update_alone"]

KIND = "apply_gradients"  # of the effect that an update is in a graph


class Part(NamedTuple):
    """The gradients of one segment, and memory of the update's own to gather them in.

    ``members``: pairs of a variable's number in the segment and that of its gradient;
    ``runs``: the stretches of the segment that change. ``gradient`` is None where a
    variable is alone, as its gradient is used where it lies.
    """

    segment: Segment
    members: list
    runs: list
    gradient: object
    views: list

    @classmethod
    def of(cls, segment, members):
        """The part with memory that nobody else has."""
        runs, alone = segment.runs([m for m, _ in members]), len(segment.variables) == 1
        if alone:
            return cls(segment, members, runs, None, [])
        gradient = segment.workspace.xp.empty(
            segment.starts[-1], segment.workspace.dtype
        )
        shapes = [variable._array.shape for variable in segment.variables]
        return cls(segment, members, runs, gradient, split(gradient, shapes))


class Update:
    """Applies gradients of given kinds (tensor, sparse, None) to given variables."""

    def __init__(self, segments, variables, grads):
        self._exclusive = {}
        present = [i for i, g in enumerate(grads) if g is not None]
        if not present:
            raise ValueError("No gradients provided for any variable.")
        self.missing = [v.path for v, g in zip(variables, grads) if g is None]
        self.present = [(i, variables[i], _kind(variables[i]._array)) for i in present]
        number = {id(variables[i]): n for n, i in enumerate(present)}
        self.segments = segments
        self.parts = []
        for segment in segments:
            members = [  # (number in the segment, number among the gradients)
                (m, number[id(variable)])
                for m, variable in enumerate(segment.variables)
                if id(variable) in number
            ]
            if members and segment.starts[-1]:
                self.parts.append(Part.of(segment, members))
        self.own = [part.segment for part in self.parts]
        spaces = [segment.workspace for segment in self.own]
        self.spaces = list({id(space): space for space in spaces}.values())
        self.constrained = [  # with the segment, and the number there
            (part.segment.variables[m], part.segment, m)
            for part in self.parts
            for m, _ in part.members
            if getattr(part.segment.variables[m], "constraint", None) is not None
        ]

    def with_own_memory(self):
        """The same update with other memory for gradients."""
        other = copy.copy(self)
        other.parts = [Part.of(part.segment, part.members) for part in self.parts]
        return other

    def apply(self, rule, grads):
        """One step of ``rule``, the optimizer."""
        self._warn_of_missing()
        with self.exclusive(rule):
            rule.take_step(self, self._checked(grads))

    def exclusive(self, rule):
        """``with update.exclusive(rule):`` no other thread takes a step meanwhile."""
        found = self._exclusive.get(id(rule))  # an optimizer and one around it
        if found is None:
            found = self._exclusive[id(rule)] = writing(rule.writes(self))
        return found

    def trace(self, rule, grads, tracer):
        """Record one step, which each replay makes."""
        self._warn_of_missing()
        inputs, places = [], []
        for i, variable, _ in self.present:
            gradient = grads[i]
            if isinstance(gradient, IndexedSlices):
                values = convert_to_tensor(gradient.values, dtype_hint=variable.dtype)
                parts = [values, convert_to_tensor(gradient.indices)]
                shape = gradient.dense_shape  # one that is traced says no more
                shape = None if hasattr(shape, "symbol") else shape
                gradient = IndexedSlices(*parts, shape)
                places.append(gradient)
            else:
                gradient = convert_to_tensor(gradient, dtype_hint=variable.dtype)
                check_gradient(gradient.array, variable)
                parts = [cast(gradient, variable.dtype)]
                places.append(None)
            inputs += parts
        step = TracedUpdate(self, rule, places)
        if not rule.updates_blocks:
            tracer.flush_variables()  # its code may look at any variable
        tracer.effect(KIND, step, inputs, reads=step.reads, writes=step.writes)

    def _warn_of_missing(self):
        if self.missing:
            warnings.warn(
                f"Gradients do not exist for variables {self.missing} when minimizing "
                "the loss.",
                stacklevel=5,
            )

    def step(self, rule, gradients, share=1.0):
        """One step with ``share`` of gradients that are checked: arrays, `SparseRows`."""
        made = int(rule._iterations._array)
        every = rule.gradient_accumulation_steps or 1
        steps, due = made // every, (made + 1) % every == 0
        share /= rule.loss_scale_factor or 1
        if due:
            self._prepare(rule, steps + 1)
        with InPlace(self.touched(rule)):
            if every > 1:
                gradients = accumulate(self.parts, gradients, share, due and every)
                share = 1.0
            if due and rule.updates_blocks:
                self._change(rule, gradients, share)
            elif due:
                gradients = self._fitted(rule, gradients, share)
            if due and every > 1:
                clear(self.segments)
        if due and not rule.updates_blocks:
            self._call(rule, gradients)
        del gradients  # sums that nobody else may hold
        if rule.use_ema:
            self._average(rule, steps)
        rule._iterations._bind(np.array(made + 1, np.int64))
        if self.constrained:
            self._constrain()

    def touched(self, rule):
        """The segments that a step of ``rule`` writes to."""
        if rule.use_ema or rule.gradient_accumulation_steps:
            return self.segments
        return self.own

    def _prepare(self, rule, step):
        """Set the coefficients of a step: here code of the user's may look at variables."""
        rule.advance(step)
        rate = rule._rate()
        decay = rate * (rule.weight_decay or 0)
        for space in self.spaces:
            space.prepare((decay, *rule.coefficients(step, rate, space.dtype.type)))

    def _change(self, rule, gradients, share):
        """Take all blocks through ``update_block``."""
        fits = _clipping(rule, gradients, share)
        for segment, members, runs, flat, views in self.parts:
            if flat is None:
                _, n = members[0]
                _update_single(rule, segment, gradients[n], fits[n])
                continue
            for m, n in members:
                _gather(segment.workspace.xp, views[m], gradients[n], fits[n])
            for start, stop in runs:
                _update_run(rule, segment, start, stop, flat[start:stop])

    def _fitted(self, rule, gradients, share):
        """New arrays of the gradients, clipped, for code that may keep them."""
        fits = _clipping(rule, gradients, share)
        kinds = [kind for _, _, kind in self.present]
        return [_fitted(*each) for each in zip(gradients, fits, kinds)]

    def _call(self, rule, gradients):
        """Decays the variables, and calls ``update_step`` for each."""
        variables = [variable for _, variable, _ in self.present]
        with use_interpreters(()), _at_hand(rule, self.present[0][2][2]):
            rule._apply_weight_decay(variables)
            gradients = [new_tensor(array) for array in gradients]
            rule._backend_update_step(gradients, variables, rule.learning_rate)

    def _average(self, rule, steps_before):
        # Keras: what is averaged first is taken over as it is.
        part = 1 - rule.ema_momentum if steps_before else 1
        every = rule.ema_overwrite_frequency
        with InPlace(self.segments):
            average(self.segments, part, every and (steps_before + 1) % every == 0)

    def _constrain(self):
        with use_interpreters(()):
            values = [
                v._fitting("assign", v.constraint(v)) for v, *_ in self.constrained
            ]
        with InPlace({id(s): s for _, s, _ in self.constrained}.values()):
            for (_, segment, m), value in zip(self.constrained, values):
                segment.views()[m][...] = value

    def _checked(self, grads):
        """The gradients as arrays and `SparseRows`; raises where one does not fit."""
        found = []
        for i, variable, kind in self.present:
            gradient = grads[i]
            if type(gradient) is Tensor and _kind(gradient.array) == kind:
                found.append(gradient.array)
            else:
                found.append(to_gradient(gradient, variable))
        return found


class TracedUpdate(VariableUpdate):
    """One step of an optimizer, called with the arrays of gradients in each replay.

    ``places``: for each gradient None, or `IndexedSlices` like those that will come.
    """

    def __init__(self, update, rule, places):
        self.update, self.rule, self.places = update, rule, places
        self.dense: bool = all([slices is None for slices in places])
        self.__name__ = KIND

    def __call__(self, *arrays):
        if self.dense:
            self.rule.take_step(self.update, arrays)
            return
        rest, gradients = iter(arrays), []
        for (_, variable, _), slices in zip(self.update.present, self.places):
            array = next(rest)
            if slices is not None:
                slices = IndexedSlices(
                    new_tensor(array), new_tensor(next(rest)), slices.dense_shape
                )
                array = to_gradient(slices, variable)
            gradients.append(array)
        self.rule.take_step(self.update, gradients)

    @property
    def runs_user_code(self):
        return not self.rule.updates_blocks

    @property
    def reads(self):
        return self.rule.reads()

    @property
    def writes(self):
        return self.rule.writes(self.update)

    @property
    def gradient_memory(self):
        found = [None] * len(self.places)
        if not self.dense or self.rule.changes_gradients:
            return found
        for part in self.update.parts:
            for m, n in part.members if part.views else ():
                found[n] = part.views[m]
        return found

    @property
    def block_rule(self):
        return self.rule.block_rule

    def with_own_memory(self):
        other = copy.copy(self)
        other.update = self.update.with_own_memory()
        return other

    def attributes(self):
        """The arguments of `_traced_update` that make it again."""
        variables = [variable for _, variable, _ in self.update.present]
        kinds = ["dense" if slices is None else "sparse" for slices in self.places]
        return {"optimizer": self.rule, "variables": variables, "gradients": kinds}


@effect_maker(KIND)
def _traced_update(optimizer, variables, gradients):
    update = optimizer.update_of(tuple(variables), gradients)
    slices = IndexedSlices(None, None)
    places = [slices if kind == "sparse" else None for kind in gradients]
    return TracedUpdate(update, optimizer, places)


@contextmanager
def _at_hand(rule, module):
    """The iteration and the learning rate as arrays of a module, to compute with."""
    numbers = [v for v in (rule._iterations, rule._learning_rate)
               if module is not np and isinstance(v, Variable)]  # fmt: skip
    kept = [v._array for v in numbers]
    for v in numbers:
        v._bind(module.asarray(v._array))
    try:
        with use_module(module):
            yield
    finally:
        for v, array in zip(numbers, kept):
            v._bind(array)


def _clipping(rule, gradients, share):
    limits = rule.clipnorm, rule.clipvalue, rule.global_clipnorm
    return clipping(gradients, *limits, share)


def _kind(array, module=None):
    return array.shape, array.dtype, module or array_module(type(array))


def _gather(xp, view, gradient, fit):
    """Write a gradient, clipped, into its view of the part's."""
    if type(gradient) is SparseRows:
        rows, values = _merged(xp, gradient, fit)
        view.fill(0)
        view[rows] = values
    elif fit is None:
        if gradient is not view:
            view[...] = gradient
    else:
        fit(gradient, view)


def _fitted(gradient, fit, kind):
    """A new array of a gradient, clipped, with zeros in the rows that it has not."""
    shape, dtype, xp = kind
    if type(gradient) is not SparseRows:
        return (
            xp.array(gradient) if fit is None else fit(gradient, xp.empty(shape, dtype))
        )
    rows, values = _merged(xp, gradient, fit)
    array = xp.zeros(shape, dtype)
    array[rows] = values
    return array


def _merged(xp, gradient, fit):
    indices, values = gradient
    if fit is not None:
        values = fit(values, xp.empty_like(values))
    return SparseRows(indices, values).merged(xp)


def _update_run(rule, segment, start, stop, gradient, fit=None):
    """Take a stretch through ``update_block``: in one call where it is machine code."""
    if fit is None or type(fit) is Scaling:
        compiled, numbers = _compiled(rule, segment, fit)
        if compiled is not None:
            arrays = segment.stretch(start, stop)
            if compiled(gradient, *arrays, *numbers) is None:
                return
    _update(rule, segment, segment.blocks(start, stop, gradient), fit)


def _compiled(rule, segment, fit):
    """The machine code for a segment, or None, and the numbers that it gets."""
    space = segment.workspace
    decays = bool(rule.weight_decay and segment.decays)
    scaled = type(fit) is Scaling
    compiled = rule.compiled_update(space.xp, space.dtype, decays, scaled)
    decay, *numbers = space.numbers
    if decays:
        numbers.append(decay)
    if scaled:
        numbers.append(fit.factor)
    return compiled, numbers


def _update(rule, segment, blocks, fit=None):
    """Take blocks through ``update_block``, after clipping by ``fit`` and decay."""
    space, update_block = segment.workspace, rule.update_block
    xp, scratch, (decay, *coefficients) = space.xp, space.scratch, space.numbers
    decays = rule.weight_decay and segment.decays
    compiled, numbers = _compiled(rule, segment, fit)
    if compiled is not None:
        other = None if type(fit) is Scaling else fit
        blocks = _compute(compiled, blocks, other, space, numbers)
    if rule.takes_factor:
        folds = type(fit) is Scaling and fit.folds and pays(segment.flats[0])
        coefficients.append(float(fit.factor) if folds else 1.0)
        fit = None if folds else fit
    spare = space.spare if rule.needs_two else None
    for gradient, variable, slots in blocks:
        size = variable.size
        room = scratch[:size]
        if fit is not None:
            gradient = fit(gradient, space.second[:size])
        if decays:
            xp.multiply(variable, decay, out=room)
            xp.subtract(variable, room, out=variable)
        if spare is not None:
            room = room, spare[:size]
        update_block(xp, gradient, variable, room, coefficients, *slots)


def _compute(compiled, blocks, fit, space, numbers):
    """Take blocks through machine code; yield those that it refuses."""
    for gradient, variable, slots in blocks:
        given = gradient
        if fit is not None:
            given = fit(gradient, space.second[: variable.size])
        if compiled(given, variable, *slots, *numbers) is not None:
            yield gradient, variable, slots


def _update_single(rule, segment, gradient, fit):
    """Update a segment's single variable."""
    if type(gradient) is not SparseRows:
        _update_run(rule, segment, 0, segment.starts[-1], gradient.reshape(-1), fit)
        return
    rows, values = _merged(segment.workspace.xp, gradient, fit)
    if not rule.zero_is_idle or (rule.weight_decay and segment.decays):
        _update(rule, segment, segment.row_blocks(rows, values))
    elif rows.size:
        _update_rows(rule, segment, rows, values)


def _update_rows(rule, segment, rows, values):
    """Update the rows that have a gradient, at no cost for the others."""
    xp, coefficients = segment.workspace.xp, segment.workspace.numbers[1:]
    if rule.takes_factor:
        coefficients.append(1.0)
    picked = segment.pick_rows(rows)
    variable, *slots = [lines.reshape(-1) for lines in picked]
    gradient, scratch = values.reshape(-1), xp.empty_like(variable)
    if rule.needs_two:
        scratch = scratch, xp.empty_like(variable)
    rule.update_block(xp, gradient, variable, scratch, coefficients, *slots)
    segment.put_rows(rows, picked)


def update_alone(rule, step, learning_rate, gradient, variable, slots):
    """One step of ``update_block`` for one variable, outside of its segment."""
    owners = [variable, *slots]
    xp = array_module(type(variable._array))
    space = Workspace(xp, variable._array.dtype, max(1, variable._array.size))
    space.prepare(rule.coefficients(step, learning_rate, space.dtype.type))
    coefficients = [*space.numbers, 1.0] if rule.takes_factor else space.numbers
    scratch = (space.scratch, space.spare) if rule.needs_two else space.scratch
    arrays = [xp.array(v._array).reshape(-1) for v in owners]
    gradient = to_gradient(gradient, variable).reshape(-1)
    rule.update_block(xp, gradient, arrays[0], scratch, coefficients, *arrays[1:])
    for owner, array in zip(owners, arrays):
        owner.assign(new_tensor(array.reshape(owner.shape)))
