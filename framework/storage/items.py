"""A location in an HDF5 file: the base of groups and arrays, with its attributes."""

import functools
import itertools
import math

import numpy as np

from tapewright.core.errors import SavingError, as_saving_error

from . import strict_json
from .global_heap import largest_text

MAX_ATTRIBUTE = 64 << 20  # bytes
MAX_TEXTS = 4096  # of variable length in one attribute; HDF5 has no place for more
MAX_TEXT_BYTES = 4 << 30  # of all texts of an attribute together
MAX_EXPANSION = 1000  # and how much larger they may be than the file
ROOM = 256 << 20  # bytes of them that are always allowed
MAX_NAMES = 1_000_000


class Source:
    """The file that is read, or the ``member`` of a zip file, seen through a window."""

    def __init__(self, path, window, member, sealed, progress):
        self.path, self.window, self.member = path, window, member
        self.sealed, self.progress = sealed, progress
        self.kept = 0  # how many items are kept by their groups

    @functools.cached_property
    def largest_text(self):
        """Size in bytes of the largest text of variable length, see `global_heap`."""
        return largest_text(self.window, self.path, self.member)

    @property
    def text_bytes(self):
        """The maximum total size in bytes of the texts of one attribute.

        A file may have the names of thousands of layers beside one text with all their
        configs, and HDF5 does not report in advance which of these a list refers to.
        """
        return min(MAX_TEXT_BYTES, max(ROOM, MAX_EXPANSION * self.window.size))

    def location(self, name):
        """Format a location in the file for an error."""
        return name if self.member is None else f"{self.member}:{name}"


class Item:
    """A location in a file, ``/model_weights/dense``, and its attributes."""

    def __init__(self, node, source, name="/"):
        self._node, self._source, self.name = node, source, name

    @property
    def path(self):
        """The file."""
        return self._source.path

    @property
    def sealed(self):
        """True if the file has a seal, which was compared with its content."""
        return self._source.sealed

    @property
    def location(self):
        """The location for errors, preceded by the member of a zip file."""
        return self._location()

    def fail(self, reason, key=None):
        """Raise a `SavingError` about this location, or its attribute ``key``."""
        raise SavingError(self.path, reason, self._location(key))

    def _location(self, key=None):
        return self._source.location(self.name if key is None else f"{self.name}@{key}")

    def _guarded(self, reason, key=None):
        """Convert all errors of HDF5 and h5py to a `SavingError`."""
        return as_saving_error(self.path, reason, self._location(key))

    def has(self, key):
        """Return True if there is an attribute with that name."""
        with self._guarded("cannot be inspected", key):
            return key in self._node.attrs

    def _attribute(self, key):
        if not self.has(key):
            self.fail(f"has no attribute {key!r}")
        with self._guarded("the attribute cannot be read", key):
            of = self._node.attrs.get_id(key)
            self._check_attribute(of, key)
            values = np.empty(of.shape, of.dtype)
            of.read(values)
            return values[()]

    def _check_attribute(self, of, key):
        import h5py

        if of.get_space().get_simple_extent_type() == h5py.h5s.NULL:
            self.fail("the attribute is empty", key)
        dtype, count = of.dtype, math.prod(of.shape)
        if dtype.kind not in "SUOfiub" or dtype.subdtype is not None:
            self.fail(f"the attribute must be text or numbers, got {dtype}", key)
        if dtype.kind == "O":
            if h5py.check_string_dtype(dtype) is None:
                self.fail("the attribute must be text or numbers", key)
            if count > MAX_TEXTS:
                self.fail(f"the attribute has {count} texts", key)
            largest = self._source.largest_text if count > 1 else 0
            # They may all be the same one.
            if count * largest > self._source.text_bytes:
                reason = f"the attribute has {count} texts, of up to {largest} bytes"
                self.fail(reason, key)
        if count * dtype.itemsize > MAX_ATTRIBUTE:
            self.fail(f"the attribute has {count * dtype.itemsize} bytes", key)

    def text(self, key):
        """Return a text attribute."""
        return self._as_text(self._attribute(key), key)

    def _as_text(self, value, key):
        if isinstance(value, (np.ndarray, np.generic)) and np.size(value) == 1:
            value = value.item()
        with self._guarded("the attribute is not UTF-8 text", key):
            if isinstance(value, bytes):
                value = value.decode()
            if isinstance(value, str):
                value.encode()  # h5py leaves what it cannot decode as lone surrogates
        if not isinstance(value, str):
            self.fail(f"the attribute must be text, got {type(value).__name__}", key)
        return value

    def json(self, key):
        """Return a JSON attribute, see `strict_json`."""
        return strict_json.loads(self.text(key), self.path, self._location(key))

    def json_object(self, key):
        """Return an attribute with a JSON object."""
        value = self.json(key)
        if not isinstance(value, dict):
            self.fail(f"must be a JSON object, got {type(value).__name__}", key)
        return value

    def integer(self, key):
        """Return an integer attribute."""
        value = self._attribute(key)
        if np.size(value) != 1 or np.asarray(value).dtype.kind not in "iu":
            self.fail("the attribute must be an integer", key)
        return int(np.asarray(value).item())

    def texts(self, key):
        """Return an attribute with a list of texts, possibly split: ``key0``, ``key1``..."""
        keys = [key] if self.has(key) else []
        if not keys:
            numbered = (f"{key}{i}" for i in range(MAX_NAMES))
            keys = list(itertools.takewhile(self.has, numbered))
        if not keys:
            self.fail(f"has no attribute {key!r}")
        texts = []
        for each in keys:
            values = np.asarray(self._attribute(each)).ravel()
            if values.dtype.kind == "f" and not values.size:
                continue  # what an empty list is written as
            texts += [self._as_text(value, each) for value in values]
        return texts
