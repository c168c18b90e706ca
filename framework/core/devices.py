"""Devices and array modules: NumPy or CuPy. The only file that imports CuPy.

Every kernel gets the array module ``xp`` of its inputs. New arrays are created on the
current device: the CPU, or that of `device`.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from .errors import ResourceExhaustedError

__all__ = [
    "array_module",
    "check_fits",
    "choose_gpu",
    "copy_to",
    "current_module",
    "device",
    "is_array",
    "list_physical_devices",
    "memory_owner",
    "register_array_module",
    "to_numpy",
]

_CURRENT = ContextVar("array_module", default=np)
_TO_NUMPY = {}


class _Modules(dict):
    """Array type -> array module, found when a type is first met."""

    def __missing__(self, array_type):
        if issubclass(array_type, (np.ndarray, np.generic, float, int, complex)):
            self[array_type] = np
            return np
        if array_type.__module__.partition(".")[0] == "cupy":
            self[array_type] = _cupy()
            return self[array_type]
        raise TypeError(
            f"{array_type.__name__} is no array of a known module (NumPy, CuPy)"
        )


_MODULES = _Modules()


def array_module(array_type: type[Any]) -> Any:
    """The module, NumPy or CuPy, of this type of arrays."""
    return _MODULES[array_type]


def is_array(value: object) -> bool:
    """Return whether ``value`` is an array (or NumPy scalar) of a known module."""
    kind = type(value)
    if isinstance(value, (np.ndarray, np.generic)) or kind in _TO_NUMPY:
        return True
    return kind.__module__.partition(".")[0] == "cupy" and hasattr(value, "dtype")


def register_array_module(
    array_type: type[Any], module: Any, to_numpy: Callable[[Any], Any]
) -> None:
    """Add a module with NumPy's functions; ``to_numpy`` copies its arrays to the host."""
    _MODULES[array_type] = module
    _TO_NUMPY[array_type] = to_numpy


def current_module() -> Any:
    """The array module of the current device."""
    return _CURRENT.get()


def _cupy():
    try:
        import cupy
    except ImportError as error:
        raise RuntimeError(
            "The GPU needs CuPy: install tapewright[cuda12] or tapewright[cuda13]"
        ) from error
    return cupy


@contextmanager
def device(name: str | None) -> Iterator[None]:
    """A context that creates new arrays on a device: ``"CPU"``, ``"GPU"``, ``"/GPU:1"``.

    Arrays never move by themselves: an op on arrays of two devices is an error. ``"GPU"``
    is the first GPU; among several processes of a host each has its own, by local rank.

    >>> with device("/CPU:0"):
    ...     current_module().__name__
    'numpy'
    """
    kind, _, index = (
        str(name).lower().replace("/", "").replace("device:", "").partition(":")
    )
    if kind not in ("cpu", "gpu") or not (index or "0").isdigit():
        raise ValueError(
            f"device: name must be like 'CPU', 'GPU' or '/GPU:1', got {name!r}"
        )
    with use_module(np if kind == "cpu" else _cupy()) as module:
        if kind == "cpu":
            yield
        else:
            with module.cuda.Device(int(index) if index else _own_gpu(module)):
                yield


_LOCAL_RANK = [lambda: 0]  # how to ask for the number of this process on its host


def choose_gpu(local_rank: Callable[[], int]) -> None:
    """Make ``"GPU"`` mean GPU ``local_rank()``, modulo their count; asked at each use."""
    _LOCAL_RANK[0] = local_rank


def _own_gpu(module):
    """The number of the GPU of this process, which becomes CUDA's current one.

    It stays current in this thread, so that its arrays can be used where no `device` is
    entered, as those of GPU 0 can.
    """
    rank = _LOCAL_RANK[0]()
    if not rank:
        return 0
    number = rank % module.cuda.runtime.getDeviceCount()
    module.cuda.Device(number).use()
    return number


@contextmanager
def use_module(module):
    """A context that creates new arrays by ``module``."""
    token = _CURRENT.set(module)
    try:
        yield module
    finally:
        _CURRENT.reset(token)


def list_physical_devices(device_type: str | None = None) -> list[str]:
    """Names of the devices present, ``["/CPU:0", "/GPU:0", ...]``, of one type or all."""
    names = ["/CPU:0"]
    try:
        names += [f"/GPU:{i}" for i in range(_cupy().cuda.runtime.getDeviceCount())]
    except Exception:  # no CuPy, no driver, no device: each its own error class
        pass
    return [n for n in names if device_type is None or n[1:4] == device_type.upper()]


def to_numpy(array: Any) -> Any:
    """The array in host memory: itself if it is a NumPy array, else a copy."""
    if isinstance(array, (np.ndarray, np.generic)):
        return array
    convert = _TO_NUMPY.get(type(array))
    return convert(array) if convert is not None else array.get()


def copy_to(module: Any, array: Any) -> Any:
    """A copy of ``array`` made by ``module``."""
    own = array_module(type(array))
    if own is module:
        return module.array(array, copy=True)
    return module.asarray(to_numpy(array))


# -------------------------------------------------------------------------- memory


def memory_owner(array: Any) -> Any:
    """The array that owns the memory of a view; any other array itself."""
    while isinstance(getattr(array, "base", None), type(array)):
        array = array.base
    return array


def check_fits(who: str, shape: Sequence[Any], dtype: Any) -> None:
    """Raise ``ResourceExhaustedError`` for an array larger than the memory of the device.

    The operating system would grant such an array, and kill the program that fills it.
    Unknown dimensions count 1.
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
            f"takes {size:,} bytes; there are {memory:,}"
        )


_SURELY_FITS = 1 << 24  # entries


@functools.cache
def _host_memory():
    """The bytes of main memory, or the limit of the control group of the process."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in ("memory.max", "memory/memory.limit_in_bytes"):
        path = Path("/sys/fs/cgroup") / file
        if path.is_file():
            text = path.read_text().strip()
            limits += [int(text)] if text.isdigit() else []
    return min(limits)
