"""Write HDF5 files: sealed and atomic."""

import os
from contextlib import contextmanager, suppress

import numpy as np

from tapewright.core.dtypes import is_bfloat16
from tapewright.core.errors import as_saving_error
from tapewright.core.hardware.devices import is_array, to_numpy

from . import strict_json
from .atomic import REFUSED, replacing
from .checksum import USER_BLOCK, seal
from .file_objects import GuardedFile, Progress
from .parallel_write import ParallelWriter, is_written_directly

MAX_ATTRIBUTE = 64_512  # bytes: above, HDF5 has no place for a list of texts


@contextmanager
def writing(path, overwrite=True, total=None):
    """Yield the root `GroupWriter` of a new file, which replaces ``path``, sealed.

    ``total`` is the size of all arrays in bytes, if known, for the progress bar of
    large files.

    Raises:
        SavingError: If it cannot be written; an older file is then unchanged.
    """
    with replacing(path, overwrite) as temporary:
        with writing_to(temporary, path, total) as root:
            yield root
        seal(temporary, root.digests)


@contextmanager
def writing_to(temporary, path, total=None):
    """Yield the root `GroupWriter` of a new unsealed file; errors name ``path``."""
    import h5py

    with (
        GuardedFile(temporary) as guarded,
        Target(os.fspath(path), guarded, total) as target,
    ):
        with target.guarded():
            file = h5py.File(guarded, "w", userblock_size=USER_BLOCK)
        try:
            yield GroupWriter(file, target)
        except BaseException:
            with suppress(Exception):  # it is not needed, nor what it has to say
                file.close()
            raise
        with target.guarded():
            file.close()


class Target:
    """The file that all groups of a writer share."""

    def __init__(self, path, file, total):
        self.path, self.file, self.arrays = path, file, ParallelWriter(file)
        self.progress = Progress(f"saving {os.path.basename(path)}", total)

    @contextmanager
    def guarded(self, name=None):
        """Convert errors of the system and of HDF5 to a `SavingError`."""
        errors = (OSError, RuntimeError, MemoryError)
        with as_saving_error(self.path, REFUSED, name, errors):
            try:
                yield
            finally:
                self.file.check()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.arrays.close()
        self.progress.close()


class GroupWriter:
    """A group of a new file, see `writing`."""

    def __init__(self, node, target, name="/"):
        self._node, self._target, self.path = node, target, target.path
        self.name = name  # the location in the file: ``/model_weights/dense``

    @property
    def digests(self):
        """The known digests of pieces of the file, for `seal`."""
        return self._target.arrays.digests

    def group(self, path):
        """Return the group at a path below; create it if necessary."""
        with self._guarded(path):
            group = self._node.require_group(path)
        return GroupWriter(group, self._target, self._location(path))

    def array(self, path, array, **attributes):
        """Write an array of any device, with texts or numbers as its attributes.

        bfloat16, which HDF5 lacks, is stored like Keras stores it: as two bytes, with
        its name in the attribute "dtype". The array has been copied or written on
        return, and may be modified.

        Raises:
            TypeError: For strings.
        """
        array = array if is_array(array) else np.asarray(array)
        if array.dtype.hasobject:
            raise TypeError(
                f"{self.path}: {path!r} is an array of strings, which cannot be saved"
            )
        if is_bfloat16(array.dtype):
            attributes["dtype"] = "bfloat16"
        with self._guarded(path):
            if is_written_directly(array):
                dataset = self._write_directly(path, array)
            else:
                dataset = self._node.create_dataset(path, data=to_numpy(array))
            for key, value in attributes.items():
                dataset.attrs[key] = value
        self._target.progress.add(array.nbytes)

    def _write_directly(self, path, array):
        import h5py

        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_layout(h5py.h5d.CONTIGUOUS)
        creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        dataset = self._node.create_dataset(
            path, array.shape, np.dtype(array.dtype), dcpl=creation
        )
        self._target.arrays.write(array, dataset.id.get_offset())
        return dataset

    def _location(self, path):
        return path if path[:1] == "/" else f"{self.name.rstrip('/')}/{path}"

    def _guarded(self, path=None):
        """Check that `Group.find` can follow names; errors name the location."""
        parts = [] if path is None else path.removeprefix("/").split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise ValueError(
                f"{self.path}: the parts of a name between '/' must not be empty, '.' "
                f"or '..', and not contain NUL; got {path!r}"
            )
        return self._target.guarded(self.name if path is None else self._location(path))

    def text(self, key, text):
        """Write a text attribute; raise ``ValueError`` if HDF5 cannot store it."""
        if "\0" in text or not strict_json.is_whole(text):
            raise ValueError(
                f"{self.path}: text must not contain NUL or a lone surrogate; {key!r} "
                f"in {self.name!r} is {text!r:.80}"
            )
        with self._guarded():
            self._node.attrs[key] = text

    def json(self, key, value):
        """Write a JSON attribute."""
        self.text(key, strict_json.dumps(value))

    def integer(self, key, number):
        """Write an integer attribute."""
        with self._guarded():
            self._node.attrs[key] = np.int64(number)

    def texts(self, key, texts):
        """Write an attribute with a list of texts, in pieces if it is long.

        Raises:
            ValueError: For a text that HDF5 cannot store in a list.
        """
        encoded = [each.encode() for each in texts]
        for each in encoded:
            if len(each) > MAX_ATTRIBUTE or each[-1:] == b"\0":
                raise ValueError(
                    f"{self.path}: the texts of {key!r} must not end in NUL and have "
                    f"at most {MAX_ATTRIBUTE} bytes, got {each[:40]!r} of {len(each)}"
                )
        with self._guarded():
            if not encoded:
                self._node.attrs[key] = np.zeros(0)
                return
            array = np.array(encoded, dtype="S")
            rows = max(MAX_ATTRIBUTE // max(array.itemsize, 1), 1)
            count = -(-len(array) // rows)
            if count == 1:
                self._node.attrs[key] = array
                return
            for i, piece in enumerate(np.array_split(array, count)):
                self._node.attrs[f"{key}{i}"] = piece


def write_format(root, name, version):
    """Store the name of one of our formats in an HDF5 file, for `check_format`."""
    root.text("format", name)
    root.integer("version", version)
