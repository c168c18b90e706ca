"""The devices by TensorFlow's names, and which are used, on a stand-in for CUDA."""

import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import device_lists, devices

from ...stand_in.gpu import MIB, install

config = tw.config


@pytest.fixture
def cuda(monkeypatch, strict):
    """Three GPUs that nobody has used."""
    for name, value in (("visible", None), ("used", False), ("soft", True)):
        monkeypatch.setattr(devices.placement, name, value)
    monkeypatch.setattr(device_lists, "_configurations", {})
    return install(monkeypatch, strict, count=3)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(devices, "physical_gpus", lambda: (0, "no driver"))


def test_the_cpu_is_always_there(no_gpu):
    (cpu,) = config.list_physical_devices()
    assert cpu.name == "/physical_device:CPU:0" and cpu.device_type == "CPU"
    assert config.list_physical_devices("GPU") == []
    assert config.list_physical_devices("TPU") == []


def test_gpus_are_listed_by_their_numbers(cuda):
    physical = config.list_physical_devices("GPU")
    assert [d.name for d in physical] == [
        "/physical_device:GPU:0",
        "/physical_device:GPU:1",
        "/physical_device:GPU:2",
    ]
    assert len(config.list_physical_devices()) == 4


def test_names_of_logical_devices_are_for_device(cuda, strict):
    for i, each in enumerate(config.list_logical_devices("GPU")):
        for name in (each, each.name):
            with tw.device(name):
                assert devices.current_module() is strict and cuda.current[-1] == i


@pytest.mark.parametrize("device_type", [3, ["GPU"]])
def test_a_type_of_devices_is_a_string(device_type):
    with pytest.raises(TypeError, match="device_type must be 'CPU', 'GPU' or None"):
        config.list_physical_devices(device_type)


# Visible devices


def test_visible_gpus_are_numbered_anew(cuda, strict):
    first, second, third = config.list_physical_devices("GPU")
    assert config.get_visible_devices("GPU") == [first, second, third]
    config.set_visible_devices([third, second], "GPU")
    assert config.get_visible_devices("GPU") == [third, second]
    assert config.list_physical_devices("GPU") == [first, second, third]
    names = [each.name for each in config.list_logical_devices("GPU")]
    assert names == ["/device:GPU:0", "/device:GPU:1"]
    for name, number in (("GPU", 2), ("GPU:0", 2), ("GPU:1", 1)):
        with tw.device(name):
            assert cuda.current[-1] == number
    with pytest.raises(
        RuntimeError, match="'GPU:2'.*the devices are /CPU:0, /GPU:0, /GPU:1$"
    ):
        tw.device("GPU:2").__enter__()
    experimental = config.experimental
    details = experimental.get_device_details(first)
    assert details["device_name"] == "Card 0"
    assert experimental.get_device_details("GPU:0")["device_name"] == "Card 2"
    assert experimental.get_memory_info("GPU:1")["current"] == 3 * MIB


def test_the_device_of_an_array_has_its_visible_number(cuda, strict):
    class Array(strict.ones(1).__class__):
        device = cuda.Device(2)

    array = Array.__new__(Array)
    devices.register_array_module(Array, strict, None)
    assert devices.device_of(array) == "/GPU:2"
    for visible, name in (([2, 0], "/GPU:0"), ([0, 2], "/GPU:1")):
        devices.placement.visible = visible
        assert devices.device_of(array) == name
    devices.placement.visible = [0]
    assert devices.device_of(array) == "/physical_device:GPU:2"


def test_gpus_can_be_hidden(cuda, monkeypatch):
    config.set_visible_devices([], "GPU")
    assert config.list_logical_devices() == [("/device:CPU:0", "CPU")]
    monkeypatch.setattr(devices.placement, "told", False)
    with pytest.warns(UserWarning, match="set_visible_devices hides"), tw.device("GPU"):
        assert devices.current_module() is np
    config.set_soft_device_placement(False)
    assert not config.get_soft_device_placement()
    with pytest.raises(RuntimeError, match="set_visible_devices hides"):
        tw.device("GPU").__enter__()
    config.experimental.set_visible_devices(config.list_physical_devices())
    assert len(config.experimental.get_visible_devices()) == 4


