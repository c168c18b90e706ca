"""`DataFrameIterator`: which rows of a table are used, and their labels."""

import pytest

from tapewright.keras.legacy.preprocessing.dataframe_iterator import DataFrameIterator

TABLE = {
    "filename": ["1.png", "2.jpg", "3.txt", "gone.png"],
    "class": ["dog", "cat", "dog", "owl"],
    "many": [["dog"], ["owl", "cat"], ["eel"], ["dog"]],
    "number": [0, 1, 2, 3],
}


@pytest.fixture
def directory(tmp_path):
    for name in TABLE["filename"][:3]:
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def test_rows_without_an_image_are_left_out(directory, capsys):
    with pytest.warns(UserWarning, match="Found 2 invalid image filename") as caught:
        found = DataFrameIterator(TABLE, directory)
    assert caught[0].filename == __file__
    assert found.filepaths == [str(directory / "1.png"), str(directory / "2.jpg")]
    assert found.class_indices == {"cat": 0, "dog": 1} and found.labels == [1, 0]
    found = DataFrameIterator(TABLE, class_mode=None, validate_filenames=False)
    assert found.samples == 4 and found.filepaths == TABLE["filename"]
    assert capsys.readouterr().out == (
        "Found 2 validated image filenames belonging to 2 classes.\n"
        "Found 4 non-validated image filenames.\n"
    )


def test_rows_of_other_classes_are_left_out():
    how = {
        "y_col": "many",
        "classes": ["owl", "dog", "owl"],
        "validate_filenames": False,
    }
    found = DataFrameIterator(TABLE, **how)
    assert found.filenames == ["1.png", "2.jpg", "gone.png"]
    assert found.class_indices == {"owl": 0, "dog": 1} and found.labels == [
        [1],
        [0],
        [1],
    ]


def test_columns_that_do_not_fit_are_refused():
    for arguments, error, message in (
        ({"class_mode": "all"}, ValueError, "class_mode .*'all'"),
        ({"class_mode": "binary"}, ValueError, "needs two classes, got 3"),
        ({"class_mode": "sparse", "y_col": "many"}, TypeError, "must hold str, got"),
        ({"y_col": "number"}, TypeError, "must hold str or list or tuple, got 0"),
        ({"x_col": "number"}, TypeError, "x_col 'number' must hold str"),
        ({"weight_col": "class"}, TypeError, "weight_col 'class' must hold numbers"),
        ({"class_mode": "multi_output"}, TypeError, "y_col must be a list"),
    ):
        with pytest.raises(error, match=message):
            DataFrameIterator(TABLE, **arguments)
    with pytest.warns(UserWarning, match="classes are not used"):
        DataFrameIterator(
            TABLE, class_mode=None, classes=["dog"], validate_filenames=False
        )
