"""Reading HDF5 that nobody vouches for: nothing leads out, hangs, or takes memory."""

import fcntl
import os
import struct
import subprocess
import sys

import h5py
import numpy as np
import pytest

from tapewright.core.errors import SavingError
from tapewright.storage import reader
from tapewright.storage.file_objects import Window
from tapewright.storage.reader import Array, opened, opened_inside
from tapewright.storage.writer import writing

VALUES = np.random.default_rng(0).normal(size=(300, 200)).astype("f4")
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.h5"


def make(path, **datasets):
    with h5py.File(path, "w") as file:
        for name, value in datasets.items():
            file[name] = value


def read(path, name="a"):
    with opened(path) as root:
        return root.array(name).read()


def refused(path, reason, name="a"):
    with pytest.raises(SavingError, match=reason) as caught:
        read(path, name)
    assert caught.value.path == str(path)
    return caught.value


# What is no HDF5 file at all


def test_a_missing_file_is_told(path):
    refused(path, "there is no such file")
    with pytest.raises(FileNotFoundError):
        read(path)


def test_a_folder_is_told(path):
    path.mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read(path)


@posix
def test_a_pipe_does_not_hang(path):
    os.mkfifo(path)
    refused(path, "is a pipe or device")


@posix
def test_a_pipe_that_takes_the_place_of_a_file_does_not_hang(path, monkeypatch):
    os.mkfifo(path)
    monkeypatch.setattr(reader, "regular_file", str)
    refused(path, "is a pipe or device")


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="Linux has this file")
def test_a_file_that_cannot_be_read_is_told():
    with pytest.raises(SavingError, match="cannot be read"):
        Window("/proc/self/mem", 0, 10).read_at(0, 10)


@posix
def test_files_of_holes_are_refused(path):
    make(path, a=VALUES)
    os.truncate(path, 1 << 40)
    refused(path, "1099511627776 bytes, nearly all of them holes")


@posix
def test_a_device_is_no_file():
    refused("/dev/zero", "is a pipe or device")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read all")
def test_a_file_that_may_not_be_read_is_told(path):
    make(path, a=VALUES)
    path.chmod(0)
    with pytest.raises(PermissionError, match="may not be read"):
        read(path)


def test_a_name_with_a_nul_is_an_error():
    refused("a\0b", "cannot be read")


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "is empty"),
        (b"<!DOCTYPE html><html>", "it is HTML"),
        (b"  \n<?xml version='1.0'?>", "it is HTML"),
        (bytes(range(256)) * 40, "it begins with"),
        (b"\x89HDF\r\n\x1a\n", "is a damaged or incomplete HDF5 file"),
        (b"\x89HDF\r\n\x1a\n" + b"\xff" * 5000, "is a damaged or incomplete HDF5 file"),
        (b"PK\x03\x04" + b"\0" * 100, "it begins with"),
    ],
    ids=["empty", "HTML", "XML", "random", "signature", "superblock", "zip"],
)
def test_what_is_no_hdf5_file_is_told(path, content, reason):
    path.write_bytes(content)
    refused(path, reason)


@pytest.mark.parametrize("part", [0.02, 0.5, 0.999])
def test_a_foreign_file_that_ends_early_is_damaged(path, part):
    make(path, a=VALUES)
    os.truncate(path, int(os.path.getsize(path) * part))
    refused(path, "incomplete HDF5 file|ends before")


def test_a_foreign_file_with_flipped_bits_is_read_or_refused(path):
    make(path, a=VALUES[:4, :4])
    content, random = path.read_bytes(), np.random.default_rng(1)
    for place in random.integers(len(content), size=250):
        flipped = bytearray(content)
        flipped[place] ^= 1 << random.integers(8)
        path.write_bytes(flipped)
        try:
            with opened(path) as root:
                for item in root.walk():
                    if isinstance(item, Array):
                        item.read()
        except SavingError:
            pass


