"""The array module: decided by the array at hand, or by the device named."""

import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.core.primitive import get_primitive
from tapewright.errors import ResourceExhaustedError

from ...stand_in.gpu import MIB, OutOfMemoryError, install

pytestmark = pytest.mark.gpu_first


def test_arrays_and_numpy_scalars_belong_to_numpy():
    for value in (np.ones(2), np.float32(1.0), 1.0, 2):
        assert devices.array_module(type(value)) is np


def test_what_is_no_array_has_no_module():
    for thing in ("text", None, [1], tw.ones([1])):
        with pytest.raises(TypeError, match="not an array type of a known module"):
            devices.array_module(type(thing))
    assert not devices.is_array([1.0]) and not devices.is_array(1.0)
    assert devices.is_array(np.ones(1)) and devices.is_array(np.float32(1.0))


LONG = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.mark.parametrize(
    "name", ["CPU", "cpu", "/CPU:0", "/device:CPU:0", "CPU:0", LONG]
)
def test_the_cpu_has_many_names(name):
    with devices.device(name):
        assert devices.current_module() is np
        assert tw.zeros([1]).device == "/CPU:0"


@pytest.mark.parametrize(
    "name", ["TPU", "", "GPU:x", "GPU:", "G/PU", "GPU:\u00b2", "GPU:-1", 0, "CPUs"]
)
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


def test_none_stays_on_the_current_device(strict):
    with devices.use_module(strict), devices.device(None):
        assert devices.current_module() is strict


def test_there_is_one_cpu():
    with pytest.raises(RuntimeError, match="no CPU with the name 'CPU:1'"):
        devices.device("CPU:1").__enter__()


@pytest.fixture
def hard(monkeypatch):
    """No CPU in the place of a GPU."""
    monkeypatch.setattr(devices.placement, "soft", False)


@pytest.mark.parametrize("name", ["GPU", "/GPU:0", "gpu:5"])
def test_without_a_gpu_the_cpu_takes_its_place_with_one_warning(
    monkeypatch, strict, name
):
    monkeypatch.setattr(devices.placement, "told", False)
    monkeypatch.setattr(devices, "physical_gpus", lambda: (0, "no driver"))
    with (
        devices.use_module(strict),
        pytest.warns(
            UserWarning, match=f"so '{name}' uses the CPU: no driver.*soft_dev"
        ) as caught,
        devices.device(name),
    ):
        assert devices.current_module() is np
    assert len(caught) == 1 and caught[0].filename == __file__
    with devices.device(name):  # a second warning would be an error
        assert tw.zeros([1]).device == "/CPU:0"


def test_without_cupy_the_gpu_says_what_to_install(monkeypatch, hard):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with (
        pytest.raises(
            RuntimeError, match=r"device: .*'GPU:1'.*tapewright\[cuda12\].*CPU"
        ),
        devices.device("GPU:1"),
    ):
        pass


