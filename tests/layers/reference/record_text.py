"""Writes ``text.json``: what Keras' layers of vocabularies, texts and hashes give.

Needs Keras 3 and TensorFlow, which tapewright does not:

    KERAS_BACKEND=tensorflow python tests/layers/reference/record_text.py

An entry has the outputs and their dtype, the config, and of a layer with a vocabulary all
its tokens; or the class of the error.
"""

import json
import os
import pathlib

WORDS = [["a", "c", "d"], ["d", "z", "b"], ["z", "d", ""]]
NUMBERS = [[12, 1138, 42], [42, 1000, 36], [-5, 42, 0]]
VOCABULARY, IDF = ["a", "b", "c", "d"], [0.25, 0.75, 0.6, 0.4]
INTEGERS = [12, 36, 1138, 42]
TEXTS = [
    ["The cat, the DOG -- and the bird!"],
    ["  a dog\tand a\ncat's"],
    [""],
    ["Zoë isn't\x0bhére; a_b (c) 3.5"],
]
OOV = [["m", "z", "b", "longer than sixteen bytes"], ["", "q", "mm", "a"]]
MORE = [[37, 1000, 36, -7], [0, 8, 2**40, 12]]


def case(layer, config, inputs, adapt=None):
    """A layer, its inputs, and data for ``adapt``."""
    return layer, config, inputs, adapt


def _lookups(layer, tokens, data, unknown, mask, oov):
    vectors = [{"output_mode": m} for m in ("one_hot", "multi_hot", "count")]
    given = {"vocabulary": tokens}
    idf = {"output_mode": "tf_idf", "idf_weights": IDF}
    for config in (
        {},
        {"num_oov_indices": 2},
        {"num_oov_indices": 3, "mask_token": mask},
        {"mask_token": mask},
        {"mask_token": mask, "vocabulary": [mask, oov, *tokens]},
        {"vocabulary": [oov, *tokens]},
        *vectors,
        {**vectors[0], "mask_token": mask},
        {**vectors[1], "mask_token": mask, "num_oov_indices": 2},
        {**vectors[2], "mask_token": mask, "max_tokens": 9, "pad_to_max_tokens": True},
        {**vectors[1], "max_tokens": 9, "pad_to_max_tokens": True},
        idf,
        {**idf, "mask_token": mask, "num_oov_indices": 2},
        {**idf, "vocabulary": [oov, *tokens], "idf_weights": [0.9, *IDF]},
        {**idf, "max_tokens": 8, "pad_to_max_tokens": True},
    ):
        yield case(layer, {**given, **config}, unknown)
    for mode in ("one_hot", "multi_hot", "count"):
        config = {**given, "output_mode": mode}
        yield case(layer, config, [row[:1] for row in data])
        yield case(layer, config, data[0])
        yield case(layer, config, data[0][0])
    yield case(layer, {**given, "num_oov_indices": 0}, [tokens])
    for config in (
        {},
        {"mask_token": mask, "max_tokens": 5},
        {"output_mode": "tf_idf"},
        {"output_mode": "tf_idf", "max_tokens": 9, "pad_to_max_tokens": True},
        {"output_mode": "count", "max_tokens": 4, "num_oov_indices": 2},
    ):
        yield case(layer, config, unknown, adapt=data)
    yield case(layer, {}, unknown, adapt=data[0])
    indices = [[1, 3, 4], [4, 0, 2], [9, -1, 5]]
    for config in ({}, {"mask_token": mask}, {"num_oov_indices": 2}):
        yield case(layer, {**given, **config, "invert": True}, indices)


