"""`Dataset.from_hdf5`: the rows of a file, like those of arrays, without loading it."""

import copy
import json
import pickle
import subprocess
import sys

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset
from tapewright.data.parts import part_of_batches
from tapewright.storage.checked_array import Array

ROWS = 103
X = np.arange(ROWS * 6, dtype="f4").reshape(ROWS, 3, 2)
Y = np.arange(ROWS)
LAYOUTS = {
    "contiguous": ({}, {}),
    "chunks": ({"chunks": (10, 3, 2)}, {"chunks": (40,)}),
    "parts of rows": ({"chunks": (7, 2, 1)}, {}),
    "compressed": ({"chunks": (16, 3, 2), "compression": "gzip"}, {"chunks": (1,)}),
    "another byte order": ({"dtype": ">f4"}, {"dtype": ">i8"}),
}
NAMES = {"x": "images", "y": "group/labels"}


def write(path, x=X, y=Y, layout="contiguous"):
    with h5py.File(path, "w") as file:
        for name, values, options in zip(
            ("images", "group/labels"), (x, y), LAYOUTS[layout], strict=True
        ):
            options = {"shape": values.shape, "dtype": values.dtype} | options
            file.create_dataset(name, **options)[...] = values
    return path


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return request.param


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.h5"


@pytest.fixture
def reads(monkeypatch):
    """``(name, first row, count)`` of everything that is read."""
    found = []
    read_rows = Array.read_rows

    def noted(self, out, start):
        found.append((self.name.rpartition("/")[2], start, len(out)))
        read_rows(self, out, start)

    monkeypatch.setattr(Array, "read_rows", noted)
    return found


def plain(element):
    return [leaf.numpy() for leaf in tw.nest.flatten(element)]


def check_equal(actual, expected):
    actual, expected = list(map(plain, actual)), list(map(plain, expected))
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


# Like arrays

