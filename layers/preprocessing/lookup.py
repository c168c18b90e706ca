"""`StringLookup` and `IntegerLookup`: map tokens to vocabulary indices, and back."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Sequence
from typing import Any

from tapewright.core.messages.argument_validation import one_of
from tapewright.core.typing import TensorLike

from .index_lookup import IndexLookup
from .vocabulary import IntegerTable
from .vocabulary_files import ASSET

__all__ = ["IntegerLookup", "StringLookup"]


class StringLookup(IndexLookup):
    """Map strings to their indices in a vocabulary, or indices back to strings.

    Special tokens come first: the mask token, then out-of-vocabulary (OOV) tokens. Pass
    ``vocabulary``, or call `adapt` to learn it from data. A traced function keeps the
    vocabulary of the time of its trace; `fit`, `evaluate` and `predict` pick up a new
    one.

    Args:
        max_tokens: Maximum number of indices, including the special tokens, or None.
        num_oov_indices: Number of indices for OOV strings; with more than one, a hash
            selects the index.
        mask_token: String with index 0, or None; output modes other than "int" ignore
            it.
        oov_token: String that represents OOV strings in `get_vocabulary` and in the
            outputs of ``invert``.
        vocabulary: List, array or tensor of strings, or the path of a file with one
            string per line; see `set_vocabulary`.
        idf_weights: Inverse document frequency per token, for "tf_idf" with a
            ``vocabulary``; see `set_vocabulary`.
        invert: If True, map indices to strings; only for "int".
        output_mode: "int" for indices; "one_hot", "multi_hot" or "count", as for
            `CategoryEncoding`; or "tf_idf" for counts times ``idf_weights``.
        pad_to_max_tokens: If True, vectors have ``max_tokens`` entries even for a
            smaller vocabulary.
        sparse: If True, return vectors as a `SparseTensor`; in traced functions only
            for "one_hot".
        encoding: Encoding with which `get_vocabulary` decodes strings.
        name: Name of the layer, unique by default.
        salt: Integer, or list of two integers, used as the key of SipHash for OOV
            strings; None for FarmHash.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[...]``. Outputs have the same shape for "int": int64, or strings with
        ``invert``. Otherwise they are ``[..., size]`` ("one_hot") or ``[batch, size]``,
        of dtype int64, or `keras.config.floatx` for "tf_idf". In a `RaggedTensor` or
        `SparseTensor`, the entries are looked up: "int" keeps the structure, modes that
        count return one vector per row.

    Raises:
        ValueError: If arguments are inconsistent, or the vocabulary is invalid; see
            `set_vocabulary`.
        RuntimeError: If the layer is called without a vocabulary.
        TypeError: If the layer is called with numbers.
        InvalidArgumentError: If a string is out of vocabulary and ``num_oov_indices``
            is 0.

    Example:
        >>> layer = keras.layers.StringLookup(vocabulary=["a", "b", "c"])
        >>> layer([["a", "c"], ["x", "b"]]).numpy()
        array([[1, 3],
               [0, 2]])
        >>> layer = keras.layers.StringLookup(output_mode="count")
        >>> layer.adapt([["a", "b", "b"]])
        >>> layer.get_vocabulary(), layer([["b", "x", "b"]]).numpy()
        (['[UNK]', 'b', 'a'], array([[1, 2, 0]]))
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: str | None = None,
        oov_token: str | None = "[UNK]",
        vocabulary: str | os.PathLike | Sequence[str] | TensorLike | None = None,
        idf_weights: Sequence[float] | TensorLike | None = None,
        invert: bool = False,
        output_mode: str = "int",
        pad_to_max_tokens: bool = False,
        sparse: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        salt: int | Sequence[int] | None = None,
        **kwargs: Any,
    ):
        super().__init__(
            max_tokens=max_tokens,
            num_oov_indices=num_oov_indices,
            mask_token=mask_token,
            oov_token=oov_token,
            vocabulary_dtype="string",
            vocabulary=vocabulary,
            idf_weights=idf_weights,
            invert=invert,
            output_mode=output_mode,
            pad_to_max_tokens=pad_to_max_tokens,
            sparse=sparse,
            name=name,
            salt=salt,
            **kwargs,
        )
        self.encoding: str = _known_encoding(self, encoding)

    def _tw_readable(self, token):
        try:
            return token.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{type(self).__name__}: tokens must be encoded in {self.encoding}, got "
                f"{token!r:.60} ({error.reason}); pass the encoding of the data"
            ) from None

    def _tw_decoded(self, lines):
        try:
            return [line.decode().encode(self.encoding) for line in lines]
        except UnicodeError as error:
            self._tw_refuse(f"{ASSET} must be text in UTF-8: {error}")

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["vocabulary_dtype"]
        return {**config, "encoding": self.encoding}


