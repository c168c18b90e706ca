"""Batches for `fit`: what they hold, their order and length, positions, mistakes."""

import json
import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.core.hardware import devices
from tapewright.data import Dataset
from tapewright.keras.training.data_adapters.array_adapter import train_validation_split
from tapewright.keras.training.data_adapters.data_adapter_utils import (
    check_labels,
    class_weight_to_sample_weight,
    pack_x_y_sample_weight,
    unpack_x_y_sample_weight,
)
from tapewright.keras.training.epoch_iterator import EpochIterator
from tapewright.keras.utils import PyDataset

X = np.arange(20, dtype="float32").reshape(10, 2)
Y = np.arange(10)


class Squares(PyDataset):
    def __init__(self, count=5, **kwargs):
        super().__init__(**kwargs)
        self.count, self.told = count, []

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return np.full((2, 1), index, "f4"), np.full(2, index**2)

    def on_epoch_begin(self):
        self.told.append("begin")

    def on_epoch_end(self):
        self.told.append("end")


class Loader:
    """Can be iterated again and knows its length, as torch's DataLoader."""

    def __len__(self):
        return 3

    def __iter__(self):
        return iter([[X[i : i + 2], Y[i : i + 2]] for i in (0, 2, 4)])


def generator(count=5):
    for i in range(count):
        yield np.full((2, 1), i, "f4"), np.full(2, i)


def labels(batches):
    """One epoch's labels, batch by batch."""
    return [batch[1].numpy().tolist() for batch in batches]


# --- arrays


def test_arrays_come_in_batches_of_32():
    batches = EpochIterator(np.zeros((70, 3)), np.zeros(70))
    assert [tuple(x.shape) for x, _ in batches] == [(32, 3), (32, 3), (6, 3)]
    assert (batches.num_batches, batches.adapter.batch_size) == (3, 32)


def test_without_a_batch_size_steps_divide_the_arrays():
    batches = EpochIterator(X, Y, steps=4)
    assert [len(part) for part in labels(batches)] == [3, 3, 3, 1]


@pytest.mark.parametrize(
    "given, dtype",
    [
        ("float64", "float32"),
        ("float16", "float32"),
        ("int64", "int64"),
        ("bool", "bool"),
    ],
)
def test_floats_in_arrays_become_float32_and_other_dtypes_stay(given, dtype):
    x = np.ones((3, 1), given)
    (batch,) = EpochIterator(x)
    assert batch.dtype == dtype
    for batches in (iter([x]), tw.data.Dataset.from_tensor_slices(x).batch(3)):
        (batch,) = EpochIterator(batches)
        assert batch.dtype == given


@pytest.mark.parametrize(
    "given, kind",
    [
        (X, "Tensor"),
        ({"a": X}, "dict"),
        ([X, X], "tuple"),
        (iter([X]), "Tensor"),
        (iter([(X,)]), "tuple"),
        (tw.data.Dataset.from_tensor_slices(X).batch(3), "Tensor"),
        (tw.data.Dataset.from_tensor_slices((X,)).batch(3), "tuple"),
    ],
)
def test_features_alone_arrive_as_they_are_given(given, kind):
    batch = next(iter(EpochIterator(given)))
    assert type(batch).__name__ == kind


def test_structures_are_kept():
    x = {"a": X, "b": [X, tw.constant(X)]}
    ((inputs, outputs),) = EpochIterator(x, (Y, None), batch_size=10)
    assert inputs["b"][1].numpy().tolist() == X.tolist()
    assert isinstance(inputs["b"], list) and outputs[1] is None


def test_what_has_an_array_in_it_is_an_array():
    class Frame:
        def __array__(self, dtype=None, copy=None):
            return X.astype("float64")

    ((x, y),) = EpochIterator(Frame(), list(range(10)), batch_size=10)
    assert x.dtype == tw.float32 and y.numpy().tolist() == Y.tolist()


