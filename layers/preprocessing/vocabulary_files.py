"""`VocabularyFiles`: the config and the files of a layer with a vocabulary."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np

from tapewright.core.settings.floatx import floatx
from tapewright.core.tensor import is_tensor
from tapewright.serialization.assets import configs_hold_assets
from tapewright.serialization.load_errors import reading_config

ASSET = "vocabulary.txt"


class VocabularyFiles:
    """Base class of `IndexLookup` that saves and loads its config, weights and tokens.

    The tokens are an asset, or part of the config if they were passed to the
    constructor or the file format has no assets.
    """

    def _tw_vocabulary_config(self) -> dict[str, Any]:
        """Return the config entries ``vocabulary`` and ``idf_weights``."""
        tokens, weights = self._tw_given.value
        if tokens is None and self._tw_table is not None and configs_hold_assets():
            has_name = self.oov_token is not None or not self.num_oov_indices
            tokens = (
                self._tw_with_special_tokens(self._tw_tokens)
                if has_name
                else self._tw_tokens
            )
            if self._tw_idf is not None:
                start = 0 if has_name else self._tw_token_start
                weights = self._tw_idf[start : self.vocabulary_size()]
        try:
            tokens = _listed(tokens)
        except UnicodeDecodeError as error:
            self._tw_refuse(
                f"the token {error.object!r:.60} is not UTF-8 and cannot be in a config; "
                "omit vocabulary, call set_vocabulary or adapt, and save as .keras"
            )
        return {
            "vocabulary": tokens,
            "idf_weights": _listed(weights),
            "vocabulary_size": self._tw_size,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": self._tw_dtype_config(),
            "invert": self.invert,
            "max_tokens": self.max_tokens,
            "num_oov_indices": self.num_oov_indices,
            "oov_token": as_text(self.oov_token),
            "mask_token": as_text(self.mask_token),
            "output_mode": self.output_mode,
            "sparse": self.sparse,
            "pad_to_max_tokens": self.pad_to_max_tokens,
            "vocabulary_dtype": self.vocabulary_dtype,
            **self._tw_vocabulary_config(),
            "oov_method": self.oov_method,
            "salt": self.salt,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Create a layer from its config, in which ``vocabulary`` must not be a path.

        Args:
            config: Dict returned by `get_config`.
        """
        with reading_config():
            return cls(**config)

    def save_own_variables(self, store: Any) -> None:
        """Write ``idf_weights`` to ``store`` if ``output_mode`` is "tf_idf".

        Args:
            store: Mapping of names to arrays.
        """
        if self._tw_idf is not None:
            store["idf_weights"] = self._tw_idf

    def load_own_variables(self, store: Any) -> None:
        """Read ``idf_weights`` from ``store`` if ``output_mode`` is "tf_idf".

        Args:
            store: Mapping of names to arrays.

        Raises:
            ValueError: If they are missing, or their shape differs.
        """
        if self.output_mode != "tf_idf":
            return
        if "idf_weights" not in store.keys():
            if self._tw_idf is not None:
                self._tw_refuse("idf_weights are missing")
            return
        weights = np.asarray(store["idf_weights"])
        count = self._tw_depth() if self._tw_idf is None else len(self._tw_idf)
        if weights.ndim != 1 or count not in (None, len(weights)):
            self._tw_refuse(
                f"idf_weights must be a vector of {count} numbers, got shape "
                f"{weights.shape}"
            )
        self._tw_idf = weights.astype(floatx())
        self._tw_constants_version += 1

    def save_assets(self, dir_path: str) -> None:
        """Write ``vocabulary.txt``, one token per line, unless they are in the config.

        Args:
            dir_path: Folder to write to.

        Raises:
            ValueError: If a token contains a line break.
        """
        if self.input_vocabulary is not None:
            return
        has_name = self.oov_token is not None or not self.num_oov_indices
        lines = [str(token) for token in self.get_vocabulary(has_name)]
        for line in lines:
            if "\n" in line or "\r" in line:
                self._tw_refuse(
                    f"the token {line!r:.60} contains a line break, and cannot be saved as "
                    "a line of a file; pass the tokens as vocabulary to save them in the "
                    "config"
                )
        with open(os.path.join(dir_path, ASSET), "wb") as file:
            file.write("\n".join(lines).encode())

    def load_assets(self, dir_path: str) -> None:
        """Read the tokens from ``vocabulary.txt``, unless they were in the config.

        Args:
            dir_path: Folder to read from.

        Raises:
            ValueError: If the file is missing or is not UTF-8, or as in
                `set_vocabulary`.
        """
        if self.input_vocabulary is not None:
            return
        path = os.path.join(dir_path, ASSET)
        if not os.path.isfile(path):
            if self._tw_table is not None:  # the layer around this one had it
                return
            self._tw_refuse(
                f"{ASSET} is missing; it contains the vocabulary of layer '{self.name}'"
            )
        with open(path, "rb") as file:
            lines = self._tw_decoded(file.read().replace(b"\r\n", b"\n").split(b"\n"))
        while lines and lines[-1] == b"" and len(lines) != self._tw_size:
            lines.pop()
        tokens = self._tw_parsed(lines)
        if self._tw_size is None and tokens in ([], self._tw_special_tokens):
            return  # it was saved before it had a vocabulary
        start = self._tw_token_start
        front = 0 if tokens[:start] == self._tw_special_tokens else start
        if self._tw_size not in (None, front + len(tokens)):
            self._tw_refuse(
                f"{ASSET} must have the {self._tw_size} tokens of the config, special ones "
                f"included; got {front + len(tokens)}"
            )
        weights = None
        if self.output_mode == "tf_idf":
            if self._tw_idf is None:
                self._tw_refuse("idf_weights are missing")
            weights = self._tw_idf[front : front + len(tokens)]
        self.set_vocabulary(tokens, weights)

    def _tw_decoded(self, lines):
        return lines


def _listed(value: Any) -> Any:
    """Convert tokens or weights to a list for configs, with bytes as text."""
    if value is None:
        return None
    if is_tensor(value):
        value = value.numpy()
    return [as_text(x) for x in (value.tolist() if hasattr(value, "tolist") else value)]


def as_text(token: Any) -> Any:
    """Decode a token of bytes."""
    return token.decode() if isinstance(token, bytes) else token
