"""`Update`: one call of ``apply``, prepared once for its variables and gradients.

Facts that do not change between steps are computed in the first: missing and sparse
gradients, and the stretches of segments that change.
"""

from __future__ import annotations

import copy
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tapewright.autodiff.explain import explain_missing
from tapewright.compiler.control_flow.effects import effect_maker
from tapewright.compiler.program.instructions.variable_update import VariableUpdate
from tapewright.core.dtypes import kind_of
from tapewright.core.hardware.devices import array_module
from tapewright.core.interpreters import active_interpreter, notify_of_writes
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.settings import config
from tapewright.core.settings.ufunc_settings import ignoring_float_errors
from tapewright.core.state.commit import commit
from tapewright.core.state.replica_context import replica_context
from tapewright.core.tensor import (
    IndexedSlices,
    Tensor,
    convert_to_tensor,
    new_tensor,
)
from tapewright.core.variable import writing
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.gather import scatter_rows
from tapewright.ops.collective import all_reduce

from .flat_buffers import Segment, split
from .gradients import (
    all_gather_rows,
    all_reduce_gradients,
    check_gradient,
    to_gradient,
)
from .recording import all_current

_EFFECT = "apply_gradients"  # the name of an update in a graph
# Entries of a variable up to which it pays to update rows without a gradient, too: in
# any case, and for each entry of the sparse gradient.
DENSE = {"native": (1 << 17, 16), "numpy": (1 << 14, 1), "gpu": (1 << 26, 0)}


