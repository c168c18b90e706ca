"""Without batch normalization the examples stay apart, with it they do not."""

import numpy as np
import pytest

import tapewright as tw


@pytest.fixture
def results(script):
    tw.random.set_seed(0)
    x = tw.random.normal([script.BATCH, script.INS])
    plain = script.jacobians(script.network(), x)
    return plain, script.jacobians(script.network(tw.layers.BatchNormalization()), x)


def off_diagonal(full):
    """The blocks of one example's outputs by another's inputs ``[outs, ins, pairs]``."""
    return full.transpose(1, 3, 0, 2)[..., ~np.eye(len(full), dtype=bool)]


def test_dense_layers_leave_the_blocks_off_the_diagonal_zero(results):
    (full, per_example, verdict), _ = results
    assert not off_diagonal(full).any() and verdict == "independent examples"
    np.testing.assert_allclose(per_example, np.einsum("bobi->boi", full), atol=1e-6)


def test_batch_normalization_fills_them_and_the_check_names_it(results):
    _, (full, per_example, verdict) = results
    assert np.abs(off_diagonal(full)).max() > 0.1
    assert "not independent" in verdict and "full jacobian" in verdict
    summed = np.einsum("iynx->nyx", full)
    np.testing.assert_allclose(per_example, summed, atol=1e-5)


def test_it_prints_and_draws_both(script, run, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    code, printed = run(script, "--epochs", "1", picture=True)
    path = tmp_path / "jacobian_patches.png"
    assert code is None and f"wrote {path}" in printed
    assert "off the diagonal blocks: 0%" in printed
    assert len(np.unique(image.imread(path))) > 100
