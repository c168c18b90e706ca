"""Flat buffers: the arrays of many variables in one, so that an update is a few calls.

The array of a variable becomes a view into the buffer. Updates write in place, and only
while nothing else references the buffer: a tensor read from the variable, a tape's
residual and ``np.asarray(variable)`` hold the view, or one whose base is the buffer, and
show in the reference counts. Then the values move to a new buffer, and the old one stays
with its holder, unchanged.

Counting and writing are two steps, and another thread may read in between. So the arrays
are unbound before they are counted: a later reader of the variable waits until they are
back (see `Variable.__getattr__`), and an earlier one is counted.
"""

from __future__ import annotations

import math
import sys
from operator import attrgetter, is_

import numpy as np

from tapewright.core.devices import array_module
from tapewright.core.dtypes import is_bfloat16
from tapewright.core.variable import changes

__all__ = [
    "InPlace",
    "Segment",
    "Workspace",
    "computed_in",
    "in_computed",
    "lay_out",
    "split",
]

# Elements. A block and its slots stay in the cache at 32k to 128k; far below that the
# calls cost more than the arithmetic.
BLOCK = 131072
# A variable of this size or less is cheaper to copy into a block than to update alone.
# A GPU needs no blocks, and there a launch costs as much as a larger copy.
POOLED, POOLED_ON_GPU = 16384, 1 << 20

# Without exact reference counts every answer differs, so that no buffer seems unused.
_is_counted = (
    hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: 1)()
)
_references = sys.getrefcount if _is_counted else lambda array: object()
_array_of = attrgetter("_array")


def computed_in(dtype):
    """The dtype in which a step is computed: float32 for bfloat16, else the same."""
    return np.dtype(np.float32) if is_bfloat16(dtype) else dtype


def in_computed(blocks):
    """Yield blocks, of bfloat16 as copies in float32, which are rounded after the update."""
    for gradient, variable, slots in blocks:
        dtype = computed_in(variable.dtype)
        if dtype == variable.dtype:
            yield gradient, variable, slots
            continue
        narrow = variable, *slots
        variable, *slots = wide = [x.astype(dtype) for x in narrow]
        yield gradient.astype(dtype, copy=False), variable, slots
        for x, new in zip(narrow, wide):
            x[...] = new


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
        "owners", "version", "_views", "_counts", "_rule_count",
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
        self._views = [None] * len(self.owners)  # until they are first taken
        self._counts = None
        self.version = 0  # of the addresses of flats

    def take(self):
        """Take the arrays from the variables, and make ``flats`` safe to write to.

        A value that is referenced elsewhere stays in the array left behind; one that was
        assigned meanwhile is copied. `give_back` has to follow.
        """
        others = {}
        if not all(map(is_, map(_array_of, self.owners), self._views)):
            pairs = enumerate(zip(map(_array_of, self.owners), self._views))
            others = {i: array for i, (array, view) in pairs if array is not view}
        try:
            for variable in self.owners:
                del variable._array
            if others or self._count() != self._counts:
                self._replace_shared(others)
        except BaseException:
            for i, variable in enumerate(self.owners):
                variable._array = others.get(i, self._views[i])
            raise

    def give_back(self):
        """Give the variables their arrays: views of ``flats``."""
        for variable, view in zip(self.owners, self._views):
            variable._array = view

    def _count(self):
        return [*map(_references, self.flats), *map(_references, self._views)]

    def _replace_shared(self, others):
        """Move the flats that are referenced elsewhere, and those with ``others``.

        ``others``: the arrays that are no views, by number.
        """
        now, size = self._count(), len(self.variables)
        then = self._counts or now
        for k in range(len(self.flats)):
            held = now[k] != then[k]
            for i in range(k * size, (k + 1) * size):
                j = i + len(self.flats)
                held = held or i in others or now[j] != then[j]
            if held:
                self._move(k, others)
        self._counts = self._count()  # nothing else references the arrays now

    def _move(self, k, others):
        first = k * len(self.variables)
        kept = self._views[first : first + len(self.variables)]
        arrays = [others.get(first + m, view) for m, view in enumerate(kept)]
        flat = self.workspace.xp.empty(self.starts[-1], self.workspace.dtype)
        views = split(flat, [array.shape for array in arrays])
        for view, array in zip(views, arrays):
            view[...] = array
        self.flats[k] = flat
        self.version += 1
        self._views[first : first + len(views)] = views

    def extra(self, name):
        """Return the flat array of one of the extras."""
        return self.flats[self._column(name)]

    def _column(self, name):
        return self._rule_count + list(self.extras).index(name)

    def views(self, name=None):
        """Return the arrays of the variables, or of an extra, while they are taken."""
        column = 0 if name is None else self._column(name)
        first = column * len(self.variables)
        return self._views[first : first + len(self.variables)]

    def views_of_owners(self):
        """Return the arrays of all owners, while they are taken."""
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
        flats = self.flats[: self._rule_count]
        whole = start == 0 and stop == self.starts[-1]
        return flats if whole else [flat[start:stop] for flat in flats]

    def blocks(self, start, stop, gradient):
        """Yield blocks of ``gradient``, which begins at ``start``, variables and slots."""
        flat, *slots = self.flats[: self._rule_count]
        for i in range(start, stop, self.block):
            j = min(i + self.block, stop)
            yield gradient[i - start : j - start], flat[i:j], [s[i:j] for s in slots]

    def row_blocks(self, rows, values):
        """Yield `blocks` of a single variable with gradients of sorted ``rows`` only."""
        xp, second = self.workspace.xp, self.workspace.second
        height = self._views[0].shape[0]
        width = self.starts[-1] // height
        step = max(1, self.block // width)
        if step * width > second.size:  # one row is longer than a block
            second = xp.empty(width, second.dtype)
        edges = [*range(0, height, step), height]
        cuts = xp.searchsorted(rows, xp.asarray(edges)).tolist()
        for i, j, first, last in zip(edges, edges[1:], cuts, cuts[1:]):
            gradient = second[: (j - i) * width]
            gradient.fill(0)
            if first < last:
                lines = gradient.reshape(j - i, width)
                lines[rows[first:last] - i] = values[first:last].reshape(-1, width)
            yield from self.blocks(i * width, j * width, gradient)

    def pick_rows(self, rows):
        """Return copies of these rows of the single variable and of its slots."""
        return [lines[rows] for lines in self._lines()]

    def put_rows(self, rows, picked):
        """Write such copies back."""
        for lines, values in zip(self._lines(), picked):
            lines[rows] = values

    def _lines(self):
        height = self._views[0].shape[0]
        return [flat.reshape(height, -1) for flat in self.flats[: self._rule_count]]


class InPlace:
    """A context in which the flats of segments may be written to."""

    __slots__ = ("segments", "_taken")

    def __init__(self, segments):
        self.segments, self._taken = segments, []

    def __enter__(self):
        try:
            for segment in self.segments:
                segment.take()
                self._taken.append(segment)
        except BaseException:
            self.__exit__()
            raise
        changes[0] = object()

    def __exit__(self, *exc):
        for segment in self._taken:
            segment.give_back()


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
