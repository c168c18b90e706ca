"""Both networks of the GAN learn; samples are drawn; it can be stopped."""

import numpy as np
import pytest

import tapewright as tw


def networks(gan):
    tw.random.set_seed(0)
    generator, discriminator = gan.Generator(), gan.Discriminator()
    return generator, discriminator


class Frozen:
    """An optimizer that leaves everything as it is."""

    def apply_gradients(self, pairs):
        assert all(gradient is not None for gradient, _ in pairs)


def test_the_discriminator_learns_to_tell_real_from_drawn(gan):
    generator, discriminator = networks(gan)
    images = np.full((64, 784), -1, "float32")
    optimizer, frozen = tw.optimizers.Adam(0.001), Frozen()
    for _ in range(30):
        _, loss, on_real, on_drawn = gan.train_step(
            generator, discriminator, frozen, optimizer, images
        )
    assert loss < 0.1 and on_real == 1 and on_drawn == 1


def test_the_generator_learns_to_deceive_a_discriminator_that_stands_still(gan):
    generator, discriminator = networks(gan)
    images = np.full((64, 784), -1, "float32")
    optimizer, frozen = tw.optimizers.Adam(0.001), Frozen()
    losses = [
        gan.train_step(generator, discriminator, optimizer, frozen, images)[0]
        for _ in range(60)
    ]
    assert np.mean(losses[-5:]) < 0.6 * np.mean(losses[:5])


def test_each_network_follows_its_own_loss(gan):
    generator, discriminator = networks(gan)
    before = [v.numpy() for v in discriminator.trainable_variables]
    optimizer = tw.optimizers.Adam(0.001)
    images = np.zeros((64, 784), "float32")
    gan.train_step(generator, discriminator, optimizer, Frozen(), images)
    for variable, value in zip(discriminator.trainable_variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_drawn_images_lie_in_the_range_of_the_real_ones(gan):
    generator, _ = networks(gan)
    drawn = generator(100 * tw.random.normal([8, gan.NOISE]))
    assert drawn.shape == (8, 784)
    assert float(tw.reduce_max(tw.abs(drawn))) <= 1


def test_samples_are_drawn_after_the_last_epoch(gan, run, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    code, printed = run(gan, "--epochs", "2", picture=True)
    path = tmp_path / "gan_002.png"
    assert code == 0 and f"wrote {path}" in printed
    assert len(np.unique(image.imread(path))) > 100


def test_a_seed_brings_the_run_back(gan, run):
    _, first = run(gan, "--epochs", "1", "--seed", "3")
    _, again = run(gan, "--epochs", "1", "--seed", "3")
    assert first == again


def test_without_matplotlib_it_says_so_and_goes_on(
    gan, run, without_matplotlib, tmp_path
):
    code, printed = run(gan, "--epochs", "1", picture=True)
    assert code == 0 and "matplotlib is not installed" in printed
    assert not list(tmp_path.iterdir())


def test_ctrl_c_draws_what_was_reached(gan, run, interrupted, tmp_path):
    pytest.importorskip("matplotlib")
    interrupted(gan, 30)
    code, printed = run(gan, "--epochs", "9", picture=True)
    assert code == 130 and "stopped in epoch 2" in printed  # 24 steps an epoch
    assert (tmp_path / "gan_002.png").is_file()


def test_a_folder_that_is_not_there_is_named(gan, run, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(gan, "--data", "no/such/folder")
    assert "--data no/such/folder" in capsys.readouterr().err
