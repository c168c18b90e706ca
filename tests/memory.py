"""Memory that steps leave behind: the growth of the bytes in use over many of them."""

import gc
import sys
import tracemalloc


def held(files=()):
    """Bytes in use, cycles included, the free lists of the interpreter excluded.

    ``files``: patterns of the files whose lines have asked for them; all by default.
    """
    gc.freeze()  # what is there counts, garbage or not, and in later tests stays out of the way
    gc.collect()  # empties the free lists
    if not files:
        return tracemalloc.get_traced_memory()[0]
    filters = [tracemalloc.Filter(True, pattern) for pattern in files]
    traces = tracemalloc.take_snapshot().filter_traces(filters).traces
    return sum([trace.size for trace in traces])


def renew_names():
    """Have the interpreter allocate its table of interned strings while memory is traced.

    It is a large one, allocated anew after so many strings of a short life, as NumPy makes
    them. If the present one is not traced, its successor looks like growth.
    """
    before = tracemalloc.get_traced_memory()[0]
    for number in range(1 << 22):
        sys.intern(f"{number} names")
        if tracemalloc.get_traced_memory()[0] > before + (1 << 16):
            break


def grown(step, count, files=()):
    """Bytes by which memory grows over ``count`` steps, after a warm-up.

    Measured twice: what only once is allocated for good is in one of them.
    """
    for _ in range(20):
        step()
    tracemalloc.start()
    try:
        renew_names()
        for _ in range(20):
            step()
        return min([_growth(step, count, files) for _ in range(2)])
    finally:
        tracemalloc.stop()


def _growth(step, count, files):
    before = held(files)
    for _ in range(count):
        step()
    return held(files) - before
