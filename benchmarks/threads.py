"""Measure how steps on the CPU scale with threads, compared with PyTorch and JAX.

    python benchmarks/threads.py                   (18 rows, three minutes on 16 cores)
    python benchmarks/threads.py --threads 2,16 --rows W1,W4,unet --minutes 2
    python benchmarks/threads.py --read FILE --picture FILE.png     (saved figures)

Rows are workloads of ``compare.py``, models of ``models.py``, and layers of ``layers.py`` at
their ordinary size. Each implementation runs in one process for each number of threads. The
process starts with an affinity of as many cores, on distinct physical cores if there are
enough, and with ``OMP_NUM_THREADS``. PyTorch, tapewright and OpenBLAS read the variable, which
has the effect of ``torch.set_num_threads`` and ``tw.config.set_threads``; the pool of JAX has
one thread for each core of the affinity. All run on the CPU, also if there is a GPU.

All processes that compile do so at the same time. Then they run in turns, and are stopped
while another one runs. All must compute the same numbers; otherwise their times are marked
with ``!``. A row is printed when it is measured: the median in ms for each number of threads,
the ratio to the fastest peer, and the speed-up from the fewest to the most threads. The
summary lists rows whose ratio is larger with the most threads than with two, and rows that
become slower.

``--dry-run`` runs the same code with tiny sizes; its times are meaningless. Linux only.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections import Counter
from dataclasses import replace

import compare
import machine
import models
from tables import OURS, cell, compared, fastest, ratio
from turns import Worker, arguments, ask_all, save, serve, some_of, take_turns

import layers

__all__ = ["Limited", "make", "measure", "run", "summary"]

IMPLEMENTATIONS = ["native", "numpy", "torch", "torch_compile", "jax"]
DEFAULT = ["native", "torch", "jax"]
WORKS = ("W1", "W2", "W3", "W4", "W10")
NETWORKS = ("resnet20", "vit", "unet")
LAYERS = (
    "conv 3x3",
    "conv 1x1",
    "depthwiseconv 3x3",
    "dense relu",
    "attention",
    "layernorm",
    "batchnorm",
    "lstm 256",
    "maxpool 2",
    "gelu",
)
ROWS = (*WORKS, *NETWORKS, *LAYERS)  # the most valuable first
# Rows of `layers` and `models` use the default device.
ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
COMPILING, MEASURING = 60, 30  # seconds after which a process is ended
MARGIN = 1.05  # smaller changes are noise


def make(name, row, tiny):
    """Return ``(step, numbers)`` of a row; see `serve`."""
    if row in WORKS:
        step, numbers = compare.make(name, row, tiny, "CPU", False, "")
        return step, (lambda outputs: [[number] for number in numbers(outputs)])
    if row in NETWORKS:
        if tiny:
            models.MODELS[row] = replace(models.MODELS[row], batch=2)
        return models.make(name, row, "")
    return layers.make(name, row, "small" if tiny else "ordinary")


def takes(name, row):
    """Return whether an implementation takes part in a row."""
    if name == "torch_compile":
        return row in WORKS
    return (name, row) != ("jax", "depthwiseconv 3x3")  # seconds for a step


# ------------------------------------------------------------------------- processes


class Limited(Worker):
    """Worker with one thread for each of ``cores``; `ask` stores errors in ``error``."""

    def __init__(self, name, cores, realtime=False):
        variables = {**ENVIRONMENT, "OMP_NUM_THREADS": str(len(cores))}
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)  # inherited by the process
        try:
            super().__init__(name, realtime, **variables)
        finally:
            os.sched_setaffinity(0, before)
        self.threads, self.error = len(cores), None

    def ask(self, **request):
        if not self.error:
            try:
                self.send(**request)
                return self.answer(MEASURING)
            except (RuntimeError, OSError) as error:
                self.error = str(error)
        return {"times": []}


def usable_cores():
    """Return ``(cores, count)``: the cores of this process, and the physical ones.

    The first ``count`` cores are on distinct physical cores.
    """
    ranked, seen = [], Counter()
    for core in sorted(os.sched_getaffinity(0)):
        try:
            path = f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"
            with open(path) as file:
                physical = file.read()
        except OSError:
            physical = core
        ranked.append((seen[physical], core))
        seen[physical] += 1
    return [core for _, core in sorted(ranked)], len(seen)


def places(names, counts):
    """Return the cores of each ``(name, number of threads)``.

    Implementations get different cores where there are enough, so that they do not wait
    for each other while they compile.
    """
    cores = usable_cores()[0][: max(counts)]
    return {
        (name, n): [cores[(i * n + k) % len(cores)] for k in range(n)]
        for n in counts
        for i, name in enumerate(names)
    }


def start(workers, places, realtime):
    """Start the workers that do not run; drop places whose import fails."""
    for place, cores in places.items():
        if place not in workers or workers[place].process.poll() is not None:
            workers[place] = Limited(place[0], cores, realtime)
    for place, worker in list(workers.items()):
        try:
            worker.wait_for_import()
        except SystemExit as error:
            print(error, file=sys.stderr)
            worker.end()
            del workers[place], places[place]


# ---------------------------------------------------------------------- measurements


def measure(row, workers, counts, options):
    """Return the figures of a row; ``at`` has a row of `tables` per number of threads."""
    begin = time.monotonic()
    request = [row, options.dry_run]
    workers = [worker for worker in workers if takes(worker.name, row)]
    # Eager torch compiles nothing, and its threads spin while others use their cores.
    workers = sorted(workers, key=lambda worker: worker.name == "torch")
    together = [worker for worker in workers if worker.name != "torch"]
    answers = ask_all(together, COMPILING, make=request)
    for worker in workers[len(together) :]:
        answers += ask_all([worker], COMPILING, make=request)
    compiled, numbers = time.monotonic() - begin, {}
    for worker, answer in zip(workers, answers):
        worker.times, worker.error = [], answer.get("error")
        if not worker.error:
            numbers[worker.name, worker.threads] = answer["numbers"]
    take_turns([w for w in workers if not w.error], options.rounds, options.seconds)
    steps = [dict(zip(numbers, step)) for step in zip(*numbers.values())]
    wrong, at = {key for step in steps for key in compared(step)}, []
    for n in counts:
        those = [worker for worker in workers if worker.threads == n]
        ms = {w.name: statistics.median(w.times) * 1e3 for w in those if not w.error}
        errors = {w.name: w.error for w in those if w.error}
        others = sorted([name for name, threads in wrong if threads == n])
        at.append({"ms": ms, "errors": errors, "wrong": others})
    seconds = {"compile": compiled, "all": time.monotonic() - begin}
    return {"name": row, "at": at, "seconds": seconds}


def run(rows, counts, options):
    """Measure rows until the time is over; print and save each row."""
    begin, names = time.monotonic(), options.peers
    lines = {**machine.lines(), "physical cores": str(usable_cores()[1])}
    results = {"machine": lines, "threads": counts, "names": names, "rows": []}
    if options.dry_run:
        lines["dry run"] = "tiny sizes: the times are meaningless"
    print(head(results), flush=True)
    where, workers = places(names, counts), {}
    try:
        for i, row in enumerate(rows):
            if time.monotonic() - begin > 60 * options.minutes:
                left = ", ".join(rows[i:])
                print(f"not measured within {options.minutes:g} minutes: {left}")
                break
            start(workers, where, options.realtime)
            found = measure(row, list(workers.values()), counts, options)
            results["rows"].append(found)
            print(line(found, names), flush=True)
            save(results, options.json)
    finally:
        for worker in workers.values():
            worker.end()
    return results


# --------------------------------------------------------------------------- figures


def head(results):
    """Return the machine and the first lines of the table."""
    lines = [f"{title}: {text}" for title, text in results["machine"].items()]
    counts, names = results["threads"], results["names"]
    title = f"ms, {', '.join(map(str, counts))} threads"
    columns = [title, *names]
    columns += [f"{ours(names)} / fastest"] if ours(names) else []
    columns += [f"speed-up of {name}" for name in names]
    rule = "|".join(["---", *["--:"] * (len(columns) - 1)])
    return "\n".join([*lines, "", f"| {' | '.join(columns)} |", f"|{rule}|"])


def ours(names):
    return next((name for name in OURS if name in names), None)


def line(row, names):
    """Return a row as a line of the table."""
    cells = [row["name"]]
    for name in names:
        texts = [cell(at, at["ms"], name, ".3g") for at in row["at"]]
        cells.append(" ".join([text or "-" for text in texts]))
    if ours(names):
        ratios = [ratio(at, ours(names)) for at in row["at"]]
        cells.append(" ".join([f"{r:.2f}" if r else "-" for r in ratios]))
    for name in names:
        first, last = [at["ms"].get(name) for at in (row["at"][0], row["at"][-1])]
        cells.append(f"{first / last:.1f}" if first and last else "")
    return f"| {' | '.join(cells)} |"


def summary(results):
    """Return median ratios, rows that scale worse than a peer, slower rows and errors."""
    counts, rows = results["threads"], results["rows"]
    few, most = (counts.index(2) if 2 in counts[:-1] else 0), len(counts) - 1
    name, lines = ours(results["names"]), []
    for i, n in enumerate(counts):
        ratios = [ratio(row["at"][i], name) for row in rows]
        ratios = [r for r in ratios if r]
        if ratios:
            middle, worst = statistics.median(ratios), max(ratios)
            text = f"median {middle:.2f}, largest {worst:.2f} of {len(ratios)}"
            lines.append(f"{name} / fastest peer, threads={n}: {text}")
    worse = []
    for row in rows:
        before, after = [ratio(row["at"][i], name) for i in (few, most)]
        if before and after and after > MARGIN * before:
            worse.append((after, before, row["name"], fastest(row["at"][most])))
    behind = sum(after > 1 for after, *_ in worse)
    title = f"Larger ratios with {counts[most]} threads than with {counts[few]}"
    lines.append(f"{title}: {len(worse)}, of which {behind} above 1")
    for after, before, case, peer in sorted(worse, reverse=True):
        lines.append(f"  {case}: {before:.2f}, then {after:.2f} ({peer})")
    lines.append(f"Slower with {counts[most]} threads than with fewer:")
    for row in rows:
        ms = [at["ms"].get(name) for at in row["at"]]
        known = [each for each in ms if each]
        if ms[most] and ms[most] > MARGIN * min(known):
            best = counts[ms.index(min(known))]
            text = f"{ms[most]:.3g} ms, {min(known):.3g} ms with {best}"
            lines.append(f"  {row['name']}: {text}")
    return "\n".join([*lines, *failures(results)])


def failures(results):
    """Return a line for each error, and for each implementation with other numbers."""
    lines = []
    for row in results["rows"]:
        for n, at in zip(results["threads"], row["at"]):
            case = f"{row['name']}, threads={n}"
            lines += [f"FAILS: {case}, {text}" for text in at["errors"].values()]
            lines += [f"OTHER NUMBERS: {case}, {name}" for name in at["wrong"]]
    return lines


def picture(results, path):
    """Draw times over threads: one panel per row, one line per implementation."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows, counts, names = [results[key] for key in ("rows", "threads", "names")]
    height, width = -(-len(rows) // 6), min(6, len(rows))
    figure, axes = plt.subplots(
        height,
        width,
        squeeze=False,
        figsize=(1 + 2.2 * width, 1 + 2 * height),
        layout="constrained",
    )
    for axis, row in zip(axes.flat, rows):
        for name in names:
            times = [at["ms"].get(name, float("nan")) for at in row["at"]]
            axis.plot(counts, times, label=name, marker="o", markersize=3)
        axis.set(xscale="log", yscale="log", title=row["name"])
        axis.minorticks_off()
        axis.set_xticks(counts, counts)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.grid(color="gainsboro")
    for axis in axes.flat[len(rows) :]:
        axis.axis("off")
    figure.supxlabel("threads")
    figure.supylabel("ms per step")
    lines = axes[0, 0].get_lines()
    figure.legend(handles=lines, loc="outside upper center", ncols=5, frameon=False)
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--threads", help="such as 2,16; default: powers of two up to all cores")
    add("--rows", default=",".join(ROWS), help="rows to measure")
    add("--minutes", type=float, default=30, help="start no row after this time")
    add("--dry-run", action="store_true", help="tiny sizes, one round")
    add("--read", metavar="FILE", help="show figures saved with --json")
    add("--picture", metavar="FILE", help="draw the times (matplotlib)")
    options = arguments(parser, IMPLEMENTATIONS, 3, seconds=0.05, default=DEFAULT)
    if options.dry_run:
        options.rounds, options.seconds = 1, 0.01
    if options.read:
        with open(options.read) as file:
            results = json.load(file)
        print(head(results))
        for row in results["rows"]:
            print(line(row, results["names"]))
    else:
        rows = some_of(parser, "--rows", options.rows, ROWS)
        results = run(rows, thread_counts(parser, options), options)
    print(f"\n{summary(results)}")
    if options.picture:
        picture(results, options.picture)
    return int(bool(failures(results)))


def thread_counts(parser, options):
    """Return the numbers of threads, in ascending order."""
    cores = len(os.sched_getaffinity(0))
    if not options.threads:
        return [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= cores]
    counts = sorted(map(int, options.threads.split(",")))
    if not 1 <= counts[0] <= counts[-1] <= cores:
        parser.error(f"--threads: this process has {cores} cores")
    return counts


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve(make, sys.argv[2])
    else:
        sys.exit(main())