class IntegerLookup(IndexLookup):
    """Map integers to their indices in a vocabulary, or indices back to integers.

    Special tokens come first: the mask token, then out-of-vocabulary (OOV) tokens. Pass
    ``vocabulary``, or call `adapt` to learn it from data.

    Args:
        max_tokens: Maximum number of indices, including the special tokens, or None.
        num_oov_indices: Number of indices for OOV integers; with more than one,
            ``oov_method`` selects the index.
        mask_token: Integer with index 0, or None; output modes other than "int" ignore
            it.
        oov_token: Integer that represents OOV integers in `get_vocabulary` and in the
            outputs of ``invert``.
        vocabulary: List, array or tensor of integers, or the path of a file with one
            integer per line; see `set_vocabulary`.
        vocabulary_dtype: Only "int64".
        idf_weights: Inverse document frequency per token, for "tf_idf" with a
            ``vocabulary``; see `set_vocabulary`.
        invert: If True, map indices to integers; only for "int".
        output_mode: "int" for indices; "one_hot", "multi_hot" or "count", as for
            `CategoryEncoding`; or "tf_idf" for counts times ``idf_weights``.
        sparse: If True, return vectors as a `SparseTensor`; in traced functions only
            for "one_hot".
        pad_to_max_tokens: If True, vectors have ``max_tokens`` entries even for a
            smaller vocabulary.
        oov_method: Selection of an OOV index: "floormod" for the remainder of the
            integer, "farmhash" for a hash of its digits.
        salt: Integer, or list of two integers, used as the key of SipHash with
            "farmhash"; None for FarmHash.
        name: Name of the layer, unique by default.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        As for `StringLookup`, with integers in place of strings.

    Raises:
        ValueError: If arguments are inconsistent, or the vocabulary is invalid; see
            `set_vocabulary`.
        RuntimeError: If the layer is called without a vocabulary.
        InvalidArgumentError: If an integer is out of vocabulary and ``num_oov_indices``
            is 0.

    Example:
        >>> layer = keras.layers.IntegerLookup(vocabulary=[12, 36, 1138])
        >>> layer([[12, 1138], [7, 36]]).numpy()
        array([[1, 3],
               [0, 2]])
    """

    _tw_table_class = IntegerTable

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: int | None = None,
        oov_token: int | None = -1,
        vocabulary: str | os.PathLike | Sequence[int] | TensorLike | None = None,
        vocabulary_dtype: str = "int64",
        idf_weights: Sequence[float] | TensorLike | None = None,
        invert: bool = False,
        output_mode: str = "int",
        sparse: bool = False,
        pad_to_max_tokens: bool = False,
        oov_method: str = "floormod",
        salt: int | Sequence[int] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ):
        one_of(self, "vocabulary_dtype", vocabulary_dtype, ("int64",))
        super().__init__(
            max_tokens=max_tokens,
            num_oov_indices=num_oov_indices,
            mask_token=mask_token,
            oov_token=oov_token,
            vocabulary_dtype=vocabulary_dtype,
            vocabulary=vocabulary,
            idf_weights=idf_weights,
            invert=invert,
            output_mode=output_mode,
            sparse=sparse,
            pad_to_max_tokens=pad_to_max_tokens,
            oov_method=oov_method,
            salt=salt,
            name=name,
            **kwargs,
        )

    def _tw_parsed(self, lines):
        for number, line in enumerate(lines, 1):
            if re.fullmatch(rb"\s*[-+]?[0-9]+\s*", line) is None:
                self._tw_refuse(
                    f"each line of a vocabulary must be an integer, got {line!r:.60} in "
                    f"line {number}"
                )
        return list(map(int, lines))


def _known_encoding(layer: Any, value: Any) -> str:
    """Return ``encoding``.

    Raises:
        ValueError: If Python does not have a codec of this name.
    """
    try:
        codecs.lookup(value)
    except (LookupError, TypeError):
        name = type(layer).__name__
        raise ValueError(
            f"{name}: encoding must be a codec of Python, such as 'utf-8', got {value!r}"
        ) from None
    return value