@posix
def test_a_file_that_is_being_written_is_told(path):
    script = (
        "import h5py, sys\n"
        "with h5py.File(sys.argv[1], 'w', locking=True) as file:\n"
        "    print('ready', flush=True)\n"
        "    sys.stdin.readline()\n"
        "    file['a'] = 1.0\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        child.stdout.readline()
        with pytest.raises(SavingError, match="by another process") as caught:
            read(path)
        assert isinstance(caught.value, BlockingIOError)
        child.communicate("go\n")
    assert read(path) == 1.0


def test_locks_of_readers_are_none_for_others(path):
    make(path, a=VALUES)
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        np.testing.assert_array_equal(read(path), VALUES)


def test_a_file_that_is_replaced_while_its_seal_is_checked_is_checked_again(
    path, monkeypatch
):
    with writing(path) as root:
        root.array("a", VALUES)
    check, checked = reader.check_seal, []

    def replace_first(window, *args):
        sealed = check(window, *args)
        if not checked:
            with writing(path) as root:
                root.array("a", -VALUES)
        checked.append(sealed)
        return sealed

    monkeypatch.setattr(reader, "check_seal", replace_first)
    np.testing.assert_array_equal(read(path), -VALUES)
    assert checked == [True, True]


# Where names lead


def test_a_link_that_leads_nowhere_is_refused(path):
    with h5py.File(path, "w") as file:
        file["lost"] = h5py.SoftLink("/nowhere")
    refused(path, "links are refused", "lost")


def test_links_are_refused(path, tmp_path):
    make(tmp_path / "other.h5", a=VALUES)
    with h5py.File(path, "w") as file:
        file["there"] = VALUES
        file["a"] = h5py.SoftLink("/there")
        file["b"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/a")
        file["c"] = h5py.SoftLink("/c")
        file["d"] = h5py.SoftLink("/nowhere")
    for name in "abcd":
        refused(path, "links are refused", name)
    with opened(path) as root, pytest.raises(SavingError, match="links are refused"):
        list(root.walk())


@pytest.mark.parametrize("name", ["../a", "g/../a", "/a", "a/", "", ".", "g//a", ".."])
def test_names_stay_in_the_group(path, name):
    make(path, a=VALUES)
    refused(path, "leads out of the group", name)


def test_what_is_not_there_is_told(path):
    make(path, **{"g/a": VALUES})
    refused(path, "has no array 'g/b'", "g/b")
    refused(path, "has no array 'g'", "g")
    with opened(path) as root:
        assert "g/a" in root and "g/b" not in root and "g/a/b" not in root
        assert root.find_group("g/b") is None
        with pytest.raises(SavingError, match="has no group 'g/b'"):
            root.group("g/b")


def test_an_array_in_the_place_of_a_group_is_told(path):
    make(path, **{"g/a": VALUES})
    with opened(path) as root:
        for call in (root.group, root.find_group):
            with pytest.raises(SavingError, match=r"\[/g/a\]: must be a group"):
                call("g/a")


def test_arrays_below_are_found_of_groups_and_arrays_alike(path):
    make(path, **{"g/a": VALUES, "g/b/c": VALUES, "d": VALUES})
    with opened(path) as root:
        names = [[each.name for each in root.find(at).arrays()] for at in ("g", "d")]
        assert names == [["/g/a", "/g/b/c"], ["/d"]]
        assert len(list(root.arrays())) == 3


def test_data_in_other_files_is_refused(path, tmp_path):
    (tmp_path / "secret").write_bytes(b"x" * 800)
    make(tmp_path / "other.h5", a=VALUES)
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "a", (100,), "f8", external=[(str(tmp_path / "secret"), 0, 800)]
        )
        layout = h5py.VirtualLayout((300, 200), "f4")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "a", (300, 200))
        file.create_virtual_dataset("b", layout)
    for name in "ab":
        refused(path, "keeps its data in other files", name)


def test_a_type_in_the_place_of_a_group_is_told(path):
    with h5py.File(path, "w") as file:
        file["a"] = np.dtype("f4")
    refused(path, "neither a group nor an array")