def test_a_series_of_pandas_is_a_column():
    class Series:
        __module__ = "pandas.core.series"

        def __array__(self, dtype=None, copy=None):
            return np.arange(10.0)

    x = {"a": Series(), "b": np.arange(10.0)}
    ((x, y, weights),) = EpochIterator(x, Series(), Series(), batch_size=10)
    assert [tuple(part.shape) for part in (x["a"], x["b"], y)] == [
        (10, 1),
        (10,),
        (10, 1),
    ]
    assert weights.numpy().ravel().tolist() == list(range(10))


def frame_of(pandas, **columns):
    numbers = {"b": [True, False, True, False], "i": [1, 2, 3, 4]}
    return pandas.DataFrame(numbers | {"f": [0.5, 1.5, 2.5, 3.5]} | columns)


def test_a_data_frame_of_several_dtypes_trains_as_in_keras():
    pandas = pytest.importorskip("pandas")
    frame, y = frame_of(pandas), np.ones((4, 1))
    model = tw.keras.Sequential(
        [tw.Input((3,)), tw.layers.Dense(1, "linear", True, "ones")]
    )
    model.compile(tw.optimizers.SGD(0.01), "mse")
    assert model.evaluate(frame, y, verbose=0) == 20.25
    assert model.predict(frame, verbose=0).ravel().tolist() == [2.5, 3.5, 6.5, 7.5]
    loss = model.fit(frame, y, epochs=2, shuffle=False, verbose=0).history["loss"]
    assert loss == pytest.approx([20.25, 10.782455])
    spec = tw.data.Dataset.from_tensor_slices(dict(frame)).element_spec
    assert [spec[name].dtype for name in "bif"] == [tw.bool, tw.int64, tw.float64]


def test_columns_that_may_lack_values_are_numbers_too():
    pandas = pytest.importorskip("pandas")
    i, b = pandas.array([1, None, 3, 4], "Int64"), pandas.array([True] * 4, "boolean")
    (x,) = EpochIterator(frame_of(pandas, i=i, b=b), batch_size=4)
    np.testing.assert_array_equal(x[:, 1], [1.0, np.nan, 3.0, 4.0])
    assert x.dtype == tw.float32 and x[:, 0].numpy().tolist() == [1.0] * 4


@pytest.mark.parametrize("kind", ["category", "object", "str", "date"])
def test_a_column_that_holds_no_numbers_is_named(kind):
    pandas = pytest.importorskip("pandas")
    texts = pandas.Series(["u", "v", "u", "v"])
    kinds = {
        "category": texts.astype("category"),
        "object": np.array([1, 2.5, 3, 4], object),
        "date": pandas.date_range("2020-01-01", periods=4),
    }
    frame = frame_of(pandas, city=kinds.get(kind, texts))
    with pytest.raises(TypeError, match="x: column 'city' .* pandas.get_dummies"):
        EpochIterator(frame, batch_size=4)


def test_lists_of_numbers_are_arrays():
    ((x, y),) = EpochIterator({"a": [1.0, 2.0], "b": [3.0, 4.0]}, [0, 1])
    assert x["b"].numpy().tolist() == [3, 4] and y.numpy().tolist() == [0, 1]
    ((x, y),) = EpochIterator([[1.0, 2.0], [3.0, 4.0]], [0, 1])
    assert tuple(x.shape) == (2, 2) and x.dtype == tw.float32


def test_unshuffled_batches_are_views():
    with tw.device("CPU"):
        ((x, _),) = EpochIterator(X, Y)
    assert np.shares_memory(x.array, X)


def test_one_array_of_weights_counts_for_all_outputs():
    ((_, _, weight),) = EpochIterator(X, {"a": Y, "b": Y}, np.ones(10))
    assert set(weight) == {"a", "b"} and weight["b"].dtype == tw.float32


# --- order


