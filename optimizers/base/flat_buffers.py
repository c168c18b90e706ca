"""Flat buffers: the arrays of many variables in one, so that an update needs few calls.

The array of a variable becomes a view into the buffer. Updates write in place, but only
while nothing else references the buffer: a tensor read from the variable, a tape's
residual and ``np.asarray(variable)`` hold the view, or an array based on the buffer,
and show in the reference counts. In that case the values move to a new buffer, and the
old one stays unchanged with its holder. Counting and writing are one call, see
`tapewright.core.state.commit`.
"""

from __future__ import annotations

import math
from itertools import chain
from operator import attrgetter, is_

import numpy as np

from tapewright.core.dtypes import is_bfloat16
from tapewright.core.hardware.devices import array_module
from tapewright.core.state.commit import references

# Elements. A block and its slots stay in the cache at 32k to 128k; far below that the
# calls cost more than the arithmetic.
BLOCK = 131072
# A variable of this size or less is cheaper to copy into a block than to update alone.
# A GPU needs no blocks, and there a launch costs as much as a larger copy.
POOLED, POOLED_ON_GPU = 16384, 1 << 20

_array_of = attrgetter("_array")


def computed_in(dtype):
    """Return the dtype in which a step is computed: float32 for bfloat16, else the same."""
    return np.dtype(np.float32) if is_bfloat16(dtype) else dtype


class Workspace:
    """Memory that the segments of one dtype and device share during a step.

    ``dtype`` is the dtype of the segments; scratch memory and numbers have the dtype
    ``computed``, in which a step is computed: float32 for bfloat16.
    """

    def __init__(self, xp, dtype, size):
        self.xp, self.dtype, self.computed = xp, dtype, computed_in(dtype)
        self.scratch = xp.empty(size, self.computed)
        self.numbers: list[float] = []
        self._second = self._spare = None

    @property
    def second(self):
        """A second scratch array, for gradients that cannot be used as they are."""
        if self._second is None:
            self._second = self.xp.empty_like(self.scratch)
        return self._second

    @property
    def spare(self):
        """A third scratch array, for rules that need two."""
        if self._spare is None:
            self._spare = self.xp.empty_like(self.scratch)
        return self._spare

    def scratches(self, count, size):
        """Return one or two scratch arrays of this size."""
        arrays = (self.scratch, self.spare) if count > 1 else (self.scratch,)
        return [array[:size] for array in arrays]

    @property
    def kind(self):
        """The module, the dtype of steps, and the count of numbers."""
        return self.xp, self.computed, len(self.numbers)

    def prepare(self, values):
        """Set ``numbers`` to the values in the form that ufuncs process fastest."""
        if self.xp is not np:  # an array would have to travel to the GPU
            self.numbers = [float(value) for value in values]
            return
        if len(self.numbers) != len(values):
            self.numbers = [np.empty((), self.computed) for _ in values]
        for number, value in zip(self.numbers, values):
            number.fill(value)


