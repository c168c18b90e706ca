"""An update that is divided among the processes of a job: ZeRO, stage 1.

Each process has a part of the slots, and updates that part of the variables:

1. The gradients are summed over the processes, each process receives the part that it
   needs (`reduce_scatter`). Gradients that are summed already are cut.
2. An `Update` of the parts takes the step.
3. The processes gather the whole variables, as new arrays, which a commit binds.

An error or an interrupt leaves the variables as they were. If it comes while they are
gathered, the slots may be a step ahead: no process can gather these any more.

References:
    Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
    models" (2020).
"""

from __future__ import annotations

import copy
import hashlib

import numpy as np

from tapewright.core.communication.job import communicator
from tapewright.core.errors import CollectiveError
from tapewright.core.hardware.devices import array_module, to_numpy
from tapewright.core.interpreters import use_interpreters
from tapewright.core.state.commit import commit, with_arrays_back
from tapewright.core.state.sharded_variable import ShardedVariable
from tapewright.core.tensor import new_tensor
from tapewright.core.variable import Variable

from .flat_buffers import computed_in
from .gradients import SparseRows, all_gather_rows
from .partition import Exchange, kind_of_array
from .update import Update


class Parts:
    """The variables that this process updates: parts of the variables of an optimizer.

    ``updated[i]`` is the part of variable i. If a variable belongs to one process as a
    whole, it is the variable itself; on the other processes it is None.
    """

    def __init__(self, partition, variables):
        self.partition, self.variables = partition, variables
        self._whole: dict[int, object] = {}  # the arrays that the parts belong to
        pairs = zip(variables, partition.own)
        if partition.by_entries:
            self.updated = [_part(*pair) for pair in pairs]
        else:
            self.updated = [v if shard.here else None for v, shard in pairs]

    def of_updated(self, *columns):
        """Return the entries of lists, one per variable, for the variables updated here."""
        return [
            [x for x, own in zip(column, self.updated) if own is not None]
            for column in columns
        ]

    def refresh(self, numbers):
        """Copy the parts of variables that have been assigned since the last step."""
        for i in numbers if self.partition.by_entries else ():
            array = self.variables[i]._array
            if self._whole.get(i) is not array:
                self.updated[i]._bind(self.partition.own[i].of(array).copy())
                self._whole[i] = array

    def forget(self):
        """Copy all parts anew before the next step, after one that failed."""
        self._whole.clear()

    def gather(self, exchanges):
        """Return new whole arrays of variables, by number."""
        arrays = {}
        for each in exchanges:
            flat = each.pack({i: self.updated[i] for i in each.owned})
            communicator().all_gather_pieces(flat, each.bounds)
            arrays |= each.arrays(flat)
        self._whole |= arrays
        return arrays

    def constrain(self, arrays, numbers):
        """Add the constrained arrays of these variables to new whole arrays."""
        with use_interpreters(()):
            for i in numbers:
                variable = self.variables[i]
                value = new_tensor(arrays.get(i, variable._array).copy())
                value = variable.constraint(value)
                arrays[i] = variable._fitting("assign", value)
                self._whole.pop(i, None)  # the part is another now


def _part(variable, shard):
    part = Variable(shard.of(variable._array).copy(), trainable=False)
    part.path = variable.path
    return part


