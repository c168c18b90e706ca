"""The classifier learns, stops by itself, comes back to its best, and reports."""

import re

import numpy as np
import pytest

import tapewright as tw
from tapewright.datasets import digits


def test_it_learns(script, run):
    code, printed = run(script, "--epochs", "10")
    accuracy = float(re.findall(r"test accuracy ([\d.]+)%", printed)[-1])
    assert (code, accuracy > 85) == (0, True)


def test_it_ends_with_the_weights_of_its_best_epoch(script):
    tw.keras.utils.set_random_seed(0)
    (images, labels), _ = digits.load_data(n_train=400, n_test=1)
    model = script.network()
    assert script.train(model, images, labels, 100)
    history = model.history.history
    losses, rates = history["val_loss"], history["learning_rate"]
    assert len(losses) < 100 and rates[-1] < rates[0]
    loss, _ = model.evaluate(images[-40:], labels[-40:], verbose=0)
    assert loss == pytest.approx(min(losses), rel=1e-5)
    assert losses[-1] > min(losses)


def test_the_report_counts_what_was_taken_for_a_digit_and_what_is_one(script, capsys):
    script.report(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["0", "100.0%", "50.0%", "66.7%", "2"]
    assert lines[2].split() == ["1", "66.7%", "100.0%", "80.0%", "2"]
    assert lines[3].split() == ["2", "0.0%", "0.0%", "0.0%", "0"]


def test_a_seed_brings_the_run_back(script, run):
    ends = [
        run(script, "--epochs", "2", "--seed", seed, images=400)[1].splitlines()[-11:]
        for seed in "334"
    ]
    assert ends[0] == ends[1] != ends[2]


def test_it_draws_the_training_the_matrix_and_the_mistakes(script, run, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    _, printed = run(script, "--epochs", "2", picture=True, images=400)
    paths = [tmp_path / f"mnist_fit_{n}.png" for n in ("curves", "matrix", "mistakes")]
    assert printed.endswith(f"wrote {' '.join(map(str, paths))}\n")
    assert all([len(np.unique(image.imread(path))) > 100 for path in paths])


def test_without_matplotlib_it_says_so_and_goes_on(
    script, run, without_matplotlib, tmp_path
):
    code, printed = run(script, "--epochs", "1", picture=True, images=400)
    assert code == 0 and "needs matplotlib" in printed
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n", [1, 15])  # 11 steps an epoch
def test_ctrl_c_reports_what_was_reached(script, run, interrupted_fit, tmp_path, n):
    pytest.importorskip("matplotlib")
    interrupted_fit(n)
    code, printed = run(script, "--epochs", "5", picture=True, images=400)
    assert code == 130
    assert re.search(r"stopped early: test loss [\d.]+, test accuracy", printed)
    assert (tmp_path / "mnist_fit_matrix.png").is_file()
    assert (tmp_path / "mnist_fit_curves.png").is_file() == (n > 11)


def test_a_folder_that_is_not_there_is_named(script, run, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(script, "--data", "no/such/folder")
    assert "--data no/such/folder" in capsys.readouterr().err