def test_cycles_end(path):
    with h5py.File(path, "w") as file:
        inner = file.create_group("a/b")
        inner["root"], inner["self"], inner["up"] = file, inner, file["a"]
        inner["x"] = 1.0
        inner["y"] = inner["x"]
    with opened(path) as root:
        assert [item.name for item in root.walk()] == ["/", "/a", "/a/b", "/a/b/x"]


def test_groups_that_are_too_deep_are_refused(path):
    with h5py.File(path, "w") as file:
        group = file
        for _ in range(150):
            group = group.create_group("g")
    with opened(path) as root, pytest.raises(SavingError, match="deeper than 100"):
        list(root.walk())


def test_numbered_arrays_have_no_gap(path):
    make(path, **{"0": 1.0, "2": 2.0})
    with opened(path) as root, pytest.raises(SavingError, match="without a gap"):
        root.numbered()


# What arrays hold


@pytest.mark.parametrize(
    "dtype", "f2 f4 f8 >f2 >f4 >f8 i1 >i2 u4 >u8 c8 >c16 ?".split()
)
def test_numbers_of_every_kind_are_read(path, dtype):
    values = (VALUES * 50).astype(dtype)
    make(path, a=values, b=values[0, 0])
    for name in "ab":
        found = read(path, name)
        np.testing.assert_array_equal(found, values if name == "a" else values[0, 0])
        assert found.dtype == values.dtype.newbyteorder("=")


@pytest.mark.parametrize("shape", [(), (3,), (300, 200), (0, 4)])
def test_bfloat16_is_read_as_float32(path, shape):
    values = np.ones(shape, "f4") * np.float32(-1.5)
    halves = (values.view("u4") >> 16).astype("u2").view("V2")
    make(path, a=halves)
    found = read(path)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "gzip"},
        {"compression": "lzf", "shuffle": True},
        {"chunks": (7, 13)},
        {"chunks": (7, 13), "fletcher32": True, "maxshape": (None, None)},
    ],
)
def test_arrays_in_chunks_are_read(path, options):
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=VALUES, **options)
    np.testing.assert_array_equal(read(path), VALUES)


def test_arrays_within_the_header_are_read(path):
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.COMPACT)
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=VALUES[0], dcpl=creation)
    np.testing.assert_array_equal(read(path), VALUES[0])


def test_floats_of_an_unusual_layout_are_not_taken_for_others(path):
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_ebias(100)
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple(VALUES.shape)
        dataset = h5py.h5d.create(file.id, b"a", kind, space)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, VALUES)
    np.testing.assert_array_equal(read(path), VALUES)


@pytest.mark.parametrize(
    "value",
    [
        b"text",
        "text",
        np.array([b"a", b"b"]),
        np.array(["a", "b"], h5py.string_dtype()),
        np.zeros(3, [("a", "f4"), ("b", "i4")]),
        np.zeros(3, h5py.opaque_dtype(np.dtype("M8[s]"))),
        np.void(b"bytes"),
        h5py.Empty("f4"),
    ],
    ids=["bytes", "text", "fixed", "strings", "compound", "dates", "opaque", "nothing"],
)
def test_what_is_no_array_of_numbers_is_refused(path, value):
    make(path, a=value)
    refused(path, "must hold numbers|holds no array|NumPy does not know")


