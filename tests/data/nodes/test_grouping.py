"""`group_by_window`, `bucket_by_sequence_length`, `rebatch`. Elements are TensorFlow's."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset

from ..elements_of import values


def grouped(*sizes):
    return Dataset.range(10).group_by_window(
        lambda x: (7 - x) % 3, lambda key, window: window.batch(4), *sizes
    )


def test_windows_are_reduced_when_they_are_full_and_the_rest_by_keys():
    assert values(grouped(4)) == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    by_key = Dataset.range(10).group_by_window(
        lambda x: x % 2,
        lambda key, window: window.batch(4).map(lambda x: (key, x)),
        window_size_func=lambda key: key + 1,
    )
    expected = [[0], [2], [1, 3], [4], [6], [5, 7], [8], [9]]
    assert values(by_key) == [(x[0] % 2, x) for x in expected]
    assert grouped(4).element_spec == tw.TensorSpec([None], "int64")
    assert int(grouped(4).cardinality()) == -2


def test_orders_in_windows_differ_from_run_to_run_and_follow_from_the_seed():
    def ordered():
        tw.random.set_seed(3)
        ds = Dataset.range(40).group_by_window(
            lambda x: 0, lambda key, window: window.shuffle(20), 20
        )
        return values(ds), values(ds)

    first, second = ordered()
    assert (first, second) == ordered() and first != second
    assert [x - 20 for x in first[20:]] != first[:20]


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: grouped(), ValueError, "give either"),
        (lambda: grouped(2, lambda key: 2), ValueError, "give either"),
        (lambda: grouped(0), ValueError, "window_size"),
        (lambda: list(grouped(None, lambda key: 0)), ValueError, "at least 1"),
        (
            lambda: list(Dataset.range(2).group_by_window(float, lambda k, w: w, 2)),
            TypeError,
            "key_func must return an integer, got float64",
        ),
        (
            lambda: list(
                Dataset.range(2).group_by_window(lambda x: x, lambda k, w: k, 1)
            ),
            TypeError,
            "reduce_func must return a Dataset, got Tensor",
        ),
        (
            lambda: Dataset.range(2).bucket_by_sequence_length(len, [2], [1]),
            ValueError,
            "bucket_batch_sizes",
        ),
        (
            lambda: Dataset.range(2).bucket_by_sequence_length(len, [2, 1], [1, 1, 1]),
            ValueError,
            "increase",
        ),
        (lambda: Dataset.range(2).rebatch(2), ValueError, "scalars"),
        (
            lambda: list(
                Dataset.range(2).map(lambda _: tw.sparse.eye(3)).batch(2).rebatch(2)
            ),
            TypeError,
            "sparse and ragged",
        ),
        (lambda: Dataset.range(2).batch(2).rebatch(0), ValueError, "batch_size"),
        (lambda: Dataset.range(2).batch(2).rebatch([0, 0]), ValueError, "batch_size"),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


def buckets(**options):
    sequences = [[0], [1, 2], [3, 4, 5], [6, 7], [8], [9, 1, 2, 3]]
    spec = tw.TensorSpec([None], "int64")
    ds = Dataset.from_generator(lambda: iter(sequences), output_signature=spec)
    return ds.bucket_by_sequence_length(
        lambda x: tw.shape(x)[0], [2, 4], [2, 2, 1], **options
    )


def test_sequences_of_similar_length_are_batched():
    expected = [[[1, 2, 0], [3, 4, 5]], [[0], [8]], [[9, 1, 2, 3]], [[6, 7]]]
    assert values(buckets()) == expected
    assert buckets().element_spec == tw.TensorSpec([None, None], "int64")
    dropped = buckets(drop_remainder=True, padding_values=np.int64(-1))
    assert values(dropped) == [[[1, 2, -1], [3, 4, 5]], [[0], [8]], [[9, 1, 2, 3]]]
    wide = buckets(padded_shapes=[5])
    assert [np.shape(x) for x in values(wide)] == [(2, 5), (2, 5), (1, 5), (1, 5)]
    assert wide.element_spec == tw.TensorSpec([None, 5], "int64")


def test_sequences_are_padded_to_the_boundary_of_their_bucket():
    iterator = iter(buckets(pad_to_bucket_boundary=True))
    assert next(iterator).shape == (2, 3) and next(iterator).shape == (2, 1)
    with pytest.raises(ValueError, match="pad_to_bucket_boundary"):
        next(iterator)
    with pytest.raises(ValueError, match="one shape"):
        list(buckets(no_padding=True))


def test_nested_elements_are_padded_to_boundaries():
    ds = Dataset.range(1, 4).map(lambda n: (np.arange(int(n)), {"n": n}))

    def padded(shapes):
        return ds.bucket_by_sequence_length(
            lambda x, _: len(x), [3, 5], [2, 1, 1], shapes, pad_to_bucket_boundary=True
        )

    with pytest.raises(ValueError, match="needs padded_shapes"):
        padded(None)
    assert values(padded(([None], {"n": []}))) == [
        ([[0, 0], [0, 1]], {"n": [1, 2]}),
        ([[0, 1, 2, 0]], {"n": [3]}),
    ]


@pytest.mark.parametrize(
    "arguments, expected, size",
    [
        ((3,), [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]], None),
        ((3, True), [[0, 1, 2], [3, 4, 5], [6, 7, 8]], 3),
        (([3, 2], True), [[0, 1, 2], [3, 4], [5, 6, 7], [8, 9]], None),
        (
            ([2, 1, 0],),
            [[0, 1], [2], [], [3, 4], [5], [], [6, 7], [8], [], [9]],
            None,
        ),
        ((20,), [list(range(10))], None),
    ],
)
def test_batches_of_other_sizes(arguments, expected, size):
    ds = Dataset.range(10).batch(4).rebatch(*arguments)
    assert values(ds) == expected and int(ds.cardinality()) == -2
    assert ds.element_spec == tw.TensorSpec([size], "int64")


def test_rows_of_several_components_stay_together():
    ds = Dataset.from_tensor_slices((np.zeros((7, 2)), {"a": np.arange(7)}))
    ds = ds.batch(3).rebatch(4)
    assert [(x.shape, y["a"].numpy().tolist()) for x, y in ds] == [
        ((4, 2), [0, 1, 2, 3]),
        ((3, 2), [4, 5, 6]),
    ]