def test_one_device_needs_no_list(cuda):
    _, second, _ = config.list_physical_devices("GPU")
    config.set_visible_devices(second, "GPU")
    assert config.get_visible_devices() == [("/physical_device:CPU:0", "CPU"), second]
    config.set_visible_devices(config.list_physical_devices("CPU"), "CPU")
    assert config.get_visible_devices("GPU") == [second]


def test_a_gpu_that_was_used_keeps_its_name(cuda):
    gpus = config.list_physical_devices("GPU")
    with tw.device("GPU:1"):
        pass
    config.set_visible_devices(gpus, "GPU")  # changes nothing
    with pytest.raises(RuntimeError, match="before the first use of a GPU"):
        config.set_visible_devices(gpus[1:], "GPU")
    assert config.get_visible_devices("GPU") == gpus


def test_other_lists_of_devices_are_refused(cuda):
    first, second, _ = config.list_physical_devices("GPU")
    for given, kind, message in (
        (["GPU:0"], "GPU", "got 'GPU:0'"),
        ([("/physical_device:GPU:7", "GPU")], "GPU", "GPU:7"),
        ([first], "CPU", "got PhysicalDevice.*GPU:0"),
        ([], "CPU", "must include the CPU"),
        ([first, second], None, "must include the CPU"),
        ([first, first], "GPU", "must not contain duplicates"),
    ):
        with pytest.raises(
            ValueError, match=f"set_visible_devices: devices.*{message}"
        ):
            config.set_visible_devices(given, kind)
    assert len(config.get_visible_devices("GPU")) == 3


def test_the_first_visible_gpu_has_a_name(cuda, monkeypatch):
    assert tw.test.gpu_device_name() == "/device:GPU:0"
    assert tw.test.is_gpu_available()
    assert tw.test.is_gpu_available(True, min_cuda_compute_capability=(9, 0))
    assert not tw.test.is_gpu_available(min_cuda_compute_capability=(9, 1))
    config.set_visible_devices([], "GPU")
    assert tw.test.gpu_device_name() == "" and not tw.test.is_gpu_available()


def test_gpus_are_supported_where_cupy_is(monkeypatch, strict):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert not tw.test.is_built_with_cuda()
    install(monkeypatch, strict, count=0)
    assert tw.test.is_built_with_cuda() and tw.test.is_built_with_gpu_support()


# Memory


def test_the_memory_of_a_gpu_can_be_limited(cuda):
    first, second, _ = config.list_physical_devices("GPU")
    assert config.get_logical_device_configuration(first) is None
    limit = [config.LogicalDeviceConfiguration(memory_limit=64)]
    config.set_logical_device_configuration(first, limit)
    assert cuda.pool.limit == 64 * MIB
    assert config.get_logical_device_configuration(first) == limit
    assert config.experimental.get_virtual_device_configuration(second) is None
    unlimited = [config.experimental.VirtualDeviceConfiguration()]
    config.experimental.set_virtual_device_configuration(first, unlimited)
    assert cuda.pool.limit == 0


def test_other_configurations_are_refused(cuda):
    (cpu,) = config.list_physical_devices("CPU")
    gpu = config.list_physical_devices("GPU")[0]
    one = config.LogicalDeviceConfiguration
    config.set_logical_device_configuration(cpu, [one()])
    for device, wanted, message in (
        (gpu, [one(1), one(1)], "one configuration"),
        (gpu, [one(0)], "memory_limit must be positive"),
        (cpu, [one(5)], "None for the CPU"),
    ):
        with pytest.raises(ValueError, match=message):
            config.set_logical_device_configuration(device, wanted)
    assert cuda.pool.limit == 0
