"""Logs: floats that are read at the first look."""

import copy
import json
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.callbacks import (
    CallbackList,
    LambdaCallback,
)
from tapewright.keras.callbacks.logs import Logs


def test_logs_are_floats_in_alphabetical_order():
    logs = Logs({"loss": tw.constant(0.5), "accuracy": np.float32(1), "count": 3})
    assert list(logs.items()) == [("accuracy", 1.0), ("count", 3.0), ("loss", 0.5)]
    assert {type(v) for v in logs.values()} == {float}


def test_dicts_inside_logs_are_laid_out_flat_in_their_place():
    logs = Logs({"z": 4.0, "more": {"c": {"d": 3.0}, "b": 2.0}, "loss": 1.0})
    assert list(logs.items()) == [("loss", 1.0), ("b", 2.0), ("d", 3.0), ("z", 4.0)]


def test_logs_of_an_epoch_have_the_order_of_keras():
    class Model(tw.keras.Model):
        def train_step(self, data):
            self.compute_metrics(data[0], data[1], self(data[0]))
            results = {metric.name: metric.result() for metric in self.metrics}
            return results | {"distance": tw.constant(1.0)}

    inputs = tw.keras.Input((1,))
    model = Model(inputs, inputs)
    model.compile(loss="mae", metrics=["mse"])
    x = np.ones((2, 1), "float32")
    history = model.fit(x, x, validation_data=(x, x), verbose=0).history
    assert list(history) == ["mse", "distance", "loss", "val_loss", "val_mse"]


def test_arrays_in_logs_stay_arrays():
    logs = Logs({"outputs": tw.ones((2, 2)), "names": "text", "one": tw.ones((1,))})
    assert logs["outputs"].shape == (2, 2) and isinstance(logs["outputs"], np.ndarray)
    assert logs["names"] == "text" and logs["one"] == 1.0
    several = Logs({"loss": [tw.constant(1.0), 2.0], "z": tw.constant(1 + 2j)})
    assert several["loss"].tolist() == [1.0, 2.0] and several["z"] == 1 + 2j


def test_a_metric_in_logs_is_refused():
    with pytest.raises(TypeError, match="'mae' is the metric <Mean.* its result"):
        len(Logs({"mae": tw.metrics.Mean(name="mae")}))


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
