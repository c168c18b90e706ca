"""`get_file`, from files of this machine: names, checksums, unpacking."""

import hashlib
import io
import os
import tarfile
import zipfile

import pytest

from tapewright.datasets.fetch import DownloadError
from tapewright.keras.utils import get_file

BODY = b"some data"


@pytest.fixture
def origin(tmp_path):
    """A function that puts bytes at a ``file:`` URL."""

    def place(name, body=BODY):
        path = tmp_path / "origin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(body)
        return path.as_uri()

    return place


@pytest.fixture
def cache(tmp_path):
    return str(tmp_path / "cache")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def tar(**members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, body in members.items():
            info = tarfile.TarInfo(name.replace("__", "/").replace("UP", ".."))
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return out.getvalue()


def zipped(name, body=BODY):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, body)
    return out.getvalue()


def test_a_file_keeps_its_name_and_is_fetched_once(origin, cache):
    url = origin("a.txt")
    path = get_file(origin=url, cache_dir=cache)
    assert path == os.path.join(cache, "datasets", "a.txt") and read(path) == BODY
    origin("a.txt", b"other")
    assert read(get_file("a.txt", url, cache_dir=cache)) == BODY
    assert (
        read(get_file("a.txt", url, cache_dir=cache, force_download=True)) == b"other"
    )


@pytest.mark.parametrize("kind", ["md5", "sha256"])
def test_a_checksum_is_held_against_the_file(origin, cache, kind):
    right = hashlib.new(kind, BODY).hexdigest()
    path = get_file(origin=origin("a"), file_hash=right, cache_dir=cache)
    with open(path, "wb") as file:
        file.write(b"damaged")
    assert read(get_file(origin=origin("a"), file_hash=right, cache_dir=cache)) == BODY


def test_a_wrong_file_is_refused_and_leaves_nothing(origin, cache):
    with pytest.raises(DownloadError, match="md5"):
        get_file(origin=origin("a"), md5_hash="0" * 32, cache_dir=cache)
    assert os.listdir(os.path.join(cache, "datasets")) == []


def test_what_is_not_there_is_named(origin, cache):
    url = origin("a") + "-missing"
    with pytest.raises(DownloadError, match="a-missing"):
        get_file(origin=url, cache_dir=cache)


@pytest.mark.parametrize("body", [tar(sub__a=BODY), zipped("sub/a")])
def test_an_archive_is_unpacked_beside_it(origin, cache, body):
    url = origin("x.any", body)
    folder = get_file(origin=url, extract=True, cache_dir=cache)
    assert folder.endswith("x.any") and read(os.path.join(folder, "sub", "a")) == BODY
    named = get_file("y.tgz", url, extract=True, cache_dir=cache)
    assert named.endswith("y_extracted")
    assert get_file("z", url, extract=True, cache_dir=cache).endswith("z")


def test_a_new_archive_takes_the_place_of_the_old_folder(origin, cache):
    url = origin("x.tar", tar(a=BODY))
    get_file("x", url, untar=True, cache_dir=cache)
    origin("x.tar", tar(b=BODY))
    folder = get_file("x", url, untar=True, cache_dir=cache, force_download=True)
    assert os.listdir(folder) == ["b"]
    assert sorted(os.listdir(os.path.dirname(folder))) == ["x", "x_archive"]


@pytest.mark.parametrize("body", [tar(UP__a=BODY), zipped("../a"), zipped("/tmp/a")])
def test_members_that_lead_out_of_the_folder_are_refused(origin, cache, body):
    with pytest.raises((ValueError, tarfile.TarError)):
        get_file("x", origin("x", body), extract=True, cache_dir=cache)
    assert os.listdir(os.path.join(cache, "datasets")) == ["x_archive"]


def test_a_tar_that_passes_pythons_filter_by_long_paths_writes_nothing_outside(
    origin, cache, tmp_path
):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "notes").write_bytes(b"before")
    url = origin("x", escaping_tar("outside/notes", cache))
    with pytest.raises(ValueError, match="link"):
        get_file("x", url, extract=True, cache_dir=cache)
    assert (tmp_path / "outside" / "notes").read_bytes() == b"before"
    assert os.listdir(os.path.join(cache, "datasets")) == ["x_archive"]


def escaping_tar(victim, cache):
    """A tar file that overwrites ``victim``, below the folder above the cache.

    A chain of links leads into folders so deep that their path has more than PATH_MAX
    bytes, where ``os.path.realpath`` gives up and takes the next link for a folder.
    """
    out, path, steps = io.BytesIO(), "", "abcdefghijklmnop"
    # The deepest folder just fits, and the link in it does not.
    folder = "d" * ((3940 - len(cache)) // len(steps) - 1)
    with tarfile.open(fileobj=out, mode="w") as archive:

        def add(name, kind, target="", body=b""):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, target, len(body)
            archive.addfile(info, io.BytesIO(body))

        for step in steps:
            add(os.path.join(path, folder), tarfile.DIRTYPE)
            add(os.path.join(path, step), tarfile.SYMTYPE, folder)
            path = os.path.join(path, folder)
        last = os.path.join("/".join(steps), "l" * 254)
        add(last, tarfile.SYMTYPE, "../" * len(steps))
        above = os.path.dirname(victim)
        add("escape", tarfile.SYMTYPE, f"{last}/../../../{above}")
        add("hook", tarfile.LNKTYPE, f"escape/{os.path.basename(victim)}")
        add("hook", tarfile.REGTYPE, body=b"written by the archive")
    return out.getvalue()


def test_what_is_no_archive_is_refused(origin, cache):
    with pytest.raises(ValueError, match="not an archive"):
        get_file("x", origin("x"), extract=True, cache_dir=cache)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(fname="a"), "origin"),
        (dict(fname="../a", origin="file:///a"), r"fname .*got '\.\./a'"),
        (dict(origin="http://host/"), "fname"),
        (
            dict(origin="file:///a", file_hash="0", hash_algorithm="crc"),
            "hash_algorithm",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_named(arguments, words, cache):
    with pytest.raises(ValueError, match=words):
        get_file(**arguments, cache_dir=cache)