def test_each_epoch_is_shuffled_anew():
    batches = EpochIterator(X, Y, batch_size=3, shuffle=True)
    first, second = (sum(labels(batches), []) for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second != list(range(10))


def test_rows_stay_together():
    for x, y in EpochIterator(X, Y, batch_size=3, shuffle=True):
        assert np.array_equal(x.numpy(), X[y.numpy()])


def test_batch_shuffling_stays_within_batches():
    found = labels(EpochIterator(X, Y, batch_size=5, shuffle="batch"))
    assert [sorted(part) for part in found] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_the_order_follows_from_the_global_seed():
    orders = []
    for seed in (1, 1, 2):
        tw.random.set_seed(seed)
        orders.append(labels(EpochIterator(X, Y, batch_size=3, shuffle=True)))
    assert orders[0] == orders[1] != orders[2]


# --- weights by class


@pytest.mark.parametrize(
    "y",
    [[0, 2, 1], [[0], [2], [1]], [[1, 0, 0], [0, 0, 1], [0, 1, 0]], [0.0, 2.0, 1.0]],
)
def test_classes_weigh_as_told(y):
    found = class_weight_to_sample_weight(np.array(y), {0: 3.0, 2: 0.5})
    assert found.tolist() == [3.0, 0.5, 1.0] and found.dtype == np.float32


@pytest.mark.parametrize(
    "y", [[[[0], [2]], [[1], [1]]], [[[1, 0, 0], [0, 0, 1]], [[0, 1, 0], [0, 1, 0]]]]
)
def test_a_label_for_each_step_has_a_weight_of_its_own(y):
    found = class_weight_to_sample_weight(np.array(y), {0: 3.0, 2: 0.5})
    assert found.tolist() == [[3.0, 0.5], [1.0, 1.0]]


@pytest.mark.parametrize(
    "source", [lambda: X, lambda: Dataset.from_tensor_slices((X, Y)).batch(10)]
)
def test_class_weights_become_sample_weights(source):
    x = source()
    y = Y if isinstance(x, np.ndarray) else None
    ((_, _, weight),) = EpochIterator(x, y, class_weight={3: 2.0})
    assert weight.numpy().tolist() == [1, 1, 1, 2, 1, 1, 1, 1, 1, 1]


# --- sources of batches


@pytest.mark.parametrize(
    "source, count",
    [
        (lambda: Dataset.from_tensor_slices((X, Y)).batch(4), 3),
        (
            lambda: (
                Dataset.from_tensor_slices((X, Y)).batch(4).filter(lambda x, y: True)
            ),
            None,
        ),
        (generator, None),
        (lambda: iter(list(generator())), None),
        (Squares, 5),
        (lambda: Squares(workers=2), 5),
        (lambda: Squares(workers=2, use_multiprocessing=True), 5),
        (Loader, 3),
        (lambda: map(lambda batch: list(batch), generator()), None),
    ],
)
def test_batches_of_other_sources_arrive_as_tensors(source, count):
    batches = EpochIterator(source())
    assert batches.num_batches == count
    found = list(batches)
    assert all(type(batch) is tuple for batch in found)
    assert all(tw.is_tensor(leaf) for batch in found for leaf in batch)
    assert len(found) == {None: len(found)}.get(count, count) > 0


def test_a_length_is_known_once_it_was_seen():
    ds = Dataset.from_tensor_slices((X, Y)).filter(lambda x, y: y < 6).batch(4)
    batches = EpochIterator(ds)
    assert batches.num_batches is None
    assert len(labels(batches)) == batches.num_batches == len(labels(batches)) == 2


def test_a_buffer_that_is_filled_anew_does_no_harm():
    def reusing():
        x = np.zeros((1, 1), "f4")
        for i in range(3):
            x[:] = i
            yield (x,)

    assert [float(x[0, 0]) for (x,) in list(EpochIterator(reusing()))] == [0, 1, 2]


@pytest.mark.parametrize("in_processes", [False, True])
def test_workers_keep_the_order(in_processes):
    options = {"workers": 3, "use_multiprocessing": in_processes, "max_queue_size": 4}
    batches = EpochIterator(Squares(20, **options))
    assert [part[0] for part in labels(batches)] == [i**2 for i in range(20)]


class Changing(Squares):
    """Batches of the process that makes them, random numbers, and the epoch."""

    def __init__(self, count=4, **kwargs):
        super().__init__(count, **kwargs)
        self.rng, self.epoch = np.random.default_rng(0), 0

    def __getitem__(self, index):
        draws = self.rng.random(), np.random.rand(), float(tw.random.uniform([]))
        return np.array([[index, self.epoch, os.getpid()]]), np.array([draws])

    def on_epoch_end(self):
        super().on_epoch_end()
        self.epoch += 1


@pytest.mark.parametrize("workers", [1, 3])
def test_processes_see_what_on_epoch_end_changes(workers):
    source = Changing(workers=workers, use_multiprocessing=True)
    batches = EpochIterator(source, shuffle=False)
    for epoch in range(3):
        found = np.concatenate([x for x, _ in batches])
        assert found[:, :2].tolist() == [[i, epoch] for i in range(4)]
        assert os.getpid() not in found[:, 2]
        assert not multiprocessing.active_children()
    assert source.told == ["begin", "end"] * 3 and source.epoch == 3


def test_random_numbers_do_not_depend_on_the_number_of_processes():
    def draws(workers):
        tw.random.set_seed(1)
        source = Changing(workers=workers, use_multiprocessing=True)
        batches = EpochIterator(source, shuffle=True)
        return [y.numpy().tolist() for _ in range(2) for _, y in batches]

    one = draws(1)
    assert one == draws(3)
    assert len({number for ((a, b, c),) in one for number in (a, b, c)}) == 24


def test_an_error_in_a_process_has_its_traceback():
    class Failing(Squares):
        def __getitem__(self, index):
            return super().__getitem__(index) if index < 2 else {}["missing"]

    with pytest.raises(KeyError, match="missing") as caught:
        list(EpochIterator(Failing(workers=2, use_multiprocessing=True)))
    assert '{}["missing"]' in str(caught.value.__cause__)


def test_fit_trains_on_batches_of_processes():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    source = Squares(4, workers=2, use_multiprocessing=True)
    history = model.fit(source, epochs=2, validation_data=source, verbose=0).history
    assert np.isfinite(history["val_loss"]).all() and source.told[:2] == [
        "begin",
        "end",
    ]
    assert model.predict(source, verbose=0).shape == (8, 1)
    assert not multiprocessing.active_children()


def test_an_indexed_source_is_told_of_epochs_and_shuffled():
    source = Squares(30)
    batches = EpochIterator(source, shuffle=True)
    first, second = labels(batches), labels(batches)
    assert sorted(first) == sorted(second) and first != second
    assert source.told == ["begin", "end"] * 2


def test_an_endless_generator_goes_on_where_it_was():
    def endless():
        i = 0
        while True:
            yield np.full((1, 1), i, "f4"), np.full(1, i)
            i += 1

    batches = EpochIterator(endless(), steps=3)
    assert batches.num_batches == 3
    assert labels(batches) == [[0], [1], [2]] and labels(batches) == [[3], [4], [5]]


def test_steps_over_a_data_set_go_on_with_it():
    batches = EpochIterator(
        Dataset.from_tensor_slices((X, Y)).batch(1).repeat(), steps=4
    )
    assert labels(batches) == [[0], [1], [2], [3]]
    assert labels(batches) == [[4], [5], [6], [7]]
    batches.reset()
    assert labels(batches)[0] == [0]


def test_passes_that_end_with_an_epoch_are_followed_by_others():
    for source in (
        Dataset.from_tensor_slices((X, Y)).batch(5),
        Dataset.from_tensor_slices((X, Y)).batch(5).filter(lambda x, y: True),
    ):
        batches = EpochIterator(source, steps=2)
        assert labels(batches) == labels(batches) and not batches.ran_out


# --- the end of the data


def test_a_generator_that_ends_early_is_told_of():
    batches = EpochIterator(generator(5), steps=3)
    assert len(labels(batches)) == 3 and not batches.ran_out
    with pytest.warns(UserWarning, match="2.*3.*epoch 2"):
        assert len(labels(batches)) == 2
    assert batches.ran_out


def test_arrays_that_hold_too_few_batches_are_told_of():
    batches = EpochIterator(X, Y, batch_size=5, steps=3)
    with pytest.warns(UserWarning, match="2.*3.*epoch 1"):
        assert len(labels(batches)) == 2


def test_a_generator_has_one_epoch_in_it():
    batches = EpochIterator(generator(2))
    assert len(labels(batches)) == 2 and not batches.ran_out
    with pytest.warns(UserWarning, match="0.*epoch 2"):
        assert labels(batches) == []
    assert batches.ran_out


def test_no_batch_at_all_is_an_error():
    with pytest.raises(ValueError, match="yielded no batch"):
        EpochIterator(generator(0))
    with pytest.raises(ValueError, match="yielded no batch"):
        list(EpochIterator(Dataset.range(3).filter(lambda x: False).batch(2)))


@pytest.mark.parametrize("shuffle", [False, True, "batch"])
def test_arrays_on_a_device_stay_there(strict, shuffle):
    orders = []
    for module in (np, strict):
        tw.random.set_seed(1)
        with devices.use_module(module):
            x, y = tw.constant(X), tw.constant(Y)
            batches = EpochIterator(x, y, batch_size=4, shuffle=shuffle)
            orders.append(labels(batches))
            assert all(
                devices.array_module(type(part.array)) is module
                for batch in batches
                for part in batch
            )
    assert orders[0] == orders[1]


def test_arrays_are_copied_to_the_current_device(strict):
    with devices.use_module(strict):
        x, _ = next(iter(EpochIterator(X, Y, batch_size=4)))
    assert devices.array_module(type(x.array)) is strict


def test_the_order_of_an_indexed_source_follows_from_the_global_seed():
    orders = []
    for seed in (1, 1, 2):
        tw.random.set_seed(seed)
        orders.append(labels(EpochIterator(Squares(20), shuffle=True)))
    assert orders[0] == orders[1] != orders[2]


# --- positions

SOURCES = {
    "arrays": lambda: EpochIterator(X, Y, batch_size=3, shuffle=True),
    "within batches": lambda: EpochIterator(X, Y, batch_size=4, shuffle="batch"),
    "arrays by steps": lambda: EpochIterator(X, Y, batch_size=1, steps=4, shuffle=True),
    "data set": lambda: EpochIterator(
        Dataset.from_tensor_slices((X, Y)).shuffle(10).batch(3)
    ),
    "endless": lambda: EpochIterator(
        Dataset.from_tensor_slices((X, Y)).shuffle(10).repeat().batch(3), steps=4
    ),
    "PyDataset": lambda: EpochIterator(Squares(4), shuffle=True),
    "generator": lambda: EpochIterator(generator(9), steps=4),
    "loader": lambda: EpochIterator(Loader()),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("done", [0, 1, 3, 4, 5])
def test_another_process_goes_on_where_the_first_stood(name, done):
    tw.random.set_seed(1)
    first = SOURCES[name]()
    whole = []
    for _ in range(2):
        epoch = labels(first)
        whole.append(epoch)
    tw.random.set_seed(1)
    second = SOURCES[name]()
    epoch, left = iter(second), done
    seen = [[]]
    while left:
        batch = next(epoch, None)
        if batch is None:
            seen, epoch = [*seen, []], iter(second)
            continue
        seen[-1].append(batch[1].numpy().tolist())
        left -= 1
    state = json.loads(json.dumps(second.state()))

    tw.random.set_seed(2)
    third = SOURCES[name]()
    third.restore(state)
    if done:
        seen[-1] += labels(third)
    else:
        seen = []
    while len(seen) < 2:
        seen.append(labels(third))
    assert seen == whole
    assert third.epoch == 2


def test_between_epochs_the_next_one_follows():
    batches = EpochIterator(X, Y, batch_size=4, shuffle=True)
    labels(batches)
    state = batches.state()
    expected = labels(batches)
    other = EpochIterator(X, Y, batch_size=4, shuffle=True)
    other.restore(state)
    assert labels(other) == expected


def order_of_version_01(seed, number, size):
    bits = np.random.Philox(key=seed, counter=[0, 0, number, 0])
    return np.random.Generator(bits).permutation(size)


STATE_OF_01 = {"epoch": 3, "step": 1, "pass": 2, "taken": 1, "size": 3, "seed": 77}


@pytest.mark.parametrize("within", [True, False])
@pytest.mark.parametrize("shuffle", [True, False, "batch"])
def test_positions_that_version_01_wrote_are_found_again(within, shuffle):
    batches = EpochIterator(X, Y, batch_size=4, shuffle=shuffle)
    taken = {"step": 1, "taken": 1} if within else {"step": 3, "taken": 3}
    batches.restore({**STATE_OF_01, **taken, "within": within})
    for number in (2, 3) if within else (3, 4):
        rows = np.arange(10)
        if shuffle is True:
            rows = order_of_version_01(77, number, 10)
        expected = np.split(rows, [4, 8])
        if shuffle == "batch":
            orders = [order_of_version_01(77, number * 3 + i, n)
                      for i, n in enumerate((4, 4, 2))]  # fmt: skip
            expected = [part[order] for part, order in zip(expected, orders)]
        expected = [part.tolist() for part in expected]
        assert labels(batches) == expected[number == 2 :]
    assert batches.epoch == (4 if within else 5)


class Endless(Squares):
    num_batches = None


SOURCES_OF_01 = {
    "generator": lambda: EpochIterator(generator(9)),
    "generator by steps": lambda: EpochIterator(generator(9), steps=4),
    "PyDataset": lambda: EpochIterator(Squares(4)),
    "shuffled PyDataset": lambda: EpochIterator(Squares(4), shuffle=True),
    "shuffled PyDataset by steps": lambda: EpochIterator(
        Squares(5), shuffle=True, steps=3
    ),
    "endless PyDataset": lambda: EpochIterator(Endless(), shuffle=True, steps=3),
    "loader": lambda: EpochIterator(Loader()),
    "loader by steps": lambda: EpochIterator(Loader(), steps=2),
    "arrays by steps": lambda: EpochIterator(X, Y, batch_size=3, steps=3, shuffle=True),
    "shuffled arrays": lambda: EpochIterator(X, Y, batch_size=3, shuffle=True),
    "data set": lambda: EpochIterator(
        Dataset.from_tensor_slices((X, Y)).shuffle(10).batch(3)
    ),
}


@pytest.mark.filterwarnings("ignore:.*ran out of data")
@pytest.mark.parametrize("name", SOURCES_OF_01)
def test_states_that_version_01_wrote_go_on_with_its_batches(name):
    """The file was written by that version, with the labels that it yielded next."""
    recorded = json.loads(
        (Path(__file__).parent / "states_of_version_01.json").read_text()
    )
    recorded = [each for each in recorded if each["source"] == name]
    assert len(recorded) > 3
    for each in recorded:
        batches = SOURCES_OF_01[name]()
        batches.restore(each["state"])
        assert [labels(batches) for _ in each["epochs"]] == each["epochs"]


def test_batches_of_a_py_dataset_before_the_position_are_not_made():
    made = []

    class Noting(Squares):
        def __getitem__(self, index):
            made.append(index)
            return super().__getitem__(index)

    batches = EpochIterator(Noting(5))
    batches.restore({**STATE_OF_01, "step": 3, "taken": 3, "size": 5, "within": True})
    assert [part[0] for part in labels(batches)] == [9, 16] and made == [3, 4]
    state = batches.state()
    del made[:]
    batches.restore(state)
    labels(batches)
    assert made == [0, 1, 2, 3, 4]


def test_the_state_of_other_data_is_refused():
    state = EpochIterator(X, Y, batch_size=5).state()
    with pytest.raises(ValueError, match="2 batches.*3"):
        EpochIterator(X, Y, batch_size=4).restore(state)
    with pytest.raises(ValueError, match="lacks"):
        EpochIterator(X).restore({})


def test_a_generator_cannot_go_back():
    batches = EpochIterator(generator(5), steps=2)
    state = batches.state()
    labels(batches)
    with pytest.raises(ValueError, match="cannot go back"):
        batches.restore(state)


# --- mistakes


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (dict(), ValueError, "x: must be given"),
        (dict(x=X, y=Y[:3]), ValueError, r"(?s)x: shape \(10, 2\).*y: shape \(3,\)"),
        (
            dict(x={"a": X}, y=[Y, Y[:2]]),
            ValueError,
            r"(?s)x\['a'\].*y\[1\]: shape \(2,\)",
        ),
        (dict(x=X[:0]), ValueError, "x: .* one sample"),
        (dict(x=[]), ValueError, "x: must contain an array|at least one sample"),
        (dict(x=X, batch_size=0), ValueError, "batch_size"),
        (dict(x=X, batch_size=2.5), ValueError, "batch_size"),
        (dict(x=X, steps=-1), ValueError, "steps_per_epoch.*positive.*got -1"),
        (dict(x=X, shuffle="no"), ValueError, "shuffle"),
        (dict(x=generator(), y=Y), ValueError, "y: x is a generator"),
        (
            dict(x=Squares(), sample_weight=Y),
            ValueError,
            "sample_weight: x is a Squares",
        ),
        (dict(x=X, y=generator()), TypeError, "y .*got generator"),
        (dict(x=np.array([{}, 1], object)), TypeError, "dtype object"),
        (dict(x=np.float32(1)), ValueError, "batch axis"),
        (dict(x=[[1], [1, 2]]), ValueError, "must have equal lengths"),
        (dict(x=object()), TypeError, "x: .*arrays, tensors.* got object"),
        (dict(x="file.csv"), TypeError, "got str"),
        (dict(x=X, sample_weight=Y), ValueError, "requires y"),
        (dict(x=X, y=Y, sample_weight=Y, class_weight={}), ValueError, "not both"),
        (dict(x=X, y=[Y, Y], class_weight={0: 1}), ValueError, "several"),
        (dict(x=X, y=Y, class_weight=[1, 2]), TypeError, "dict .*got list"),
        (dict(x=X, y=[Y, Y], sample_weight={"a": Y}), ValueError, "nested like y"),
        (
            dict(x=X, y=[Y, Y], sample_weight=X),
            ValueError,
            r"weight .*got shape \(10, 2\)",
        ),
        (dict(x=Dataset.range(3).batch(1).repeat()), ValueError, "infinite"),
        (dict(x=iter([(X, Y, Y, Y)])), ValueError, "got 4 parts"),
        (dict(x=iter(["a"])), ValueError, "batch .*tuple.*got str a"),
        (dict(x=iter([(X, object())])), TypeError, "y: must be arrays"),
    ],
)
def test_mistakes_are_named_before_anything_runs(arguments, error, words):
    with pytest.raises(error, match=words):
        EpochIterator(**arguments)