class Segment:
    """Variables whose arrays are consecutive views into one flat array.

    The same holds for their slots: ``slots`` has one list of variables per slot;
    ``extras`` has, by name, variables that the rule does not use.
    """

    __slots__ = (
        "variables", "decays", "workspace", "starts", "block", "flats", "extras",
        "owners", "version", "_views", "_counts", "_counts_now", "_was_held", "_slices",
        "_rule_count",
    )  # fmt: skip

    def __init__(self, variables, slots, extras, decays, workspace):
        self.variables, self.decays, self.workspace = variables, decays, workspace
        self.extras, self._rule_count = extras, 1 + len(slots)
        shapes = [variable._array.shape for variable in variables]
        self.starts: list[int] = [0]
        for shape in shapes:
            self.starts.append(self.starts[-1] + math.prod(shape))
        self.block = workspace.scratch.size
        columns = [variables, *slots, *extras.values()]
        self.owners = [variable for column in columns for variable in column]
        self.flats: list[None] = [None] * len(columns)
        self._views = [None] * len(self.owners)  # until there are flats
        # References to flats and views while nobody else holds them: as a rule, and now,
        # as the owners of a flat that was moved have their arrays until the commit.
        self._counts = self._counts_now = [0] * (len(columns) + len(self.owners))
        self._was_held = False  # when somebody last looked
        self._slices = {}  # of flats, by column and range; they count as references
        self.version = 0  # of the addresses of flats

    def gather(self, change):
        """Move the values of the owners to flats without other references, for a commit.

        A flat with other references stays as it is, and its values move to a new flat;
        so do the values of a column to which a value was assigned. The owners keep
        their arrays: changes of a new flat become visible once a commit binds the views
        to them.
        """
        if not change.in_place:
            self.move()
            return
        expects_none = change.is_first and not self._was_held
        if expects_none and all(map(is_, map(_array_of, self.owners), self._views)):
            self._counts_now = self._counts
            return
        bound = [*map(is_, map(_array_of, self.owners), self._views)]
        now = [*map(references, chain(self.flats, self._views))]
        self._was_held = now != self._counts
        if all(bound) and not self._was_held:
            self._counts_now = self._counts
            return
        first, size = len(self.flats), len(self.variables)
        moved = [
            k
            for k in range(first)
            if not all(bound[k * size : (k + 1) * size])
            or now[k] != self._counts[k]
            or now[first + k * size : first + (k + 1) * size]
            != self._counts[first + k * size : first + (k + 1) * size]
        ]
        self._move_all(moved)

    def move(self):
        """Move all values to new flats, as `gather` does with referenced flats."""
        self._move_all(range(len(self.flats)))

    def _move_all(self, columns):
        for k in columns:
            self._move(k)
        now = [*map(references, chain(self.flats, self._views))]
        first, size = len(self.flats), len(self.variables)
        self._counts_now = [*self._counts]
        for k in columns:
            views = slice(first + k * size, first + (k + 1) * size)
            self._counts[k] = self._counts_now[k] = now[k]
            self._counts_now[views] = now[views]
            self._counts[views] = [count + 1 for count in now[views]]

    def _move(self, k):
        first = k * len(self.variables)
        members = slice(first, first + len(self.variables))
        arrays = [owner._array for owner in self.owners[members]]
        flat = self.workspace.xp.empty(self.starts[-1], self.workspace.dtype)
        views = split(flat, [array.shape for array in arrays])
        for view, array in zip(views, arrays):
            view[...] = array
        # After an interrupt in between, the views are not the arrays of the owners, so
        # that the column moves again.
        self._views[members] = views
        self._slices = {key: x for key, x in self._slices.items() if key[0] != k}
        self.flats[k] = flat
        self.version += 1

    def add_to(self, change):
        """Add the changes of flats to a commit, and make the views the owners' arrays."""
        if not change.in_place:  # all flats are new
            change.bind(self.owners, self._views)
            return
        watched = chain(self.flats, self._views)
        change.overwrite(self.owners, self._views, watched, self._counts_now)

    def bind_to(self, change):
        """Make the views the owners' arrays; the flats have moved and hold the new values."""
        change.bind(self.owners, self._views)

    def extra(self, name):
        """Return the flat array of one extra."""
        return self.flats[self._column(name)]

    def _column(self, name):
        return self._rule_count + list(self.extras).index(name)

    def views(self, name=None):
        """Return the views of the variables, or of an extra, into their flat array."""
        column = 0 if name is None else self._column(name)
        first = column * len(self.variables)
        return self._views[first : first + len(self.variables)]

    def views_of_owners(self):
        """Return the views of all owners into their flat arrays."""
        return self._views

    def stretches(self, members):
        """Return ``(start, stop)`` of each unbroken stretch of variables, by number."""
        stretches = []
        for i in sorted(members):
            start, stop = self.starts[i : i + 2]
            if stretches and stretches[-1][1] == start:
                start = stretches.pop()[0]
            stretches.append((start, stop))
        return stretches

    def stretch(self, start, stop):
        """Return the variables and slots from ``start`` to ``stop``: a list of arrays."""
        return [self._slice(k, start, stop) for k in range(self._rule_count)]

    def _slice(self, k, start, stop):
        """Return a slice of a flat, always the same object, so that references are counted."""
        key = k, start, stop
        part = self._slices.get(key)
        if part is None:
            part = self._slices[key] = self.flats[k][start:stop]
            self._note_slice(k)
        return part

    def _note_slice(self, k):
        self._counts[k] += 1
        if self._counts_now is not self._counts:
            self._counts_now[k] += 1

    def blocks(self, start, stop, gradient):
        """Yield blocks of ``gradient``, which begins at ``start``, variables and slots."""
        for i in range(start, stop, self.block):
            j = min(i + self.block, stop)
            yield gradient[i - start : j - start], *self.stretch(i, j)

    def row_ranges(self, rows):
        """Yield ranges of rows of the single variable that fit into a block.

        Args:
            rows: Sorted row numbers.

        Yields:
            ``(first, stop, begin, end)``: a range of rows, and the slice of ``rows`` in
            it.
        """
        xp = self.workspace.xp
        height = self._views[0].shape[0]
        step = max(1, self.block // (self.starts[-1] // height))
        edges = [*range(0, height, step), height]
        cuts = xp.searchsorted(rows, xp.asarray(edges)).tolist()
        return zip(edges, edges[1:], cuts, cuts[1:])

    def lines(self):
        """Return the single variable and its slots, reshaped to one row of numbers per row."""
        height, parts = self._views[0].shape[0], []
        for k in range(self._rule_count):
            part = self._slices.get((k, "lines"))
            if part is None:
                part = self.flats[k].reshape(height, -1)
                self._slices[k, "lines"] = part
                self._note_slice(k)
            parts.append(part)
        return parts


def split(flat, shapes):
    """Return consecutive views of a flat array with these shapes."""
    views, start = [], 0
    for shape in shapes:
        stop = start + math.prod(shape)
        views.append(flat[start:stop].reshape(shape))
        start = stop
    return views


def lay_out(variables, slots, extras, decays, whole=False) -> list[Segment]:
    """Lay out variables in segments: large variables alone, small variables together.

    Args:
        variables: Variables to lay out.
        slots: One list of variables per slot.
        extras: Further lists of variables by name.
        decays: One truth value per variable: does it decay?
        whole: If True, each variable gets its own segment with one block.
    """
    members, sizes = {}, {}
    for i, (variable, decay) in enumerate(zip(variables, decays)):
        array = variable._array
        xp = array_module(type(array))
        key = xp, str(getattr(array, "device", "")), array.dtype
        pooled = array.size <= (POOLED if xp is np else POOLED_ON_GPU)
        alone = whole or not pooled
        members.setdefault((*key, decay, i if alone else None), []).append(i)
    for (*key, _, _), numbers in members.items():
        size = sum([variables[i]._array.size for i in numbers])
        size = max(1, min(size, BLOCK) if key[0] is np and not whole else size)
        sizes[tuple(key)] = max(size, sizes.get(tuple(key), 1))
    workspaces = {key: Workspace(key[0], key[2], n) for key, n in sizes.items()}
    return [
        Segment(
            [variables[i] for i in numbers],
            [[slot[i] for i in numbers] for slot in slots],
            {name: [extra[i] for i in numbers] for name, extra in extras.items()},
            decay,
            workspaces[tuple(key)],
        )
        for (*key, decay, _), numbers in members.items()
    ]
