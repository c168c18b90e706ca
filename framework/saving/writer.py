"""Writing HDF5 files: sealed, and there as a whole or not at all."""

from contextlib import contextmanager

import numpy as np

from ..errors import SavingError, saving_error
from . import strict_json
from .atomic import replacing
from .seal import USER_BLOCK, seal

__all__ = ["GroupWriter", "writing", "writing_to"]

MAX_ATTRIBUTE = 64_512  # bytes: above, HDF5 has no place for a list of texts


@contextmanager
def writing(path, overwrite=True):
    """The root `GroupWriter` of a new file, which takes its place at the end, sealed.

    Raises: `SavingError` if it cannot be written; an older file is then as it was.
    """
    with replacing(path, overwrite) as temporary:
        with writing_to(temporary, path) as root:
            yield root
        seal(temporary)


@contextmanager
def writing_to(temporary, path):
    """The root `GroupWriter` of a new file there, not sealed; errors speak of ``path``."""
    import h5py

    try:
        with h5py.File(temporary, "w", userblock_size=USER_BLOCK) as file:
            yield GroupWriter(file, path)
    except (OSError, RuntimeError) as error:
        if isinstance(error, SavingError):
            raise
        reason = f"cannot be written: {error}; what was there before is kept"
        raise saving_error(path, reason, cause=error) from error


class GroupWriter:
    """A group of a new file, see `writing`."""

    def __init__(self, node, path):
        self._node, self.path = node, path

    @property
    def name(self):
        return self._node.name

    def group(self, path):
        """The group at a path below, made if need be."""
        return GroupWriter(self._node.require_group(path), self.path)

    def array(self, path, array, **attributes):
        """Writes an array, with texts or numbers as its attributes."""
        dataset = self._node.create_dataset(path, data=np.asarray(array))
        for key, value in attributes.items():
            dataset.attrs[key] = value

    def text(self, key, text):
        """Writes an attribute that is text."""
        self._node.attrs[key] = text

    def json(self, key, value):
        """Writes an attribute that is JSON."""
        self.text(key, strict_json.dumps(value))

    def integer(self, key, number):
        """Writes an attribute that is a whole number."""
        self._node.attrs[key] = np.int64(number)

    def texts(self, key, texts):
        """Writes an attribute that is a list of texts, in pieces if it is a long one."""
        encoded = [each.encode() for each in texts]
        if not encoded:
            self._node.attrs[key] = np.zeros(0)
            return
        array = np.array(encoded, dtype="S")
        if array.nbytes <= MAX_ATTRIBUTE:
            self._node.attrs[key] = array
            return
        count = -(-array.nbytes // MAX_ATTRIBUTE)
        while any(each.nbytes > MAX_ATTRIBUTE for each in np.array_split(array, count)):
            count += 1
        for i, piece in enumerate(np.array_split(array, count)):
            self._node.attrs[f"{key}{i}"] = piece
