"""Time steps on a GPU beside PyTorch and JAX: `gpu_works` lists them.

    python benchmarks/gpu.py                        (eight works, five minutes)
    python benchmarks/gpu.py --works W1,epoch --peers tapewright,torch --rounds 3
    python benchmarks/gpu.py --dry-run              (tiny sizes on the CPU, a minute)

Each implementation has its own process, which is stopped while another one runs, starts
from the same weights, and must compute the same numbers: the losses and the weights of
the first steps. The script prints the machine and the versions, then a table with the median
time of a step and its ratio to that of traced tapewright. A turn of steps is followed by one
wait for the GPU. Products are float32, unless ``--tf32`` lets all of them round to
TensorFloat-32. Peers that are not installed are left out.

Without a GPU it says so and exits with code 3. ``--dry-run`` goes through the same code on
the CPU: its times say nothing.
"""

import argparse
import importlib
import importlib.metadata
import os
import platform
import statistics
import sys

import numpy as np
from gpu_works import CHECKED, WORKS
from turns import PACKAGES, arguments, save, serve, some_of, take_turns, working

__all__ = ["NO_GPU", "measure"]

NO_GPU = 3  # the exit code where there is none
IMPLEMENTATIONS = ["tapewright", "tapewright_eager", "torch", "torch_compile", "jax"]
PACKAGES |= dict.fromkeys(IMPLEMENTATIONS[:2], "tapewright")
MODULES = {name: f"gpu_{PACKAGES[name]}" for name in IMPLEMENTATIONS}
DISTRIBUTIONS = ("tapewright", "numpy", "cupy-cuda12x", "cupy-cuda13x", "torch", "jax")


def make(name, work, tiny, device, tf32):
    _set_precision(name, tf32)
    return importlib.import_module(MODULES[name]).make(name, work, tiny, device)


def _set_precision(name, tf32):
    package = importlib.import_module(PACKAGES[name])
    if name.startswith("tapewright"):
        package.config.experimental.enable_tensor_float_32_execution(tf32)
    elif name.startswith("torch"):
        package.backends.cuda.matmul.allow_tf32 = tf32
        package.backends.cudnn.allow_tf32 = tf32
    else:
        precision = "tensorfloat32" if tf32 else "highest"
        package.config.update("jax_default_matmul_precision", precision)


def measure(names, work, options):
    """Return the median of a step and the first call of each implementation, in ms.

    Raises: ``RuntimeError`` if an implementation computes other numbers than the first.
    """
    device = "CPU" if options.dry_run else "GPU"
    request = [work, options.dry_run, device, options.tf32]
    environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    with working(names, options.realtime, **environment) as workers:
        facts = {worker.name: worker.ask(make=request) for worker in workers}
        take_turns(workers, options.rounds, options.seconds)
    # In later epochs rounding has grown.
    checked = 1 if work.startswith("epoch") else CHECKED
    expected = facts[names[0]]["numbers"][:checked]
    for name in names:
        found = facts[name]["numbers"][:checked]
        tolerance = 0.05 if options.tf32 else 1e-2 if work.startswith("epoch") else 2e-3
        if not np.allclose(found, expected, rtol=tolerance, atol=tolerance):
            raise RuntimeError(f"{work}, {name}: {found}, {names[0]}: {expected}")
    return {
        worker.name: {
            "ms": statistics.median(worker.times) * 1e3,
            "first": facts[worker.name]["first"] * 1e3,
        }
        for worker in workers
    }


def head(names):
    """Return the first lines of the table."""
    columns = ["work", *[f"{name} ms" for name in names]]
    columns += [f"{names[0]} / {name}" for name in names[1:]]
    rule = "|".join(["---", *["--:"] * (len(columns) - 1)])
    return f"| {' | '.join(columns)} |\n|{rule}|"


def table_row(work, found):
    """Return a line of the table, for the results of `measure`."""
    times = [row["ms"] for row in found.values()]
    ratios = [f"{times[0] / each:.2f}" for each in times[1:]]
    return f"| {' | '.join([work, *[f'{t:.4g}' for t in times], *ratios])} |"


def why_no_gpu():
    """Return why there is no GPU, or None."""
    import tapewright as tw

    try:
        with tw.device("GPU"):
            return None
    except RuntimeError as error:
        return str(error)


def machine(dry_run):
    """Return what the figures are of: the GPU, the versions of CUDA and of libraries."""
    import tapewright as tw

    facts = tw.config.report()["gpu"]
    versions = []
    for name in DISTRIBUTIONS:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    cuda = facts["cuda"] or {}
    gpu = f"{facts['name']}, compute capability {facts['compute_capability']}"
    gpu += f", CUDA {cuda.get('runtime')}, driver for {cuda.get('driver')}"
    lines = {
        "GPU": "a dry run on the CPU: no time below is one of a GPU"
        if dry_run
        else gpu,
        "CPU": f"{platform.processor() or platform.machine()}, {os.cpu_count()} threads",
        "versions": ", ".join(versions),
    }
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--works", default=",".join(WORKS), help="some of them")
    parser.add_argument("--tf32", action="store_true", help="products may use TF32")
    parser.add_argument("--dry-run", action="store_true", help="tiny, on the CPU")
    options = arguments(parser, IMPLEMENTATIONS, rounds=5, seconds=0.5)
    works = some_of(parser, "--works", options.works, WORKS)
    if options.dry_run:
        options.rounds, options.seconds = 1, 0.01
    reason = None if options.dry_run else why_no_gpu()
    if reason:
        print(f"gpu.py has nothing to measure: {reason}", file=sys.stderr)
        print("gpu.py --dry-run goes through its code on the CPU", file=sys.stderr)
        return NO_GPU
    lines = machine(options.dry_run)
    for name, value in lines.items():
        print(f"{name}: {value}")
    print(f"\n{head(options.peers)}", flush=True)
    results = {"machine": lines}
    for work in works:
        results[work] = measure(options.peers, work, options)
        print(table_row(work, results[work]), flush=True)
    save(results, options.json)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve(make, *sys.argv[2:], checked=CHECKED)
    else:
        sys.exit(main())
