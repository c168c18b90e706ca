"""`TextVectorization`: tokenize text and map it to token indices or counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Self

from tapewright.compiler.tracing.tracer import fall_back
from tapewright.core import dtypes
from tapewright.core.errors import ShapeError
from tapewright.core.interpreters import active_tracer, converted
from tapewright.core.messages.argument_validation import one_of, whole
from tapewright.core.names.reserved_names import Replaceable
from tapewright.core.settings.floatx import floatx
from tapewright.core.tensor import Tensor
from tapewright.core.typing import Shape, TensorLike
from tapewright.ops.array.joining import pad
from tapewright.ops.array.shape import expand_dims, squeeze
from tapewright.ops.ragged.ragged_tensor import RaggedTensor
from tapewright.ops.strings.characters import lower, strip_punctuation
from tapewright.ops.strings.splitting import ngrams as ngrams_of
from tapewright.ops.strings.splitting import split as split_words
from tapewright.ops.strings.splitting import unicode_split
from tapewright.serialization.load_errors import reading_config
from tapewright.serialization.object_config import function_of, plain

from ..base.layer import Layer
from ..base.symbolic_tensor import KerasTensor
from .lookup import StringLookup
from .vocabulary import StringTable, batches_of

__all__ = ["TextVectorization"]

_MAX_NGRAMS = 100  # words that are joined

_STANDARDS = ("lower_and_strip_punctuation", "lower", "strip_punctuation")
_SPLITS = ("whitespace", "character")


class TextVectorization(Layer):
    """Tokenize text: standardize strings, split them, and look up the tokens.

    In mode "int", index 0 is padding and index 1 represents out-of-vocabulary tokens;
    in the other modes, index 0 does.

    Args:
        max_tokens: Maximum size of the vocabulary, with special tokens; None for no
            limit.
        standardize: "lower_and_strip_punctuation", "lower", "strip_punctuation", a
            function of a tensor of strings, or None.
        split: "whitespace", "character", None, or a function of ``[batch]`` strings
            that returns a `RaggedTensor` or a matrix. Functions must be registered to
            be serialized.
        ngrams: Integer ``n`` for n-grams of 1 to ``n`` tokens, a tuple of the lengths,
            or None.
        output_mode: "int", or a mode of `StringLookup` such as "multi_hot", "count" or
            "tf_idf".
        output_sequence_length: Number of indices per text, which is truncated or padded
            with 0; only for "int".
        pad_to_max_tokens: If True, pad vectors to ``max_tokens`` entries even if the
            vocabulary is smaller.
        vocabulary: List of tokens, or path of a file with one token per line; if None,
            call `adapt`.
        idf_weights: One weight per token of ``vocabulary``, for "tf_idf".
        sparse: If True, return vectors as a `SparseTensor`.
        ragged: If True, return a `RaggedTensor` with rows of up to
            ``output_sequence_length`` indices; not in traced functions.
        encoding: Encoding of the strings that `get_vocabulary` returns.
        name: Name of the layer, unique by default.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch]`` or ``[batch, 1]``; outputs int64 ``[batch, length]``, or in
        the other modes ``[batch, size]``, int64 or `floatx` ("tf_idf"). Without
        ``output_sequence_length``, the length is the length of the longest text; `fit`
        then runs op by op, since the length is not known when a graph is traced.

    Raises:
        ValueError: If arguments contradict each other, or as in `StringLookup`.

    Example:
        >>> layer = keras.layers.TextVectorization(output_sequence_length=4)
        >>> layer.adapt(["A cat.", "A dog, a cat"])
        >>> layer.get_vocabulary()
        ['', '[UNK]', 'a', 'cat', 'dog']
        >>> layer(["the cat!"]).numpy()
        array([[1, 3, 0, 0]])
    """

    autocast = False

    def __init__(
        self,
        max_tokens: int | None = None,
        standardize: str | Callable[..., Any] | None = "lower_and_strip_punctuation",
        split: str | Callable[..., Any] | None = "whitespace",
        ngrams: int | tuple[int, ...] | None = None,
        output_mode: str = "int",
        output_sequence_length: int | None = None,
        pad_to_max_tokens: bool = False,
        vocabulary: str | os.PathLike | Sequence[str] | TensorLike | None = None,
        idf_weights: Sequence[float] | TensorLike | None = None,
        sparse: bool = False,
        ragged: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        **kwargs: Any,
    ):
        known_size = kwargs.pop("vocabulary_size", None)
        kwargs.pop("has_input_vocabulary", None)
        if kwargs.get("dtype") == "string":  # of older versions of Keras
            del kwargs["dtype"]
        super().__init__(name=name, **kwargs)
        self.standardize: Any = standardize
        if not callable(standardize):
            one_of(self, "standardize", standardize, (None, *_STANDARDS))
        self.split: Any = split
        if not callable(split):
            one_of(self, "split", split, (None, *_SPLITS))
        self.ngrams: int | tuple[int, ...] | None = ngrams
        self._tw_widths = self._tw_checked_widths(ngrams)
        self._lookup_layer = StringLookup(
            max_tokens=max_tokens,
            vocabulary=vocabulary,
            idf_weights=idf_weights,
            pad_to_max_tokens=pad_to_max_tokens,
            mask_token="",
            output_mode=output_mode,
            sparse=sparse,
            encoding=encoding,
            vocabulary_size=known_size,
        )
        self.output_mode: str = self._lookup_layer.output_mode
        if ragged and self.output_mode != "int":
            raise ValueError(
                "TextVectorization: ragged=True requires output_mode 'int', got "
                f"{output_mode!r}"
            )
        self.ragged = bool(ragged)
        if output_sequence_length is not None:
            whole(self, "output_sequence_length", output_sequence_length, least=0)
            if self.output_mode != "int":
                raise ValueError(
                    "TextVectorization: output_sequence_length requires output_mode 'int', "
                    f"got {output_mode!r}"
                )
        self.output_sequence_length = output_sequence_length

    @property
    def variable_dtype(self) -> str:
        """Dtype of the tokens: "string"."""
        return self._lookup_layer.vocabulary_dtype

    compute_dtype = dtype = input_dtype = variable_dtype

    def _tw_checked_widths(self, ngrams):
        if ngrams is None:
            return None
        if isinstance(ngrams, tuple):
            return tuple([whole(self, "ngrams", n, most=_MAX_NGRAMS) for n in ngrams])
        return tuple(range(1, whole(self, "ngrams", ngrams, most=_MAX_NGRAMS) + 1))

    # --- the vocabulary

    @Replaceable
    def input_vocabulary(self) -> Any:
        """Argument ``vocabulary``; None if it is a path."""
        return self._lookup_layer.input_vocabulary

    def adapt(
        self, data: Any, batch_size: int | None = None, steps: int | None = None
    ) -> None:
        """Build the vocabulary from the tokens in ``data``, see `StringLookup.adapt`.

        Args:
            data: List, array or tensor of texts, or batches of them: a dataset or
                another iterable.
            batch_size: Ignored.
            steps: Maximum number of batches to use, or None for all.
        """
        self.reset_state()
        for batch in batches_of("TextVectorization.adapt", data, steps):
            self.update_state(batch)
        counts = self._lookup_layer._tw_has_counts()
        if not counts:
            raise ValueError(
                "TextVectorization.adapt: data must contain tokens, got none"
            )
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Count the tokens in a batch of texts.

        Args:
            data: List, array or tensor of texts.
        """
        data = StringTable.as_keys("TextVectorization.adapt", data)
        self._lookup_layer.update_state(self._tw_words(data))

    def finalize_state(self) -> None:
        """Build the vocabulary from the tokens counted so far, if there are any."""
        self._lookup_layer.finalize_state()

    def reset_state(self) -> None:
        """Discard the counts since the last vocabulary."""
        self._lookup_layer.reset_state()

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[str]:
        """Return the tokens in the order of their indices.

        Args:
            include_special_tokens: If False, leave out the padding and
                out-of-vocabulary tokens.
        """
        return self._lookup_layer.get_vocabulary(include_special_tokens)

    def vocabulary_size(self) -> int:
        """Return the number of indices, including special tokens."""
        return self._lookup_layer.vocabulary_size()

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Set the vocabulary to the given tokens, see `StringLookup.set_vocabulary`.

        Args:
            vocabulary: List of tokens, with or without the special tokens in front, or
                the path of a file with one token per line.
            idf_weights: One weight per token; required for ``output_mode`` "tf_idf"
                only.
        """
        self._lookup_layer.set_vocabulary(vocabulary, idf_weights)

    # --- calling

    def call(self, inputs: Any) -> Tensor:
        texts = StringTable.as_keys(self._tw_title, inputs)
        if texts.shape.rank == 0 and self.split is not None:
            batch = expand_dims(texts, 0)
            if self._lookup_layer.sparse:
                return self._lookup_layer.call(self._tw_words(batch)[0])
            return self.call(batch)[0]
        words = self._tw_words(texts)
        if self.output_mode != "int":
            return self._lookup_layer.call(words)
        length = self.output_sequence_length
        if isinstance(words, RaggedTensor):
            if (self.ragged or length is None) and active_tracer() is not None:
                fall_back(
                    f"{self._tw_title}: the length of the longest text is not known before "
                    "it is split; pass output_sequence_length and ragged=False"
                )
            if self.ragged:
                words = words if length is None else words[:, :length]
                return self._lookup_layer.call(words)
            return self._lookup_layer.call(words.to_tensor("", shape=(None, length)))
        indices = self._lookup_layer.call(words)
        if length is None:
            return indices
        indices = indices[..., :length]
        if self.ragged:
            return indices
        behind = [[0, 0]] * (indices.shape.rank - 1) + [[0, length - indices.shape[-1]]]
        return pad(indices, behind)

    def _tw_words(self, texts):
        """Return the tokens of texts, a `RaggedTensor` or a tensor."""
        if callable(self.standardize):
            texts = converted(self.standardize)(texts)
        elif self.standardize is not None:
            if self.standardize != "strip_punctuation":
                texts = lower(texts)
            if self.standardize != "lower":
                texts = strip_punctuation(texts)
        if self.split is not None:
            if texts.shape.rank > 1:
                if texts.shape.rank > 2 or texts.shape[-1] != 1:
                    raise ShapeError(
                        self._tw_title,
                        "texts to be split must have shape [batch] or [batch, 1], got "
                        f"{tuple(texts.shape)}",
                    )
                texts = squeeze(texts, -1)
            if callable(self.split):
                texts = converted(self.split)(texts)
            elif self.split == "whitespace":
                texts = split_words(texts)
            else:
                texts = unicode_split(texts, "UTF-8")
        if self._tw_widths is not None:
            texts = ngrams_of(texts, self._tw_widths, separator=" ")
        return texts

    def compute_output_shape(self, input_shape: Any) -> Shape:
        shape = tuple(input_shape)
        if self.split is not None:
            words = (*shape[:1], None)
        elif self._tw_widths is not None and shape[-1:]:
            words = (*shape[:-1], _count(shape[-1], self._tw_widths))
        else:
            words = shape
        if self.output_mode == "int":
            if self.output_sequence_length is None or not words:
                return words
            return (*words[:-1], None if self.ragged else self.output_sequence_length)
        return self._lookup_layer.compute_output_shape(words)

    def compute_output_spec(self, inputs: Any) -> Any:
        shape = self.compute_output_shape(tuple(inputs.shape))
        is_weighted = self.output_mode == "tf_idf"
        dtype = floatx() if is_weighted else dtypes.int64
        return KerasTensor(shape, dtype, sparse=self._lookup_layer.sparse)

    # --- files

    def get_config(self) -> dict[str, Any]:
        lookup = self._lookup_layer
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": self._tw_dtype_config(),
            "max_tokens": lookup.max_tokens,
            "standardize": plain(self.standardize),
            "split": plain(self.split),
            "ngrams": plain(self.ngrams),
            "output_mode": self.output_mode,
            "output_sequence_length": self.output_sequence_length,
            "pad_to_max_tokens": lookup.pad_to_max_tokens,
            "sparse": lookup.sparse,
            "ragged": self.ragged,
            **lookup._tw_vocabulary_config(),
            "encoding": lookup.encoding,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        config = dict(config)
        for name in ("standardize", "split"):
            value = config.get(name)
            if isinstance(value, dict):
                config[name] = function_of("layer", value.get("config"))
        if isinstance(config.get("ngrams"), list):
            config["ngrams"] = tuple(config["ngrams"])
        with reading_config():
            return cls(**config)

    def save_own_variables(self, store: Any) -> None:
        """Write ``idf_weights`` to ``store`` if ``output_mode`` is "tf_idf".

        Args:
            store: Mapping of names to arrays.
        """
        self._lookup_layer.save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        """Read ``idf_weights`` from ``store`` if ``output_mode`` is "tf_idf".

        Args:
            store: Mapping of names to arrays.
        """
        self._lookup_layer.load_own_variables(store)

    def save_assets(self, dir_path: str) -> None:
        """Write ``vocabulary.txt``, see `StringLookup.save_assets`.

        Args:
            dir_path: Folder to write to.
        """
        self._lookup_layer.save_assets(dir_path)

    def load_assets(self, dir_path: str) -> None:
        """Read the vocabulary from ``vocabulary.txt``.

        Args:
            dir_path: Folder to read from.
        """
        self._lookup_layer.load_assets(dir_path)


def _count(size, widths):
    """Return the number of n-grams in a row; None for a row of unknown size."""
    return None if size is None else sum([max(size - width + 1, 0) for width in widths])
