"""`RuleStep`: the changes of one optimizer step, for a commit.

The numbers of the step are computed, and users' code runs, when it is created. The
commit then executes one of three forms:

- Calls of ufuncs on the flats themselves: rules in blocks on NumPy, without overhead.
- New flats with the new values: rules that read values, GPUs, and additions to an
  update (averages, accumulation, constraints).
- New arrays, to which a rule in ops has assigned.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import partial

import numpy as np

from tapewright.core.communication.job import count_step
from tapewright.core.hardware.devices import array_module, use_module
from tapewright.core.interpreters import use_interpreters
from tapewright.core.state.commit import with_arrays_back
from tapewright.core.state.sharded_variable import reading_own_parts
from tapewright.core.tensor import Tensor, new_tensor
from tapewright.core.variable import Variable

from .arithmetic import accumulate, average, clear, pays, scratch_count, update
from .flat_buffers import Workspace
from .gradients import Scaling, SparseRows, clipping, to_gradient
from .ops_step import take_step
from .recording import (
    NotRecordable,
    ReadSettings,
    Recorder,
    Runner,
    Template,
    are_current,
    bound,
)


class RuleStep:
    """One step of ``rule``, an optimizer, with ``share`` of the checked gradients."""

    def __init__(self, update, rule, gradients, share=1.0):
        self.update, self.rule, self.gradients = update, rule, gradients
        made = self.count = int(rule._iterations._array)
        self.every = rule.gradient_accumulation_steps or 1
        self.steps, self.is_due = made // self.every, (made + 1) % self.every == 0
        self.share = share / (rule.loss_scale_factor or 1)
        self.variables = [rule._iterations]
        self.arrays = [np.array(made + 1, np.int64)]
        if self.is_due:
            self._prepare()
        self.clips = None
        self.compiled = {}  # machine code and its numbers, by dtype, decay and scaling
        self.moved = None  # segments whose new flats have the new values
        self.kept = []  # arrays that calls know by their addresses
        if not rule._tw_updates_blocks:
            self._run_ops()
        elif self._has_more() or not update.is_recordable:
            self._compute_on_copies()
        count_step()

    def _prepare(self):
        """Set the coefficients; users' code may read variables here."""
        for variable, array in self.rule._tw_rule.advance(self.steps + 1) or ():
            self.variables.append(variable)
            self.arrays.append(array)
        self.update.set_coefficients(self.rule, self.steps + 1)

    is_taken = True  # it is no step that is skipped

    @property
    def changes_variables(self):
        """True if the step may change variables, not only sums of gradients."""
        return self.is_due or bool(self.rule.use_ema)

    def _has_more(self):
        """Return whether the step does more than update variables and slots."""
        return self.every > 1 or self.rule.use_ema or bool(self.update.constrained)

    def add_to(self, change):
        """Add the changes to a `Commit`."""
        if self.moved is None and not self._record(change):
            self._compute_on_copies()
        for segment in self.moved or ():
            segment.bind_to(change)
        change.bind(self.variables, self.arrays)

    def _record(self, change):
        """Add calls that write in place; return False if the rule reads values."""
        segments = self.update.changed
        for segment in segments:
            segment.gather(change)
        plan = self.update.plan
        if plan is None or not plan.add_to(change, self):
            try:
                self.record(self.update.groups, change)
            except NotRecordable:
                self.update.is_recordable = False
                return False
            self._plan()
        for segment in segments:
            segment.add_to(change)
        return True

    def record(self, groups, change):
        """Add calls that update the variables of these groups."""
        recorder = Recorder()
        self._update(groups, self.gradients, recorder)
        self.kept += recorder.calls
        change.writes += map(bound, recorder.calls)

    def _plan(self):
        """Cache the calls for later steps if the previous step had the same settings."""
        if self.share != 1 or self.rule._tw_changes_gradients:
            return
        update, settings = self.update, Plan.settings_of(self)
        update.plan = Plan(self) if update.settings == settings else None
        update.settings = settings

    # --- on copies

    def _compute_on_copies(self):
        rule, update = self.rule, self.update
        self.moved = update.touched(rule)
        for segment in self.moved:
            segment.move()
        gradients = self._accumulated()
        if self.is_due:
            self._update(update.groups, gradients)
        if self.is_due and self.every > 1:
            clear(update.segments)
        if rule.use_ema:
            self._average()
        for variable, segment, m in update.constrained:
            view = segment.views()[m]
            with use_interpreters(()):  # a copy, which the constraint may keep
                value = variable.constraint(new_tensor(view.copy()))
                view[...] = variable._fitting("assign", value)

    def _accumulated(self):
        """Add the gradients to their sums; return the sums, or the means if due."""
        if self.every == 1:
            return self.gradients
        steps = self.every if self.is_due else None
        sums = accumulate(self.update.groups, self.gradients, self.share, steps)
        self.share = 1.0
        return sums

    def _average(self):
        # As in Keras the first average is the variable itself.
        rule = self.rule
        weight = 1 - rule.ema_momentum if self.steps else 1
        every = rule.ema_overwrite_frequency
        overwrite = every and (self.steps + 1) % every == 0
        average(self.update.segments, weight, overwrite)

    # --- rules in ops

    def _run_ops(self):
        """Run a rule in ops, and record the arrays that it assigned to variables."""
        variables = self.rule._tw_writes(self.update)
        with nullcontext() if self.update.partition is None else reading_own_parts():
            arrays = with_arrays_back(variables, self._assigned, variables)
        self.variables = variables + self.variables  # the count of steps comes last
        self.arrays = arrays + self.arrays
        self.moved = ()

    def _assigned(self, variables):
        """Run the step; return the arrays of the variables after it."""
        rule, update = self.rule, self.update
        module = next((xp for _, _, (_, _, xp) in update.present), np)
        gradients, share = self.gradients, self.share
        before = [variable._array for variable in variables]
        with use_interpreters(()), _scalars_on(rule, module):
            take_step(rule, update, self.count, gradients, share, self._copies)
        update.check_assigned(variables, before)
        return [variable._array for variable in variables]

    def _copies(self, gradients, *limits):
        """Return clipped copies of gradients, for code that may keep them."""
        arrays = [g.array if type(g) is Tensor else g for g in gradients]
        specs = [spec for _, _, spec in self.update.present]
        copies = clipped_copies(arrays, specs, *limits, update=self.update)
        return [new_tensor(x) for x in copies]

    # --- rules in blocks

    def _clips(self, gradients):
        """Return the clipping of gradients, computed once: norms may be sums over processes."""
        if self.clips is None:
            limits = self.rule._tw_limits
            self.clips = clipping(gradients, *limits, self.share, self.update)
        return self.clips

    def _update(self, groups, gradients, runner=None):
        """Update all blocks by ``update_block``, at once or as recorded calls."""
        rule, clips = self.rule, self._clips(gradients)
        for segment, members, runs, flat, views in groups:
            xp = segment.workspace.xp
            blocks = _Blocks(rule, segment, runner or Runner(xp), self.compiled)
            if flat is None:
                _, n = members[0]
                blocks.update_single(gradients[n], clips[n])
                continue
            for m, n in members:
                _gather(xp, views[m], gradients[n], clips[n])
            for start, stop in runs:
                blocks.update_run(start, stop, flat[start:stop])


