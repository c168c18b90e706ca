"""`Update`: one call of ``apply``, prepared once for its variables and gradients.

The facts that are the same in each step are computed at the first: the gradients that are
missing or sparse, and the stretches of segments that change.
"""

from __future__ import annotations

import copy
import warnings
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from tapewright.compiler.control_flow.effects import effect_maker
from tapewright.compiler.program.variable_update import VariableUpdate
from tapewright.core.communication.job import count_step
from tapewright.core.devices import array_module, use_module
from tapewright.core.dtypes import kind_of
from tapewright.core.interpreters import (
    active_interpreter,
    notify_of_writes,
    use_interpreters,
)
from tapewright.core.replica_context import replica_context
from tapewright.core.source_lines import user_stacklevel
from tapewright.core.tensor import (
    IndexedSlices,
    Tensor,
    convert_to_tensor,
    new_tensor,
)
from tapewright.core.variable import Variable, writing
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.gather import scatter_rows
from tapewright.ops.collective import all_reduce

from .arithmetic import accumulate, average, clear, pays
from .flat_buffers import InPlace, Segment, Workspace, in_computed, split
from .gradients import (
    Scaling,
    SparseRows,
    all_gather_rows,
    all_reduce_gradients,
    check_gradient,
    clipping,
    to_gradient,
)

__all__ = ["Update", "dense_on_device", "update_alone"]

EFFECT = "apply_gradients"  # the name of an update in a graph
# Entries of a variable up to which it pays to update rows without a gradient, too.
LARGE = 1 << 26


class GradientGroup(NamedTuple):
    """The gradients of one segment, and memory of the update to gather them in.

    ``members``: pairs of a variable's number in the segment and that of its gradient;
    ``runs``: the stretches of the segment that change. ``gradient`` is None where a
    variable is alone: its gradient is used without a copy.
    """

    segment: Segment
    members: list
    runs: list
    gradient: object
    views: list

    @classmethod
    def of(cls, segment, members):
        """Return the group with new memory."""
        runs = segment.runs([m for m, _ in members])
        if len(segment.variables) == 1:
            return cls(segment, members, runs, None, [])
        gradient = segment.workspace.xp.empty(
            segment.starts[-1], segment.workspace.dtype
        )
        shapes = [variable._array.shape for variable in segment.variables]
        return cls(segment, members, runs, gradient, split(gradient, shapes))


