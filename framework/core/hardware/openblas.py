"""The OpenBLAS library of NumPy: its functions, accessed through ctypes."""

import functools
import os
import sys

try:
    import ctypes
except ImportError:  # a Python built without libffi
    ctypes = None


class Unavailable(RuntimeError):
    """Raised when a feature of the C library or BLAS is unavailable, with the reason."""


def is_switched_off(name):
    """Return whether an environment variable turns a feature off."""
    return os.environ.get(name, "").lower() in ("0", "off", "false", "no")


def check_switch(name):
    """Raise `Unavailable` if an environment variable turns a feature off."""
    if is_switched_off(name):
        raise Unavailable(f"off: {name}={os.environ[name]}")


def load(path, mode=0):
    """Load a library whose functions are called with the GIL held."""
    if ctypes is None:
        raise Unavailable("this Python has no ctypes")
    return ctypes.PyDLL(path, mode=mode)


@functools.cache
def symbol(name):
    """Return the function ``name`` of NumPy's OpenBLAS.

    The lookup goes through NumPy's extension module and the libraries it links to,
    which finds NumPy's copy of OpenBLAS among several; NOLOAD never loads another.
    """
    extension = sys.modules.get("numpy._core._multiarray_umath")
    if extension is None or not hasattr(os, "RTLD_NOLOAD"):
        raise Unavailable("NumPy's BLAS library is not accessible")
    library = load(extension.__file__, mode=os.RTLD_NOLOAD)
    for prefix in ("", "scipy_"):  # NumPy's wheels rename what OpenBLAS exports
        for suffix in ("", "64_"):
            if function := getattr(library, f"{prefix}{name}{suffix}", None):
                return function
    raise Unavailable(f"NumPy's BLAS has no {name}: not OpenBLAS, or built for one CPU")


def text(name):
    """Call a function of OpenBLAS that returns a string."""
    function = symbol(name)
    function.restype = ctypes.c_char_p
    return function().decode()


def core():
    """Return the name of the kernels that OpenBLAS chose for this CPU."""
    return text("openblas_get_corename")


def threads():
    """Return the number of threads that OpenBLAS uses."""
    return symbol("openblas_get_num_threads")()


def library_file():
    """Return the file name of the loaded OpenBLAS: the mapping with its functions."""
    function = symbol("openblas_get_config")
    address = ctypes.cast(function, ctypes.c_void_p).value
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as mappings:
        for line in mappings:
            low, _, high = line.split(None, 1)[0].partition("-")
            if int(low, 16) <= address < int(high, 16):
                return os.path.basename(line.rstrip())
    return None
