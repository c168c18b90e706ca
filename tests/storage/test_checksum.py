"""The seal: every change of a file is found before HDF5 sees it."""

import hashlib
import os
from functools import partial

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright.storage import checksum as seals
from tapewright.storage.checksum import check_seal, seal
from tapewright.storage.reader import opened
from tapewright.storage.writer import writing

VALUES = np.random.default_rng(0).normal(size=(40, 30)).astype("f4")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "m.h5"
    with writing(path) as root:
        group = root.group("layers/dense/vars")
        group.array("0", VALUES)
        group.array("1", np.arange(30.0))
        group.text("name", "dense")
    return path


def test_what_was_written_is_intact(path):
    assert check_seal(path)


def test_h5py_opens_a_sealed_file(path):
    with h5py.File(path) as file:
        assert file.userblock_size == 512
        np.testing.assert_array_equal(file["layers/dense/vars/0"], VALUES)


def test_a_file_without_a_seal_says_so(tmp_path):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["a"] = VALUES
    assert not check_seal(tmp_path / "m.h5")
    with opened(tmp_path / "m.h5") as root:
        assert not root.sealed


def test_every_flipped_bit_is_found(path, tmp_path):
    content, other = path.read_bytes(), tmp_path / "other.h5"
    random = np.random.default_rng(1)
    places = [*random.integers(len(content), size=260), *range(40)]
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << random.integers(8)
        other.write_bytes(flipped)
        with pytest.raises(tw.errors.SavingError, match="damaged") as caught:
            with opened(other):
                pass
        assert caught.value.path == str(other)


@pytest.mark.parametrize("count", [1, 100, 2000])
def test_a_file_that_ends_early_is_damaged(path, count):
    size = os.path.getsize(path)
    os.truncate(path, size - count)
    with pytest.raises(tw.errors.SavingError, match=f"{size} were written"):
        check_seal(path)


def test_a_file_with_more_at_its_end_is_damaged(path):
    with open(path, "ab") as file:
        file.write(b"more")
    with pytest.raises(tw.errors.SavingError, match="damaged"):
        check_seal(path)


def test_a_file_edited_after_it_was_written_is_told_from_an_intact_one(path):
    with h5py.File(path, "r+") as file:
        file["layers/dense/vars/1"][3] = 7
    with pytest.raises(tw.errors.SavingError, match="was changed after it was written"):
        with opened(path):
            pass


@pytest.mark.parametrize(
    "head",
    [
        b"TAPEWRIGHT 1 ",
        b"TAPEWRIGHT 2 ",
        b"TAPEWRIGHT 1 sha256/512KiB=",
        b"TAPEWRIGHT 2 sha256/512KiB=" + b"0" * 64 + b" bytes=1000\n",
        b"TAPEWRIGHT 2 multilinear/32KiB=" + b"0" * 64 + b" bytes=\n",
        b"TAPEWRIGHT 6 multilinear/32KiB=" + b"0" * 64 + b" bytes=1000\n",
        b"TAPFWRIGHT 1 sha256/512KiB=" + b"0" * 64 + b" bytes=1000\n",
    ],
)
def test_a_damaged_seal_is_damage(path, head):
    with open(path, "r+b") as file:
        file.write(head.ljust(512, b"\0"))
    with pytest.raises(tw.errors.SavingError, match="its seal cannot be read"):
        check_seal(path)


def test_a_head_without_a_file_is_damage(tmp_path):
    (tmp_path / "m.h5").write_bytes(seals.MARK)
    with pytest.raises(tw.errors.SavingError, match="its seal cannot be read"):
        check_seal(tmp_path / "m.h5")


@pytest.mark.parametrize("size", [512, 513, 700, 33_280, 33_281, 1_200_000])
def test_the_checksum_is_that_of_the_sums_of_all_rows(tmp_path, size):
    content = np.random.default_rng(2).bytes(size)
    (tmp_path / "m.h5").write_bytes(content)
    seal(tmp_path / "m.h5")
    key = hashlib.shake_128(b"multilinear/32KiB=").digest(32 << 10)
    weights = np.frombuffer(key, "<u8").tolist()
    sums = []
    for start in range(512, size, 32 << 10):
        row = content[start : start + (32 << 10)].ljust(32 << 10, b"\0")
        for order in "<>":
            words = np.frombuffer(row, f"{order}u8").tolist()
            total = sum(word * (weight | 1) for word, weight in zip(words, weights))
            sums.append((total % 2**64).to_bytes(8, "little"))
    checksum = hashlib.sha256(b"".join(sums)).hexdigest()
    head = f"TAPEWRIGHT 2 multilinear/32KiB={checksum} bytes={size}\n".encode()
    assert (tmp_path / "m.h5").read_bytes()[:512] == head.ljust(512, b"\0")
    assert check_seal(tmp_path / "m.h5")


