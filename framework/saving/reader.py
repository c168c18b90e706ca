"""Reading HDF5 files that nobody vouches for.

Everything that tapewright reads goes through `opened` and the two classes here, which
look before they leap: a seal is checked first, names lead nowhere but into the file, and
an array is as large as what is stored before memory is taken for it. Whatever goes wrong
is a `SavingError` with the file, the place in it, and the reason.
"""

import itertools
import math
import os
import stat
from contextlib import contextmanager

import numpy as np

from ..errors import SavingError, saving_error
from . import strict_json
from .seal import check_seal

__all__ = ["Array", "Group", "opened", "regular_file"]

# An array may be this much larger than what is stored of it, for it may be compressed.
MAX_EXPANSION = 1000
MAX_ATTRIBUTE = 64 << 20  # bytes
MAX_NAMES = 1_000_000
MAX_DEPTH = 100  # of groups in groups

# What HDF5 and h5py raise for files that are not as they should be.
DAMAGES = (
    OSError, KeyError, RuntimeError, ValueError, TypeError, OverflowError, MemoryError,
    AttributeError,
)  # fmt: skip


def regular_file(path):
    """``path`` as text. Raises: `SavingError` unless a file is there that has an end."""
    path = os.fspath(path)
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        reason = "there is no such file" if missing else f"cannot be read: {error}"
        raise saving_error(path, reason, cause=error) from None
    if stat.S_ISDIR(mode):
        raise saving_error(path, "is a folder, no file", cause=IsADirectoryError())
    if not stat.S_ISREG(mode):
        raise SavingError(path, "is a pipe or device, no file")
    if not os.access(path, os.R_OK):
        reason = "may not be read: permission denied"
        raise saving_error(path, reason, cause=PermissionError())
    return path


@contextmanager
def opened(path, check=True):
    """The root `Group` of an HDF5 file, for as long as the context lasts.

    ``check``: whether the seal, if there is one, is compared with the content.

    Raises: `SavingError` if it is no HDF5 file, or damaged.
    """
    import h5py

    path = regular_file(path)
    sealed = check and check_seal(path)
    try:
        file = h5py.File(path, "r")
    except BlockingIOError as error:
        reason = "is being written by another process; try again when it is done"
        raise saving_error(path, reason, cause=error) from None
    except DAMAGES as error:
        raise SavingError(path, _no_hdf5(path, error)) from None
    with file:
        yield Group(file, path, sealed)


def _no_hdf5(path, error):
    with open(path, "rb") as file:
        head = file.read(512)
    if not head:
        return "is empty"
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return f"is a damaged HDF5 file, or not a whole one: {error}"
    if head.lstrip()[:1] == b"<":
        return "is no HDF5 file: it is a web page, or other text with tags"
    return f"is no HDF5 file: it begins with {head[:8]!r}"


class _Item:
    """What a group and an array have in common: a place, and attributes."""

    def __init__(self, node, path, sealed=False):
        self._node, self.path, self.sealed = node, path, sealed

    @property
    def name(self):
        """The place in the file: ``/model_weights/dense``."""
        return self._node.name

    def fail(self, reason, key=None):
        """Raises a `SavingError` about this place, or its attribute ``key``."""
        place = self.name if key is None else f"{self.name}@{key}"
        raise SavingError(self.path, reason, place)

    @contextmanager
    def _guarded(self, what, key=None):
        try:
            yield
        except SavingError:
            raise
        except DAMAGES as error:
            self.fail(f"{what}: {error}", key)

    def has(self, key):
        """Whether there is an attribute of that name."""
        with self._guarded("cannot be looked into", key):
            return key in self._node.attrs

    @property
    def attributes(self):
        """The names of all attributes."""
        with self._guarded("has attributes that cannot be read"):
            return list(itertools.islice(self._node.attrs, MAX_NAMES))

    def _attribute(self, key):
        if not self.has(key):
            self.fail(f"has no attribute {key!r}")
        with self._guarded("the attribute cannot be read", key):
            of = self._node.attrs.get_id(key)
            size = math.prod(of.shape) * of.dtype.itemsize
            if size > MAX_ATTRIBUTE:
                self.fail(f"the attribute has {size} bytes", key)
            return self._node.attrs[key]

    def text(self, key):
        """An attribute that is text."""
        return self._as_text(self._attribute(key), key)

    def _as_text(self, value, key):
        if isinstance(value, (np.ndarray, np.generic)) and np.size(value) == 1:
            value = value.item()
        if isinstance(value, bytes):
            with self._guarded("the attribute is no UTF-8 text", key):
                value = value.decode()
        if not isinstance(value, str):
            self.fail(f"the attribute must be text, is {type(value).__name__}", key)
        return value

    def json(self, key):
        """An attribute that is JSON, see `strict_json`."""
        return strict_json.loads(self.text(key), self.path, f"{self.name}@{key}")

    def integer(self, key):
        """An attribute that is a whole number."""
        value = self._attribute(key)
        if np.size(value) != 1 or np.asarray(value).dtype.kind not in "iu":
            self.fail("the attribute must be a whole number", key)
        return int(np.asarray(value).item())

    def texts(self, key):
        """An attribute that is a list of texts, also one cut into ``key0``, ``key1``..."""
        keys = [key] if self.has(key) else []
        if not keys:
            numbered = (f"{key}{i}" for i in range(MAX_NAMES))
            keys = list(itertools.takewhile(self.has, numbered))
        if not keys:
            self.fail(f"has no attribute {key!r}")
        found = []
        for each in keys:
            values = np.asarray(self._attribute(each)).ravel()
            if values.dtype.kind == "f" and not values.size:
                continue  # what an empty list is written as
            found += [self._as_text(value, each) for value in values]
        return found