CHAINS = {
    "rows": lambda ds: ds,
    "batches": lambda ds: ds.batch(10),
    "whole batches": lambda ds: ds.batch(10, drop_remainder=True),
    "large batches": lambda ds: ds.batch(70),
    "shuffled": lambda ds: ds.shuffle(ROWS, seed=1).batch(10),
    "through a small buffer": lambda ds: ds.shuffle(8, seed=1).batch(10),
    "shuffled rows": lambda ds: ds.shuffle(8, seed=1),
    "repeated": lambda ds: ds.shuffle(50, seed=1).repeat(3).batch(16),
    "selected": lambda ds: ds.skip(20).take(50).shard(3, 1).batch(4),
    "mapped": lambda ds: ds.map(lambda e: {**e, "y": -e["y"]}).shuffle(9, 1).batch(10),
    "prefetched": lambda ds: ds.shuffle(50, seed=1).batch(10).prefetch(2).repeat(2),
    "cached": lambda ds: ds.cache().shuffle(ROWS, seed=1).batch(10).repeat(2),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("buffer_size", [1, 12, None])
def test_each_chain_gives_what_it_gives_on_arrays(path, layout, name, buffer_size):
    write(path, layout=layout)
    stored = CHAINS[name](Dataset.from_hdf5(path, NAMES, buffer_size=buffer_size))
    arrays = CHAINS[name](Dataset.from_tensor_slices({"x": X, "y": Y}))
    assert stored.element_spec == arrays.element_spec
    assert int(stored.cardinality()) == int(arrays.cardinality())
    check_equal(stored, arrays)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("num_parts", [2, 9])
def test_parts_are_those_of_arrays(path, layout, name, num_parts):
    if name in ("rows", "shuffled rows"):
        return  # no batches
    for index in (0, num_parts - 1):
        stored = Dataset.from_hdf5(write(path, layout=layout), NAMES, buffer_size=12)
        arrays = Dataset.from_tensor_slices({"x": X, "y": Y})
        ours = list(part_of_batches(CHAINS[name](stored), num_parts, index))
        theirs = list(part_of_batches(CHAINS[name](arrays), num_parts, index))
        assert [part.size for part in ours] == [part.size for part in theirs]
        for place in ("rows", "stand_in"):
            both = [[getattr(p, place) for p in parts] for parts in (ours, theirs)]
            assert [p is None for p in both[0]] == [p is None for p in both[1]]
            check_equal(*[[p for p in parts if p is not None] for parts in both])


@pytest.mark.parametrize(
    "names, expected",
    [
        ("images", lambda x, y: x),
        (("images", "group/labels"), lambda x, y: (x, y)),
        (["images", "/group/labels"], lambda x, y: (x, y)),
        ({"b": "images", "a": ("images", "group/labels")}, None),
    ],
)
def test_names_are_in_the_structure_of_an_element(path, names, expected):
    (batch,) = Dataset.from_hdf5(write(path), names).batch(ROWS)
    if expected is None:
        expected = {"b": X, "a": (X, Y)}
    else:
        expected = expected(X, Y)
    tw.nest.assert_same_structure(batch, expected)
    for leaf, values in zip(plain(batch), tw.nest.flatten(expected), strict=True):
        np.testing.assert_array_equal(leaf, values, strict=True)


@pytest.mark.parametrize("dtype", "bool uint8 int16 float16 float64 complex64".split())
def test_numbers_of_every_kind_are_rows(path, dtype):
    values = (np.arange(12) % 5).astype(dtype).reshape(6, 2)
    (batch,) = Dataset.from_hdf5(write(path, values, Y), "images").batch(6)
    np.testing.assert_array_equal(batch.numpy(), values, strict=True)


@pytest.mark.parametrize("count", [0, 1])
def test_a_file_may_have_few_rows(path, count):
    write(path, X[:count], Y[:count])
    for shuffle in (False, True):
        ds = Dataset.from_hdf5(path, NAMES, shuffle=shuffle)
        assert len(list(ds)) == len(list(ds.batch(3))) == count


# Shuffled by blocks


def order(ds):
    return [int(y) for y in ds]


def labels(path, **options):
    return Dataset.from_hdf5(path, "group/labels", shuffle=True, **options)


@pytest.mark.parametrize("buffer_size", [1, 2, 20, 64, 1000, None])
def test_each_row_comes_once_in_each_run(path, layout, buffer_size):
    ds = labels(write(path, layout=layout), seed=1, buffer_size=buffer_size)
    runs = [order(ds), order(ds)]
    assert runs[0] != runs[1]
    assert [sorted(run) for run in runs] == [list(Y)] * 2
    again = labels(path, seed=1, buffer_size=buffer_size)
    assert [order(again), order(again)] == runs
    assert order(labels(path, seed=2, buffer_size=buffer_size)) != runs[0]


def test_rounds_have_orders_of_their_own(path):
    rounds = np.reshape(order(labels(write(path), seed=1).repeat(2)), (2, ROWS))
    assert sorted(rounds[0]) == sorted(rounds[1]) and list(rounds[0]) != list(rounds[1])


def test_without_a_seed_the_order_follows_from_the_global_one(path):
    write(path)
    runs = []
    for seed in (1, 1, 2):
        tw.random.set_seed(seed)
        runs.append(order(labels(path)))
    assert runs[0] == runs[1] != runs[2]


def test_chunks_come_in_random_order_and_some_are_mixed(path):
    write(path, y=np.arange(ROWS), layout="chunks")  # labels in chunks of 40
    with h5py.File(path, "r+") as file:
        del file["group/labels"]
        file.create_dataset("group/labels", data=np.arange(1000), chunks=(10,))
    found = np.array(order(labels(path, seed=3, buffer_size=80))) // 10  # 4 at a time
    windows = [set(found[i : i + 40]) for i in range(0, 1000, 40)]
    assert [len(window) for window in windows] == [4] * 25
    assert [list(sorted(w)) for w in windows] != sorted(sorted(w) for w in windows)
    mixed = [np.count_nonzero(np.diff(found[i : i + 40])) for i in range(0, 1000, 40)]
    assert min(mixed) > 15  # of 39, and 29 on average


@pytest.mark.parametrize("done", [0, 1, 39, 41, 102, 103, 150])
def test_a_position_is_restored_in_another_process(path, layout, done):
    def chain(**options):
        return labels(path, **options).repeat(2)

    write(path, layout=layout)
    tw.random.set_seed(1)
    first = chain(buffer_size=16)
    order(first.take(5))
    iterator = iter(first)
    for _ in range(done):
        next(iterator)
    state = json.loads(json.dumps(iterator.state()))
    rest = [int(y) for y in iterator]
    assert len(rest) == 2 * ROWS - done
    tw.random.set_seed(2)
    for options in ({"buffer_size": 16}, {"buffer_size": 60}, {"seed": 5}):
        restored = iter(chain(**options))  # the order of a run is that of its position
        restored.restore(state)
        assert [int(y) for y in restored] == rest


def test_a_position_of_batches_is_restored(path, layout):
    def chain():
        ds = Dataset.from_hdf5(path, NAMES, shuffle=True, buffer_size=32)
        return ds.map(lambda e: e).batch(7).prefetch(2)

    write(path, layout=layout)
    iterator = iter(chain())
    for _ in range(5):
        next(iterator)
    state = json.loads(json.dumps(iterator.state()))
    restored = iter(chain())
    restored.restore(state)
    check_equal(restored, iterator)


def test_a_position_in_a_file_of_other_length_is_refused(path):
    state = iter(labels(write(path))).state()
    write(path, X[:50], Y[:50])
    iterator = iter(labels(path))
    with pytest.raises(ValueError, match="a file of 103 rows, this one has 50"):
        iterator.restore(state)
        next(iterator)


def test_parts_of_shuffled_blocks_are_the_batches(path, layout):
    def chain():
        return Dataset.from_hdf5(path, NAMES, shuffle=True, seed=4, buffer_size=32)

    write(path, layout=layout)
    expected = list(chain().batch(8))
    parts = [list(part_of_batches(chain().batch(8), 3, index)) for index in range(3)]
    together = [
        {key: tw.concat([p.rows[key] for p in each], 0) for key in ("x", "y")}
        for each in zip(*parts, strict=True)
    ]
    check_equal(together, expected)


# What is read

WIDE = np.repeat(np.arange(40, dtype="f8"), 1 << 15).reshape(40, 1 << 15)  # 256 kB


@pytest.mark.parametrize("shuffle", [False, True])
def test_each_row_is_read_once(path, layout, reads, shuffle):
    write(path, layout=layout)
    ds = Dataset.from_hdf5(path, ("images", "images"), shuffle=shuffle, buffer_size=45)
    list(ds.batch(8))
    rows = [i for _, start, n in reads for i in range(start, start + n)]
    assert sorted(rows) == sorted([*Y, *Y])


def test_rows_that_are_not_asked_for_are_not_read(path, reads):
    write(path, WIDE, np.arange(40))

    def read(arrange, **options):
        del reads[:]
        ds = Dataset.from_hdf5(path, "images", buffer_size=8, **options)
        list(arrange(ds))
        return sum(n for _, _, n in reads)

    assert read(lambda ds: ds.take(3)) == 3
    assert read(lambda ds: ds.skip(30).batch(4)) == 10
    assert read(lambda ds: ds.shard(4, 1).batch(2), shuffle=True) == 10
    assert read(lambda ds: ds.shuffle(40).shard(10, 9)) == 4
    assert read(lambda ds: part_of_batches(ds.batch(8), 4, 2)) == 10
    mapped = read(lambda ds: part_of_batches(ds.map(tw.negative).batch(8), 4, 2))
    assert mapped == 11  # and the first one, to see what the function draws


def test_only_the_buffer_is_in_memory(path, reads):
    write(path, WIDE, np.arange(40))
    for shuffle in (False, True):
        del reads[:]
        ds = Dataset.from_hdf5(path, "images", shuffle=shuffle, buffer_size=8)
        for done, _ in enumerate(ds.batch(2), start=1):
            assert sum(n for _, _, n in reads) <= 2 * done + 6


def test_reads_are_large(path, reads):
    x = np.zeros((20_000, 100), "f4")
    write(path, x, np.arange(len(x)))
    list(Dataset.from_hdf5(path, "images", shuffle=True, buffer_size=10_000).batch(32))
    assert len(reads) < 25  # of 400 kB and more


def test_the_file_is_open_during_a_run_only(path):
    ds = Dataset.from_hdf5(write(path), "images").batch(10)
    iterator = iter(ds)
    write(path, X + 1)
    np.testing.assert_array_equal(next(iterator).numpy(), X[:10] + 1)
    del iterator
    list(ds)
    write(path)  # which fails if the file is open


def test_a_process_may_end_in_the_middle_of_a_run(path):
    """Under a thread that reads, and closes the file, at any moment."""
    code = f"""
from tapewright.data import Dataset
ds = Dataset.from_hdf5({str(path)!r}, "images", shuffle=True).repeat().batch(10)
iterator = iter(ds.prefetch(2))
next(iterator), next(iter(ds.prefetch(1)))
"""
    write(path)
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")


def test_a_file_that_has_changed_is_refused(path):
    ds = Dataset.from_hdf5(write(path), NAMES)
    write(path, X[:50], Y[:50])
    with pytest.raises(tw.errors.SavingError, match="has changed.*shape or dtype"):
        next(iter(ds))


def test_data_sets_are_pickled_and_copied(path):
    ds = Dataset.from_hdf5(write(path), NAMES, shuffle=True, seed=1).batch(10)
    expected = list(copy.deepcopy(ds))
    check_equal(pickle.loads(pickle.dumps(ds)), expected)
    check_equal(ds, expected)


def test_a_relative_path_is_that_of_the_moment(path, tmp_path, monkeypatch):
    write(path)
    monkeypatch.chdir(tmp_path)
    ds = Dataset.from_hdf5("data.h5", "images")
    monkeypatch.chdir(tmp_path.parent)
    assert len(list(ds)) == ROWS


def test_a_model_is_trained_by_a_file(path):
    write(path, X / X.max(), Y % 2)
    model = tw.keras.Sequential(
        [tw.keras.layers.Flatten(), tw.keras.layers.Dense(2, activation="softmax")]
    )
    model.compile("sgd", "sparse_categorical_crossentropy")
    ds = Dataset.from_hdf5(path, ("images", "group/labels"), shuffle=True)
    history = model.fit(ds.batch(10).prefetch(2), epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2


# Mistakes


@pytest.fixture
def odd(path):
    with h5py.File(path, "w") as file:
        file["train/images"], file["short"] = X, Y[:5]
        file["texts"], file["bytes"] = ["a", "b"], np.array([b"a"])
        file["pairs"] = np.zeros(3, [("a", "f4"), ("b", "i4")])
        file["scale"], file["empty"] = 3.0, h5py.Empty("f4")
        file["long"] = np.zeros(3, np.longdouble)
    return path


@pytest.mark.parametrize(
    "names, error, message",
    [
        ("train/image", ValueError, "no dataset 'train/image'. Did you mean 'train/im"),
        ("train", ValueError, "no dataset 'train'. Did you mean 'train/images'"),
        (("train/images", "short"), ValueError, r"\(103, 3, 2\), 'short' \(5,\)"),
        ("scale", ValueError, "'scale' .* is a scalar"),
        ("texts", TypeError, "'texts' .*cannot be a tensor of numbers: holds text"),
        ("bytes", TypeError, "'bytes' .*cannot be a tensor of numbers: holds text"),
        ("pairs", TypeError, "'pairs' .*cannot be a tensor of numbers: .*'a'"),
        ("long", TypeError, "'long' .*cannot be a tensor of numbers: .*float128"),
        ("empty", ValueError, "holds no array"),
        ((), TypeError, r"names must be the name .* or dict of names; got \(\)"),
        ({"x": 3}, TypeError, r"names must be .*; got {'x': 3}"),
    ],
)
def test_datasets_that_are_no_rows_of_numbers_are_refused(odd, names, error, message):
    with pytest.raises(error, match=message):
        Dataset.from_hdf5(odd, names)


def test_names_are_listed_beside_links(odd):
    with h5py.File(odd, "r+") as file:
        file["link"] = h5py.SoftLink("/short")
    with pytest.raises(ValueError, match="Did you mean 'short'"):
        Dataset.from_hdf5(odd, "shorts")
    with pytest.raises(ValueError, match="links are not allowed"):
        Dataset.from_hdf5(odd, "link")


def test_the_path_must_be_that_of_an_hdf5_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        Dataset.from_hdf5(tmp_path / "none.h5", "x")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match="is not an HDF5 file"):
        Dataset.from_hdf5(tmp_path / "text", "x")
    with pytest.raises(TypeError, match="from_hdf5: path must be the path .* got int"):
        Dataset.from_hdf5(3, "x")


def test_the_buffer_has_a_row_at_least(path):
    with pytest.raises(ValueError, match="from_hdf5: buffer_size must be at least 1"):
        Dataset.from_hdf5(write(path), "images", buffer_size=0)
