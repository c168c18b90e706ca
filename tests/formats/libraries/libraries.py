"""Exported libraries in this process: calls through ctypes, with guards around arrays."""

import ctypes
import re
import subprocess

import numpy as np

import tapewright as tw

GUARD = 0xA5
ROOM = 64  # bytes of a guard, before and behind an array
DTYPES = {"float": "f4", "double": "f8", "uint16_t": "u2"}


class Library:
    """A loaded library, and what its header says."""

    def __init__(self, path, name):
        self.name, self.header = name, path.with_suffix(".h").read_text("utf-8")
        self.loaded = ctypes.CDLL(str(path))
        run = re.search(rf"int {name}_run\((.*)\);", self.header)[1].split(", ")[:-1]
        self.is_input = ["const" in each for each in run]
        self.arrays = [self.array_of(each.split("*")[1]) for each in run]
        listed = self.header.partition("by their index. */")[2]
        self.state = [
            (n, *described(text))
            for n, text in re.findall(r"#define \w+ (\d+) /\* (.*?) \*/", listed)
        ]

    def array_of(self, name):
        """Return the shape and dtype of an input or output."""
        (text,) = re.findall(
            rf"#define {self.name.upper()}_{name.upper()}_SIZE \d+ /\* (.*?) \*/",
            self.header,
        )
        return described(text)

    def call(self, name, *args):
        args = [
            ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a
            for a in args
        ]
        return getattr(self.loaded, f"{self.name}_{name}")(*args)

    def init(self, path=None):
        return self.call("init", None if path is None else str(path).encode())

    def run(self, *inputs):
        """Return the outputs for arrays; check that no byte around them changed."""
        given, arrays, guarded = iter(inputs), [], []
        for (shape, dtype), is_input in zip(self.arrays, self.is_input):
            size = int(np.prod(shape)) * dtype.itemsize
            memory = np.full(size + 2 * ROOM, GUARD, np.uint8)
            array = memory[ROOM : ROOM + size].view(dtype).reshape(shape)
            if is_input:
                value = np.asarray(next(given))
                array[...] = value.view(dtype) if value.dtype.kind == "V" else value
            guarded.append(memory)
            arrays.append(array)
        before = [a.copy() for a in arrays]
        code = self.call("run", *arrays, 1)
        assert code == 0, code
        for memory in guarded:
            assert (memory[:ROOM] == GUARD).all() and (memory[-ROOM:] == GUARD).all()
        for array, old, is_input in zip(arrays, before, self.is_input):
            assert not is_input or array.tobytes() == old.tobytes()
        return [a for a, is_input in zip(arrays, self.is_input) if not is_input]

    def variables(self):
        """Return the values of the variables that a run changes."""
        found = []
        for n, shape, dtype in self.state:
            array = np.zeros(shape, dtype)
            assert self.call("get", int(n), array) == 0
            found.append(array)
        return found


def described(text):
    """Return the shape and dtype of a declaration, such as ``float x[1][10]``."""
    kind, name = text.split()[:2]
    dtype = np.dtype(DTYPES.get(kind, kind.removesuffix("_t")))
    return tuple(map(int, re.findall(r"\[(\d+)\]", name))), dtype


def exported(function, signature, folder, name="model", **options):
    """Export a function as a shared library; return it loaded, and initialized."""
    path = folder / f"{name}.so"
    tw.export_library(function, signature, path, name=name, **options)
    library = Library(path, name)
    weights = path.with_suffix(".weights")
    assert library.init(weights if options.get("weights") == "beside" else None) == 0
    return library


def compiled(source, folder, *more, compiler="gcc", standard="c99"):
    """Compile a C program with all warnings as errors; return its path."""
    program = folder / "program"
    strict = ("-Wall", "-Wextra", "-Werror", f"-std={standard}")
    command = [compiler, *strict, "-O1", "-o", program, source, *more, "-lm"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert result.returncode == 0, result.stderr
    return program
