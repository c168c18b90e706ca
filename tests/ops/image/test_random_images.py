"""Images changed at random: what may come, how often, and what a seed does."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import image

X = np.linspace(0.1, 0.9, 60, dtype="float32").reshape(1, 4, 5, 3)
# Name of a change, the arguments that bound it, and the same change by a number.
BOUNDED = [
    ("brightness", (0.3,), image.adjust_brightness, -0.3, 0.3),
    ("contrast", (0.5, 1.5), image.adjust_contrast, 0.5, 1.5),
    ("hue", (0.2,), image.adjust_hue, -0.2, 0.2),
    ("saturation", (0.5, 1.5), image.adjust_saturation, 0.5, 1.5),
]


def calls(name, *args):
    """The function that takes no seed, one seed, and two integers."""
    plain, stateless = (
        getattr(image, f"{prefix}random_{name}") for prefix in ("", "stateless_")
    )
    return (
        lambda x: plain(x, *args),
        lambda x: plain(x, *args, seed=5),
        lambda x: stateless(x, *args, seed=[1, 2]),
    )


CALLS = [(name, calls(name, *args)) for name, args, *_ in BOUNDED]
CALLS += [(f"flip_{way}", calls(f"flip_{way}")) for way in ("left_right", "up_down")]
CALLS += [("crop", calls("crop", (8, 2, 3, 3)))]
MANY = np.concatenate([X + 0.01 * i for i in range(8)])


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
@pytest.mark.parametrize(
    "name, three", CALLS, ids=lambda x: x if type(x) is str else ""
)
def test_draws_go_on_unless_they_are_stateless(name, three, wrap):
    free, seeded, stateless = map(wrap, three)
    for call in (free, seeded):
        tw.random.set_seed(0)
        drawn = [call(MANY).numpy() for _ in range(6)]
        assert any([(drawn[0] != other).any() for other in drawn[1:]])
    tw.random.set_seed(0)
    np.testing.assert_allclose(three[1](MANY), drawn[0], rtol=1e-5, atol=1e-6)
    first = stateless(MANY)
    assert first.dtype == "float32"
    np.testing.assert_array_equal(first, stateless(MANY))
    np.testing.assert_allclose(first, three[2](MANY), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name, args, change, low, high", BOUNDED)
def test_the_change_is_one_between_the_bounds(name, args, change, low, high):
    draw = getattr(image, f"stateless_random_{name}")
    ends = [change(X, number).numpy() for number in (low, high)]
    spread = np.abs(ends[1] - ends[0]).sum()
    found = [draw(X, *args, seed=[i, 0]).numpy() for i in range(40)]
    away = [np.abs(x - ends[0]).sum() / spread for x in found]
    assert 0 <= min(away) < 0.2 and 0.8 < max(away) <= 1.4
    draws = [tw.random.stateless_uniform((), [i, 0], low, high) for i in range(40)]
    for number, x in zip(draws, found):  # the draw of `tw.random`
        np.testing.assert_allclose(change(X, number), x, atol=1e-6)


def test_every_image_is_flipped_or_not_on_its_own():
    x = np.tile(np.arange(6).reshape(1, 2, 3, 1), (400, 1, 1, 1)).astype("uint8")
    for way, turned in (("left_right", x[:, :, ::-1]), ("up_down", x[:, ::-1])):
        found = getattr(image, f"stateless_random_flip_{way}")(x, [1, 2]).numpy()
        flipped = (found == turned).all((1, 2, 3))
        assert ((found == x).all((1, 2, 3)) ^ flipped).all()
        assert 150 < flipped.sum() < 250 and found.dtype == "uint8"
    alone = [int(image.random_flip_left_right(x[0])[0, 0, 0]) for _ in range(40)]
    assert set(alone) == {0, 2}


def test_crops_come_from_everywhere():
    x = np.arange(5 * 4).reshape(5, 4)
    firsts = {int(image.random_crop(x, (4, 2))[0, 0]) for _ in range(80)}
    assert firsts == {0, 1, 2, 4, 5, 6}
    block = image.random_crop(x, (4, 4)).numpy()
    assert (np.diff(block[:, 0]) == 4).all() and (np.diff(block) == 1).all()
    with tw.GradientTape() as tape:
        v = tw.constant(X)
        tape.watch(v)
        y = image.stateless_random_crop(v, (1, 2, 2, 3), [1, 2])
    assert tape.gradient(y, v).numpy().sum() == 12


def test_data_are_changed_anew_in_each_epoch():
    data = tw.data.Dataset.from_tensor_slices(MANY)
    data = data.map(lambda x: image.random_crop(image.random_hue(x, 0.4), (2, 3, 3)))
    first, second = (np.stack([x.numpy() for x in data]) for _ in range(2))
    assert first.shape == (8, 2, 3, 3) and (first != second).any()


@pytest.mark.parametrize("call, words", [
    (lambda: image.random_brightness(X, -0.1), "max_delta must be 0 or more"),
    (lambda: image.random_hue(X, 0.6), "max_delta .*0 to 0.5, got 0.6"),
    (lambda: image.random_contrast(X, 0.5, 0.5), "below upper"),
    (lambda: image.stateless_random_saturation(X, -1, 0.5, [1, 2]), "lower must be 0"),
    (lambda: image.stateless_random_hue(X, 0.1, 5), "seed must be two integers"),
    (lambda: image.random_crop(X, (1, 5, 5, 3)), "size .*from 0 to its size"),
    (lambda: image.random_crop(X, (1, 3)), "one number for each axis"),
    (lambda: image.random_flip_up_down(X[0, 0]), "height, width"),
])  # fmt: skip
def test_a_wrong_argument_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
