"""The CPU of this process, as Linux and NumPy describe it."""

import functools
import sys

CPUINFO = "/proc/cpuinfo"

# What the names of flags begin with that say how wide and how fast vectors are.
_VECTORS = ("avx", "fma", "amx", "neon", "asimd", "sve", "sme", "bf16", "i8mm", "rvv")


@functools.cache
def vector_flags():
    """Return Linux's vector flags of the first processor, if NumPy can use them.

    NumPy queries the CPU itself; valgrind and emulators hide features they lack there.
    On systems without such flags, NumPy's features are returned.
    """
    used = {name.lower(): is_used for name, is_used in numpy_features().items()}
    flags = _linux_flags() or [name for name in used if used[name]]
    return frozenset(f for f in flags if f.startswith(_VECTORS) and used.get(f, True))


def _linux_flags():
    # An emulator of another architecture shows the file of the machine that it runs on.
    title = {"x86_64": "flags", "aarch64": "Features"}.get(_architecture())
    try:
        with open(CPUINFO, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                name, _, flags = line.partition(":")
                if name.strip() == title:
                    return flags.split()
    except OSError:
        pass
    return []


def _architecture():
    import platform  # takes a while, and only reports need it

    return platform.machine()


def numpy_features():
    """Return NumPy's names of CPU features, and whether it uses each on this CPU.

    ``NPY_DISABLE_CPU_FEATURES`` in the environment disables features.
    """
    extension = sys.modules.get("numpy._core._multiarray_umath")
    return getattr(extension, "__cpu_features__", {})