class ShardedUpdate(Update):
    """An `Update` of which each process computes a part.

    Args:
        parts: `Parts` of the variables of the optimizer.
        segments: Segments of the parts that this process updates.
        variables: Variables to update.
        grads: Their gradients.
        numbers: Numbers of the variables in the optimizer.
    """

    reduces = True

    def __init__(self, parts, segments, variables, grads, numbers):
        super().__init__([], variables, grads)
        self._parts, self._are_same = parts, False
        self._numbers = [numbers[i] for i, *_ in self.present]
        self._taken = [
            n for n, i in enumerate(self._numbers) if parts.updated[i] is not None
        ]
        updated = [parts.updated[self._numbers[n]] for n in self._taken]
        self.part = _PartUpdate(parts.partition, segments, updated)
        self.constrained = [
            i
            for i in self._numbers
            if getattr(parts.variables[i], "constraint", None) is not None
        ]
        if self.constrained:  # users' code may fail: see `_ShardedStep`
            self.part.is_recordable = False
        self._exchanges = {}  # by the variables, and what they are for
        self._memory = None

    def touched(self, rule):
        return self.part.touched(rule)

    def variables_outside(self, rule):
        return [self._parts.variables[i] for i in self._written(rule)]

    def with_own_memory(self):
        other = copy.copy(self)
        other._memory = None
        return other

    def memory_of_gradients(self, rule, reduction):
        memory = [None] * len(self.present)
        if reduction is not None:
            if self._memory is None:
                self._memory = self._new_memory(self._numbers)
            for n, (i, spec) in enumerate(zip(self._numbers, self._specs())):
                view = self._memory[1][i]
                memory[n] = view if view.dtype == spec[1] else None
        return memory

    def _specs(self):
        return [spec for _, _, spec in self.present]

    def _new_memory(self, numbers):
        """Return flat arrays for gradients, each with its exchange, and all views."""
        flats = [(each.empty(), each) for each in self._layout(numbers, computed_in)]
        views = {i: v for flat, each in flats for i, v in each.views(flat).items()}
        return flats, views

    def _layout(self, numbers, dtype_of=lambda dtype: dtype):
        """Return the `Exchange` of each dtype for variables, by number."""
        key = *numbers, dtype_of
        if key not in self._exchanges:
            groups = {}
            for i in numbers:
                array = self._parts.variables[i]._array
                groups.setdefault(kind_of_array(array), (array, []))[1].append(i)
            partition = self._parts.partition
            self._exchanges[key] = [
                Exchange(partition, group, array, dtype_of(array.dtype))
                for array, group in groups.values()
            ]
        return self._exchanges[key]

    def step_of(self, rule, gradients, reduction):
        if reduction is None and not self._are_same:
            _check_same(gradients, self.present)
            self._are_same = True
        own = self._own_gradients(gradients, reduction)
        self._parts.refresh(self._written(rule))
        step = rule._tw_make_step(self.part, [own[n] for n in self._taken])
        return _ShardedStep(self, rule, step)

    def _own_gradients(self, gradients, reduction):
        """Return the part of each gradient, of the sums over all processes."""
        shards = [self._parts.partition.own[i] for i in self._numbers]
        own, dense = [None] * len(gradients), {}
        for n, gradient in enumerate(gradients):
            if type(gradient) is SparseRows:
                rows = gradient if reduction is None else all_gather_rows(gradient)
                own[n] = _own_rows(rows, shards[n])
            elif reduction is None:
                own[n] = shards[n].of(gradient)
            else:
                dense[self._numbers[n]] = n
        if dense:
            flats, views = self._memory or self._new_memory([*dense])
            for i, n in dense.items():
                if gradients[n] is not views[i]:
                    views[i][...] = gradients[n]
            for flat, each in flats:
                piece = communicator().reduce_scatter(flat, each.bounds, *reduction)
                for i, part in each.split(piece).items():
                    if i in dense:
                        own[dense[i]] = part
        return own

    def _written(self, rule):
        """Return the numbers of the variables that a step reads, and may change."""
        if (rule._tw_inner or rule).use_ema:  # averages may overwrite all
            return range(len(self._parts.variables))
        return self._numbers

    def gather(self, rule, step):
        """Return variables and their new whole arrays, after a step of the parts."""
        arrays, by_entries = {}, self._parts.partition.by_entries
        try:
            if step.changes_variables or (self.constrained and not by_entries):
                arrays = self._parts.gather(self._layout(self._written(rule)))
            if by_entries:  # otherwise the owner has done so
                self._parts.constrain(arrays, self.constrained)
        except BaseException:
            self._parts.forget()
            raise
        return [self._parts.variables[i] for i in arrays], [*arrays.values()]


