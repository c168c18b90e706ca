"""`keras.preprocessing`: windows of series, pairs of words, words as integers; as in Keras."""

import json
import random

import numpy as np
import pytest

from tapewright import Sequential
from tapewright.keras.preprocessing.sequence import (
    TimeseriesGenerator,
    make_sampling_table,
    skipgrams,
)
from tapewright.keras.preprocessing.text import (
    Tokenizer,
    hashing_trick,
    one_hot,
    tokenizer_from_json,
)
from tapewright.layers import Dense, Flatten


def test_skipgrams_are_those_of_keras():  # 3.15, with the same state of `random`
    random.seed(1)
    pairs = [[1, 3], [1, 2], [2, 1], [2, 1]], [0, 1, 1, 0]
    assert skipgrams([3, 0, 1, 2], 5, window_size=1) == pairs
    random.seed(1)
    table = [0, 1, 1, 1, 0.1]
    options = {"negative_samples": 0.5, "shuffle": False, "categorical": True}
    pairs = [[3, 4], [1, 4], [3, 1]], [[0, 1], [0, 1], [1, 0]]
    found = skipgrams([3, 4, 1], 5, window_size=1, sampling_table=table, **options)
    assert found == pairs
    pairs = [[1, 4], [3, 4], [4, 1], [4, 3]], [1, 1, 1, 1]
    assert skipgrams([3, 4, 1], 5, window_size=1, negative_samples=0, seed=3) == pairs
    assert skipgrams([3, 4, 1], 5, seed=3) == skipgrams([3, 4, 1], 5, seed=3)
    wanted = [0.03152248, 0.03152248, 0.05475973, 0.07415564]
    np.testing.assert_allclose(make_sampling_table(4, 1e-3), wanted, 1e-6)


def test_windows_of_a_series_come_with_the_targets_behind_them():
    data = np.arange(24.0).reshape(12, 2)
    options = {"sampling_rate": 2, "stride": 3, "batch_size": 2}
    series = TimeseriesGenerator(data, np.arange(12), 4, **options)
    assert len(series) == 2
    samples, targets = series[0]
    np.testing.assert_array_equal(samples, [data[0:4:2], data[3:7:2]])
    np.testing.assert_array_equal(targets, [4, 7])
    assert series[1][1].tolist() == [10]
    back = TimeseriesGenerator(data, np.arange(12), 3, end_index=5, reverse=True)
    np.testing.assert_array_equal(back[0][0][0], data[2::-1])
    drawn = TimeseriesGenerator(data, np.arange(12), 3, shuffle=True, batch_size=4)[0]
    assert drawn[0].shape == (4, 3, 2) and drawn[1].min() >= 3
    with pytest.raises(ValueError, match="same length, got 12 and 5"):
        TimeseriesGenerator(data, np.arange(5), 3)
    with pytest.raises(ValueError, match="no window fits"):
        TimeseriesGenerator(data, np.arange(12), 12)
    model = Sequential([Flatten(), Dense(1)])
    model.compile("sgd", "mse")
    assert len(model.predict(back, verbose=0)) == 3
    model.fit(back, verbose=0)


TEXTS = ["The tape, the op.", "An op: the tape!", ["The", "Ops"]]
TOKENIZER = {  # as Keras 3.15 writes it
    "class_name": "Tokenizer",
    "config": {
        "num_words": 5,
        "filters": '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n',
        "lower": True,
        "split": " ",
        "char_level": False,
        "oov_token": "?",
        "document_count": 3,
        "word_counts": '{"the": 4, "tape": 2, "op": 2, "an": 1, "ops": 1}',
        "word_docs": '{"the": 3, "tape": 2, "op": 2, "an": 1, "ops": 1}',
        "index_docs": '{"2": 3, "3": 2, "4": 2, "5": 1, "6": 1}',
        "index_word": '{"1": "?", "2": "the", "3": "tape", "4": "op", "5": "an", "6": "ops"}',
        "word_index": '{"?": 1, "the": 2, "tape": 3, "op": 4, "an": 5, "ops": 6}',
    },
}


def test_a_tokenizer_is_that_of_keras():
    fitted = Tokenizer(num_words=5, oov_token="?")
    fitted.fit_on_texts(TEXTS)
    assert json.loads(fitted.to_json()) == TOKENIZER
    for tokenizer in (fitted, tokenizer_from_json(json.dumps(TOKENIZER))):
        found = tokenizer.texts_to_sequences(["The ops; an op", ["TAPE", "x"]])
        assert found == [[2, 1, 1, 4], [3, 1]]
        assert tokenizer.sequences_to_texts([[2, 4, 7, 99], []]) == ["the op ? ?", ""]
        for mode, row in {
            "binary": [0, 0, 1, 0, 1],
            "count": [0, 0, 2, 0, 1],
            "freq": [0, 0, 0.5, 0, 0.25],
            "tfidf": [0, 0, 0.947512, 0, 0.693147],
        }.items():
            matrix = tokenizer.sequences_to_matrix([[2, 2, 4, 9], []], mode)
            np.testing.assert_allclose(matrix, [row, [0] * 5], atol=1e-6)
        tokenizer.fit_on_sequences([[3, 3], [4]])
        assert (tokenizer.index_docs[3], tokenizer.document_count) == (3, 5)


def test_words_of_a_tokenizer_are_characters_lists_or_those_of_an_analyzer():
    characters = Tokenizer(char_level=True)
    characters.fit_on_texts(["Aba"])
    assert characters.word_index == {"a": 1, "b": 2}
    # No oov_token: x vanishes.
    assert characters.texts_to_sequences(["bax"]) == [[2, 1]]
    analyzed = Tokenizer(analyzer=lambda text: text.split("|"))
    analyzed.fit_on_texts(["A|b|b"])
    assert analyzed.word_index == {"b": 1, "A": 2}
    assert hashing_trick("the tape, the ops", 100, "md5") == [51, 80, 51, 63]
    assert one_hot("tape op", 9) == [hash(word) % 8 + 1 for word in ("tape", "op")]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda t: t.texts_to_matrix(["a"]), "pass num_words, or call fit_on_texts"),
        (
            lambda t: t.texts_to_matrix(["a"], "sum"),
            "mode must be 'binary', .* got 'sum'",
        ),
        (lambda t: hashing_trick("a", 9, "sha"), "hash_function must be .* got 'sha'"),
    ],
)
def test_bad_calls_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call(Tokenizer())
    with pytest.raises(ValueError, match="'tfidf' needs fit_on_texts"):
        Tokenizer(9).sequences_to_matrix([[1]], "tfidf")
