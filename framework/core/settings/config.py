"""Settings of the process, and a report of the settings in effect.

Importing tapewright makes one setting: glibc keeps freed arrays instead of unmapping
them (off with ``TAPEWRIGHT_MALLOC=0`` in the environment). ``show()`` prints whether it
was made or the reason why not. This module also switches the optimization passes of
traced functions, and the target that they are compiled for.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np

from .. import hooks
from ..hardware import blas, cpu, gpu, openblas
from ..hardware.device_lists import (
    LogicalDevice,
    LogicalDeviceConfiguration,
    PhysicalDevice,
    get_logical_device_configuration,
    get_soft_device_placement,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_logical_device_configuration,
    set_soft_device_placement,
    set_visible_devices,
)
from ..hardware.gpu import experimental
from ..hardware.openblas import Unavailable
from . import config_optimizer as optimizer
from . import config_threading as threading
from .target_settings import (
    autotune,
    autotune_is_on,
    set_target,
    set_threads,
    target,
    target_product,
    target_report,
    threads,
    use_target,
    why_op_by_op,
)

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "apply_defaults",
    "autotune",
    "autotune_is_on",
    "bucket_bytes",
    "experimental",
    "experimental_functions_run_eagerly",
    "experimental_run_functions_eagerly",
    "functions_are_verified",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices",
    "graph_pass_is_on",
    "graph_passes",
    "list_logical_devices",
    "list_physical_devices",
    "optimizer",
    "report",
    "run_functions_eagerly",
    "set_bucket_bytes",
    "set_graph_passes",
    "set_logical_device_configuration",
    "set_malloc",
    "set_soft_device_placement",
    "set_target",
    "set_threads",
    "set_visible_devices",
    "show",
    "target",
    "target_product",
    "threading",
    "threads",
    "use_target",
    "why_op_by_op",
]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
ENVIRONMENT = (
    *("TAPEWRIGHT_MALLOC", "TAPEWRIGHT_BLAS_CALLS", "TAPEWRIGHT_VERIFY"),
    *("TAPEWRIGHT_TARGET", "TAPEWRIGHT_CACHE", "TAPEWRIGHT_BUCKET_BYTES"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUPY_GPU_MEMORY_LIMIT"),
    *("CUPY_CACHE_DIR", "CUPY_TF32", "NVIDIA_TF32_OVERRIDE"),
    *("TAPEWRIGHT_GPU_TRANSPORT", "TAPEWRIGHT_TRACEBACK_FILTERING"),
    *("LD_PRELOAD", "GLIBC_TUNABLES"),
    *("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "OPENBLAS_CORETYPE"),
    *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"),
)

_malloc = {"tuned": False, "note": "not asked for"}
_run_eagerly = False
_bucket_bytes = None  # not asked for yet
_verify = os.environ.get("TAPEWRIGHT_VERIFY", "0") not in ("", "0")


@functools.cache
def apply_defaults() -> None:
    """Apply the default settings once per process; ``import tapewright`` calls this.

    A setting that cannot be applied raises no error: ``show`` prints the reason.

    Example:
        >>> from tapewright.core.settings import config
        >>> config.apply_defaults()
    """
    try:
        _default_malloc()
    except (Unavailable, OSError, AttributeError, ValueError) as reason:
        _malloc["note"] = str(reason)


def set_malloc(tuned: bool = True) -> None:
    """Tune the C library to keep freed memory for new arrays, or undo the tuning.

    By default glibc maps large arrays individually and returns freed blocks to the
    kernel. The pages of each new temporary array are then faulted in again, which costs
    more than its arithmetic. With tuning, blocks up to 32 MB come from the heap, and
    the heap shrinks only once 256 MB at its end are free: the process may hold that
    much more memory.

    Args:
        tuned: If False, set both thresholds to glibc's initial 128 KB and release free
            memory now. The first call ends glibc's automatic adjustment of the
            thresholds; ``TAPEWRIGHT_MALLOC=0`` before the import leaves it on.

    Raises:
        RuntimeError: If malloc is not glibc's.

    References:
        mallopt(3) and malloc_trim(3) in the Linux manual.

    Example:
        >>> from tapewright import config
        >>> config.set_malloc(True)  # doctest: +SKIP
    """
    libc = _glibc()
    mapped, kept = (32 * 1024, 256 * 1024) if tuned else (128, 128)  # KB
    for option, size in (M_MMAP_THRESHOLD, mapped), (M_TRIM_THRESHOLD, kept):
        if libc.mallopt(option, size * 1024) != 1:
            raise Unavailable(f"malloc rejected a threshold of {size} KB")
    if not tuned:
        libc.malloc_trim(0)
    note = f"mmap threshold {mapped} KB, trim threshold {kept} KB"
    _malloc.update(tuned=bool(tuned), note=note)


def functions_are_verified() -> bool:
    """Return whether traced functions are verified: ``TAPEWRIGHT_VERIFY=1``.

    One verifier then checks the graph after tracing and after each pass; another
    checks, after each step of compilation, the value that each buffer holds. They raise
    ``VerificationError``. Verification takes time only when a function is traced.
    """
    return _verify


def _glibc():
    """Return the C library if it is glibc and its malloc is in use."""
    preload = os.environ.get("LD_PRELOAD", "")
    if any(name in preload for name in ("jemalloc", "tcmalloc", "mimalloc")):
        raise Unavailable(f"malloc is not glibc's: LD_PRELOAD={preload}")
    if sys.platform != "linux" or not _or_none(os.confstr, "CS_GNU_LIBC_VERSION"):
        raise Unavailable("malloc can only be tuned with glibc")
    return openblas.load(None)


def _default_malloc():
    openblas.check_switch("TAPEWRIGHT_MALLOC")
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    for name in ("mmap_threshold", "trim_threshold"):
        if f"MALLOC_{name.upper()}_" in os.environ or f"malloc.{name}=" in tunables:
            raise Unavailable(f"unchanged: the environment sets malloc's {name}")
    set_malloc(True)


def set_graph_passes(every: bool | None = None, /, **switches: bool) -> None:
    """Turn optimization passes over the graphs of traced functions on or off.

    ``algebra``, ``constant_folding``, ``common_subexpressions`` and ``overlap_all_reduces``
    keep results bit for bit. The others run on targets that generate machine code, and
    change how results are rounded: ``loop_fusion`` merges elementwise ops and reductions into
    one loop, ``pool_first`` and ``cropped_convolutions`` skip entries that max pooling
    discards, ``epilogues`` and ``half_factors`` merge products on a GPU with the ops around
    them. Functions that are already compiled do not change.

    Args:
        every: True or False for all passes, or None.
        **switches: True or False for single passes, by name.

    Raises:
        ValueError: If a name is not a pass.

    Example:
        >>> from tapewright import config
        >>> config.set_graph_passes(False, algebra=True)
        >>> [name for name, on in config.report()["graph_passes"].items() if on]
        ['algebra']
        >>> config.set_graph_passes(True)
    """
    passes = _passes()
    if unknown := switches.keys() - passes.keys():
        raise ValueError(
            f"set_graph_passes: there is no pass {', '.join(sorted(unknown))};"
            f"\n  the passes are {', '.join(passes)}."
        )
    if every is not None:
        passes.update(dict.fromkeys(passes, bool(every)))
    passes.update({name: bool(on) for name, on in switches.items()})


@contextlib.contextmanager
def graph_passes(every: bool | None = None, /, **switches: bool) -> Iterator[None]:
    """Context manager with the settings of `set_graph_passes`.

    Args:
        every: True or False for all passes, or None.
        **switches: True or False for single passes, by name.

    Raises:
        ValueError: If a name is not a pass.

    Example:
        >>> from tapewright import config
        >>> with config.graph_passes(common_subexpressions=False):
        ...     config.report()["graph_passes"]["common_subexpressions"]
        False
    """
    before = dict(_passes())
    set_graph_passes(every, **switches)
    try:
        yield
    finally:
        _passes().update(before)


@functools.cache
def _passes():
    """Return a dict from the name of each pass to whether it is on, in their order."""
    return dict(hooks.compiler.call().switches)


def graph_pass_is_on(name: str) -> bool:
    """Return whether a pass is turned on."""
    return _passes()[name]


def bucket_bytes() -> int:
    """Return the size of gradient buckets in bytes, see `set_bucket_bytes`.

    Example:
        >>> from tapewright import config
        >>> config.bucket_bytes()
        26214400
    """
    if _bucket_bytes is None:
        text = os.environ.get("TAPEWRIGHT_BUCKET_BYTES") or str(25 << 20)
        if not text.isdecimal():
            raise ValueError(
                f"TAPEWRIGHT_BUCKET_BYTES must be a number of bytes, got {text!r}"
            )
        set_bucket_bytes(int(text))
    return _bucket_bytes


def set_bucket_bytes(nbytes: int) -> None:
    """Set the size of the buckets in which traced functions reduce gradients.

    A bucket is reduced over the processes while the next gradients are computed. Larger
    buckets need fewer messages; smaller buckets shorten the wait after the last
    gradient. The size must be the same in all processes; functions that are already
    compiled keep theirs. ``TAPEWRIGHT_BUCKET_BYTES`` in the environment sets the
    default of 25 MB.

    Args:
        nbytes: Size in bytes, not negative.

    Raises:
        ValueError: If ``nbytes`` is negative.

    Example:
        >>> from tapewright import config
        >>> config.set_bucket_bytes(25 << 20)
    """
    global _bucket_bytes
    if nbytes < 0:
        raise ValueError(f"set_bucket_bytes: nbytes must not be negative, got {nbytes}")
    _bucket_bytes = int(nbytes)


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Run functions decorated by `tw.function` as plain Python, for debugging.

    Existing traces are kept.

    Args:
        run_eagerly: True to run functions eagerly, False to run their traces again.

    Example:
        >>> from tapewright import config
        >>> config.run_functions_eagerly(True)
        >>> config.functions_run_eagerly()
        True
        >>> config.run_functions_eagerly(False)
    """
    global _run_eagerly
    _run_eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Return whether `run_functions_eagerly` is on.

    Example:
        >>> tw.config.functions_run_eagerly()
        False
    """
    return _run_eagerly


# Names of TensorFlow 2.0.
experimental_run_functions_eagerly = run_functions_eagerly
experimental_functions_run_eagerly = functions_run_eagerly


def report() -> dict[str, Any]:
    """Return the information of `show` as a dict of strings, numbers, lists and dicts.

    Values that cannot be determined are None.

    Example:
        >>> from tapewright import config
        >>> sorted(config.report())  # doctest: +ELLIPSIS
        ['blas', 'cpu_flags', 'cupy', 'environment', 'gpu', ...]
        >>> sorted(config.report()["blas"])
        ['calls', 'config', 'core', 'library', 'threads']
    """
    library = {
        "library": _or_none(openblas.library_file),
        "config": _or_none(openblas.text, "openblas_get_config"),
        "core": _or_none(openblas.core),
        "threads": _or_none(openblas.threads),
    }
    return {
        "tapewright": _version(),
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "cupy": _cupy(),
        "gpu": _gpu_report(),
        "blas": library | {"calls": blas.note()},
        "malloc": dict(_malloc),
        "graph_passes": dict(_passes()),
        "target": target_report(),
        "cpu_flags": sorted(cpu.vector_flags()),
        "environment": {name: os.environ.get(name) for name in ENVIRONMENT},
    }


def _gpu_report():
    """Return facts about the GPU, and how traced functions run there."""
    facts = gpu.report() | {"target": None}
    if "cupy" not in sys.modules:
        facts["note"] = f"CuPy is {_cupy()}"
    if facts["note"] is None:
        reason = why_op_by_op(sys.modules["cupy"])
        facts["target"] = f"CuPy, op by op ({reason})" if reason else "CUDA graphs"
    return facts


def _or_none(function, *args):
    try:
        return function(*args)
    except (Unavailable, OSError, AttributeError, ValueError):
        return None


def _version():
    from importlib import metadata  # slow to import, and only the report needs it

    try:
        return metadata.version("tapewright")
    except metadata.PackageNotFoundError:
        return "unknown"


def _cupy():
    """Return the state of CuPy without importing it, which may take seconds."""
    from importlib import util

    cupy = sys.modules.get("cupy")
    if cupy is None:
        spec = _or_none(util.find_spec, "cupy")
        return "installed, not imported" if spec else "not installed"
    try:
        return f"{cupy.__version__}, devices: {cupy.cuda.runtime.getDeviceCount()}"
    except (RuntimeError, AttributeError) as error:  # CUDA's errors are RuntimeErrors
        return f"imported, devices unknown: {error}"


def show(file: TextIO | None = None) -> None:
    """Print versions, GPU, BLAS, malloc, target, CPU flags and switches.

    Args:
        file: File to print to, by default ``sys.stdout``.

    Example:
        >>> from tapewright import config
        >>> config.show()  # doctest: +ELLIPSIS
        tapewright ...
    """
    facts = report()
    library, malloc = facts["blas"], facts["malloc"]
    variables = [f"{k}={v}" for k, v in facts["environment"].items() if v is not None]
    off = [name for name, on in facts["graph_passes"].items() if not on]
    lines = {
        "tapewright": facts["tapewright"],
        "Python": facts["python"],
        "NumPy": facts["numpy"],
        "CuPy": facts["cupy"],
        **_gpu_lines(facts["gpu"]),
        "BLAS": library["library"] or "not OpenBLAS, or not accessible",
        "  built as": library["config"] or "unknown",
        "  kernels": library["core"] or "unknown",
        "  called": library["calls"],
        "  threads": library["threads"] or "unknown",
        "malloc": f"{'tuned' if malloc['tuned'] else 'not tuned'} ({malloc['note']})",
        "target": _target_line(facts["target"]),
        "graph passes": f"all but {', '.join(off)}" if off else "all on",
        "CPU flags": " ".join(facts["cpu_flags"]) or "unknown",
        "environment": " ".join(variables) or "none set",
    }
    for name, value in lines.items():
        print(f"{name:<12} {value}", file=file)


def _gpu_lines(facts):
    """Return the lines about the GPU, or one line if there is no GPU."""
    cuda = facts["cuda"] or {"runtime": "unknown", "driver": None}
    driver = f"driver for {cuda['driver']}" if cuda["driver"] else "no driver"
    libraries = {
        "  CUDA": f"{cuda['runtime']}, {driver}",
        "  NVRTC": facts["nvrtc"],
        "  products": "TensorFloat-32" if facts["tf32"] else "float32",
    }
    if facts["note"] is not None:
        return {"GPU": facts["note"]} | (libraries if facts["cuda"] else {})
    used, free, total = [facts["memory"][k] >> 20 for k in ("used", "free", "total")]
    memory = f"{used:,} MiB in use, {free:,} of {total:,} MiB free"
    version = f"compute capability {facts['compute_capability']}"
    return {
        "GPU": f"{facts['name']}, {version}",
        **libraries,
        "  memory": memory,
        "  functions": facts["target"],
    }


def _target_line(facts):
    own = [facts["note"]]
    if facts["name"] == "native":
        count = facts["threads"]
        own.append(f"{count} thread{'s' if count > 1 else ''}")
        own += ["autotune"] if facts["autotune"] else []
    return f"{facts['name']} ({', '.join(own)})"
