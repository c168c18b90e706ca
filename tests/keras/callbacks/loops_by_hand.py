"""Loops written by hand, as the documentation of Keras has them, with stand-ins for models."""

import tapewright as tw
from tapewright.keras.callbacks import (
    Callback,
    CallbackList,
)
from tapewright.storage.atomic import replacing

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
    callbacks.on_close()


class Metric:
    def __init__(self, name, direction=None):
        self.name = name
        if direction:
            self._direction = direction


class Compiled:
    """Metrics within one, as models keep those of `compile`."""

    name = "compile_metrics"

    def __init__(self, *metrics):
        self.metrics = metrics


class WatchedModel:
    def __init__(self, *metrics):
        self.optimizer = tw.optimizers.SGD(0.1)
        self.metrics = [Metric("loss"), Compiled(*metrics)]
        self.stop_training = False
        self.weights = [0.0]
        self.saved = []
        self.fails = False

    def get_weights(self):
        return list(self.weights)

    def set_weights(self, weights):
        self.weights = list(weights)

    def save_weights(self, path):
        if self.fails:
            raise OSError("the disk is full")
        self.saved.append(str(path))
        with replacing(path):  # as the models do
            pass


def lead(callback, values, model=None, name="val_loss"):
    """Epochs with these values; what the model is then."""
    model = model or WatchedModel()
    callbacks = CallbackList(callback, model=model, epochs=len(values))
    callbacks.on_train_begin()
    for epoch, value in enumerate(values):
        callbacks.on_epoch_begin(epoch)
        model.weights = [float(epoch)]
        callbacks.on_epoch_end(epoch, {"loss": 1.0, name: value})
        if model.stop_training:
            break
    callbacks.on_train_end()
    callbacks.on_close()
    return model


def run_epochs(callbacks, epochs=2, batches=3, first=0):
    callbacks.on_train_begin()
    for epoch in range(first, epochs):
        callbacks.on_epoch_begin(epoch)
        for batch in range(batches):
            callbacks.on_train_batch_begin(batch)
            callbacks.on_train_batch_end(batch, {"loss": 1 / (batch + 1)})
        callbacks.on_test_begin()
        callbacks.on_test_batch_end(0, {"loss": 0.25})
        callbacks.on_test_end({"loss": 0.25})
        callbacks.on_epoch_end(epoch, {"loss": 0.5, "val_loss": 0.25})
    callbacks.on_train_end({"loss": 0.5})
    callbacks.on_close()
