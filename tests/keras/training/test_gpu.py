"""`fit`, `evaluate` and `predict` under a device: what is copied there, and how often.

The device is the stand-in for CuPy's arrays, which counts the copies from the host and back.
"""

import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Sequential
from tapewright.core.hardware import devices
from tapewright.core.settings import config
from tapewright.keras.callbacks import Callback
from tapewright.keras.training import outputs
from tapewright.keras.training.data_adapters import array_adapter
from tapewright.keras.training.data_adapters.array_adapter import ArrayAdapter
from tapewright.layers import Dense, Dropout

from ...stand_in import driver
from ...stand_in.gpu import MIB, OutOfMemoryError, install

RNG = np.random.default_rng(7)
X = RNG.normal(size=(50, 6)).astype("float32")
Y = RNG.integers(0, 3, 50)
ROUNDING = 2e-5  # sums on a device add in another order


class Copies:
    """The arrays that went to the device, and those that came back."""

    def __init__(self, monkeypatch, strict):
        self.there, self.back = [], []
        copy_to, to_numpy = devices.copy_to, devices.to_numpy

        def counted_copy(module, array):
            if type(array) is np.ndarray and module is strict:
                self.there.append(array.shape)
            return copy_to(module, array)

        def counted_back(array):
            if type(array) is strict.ndarray:
                self.back.append(array.shape)
            return to_numpy(array)

        monkeypatch.setattr(devices, "copy_to", counted_copy)
        monkeypatch.setattr(devices, "to_numpy", counted_back)


@pytest.fixture
def copies(monkeypatch, strict):
    return Copies(monkeypatch, strict)


def model(**options):
    tw.random.set_seed(3)
    layers = [Dense(8, "tanh"), Dropout(0.2), Dense(3)]
    made = Sequential([Input((6,)), *layers])
    loss = tw.losses.SparseCategoricalCrossentropy(from_logits=True)
    made.compile(tw.optimizers.Adam(0.05), loss, metrics=["accuracy"], **options)
    return made


def trained(module, fit=(), **options):
    """History and weights of a model that was trained on the arrays of a module."""
    with devices.use_module(module):
        made = model(**options)
        history = made.fit(X, Y, batch_size=8, epochs=3, verbose=0, **dict(fit)).history
        return history, made.get_weights()


def assert_equal(found, expected, rtol=0.0):
    for name, values in expected[0].items():
        np.testing.assert_allclose(found[0][name], values, rtol=rtol, err_msg=name)
    for a, b in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


# ---------------------------------------------------------------------- the data set


@pytest.mark.parametrize("shuffle", [True, False, "batch"])
def test_a_training_on_a_device_sees_the_batches_of_the_cpu(strict, shuffle):
    fit = {"shuffle": shuffle, "validation_split": 0.2, "class_weight": {0: 2.0}}
    assert_equal(trained(strict, fit), trained(np, fit), ROUNDING)


@pytest.mark.parametrize("shuffle", [True, False])
def test_the_arrays_are_copied_once_and_not_once_a_step(strict, copies, shuffle):
    trained(strict, {"shuffle": shuffle, "validation_split": 0.2})
    assert sorted(copies.there) == [(10,), (10, 6), (40,), (40, 6)]


def test_the_order_is_copied_once_a_pass(strict, monkeypatch):
    orders, asarray = [], strict.asarray

    def counted(array, *args, **kwargs):
        if type(array) is np.ndarray and array.dtype.kind == "i" and array.ndim == 1:
            orders.append(len(array))
        return asarray(array, *args, **kwargs)

    monkeypatch.setattr(strict, "asarray", counted, raising=False)
    with devices.use_module(strict):
        adapter = ArrayAdapter(X, Y, None, 8, None, True, None)
        orders.clear()
        for _ in range(2):
            assert len(list(adapter.data)) == 7
    assert orders == [50, 50]


def test_arrays_that_take_too_much_of_the_memory_go_over_batch_by_batch(
    strict, copies, monkeypatch, numpy_target
):
    expected = trained(np)
    cuda = install(monkeypatch, strict)
    cuda.free, cuda.pool.held = int(X.nbytes + Y.nbytes) * 2 - 2, cuda.pool.used
    assert_equal(trained(strict), expected, ROUNDING)
    assert (50, 6) not in copies.there and copies.there.count((8, 6)) == 3 * 6
    cuda.free += 2
    copies.there.clear()
    trained(strict)
    assert copies.there == [(50, 6), (50,)]


