"""Normalization on NumPy, part by part, so that every pass finds its part in the cache.

In memory an array is ``[rows, n]`` with statistics per row, or
``[examples, positions, channels, members]`` with statistics per channel, over positions
and members. There the statistics are repeated to the length of several positions: NumPy
is faster along long rows than along short ones. Parts are distributed to threads; their
sums are added in order.
"""

import functools
import itertools
import math

import numpy as np

from tapewright.core.hardware.parallel import parallel_for, parallel_map

LEAST = 1 << 18  # entries of an array that is worked on in parts
PART = 1 << 18  # entries of a part
WIDE = 1 << 10  # entries of a long row
DOT = 1 << 10  # entries that one dot product adds without losing digits
SHORT = 16  # entries of a row that is too short for calls of its own


def standardize_parts(x, axes, epsilon, centred):
    """Return the outputs of ``standardize``; None if it cannot be computed by parts."""
    x = _as_it_lies(x)
    normal, layout = np.empty_like(x), _layout_of(x, axes)
    if layout is None:
        return None
    form = layout.form
    share, epsilon = x.dtype.type(1 / form.count), x.dtype.type(epsilon)
    source, target = layout.whole(x), layout.whole(normal)
    means, variances = np.zeros((2, *form.small_shape), x.dtype)

    def standardize(unit):
        own, parts = unit
        if centred:
            means[own] = form.total(
                parallel_map(lambda p: form.sums(source[p]), parts, x.size)
            )
            means[own] *= share
            mean = form.long(means[own])

        def squares(p):
            there = source[p]
            if centred:
                there = np.subtract(there, mean, out=target[p])
            return form.dots(there, there)

        variances[own] = form.total(parallel_map(squares, parts, x.size)) * share
        factor = form.long(1 / np.sqrt(variances[own] + epsilon))
        there = target if centred else source
        parallel_for(
            lambda p: np.multiply(there[p], factor, out=target[p]), parts, x.size
        )

    parallel_for(standardize, form.units(), x.size)
    return normal, layout.placed(means), layout.placed(variances)


def standardize_parts_grad(g, normal, inverse, slope, shift, axes, centred):
    """Return the output of ``standardize_grad``; None if it cannot be computed by parts."""
    normal = _as_it_lies(normal)
    out, layout = np.empty_like(normal), _layout_of(normal, axes)
    small = inverse.shape
    if layout is None or g.shape != normal.shape or small != layout.small_shape:
        return None
    if {slope.shape, shift.shape} != {small}:
        return None
    if len({a.dtype for a in (g, normal, inverse, slope, shift)}) > 1:
        return None
    form, share = layout.form, normal.dtype.type(1 / layout.form.count)
    g, normal, target = map(layout.whole, (g, normal, out))
    inverse, slope, shift = map(layout.small, (inverse, slope, shift))

    def differentiate(unit):
        own, parts = unit
        factor, ahead = inverse[own], shift[own]
        totals = parallel_map(lambda p: form.dots(g[p], normal[p]), parts, g.size)
        slopes = form.long(slope[own] - factor * (form.total(totals) * share))
        if centred:
            totals = parallel_map(lambda p: form.sums(g[p]), parts, g.size)
            ahead = ahead - factor * (form.total(totals) * share)
        factor, ahead = form.long(factor), form.long(ahead)

        def combine(p):
            made = np.multiply(normal[p], slopes, out=target[p])
            np.add(made, ahead, out=made)
            np.add(made, g[p] * factor, out=made)

        parallel_for(combine, parts, g.size)

    parallel_for(differentiate, form.units(), g.size)
    return out


# ----------------------------------------------------------------------- arrays in memory


def _as_it_lies(x):
    """Return ``x``, a matrix, in C order: traced functions have it so, in any memory order."""
    return np.ascontiguousarray(x) if x.ndim < 3 else x


def _layout_of(x, axes):
    """Return the `_Layout` of an array; None if it has gaps, is small, or has other axes."""
    if x.size < LEAST or x.dtype.char not in "fd":
        return None
    order = tuple(sorted(range(x.ndim), key=lambda a: (-x.strides[a], a)))
    if not x.transpose(order).flags.c_contiguous:
        return None
    layout = _layout(x.shape, order, frozenset([a % x.ndim for a in axes]))
    return None if layout.form is None else layout


