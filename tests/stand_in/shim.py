"""Run kernels of CUDA C on the CPU: gcc compiles the source under `shim.h`.

The same source is compiled for GPUs, so its arithmetic and its barriers can be tested on
any machine. It must be plain C.
"""

import ctypes
import functools
import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tapewright.compiler.targets.cuda.prelude import PRELUDE

__all__ = ["Module", "gcc"]

_HEADER = Path(__file__).with_name("shim.h")
_RUNTIME = Path(__file__).with_name("fibers.c")
_OPTIONS = (
    *("-fPIC", "-Og", "-std=gnu11", "-fvisibility=hidden", "-w"),
    *("-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off"),
)
_LINKING = ("-shared", "-nostartfiles", "-fno-use-linker-plugin", "-lm")  # little to do
_KERNEL = re.compile(
    r"__global__\s+void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)"
)
_SIZES = {
    "char": 1, "signed char": 1, "unsigned char": 1, "boolean": 1,
    "short": 2, "unsigned short": 2, "half_bits": 2,
    "int": 4, "unsigned": 4, "unsigned int": 4,
    "long long": 8, "unsigned long long": 8, "long": 8, "unsigned long": 8, "size_t": 8,
}  # fmt: skip


def gcc():
    """The path of gcc, or None."""
    return shutil.which("gcc")


class Module:
    """The kernels of a source, ready to be launched by name."""

    def __init__(self, source):
        self.parameters = {
            name: [_type_of(p) for p in parameters.split(",") if p.strip()]
            for name, parameters in _KERNEL.findall(source)
        }
        callers = [_caller(name, types) for name, types in self.parameters.items()]
        text = source.replace('extern "C"', "")
        self._library = _library("\n".join([text, _SHARED, *callers]))
        self._callers = {
            name: ctypes.cast(self._library[f"shim_call_{name}"], ctypes.c_void_p)
            for name in self.parameters
        }
        self._shared = (ctypes.c_void_p * 2).in_dll(self._library, "shim_shared_array")

    def launch(self, name, grid, block, arguments, threads="one", seed=0):
        """Run a kernel.

        Args: ``grid``, ``block``, one to three numbers each; ``arguments``, an address for
        a pointer, a number for a number, bytes for a structure; ``threads``, "one": a
        single thread does all, or "fibers": as many as there would be; ``seed`` of the
        order in which these take turns.
        Raises: ``RuntimeError`` if not all threads of a block reach a barrier.
        """
        if threads not in ("one", "fibers"):
            raise ValueError(f'threads must be "one" or "fibers", not {threads!r}')
        types = self.parameters[name]
        if len(types) != len(arguments):
            raise TypeError(
                f"{name} takes {len(types)} arguments, not {len(arguments)}"
            )
        packed, places = bytearray(), []
        for type, value in zip(types, arguments):
            packed += bytes(-len(packed) % 16)  # what a structure may be aligned to
            places.append(len(packed))
            packed += _bytes_of(type, value)
        held = ctypes.create_string_buffer(bytes(packed))
        start = ctypes.addressof(held)
        addresses = (ctypes.c_void_p * len(places))(*[start + at for at in places])
        sizes = [1] * 6 if threads == "one" else [*_three(grid), *_three(block)]
        error = _runtime().shim_launch(
            self._callers[name],
            (ctypes.c_uint * 6)(*sizes),
            addresses,
            self._shared,
            threads == "fibers",
            seed,
        )
        if error is not None:
            raise RuntimeError(f"{name}: {error.decode()}")


def _three(sizes):
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    return (*sizes, *(1,) * (3 - len(sizes)))


def _type_of(parameter):
    """The type of a parameter, without qualifiers: ``"float*"`` of ``const float* x``."""
    words = re.sub(r"__restrict__|\bconst\b", " ", parameter).replace("*", " * ")
    *type, _ = words.split()
    return " ".join(type).replace(" *", "*")


_VISIBLE = '__attribute__((visibility("default")))'
# Where the arrays of a block begin and end.
_SHARED = f"{_VISIBLE} char *shim_shared_array[] = "
_SHARED += "{__start_shim_shared, __stop_shim_shared};"


def _caller(name, types):
    """A function that calls a kernel with arguments at given addresses."""
    values = ", ".join([f"*({type}*)at[{i}]" for i, type in enumerate(types)])
    return f"{_VISIBLE} void shim_call_{name}(void **at) {{ {name}({values}); }}"


def _bytes_of(type, value):
    if isinstance(value, bytes):
        return value
    if type.endswith("*"):
        return int(value).to_bytes(8, "little")
    if type in ("float", "double"):
        return np.array(value, {"float": "f4", "double": "f8"}[type]).tobytes()
    size = _SIZES[type]
    return (int(value) % (1 << 8 * size)).to_bytes(size, "little")


# ------------------------------------------------------------------ compiled by gcc


@functools.cache
def _runtime():
    """What launches kernels, and what they call: all other libraries see it."""
    path = _made(_RUNTIME.read_text(), ".c", ".so", _LINKING)
    library = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    library.shim_launch.restype = ctypes.c_char_p
    return library


@functools.cache
def _library(source):
    """The shared library of a source."""
    _runtime()
    front = PRELUDE if source.startswith(PRELUDE) else ""
    text = f'#include "{_header(front)}"\n{source.removeprefix(front)}'
    return ctypes.CDLL(str(_made(text, ".c", ".so", _LINKING)))


@functools.cache
def _header(front):
    """A header with what stands in front of kernels: gcc reads it once for all of them."""
    text = _HEADER.read_text() + front
    return _made(text, ".h", ".h.gch", ()).with_suffix("")


def _made(text, suffix, suffix_made, options):
    """What gcc makes of a text, or has made: it lies in a folder, beside the text."""
    compiler = Path(gcc()).resolve()
    key = repr([text, str(compiler), compiler.stat().st_mtime, _OPTIONS, options])
    name = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
    folder = Path(tempfile.gettempdir()) / "cuda_on_cpu"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}{suffix_made}"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=folder) as own:
            given, made = Path(own, f"text{suffix}"), Path(own, "made")
            given.write_text(text)
            command = [gcc(), *_OPTIONS, given, *options, "-o", made]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"gcc refuses the source:\n{done.stderr[:4000]}")
            given.replace(folder / f"{name}{suffix}")
            made.replace(path)
    return path
