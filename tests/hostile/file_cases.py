"""Files that are none, are damaged, or only look odd; and zip files."""

import json
import os
import struct
import zipfile
import zlib

import files
import h5py
import numpy as np
from cases import ANY, HOLDERS, OK, case

# Files that are none.


@case("empty", every="empty", show="empty")
def _(path, kind):
    open(path, "wb").close()


@case("random", every="not an HDF5|no model|neither", show="not an HDF5|neither")
def _(path, kind):
    with open(path, "wb") as file:
        file.write(np.random.default_rng(1).bytes(5000))


@case("html", every="HTML|neither|not an HDF5")
def _(path, kind):
    with open(path, "w") as file:
        file.write("<!DOCTYPE html><html><body>404 Not Found</body></html>")


@case("missing", every="no such file", show="no such file")
def _(path, kind):
    pass


@case("directory", every="is a folder", show="is a folder")
def _(path, kind):
    os.mkdir(path)


@case("fifo", every="pipe or device", show="pipe or device")
def _(path, kind):
    os.mkfifo(path)


@case("device", every="pipe or device", show="pipe or device")
def _(path, kind):
    os.symlink("/dev/zero", path)


@case(
    "unreadable", every="permission denied|may not be read", show="permission|may not"
)
def _(path, kind):
    files.write(path, kind)
    os.chmod(path, 0)


@case("truncated by half", every="damaged|zip", show="damaged|zip")
def _(path, kind):
    files.write(path, kind)
    os.truncate(path, os.path.getsize(path) // 2)


@case("truncated by one byte", every="damaged|zip|truncated", show="damaged|zip")
def _(path, kind):
    files.write(path, kind)
    os.truncate(path, os.path.getsize(path) - 1)


def sealed(path, kind):
    from tapewright.storage.checksum import seal

    files.write(path, kind, userblock_size=512)
    seal(path)


@case("sealed, whole", ("h5",), every=OK, show=OK)
@case("sealed, whole, weights", ("weights",), OK, load_model="no model|model_config")
def _(path, kind):
    sealed(path, kind)


@case("sealed, a bit of a kernel flipped", ("h5", "weights"), "damaged", show="damaged")
def _(path, kind):
    sealed(path, kind)
    kernel = files.arrays()["first"][0].tobytes()
    files.flip(path, files.place_of(path, kernel) + 5)


@case("sealed, a bit of an attribute flipped", ("h5",), "damaged", show="damaged")
def _(path, kind):
    sealed(path, kind)
    files.flip(path, files.place_of(path, b'"class_name"') + 3)


@case("sealed, a bit of the seal flipped", ("h5", "weights"), "damaged", show="damaged")
def _(path, kind):
    sealed(path, kind)
    files.flip(path, 40)


@case("a bit of a kernel in a zip flipped", ("keras",), "damaged", show="damaged")
def _(path, kind):
    files.write(path, kind)
    kernel = files.arrays()["first"][0].tobytes()
    files.flip(path, files.place_of(path, kernel) + 5)


@case("a bit of the config in a zip flipped", ("keras",), "damaged", show="damaged",
      load_weights=OK)  # fmt: skip
def _(path, kind):
    files.write(path, kind)
    files.flip(path, files.place_of(path, b'"units"') + 2)


@case(
    "texts that never end",
    ("h5", "weights"),
    "strings cannot be read",
    show="strings cannot be read",
)
def _(path, kind):
    files.write(path, kind)
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        at = data.index(b"GCOL\1\0\0\0") + 16
        while struct.unpack_from("<H", data, at)[0]:  # the object 0 is what is free
            at += 16 + (struct.unpack_from("<Q", data, at + 8)[0] + 7 & ~7)
        struct.pack_into("<Q", data, at + 8, 0)
        file.seek(0)
        file.write(data)


@case("valid", ("h5", "keras"), every=OK, show=OK)
@case("valid weights", ("weights",), OK, load_model="no model|model_config", show=OK)
def _(path, kind):
    files.write(path, kind)


# Zips.


@case("a zip with path traversal", ("keras",), "relative path", show="relative path")
def _(path, kind):
    files.write(path, kind)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../outside.txt", "x")


@case("a zip with an absolute path", ("keras",), "relative path", show="relative path")
def _(path, kind):
    files.write(path, kind)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("/tmp/outside.txt", "x")


@case("a zip with two configs", ("keras",), "twice", show="twice")
def _(path, kind):
    import warnings

    files.write(path, kind)
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("config.json", "{}")


@case("a zip with 1 GiB in 1 MB", ("keras",), "declares|bytes")
def _(path, kind):
    config = json.dumps(files.sequential(kind))
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = deflate.compress(b"\0" * (1 << 20)) + deflate.flush(zlib.Z_FULL_FLUSH)
    zeros = piece * 1024 + zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    files.write_zip(path, [("config.json", config), ("model.weights.h5", zeros)])
    patch(path, (10, 24, "<I", 1 << 30), (8, 22, "<I", 1 << 30))


def patch(path, directory, header):
    """Says of the last member that it is deflated, and how large it is."""
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        for mark, (method, size, form, value) in (
            (b"PK\1\2", directory),
            (b"PK\3\4", header),
        ):
            start = data.rindex(mark)
            struct.pack_into("<H", data, start + method, zipfile.ZIP_DEFLATED)
            struct.pack_into(form, data, start + size, value)
        file.seek(0)
        file.write(data)


@case("a zip with a small lie about 64 MB", ("keras",), "declares|other|checksum|CRC")
def _(path, kind):
    members = [("metadata.json", "{}"), ("config.json", json.dumps({"a": 1}))]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
        archive.writestr("model.weights.h5", b"\0" * (64 << 20))
    patch(path, (10, 24, "<I", 1000), (8, 22, "<I", 1000))


@case("a deflated zip", ("keras",), OK, show=OK, facts={"kernel": "same"})
def _(path, kind):
    files.write(path, kind)
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)


