"""Machine code on disk: read back when it is what was written, and else not at all."""

import hashlib
import os
import stat
import subprocess
import sys

import pytest

import tapewright as tw
from tapewright.compiler.targets.native.jit import object_cache
from tapewright.compiler.targets.native.jit.object_cache import (
    HEADER,
    MAGIC,
    ObjectCache,
)

KEY = hashlib.sha256(b"text").digest()
OTHER = hashlib.sha256(b"other text").digest()
CODE = bytes(range(256)) * 5

posix = pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX's")
not_root = pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere"
)


@pytest.fixture
def cache(tmp_path):
    return ObjectCache(str(tmp_path / "home" / "native"))


@pytest.fixture
def stored(cache):
    """The path of a file in the cache."""
    cache.store(KEY, CODE)
    (name,) = os.listdir(cache.folder)
    return os.path.join(cache.folder, name)


def test_what_was_stored_is_loaded_also_by_another_object(cache, stored):
    assert cache.load(KEY) == CODE
    assert ObjectCache(cache.folder).load(KEY) == CODE


def test_what_was_not_stored_is_not_there_and_nothing_is_wrong(cache):
    assert cache.load(KEY) is None
    assert cache.note == cache.folder
    cache.store(OTHER, CODE)
    assert cache.load(KEY) is None
    assert cache.note == cache.folder


def test_an_empty_object_is_kept(cache):
    cache.store(KEY, b"")
    assert cache.load(KEY) == b""


def test_what_is_stored_again_takes_the_place_of_the_first(cache, stored):
    cache.store(KEY, b"newer")
    assert cache.load(KEY) == b"newer"
    assert os.listdir(cache.folder) == [os.path.basename(stored)]


@posix
def test_the_folder_and_its_files_are_the_users_alone(cache, stored):
    assert stat.S_IMODE(os.stat(cache.folder).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(stored).st_mode) == 0o600


def changed(path, change):
    with open(path, "rb") as file:
        content = change(bytearray(file.read()))
    with open(path, "wb") as file:
        file.write(content)


def flipped(position):
    def change(content):
        content[position] ^= 1
        return content

    return change


PLACES = [*range(0, HEADER.size, 7), HEADER.size, HEADER.size + 700, -1]


@pytest.mark.parametrize("position", PLACES)
def test_a_flipped_bit_anywhere_is_seen_and_the_file_is_replaced(
    cache, stored, position
):
    changed(stored, flipped(position))
    assert cache.load(KEY) is None
    assert cache.note.endswith(f"({os.path.basename(stored)}: is damaged)")
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE


@pytest.mark.parametrize("size", [0, 1, HEADER.size - 1, HEADER.size, -1])
def test_a_truncated_file_is_seen(cache, stored, size):
    changed(stored, lambda content: content[:size])
    assert cache.load(KEY) is None


def test_a_file_with_more_at_its_end_is_seen(cache, stored):
    changed(stored, lambda content: content + b"\0")
    assert cache.load(KEY) is None


def test_a_file_of_another_key_is_seen(cache, stored):
    os.rename(stored, cache.path_of(OTHER))
    assert cache.load(OTHER) is None


def test_a_file_of_another_format_is_seen(cache, stored):
    changed(stored, lambda content: MAGIC[:-1] + b"\0" + content[len(MAGIC) :])
    assert cache.load(KEY) is None


@posix
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_may_write_to_is_not_used(cache, stored, mode):
    os.chmod(cache.folder, mode)
    assert cache.load(KEY) is None
    assert cache.note == f"{cache.folder} (the folder: can be written by other users)"
    cache.store(OTHER, CODE)
    assert len(os.listdir(cache.folder)) == 1


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_to_is_not_loaded(cache, stored, mode):
    os.chmod(stored, mode)
    assert cache.load(KEY) is None
    assert "can be written by other users" in cache.note
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE


@posix
@pytest.mark.parametrize("at", ["folder", "file"])
def test_what_belongs_to_another_user_is_not_loaded(cache, stored, at, monkeypatch):
    user = os.geteuid() + 1
    if at == "folder":
        monkeypatch.setattr(os, "geteuid", lambda: user)
    elif os.geteuid() == 0:
        os.chown(stored, user, -1)
    else:
        pytest.skip("only root can give a file away")
    assert cache.load(KEY) is None
    assert "belongs to another user" in cache.note