class _PartUpdate(Update):
    """The `Update` of the parts of one process."""

    def __init__(self, partition, segments, variables):
        self.partition = partition
        super().__init__(segments, variables, [True] * len(variables))

    def sum_each(self, squares):
        if not self.partition.by_entries:
            return squares
        (total,) = communicator().all_reduce([np.array([*map(float, squares)])])
        return total.tolist()

    def sum_all(self, square):
        (total,) = communicator().all_reduce([np.array([float(square)])])
        return total.item()

    def everywhere(self, flag):
        return not communicator().any(not flag)

    def check_assigned(self, variables, before):
        trained = {id(v) for segment in self.segments for v in segment.variables}
        for variable, array in zip(variables, before):
            is_slot = isinstance(variable, ShardedVariable) or id(variable) in trained
            if not is_slot and variable._array is not array:
                raise ValueError(
                    f"shard_optimizer: update_step assigns to '{variable.path}', of which "
                    "all processes have a copy; create it by "
                    "add_variable_from_reference or add_optimizer_variables"
                )


class _ShardedStep:
    """A step of the parts, which is taken when it is first added to a commit.

    The commit binds the new arrays of whole variables. Where users' code runs after the
    step of the parts, or whole variables belong to one process, that step makes new
    arrays, which become visible with the others.
    """

    def __init__(self, update, rule, step):
        self._update, self._rule, self._step = update, rule, step
        self._is_atomic = update.constrained or not update.part.partition.by_entries
        self._variables = self._arrays = None

    def _take(self):
        """Take the step of the parts; return variables and their new arrays."""
        if not self._is_atomic:
            commit([self._step])
            return self._gathered()
        written = self._rule._tw_writes(self._update.part)
        own, (variables, arrays) = with_arrays_back(written, self._after, written)
        return [*written, *variables], [*own, *arrays]  # what is gathered comes last

    def _after(self, written):
        commit([self._step])
        gathered = self._gathered()
        return [variable._array for variable in written], gathered

    def _gathered(self):
        if not self._step.is_taken:
            return [], []
        return self._update.gather(self._rule, self._step)

    def add_to(self, change):
        """Add the changes to a `Commit`."""
        if self._arrays is None:
            self._variables, self._arrays = self._take()
        change.bind(self._variables, self._arrays)


def _own_rows(rows, shard):
    """Return the part of `SparseRows`; dense unless the part consists of rows."""
    if shard.is_whole:
        return rows
    xp, width = array_module(type(rows.values)), max(shard.width, 1)
    first, last = shard.start // width, -(-shard.stop // width)
    low, high = xp.searchsorted(rows.indices, xp.asarray([first, last])).tolist()
    own = SparseRows(rows.indices[low:high] - first, rows.values[low:high])
    if shard.has_rows:
        return own
    array = xp.zeros((last - first, *rows.values.shape[1:]), rows.values.dtype)
    array[own.indices] = own.values
    start = shard.start - first * width
    return array.reshape(-1)[start : start + shard.size]


def _check_same(gradients, present):
    """Raise an error unless the gradients are equal in all processes."""
    digest = hashlib.blake2b(digest_size=8)
    for gradient in gradients:
        for array in gradient if type(gradient) is SparseRows else (gradient,):
            digest.update(np.ascontiguousarray(to_numpy(array)).view(np.uint8))
    own = np.frombuffer(digest.digest(), np.uint64)
    digests = np.concatenate(communicator().all_gather(own))
    if (digests != digests[0]).any():
        raise CollectiveError(
            f"the gradients of '{present[0][1].path}' and other variables of a sharded "
            "optimizer differ between processes: compute them by "
            "tw.distribute.DistributedGradientTape, or in a step of Strategy.run"
        )