def test_references_and_lists_are_refused(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("a", (2,), h5py.ref_dtype)
        file.create_dataset("b", (2,), h5py.vlen_dtype("f4"))
        file.create_dataset("c", (2,), np.dtype(("f4", (3,))))
    for name in "ab":
        refused(path, "must hold numbers", name)


def test_the_caller_may_say_what_it_expects(path):
    make(path, a=VALUES, b=[1, 2])
    with opened(path) as root:
        assert root.array("a").read((300, 200), "f").shape == (300, 200)
        with pytest.raises(
            SavingError, match=r"has shape \(300, 200\), expected \(3,\)"
        ):
            root.array("a").read((3,))
        with pytest.raises(SavingError, match="holds int64, expected"):
            root.array("b").read(kinds="f")
        with pytest.raises(SavingError, match="asked for contiguous float64"):
            root.array("a").read_into(np.zeros((300, 200)))
        target = np.zeros((300, 200), "f4")
        root.array("a").read_into(target)
    np.testing.assert_array_equal(target, VALUES)


# Shapes that are bombs


@pytest.mark.parametrize(
    "shape, options",
    [
        ((1 << 20, 1 << 20), {"chunks": (1024, 1024)}),  # 4 TB
        ((30_000, 30_000), {"chunks": (1000, 1000)}),  # 3.6 GiB
        ((30_000, 30_000), {}),
        ((1 << 20, 1 << 20), {"chunks": (1024, 1024), "compression": "gzip"}),
        ((1 << 40, 1 << 20), {}),
        ((1 << 62,), {"chunks": (1024,)}),
    ],
)
def test_arrays_that_are_declared_but_not_stored_are_refused(path, shape, options):
    with h5py.File(path, "w") as file:
        file.create_dataset("a", shape, "f4", **options)
    refused(path, "declares .* bytes, stores 0")


def test_arrays_beyond_the_end_of_the_file_are_refused(path):
    make(path, a=VALUES)
    content = bytearray(path.read_bytes())
    old, new = struct.pack("<QQ", 300, 200), struct.pack("<QQ", 1 << 20, 1 << 20)
    assert content.count(old) == 2  # the shape, and its largest
    size, huge = struct.pack("<Q", VALUES.nbytes), struct.pack("<Q", 4 << 40)
    path.write_bytes(content.replace(old, new).replace(size, huge))
    refused(path, "declares|cannot be read|NumPy|cannot be looked")


def test_chunks_larger_than_their_array_are_refused(path):
    with h5py.File(path, "w") as file:
        chunk = (1 << 25,)
        file.create_dataset(
            "a", (10,), "f8", chunks=chunk, maxshape=(None,), compression="gzip"
        )
        file["a"].id.write_direct_chunk((0,), b"x")
    refused(path, "in chunks of 268435456")


def test_unknown_compression_is_refused_without_a_library(path):
    with h5py.File(path, "w") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((10, 10))
        creation.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (1,))
        file.create_dataset(
            "a", (100, 100), "f4", dcpl=creation, data=VALUES[:100, :100]
        )
    refused(path, "unknown method .filter 32015")


# Attributes


def attribute(path, value, **kwargs):
    with h5py.File(path, "w") as file:
        file.attrs.create("key", value, **kwargs)


@pytest.mark.parametrize(
    "value", ["ü", "ü".encode(), np.array(["ü"], h5py.string_dtype())]
)
def test_texts_are_read_however_they_are_stored(path, value):
    attribute(path, value)
    with opened(path) as root:
        assert root.text("key") == "ü"
        assert root.texts("key") == ["ü"]


LIST = np.empty(1, object)
LIST[0] = np.arange(3, dtype="i4")


@pytest.mark.parametrize(
    "value, kwargs",
    [
        (1.0, {}),
        (np.arange(3), {}),
        (b"\xff\xfe", {}),
        (h5py.Empty("f4"), {}),
        (h5py.Empty(h5py.string_dtype()), {}),
        (np.zeros(1, [("a", "f4")]), {}),
        (np.void(b"abc"), {}),
        (["a", "b"], {}),
        (LIST, {"dtype": h5py.vlen_dtype("i4")}),
        (np.array([True]), {}),
        (np.zeros((2, 3)), {"dtype": np.dtype(("f8", (3,))), "shape": (2, 3)}),
    ],
)
def test_attributes_of_other_types_are_no_text(path, value, kwargs):
    attribute(path, value, **kwargs)
    with opened(path) as root, pytest.raises(SavingError, match="attribute") as caught:
        root.text("key")
    assert caught.value.dataset == "/@key"


