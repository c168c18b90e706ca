"""The devices of this machine under TensorFlow's names, and which of them are used.

Nothing here imports CuPy unless it is asked about a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from . import devices

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "find_gpu",
    "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_gpu_available",
    "list_logical_devices",
    "list_physical_devices",
    "set_logical_device_configuration",
    "set_soft_device_placement",
    "set_visible_devices",
]


class PhysicalDevice(NamedTuple):
    """A device of this machine: its name, and its type "CPU" or "GPU"."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device by the name that `device` takes; one for each visible `PhysicalDevice`."""

    name: str
    device_type: str


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the devices of this machine, of one type or all.

    CuPy is imported to find the GPUs; without it there are none.

    Args: ``device_type``: "CPU", "GPU" or None; another type has no devices.

    Raises: ``TypeError`` if ``device_type`` is no string.

    Example:
        >>> tw.config.list_physical_devices("CPU")
        [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    return _physical(device_type, lambda: range(devices.physical_gpus()[0]))


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the devices that are used, see `set_visible_devices`: by default all.

    Arguments and errors are those of `list_physical_devices`.
    """
    visible = devices.placement.visible
    return _physical(
        device_type,
        lambda: range(devices.gpu_count()[0]) if visible is None else visible,
    )


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Return the visible devices of one type or all, by the names that `device` takes.

    Arguments and errors are those of `list_physical_devices`.

    Example:
        >>> tw.config.list_logical_devices("CPU")
        [LogicalDevice(name='/device:CPU:0', device_type='CPU')]
    """
    found = _physical(device_type, lambda: range(devices.gpu_count()[0]))
    return [
        LogicalDevice(name.replace("physical_device", "device"), kind)
        for name, kind in found
    ]


def _physical(device_type, gpu_numbers):
    if not isinstance(device_type, (str, type(None))):
        raise TypeError(
            f"device_type must be 'CPU', 'GPU' or None, got {device_type!r}"
        )
    wanted = None if device_type is None else device_type.upper()
    found = [("CPU", 0)] if wanted in (None, "CPU") else []
    found += [("GPU", i) for i in gpu_numbers()] if wanted in (None, "GPU") else []
    return [PhysicalDevice(f"/physical_device:{kind}:{i}", kind) for kind, i in found]


def gpu_device_name() -> str:
    """Return ``"/device:GPU:0"``, the name of the first visible GPU, or "" without one."""
    return next((name for name, _ in list_logical_devices("GPU")), "")


def is_gpu_available(
    cuda_only: bool = False,
    min_cuda_compute_capability: tuple[int, int] | None = None,
) -> bool:
    """Return whether there is a visible GPU, of some compute capability at least.

    Args: ``cuda_only``: no difference, as GPUs are NVIDIA's;
    ``min_cuda_compute_capability``: such as ``(7, 5)``, None for any.
    """
    least = min_cuda_compute_capability or (0, 0)
    numbers = map(devices.cuda_number, range(devices.gpu_count()[0]))
    return any(_compute_capability(number) >= least for number in numbers)


def is_built_with_cuda() -> bool:
    """Return whether arrays can be on GPUs: whether CuPy is installed.

    `is_gpu_available` says whether there is a GPU.
    """
    try:
        devices.cupy_module()
    except RuntimeError:
        return False
    return True


is_built_with_gpu_support = is_built_with_cuda


def _compute_capability(number):
    facts = devices.cupy_module().cuda.runtime.getDeviceProperties(number)
    return facts["major"], facts["minor"]


def set_visible_devices(
    devices: PhysicalDevice | Sequence[PhysicalDevice], device_type: str | None = None
) -> None:
    """Use only these GPUs: the first of them becomes ``"GPU:0"``, and so on.

    Other processes, and CuPy itself, are not affected; ``CUDA_VISIBLE_DEVICES`` in the
    environment hides GPUs from both. The CPU is always used.

    Args: ``devices``: a device of `list_physical_devices`, or a list of them, which may
    be empty; ``device_type``: "GPU" or "CPU" if all have this type, None for a list of
    all devices.

    Raises: ``ValueError`` for a device that there is not, or of another type, or
    without the CPU; ``RuntimeError`` once a GPU was used, whose name would change.

    Example:
        >>> tw.config.set_visible_devices([], "GPU")
        >>> tw.config.list_logical_devices("GPU")
        []
        >>> tw.config.set_visible_devices(tw.config.list_physical_devices())
    """
    given = [devices] if isinstance(devices, PhysicalDevice) else list(devices)
    _set_visible(given, device_type)


def _set_visible(given, device_type):
    present = list_physical_devices(device_type)
    for device in given:
        if device not in present:
            raise ValueError(
                f"set_visible_devices: devices must be of "
                f"list_physical_devices({device_type or ''!r}), {present}, got {device!r}"
            )
    kinds = {device.device_type for device in given}
    if device_type in (None, "CPU") and "CPU" not in kinds:
        raise ValueError(
            f"set_visible_devices: devices: the CPU is always used, got {given}"
        )
    if device_type == "CPU":
        return
    numbers = [_number(device) for device in given if device.device_type == "GPU"]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"set_visible_devices: devices must differ, got {given}")
    if numbers == [_number(device) for device in get_visible_devices("GPU")]:
        return
    if devices.placement.used:
        raise RuntimeError(
            "set_visible_devices: call it before the first use of a GPU, whose name "
            "would change"
        )
    devices.placement.visible = numbers


