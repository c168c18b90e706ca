"""The script that times a step eager and traced."""

import numpy as np
import pytest

from .conftest import load


@pytest.fixture
def script(monkeypatch):
    script = load("compiled_step")
    monkeypatch.setattr(script, "WIDTHS", (8, 16))
    monkeypatch.setattr(script, "STEPS", 3)
    return script


def test_it_prints_a_line_for_each_width(script, run):
    code, printed = run(script, "--epochs", "1")
    assert code == 0
    lines = printed.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["8", "16"]
    assert all(line.split()[3].endswith("x") for line in lines[1:3])


def test_both_ways_compute_the_same_losses(script):
    eager, traced = script.make_step(8, 0), script.tw.function(script.make_step(8, 0))
    rng = np.random.default_rng(0)
    images = script.tw.constant(rng.random((4, 784), np.float32))
    labels = script.tw.constant(np.eye(10, dtype=np.float32)[:4])
    for _ in range(3):
        np.testing.assert_allclose(
            traced(images, labels), eager(images, labels), rtol=1e-6
        )


def test_the_picture_is_drawn(script, run, tmp_path):
    pytest.importorskip("matplotlib")
    run(script, "--epochs", "1", picture=True)
    assert (tmp_path / "compiled_step.png").stat().st_size > 1000
