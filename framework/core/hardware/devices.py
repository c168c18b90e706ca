"""Devices and array modules: NumPy or CuPy. The only file that imports CuPy.

Every kernel receives the array module ``xp`` of its inputs. New arrays are created on
the current device: the CPU, or the device set by `device`.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..errors import ResourceExhaustedError
from ..messages.source_lines import user_stacklevel
from ..messages.suggestions import did_you_mean

_CURRENT = ContextVar("array_module", default=np)
_TO_NUMPY = {}


class _Modules(dict):
    """Array type -> array module, found when a type is first met."""

    def __missing__(self, array_type):
        if issubclass(array_type, (np.ndarray, np.generic, float, int, complex)):
            self[array_type] = np
            return np
        if array_type.__module__.partition(".")[0] == "cupy":
            self[array_type] = cupy_module()
            return self[array_type]
        raise TypeError(
            f"{array_type.__name__} is not an array type of a known module (NumPy, CuPy)"
        )


_MODULES = _Modules()


def array_module(array_type: type[Any]) -> Any:
    """Return the module, NumPy or CuPy, of an array type."""
    return _MODULES[array_type]


def is_array(value: object) -> bool:
    """Return whether ``value`` is an array (or NumPy scalar) of a known module."""
    kind = type(value)
    if isinstance(value, (np.ndarray, np.generic)) or kind in _TO_NUMPY:
        return True
    return kind.__module__.partition(".")[0] == "cupy" and hasattr(value, "dtype")


def register_array_module(
    array_type: type[Any], module: Any, to_numpy: Callable[[Any], Any] | None
) -> None:
    """Register a module with NumPy's functions; ``to_numpy`` copies arrays to the host.

    It is None for arrays without values, such as arrays of a tracer.
    """
    _MODULES[array_type] = module
    if to_numpy is not None:
        _TO_NUMPY[array_type] = to_numpy


def current_module() -> Any:
    """Return the array module of the current device."""
    return _CURRENT.get()


def cupy_module(name: str = "cupy") -> Any:
    """Return CuPy, or a module that is installed with it.

    Raises:
        RuntimeError: If CuPy is not installed or cannot be imported.
    """
    try:
        import cupy
    except (ImportError, OSError) as error:  # OSError: of a library that it loads
        if getattr(error, "name", None) == "cupy":
            raise RuntimeError(
                'CuPy is not installed (pip install "tapewright[cuda12]" or '
                '"tapewright[cuda13]")'
            ) from error
        raise RuntimeError(f"CuPy cannot be imported: {error}") from error
    return cupy if name == "cupy" else importlib.import_module(name)


class _Placement:
    """The settings of `device`, see `tw.config`.

    - ``visible``: CUDA's numbers of the visible GPUs in order, None for all.
    - ``soft``: the CPU replaces a missing GPU.
    - ``told``: the warning about that was printed.
    - ``used``: a GPU was entered, and keeps its name.
    """

    visible: list[int] | None = None
    soft = True
    told = False
    used = False


placement = _Placement()


def gpu_count() -> tuple[int, str]:
    """Return the number of visible GPUs, and the reason if there are none."""
    if placement.visible is None:
        return physical_gpus()
    count = len(placement.visible)
    return count, "" if count else "set_visible_devices hides all GPUs"


def cuda_number(number: int) -> int:
    """Return CUDA's number of a visible GPU."""
    return number if placement.visible is None else placement.visible[number]


def physical_gpus() -> tuple[int, str]:
    """Return the number of all GPUs, and the reason if there are none."""
    try:
        runtime = cupy_module().cuda.runtime
    except RuntimeError as error:
        return 0, str(error)
    try:
        count = runtime.getDeviceCount()
    except RuntimeError as error:  # CUDA's errors are RuntimeErrors
        return 0, f"{error} (CUDA needs NVIDIA's driver; nvidia-smi lists its GPUs)"
    return count, "" if count else "CUDA sees no GPU"


def device_of(array: Any) -> str:
    """Return the name of the device of an array: ``"/CPU:0"``, ``"/GPU:1"``."""
    if array_module(type(array)) is np:
        return "/CPU:0"
    number, visible = array.device.id, placement.visible
    if visible is None or number in visible:
        return f"/GPU:{number if visible is None else visible.index(number)}"
    return f"/physical_device:GPU:{number}"  # hidden, and used by CuPy alone


def device(name: Any) -> AbstractContextManager[None]:
    """Context manager that creates new tensors, variables and models on a device.

    Ops run on the device of their inputs. Tensors are never moved automatically: an op
    on tensors of two devices raises an error. Without a GPU, the CPU is used, with one
    warning per process; `tw.config.set_soft_device_placement` turns this into an error.

    Args:
        name: Name such as "CPU", "GPU" or "/GPU:1", a `tw.config.LogicalDevice`, or
            None to stay on the current device. "GPU" is the first GPU; if a host runs
            several processes, each uses a different one, selected by local rank.

    Raises:
        RuntimeError: If no device has this number.
        ValueError: If ``name`` is not the name of a device.

    Example:
        >>> with tw.device("/CPU:0"):
        ...     tw.ones([2]).device
        '/CPU:0'
    """
    if name is not None:
        parse_device(name)
    return _on_device(name)


