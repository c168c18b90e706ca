"""The penalty holds the critic's slope at 1, the generator follows it, digits appear."""

import numpy as np
import pytest

import tapewright as tw


@pytest.fixture
def networks(script):
    tw.random.set_seed(0)
    return script.networks()


def images(seed=0):
    """Bright at a third of the pixels, dark elsewhere."""
    rng = np.random.default_rng(seed)
    return tw.constant((np.arange(784) % 3 == 0) * rng.random((64, 1)), tw.float32)


def test_the_slope_of_a_linear_critic_is_the_norm_of_its_weights(script):
    weights = tw.constant([[3.0], [4.0]])
    slopes = script.slopes(lambda x: tw.matmul(x, weights), tw.ones([5, 2]))
    np.testing.assert_allclose(slopes.numpy(), [5.0] * 5)


def test_between_two_points_the_gap_comes_to_what_the_penalty_allows(script, networks):
    _, critic = networks
    real, drawn = np.zeros((32, 8), "float32"), tw.zeros([32, 8])
    real[:, :4] = 1.0  # 2 apart from drawn
    optimizer = tw.optimizers.Adam(0.001, beta_1=0.5, beta_2=0.9)

    def generator(noise):
        return drawn

    gaps = [
        float(script.critic_step(generator, critic, optimizer, tw.constant(real)))
        for _ in range(150)
    ]
    # the slope s that makes 2 s - 10 (s - 1)^2 largest is 1.1
    assert np.mean(gaps[-20:]) == pytest.approx(2.2, rel=0.05)


def test_the_generator_raises_the_score_of_what_it_draws(script, networks):
    generator, critic = networks
    noise = tw.random.normal([64, script.NOISE])
    before = float(tw.reduce_mean(critic(generator(noise))))
    weights = [v.numpy() for v in critic.trainable_variables]
    optimizer = tw.optimizers.Adam(0.001)
    for _ in range(10):
        script.generator_step(generator, critic, optimizer)
    assert float(tw.reduce_mean(critic(generator(noise)))) > before
    for variable, value in zip(critic.trainable_variables, weights, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_drawn_images_come_to_look_like_the_real_ones(script, networks):
    generator, critic = networks
    optimizers = [tw.optimizers.Adam(0.001, beta_1=0.5, beta_2=0.9) for _ in range(2)]
    noise = tw.random.normal([64, script.NOISE])

    def distance():
        mean = tw.reduce_mean(generator(noise), axis=0).numpy()
        return np.linalg.norm(mean - (np.arange(784) % 3 == 0) * 0.5)

    before, rng = distance(), np.random.default_rng(0)
    for epoch in range(80):
        script.train_epoch(
            generator, critic, optimizers, images(epoch).numpy(), rng, []
        )
        script.generator_step(generator, critic, optimizers[1])
    assert distance() < 0.6 * before


def test_it_draws_the_curve_and_the_digits(script, run, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    code, printed = run(script, "--epochs", "1", picture=True, images=400)
    path = tmp_path / "wgan_gp.png"
    assert (
        code == 0
        and f"wrote {path}" in printed
        and "epoch 1: the critic's gap" in printed
    )
    assert len(np.unique(image.imread(path))) > 100


def test_a_seed_brings_the_run_back(script, run):
    _, first = run(script, "--epochs", "1", "--seed", "3", images=400)
    _, again = run(script, "--epochs", "1", "--seed", "3", images=400)
    assert first == again


@pytest.mark.parametrize("n", [1, 10, 30])  # 24 steps an epoch
def test_ctrl_c_draws_what_was_reached(script, run, monkeypatch, tmp_path, n):
    pytest.importorskip("matplotlib")
    step, calls = script.critic_step, []

    def critic_step(*args):
        calls.append(args)
        if len(calls) == n:
            raise KeyboardInterrupt
        return step(*args)

    monkeypatch.setattr(script, "critic_step", critic_step)
    code, _ = run(script, picture=True)
    assert code == 130 and (tmp_path / "wgan_gp.png").is_file()
