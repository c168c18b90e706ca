"""`RematScope`: layers whose `call` is computed again in the backward pass."""

import contextlib
import contextvars
import threading

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras

X = np.linspace(-1.0, 1.0, 64, dtype="float32").reshape(16, 4)


def make_model(scope=None):
    keras.utils.set_random_seed(0)
    with scope or contextlib.nullcontext():
        layers = [
            keras.layers.Dense(32, activation="relu", name="first"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.25, seed=1),
            keras.layers.Dense(2, activation="tanh", name="last"),
        ]
    return keras.Sequential([keras.Input((4,)), *layers])


SCOPES = [
    ("full",),
    ("activations",),
    ("larger_than", 20),
    ("list_of_layers", 1024, ["first"]),
    (None,),
]


@pytest.mark.parametrize("run_eagerly", [True, False])
def test_a_scope_changes_no_weight_of_a_training(run_eagerly):
    def trained(scope):
        model = make_model(scope)
        model.compile("sgd", "mse", run_eagerly=run_eagerly)
        model.fit(X, X[:, :2], batch_size=8, epochs=2, shuffle=False, verbose=0)
        return model.get_weights()

    expected = trained(None)
    for arguments in SCOPES:
        for a, b in zip(trained(keras.RematScope(*arguments)), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_each_mode_selects_the_layers_that_keep_nothing():
    def computed_again(scope):
        """The names of the layers that the backward pass calls again."""
        model = make_model(scope)
        called = []
        for layer in model.layers:
            layer.call = noting(layer.call, called, layer.name)
        with tw.GradientTape() as tape:
            y = model(X, training=True)
        called.clear()
        tape.gradient(y, model.trainable_variables)
        return called

    def noting(call, called, name):
        def noted(*args, **kwargs):
            called.append(name)
            return call(*args, **kwargs)

        return noted

    names = ["last", "dropout", "batch_normalization", "first"]
    assert computed_again(None) == []
    found = computed_again(keras.RematScope())
    assert [name.rstrip("_0123456789") for name in found] == names
    limit = 16 * 32
    assert "first" in computed_again(keras.RematScope("larger_than", limit - 1))
    assert computed_again(keras.RematScope("larger_than", limit)) == []
    only = keras.RematScope("list_of_layers", layer_names=["last"])
    assert computed_again(only) == ["last"]
    with keras.RematScope(), keras.RematScope(None):
        layer = keras.layers.Dense(2)
    assert layer.rematerialized_call(noting, X) is noting


def test_activations_are_computed_again():
    calls = []

    def activation(x):
        calls.append(1)
        return tw.tanh(x)

    with keras.RematScope("activations"):
        layer = keras.layers.Dense(2, activation=activation)
    with tw.GradientTape() as tape:
        y = layer(X)
    assert len(calls) == 1 and layer.activation is activation
    assert tape.gradient(y, layer.kernel) is not None
    assert len(calls) == 2


def test_calls_in_several_threads_leave_the_activation():
    first, second = threading.Event(), threading.Event()

    class Waits(keras.layers.Dense):
        def call(self, inputs):
            if not first.is_set():
                first.set()
                second.wait(5)
            else:
                second.set()
            return super().call(inputs)

    with keras.RematScope("activations"):
        layer = Waits(2, activation=tw.tanh)
    first.set()
    layer(X)
    first.clear()
    second.clear()
    thread = threading.Thread(target=contextvars.copy_context().run, args=(layer, X))
    thread.start()
    assert first.wait(5)
    assert layer.activation is tw.tanh  # while a call runs
    layer(X)
    thread.join()
    assert layer.activation is tw.tanh and type(layer) is Waits


def test_layers_with_an_activation_in_their_cell_are_called():
    with keras.RematScope("activations"):
        layer = keras.layers.LSTM(2)
    assert layer(X[None]).shape == (1, 2)


@pytest.mark.parametrize("scope", [*SCOPES[:2], ("list_of_layers",)])
def test_control_flow_in_call_is_converted(scope):
    class Signed(keras.layers.Dense):
        def call(self, inputs):
            if tw.reduce_sum(inputs) > 0:
                return super().call(inputs)
            return -super().call(inputs)

    with keras.RematScope(*scope):
        layer = Signed(2, activation="tanh", kernel_initializer="ones")
    traced = tw.function(layer)
    for x in (X[-2:], X[:2]):
        np.testing.assert_allclose(
            traced(x), np.tanh(abs(x.sum(-1)))[:, None] * [[1, 1]]
        )


def test_tensors_by_keyword_have_gradients():
    with keras.RematScope():
        attention = keras.layers.Attention()
    query, value = tw.constant(X[None]), tw.constant(X[None] * 0.5)

    def gradients(**options):
        with tw.GradientTape() as tape:
            tape.watch([query, value])
            y = options.pop("call")([query, value])
        return tape.gradient(y, [query, value])

    plain = keras.layers.Attention()
    for a, b in zip(gradients(call=attention), gradients(call=plain), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    with tw.GradientTape() as tape:
        tape.watch([query, value])
        y = tw.recompute_grad(lambda a, *, b: a * b)(query, b=value)
    np.testing.assert_array_equal(tape.gradient(y, value), query)


def test_a_mask_reaches_what_is_computed_again():
    lstm = keras.layers.LSTM(2)
    x = keras.layers.Masking()(np.float32([[[1.0], [2.0], [0.0]]]))
    lstm(x)

    def gradient(call):
        with tw.GradientTape() as tape:
            y = call(x)
        return tape.gradient(y, lstm.trainable_variables)

    for a, b in zip(gradient(lstm), gradient(keras.remat(lstm)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="'full', .*None, got 'some'"):
        keras.RematScope("some")


def test_a_class_of_a_user_may_have_any_attribute():
    class Own(keras.layers.Dense):
        def _view(self, x):
            return x * 2

        def call(self, x):
            return super().call(self._view(x))

    with keras.RematScope("activations"):
        layer = Own(3, activation="tanh")
    y = layer(X)
    np.testing.assert_allclose(y, np.tanh(2 * X @ layer.kernel.numpy()), rtol=1e-5)