class Update:
    """One call of ``apply`` for a tuple of variables and types of gradients."""

    def __init__(self, segments, variables, grads):
        self._exclusive = {}
        present = [i for i, g in enumerate(grads) if g is not None]
        if not present:
            raise ValueError("No gradients provided for any variable.")
        self.missing = [v.path for v, g in zip(variables, grads) if g is None]
        self.present = [(i, variables[i], _spec(variables[i]._array)) for i in present]
        number = {id(variables[i]): n for n, i in enumerate(present)}
        self.segments = segments
        self.groups = []
        for segment in segments:
            members = [  # (number in the segment, number among the gradients)
                (m, number[id(variable)])
                for m, variable in enumerate(segment.variables)
                if id(variable) in number
            ]
            if members and segment.starts[-1]:
                self.groups.append(GradientGroup.of(segment, members))
        self.changed = [group.segment for group in self.groups]
        workspaces = [segment.workspace for segment in self.changed]
        self.workspaces = list({id(each): each for each in workspaces}.values())
        self.constrained = [  # with the segment, and the number there
            (group.segment.variables[m], group.segment, m)
            for group in self.groups
            for m, _ in group.members
            if getattr(group.segment.variables[m], "constraint", None) is not None
        ]

    def with_own_memory(self):
        """Return the same update with new memory for gradients."""
        other = copy.copy(self)
        pairs = [(group.segment, group.members) for group in self.groups]
        other.groups = [GradientGroup.of(*pair) for pair in pairs]
        return other

    def apply(self, rule, grads):
        """Make one step of ``rule``, the optimizer."""
        self._warn_of_missing()
        if active_interpreter() is not None:
            notify_of_writes(rule._tw_writes(self), EFFECT)
        with self.exclusive(rule):
            gradients = self.checked(grads)
            if replica_context() is not None:
                gradients = all_reduce_gradients(gradients)
            rule._tw_take_step(self, gradients)

    def exclusive(self, rule):
        """Return a context in which no other thread takes a step."""
        lock = self._exclusive.get(id(rule))  # an optimizer and one around it
        if lock is None:
            lock = self._exclusive[id(rule)] = writing(rule._tw_writes(self))
        return lock

    def trace(self, rule, grads, tracer):
        """Record one step, which each replay takes."""
        self._warn_of_missing()
        notify_of_writes(rule._tw_writes(self), EFFECT)
        context = replica_context()
        inputs, slices = [], []
        for i, variable, _ in self.present:
            gradient = grads[i]
            if isinstance(gradient, IndexedSlices):
                values = convert_to_tensor(gradient.values, dtype_hint=variable.dtype)
                indices = convert_to_tensor(gradient.indices)
                shape = gradient.dense_shape  # a traced one is not known
                shape = None if hasattr(shape, "symbol") else shape
                gradient = IndexedSlices(values, indices, shape)
                if context is None:
                    gradient = dense_on_device(rule, gradient, variable)
            else:
                gradient = convert_to_tensor(gradient, dtype_hint=variable.dtype)
                check_gradient(gradient.array, variable)
                gradient = cast(gradient, variable.dtype)
                if context is not None:
                    gradient = all_reduce(gradient, "sum", context.compression)
            if isinstance(gradient, IndexedSlices):
                arrays = [gradient.values, gradient.indices]
                slices.append(gradient)
            else:
                arrays = [gradient]
                slices.append(None)
            inputs += arrays
        step = TracedUpdate(self, rule, slices, context is not None)
        if not rule._tw_updates_blocks:
            tracer.flush_variables()  # its code may look at any variable
        tracer.effect(EFFECT, step, inputs, reads=step.reads, writes=step.writes)

    def _warn_of_missing(self):
        if self.missing:
            warnings.warn(
                f"Gradients do not exist for variables {self.missing} when minimizing "
                "the loss.",
                stacklevel=user_stacklevel(),
            )

    def step(self, rule, gradients, share=1.0):
        """Take one step with ``share`` of checked gradients: arrays, `SparseRows`."""
        made = int(rule._iterations._array)
        every = rule.gradient_accumulation_steps or 1
        steps, due = made // every, (made + 1) % every == 0
        share /= rule.loss_scale_factor or 1
        if due:
            self._prepare(rule, steps + 1)
        with InPlace(self.touched(rule)):
            if every > 1:
                gradients = accumulate(self.groups, gradients, share, due and every)
                share = 1.0
            if due and rule._tw_updates_blocks:
                self._change(rule, gradients, share)
            elif due:
                gradients = self._clipped_copies(rule, gradients, share)
            if due and every > 1:
                clear(self.segments)
        if due and not rule._tw_updates_blocks:
            self._call(rule, gradients)
        del gradients  # sums that nobody else may hold
        if rule.use_ema:
            self._average(rule, steps)
        rule._iterations._bind(np.array(made + 1, np.int64))
        if self.constrained:
            self._constrain()
        count_step()

    def touched(self, rule):
        """Return the segments that a step of ``rule`` writes to."""
        if rule.use_ema or rule.gradient_accumulation_steps:
            return self.segments
        return self.changed

    def _prepare(self, rule, step):
        """Set the coefficients of a step; code of the user may read variables here."""
        rule._tw_rule.advance(step)
        rate = rule._tw_rate()
        decay = rate * (rule.weight_decay or 0)
        for workspace in self.workspaces:
            coefficients = rule._tw_rule.coefficients(
                step, rate, workspace.computed.type
            )
            workspace.prepare((decay, *coefficients))

    def _change(self, rule, gradients, share):
        """Update all blocks by ``update_block``."""
        clips = _clipping(rule, gradients, share)
        for segment, members, runs, flat, views in self.groups:
            if flat is None:
                _, n = members[0]
                _update_single(rule, segment, gradients[n], clips[n])
                continue
            for m, n in members:
                _gather(segment.workspace.xp, views[m], gradients[n], clips[n])
            for start, stop in runs:
                _update_run(rule, segment, start, stop, flat[start:stop])

    def _clipped_copies(self, rule, gradients, share):
        """Return new arrays of the gradients, clipped, for code that may keep them."""
        clips = _clipping(rule, gradients, share)
        specs = [spec for _, _, spec in self.present]
        return [_clipped_copy(*each) for each in zip(gradients, clips, specs)]

    def _call(self, rule, gradients):
        """Decay the variables, and call ``update_step`` for each."""
        variables = [variable for _, variable, _ in self.present]
        with use_interpreters(()), _scalars_on(rule, self.present[0][2][2]):
            rule._apply_weight_decay(variables)
            gradients = [new_tensor(array) for array in gradients]
            rule._backend_update_step(gradients, variables, rule.learning_rate)

    def _average(self, rule, steps_before):
        # As in Keras the first average is the variable itself.
        weight = 1 - rule.ema_momentum if steps_before else 1
        every = rule.ema_overwrite_frequency
        with InPlace(self.segments):
            average(self.segments, weight, every and (steps_before + 1) % every == 0)

    def _constrain(self):
        with use_interpreters(()):
            values = [
                v._fitting("assign", v.constraint(v)) for v, *_ in self.constrained
            ]
        with InPlace({id(s): s for _, s, _ in self.constrained}.values()):
            for (_, segment, m), value in zip(self.constrained, values):
                segment.views()[m][...] = value

    def checked(self, grads):
        """Return the gradients as arrays and `SparseRows`; raise where one is wrong."""
        arrays = []
        for i, variable, spec in self.present:
            gradient = grads[i]
            if type(gradient) is Tensor and _spec(gradient.array) == spec:
                arrays.append(gradient.array)
            else:
                arrays.append(to_gradient(gradient, variable))
        return arrays


