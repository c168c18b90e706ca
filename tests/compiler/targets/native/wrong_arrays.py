"""Arrays that differ in one property from a writable float32 array of shape (3, 4)."""

import numpy as np


class Named(np.ndarray):
    pass


def frozen(x):
    x.flags.writeable = False
    return x


WRONG = {
    "no array": 1.0,
    "None": None,
    "a list": [[0.0] * 4] * 3,
    "a scalar": np.float32(0),
    "a subclass": np.zeros((3, 4), np.float32).view(Named),
    "a dtype": np.zeros((3, 4), np.float64),
    "a dtype of one size": np.zeros((3, 4), np.int32),
    "the byte order": np.zeros((3, 4), ">f4"),
    "objects": np.zeros((3, 4), object),
    "dates": np.zeros((3, 4), "M8[s]"),
    "records": np.zeros((3, 4), [("a", "f4")]),
    "fewer axes": np.zeros(12, np.float32),
    "more axes": np.zeros((3, 4, 1), np.float32),
    "no axes": np.zeros((), np.float32),
    "the first size": np.zeros((4, 4), np.float32),
    "the last size": np.zeros((3, 5), np.float32),
    "sizes the other way": np.zeros((4, 3), np.float32),
    "the order": np.zeros((4, 3), np.float32).T,
    "steps": np.zeros((3, 8), np.float32)[:, ::2],
    "rows apart": np.zeros((3, 5), np.float32)[:, :4],
    "backwards": np.zeros((3, 4), np.float32)[::-1],
    "unaligned": np.frombuffer(bytearray(49), np.uint8)[1:].view("f4").reshape(3, 4),
    "read-only": frozen(np.zeros((3, 4), np.float32)),
}
if hasattr(np.dtypes, "StringDType"):  # its number is beyond those of all others
    WRONG["strings"] = np.zeros((3, 4), np.dtypes.StringDType())