def seal_of_version_1(path):
    content = path.read_bytes()
    pieces = [content[i : i + (512 << 10)] for i in range(512, len(content), 512 << 10)]
    digests = b"".join([hashlib.sha256(piece).digest() for piece in pieces])
    checksum = hashlib.sha256(digests).hexdigest()
    head = f"TAPEWRIGHT 1 sha256/512KiB={checksum} bytes={len(content)}\n".encode()
    path.write_bytes(head.ljust(512, b"\0") + content[512:])


@pytest.fixture(params=[1, 2])
def large(request, tmp_path):
    """A file of several pieces with a seal of each version; the last one is not full."""
    path = tmp_path / "large.h5"
    with writing(path) as root:
        root.array("a", np.random.default_rng(3).normal(size=330_000))
    if request.param == 1:
        seal_of_version_1(path)
    assert path.read_bytes().startswith(b"TAPEWRIGHT %d " % request.param)
    return path


def is_damaged(path, content):
    path.write_bytes(content)
    try:
        check_seal(path)
    except tw.errors.SavingError as error:
        return "damaged" in error.reason
    return False


@pytest.mark.parametrize("threads", [1, 3])
def test_every_flipped_bit_of_a_large_file_is_found(large, threads):
    content = bytearray(large.read_bytes())
    assert check_seal(large)
    random = np.random.default_rng(4)
    tw.config.set_threads(threads)
    try:
        for place in [*random.integers(len(content), size=60), 512, len(content) - 1]:
            bit = 1 << random.integers(8)
            content[place] ^= bit
            assert is_damaged(large, content), place
            content[place] ^= bit
    finally:
        tw.config.set_threads(None)
    assert not is_damaged(large, content)


def negate(dtype, part):
    return (-np.frombuffer(part, dtype)).tobytes()


@pytest.mark.parametrize(
    "damage",
    [
        partial(negate, "<f8"),  # the highest bits of all words
        partial(negate, "<f4"),
        lambda part: part[len(part) // 2 :] + part[: len(part) // 2],
        lambda part: bytes(len(part)),
        lambda part: b"\xff" * len(part),
    ],
)
@pytest.mark.parametrize("start", [512, 512 + (1 << 20), 700_000])
def test_damage_of_many_words_is_found(large, start, damage):
    content = large.read_bytes()
    for size in (8, 16, 512, 4096, 32 << 10, 64 << 10, 256 << 10):
        part = damage(content[start : start + size])
        assert is_damaged(large, content[:start] + part + content[start + size :])


@pytest.mark.parametrize("byte", range(8))
def test_the_same_bit_of_two_words_is_found(large, byte):
    content = bytearray(large.read_bytes())
    for bit in range(8):
        for first, second in [(80_000, 80_008), (80_000, 80_000 + (32 << 10))]:
            for place in (first + byte, second + byte):
                content[place] ^= 1 << bit
            assert is_damaged(large, content)
            for place in (first + byte, second + byte):
                content[place] ^= 1 << bit


@pytest.mark.parametrize("size", [513, 1000, 33_280, 600_000, 2_640_000])
def test_a_large_file_that_ends_early_is_damaged(large, size):
    assert is_damaged(large, large.read_bytes()[:size])


def test_a_file_with_a_damaged_array_is_not_loaded(large):
    content = bytearray(large.read_bytes())
    content[-9] ^= 128
    large.write_bytes(content)
    with pytest.raises(tw.errors.SavingError, match="its content does not match"):
        with opened(large):
            pass


@pytest.mark.parametrize("old, new", [(b"T 1 ", b"T 2 "), (b"T 2 ", b"T 1 ")])
def test_a_version_without_its_checksum_is_damage(large, old, new):
    content = large.read_bytes()
    changed = content.replace(old, new, 1)
    assert is_damaged(large, changed) == (changed != content)