CASES = [
    *_lookups("StringLookup", VOCABULARY, WORDS, OOV, "", "[UNK]"),
    case("StringLookup", {"vocabulary": VOCABULARY, "num_oov_indices": 3,
                          "salt": [133, 137]}, OOV),
    case("StringLookup", {"vocabulary": VOCABULARY, "num_oov_indices": 3,
                          "salt": 5}, OOV),
    case("StringLookup", {"oov_token": "?"}, WORDS, adapt=[["?", "a", "ä", "ä", "b"]]),
    *_lookups("IntegerLookup", INTEGERS, NUMBERS, MORE, 0, -1),
    case("IntegerLookup", {"vocabulary": INTEGERS, "num_oov_indices": 4,
                           "oov_method": "farmhash"}, MORE),
    case("IntegerLookup", {"vocabulary": INTEGERS, "num_oov_indices": 4,
                           "oov_method": "farmhash", "salt": [3, 4]}, MORE),
    *[
        case("TextVectorization", config, TEXTS, adapt=TEXTS)
        for config in (
            {},
            {"output_sequence_length": 4},
            {"output_sequence_length": 9},
            {"standardize": None},
            {"standardize": "lower"},
            {"standardize": "strip_punctuation", "max_tokens": 6},
            {"split": "character", "output_sequence_length": 12},
            {"split": None},
            {"split": None, "output_sequence_length": 3},
            {"split": None, "output_mode": "count"},
            {"ngrams": 2, "output_sequence_length": 8},
            {"ngrams": (1, 3)},
            {"output_mode": "multi_hot"},
            {"output_mode": "count", "ngrams": 2, "max_tokens": 9},
            {"output_mode": "tf_idf"},
            {"output_mode": "multi_hot", "max_tokens": 20, "pad_to_max_tokens": True},
            {"output_mode": "tf_idf", "max_tokens": 20, "pad_to_max_tokens": True},
        )
    ],
    *[
        case("TextVectorization", {"vocabulary": VOCABULARY, **config}, texts)
        for texts in (["a b", "d c q"], "b a e")
        for config in (
            {},
            {"output_mode": "count"},
            {"output_mode": "tf_idf", "idf_weights": IDF},
        )
    ],
    *[
        case("Hashing", config, inputs)
        for config in (
            {"num_bins": 3},
            {"num_bins": 3, "salt": 133},
            {"num_bins": 7, "salt": [133, 137]},
            {"num_bins": 4, "output_mode": "multi_hot"},
            {"num_bins": 4, "output_mode": "count", "dtype": "int32"},
            {"num_bins": 4, "output_mode": "one_hot"},
            {"num_bins": 1},
            {"num_bins": 5, "dtype": "int32"},
        )
        for inputs in (OOV, MORE, [["A"], ["B"]])
    ],
    case("Hashing", {"num_bins": 3, "mask_value": ""}, OOV),
    case("Hashing", {"num_bins": 3, "mask_value": 12}, MORE),
    case("Hashing", {"num_bins": 3}, [[1.7, -2.5]]),
    *[
        case("HashedCrossing", {"num_bins": 5, "output_mode": mode}, inputs)
        for mode in ("int", "one_hot")
        for inputs in (
            [["A", "B", "A", "B", "A"], [101, 101, 101, 102, 102]],
            [[["A"], ["B"]], [[-7], [2**40]], [["x"], [""]]],
            ["A", 5],
        )
    ],
]  # fmt: skip

