"""`scan`, `take_while`, `unique`, `ignore_errors`, cardinalities. Elements are TensorFlow's."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset, experimental

from ..elements_of import values

ZERO = np.int64(0)


def test_scan_carries_a_state_of_any_structure():
    sums = Dataset.range(5).scan(ZERO, lambda s, x: (s + x, s + x))
    assert values(sums) == values(sums) == [0, 1, 3, 6, 10]
    assert len(sums) == 5 and sums.element_spec == tw.TensorSpec([], "int64")
    nested = Dataset.zip(Dataset.range(3), Dataset.range(3)).scan(
        (ZERO, {"a": 1.0}),
        lambda s, x: ((s[0] + x[0], {"a": s[1]["a"] * 2}), (x[1], s[1]["a"])),
    )
    assert values(nested) == [(0, 1.0), (1, 2.0), (2, 4.0)]
    grown = Dataset.range(3).scan(
        tw.zeros([0], "int64"), lambda s, x: 2 * (tw.concat([s, [x]], 0),)
    )
    assert values(grown) == [[0], [0, 1], [0, 1, 2]]
    assert grown.element_spec == tw.TensorSpec([None], "int64")


@pytest.mark.parametrize(
    "initial, function, words",
    [
        (ZERO, lambda s, x: s + x, "must return a pair"),
        (0, lambda s, x: (x, x), "int32.*int64"),
        ((ZERO,), lambda s, x: (x, x), "structure"),
    ],
)
def test_other_states_are_refused(initial, function, words):
    ds = Dataset.range(3).scan(initial, function)
    for use in (list, lambda ds: ds.element_spec):
        with pytest.raises(TypeError, match=words):
            use(ds)


def test_take_while_ends_at_the_first_that_is_false():
    ds = Dataset.range(3).concatenate(Dataset.range(9)).take_while(lambda x: x < 2)
    assert values(ds.repeat(2)) == [0, 1, 0, 1] and int(ds.cardinality()) == -2
    with pytest.raises(TypeError, match="predicate must return a bool, got int64"):
        list(Dataset.range(3).take_while(lambda x: x))


@pytest.mark.parametrize(
    "data, expected",
    [
        ([3, 1, 3, 2, 1], [3, 1, 2]),
        ([[3, 1], [3, 1], [1, 1]], [[3, 1], [1, 1]]),
        (["a", "b", "a"], [b"a", b"b"]),
    ],
)
def test_unique_keeps_the_first(data, expected):
    ds = Dataset.from_tensor_slices(data).unique()
    found = [np.asarray(x).tolist() for x in ds.as_numpy_iterator()]
    assert found == expected and int(ds.cardinality()) == -2


def test_unique_compares_what_tensorflow_compares():
    for data in ([1.0], np.zeros(2, "uint8"), ([1], [2])):
        with pytest.raises(TypeError, match="int32, int64 or string"):
            Dataset.from_tensor_slices(data).unique()
    with pytest.raises(TypeError, match="float"):
        list(Dataset.from_generator(lambda: iter([1.0])).unique())


def test_errors_are_left_out():
    def inverse(x):
        if float(x) == 0:
            raise ValueError("bad")
        return 1 / x

    ds = Dataset.from_tensor_slices([1.0, 0.0, 2.0, 4.0, 0.0])
    assert values(ds.map(inverse).ignore_errors()) == [1.0, 0.5, 0.25]
    assert values(ds.filter(lambda x: inverse(x) > 0).ignore_errors()) == [
        1.0,
        2.0,
        4.0,
    ]
    assert values(ds.map(inverse).batch(2).ignore_errors()) == [[0.5, 0.25]]
    assert values(ds.map(inverse).prefetch(2).ignore_errors()) == [1.0, 0.5, 0.25]
    with pytest.warns(UserWarning, match="ValueError: bad"):
        list(ds.map(inverse).ignore_errors(log_warning=True))
    with pytest.raises(ValueError, match="bad") as caught:
        list(ds.map(inverse).shuffle(9).ignore_errors())
    assert "cannot go on" in caught.value.__notes__[-1]

    def generator():
        yield 1
        raise ValueError

    assert values(Dataset.from_generator(generator).ignore_errors()) == [1]


def test_a_damaged_file_is_left_behind(tmp_path):
    for name in "abc":
        with tw.io.TFRecordWriter(str(tmp_path / name)) as writer:
            writer.write(name.encode())
    with open(tmp_path / "b", "r+b") as file:
        file.seek(12)
        file.write(b"?")
    paths = [str(tmp_path / name) for name in "abc"]
    ds = tw.data.TFRecordDataset(paths).ignore_errors()
    assert list(ds.as_numpy_iterator()) == [b"a", b"c"]


def test_a_cardinality_is_checked():
    ds = Dataset.range(5).filter(lambda x: True)
    assert len(ds.apply(experimental.assert_cardinality(5))) == 5
    assert values(ds.apply(experimental.assert_cardinality(5)))[-1] == 4
    for count, taken in ((4, 4), (6, 5), (-1, 5)):
        iterator = iter(ds.apply(experimental.assert_cardinality(count)))
        for _ in range(taken):
            next(iterator)
        with pytest.raises(tw.errors.FailedPreconditionError):
            next(iterator)
