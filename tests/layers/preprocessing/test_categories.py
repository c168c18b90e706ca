"""Sparse and ragged outputs of layers on categories; the numbers are those of Keras."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras.layers import (
    CategoryEncoding,
    Dense,
    Discretization,
    Embedding,
    HashedCrossing,
    Hashing,
    IntegerLookup,
    StringLookup,
    TextVectorization,
)

SMALL = np.array([[3, 0, 0], [1, 2, 1]])
CUBE = np.array([[[3, 0], [1, 2]], [[1, 1], [3, 3]]])
WORDS = np.array([["a", "b", "a"], ["c", "z", "q"]])
TEXTS = np.array(["a b a", "c z", ""])
ABC = {"vocabulary": ["a", "b", "c"], "sparse": True}
IDF = {"output_mode": "tf_idf", "idf_weights": [2.0, 3.0, 4.0]}
ROWS = [["a", "b", "a"], ["z"], []]


def ragged(rows):
    return tw.ragged.constant(rows)


def parts(x):
    """What a sparse tensor is of: indices, values, dtype, shape."""
    assert isinstance(x, tw.SparseTensor)
    assert x.dense_shape.numpy().tolist() == list(x.shape)
    indices = "".join(map(str, np.ravel(x.indices.numpy())))
    return indices, x.values.numpy().tolist(), x.dtype.name, list(x.shape)


# layer, inputs, indices one behind the other, values, dtype, shape
def sparse_cases():
    return [
        (CategoryEncoding(4, "one_hot", True), [2, 0], "0210", [1, 1], "float32", [2, 4]),
        (CategoryEncoding(4, "one_hot", True), [[2], [0]], "0210", [1, 1], "float32", [2, 4]),
        (CategoryEncoding(4, "one_hot", True), SMALL[:1], "003010020", [1, 1, 1], "float32",
         [1, 3, 4]),
        # Integers that have no place: an entry 0, as in Keras for those below 0.
        (CategoryEncoding(4, "one_hot", True), [5, -1, 1], "001021", [0, 0, 1], "float32",
         [3, 4]),
        (CategoryEncoding(4, "multi_hot", True), SMALL, "00031112", [1] * 4, "float32", [2, 4]),
        (CategoryEncoding(4, "count", True), SMALL, "00031112", [2, 1, 2, 1], "float32",
         [2, 4]),
        (CategoryEncoding(4, "count", True), 2, "2", [1], "float32", [4]),
        (CategoryEncoding(4, "count", True), [5, -1, 1, 1], "1", [2], "float32", [4]),
        (CategoryEncoding(4, "count", True), np.zeros((2, 0), int), "", [], "float32", [2, 4]),
        (CategoryEncoding(4, "count", True), CUBE, "001003010012101103111113",
         [1] * 8, "float32", [2, 2, 4]),
        (CategoryEncoding(4, "count", True), ragged([[3, 0, 0], [1, 2]]), "00031112",
         [2, 1, 1, 1], "float32", [2, 4]),
        (CategoryEncoding(4, "count", True), tw.sparse.from_dense(SMALL), "031112",
         [1, 2, 1], "float32", [2, 4]),
        (Discretization([0.0, 1.0], output_mode="count", sparse=True),
         [[-1.5, 0.5, 3.0], [0.0, 0.0, 9.0]], "0001021112", [1, 1, 1, 2, 1], "float32", [2, 3]),
        (Hashing(4, output_mode="count", sparse=True), [["a", "b", "a"], ["c", "d", "e"]],
         "02031011", [1, 2, 1, 2], "float32", [2, 4]),
        (HashedCrossing(5, "one_hot", True), (["A", "B", "A"], [101, 101, 102]), "011423",
         [1, 1, 1], "float32", [3, 5]),
        (StringLookup(output_mode="one_hot", **ABC), ["c", "z"], "0310", [1, 1], "int64",
         [2, 4]),
        (StringLookup(output_mode="binary", **ABC), WORDS, "01021013", [1] * 4, "int64",
         [2, 4]),
        (StringLookup(output_mode="count", mask_token="z", **ABC), WORDS, "01021013",
         [2, 1, 1, 1], "int64", [2, 4]),
        (StringLookup(output_mode="count", max_tokens=6, pad_to_max_tokens=True, **ABC),
         ragged(ROWS), "010210", [2, 1, 1], "int64", [3, 6]),
        (StringLookup(**ABC, **IDF), ["c", "z", "q"], "03", [6, 4], "float32", [4]),
        # Keras raises an error for matrices: these are its dense outputs.
        (StringLookup(**ABC, **IDF), WORDS, "01021013", [4, 3, 6, 4], "float32", [2, 4]),
        (IntegerLookup(vocabulary=[10, 20], output_mode="count", sparse=True),
         [[10, 20, 5], [20, 20, 20]], "00010212", [1, 1, 1, 3], "int64", [2, 3]),
        (TextVectorization(output_mode="count", **ABC), TEXTS, "01021013", [2, 1, 1, 1],
         "int64", [3, 4]),
        (TextVectorization(output_mode="count", **ABC), "a b a", "12", [2, 1], "int64", [4]),
    ]  # fmt: skip


def test_sparse_outputs_have_the_entries_of_keras():
    for layer, inputs, *expected in sparse_cases():
        assert parts(layer(inputs)) == tuple(expected), (layer, inputs)
    weights = [[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]]
    found = CategoryEncoding(4, "count", True)(SMALL, count_weights=weights)
    assert parts(found)[:2] == ("00031112", [3.0, 0.5, 8.0, 4.0])
    weights = [[[0.5, 1.0], [2.0, 3.0]]]
    found = CategoryEncoding(4, "count", True)(CUBE[:1], count_weights=weights)
    assert parts(found)[:2] == ("001003010012", [2.0, 0.5, 1.0, 3.0])


def test_sparse_outputs_are_the_dense_ones():
    rng = np.random.default_rng(0)
    for shape in ((5,), (4, 6), (3, 4, 5), (0, 3), (3, 0)):
        x = rng.integers(-2, 9, shape)
        for mode in ("one_hot", "multi_hot", "count"):
            dense = CategoryEncoding(7, mode)(x)
            sparse = CategoryEncoding(7, mode, sparse=True)(x)
            assert sparse.dtype == dense.dtype and sparse.shape == dense.shape
            np.testing.assert_array_equal(tw.sparse.to_dense(sparse), dense)


# layer, inputs, outputs
def ragged_cases():
    return [
        (StringLookup(vocabulary=["a", "b"]), ragged(ROWS), [[1, 2, 1], [0], []]),
        (StringLookup(vocabulary=["a", "b"]), ragged([[["a"], ["b", "b"]], []]),
         [[[1], [2, 2]], []]),
        (StringLookup(vocabulary=["a", "b"], invert=True), ragged([[1, 2], [0]]),
         [[b"a", b"b"], [b"[UNK]"]]),
        (StringLookup(vocabulary=["a"], output_mode="one_hot"), ragged([["a", "b"], ["a"]]),
         [[[0, 1], [1, 0]], [[0, 1]]]),
        (IntegerLookup(vocabulary=[10, 20]), ragged([[10, 20, 5], [20], []]),
         [[1, 2, 0], [2], []]),
        (Hashing(4), ragged([["a", "b", "a"], ["c"]]), [[3, 2, 3], [0]]),
        (Hashing(4, mask_value=3), ragged([[1, 2, 3], [4]]), [[1, 2, 0], [3]]),
        (Discretization([0.0, 1.0]), ragged([[-1.0, 0.0], [3.0]]), [[0, 1], [2]]),
        (TextVectorization(vocabulary=["a", "b", "c"], ragged=True), TEXTS,
         [[2, 3, 2], [4, 1], []]),
        (TextVectorization(vocabulary=["a", "b", "c"], ragged=True, output_sequence_length=2),
         TEXTS, [[2, 3], [4, 1], []]),
    ]  # fmt: skip


def test_ragged_tensors_keep_their_rows():
    for layer, inputs, expected in ragged_cases():
        found = layer(inputs)
        assert isinstance(found, tw.RaggedTensor) and found.to_list() == expected, layer
    vectorize = TextVectorization(vocabulary=["a", "b", "c"], ragged=True)
    assert vectorize(TEXTS).dtype == tw.int64
    assert vectorize("a b a").numpy().tolist() == [2, 3, 2]
    unsplit = TextVectorization(
        vocabulary=["a", "b"], ragged=True, split=None, output_sequence_length=3
    )
    assert unsplit([["b", "a"]]).numpy().tolist() == [[3, 2]]  # and not filled up
    counts = Hashing(4, output_mode="count")(ragged([["a", "b", "a"], ["c"]]))
    assert counts.numpy().tolist() == [[0, 0, 1, 2], [1, 0, 0, 0]]
    places = Hashing(4)(tw.sparse.from_dense([[1, 0, 3], [4, 0, 0]]))
    assert parts(places) == ("000210", [1, 1, 3], "int64", [2, 3])
    numbers = tw.strings.to_number(tw.strings.split(["1,2", "3"], ","), tw.float32)
    assert numbers.to_tensor().numpy().tolist() == [[1.0, 2.0], [3.0, 0.0]]


@pytest.mark.parametrize("jit", [False, True])
def test_traced_functions_return_what_sizes_allow(jit):
    @tw.function(jit_compile=jit)
    def traced(x, rows):
        one_hot = CategoryEncoding(4, "one_hot", True)(x)
        found = StringLookup(vocabulary=["a", "b"])(rows)
        return one_hot, found, Hashing(4, output_mode="multi_hot")(rows)

    sparse, found, counts = traced(tw.constant([[3, 9]]), ragged(ROWS))
    assert parts(sparse) == ("003010", [1.0, 0.0], "float32", [1, 2, 4])
    assert found.to_list() == [[1, 2, 1], [0], []]
    assert counts.numpy()[2].tolist() == [0, 0, 0, 0]
    count = tw.function(CategoryEncoding(4, "count", True), jit_compile=jit)
    assert parts(count(tw.constant(SMALL)))[1] == [2.0, 1.0, 2.0, 1.0]  # op by op


def test_models_with_sparse_and_ragged_outputs_inside(tmp_path):
    inputs, labels = np.array([["a b a"], ["c"]], object), np.ones((2, 2))
    histories = []
    for sparse in (False, True):
        x = keras.Input((1,), dtype="string")
        vectorize = TextVectorization(
            vocabulary=["a", "b", "c"], output_mode="count", sparse=sparse
        )
        y = vectorize(x)
        assert y.sparse is sparse and y.shape == (None, 4)
        model = keras.Model(x, Dense(2, kernel_initializer="ones")(y))
        model.compile("sgd", "mse")
        histories.append(model.fit(inputs, labels, epochs=2, verbose=0).history["loss"])
    np.testing.assert_allclose(*histories, rtol=1e-6)
    model.save(tmp_path / "sparse.keras")
    again = keras.models.load_model(tmp_path / "sparse.keras")
    assert again.layers[1].get_config()["sparse"] is True
    expected = model.predict(inputs, verbose=0)
    np.testing.assert_array_equal(again.predict(inputs, verbose=0), expected)

    counts = keras.Model(x, y).predict(inputs, batch_size=1, verbose=0)
    assert parts(counts) == ("010213", [2, 1, 1], "int64", [2, 4])
    words = TextVectorization(vocabulary=["a", "b", "c"], ragged=True)
    rows = keras.Model(x, words(x)).predict(inputs, batch_size=1, verbose=0)
    assert rows.to_list() == [[2, 3, 2], [4]]
    data = tw.data.Dataset.from_tensor_slices(inputs[:, 0]).batch(2)
    assert next(iter(data.map(words))).to_list() == [[2, 3, 2], [4]]
    with pytest.raises(TypeError, match="SparseTensor"):
        keras.Model(x, keras.layers.LayerNormalization()(y))(inputs)


def test_inputs_that_have_no_encoding():
    one_hot = StringLookup(output_mode="one_hot", **ABC)
    with pytest.raises(TypeError, match="one_hot.*does not accept a RaggedTensor"):
        one_hot(ragged(ROWS))
    with pytest.raises(TypeError, match="RaggedTensor cannot have a mask"):
        Embedding(4, 2, mask_zero=True)(ragged([[1], [2, 3]]))
    with pytest.raises(
        TypeError, match="count_weights requires dense inputs, got a RaggedTensor"
    ):
        CategoryEncoding(4, "count")(ragged([[1]]), count_weights=[[1.0]])
    with pytest.raises(
        ValueError, match=r"RaggedTensor must have the shape \[batch, n\]"
    ):
        CategoryEncoding(4, "count")(ragged([[[1]]]))
    with pytest.raises(
        ValueError,
        match="Hashing: sparse=True requires an output_mode other than 'int'",
    ):
        Hashing(4, sparse=True)
    assert HashedCrossing(4, sparse=True)((["a"], [1])).shape == (1,)  # as in Keras
