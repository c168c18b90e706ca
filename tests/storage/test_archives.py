"""Tar and zip archives unpacked: what they hold, and what is refused."""

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from contextlib import suppress

import pytest

from tapewright.storage import archives
from tapewright.storage.archives import is_unpacked

BODY = b"some data"


def member(name, kind=tarfile.REGTYPE, target="", body=b"", mode=0o644, **pax):
    """The bytes of a member of a tar file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.mode = kind, target, len(body), mode
    info.pax_headers = pax
    return info.tobuf(tarfile.PAX_FORMAT) + body.ljust(
        -(-len(body) // 512) * 512, b"\0"
    )


def link(name, target, kind=tarfile.SYMTYPE):
    return member(name, kind, target)


def hard_link(name, target):
    return link(name, target, tarfile.LNKTYPE)


def unpacked(tmp_path, *members, kind="tar", pack=bytes):
    """Unpack a tar of these members, or the bytes of a zip; return the folder."""
    path, folder = tmp_path / "archive", tmp_path / "above" / "folder"
    content = members[0] if kind == "zip" else b"".join(members) + bytes(1024)
    path.write_bytes(pack(content))
    folder.mkdir(parents=True)
    assert is_unpacked(path, folder, kind)
    return folder


def zipped(*members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, body in members:
            archive.writestr(name, body)
    return out.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_files_and_folders_are_unpacked(tmp_path, pack):
    parts = [
        member("./", tarfile.DIRTYPE),
        member("empty/", tarfile.DIRTYPE),
        member("a/b/c.txt", body=BODY),
        member("./run", body=b"#!", mode=0o6755),
        member("n" * 150, body=b"long"),
        member("twice", body=b"first"),
        member("twice", body=b"second"),
    ]
    folder = unpacked(tmp_path, *parts, pack=pack)
    assert sorted(os.listdir(folder)) == ["a", "empty", "n" * 150, "run", "twice"]
    assert (folder / "a" / "b" / "c.txt").read_bytes() == BODY
    assert (folder / "twice").read_bytes() == b"second"
    assert (folder / "run").stat().st_mode & 0o7777 == 0o755


def test_links_inside_of_the_folder_are_made(tmp_path):
    parts = [
        link("early", "v1/data"),
        member("v1/data", body=BODY),
        link("latest", "v1"),
        link("v1/up", "../v1/data"),
        hard_link("same", "v1/data"),
    ]
    folder = unpacked(tmp_path, *parts)
    for name in ("early", "latest/data", "v1/up", "same"):
        assert (folder / name).read_bytes() == BODY, name
    assert os.path.samefile(folder / "same", folder / "v1" / "data")


REFUSED = {
    "a name above": ([member("../a", body=BODY)], "outside its folder"),
    "a name through a folder": ([member("b/../../a")], "outside its folder"),
    "an absolute name": ([member("/tmp/a")], "outside its folder"),
    "an absolute link": ([link("a", "/etc/passwd")], "'/etc/passwd', which is outside"),
    "a link above": ([link("a", "..")], "which is outside"),
    "a link to a neighbour": ([link("a", "../folder2")], "cannot be followed"),
    "a link to the folder": ([link("b/a", ".."), link("c", "b/a/..")], "is outside"),
    "a link nowhere": ([link("a", "missing")], "cannot be followed"),
    "a loop": ([link("a", "b"), link("b", "a")], "cannot be followed"),
    "a file below a link": ([link("a", ".."), member("a/x", body=BODY)], "a link, cannot"),
    "a folder below a link": ([link("a", ".."), member("a/x", tarfile.DIRTYPE)], "cannot"),
    "a link below a link": ([link("a", ".."), link("a/x", "y")], "is below a link"),
    "a hard link above": ([hard_link("a", "../victim")], "outside its folder"),
    "an absolute hard link": ([hard_link("a", "/etc/passwd")], "outside its folder"),
    "a hard link through a link": (
        [link("a", ".."), hard_link("b", "a/victim"), member("b", body=BODY)],
        "not a file of the archive",
    ),
    "a hard link in place of a file": (
        [member("a"), member("b"), hard_link("b", "a")],
        "cannot be made: File exists",
    ),
    "a device": ([member("a", tarfile.CHRTYPE)], "'a' is a device"),
    "a block device": ([member("a", tarfile.BLKTYPE)], "'a' is a device"),
    "a pipe": ([member("a", tarfile.FIFOTYPE)], "'a' is a device"),
    "a file and a folder": ([member("a"), member("a/b", body=BODY)], "needs a folder"),
    "a folder and a file": ([member("a/b"), member("a", body=BODY)], "needs a folder"),
    "many headers": ([member("a", comment="x")[:1024] * 3000], "damaged"),
    "a header without end": ([member("x" * 20_000)], "declares 2"),
    "a damaged header": ([member("a"), b"x" * 512, member("b")], "damaged"),
    "a cut archive": ([member("a", body=bytes(4096))[:2048]], "damaged"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_tar_that_would_lead_out_of_the_folder_is_refused(tmp_path, case):
    members, words = REFUSED[case]
    (tmp_path / "above").mkdir()
    (tmp_path / "above" / "victim").write_bytes(b"before")
    with pytest.raises(ValueError, match=words):
        path, folder = tmp_path / "archive", tmp_path / "above" / "folder"
        path.write_bytes(b"".join(members) + (b"" if "cut" in case else bytes(1024)))
        folder.mkdir()
        is_unpacked(path, folder, "tar")
    assert sorted(os.listdir(tmp_path / "above")) == ["folder", "victim"]
    assert (tmp_path / "above" / "victim").read_bytes() == b"before"


def test_a_size_below_zero_makes_no_endless_loop(tmp_path):
    with suppress(ValueError):  # some Pythons take it for the end of the archive
        unpacked(tmp_path, member("a"), member("b", size="-1024"))


def test_a_zip_is_unpacked(tmp_path):
    content = zipped(("b/c", BODY), ("d/", b""), ("a", b""))
    folder = unpacked(tmp_path, content, kind="zip")
    assert sorted(os.listdir(folder)) == ["a", "b", "d"]
    assert (folder / "b" / "c").read_bytes() == BODY


def test_a_link_in_a_zip_is_a_file_of_its_target(tmp_path):
    info = zipfile.ZipInfo("a")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    folder = unpacked(tmp_path, zipped((info, "../../etc")), kind="zip")
    assert not (folder / "a").is_symlink()
    assert (folder / "a").read_text() == "../../etc"


@pytest.mark.parametrize(
    "members, words",
    [
        ([("../a", BODY)], "outside its folder"),
        ([("b/../../a", BODY)], "outside its folder"),
        ([("/tmp/a", BODY)], "outside its folder"),
        ([("a", BODY), ("a/b", BODY)], "needs a folder"),
    ],
)
def test_a_zip_that_would_lead_out_of_the_folder_is_refused(tmp_path, members, words):
    with pytest.raises(ValueError, match=words):
        unpacked(tmp_path, zipped(*members), kind="zip")
    assert os.listdir(tmp_path / "above") == ["folder"]


def test_a_damaged_zip_is_refused(tmp_path):
    content = zipped(("a", BODY))
    with pytest.raises(ValueError, match="damaged zip archive"):
        unpacked(tmp_path, content.replace(BODY, BODY[::-1]), kind="zip")


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_larger_than_the_disk_is_refused_before_it_is_written(
    tmp_path, monkeypatch, kind
):
    class Disk:
        free = 5

    monkeypatch.setattr(archives.shutil, "disk_usage", lambda folder: Disk)
    content = member("a", body=BODY) if kind == "tar" else zipped(("a", BODY))
    with pytest.raises(OSError, match="unpacks to 9 bytes, but 5 are free"):
        unpacked(tmp_path, content, kind=kind)
    assert os.listdir(tmp_path / "above" / "folder") == []


def test_a_file_of_another_kind_is_no_archive(tmp_path):
    path = tmp_path / "text"
    for content in (b"", b"x" * 2000, gzip.compress(b"x" * 2000)):
        path.write_bytes(content)
        assert not is_unpacked(path, tmp_path, "tar")
        assert not is_unpacked(path, tmp_path, "zip")
