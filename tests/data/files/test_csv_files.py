"""`make_csv_dataset`. Elements were recorded with TensorFlow."""

import gzip

import numpy as np
import pytest

import tapewright as tw
from tapewright.data.experimental import make_csv_dataset

ROWS = 'n,big,x,exact,name\n1,3000000000,1.5,1e300,a\n,4,2,2,"b,c"\n-3,,nan,,\n'


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.csv").write_text(ROWS)
    return str(tmp_path / "a.csv")


def columns(*args, **options):
    options = {"num_epochs": 1, "shuffle": False} | options
    return list(make_csv_dataset(*args, **options).as_numpy_iterator())


def plain(batch):
    return {name: values.tolist() for name, values in batch.items()}


def test_defaults_are_inferred(path):
    (batch,) = columns(path, 5)
    assert [values.dtype.name for values in batch.values()] == [
        "int32",
        "int64",
        "object",  # TensorFlow takes "nan" for text
        "float64",
        "object",
    ]
    assert plain(batch) == {
        "n": [1, 0, -3],
        "big": [3000000000, 4, 0],
        "x": [b"1.5", b"2", b"nan"],
        "exact": [1e300, 2.0, 0.0],
        "name": [b"a", b"b,c", b""],
    }
    (batch,) = columns(path, 5, num_rows_for_inference=2, select_columns=["x", 0])
    assert list(batch) == ["n", "x"] and batch["x"].dtype == np.float32
    np.testing.assert_array_equal(batch["x"], [1.5, 2, np.nan])


def test_columns_are_selected_and_labelled(path):
    ds = make_csv_dataset(
        path, 2, column_defaults=[tw.float32, ["?"]], select_columns=["n", "name"],
        label_name="name", num_epochs=1, shuffle=False, ignore_errors=True,
    )  # fmt: skip
    features, labels = ds.element_spec
    assert features == {"n": tw.TensorSpec([None], "float32")}
    assert labels == tw.TensorSpec([None], "string")
    found = [(plain(x), y.tolist()) for x, y in ds.as_numpy_iterator()]
    # the second row has no n, and there is no default
    assert found == [({"n": [1.0, -3.0]}, [b"a", b"?"])]


def test_files_follow_or_take_turns_and_are_repeated(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(
            "".join([f"{name}{n}|1\n" for n in range(3)])
        )
    pattern = str(tmp_path / "*.csv")
    options = {"column_names": ["s", "t"], "header": False, "field_delim": "|"}
    (batch,) = columns(pattern, 9, **options)
    assert batch["s"].tolist() == [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]
    for reads in (2, tw.data.AUTOTUNE):  # the latter as here with four files
        (batch,) = columns(pattern, 9, num_parallel_reads=reads, **options)
        assert batch["s"].tolist() == [b"a0", b"b0", b"a1", b"b1", b"a2", b"b2"]
    ds = make_csv_dataset(pattern, 4, num_epochs=None, shuffle_seed=1, **options)
    assert ds.element_spec["s"] == tw.TensorSpec([4], "string")
    found = [x for batch in ds.take(3).as_numpy_iterator() for x in batch["s"]]
    assert len(found) == 12 and sorted(found[:6]) == sorted(found[6:])


def test_compressed_files_and_other_encodings(tmp_path):
    path = str(tmp_path / "a.csv.gz")
    with gzip.open(path, "wb") as file:
        file.write("größe\n1\n".encode("latin-1"))
    options = {"compression_type": "GZIP", "encoding": "latin-1"}
    assert list(columns(path, 1, **options)[0]) == ["größe"]
    with pytest.raises(ValueError, match="as 'utf-8'"):
        make_csv_dataset(path, 1, compression_type="GZIP")


@pytest.mark.parametrize(
    "options, words",
    [
        ({"header": False}, "column_names"),
        ({"label_name": "z"}, "label_name"),
        ({"select_columns": ["z"]}, "'z'"),
        ({"select_columns": [5]}, "below 5"),
        ({"select_columns": ["n", 0]}, "must differ"),
        ({"column_defaults": [0]}, "one entry for each of 5"),
        ({"column_names": ["a"] * 5}, "must differ"),
        ({"column_names": ["a", "b"]}, "row 1 has 5 fields, not 2"),
        ({"compression_type": "BZ2"}, "compression_type"),
    ],
)
def test_mistakes_are_named(path, options, words):
    with pytest.raises(ValueError, match=words):
        make_csv_dataset(path, 2, **options)
    with pytest.raises(ValueError, match="no file"):
        make_csv_dataset(f"{path}?", 2)


def test_all_files_need_the_same_names(path, tmp_path):
    (tmp_path / "b.csv").write_text("x\n1\n")
    with pytest.raises(ValueError, match="the column names of .* differ"):
        make_csv_dataset([path, str(tmp_path / "b.csv")], 2)
    (tmp_path / "c.csv").write_text("")
    with pytest.raises(ValueError, match="no line"):
        make_csv_dataset(str(tmp_path / "c.csv"), 2)
