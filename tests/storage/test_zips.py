"""Zip files: written whole, and read with suspicion."""

import io
import os
import struct
import zipfile
import zlib

import numpy as np
import pytest

import tapewright as tw
from tapewright.storage import zips
from tapewright.storage.zips import opened_zip, writing_zip

VALUES = np.random.default_rng(0).normal(size=(300, 200)).astype("f4")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.keras"


def write(path, extra=()):
    with writing_zip(path) as target:
        target.json("config.json", {"class_name": "Sequential"})
        with target.hdf5("model.weights.h5") as root:
            root.array("layers/dense/vars/0", VALUES)
        for name, text in extra:
            target.text(name, text)


def foreign(path, *members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as target:
        for name, content in members:
            target.writestr(name, content)


def refused(path, reason, name="a"):
    with pytest.raises(tw.errors.SavingError, match=reason) as caught:
        with opened_zip(path) as source:
            source.read(name)
    assert caught.value.path == str(path)
    return caught.value


def replaced(path, old, new, count=1):
    content = path.read_bytes()
    assert content.count(old) == count
    path.write_bytes(content.replace(old, new))


def test_members_come_back(path):
    write(path, [("notes.txt", "ü")])
    with opened_zip(path) as source:
        assert source.names == ["config.json", "model.weights.h5", "notes.txt"]
        assert source.json("config.json") == {"class_name": "Sequential"}
        assert source.text("notes.txt") == "ü"
        assert "notes.txt" in source and "other" not in source
        with source.hdf5("model.weights.h5") as root:
            assert root.sealed
            values = root.array("layers/dense/vars/0").read()
    np.testing.assert_array_equal(values, VALUES)


def test_a_file_that_is_replaced_is_read_on_as_it_was_opened(path):
    write(path)
    with opened_zip(path) as source:
        with writing_zip(path) as target:
            target.json("config.json", {"class_name": "Functional"})
        with source.hdf5("model.weights.h5") as root:
            values = root.array("layers/dense/vars/0").read()
        assert source.json("config.json") == {"class_name": "Sequential"}
    np.testing.assert_array_equal(values, VALUES)


def test_members_are_stored_and_others_read_them(path):
    write(path)
    with zipfile.ZipFile(path) as source:
        assert source.testzip() is None
        assert {info.compress_type for info in source.infolist()} == {0}
        assert source.read("config.json") == b'{"class_name": "Sequential"}'


def test_equal_contents_make_equal_files(path, tmp_path):
    write(path)
    write(tmp_path / "other.keras")
    assert path.read_bytes() == (tmp_path / "other.keras").read_bytes()


def test_an_error_while_writing_leaves_the_old_file(path):
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="^mine$"), writing_zip(path) as target:
        with target.hdf5("model.weights.h5") as root:
            root.array("a", VALUES)
            raise ValueError("mine")
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_a_name_may_be_written_once(path):
    with pytest.raises(ValueError, match="'a'.*exists"):
        with writing_zip(path) as target:
            target.text("a", "1")
            target.text("a", "2")
    assert not path.exists()


@pytest.mark.parametrize("name", ["../a", "/a", "a\\b", "", "a//b", "c:/a", "a\0b"])
def test_names_that_would_not_be_read_are_not_written(path, name):
    with pytest.raises(ValueError, match="name"), writing_zip(path) as target:
        target.text(name, "text")


def test_deflated_members_are_read(path):
    foreign(path, ("a", b"abc" * 50_000), method=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 2000
    with opened_zip(path) as source:
        assert source.read("a", 150_000) == b"abc" * 50_000
        with source.opened("a") as file:
            file.seek(-3, io.SEEK_END)
            assert file.read() == b"abc"


def test_hdf5_that_is_deflated_is_read(path, tmp_path):
    write(path)
    with zipfile.ZipFile(path) as source:
        content = source.read("model.weights.h5")
    foreign(tmp_path / "b", ("m.h5", content), method=zipfile.ZIP_DEFLATED)
    with opened_zip(tmp_path / "b") as source, source.hdf5("m.h5") as root:
        np.testing.assert_array_equal(root.array("layers/dense/vars/0").read(), VALUES)


def test_a_stored_member_is_read_where_it_lies(path):
    foreign(path, ("b", b"x" * 77), ("a", b"0123456789"))
    with opened_zip(path) as source, source.opened("a") as window:
        assert window.path == str(path)
        assert path.read_bytes()[window.start :][:10] == b"0123456789"
        assert window.read(100) == b"0123456789" and window.read(1) == b""


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"PK\5\6" + b"\0" * 17, b"<html>", os.urandom(5000)],
    ids=["empty", "two bytes", "short", "HTML", "random"],
)
def test_what_is_no_zip_file_is_told(path, content):
    path.write_bytes(content)
    refused(path, "damaged zip file")


def test_a_missing_file_is_told(path):
    error = refused(path, "there is no such file")
    assert isinstance(error, FileNotFoundError)


@pytest.mark.parametrize("part", [0.3, 0.999])
def test_a_zip_file_that_ends_early_is_damaged(path, part):
    write(path)
    os.truncate(path, int(path.stat().st_size * part))
    refused(path, "damaged zip file")


