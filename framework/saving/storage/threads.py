"""Work on many pieces of a file, on several cores at once."""

import os

__all__ = ["MAX_THREADS", "share_out"]

MAX_THREADS = 4


def share_out(work, items):
    """Calls ``work`` with every item; raises what one of the calls raises.

    Worth its threads where ``work`` waits for the system or computes outside of Python:
    reading, writing, checksums.
    """
    count = len(items)
    if count > 1:
        count = min(count, os.cpu_count() or 1, MAX_THREADS)
    if count < 2:
        for item in items:
            work(item)
        return
    from concurrent.futures import ThreadPoolExecutor

    ahead = iter(items)  # of a list or range, whose next item goes to one thread alone

    def share():
        for item in ahead:
            work(item)

    with ThreadPoolExecutor(count - 1) as pool:
        others = [pool.submit(share) for _ in range(1, count)]
        share()
        for other in others:
            other.result()
