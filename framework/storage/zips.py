"""Read untrusted zip files; write zip files.

A member is checked before it is used: its name leads nowhere else, it does not overlap
another, its size is as declared, and its checksum is correct. A stored member is then
read in place; a deflated member is unpacked, within bounds, to a temporary file.
"""

import io
import os
import struct
import zlib
from contextlib import contextmanager

from tapewright.core.errors import SavingError, as_saving_error

from . import strict_json
from .atomic import replacing, temporary_beside
from .checksum import seal
from .file_objects import Window, at_once
from .reader import opened_inside, regular_file
from .writer import writing_to

MAX_DIRECTORY = 4 << 20  # bytes of names, offsets and sizes
MAX_MEMBERS = 10_000
MAX_EXPANSION = 100  # a large deflated member may be this much larger than stored
SMALL = 16 << 20  # bytes of a member that may be deflated from anything
MAX_TEXT = 64 << 20  # bytes of a member that is read into memory
PIECE = 1 << 20
DAMAGED = "is a damaged zip file"
DATE = (1980, 1, 1, 0, 0, 0)  # so that equal contents make equal files


@contextmanager
def writing_zip(path, overwrite=True):
    """Yield a `ZipWriter` of a new file, which replaces ``path`` at the end.

    Raises:
        SavingError: If it cannot be written; an older file is then unchanged.
    """
    from zipfile import ZipFile

    with replacing(path, overwrite) as temporary:
        with ZipFile(temporary, "w") as zipped:
            yield ZipWriter(zipped, os.fspath(path))


class ZipWriter:
    """A new zip file, see `writing_zip`. Its members are stored, not deflated."""

    def __init__(self, zipped, path):
        self._zip, self.path = zipped, path

    def text(self, name, text):
        """Write a UTF-8 text member."""
        self._zip.writestr(self._info(name), text.encode())

    def json(self, name, value):
        """Write a JSON member."""
        self.text(name, strict_json.dumps(value))

    @contextmanager
    def hdf5(self, name):
        """Yield the root `GroupWriter` of an HDF5 member, which is sealed at the end."""
        with temporary_beside(self.path) as temporary:
            with writing_to(temporary, self.path) as root:
                yield root
            seal(temporary, root.digests)
            self.file(name, temporary)

    def file(self, name, path):
        """Write a member with the bytes of a file."""
        info = self._info(name)
        info.file_size = os.path.getsize(path)
        with open(path, "rb", buffering=0) as file:
            with self._zip.open(info, "w") as member:
                while piece := file.read(PIECE):
                    member.write(piece)

    def _info(self, name):
        from zipfile import ZipInfo

        if not _is_plain(name):
            raise ValueError(f"{self.path}: invalid member name: {name!r}")
        if name in self._zip.NameToInfo:
            raise ValueError(f"{self.path}: the member {name!r} exists already")
        info = ZipInfo(name, DATE)
        info.external_attr = 0o644 << 16
        return info


@contextmanager
def opened_zip(path):
    """Yield the `ZipReader` of a zip file while the context is active.

    Raises:
        SavingError: If it is not a zip file, or if a member is encrypted, overlaps
            another, or has a name that leads out of the file.
    """
    from zipfile import ZipFile

    path = regular_file(path)
    with _Bounded(path, opener=at_once) as file:
        with as_saving_error(path, DAMAGED):
            zipped = ZipFile(file)
        yield ZipReader(file, path, zipped.infolist(), zipped.start_dir)


def _is_plain(name):
    """Return True if the name of a member stays below its folder on every system."""
    parts = name.split("/")
    odd = "\\" in name or "\0" in name or ":" in parts[0]
    return not odd and not any(part in ("", ".", "..") for part in parts)


class _Bounded(io.FileIO):
    """A file that refuses to read an unlimited table of contents."""

    def read(self, size=-1):
        if size is not None and size > MAX_DIRECTORY:
            raise ValueError(f"the table of contents has {size} bytes")
        return super().read(size)