GIVEN = {"vocabulary": VOCABULARY}
ERRORS = [
    case("StringLookup", {"max_tokens": 1}, None),
    case("StringLookup", {"pad_to_max_tokens": True}, None),
    case("StringLookup", {"num_oov_indices": -1}, None),
    case("StringLookup", {"output_mode": "hot"}, None),
    case("StringLookup", {"invert": True, "output_mode": "count"}, None),
    case("StringLookup", {"sparse": True}, None),
    case("StringLookup", {"idf_weights": IDF}, None),
    case("StringLookup", {"salt": "x"}, None),
    case("StringLookup", {"vocabulary": []}, None),
    case("StringLookup", {"vocabulary": ["a", "b", "a"]}, None),
    case("StringLookup", {"vocabulary": ["a", ""], "mask_token": ""}, None),
    case("StringLookup", {"vocabulary": ["a", "[UNK]"], "invert": True}, None),
    case("StringLookup", {**GIVEN, "max_tokens": 4}, None),
    case("StringLookup", {**GIVEN, "output_mode": "tf_idf"}, None),
    case("StringLookup", {**GIVEN, "output_mode": "tf_idf", "idf_weights": [1.0]}, None),
    case("StringLookup", {"vocabulary": "no such file"}, None),
    case("StringLookup", GIVEN, None, adapt=WORDS),
    case("StringLookup", {**GIVEN, "num_oov_indices": 0}, OOV),
    case("StringLookup", {"output_mode": "count"}, OOV),
    case("IntegerLookup", {"vocabulary": INTEGERS, "num_oov_indices": 0}, MORE),
    case("IntegerLookup", {"vocabulary_dtype": "int32"}, None),
    case("IntegerLookup", {"salt": 1}, None),
    case("IntegerLookup", {"oov_method": "hash"}, None),
    case("TextVectorization", {"standardize": "upper"}, None),
    case("TextVectorization", {"split": "comma"}, None),
    case("TextVectorization", {"ngrams": "2"}, None),
    case("TextVectorization", {"output_sequence_length": 2.5}, None),
    case("TextVectorization", {"output_sequence_length": 2, "output_mode": "count"},
         None),
    case("TextVectorization", {"ragged": True, "output_mode": "count"}, None),
    case("TextVectorization", {}, [["a", "b"]], adapt=TEXTS),
    case("Hashing", {"num_bins": 0}, None),
    case("Hashing", {"num_bins": 2, "salt": [1, 2, 3]}, None),
    case("Hashing", {"num_bins": 2, "dtype": "float32"}, None),
    case("Hashing", {"num_bins": 2, "output_mode": "tf_idf"}, None),
    case("HashedCrossing", {"num_bins": 2, "output_mode": "count"}, None),
    case("HashedCrossing", {"num_bins": 2}, [["a", "b"]]),
    case("HashedCrossing", {"num_bins": 2}, [["a", "b"], [1, 2, 3]]),
    case("HashedCrossing", {"num_bins": 2}, [["a", "b"], [1.0, 2.0]]),
]  # fmt: skip


def key(layer, config, inputs, adapt):
    """The name of an entry."""
    return json.dumps([layer, config, inputs, adapt])


def run(layers, arrays, layer, config, inputs, adapt):
    """The layer of a case, adapted, and its outputs."""
    made = getattr(layers, layer)(name="layer", **config)
    if adapt is not None:
        made.adapt(arrays(adapt))
    if inputs is None:
        return made, None
    several = layer == "HashedCrossing"
    return made, made([arrays(x) for x in inputs] if several else arrays(inputs))


def main():
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    import numpy as np
    import tensorflow as tf

    import keras

    entries = {}
    for each in CASES:
        layer, outputs = run(keras.layers, tf.constant, *each)
        config = json.loads(json.dumps(layer.get_config(), default=str))
        config["dtype"] = keras.dtype_policies.serialize(layer.dtype_policy)["config"][
            "name"
        ]
        values = np.asarray(outputs)
        dtype = outputs.dtype.name
        if dtype == "string":
            values = np.char.decode(values.astype("S"))
        tokens = getattr(layer, "get_vocabulary", lambda: None)()
        tokens = None if tokens is None else [
            t if isinstance(t, str) else int(t) for t in tokens]  # fmt: skip
        entries[key(*each)] = [values.tolist(), dtype, config, tokens]
    for each in ERRORS:
        try:
            run(keras.layers, tf.constant, *each)
        except Exception as error:
            entries[key(*each)] = type(error).__name__
        else:
            raise RuntimeError(f"{each} is no error")
    lines = ",\n".join(
        [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in entries.items()]
    )
    path = pathlib.Path(__file__).parent / "text.json"
    path.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
