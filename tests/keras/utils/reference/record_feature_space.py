"""Writes ``feature_space.keras``, a `FeatureSpace` of Keras, and outputs of such.

Needs Keras 3 and TensorFlow, which tapewright does not:

    KERAS_BACKEND=tensorflow python tests/keras/utils/reference/record_feature_space.py
"""

import json
import os
import pathlib

TABLE = {
    "age": [30.5, 41.25, 22.0, 60.0, 35.0],
    "size": [1.0, 2.0, 4.0, 8.0, 16.0],
    "color": ["red", "blue", "red", "green", "red"],
    "rooms": [1, 2, 2, 3, 7],
    "zip": [12345, 54321, 12345, 99999, 1],
    "street": ["a", "b", "c", "a", "d"],
}
HERE = pathlib.Path(__file__).parent


def vectors(FeatureSpace):
    """A space with one vector for a row."""
    features = {
        "size": "float_normalized",
        "color": "string_categorical",
        "rooms": FeatureSpace.integer_categorical(max_tokens=3),
        "age": FeatureSpace.float_discretized(num_bins=3),
        "zip": "float",
    }
    crosses = [("rooms", "color"), FeatureSpace.cross(("color", "age"), 4)]
    return FeatureSpace(features, crosses=crosses, crossing_dim=5)


def columns(FeatureSpace):
    """A space with a tensor for each feature."""
    features = {
        "size": FeatureSpace.float_rescaled(0.5, 1.0),
        "color": FeatureSpace.string_categorical(num_oov_indices=2, output_mode="int"),
        "rooms": "float_discretized",
        "zip": "integer_hashed",
        "street": FeatureSpace.string_hashed(7, output_mode="int"),
    }
    return FeatureSpace(
        features,
        output_mode="dict",
        crosses=[FeatureSpace.cross(("street", "zip"), 9, output_mode="int")],
        hashing_dim=6,
        num_discretization_bins=2,
    )


def select(space, index=slice(None)):
    return {name: TABLE[name][index] for name in space.features}


def outputs(FeatureSpace):
    """Those of a table and of a row, with their dtypes."""
    found = {}
    for make in (vectors, columns):
        space = make(FeatureSpace)
        space.adapt(select(space))
        for name, index in (("table", slice(None)), ("row", 1)):
            values = space(select(space, index))
            values = values if isinstance(values, dict) else {"all": values}
            for key, value in values.items():
                value = value.numpy()
                entry = [value.dtype.name, value.tolist()]
                found[f"{make.__name__} {name} {key}"] = entry
    return found


def main():
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    import keras

    FeatureSpace = keras.utils.FeatureSpace
    space = vectors(FeatureSpace)
    space.adapt(select(space))
    space.save(HERE / "feature_space.keras")
    text = json.dumps(outputs(FeatureSpace))
    (HERE / "feature_space.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
