"""Callbacks: the hooks, their list, what they are told, and loops that are written by hand."""

import copy
import json
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.callbacks import (
    Callback,
    CallbackList,
    History,
    LambdaCallback,
    LearningRateScheduler,
    Logs,
    ProgbarLogger,
    SwapEMAWeights,
    TerminateOnNaN,
)
from tapewright.keras.callbacks.callback import only_when

HOOKS = [name for name in vars(Callback) if name.startswith("on_")]


class Model:
    """As much of a model as callbacks need."""

    def __init__(self, rate=0.1):
        self.optimizer = tw.optimizers.SGD(rate)
        self.stop_training = False
        self.history = None


class Recorder(Callback):
    """Notes which hooks were called."""

    def __init__(self):
        super().__init__()
        self.calls = []


for _name in HOOKS:

    def _note(self, *args, _name=_name, **kwargs):
        self.calls.append(_name)
        getattr(super(Recorder, self), _name)(*args, **kwargs)

    setattr(Recorder, _name, _note)


def train(callbacks, epochs=2, batches=2, loss=0.5, steps=None):
    """A loop by hand, as the documentation of Keras has it."""
    callbacks.on_train_begin()
    logs = {}
    for epoch in range(epochs):
        callbacks.on_epoch_begin(epoch)
        for batch in range(batches):
            callbacks.on_train_batch_begin(batch)
            callbacks.on_train_batch_end(batch, {"loss": loss})
        callbacks.on_test_begin()
        callbacks.on_test_batch_begin(0)
        callbacks.on_test_batch_end(0, {"loss": loss})
        callbacks.on_test_end({"loss": loss})
        logs = {"loss": loss, "val_loss": loss}
        callbacks.on_epoch_end(epoch, logs)
        if callbacks.model is not None and callbacks.model.stop_training:
            break
    callbacks.on_train_end(logs)
    callbacks.close()


# ----------------------------------------------------------------------------- logs


def test_logs_are_floats_in_alphabetical_order():
    logs = Logs({"loss": tw.constant(0.5), "accuracy": np.float32(1), "count": 3})
    assert list(logs.items()) == [("accuracy", 1.0), ("count", 3.0), ("loss", 0.5)]
    assert {type(v) for v in logs.values()} == {float}


def test_dicts_inside_logs_are_laid_out_flat():
    assert Logs({"a": 1.0, "more": {"b": 2.0, "c": {"d": 3.0}}}) == {
        "a": 1.0,
        "b": 2.0,
        "d": 3.0,
    }


def test_arrays_in_logs_stay_arrays():
    logs = Logs({"outputs": tw.ones((2, 2)), "names": "text", "one": tw.ones((1,))})
    assert logs["outputs"].shape == (2, 2) and isinstance(logs["outputs"], np.ndarray)
    assert logs["names"] == "text" and logs["one"] == 1.0


class Counted:
    """A value that counts how often it is read."""

    reads = 0

    def numpy(self):
        self.reads += 1
        return np.float32(0.25)


@pytest.mark.parametrize(
    "look",
    [
        lambda logs: logs["loss"] == 0.25,
        lambda logs: dict(logs) == {"loss": 0.25},
        lambda logs: {**logs} == {"loss": 0.25},
        lambda logs: "{loss:.2f}".format(**logs) == "0.25",
        lambda logs: json.dumps(logs) == '{"loss": 0.25}',
        lambda logs: str(logs) == "{'loss': 0.25}",
        lambda logs: logs.get("loss") == 0.25 and logs.get("x", 1) == 1,
        lambda logs: list(logs.values()) == [0.25],
        lambda logs: copy.copy(logs) == {"loss": 0.25} == copy.deepcopy(logs),
        lambda logs: pickle.loads(pickle.dumps(logs)) == {"loss": 0.25},
        lambda logs: logs | {"a": 1} == {"loss": 0.25, "a": 1} == {"a": 1} | logs,
        lambda logs: logs.pop("loss") == 0.25 and not logs,
        lambda logs: logs == Logs({"loss": 0.25}) and not logs != {"loss": 0.25},
        lambda logs: isinstance(logs, dict) and sorted(logs) == ["loss"],
    ],
)
def test_every_way_to_look_at_logs_finds_floats(look):
    assert look(Logs({"loss": Counted()}))


def test_logs_are_read_once_and_only_when_looked_at():
    value = Counted()
    logs = Logs({"loss": value})
    assert len(logs) == 1 or value.reads
    logs = Logs({"loss": value})
    before = value.reads
    assert logs["loss"] == logs["loss"] and value.reads == before + 1


