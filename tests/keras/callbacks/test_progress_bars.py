"""The bars: on a terminal, in a file, in a notebook, interrupted, and tqdm's own."""

import io
import os
import re
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from tapewright.keras.callbacks import (
    Callback,
    CallbackList,
    LambdaCallback,
    ProgbarLogger,
    TqdmCallback,
    console,
)
from tapewright.keras.callbacks.logs import Logs

from .loops_by_hand import run_epochs
from .small_training import X, Y, fit_small, small_model


class Terminal(io.StringIO):
    """Standard output that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True

    def drawings(self):
        """Everything that was drawn, in order, without control codes."""
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", self.getvalue())
        return [line.rstrip() for line in re.split(r"[\r\n]", text) if line.strip()]

    def screen(self):
        """The lines as they stand in the end."""
        return [
            re.split(r"\r", line)[-1].rstrip() for line in self.getvalue().split("\n")
        ]


@pytest.fixture
def terminal(monkeypatch):
    """Standard output as the bars see it; pytest keeps the real one for itself."""
    monkeypatch.setenv("COLUMNS", "120")
    stdout = Terminal()
    monkeypatch.setattr(console, "sys", SimpleNamespace(stdout=stdout, modules={}))
    monkeypatch.setitem(console.sys.modules, "tqdm", sys.modules.get("tqdm"))
    return stdout


def progress(verbose="auto", steps=3, epochs=2):
    return CallbackList(add_progbar=True, verbose=verbose, epochs=epochs, steps=steps)


LINES = (
    r"Epoch 1/2\n3/3 - 0s - \d+[mu]s/step - loss: 0.5000 - val_loss: 0.2500\n"
    r"Epoch 2/2\n3/3 - 0s - \d+[mu]s/step - loss: 0.5000 - val_loss: 0.2500\n"
)


@pytest.mark.parametrize("verbose", [1, 2, "auto"])
@pytest.mark.parametrize("steps", [3, None])
def test_what_is_no_terminal_gets_plain_lines(verbose, steps, capsys):
    run_epochs(progress(verbose, steps))
    out, err = capsys.readouterr()
    assert re.fullmatch(LINES, out) and not err


def test_lines_are_plain_on_a_terminal_too_if_asked_for(terminal):
    run_epochs(progress(verbose=2))
    assert re.fullmatch(LINES, terminal.getvalue())


def test_silence_is_silent_and_costs_no_batches(terminal):
    callbacks = progress(verbose=0)
    run_epochs(callbacks)
    assert terminal.getvalue() == "" and not callbacks._tw_wants_train_batches


@pytest.mark.parametrize("verbose", [3, "yes", None])
def test_another_verbosity_is_refused(verbose):
    with pytest.raises(ValueError, match="verbose .*0.*1.*2.*'auto'"):
        progress(verbose)


@pytest.mark.parametrize("steps", [3, None])
def test_a_terminal_has_one_bar_an_epoch_with_its_values(terminal, steps):
    run_epochs(progress(steps=steps))
    lines = terminal.screen()
    assert len(lines) == 3 and lines[2] == ""
    for number, line in enumerate(lines[:2], 1):
        assert line.startswith(f"Epoch {number}/2 3/3 |████████████████████| 00:00<")
        assert line.endswith(", loss: 0.5000 - val_loss: 0.2500")


def test_the_bar_moves_with_the_batches(terminal, monkeypatch):
    monkeypatch.setattr(console, "INTERVAL", 0.0)
    run_epochs(progress(epochs=1), epochs=1)
    drawn = "\n".join(terminal.drawings())
    for state in ("0/3", "1/3", "2/3", "loss: 1.0000", "loss: 0.3333"):
        assert state in drawn


def test_the_bar_is_drawn_at_most_twenty_times_a_second(terminal, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(console.time, "perf_counter", lambda: now[0])
    callbacks = progress(steps=1000, epochs=1)
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    before = len(terminal.drawings())
    for batch in range(1000):
        now[0] += 0.001
        callbacks.on_train_batch_end(batch, {"loss": 1.0})
    assert 15 <= len(terminal.drawings()) - before <= 21
    callbacks.on_close()


def test_values_that_are_not_drawn_are_not_read(terminal, monkeypatch):
    monkeypatch.setattr(console.time, "perf_counter", lambda: 1.0)
    read = []
    monkeypatch.setattr(Logs, "_read", lambda self: read.append(1) or self)
    callbacks = progress(steps=10, epochs=1)
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    callbacks.on_train_batch_end(0, {"loss": 1.0})
    read.clear()
    for batch in range(1, 9):
        callbacks.on_train_batch_end(batch, {"loss": 1.0})
    callbacks.on_close()
    assert not read


def read_all(handle):
    """What was written to the other end, which is closed."""
    parts = []
    try:
        while part := os.read(handle, 10_000):
            parts.append(part)
    except OSError:  # how the end looks on Linux
        pass
    os.close(handle)
    return b"".join(parts).decode()


def test_a_terminal_that_does_not_know_its_size_has_a_bar(monkeypatch):
    ours, theirs = os.openpty()  # it says 0 lines of 0 columns
    with open(theirs, "w", encoding="utf-8") as stdout:
        fake = SimpleNamespace(stdout=stdout, modules={})
        monkeypatch.setattr(console, "sys", fake)
        run_epochs(progress(epochs=1), epochs=1)
    text = read_all(ours)
    assert "Epoch 1/1 0/3 |" in text and "val_loss: 0.2500\r\n" in text


def test_an_interrupted_fit_leaves_its_bar_on_a_line_of_its_own(terminal):
    callbacks = progress()
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    for batch in (0, 1):
        callbacks.on_train_batch_end(batch, {"loss": 1.0})
    callbacks.on_close()
    callbacks.on_close()
    print("Traceback", file=terminal)
    first, second, _ = terminal.screen()
    assert first.startswith("Epoch 1/2 2/3 ") and second == "Traceback"


def test_an_epoch_that_ends_early_says_how_far_it_came(capsys):
    run_epochs(progress(steps=10, epochs=1), epochs=1)
    assert capsys.readouterr().out.startswith("3/10 - ")


def test_messages_of_callbacks_stand_above_the_bar(terminal):
    loud = LambdaCallback(on_epoch_end=lambda e, logs: console.say("a message"))
    run_epochs(CallbackList(loud, False, True, verbose=1, epochs=1, steps=3), epochs=1)
    first, second, last = terminal.screen()
    assert first == "a message" and second.startswith("Epoch 1/1 3/3") and not last


def test_evaluate_and_predict_show_a_bar_of_their_own(terminal):
    callbacks = progress(epochs=1)
    callbacks.on_test_begin()
    callbacks.on_test_batch_end(2, {"loss": 1.0})
    callbacks.on_test_end({"loss": 1.0})
    callbacks.on_predict_begin()
    callbacks.on_predict_batch_end(2, {"outputs": 1.0})
    callbacks.on_predict_end({})
    first, second, last = terminal.screen()
    assert first.startswith("3/3 |█") and first.endswith("loss: 1.0000")
    assert second.startswith("3/3 |█") and "outputs" not in second and not last


def test_evaluate_and_predict_print_a_line_into_a_file(capsys):
    callbacks = progress(epochs=1, steps=None)
    callbacks.on_test_begin()
    callbacks.on_test_batch_end(2, {"loss": 1.0})
    callbacks.on_test_end({"loss": 1.0})
    callbacks.on_predict_begin()
    callbacks.on_predict_batch_end(2)
    callbacks.on_predict_end()
    test, predict = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"3/3 - 0s - \d+[um]s/step - loss: 1.0000", test)
    assert re.fullmatch(r"3/3 - 0s - \d+[um]s/step", predict)


def test_values_that_need_more_than_a_line_are_all_there_in_the_end(
    terminal, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "40")
    many = {f"value_{i}": 0.5 for i in range(9)}
    callbacks = progress(epochs=1)
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    callbacks.on_train_batch_end(2, many)
    callbacks.on_epoch_end(0, many)
    callbacks.on_close()
    assert terminal.screen()[0].endswith("value_7: 0.5000 - value_8: 0.5000")


def test_the_bar_of_a_narrow_terminal_has_room_for_its_values(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(console, "INTERVAL", 0.0)
    callbacks = progress(steps=469, epochs=20)
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    callbacks.on_train_batch_end(122, {"accuracy": 0.9, "loss": 0.5})
    moving = terminal.screen()[0]
    callbacks.on_close()
    assert moving.startswith("Epoch 1/20 123/469 |")
    assert moving.endswith("accuracy: 0.9000 - loss: 0.5000") and len(moving) < 80


def test_the_bar_starts_no_thread(terminal):
    before = threading.active_count()
    callbacks = progress()
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    assert threading.active_count() == before
    callbacks.on_close()


def test_a_notebook_without_widgets_gets_the_bar_of_text(monkeypatch, capsys):
    monkeypatch.setattr(console, "in_notebook", lambda: True)
    run_epochs(progress(epochs=1), epochs=1)
    out, err = capsys.readouterr()
    assert "Epoch 1/1: 100%|" in out and "val_loss: 0.2500" in out and not err


def test_a_subclass_may_look_at_every_batch():
    class Counting(ProgbarLogger):
        count = 0

        def on_train_batch_end(self, batch, logs=None):
            self.count += 1

    own = Counting()
    run_epochs(CallbackList(own, verbose=0, epochs=1, steps=3), epochs=1)
    assert own.count == 3


def test_without_a_terminal_fit_prints_lines(capsys):
    net = small_model()
    fit_small(net, verbose="auto", epochs=2)
    net.evaluate(X, Y)
    net.predict(X)
    lines = capsys.readouterr().out.splitlines()
    starts = [line.partition(" - ")[0] for line in lines]
    assert starts == ["Epoch 1/2", "4/4", "Epoch 2/2", "4/4", "2/2", "2/2"]
    assert "loss: " in lines[4] and "loss" not in lines[5]


def test_of_an_array_the_mean_is_shown_as_in_keras(capsys):
    logs = {"loss": np.array([1.0, 2.0, 6.0]), "z": np.array([1e-5, 2e-5], "float32")}
    callbacks = progress(verbose=2, epochs=1)
    callbacks.on_epoch_begin(0)
    callbacks.on_epoch_end(0, logs)
    assert capsys.readouterr().out.endswith("loss: 3.0000 - z: 1.5000e-05\n")


def tqdm_screen(verbose, **options):
    file = Terminal()
    callback = TqdmCallback(verbose=verbose, file=file, ascii=True, **options)
    run_epochs(CallbackList([callback, Callback()], epochs=2, steps=3))
    return file


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_a_bar_of_epochs_runs_over_the_training(verbose):
    text = tqdm_screen(verbose).getvalue()
    assert "2/2 [" in text and "epoch" in text
    assert "loss: 0.5000 - val_loss: 0.2500" in text
    assert ("batch" in text) == (verbose > 0)


def test_bars_of_batches_go_or_stay():
    assert tqdm_screen(1).getvalue().count("\n") < tqdm_screen(2).getvalue().count("\n")


def test_totals_can_be_given_where_nobody_tells_them():
    file = Terminal()
    callback = TqdmCallback(epochs=7, data_size=10, batch_size=4, file=file)
    callback.on_train_begin()
    callback.on_epoch_begin(0)
    callback.on_close()
    assert "0/7" in file.getvalue() and "0/3" in file.getvalue()


def test_training_that_goes_on_begins_at_its_epoch():
    file = Terminal()
    callback = TqdmCallback(verbose=0, file=file)
    run_epochs(CallbackList(callback, epochs=5, steps=3), epochs=4, first=3)
    assert "4/5 [" in file.getvalue()


def test_another_verbosity_of_the_bars_is_refused():
    with pytest.raises(ValueError, match="verbose .*got 3"):
        TqdmCallback(verbose=3)
