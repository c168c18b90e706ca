"""Settings of the process that make NumPy fast, and a report of what is in effect.

Importing tapewright makes two settings, each only where it is known to help and where
the user has not decided otherwise. glibc keeps freed arrays instead of unmapping them
(off with ``TAPEWRIGHT_MALLOC=0`` in the environment), and NumPy's OpenBLAS uses AVX-512
where the CPU has it (off with ``TAPEWRIGHT_BLAS_KERNELS=0``). A call switches later.
``show()`` prints what was done and, where nothing was, why. Leans on NumPy and ctypes,
which NumPy loads itself. The passes that make traced functions fast are switched here,
too.
"""

import contextlib
import functools
import os
import sys

import numpy as np

try:
    import ctypes
except ImportError:  # a Python built without libffi: nothing is tuned
    ctypes = None

__all__ = [
    "apply_defaults",
    "functions_run_eagerly",
    "graph_pass_is_on",
    "graph_passes",
    "offer_graph_pass",
    "plans_are_verified",
    "report",
    "run_functions_eagerly",
    "set_blas_kernels",
    "set_graph_passes",
    "set_malloc",
    "show",
]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
# OpenBLAS's names of kernel sets, with the CPU flags their code takes for granted.
KERNELS = {"Sandybridge": ("avx",), "Haswell": ("avx2", "fma"), "SkylakeX": AVX512}
CORETYPE = "OPENBLAS_CORETYPE"
VARIABLES = (
    *("TAPEWRIGHT_MALLOC", "TAPEWRIGHT_BLAS_KERNELS", "TAPEWRIGHT_BLAS_CALLS"),
    *("TAPEWRIGHT_VERIFY",),
    *("LD_PRELOAD", "GLIBC_TUNABLES"),
    *("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", CORETYPE),
    *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"),
)

_malloc = {"tuned": False, "note": "not asked for"}
_kernels = {"switched": False, "note": "not asked for"}
_calls = {"note": lambda: "none"}  # `blas` puts its own in place
_run_eagerly = False  # what is decorated with `function`
_passes = {}  # name -> whether it is on, in the order in which they run
_verify = os.environ.get("TAPEWRIGHT_VERIFY", "0") not in ("", "0")


class _NotDone(RuntimeError):
    """A setting was left as it is; the message says why."""


@functools.cache
def apply_defaults() -> None:
    """Make the default settings, once per process; ``import tapewright`` calls this.

    Raises: nothing because of a setting; what kept one from being made is noted for
    ``show``.

    >>> from tapewright import config
    >>> config.apply_defaults()
    """
    for setting, make in (_malloc, _default_malloc), (_kernels, _default_kernels):
        try:
            make()
        except (_NotDone, OSError, AttributeError, ValueError) as reason:
            setting["note"] = str(reason)


def set_malloc(tuned: bool = True) -> None:
    """Let the C library keep freed memory for the next array, or give it back again.

    By default glibc maps large arrays one by one and returns a freed block to the
    kernel. Each new temporary then faults its pages in again, which costs more than the
    arithmetic on it. Tuned, blocks up to 32 MB come from the heap, and the heap shrinks
    only once 256 MB at its end are free: the process may hold that much more memory.

    Args: ``tuned``: False sets both thresholds to glibc's initial 128 KB and releases
    what is free now. glibc's own adjusting of them, ended by the first call, does not
    come back; ``TAPEWRIGHT_MALLOC=0`` before import leaves it alone.
    Raises: ``RuntimeError`` where malloc is not glibc's.
    Reference: mallopt(3) and malloc_trim(3) of the Linux manual.

    >>> from tapewright import config
    >>> config.set_malloc(True)  # doctest: +SKIP
    """
    libc = _glibc()
    mapped, kept = (32 * 1024, 256 * 1024) if tuned else (128, 128)  # KB
    for option, size in (M_MMAP_THRESHOLD, mapped), (M_TRIM_THRESHOLD, kept):
        if libc.mallopt(option, size * 1024) != 1:
            raise _NotDone(f"malloc refused a threshold of {size} KB")
    if not tuned:
        libc.malloc_trim(0)
    note = f"mmap threshold {mapped} KB, trim threshold {kept} KB"
    _malloc.update(tuned=bool(tuned), note=note)


