"""`choose_from_datasets`, `sample_from_datasets`, `rejection_resample`, random numbers."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset

from ..elements_of import values

PARTS = [Dataset.range(3), Dataset.range(100, 103)]
CHOICES = Dataset.from_tensor_slices(np.array([0, 0, 0, 0, 1, 0]))
ENDLESS = [Dataset.from_tensors(n).repeat() for n in range(3)]


def test_choices_end_with_a_data_set_or_pass_it_over():
    """As TensorFlow."""
    ds = Dataset.choose_from_datasets(PARTS, CHOICES)
    assert values(ds.repeat(2)) == [0, 1, 2, 0, 1, 2]
    ds = Dataset.choose_from_datasets(PARTS, CHOICES, stop_on_empty_dataset=False)
    assert values(ds) == [0, 1, 2, 100]
    assert int(ds.cardinality()) == UNKNOWN_CARDINALITY
    assert ds.element_spec == tw.TensorSpec([], "int64")


def test_the_spec_has_the_sizes_that_all_share():
    both = [
        Dataset.range(3).batch(2, drop_remainder=drop).map(lambda x: {"x": x, "n": 1})
        for drop in (True, False)
    ]
    expected = {"x": tw.TensorSpec([None], "int64"), "n": tw.TensorSpec([], "int32")}
    assert Dataset.choose_from_datasets(both, CHOICES).element_spec == expected
    assert both[0].concatenate(both[1]).element_spec == expected
    with pytest.raises(TypeError, match="one structure and dtype"):
        Dataset.range(3).concatenate(Dataset.from_tensors(1.0))
    with pytest.raises(TypeError, match="sample_from_datasets: .* one structure"):
        Dataset.sample_from_datasets([Dataset.range(3), Dataset.from_tensors((1, 2))])
    sparse, ragged = tw.sparse.eye(3), tw.ragged.constant([[1], [2, 3]])
    for one, other in ((sparse, tw.sparse.eye(2, 3)), (ragged, ragged[:1])):
        first, second = Dataset.from_tensors(one), Dataset.from_tensors(other)
        spec = first.concatenate(second).element_spec
        assert spec == first.element_spec._tw_with_shape([None, *one.shape[1:]])
        with pytest.raises(TypeError, match="one structure and dtype"):
            first.concatenate(Dataset.from_tensors(tw.zeros([2, 3])))


def test_samples_are_drawn_by_weights():
    def shares(weights, **options):
        ds = Dataset.sample_from_datasets(ENDLESS, weights, seed=1, **options)
        assert int(ds.cardinality()) == INFINITE_CARDINALITY
        return np.bincount(values(ds.take(3000)), minlength=3) / 3000

    assert abs(shares(None) - 1 / 3).max() < 0.03
    assert abs(shares([0.5, 0.2, 0.3]) - [0.5, 0.2, 0.3]).max() < 0.03
    assert abs(shares(tw.constant([5.0, 0.0, 5.0])) - [0.5, 0, 0.5]).max() < 0.03
    changing = Dataset.from_tensors([1.0, 0.0, 0.0]).repeat(30)
    changing = changing.concatenate(Dataset.from_tensors([0.0, 0.0, 2.0]).repeat(5))
    ds = Dataset.sample_from_datasets(ENDLESS, changing, seed=1)
    assert values(ds) == [0] * 30 + [2] * 5


def test_samples_of_all_data_sets_come_once():
    ds = Dataset.sample_from_datasets(PARTS, seed=4)
    found = values(ds)
    assert sorted(found) == [0, 1, 2, 100, 101, 102] and found == values(ds)
    anew = Dataset.sample_from_datasets(PARTS, seed=4, rerandomize_each_iteration=True)
    assert len({str(values(anew)) for _ in range(6)}) > 1
    ends = Dataset.sample_from_datasets(PARTS, seed=4, stop_on_empty_dataset=True)
    assert values(ends) == found[: len(values(ends))] != found
    assert values(Dataset.sample_from_datasets(PARTS, [0.0, 1.0])) == [100, 101, 102]
    assert values(Dataset.sample_from_datasets(PARTS, [0.0, 0.0])) == []


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: Dataset.sample_from_datasets([]), ValueError, "at least one"),
        (lambda: Dataset.sample_from_datasets(PARTS, [0.5]), ValueError, "weights"),
        (lambda: Dataset.sample_from_datasets(PARTS, [1, 2]), TypeError, "floating"),
        (lambda: Dataset.sample_from_datasets(PARTS, [1.0, -1.0]), ValueError, "-1"),
        (lambda: Dataset.choose_from_datasets(PARTS, [0]), TypeError, "got list"),
        (
            lambda: Dataset.choose_from_datasets(PARTS, CHOICES.batch(2)),
            TypeError,
            "int64 scalars",
        ),
        (
            lambda: list(Dataset.choose_from_datasets(PARTS, Dataset.range(4))),
            ValueError,
            "below 2, got 2",
        ),
        (
            lambda: Dataset.range(3).rejection_resample(int, [0.5, 0.4]),
            ValueError,
            "target_dist",
        ),
        (
            lambda: Dataset.range(3).rejection_resample(int, [0.5, 0.5], [1.0]),
            ValueError,
            "initial_dist",
        ),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("initial", [None, [0.75, 0.25]])
@pytest.mark.parametrize("target", [[0.5, 0.5], [0.1, 0.9], [0.0, 1.0]])
def test_classes_are_resampled(target, initial):
    """600 elements, a quarter of class 1: within four standard deviations."""
    x = np.arange(600)
    ds = Dataset.from_tensor_slices((x, {"kind": x % 4 // 3}))
    ds = ds.rejection_resample(lambda x, y: y["kind"], target, initial, seed=3)
    found = values(ds)
    assert all(kind == x % 4 // 3 == y["kind"] for kind, (x, y) in found)
    share = sum(kind for kind, _ in found) / len(found)
    slack = 4 * (0.25 / len(found)) ** 0.5 + (initial is None) * 0.03
    assert len(found) > 100 and abs(share - target[1]) < slack


def test_a_distribution_that_is_right_stays():
    ds = Dataset.range(8).map(lambda x: x % 2)
    found = values(ds.rejection_resample(lambda x: x, [0.5, 0.5], [0.5, 0.5]))
    assert found == [(n % 2, n % 2) for n in range(8)]


def test_random_numbers_are_the_same_in_all_runs_unless_told_otherwise():
    ds = Dataset.random(seed=4)
    found = values(ds.take(500))
    assert found == values(ds.take(500)) and int(ds.cardinality()) == -1
    assert 0 <= min(found) < 2**26 and 2**32 - 2**26 < max(found) < 2**32
    anew = Dataset.random(seed=4, rerandomize_each_iteration=True).take(5)
    assert values(anew) != values(anew)


def test_counters_are_endless():
    for dtype in ("int32", "float32"):
        ds = Dataset.counter(2, 3, dtype)
        assert (
            ds.element_spec == tw.TensorSpec([], dtype) and int(ds.cardinality()) == -1
        )
        assert values(ds.take(3)) == [2, 5, 8]
