"""The devices of this machine under TensorFlow's names, and which are visible.

CuPy is imported only to answer a question about GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from . import devices


class PhysicalDevice(NamedTuple):
    """Device of this machine.

    Args:
        name: Name such as "/physical_device:GPU:0".
        device_type: "CPU" or "GPU".
    """

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """Visible device, with a name that `device` accepts.

    Args:
        name: Name such as "/device:GPU:0".
        device_type: "CPU" or "GPU".
    """

    name: str
    device_type: str


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the devices of this machine, of one type or all.

    CuPy is imported to find the GPUs; without it the list has no GPUs.

    Args:
        device_type: "CPU", "GPU", or None for all; other types have no devices.

    Raises:
        TypeError: If ``device_type`` is not a string.

    Example:
        >>> tw.config.list_physical_devices("CPU")
        [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    return _physical(device_type, lambda: range(devices.physical_gpus()[0]))


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the visible devices, by default all; see `set_visible_devices`.

    Args:
        device_type: "CPU", "GPU", or None for all; other types have no devices.

    Raises:
        TypeError: If ``device_type`` is not a string.

    Example:
        >>> tw.config.get_visible_devices("CPU")
        [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    visible = devices.placement.visible
    return _physical(
        device_type,
        lambda: range(devices.gpu_count()[0]) if visible is None else visible,
    )


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Return the visible devices, of one type or all, by their names in `device`.

    Args:
        device_type: "CPU", "GPU", or None for all; other types have no devices.

    Raises:
        TypeError: If ``device_type`` is not a string.

    Example:
        >>> tw.config.list_logical_devices("CPU")
        [LogicalDevice(name='/device:CPU:0', device_type='CPU')]
    """
    physical = _physical(device_type, lambda: range(devices.gpu_count()[0]))
    return [
        LogicalDevice(name.replace("physical_device", "device"), kind)
        for name, kind in physical
    ]


def _physical(device_type, gpu_numbers):
    if not isinstance(device_type, (str, type(None))):
        raise TypeError(
            f"device_type must be 'CPU', 'GPU' or None, got {device_type!r}"
        )
    wanted = None if device_type is None else device_type.upper()
    pairs = [("CPU", 0)] if wanted in (None, "CPU") else []
    pairs += [("GPU", i) for i in gpu_numbers()] if wanted in (None, "GPU") else []
    return [PhysicalDevice(f"/physical_device:{kind}:{i}", kind) for kind, i in pairs]


def gpu_device_name() -> str:
    """Return the name of the first visible GPU, ``"/device:GPU:0"``, or ""."""
    return next((name for name, _ in list_logical_devices("GPU")), "")


def is_gpu_available(
    cuda_only: bool = False,
    min_cuda_compute_capability: tuple[int, int] | None = None,
) -> bool:
    """Return whether a GPU is visible, optionally with a minimum compute capability.

    Args:
        cuda_only: Ignored, since all GPUs are NVIDIA's.
        min_cuda_compute_capability: A pair such as ``(7, 5)``, or None for any.
    """
    least = min_cuda_compute_capability or (0, 0)
    numbers = map(devices.cuda_number, range(devices.gpu_count()[0]))
    return any(_compute_capability(number) >= least for number in numbers)


def is_built_with_cuda() -> bool:
    """Return whether CuPy is installed, so that arrays can be on GPUs.

    `is_gpu_available` returns whether there is a GPU.
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
    """Restrict tapewright to some GPUs: the first of them becomes ``"GPU:0"``.

    Other processes and CuPy itself are not affected; ``CUDA_VISIBLE_DEVICES`` in the
    environment hides GPUs from them. The CPU is always visible.

    Args:
        devices: A device of `list_physical_devices`, or a list of devices, possibly
            empty.
        device_type: "GPU" or "CPU" if all devices have this type, or None for a list of
            all visible devices.

    Raises:
        ValueError: If a device does not exist or has another type, or the CPU is
            missing.
        RuntimeError: If a GPU was already used, since its name would change.

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
                "set_visible_devices: devices must be among "
                f"list_physical_devices({device_type or ''!r}), {present}, got {device!r}"
            )
    kinds = {device.device_type for device in given}
    if device_type in (None, "CPU") and "CPU" not in kinds:
        raise ValueError(
            "set_visible_devices: devices must include the CPU, which is always "
            f"visible, got {given}"
        )
    if device_type == "CPU":
        return
    numbers = [_number(device) for device in given if device.device_type == "GPU"]
    if len(set(numbers)) < len(numbers):
        raise ValueError(
            f"set_visible_devices: devices must not contain duplicates, got {given}"
        )
    if numbers == [_number(device) for device in get_visible_devices("GPU")]:
        return
    if devices.placement.used:
        raise RuntimeError(
            "set_visible_devices: must be called before the first use of a GPU, whose "
            "name would change"
        )
    devices.placement.visible = numbers


def _number(device):
    return int(device.name.rpartition(":")[2])


def set_soft_device_placement(enabled: bool) -> None:
    """Turn the fallback to the CPU on or off for a `device` that does not exist.

    It is on by default, as in TensorFlow. If it is off, the context raises an error.

    Args:
        enabled: True to fall back to the CPU, False to raise an error.

    Example:
        >>> tw.config.set_soft_device_placement(False)
        >>> tw.config.get_soft_device_placement()
        False
        >>> tw.config.set_soft_device_placement(True)
    """
    devices.placement.soft = bool(enabled)


def get_soft_device_placement() -> bool:
    """Return whether the CPU replaces a missing GPU, see `set_soft_device_placement`.

    Example:
        >>> tw.config.get_soft_device_placement()
        True
    """
    return devices.placement.soft


class LogicalDeviceConfiguration(NamedTuple):
    """Memory limit of a GPU.

    Args:
        memory_limit: Limit in MiB, or None for no limit.
    """

    memory_limit: int | None = None


_configurations: dict[str, list[LogicalDeviceConfiguration]] = {}


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration]
) -> None:
    """Limit the memory of a GPU that arrays may use.

    The limit applies to CuPy's memory pool, without the memory of CUDA itself.

    Args:
        device: Device of `list_physical_devices`.
        logical_devices: List of one configuration, since devices cannot be divided.

    Raises:
        ValueError: If there are several configurations, the limit is not positive, or
            the device is the CPU and has a limit.
        RuntimeError: If the device does not exist.

    Example:
        >>> limit = tw.config.LogicalDeviceConfiguration(memory_limit=4096)
        >>> for gpu in tw.config.list_physical_devices("GPU"):
        ...     tw.config.set_logical_device_configuration(gpu, [limit])  # doctest: +SKIP
    """
    who = "set_logical_device_configuration"
    number = find_gpu(who, device, or_cpu=True)
    wanted = list(logical_devices)
    if len(wanted) != 1:
        raise ValueError(
            f"{who}: logical_devices must be a list of one configuration, since devices "
            f"cannot be divided, got {wanted}"
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

    Args:
        device: Device of `list_physical_devices`.

    Raises:
        RuntimeError: If the device does not exist.
        ValueError: If it is not a device.
    """
    find_gpu("get_logical_device_configuration", device, or_cpu=True)
    return _configurations.get(device.name)


def find_gpu(who: str, device: Any, or_cpu: bool = False) -> int | None:
    """Return CUDA's number of a GPU, from a physical device or a name for `device`.

    Args:
        who: Name of the caller, for error messages.
        device: Physical device, or its name.
        or_cpu: If True, return None for the CPU.

    Raises:
        ValueError: If the device is the CPU.
        RuntimeError: If the device does not exist.
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
