"""`keras.preprocessing.text`: encode words of texts as integers, in plain Python.

For new code, prefer `TextVectorization`, a layer that models contain and save.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from tapewright.serialization.constructor_call import constructor_call
from tapewright.serialization.load_errors import load_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

__all__ = [
    "Tokenizer",
    "hashing_trick",
    "one_hot",
    "text_to_word_sequence",
    "tokenizer_from_json",
]

_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'
_MODES = ("binary", "count", "freq", "tfidf")
# Of a tokenizer's config, each as JSON, where all keys are texts
_TABLES = ("word_counts", "word_docs", "index_docs", "index_word", "word_index")


def text_to_word_sequence(
    input_text: str, filters: str = _FILTERS, lower: bool = True, split: str = " "
) -> list[str]:
    """Split a text into words.

    Args:
        input_text: Text to split.
        filters: Characters that separate words, like ``split``.
        lower: If True, convert the text to lowercase.
        split: Separator of words.

    Example:
        >>> keras.preprocessing.text.text_to_word_sequence("To be, or not to be!")
        ['to', 'be', 'or', 'not', 'to', 'be']
    """
    text = input_text.lower() if lower else input_text
    text = text.translate(str.maketrans(dict.fromkeys(filters, split)))
    return [word for word in text.split(split) if word]


def one_hot(
    input_text: str,
    n: int,
    filters: str = _FILTERS,
    lower: bool = True,
    split: str = " ",
    analyzer: Callable[[str], Iterable[str]] | None = None,
) -> list[int]:
    """Encode the words of a text as integers from 1 to ``n - 1``, by Python's `hash`.

    Different words may share an integer. The result differs between processes unless
    the environment variable ``PYTHONHASHSEED`` is set; `hashing_trick` with
    ``hash_function="md5"`` is stable.

    Args:
        input_text: Text to encode.
        n: Size of the vocabulary.
        filters: Characters that separate words, like ``split``.
        lower: If True, convert the text to lowercase.
        split: Separator of words.
        analyzer: Function that splits a text into words, instead of
            `text_to_word_sequence`, or None.

    Example:
        >>> first, second = keras.preprocessing.text.one_hot("tape tape", 50)
        >>> first == second
        True
    """
    return hashing_trick(input_text, n, hash, filters, lower, split, analyzer)


def hashing_trick(
    text: str,
    n: int,
    hash_function: Callable[[str], int] | str | None = None,
    filters: str = _FILTERS,
    lower: bool = True,
    split: str = " ",
    analyzer: Callable[[str], Iterable[str]] | None = None,
) -> list[int]:
    """Encode the words of a text as integers ``hash(word) % (n - 1) + 1``.

    Different words may share an integer.

    Args:
        text: Text to encode.
        n: Size of the vocabulary.
        hash_function: "md5", a function of a word, or None for Python's `hash`.
        filters: Characters that separate words, like ``split``.
        lower: If True, convert the text to lowercase.
        split: Separator of words.
        analyzer: Function that splits a text into words, instead of
            `text_to_word_sequence`, or None.

    Raises:
        ValueError: If ``hash_function`` is invalid.

    Example:
        >>> keras.preprocessing.text.hashing_trick("the tape, the ops", 100, "md5")
        [51, 80, 51, 63]
    """
    if hash_function is None:
        hash_function = hash
    elif hash_function == "md5":
        hash_function = _md5
    if not callable(hash_function):
        raise ValueError(
            f'hashing_trick: hash_function must be "md5", a function or None, got '
            f"{hash_function!r}"
        )
    if analyzer is None:
        words: Iterable[str] = text_to_word_sequence(text, filters, lower, split)
    else:
        words = analyzer(text)
    return [hash_function(word) % (n - 1) + 1 for word in words]


def _md5(word):
    return int(hashlib.md5(word.encode(), usedforsecurity=False).hexdigest(), 16)


class Tokenizer:
    """Encode texts as lists of integers: 1 for the most frequent word, 2 for the next.

    `fit_on_texts` counts the words. No word is encoded as 0, which pads sequences. A
    text may also be a list of words.

    Args:
        num_words: Words encoded as this integer or a larger one are dropped; None keeps
            all.
        filters: Characters that separate words, like ``split``.
        lower: If True, convert the text to lowercase.
        split: Separator of words.
        char_level: If True, encode characters instead of words.
        oov_token: Word, encoded as 1, that replaces unknown and dropped words; None
            omits them.
        analyzer: Function that splits a text into words, instead of
            `text_to_word_sequence`, or None.
        document_count: Number of texts counted so far.

    Attributes:
        word_index: Dict from words to integers.
        index_word: Dict from integers to words.
        word_counts: Number of occurrences of each word.
        word_docs: Number of texts with each word.
        index_docs: Number of texts with each integer.

    Example:
        >>> tokenizer = keras.preprocessing.text.Tokenizer(num_words=4, oov_token="?")
        >>> tokenizer.fit_on_texts(["The tape, the op.", "An op"])
        >>> tokenizer.word_index
        {'?': 1, 'the': 2, 'op': 3, 'tape': 4, 'an': 5}
        >>> tokenizer.texts_to_sequences(["The op an sich"])
        [[2, 3, 1, 1]]
        >>> tokenizer.texts_to_matrix(["the op the"], mode="count")
        array([[0., 0., 2., 1.]])
    """

    def __init__(
        self,
        num_words: int | None = None,
        filters: str = _FILTERS,
        lower: bool = True,
        split: str = " ",
        char_level: bool = False,
        oov_token: str | None = None,
        analyzer: Callable[[str], Iterable[str]] | None = None,
        *,
        document_count: int = 0,
    ):
        self.num_words = num_words
        self.filters = filters
        self.lower = lower
        self.split = split
        self.char_level = char_level
        self.oov_token = oov_token
        self.analyzer = analyzer
        self.document_count = document_count
        self.word_counts: Counter[str] = Counter()
        self.word_docs: Counter[str] = Counter()
        self.index_docs: Counter[int] = Counter()
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    __repr__ = constructor_call

    def _words(self, text):
        if isinstance(text, list):
            return [word.lower() for word in text] if self.lower else text
        if self.char_level:
            return text.lower() if self.lower else text
        if self.analyzer is not None:
            return self.analyzer(text)
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Iterable[str | list[str]]) -> None:
        """Count the words of texts, in addition to previous texts, and renumber the words.

        Args:
            texts: Texts, or lists of words.
        """
        for text in texts:
            words = list(self._words(text))
            self.document_count += 1
            self.word_counts.update(words)
            self.word_docs.update(list(dict.fromkeys(words)))
        ordered = [word for word, _ in self.word_counts.most_common()]
        if self.oov_token is not None:
            ordered.insert(0, self.oov_token)
        self.word_index = {word: index for index, word in enumerate(ordered, 1)}
        self.index_word = {index: word for word, index in self.word_index.items()}
        for word, count in self.word_docs.items():
            self.index_docs[self.word_index[word]] = count

    def fit_on_sequences(self, sequences: Sequence[Iterable[int]]) -> None:
        """Count the sequences that contain each integer, as needed for the mode "tfidf".

        Args:
            sequences: Lists of integers.
        """
        self.document_count += len(sequences)
        for sequence in sequences:
            self.index_docs.update(set(sequence))

    def _left_out(self, index):
        return index is None or (self.num_words and index >= self.num_words)

    def texts_to_sequences(self, texts: Iterable[str | list[str]]) -> list[list[int]]:
        """Encode texts as lists of integers.

        Args:
            texts: Texts, or lists of words.
        """
        return list(self.texts_to_sequences_generator(texts))

    def texts_to_sequences_generator(
        self, texts: Iterable[str | list[str]]
    ) -> Iterator[list[int]]:
        """Encode texts one by one, see `texts_to_sequences`.

        Args:
            texts: Texts, or lists of words.
        """
        unknown = self._unknown()
        for text in texts:
            indices = [self.word_index.get(word) for word in self._words(text)]
            indices = [unknown if self._left_out(index) else index for index in indices]
            yield [index for index in indices if index is not None]

    def sequences_to_texts(self, sequences: Iterable[Iterable[int]]) -> list[str]:
        """Decode sequences of integers to texts, with spaces between words.

        Args:
            sequences: Lists of integers.
        """
        return list(self.sequences_to_texts_generator(sequences))

    def sequences_to_texts_generator(
        self, sequences: Iterable[Iterable[int]]
    ) -> Iterator[str]:
        """Decode sequences one by one, see `sequences_to_texts`.

        Args:
            sequences: Lists of integers.
        """
        unknown = self.index_word.get(self._unknown())
        for sequence in sequences:
            words = [
                unknown
                if self._left_out(index)
                else self.index_word.get(index, unknown)
                for index in sequence
            ]
            yield " ".join(word for word in words if word is not None)

    def _unknown(self):
        """Return the integer of unknown or dropped words, or None if they are omitted."""
        return None if self.oov_token is None else self.word_index.get(self.oov_token)

    def texts_to_matrix(
        self, texts: Iterable[str | list[str]], mode: str = "binary"
    ) -> np.ndarray:
        """Encode texts as rows of a matrix, see `sequences_to_matrix`.

        Args:
            texts: Texts, or lists of words.
            mode: "binary", 1 for an integer that occurs; "count"; "freq", the count
                divided by the length of the sequence; or "tfidf", ``(1 + log(count)) *
                log(1 + texts / (1 + texts with it))``.
        """
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode=mode)

    def sequences_to_matrix(
        self, sequences: Sequence[Sequence[int]], mode: str = "binary"
    ) -> np.ndarray:
        """Encode sequences as rows of a matrix of word statistics, one column per integer.

        Args:
            sequences: Lists of integers.
            mode: "binary", 1 for an integer that occurs; "count"; "freq", the count
                divided by the length of the sequence; or "tfidf", ``(1 + log(count)) *
                log(1 + texts / (1 + texts with it))``.

        Shapes:
            Result ``[len(sequences), num_words]``; without ``num_words``, one column
            more than there are words.

        Raises:
            ValueError: If ``mode`` is unknown, or texts that it needs have not been
                counted.
        """
        if mode not in _MODES:
            raise ValueError(
                f"Tokenizer: mode must be {', '.join(map(repr, _MODES))}, got {mode!r}"
            )
        if not self.num_words and not self.word_index:
            raise ValueError("Tokenizer: pass num_words, or call fit_on_texts first")
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Tokenizer: mode 'tfidf' needs fit_on_texts first")
        matrix = np.zeros((len(sequences), self.num_words or len(self.word_index) + 1))
        for row, sequence in zip(matrix, sequences, strict=True):
            counts = Counter(index for index in sequence if index < len(row))
            indices = list(counts)
            count = np.array([counts[index] for index in indices], float)
            if mode == "binary":
                row[indices] = 1
            elif mode == "count":
                row[indices] = count
            elif mode == "freq":
                row[indices] = count / max(len(sequence), 1)
            else:
                docs = np.array([self.index_docs.get(index, 0) for index in indices])
                idf = np.log(1 + self.document_count / (1 + docs))
                row[indices] = (1 + np.log(count)) * idf
        return matrix

    def get_config(self) -> dict[str, Any]:
        """Return the arguments except ``analyzer``, and the word tables as JSON."""
        names = (
            "num_words filters lower split char_level oov_token document_count".split()
        )
        config = {name: getattr(self, name) for name in names}
        return config | {name: json.dumps(getattr(self, name)) for name in _TABLES}

    def to_json(self, **kwargs: Any) -> str:
        """Return the config as JSON, for `tokenizer_from_json`.

        Args:
            **kwargs: Arguments of `json.dumps`.
        """
        config = {"class_name": type(self).__name__, "config": self.get_config()}
        return json.dumps(config, **kwargs)


def tokenizer_from_json(json_string: str) -> Tokenizer:
    """Return the tokenizer of `Tokenizer.to_json`, from here or from Keras.

    It has no ``analyzer``.

    Args:
        json_string: JSON from `Tokenizer.to_json`.

    Raises:
        ValueError: If the JSON is invalid.

    Example:
        >>> tokenizer = keras.preprocessing.text.Tokenizer()
        >>> tokenizer.fit_on_texts(["a tape"])
        >>> copy = keras.preprocessing.text.tokenizer_from_json(tokenizer.to_json())
        >>> copy.texts_to_sequences(["tape"])
        [[2]]
    """
    with load_errors("tokenizer_from_json", Exception):
        config = json.loads(json_string)["config"]
        tables = {name: json.loads(config.pop(name)) for name in _TABLES}
        tokenizer = Tokenizer(**config)
        for name in ("word_counts", "word_docs", "word_index"):
            getattr(tokenizer, name).update(tables[name])
        for name in ("index_docs", "index_word"):
            by_index = {int(i): entry for i, entry in tables[name].items()}
            getattr(tokenizer, name).update(by_index)
    return tokenizer
