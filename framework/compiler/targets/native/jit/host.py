"""The CPU that code is compiled for: features it has, needs and disables.

Names of features are LLVM's, and differ between architectures: LLVM prints a warning
for each module that is compiled with a feature of another architecture.
"""

import dataclasses
import functools

_NAMES = {"amd64": "x86_64", "arm64": "aarch64", "arm64e": "aarch64"}

# NumPy's feature -> LLVM's: NPY_DISABLE_CPU_FEATURES is for both. NumPy 2.4 and older ones
# have their own names for what is switched off together. NumPy lists the features of all
# architectures, and says of those of others that it does not use them.
_UNUSED = {
    "x86_64": {
        "X86_V4": "avx512f",
        "AVX512_SKX": "avx512f",
        "X86_V3": "avx2",
        "AVX2": "avx2",
        "FMA3": "fma",
    },
    "aarch64": {"SVE": "sve"},
}

# Since Ice Lake, vectors of 512 bits cost no clock speed to speak of: tanh takes 3/4 of the
# time that it takes with 256 bits, loops bound by memory the same. LLVM prefers 256 there.
_WIDE_VECTORS = "-prefer-256-bit"
_SINCE_ICE_LAKE = "+avx512vbmi2"

# CPUs of which LLVM 22 does not know how long all instructions take: it ends the process
# where it meets a load that moves its pointer on. All others that it knows were tried.
_UNFINISHED = {"ampere1b", "oryon-1"}


@dataclasses.dataclass(frozen=True)
class Host:
    """A CPU by LLVM's names.

    ``features`` are strings such as "+avx2" or "-sve"; a later one overrides an earlier
    one.
    """

    triple: str
    cpu: str
    features: tuple[str, ...] = ()

    @property
    def architecture(self):
        """ "x86_64", "aarch64", or the name of another one."""
        name = self.triple.partition("-")[0].lower()
        return _NAMES.get(name, name)

    def has(self, *names):
        """Return whether the CPU has all of these features, and they may be used."""
        signs = {each[1:]: each[:1] for each in self.features}
        return all(signs.get(name) == "+" for name in names)

    @functools.cached_property  # eager products ask each time
    def vector_registers(self):
        """The bytes of a vector register, and the number of registers."""
        if self.has("avx512f", "avx512vl"):
            return 64, 32
        return (32, 16) if self.has("avx2") else (16, 32)

    @functools.cached_property  # asked for each conversion
    def converts_halves(self):
        """True if the CPU has instructions that convert between float16 and float32.

        Without them LLVM would call a function that is not linked.
        """
        return self.architecture == "aarch64" or self.has("f16c")

    @property
    def why_unavailable(self):
        """None, or why machine code is not supported: such machines are untested."""
        if self.architecture not in _UNUSED:
            return f"machine code for {self.architecture} is not supported"
        if self.architecture == "x86_64" and not self.has("avx2", "fma"):
            return "this CPU lacks AVX2 or FMA, or they are switched off"
        return None


# CPUs that libraries are compiled for, by the names of their architectures.
TARGETS = {
    "aarch64": Host("aarch64-unknown-linux-gnu", "generic", ("+neon",)),
    "x86-64-v3": Host(
        "x86_64-unknown-linux-gnu", "x86-64-v3", ("+avx2", "+f16c", "+fma")
    ),
}


def describe_host(triple, cpu, cpu_features, used):
    """Return the `Host` that LLVM and NumPy report.

    Args:
        triple: LLVM's name of architecture, vendor and system.
        cpu: LLVM's name of the CPU.
        cpu_features: Dict of LLVM's feature names, True for features that the CPU has.
        used: Dict of NumPy's feature names, True for features that NumPy uses.
    """
    host = Host(triple, "generic" if cpu in _UNFINISHED else cpu)
    pairs = sorted(cpu_features.items())
    features = [f"{'+' if has else '-'}{name}" for name, has in pairs]
    if host.architecture == "x86_64" and _SINCE_ICE_LAKE in features:
        features.append(_WIDE_VECTORS)
    unused = _UNUSED.get(host.architecture, {})
    features += [f"-{unused[name]}" for name in unused if not used.get(name, True)]
    return dataclasses.replace(host, features=tuple(features))
