"""tqdm's own bars."""

import io
import re

import pytest

from tapewright.keras.callbacks import (
    Callback,
    CallbackList,
    TqdmCallback,
)

from .loops_by_hand import run_epochs


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