@posix
def test_links_are_not_followed(cache, stored, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    os.rename(stored, elsewhere)
    os.symlink(elsewhere, stored)
    assert cache.load(KEY) is None
    os.symlink(cache.folder, tmp_path / "link")
    linked = ObjectCache(str(tmp_path / "link"))
    linked.store(OTHER, CODE)
    assert linked.note.endswith("(the folder: is a link, or not of the expected kind)")
    assert len(os.listdir(cache.folder)) == 1


@posix
def test_a_pipe_is_not_waited_for(cache, stored):
    os.unlink(stored)
    os.mkfifo(stored, 0o600)
    finished = subprocess.run(
        [sys.executable, "-c", LOAD, cache.folder, KEY.hex()],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert finished.stdout.startswith("None ") and ".obj: is a link" in finished.stdout
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE


LOAD = """
import sys
from tapewright.compiler.targets.native.jit.object_cache import ObjectCache
cache = ObjectCache(sys.argv[1])
print(cache.load(bytes.fromhex(sys.argv[2])), cache.note, end="")
"""


def test_a_folder_that_cannot_be_is_told_and_nothing_raised(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    cache = ObjectCache(str(tmp_path / "file" / "native"))
    cache.store(KEY, CODE)
    assert cache.load(KEY) is None
    assert cache.note.startswith(f"{cache.folder} (")


@posix
@not_root
def test_a_read_only_folder_serves_what_it_has_and_tells_what_it_refuses(cache, stored):
    os.chmod(cache.folder, 0o500)
    try:
        cache.store(OTHER, CODE)
        assert "Permission denied" in cache.note
        assert cache.load(OTHER) is None
        assert cache.load(KEY) == CODE
    finally:
        os.chmod(cache.folder, 0o700)


def test_a_failed_write_leaves_nothing_behind(cache, stored, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    cache.store(OTHER, CODE)
    assert "No space left on device" in cache.note
    assert os.listdir(cache.folder) == [os.path.basename(stored)]


def test_the_least_recently_used_files_are_removed_above_the_limit(cache):
    keys = [hashlib.sha256(bytes([k])).digest() for k in range(10)]
    for age, key in enumerate(keys):
        cache.store(key, bytes(1000))
        os.utime(cache.path_of(key), (10_000 + age, 10_000 + age))
    assert cache.load(keys[0]) is not None  # which marks it as used
    size = 1000 + HEADER.size
    cache.trim(limit=10 * size)
    assert len(os.listdir(cache.folder)) == 10
    cache.trim(limit=8 * size)
    left = [k for k, key in enumerate(keys) if cache.load(key) is not None]
    assert left == [0, 5, 6, 7, 8, 9]


def test_storing_checks_the_size_of_the_folder_once_in_a_while(cache, monkeypatch):
    limits = []
    monkeypatch.setattr(cache, "trim", lambda: limits.append(None))
    for k in range(1000):
        cache.store(hashlib.sha256(str(k).encode()).digest(), b"")
    assert 1 <= len(limits) <= 3000 / object_cache.CHECKS


def test_a_temporary_file_of_a_killed_writer_is_removed_in_time(cache, stored):
    left = os.path.join(cache.folder, "tmpabc.tmp")
    with open(left, "wb") as file:
        file.write(bytes(5000))
    os.utime(left, (1, 1))
    cache.trim()
    assert os.listdir(cache.folder) == [os.path.basename(stored)]


@pytest.mark.parametrize(
    "cache, home, folder",
    [
        ("", "", "~/.cache/tapewright/native"),
        ("1", "", "~/.cache/tapewright/native"),
        ("", "/somewhere", "/somewhere/native"),
        ("on", "~/here", "~/here/native"),
        ("/objects", "/somewhere", "/objects"),
        ("~/objects", "", "~/objects"),
    ],
)
def test_the_environment_names_the_folder(monkeypatch, cache, home, folder):
    monkeypatch.setenv("TAPEWRIGHT_CACHE", cache)
    monkeypatch.setenv("TAPEWRIGHT_HOME", home)
    assert object_cache.current().folder == os.path.expanduser(folder)
    assert object_cache.current().note == folder


@pytest.mark.parametrize("value", ["0", "off", "False", "no"])
def test_the_environment_switches_the_cache_off(monkeypatch, value):
    monkeypatch.setenv("TAPEWRIGHT_CACHE", value)
    cache = object_cache.current()
    cache.store(KEY, CODE)
    assert cache.load(KEY) is None
    assert cache.note == f"off: TAPEWRIGHT_CACHE={value}"


# --- what the engine does with it

TEXT = (
    "define double @add(double %x) {\n  %y = fadd double %x, 2.5\n  ret double %y\n}\n"
)


@pytest.fixture
def engine(monkeypatch, tmp_path):
    """The engine, with a cache of its own; compilations are counted."""
    pytest.importorskip("llvmlite")
    from tapewright.compiler.targets.native.jit import engine

    monkeypatch.setenv("TAPEWRIGHT_CACHE", str(tmp_path / "native"))
    compiled, object_code = [], engine.object_code

    def counting(text, name="module", *options):
        compiled.append(name)
        return object_code(text, name, *options)

    monkeypatch.setattr(engine, "object_code", counting)
    engine.compilations = compiled
    yield engine
    del engine.compilations


def call(library):
    import ctypes

    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    return function(library.address("add"))(1.0)


def test_the_same_text_is_compiled_once(engine):
    assert [call(engine.compiled(TEXT, name)) for name in "abc"] == [3.5, 3.5, 3.5]
    assert engine.compilations == ["a"]


def test_another_text_is_another_object(engine):
    assert call(engine.compiled(TEXT)) == 3.5
    assert call(engine.compiled(TEXT.replace("2.5", "4.5"))) == 5.5


def test_another_level_is_another_object(engine):
    assert [call(engine.compiled(TEXT, level=n)) for n in (0, 2, 0)] == [3.5] * 3
    assert len(engine.compilations) == 2


@pytest.mark.parametrize("change", [flipped(-40), lambda content: content[:-40]])
def test_a_damaged_object_is_compiled_again_and_replaced(engine, change):
    engine.compiled(TEXT)
    folder = object_cache.current().folder
    (name,) = os.listdir(folder)
    changed(os.path.join(folder, name), change)
    assert [call(engine.compiled(TEXT, name)) for name in "bc"] == [3.5, 3.5]
    assert engine.compilations == ["module", "b"]


@pytest.mark.parametrize("made_of", [tw.__version__, "O2", "avx2"])
def test_an_object_that_was_made_in_another_way_is_not_used(
    engine, made_of, monkeypatch
):
    engine.compiled(TEXT)
    maker = engine.maker()
    if made_of not in maker:
        pytest.skip(f"nothing of {made_of} here")
    monkeypatch.setattr(engine, "maker", lambda: maker.replace(made_of, "another"))
    engine.compiled(TEXT, "again")
    assert engine.compilations == ["module", "again"]


def test_a_cache_that_fails_is_told_and_the_module_compiled(
    engine, monkeypatch, tmp_path
):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("TAPEWRIGHT_CACHE", str(tmp_path / "file"))
    assert [call(engine.compiled(TEXT)) for _ in range(2)] == [3.5, 3.5]
    assert len(engine.compilations) == 2
    assert engine.description().endswith("(the folder: File exists)")


EIGHT_THAT_READ_AND_WRITE = """
import hashlib, os, sys
from tapewright.compiler.targets.native.jit.object_cache import ObjectCache

def read_and_write(folder):
    cache = ObjectCache(folder)
    contents = [bytes([k]) * (10_000 + k) for k in range(8)]
    keys = [hashlib.sha256(bytes([k])).digest() for k in range(8)]
    for turn in range(60):
        for key, content in zip(keys, contents):
            if (found := cache.load(key)) is not None:
                assert found == content, "another content"
            if (turn + content[0]) % 3 == 0:
                cache.store(key, content)
        if turn % 20 == 0:
            cache.trim(limit=50_000)
    assert cache.note == folder, cache.note

for _ in range(8):
    if os.fork() == 0:
        read_and_write(sys.argv[1])
        os._exit(0)
print([os.wait()[1] for _ in range(8)])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing can be forked")
def test_eight_processes_read_and_write_the_same_files_at_once(tmp_path):
    folder = str(tmp_path / "native")
    command = [sys.executable, "-c", EIGHT_THAT_READ_AND_WRITE, folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == (f"{[0] * 8}\n", "")
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]
