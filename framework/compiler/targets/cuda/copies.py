"""Copy many arrays on a GPU with few calls, each of which takes microseconds.

Arrays that fill a flat array, such as an optimizer's, are copied with it; small arrays,
such as statistics and sums of metrics, are copied together in one launch.
"""

import numpy as np

from .modules import copy_function

SMALL = 1 << 16  # bytes: larger arrays are copied alone
ARRAYS = 64  # that one launch copies, with three words each among its arguments
THREADS, ALIGNMENT = 256, 16


def copies(xp, arrays):
    """Return copies of arrays of the module ``xp``, in C order."""
    flats = _flats(arrays)
    parts = [_part(array, flats.get(id(array.base))) for array in arrays]
    rest = [i for i, copy in enumerate(parts) if copy is None]
    small = [i for i in rest if _is_small(arrays[i])]
    made = _small_copies(xp, [arrays[i] for i in small]) if small else ()
    for i, copy in zip(small, made):
        parts[i] = copy
    return [
        array.copy(order="C") if copy is None else copy
        for array, copy in zip(arrays, parts)
    ]


def _flats(arrays):
    """Return copies of the flat arrays that some of the arrays fill, by id."""
    bases, sizes = {}, {}
    for array in arrays:
        base = array.base
        if base is not None and base.ndim == 1 and base.dtype == array.dtype:
            bases[id(base)] = base
            sizes[id(base)] = sizes.get(id(base), 0) + array.size
    full = [key for key, base in bases.items() if sizes[key] == base.size]
    return {key: bases[key].copy() for key in full}


def _part(array, flat):
    """Return the part of ``flat``, a copy of the base of ``array``, that copies ``array``.

    Return None if the base was not copied, or ``array`` is not contiguous.
    """
    if flat is None or not array.flags.c_contiguous:
        return None
    start = (array.data.ptr - array.base.data.ptr) // array.itemsize
    return flat[start : start + array.size].reshape(array.shape)


def _is_small(array):
    return 0 < array.nbytes <= SMALL and array.flags.c_contiguous


def _small_copies(xp, arrays):
    """Return copies that lie in one array of bytes."""
    starts, size = [], 0
    for array in arrays:
        starts.append(size)
        size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    memory = xp.empty(size, np.uint8)
    for first in range(0, len(arrays), ARRAYS):
        part = slice(first, first + ARRAYS)
        words = [
            word
            for array, start in zip(arrays[part], starts[part])
            for word in (array.data.ptr, memory.data.ptr + start, array.nbytes)
        ]
        count = len(words) // 3
        copy_function(xp, count)((count,), (THREADS,), tuple(words))
    return [
        memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        for array, start in zip(arrays, starts)
    ]
