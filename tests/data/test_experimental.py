"""`tw.data.experimental`: its functions are methods of `Dataset`. Results are TensorFlow's."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset, experimental

from .elements_of import values

FIVE = Dataset.range(5)
CASES = [
    (FIVE, experimental.enumerate_dataset(3), [(3, 0), (4, 1), (5, 2), (6, 3), (7, 4)]),
    (FIVE, experimental.scan(np.int64(0), lambda s, x: (s + x, s)), [0, 0, 1, 3, 6]),
    (FIVE, experimental.take_while(lambda x: x < 2), [0, 1]),
    (FIVE.repeat(2), experimental.unique(), [0, 1, 2, 3, 4]),
    (FIVE.batch(2), experimental.unbatch(), [0, 1, 2, 3, 4]),
    (FIVE, experimental.map_and_batch(lambda x: x * 2, 2), [[0, 2], [4, 6], [8]]),
    (FIVE.take(1), experimental.shuffle_and_repeat(2, 2), [0, 0]),
    (FIVE.map(lambda x: 4 // int(x)), experimental.ignore_errors(), [4, 2, 1, 1]),
    (
        FIVE,
        experimental.group_by_window(lambda x: x % 2, lambda k, w: w.batch(9), 2),
        [[0, 2], [1, 3], [4]],
    ),
    (
        Dataset.range(1, 4),
        experimental.parallel_interleave(
            lambda n: Dataset.from_tensors(n).repeat(2), 2
        ),
        [1, 2, 1, 2, 3, 3],
    ),
    (
        FIVE.batch(3),
        experimental.bucket_by_sequence_length(len, [3], [1, 1]),
        [[[0, 1, 2]], [[3, 4]]],
    ),
    (FIVE, experimental.rejection_resample(lambda x: 0, [1.0], [1.0]), None),
]


def test_transformations_for_apply():
    for dataset, transformation, expected in CASES:
        expected = [(0, n) for n in range(5)] if expected is None else expected
        assert values(dataset.apply(transformation)) == expected


def test_sources_and_elements(tmp_path):
    assert values(experimental.Counter(3).take(2)) == [3, 4]
    assert values(experimental.RandomDataset(1).take(3)) == values(
        Dataset.random(1).take(3)
    )
    listed = experimental.from_list([(1, "a"), (2, "b")])
    assert listed.element_spec == (
        tw.TensorSpec([], "int32"),
        tw.TensorSpec([], "string"),
    )
    assert int(experimental.cardinality(listed)) == 2
    assert experimental.get_structure(iter(listed)) == listed.element_spec
    assert int(experimental.at(FIVE, 3)) == 3
    assert int(experimental.get_single_element(FIVE.take(1))) == 0
    assert int(experimental.get_next_as_optional(iter(FIVE)).get_value()) == 0
    short, choices = Dataset.range(1), Dataset.range(2).repeat(3)
    both = experimental.choose_from_datasets([short, FIVE], choices)
    assert values(both) == [0, 0, 1, 2]  # not as the method, without an end of `short`
    drawn = experimental.sample_from_datasets([short, FIVE], [0.5, 0.5], seed=0)
    assert sorted(values(drawn)) == [0, 0, 1, 2, 3, 4]
    experimental.save(FIVE, tmp_path / "saved")
    assert values(experimental.load(tmp_path / "saved")) == [0, 1, 2, 3, 4]
    kept = FIVE.apply(experimental.snapshot(tmp_path / "kept"))
    assert values(kept) == values(Dataset.load(tmp_path / "kept")) == [0, 1, 2, 3, 4]
    with pytest.raises(tw.errors.OutOfRangeError):
        experimental.at(FIVE, 5)
    with pytest.raises(ValueError, match="from_list"):
        experimental.from_list([])
