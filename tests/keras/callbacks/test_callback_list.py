"""Lists of callbacks: order, logs, wanted batches, errors."""

import pytest

from tapewright.keras import callbacks
from tapewright.keras.callbacks import (
    Callback,
    CallbackList,
    History,
    LambdaCallback,
    ProgbarLogger,
)

from .loops_by_hand import Model, Recorder, train
from .small_training import X, fit_small, small_model


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
    assert callbacks._tw_wants_train_batches


@pytest.mark.parametrize("wrong", [Callback, "loss", 3, lambda: None])
def test_what_is_no_callback_is_refused(wrong):
    with pytest.raises(TypeError, match="callbacks must be Callback objects, got"):
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
    wants = {k: getattr(callbacks, f"_tw_wants_{k}_batches") for k in ("train", "test")}
    assert wants == {k: k == kind for k in wants}
    name = hook.replace("on_batch", "on_train_batch")
    getattr(callbacks, name)(7)
    assert calls == [7]


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
        callbacks.on_close()
    assert recorder.calls[-1] == "on_close"


def test_a_hook_for_predictions_sees_the_outputs():
    shapes = []
    note = callbacks.LambdaCallback(
        on_predict_batch_end=lambda b, logs: shapes.append(logs["outputs"].shape)
    )
    small_model().predict(X, batch_size=40, verbose=0, callbacks=[note])
    assert shapes == [(40, 1), (24, 1)]


def test_an_error_in_a_callback_ends_fit_and_closes_files(tmp_path):
    def fail(epoch, logs):
        raise RuntimeError("enough")

    logger = callbacks.CSVLogger(tmp_path / "log.csv")
    ended = []
    with pytest.raises(RuntimeError, match="enough"):
        fit_small(
            small_model(),
            logger,
            callbacks.LambdaCallback(on_epoch_end=fail, on_train_end=ended.append),
        )
    assert logger.csv_file is None and not ended
