"""Print tables of measured steps: one row per case, one column per implementation.

`compare` measures the cases, prints the table and a summary, and draws the ratios to the
fastest peer. The script's ``make`` accepts the name and the size of a case.
"""

import json
import statistics
import sys
import time
from dataclasses import dataclass

import numpy as np
import turns
from tqdm import tqdm
from turns import take_turns, working

__all__ = ["Case", "arguments", "compare", "compared", "picture", "sums", "summary"]

OURS = ["native", "numpy"]
PEERS = ["tensorflow", "torch", "jax"]
TOLERANCE = 1e-3  # of the norm of each array
# Each process compiles its machine code, as when a layer is first used.
UNCACHED = {"TAPEWRIGHT_CACHE": "0"}
LIMITS = 1.0, 1.5  # ratios to the fastest peer to count and draw


@dataclass
class Case:
    """A row; ``product``: multiplications and additions of a forward pass, if known."""

    name: str
    size: str
    product: int = 0
    peers: tuple | None = None  # available in all

    def among(self, names):
        return [name for name in names if self.peers is None or name in self.peers]


def arguments(parser, peers=PEERS, rounds=7, seconds=0.03):
    """Parse the command line, with the options of `compare`."""
    add = parser.add_argument
    add("--memory", action="store_true", help="measure peak memory instead")
    add("--minima", action="store_true", help="minima, for a busy machine")
    add("--read", metavar="FILE", help="show figures saved with --json")
    add("--picture", metavar="FILE", help="draw the ratios (matplotlib)")
    return turns.arguments(parser, [*OURS, *peers], rounds, seconds)


def compare(cases, options):
    """Measure or read the figures, print them, and draw them if requested."""
    if options.read:
        with open(options.read) as file:
            results = json.load(file)
        columns = {name: None for row in results["rows"] for name in row["ms"]}
        print(head(columns, False))
        for row in results["rows"]:
            print(line(shown(row, options), columns))
    else:
        results = run(cases, options)
    if options.memory:
        return
    rows = [shown(row, options) for row in results["rows"]]
    print(summary(rows))
    if options.picture:
        picture(rows, options.picture)


def shown(row, options):
    """Return the row with the displayed statistic as its ms."""
    return row | {"ms": row["min"]} if options.minima else row


def run(cases, options):
    """Measure the cases, with a progress bar on stderr; print and save each row."""
    names, results = options.peers, {"matmul": matmul_rate(), "rows": []}
    print(f"Large matrix product: {results['matmul']:.0f} GFLOP/s\n")
    print(head(names, options.memory), flush=True)
    progress = tqdm(cases, file=sys.stderr, dynamic_ncols=True)
    started = [] if options.memory else names
    with working(started, options.realtime, **UNCACHED) as workers:
        for case in progress:
            progress.set_postfix_str(f"{case.name}, {case.size}")
            if options.memory:
                row = memory(names, case, options)
                progress.write(memory_line(row, names))
            else:
                row = measure(workers, case, options)
                progress.write(line(shown(row, options), names))
            sys.stdout.flush()
            results["rows"].append(row)
            turns.save(results, options.json)
    return results


# ------------------------------------------------------------------------ measurements


def measure(workers, case, options):
    """Return the ms and the errors of a row, by implementation."""
    row = {"name": case.name, "size": case.size, "product": case.product, "errors": {}}
    answers = {}
    taking = case.among([worker.name for worker in workers])
    for worker in [worker for worker in workers if worker.name in taking]:
        worker.times = []
        try:
            answers[worker.name] = worker.ask(make=[case.name, case.size])
        except RuntimeError as error:
            row["errors"][worker.name] = str(error)
    ready = [worker for worker in workers if worker.name in answers]
    take_turns(ready, options.rounds, options.seconds)
    row["ms"] = {w.name: statistics.median(w.times) * 1e3 for w in ready}
    row["min"] = {w.name: min(w.times) * 1e3 for w in ready}
    row["first"] = {name: answer["first"] * 1e3 for name, answer in answers.items()}
    row["wrong"] = compared(
        {name: sum(answer["numbers"], []) for name, answer in answers.items()}
    )
    return row


def memory(names, case, options):
    """Return the peak MB of processes that import, compile and run one layer each."""
    row = {"name": case.name, "size": case.size, "peak": {}, "errors": {}}
    for name in case.among(names):
        with working([name], options.realtime, **UNCACHED) as [worker]:
            try:
                worker.ask(make=[case.name, case.size])
                worker.ask(seconds=0.0)
                row["peak"][name] = worker.ask(peak=True)["peak"]
            except RuntimeError as error:
                row["errors"][name] = str(error)
    return row


def matmul_rate(side=2048):
    """Return the GFLOP/s of one large matrix product."""
    a = np.random.default_rng(0).standard_normal((side, side), "f4")
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - begin)
    return 2e-9 * side**3 / min(times)


def sums(arrays):
    """Return the norm of each array and its inner product with a random one."""
    rng, found = np.random.default_rng(2), []
    for array in [np.asarray(a) for a in arrays]:
        direction = rng.standard_normal(array.shape, "f4")
        found.append([float(np.linalg.norm(array)), float((array * direction).sum())])
    return found


