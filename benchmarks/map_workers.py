"""Compare threads with processes in `Dataset.map`, for Python functions of several lengths.

python benchmarks/map_workers.py   (about two minutes)

All ways take turns, and the fastest turn of each counts: the speed relative to one thread,
and the processor time per element that the calling process and the others add to it. The
function of the last row also takes and returns an image of 600 kB.
"""

import argparse
import os
import resource
import time

import numpy as np

import tapewright as tw

TURN = 2.0  # seconds of work in a turn
LENGTHS = {"0.3 ms": 3e-4, "1 ms": 1e-3, "5 ms": 5e-3, "5 ms, image": 5e-3}


def loop(count):
    """Run Python code that holds the interpreter's lock."""
    total = 0
    for i in range(count):
        total += i * i % 7
    return total


def calibrated():
    """Return the turns of `loop` in a second."""
    count = 200_000
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        loop(count)
        times.append(time.perf_counter() - begin)
    return count / min(times)


def processor_seconds():
    used = [resource.getrusage(who) for who in (0, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def measured(dataset):
    """Return the seconds and the processor seconds of an iteration."""
    begin, used = time.perf_counter(), processor_seconds()
    for _ in dataset:
        pass
    return time.perf_counter() - begin, processor_seconds() - used


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--workers", type=int, default=cores)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ways = {
        "1 thread": {"num_parallel_calls": 1},
        f"{options.workers} threads": {"num_parallel_calls": options.workers},
        "1 process": {"num_parallel_calls": 1, "processes": True},
        f"{options.workers} processes": {
            "num_parallel_calls": options.workers,
            "processes": True,
        },
    }
    rate = calibrated()
    print(f"{'function':12}" + "".join(f"{way:>22}" for way in ways))
    for name, seconds in LENGTHS.items():
        turns, count = int(seconds * rate), int(TURN / seconds)
        image = np.ones((200, 250, 3), "float32")

        def function(x, turns=turns):
            loop(turns)
            return x

        source = tw.data.Dataset.range(count)
        if "image" in name:
            source = source.map(lambda x, image=image: image)
        datasets = {way: source.map(function, **how) for way, how in ways.items()}
        best = dict.fromkeys(ways, (np.inf, np.inf))
        for _ in range(options.rounds):
            for way, dataset in datasets.items():
                best[way] = tuple(np.minimum(best[way], measured(dataset)))
        first = best["1 thread"]
        cells = [
            f"{first[0] / each[0]:8.2f}x {(each[1] - first[1]) / count * 1e6:+8.0f} us"
            for each in best.values()
        ]
        print(f"{name:12}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