def plans_are_verified() -> bool:
    """Return whether plans of traced functions are verified: ``TAPEWRIGHT_VERIFY=1``.

    A verifier then follows, after each step of planning, which value each piece of
    memory holds, and raises ``VerificationError`` where an instruction would read
    another. It costs time when a function is traced, and nothing when it is off.
    """
    return _verify


def _glibc():
    """The C library, where it is glibc and serves malloc."""
    preload = os.environ.get("LD_PRELOAD", "")
    if any(name in preload for name in ("jemalloc", "tcmalloc", "mimalloc")):
        raise _NotDone(f"malloc is not glibc's: LD_PRELOAD={preload}")
    if sys.platform != "linux" or not _known(os.confstr, "CS_GNU_LIBC_VERSION"):
        raise _NotDone("malloc can be tuned with glibc only")
    return _load(None)


def _default_malloc():
    _stop_if_switched_off("TAPEWRIGHT_MALLOC")
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    for name in ("mmap_threshold", "trim_threshold"):
        if f"MALLOC_{name.upper()}_" in os.environ or f"malloc.{name}=" in tunables:
            raise _NotDone(f"left alone: the environment sets malloc's {name}")
    set_malloc(True)


def set_blas_kernels(core: str | None) -> None:
    """Let NumPy's OpenBLAS compute with the kernels it holds for ``core``.

    OpenBLAS chooses by CPU model and may take AVX2 kernels on a CPU with AVX-512, at
    half the speed. The choice is made anew in the loaded library, then products are
    compared with those of the kernels before; a doubt switches back. Call it while no
    other thread computes. The environment stays as it is, so that a new process chooses
    for itself; a forked one inherits the choice.

    Args: ``core``: ``"SkylakeX"`` (AVX-512), ``"Haswell"`` (AVX2), ``"Sandybridge"``
    (AVX), or None for the library's own choice.
    Raises: ``ValueError`` for another name; ``RuntimeError`` where the CPU or the
    library lacks these kernels or the products disagree, with nothing changed.
    Reference: OpenBLAS, ``driver/others/dynamic.c``.

    >>> from tapewright import config
    >>> config.set_blas_kernels("Pentium")
    Traceback (most recent call last):
    ValueError: set_blas_kernels: core must be Sandybridge, Haswell, SkylakeX or None;
      received 'Pentium'.
    """
    if core is not None and core not in KERNELS:
        raise ValueError(
            f"set_blas_kernels: core must be {', '.join(KERNELS)} or None;"
            f"\n  received {core!r}."
        )
    if missing := [flag for flag in KERNELS.get(core, ()) if flag not in _cpu_flags()]:
        raise _NotDone(f"{core} kernels need a CPU with {', '.join(missing)}")
    before, products = _core(), _products()
    _choose_kernels(core)
    now = _core()
    right = all(map(np.array_equal, products, _products()))
    if not right or core not in (None, now):
        _choose_kernels(before)
        fault = f"gave {now} kernels" if right else "computed other products"
        raise _NotDone(f"switched back to {before}: asked for {core}, OpenBLAS {fault}")
    note = "OpenBLAS's own choice" if core is None else f"{before} -> {now}"
    _kernels.update(switched=core is not None, note=note)


def _products():
    """Products of small integers, exact in any order: kernels must agree to the bit.

    They are computed by one thread: beside other programs, waking the rest takes longer.
    """
    products = []
    numbers = np.resize(np.arange(-8, 9), (113, 104))
    threads = _openblas("openblas_get_num_threads")()
    _openblas("openblas_set_num_threads")(1)
    try:
        for dtype in (np.float32, np.float64):
            a = numbers.astype(dtype)
            b = a.reshape(104, 113)
            products += [
                a @ b,  # gemm
                a @ a.T,  # syrk
                a @ b[:, 0],  # gemv
                b[0] @ b[0],  # dot
                a[:33, :70] @ b[:70, :9],  # gemm for small matrices
            ]
    finally:
        _openblas("openblas_set_num_threads")(threads)
    return products


def _choose_kernels(core):
    """Run OpenBLAS's choice of kernels again, with ``core`` prescribed unless None."""
    names = "gotoblas_dynamic_quit", "openblas_read_env", "gotoblas_dynamic_init"
    steps = [_openblas(name) for name in names]
    users = os.environ.get(CORETYPE)
    if core is not None:
        os.environ[CORETYPE] = core
    try:
        for step in steps:
            step()
    finally:
        if users is not None:
            os.environ[CORETYPE] = users
        else:
            os.environ.pop(CORETYPE, None)


