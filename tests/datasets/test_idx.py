"""IDX files: right ones are read, every other kind is refused with its reason."""

import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from tapewright.datasets import idx
from tapewright.datasets.idx import (
    DataFileError,
    read_images,
    read_labels,
    read_pair,
)

IMAGES = np.arange(5 * 3 * 4, dtype=np.uint8).reshape(5, 3, 4)
LABELS = np.array([3, 1, 4, 1, 5], np.uint8)


@pytest.fixture
def write(tmp_path):
    """A function that writes bytes to a file and returns its path."""

    def to(content, name="images"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return to


@pytest.fixture(params=["plain", "gzip"])
def pack(request):
    return gzip.compress if request.param == "gzip" else bytes


def refused(path, *words, read=read_images):
    """Check that the file is refused in a message with its name and these words."""
    with pytest.raises(DataFileError) as caught:
        read(path)
    assert isinstance(caught.value, ValueError)
    for word in (str(path), *words):
        assert word in str(caught.value)


def test_images_come_back_as_they_were(write, pack, idx_bytes):
    images = read_images(write(pack(idx_bytes(IMAGES))))
    assert images.dtype == np.uint8 and images.flags.writeable
    np.testing.assert_array_equal(images, IMAGES)


def test_labels_come_back_as_they_were(write, pack, idx_bytes):
    labels = read_labels(write(pack(idx_bytes(LABELS))))
    assert labels.dtype == np.uint8
    np.testing.assert_array_equal(labels, LABELS)


def test_the_content_decides_about_gzip_not_the_name(write, idx_bytes):
    plain = write(idx_bytes(IMAGES), "images.gz")
    packed = write(gzip.compress(idx_bytes(IMAGES)), "images-idx3-ubyte")
    np.testing.assert_array_equal(read_images(plain), read_images(packed))


def test_no_images_at_all_are_no_error(write, pack, idx_bytes):
    empty = np.zeros((0, 28, 28), np.uint8)
    assert read_images(write(pack(idx_bytes(empty)))).shape == (0, 28, 28)


def test_labels_where_images_are_wanted_are_refused(write, pack, idx_bytes):
    path = write(pack(idx_bytes(LABELS)))
    refused(path, "holds labels", "2049", "2051", "swapped")


def test_images_where_labels_are_wanted_are_refused(write, pack, idx_bytes):
    path = write(pack(idx_bytes(IMAGES)))
    refused(path, "holds images", "2051", "2049", "swapped", read=read_labels)


def test_truncated_data_are_refused(write, pack, idx_bytes):
    path = write(pack(idx_bytes(IMAGES)[:-7]))
    refused(path, "truncated", "announces 60 bytes", "the file has 53")


def test_a_truncated_header_is_refused(write, pack, idx_bytes):
    refused(write(pack(idx_bytes(IMAGES)[:9])), "truncated", "9 of 16 bytes")


def test_a_gzip_file_cut_anywhere_is_refused(write, idx_bytes):
    whole = gzip.compress(idx_bytes(IMAGES))
    for length in range(2, len(whole)):
        refused(write(whole[:length]), "truncated")


def test_an_empty_file_is_refused(write, pack):
    refused(write(pack(b"")), "only 0 bytes", "2051")


def test_trailing_bytes_are_refused(write, pack, idx_bytes):
    refused(write(pack(idx_bytes(IMAGES) + b"\0")), "more data follows the 60 bytes")


def test_bytes_after_the_gzip_data_are_refused(write, idx_bytes):
    refused(write(gzip.compress(idx_bytes(IMAGES)) + b"garbage"), "gzip")


def test_a_second_gzip_member_is_refused(write, idx_bytes):
    packed = gzip.compress(idx_bytes(IMAGES))
    refused(write(packed + packed), "more data follows the 60 bytes")


@pytest.mark.parametrize("at", [12, -8], ids=["data", "checksum"])
def test_damaged_gzip_data_are_refused(write, idx_bytes, at):
    packed = bytearray(gzip.compress(idx_bytes(IMAGES)))
    packed[at] ^= 0xFF
    with pytest.raises(DataFileError):
        read_images(write(bytes(packed)))


@pytest.mark.parametrize(
    "page", [b"<!DOCTYPE html>", b"\n <html>", b"\xef\xbb\xbf<?xml"]
)
def test_a_web_page_is_refused_as_such(write, page):
    refused(write(page + b" sign in first", "images.gz"), "web page")


def test_a_foreign_file_is_refused_with_the_right_magic_number(write, pack):
    refused(write(pack(b"\x89PNG" + bytes(100))), "not an IDX file", "2051")


def test_floats_in_idx_form_are_refused(write):
    header = struct.pack(">BBBB3I", 0, 0, 13, 3, 1, 1, 1)
    refused(write(header + bytes(4)), "not an IDX file")


@pytest.mark.parametrize("shape", [(2**32 - 1,) * 3, (1 << 20, 32, 33), (5, 0, 4)])
def test_sizes_nobody_means_are_refused_before_memory_is_asked_for(write, pack, shape):
    path = write(pack(struct.pack(">4I", 2051, *shape)))
    refused(path, "announces the shape", str(shape[0]))


def test_a_gzip_bomb_is_inflated_no_further_than_its_header_says(write, idx_bytes):
    bomb = gzip.compress(idx_bytes(IMAGES) + bytes(1 << 27), compresslevel=1)
    path = write(bomb)
    tracemalloc.start()
    refused(path, "more data follows the 60 bytes")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


def test_a_pair_must_hold_equally_many(write, idx_bytes):
    images = write(idx_bytes(IMAGES))
    labels = write(idx_bytes(LABELS[:4]), "labels")
    with pytest.raises(DataFileError, match=r"4 labels.*5 images") as caught:
        read_pair(images, labels)
    assert str(images) in str(caught.value) and str(labels) in str(caught.value)


def test_a_pair_comes_back_together(write, idx_bytes):
    x, y = read_pair(write(idx_bytes(IMAGES)), write(idx_bytes(LABELS), "labels"))
    np.testing.assert_array_equal(x, IMAGES)
    np.testing.assert_array_equal(y, LABELS)


def test_a_missing_file_is_the_usual_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        idx.read_images(tmp_path / "nothing")
