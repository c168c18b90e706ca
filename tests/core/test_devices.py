"""The array module: decided by the array at hand, or by the device named."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core import devices


def test_arrays_and_numpy_scalars_belong_to_numpy():
    for value in (np.ones(2), np.float32(1.0), 1.0, 2):
        assert devices.array_module(type(value)) is np


def test_what_is_no_array_has_no_module():
    for thing in ("text", None, [1], tw.ones([1])):
        with pytest.raises(TypeError, match="no array of a known module"):
            devices.array_module(type(thing))
    assert not devices.is_array([1.0]) and not devices.is_array(1.0)
    assert devices.is_array(np.ones(1)) and devices.is_array(np.float32(1.0))


@pytest.mark.parametrize("name", ["CPU", "cpu", "/CPU:0", "/device:CPU:0", "CPU:0"])
def test_the_cpu_has_many_names(name):
    with devices.device(name):
        assert devices.current_module() is np
        assert tw.zeros([1]).device == "/CPU:0"


@pytest.mark.parametrize("name", ["TPU", "", "GPU:x", None, 0, "CPUs"])
def test_an_unknown_device_is_a_value_error(name):
    with (
        pytest.raises(ValueError, match="device: name must be like"),
        devices.device(name),
    ):
        pass


def test_the_device_of_before_comes_back_even_after_an_error(strict):
    before = devices.current_module()
    with pytest.raises(KeyError), devices.use_module(strict):
        assert devices.current_module() is strict
        raise KeyError
    assert devices.current_module() is before


def test_the_cpu_is_always_there():
    assert "/CPU:0" in devices.list_physical_devices()
    assert devices.list_physical_devices("cpu") == ["/CPU:0"]
    assert devices.list_physical_devices("TPU") == []


def test_without_cupy_the_gpu_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with (
        pytest.raises(RuntimeError, match=r"tapewright\[cuda12\]"),
        devices.device("GPU"),
    ):
        pass


def test_new_arrays_are_made_by_the_current_module(strict):
    with devices.use_module(strict):
        made = [
            tw.constant([1.0]),
            tw.zeros([1]),
            tw.Variable(1.0).read(),
            tw.ones([1]),
        ]
    for tensor in made:
        assert devices.array_module(type(tensor.array)) is strict
    assert isinstance(made[0].numpy(), np.ndarray)


def test_results_stay_with_the_arrays_they_come_from(strict):
    with devices.use_module(strict):
        x = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as tape:  # outside: the array decides
        y = tw.reduce_sum(tw.exp(x * 2.0) + [1.0, 1.0])
    gradient = tape.gradient(y, x)
    assert devices.array_module(type(y.array)) is strict
    assert devices.array_module(type(gradient.array)) is strict
    np.testing.assert_allclose(gradient.numpy(), 2 * np.exp([2.0, 4.0]), rtol=1e-6)


def test_arrays_never_move_by_themselves(strict):
    with devices.use_module(strict):
        there = tw.constant([1.0, 2.0])
    here = tw.constant(np.array([1.0, 2.0], np.float32))
    if devices.array_module(type(here.array)) is np:
        with pytest.raises(Exception):  # noqa: B017  (CuPy's own, whatever it is)
            tw.add(there, here)


def test_to_numpy_and_copy_to_copy_across(strict):
    there = devices.copy_to(strict, np.array([1.0, 2.0]))
    assert devices.array_module(type(there)) is strict
    np.testing.assert_array_equal(devices.to_numpy(there), [1.0, 2.0])
    here = np.ones(2)
    assert devices.to_numpy(here) is here
    twin = devices.copy_to(np, here)
    assert twin is not here and not np.shares_memory(twin, here)
