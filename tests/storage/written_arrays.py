"""Arrays that are written here."""

import sys

import numpy as np
import pytest

from tapewright.storage.reader import opened

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
BIG = np.random.default_rng(0).normal(size=(700, 600)).astype("f4")
ARRAYS = {
    "float32": BIG,
    "float64": BIG.astype("f8"),
    "float16": BIG.astype("f2"),
    "integers": np.arange(200_000).reshape(50, 4000),
    "bytes": np.arange(250_000).astype("u1"),
    "complex": (BIG + 1j * BIG).astype("c8"),
    "bool": BIG > 0,
    "big-endian": BIG.astype(">f4"),
    "transposed": BIG.T,
    "strided": BIG[::2, ::-1],
    "Fortran": np.asfortranarray(BIG),
    "five axes": BIG.reshape(7, 100, 6, 10, 10).transpose(4, 0, 2, 1, 3),
    "broadcast": np.broadcast_to(np.float32([[1], [2]]), (2, 50_000)),
    "small": np.arange(3),
    "a number": np.float32(3.5),
    "empty": np.zeros((0, 3)),
    "a list": [[1.0, 2.0]],
}


def whole(path):
    with opened(path) as root:
        assert root.sealed
        values = [array.read() for array in root.numbered()]
    assert len(values) == 10
    return {float(value) for each in values for value in np.unique(each)}