class TracedUpdate(VariableUpdate):
    """One step of an optimizer, called in each replay with the arrays of gradients.

    ``slices``: for each gradient None, or `IndexedSlices` of the same dense shape;
    ``gathers``: those are to be gathered from all replicas.
    """

    def __init__(self, update, rule, slices, gathers=False):
        self.update, self.rule, self.slices = update, rule, slices
        self.gathers = gathers
        self.dense: bool = all([each is None for each in slices])
        self.__name__ = EFFECT

    def __call__(self, *arrays):
        if self.dense:
            self.rule._tw_take_step(self.update, arrays)
            return
        rest, gradients = iter(arrays), []
        for (_, variable, _), slices in zip(self.update.present, self.slices):
            array = next(rest)
            if slices is not None:
                values, indices = new_tensor(array), new_tensor(next(rest))
                slices = IndexedSlices(values, indices, slices.dense_shape)
                array = to_gradient(slices, variable)
                array = all_gather_rows(array) if self.gathers else array
            gradients.append(array)
        self.rule._tw_take_step(self.update, gradients)

    @property
    def runs_user_code(self):
        return not self.rule._tw_updates_blocks

    @property
    def reads(self):
        return self.rule._tw_reads()

    @property
    def writes(self):
        return self.rule._tw_writes(self.update)

    @property
    def gradient_memory(self):
        memory = [None] * len(self.slices)
        if not self.dense or self.rule._tw_changes_gradients:
            return memory
        for group in self.update.groups:
            for m, n in group.members if group.views else ():
                memory[n] = group.views[m]
        return memory

    @property
    def block_rule(self):
        return self.rule._tw_block_rule

    def on_device(self):
        return self.rule._tw_device_update(self.update) if self.dense else None

    def with_own_memory(self):
        other = copy.copy(self)
        other.update = self.update.with_own_memory()
        return other

    def attributes(self):
        """Return the arguments of `_traced_update` that make it again."""
        variables = [variable for _, variable, _ in self.update.present]
        sparse = "gathered" if self.gathers else "sparse"
        gradients = ["dense" if each is None else sparse for each in self.slices]
        return {"optimizer": self.rule, "variables": variables, "gradients": gradients}


