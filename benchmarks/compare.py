"""Compare tapewright with PyTorch, TensorFlow and JAX on the CPU; `works` has the workloads.

    python benchmarks/compare.py --picture compare.png          (half an hour)
    python benchmarks/compare.py --quick                        (no epochs, no files)
    python benchmarks/compare.py --works W1,hessian --peers native,jax --rounds 3
    python benchmarks/compare.py --works gpt,xception    (rows of `works_programs`)
    python benchmarks/compare.py --read compare.json --picture compare.png

Each implementation runs in its own process, which is stopped while another one runs. All
start from the same weights and must compute the same numbers. The script prints the machine
and the versions, then tables: the median time of a step, its ratio to the time of each peer,
and one-time costs (import, first call including compilation, files). Peers that are not
installed are skipped.

``--dry-run`` runs the same code with tiny sizes; its times are meaningless.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap

import machine
import numpy as np
from tqdm import tqdm
from turns import (
    PACKAGES,
    arguments,
    inherited,
    save,
    serve,
    some_of,
    take_turns,
    working,
)
from works import CHECKED, FILES
from works_programs import PROGRAMS

__all__ = ["make", "measure", "serve_works", "show_failures", "timed"]

LABELS = {
    "native": "tapewright, traced",
    "numpy": "tapewright, traced to NumPy calls",
    "eager": "tapewright, eager",
    "torch": "torch, eager",
    "torch_compile": "torch compile",
    "tensorflow": "`tf.function`",
    "tensorflow_xla": "`tf.function` with XLA",
    "tensorflow_eager": "TensorFlow, eager",
    "jax": "JAX jit",
}
RATIOS = (
    ("eager", "torch"),
    ("native", "torch_compile"),
    ("native", "tensorflow"),
    ("native", "tensorflow_xla"),
    ("native", "jax"),
)
STEPS = {
    "ops": "1,000 small ops",
    "ops_gradient": "1,000 small ops, with their gradient",
    "W1": "digits step: MLP 784-128-10, clipping, Adam, batch 128",
    "W2": "GAN step, 100-128-784 and 784-128-1",
    "W3": "gradient of an input-gradient penalty, MLP 784-256-10",
    "W4": "BatchNormalization net 784-1024-1024-10, Adam",
    "W10": "convnet step: two convolutions, pooling, Adam",
    "jacobian": "Jacobian `[32, 32, 32, 64]` of two layers",
    "batch_jacobian": "its batch Jacobian `[32, 32, 64]`",
    "small_jacobian": "Jacobian `[7, 6, 7, 5]` of two small layers",
    "hessian": "Hessian `[20, 20, 20, 20]`",
    "row": "one row through an MLP 784-128-10",
    "epoch": "an epoch of `fit`, 60,000 rows, batches of 128",
    "gpt": "Transformer step: 4 blocks of width 256, 16 texts of 128 tokens",
    "xception": "small Xception step, batch 32 of 48x48x3",
    "wgan_gp": "WGAN step with gradient penalty, batch 64 of 28x28x1",
    "pinn": "Burgers' equation step: MLP 2-64-64-64-64-1, 8,192 points",
}
# One-time costs: title, workload and figure.
ONCE = (
    ("import, ms", "import", "ms"),
    ("first call of the digits step, ms", "first", "first"),
    ("first call, if another process has compiled the step, ms", "first", "again"),
    ("peak memory of the digits step, including compilation, MB", "first", "peak"),
    ("write 200 MB of weights, ms", "write", "ms"),
    ("read 200 MB of weights, ms", "read", "ms"),
)
WORKS = (*STEPS, "first", "import", *FILES)
DEFAULT = [work for work in WORKS if work not in PROGRAMS]
QUICK = [work for work in DEFAULT if work not in ("epoch", *FILES)]
CACHED = ("native", "torch_compile", "jax")  # can cache code on disk
IMPORTS = {"jax": "jax.numpy"}  # modules that programs import instead of the package


# --------------------------------------------------------------------- the processes


def make(name, work, tiny, device, tf32, folder):
    """Return ``(step, numbers)`` of a workload; see `serve`."""
    package = importlib.import_module(PACKAGES[name])
    library = package.__name__ if package.__name__ in ("torch", "jax") else "tensorflow"
    if device != "CPU":  # no TF32 on the CPU; ours would import CuPy
        _set_precision(package, library, tf32)
    kind = "works_programs" if work in PROGRAMS else "works"
    works = importlib.import_module(f"{kind}_{library}")
    return works.make(name, work, tiny, device, folder)


def _set_precision(package, library, tf32):
    if library == "tensorflow":  # tapewright, too
        package.config.experimental.enable_tensor_float_32_execution(tf32)
    elif library == "torch":
        package.backends.cuda.matmul.allow_tf32 = tf32
        package.backends.cudnn.allow_tf32 = tf32
    else:
        precision = "tensorfloat32" if tf32 else "highest"
        package.config.update("jax_default_matmul_precision", precision)


def serve_works(name):
    serve(make, name, checked=CHECKED)


# ------------------------------------------------------------------ the measurements


def measure(names, work, options, device="CPU", tf32=False, **environment):
    """Return the results of `_figures`, or an error, for each implementation."""
    with (
        tempfile.TemporaryDirectory() as folder,
        working(names, options.realtime, **environment) as workers,
    ):
        request = [work, options.dry_run, device, tf32, folder]
        made = [_asked(worker, request) for worker in workers]
        return timed(work, workers, made, options, tf32)


def timed(work, workers, made, options, tf32=False):
    """Measure a workload that workers have made, and return the results of `measure`."""
    found = {worker.name: answer for worker, answer in zip(workers, made)}
    ready = [w for w in workers if "error" not in found[w.name]]
    between = os.sync if work in FILES else (lambda: None)
    take_turns(ready, options.rounds, options.seconds, between)
    for worker in ready:
        found[worker.name] |= _figures(worker, found[worker.name])
    _compare_numbers(work, found, 0.05 if tf32 else 2e-3)
    return found


def _asked(worker, request):
    try:
        return worker.ask(make=request)
    except RuntimeError as error:
        return {"error": str(error)}


def _figures(worker, made):
    """Return median, minimum and first call of a step in ms, and peak memory in MB."""
    return {
        "ms": round(statistics.median(worker.times) * 1e3, 6),
        "min": round(min(worker.times) * 1e3, 6),
        "first": round(made["first"] * 1e3, 3),
        "peak": round(worker.ask(peak=True)["peak"], 1),
    }


def _compare_numbers(work, found, tolerance):
    """Remove the numbers; report an error if they differ from the median of all."""
    right = {name: row.pop("numbers") for name, row in found.items() if "ms" in row}
    relative, absolute = tolerance, tolerance
    if work.startswith("epoch"):  # rounding grows: Adam divides by small gradients
        right = {name: rows[:1] for name, rows in right.items()}
        relative, absolute = max(tolerance, 1e-2), 5e-2
    expected = np.median(list(right.values()), 0) if right else None
    for name, numbers in right.items():
        if not np.allclose(numbers, expected, rtol=relative, atol=absolute):
            found[name] = {"error": f"{name}: {numbers}, the others: {expected}"}


def import_times(names, options):
    """Return the median time of an import in a new process, for each package."""
    found = {}
    for name in _one_each(names):
        module = IMPORTS.get(name, PACKAGES[name])
        code = "import os, time; begin = time.perf_counter(); "
        if options.realtime:
            code += "os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)); "
        code += f"import {module}; print(time.perf_counter() - begin)"
        command = [sys.executable, "-c", code]
        times = []
        for _ in range(options.rounds + 1):  # the first run fills the file cache
            done = subprocess.run(
                command, env=inherited(), capture_output=True, text=True, check=True
            )
            times.append(float(done.stdout.split()[-1]) * 1e3)
        found[name] = {"ms": round(statistics.median(times[1:]), 3)}
    return found


def first_calls(names, options):
    """Measure the first call of W1 with empty caches, then with cached code."""
    options = argparse.Namespace(**vars(options) | {"rounds": 1})
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "TAPEWRIGHT_CACHE": folder,
            "TORCHINDUCTOR_CACHE_DIR": folder,
            "JAX_COMPILATION_CACHE_DIR": folder,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        found = measure(names, "W1", options, **environment)
        caching = [name for name in names if name in CACHED]
        for name, row in measure(caching, "W1", options, **environment).items():
            if "first" in row:
                found[name]["again"] = row["first"]
    return found


def _one_each(names):
    """Return the first implementation of each package."""
    packages = {}
    for name in names:
        packages.setdefault(PACKAGES[name], name)
    return list(packages.values())


def run(works, options):
    """Measure workloads, with a progress bar on stderr; print and save each row."""
    results = {"machine": machine.lines()}
    if options.dry_run:
        results["machine"]["dry run"] = "tiny sizes: the times are meaningless"
    names = options.peers
    print(_titled(results["machine"]), head(names), sep="\n\n", flush=True)
    progress = tqdm(works, file=sys.stderr, dynamic_ncols=True)
    for work in progress:
        progress.set_postfix_str(work)
        if work == "import":
            found = import_times(names, options)
        elif work == "first":
            found = first_calls(names, options)
        else:
            some = _one_each(names) if work in FILES else names
            found = measure(some, work, options)
        results[work] = found
        if work in STEPS:
            progress.write(time_line(work, found, names))
            sys.stdout.flush()
        save(results, options.json)
    return results


# ---------------------------------------------------------------------------- tables


def _titled(lines):
    return "\n".join(f"{title}: {text}" for title, text in lines.items())


def _line(cells):
    return f"| {' | '.join(cells)} |"


def _head(first, columns):
    rule = "|".join(["---", *["--:"] * len(columns)])
    return f"{_line([first, *columns])}\n|{rule}|"


def head(names):
    """Return the first lines of the table of times."""
    return _head("ms", [LABELS[name] for name in names])


def time_line(work, found, names):
    """Return a line of the table of times, for the results of `measure`."""
    return _line([STEPS[work], *[_cell(found, name, "ms") for name in names]])


def _cell(found, name, field):
    row = found.get(name, {})
    if field in row:
        return f"{row[field]:.3g}" if row[field] < 1000 else f"{row[field]:.0f}"
    return "fails" if "error" in row else ""


def pairs(names):
    """Return the pairs ``(ours, peer)`` whose ratios can be shown."""
    traced = "native" if "native" in names else "numpy"
    found = [(traced if a == "native" else a, b) for a, b in RATIOS]
    return [(a, b) for a, b in found if a in names and b in names]


def ratio(found, ours, peer):
    """Return our time of a step divided by the time of a peer, or None."""
    if "ms" in found.get(ours, {}) and "ms" in found.get(peer, {}):
        return found[ours]["ms"] / found[peer]["ms"]
    return None


def _short(ratio):
    if ratio is None:
        return ""
    return f"{ratio:.1f}" if ratio >= 0.95 else f"{ratio:.2g}"


def ratio_table(results, names):
    """Return the table of ratios, below 1 where tapewright is faster."""
    columns = pairs(names)
    if not columns:
        return ""
    titles = [f"{LABELS[a].split(', ')[1]} / {LABELS[b]}" for a, b in columns]
    lines = [_head("work", titles)]
    for work in [work for work in STEPS if work in results]:
        ratios = [_short(ratio(results[work], *pair)) for pair in columns]
        lines.append(_line([STEPS[work], *ratios]))
    return "\n".join(lines)


def once_table(results, names):
    """Return the table of one-time costs."""
    lines = [_head("measure", [LABELS[name] for name in names])]
    for title, work, field in ONCE:
        if work in results:
            cells = [_cell(results[work], name, field) for name in names]
            lines.append(_line([title, *cells]))
    return "\n".join(lines)


def show_failures(results):
    """Print errors, and return the exit code: 1 if there are any."""
    found = [
        f"FAILS: {work}, {row['error']}"
        for work, rows in results.items()
        for row in rows.values()
        if "error" in row
    ]
    print(*found, sep="\n", end="\n" * bool(found), file=sys.stderr)
    return int(bool(found))


# --------------------------------------------------------------------------- picture


def picture(results, names, path):
    """Draw the ratios: one line per workload, one marker per peer."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    works = [work for work in STEPS if work in results]
    figure, axis = plt.subplots(
        figsize=(8, 1.6 + 0.4 * len(works)), layout="constrained"
    )
    for (ours, peer), mark in zip(pairs(names), "osD^v"):
        points = [(ratio(results[w], ours, peer), i) for i, w in enumerate(works)]
        points = [point for point in points if point[0]]
        if points:
            label = f"{LABELS[ours].split(', ')[1]} / {LABELS[peer]}".replace("`", "")
            axis.scatter(*zip(*points), marker=mark, s=42, label=label, zorder=3)
    axis.axvline(1, color="black", linewidth=1)
    axis.set(xscale="log", xlabel="time of tapewright / time of the peer")
    axis.xaxis.set_major_formatter("{x:g}")
    titles = [textwrap.fill(STEPS[w].replace("`", ""), 34) for w in works]
    axis.set_yticks(range(len(works)), titles)
    axis.invert_yaxis()
    beside = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    axis.annotate("tapewright is faster", (1, 1), (-6, 5), ha="right", **beside)
    axis.annotate("slower", (1, 1), (6, 5), **beside)
    axis.grid(color="gainsboro")
    if pairs(names):
        figure.legend(loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--works", help="some of " + ", ".join(WORKS))
    add("--quick", action="store_true", help="fewer rounds; no epochs, no files")
    add("--dry-run", action="store_true", help="tiny sizes, one round")
    add("--read", metavar="FILE", help="show figures saved with --json")
    add("--picture", metavar="FILE", help="draw the ratios (matplotlib)")
    options = arguments(parser, list(LABELS), rounds=7, seconds=0.25)
    works = QUICK if options.quick else DEFAULT
    if options.works:
        works = some_of(parser, "--works", options.works, WORKS)
    if options.quick:
        options.rounds, options.seconds = min(options.rounds, 3), 0.1
    if options.dry_run:
        options.rounds, options.seconds = 1, 0.01
    names = options.peers
    if options.read:
        with open(options.read) as file:
            results = json.load(file)
        rows = [row for work, row in results.items() if work != "machine"]
        names = [name for name in LABELS if any(name in row for row in rows)]
        print(_titled(results["machine"]), head(names), sep="\n\n")
        for work in [work for work in STEPS if work in results]:
            print(time_line(work, results[work], names))
    else:
        results = run(works, options)
    results.pop("machine")
    for table in (ratio_table, once_table):
        print(f"\n{table(results, names)}")
    if options.picture:
        picture(results, names, options.picture)
    return show_failures(results)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve_works(sys.argv[2])
    else:
        sys.exit(main())
