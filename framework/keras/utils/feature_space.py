"""`FeatureSpace`: preprocess the columns of a table, each by a layer, to one vector.

The preprocessors are layers of `keras.layers`; saved files use Keras' names and are
interchangeable with Keras.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

from tapewright.core.messages.argument_validation import one_of
from tapewright.core.names.naming import unique_name
from tapewright.core.nest import map_structure
from tapewright.core.tensor import convert_to_tensor
from tapewright.data.dataset import Dataset
from tapewright.layers.base.input_layer import Input
from tapewright.layers.base.layer import BUILDING, Layer, ShapePreserving
from tapewright.layers.preprocessing.hashing import HashedCrossing, Hashing
from tapewright.layers.preprocessing.index_lookup import IndexLookup
from tapewright.layers.preprocessing.lookup import IntegerLookup, StringLookup
from tapewright.layers.preprocessing.numbers import (
    CategoryEncoding,
    Discretization,
    Normalization,
    Rescaling,
)
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import expand_dims, reshape, squeeze
from tapewright.serialization.registry import register

from ..files.keras_objects import deserialize_keras_object, serialize_keras_object
from ..files.save_and_load import save_model
from ..ops.arrays import concatenate

KINDS = (
    "float", "float_discretized", "float_normalized", "float_rescaled",
    "integer_categorical", "integer_hashed", "string_categorical", "string_hashed",
)  # fmt: skip


class FeatureSpace(Layer):
    """Preprocess and encode the columns of a table, numbers or strings, each by a layer.

    Categories, bins and hashes are encoded one-hot, or stay integers if the feature has
    ``output_mode="int"``.

    Args:
        features: Dict of names and kinds: "float", "float_rescaled",
            "float_normalized", "float_discretized", "integer_categorical",
            "string_categorical", "integer_hashed", "string_hashed", or the result of
            the class method with this name, which accepts options; `feature` uses any
            layer.
        output_mode: "concat" for one vector of all encoded features, in the order of
            their names, crosses last; or "dict" for each feature by its name.
        crosses: Tuples of names of features that are hashed together, or results of
            `cross`.
        crossing_dim: Number of bins of crosses without an explicit size.
        hashing_dim: Number of bins of hashed features without an explicit size.
        num_discretization_bins: Number of bins of discretized features without an
            explicit size.
        name: Name of the layer, unique by default.

    Shapes:
        Inputs are a dict of ``[batch]`` or ``[batch, 1]``, or of ``[]`` for one sample;
        outputs ``[batch, size]``, or ``[size]``.

    Raises:
        ValueError: If a kind or mode is unknown, a cross has unknown features, the
            layer is called before `adapt`, with anything but a dict or without all
            features, or features are integers or strings in mode "concat".

    Example:
        >>> from tapewright.keras.utils import FeatureSpace
        >>> table = {"size": [1.0, 3.0], "color": ["red", "blue"]}
        >>> space = FeatureSpace({"size": "float_normalized", "color": "string_categorical"})
        >>> space.adapt(table)
        >>> space({"size": 3.0, "color": "blue"}).numpy()
        array([0., 0., 1., 1.], dtype=float32)
    """

    autocast = False  # each layer casts what it wants

    def __init__(
        self,
        features: dict[str, Any],
        output_mode: str = "concat",
        crosses: Sequence[Any] | None = None,
        crossing_dim: int = 32,
        hashing_dim: int = 32,
        num_discretization_bins: int = 32,
        name: str | None = None,
    ):
        super().__init__(name=name)
        self.built = False  # a file has the shapes for the layers inside
        if not features:
            raise ValueError("FeatureSpace: features must have an entry, got none")
        self.crossing_dim: int = crossing_dim
        self.hashing_dim: int = hashing_dim
        self.num_discretization_bins: int = num_discretization_bins
        self.features: dict[str, Any] = {
            key: self._tw_feature_of(key, value) for key, value in features.items()
        }
        self.crosses: list[Any] = [self._tw_cross_of(cross) for cross in crosses or ()]
        modes = ("concat", "dict")
        self.output_mode: str = one_of(self, "output_mode", output_mode, modes)
        self.inputs: dict[str, Any] = {
            key: Input((1,), dtype=feature.dtype, name=key)
            for key, feature in self.features.items()
        }
        self.preprocessors: dict[str, Any] = {
            key: feature.preprocessor for key, feature in self.features.items()
        }
        self.crossers: dict[str, Any] = {
            cross.name: HashedCrossing(cross.crossing_dim, name=cross.name)
            for cross in self.crosses
        }
        self.one_hot_encoders: dict[str, Any] = {}
        self.concat: Any = None
        self.encoded_features: Any = None
        self._is_adapted = False

    # --- features

    def _tw_feature_of(self, name, given):
        if isinstance(given, dict):
            given = deserialize_keras_object(given)
        if isinstance(given, Feature):
            return given
        if given not in KINDS:
            raise ValueError(
                f"FeatureSpace: the kind of feature {name!r} must be one of "
                f"{', '.join(KINDS)}, or the result of the class method with this "
                f"name, got {given!r}"
            )
        sizes = {
            "float_discretized": (self.num_discretization_bins,),
            "integer_hashed": (self.hashing_dim,),
            "string_hashed": (self.hashing_dim,),
        }
        return getattr(self, given)(*sizes.get(given, ()), name=name)

    def _tw_cross_of(self, given):
        if isinstance(given, dict):
            given = deserialize_keras_object(given)
        if not isinstance(given, Cross):
            if not self.crossing_dim:
                raise ValueError(
                    "FeatureSpace: crosses need a crossing_dim, got "
                    f"{self.crossing_dim!r}"
                )
            given = Cross(given, self.crossing_dim)
        unknown = [key for key in given.feature_names if key not in self.features]
        if unknown:
            raise ValueError(
                f"FeatureSpace: crosses must name features, got {unknown}; the "
                f"features are {list(self.features)}"
            )
        return given

    @classmethod
    def cross(
        cls,
        feature_names: Sequence[str],
        crossing_dim: int,
        output_mode: str = "one_hot",
    ) -> Any:
        """Return a cross of features, which are hashed together.

        Args:
            feature_names: Names of the features.
            crossing_dim: Number of bins.
            output_mode: "one_hot" or "int".
        """
        return Cross(feature_names, crossing_dim, output_mode)

    @classmethod
    def feature(cls, dtype: str, preprocessor: Any, output_mode: str) -> Any:
        """Return a feature with a custom layer.

        Args:
            dtype: Dtype of the inputs.
            preprocessor: Layer that preprocesses the inputs.
            output_mode: "float" or "int" to use the outputs unchanged, or "one_hot" to
                encode integers.
        """
        return Feature(dtype, preprocessor, output_mode)

    @classmethod
    def float(cls, name: str | None = None) -> Any:
        """Return a feature of numbers that are used unchanged."""
        layer = TFDIdentity(dtype="float32", name=_name("float", name))
        return Feature("float32", layer, "float")

    @classmethod
    def float_rescaled(
        cls, scale: Any = 1.0, offset: Any = 0.0, name: str | None = None
    ) -> Any:
        """Return a feature of numbers times ``scale`` plus ``offset``.

        Args:
            scale: Factor.
            offset: Number added to the product.
        """
        layer = Rescaling(scale, offset, name=_name("float_rescaled", name))
        return Feature("float32", layer, "float")

    @classmethod
    def float_normalized(cls, name: str | None = None) -> Any:
        """Return a feature of numbers that are normalized to mean 0 and variance 1.

        `adapt` computes mean and variance.
        """
        layer = Normalization(axis=-1, name=_name("float_normalized", name))
        return Feature("float32", layer, "float")

    @classmethod
    def float_discretized(
        cls,
        num_bins: int | None,
        bin_boundaries: Sequence[Any] | None = None,
        output_mode: str = "one_hot",
        name: str | None = None,
    ) -> Any:
        """Return a feature of numbers that are discretized into bins.

        Args:
            num_bins: Number of bins, with boundaries computed by `adapt`.
            bin_boundaries: Boundaries of the bins, or None.
            output_mode: "one_hot" or "int".
        """
        layer = Discretization(
            num_bins=num_bins,
            bin_boundaries=bin_boundaries,
            name=_name("float_discretized", name),
        )
        return Feature("float32", layer, output_mode)

    @classmethod
    def integer_categorical(
        cls,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        output_mode: str = "one_hot",
        name: str | None = None,
    ) -> Any:
        """Return a feature of integers, encoded by a vocabulary; see `IntegerLookup`.

        Args:
            max_tokens: Largest size of the vocabulary, or None for no limit.
            num_oov_indices: Number of indices for unknown integers.
            output_mode: "one_hot" or "int".
        """
        layer = IntegerLookup(
            max_tokens, num_oov_indices, name=_name("integer_categorical", name)
        )
        return Feature("int32", layer, output_mode)

    @classmethod
    def string_categorical(
        cls,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        output_mode: str = "one_hot",
        name: str | None = None,
    ) -> Any:
        """Return a feature of strings, encoded by a vocabulary; see `StringLookup`.

        Args:
            max_tokens: Largest size of the vocabulary, or None for no limit.
            num_oov_indices: Number of indices for unknown strings.
            output_mode: "one_hot" or "int".
        """
        layer = StringLookup(
            max_tokens, num_oov_indices, name=_name("string_categorical", name)
        )
        return Feature("string", layer, output_mode)

    @classmethod
    def integer_hashed(
        cls, num_bins: int, output_mode: str = "one_hot", name: str | None = None
    ) -> Any:
        """Return a feature of integers that are hashed into bins; see `Hashing`.

        Args:
            num_bins: Number of bins.
            output_mode: "one_hot" or "int".
        """
        layer = Hashing(num_bins, name=_name("integer_hashed", name))
        return Feature("int32", layer, output_mode)

    @classmethod
    def string_hashed(
        cls, num_bins: int, output_mode: str = "one_hot", name: str | None = None
    ) -> Any:
        """Return a feature of strings that are hashed into bins; see `Hashing`.

        Args:
            num_bins: Number of bins.
            output_mode: "one_hot" or "int".
        """
        layer = Hashing(num_bins, name=_name("string_hashed", name))
        return Feature("string", layer, output_mode)

    # --- adapting

    def adapt(self, dataset: Any) -> None:
        """Compute the vocabularies, boundaries and statistics of the layers from data.

        Args:
            dataset: `data.Dataset` of dicts of samples or batches, without labels,
                which is read once per layer; or a dict of arrays.

        Raises:
            ValueError: If ``dataset`` has another type or no elements, or a layer
                raises it.
        """
        if isinstance(dataset, dict):
            dataset = Dataset.from_tensor_slices(dataset)
        if not isinstance(dataset, Dataset):
            raise ValueError(
                "FeatureSpace.adapt: dataset must be a data.Dataset or a dict of arrays, "
                f"got {type(dataset).__name__}"
            )
        for name in self._tw_adaptable():
            column = dataset.map(lambda x, name=name: x[name])
            first = next(iter(column), None)
            if first is None:
                raise ValueError("FeatureSpace.adapt: dataset must not be empty")
            rank = len(first.shape)
            if rank == 0:
                column = column.batch(32)
            if rank <= 1:
                column = column.map(lambda x: expand_dims(x, -1))
            self.preprocessors[name].adapt(column)
        self._is_adapted, self.encoded_features = True, None
        self.get_encoded_features()
        self.built = True

    def _tw_adaptable(self):
        """Return the names of the features whose layers adapt to data."""
        layers = self.preprocessors.items()
        return [name for name, layer in layers if _learns(layer)]

    def get_inputs(self) -> dict[str, Any]:
        """Return a symbolic input ``[None, 1]`` for each feature, by name."""
        self.get_encoded_features()
        return self.inputs

    def get_encoded_features(self) -> Any:
        """Return the symbolic outputs for the inputs of `get_inputs`.

        Raises:
            ValueError: If called before `adapt`.
        """
        if self.encoded_features is None:
            with BUILDING:  # of several threads, one makes the encoders
                if self.encoded_features is None:
                    self.encoded_features = self._tw_build_encoders()
        return self.encoded_features

    def _tw_build_encoders(self):
        if not self._is_adapted and self._tw_adaptable():
            raise ValueError(
                "FeatureSpace: call adapt(dataset) first, because the features "
                f"{self._tw_adaptable()} adapt to data"
            )
        values = self._tw_processed(self.inputs)
        self.one_hot_encoders = {}
        specs = {**self.features, **{cross.name: cross for cross in self.crosses}}
        layers = {**self.preprocessors, **self.crossers}
        for name in self._tw_names():
            is_integer = values[name].dtype.is_integer
            if specs[name].output_mode == "one_hot":
                if not is_integer:
                    raise ValueError(
                        f"FeatureSpace: the layer of feature {name!r} must return "
                        "integers for output_mode 'one_hot', got "
                        f"{values[name].dtype.name}"
                    )
                size = _category_count(name, layers[name])
                self.one_hot_encoders[name] = CategoryEncoding(size)
            elif self.output_mode == "concat":
                if is_integer or values[name].dtype.name == "string":
                    raise ValueError(
                        "FeatureSpace: features of output_mode 'concat' must be encoded "
                        f"as floating numbers, but {name!r} has dtype "
                        f"{values[name].dtype.name}; use output_mode='dict'"
                    )
        if self.output_mode == "concat":
            self.concat = TFDConcat(axis=-1)
        return self._tw_merged(values)

    # --- calling

    def _tw_converted(self, inputs):
        if not isinstance(inputs, dict):
            raise ValueError(
                f"FeatureSpace: inputs must be a dict of features, got {inputs!r:.200}"
            )
        if inputs.keys() != self.features.keys():
            raise ValueError(
                f"FeatureSpace: inputs must have the features {list(self.features)}, got "
                f"{list(inputs)}"
            )
        return {key: convert_to_tensor(value) for key, value in inputs.items()}

    def call(self, inputs: Any) -> Any:
        self.get_encoded_features()
        is_sample = any([len(x.shape) == 0 for x in inputs.values()])
        columns = {key: _as_column(x) for key, x in inputs.items()}
        outputs = self._tw_merged(self._tw_processed(columns))
        if is_sample:
            return map_structure(lambda x: squeeze(x, 0), outputs)
        return outputs

    def _tw_names(self):
        return sorted(self.preprocessors) + sorted(self.crossers)

    def _tw_processed(self, columns):
        """Return the outputs of the layers of all features and crosses, by name."""
        values = {name: self.preprocessors[name](columns[name]) for name in columns}
        for cross in self.crosses:
            crossed = [values[name] for name in cross.feature_names]
            values[cross.name] = self.crossers[cross.name](crossed)
        return values

    def _tw_merged(self, values):
        for name, encoder in self.one_hot_encoders.items():
            values[name] = encoder(values[name])
        outputs = {name: values[name] for name in self._tw_names()}
        if self.output_mode == "dict":
            return outputs
        return self.concat(list(outputs.values()))

    # --- files

    def save(self, filepath: str | os.PathLike) -> None:
        """Write a ``.keras`` file, which `keras.saving.load_model` reads.

        Args:
            filepath: Path of the file.
        """
        save_model(self, filepath)

    def get_config(self) -> dict[str, Any]:
        return {
            "features": serialize_keras_object(self.features),
            "output_mode": self.output_mode,
            "crosses": serialize_keras_object(self.crosses),
            "crossing_dim": self.crossing_dim,
            "hashing_dim": self.hashing_dim,
            "num_discretization_bins": self.num_discretization_bins,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)

    def get_build_config(self) -> dict[str, Any]:
        layers = self.preprocessors.items()
        return {name: layer.get_build_config() for name, layer in layers}

    def build_from_config(self, config: dict[str, Any] | None) -> None:
        for name, shapes in (config or {}).items():
            if not self.preprocessors[name].built:
                self.preprocessors[name].build_from_config(shapes)
        self._is_adapted = True


# ------------------------------------------------------------------------------- parts


class Feature:
    """Configuration of a feature: the input dtype, the layer, and the encoding."""

    _tw_kind = "feature"

    def __init__(self, dtype: str, preprocessor: Any, output_mode: str):
        self.dtype = dtype
        if isinstance(preprocessor, dict):
            preprocessor = deserialize_keras_object(preprocessor)
        if not isinstance(preprocessor, Layer):
            raise ValueError(
                f"FeatureSpace.feature: preprocessor must be a layer, got {preprocessor!r}"
            )
        self.preprocessor = preprocessor
        modes = ("int", "one_hot", "float")
        self.output_mode = one_of(self, "output_mode", output_mode, modes)

    def get_config(self) -> dict[str, Any]:
        return {
            "dtype": self.dtype,
            "preprocessor": serialize_keras_object(self.preprocessor),
            "output_mode": self.output_mode,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


class Cross:
    """Configuration of features that are hashed together."""

    _tw_kind = "feature"

    def __init__(
        self,
        feature_names: Sequence[str],
        crossing_dim: int,
        output_mode: str = "one_hot",
    ):
        self.feature_names = tuple(feature_names)
        self.crossing_dim = crossing_dim
        modes = ("int", "one_hot")
        self.output_mode = one_of(self, "output_mode", output_mode, modes)

    @property
    def name(self) -> str:
        return "_X_".join(self.feature_names)

    def get_config(self) -> dict[str, Any]:
        return {
            "feature_names": list(self.feature_names),
            "crossing_dim": self.crossing_dim,
            "output_mode": self.output_mode,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


class TFDIdentity(ShapePreserving, Layer):
    """Return the inputs, cast to the dtype of the layer."""

    autocast = False

    def call(self, inputs: Any) -> Any:
        return cast(inputs, self.compute_dtype)


class TFDConcat(Layer):
    """Concatenate inputs along ``axis``, in the dtype that they promote to."""

    autocast = False

    def __init__(self, axis: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Any) -> Any:
        return concatenate(inputs, axis=self.axis)


for _class in (Feature, Cross, TFDConcat, TFDIdentity):
    register("feature", _class.__name__, _class)


def _name(kind, name):
    return f"{name or unique_name(kind)}_preprocessor"


def _learns(layer):
    """Return whether a layer must adapt to data, because it was not configured fully."""
    if isinstance(layer, Discretization):
        return layer.num_bins is not None
    given = ("input_mean", "input_vocabulary")
    return hasattr(layer, "adapt") and all(
        [getattr(layer, x, None) is None for x in given]
    )


def _category_count(name, layer):
    """Return the number of integers that a layer can return."""
    if isinstance(layer, IndexLookup):
        return layer.vocabulary_size()
    if isinstance(layer, Discretization):
        return layer.num_bins or len(layer.bin_boundaries) + 1
    if isinstance(layer, Hashing | HashedCrossing):
        return layer.num_bins
    if isinstance(layer, CategoryEncoding):
        return layer.num_tokens
    raise ValueError(
        f"FeatureSpace: feature {name!r} cannot have output_mode 'one_hot', because "
        f"the number of integers that {type(layer).__name__} returns is unknown; use "
        "'int'"
    )


def _as_column(x):
    rank = len(x.shape)
    if rank == 0:
        return reshape(x, (1, 1))
    return expand_dims(x, -1) if rank == 1 else x
