"""Columns of comma-separated values: dtypes, defaults, and what TensorFlow infers."""

import numpy as np
import pytest

from tapewright.core.errors import InvalidArgumentError
from tapewright.storage.records.columns import Columns, infer_default

INT, FLOAT = np.array(7, "i4"), np.array([1.5], "f4")
TEXT, NEEDED = np.array(b"d", object), np.zeros(0, "i4")


def test_a_field_is_converted_and_an_empty_one_has_the_default():
    columns = Columns("csv", [INT, FLOAT, TEXT], na_value="NA")
    assert columns.values(b" 3 ,,x y") == [3, 1.5, b"x y"]
    assert columns.values(b'NA,"NA",') == [7, 1.5, b"d"]
    assert Columns("csv", [INT, INT], selected=[0, 2]).values(b"1,z,3") == [1, 3]


@pytest.mark.parametrize(
    "default, row, reason",
    [
        (INT, b"1_0", "no int32"),
        (INT, b"1.0", "no int32"),
        (INT, b"99999999999", "no int32"),
        (FLOAT, b"x", "no float32"),
        (NEEDED, b"", "no default"),
        (INT, b"1,2", "2 fields, not 1"),
    ],
)
def test_other_fields_are_refused(default, row, reason):
    with pytest.raises(InvalidArgumentError, match=reason):
        Columns("csv", [default]).values(row)


def test_the_first_dtype_that_fits_all_fields_is_inferred():
    for fields, name in [
        ([b"1", b""], "int32"),
        ([b"1", b"3000000000"], "int64"),
        ([b"1", b"2.5"], "float32"),
        ([b"1e300"], "float64"),
        ([b"1", b"x"], "object"),
    ]:
        assert infer_default(fields).dtype.name == name