@effect_maker(EFFECT, on_host=False)
def _traced_update(optimizer, variables, gradients):
    update = optimizer._tw_update_of(tuple(variables), gradients)
    empty = IndexedSlices(None, None)
    slices = [None if each == "dense" else empty for each in gradients]
    return TracedUpdate(update, optimizer, slices, "gathered" in gradients)


@contextmanager
def _scalars_on(rule, module):
    """Hold the iteration and the learning rate as arrays of a module, to compute with."""
    scalars = [v for v in (rule._iterations, rule._learning_rate)
               if module is not np and isinstance(v, Variable)]  # fmt: skip
    arrays = [v._array for v in scalars]
    for v in scalars:
        v._bind(module.asarray(v._array))
    try:
        with use_module(module):
            yield
    finally:
        for v, array in zip(scalars, arrays):
            v._bind(array)


def _clipping(rule, gradients, share):
    limits = rule.clipnorm, rule.clipvalue, rule.global_clipnorm
    return clipping(gradients, *limits, share)


def _spec(array):
    return array.shape, array.dtype, array_module(type(array))


def _gather(xp, view, gradient, clip):
    """Write a gradient, clipped, into its view of the group's."""
    if type(gradient) is SparseRows:
        rows, values = _merged(xp, gradient, clip)
        view.fill(0)
        view[rows] = values
    elif clip is None:
        if gradient is not view:
            view[...] = gradient
    else:
        clip(gradient, view)


def _clipped_copy(gradient, clip, spec):
    """Return a new array of a gradient, clipped, with zeros in the rows that it lacks."""
    shape, dtype, xp = spec
    if type(gradient) is not SparseRows:
        if clip is None:
            return xp.array(gradient)
        return clip(gradient, xp.empty(shape, dtype))
    rows, values = _merged(xp, gradient, clip)
    array = xp.zeros(shape, dtype)
    array[rows] = values
    return array


def _merged(xp, gradient, clip):
    indices, values = gradient
    if clip is not None:
        values = clip(values, xp.empty_like(values))
    return SparseRows(indices, values).merged(xp)


def _update_run(rule, segment, start, stop, gradient, clip=None):
    """Update a stretch by ``update_block``: in one call where it is machine code."""
    in_place = segment.workspace.computed == segment.workspace.dtype
    if in_place and (clip is None or type(clip) is Scaling):
        compiled, numbers = _compiled(rule, segment, clip)
        if compiled is not None:
            arrays = segment.stretch(start, stop)
            if compiled(gradient, *arrays, *numbers) is None:
                return
    _update(rule, segment, segment.blocks(start, stop, gradient), clip)


def _compiled(rule, segment, clip):
    """Return the machine code for a segment, or None, and the numbers that it takes."""
    workspace = segment.workspace
    decays = bool(rule.weight_decay and segment.decays)
    scaled = type(clip) is Scaling
    compiled = rule._tw_compiled_update(
        workspace.xp, workspace.computed, decays, scaled
    )
    decay, *numbers = workspace.numbers
    if decays:
        numbers.append(decay)
    if scaled:
        numbers.append(clip.factor)
    return compiled, numbers


def _update(rule, segment, blocks, clip=None):
    """Update blocks by ``update_block``, after clipping by ``clip`` and decay."""
    workspace, update_block = segment.workspace, rule._tw_rule.update_block
    xp, scratch = workspace.xp, workspace.scratch
    decay, *coefficients = workspace.numbers
    decays = rule.weight_decay and segment.decays
    blocks = in_computed(blocks)
    compiled, numbers = _compiled(rule, segment, clip)
    if compiled is not None:
        other = None if type(clip) is Scaling else clip
        blocks = _compute(compiled, blocks, other, workspace, numbers)
    if rule._tw_rule.takes_factor:
        folds = type(clip) is Scaling and clip.folds and pays(segment.flats[0])
        coefficients.append(float(clip.factor) if folds else 1.0)
        clip = None if folds else clip
    spare = workspace.spare if rule._tw_rule.needs_two else None
    for gradient, variable, slots in blocks:
        size = variable.size
        buffer = scratch[:size]
        if clip is not None:
            gradient = clip(gradient, workspace.second[:size])
        if decays:
            xp.multiply(variable, decay, out=buffer)
            xp.subtract(variable, buffer, out=variable)
        if spare is not None:
            buffer = buffer, spare[:size]
        update_block(xp, gradient, variable, buffer, coefficients, *slots)


