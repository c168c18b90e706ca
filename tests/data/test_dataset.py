"""What transformations of data sets yield; the expectations are those of ``tf.data``."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Dataset,
)

X = np.arange(24.0).reshape(12, 2)
Y = np.arange(12)


def values(dataset):
    """The elements as lists of Python numbers."""

    def plain(element):
        if isinstance(element, tuple):
            return tuple([plain(item) for item in element])
        if isinstance(element, dict):
            return {key: plain(item) for key, item in element.items()}
        return element.numpy().tolist()

    return [plain(element) for element in dataset]


def lengths():
    for n in (3, 1, 2):
        yield n, np.full(n, n, "f4")


RAGGED = (tw.TensorSpec((), "int32"), tw.TensorSpec([None], "float32"))


def test_slices_keep_structure_and_dtype():
    ds = Dataset.from_tensor_slices((X, {"a": Y}))
    first = next(iter(ds))
    assert first[0].dtype == tw.float64 and first[1]["a"].dtype == tw.int64
    assert values(ds.take(2)) == [([0.0, 1.0], {"a": 0}), ([2.0, 3.0], {"a": 1})]


def test_a_list_is_one_tensor():
    assert values(Dataset.from_tensor_slices([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]


def test_the_data_set_keeps_its_own_copy():
    x = np.zeros(3)
    ds = Dataset.from_tensor_slices(x)
    x[:] = 1
    assert values(ds) == [0.0, 0.0, 0.0]


def test_map_gets_the_parts_of_a_tuple_as_arguments():
    assert values(Dataset.from_tensor_slices((Y, X)).map(lambda y, x: y).take(2)) == [
        0,
        1,
    ]


def test_map_turns_a_list_into_a_tuple():
    assert values(Dataset.range(2).map(lambda x: [x, x])) == [(0, 0), (1, 1)]


def test_map_may_compute_in_numpy():
    assert values(Dataset.range(3).map(lambda x: np.sqrt(x.numpy() ** 2))) == [0, 1, 2]


def test_filter_keeps_what_is_true():
    assert values(Dataset.range(10).filter(lambda x: x % 3 == 0)) == [0, 3, 6, 9]


@pytest.mark.parametrize("mapped", [False, True])
def test_the_last_batch_may_be_shorter(mapped):
    ds = Dataset.from_tensor_slices(Y)
    ds = ds.map(lambda y: y) if mapped else ds  # gathered or collected
    assert [len(batch) for batch in ds.batch(5)] == [5, 5, 2]
    assert [len(batch) for batch in ds.batch(5, drop_remainder=True)] == [5, 5]
    assert values(ds.batch(5))[2] == [10, 11]


def test_batches_of_different_shapes_are_refused():
    ds = Dataset.from_generator(lengths, output_signature=RAGGED)
    with pytest.raises(ValueError, match=r"component 1 .*\(3,\).*\(1,\).*padded_batch"):
        list(ds.batch(2))


def test_padded_batch_pads_to_the_longest():
    ds = Dataset.from_generator(lengths, output_signature=RAGGED).padded_batch(2)
    assert values(ds)[0] == ([3, 1], [[3.0, 3.0, 3.0], [1.0, 0.0, 0.0]])


def test_padded_batch_takes_shapes_and_values():
    ds = Dataset.from_generator(lengths, output_signature=RAGGED)
    ds = ds.padded_batch(3, padded_shapes=((), [4]), padding_values=(0, -1.0))
    assert values(ds)[0][1][1] == [1.0, -1.0, -1.0, -1.0]
    with pytest.raises(ValueError, match="larger"):
        list(
            Dataset.from_generator(lengths, output_signature=RAGGED).padded_batch(
                3, padded_shapes=((), [2])
            )
        )


def test_unbatch_undoes_batch():
    ds = Dataset.from_tensor_slices((X, Y))
    assert values(ds.batch(5).unbatch()) == values(ds)


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


def test_interleave_takes_turns_by_blocks():
    ds = Dataset.range(1, 4).interleave(
        lambda n: Dataset.from_tensors(n).repeat(3), cycle_length=2, block_length=2
    )
    assert values(ds) == [1, 1, 2, 2, 1, 2, 3, 3, 3]


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ((3,), [[0, 1, 2], [3, 4, 5], [6]]),
        ((3, 2, 2), [[0, 2, 4], [2, 4, 6], [4, 6], [6]]),
        ((2, 4), [[0, 1], [4, 5]]),
        ((3, 2, 1, True), [[0, 1, 2], [2, 3, 4], [4, 5, 6]]),
    ],
)
def test_windows_shift_and_stride(arguments, expected):
    ds = Dataset.range(7).window(*arguments)
    assert len(ds) == len(expected)
    assert values(ds.flat_map(lambda w: w.batch(3))) == expected


def test_reduce_folds_from_the_left():
    total = Dataset.range(4).reduce(np.int64(1), lambda state, x: state * 2 + x)
    assert int(total) == ((((1 * 2 + 0) * 2 + 1) * 2 + 2) * 2 + 3)


# --- order


@pytest.mark.parametrize("buffer_size", [1, 3, 12, 100])
@pytest.mark.parametrize("mapped", [False, True])
def test_shuffle_gives_each_element_once(buffer_size, mapped):
    ds = Dataset.from_tensor_slices(Y)
    ds = ds.map(lambda y: y) if mapped else ds
    assert sorted(values(ds.shuffle(buffer_size))) == list(range(12))


@pytest.mark.parametrize("at_once", [1, 5, 1024])
@pytest.mark.parametrize("buffer_size", [3, 12, 100])
@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds,
        lambda ds: ds.repeat(3),
        lambda ds: ds.skip(2).take(7),
        lambda ds: ds.take(0),
        lambda ds: ds.shuffle(4, seed=3).repeat(2),
        lambda ds: ds.shuffle(12, seed=3),
        lambda ds: ds.shuffle(12, seed=3).shard(2, 1),
    ],
)
def test_gathered_batches_follow_the_same_order_as_elements(
    change, buffer_size, at_once, monkeypatch
):
    monkeypatch.setattr("tapewright.data.ordering.AT_ONCE", at_once)
    rows = change(Dataset.from_tensor_slices(Y)).shuffle(buffer_size, seed=1)
    elements = change(Dataset.from_tensor_slices(Y).map(lambda y: y))
    elements = elements.shuffle(buffer_size, seed=1)
    for _ in range(2):
        expected = values(elements)
        assert not expected or expected != sorted(expected)
        assert sum(values(rows.batch(5)), []) == expected


def test_a_buffer_of_one_keeps_the_order():
    assert values(Dataset.range(5).shuffle(1)) == [0, 1, 2, 3, 4]


def test_an_element_never_comes_before_the_buffer_reaches_it():
    order = values(Dataset.range(50).shuffle(5, seed=0))
    assert all(place >= number - 5 for place, number in enumerate(order))


def test_each_run_has_an_order_of_its_own():
    ds = Dataset.range(20).shuffle(20, seed=1)
    assert values(ds) != values(ds)
    assert (
        len(set(map(str, [values(ds.repeat(3))[i : i + 20] for i in (0, 20, 40)]))) == 3
    )


def test_reshuffling_can_be_switched_off():
    ds = Dataset.range(20).shuffle(20, seed=1, reshuffle_each_iteration=False)
    assert values(ds) == values(ds)


def test_the_order_follows_from_its_seed():
    orders = [values(Dataset.range(20).shuffle(20, seed=seed)) for seed in (3, 3, 4)]
    assert orders[0] == orders[1] != orders[2]


def test_the_order_follows_from_the_global_seed():
    orders = []
    for seed in (3, 3, 4):
        tw.random.set_seed(seed)
        orders.append(values(Dataset.range(20).shuffle(20)))
    assert orders[0] == orders[1] != orders[2]


def test_every_place_is_equally_likely_for_every_element():
    places = np.zeros((4, 4))
    ds = Dataset.range(4).shuffle(4, seed=5)
    for _ in range(400):
        places[np.arange(4), values(ds.batch(4))[0]] += 1
    assert abs(places - 100).max() < 40  # more than four standard deviations


# --- random numbers in functions


def test_random_numbers_in_map_differ_from_element_to_element():
    ds = Dataset.range(4).map(lambda _: tw.random.uniform([]))
    assert len(set(values(ds))) == 4


def test_random_numbers_in_map_are_the_same_in_a_thread_ahead():
    def drawn(prefetch):
        tw.random.set_seed(1)
        ds = Dataset.range(6).map(lambda _: tw.random.uniform([]))
        found = []
        for value in ds.prefetch(3) if prefetch else ds:
            found.append((float(value), float(tw.random.uniform([]))))
        return found

    assert drawn(False) == drawn(True)


# --- cache


def test_cache_calls_the_function_once_for_each_element():
    calls = []
    ds = Dataset.range(4).map(lambda x: calls.append(1) or x * 2).cache()
    assert values(ds) == values(ds) == values(ds.repeat(1)) == [0, 2, 4, 6]
    assert len(calls) == 4


def test_a_run_that_is_left_early_fills_no_cache():
    ds = Dataset.range(4).map(lambda x: x * 2).cache()
    next(iter(ds))
    assert values(ds) == [0, 2, 4, 6]


def test_cached_rows_are_shuffled_and_batched():
    ds = Dataset.from_tensor_slices((X, Y)).map(lambda x, y: (x * 2, y)).cache()
    ds = ds.shuffle(12, seed=1).batch(5)
    for _ in range(3):
        x, y = map(np.concatenate, zip(*values(ds), strict=True))
        assert sorted(y) == list(range(12)) and np.array_equal(x, X[y] * 2)


def test_elements_of_different_shapes_are_cached_too():
    ds = Dataset.from_generator(lengths, output_signature=RAGGED).cache()
    assert values(ds) == values(ds) and len(values(ds)) == 3


# --- what is known


def test_specs_leave_open_what_varies():
    ds = Dataset.from_tensor_slices((X, Y))
    open_specs = (tw.TensorSpec([None, 2], "float64"), tw.TensorSpec([None], "int64"))
    assert ds.batch(5).element_spec == open_specs
    assert ds.batch(5, drop_remainder=True).element_spec[0].shape == (5, 2)
    assert ds.batch(5).map(lambda x, y: (x * 2, y)).element_spec == open_specs
    assert ds.enumerate().element_spec[0] == tw.TensorSpec((), "int64")


def test_the_spec_of_a_function_in_numpy_is_seen_from_an_element():
    calls = []
    ds = Dataset.range(3).map(lambda x: calls.append(1) or np.float32(x.numpy()))
    assert ds.element_spec == tw.TensorSpec((), "float32")
    assert values(ds) == [0, 1, 2]


def test_lengths_are_known_unknown_or_endless():
    endless = Dataset.range(3).repeat()
    assert int(endless.cardinality()) == INFINITE_CARDINALITY
    assert int(Dataset.range(3).filter(bool).cardinality()) == UNKNOWN_CARDINALITY
    assert len(Dataset.range(10).batch(3)) == 4 and len(endless.take(7)) == 7
    with pytest.raises(TypeError, match="endless"):
        len(endless)
    assert endless  # has no length, and is true


def test_repeating_nothing_ends():
    assert values(Dataset.range(0).repeat()) == []


# --- mistakes


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: Dataset.from_tensor_slices((X, Y[:3])), ValueError, "same length"),
        (lambda: Dataset.from_tensor_slices(1), ValueError, "axis"),
        (
            lambda: Dataset.range(3).batch(0),
            ValueError,
            "batch_size must be at least 1",
        ),
        (
            lambda: Dataset.range(3).batch("a"),
            TypeError,
            "batch_size must be an integer",
        ),
        (lambda: Dataset.range(3).shard(2, 2), ValueError, "below num_shards"),
        (lambda: Dataset.range(3).cache("file"), ValueError, "filename='file'"),
        (
            lambda: Dataset.zip((Dataset.range(3), [1])),
            TypeError,
            "zip: expects a Dataset",
        ),
        (lambda: Dataset.from_generator([1, 2]), TypeError, "function"),
        (
            lambda: list(Dataset.range(2).flat_map(lambda x: x)),
            TypeError,
            "return a Dataset",
        ),
        (lambda: Dataset.range(2).get_single_element(), ValueError, "has more"),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_generated_elements_are_held_against_the_signature():
    spec = tw.TensorSpec([2], "float32")
    ds = Dataset.from_generator(lambda: iter([np.zeros(3)]), output_signature=spec)
    with pytest.raises(
        TypeError, match=r"shape \(3,\) where output_signature says \(2,\)"
    ):
        list(ds)
    ds = Dataset.from_generator(lambda: iter([(1, 2)]), output_signature=spec)
    with pytest.raises(TypeError, match="output_signature"):
        list(ds)


def test_an_error_says_at_which_element():
    with pytest.raises(ZeroDivisionError) as caught:
        list(Dataset.range(3).map(lambda x: 1 // (1 - int(x))))
    assert caught.value.__notes__ == ["In Dataset.map, at element 1"]


def test_an_iterator_that_failed_does_not_seem_to_be_at_its_end():
    iterator = iter(Dataset.range(3).map(lambda x: 1 // int(x)))
    for error in (ZeroDivisionError, RuntimeError):
        with pytest.raises(error):
            next(iterator)
