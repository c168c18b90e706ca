"""`Dataset`: lengths, `zip`, `reduce`, mistakes."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Dataset,
    NumpyIterator,
)

from .elements_of import RAGGED, X, Y, lengths, values


def test_zip_ends_with_the_shortest():
    ds = Dataset.zip((Dataset.range(3), {"b": Dataset.range(10).batch(2)}))
    assert values(ds)[2] == (2, {"b": [4, 5]}) and len(ds) == 3


@pytest.mark.parametrize(
    "transform, expected",
    [
        (lambda ds: ds.take(2), [0, 1]),
        (lambda ds: ds.take(-1), [0, 1, 2, 3, 4]),
        (lambda ds: ds.skip(3), [3, 4]),
        (lambda ds: ds.skip(-1), []),
        (lambda ds: ds.shard(2, 1), [1, 3]),
        (lambda ds: ds.take(2).repeat(2), [0, 1, 0, 1]),
        (lambda ds: ds.concatenate(Dataset.range(8, 10)), [0, 1, 2, 3, 4, 8, 9]),
        (lambda ds: ds.take(2).enumerate(5), [(5, 0), (6, 1)]),
        (lambda ds: ds.cache().prefetch(AUTOTUNE), [0, 1, 2, 3, 4]),
        (lambda ds: ds.flat_map(Dataset.range), [0, 0, 1, 0, 1, 2, 0, 1, 2, 3]),
        (lambda ds: ds.apply(lambda d: d.take(1)), [0]),
    ],
)
def test_elements_are_chosen_as_told(transform, expected):
    ds = transform(Dataset.range(5))
    assert values(ds) == expected
    assert int(ds.cardinality()) in (len(expected), UNKNOWN_CARDINALITY)


def test_reduce_folds_from_the_left():
    total = Dataset.range(4).reduce(np.int64(1), lambda state, x: state * 2 + x)
    assert int(total) == ((((1 * 2 + 0) * 2 + 1) * 2 + 2) * 2 + 3)


def test_elements_of_different_shapes_are_cached_too():
    ds = Dataset.from_generator(lengths, output_signature=RAGGED).cache()
    assert values(ds) == values(ds) and len(values(ds)) == 3


def test_lengths_are_known_unknown_or_endless():
    endless = Dataset.range(3).repeat()
    assert int(endless.cardinality()) == INFINITE_CARDINALITY
    assert int(Dataset.range(3).filter(bool).cardinality()) == UNKNOWN_CARDINALITY
    assert len(Dataset.range(10).batch(3)) == 4 and len(endless.take(7)) == 7
    with pytest.raises(TypeError, match="the length of the dataset is infinite"):
        len(endless)
    assert endless  # has no length, and is true


def test_repeating_nothing_ends():
    assert values(Dataset.range(0).repeat()) == []


def test_files_are_listed_in_order_or_shuffled(tmp_path):
    """As TensorFlow: all matches are sorted, and one that matches twice comes twice."""
    for name in ("b.txt", "a.txt", "c.py"):
        (tmp_path / name).touch()

    def names(pattern, **options):
        ds = Dataset.list_files(pattern, **options)
        return [x.decode().split("/")[-1] for x in ds.as_numpy_iterator()]

    folder = str(tmp_path)
    assert names(f"{folder}/*.txt", shuffle=False) == ["a.txt", "b.txt"]
    patterns = tw.constant([f"{folder}/c.py", f"{folder}/[ab]*", f"{folder}/a*"])
    found = names(patterns, shuffle=False)
    assert found == ["a.txt", "a.txt", "b.txt", "c.py"]
    shuffled = Dataset.list_files(f"{folder}/*", seed=1)
    runs = [list(shuffled.as_numpy_iterator()) for _ in range(8)]
    assert len(shuffled) == 3 and len(set(map(tuple, runs))) > 1
    with pytest.raises(tw.errors.InvalidArgumentError, match="no file matches"):
        Dataset.list_files(f"{folder}/*.csv")


def test_arguments_of_generators_arrive_as_arrays():
    """As in TensorFlow."""
    types = Dataset.from_generator(
        lambda *args: iter([type(x).__name__ for x in args]),
        output_types=tw.string,
        args=(1, [2, 3], tw.constant("a")),
    )
    assert list(types.as_numpy_iterator()) == [b"int32", b"ndarray", b"bytes"]


def test_names_of_transformations_have_no_effect():
    ds = Dataset.range(8, name="n").map(abs, name="n").filter(bool, name="n")
    ds = ds.shuffle(8, name="n").batch(2, name="n").unbatch(name="n").take(1, name="n")
    assert int(ds.get_single_element(name="n")) in range(1, 8)


def test_iterators_have_a_method_next():
    ds = Dataset.range(2)
    for iterator in (iter(ds), ds.as_numpy_iterator()):
        assert [int(iterator.next()), int(iterator.next())] == [0, 1]
        with pytest.raises(StopIteration):
            iterator.next()


def test_iterators_of_arrays_are_of_a_class():
    iterator = Dataset.range(2).as_numpy_iterator()
    assert isinstance(iterator, NumpyIterator) and next(iterator) == 0
    assert list(iterator) == [1]


# --- mistakes


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: Dataset.from_tensor_slices((X, Y[:3])), ValueError, "length"),
        (lambda: Dataset.from_tensor_slices(1), ValueError, "axis"),
        (
            lambda: Dataset.range(3).batch(0),
            ValueError,
            "batch_size .*1.*got 0",
        ),
        (
            lambda: Dataset.range(3).batch("a"),
            TypeError,
            "batch_size .*got 'a'",
        ),
        (lambda: Dataset.range(3).shard(2, 2), ValueError, "below num_shards"),
        (lambda: Dataset.range(3).cache(3), TypeError, "int"),
        (
            lambda: Dataset.zip((Dataset.range(3), [1])),
            TypeError,
            "zip: expects a Dataset",
        ),
        (lambda: Dataset.from_generator([1, 2]), TypeError, "function"),
        (
            lambda: list(Dataset.range(2).flat_map(lambda x: x)),
            TypeError,
            "function .*got Tensor",
        ),
        (lambda: Dataset.range(2).get_single_element(), ValueError, "has more"),
        (lambda: Dataset.range(), ValueError, "1 to 3 numbers"),
        (lambda: Dataset.zip(), TypeError, "give either"),
        (lambda: Dataset.zip([Dataset.range(2)]), TypeError, "list"),
        (lambda: Dataset.range(2).map(abs, 0), ValueError, "num_parallel_calls"),
        (lambda: Dataset.range(2).repeat().shuffle(-2), ValueError, "infinite"),
        (
            lambda: Dataset.from_generator(list, "int32", output_signature=RAGGED),
            TypeError,
            "not both",
        ),
        (
            lambda: Dataset.from_generator(list, output_signature=tw.int32),
            TypeError,
            "TensorSpec",
        ),
        (
            lambda: Dataset.from_generator(list, output_shapes=[]),
            TypeError,
            "output_types",
        ),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_an_error_says_at_which_element():
    with pytest.raises(ZeroDivisionError) as caught:
        list(Dataset.range(3).map(lambda x: 1 // (1 - int(x))))
    assert caught.value.__notes__ == ["In Dataset.map, at element 1"]


def test_an_iterator_that_failed_does_not_seem_to_be_at_its_end():
    iterator = iter(Dataset.range(3).map(lambda x: 1 // int(x)))
    for error in (ZeroDivisionError, RuntimeError):
        with pytest.raises(error):
            next(iterator)
