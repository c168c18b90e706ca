"""A bar of progress of a loop: means, and one line where there is no terminal."""

import pytest

from tapewright.keras.utils import Progbar, progbar


def lines_of(capsys):
    return capsys.readouterr().out.splitlines()


def test_values_are_means_over_the_steps(capsys):
    bar = Progbar(4, stateful_metrics=["rate"], verbose=2)
    bar.update(1, [("loss", 1.0), ("rate", 5.0)])
    bar.add(2, [("loss", 4.0), ("rate", 7.0)])
    assert bar._values["loss"] == [9.0, 3] and lines_of(capsys) == []
    bar.update(4, finalize=True)
    (line,) = lines_of(capsys)
    assert line.startswith("4/4 - 0s") and line.endswith("loss: 3.0000 - rate: 7.0000")


def test_the_last_values_are_shown_as_they_are(capsys):
    bar = Progbar(2, stateless_metrics=["loss"])
    bar.add(1, [("loss", 1.0)])
    bar.add(1, [("loss", [2.0, 4.0])])
    assert lines_of(capsys)[-1].endswith("loss: 3.0000")


def test_a_terminal_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(progbar, "is_live", lambda: True)
    bar = Progbar(3, unit_name="file")
    bar.update(1, [("loss", 1.0)])
    bar.update(3, [("loss", 0.5)])
    text = capsys.readouterr()
    assert "3/3" in text.out + text.err and "loss: 0.5000" in text.out + text.err


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="stateful_metrics or stateless_metrics"):
        Progbar(1, stateful_metrics=[], stateless_metrics=[])
    with pytest.raises(ValueError, match="verbose"):
        Progbar(1, verbose=3)
