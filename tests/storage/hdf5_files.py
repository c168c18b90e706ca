"""Files of HDF5 that are written here."""

import os

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright.storage.reader import opened

VALUES = np.random.default_rng(0).normal(size=(300, 200)).astype("f4")
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def make(path, **datasets):
    with h5py.File(path, "w") as file:
        for name, value in datasets.items():
            file[name] = value


def read(path, name="a"):
    with opened(path) as root:
        return root.array(name).read()


def refused(path, reason, name="a"):
    with pytest.raises(tw.errors.SavingError, match=reason) as caught:
        read(path, name)
    assert caught.value.path == str(path)
    return caught.value
