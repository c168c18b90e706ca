"""Compare steps on a GPU with PyTorch and JAX; `works` lists them.

    python benchmarks/gpu.py                        (eight workloads, five minutes)
    python benchmarks/gpu.py --works W1,epoch --peers tapewright,torch --rounds 3
    python benchmarks/gpu.py --dry-run              (tiny sizes on the CPU, a minute)

Each implementation runs in its own process, which is stopped while another one runs. All
start from the same weights, and must compute the same losses and weights in the first steps.
The script prints the machine and the versions, then a table with the median time of a step
and the ratio of traced tapewright to each peer. After each turn of steps it waits for the GPU
once. Products are float32; with ``--tf32``, all of them may use TensorFloat-32. Peers that are
not installed are skipped.

Without a GPU, it prints a message and exits with code 3. ``--dry-run`` runs the same code on
the CPU; its times are meaningless.
"""

import argparse
import os
import platform
import sys

from compare import measure, serve_works, show_failures
from machine import versions
from turns import PACKAGES, arguments, save, some_of
from works import STEPS

__all__ = ["NO_GPU"]

NO_GPU = 3  # exit code
IMPLEMENTATIONS = ["tapewright", "tapewright_eager", "torch", "torch_compile", "jax"]
PACKAGES |= dict.fromkeys(IMPLEMENTATIONS[:2], "tapewright")
ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def head(names):
    """Return the first lines of the table."""
    columns = ["work", *[f"{name} ms" for name in names]]
    columns += [f"{names[0]} / {name}" for name in names[1:]]
    rule = "|".join(["---", *["--:"] * (len(columns) - 1)])
    return f"| {' | '.join(columns)} |\n|{rule}|"


def table_row(work, found):
    """Return a line of the table, for the results of `measure`."""
    first, *others = times = [row.get("ms") for row in found.values()]
    cells = [f"{t:.4g}" if t else "fails" for t in times]
    cells += [f"{first / each:.2f}" if first and each else "" for each in others]
    return f"| {' | '.join([work, *cells])} |"


def why_no_gpu():
    """Return why there is no GPU, or None."""
    import tapewright as tw

    tw.config.set_soft_device_placement(False)
    try:
        with tw.device("GPU"):
            return None
    except RuntimeError as error:
        return str(error)


def machine(dry_run):
    """Return the GPU and the versions of CUDA and libraries."""
    import tapewright as tw

    facts = tw.config.report()["gpu"]
    cuda = facts["cuda"] or {}
    gpu = f"{facts['name']}, compute capability {facts['compute_capability']}"
    gpu += f", CUDA {cuda.get('runtime')}, driver for {cuda.get('driver')}"
    lines = {
        "GPU": "a dry run on the CPU: no time below is one of a GPU"
        if dry_run
        else gpu,
        "CPU": f"{platform.processor() or platform.machine()}, {os.cpu_count()} threads",
        "versions": versions(),
    }
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--works", default=",".join(STEPS), help="workloads to run")
    parser.add_argument("--tf32", action="store_true", help="allow TF32 in products")
    parser.add_argument("--dry-run", action="store_true", help="tiny sizes, on the CPU")
    options = arguments(parser, IMPLEMENTATIONS, rounds=5, seconds=0.5)
    works = some_of(parser, "--works", options.works, STEPS)
    if options.dry_run:
        options.rounds, options.seconds = 1, 0.01
    reason = None if options.dry_run else why_no_gpu()
    if reason:
        print(f"gpu.py has nothing to measure: {reason}", file=sys.stderr)
        print("gpu.py --dry-run runs the same code on the CPU", file=sys.stderr)
        return NO_GPU
    lines = machine(options.dry_run)
    for name, value in lines.items():
        print(f"{name}: {value}")
    print(f"\n{head(options.peers)}", flush=True)
    results = {"machine": lines}
    for work in works:
        device = "CPU" if options.dry_run else "GPU"
        results[work] = measure(
            options.peers, work, options, device, options.tf32, **ENVIRONMENT
        )
        print(table_row(work, results[work]), flush=True)
        save(results, options.json)
    del results["machine"]
    return show_failures(results)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve_works(sys.argv[2])
    else:
        sys.exit(main())