def test_a_data_set_that_finds_no_memory_is_an_error_that_says_so(strict, monkeypatch):
    install(monkeypatch, strict)

    def full(array, *args, **kwargs):
        raise OutOfMemoryError(array.nbytes, 8 * MIB)

    monkeypatch.setattr(strict, "asarray", full, raising=False)
    wrong = pytest.raises(
        tw.errors.ResourceExhaustedError, match="the data set.*1,200 b"
    )
    with wrong, devices.use_module(strict):
        ArrayAdapter(X, Y, None, 8, None, True, None)


def test_strings_stay_on_the_host(strict):
    words = np.array([["a"], ["b"], ["c"]])
    with devices.use_module(strict):
        adapter = ArrayAdapter(words, None, None, 2, None, False, None)
    assert type(adapter.arrays) is np.ndarray
    assert adapter.arrays.tolist() == [[b"a"], [b"b"], [b"c"]]


def test_arrays_of_the_device_are_taken_as_they_are(strict, copies):
    with devices.use_module(strict):
        x = tw.constant(X)
        copies.there.clear()
        adapter = ArrayAdapter(x, Y, None, 8, None, True, None)
    assert copies.there == [(50,)] and adapter.arrays[0] is x.array


def test_on_the_cpu_nothing_is_copied():
    if devices.current_module() is np:
        assert ArrayAdapter(X, Y, None, 8, None, True, None).arrays[0] is X


# ------------------------------------------------------------------ logs and outputs


def test_logs_come_back_once_an_epoch(strict, copies):
    with devices.use_module(strict):
        made = model()
        made.fit(X, Y, batch_size=8, epochs=1, verbose=0)
        copies.back.clear()
        made.fit(X, Y, batch_size=8, epochs=2, verbose=0)
    assert [shape for shape in copies.back if shape == ()] == [()] * 2 * 2


def test_outputs_of_many_batches_come_back_at_once(strict, copies, monkeypatch):
    with devices.use_module(strict):
        made = model()
        expected = made(X).numpy()
        copies.back.clear()
        events = []
        step = made.make_predict_function()
        monkeypatch.setattr(
            type(made),
            "make_predict_function",
            lambda self: lambda batch: events.append("step") or step(batch),
        )
        to_numpy = devices.to_numpy

        def counted(array):
            if type(array) is strict.ndarray:
                events.append("copy")
            return to_numpy(array)

        monkeypatch.setattr(devices, "to_numpy", counted)
        np.testing.assert_allclose(made.predict(X, 8, verbose=0), expected, 0, ROUNDING)
        assert events == ["step"] * 7 + ["copy"] * 7
        events.clear()
        monkeypatch.setattr(outputs, "WAITING", 3 * 8 * 3 * 4 - 1)
        np.testing.assert_allclose(made.predict(X, 8, verbose=0), expected, 0, ROUNDING)
        assert events == 2 * (["step"] * 3 + ["copy"] * 3) + ["step", "copy"]


# ------------------------------------------------------------ several steps as one


class Hooks(Callback):
    def __init__(self):
        super().__init__()
        self.calls = []

    def on_train_batch_begin(self, batch, logs=None):
        self.calls.append(("begin", batch))

    def on_train_batch_end(self, batch, logs=None):
        self.calls.append(("end", batch))


def test_steps_of_an_execution_compute_what_single_steps_do(numpy_target, device):
    module = devices.current_module()
    for count in (2, 3, 10):
        assert_equal(trained(module, steps_per_execution=count), trained(module))


def test_callbacks_are_called_once_for_an_execution():
    hooks = Hooks()
    made = model(steps_per_execution=3)
    made.fit(X[:40], Y[:40], batch_size=5, epochs=1, verbose=0, callbacks=[hooks])
    begins = [n for name, n in hooks.calls if name == "begin"]
    ends = [n for name, n in hooks.calls if name == "end"]
    assert begins == [0, 3, 6] and ends == [2, 5, 7]


