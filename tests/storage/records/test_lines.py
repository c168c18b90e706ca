"""Lines, records of one length, and rows of comma-separated values."""

import zlib

import pytest

from tapewright.errors import InvalidArgumentError, NotFoundError
from tapewright.storage.records.lines import (
    read_fixed,
    read_lines,
    read_rows,
    split_row,
)


@pytest.fixture(params=["", "ZLIB"])
def file(request, tmp_path):
    def write(data):
        path = tmp_path / "file"
        path.write_bytes(zlib.compress(data) if request.param else data)
        return path, request.param

    return write


def records(reads):
    return [record for record, _ in reads]


def test_a_reader_goes_on_from_the_place_of_any_record(file):
    path, compression = file(b"a\r\nb\rc\n\nd")
    found = list(read_lines(path, compression))
    assert records(found) == [b"a", b"bc", b"", b"d"]  # as TensorFlow
    for i, (_, place) in enumerate(found):
        rest = records(read_lines(path, compression, place))
        assert rest == records(found)[i + 1 :]


def test_records_of_one_length_lie_between_header_and_footer(file):
    path, compression = file(b"Habcdef..")
    found = list(read_fixed(path, 2, 1, 2, compression))
    assert found == [(b"ab", 3), (b"cd", 5), (b"ef", 7)]
    assert records(read_fixed(path, 2, 1, 2, compression, 5)) == [b"ef"]
    with pytest.raises(InvalidArgumentError, match="8 bytes .* not a multiple .*=3"):
        records(read_fixed(path, 3, 1, 0, compression))


def test_a_quoted_field_may_have_several_lines(file):
    path, compression = file(b'1,"x,\ny"\r\n\n2,z')
    found = list(read_rows(path, compression))
    assert records(found) == [b'1,"x,\ny"', b"", b"2,z"]
    assert records(read_rows(path, compression, found[0][1])) == [b"", b"2,z"]
    path, compression = file(b'1,"x\n')
    with pytest.raises(InvalidArgumentError, match="is not closed"):
        records(read_rows(path, compression))


def test_rows_are_split_as_the_rfc_says():
    assert split_row(b'1,"a ""b"", c",') == [b"1", b'a "b", c', b""]
    assert split_row(b'a "b";c', b";", quoted=False) == [b'a "b"', b"c"]
    for row in (b'a"b', b'"ab"c', b'"ab', b"a\rb"):  # TensorFlow refuses these
        with pytest.raises(InvalidArgumentError):
            split_row(row)


def test_a_missing_file_is_named():
    with pytest.raises(NotFoundError, match="/no such file: No such file"):
        records(read_lines("/no such file"))
