"""Flat buffers: the arrays of many variables in one, so that an update is a few calls.

The array of a variable becomes a view into the buffer. Updates write in place, and only
while nothing else references the buffer: a tensor read from the variable, a tape's
residual and ``np.asarray(variable)`` hold the view, or one whose base is the buffer, and
show in the reference counts. Then the values move to a new buffer, and the old one stays
with its holder, unchanged. Counting and writing are one call, see `tapewright.core.commit`.
"""

from __future__ import annotations

import math
from itertools import chain
from operator import attrgetter, is_

import numpy as np

from tapewright.core.commit import references
from tapewright.core.devices import array_module
from tapewright.core.dtypes import is_bfloat16

__all__ = [
    "Segment",
    "Workspace",
    "computed_in",
    "lay_out",
    "split",
]

# Elements. A block and its slots stay in the cache at 32k to 128k; far below that the
# calls cost more than the arithmetic.
BLOCK = 131072
# A variable of this size or less is cheaper to copy into a block than to update alone.
# A GPU needs no blocks, and there a launch costs as much as a larger copy.
POOLED, POOLED_ON_GPU = 16384, 1 << 20

_array_of = attrgetter("_array")


def computed_in(dtype):
    """The dtype in which a step is computed: float32 for bfloat16, else the same."""
    return np.dtype(np.float32) if is_bfloat16(dtype) else dtype


class Workspace:
    """Memory that the segments of one dtype and device share while a step lasts.

    ``dtype`` is that of the segments; scratch memory and numbers are of ``computed``, that
    in which a step is computed: float32 for bfloat16.
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

    @property
    def kind(self):
        """The module, the dtype of steps, and the count of coefficients."""
        return self.xp, self.computed, len(self.numbers) - 1

    def prepare(self, values):
        """Set ``numbers`` to the values in the form that ufuncs take fastest."""
        if self.xp is not np:  # an array would have to travel to the GPU
            self.numbers = [float(value) for value in values]
            return
        if len(self.numbers) != len(values):
            self.numbers = [np.empty((), self.computed) for _ in values]
        for number, value in zip(self.numbers, values):
            number.fill(value)


class Segment:
    """Variables in one flat array, of which their arrays are consecutive views.

    Likewise their slots: ``slots`` has, for each slot, the list of its variables, and
    ``extras``, by name, those that the rule does not use.
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
        """Make flats that nobody else holds, with the values of the owners, for a commit.

        A flat that somebody holds stays as it is, and the values move to a new one; so do
        those of a column with a value that was assigned. The owners keep their arrays:
        what is written to a new flat is seen once a commit binds the views to them.
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
        """Move all values to new flats, as `gather` does with those that are held."""
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
        """Let the writes of a commit change flats, and make the views the owners' arrays."""
        if not change.in_place:  # all flats are new
            change.bind(self.owners, self._views)
            return
        watched = chain(self.flats, self._views)
        change.overwrite(self.owners, self._views, watched, self._counts_now)

    def bind_to(self, change):
        """Make the views the owners' arrays; the flats were moved, and have the new values."""
        change.bind(self.owners, self._views)

    def extra(self, name):
        """Return the flat array of one of the extras."""
        return self.flats[self._column(name)]

    def _column(self, name):
        return self._rule_count + list(self.extras).index(name)

    def views(self, name=None):
        """Return the views of the variables, or of an extra, into their flat."""
        column = 0 if name is None else self._column(name)
        first = column * len(self.variables)
        return self._views[first : first + len(self.variables)]

    def views_of_owners(self):
        """Return the views of all owners into their flats."""
        return self._views

    def runs(self, members):
        """Return ``(start, stop)`` of each unbroken stretch of variables, by number."""
        runs = []
        for i in sorted(members):
            start, stop = self.starts[i : i + 2]
            if runs and runs[-1][1] == start:
                start = runs.pop()[0]
            runs.append((start, stop))
        return runs

    def stretch(self, start, stop):
        """Return the variables and slots from ``start`` to ``stop``: a list of arrays."""
        return [self._slice(k, start, stop) for k in range(self._rule_count)]

    def _slice(self, k, start, stop):
        """Return a part of a flat, the same object each time, so that references count."""
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
        """Yield ranges of rows of the single variable whose values fit into a block.

        Args:
            rows: Sorted numbers of rows.

        Yields:
            ``(first, stop, begin, end)``: a range of rows, and the slice of ``rows`` in it.
        """
        xp = self.workspace.xp
        height = self._views[0].shape[0]
        step = max(1, self.block // (self.starts[-1] // height))
        edges = [*range(0, height, step), height]
        cuts = xp.searchsorted(rows, xp.asarray(edges)).tolist()
        return zip(edges, edges[1:], cuts, cuts[1:])

    def lines(self):
        """Return the single variable and its slots, with a row of numbers for each row."""
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
    """Return consecutive views of these shapes."""
    views, start = [], 0
    for shape in shapes:
        stop = start + math.prod(shape)
        views.append(flat[start:stop].reshape(shape))
        start = stop
    return views


def lay_out(variables, slots, extras, decays, whole=False) -> list[Segment]:
    """Lay variables out in segments: large ones alone, small ones together.

    Args: ``slots``, one list for each slot; ``extras``, further ones by name; ``decays``,
    one truth value per variable; ``whole``, to have each variable alone, in one block.
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
