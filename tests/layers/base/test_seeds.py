"""`SeedGenerator`: seeds that go on, configs."""

import numpy as np
import pytest

from tapewright import keras, layers
from tapewright.keras.random import SeedGenerator
from tapewright.layers import initializers

RANDOM = [
    initializers.RandomNormal, initializers.RandomUniform, initializers.TruncatedNormal,
    initializers.Orthogonal, initializers.VarianceScaling, initializers.GlorotUniform,
    initializers.GlorotNormal, initializers.HeNormal, initializers.HeUniform,
    initializers.LecunNormal, initializers.LecunUniform,
]  # fmt: skip


@pytest.mark.parametrize("cls", RANDOM)
def test_a_seed_generator_goes_on_from_call_to_call(cls):
    first, again = [cls(seed=SeedGenerator(3)) for _ in range(2)]
    a, b = first((4, 3)).numpy(), first((4, 3)).numpy()
    assert not np.array_equal(a, b)
    np.testing.assert_array_equal(again((4, 3)), a)
    np.testing.assert_array_equal(again((4, 3)), b)
    assert first((4, 3), dtype="float64").dtype == "float64"


@pytest.mark.parametrize("cls", RANDOM)
def test_a_seed_generator_is_in_the_config(cls):
    config = cls(seed=SeedGenerator(3, name="s")).get_config()
    assert config["seed"] == {
        "module": "keras.random", "class_name": "SeedGenerator",
        "config": {"seed": 3, "name": "s"}, "registered_name": None,
    }  # fmt: skip
    twin = initializers.deserialize(initializers.serialize(cls.from_config(config)))
    assert isinstance(twin.seed, SeedGenerator)
    np.testing.assert_array_equal(twin((4, 3)), cls(seed=SeedGenerator(3))((4, 3)))


def test_a_seed_generator_comes_back_from_its_own_config():
    made = SeedGenerator(3, name="s")
    config = keras.saving.serialize_keras_object({"seed": made})
    twin = keras.saving.deserialize_keras_object(config)["seed"]
    assert (twin.seed, twin.name) == (3, "s")
    draws = [keras.random.normal((3,), seed=seed) for seed in (twin, made)]
    np.testing.assert_array_equal(*draws)


def test_a_seed_generator_without_a_seed_follows_set_random_seed():
    def draws():
        made = [SeedGenerator(), SeedGenerator(None)]
        return made, [keras.random.normal((3,), seed=g).numpy() for g in made]

    keras.utils.set_random_seed(3)
    made, first = draws()
    assert not np.array_equal(*first)
    keras.utils.set_random_seed(3)
    np.testing.assert_array_equal(draws()[1], first)
    keras.utils.set_random_seed(4)
    assert not np.array_equal(draws()[1][0], first[0])
    twin = SeedGenerator.from_config(made[0].get_config())
    np.testing.assert_array_equal(keras.random.normal((3,), seed=twin), first[0])


@pytest.mark.parametrize("seed", ["3", 1.5, True, [3]])
def test_seeds_of_other_kinds_are_refused(seed):
    for make in (initializers.RandomNormal, initializers.GlorotUniform):
        with pytest.raises(ValueError, match="seed .*SeedGenerator"):
            make(seed=seed)
    with pytest.raises(ValueError, match="Dropout: seed must be an integer"):
        layers.Dropout(0.5, seed=seed)


def test_noisy_layers_draw_from_a_seed_generator():
    x = np.ones((2, 3, 4), "float32")
    for make in (
        lambda seed: layers.Dropout(0.5, seed=seed),
        lambda seed: layers.SpatialDropout1D(0.5, seed=seed),
        lambda seed: layers.GaussianNoise(0.5, seed=seed),
        lambda seed: layers.GaussianDropout(0.5, seed=seed),
        lambda seed: layers.AlphaDropout(0.5, seed=seed),
    ):
        layer = make(SeedGenerator(1))
        twin = type(layer).from_config(layer.get_config())
        a, b = [layer(x, training=True).numpy() for _ in range(2)]
        assert not np.array_equal(a, b)
        np.testing.assert_array_equal(twin(x, training=True), a)
    shared = SeedGenerator(2)
    first, second = layers.Dropout(0.5, seed=shared), layers.Dropout(0.5, seed=shared)
    a, b = first(x, training=True), second(x, training=True)
    assert not np.array_equal(a, b)
