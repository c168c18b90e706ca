"""`StringLookup` and `IntegerLookup`: tokens of a vocabulary as integers, and back."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Sequence
from typing import Any

from tapewright.core.argument_validation import one_of
from tapewright.core.typing import TensorLike

from .index_lookup import IndexLookup
from .vocabulary import IntegerTable
from .vocabulary_files import ASSET

__all__ = ["IntegerLookup", "StringLookup"]


class StringLookup(IndexLookup):
    """Map strings to their indices in a vocabulary, which special tokens precede.

    Args: ``max_tokens``: the largest number of indices, special ones included;
    ``num_oov_indices``: the number of indices for strings out of the vocabulary (OOV);
    a hash selects one of several: FarmHash, or SipHash with a ``salt`` of one or two
    integers; ``mask_token``: the string with index 0, which modes other than "int" leave
    out; ``oov_token``: stands for OOV strings in `get_vocabulary` and in the outputs of
    ``invert``; ``vocabulary``, ``idf_weights``: see `set_vocabulary`; `adapt` computes
    them otherwise; ``invert``: map indices to strings; ``output_mode``: "int", or, as for
    `CategoryEncoding`, "one_hot", "multi_hot", "count", or "tf_idf", counts times
    ``idf_weights``; ``pad_to_max_tokens``: make vectors of ``max_tokens`` entries also
    for a smaller vocabulary; ``sparse``: vectors are a `SparseTensor`, in traced
    functions only for "one_hot"; ``encoding``: of the bytes that `get_vocabulary` decodes.

    Shapes: inputs ``[...]``; outputs the same, int64, or for "int" with ``invert``
    strings; in other modes ``[..., size]`` ("one_hot") or ``[batch, size]``, int64, or
    `floatx` ("tf_idf"). The entries of a `RaggedTensor` or `SparseTensor` are looked up:
    "int" keeps its rows or places, modes that count give a vector for each row.

    A traced function keeps the vocabulary that the layer had when it was traced; `fit`
    and its like notice a new one.

    Raises: ``ValueError`` for arguments that do not go together, and see
    `set_vocabulary`; in a call ``RuntimeError`` if there is no vocabulary,
    ``TypeError`` for numbers, ``InvalidArgumentError`` for strings out of the
    vocabulary if ``num_oov_indices`` is 0.

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
                f"{type(self).__name__}: the token {token!r:.60} is not {self.encoding}: "
                f"{error.reason}; give the encoding of the data"
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
    """Map integers to their indices in a vocabulary, which special tokens precede.

    Args: as for `StringLookup`, with integers for tokens; ``vocabulary_dtype``: "int64";
    ``oov_method``: selects one of several OOV indices, by the remainder of the integer
    ("floormod") or by a hash of its digits ("farmhash", with which ``salt`` may be given).

    Shapes, errors: those of `StringLookup`.

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
    """An argument ``encoding``. Raises: ``ValueError`` if Python does not know it."""
    try:
        codecs.lookup(value)
    except (LookupError, TypeError):
        name = type(layer).__name__
        raise ValueError(f"{name}: encoding {value!r} is not known") from None
    return value
