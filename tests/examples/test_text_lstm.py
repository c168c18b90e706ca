"""The two models are one, reading step by step or at once; what is learnt is written."""

import re

import numpy as np
import pytest

import tapewright as tw


@pytest.fixture
def models(script):
    tw.keras.utils.set_random_seed(0)
    return script.models()


def test_letters_and_numbers_stand_for_each_other(script):
    numbers = script.encode("Owl, Owl")
    assert "".join(script.ALPHABET[n] for n in numbers) == "Owl, Owl"
    assert numbers.max() < len(script.ALPHABET)


def test_each_letter_of_a_span_is_to_be_followed_by_the_next(script):
    letters, following = script.spans()
    assert letters.shape == following.shape == (len(letters), script.SPAN)
    np.testing.assert_array_equal(letters[:, 1:], following[:, :-1])


def test_read_letter_by_letter_the_chances_are_those_read_at_once(script, models):
    reader, writer = models
    letters = script.encode("The Owl and the Pussy-cat")[None]
    expected = reader(letters).numpy()
    state, found = [tw.zeros([1, script.UNITS])] * 2, []
    for i in range(letters.shape[1]):
        logits, state = writer([letters[:, i : i + 1], state])
        found.append(logits.numpy())
    np.testing.assert_allclose(np.concatenate(found, 1), expected, atol=1e-5)


def test_both_models_have_the_same_weights(models):
    reader, writer = models
    assert {id(w) for w in reader.weights} == {id(w) for w in writer.weights}


def test_what_is_written_goes_on_from_the_opening(script, models):
    text = script.write(models[1], "The Owl", 20)
    assert text.startswith("The Owl") and len(text) == 27
    assert set(text) <= set(script.ALPHABET)


def test_words_count_once_and_only_those_of_the_poems(script):
    assert script.share_of_words("Owl, owl! moon xyzzy") == pytest.approx(2 / 3)


def test_it_learns_and_writes(script, run):
    code, printed = run(script, "--epochs", "5")
    guessed = int(re.findall(r"epoch 5, accuracy (\d+)%", printed)[0])
    assert code == 0 and guessed > 20  # one letter in six is a space
    assert re.search(r"\d+% of the words are in the poems", printed)


def test_it_draws_the_curves(script, run, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    _, printed = run(script, "--epochs", "1", picture=True)
    path = tmp_path / "text_lstm.png"
    assert f"wrote {path}" in printed
    assert len(np.unique(image.imread(path))) > 100


def test_ctrl_c_shows_what_was_learnt(script, run, interrupted_fit, tmp_path):
    interrupted_fit(2)
    code, printed = run(script, picture=True)
    assert code == 130 and script.OPENING in printed
    assert not list(tmp_path.iterdir())
