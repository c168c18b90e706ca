"""Describe the machine and the versions of the measured libraries."""

import functools
import importlib.metadata
import json
import os
import platform
import subprocess
import sys

from turns import UNSET, inherited

__all__ = ["cpu", "lines", "versions"]

DISTRIBUTIONS = (
    "numpy",
    "llvmlite",
    "torch",
    "tensorflow",
    "tensorflow-cpu",
    "keras",
    "jax",
    "cupy-cuda12x",
    "cupy-cuda13x",
)


def lines():
    """Return the lines above a table of CPU figures, by title."""
    found = {"CPU": cpu(), "BLAS of NumPy": _blas(), "versions": versions()}
    pins = [f"{name}={os.environ[name]}" for name in UNSET if name in os.environ]
    if pins:
        found["environment"] = f"without {', '.join(pins)}"
    return found


def cpu():
    """Return the model, the cores of this process and the widest vectors."""
    try:
        with open("/proc/cpuinfo") as file:
            facts = dict(
                [part.strip() for part in line.split(":", 1)]
                for line in file
                if ":" in line
            )
    except FileNotFoundError:
        facts = {}
    model = facts.get("model name") or platform.processor() or platform.machine()
    flags = facts.get("flags", "").split()
    widest = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX"}
    vectors = [name for flag, name in widest.items() if flag in flags][:1]
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count()
    return ", ".join([model, f"{cores} cores", *vectors])


def versions():
    """Return the versions of Python and of the installed libraries."""
    found = [f"Python {platform.python_version()}"]
    found.append(f"tapewright {_report()['tapewright']}")
    for name in DISTRIBUTIONS:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def _blas():
    """Return NumPy's BLAS and its kernels, as used by the measured processes."""
    facts = _report()["blas"]
    if not facts.get("config"):
        return "unknown"
    version = " ".join(facts["config"].split()[:2])
    return f"{version}, {facts['core']} kernels, {facts['threads']} threads"


@functools.cache
def _report():
    code = "import json, tapewright; print(json.dumps(tapewright.config.report()))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env=inherited(), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)
