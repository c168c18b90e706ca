"""The target that traced functions are compiled for, and the threads of native code."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
from collections.abc import Callable, Iterator
from typing import Any, Literal

__all__ = [
    "MOST_THREADS",
    "autotune",
    "autotune_is_on",
    "current_product",
    "current_target",
    "follow_threads",
    "gpu_target_flaw",
    "offer_gpu_target",
    "offer_target",
    "set_target",
    "set_threads",
    "target_report",
    "threads",
    "use_target",
]

DEFAULT = "auto"
MOST_THREADS = 64
TARGETS = ("auto", "native", "numpy")

_offered = {}  # target -> why it cannot be used, or None; what it is; its product
_gpu: dict[str, Any] = {}  # "flaw": why functions on a GPU are not compiled, or None
_asked = {"target": None, "by": ""}  # by a call; None: see the environment
_autotune = {"on": False}
_threads = {"asked": None, "followers": []}


def set_target(name: Literal["auto", "native", "numpy"]) -> None:
    """Compile functions for a target from now on; those traced before do not change.

    ``"native"`` is machine code, made by LLVM; it needs the extra ``native``.
    ``"numpy"`` is calls of NumPy, which need nothing. Where there can be no machine
    code, and for parts of functions that have none, NumPy is called; ``show`` prints
    the reason. Functions on arrays of a GPU become CUDA graphs, unless the target is
    ``"numpy"``: then CuPy runs them op by op.

    Args: ``name``: ``"native"``, ``"numpy"`` or ``"auto"``, the default: native where
    available. ``TAPEWRIGHT_TARGET=numpy`` in the environment, before import, sets it,
    too.

    Raises: ``ValueError`` for another name.

    Example:
        >>> from tapewright import config
        >>> config.set_target("numpy")  # doctest: +SKIP
    """
    if name not in TARGETS:
        raise ValueError(f"set_target: name must be one of {_either()}, got {name!r}.")
    _asked.update(target=name, by="set_target")


@contextlib.contextmanager
def use_target(name: Literal["auto", "native", "numpy"]) -> Iterator[None]:
    """A context with the target of `set_target`.

    Raises: ``ValueError`` for an unknown name.

    Example:
        >>> from tapewright import config
        >>> with config.use_target("numpy"):
        ...     config.target()
        'numpy'
    """
    before = dict(_asked)
    set_target(name)
    try:
        yield
    finally:
        _asked.update(before)


def offer_target(
    name: str,
    flaw: Callable[[], str | None],
    description: Callable[[], str],
    product: Callable[[], Callable[[Any, Any], Any]],
) -> None:
    """Register a target: why it cannot be used here, or None, and what it is.

    ``product()`` returns its function of two large matrices, see `config.target_product`.
    """
    _offered[name] = (flaw, description, product)


def current_target(load: Callable[[], None]) -> Literal["native", "numpy"]:
    """Return the target of the next function; ``load`` offers targets if it is needed."""
    name, by = _wanted()
    if name == "numpy":
        return "numpy"
    load()
    return _decided(name, by)[0]


def current_product(load: Callable[[], None]) -> Callable[[Any, Any], Any] | None:
    """Return the product of the target of `current_target`; None if that is NumPy's."""
    name = current_target(load)
    return None if name == "numpy" else _offered[name][2]()


def offer_gpu_target(flaw: Callable[[Any], str | None]) -> None:
    """Register the target of functions on a GPU: ``flaw(xp)`` is why it cannot be used."""
    _gpu["flaw"] = flaw


def gpu_target_flaw(xp: Any, load: Callable[[], None]) -> str | None:
    """Return why functions on arrays of ``xp`` run op by op; None: they are compiled."""
    name, by = _wanted()
    if name == "numpy":
        return by
    load()
    return _gpu["flaw"](xp)


def decided_target() -> tuple[Literal["native", "numpy"], str]:
    """Return the target of the next function, and the reason for it."""
    name, by = _decided(*_wanted())
    return name, by or _offered[name][1]()


def _wanted():
    """The target that is asked for, and who asks."""
    name, by = _asked["target"], _asked["by"]
    if name is None:
        name = os.environ.get("TAPEWRIGHT_TARGET", "").lower() or DEFAULT
        by = "TAPEWRIGHT_TARGET=" + name
    return name, by


def _decided(name, by):
    if name == "numpy":
        return "numpy", by
    if name not in TARGETS:
        return "numpy", f"{by} is none of {_either()}"
    flaw, *_ = _offered["native"]
    reason = flaw()
    return ("numpy", reason) if reason else ("native", None)


def _either():
    return ", ".join([repr(each) for each in TARGETS])


def target_report() -> dict[str, Any]:
    """Return the target, the reason for it and the threads, for ``report``."""
    name, note = decided_target()
    on = autotune_is_on()
    return {"name": name, "note": note, "threads": threads(), "autotune": on}


def autotune(on: bool = True) -> None:
    """Choose the machine code of convolutions by running it, from the next function on.

    The loops of a convolution are cut into tiles, which a model of the CPU chooses: it
    is seldom far from the best. With ``on``, the six tiles that the model finds the
    fastest are compiled and timed, on the number of threads that is set, when a
    function is compiled: about a second for each convolution or gradient of other
    sizes. The fastest are noted in the cache folder, where the next process finds them
    without timing. Off is the default; functions that are compiled already do not
    change.

    Other tiles add in another order, so that results may differ by rounding from those
    of another machine, or of another run after the folder was cleared. On a GPU the
    algorithms of products are chosen in the same way, anew in each process. The NumPy
    target ignores the setting.

    Example:
        >>> from tapewright import config
        >>> config.autotune(True)
        >>> config.report()["target"]["autotune"]
        True
        >>> config.autotune(False)
    """
    _autotune["on"] = bool(on)


def autotune_is_on() -> bool:
    """Return the last setting of `autotune`."""
    return _autotune["on"]


def set_threads(n: int | None) -> None:
    """Let functions and large arrays use ``n`` threads; None sets the initial number.

    That is one for each processor that this process may use, or less if
    ``OPENBLAS_NUM_THREADS`` or ``OMP_NUM_THREADS`` sets it. Native code uses the
    threads, and NumPy's calls on parts of arrays of a million entries and more. Results
    do not depend on the number. Matrix products on the NumPy target follow the settings
    of its BLAS.

    Raises: ``ValueError`` if ``n`` is not from 1 to 64, ``TypeError`` if it is no
    integer.

    Example:
        >>> from tapewright import config
        >>> config.set_threads(1)
        >>> config.threads()
        1
        >>> config.set_threads(None)
    """
    if n is not None:
        try:
            n = operator.index(n)
        except TypeError:
            raise TypeError(
                f"set_threads: n must be an integer or None, got {n!r}"
            ) from None
        if not 1 <= n <= MOST_THREADS:
            raise ValueError(
                f"set_threads: n must be from 1 to {MOST_THREADS}, got {n}"
            )
    before, _threads["asked"] = threads(), n
    if threads() != before:
        for function in _threads["followers"]:
            function(threads())


def threads() -> int:
    """Return the number of threads that native code and large arrays use."""
    return _threads["asked"] or _first_threads()


def follow_threads(function: Callable[[int], object]) -> None:
    """Call a function with the number of threads each time that it changes."""
    _threads["followers"].append(function)


@functools.cache
def _first_threads():
    count = getattr(os, "process_cpu_count", os.cpu_count)() or 1
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        given = os.environ.get(name, "").strip()
        if given.isdecimal() and int(given) > 0:
            count = min(count, int(given))
            break
    return min(count, MOST_THREADS)