class _GradientGroup(NamedTuple):
    """The gradients of one segment, and the memory to gather them in.

    ``members``: pairs of a variable's number in the segment and the number of its
    gradient; ``runs``: the stretches of the segment that change. ``gradient`` is None
    if the group has one variable: its gradient is used without a copy.
    """

    segment: Segment
    members: list
    runs: list
    gradient: object
    views: list

    @classmethod
    def of(cls, segment, members):
        """Return the group with new memory."""
        runs = segment.stretches([m for m, _ in members])
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
        if not present and len(grads):
            raise ValueError(
                f"No gradients provided for any variable: for {[v.path for v in variables]} "
                f"the gradient is None.{explain_missing(variables)}"
            )
        self.missing = [v for v, g in zip(variables, grads) if g is None]
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
                self.groups.append(_GradientGroup.of(segment, members))
        self.changed = [group.segment for group in self.groups]
        workspaces = [segment.workspace for segment in self.changed]
        self.workspaces = list({id(each): each for each in workspaces}.values())
        self.plan = self.settings = None  # of steps in blocks, once there was one
        # Whether ufuncs make the steps, as far as is known: `recording`.
        self.is_recordable = all([w.xp is np for w in self.workspaces])
        self.constrained = [  # with the segment, and the number there
            (group.segment.variables[m], group.segment, m)
            for group in self.groups
            for m, _ in group.members
            if getattr(group.segment.variables[m], "constraint", None) is not None
        ]

    def with_own_memory(self):
        """Return the same update with new memory for gradients."""
        other = copy.copy(self)
        other.plan = other.settings = None
        pairs = [(group.segment, group.members) for group in self.groups]
        other.groups = [_GradientGroup.of(*pair) for pair in pairs]
        return other

    @ignoring_float_errors
    def apply(self, rule, grads):
        """Take one step of ``rule``, the optimizer."""
        if self.missing or active_interpreter() is not None:
            self.announce(rule)
        self._locks(rule).run(self._commit, rule, grads)

    def announce(self, rule):
        """Warn about missing gradients; report to interpreters the variables a step writes."""
        self._warn_of_missing()
        if active_interpreter() is not None:
            notify_of_writes(rule._tw_writes(self), _EFFECT)

    def _commit(self, rule, grads):
        commit([self.make_step(rule, grads)])

    def make_step(self, rule, grads):
        """Return a step for a commit that holds the locks of all variables."""
        return self.step_of(rule, self.checked(grads), _pending_reduction())

    def step_of(self, rule, gradients, reduction):
        """Return a step with checked gradients.

        ``reduction``: the arguments ``op`` and ``compression`` of the all-reduce of the
        gradients over the processes, or None.
        """
        if reduction is not None:
            gradients = all_reduce_gradients(gradients, *reduction)
        return rule._tw_make_step(self, gradients)

    def _locks(self, rule):
        lock = self._exclusive.get(id(rule))  # an optimizer and one around it
        if lock is None:
            lock = self._exclusive[id(rule)] = writing(rule._tw_writes(self))
        return lock

    def trace(self, rule, grads, tracer):
        """Record one step, which every replay executes."""
        self._warn_of_missing()
        notify_of_writes(rule._tw_writes(self), _EFFECT)
        reduction = _pending_reduction()
        inputs, slices = [], []
        for i, variable, _ in self.present:
            gradient = grads[i]
            if isinstance(gradient, IndexedSlices):
                values = convert_to_tensor(gradient.values, dtype_hint=variable.dtype)
                indices = convert_to_tensor(gradient.indices)
                shape = gradient.dense_shape  # a traced one is not known
                shape = None if hasattr(shape, "symbol") else shape
                gradient = IndexedSlices(values, indices, shape)
                if reduction is None:
                    gradient = dense_where_it_pays(rule, gradient, variable)
            else:
                gradient = convert_to_tensor(gradient, dtype_hint=variable.dtype)
                check_gradient(gradient.array, variable)
                gradient = cast(gradient, variable.dtype)
                if reduction is not None and not self.reduces:
                    gradient = all_reduce(gradient, *reduction)
            if isinstance(gradient, IndexedSlices):
                arrays = [gradient.values, gradient.indices]
                slices.append(gradient)
            else:
                arrays = [gradient]
                slices.append(None)
            inputs += arrays
        gathers = reduction is not None and not self.reduces
        step = TracedUpdate(self, rule, slices, gathers)
        step.reduction = reduction if self.reduces else None
        if not rule._tw_updates_blocks:
            tracer.flush_variables()  # its code may look at any variable
        tracer.effect(_EFFECT, step, inputs, reads=step.reads, writes=step.writes)

    def _warn_of_missing(self):
        if self.missing:
            warnings.warn(
                f"Gradients do not exist for variables {[v.path for v in self.missing]} "
                "when minimizing the loss, which keep their values."
                f"{explain_missing(self.missing)}",
                stacklevel=user_stacklevel(),
            )

    # --- overridden by the updates of several processes, see `sharded_update`

    reduces = False  # a step takes the gradients of this process, not yet reduced
    partition: Any = None  # of the variables, for the part of one process

    def variables_outside(self, rule):
        """Return the variables outside of the segments that a step binds arrays to."""
        return []

    def sum_each(self, squares):
        """Return the sum over the processes of the squared norm of each gradient."""
        return squares

    def sum_all(self, square):
        """Return the sum over the processes of a squared norm of all gradients."""
        return square

    def everywhere(self, flag):
        """Return the conjunction of a flag over the processes that update parts."""
        return flag

    def check_assigned(self, variables, before):
        """Raise an error if a rule in ops has assigned to a variable without an owner."""

    def memory_of_gradients(self, rule, reduction):
        """Return for each gradient an array that a step uses without a copy, or None."""
        memory = [None] * len(self.present)
        if not rule._tw_changes_gradients:
            for group in self.groups:
                for m, n in group.members if group.views else ():
                    memory[n] = group.views[m]
        return memory

    def touched(self, rule):
        """Return the segments that a step of ``rule`` writes to."""
        if rule.use_ema or rule.gradient_accumulation_steps:
            return self.segments
        return self.changed

    def set_coefficients(self, rule, step):
        """Set the numbers of a step, counted from 1; the learning rate may run users' code."""
        rate = rule._tw_rate()
        decay = rate * (rule.weight_decay or 0)
        for workspace in self.workspaces:
            coefficients = rule._tw_rule.coefficients(
                step, rate, workspace.computed.type
            )
            workspace.prepare((decay, *coefficients))

    def checked(self, grads):
        """Return the gradients as arrays and `SparseRows`; raise if one is invalid."""
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
    ``gathers``: the slices are gathered from all replicas; ``reduction``: see
    `Update.step_of`.
    """

    reduction: Any = None

    def __init__(self, update, rule, slices, gathers=False):
        self.update, self.rule, self.slices = update, rule, slices
        self.gathers = gathers
        self.dense: bool = all([each is None for each in slices])
        self.read = None  # what the latest traced step has read, for `all_current`
        self.__name__ = _EFFECT

    def make_step(self, *arrays):
        if self.dense:
            return self.update.step_of(self.rule, arrays, self.reduction)
        rest, gradients = iter(arrays), []
        for (_, variable, _), slices in zip(self.update.present, self.slices):
            array = next(rest)
            if slices is not None:
                values, indices = new_tensor(array), new_tensor(next(rest))
                slices = IndexedSlices(values, indices, slices.dense_shape)
                array = to_gradient(slices, variable)
                array = all_gather_rows(array) if self.gathers else array
            gradients.append(array)
        return self.update.step_of(self.rule, gradients, self.reduction)

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
        if not self.dense:
            return [None] * len(self.slices)
        return self.update.memory_of_gradients(self.rule, self.reduction)

    @property
    def block_rule(self):
        return self.rule._tw_block_rule

    def reducing(self, op, compression):
        if not self.update.reduces or self.reduction is not None or not self.dense:
            return None
        other = copy.copy(self)
        other.reduction = op, compression
        return other

    def on_device(self):
        return self.rule._tw_device_update(self.update) if self.dense else None

    def inlined(self):
        graph, self.read = self.rule._tw_traced_step(self.update, self.dense)
        return graph

    def guard(self):
        return None if self.read is None else partial(all_current, self.read)

    def with_own_memory(self):
        other = copy.copy(self)
        other.update = self.update.with_own_memory()
        return other

    def attributes(self):
        """Return the arguments of `_traced_update` that recreate it."""
        if self.update.reduces:
            raise ValueError(
                f"'{self.rule.name}' is sharded, and updates variables together with other "
                "processes: save the function with an optimizer that is not"
            )
        variables = [variable for _, variable, _ in self.update.present]
        sparse = "gathered" if self.gathers else "sparse"
        gradients = ["dense" if each is None else sparse for each in self.slices]
        return {"optimizer": self.rule, "variables": variables, "gradients": gradients}


@effect_maker(_EFFECT, on_host=False)
def _traced_update(optimizer, variables, gradients):
    update = optimizer._tw_update_of(tuple(variables), gradients)
    empty = IndexedSlices(None, None)
    slices = [None if each == "dense" else empty for each in gradients]
    return TracedUpdate(update, optimizer, slices, "gathered" in gradients)


def _pending_reduction():
    """Return the arguments of the all-reduce of gradients in a step of several replicas."""
    context = replica_context()
    return None if context is None else ("sum", context.compression)


def _spec(array):
    return array.shape, array.dtype, array_module(type(array))


def dense_where_it_pays(rule, gradient, variable):
    """Convert a sparse gradient to a dense one if that makes the update faster.

    Rows of zeros change nothing if ``zero_is_idle``; otherwise the update creates them
    itself. The host clips the gradients of a GPU, and keeps the sparse ones sparse.
    """
    shape, dtype, xp = _spec(variable._array)
    values = convert_to_tensor(gradient.values, dtype_hint=variable.dtype)
    indices = convert_to_tensor(gradient.indices)
    fits = gradient.dense_shape is None or tuple(gradient.shape) == shape
    fits = fits and indices.shape.rank == 1 and indices.dtype.is_integer
    fits = fits and bool(shape) and tuple(values.shape)[1:] == shape[1:]
    known = values.dtype.is_floating and kind_of(dtype) == "f"
    small, per_entry = DENSE[config.target() if xp is np else "gpu"]
    most = max(small, per_entry * (values.shape.num_elements() or 0))
    pays = not rule._tw_rule.zero_is_idle or variable._array.size <= most
    clips = xp is not np and rule._tw_changes_gradients
    if clips or not (fits and known and pays):
        return gradient
    return scatter_rows(cast(values, variable.dtype), indices, shape=variable.shape)
