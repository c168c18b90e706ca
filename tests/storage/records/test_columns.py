"""Columns of comma-separated values: dtypes, defaults, and what TensorFlow infers."""

import random

import numpy as np
import pytest

from tapewright.errors import InvalidArgumentError
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
        (INT, b"1_0", "not a valid int32"),
        (INT, b"1.0", "not a valid int32"),
        (INT, b"99999999999", "not a valid int32"),
        (FLOAT, b"x", "not a valid float32"),
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


DEFAULTS = (
    np.array([1.5], np.float32),
    np.array(np.nan),
    np.array([], np.float32),
    np.array(-0.0, np.float32),
    np.array(7, np.int32),
    np.array([2**62]),
    np.array([], np.int64),
    np.array(b"d", object),
    np.array([], object),
)
GOOD = {
    "f": (b"1", b"-2.5", b"1e3", b"nan", b"-inf", b"3.5e38", b"1e400", b"16777217", b"", b"NA"),
    "i": (b"1", b" 7 ", b"+5", b"-2147483648", b"", b"NA"),
    "O": (b"x", b'"a,b"', b'"q""q"', b"", b"NA"),
}  # fmt: skip
BAD = b"1_0", b"0x10", b"1\0", b"3000000000", b"9" * 20, b"1.5", b"x", b'a"b', b"1,2"


def values_by_rows(columns, rows):
    values = [columns.values(row, number) for number, row in enumerate(rows)]
    return zip(*values, strict=True)


def values_by_columns(columns, rows):
    return columns.arrays(rows, (len(rows),))


def shown(call, columns, rows):
    """The values with their types, or the error."""
    try:
        found = call(columns, rows)
    except InvalidArgumentError as error:
        return str(error)
    return [[(type(x), repr(x)) for x in column] for column in found]


@pytest.mark.parametrize("seed", range(3))
def test_columns_have_the_values_and_the_first_error_of_their_rows(seed):
    draw, errors = random.Random(seed), 0
    for _ in range(400):
        defaults = draw.choices(DEFAULTS, k=draw.randint(1, 4))
        columns = Columns("csv", defaults, na_value=draw.choice(["", "NA"]))
        rows = [
            b",".join(
                draw.choice(BAD if draw.random() < 0.05 else GOOD[default.dtype.kind])
                for default in defaults
            )
            for _ in range(draw.randint(1, 4))
        ]
        if b"" in rows:  # refused by `arrays` alone
            continue
        found = shown(values_by_columns, columns, rows)
        assert found == shown(values_by_rows, columns, rows), (rows, defaults)
        errors += isinstance(found, str)
    assert 50 < errors < 350
    arrays = Columns("csv", DEFAULTS).arrays([], (0,))
    assert [a.dtype for a in arrays] == [default.dtype for default in DEFAULTS]
