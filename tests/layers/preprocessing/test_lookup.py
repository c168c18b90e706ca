"""`StringLookup` and `IntegerLookup`: vocabularies, modes, files, beside Keras."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.layers import IntegerLookup, StringLookup

from ..recorded_text import check, check_errors

WORDS = [["a", "b", "b"], ["c", "b", "a"]]


def test_strings_are_looked_up_as_by_keras():
    check("StringLookup")


def test_integers_are_looked_up_as_by_keras():
    check("IntegerLookup")


def test_errors_are_those_of_keras():
    check_errors("StringLookup", "IntegerLookup")


def test_adapt_takes_arrays_lists_tensors_and_batches():
    expected = ["[UNK]", "b", "a", "c"]
    dataset = tw.data.Dataset.from_tensor_slices(np.array(WORDS, object))
    for data in (
        WORDS,
        np.array(WORDS),
        np.array(WORDS, object),
        tw.constant(WORDS),
        tw.strings.split(["a b b", "c b a"]),
        dataset,
        dataset.batch(2),
        dataset.unbatch(),
        (row for row in WORDS),
    ):
        layer = StringLookup()
        layer.adapt(data)
        assert layer.get_vocabulary() == expected
    layer.adapt(dataset.repeat(), steps=1)  # anew
    assert layer.get_vocabulary(include_special_tokens=False) == ["b", "a"]
    numbers = IntegerLookup()
    numbers.adapt([3, 1, 3])
    assert numbers.get_vocabulary() == [-1, 3, 1] and numbers.vocabulary_size() == 3


def test_adapt_refuses_what_is_no_batch_of_tokens():
    pairs = tw.data.Dataset.from_tensor_slices((["a"], ["b"]))
    with pytest.raises(TypeError, match="must be one tensor, got a tuple"):
        StringLookup().adapt(pairs)
    with pytest.raises(TypeError, match="must be strings, got int32"):
        StringLookup().adapt([1, 2])
    with pytest.raises(TypeError, match="data must be an array"):
        IntegerLookup().adapt(3)
    with pytest.raises(ValueError, match="data must not be empty"):
        StringLookup().adapt([])
    with pytest.raises(TypeError, match="must be a string, got 1"):
        StringLookup(vocabulary=["a", 1])
    with pytest.raises(TypeError, match="must be an integer, got 1.5"):
        IntegerLookup(vocabulary=[1.5])


def test_counts_are_documents_for_idf_weights():
    layer = StringLookup(output_mode="tf_idf")
    layer.adapt(WORDS)
    two, one = np.log(1 + 2 / 3), np.log(1 + 2 / 2)  # b and a in both, c in one
    expected = [(two + two + one) / 3, two, two, one]
    np.testing.assert_allclose(layer.idf_weights, expected, rtol=1e-6)


def test_vocabularies_come_from_files_and_bytes(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes("b\r\nZoë\r\n".encode())
    for vocabulary in (path, str(path), [b"b", "Zoë".encode()], np.array(["b", "Zoë"])):
        layer = StringLookup(vocabulary=vocabulary)
        assert layer.get_vocabulary() == ["[UNK]", "b", "Zoë"]
    assert StringLookup(vocabulary=path).get_config()["vocabulary"] is None
    path.write_text("7\n-2\n")
    assert IntegerLookup(vocabulary=path)([-2, 7, 0]).numpy().tolist() == [2, 1, 0]
    path.write_text("7\nx\n")
    with pytest.raises(ValueError, match="must be an integer, got b'x' in line 2"):
        IntegerLookup(vocabulary=path)
    with pytest.raises(ValueError, match="encoded in utf-8.*pass the encoding"):
        StringLookup(vocabulary=[b"\xe9"]).get_vocabulary()
    assert (
        StringLookup(vocabulary=[b"\xe9"], encoding="latin-1").get_vocabulary()[1]
        == "é"
    )


def test_the_size_of_vectors_stays_that_of_the_first_vocabulary():
    layer = StringLookup(vocabulary=["a", "b"], output_mode="count")
    layer.set_vocabulary(["c", "d"])
    assert layer(["d", "a"]).numpy().tolist() == [1, 0, 1]
    with pytest.raises(RuntimeError, match="size of 3, .*got 2 tokens"):
        layer.set_vocabulary(["c"])
    padded = StringLookup(output_mode="count", max_tokens=4, pad_to_max_tokens=True)
    for tokens in (["c"], ["d", "a"]):
        padded.set_vocabulary(tokens)
        assert padded(["c"]).shape == (4,)


def test_rows_of_different_lengths_are_counted():
    rows = tw.strings.split(["a b b", "", "c x a x"])
    layer = StringLookup(vocabulary=["a", "b"], mask_token="c", output_mode="count")
    expected = [[0, 1, 2], [0, 0, 0], [2, 1, 0]]
    assert layer(rows).numpy().tolist() == expected
    traced = tw.function(lambda x: layer(tw.strings.split(x)))
    assert traced(["a b b", "", "c x a x"]).numpy().tolist() == expected
    assert StringLookup(vocabulary=["a"])(rows).to_list() == [
        [1, 0, 0],
        [],
        [0, 0, 1, 0],
    ]


def test_models_take_strings_beside_numbers_and_notice_a_new_vocabulary():
    word, number = keras.Input((1,), dtype="string"), keras.Input((1,))
    lookup = StringLookup(vocabulary=["a", "b"], output_mode="one_hot")
    joined = keras.layers.Concatenate()([lookup(word), number])
    assert joined.dtype == "float32"
    model = keras.Model([word, number], joined)
    inputs = [np.array([["b"], ["x"]]), np.array([[0.5], [2.0]])]
    assert model.predict(inputs, verbose=0).tolist() == [[0, 0, 1, 0.5], [1, 0, 0, 2]]
    lookup.set_vocabulary(["x", "y"])
    assert model.predict(inputs, verbose=0).tolist() == [[1, 0, 0, 0.5], [0, 1, 0, 2]]


def test_tokens_with_line_breaks_are_not_written(tmp_path):
    layer = StringLookup()
    layer.adapt(["a\nb"])
    with pytest.raises(ValueError, match="contains a line break"):
        layer.save_assets(tmp_path)
    layer = StringLookup()
    layer.adapt(["\u2028", "", "\u2028"])  # which are no line breaks
    layer.save_assets(tmp_path)
    again = StringLookup(vocabulary_size=3)
    again.load_assets(tmp_path)
    assert again.get_vocabulary() == ["[UNK]", "\u2028", ""]


def test_a_vocabulary_of_many_tokens_is_found_fast():
    tokens = [f"w{i}" for i in range(50_000)]
    layer = StringLookup(vocabulary=tokens, num_oov_indices=3)
    found = layer(tokens[::-100] + ["x", "y"])
    assert found.numpy()[:3].tolist() == [50_002, 49_902, 49_802]
    assert set(found.numpy()[-2:].tolist()) <= {0, 1, 2}
