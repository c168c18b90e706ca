"""`RuleStep`: the changes of one step of an optimizer, for a commit to make.

The numbers of the step are chosen, and users' code runs, when it is made. What the commit
then does is in one of three forms:

- Calls of ufuncs on the flats themselves: rules in blocks on NumPy, at no further cost.
- New flats that have the new values: rules that look at values, GPUs, and what comes beside
  an update (averages, accumulation, constraints).
- New arrays, to which a rule in ops has assigned.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from weakref import WeakSet

import numpy as np

from tapewright.core.commit import bind_all, with_arrays_back
from tapewright.core.communication.job import count_step
from tapewright.core.devices import array_module, use_module
from tapewright.core.interpreters import use_interpreters
from tapewright.core.tensor import new_tensor
from tapewright.core.variable import Variable

from .arithmetic import accumulate, average, clear, pays
from .flat_buffers import Workspace
from .gradients import Scaling, SparseRows, clipping, to_gradient
from .recording import NotRecordable, Recorder, Runner

__all__ = ["RuleStep", "update_alone"]

_unrecordable: WeakSet = WeakSet()  # classes of rules that look at values


class RuleStep:
    """One step of ``rule``, an optimizer, with ``share`` of checked gradients."""

    def __init__(self, update, rule, gradients, share=1.0):
        self.update, self.rule, self.gradients = update, rule, gradients
        made = int(rule._iterations._array)
        self.every = rule.gradient_accumulation_steps or 1
        self.steps, self.is_due = made // self.every, (made + 1) % self.every == 0
        self.share = share / (rule.loss_scale_factor or 1)
        self.variables = [rule._iterations]
        self.arrays = [np.array(made + 1, np.int64)]
        if self.is_due:
            self._prepare()
        self.compiled = {}  # machine code and its numbers, by dtype, decay and scaling
        self.moved = None  # segments whose new flats have the new values
        if not rule._tw_updates_blocks:
            self._run_ops()
        elif self._has_more() or not update.is_on_host or type(rule) in _unrecordable:
            self._compute_on_copies()
        count_step()

    def _prepare(self):
        """Set the coefficients; code of the user may read variables here."""
        for variable, array in self.rule._tw_rule.advance(self.steps + 1) or ():
            self.variables.append(variable)
            self.arrays.append(array)
        self.update.set_coefficients(self.rule, self.steps + 1)

    def _has_more(self):
        """Return whether the step does more than to update variables and slots."""
        return self.every > 1 or self.rule.use_ema or bool(self.update.constrained)

    def add_to(self, change):
        """Add the changes to a `Commit`."""
        if self.moved is None and not self._record(change):
            self._compute_on_copies()
        for segment in self.moved or ():
            segment.bind_to(change)
        change.bind(self.variables, self.arrays)

    def _record(self, change):
        """Add calls that write in place; return False if the rule looks at values."""
        segments = self.update.changed
        for segment in segments:
            segment.gather(change)
        if self.update.plan is not None and self.update.plan.add_to(change, self):
            for segment in segments:
                segment.add_to(change)
            return True
        recorder = Recorder([])
        try:
            self._update(recorder)
        except NotRecordable:
            _unrecordable.add(type(self.rule))
            return False
        self.recorder = recorder  # keeps arrays until the calls are made
        self.update.plan = Plan.of(self)
        for segment in segments:
            segment.add_to(change)
        change.writes += recorder.writes
        return True

    # --- on copies

    def _compute_on_copies(self):
        rule, update = self.rule, self.update
        self.moved = update.touched(rule)
        for segment in self.moved:
            segment.move()
        gradients = self._accumulated()
        if self.is_due:
            self._update(None, gradients)
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
        """Add the gradients to their sums; return these, or their means if it is due."""
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
        """Let the rule assign, and note the arrays that the variables have then."""
        variables = self.rule._tw_writes(self.update)
        arrays = with_arrays_back(variables, self._assigned, variables)
        self.variables = variables + self.variables  # the count of steps comes last
        self.arrays = arrays + self.arrays
        self.moved = ()

    def _assigned(self, variables):
        """Make the step; return the arrays of the variables after it."""
        rule, update = self.rule, self.update
        if self.every > 1:
            with self._moved():
                gradients = self._clipped_copies(self._accumulated())
                if self.is_due:
                    clear(update.segments)
        elif self.is_due:
            gradients = self._clipped_copies(self.gradients)
        if self.is_due:
            self._call(gradients)
        if rule.use_ema:
            with self._moved():
                self._average()
        for variable, *_ in update.constrained:
            with use_interpreters(()):
                variable.assign(variable.constraint(variable))
        return [variable._array for variable in variables]

    @contextmanager
    def _moved(self):
        segments = self.update.segments
        for segment in segments:
            segment.move()
        yield
        for segment in segments:
            bind_all(segment.owners, segment.views_of_owners())

    def _clipped_copies(self, gradients):
        """Return new arrays of the gradients, clipped, for code that may keep them."""
        clips = self._clips(gradients)
        specs = [spec for _, _, spec in self.update.present]
        return [_clipped_copy(*each) for each in zip(gradients, clips, specs)]

    def _call(self, gradients):
        """Decay the variables, and call ``update_step`` for each."""
        rule = self.rule
        variables = [variable for _, variable, _ in self.update.present]
        module = self.update.present[0][2][2]
        with use_interpreters(()), _scalars_on(rule, module):
            rule._apply_weight_decay(variables)
            gradients = [new_tensor(array) for array in gradients]
            rule._backend_update_step(gradients, variables, rule.learning_rate)

    # --- rules in blocks

    def _clips(self, gradients):
        rule = self.rule
        limits = rule.clipnorm, rule.clipvalue, rule.global_clipnorm
        return clipping(gradients, *limits, self.share)

    def _update(self, runner, gradients=None):
        """Update all blocks by ``update_block``, at once or as calls of a recorder."""
        gradients = self.gradients if gradients is None else gradients
        rule, clips = self.rule, self._clips(gradients)
        for segment, members, runs, flat, views in self.update.groups:
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
    """Cached calls of a step that machine code makes.

    ``entries``: for each call the code, its gradient (an array of the update, or the number
    of a variable's own one), and the other arguments; ``gathered``: pairs of a part of such
    an array and the number of the gradient that belongs there.
    """

    def __init__(self, entries, gathered, step):
        self.entries, self.gathered = entries, gathered
        self.compiled = [(key, code) for key, (code, _) in step.compiled.items()]
        self.numbers = [(key[0], key[0].numbers) for key in step.compiled]
        self.versions = [segment.version for segment in step.update.changed]
        self.decays = bool(step.rule.weight_decay)

    @classmethod
    def of(cls, step):
        """Return the plan of a step that was just recorded; None if others differ from it."""
        rule, update = step.rule, step.update
        entries, gathered = [], []
        if rule._tw_changes_gradients or not step.compiled:
            return None
        for segment, members, runs, flat, views in update.groups:
            workspace = segment.workspace
            decays = bool(rule.weight_decay and segment.decays)
            compiled, numbers = step.compiled.get(
                (workspace, decays, False), (None, ())
            )
            dense = [type(step.gradients[n]) is np.ndarray for _, n in members]
            if (
                compiled is None
                or workspace.computed != workspace.dtype
                or not all(dense)
            ):
                return None
            if flat is None:
                runs = [(0, segment.starts[-1])]
            for start, stop in runs:
                gradient = members[0][1] if flat is None else flat[start:stop]
                arrays = segment.stretch(start, stop)
                entries.append((compiled, gradient, (*arrays, *numbers)))
            gathered += [(views[m], n) for m, n in members if flat is not None]
        return cls(entries, gathered, step)

    def add_to(self, change, step):
        """Add the calls for the gradients of a step; return False if it needs another plan."""
        rule, gradients = step.rule, step.gradients
        if step.share != 1 or rule.clipnorm or rule.clipvalue or rule.global_clipnorm:
            return False
        if [segment.version for segment in step.update.changed] != self.versions:
            return False
        if bool(rule.weight_decay) != self.decays:
            return False
        for (workspace, decays, scaled), code in self.compiled:
            kind = workspace.xp, workspace.computed, decays, scaled
            if rule._tw_compiled_update(*kind) is not code:
                return False
        for workspace, known in self.numbers:
            if workspace.numbers is not known:
                return False
        for view, n in self.gathered:
            if gradients[n] is not view:
                view[...] = gradients[n]
        for compiled, gradient, arguments in self.entries:
            if type(gradient) is int:
                gradient = _plain(gradients[gradient].reshape(-1))
            change.writes.append(partial(compiled, gradient, *arguments))
        return True


class _Blocks:
    """Updates of the blocks of a segment by a rule."""

    def __init__(self, rule, segment, runner, compiled):
        self.rule, self.segment, self.workspace = rule, segment, segment.workspace
        self.runner, self.compiled = runner, compiled
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
        """Update a stretch by ``update_block``: in one call where it is machine code."""
        gradient = _plain(gradient)
        if self.in_place and (clip is None or type(clip) is Scaling):
            compiled, numbers = self._compiled(clip)
            if compiled is not None:
                arrays = self.segment.stretch(start, stop)
                self.runner.compute(compiled, gradient, *arrays, *numbers)
                return
        self._update(self.segment.blocks(start, stop, gradient), clip)

    def _compiled(self, clip):
        """Return the machine code for a segment, or None, and the numbers that it takes."""
        workspace, scaled = self.workspace, type(clip) is Scaling
        key = workspace, self.decays, scaled
        known = self.compiled.get(key)
        if known is None:
            kind = workspace.xp, workspace.computed, self.decays, scaled
            compiled = self.rule._tw_compiled_update(*kind)
            decay, *numbers = workspace.numbers
            if self.decays:
                numbers.append(decay)
            known = self.compiled[key] = compiled, numbers
        compiled, numbers = known
        return compiled, [*numbers, clip.factor] if scaled else numbers

    @property
    def at_once(self):
        """A runner that computes while the calls are noted."""
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
        """Copies of a gradient, a variable and slots, rounded to the latter at the end.

        Those of bfloat16 are in float32.
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
            rule._tw_rule.takes_factor and self._folds(clip)
        )
        if clip is not None and not (folds and type(clip) is Scaling):
            gradient = clip(xp, gradient, wrapped(workspace.second[:size]))
            clip = None
        if compiled is not None:
            gradient = runner.array_of(gradient)
            runner.compute(compiled, gradient, variable, *slots, *numbers)
            return
        decay, *coefficients = workspace.numbers
        if rule._tw_rule.takes_factor:
            coefficients.append(1.0 if clip is None else float(clip.factor))
        variable, buffer = wrapped(variable), wrapped(workspace.scratch[:size])
        if self.decays:
            xp.multiply(variable, decay, out=buffer)
            xp.subtract(variable, buffer, out=variable)
        if rule._tw_rule.needs_two:
            buffer = buffer, wrapped(workspace.spare[:size])
        slots = map(wrapped, slots)
        rule._tw_rule.update_block(xp, gradient, variable, buffer, coefficients, *slots)

    def _folds(self, clip):
        """Return whether the rule multiplies by the factor of ``clip`` in passing."""
        return type(clip) is Scaling and clip.folds and pays(self.segment.flats[0])

    # --- sparse gradients

    def _update_all_rows(self, rows, values):
        """Update all rows, by zeros where there is no gradient."""
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
        """Update the rows that have a gradient, and no others."""
        lines = self.segment.lines()
        picked = [each[rows] for each in lines]
        arrays = [values, *picked]
        if not self.in_place:
            arrays = [x.astype(self.workspace.computed) for x in arrays]
        self._update_copies(*[x.reshape(-1) for x in arrays])
        for line, new in zip(lines, arrays[1:]):
            self.runner.call(line.__setitem__, rows, new)

    def _update_copies(self, gradient, variable, *slots):
        rule, xp = self.rule, self.workspace.xp
        coefficients = self.workspace.numbers[1:]
        if rule._tw_rule.takes_factor:
            coefficients.append(1.0)
        scratch = xp.empty_like(variable)
        if rule._tw_rule.needs_two:
            scratch = scratch, xp.empty_like(variable)
        rule._tw_rule.update_block(
            xp, gradient, variable, scratch, coefficients, *slots
        )