@contextmanager
def _on_device(name):
    if name is None:
        yield
        return
    if _is_replaced(name):
        name = "CPU"
    kind, number = find_device(name)
    if kind == "CPU":
        with use_module(np):
            yield
        return
    module = cupy_module()
    number = _own_gpu(module) if number is None else cuda_number(number)
    placement.used = True
    with use_module(module), module.cuda.Device(number):
        yield


def _is_replaced(name):
    """Return whether the CPU replaces a GPU, and warn about it once."""
    if not placement.soft or parse_device(name)[0] == "CPU":
        return False
    count, reason = gpu_count()
    if not count and not placement.told:
        placement.told = True
        warnings.warn(
            f"device: no GPU is available, so {name!r} uses the CPU: {reason}. "
            "tw.config.set_soft_device_placement(False) makes this an error",
            stacklevel=user_stacklevel(),
        )
    return not count


_DEVICE_NAME = re.compile(
    r"/?(?:job:localhost/replica:0/task:0/)?(?:device:)?(CPU|GPU)(?::([0-9]+))?",
    re.IGNORECASE,
)


def parse_device(name: Any, who: str = "device") -> tuple[str, int | None]:
    """Return the type, ``"CPU"`` or ``"GPU"``, and the number, if any, of a device.

    Example:
        >>> from tapewright.core.hardware.devices import parse_device
        >>> parse_device("/device:GPU:1"), parse_device("cpu")
        (('GPU', 1), ('CPU', None))
    """
    text = getattr(name, "name", name)
    match = _DEVICE_NAME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(
            f"{who}: name must be like 'CPU', 'GPU' or '/GPU:1', got {name!r}"
            f"{_device_meant(str(text))}"
        )
    kind, number = match.groups()
    return kind.upper(), None if number is None else int(number)


def _device_meant(text):
    """The end of a message: the device that PyTorch's name, or a misspelt one, stands for."""
    stem, _, number = text.lower().rpartition("/")[2].partition(":")
    if stem in ("mps", "xpu", "tpu", "hip", "rocm"):
        return "; the devices are CPUs, and GPUs of NVIDIA"
    ending = f":{number}" if number.isdigit() else ""
    stem = stem.replace("cuda", "gpu")
    return did_you_mean(stem + ending, [f"CPU{ending}", f"GPU{ending}"])


def find_device(
    name: Any, who: str = "device", or_hidden: bool = False
) -> tuple[str, int | None]:
    """Return `parse_device` of an existing device.

    Args:
        name: Name of the device.
        who: Name of the caller, for error messages.
        or_hidden: If True, number all GPUs of the machine, visible or not.

    Raises:
        RuntimeError: If the device does not exist; the message names the others.
    """
    kind, number = parse_device(name, who)
    if kind == "CPU" and not number:
        return kind, number
    count, why = physical_gpus() if or_hidden else gpu_count()
    if kind == "GPU" and (number or 0) < count:
        return kind, number
    present = ", ".join(["/CPU:0", *[f"/GPU:{i}" for i in range(count)]])
    reason = f"the devices are {present}" if count else f"{why}; there is {present}"
    raise RuntimeError(f"{who}: there is no {kind} with the name {name!r}: {reason}")


_LOCAL_RANK = [lambda: 0]  # how to ask for the number of this process on its host


def choose_gpu(local_rank: Callable[[], int]) -> None:
    """Let ``"GPU"`` mean GPU ``local_rank()`` modulo their count, called at each use."""
    _LOCAL_RANK[0] = local_rank


def _own_gpu(module):
    """Return the number of the GPU of this process, and make it CUDA's current one.

    It remains current in this thread, so that its arrays can be used outside of
    `device`, like arrays of GPU 0.
    """
    rank = _LOCAL_RANK[0]()
    count = gpu_count()[0] if rank else 0
    number = cuda_number(rank % count if count else 0)
    if count or number:
        module.cuda.Device(number).use()
    return number


@contextmanager
def use_module(module):
    """Context that creates new arrays by ``module``."""
    token = _CURRENT.set(module)
    try:
        yield module
    finally:
        _CURRENT.reset(token)


def to_numpy(array: Any) -> Any:
    """Return the array in host memory: a NumPy array itself, otherwise a copy."""
    if isinstance(array, (np.ndarray, np.generic)):
        return array
    convert = _TO_NUMPY.get(type(array))
    values = convert(array) if convert is not None else array.get()
    if _checks:
        check_results()
    return values


_checks: dict[int, Callable[[], None]] = {}  # that a look at results has to make first