def test_a_batch_size_beside_batches_is_ignored_aloud():
    with pytest.warns(UserWarning, match="batch_size .*Loader"):
        EpochIterator(Loader(), batch_size=3)


def test_missing_labels_are_found():
    check_labels({"a": Y, "b": [np.ones(3), None]})
    with pytest.raises(ValueError, match=r"y\['b'\].*2.*4.*NaN.*\(0, 1\)"):
        check_labels({"b": np.array([[0, np.nan], [np.nan, 1]])})


# --- packing


def test_packing_and_unpacking_are_keras():
    assert unpack_x_y_sample_weight([1, 2]) == (1, 2, None)
    assert unpack_x_y_sample_weight({"a": 1}) == ({"a": 1}, None, None)
    assert pack_x_y_sample_weight([1]) == ([1],) and pack_x_y_sample_weight(1) == 1
    assert pack_x_y_sample_weight(1, 2, 3) == (1, 2, 3)
    with pytest.raises(ValueError, match="got a tuple of 4"):
        unpack_x_y_sample_weight((1, 2, 3, 4))


# --- validation_split


def test_the_last_part_is_for_validation():
    (x, y, _), (x_val, y_val, weight) = train_validation_split((X, Y, None), 0.25)
    assert y.tolist() == list(range(7)) and y_val.tolist() == [7, 8, 9]
    assert np.shares_memory(x, X) and x_val.shape == (3, 2) and weight is None


