"""Hooks of callbacks: their order, conditions, functions, and callbacks of other classes."""

import pytest

from tapewright.keras.callbacks import (
    Callback,
    CallbackList,
    LambdaCallback,
)
from tapewright.keras.callbacks.callback import only_when

from .loops_by_hand import HOOKS, Model, Recorder, train


def test_the_hooks_come_in_their_order():
    recorder = Recorder()
    train(CallbackList(recorder), epochs=1, batches=1)
    assert recorder.calls == [
        "on_train_begin",
        "on_epoch_begin",
        "on_train_batch_begin",
        "on_batch_begin",
        "on_train_batch_end",
        "on_batch_end",
        "on_test_begin",
        "on_test_batch_begin",
        "on_test_batch_end",
        "on_test_end",
        "on_epoch_end",
        "on_train_end",
        "on_close",
    ]


def test_a_condition_decides_anew_at_each_epoch():
    class Sometimes(Callback):
        wanted = False

        @only_when(lambda self: self.wanted)
        def on_train_batch_end(self, batch, logs=None):
            pass

    class Always(Sometimes):
        def on_train_batch_end(self, batch, logs=None):
            pass

    callback = Sometimes()
    callbacks = CallbackList(callback)
    assert not callbacks._tw_wants_train_batches
    assert CallbackList(Always())._tw_wants_train_batches
    callback.wanted = True
    callbacks.on_epoch_begin(0)
    assert callbacks._tw_wants_train_batches


def test_objects_with_the_hooks_of_keras_are_callbacks_too():
    class Foreign:
        calls = ()

        def __getattr__(self, name):
            if not name.startswith(("on_", "set_")) or name == "on_close":
                raise AttributeError(name)
            return lambda *args, **kwargs: setattr(self, "calls", (*self.calls, name))

    foreign = Foreign()
    train(CallbackList(foreign, model=Model()), epochs=1, batches=1)
    assert "on_train_batch_end" in foreign.calls and "on_train_end" in foreign.calls


def test_a_lambda_callback_refuses_names_that_are_no_hooks():
    with pytest.raises(TypeError, match="on_epoch_stop.*on_epoch_end"):
        LambdaCallback(on_epoch_stop=print)


def test_a_lambda_callback_refuses_hooks_that_are_no_functions():
    with pytest.raises(TypeError, match="on_epoch_end must be a function, got 3"):
        LambdaCallback(on_epoch_end=3)


def test_a_lambda_callback_takes_every_hook():
    calls = []
    every = {n: lambda *a, _n=n, **k: calls.append(_n) for n in HOOKS}
    train(CallbackList(LambdaCallback(**every)), epochs=1, batches=1)
    assert set(calls) == {
        n for n in HOOKS if "predict" not in n and not n.startswith("on_batch")
    }