def _number(device):
    return int(device.name.rpartition(":")[2])


def set_soft_device_placement(enabled: bool) -> None:
    """Let the CPU stand in for a GPU in `device` where there is none, or raise an error.

    It is on by default, as in TensorFlow.

    Example:
        >>> tw.config.set_soft_device_placement(False)
        >>> tw.config.get_soft_device_placement()
        False
        >>> tw.config.set_soft_device_placement(True)
    """
    devices.placement.soft = bool(enabled)


def get_soft_device_placement() -> bool:
    """Return whether the CPU stands in for a GPU, see `set_soft_device_placement`."""
    return devices.placement.soft


class LogicalDeviceConfiguration(NamedTuple):
    """The limit of the memory of a GPU, in MiB; None for all of it."""

    memory_limit: int | None = None


_configurations: dict[str, list[LogicalDeviceConfiguration]] = {}


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration]
) -> None:
    """Limit the memory of a GPU that arrays may use.

    The limit is that of CuPy's memory pool, without the memory of CUDA itself.

    Args: ``device``: of `list_physical_devices`; ``logical_devices``: a list of one
    configuration, since a device is not divided.

    Raises: ``ValueError`` for several configurations, a limit that is not positive, or
    a limit for the CPU; ``RuntimeError`` if there is no such device.
    """
    who = "set_logical_device_configuration"
    number = find_gpu(who, device, or_cpu=True)
    wanted = list(logical_devices)
    if len(wanted) != 1:
        raise ValueError(
            f"{who}: logical_devices must be one configuration, as a device is not "
            f"divided, got {wanted}"
        )
    (limit,) = wanted[0]
    if limit is not None and (number is None or limit <= 0):
        raise ValueError(
            f"{who}: memory_limit must be positive, and None for the CPU, got {limit!r} "
            f"for {device!r}"
        )
    if number is not None:
        cupy = devices.cupy_module()
        with cupy.cuda.Device(number):
            cupy.get_default_memory_pool().set_limit(size=int((limit or 0) * 2**20))
    _configurations[device.name] = wanted


def get_logical_device_configuration(
    device: PhysicalDevice,
) -> list[LogicalDeviceConfiguration] | None:
    """Return the configuration that was set for a device, or None.

    Raises: ``RuntimeError`` if there is no such device, ``ValueError`` for other names.
    """
    find_gpu("get_logical_device_configuration", device, or_cpu=True)
    return _configurations.get(device.name)


def find_gpu(who: str, device: Any, or_cpu: bool = False) -> int | None:
    """CUDA's number of a GPU, by a physical device or by the name that `device` takes.

    Args: ``or_cpu``: return None for the CPU.

    Raises: ``ValueError`` for the CPU, ``RuntimeError`` if there is no such device.
    """
    name = getattr(device, "name", device)
    is_physical = isinstance(name, str) and "physical_device:" in name
    name = name.replace("physical_device:", "") if is_physical else name
    kind, number = devices.find_device(name, who, is_physical)
    if kind == "CPU" and not or_cpu:
        raise ValueError(f"{who}: device must be a GPU, got {device!r}")
    if kind == "CPU":
        return None
    return (number or 0) if is_physical else devices.cuda_number(number or 0)