def test_every_flipped_bit_is_found_or_harmless(path):
    write(path)
    content, random = path.read_bytes(), np.random.default_rng(1)
    places = [*random.integers(len(content), size=150), *range(40)]
    places += range(len(content) - 200, len(content), 2)
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << random.integers(8)
        path.write_bytes(flipped)
        try:
            with opened_zip(path) as source:
                assert source.json("config.json") == {"class_name": "Sequential"}
                with source.hdf5("model.weights.h5") as root:
                    values = root.array("layers/dense/vars/0").read()
            np.testing.assert_array_equal(values, VALUES)
        except tw.errors.SavingError:
            pass


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b", "./a", "a//b", "c:/a"])
def test_names_that_lead_out_are_refused(path, name):
    foreign(path, (name, b"x"))
    refused(path, "name of a member", name)


@pytest.mark.parametrize("name", [b"..\\a", b"a\0bc"])
def test_names_that_are_not_plain_are_refused(path, name):
    foreign(path, ("abcd", b"x"))
    replaced(path, b"abcd", name, 2)
    refused(path, "relative path", "a")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_there_twice_is_refused(path):
    foreign(path, ("a", b"1"), ("a", b"2"))
    refused(path, "occurs twice")


def test_another_name_in_the_header_is_refused(path):
    foreign(path, ("config", b"1"))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"config", b"donfig", 1))
    refused(path, "another name in its header", "config")


def test_members_that_overlap_are_refused(path):
    foreign(path, ("a", b"x" * 100), ("b", b"y" * 100))
    content = bytearray(path.read_bytes())
    second = content.rindex(b"PK\1\2")
    content[second + 42 : second + 46] = bytes(4)  # where its header is
    path.write_bytes(content)
    refused(path, "overlaps|another name")


def test_a_member_beyond_the_end_is_refused(path):
    foreign(path, ("a", b"x" * 100))
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\1\2")
    content[entry + 20 : entry + 28] = struct.pack("<II", 5000, 5000)
    path.write_bytes(content)
    refused(path, "beyond the end")


def test_a_checksum_that_differs_is_damage(path):
    foreign(path, ("a", b"x" * 100))
    replaced(path, b"x" * 100, b"x" * 99 + b"y")
    refused(path, "checksum .CRC-32. differs")


def test_encrypted_members_are_refused(path):
    foreign(path, ("a", b"x" * 100))
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\1\2") + 8] |= 1
    path.write_bytes(content)
    refused(path, "is encrypted")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_are_refused(path, method):
    foreign(path, ("a", b"x" * 100), method=method)
    refused(path, "neither stored nor deflated")


def test_a_gigabyte_in_a_megabyte_is_refused(path):
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = deflate.compress(bytes(16 << 20)) + deflate.flush()
    foreign(path, ("a", packed))
    content = bytearray(path.read_bytes())
    for sign, at in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        start = content.index(sign) + at
        content[start : start + 2] = struct.pack("<H", 8)
        content[start + 14 : start + 18] = struct.pack("<I", 1 << 30)
    path.write_bytes(content)
    refused(path, "declares 1073741824 bytes")


@pytest.mark.parametrize("declared", [10, 149_999, 150_001])
def test_a_deflated_member_of_another_size_is_refused(path, declared):
    foreign(path, ("a", b"abc" * 50_000), method=zipfile.ZIP_DEFLATED)
    content = bytearray(path.read_bytes())
    start = content.rindex(b"PK\1\2") + 24
    content[start : start + 4] = struct.pack("<I", declared)
    path.write_bytes(content)
    refused(path, f"declares {declared} bytes")


def test_what_is_deflated_badly_is_refused(path):
    foreign(path, ("a", b"abc" * 50_000), method=zipfile.ZIP_DEFLATED)
    content = bytearray(path.read_bytes())
    content[35:45] = b"\xff" * 10
    path.write_bytes(content)
    refused(path, "damaged zip file|declares|CRC")


def test_members_without_end_are_refused(path, monkeypatch):
    monkeypatch.setattr(zips, "MAX_MEMBERS", 20)
    foreign(path, *((str(i), b"") for i in range(21)))
    refused(path, "21.*members")


def test_a_table_of_contents_without_end_is_not_read(path, monkeypatch):
    foreign(path, *((str(i), b"") for i in range(2000)))
    monkeypatch.setattr(zips, "MAX_DIRECTORY", 70_000)
    refused(path, r"table of contents .*\d+ bytes")


def test_text_has_a_limit(path):
    foreign(path, ("a", b"x" * 1000))
    with (
        opened_zip(path) as source,
        pytest.raises(tw.errors.SavingError, match="at most 999"),
    ):
        source.read("a", 999)


def test_errors_tell_the_member(path):
    foreign(path, ("config.json", b'{"a": 1, "a": 2}'), ("b", b"\xff"), ("c.h5", b"x"))
    with opened_zip(path) as source:
        with pytest.raises(tw.errors.SavingError, match=r"\[config\.json\].*JSON"):
            source.json("config.json")
        with pytest.raises(tw.errors.SavingError, match=r"\[b\].*UTF.*8"):
            source.text("b")
        with pytest.raises(tw.errors.SavingError, match=r"\[c\.h5\].*HDF5"):
            with source.hdf5("c.h5"):
                pass
        with pytest.raises(tw.errors.SavingError, match="member.*'d'"):
            source.read("d")