def check_later(check: Callable[[], None]) -> None:
    """Call ``check()`` when a GPU array is next copied to the host and the GPU is done.

    It raises errors of work that was launched asynchronously.
    """
    _checks[id(check.__self__)] = check  # type: ignore[attr-defined]


def check_results() -> None:
    """Raise errors of completed work on the GPU."""
    while _checks:
        try:
            _, check = _checks.popitem()
        except KeyError:  # another thread has made the last one
            return
        check()


def copy_to(module: Any, array: Any) -> Any:
    """Return a copy of ``array`` made by ``module``."""
    own = array_module(type(array))
    if own is module:
        return module.array(array, copy=True)
    return module.asarray(to_numpy(array))


def linalg_errors(array: Any) -> AbstractContextManager[None]:
    """Context in which a matrix that cannot be factored raises an error, as in NumPy.

    CuPy raises none by default, since it would have to wait for the GPU.
    """
    if is_array(array) and array_module(type(array)) is not np:
        return cupy_module("cupyx").errstate(linalg="raise")
    return nullcontext()


# -------------------------------------------------------------------------- memory


def may_share_memory(a: Any, b: Any) -> bool:
    """Return whether arrays may overlap; GPU arrays may only if they have one owner."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.may_share_memory(a, b)
    return memory_owner(a) is memory_owner(b)


def memory_owner(array: Any) -> Any:
    """Return the array that owns the memory of a view; other arrays themselves."""
    while isinstance(getattr(array, "base", None), type(array)):
        array = array.base
    return array


def check_fits(who: str, shape: Sequence[Any], dtype: Any) -> None:
    """Raise ``ResourceExhaustedError`` for an array larger than the device memory.

    The operating system would grant such an array and kill the program that fills it.
    Unknown dimensions count as 1.
    """
    count = math.prod([n for n in shape if type(n) is int])
    if count < _SURELY_FITS:
        return
    xp = current_module()
    size = count * np.dtype(dtype).itemsize
    memory = _host_memory() if xp is np else xp.cuda.runtime.memGetInfo()[1]
    if size > memory:
        raise ResourceExhaustedError(
            f"{who}: an array of shape {tuple(shape)} and dtype {np.dtype(dtype).name} "
            f"needs {size:,} bytes; the device has {memory:,}"
        )


_SURELY_FITS = 1 << 24  # entries


@functools.cache
def _host_memory():
    """Return the bytes of main memory, or the limit of the process's control group."""
    limits = [_installed_memory()]
    for file in ("memory.max", "memory/memory.limit_in_bytes"):
        path = f"/sys/fs/cgroup/{file}"
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as opened:
                text = opened.read().strip()
            limits += [int(text)] if text.isdigit() else []
    return min(limits)


def _installed_memory():
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    from .openblas import ctypes

    if hasattr(ctypes, "windll"):  # a MEMORYSTATUSEX: its size, all memory, and so on
        status = (ctypes.c_uint64 * 8)(64)
        if ctypes.windll.kernel32.GlobalMemoryStatusEx(status):
            return status[1]
    return sys.maxsize


def free_memory(module: Any) -> int:
    """Return the bytes available on the current GPU: free, or held by the pool."""
    if not hasattr(module, "cuda"):  # arrays in host memory
        return _host_memory()
    pool = module.get_default_memory_pool()
    free = module.cuda.runtime.memGetInfo()[0] + pool.free_bytes()
    limit = pool.get_limit()  # 0: none
    return min(free, max(0, limit - pool.used_bytes())) if limit else free


# What an error says if CUDA itself, or a library of it, finds no memory.
_NO_MEMORY = (
    *("cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY"),
    "CUBLAS_STATUS_ALLOC_FAILED",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the host or a GPU is out of memory."""
    return isinstance(error, MemoryError) or any(
        [code in str(error) for code in _NO_MEMORY]
    )


def memory_error(who: str, error: BaseException) -> ResourceExhaustedError:
    """Return the error to raise for one of `is_out_of_memory`, with the GPU's usage."""
    if isinstance(error, ResourceExhaustedError):
        return error
    if type(error).__module__.partition(".")[0] not in ("cupy", "cupy_backends"):
        return ResourceExhaustedError(f"{who}: {error}")
    return ResourceExhaustedError(
        f"{who}: {error}\n  {_memory_in_use()}\n  Reduce the batch size; delete "
        "persistent tapes and unused tensors; nvidia-smi shows other processes. "
        "cupy.get_default_memory_pool().free_all_blocks() releases unused memory"
    )


def _memory_in_use():
    module = cupy_module()
    try:
        free, total = module.cuda.runtime.memGetInfo()
        pool = module.get_default_memory_pool()
        used, held = pool.used_bytes(), pool.total_bytes()
    except Exception:  # the GPU is gone; the first error says more
        return "The memory in use cannot be determined."
    return (
        f"In use: {used:,} bytes by arrays, {held:,} by the memory pool; {free:,} of the "
        f"{total:,} bytes of the GPU are free."
    )
