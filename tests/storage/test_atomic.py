"""Files that are there as a whole or not at all, whatever happens."""

import errno
import os
import stat
import subprocess
import sys
import threading
import time

import pytest

import tapewright as tw
from tapewright.storage import atomic
from tapewright.storage.atomic import clear_leftovers, replacing

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def write(path, content=b"new", **kwargs):
    with replacing(path, **kwargs) as temporary:
        with open(temporary, "wb") as file:
            file.write(content)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "m.h5"
    path.write_bytes(b"old")
    return path


def is_kept(path, content=b"old"):
    return path.read_bytes() == content and os.listdir(path.parent) == [path.name]


def test_the_new_file_takes_the_place_of_the_old_one(path):
    write(path)
    assert is_kept(path, b"new")


@pytest.mark.parametrize(
    "error", [ValueError("x"), KeyboardInterrupt(), SystemExit(1), GeneratorExit()]
)
def test_an_error_leaves_the_old_file_and_nothing_else(path, error):
    with pytest.raises(type(error)), replacing(path) as temporary:
        with open(temporary, "wb") as file:
            file.write(b"half of")
        raise error
    assert is_kept(path)


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(path, monkeypatch, function):
    def refuse(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, function, refuse)
    with pytest.raises(tw.errors.SavingError, match="is kept: No space left"):
        write(path)
    assert is_kept(path)


def test_an_error_about_another_file_is_left_alone(path):
    with pytest.raises(FileNotFoundError, match="other") as caught:
        with replacing(path):
            open(path.parent / "other")
    assert not isinstance(caught.value, tw.errors.SavingError)
    assert is_kept(path)


def test_missing_folders_are_made(tmp_path):
    write(tmp_path / "new" / "a" / "m.h5")
    assert os.listdir(tmp_path / "new" / "a") == ["m.h5"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file") as caught:
        write(tmp_path / "file" / "m.h5")
    assert isinstance(caught.value, tw.errors.SavingError)


def test_a_folder_is_not_replaced(tmp_path):
    (tmp_path / "m.h5").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write(tmp_path / "m.h5")


@posix
def test_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "m.h5")
    with pytest.raises(tw.errors.SavingError, match="is a pipe or device"):
        write(tmp_path / "m.h5")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may do all")
def test_a_folder_that_may_not_be_written_to_is_told(path):
    path.parent.chmod(0o500)
    try:
        with pytest.raises(
            PermissionError, match="cannot be written.*: Permission denied"
        ):
            write(path)
    finally:
        path.parent.chmod(0o700)
    assert is_kept(path)


def test_an_old_file_stays_without_overwrite(path):
    with pytest.raises(FileExistsError, match="overwrite.*False"):
        write(path, overwrite=False)
    assert is_kept(path)


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_without_overwrite_a_faster_writer_is_not_undone(tmp_path, monkeypatch, links):
    if not links:

        def refuse(*args):
            raise PermissionError(errno.EPERM, "no hard links here")

        monkeypatch.setattr(atomic.os, "link", refuse)
    path = tmp_path / "m.h5"
    write(path, b"old", overwrite=False)
    path.unlink()
    with pytest.raises(FileExistsError):
        with replacing(path, overwrite=False):
            path.write_bytes(b"old")
    assert is_kept(path)


@posix
def test_the_permissions_of_an_older_file_are_kept(path):
    path.chmod(0o640)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@posix