class Plan:
    """Cached calls of a step, which later steps repeat while the settings stay the same.

    ``groups``: the `Template` of each group of variables; ``gathered``: pairs of a part
    of their gradient memory and the number of the gradient it holds; ``singles``: the
    templates of variables that are alone, each with the number of its gradient. The
    calls of ``others``, further groups, are recorded in each step.
    """

    def __init__(self, step):
        self.settings = self.settings_of(step)
        self.read = {}  # settings of the rule that the calls depend on
        self.groups, self.gathered, self.singles, self.others = [], [], [], []
        for group in step.update.groups:
            numbers = [n for _, n in group.members]
            dense = all([type(step.gradients[n]) is np.ndarray for n in numbers])
            try:
                template = self._template(step, group) if dense else None
            except NotRecordable:  # the rule computes with the numbers of a step
                template = None
            if template is None:
                self.others.append(group)
            elif group.gradient is None:
                self.singles.append((*numbers, template))
            else:
                self.groups.append(template)
                self.gathered += [(group.views[m], n) for m, n in group.members]
        self.compiled = [
            (code, w, w.numbers, (*w.kind, *kind))
            for (w, *kind), (code, _) in step.compiled.items()
        ]

    @staticmethod
    def settings_of(step):
        """Return the settings that invalidate a plan, except settings that the rule reads."""
        rule, segments = step.rule, step.update.changed
        versions = [segment.version for segment in segments]
        return step.share, *rule._tw_limits, bool(rule.weight_decay), versions

    def _template(self, step, group):
        segment, flat, recorder = group.segment, group.gradient, Recorder()
        read = ReadSettings(step.rule, self.read)
        blocks = _Blocks(step.rule, segment, recorder, step.compiled, read)
        if not blocks.in_place:
            return None
        if flat is None:
            ((_, n),) = group.members
            gradient = _plain(step.gradients[n].reshape(-1))
            blocks.update_run(0, gradient.size, gradient)
            return Template(recorder.calls, gradient)
        for start, stop in group.runs:
            blocks.update_run(start, stop, flat[start:stop])
        return Template(recorder.calls)

    def add_to(self, change, step):
        """Add the calls for the gradients of a step; return False if it needs another plan."""
        if self.settings_of(step) != self.settings:
            return False
        if not are_current(step.rule, self.read):
            return False
        for code, workspace, numbers, kind in self.compiled:
            if workspace.numbers is not numbers:
                return False
            if step.rule._tw_compiled_update(*kind) is not code:
                return False
        gradients, writes = step.gradients, change.writes
        for view, n in self.gathered:
            if gradients[n] is not view:
                view[...] = gradients[n]
        for template in self.groups:
            writes += template.bound(None)
        for n, template in self.singles:
            gradient = _plain(gradients[n].reshape(-1))
            step.kept.append(gradient)
            writes += template.bound(gradient)
        if self.others:
            step.record(self.others, change)
        return True