def update_alone(rule, step, learning_rate, gradient, variable, slots):
    """Take one step of ``update_block`` for one variable, outside of its segment."""
    owners, rule = [variable, *slots], rule._tw_rule
    xp = array_module(type(variable._array))
    workspace = Workspace(xp, variable._array.dtype, max(1, variable._array.size))
    numbers = rule.coefficients(step, learning_rate, workspace.computed.type)
    workspace.prepare(numbers)
    coefficients, scratch = [*workspace.numbers], workspace.scratch
    if rule.takes_factor:
        coefficients.append(1.0)
    if rule.needs_two:
        scratch = scratch, workspace.spare
    arrays = [to_gradient(gradient, variable), *[v._array for v in owners]]
    copies = [xp.array(x, workspace.computed).reshape(-1) for x in arrays]
    gradient, first, *others = copies
    rule.update_block(xp, gradient, first, scratch, coefficients, *others)
    for owner, new in zip(owners, copies[1:]):
        new = new.reshape(owner.shape).astype(owner._array.dtype, copy=False)
        owner.assign(new_tensor(new))


def _plain(array):
    """Return an array of this layout that machine code takes."""
    flags = array.flags
    if flags.c_contiguous and getattr(flags, "aligned", True):
        return array
    return array.copy()


def _gather(xp, view, gradient, clip):
    """Write a gradient, clipped, into its view of the group's."""
    if type(gradient) is SparseRows:
        rows, values = _clipped_rows(xp, gradient, clip)
        view.fill(0)
        view[rows] = values
    elif clip is None:
        if gradient is not view:
            view[...] = gradient
    else:
        clip(xp, gradient, view)


def _clipped_copy(gradient, clip, spec):
    """Return a new array of a gradient, clipped, with zeros in the rows that it lacks."""
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