def test_batches_that_nobody_looks_at_are_never_read():
    value = Counted()
    callbacks = CallbackList([LambdaCallback(on_train_batch_end=lambda b, logs: None)])
    callbacks.on_train_batch_end(0, {"loss": value})
    assert value.reads == 0


# ----------------------------------------------------------------------------- list


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


def test_all_callbacks_see_what_one_adds_to_the_logs():
    adds = LambdaCallback(on_epoch_end=lambda e, logs: logs.update(extra=2.0))
    callbacks = CallbackList(adds, add_history=True, model=Model())
    train(callbacks, epochs=1)
    assert callbacks.model.history.history == {
        "extra": [2.0],
        "loss": [0.5],
        "val_loss": [0.5],
    }


def test_the_logs_that_are_handed_in_stay_as_they_are():
    adds = LambdaCallback(on_epoch_end=lambda e, logs: logs.update(extra=2.0))
    logs = {"loss": 1.0}
    CallbackList(adds).on_epoch_end(0, logs)
    assert logs == {"loss": 1.0}


def test_model_and_params_reach_every_callback():
    model, inner = Model(), [Callback(), (Callback(), Callback())]
    callbacks = CallbackList(inner, model=model, epochs=3, steps=None)
    assert len(callbacks.callbacks) == 3
    for callback in callbacks.callbacks:
        assert callback.model is model
        assert callback.params == {"epochs": 3, "steps": None}


def test_history_and_bar_are_added_unless_they_are_there():
    own = History(), ProgbarLogger()
    callbacks = CallbackList(own, True, True, verbose=0)
    assert callbacks.callbacks == list(own)
    kinds = [type(c) for c in CallbackList([], True, True).callbacks]
    assert kinds == [History, ProgbarLogger]


def test_a_callback_can_be_appended_later():
    callbacks, model = CallbackList(model=Model(), epochs=1), None
    recorder = Recorder()
    callbacks.append(recorder)
    model = callbacks.model
    assert recorder.model is model and recorder.params == {"epochs": 1}
    assert callbacks.wants_train_batches


@pytest.mark.parametrize("wrong", [Callback, "loss", 3, lambda: None])
def test_what_is_no_callback_is_refused(wrong):
    with pytest.raises(TypeError, match="callbacks must be Callbacks, got"):
        CallbackList([wrong])


@pytest.mark.parametrize(
    ("hook", "kind"),
    [
        ("on_batch_begin", "train"),
        ("on_batch_end", "train"),
        ("on_train_batch_begin", "train"),
        ("on_train_batch_end", "train"),
        ("on_test_batch_begin", "test"),
        ("on_test_batch_end", "test"),
        ("on_predict_batch_begin", "predict"),
        ("on_predict_batch_end", "predict"),
    ],
)
@pytest.mark.parametrize("on", ["class", "instance"])
def test_batches_are_wanted_by_who_has_a_hook_for_them(hook, kind, on):
    calls = []

    def note(*args, **kwargs):
        calls.append(args[-1])

    callback = Callback()
    if on == "class":
        callback = type("Own", (Callback,), {hook: note})()
    else:
        setattr(callback, hook, note)
    callbacks = CallbackList([Callback(), callback])
    wants = {k: getattr(callbacks, f"wants_{k}_batches") for k in ("train", "test")}
    wants["predict"] = callbacks.wants_predict_batches
    assert wants == {k: k == kind for k in wants}
    name = hook.replace("on_batch", "on_train_batch")
    getattr(callbacks, name)(7)
    assert calls == [7]


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
    assert not callbacks.wants_train_batches
    assert CallbackList(Always()).wants_train_batches
    callback.wanted = True
    callbacks.on_epoch_begin(0)
    assert callbacks.wants_train_batches


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


def test_errors_pass_through_and_close_still_closes_everything():
    class Breaks(Recorder):
        def on_epoch_end(self, epoch, logs=None):
            raise RuntimeError("stop here")

        def on_close(self):
            raise OSError("cannot close")

    recorder = Recorder()
    callbacks = CallbackList([Breaks(), recorder])
    with pytest.raises(RuntimeError, match="stop here"):
        train(callbacks)
    assert "on_train_end" not in recorder.calls
    with pytest.raises(OSError, match="cannot close"):
        callbacks.close()
    assert recorder.calls[-1] == "on_close"


# ------------------------------------------------------------------ single callbacks


def test_history_keeps_values_and_numbers_of_epochs():
    callbacks = CallbackList(add_history=True, model=Model(), epochs=2)
    train(callbacks)
    history = callbacks.model.history
    assert history.epoch == [0, 1]
    assert history.history == {"loss": [0.5, 0.5], "val_loss": [0.5, 0.5]}


