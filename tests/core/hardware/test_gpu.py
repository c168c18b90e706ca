"""GPUs by TensorFlow's names, on a stand-in for CUDA that says what they are."""

import subprocess
import sys
import types
import warnings

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices, gpu

from ...stand_in.gpu import MIB, install

experimental = tw.config.experimental


@pytest.fixture
def cuda(monkeypatch, strict):
    return install(monkeypatch, strict, count=2)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(devices, "gpu_count", lambda: (0, "no driver"))


def test_details_are_name_and_compute_capability(cuda):
    _, second = tw.config.list_physical_devices("GPU")
    details = experimental.get_device_details(second)
    assert details == {"device_name": "Card 1", "compute_capability": (9, 0)}
    (cpu,) = tw.config.list_physical_devices("CPU")
    assert experimental.get_device_details(cpu) == {}


def test_memory_is_that_of_the_pool_and_its_peak_can_be_reset(cuda):
    info = experimental.get_memory_info("GPU:0")
    assert info == {"current": 3 * MIB, "peak": 8 * MIB}
    experimental.reset_memory_stats("/device:GPU:0")
    assert experimental.get_memory_info("GPU:0")["peak"] == 3 * MIB


FUNCTIONS = {
    "get_device_details": experimental.get_device_details,
    "get_memory_growth": experimental.get_memory_growth,
    "get_memory_info": experimental.get_memory_info,
    "reset_memory_stats": experimental.reset_memory_stats,
    "set_memory_growth": lambda device: experimental.set_memory_growth(device, True),
}


@pytest.mark.parametrize("name", ["CPU:0", "/device:CPU:0"])
@pytest.mark.parametrize("function", sorted(FUNCTIONS.keys() - {"get_device_details"}))
def test_the_cpu_has_no_pool_of_memory(name, function):
    with pytest.raises(ValueError, match=f"{function}: device must be a GPU"):
        FUNCTIONS[function](name)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_gpu_that_is_not_there_is_an_error_of_the_function(function, cuda):
    with pytest.raises(RuntimeError, match=f"^{function}: .*'GPU:5'.*/GPU:0, /GPU:1"):
        FUNCTIONS[function]("GPU:5")


def test_memory_grows_whatever_is_set(cuda):
    for device in tw.config.list_physical_devices("GPU"):
        experimental.set_memory_growth(device, True)
        assert experimental.get_memory_growth(device)
        with pytest.warns(UserWarning, match="always grows"):
            experimental.set_memory_growth(device, False)


def test_free_memory_is_within_the_limit_of_the_pool(cuda, strict):
    assert devices.free_memory(strict) == 85 * MIB
    cuda.pool.limit = 10 * MIB
    assert devices.free_memory(strict) == 7 * MIB
    cuda.pool.limit = 2 * MIB
    assert devices.free_memory(strict) == 0


def test_an_unknown_name_is_a_value_error():
    with pytest.raises(ValueError, match="set_memory_growth: name must be like"):
        experimental.set_memory_growth("TPU:0", True)


# ------------------------------------------------------------------------- precision


@pytest.fixture
def products(monkeypatch, cuda):
    """The module of CuPy that has the switch; ``set`` is what it was set to."""
    module = types.ModuleType("cupy._core._routines_linalg")
    module.COMPUTE_TYPE_DEFAULT, module.COMPUTE_TYPE_TF32, module.set = 1, 7, []
    module.set_compute_type = lambda dtype, kind: module.set.append((dtype, kind))
    core = types.ModuleType("cupy._core")
    core._routines_linalg = module
    monkeypatch.setitem(sys.modules, "cupy", types.ModuleType("cupy"))
    monkeypatch.setitem(sys.modules, "cupy._core", core)
    monkeypatch.setitem(sys.modules, "cupy._core._routines_linalg", module)
    monkeypatch.setattr(gpu, "_tf32", {"on": None})
    return module


def test_tensor_float_32_is_off_unless_asked_for(monkeypatch):
    monkeypatch.setattr(gpu, "_tf32", {"on": None})
    monkeypatch.delenv("CUPY_TF32", raising=False)
    assert not experimental.tensor_float_32_execution_enabled()
    for value, on in (("1", True), ("0", False), ("", False), ("-1", False)):
        monkeypatch.setenv("CUPY_TF32", value)
        assert experimental.tensor_float_32_execution_enabled() == on
    monkeypatch.setenv("CUPY_TF32", "true")
    with pytest.raises(ValueError, match="CUPY_TF32 must be 0 or 1, got 'true'"):
        experimental.tensor_float_32_execution_enabled()
    assert gpu.report()["tf32"] is None


def test_the_override_of_nvidia_keeps_tensor_float_32_off(monkeypatch):
    monkeypatch.setattr(gpu, "_tf32", {"on": True})
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    assert not experimental.tensor_float_32_execution_enabled()


def test_the_switch_is_also_that_of_cupys_products(products):
    for on, kind in ((True, 7), (False, 1)):
        experimental.enable_tensor_float_32_execution(on)
        assert experimental.tensor_float_32_execution_enabled() == on
        assert products.set[-1] == (np.float32, kind)


def test_a_cupy_without_the_switch_is_a_warning(products, strict, monkeypatch):
    monkeypatch.setattr(strict, "__version__", "99", raising=False)
    del products.set_compute_type
    with pytest.warns(UserWarning, match="CuPy 99 has no switch"):
        experimental.enable_tensor_float_32_execution(True)
    assert experimental.tensor_float_32_execution_enabled()


def test_without_a_gpu_the_switch_is_kept_for_one(no_gpu, monkeypatch):
    monkeypatch.setattr(gpu, "_tf32", {"on": None})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        experimental.enable_tensor_float_32_execution(True)
    assert experimental.tensor_float_32_execution_enabled()


def test_the_installed_cupy_has_the_switch():
    pytest.importorskip("cupy")
    from cupy._core import _routines_linalg as products

    assert products.COMPUTE_TYPE_TF32 != products.COMPUTE_TYPE_DEFAULT
    assert callable(products.set_compute_type)


# ---------------------------------------------------------------------------- report


def test_the_report_tells_of_the_current_gpu(cuda, strict, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", strict)
    cuda.current = [1]
    facts = gpu.report()
    assert facts["name"] == "Card 1 (GPU:1)" and facts["compute_capability"] == "9.0"
    assert facts["cuda"] == {"runtime": "12.9", "driver": "13.0"}
    assert facts["memory"] == {
        "used": 3 * MIB,
        "held": 8 * MIB,
        "free": 80 * MIB,
        "total": 100 * MIB,
    }
    assert facts["note"] is None


def test_the_report_says_why_there_is_no_gpu(no_gpu, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=None))
    facts = gpu.report()
    assert facts["note"] == "no driver" and facts["name"] is None


def test_importing_and_showing_leave_cupy_alone():
    code = (
        "import sys, tapewright as tw; tw.config.show(); "
        "tw.config.list_physical_devices('CPU'); assert 'cupy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