class _Blocks:
    """Updates of the blocks of a segment by a rule.

    With ``read`` the rule receives no values of coefficients, and `ReadSettings` as
    ``self``.
    """

    def __init__(self, rule, segment, runner, compiled, read=None):
        self.rule, self.segment, self.workspace = rule, segment, segment.workspace
        self.runner, self.compiled, self.read = runner, compiled, read
        self.in_place = self.workspace.computed == self.workspace.dtype
        self.decays = bool(rule.weight_decay and segment.decays)

    def update_single(self, gradient, clip):
        """Update a segment's single variable."""
        segment, rule = self.segment, self.rule
        if type(gradient) is not SparseRows:
            self.update_run(0, segment.starts[-1], gradient.reshape(-1), clip)
            return
        rows, values = _clipped_rows(self.workspace.xp, gradient, clip)
        if not rule._tw_rule.zero_is_idle or self.decays:
            self._update_all_rows(rows, values)
        elif rows.size:
            self._update_rows(rows, values)

    def update_run(self, start, stop, gradient, clip=None):
        """Update a stretch by ``update_block``, in one call if it is machine code."""
        gradient = _plain(gradient)
        if self.in_place and (clip is None or type(clip) is Scaling):
            compiled, numbers = self._compiled(clip)
            if compiled is not None:
                arrays = self.segment.stretch(start, stop)
                self.runner.compute(compiled, gradient, *arrays, *numbers)
                return
        self._update(self.segment.blocks(start, stop, gradient), clip)

    def _compiled(self, clip):
        """Return the machine code for a segment, or None, and its coefficients."""
        workspace, scaled = self.workspace, type(clip) is Scaling
        key = workspace, self.decays, scaled
        known = self.compiled.get(key)
        if known is None:
            kind = *workspace.kind, self.decays, scaled
            compiled = self.rule._tw_compiled_update(*kind)
            known = self.compiled[key] = compiled, workspace.numbers
        compiled, numbers = known
        return compiled, [*numbers, clip.factor] if scaled else numbers

    @property
    def at_once(self):
        """Runner that executes calls while others are recorded."""
        return Runner(self.workspace.xp)

    def _update(self, blocks, clip=None):
        """Update blocks by ``update_block``, after clipping by ``clip`` and decay."""
        options = clip, *self._compiled(clip)
        for gradient, *arrays in blocks:
            if self.in_place:
                self._update_block(self.runner, gradient, *arrays, *options)
                continue
            with self._in_computed(gradient, *arrays) as wide:
                self._update_block(self.at_once, *wide, *options)

    @contextmanager
    def _in_computed(self, *arrays):
        """Yield copies of a gradient, a variable and slots, rounded back at the end.

        Copies of bfloat16 arrays are float32.
        """
        copies = [x.astype(self.workspace.computed) for x in arrays]
        yield copies
        for array, new in zip(arrays[1:], copies[1:]):
            self.runner.call(array.__setitem__, ..., new)

    def _update_block(self, runner, gradient, variable, *more):
        *slots, clip, compiled, numbers = more
        rule, workspace, size = self.rule, self.workspace, variable.size
        xp, wrapped = runner.xp, runner.wrapped
        gradient = wrapped(gradient)
        folds = compiled is not None or (
            rule._tw_rule._tw_takes_factor and self._folds(clip)
        )
        if clip is not None and not (folds and type(clip) is Scaling):
            gradient = clip(xp, gradient, wrapped(workspace.second[:size]))
            clip = None
        if compiled is not None:
            gradient = runner.array_of(gradient)
            runner.compute(compiled, gradient, variable, *slots, *numbers)
            return
        numbers, method = workspace.numbers, rule._tw_rule.update_block
        if self.read is not None:
            numbers = map(wrapped, numbers)
            method = partial(type(rule).update_block, self.read)
        arrays = [gradient, *map(wrapped, (variable, *slots))]
        scratch = workspace.scratches(scratch_count(rule._tw_rule), size)
        factor = 1.0 if clip is None else float(clip.factor)
        options = [*map(wrapped, scratch)], numbers, self.decays, factor
        update(rule._tw_rule, method, xp, arrays, *options)

    def _folds(self, clip):
        """Return whether the rule can apply the factor of ``clip`` within its own passes."""
        return type(clip) is Scaling and clip.folds and pays(self.segment.flats[0])

    # --- sparse gradients

    def _update_all_rows(self, rows, values):
        """Update all rows, with zeros where there is no gradient."""
        self._update(self._row_blocks(rows, values))

    def _row_blocks(self, rows, values):
        segment = self.segment
        call = (self.runner if self.in_place else self.at_once).call
        height = segment.variables[0].shape[0]
        width = segment.starts[-1] // height
        second = self.workspace.second
        if width > second.size:  # one row is longer than a block
            second = self.workspace.xp.empty(width, second.dtype)
        for i, j, first, last in segment.row_ranges(rows):
            gradient = second[: (j - i) * width]
            call(gradient.fill, 0)
            if first < last:
                lines = gradient.reshape(j - i, width)
                part = values[first:last].reshape(-1, width)
                call(lines.__setitem__, rows[first:last] - i, part)
            yield from segment.blocks(i * width, j * width, gradient)

    def _update_rows(self, rows, values):
        """Update only the rows that have a gradient."""
        lines = self.segment.lines()
        picked = [each[rows] for each in lines]
        arrays = [values, *picked]
        if not self.in_place:
            arrays = [x.astype(self.workspace.computed) for x in arrays]
        rule, xp = self.rule._tw_rule, self.workspace.xp
        flat = [x.reshape(-1) for x in arrays]
        scratch = [xp.empty_like(flat[1]) for _ in range(scratch_count(rule))]
        update(rule, rule.update_block, xp, flat, scratch, self.workspace.numbers)
        for line, new in zip(lines, arrays[1:]):
            self.runner.call(line.__setitem__, rows, new)