def _compute(compiled, blocks, clip, workspace, numbers):
    """Update blocks by machine code; yield those that it refuses."""
    for gradient, variable, slots in blocks:
        clipped = gradient
        if clip is not None:
            clipped = clip(gradient, workspace.second[: variable.size])
        if compiled(clipped, variable, *slots, *numbers) is not None:
            yield gradient, variable, slots


def _update_single(rule, segment, gradient, clip):
    """Update a segment's single variable."""
    if type(gradient) is not SparseRows:
        _update_run(rule, segment, 0, segment.starts[-1], gradient.reshape(-1), clip)
        return
    rows, values = _merged(segment.workspace.xp, gradient, clip)
    if not rule._tw_rule.zero_is_idle or (rule.weight_decay and segment.decays):
        _update(rule, segment, segment.row_blocks(rows, values))
    elif rows.size:
        _update_rows(rule, segment, rows, values)


def _update_rows(rule, segment, rows, values):
    """Update the rows that have a gradient, and no others."""
    xp, coefficients = segment.workspace.xp, segment.workspace.numbers[1:]
    if rule._tw_rule.takes_factor:
        coefficients.append(1.0)
    picked = segment.pick_rows(rows)
    first, *others = [lines.reshape(-1) for lines in picked]
    block = values.reshape(-1), first, others
    for gradient, variable, slots in in_computed([block]):
        scratch = xp.empty_like(variable)
        if rule._tw_rule.needs_two:
            scratch = scratch, xp.empty_like(variable)
        rule._tw_rule.update_block(
            xp, gradient, variable, scratch, coefficients, *slots
        )
    segment.put_rows(rows, picked)


def dense_on_device(rule, gradient, variable):
    """Return a sparse gradient as a dense one, unless the host is to take it as it is.

    Rows of zeros change nothing if zero is idle, and else the update makes them itself.
    Where gradients are clipped, the norm is that of the sparse values.
    """
    shape, dtype, xp = _spec(variable._array)
    values = convert_to_tensor(gradient.values, dtype_hint=variable.dtype)
    indices = convert_to_tensor(gradient.indices)
    fits = gradient.dense_shape is None or tuple(gradient.shape) == shape
    fits = fits and indices.shape.rank == 1 and indices.dtype.is_integer
    fits = fits and bool(shape) and tuple(values.shape)[1:] == shape[1:]
    known = values.dtype.is_floating and kind_of(dtype) == "f"
    is_small = not rule._tw_rule.zero_is_idle or variable._array.size <= LARGE
    if xp is np or rule._tw_changes_gradients or not (fits and known and is_small):
        return gradient
    return scatter_rows(cast(values, variable.dtype), indices, shape=variable.shape)


def update_alone(rule, step, learning_rate, gradient, variable, slots):
    """Take one step of ``update_block`` for one variable, outside of its segment."""
    owners = [variable, *slots]
    xp = array_module(type(variable._array))
    workspace = Workspace(xp, variable._array.dtype, max(1, variable._array.size))
    numbers = rule._tw_rule.coefficients(step, learning_rate, workspace.computed.type)
    workspace.prepare(numbers)
    coefficients = workspace.numbers
    if rule._tw_rule.takes_factor:
        coefficients = [*coefficients, 1.0]
    scratch = workspace.scratch
    if rule._tw_rule.needs_two:
        scratch = scratch, workspace.spare
    arrays = [xp.array(v._array).reshape(-1) for v in owners]
    block = to_gradient(gradient, variable).reshape(-1), arrays[0], arrays[1:]
    for given, array, others in in_computed([block]):
        rule._tw_rule.update_block(xp, given, array, scratch, coefficients, *others)
    for owner, array in zip(owners, arrays):
        owner.assign(new_tensor(array.reshape(owner.shape)))
