"""The GPUs of this machine under TensorFlow's names: memory, precision, a report.

CuPy is imported only to answer a question about a GPU; `report` never imports it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from ..messages.source_lines import user_stacklevel
from ..settings.determinism import enable_op_determinism
from . import devices
from .device_lists import (
    LogicalDeviceConfiguration,
    PhysicalDevice,
    find_gpu,
    get_logical_device_configuration,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_logical_device_configuration,
    set_visible_devices,
)

# ----------------------------------------------------------------- one GPU, by its name


def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
    """Return a dict with the ``device_name`` and ``compute_capability`` of a GPU.

    The compute capability is a pair of integers. The dict is empty for the CPU.

    Args:
        device: Device of `tw.config.list_physical_devices`.

    Raises:
        RuntimeError: If the device does not exist.
        ValueError: If it is not a device.

    Example:
        >>> from tapewright.core.hardware.gpu import get_device_details
        >>> get_device_details(tw.config.list_physical_devices("GPU")[0])  # doctest: +SKIP
        {'device_name': 'NVIDIA H100 80GB HBM3', 'compute_capability': (9, 0)}
    """
    number = find_gpu("get_device_details", device, or_cpu=True)
    if number is None:
        return {}
    facts = devices.cupy_module().cuda.runtime.getDeviceProperties(number)
    name = facts["name"]
    name = name.decode() if isinstance(name, bytes) else name
    version = facts["major"], facts["minor"]
    return {"device_name": name, "compute_capability": version}


def get_memory_info(device: str) -> dict[str, int]:
    """Return the ``current`` and ``peak`` memory of a GPU in bytes, as a dict.

    ``current`` is the memory of arrays. ``peak`` is the size of CuPy's memory pool,
    which takes memory from the GPU as arrays need it and keeps it. `reset_memory_stats`
    frees the unused part.

    Args:
        device: Name of the GPU, such as "GPU:0".

    Raises:
        ValueError: If the device is the CPU.
        RuntimeError: If the device does not exist.

    Example:
        >>> from tapewright.core.hardware.gpu import get_memory_info
        >>> get_memory_info("GPU:0")  # doctest: +SKIP
        {'current': 512, 'peak': 8192}
    """
    return _on_gpu("get_memory_info", device, _memory)


def _memory(cupy):
    pool = cupy.get_default_memory_pool()
    return {"current": pool.used_bytes(), "peak": pool.total_bytes()}


def reset_memory_stats(device: str) -> None:
    """Free the unused memory of a GPU and restart the count of its ``peak``.

    The memory pool frees whole blocks, so the peak may remain above ``current``.

    Args:
        device: Name of the GPU, such as "GPU:0".

    Raises:
        ValueError: If the device is the CPU.
        RuntimeError: If the device does not exist.

    Example:
        >>> from tapewright.core.hardware.gpu import reset_memory_stats
        >>> reset_memory_stats("GPU:0")  # doctest: +SKIP
    """
    _on_gpu(
        "reset_memory_stats",
        device,
        lambda cupy: cupy.get_default_memory_pool().free_all_blocks(),
    )


def get_memory_growth(device: PhysicalDevice) -> bool:
    """Return True: the memory pool always grows as arrays need it.

    Args:
        device: GPU of `tw.config.list_physical_devices`.

    Raises:
        ValueError: If the device is the CPU.
        RuntimeError: If the device does not exist.
    """
    find_gpu("get_memory_growth", device)
    return True


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Accept TensorFlow's setting without effect: memory is always allocated as needed.

    ``CUPY_GPU_MEMORY_LIMIT`` in the environment limits the memory, in bytes or as
    ``50%``.

    Args:
        device: GPU of `tw.config.list_physical_devices`.
        enable: True; False prints a warning, since memory grows in any case.

    Raises:
        ValueError: If the device is the CPU.
        RuntimeError: If the device does not exist.

    Example:
        >>> from tapewright.core.hardware.gpu import set_memory_growth
        >>> for gpu in tw.config.list_physical_devices("GPU"):
        ...     set_memory_growth(gpu, True)
    """
    find_gpu("set_memory_growth", device)
    if not enable:
        warnings.warn(
            "set_memory_growth: the memory of a GPU always grows as needed; "
            "CUPY_GPU_MEMORY_LIMIT in the environment limits it",
            stacklevel=user_stacklevel(),
        )


def _on_gpu(who: str, device: Any, function: Callable[[Any], Any]):
    """Return ``function(cupy)``, called with a GPU as the current device."""
    number, cupy = find_gpu(who, device), devices.cupy_module()
    with cupy.cuda.Device(number):
        return function(cupy)


# ------------------------------------------------------------------------- precision