class Group(_Item):
    """A group of a file: named groups and arrays, see `opened`."""

    def keys(self):
        """The names in the group."""
        with self._guarded("cannot be listed"):
            return list(itertools.islice(self._node, MAX_NAMES))

    def __contains__(self, path):
        return self.find(path) is not None

    def find(self, path):
        """The `Group` or `Array` at a path below, ``"layers/dense/vars"``, or None.

        Raises: `SavingError` if the path leads out of the group, or over a link.
        """
        node = self._node
        with self._guarded(f"{path!r} cannot be looked up"):
            for part in path.split("/"):
                node = self._step(node, part)
                if node is None:
                    return None
        return self._wrapped(node)

    def _step(self, node, part):
        import h5py

        if part in ("", ".", ".."):
            self.fail(f"the name {part!r} leads out of the group")
        if not isinstance(node, h5py.Group):
            return None
        link = node.get(part, getlink=True)
        if link is None:
            return None
        if not isinstance(link, h5py.HardLink):
            kind = type(link).__name__
            self.fail(f"{part!r} is a link elsewhere ({kind}); links are refused")
        return node[part]

    def _wrapped(self, node):
        import h5py

        if isinstance(node, h5py.Group):
            return Group(node, self.path, self.sealed)
        if isinstance(node, h5py.Dataset):
            return Array(node, self.path, self.sealed)
        return self.fail(f"{node.name} is neither a group nor an array")

    def group(self, path):
        """The group at a path below. Raises: `SavingError` if there is none."""
        found = self.find(path)
        if not isinstance(found, Group):
            self.fail(f"has no group {path!r}")
        return found

    def array(self, path):
        """The array at a path below. Raises: `SavingError` if there is none."""
        found = self.find(path)
        if not isinstance(found, Array):
            self.fail(f"has no array {path!r}")
        return found

    def numbered(self):
        """The arrays ``0``, ``1``, ... of the group, in that order."""
        keys = self.keys()
        if set(keys) != {str(i) for i in range(len(keys))}:
            self.fail(
                f"must hold 0, 1, 2, ... without a gap, holds {sorted(keys)[:20]}"
            )
        return [self.array(str(i)) for i in range(len(keys))]

    def walk(self):
        """All groups and arrays below, this one first; each object once."""
        import h5py

        seen, ahead = set(), [(self, 0)]
        while ahead:
            item, depth = ahead.pop()
            with self._guarded("cannot be walked through"):
                at = h5py.h5o.get_info(item._node.id).addr
            if at in seen:
                continue
            seen.add(at)
            yield item
            if isinstance(item, Group):
                if depth >= MAX_DEPTH:
                    item.fail(f"is nested deeper than {MAX_DEPTH} groups")
                inner = [item.find(key) for key in reversed(item.keys())]
                ahead += [(each, depth + 1) for each in inner]


class Array(_Item):
    """An array of a file; nothing of it is read before `read`."""

    @property
    def shape(self):
        with self._guarded("has no shape"):
            shape = self._node.shape
        if shape is None:
            self.fail("holds no array")
        return tuple(shape)

    @property
    def dtype(self):
        """The dtype that `read` gives: bfloat16 is read as float32."""
        with self._guarded("has a type that NumPy does not know"):
            dtype = self._node.dtype
        if dtype == np.dtype("V2"):
            return np.dtype("f4")
        if dtype.kind not in "fiubc" or dtype.hasobject:
            self.fail(f"holds {dtype}, must hold numbers")
        return dtype.newbyteorder("=")

    @property
    def nbytes(self):
        return math.prod(self.shape) * self.dtype.itemsize

    def read(self):
        """The array, in memory of its own."""
        array = np.empty(self.shape, self._checked().dtype)
        self.read_into(array)
        return array

    def read_into(self, array):
        """Reads into a contiguous array of the same shape and dtype."""
        self._checked()
        with self._guarded("cannot be read"):
            if self._node.dtype == np.dtype("V2"):
                halves = self._node[()].view("<u2").astype("<u4")
                array[...] = (halves << 16).view("<f4")
            elif array.size and array.ndim:
                self._node.read_direct(array)
            else:
                array[...] = self._node[()]

    def _checked(self):
        """Raises unless the file holds what it declares."""
        with self._guarded("cannot be looked into"):
            outside = bool(self._node.external) or self._node.is_virtual
            stored = self._node.id.get_storage_size()
        if outside:
            self.fail("keeps its data in other files, which is refused")
        if self.nbytes > MAX_EXPANSION * stored + 4096:
            self.fail(f"declares {self.nbytes} bytes, stores {stored}")
        return self