def test_a_new_file_has_the_permissions_of_new_files(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    write(tmp_path / "m.h5")
    modes = {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    assert len(modes) == 1


@posix
def test_a_link_stays_and_what_it_leads_to_is_replaced(path, tmp_path):
    (tmp_path / "models").mkdir()
    target = path.rename(tmp_path / "models" / "m.h5")
    path.symlink_to(target)
    write(path)
    assert path.is_symlink()
    assert is_kept(target, b"new")


@posix
def test_a_link_to_nowhere_makes_what_it_leads_to(tmp_path):
    (tmp_path / "link.h5").symlink_to("m.h5")
    write(tmp_path / "link.h5")
    assert (tmp_path / "m.h5").read_bytes() == b"new"
    assert (tmp_path / "link.h5").is_symlink()


def test_long_names_fit(tmp_path):
    path = tmp_path / ("ä" * 120 + ".h5")
    write(path)
    assert is_kept(path, b"new")


def test_relative_paths_hold_though_the_folder_changes(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    with replacing("m.h5") as temporary:
        monkeypatch.chdir(tmp_path / "other")
        with open(temporary, "wb") as file:
            file.write(b"new")
    assert path.read_bytes() == b"new"


def test_threads_that_write_one_path_do_not_mix(path):
    contents = [bytes([i]) * 100_000 for i in range(8)]
    threads = [threading.Thread(target=write, args=(path, each)) for each in contents]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert path.read_bytes() in contents
    assert os.listdir(path.parent) == [path.name]


WRITER = """
import os, sys
from tapewright.storage.atomic import replacing
with replacing(sys.argv[1]) as temporary:
    open(temporary, "wb").write(b"half")
    print("ready", flush=True)
    sys.stdin.readline()
"""


def start(path):
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "ready\n"
    return child


def test_only_what_a_killed_writer_left_is_cleared(path):
    with start(path) as killed, start(path) as living:
        (path.parent / ".mine.tmp").write_bytes(b"")
        assert len(os.listdir(path.parent)) == 4
        killed.kill()
        killed.wait()
        clear_leftovers(path.parent)
        assert len(os.listdir(path.parent)) == 3
        assert path.read_bytes() == b"old"
        living.communicate("go\n")
    assert path.read_bytes() == b"half"
    assert sorted(os.listdir(path.parent)) == [".mine.tmp", "m.h5"]


def leftover(path, **names):
    """A temporary file of a writer that is gone, or of the one with these names."""
    machine, writer = atomic._machine(), names.get("writer", 1 << 30)
    name = f".m.h5.{names.get('machine', machine)}.{writer}.1.1.tmp"
    (path.parent / name).write_bytes(b"half of")
    return path.parent / name


def test_the_next_write_into_a_folder_clears_what_a_killed_writer_left(path):
    folder = leftover(path)
    folder.unlink()
    folder.mkdir()
    (folder / "model.weights.h5").write_bytes(b"half of")
    (folder / "outside").symlink_to(path)
    write(path.parent / "other.h5")
    assert sorted(os.listdir(path.parent)) == ["m.h5", "other.h5"]
    assert path.read_bytes() == b"old"


def test_a_number_that_another_process_has_by_now_counts_for_a_day(path):
    for names in ({"writer": os.getppid()}, {"machine": "00000000"}):
        left = leftover(path, **names)
        write(path)
        assert left.exists()
        for seconds, is_there in ((80_000, True), (90_000, False)):
            past = time.time() - seconds
            os.utime(left, (past, past))
            write(path)
            assert left.exists() == is_there


@posix
def test_a_number_that_a_process_of_another_user_has_counts_as_well(path, monkeypatch):
    def refuse(*args):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    left = leftover(path)
    monkeypatch.setattr(atomic.os, "kill", refuse)
    write(path)
    assert left.exists()


def test_a_file_of_an_earlier_process_with_this_number_is_cleared(path):
    leftover(path, writer=os.getpid())
    write(path)
    assert is_kept(path, b"new")


def test_a_file_that_this_process_is_writing_stays(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with replacing("m.h5") as temporary:
        clear_leftovers("")
        clear_leftovers(".")
        write(path.parent / "other.h5")
        with open(temporary, "wb") as file:
            file.write(b"whole")
    assert path.read_bytes() == b"whole"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="root alone may")
def test_a_file_of_another_user_is_left_to_them(path):
    left = leftover(path)
    os.chown(left, 12345, -1)
    write(path)
    assert left.exists()


def test_what_writers_of_other_machines_left_is_not_touched(path, monkeypatch):
    with start(path) as child:
        child.kill()
    with monkeypatch.context() as other:
        other.setattr(atomic, "_machine", lambda: "00000000")
        clear_leftovers(path.parent)
    assert len(os.listdir(path.parent)) == 2
    clear_leftovers(path.parent)
    assert is_kept(path)