@pytest.mark.parametrize(
    "arrays, split, error, words",
    [
        ((X, Y), 1.5, ValueError, r"validation_split: .*0.*1.*got 1\.5"),
        ((X[:1], Y[:1]), 0.5, ValueError, "leaves one part"),
        ((generator(), None), 0.5, TypeError, "validation_data"),
        ((X, Y[:3]), 0.5, ValueError, "same number"),
    ],
)
def test_what_cannot_be_split_is_refused(arrays, split, error, words):
    with pytest.raises(error, match=words):
        train_validation_split(arrays, split)


@pytest.mark.parametrize("options", [{}, {"workers": 3}, {"use_multiprocessing": True}])
def test_a_stop_iteration_of_getitem_is_no_end_of_the_data(options):
    class Source(PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return next(iter([np.zeros((2, 3))] if index < 2 else []))

    batches = EpochIterator(Source(**options))
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(batches)


@pytest.mark.parametrize("run_eagerly", [True, False])
def test_ragged_tensors_are_taken_as_arrays_are(run_eagerly):
    """As in Keras; the sums by hand."""

    class Sums(keras.Model):
        def call(self, inputs):
            return self.scale(tw.reduce_sum(inputs, axis=1)[:, None])

    model = Sums()
    model.scale = keras.layers.Dense(1, kernel_initializer="ones")
    ragged = tw.ragged.constant([[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]])
    y = np.zeros((3, 1))
    model.compile(keras.optimizers.SGD(0.0), "mse", run_eagerly=run_eagerly)
    expected = pytest.approx((9.0 + 9.0 + 225.0) / 3)
    assert model.evaluate(ragged, y, batch_size=2, verbose=0) == expected
    history = model.fit(ragged, y, batch_size=2, epochs=2, verbose=0).history
    assert history["loss"] == [expected] * 2


def test_sparse_tensors_are_taken_as_arrays_are():
    """As in Keras, alone and beside arrays; the sums by hand."""
    dense = np.array([[1.0, 1, 1], [0, 0, 2], [0, 0, 0], [4, 0, 0]], "float32")
    sparse, ones = tw.sparse.from_dense(dense), np.ones((4, 2))
    inputs = [keras.Input((3,), sparse=True), keras.Input((2,))]
    units = keras.layers.Dense(1, kernel_initializer="ones")(inputs[0])
    alone = keras.Model(inputs[0], units)
    sums = dense.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(alone.predict(sparse, verbose=0), sums)
    model = keras.Model(inputs, keras.layers.Add()([units, inputs[1]]))
    model.compile(keras.optimizers.SGD(0.0), "mse")
    data = {"x": [sparse, ones], "y": np.zeros((4, 2)), "verbose": 0, "batch_size": 3}
    loss = np.mean((sums + 1) ** 2)
    assert model.evaluate(**data) == pytest.approx(loss)
    history = model.fit(**data, epochs=2, validation_data=(data["x"], data["y"]))
    assert history.history == {
        k: pytest.approx([loss] * 2) for k in ("loss", "val_loss")
    }
    with pytest.raises(ValueError, match="same length.*4, 3.*3, 2"):
        model.predict([sparse, ones[:3]], verbose=0)
    with pytest.raises(ValueError, match="shuffle: 'batch'"):
        model.fit(**data, shuffle="batch")