def update_alone(rule, step, learning_rate, gradient, variable, slots):
    """Take one step of ``update_block`` for one variable, outside of its segment."""
    owners, rule = [variable, *slots], rule._tw_rule
    xp = array_module(type(variable._array))
    workspace = Workspace(xp, variable._array.dtype, max(1, variable._array.size))
    numbers = rule.coefficients(step, learning_rate, workspace.computed.type)
    workspace.prepare((0, *numbers))
    scratch = workspace.scratches(scratch_count(rule), variable._array.size)
    arrays = [to_gradient(gradient, variable), *[v._array for v in owners]]
    copies = [xp.array(x, workspace.computed).reshape(-1) for x in arrays]
    update(rule, rule.update_block, xp, copies, scratch, workspace.numbers)
    for owner, new in zip(owners, copies[1:]):
        new = new.reshape(owner.shape).astype(owner._array.dtype, copy=False)
        owner.assign(new_tensor(new))


def _plain(array):
    """Return an array with this layout that machine code accepts."""
    flags = array.flags
    if flags.c_contiguous and getattr(flags, "aligned", True):
        return array
    return array.copy()


def _gather(xp, view, gradient, clip):
    """Write a clipped gradient into its view of the group's gradient."""
    if type(gradient) is SparseRows:
        rows, values = _clipped_rows(xp, gradient, clip)
        view.fill(0)
        view[rows] = values
    elif clip is None:
        if gradient is not view:
            view[...] = gradient
    else:
        clip(xp, gradient, view)


def clipped_copies(gradients, specs, *limits, update=None):
    """Return clipped copies of gradients; ``limits``: as for `clipping`."""
    clips = clipping(gradients, *limits, update=update)
    return [_clipped_copy(*each) for each in zip(gradients, clips, specs)]


def _clipped_copy(gradient, clip, spec):
    """Return a clipped copy of a gradient, with zeros in missing rows."""
    shape, dtype, xp = spec
    if type(gradient) is not SparseRows:
        if clip is None:
            return xp.array(gradient)
        return clip(xp, gradient, xp.empty(shape, dtype))
    rows, values = _clipped_rows(xp, gradient, clip)
    array = xp.zeros(shape, dtype)
    array[rows] = values
    return array


def _clipped_rows(xp, gradient, clip):
    rows, values = gradient
    if clip is not None:
        values = clip(xp, values, xp.empty_like(values))
    return rows, values


@contextmanager
def _scalars_on(rule, module):
    """Hold the iteration and the learning rate as arrays of a module, for computation."""
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