def compared(numbers):
    """Return the implementations whose numbers differ from the median of all.

    Args:
        numbers: Results of `sums`, by implementation.
    """
    shared = min(map(len, numbers.values()), default=0)
    if not shared:
        return []
    found = {name: np.array(sums[:shared]) for name, sums in numbers.items()}
    expected = np.median(list(found.values()), 0)
    norms = abs(expected[:, 0])
    # Some gradients are pure rounding errors, such as the bias of keys in attention.
    allowed = TOLERANCE * np.maximum(norms, 1e-3 * norms.max())
    return [
        name
        for name, sums in found.items()
        if not (abs(sums - expected) <= allowed[:, None]).all()
    ]


# ------------------------------------------------------------------------------ tables


def fastest(row):
    """Return the fastest peer with correct numbers, or None."""
    peers = [n for n in row["ms"] if n not in (*OURS, *row["wrong"])]
    return min(peers, key=row["ms"].get, default=None)


def ratio(row, name):
    """Return the time of a target divided by the time of the fastest peer, or None."""
    peer = fastest(row)
    if peer is None or name not in row["ms"]:
        return None
    return row["ms"][name] / row["ms"][peer]


def rate(row, name):
    """Return the GFLOP/s of products, with the gradients of both factors."""
    return 6e-6 * row["product"] / row["ms"][name]


def head(names, memory):
    columns = ["", "size", *names]
    if memory:
        columns += [f"{name} / torch" for name in names if name in OURS]
    else:
        columns += [f"{name} / fastest" for name in names if name in OURS]
        columns += ["GFLOP/s", "of the fastest"]
    return f"| {' | '.join(columns)} |\n|---|---{'|--:' * (len(columns) - 2)}|"


def line(row, names):
    """Return a row of times as a line of the table."""
    cells = [row["name"], row["size"]]
    cells += [cell(row, row["ms"], name, ".3g") for name in names]
    ratios = [ratio(row, name) for name in names if name in OURS]
    cells += ["" if r is None else f"{r:.2f}" for r in ratios]
    for name in ("native", fastest(row)):
        known = row["product"] and name in row["ms"]
        cells.append(f"{rate(row, name):.0f}" if known else "")
    return f"| {' | '.join(cells)} |"


def cell(row, values, name, form):
    if name not in values:
        return "fails" if name in row["errors"] else ""
    return f"{values[name]:{form}}" + "!" * (name in row.get("wrong", ()))


def memory_line(row, names):
    peaks = row["peak"]
    cells = [cell(row, peaks, name, ".0f") for name in names]
    for name in names:
        if name in OURS:
            both = name in peaks and "torch" in peaks
            cells.append(f"{peaks[name] / peaks['torch']:.2f}" if both else "")
    return f"| {' | '.join([row['name'], row['size'], *cells])} |"


def summary(rows):
    """Return median ratio, counts above `LIMITS` and worst ratio of each target."""
    lines = []
    for name in OURS:
        pairs = [(ratio(row, name), row) for row in rows]
        pairs = sorted((p for p in pairs if p[0]), key=lambda p: -p[0])
        if not pairs:
            continue
        ratios = [r for r, _ in pairs]
        above = [f"{sum(r > limit for r in ratios)} above {limit}" for limit in LIMITS]
        lines.append(
            f"\n{name} / fastest peer: median {statistics.median(ratios):.2f}; of "
            f"{len(ratios)}, {', '.join(above)}; the worst ten:"
        )
        for r, row in pairs[:10]:
            lines.append(f"  {r:6.2f}  {row['name']}, {row['size']} ({fastest(row)})")
    for row in rows:
        for name in row["wrong"]:
            lines.append(f"OTHER NUMBERS: {name}, {row['name']}, {row['size']}")
        for error in row["errors"].values():
            lines.append(f"FAILS: {row['name']}, {row['size']}: {error}")
    return "\n".join(lines)


def picture(rows, path):
    """Draw the ratios to the fastest peer: one line per name, one dot per size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    targets = [name for name in OURS if any(ratio(row, name) for row in rows)]
    names = list(dict.fromkeys(row["name"] for row in rows))
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    figure, axes = plt.subplots(
        1,
        len(targets),
        sharey=True,
        squeeze=False,
        figsize=(2 + 5 * len(targets), 1.5 + 0.26 * len(names)),
        layout="constrained",
    )
    for axis, name in zip(axes[0], targets):
        for size, shade in zip(sizes, np.linspace(0.35, 1, len(sizes))):
            points = [
                (ratio(row, name), names.index(row["name"]))
                for row in rows
                if row["size"] == size and ratio(row, name)
            ]
            axis.scatter(*zip(*points), color=plt.cm.Blues(shade), label=size, zorder=3)
        for limit, style in zip(LIMITS, ("-", "--")):
            axis.axvline(limit, color="firebrick", linestyle=style, linewidth=1)
        axis.set(xscale="log", title=f"time of {name} / fastest peer")
        low, high = axis.get_xlim()
        ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if low <= t <= high]
        axis.minorticks_off()
        axis.set_xticks(ticks, map(str, ticks))
        axis.grid(color="gainsboro")
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].invert_yaxis()
    axes[0, 0].legend()
    figure.savefig(path, dpi=120)
