"""`tw.keras.random`: Keras' draws from the global stream, an int, a SeedGenerator."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import random

DRAWS = {
    "normal": lambda seed: random.normal((400,), 1.0, 2.0, seed=seed),
    "uniform": lambda seed: random.uniform((400,), -1.0, 3.0, seed=seed),
    "truncated_normal": lambda seed: random.truncated_normal((400,), 1.0, seed=seed),
    "randint": lambda seed: random.randint((400,), 0, 3, seed=seed),
    "categorical": lambda seed: random.categorical([[0.0, 0.0, 0.0]], 400, seed=seed),
    "gamma": lambda seed: random.gamma((400,), 1.0, seed=seed),
    "beta": lambda seed: random.beta((400,), 2.0, 2.0, seed=seed),
    "binomial": lambda seed: random.binomial((400,), 4, 0.25, seed=seed),
    "dropout": lambda seed: random.dropout(np.ones(400, "float32"), 0.3, seed=seed),
    "shuffle": lambda seed: random.shuffle(np.arange(400, dtype="float32"), seed=seed),
}
MEANS = {"beta": 0.5, "shuffle": 199.5}  # of all others it is 1


@pytest.mark.parametrize("name", DRAWS)
def test_an_int_gives_the_same_draw_again(name):
    first, again = DRAWS[name](3).numpy(), DRAWS[name](3).numpy()
    assert (first == again).all() and (first != DRAWS[name](4).numpy()).any()


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_generator_goes_on_eager_and_traced(name):
    generator = random.SeedGenerator(5)
    eager = [DRAWS[name](generator).numpy() for _ in range(2)]
    assert (eager[0] != eager[1]).any()
    generator = random.SeedGenerator(5)
    traced = tw.function(lambda: DRAWS[name](generator))
    for expected in eager:
        np.testing.assert_allclose(traced(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", DRAWS)
def test_draws_have_their_mean(name):
    expected = MEANS.get(name, 1.0)
    found = np.mean([DRAWS[name](seed).numpy().mean() for seed in range(8)])
    assert abs(found - expected) < 0.1 * max(1, expected / 100)


def test_dtypes_are_those_of_keras():
    assert random.randint((2,), 0, 9).dtype == "int32"
    assert random.randint((2,), 0, 9, dtype="uint8").dtype == "uint8"
    assert random.categorical([[0.0, 0.0]], 2).dtype == "int32"
    assert random.binomial((2,), 3, 0.5).dtype == "float32"
    assert random.normal((2,), dtype="float64").dtype == "float64"


def test_shuffle_moves_whole_columns():
    x = np.arange(12.0).reshape(2, 6)
    found = random.shuffle(x, axis=1, seed=1).numpy()
    assert sorted(found[0]) == list(x[0]) and (found[1] - found[0] == 6).all()


def test_the_state_of_a_generator_is_its_next_draw():
    generator = random.SeedGenerator(2)
    state = generator.next().numpy()
    assert (generator.state.numpy() == state + [0, 1]).all()
    copy = random.SeedGenerator.from_config(generator.get_config())
    assert copy.name == generator.name and (copy.state.numpy() == state).all()


def test_a_layer_draws_anew_at_each_call():
    class Noise(tw.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.seed_generator = random.SeedGenerator(1)

        def call(self, inputs):
            return inputs + random.normal(
                tw.keras.ops.shape(inputs), seed=self.seed_generator
            )

    layer = Noise()
    first, second = layer.call(tw.zeros([3])), layer.call(tw.zeros([3]))
    assert (first.numpy() != second.numpy()).any()
    inputs = tw.keras.Input((3,))
    model = tw.keras.Model(inputs, layer(inputs))
    found = [model.predict(np.zeros((2, 3), "float32"), verbose=0) for _ in range(2)]
    assert (found[0] != found[1]).any()


def test_a_seed_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="seed .*None"):
        random.normal((2,), seed="one")
    with pytest.raises(ValueError, match="seed .*None"):
        random.SeedGenerator(1.5)
    with pytest.raises(ValueError, match=r"rate .*0.*1.*got 1\.5"):
        random.dropout([1.0], 1.5)


def test_an_axis_to_shuffle_along_exists():
    with pytest.raises(ValueError, match="shuffle: axis .*-1 to 0.*got 3"):
        random.shuffle([1, 2], axis=3)
