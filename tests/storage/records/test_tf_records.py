"""TFRecord files: those that TensorFlow wrote, and damaged ones."""

import pytest

from tapewright.errors import DataLossError
from tapewright.storage.records.tf_records import put_record, read_records

RECORDS = [b"r" * k * 100 for k in range(5)]
# Written by TensorFlow's TFRecordWriter, with compression_type="GZIP" and "ZLIB".
DEFLATED = (
    b"c`\x80\x00M\xe6\x19\xec7^5-J\x81\xf2\x9d\xe3e\xee\x17\xd1\x01\x94\xbc:z\xf6\x04"
    b"\xd4\xce\xbf\xab&T\xd0\xc3Nz\x00Q\xab\x99\xb7t\x18!\xfe\xfa\xf4/z\xee@\xbbg(\x01"
    b"\xf9\t\x11\xf5\x13\xa0a7a\xf2\xf2\xa5\x03\xed\x9eQ\x80\n\xa6}\xd0\x99\x0f\x00"
)
WRITTEN = {
    "GZIP": b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + DEFLATED + b"V\xd9V\xdf8\x04\0\0",
    "ZLIB": b"x\x9c" + DEFLATED + b"\xfd\x89\xd5'",
}


def read(path, compression="", place=0):
    return [record for record, _ in read_records(path, compression, place)]


@pytest.mark.parametrize("compression", WRITTEN)
def test_what_tensorflow_wrote_is_read_and_its_bytes_are_ours(tmp_path, compression):
    path = tmp_path / "r"
    path.write_bytes(WRITTEN[compression])
    assert read(path, compression) == RECORDS
    place = 16 + 116  # after two records
    assert read(path, compression, place) == RECORDS[2:]


def test_a_changed_or_missing_byte_is_found(tmp_path):
    path, data = tmp_path / "r", put_record(b"abc") + put_record(b"d" * 60)
    for i in range(len(data)):
        path.write_bytes(data[:i] + bytes([data[i] ^ 4]) + data[i + 1 :])
        with pytest.raises(DataLossError, match="damaged in the record at byte"):
            read(path)
        if i not in (0, 19):  # between records, it is a shorter file
            path.write_bytes(data[:i])
            with pytest.raises(DataLossError, match="too early|a record of"):
                read(path)


def test_a_compressed_file_that_ends_early_is_damaged(tmp_path):
    path = tmp_path / "r"
    for compression, data in WRITTEN.items():
        path.write_bytes(data[:-20])
        with pytest.raises(DataLossError, match="damaged"):
            read(path, compression)