class ZipReader:
    """A zip file whose table of contents has been checked, see `opened_zip`."""

    def __init__(self, file, path, infos, end):
        self._file, self.path, self._end = file, path, end
        if len(infos) > MAX_MEMBERS:
            raise SavingError(
                path, f"has {len(infos)} members, more than {MAX_MEMBERS}"
            )
        self._infos = {}
        for info in infos:
            self._check(info)
            self._infos[info.filename] = info
        self._starts = self._offsets()
        self._checked = set()

    @property
    def names(self):
        """The names of all members."""
        return list(self._infos)

    def names_below(self, folder):
        """Return the names of the members below a folder, relative to it."""
        start = f"{folder}/"
        names = [n for n in self._infos if n.startswith(start) and not n.endswith("/")]
        return [name.removeprefix(start) for name in names]

    def __contains__(self, name):
        return name in self._infos

    def size(self, name):
        """Return the unpacked size of a member in bytes."""
        return self._info(name).file_size

    def read(self, name, limit=MAX_TEXT):
        """Return the bytes of a member; raise `SavingError` above ``limit`` bytes."""
        size = self.size(name)
        if size > limit:
            self._fail(f"has {size} bytes, at most {limit} are read", name)
        with self.opened(name) as file:
            return file.read(size)

    def text(self, name):
        """Return a UTF-8 text member."""
        try:
            return self.read(name).decode()
        except UnicodeDecodeError as error:
            self._fail(f"is not UTF-8 text: {error}", name)

    def json(self, name):
        """Return a JSON member, see `strict_json`."""
        return strict_json.loads(self.text(name), self.path, name)

    def json_object(self, name):
        """Return a member with a JSON object."""
        value = self.json(name)
        if not isinstance(value, dict):
            self._fail(f"must be a JSON object, got {type(value).__name__}", name)
        return value

    @contextmanager
    def hdf5(self, name):
        """Yield the root `Group` of an HDF5 member."""
        with self.opened(name) as file, opened_inside(file, self.path, name) as root:
            yield root

    @contextmanager
    def opened(self, name):
        """Yield a member as a seekable `Window`, after comparing its checksum."""
        from tempfile import NamedTemporaryFile

        info = self._info(name)
        if not info.compress_type:
            with self._window(name, info.file_size) as window:
                with as_saving_error(self.path, DAMAGED, name):
                    self._compare(info, window)
                yield window
            return
        with NamedTemporaryFile(prefix="tapewright-") as file:
            with as_saving_error(self.path, DAMAGED, name):
                self._unpack(info, file)
                file.flush()
            with Window(file.name, 0, info.file_size) as window:
                yield window

    def _window(self, name, size):
        return Window(self.path, self._starts[name], size, self._file.fileno())

    def _compare(self, info, window):
        if info.filename in self._checked:
            return
        crc = 0
        while piece := window.read(PIECE):
            crc = zlib.crc32(piece, crc)
        window.seek(0)
        self._settle(info, crc, window.size)

    def _unpack(self, info, file):
        inflate, crc, size = zlib.decompressobj(-15), 0, 0
        with self._window(info.filename, info.compress_size) as raw:
            while size <= info.file_size and not inflate.eof:
                packed = inflate.unconsumed_tail or raw.read(PIECE)
                piece = inflate.decompress(packed, PIECE)
                if not piece and not packed:
                    break
                crc, size = zlib.crc32(piece, crc), size + len(piece)
                file.write(piece)
        self._settle(info, crc, size)

    def _settle(self, info, crc, size):
        if size != info.file_size:
            self._fail(
                f"declares {info.file_size} bytes, but has a different size",
                info.filename,
            )
        if crc != info.CRC:
            self._fail("is damaged: its checksum (CRC-32) differs", info.filename)
        self._checked.add(info.filename)

    def _info(self, name):
        if name not in self._infos:
            raise SavingError(
                self.path, f"has no member {name!r}, only {self.names[:20]}"
            )
        return self._infos[name]

    def _fail(self, reason, name):
        raise SavingError(self.path, reason, name)

    def _check(self, info):
        name = info.filename
        if info.orig_filename != name or not _is_plain(name.removesuffix("/")):
            reason = "the name of a member must be a plain relative path"
            self._fail(reason, info.orig_filename)
        if name in self._infos:
            self._fail("occurs twice", name)
        if info.flag_bits & 0x2061:  # encrypted, patched, or its directory is
            self._fail("is encrypted, or of an unknown kind", name)
        if info.compress_type not in (0, 8):
            self._fail("is neither stored nor deflated", name)
        stored, size = info.compress_size, info.file_size
        if size != stored and not info.compress_type:
            self._fail(f"declares {size} bytes, stores {stored}", name)
        if size > max(MAX_EXPANSION * stored, SMALL):
            self._fail(f"declares {size} bytes, stores {stored} deflated", name)

    def _offsets(self):
        """Return the offsets of the members' bytes; raise `SavingError` if two overlap."""
        infos = sorted(self._infos.values(), key=lambda info: info.header_offset)
        starts, free = {}, 0
        with as_saving_error(self.path, DAMAGED):
            for info in infos:
                if info.header_offset < free:
                    self._fail("overlaps another member", info.filename)
                start = self._after_header(info)
                free = start + info.compress_size
                starts[info.filename] = start
                if free > self._end:
                    self._fail("reaches beyond the end of the file", info.filename)
        return starts

    def _after_header(self, info):
        self._file.seek(info.header_offset)
        head = self._file.read(30)
        if len(head) < 30 or head[:4] != b"PK\3\4":
            self._fail("has no header where it should be", info.filename)
        name, extra = struct.unpack("<HH", head[26:])
        encoding = "utf-8" if head[7] & 8 else "cp437"
        if self._file.read(name).decode(encoding) != info.filename:
            self._fail("has another name in its header", info.filename)
        return info.header_offset + 30 + name + extra