@pytest.mark.parametrize("kind", [ImportError, OSError])
def test_a_cupy_that_cannot_be_imported_says_why(monkeypatch, tmp_path, kind, hard):
    text = f"raise {kind.__name__}('libcublas.so.12: cannot open shared object file')"
    (tmp_path / "cupy.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    assert tw.config.list_physical_devices("GPU") == []
    with pytest.raises(RuntimeError, match=r"cannot be imported: libcublas\.so\.12"):
        devices.device("GPU").__enter__()


@pytest.mark.parametrize("name", ["GPU:2", "/GPU:2", "/device:GPU:2", "gpu:17"])
def test_a_gpu_that_is_not_there_is_an_error_that_names_those_that_are(
    monkeypatch, strict, name
):
    install(monkeypatch, strict, count=2)
    with pytest.raises(RuntimeError) as caught, devices.device(name):
        pass
    text = str(caught.value)
    assert repr(name) in text and "the devices are /CPU:0, /GPU:0, /GPU:1" in text


def test_without_a_gpu_the_error_says_why_and_what_cuda_needs(
    monkeypatch, strict, hard
):
    cuda = install(monkeypatch, strict)

    def no_driver():
        raise RuntimeError("cudaErrorInsufficientDriver: too old")

    cuda.runtime.getDeviceCount = no_driver
    before = devices.current_module()
    with pytest.raises(RuntimeError, match=r"'GPU'.*too old.*driver.*/CPU:0"):
        devices.device("GPU").__enter__()
    assert devices.current_module() is before


def test_the_second_gpu_is_current_inside_of_its_block(monkeypatch, strict):
    cuda = install(monkeypatch, strict, count=2)
    with devices.device("/device:GPU:1"):
        assert devices.current_module() is strict and cuda.current == [0, 1]
    assert cuda.current == [0]


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


def test_tensors_never_move_by_themselves(strict):
    with devices.use_module(strict):
        there = tw.constant([1.0, 2.0])
    with devices.use_module(np):
        here = tw.constant([1.0, 2.0])
    for a, b in ((here, there), (there, here)):
        places = f"add: the inputs must be on one device, got {a.device}, {b.device}"
        with pytest.raises(tw.errors.InvalidArgumentError, match=places):
            tw.add(a, b)


def test_a_model_that_is_called_elsewhere_says_where_its_weights_are(strict):
    with devices.use_module(strict):
        model = tw.Sequential([tw.Input((2,)), tw.layers.Dense(3)])
        model.compile("sgd", "mse")
    x, y = np.ones((4, 2), np.float32), np.ones((4, 3), np.float32)
    for call in (model, model.predict, lambda x: model.fit(x, y, verbose=0)):
        wrong = pytest.raises(tw.errors.InvalidArgumentError, match="/CPU:0, /GPU:0")
        with wrong, devices.use_module(np):
            call(x)


@pytest.mark.parametrize("traced", [False, True])
def test_a_variable_stays_on_its_device(strict, traced):
    value = np.array([3.0, 4.0], np.float32)
    for own, other in ((strict, np), (np, strict)):
        with devices.use_module(own):
            variable = tw.Variable([1.0, 1.0])
            place = variable.device
        with devices.use_module(other):
            tensor = tw.constant(value)
        assert tensor.device != place
        for method in ("assign_add", "assign_sub", "assign"):

            def change(tensor, variable=variable, method=method):
                getattr(variable, method)(tensor)

            call = tw.function(change) if traced else change
            if method == "assign":
                call(tensor)
            else:
                with pytest.raises(tw.errors.InvalidArgumentError, match=place):
                    call(tensor)
        assert variable.device == variable.read_value().device == place
        np.testing.assert_array_equal(variable.numpy(), value)


def test_to_numpy_and_copy_to_copy_across(strict):
    there = devices.copy_to(strict, np.array([1.0, 2.0]))
    assert devices.array_module(type(there)) is strict
    np.testing.assert_array_equal(devices.to_numpy(there), [1.0, 2.0])
    here = np.ones(2)
    assert devices.to_numpy(here) is here
    twin = devices.copy_to(np, here)
    assert twin is not here and not np.shares_memory(twin, here)


# ---------------------------------------------------------------------------- memory


@pytest.fixture
def full(monkeypatch, strict):
    """A GPU whose memory is used up."""
    install(monkeypatch, strict).free = 0


def test_an_op_without_memory_says_what_it_wanted_what_is_used_and_what_to_do(
    full, strict, monkeypatch
):
    op = get_primitive("cumsum")
    with devices.use_module(strict):
        x = tw.ones([2, 3])
    monkeypatch.setitem(op.kernels, type(x.array), _without_memory)
    with pytest.raises(ResourceExhaustedError) as caught:
        tw.cumsum(x)
    text = str(caught.value)
    assert text.startswith("cumsum: Out of memory allocating 5,242,880 bytes")
    assert "3,145,728 bytes by arrays, 8,388,608 by the memory pool; 0 of the" in text
    assert "the batch size" in text and "free_all_blocks()" in text
    assert isinstance(caught.value, MemoryError)


def test_a_gradient_without_memory_names_the_op(full, strict, monkeypatch):
    with devices.use_module(strict):
        x = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as tape:
        y = tw.tanh(x)
    op = get_primitive("tanh_slope")
    monkeypatch.setitem(op.kernels, type(y.array), _without_memory)
    with pytest.raises(
        ResourceExhaustedError, match="(?s)gradient of tanh: Out of.*In use"
    ):
        tape.gradient(y, x)


def _without_memory(*arrays, **attributes):
    raise OutOfMemoryError(5 * MIB, 8 * MIB)


@pytest.mark.parametrize(
    "text",
    ["cudaErrorMemoryAllocation: out of memory", "CUBLAS_STATUS_ALLOC_FAILED"],
)
def test_cudas_own_errors_of_memory_are_known(text):
    assert devices.is_out_of_memory(RuntimeError(text))
    assert not devices.is_out_of_memory(RuntimeError("cudaErrorIllegalAddress"))


def test_memory_errors_of_the_host_say_nothing_of_a_gpu():
    error = devices.memory_error("matmul", MemoryError("Unable to allocate 1 TiB"))
    assert str(error) == "matmul: Unable to allocate 1 TiB"


def test_free_memory_is_that_of_the_gpu_and_of_the_pool(monkeypatch, strict):
    install(monkeypatch, strict)
    assert devices.free_memory(strict) == 80 * MIB + 5 * MIB