@case("a zip without weights", ("keras",), "model.weights.h5", show=ANY)
def _(path, kind):
    files.write_zip(path, [("config.json", json.dumps(files.sequential(kind)))])


@case("an encrypted zip", ("keras",), "encrypted", show="encrypted")
def _(path, kind):
    files.write(path, kind)
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        for mark, at in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
            start = data.index(mark)
            data[start + at] |= 1
        file.seek(0)
        file.write(data)


# What is all right, though it may not look so.


@case("a zip called .h5", ("keras",), OK, ".h5", {"kernel": "same"}, show=OK)
@case("HDF5 called .keras", ("h5",), OK, ".keras", {"kernel": "same"}, show=OK)
@case("HDF5 called .txt", ("h5",), OK, ".txt", {"kernel": "same"}, show=OK)
def _(path, kind):
    files.write(path, kind)


@case("no optimizer slots", ("h5", "keras"), OK, show=OK,
      facts={"warning": "optimizer", "kernel": "same"})  # fmt: skip
def _(path, kind):
    files.write(path, kind, training=files.TRAINING)


@case("some optimizer slots missing", ("h5",), OK, show=OK,
      facts={"warning": "optimizer"})  # fmt: skip
def _(path, kind):
    files.write(path, kind, training=files.TRAINING)
    with h5py.File(path, "a") as file:
        group = file.create_group("optimizer_weights")
        names = ["adam/iteration", "adam/learning_rate", "adam/m"]
        group.attrs.create("weight_names", names, dtype=files.TEXT)
        group["adam/iteration"], group["adam/learning_rate"] = np.int32(3), 0.01
        group["adam/m"] = np.zeros((4, 4), "f4")


@case("a file that another process writes", ("h5", "weights"), "another process|locked",
      show="another process|locked")  # fmt: skip
def _(path, kind):
    import subprocess
    import sys

    files.write(path, kind)
    program = (
        "import h5py, sys, time\n"
        f"f = h5py.File({os.fspath(path)!r}, 'a')\n"
        "print('open', flush=True); sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    holder.stdout.readline()
    HOLDERS.append(holder)
