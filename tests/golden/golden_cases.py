"""What a case of the golden files is, and how its numbers are told and compared.

A case writes files from live objects, opens each in fresh ones, and asks both the same
questions: the answers of the live ones are recorded, those of the files have to be the
same. Answers with ``kept/`` in their names were stored: these are exact.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tapewright as tw

__all__ = ["Case", "as_plain", "assert_same", "freshly", "now", "told_apart",
           "wave"]  # fmt: skip

# Results that were computed again differ by the rounding of other CPUs and targets.
TOLERANCE = 1e-5  # of a number, and a tenth of it of the largest in the array
COARSE = 2e-2  # of 16 bit floats, names begin with "coarse/"


@dataclass
class Case:
    """``write(folder)`` gives the live object; ``read(path)`` one from a file or folder;
    ``ask(object)`` a dict of arrays and plain values, and may go on training it.

    ``files``: those that are read; ``beside``: those that lie with them; ``bare``: no code
    of a user's is needed to read them; ``since``: the first version that has it.
    """

    name: str
    files: list
    write: Any
    read: Any
    ask: Any
    bare: bool = True
    since: str = "0.1"
    beside: list = field(default_factory=list)


def wave(*shape, shift=0, dtype="float32"):
    """Numbers from -2 to 2 that are the same on every machine."""
    numbers = (np.arange(np.prod(shape, dtype=int)) * 37 + 11 + 5 * shift) % 65 - 32
    return (numbers / 16).reshape(shape).astype(dtype)


def freshly(seed=7):
    """Names and random numbers as in a new process."""
    tw.keras.backend.clear_session()
    tw.keras.utils.set_random_seed(seed)


def now(name, variables):
    """The values of variables, by a name and their numbers, before they change."""
    return {f"{name}/{i}": np.array(v.numpy()) for i, v in enumerate(variables)}


def told_apart(answers):
    """Arrays, and what is kept as JSON."""
    arrays, plain = {}, {}
    for name, value in answers.items():
        if hasattr(value, "numpy"):
            value = value.numpy()
        if isinstance(value, (np.ndarray, np.generic, float)):
            value = np.asarray(value)
            if value.dtype.name == "bfloat16":
                value = value.astype("float32")
            arrays[name] = value
        else:
            plain[name] = as_plain(value)
    return arrays, plain


def as_plain(value):
    return json.loads(json.dumps(value, default=_plain, sort_keys=True))


def _plain(value):
    if hasattr(value, "numpy"):
        value = value.numpy()
    return value.tolist() if hasattr(value, "tolist") else str(value)


def assert_same(found, wanted):
    """Compares pairs of arrays and plain values."""
    (arrays, plain), (others, texts) = found, wanted
    assert sorted(plain) == sorted(texts)
    for name, value in texts.items():
        assert_holds(plain[name], value, name)
    assert sorted(arrays) == sorted(others)
    for name, array in others.items():
        own = arrays[name]
        assert own.dtype == array.dtype and own.shape == array.shape, name
        if "kept/" in name or array.dtype.kind not in "fc":
            np.testing.assert_array_equal(own, array, name)
        else:
            close = COARSE if name.startswith("coarse/") else TOLERANCE
            largest = np.max(np.abs(array[np.isfinite(array)]), initial=1.0)
            close = {"rtol": close, "atol": close / 10 * largest}
            np.testing.assert_allclose(own, array, **close, err_msg=name)


def assert_holds(found, wanted, place):
    """The same plain values; a dict may have more, as classes get new arguments."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        assert not wanted.keys() - found.keys(), place
        for key, value in wanted.items():
            assert_holds(found[key], value, f"{place}/{key}")
    elif isinstance(wanted, list) and isinstance(found, list):
        assert len(found) == len(wanted), place
        for i, (own, other) in enumerate(zip(found, wanted)):
            assert_holds(own, other, f"{place}/{i}")
    else:
        assert found == wanted and type(found) is type(wanted), place
