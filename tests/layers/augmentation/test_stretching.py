"""`RandomHeight` and `RandomWidth`: sizes and pixels as in Keras, in models and data sets."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import Dense, GlobalAveragePooling2D, RandomHeight, RandomWidth

IMAGE = np.arange(16.0, dtype=np.float32).reshape(1, 4, 4, 1)


def test_one_axis_is_scaled_as_in_keras():
    higher = RandomHeight((0.5, 0.5))(IMAGE)[0, :, 0, 0]
    expected = [0, 2, 4.666667, 7.333334, 10, 12]
    np.testing.assert_allclose(higher, expected, rtol=1e-6)
    narrow = RandomWidth((-0.3, -0.3), "nearest", dtype="float16")(IMAGE)[0]
    assert narrow.dtype == tw.float16 and narrow[..., 0].numpy().tolist() == [
        [1, 3], [5, 7], [9, 11], [13, 15]
    ]  # fmt: skip
    assert RandomWidth((-0.5, -0.5), "area")(IMAGE)[0, 0, :, 0].numpy().tolist() == [
        0.5,
        2.5,
    ]


def test_every_call_draws_a_size_also_inside_of_a_function():
    layer = RandomHeight(0.2, seed=1)
    eager = [layer(tw.ones([2, 10, 10, 3])).shape[1] for _ in range(20)]
    layer = RandomHeight(0.2, seed=1)
    traced = tw.function(lambda x: layer(x, training=True))
    assert [traced(tw.ones([2, 10, 10, 3])).shape[1] for _ in range(20)] == eager
    assert set(eager) == {8, 9, 10, 11}
    assert layer(tw.ones([10, 10, 3]), training=False).shape == (10, 10, 3)


def test_a_model_trains_on_the_sizes_that_are_drawn():
    layers = [RandomHeight(0.3), RandomWidth(0.3), GlobalAveragePooling2D(), Dense(1)]
    model = tw.keras.Sequential([tw.keras.Input((8, 8, 3)), *layers])
    assert [x.output.shape for x in layers[:2]] == [
        (None, None, 8, 3),
        (None, None, None, 3),
    ]
    model.compile("sgd", "mse")
    history = model.fit(np.ones([8, 8, 8, 3]), np.ones([8, 1]), epochs=2, verbose=0)
    assert history.history["loss"][1] < history.history["loss"][0]


@pytest.mark.parametrize("factor", [-0.5, 5, (0.2, 0.1), (-2, 1), (0.1,)])
def test_a_wrong_factor_is_named(factor):
    with pytest.raises(ValueError, match="RandomWidth.*factor must be .*got"):
        RandomWidth(factor)


def test_images_must_keep_a_row():
    with pytest.raises(
        ValueError, match=r"RandomHeight.*must not be empty.*\(-1.0, -1.0\)"
    ):
        RandomHeight((-1.0, -1.0))(IMAGE)