def _default_kernels():
    _stop_if_switched_off("TAPEWRIGHT_BLAS_KERNELS")
    if CORETYPE in os.environ:
        raise _NotDone(f"left alone: {CORETYPE}={os.environ[CORETYPE]}")
    if (core := _core()) not in ("Haswell", "Zen"):
        raise _NotDone(f"not needed: OpenBLAS chose {core}")
    if not _cpu_flags().issuperset(AVX512):
        raise _NotDone("not needed: the CPU has no AVX-512")
    # Between two of its steps the choice is void, and a product elsewhere would crash.
    if len(sys._current_frames()) > 1:
        raise _NotDone(
            "left alone: other threads run; while they rest, call"
            " tw.config.set_blas_kernels('SkylakeX')"
        )
    set_blas_kernels("SkylakeX")


def set_graph_passes(every: bool | None = None, /, **switches: bool) -> None:
    """Switch passes over the graphs of traced functions on or off.

    A pass changes how a trace is computed, not its results. Three passes add in another
    order, so that results may differ by rounding: ``pool_first`` and
    ``cropped_convolutions``, for max pooling, and ``shared_weights``, which is off until it
    is switched on. The others keep every bit. Plans made before stay as they are.

    Args: ``every``: True or False for all passes; then single ones by name.
    Raises: ``ValueError`` for a name that is none of a pass.

    >>> from tapewright import config
    >>> config.set_graph_passes(False, dead_nodes=True)
    >>> [name for name, on in config.report()["graph_passes"].items() if on]
    ['dead_nodes']
    >>> config.set_graph_passes(True, shared_weights=False)
    """
    if unknown := switches.keys() - _passes.keys():
        raise ValueError(
            f"set_graph_passes: there is no pass {', '.join(sorted(unknown))};"
            f"\n  the passes are {', '.join(_passes)}."
        )
    if every is not None:
        _passes.update(dict.fromkeys(_passes, bool(every)))
    _passes.update({name: bool(on) for name, on in switches.items()})


@contextlib.contextmanager
def graph_passes(every: bool | None = None, /, **switches: bool):
    """`set_graph_passes`, until the end of the block.

    >>> from tapewright import config
    >>> with config.graph_passes(common_subexpressions=False):
    ...     config.report()["graph_passes"]["common_subexpressions"]
    False
    """
    before = dict(_passes)
    set_graph_passes(every, **switches)
    try:
        yield
    finally:
        _passes.update(before)


def offer_graph_pass(name: str, on: bool = True) -> None:
    """Make a pass known by name, on or off until it is switched."""
    _passes.setdefault(name, on)