_tf32 = {"on": None}  # None: as CuPy, which looks at CUPY_TF32


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Turn TensorFloat-32 for float32 products on a GPU on or off.

    Tensor cores then compute the products several times as fast, with 10 instead of 23
    bits of mantissa in the factors; sums remain float32. It is off by default, unlike
    in TensorFlow. ``CUPY_TF32=1`` in the environment turns it on;
    ``NVIDIA_TF32_OVERRIDE=0`` keeps it off in any case. Functions that are already
    compiled keep their setting. GPUs below compute capability 8.0 have no
    TensorFloat-32. CuPy is imported if it is installed; a warning is printed if its
    eager products cannot follow the setting.

    Args:
        enabled: True to use TensorFloat-32, False for full float32.

    Example:
        >>> from tapewright.core.hardware.gpu import (
        ...     enable_tensor_float_32_execution,
        ...     tensor_float_32_execution_enabled,
        ... )
        >>> enable_tensor_float_32_execution(False)
        >>> tensor_float_32_execution_enabled()
        False
    """
    _tf32["on"] = bool(enabled)
    if devices.gpu_count()[0]:
        _set_products(devices.cupy_module(), enabled)


def _set_products(cupy, enabled):
    """Let CuPy's products use TensorFloat-32; it has no public function for this."""
    try:
        products = devices.cupy_module("cupy._core._routines_linalg")
        kinds = products.COMPUTE_TYPE_DEFAULT, products.COMPUTE_TYPE_TF32
        products.set_compute_type(np.float32, kinds[bool(enabled)])
    except (ImportError, AttributeError):
        warnings.warn(
            f"CuPy {cupy.__version__} has no switch for TensorFloat-32: eager products "
            "keep the setting of CUPY_TF32; traced functions use the new setting",
            stacklevel=user_stacklevel(),
        )


def tensor_float_32_execution_enabled() -> bool:
    """Return whether float32 products on a GPU may use TensorFloat-32.

    Raises:
        ValueError: If ``CUPY_TF32`` in the environment is not an integer.
    """
    if os.environ.get("NVIDIA_TF32_OVERRIDE", "").strip() == "0":
        return False
    if _tf32["on"] is not None:
        return _tf32["on"]
    asked = os.environ.get("CUPY_TF32", "").strip() or "0"
    try:
        return int(asked) > 0
    except ValueError:
        raise ValueError(f"CUPY_TF32 must be 0 or 1, got {asked!r}") from None


class experimental:  # noqa: N801  (a namespace)
    """Settings and properties of GPUs, under the names of ``tf.config.experimental``."""

    VirtualDeviceConfiguration = LogicalDeviceConfiguration
    enable_op_determinism = staticmethod(enable_op_determinism)
    enable_tensor_float_32_execution = staticmethod(enable_tensor_float_32_execution)
    get_device_details = staticmethod(get_device_details)
    get_memory_growth = staticmethod(get_memory_growth)
    get_memory_info = staticmethod(get_memory_info)
    get_virtual_device_configuration = staticmethod(get_logical_device_configuration)
    get_visible_devices = staticmethod(get_visible_devices)
    list_logical_devices = staticmethod(list_logical_devices)
    list_physical_devices = staticmethod(list_physical_devices)
    reset_memory_stats = staticmethod(reset_memory_stats)
    set_memory_growth = staticmethod(set_memory_growth)
    set_virtual_device_configuration = staticmethod(set_logical_device_configuration)
    set_visible_devices = staticmethod(set_visible_devices)
    tensor_float_32_execution_enabled = staticmethod(tensor_float_32_execution_enabled)


# ---------------------------------------------------------------------------- report


def report() -> dict[str, Any]:
    """Return properties of the GPU as plain values, without importing CuPy.

    ``name``, ``compute_capability``; ``memory``: bytes ``used`` by arrays, ``held`` by
    the pool, ``free`` and ``total``; ``cuda``: versions of ``runtime`` and ``driver``;
    ``nvrtc``: its version; ``tf32``: whether products may use TensorFloat-32. Values
    that cannot be determined are None; ``note`` is the reason if there is no GPU.
    """
    facts = dict.fromkeys(("name", "compute_capability", "memory", "cuda", "nvrtc"))
    facts |= {"tf32": None, "note": None}
    with suppress(ValueError):  # of a wrong CUPY_TF32; a report does not fail
        facts["tf32"] = tensor_float_32_execution_enabled()
    cupy = sys.modules.get("cupy")
    if cupy is None:
        return facts | {"note": "CuPy is not imported"}
    facts |= {"nvrtc": _nvrtc(), "cuda": _cuda(cupy)}
    count, reason = devices.gpu_count()
    if not count:
        return facts | {"note": reason}
    try:
        return facts | _current(cupy)
    except Exception as error:  # a report does not fail
        return facts | {"note": f"{type(error).__name__}: {error}"}


def _current(cupy):
    """Return the properties of the current GPU."""
    number = cupy.cuda.Device().id
    details = get_device_details(
        PhysicalDevice(f"/physical_device:GPU:{number}", "GPU")
    )
    free, total = cupy.cuda.runtime.memGetInfo()
    pool = cupy.get_default_memory_pool()
    used, held = pool.used_bytes(), pool.total_bytes()
    version = ".".join(map(str, details["compute_capability"]))
    return {
        "name": f"{details['device_name']} (GPU:{number})",
        "compute_capability": version,
        "memory": {"used": used, "held": held, "free": free, "total": total},
    }


def _cuda(cupy):
    """Return the CUDA versions of CuPy's runtime and of the driver, None if missing."""
    try:
        runtime = cupy.cuda.runtime
        versions = runtime.runtimeGetVersion(), runtime.driverGetVersion()
    except (RuntimeError, AttributeError):
        return None
    runtime, driver = [f"{v // 1000}.{v % 1000 // 10}" if v else None for v in versions]
    return {"runtime": runtime, "driver": driver}


def _nvrtc():
    """Return the version of NVRTC, or why it cannot be loaded."""
    try:
        nvrtc = devices.cupy_module("cupy_backends.cuda.libs.nvrtc")
        return ".".join(map(str, nvrtc.getVersion()))
    except Exception as error:  # whatever a missing library raises
        return f"not found: {str(error).strip()}"
