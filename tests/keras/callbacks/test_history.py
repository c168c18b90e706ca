"""`History`, also as the result of `fit`, and `CSVLogger`."""

import csv

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import callbacks
from tapewright.keras.callbacks import (
    CallbackList,
    CSVLogger,
    History,
)

from .loops_by_hand import Model, train
from .small_training import fit_small, small_model


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
    with pytest.raises(
        ValueError, match=r"names .*\['epoch', 'history'\].*got \['epoch'\]"
    ):
        other.set_state({"epoch": []})


def test_fit_returns_the_history_with_validation():
    history = fit_small(small_model(), validation_split=0.25)
    assert isinstance(history, callbacks.History)
    assert history.epoch == [0, 1, 2] and history.params["epochs"] == 3
    assert list(history.history) == ["accuracy", "loss", "val_accuracy", "val_loss"]
    assert {type(v) for values in history.history.values() for v in values} == {float}


def log(path, *epochs, first=0, **options):
    callbacks = CallbackList(CSVLogger(path, **options))
    callbacks.on_train_begin()
    for epoch, logs in enumerate(epochs, first):
        callbacks.on_epoch_end(epoch, logs)
    callbacks.on_train_end()
    return path.read_text().splitlines()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.csv"


def test_columns_are_in_alphabetical_order_behind_the_epoch(path):
    assert log(path, {"loss": 1.0, "val_loss": 2.0, "accuracy": 0.5}) == [
        "epoch,accuracy,loss,val_loss",
        "0,0.5,1.0,2.0",
    ]


def test_columns_for_a_later_validation_are_there_from_the_start(path):
    assert log(path, {"loss": 1.0}, {"loss": 0.5, "val_loss": 2.0}) == [
        "epoch,loss,val_loss",
        "0,1.0,NA",
        "1,0.5,2.0",
    ]


def test_a_file_that_goes_on_keeps_its_header_and_its_order(path):
    path.write_text("epoch,val_loss,loss\r\n0,2.0,1.0\r\n")
    assert log(path, {"loss": 0.5, "val_loss": 1.5}, first=1, append=True) == [
        "epoch,val_loss,loss",
        "0,2.0,1.0",
        "1,1.5,0.5",
    ]


def test_a_file_that_ends_within_a_line_goes_on_with_a_new_one(path):
    path.write_text("epoch,loss,val_loss\n0,1.0,2.0\n1,0.5")
    assert log(path, {"loss": 0.25}, first=1, append=True)[2:] == ["1,0.5", "1,0.25,NA"]


@pytest.mark.parametrize("content", [None, ""])
def test_a_new_or_empty_file_gets_a_header(path, content):
    if content is not None:
        path.write_text(content)
    lines = log(path, {"loss": 1.0}, append=True)
    assert lines == ["epoch,loss,val_loss", "0,1.0,NA"]


def test_without_append_a_file_begins_anew(path):
    path.write_text("something else\n")
    assert log(path, {"loss": 1.0})[0] == "epoch,loss,val_loss"


def test_what_is_no_log_is_not_appended_to(path):
    path.write_text("name;value\n")
    with pytest.raises(ValueError, match="'epoch'.*'name'"):
        log(path, {"loss": 1.0}, append=True, separator=";")
    assert path.read_text() == "name;value\n"


def test_a_value_without_a_column_is_left_out_with_one_warning(path):
    with pytest.warns(UserWarning, match="column.*'mae'") as caught:
        lines = log(path, {"loss": 1.0}, *[{"loss": 0.5, "mae": 3.0}] * 2)
    assert lines == ["epoch,loss,val_loss", "0,1.0,NA", "1,0.5,NA", "2,0.5,NA"]
    assert len(caught) == 1


def test_every_epoch_is_in_the_file_at_once(path):
    callbacks = CallbackList(CSVLogger(path))
    callbacks.on_train_begin()
    callbacks.on_epoch_end(0, {"loss": 1.0})
    assert path.read_text().splitlines()[-1] == "0,1.0,NA"
    callbacks.on_close()


def test_an_error_closes_the_file(path):
    logger = CSVLogger(path)
    callbacks = CallbackList(logger)
    callbacks.on_train_begin()
    callbacks.on_close()
    assert logger.csv_file is None


def test_arrays_are_lists_in_quotes(path):
    lines = log(path, {"each": np.array([1.0, 2.0]), "name": "a"})
    assert lines[1] == '0,"""[1.0, 2.0]""",a,NA,NA'


def test_a_second_fit_begins_the_file_anew(path):
    logger = CSVLogger(path)
    for key in ("loss", "other"):
        logger.on_train_begin()
        logger.on_epoch_end(0, {key: 1.0})
        logger.on_train_end()
    assert path.read_text().splitlines() == ["epoch,other,val_other", "0,1.0,NA"]


def test_a_log_holds_what_the_history_does(tmp_path):
    path = tmp_path / "log.csv"
    history = fit_small(small_model(), callbacks.CSVLogger(path), validation_split=0.25)
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    for name, values in history.history.items():
        assert [float(row[name]) for row in rows] == values


def test_a_history_shows_epochs_and_ends():
    history = callbacks.History()
    assert repr(history) == "<History: 0 epochs>"
    for epoch in range(3):
        logs = {"loss": 1.0 / (epoch + 1), "f1": np.ones(2), "a": 1, "b": 2, "c": 3}
        history.on_epoch_end(epoch, logs)
    shown = "loss 1 -> 0.3333, f1 [2] -> [2], a 1 -> 1, b 2 -> 2, 1 more"
    assert repr(history) == f"<History: 3 epochs, {shown}>"


def test_a_history_of_one_epoch_shows_one_value():
    history = callbacks.History()
    history.on_epoch_end(0, {"loss": 0.25})
    assert repr(history) == "<History: 1 epoch, loss 0.25>"


def test_a_history_shows_values_that_are_no_numbers():
    history = callbacks.History()
    for value in ("low", None):
        history.on_epoch_end(0, {"rate": value, "loss": tw.constant(0.5)})
    assert repr(history) == "<History: 2 epochs, rate low -> None, loss 0.5 -> 0.5>"