def graph_pass_is_on(name: str) -> bool:
    """Whether a pass is to be made."""
    return _passes[name]


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Let traced functions run as plain Python, to look inside them; False: as ever.

    Traces that were made before stay.

    >>> from tapewright import config
    >>> config.run_functions_eagerly(True)
    >>> config.functions_run_eagerly()
    True
    >>> config.run_functions_eagerly(False)
    """
    global _run_eagerly
    _run_eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """What `run_functions_eagerly` was told last."""
    return _run_eagerly


def _stop_if_switched_off(name):
    if os.environ.get(name, "").lower() in ("0", "off", "false", "no"):
        raise _NotDone(f"off: {name}={os.environ[name]}")


def _load(path, mode=0):
    """A loaded library, whose functions are called with the GIL held."""
    if ctypes is None:
        raise _NotDone("this Python has no ctypes")
    return ctypes.PyDLL(path, mode=mode)


@functools.cache
def _openblas(name):
    """Function ``name`` of the OpenBLAS that NumPy computes with.

    A symbol is looked up in NumPy's extension and in all it is linked to: that finds
    this copy of the library among several, and NOLOAD never loads another.
    """
    extension = _numpy_extension()
    if extension is None or not hasattr(os, "RTLD_NOLOAD"):
        raise _NotDone("NumPy's BLAS library is not within reach")
    library = _load(extension.__file__, mode=os.RTLD_NOLOAD)
    for prefix in ("", "scipy_"):  # NumPy's wheels rename what OpenBLAS exports
        for suffix in ("", "64_"):
            if function := getattr(library, f"{prefix}{name}{suffix}", None):
                return function
    raise _NotDone(f"NumPy's BLAS has no {name}: not OpenBLAS, or built for one CPU")


def _text(name):
    function = _openblas(name)
    function.restype = ctypes.c_char_p
    return function().decode()


def _core():
    return _text("openblas_get_corename")


@functools.cache
def _cpu_flags():
    """Linux's flags of the first processor, less those that NumPy finds unusable.

    NumPy asks the CPU itself, and there valgrind and emulators hide what they lack.
    """
    try:
        with open("/proc/cpuinfo") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        flags = ""
    usable = getattr(_numpy_extension(), "__cpu_features__", {})
    return frozenset(f for f in flags.split() if usable.get(f.upper(), True))


def _numpy_extension():
    return sys.modules.get("numpy._core._multiarray_umath")


def report() -> dict:
    """What ``show`` prints, as a dict of strings, numbers, lists and dicts.

    A value that cannot be known here is None.

    >>> from tapewright import config
    >>> sorted(config.report())  # doctest: +ELLIPSIS
    ['blas', 'cpu_flags', 'cupy', 'environment', 'graph_passes', 'malloc', ...]
    >>> sorted(config.report()["blas"])
    ['calls', 'config', 'core', 'library', 'note', 'switched', 'threads']
    """
    blas = {
        "library": _known(_library),
        "config": _known(_text, "openblas_get_config"),
        "core": _known(_core),
        "threads": _known(lambda: _openblas("openblas_get_num_threads")()),
    }
    vectors = [f for f in _cpu_flags() if f.startswith(("avx", "fma", "amx"))]
    return {
        "tapewright": _version(),
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "cupy": _cupy(),
        "blas": blas | _kernels | {"calls": _calls["note"]()},
        "malloc": dict(_malloc),
        "graph_passes": dict(_passes),
        "cpu_flags": sorted(vectors),
        "environment": {name: os.environ.get(name) for name in VARIABLES},
    }


def _known(function, *args):
    try:
        return function(*args)
    except (_NotDone, OSError, AttributeError, ValueError):
        return None


def _library():
    """File name of the loaded OpenBLAS: the mapping that holds one of its functions."""
    function = _openblas("openblas_get_config")
    address = ctypes.cast(function, ctypes.c_void_p).value
    with open("/proc/self/maps") as mappings:
        for line in mappings:
            low, _, high = line.split(None, 1)[0].partition("-")
            if int(low, 16) <= address < int(high, 16):
                return os.path.basename(line.rstrip())
    return None


def _version():
    from importlib import metadata  # slow to import, and only the report needs it

    try:
        return metadata.version("tapewright")
    except metadata.PackageNotFoundError:
        return "unknown"


def _cupy():
    """Presence of CuPy, found without importing it: that may take seconds."""
    from importlib import util

    cupy = sys.modules.get("cupy")
    if cupy is None:
        found = _known(util.find_spec, "cupy")
        return "installed, not imported" if found else "not installed"
    try:
        return f"{cupy.__version__}, devices: {cupy.cuda.runtime.getDeviceCount()}"
    except (RuntimeError, AttributeError) as error:  # CUDA's errors are RuntimeErrors
        return f"imported, devices unknown: {error}"


def show(file=None) -> None:
    """Print versions, BLAS, malloc, CPU flags and environment switches, aligned.

    Args: ``file``: where to, like that of ``print``.

    >>> from tapewright import config
    >>> config.show()  # doctest: +ELLIPSIS
    tapewright ...
    """
    facts = report()
    blas, malloc = facts["blas"], facts["malloc"]
    variables = [f"{k}={v}" for k, v in facts["environment"].items() if v is not None]
    off = [name for name, on in facts["graph_passes"].items() if not on]
    lines = {
        "tapewright": facts["tapewright"],
        "Python": facts["python"],
        "NumPy": facts["numpy"],
        "CuPy": facts["cupy"],
        "BLAS": blas["library"] or "not OpenBLAS, or not within reach",
        "  built as": blas["config"] or "unknown",
        "  kernels": f"{blas['core'] or 'unknown'} ({blas['note']})",
        "  called": blas["calls"],
        "  threads": blas["threads"] or "unknown",
        "malloc": f"{'tuned' if malloc['tuned'] else 'not tuned'} ({malloc['note']})",
        "graph passes": f"all but {', '.join(off)}" if off else "all on",
        "CPU flags": " ".join(facts["cpu_flags"]) or "unknown",
        "environment": " ".join(variables) or "none set",
    }
    for name, value in lines.items():
        print(f"{name:<12} {value}", file=file)
