"""A version's folder: packed files, the numbers of each case, and sums of all of it."""

import gzip
import hashlib
import json
from pathlib import Path

import golden_callbacks
import golden_checkpoints
import golden_models
import golden_modules
import numpy as np
from golden_cases import told_apart

import tapewright as tw

__all__ = [
    "ALL",
    "HERE",
    "JSON",
    "PRESENT",
    "answers",
    "cases_of",
    "numbers_of",
    "pack",
    "packed",
    "sums",
    "unpack",
    "versions",
]

HERE = Path(__file__).parent
ALL = [
    *golden_models.CASES,
    *golden_modules.CASES,
    *golden_checkpoints.CASES,
    *golden_callbacks.CASES,
]
PRESENT = ".".join(tw.__version__.split(".")[:2])
SEED = 5
JSON = "@json"  # the plain values among the arrays of a file


def number(version):
    """
    >>> number("0.10") > number("0.9")
    True
    """
    return tuple(int(part) for part in version.split("."))


def versions():
    """The versions that there are folders of."""
    found = [path.name for path in HERE.iterdir() if path.name[0].isdigit()]
    return sorted(found, key=number)


def cases_of(version):
    """The cases that a version's folder has."""
    return [case for case in ALL if number(case.since) <= number(version)]


def answers(case, thing):
    """What a case asks, of a live object or one from a file."""
    tw.keras.utils.set_random_seed(SEED)
    return told_apart(case.ask(thing))


def numbers_of(path):
    """The recorded answers: arrays, and plain values."""
    with np.load(path) as found:
        arrays = dict(found)
    return arrays, json.loads(str(arrays.pop(JSON)))


def packed(case):
    """The names of a case's files in a folder."""
    return [f"{name}.gz" for name in [*case.files, *case.beside]] + [f"{case.name}.npz"]


def pack(path, folder, name):
    """HDF5 is mostly zeros: packed it takes a tenth."""
    target = folder / f"{name}.gz"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


def unpack(source, folder):
    """The files of a version, as they were written."""
    for path in source.rglob("*.gz"):
        target = folder / path.relative_to(source).with_suffix("")
        target.parent.mkdir(exist_ok=True, parents=True)
        target.write_bytes(gzip.decompress(path.read_bytes()))
    return folder


def sums(folder):
    """Lines as `sha256sum` writes them, of all files that are never rewritten."""
    paths = [p for p in sorted(folder.rglob("*")) if p.suffix in (".gz", ".npz")]
    return "".join([
        f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(folder).as_posix()}\n"
        for p in paths
    ])  # fmt: skip
