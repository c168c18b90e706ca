"""Arrays of untrusted files: layouts, types, sizes."""

import os
import struct

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright.storage.reader import opened

from .hdf5_files import VALUES, make, read, refused


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.h5"


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
        refused(path, "stores its data in other files", name)


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
def test_two_bytes_are_read_as_bfloat16(path, shape):
    values = np.ones(shape, "f4") * np.float32(-1.5)
    halves = (values.view("u4") >> 16).astype("u2").view("V2")
    make(path, a=halves)
    found = read(path)
    assert found.dtype == tw.bfloat16.dtype
    np.testing.assert_array_equal(found.astype("f4"), values)


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
    refused(path, "must hold numbers|holds no array|NumPy does not support")


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
        with pytest.raises(tw.errors.SavingError, match=r"shape \(300, 200\).*\(3,\)"):
            root.array("a").read((3,))
        with pytest.raises(tw.errors.SavingError, match="holds int64, expected"):
            root.array("b").read(kinds="f")


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
    refused(
        path, "declares|cannot be read|NumPy|cannot be looked up|cannot be inspected"
    )


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


# Rows of arrays


@pytest.mark.parametrize(
    "options",
    [{}, {"chunks": (16, 200)}, {"chunks": (7, 50), "compression": "gzip"}],
    ids=str,
)
@pytest.mark.parametrize("dtype", "f2 >f4 f8 u1 c8 ?".split())
def test_rows_are_read_alone(path, options, dtype):
    values = (VALUES * 50).astype(dtype)
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=values, **options)
    with opened(path) as root:
        array = root.array("a")
        assert array.chunk_rows == options.get("chunks", [None])[0]
        for start, stop in [(0, 300), (5, 6), (290, 300), (4, 4)]:
            rows = np.empty((stop - start, 200), array.dtype)
            array.read_rows(rows, start)
            np.testing.assert_array_equal(rows, values[start:stop])


def test_rows_of_bfloat16_and_rows_never_written_are_read(path):
    halves = (np.arange(8, dtype="f4").view("u4") >> 16).astype("u2").view("V2")
    with h5py.File(path, "w") as file:
        file["a"] = halves
        file.create_dataset("b", (5, 2), "f4", fillvalue=3)
    with opened(path) as root:
        for name, expected in [("a", [2.0, 3.0]), ("b", [[3.0, 3.0]] * 2)]:
            rows = np.empty(np.shape(expected), root.array(name).dtype)
            root.array(name).read_rows(rows, 2)
            np.testing.assert_array_equal(rows, expected)


def test_rows_that_are_not_there_are_refused(path):
    make(path, a=VALUES)
    rows = np.empty((5, 200), "f4")
    with opened(path) as root:
        array = root.array("a")
        with pytest.raises(tw.errors.SavingError, match="has 300 rows, not 301"):
            array.read_rows(rows, 296)
        array.read_rows(rows, 295)
        os.truncate(path, os.path.getsize(path) - 1000)
        with pytest.raises(tw.errors.SavingError, match="ends before the array does"):
            array.read_rows(rows, 295)


def test_a_filter_that_is_not_there_is_named(path):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((10,))
    plist.set_filter(32001, h5py.h5z.FLAG_OPTIONAL, (0,))
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple((20,))
        h5py.h5d.create(file.id, b"a", h5py.h5t.NATIVE_FLOAT, space, plist)
        file.create_dataset("b", data=np.arange(20.0), compression="gzip")
    with opened(path) as root:
        root.array("b").check_filters()
        with pytest.raises(tw.errors.SavingError, match="filter 32001.*hdf5plugin"):
            root.array("a").check_filters()