def test_references_in_attributes_are_refused(path):
    with h5py.File(path, "w") as file:
        file.attrs["key"] = file.ref
        file.attrs.create("keys", [file.ref] * 2, dtype=h5py.ref_dtype)
    with opened(path) as root:
        for call in (root.text, root.texts, root.integer, root.json):
            for key in ("key", "keys"):
                with pytest.raises(SavingError, match="attribute"):
                    call(key)


def test_large_attributes_are_refused(path):
    with h5py.File(path, "w", libver="latest") as file:
        file.attrs["key"] = np.zeros(9 << 20)
        file.attrs.create("many", [""] * 70_000, dtype=h5py.string_dtype())
    with opened(path) as root:
        with pytest.raises(SavingError, match="has 75497472 bytes"):
            root.integer("key")
        with pytest.raises(SavingError, match="has 70000 texts"):
            root.texts("many")


@pytest.mark.parametrize("value", [1.5, "1", [1, 2], np.zeros(0, int), True])
def test_whole_numbers_are_whole_and_one(path, value):
    attribute(path, value)
    with opened(path) as root, pytest.raises(SavingError, match="a whole number"):
        root.integer("key")


def test_json_tells_its_place(path):
    with h5py.File(path, "w") as file:
        file.create_group("g").attrs["config"] = '{"a": NaN}'
    with opened(path) as root, pytest.raises(SavingError) as caught:
        root.group("g").json("config")
    assert str(caught.value) == f"{path} [/g@config]: the JSON has the value NaN"


def test_an_attribute_that_is_missing_is_told(path):
    make(path, a=VALUES)
    with opened(path) as root:
        assert not root.has("key")
        for call in (root.text, root.texts, root.integer, root.json, root.json_object):
            with pytest.raises(SavingError, match="has no attribute 'key'"):
                call("key")


# HDF5 inside of another file


def test_hdf5_inside_of_another_file_is_read(path, tmp_path):
    with writing(path) as root:
        root.array("a", VALUES)
        root.array("b", VALUES > 0)
    outer, content = tmp_path / "outer", path.read_bytes()
    outer.write_bytes(b"x" * 77 + content + b"y" * 1000)
    with Window(outer, 77, len(content)) as window:
        with opened_inside(window, "net.keras", "m.h5") as root:
            assert root.sealed
            np.testing.assert_array_equal(root.array("a").read(), VALUES)
            np.testing.assert_array_equal(root.array("b").read(), VALUES > 0)
            with pytest.raises(SavingError) as caught:
                root.array("c")
    assert str(caught.value) == "net.keras [m.h5:/]: has no array 'c'"
    with Window(outer, 78, len(content)) as window:
        with pytest.raises(SavingError, match=r"^net.keras \[m.h5\]: is"):
            with opened_inside(window, "net.keras", "m.h5"):
                pass
    with Window(outer, 77, len(content) - 1) as window:
        with pytest.raises(SavingError, match=r"^net.keras \[m.h5\]: is damaged"):
            with opened_inside(window, "net.keras", "m.h5"):
                pass


def test_what_was_looked_up_is_at_hand_up_to_a_number(path, monkeypatch):
    make(path, **{"g/a": VALUES, "g/b": VALUES})
    with opened(path) as root:
        assert root.array("g/a") is root.group("g").array("a")
        assert next(root.arrays()) is root.array("g/a")
    monkeypatch.setattr(reader, "MAX_KEPT", 1)
    with opened(path) as root:
        assert root.group("g") is root.group("g")
        assert root.array("g/a") is not root.array("g/a")


def test_names_of_many_layers_stand_beside_their_long_configs(tmp_path):
    """771 names beside a config of 689 kB are what Keras writes of NASNetMobile."""
    names = [f"layer_{i}" for i in range(771)]
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.attrs["model_config"] = "x" * 688_881
        file.attrs.create("layer_names", names, dtype=h5py.string_dtype())
    with opened(tmp_path / "f.h5") as root:
        assert root.texts("layer_names") == names
