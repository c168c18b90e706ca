"""Both networks learn from their own losses, `fit` drives them, samples are drawn."""

import numpy as np
import pytest

import tapewright as tw


@pytest.fixture
def gan(script):
    tw.keras.utils.set_random_seed(0)
    return script.DCGAN()


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    return (rng.random((48, 28, 28, 1)) * 2 - 1).astype("float32")


def values(network):
    return [w.numpy() for w in network.trainable_variables]


def equal(before, after):
    return all([np.array_equal(a, b) for a, b in zip(before, after, strict=True)])


def test_images_are_drawn_in_the_range_of_the_real_ones(script, gan):
    drawn = gan(10 * tw.random.normal([5, script.NOISE]))
    assert drawn.shape == (5, 28, 28, 1)
    assert float(tw.reduce_max(tw.abs(drawn))) <= 1


@pytest.mark.parametrize("still", ["generator", "discriminator"])
def test_each_network_has_its_own_optimizer(gan, images, still):
    rates = {"generator": 0.01, "discriminator": 0.01, still: 0.0}
    gan.compile(*[tw.optimizers.SGD(rate) for rate in rates.values()])
    before = {name: values(getattr(gan, name)) for name in rates}
    gan.fit(images, verbose=0)
    for name, old in before.items():
        assert equal(old, values(getattr(gan, name))) == (name == still)


def test_the_discriminator_learns_to_tell_real_from_drawn(gan, images):
    gan.compile(tw.optimizers.SGD(0.0), tw.optimizers.Adam(0.001))
    logs = gan.fit(images, batch_size=24, epochs=10, verbose=0).history
    assert list(logs) == ["d_loss", "fake_accuracy", "g_loss", "real_accuracy"]
    assert logs["d_loss"][-1] < 0.5 * logs["d_loss"][0]
    assert logs["real_accuracy"][-1] == logs["fake_accuracy"][-1] == 1


def test_the_generator_learns_to_deceive_a_discriminator_that_stands_still(gan, images):
    gan.compile(tw.optimizers.Adam(0.001), tw.optimizers.SGD(0.0))
    losses = gan.fit(images, batch_size=24, epochs=8, verbose=0).history["g_loss"]
    assert losses[-1] < 0.9 * losses[0]


def test_traced_and_eager_steps_give_the_same(script, images):
    histories = []
    for eagerly in (False, True):
        tw.keras.utils.set_random_seed(3)
        gan = script.DCGAN()
        optimizers = [tw.optimizers.Adam(0.0005, beta_1=0.5) for _ in range(2)]
        gan.compile(*optimizers, run_eagerly=eagerly)
        histories.append(gan.fit(images, batch_size=24, epochs=2, verbose=0).history)
    for name, traced in histories[0].items():
        np.testing.assert_allclose(traced, histories[1][name], rtol=1e-4)


def test_samples_are_drawn_every_few_epochs(script, gan, images, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(script, "draw", lambda path, images: drawn.append(path.name))
    gan.compile(*[tw.optimizers.Adam(0.001) for _ in range(2)])
    samples = script.Samples(tmp_path, every=2)
    gan.fit(images, batch_size=48, epochs=5, verbose=0, callbacks=[samples])
    assert drawn == ["dcgan_02.png", "dcgan_04.png"]


def test_samples_are_drawn_after_the_last_epoch(script, run, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    code, printed = run(script, "--epochs", "1", picture=True, images=400)
    path = tmp_path / "dcgan_01.png"
    assert code == 0 and f"wrote {path}" in printed
    assert len(np.unique(image.imread(path))) > 100


def test_ctrl_c_draws_what_was_reached(script, run, interrupted_fit, tmp_path):
    pytest.importorskip("matplotlib")
    interrupted_fit(3)
    code, printed = run(script, picture=True)
    assert code == 130 and "stopped after 0 epochs" in printed
    assert (tmp_path / "dcgan_00.png").is_file()


def test_a_folder_that_is_not_there_is_named(script, run, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(script, "--data", "no/such/folder")
    assert "--data no/such/folder" in capsys.readouterr().err