def test_a_state_that_was_got_can_be_set_and_is_no_view():
    history = History()
    history.on_epoch_end(0, {"loss": 1.0})
    state = history.get_state()
    history.on_epoch_end(1, {"loss": 0.5})
    other = History()
    other.set_state(state)
    assert other.epoch == [0] and other.history == {"loss": [1.0]}
    with pytest.raises(ValueError, match="names must be"):
        other.set_state({"epoch": []})


def test_a_lambda_callback_refuses_names_that_are_no_hooks():
    with pytest.raises(TypeError, match="on_epoch_stop.*on_epoch_end"):
        LambdaCallback(on_epoch_stop=print)


def test_a_lambda_callback_takes_every_hook():
    calls = []
    every = {n: lambda *a, _n=n, **k: calls.append(_n) for n in HOOKS}
    train(CallbackList(LambdaCallback(**every)), epochs=1, batches=1)
    assert set(calls) == {
        n for n in HOOKS if "predict" not in n and not n.startswith("on_batch")
    }


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        (lambda epoch, rate: rate / 2, [0.05, 0.025]),
        (lambda epoch: 0.5 + epoch, [0.5, 1.5]),
        (lambda epoch, rate: np.float32(0.25), [0.25, 0.25]),
        (lambda epoch, rate: tw.constant(0.25), [0.25, 0.25]),
    ],
)
def test_a_schedule_sets_the_learning_rate_before_each_epoch(schedule, rates):
    callbacks = CallbackList(LearningRateScheduler(schedule), True, model=Model())
    train(callbacks)
    np.testing.assert_allclose(
        callbacks.model.history.history["learning_rate"], rates, rtol=1e-6
    )


def test_a_schedule_that_gives_no_number_is_refused():
    callbacks = CallbackList(LearningRateScheduler(lambda e, r: None), model=Model())
    with pytest.raises(ValueError, match="must return a number, got None"):
        train(callbacks)


def test_a_type_error_inside_a_schedule_is_not_hidden():
    def schedule(epoch, rate):
        return rate + None

    callbacks = CallbackList(LearningRateScheduler(schedule), model=Model())
    with pytest.raises(TypeError, match="unsupported operand"):
        train(callbacks)


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_training_stops_at_a_loss_that_is_no_number(loss, capsys):
    callbacks = CallbackList(TerminateOnNaN(), model=Model())
    train(callbacks, loss=loss, batches=1)
    assert callbacks.model.stop_training
    assert capsys.readouterr().out == "Batch 0: Invalid loss, terminating training\n"


def test_a_loss_that_is_no_number_can_be_an_error():
    callbacks = CallbackList(TerminateOnNaN(raise_error=True), model=Model())
    with pytest.raises(RuntimeError, match="the loss is nan at batch 0"):
        train(callbacks, loss=float("nan"))


class Averaging:
    """As much of an optimizer with averages as the callback needs."""

    use_ema = True

    def __init__(self):
        self._trainable_variables = [tw.Variable([1.0])]
        self._model_variables_moving_average = [tw.Variable([2.0], trainable=False)]

    def values(self):
        both = self._trainable_variables + self._model_variables_moving_average
        return [v.numpy().item() for v in both]


def averaging(**options):
    model = Model()
    model.optimizer = Averaging()
    callbacks = CallbackList(SwapEMAWeights(**options), model=model, epochs=2)
    return callbacks, model.optimizer.values


def test_evaluation_sees_averages_and_training_weights():
    callbacks, values = averaging()
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    callbacks.on_test_begin()
    assert values() == [2.0, 1.0]
    callbacks.on_test_end()
    assert values() == [1.0, 2.0]
    callbacks.on_predict_begin()
    assert values() == [2.0, 1.0]
    callbacks.on_predict_end()
    assert values() == [1.0, 2.0]


def test_averages_can_stay_between_epochs_and_are_kept_after_the_last():
    callbacks, values = averaging(swap_on_epoch=True)
    callbacks.on_epoch_begin(0)
    callbacks.on_epoch_end(0)
    assert values() == [2.0, 1.0]
    callbacks.on_epoch_begin(1)
    assert values() == [1.0, 2.0]
    callbacks.on_epoch_end(1)
    assert values() == [2.0, 2.0]


def test_an_interrupted_evaluation_gives_the_weights_back():
    callbacks, values = averaging()
    callbacks.on_test_begin()
    callbacks.close()
    assert values() == [1.0, 2.0]


def test_averages_need_an_optimizer_that_keeps_them():
    callbacks = CallbackList(SwapEMAWeights(), model=Model())
    with pytest.raises(ValueError, match="use_ema=True"):
        callbacks.on_test_begin()