@functools.lru_cache(maxsize=256)
def _layout(shape, order, axes):
    return _Layout(shape, order, axes)


class _Layout:
    """The form of arrays of a shape and memory order; ``form`` is None without one."""

    def __init__(self, shape, order, axes):
        self.order = order
        self.small_shape = tuple([1 if i in axes else n for i, n in enumerate(shape)])
        sizes = [(i in axes, shape[i]) for i in order if shape[i] > 1]
        runs = [
            (summed, math.prod([n for _, n in run]))
            for summed, run in itertools.groupby(sizes, key=lambda s: s[0])
        ]
        kinds = [summed for summed, _ in runs]
        if kinds[:1] == [True]:
            runs = [(False, 1), *runs]
        sizes = [n for _, n in runs]
        self.form = None
        if len(sizes) == 2 and kinds[:1] == [False] and sizes[1] >= SHORT:
            self.form = _Rows(*sizes)
        elif len(sizes) in (3, 4):
            self.form = _Columns(*sizes, *[1] * (4 - len(sizes)))

    def whole(self, x):
        """Return an array in the form: a view, if it has the memory order of the layout."""
        return x.transpose(self.order).reshape(self.form.shape)

    def small(self, x):
        """Return a statistic in the form."""
        return x.transpose(self.order).reshape(self.form.small_shape)

    def placed(self, x):
        """Return a statistic of the form in the axes of the array; the inverse of `small`."""
        shape = [self.small_shape[i] for i in self.order]
        return x.reshape(shape).transpose(np.argsort(self.order))


class _Rows:
    """``[rows, n]``: each row has a mean and a variance."""

    def __init__(self, rows, n):
        self.shape, self.small_shape, self.count = (rows, n), (rows, 1), n
        self.step = max(1, PART // n)

    def units(self):
        """Yield the positions of some statistics, and the parts of the array for them."""
        for i in range(0, self.shape[0], self.step):
            rows = slice(i, i + self.step)
            yield rows, [rows]

    def sums(self, part):
        """Return the sums of a part's entries, for `total`."""
        if self.count > DOT:  # pairwise
            return np.add.reduce(part, axis=1, keepdims=True)
        return np.vecdot(part, np.ones(self.count, part.dtype))[:, None]

    def dots(self, a, b):
        """Return the sums of products of two parts, for `total`."""
        return self.sums(a * b) if self.count > DOT else np.vecdot(a, b)[:, None]

    def total(self, sums):
        """Return the sums of all parts, for each statistic."""
        (only,) = sums
        return only

    def long(self, statistics):
        return statistics


class _Columns:
    """``[examples, positions, channels, members]``: each channel of an example has them.

    Several positions make a row, ``[examples, rows, row]``.
    """

    def __init__(self, examples, positions, channels, members):
        row = channels * members
        beside = next(
            n for n in range(max(1, WIDE // row), 0, -1) if positions % n == 0
        )
        self.beside = beside, channels, members
        self.shape = examples, positions // beside, beside * row
        self.small_shape, self.count = (examples, channels), positions * members
        self.rows = min(self.shape[1], max(1, PART // self.shape[2]))
        self.examples = 1
        if self.rows == self.shape[1]:
            self.examples = max(1, min(examples, PART // (beside * row * self.rows)))

    def units(self):
        """Yield the positions of some statistics, and the parts of the array for them."""
        examples, count, _ = self.shape
        cut = [slice(i, i + self.rows) for i in range(0, count, self.rows)]
        for i in range(0, examples, self.examples):
            own = slice(i, i + self.examples)
            yield own, [(own, rows) for rows in cut]

    def sums(self, part):
        return np.add.reduce(part, axis=1)

    def dots(self, a, b):
        return self.sums(a * b)

    def total(self, sums):
        total = functools.reduce(np.add, sums)
        return total.reshape(-1, *self.beside).sum(axis=(1, 3))

    def long(self, statistics):
        every = np.broadcast_to(
            statistics[:, None, :, None], (len(statistics), *self.beside)
        )
        return every.reshape(len(statistics), 1, -1)
