"""`IndexLookup`: base of the layers with a vocabulary of strings or integers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapewright.core import dtypes
from tapewright.core.messages.argument_validation import one_of, whole
from tapewright.core.settings.floatx import floatx
from tapewright.core.tensor import Tensor, convert_to_tensor, is_tensor
from tapewright.core.trackable import Opaque
from tapewright.core.typing import Shape
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.gather import gather
from tapewright.ops.array.joining import concat, pad
from tapewright.ops.array.shape import reshape
from tapewright.ops.math.comparison import equal, less, where
from tapewright.ops.math.elementwise import minimum
from tapewright.ops.ragged.ragged_tensor import RaggedTensor
from tapewright.serialization.load_errors import names_no_file

from ..base.layer import Layer
from ..base.symbolic_tensor import KerasTensor
from .categories import checked_sparse, encoded, encoded_shape, map_entries
from .vocabulary import IntegerTable, StringTable, TokenCounts, batches_of, read_lines
from .vocabulary_files import VocabularyFiles, as_text

_MAX_OOV = 1_000_000  # indices, each of which is an entry of the vocabulary

_MODES = ("int", "one_hot", "multi_hot", "count", "tf_idf")


class IndexLookup(VocabularyFiles, Layer):
    """Base of the layers that map tokens to indices in a vocabulary.

    Index 0 is the mask token, if there is one and ``output_mode`` is "int". The next
    ``num_oov_indices`` indices are for out-of-vocabulary (OOV) tokens; the tokens of
    the vocabulary follow.
    """

    autocast = False  # half precision would round integers
    _tw_table_class: Any = StringTable

    def __init__(
        self,
        max_tokens: int | None,
        num_oov_indices: int,
        mask_token: Any,
        oov_token: Any,
        vocabulary_dtype: str,
        vocabulary: Any = None,
        idf_weights: Any = None,
        invert: bool = False,
        output_mode: str = "int",
        sparse: bool = False,
        pad_to_max_tokens: bool = False,
        oov_method: str = "floormod",
        name: str | None = None,
        salt: int | Sequence[int] | None = None,
        **kwargs: Any,
    ):
        for ignored in ("trainable", "dtype", "has_input_vocabulary"):  # as in Keras
            kwargs.pop(ignored, None)
        known_size = kwargs.pop("vocabulary_size", None)
        super().__init__(name=name, **kwargs)
        output_mode = _output_mode_of(output_mode)
        if max_tokens is not None:
            max_tokens = whole(self, "max_tokens", max_tokens, least=2)
        elif pad_to_max_tokens:
            self._tw_refuse("pad_to_max_tokens=True requires max_tokens, got None")
        self.max_tokens = max_tokens
        self.num_oov_indices: int = whole(
            self, "num_oov_indices", num_oov_indices, 0, _MAX_OOV
        )
        self.mask_token, self.oov_token = mask_token, oov_token
        self.vocabulary_dtype = vocabulary_dtype
        self.output_mode: str = one_of(self, "output_mode", output_mode, _MODES)
        self.invert: bool = bool(invert)
        if invert and output_mode != "int":
            self._tw_refuse(
                f"invert=True requires output_mode 'int', got {output_mode!r}"
            )
        if invert and oov_token is None:
            self._tw_refuse("invert=True requires an oov_token, got None")
        self.sparse = checked_sparse(self, sparse, output_mode)
        self.pad_to_max_tokens: bool = bool(pad_to_max_tokens)
        methods = ("floormod", "farmhash")
        self.oov_method: str = one_of(self, "oov_method", oov_method, methods)
        self.salt: list[int] | None = checked_salt(self, salt)
        if salt is not None and vocabulary_dtype != "string":
            if oov_method != "farmhash":
                self._tw_refuse(
                    f"salt requires oov_method 'farmhash', got {oov_method!r}"
                )
        if idf_weights is not None and output_mode != "tf_idf":
            self._tw_refuse(
                f"idf_weights require output_mode 'tf_idf', got {output_mode!r}"
            )
        self._tw_mask = self._tw_special("mask_token", mask_token)
        self._tw_oov = self._tw_special("oov_token", oov_token)
        is_path = isinstance(vocabulary, str | os.PathLike)
        # Opaque, as lists would be searched for weights, entry by entry.
        self._tw_given = Opaque((None if is_path else vocabulary, idf_weights))
        self._tw_is_given = vocabulary is not None
        self._tw_table: Any = None  # of the tokens, the mask token in front of them
        self._tw_inverse: Any = None  # the tokens in the order of their indices
        self._tw_idf: np.ndarray | None = None
        # Layers were saved without a vocabulary, yet with the number of special tokens.
        self._tw_size = None if known_size == self._tw_token_start else known_size
        self._tw_counts = TokenCounts(output_mode == "tf_idf")
        if vocabulary is not None:
            if output_mode == "tf_idf" and idf_weights is None:
                self._tw_refuse(
                    "vocabulary requires idf_weights in output_mode 'tf_idf', got None"
                )
            self.set_vocabulary(vocabulary, idf_weights)

    @property
    def input_vocabulary(self) -> Any:
        """The argument ``vocabulary``, or None if it was a path."""
        return self._tw_given.value[0]

    @property
    def variable_dtype(self) -> str:
        """Dtype of the tokens."""
        return self.vocabulary_dtype

    compute_dtype = dtype = input_dtype = variable_dtype

    def _tw_refuse(self, reason):
        raise ValueError(f"{type(self).__name__}: {reason}")

    def _tw_special(self, name, token):
        if token is None:
            return None
        return self._tw_table_class.as_token(type(self).__name__, name, token)

    # --- the vocabulary

    @property
    def _tw_oov_start(self):
        return int(self.mask_token is not None and self.output_mode == "int")

    @property
    def _tw_token_start(self):
        return self._tw_oov_start + self.num_oov_indices

    @property
    def _tw_special_tokens(self):
        return [self._tw_mask] * self._tw_oov_start + [
            self._tw_oov
        ] * self.num_oov_indices

    @property
    def _tw_tokens(self):
        """The tokens without the special tokens."""
        if self._tw_table is None:
            return []
        return self._tw_table.tokens[self._tw_mask is not None :]

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """Return the list of tokens in the order of their indices; strings are decoded.

        Args:
            include_special_tokens: If False, omit the mask token and the OOV token.
        """
        tokens = list(map(self._tw_readable, self._tw_tokens))
        return (
            self._tw_with_special_tokens(tokens) if include_special_tokens else tokens
        )

    def _tw_with_special_tokens(self, tokens):
        oov, masks = [as_text(self.oov_token)], [as_text(self.mask_token)]
        return masks * self._tw_oov_start + oov * self.num_oov_indices + tokens

    def _tw_readable(self, token):
        return token

    def vocabulary_size(self) -> int:
        """Return the number of indices, including the special tokens."""
        return len(self._tw_tokens) + self._tw_token_start

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Replace the vocabulary.

        Args:
            vocabulary: List, array or tensor of tokens, with or without all special
                tokens in front; or the path of a file with one token per line.
            idf_weights: One weight per token, required for ``output_mode`` "tf_idf" and
                only then. Special tokens that are omitted get the mean of all weights.

        Raises:
            ValueError: If the vocabulary is empty, larger than ``max_tokens``, has
                duplicate tokens or special tokens elsewhere than in front; if the
                number of weights differs; or if the file does not exist.
            RuntimeError: If the size differs from the previous vocabulary and the
                outputs have one entry per token.
        """
        if (idf_weights is None) == (self.output_mode == "tf_idf"):
            self._tw_refuse(
                "idf_weights must be given if and only if output_mode is 'tf_idf'; got "
                f"output_mode {self.output_mode!r}"
            )
        if isinstance(vocabulary, str | os.PathLike):
            tokens = self._tw_read(os.fspath(vocabulary))
        else:
            tokens = self._tw_entries(vocabulary)
        if not tokens:
            self._tw_refuse("vocabulary must not be empty")
        start = self._tw_token_start
        has_special = tokens[:start] == self._tw_special_tokens
        given, tokens = len(tokens), tokens[start:] if has_special else tokens
        self._tw_check(tokens)
        if self.max_tokens is not None and start + len(tokens) > self.max_tokens:
            self._tw_refuse(
                f"the vocabulary must have at most max_tokens={self.max_tokens} tokens, "
                f"including special tokens, got {start + len(tokens)}"
            )
        weights = None
        if idf_weights is not None:
            weights = self._tw_padded(idf_weights, given, 0 if has_special else start)
        self._tw_take(tokens, weights)

    def _tw_entries(self, vocabulary):
        """Return the argument ``vocabulary`` as a list of tokens."""
        if is_tensor(vocabulary):
            vocabulary = vocabulary.numpy()
        entries = np.asarray(
            vocabulary, None if hasattr(vocabulary, "dtype") else object
        )
        if entries.ndim != 1:
            self._tw_refuse(
                "vocabulary must be a list of tokens, got an array of shape "
                f"{entries.shape}"
            )
        who = type(self).__name__
        return [
            self._tw_table_class.as_token(who, "each token of vocabulary", token)
            for token in entries.tolist()
        ]

    def _tw_read(self, path):
        names_no_file(type(self).__name__, "vocabulary", path)
        if self.output_mode == "tf_idf":
            self._tw_refuse("vocabulary must not be a file in output_mode 'tf_idf'")
        return self._tw_parsed(read_lines(type(self).__name__, path))

    def _tw_parsed(self, lines):
        return lines

    def _tw_check(self, tokens):
        """Reject duplicate tokens, and special tokens among the others."""
        if len(set(tokens)) < len(tokens):
            counts = TokenCounts(False)
            counts.add([tokens])
            several = [token for token, count in counts.tokens.items() if count > 1]
            repeated = [_shown(token) for token in several[:5]]
            self._tw_refuse(
                f"vocabulary must not have duplicate tokens, got {repeated} more than once"
            )
        oov = self._tw_oov if self.invert else None  # else no index leads to it
        for name, token in (("mask", self._tw_mask), ("OOV", oov)):
            if token is not None and token in tokens:
                self._tw_refuse(
                    "special tokens must all come first in vocabulary, got the "
                    f"{name} token {_shown(token)!r} at index {tokens.index(token)}; "
                    "move them to the front, or omit them all"
                )

    def _tw_padded(self, weights, count, front):
        """Pad weights with their mean for special tokens, and with zeros to ``max_tokens``."""
        weights = np.asarray(convert_to_tensor(weights).numpy(), np.float64)
        if weights.ndim != 1 or len(weights) != count:
            self._tw_refuse(
                f"idf_weights must have one number for each of the {count} tokens, "
                f"got shape {weights.shape}"
            )
        mean = weights.mean() if len(weights) else 0.0
        back = self.max_tokens - front - len(weights) if self.pad_to_max_tokens else 0
        padded = np.pad(weights, (front, 0), constant_values=mean)
        return np.pad(padded, (0, back)).astype(floatx())

    def _tw_take(self, tokens, weights):
        mask = [] if self._tw_mask is None else [self._tw_mask]
        size = self._tw_token_start + len(tokens)
        if self.output_mode != "int" and not self.pad_to_max_tokens:
            if self._tw_size is not None and self._tw_size != size:
                raise RuntimeError(
                    f"{self._tw_title}: the vocabulary must keep its size of "
                    f"{self._tw_size}, as the outputs have one entry per token; got {size} "
                    "tokens. Create a new layer, or set max_tokens and "
                    "pad_to_max_tokens=True"
                )
        self._tw_table, self._tw_size = self._tw_table_class(mask + tokens), size
        self._tw_constants_version += 1
        if self.invert:
            front = self._tw_special_tokens
            self._tw_inverse = self._tw_table_class(
                [*front, *tokens, self._tw_oov]
            ).array()
        if weights is not None:
            self._tw_idf = weights

    @property
    def idf_weights(self) -> Tensor | None:
        """Weight of each token in ``output_mode`` "tf_idf"; None before `adapt`."""
        return None if self._tw_idf is None else convert_to_tensor(self._tw_idf)

    # --- adapting

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Learn the vocabulary from data: its tokens by descending frequency.

        Tokens of equal frequency are sorted in descending order. The vocabulary has at
        most ``max_tokens`` tokens, including the special tokens. Each call replaces the
        vocabulary.

        Args:
            data: Array, list or tensor; or a dataset or another iterable of batches.
            steps: Maximum number of batches to read, or None for all.

        Raises:
            ValueError: If there are no tokens, or ``vocabulary`` was passed to the
                constructor.
            RuntimeError: If the size differs from the previous vocabulary and the
                outputs have one entry per token.
        """
        self.reset_state()
        for batch in batches_of(f"{type(self).__name__}.adapt", data, steps):
            self.update_state(batch)
        if not self._tw_has_counts():
            raise ValueError(f"{type(self).__name__}.adapt: data must not be empty")
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Count the tokens of a batch; each row is a document.

        Args:
            data: Batch of tokens.
        """
        if self._tw_is_given:
            raise ValueError(
                f"{type(self).__name__}.adapt: vocabulary was already given to the "
                "constructor; omit it there to learn it from data"
            )
        self._tw_counts.add(self._tw_rows(data))

    def _tw_rows(self, data):
        """Return the tokens of a batch, one list per document."""
        if isinstance(data, RaggedTensor):
            return data.to_list()
        keys = self._tw_table_class.as_keys(f"{type(self).__name__}.adapt", data)
        if 0 in keys.shape:
            return []
        count = keys.shape[0] if keys.shape.rank > 1 else 1
        return reshape(keys, [count, -1]).numpy().tolist()

    def reset_state(self) -> None:
        """Discard the tokens counted since the last vocabulary."""
        self._tw_counts = TokenCounts(self.output_mode == "tf_idf")

    def _tw_has_counts(self) -> bool:
        """Return whether tokens were counted since the last vocabulary."""
        return bool(self._tw_counts.tokens)

    def finalize_state(self) -> None:
        """Set the vocabulary to the counted tokens, if there are any."""
        if self._tw_is_given or not self._tw_has_counts():
            return
        count, start = None, self._tw_token_start
        if self.max_tokens is not None:
            count = max(self.max_tokens - start, 0)
        tokens = self._tw_counts.most_common(count, (self._tw_mask, self._tw_oov))
        weights = None
        if self.output_mode == "tf_idf":
            weights = self._tw_padded(
                self._tw_counts.idf_weights(tokens), len(tokens), start
            )
        self._tw_take(tokens, weights)
        self.reset_state()

    # --- calling

    def call(self, inputs: Any) -> Any:
        if self._tw_table is None:
            raise RuntimeError(
                f"{self._tw_title}: the layer has no vocabulary yet; call adapt(data) first, "
                "or pass vocabulary"
            )
        if self._tw_counts_packed_rows(inputs):
            return self._tw_weighted(self._tw_counts_of(inputs))
        if self.invert:
            return map_entries(self._tw_inverted, inputs)
        indices = map_entries(self._tw_indices, inputs)
        if self.output_mode == "int":
            return indices
        mode = "count" if self.output_mode == "tf_idf" else self.output_mode
        return self._tw_weighted(
            encoded(indices, mode, self._tw_depth(), dtypes.int64, sparse=self.sparse)
        )

    def _tw_depth(self):
        return self.max_tokens if self.pad_to_max_tokens else self._tw_size

    def _tw_indices(self, inputs):
        keys = self._tw_table_class.as_keys(self._tw_title, inputs)
        hashed = self.oov_method == "farmhash"
        at = self._tw_table.positions(keys, self.num_oov_indices, hashed, self.salt)
        masks, end = int(self._tw_mask is not None), len(self._tw_table.tokens)
        behind = at + (self._tw_token_start - masks)
        indices = where(less(at, end), behind, at - (end - self._tw_oov_start))
        if masks:  # a mask is no token, and in vectors has no column
            mask = np.int64(0 if self.output_mode == "int" else dtypes.int64.max)
            indices = where(equal(at, 0), mask, indices)
        return indices

    def _tw_counts_packed_rows(self, inputs):
        """Return whether to count strings in ragged rows directly, also in a trace."""
        return (
            isinstance(inputs, RaggedTensor)
            and inputs.dtype == dtypes.string
            and inputs.shape.rank == 2
            and self._tw_table_class is StringTable
            and self.output_mode in ("multi_hot", "count", "tf_idf")
            and not self.sparse
        )

    def _tw_counts_of(self, rows):
        """Count the tokens in rows of different lengths."""
        counts = self._tw_table.counts(rows, self.num_oov_indices, self.salt)
        masks, end = int(self._tw_mask is not None), len(self._tw_table.tokens)
        counts = concat([counts[:, end:], counts[:, masks:end]], 1)
        if self.output_mode == "multi_hot":
            counts = minimum(counts, 1)
        more = self._tw_depth() - self.vocabulary_size()
        return pad(counts, [[0, 0], [0, more]]) if more else counts

    def _tw_weighted(self, counts):
        if self.output_mode != "tf_idf":
            return counts
        weights = self.idf_weights
        counts = cast(counts, weights.dtype)
        if self.sparse:
            return counts.with_values(
                counts.values * gather(weights, counts.indices[:, -1])
            )
        return counts * weights

    def _tw_inverted(self, inputs):
        """Return the tokens at the indices; the OOV token for indices out of range."""
        indices = IntegerTable.as_keys(self._tw_title, inputs)
        last = len(self._tw_inverse) - 1
        indices = where(less(indices, 0), last, minimum(indices, last))
        return gather(self._tw_inverse, indices)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        return encoded_shape(input_shape, self.output_mode, self._tw_depth())

    def compute_output_spec(self, inputs: Any) -> Any:
        shape = self.compute_output_shape(tuple(inputs.shape))
        if self.invert:
            return KerasTensor(shape, self.vocabulary_dtype)
        is_weighted = self.output_mode == "tf_idf"
        dtype = floatx() if is_weighted else dtypes.int64
        return KerasTensor(shape, dtype, sparse=self.sparse)


# -------------------------------------------------------------------------- arguments


def _output_mode_of(value: Any) -> Any:
    """Replace older Keras names of ``output_mode`` by the current names."""
    return {"binary": "multi_hot", "tf-idf": "tf_idf"}.get(value, value)


def checked_salt(layer: Any, salt: Any) -> list[int] | None:
    """Return ``salt`` as a list of two integers, or None.

    Raises:
        ValueError: If it is neither an integer nor a list of two.
    """
    words = [salt, salt] if isinstance(salt, int) else salt
    if words is None:
        return None
    is_pair = isinstance(words, list | tuple) and len(words) == 2
    if not is_pair or any([not hasattr(word, "__index__") for word in words]):
        raise ValueError(
            f"{type(layer).__name__}: salt must be an integer or a list of two, got {salt!r}"
        )
    return [int(word) for word in words]


def _shown(token):
    """Return a token as the user passed it, for messages."""
    return token.decode(errors="replace") if isinstance(token, bytes) else token
