"""Compare steps on a GPU with PyTorch and JAX; `works` and `works_programs` list them.

    python benchmarks/gpu.py                        (twelve workloads, ten minutes)
    python benchmarks/gpu.py --works W1,epoch --peers tapewright,torch --rounds 3
    python benchmarks/gpu.py --dry-run              (tiny sizes on the CPU, a minute)

Each implementation runs in its own process, which is stopped while another one runs. All
start from the same weights, and must compute the same losses and weights in the first steps.
The script prints the machine and the versions, then a table with the median time of a step
and the ratio of traced tapewright to each peer. After each turn of steps it waits for the GPU
once. Products are float32; with ``--tf32``, all of them may use TensorFloat-32. Peers that are
not installed are skipped.

``--together N`` lets the implementations of N workloads compile at the same time, before they
are measured one by one; this saves minutes on a machine with many cores.

Without a GPU, it prints a message and exits with code 3. ``--dry-run`` runs the same code on
the CPU; its times are meaningless.
"""

import argparse
import os
import platform
import sys
import tempfile

from compare import serve_works, show_failures, timed
from machine import versions
from turns import PACKAGES, answers, arguments, save, some_of, working
from works import STEPS
from works_programs import PROGRAMS

__all__ = ["NO_GPU"]

WORKS = (*STEPS, *PROGRAMS)
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
    """Return a line of the table, for the results of a workload."""
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


def measure(works, options):
    """Compile workloads at the same time, then yield ``(work, results)`` one by one."""
    names, device = options.peers, "CPU" if options.dry_run else "GPU"
    environment = ENVIRONMENT
    if len(works) > 1:  # torch would start a process per core for each implementation
        environment |= {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
    with (
        tempfile.TemporaryDirectory() as folder,
        working(names * len(works), options.realtime, **environment) as workers,
    ):
        count = len(names)
        groups = [workers[i * count : (i + 1) * count] for i in range(len(works))]
        for work, group in zip(works, groups):
            for worker in group:
                request = [work, options.dry_run, device, options.tf32, folder]
                worker.send(make=request)
        made = answers(workers, options.longest)
        for i, (work, group) in enumerate(zip(works, groups)):
            try:
                yield work, timed(work, group, made[i * count :], options, options.tf32)
            except RuntimeError as error:  # a process ended
                yield work, {names[0]: {"error": str(error)}}
            for worker in group:
                worker.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--works", default=",".join(WORKS), help="workloads to run")
    parser.add_argument("--tf32", action="store_true", help="allow TF32 in products")
    parser.add_argument("--dry-run", action="store_true", help="tiny sizes, on the CPU")
    parser.add_argument(
        "--longest", type=float, default=150, help="seconds for a workload to compile"
    )
    parser.add_argument(
        "--together", type=int, default=1, help="workloads to compile at once"
    )
    options = arguments(parser, IMPLEMENTATIONS, rounds=5, seconds=0.5)
    works = some_of(parser, "--works", options.works, WORKS)
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
    results, failed = {"machine": lines}, 0
    for i in range(0, len(works), options.together):
        for work, found in measure(works[i : i + options.together], options):
            results[work] = found
            print(table_row(work, found), flush=True)
            failed |= show_failures({work: found})
            save(results, options.json)
    return failed


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve_works(sys.argv[2])
    else:
        sys.exit(main())