def test_an_execution_is_one_call_of_one_trace():
    traced = []

    class Counting(Sequential):
        def train_step(self, data):
            traced.append(data[0].shape[0])
            return super().train_step(data)

    made = Counting([Input((6,)), Dense(3)])
    loss = tw.losses.SparseCategoricalCrossentropy(from_logits=True)
    made.compile("sgd", loss, steps_per_execution=4)
    made.fit(X[:40], Y[:40], batch_size=5, epochs=3, verbose=0)  # 8 steps
    assert traced == [5] * 4
    # The last one is smaller.
    made.fit(X[:38], Y[:38], batch_size=5, epochs=1, verbose=0)
    assert traced == [5] * 4 + [5, 3]


@pytest.mark.parametrize(("count", "graphs"), [(1, 8), (4, 2)])
def test_an_execution_is_one_cuda_graph_and_the_host_waits_for_none(
    strict, count, graphs, monkeypatch
):
    monkeypatch.setattr(config, "_verify", False)  # verified, each replay waits
    with devices.use_module(strict), tw.config.use_target("auto"):
        made = Sequential([Input((6,)), Dense(8, "tanh"), Dropout(0.2), Dense(3)])
        loss = tw.losses.SparseCategoricalCrossentropy(from_logits=True)
        made.compile("adam", loss, steps_per_execution=count)
        fit = {"batch_size": 5, "verbose": 0}
        made.fit(X[:40], Y[:40], epochs=2, **fit)
        driver.log.clear()
        made.fit(X[:40], Y[:40], epochs=1, **fit)
    verbs = [what[0] for what in driver.log]
    assert verbs.count("graph") == graphs and "synchronize" not in verbs
    kinds = {what[1] for what in driver.log if what[0] == "memcpy"}
    assert kinds == {driver.DEVICE_TO_DEVICE}


def test_evaluation_takes_steps_together_too():
    made, single = model(steps_per_execution=3), model()
    found = made.evaluate(X, Y, batch_size=8, verbose=0)
    expected = single.evaluate(X, Y, batch_size=8, verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_model_that_is_not_built_is_built_in_the_first_execution(numpy_target):
    def weights(**options):
        tw.random.set_seed(4)
        made = Sequential([Dense(4, "relu"), Dense(3)])
        loss = tw.losses.SparseCategoricalCrossentropy(from_logits=True)
        made.compile("adam", loss, **options)
        made.fit(X, Y, batch_size=10, epochs=2, verbose=0)
        return made.get_weights()

    for a, b in zip(weights(steps_per_execution=5), weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_eager_steps_run_one_by_one():
    found = trained(devices.current_module(), run_eagerly=True, steps_per_execution=3)
    assert_equal(found, trained(devices.current_module()), rtol=1e-5)


def test_training_stops_between_executions():
    class Stop(Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = True

    made = model(steps_per_execution=3)
    made.fit(X, Y, batch_size=5, epochs=2, verbose=0, callbacks=[Stop()])
    assert int(made.optimizer.iterations.numpy()) == 3


def test_steps_per_execution_may_be_set():
    made = model()
    made.steps_per_execution = 3
    assert made.steps_per_execution == 3
    assert made.get_compile_config()["steps_per_execution"] == 3
    found = (
        made.fit(X, Y, batch_size=8, epochs=3, verbose=0).history,
        made.get_weights(),
    )
    assert_equal(found, trained(devices.current_module()), rtol=1e-5)
    with pytest.raises(
        ValueError, match="steps_per_execution: value must be a positive"
    ):
        made.steps_per_execution = 0
    with pytest.raises(RuntimeError, match="call compile"):
        Sequential([Dense(1)]).steps_per_execution = 2


@pytest.mark.parametrize("value", [0, -1, 1.5, "auto", True])
def test_steps_per_execution_must_be_a_positive_integer(value):
    with pytest.raises(ValueError, match="steps_per_execution must be a positive"):
        model(steps_per_execution=value)


def test_none_is_one_step_as_in_files_of_keras_2():
    assert model(steps_per_execution=None).steps_per_execution == 1


def test_the_part_of_the_memory_for_data_leaves_room_for_the_step():
    assert 0 < array_adapter.PART_OF_MEMORY <= 0.5 and MIB == 2**20
