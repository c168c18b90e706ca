"""Provenance: the origins of a tensor that is not on a tape.

If such a tensor was computed from tensors on a tape, it has a `Provenance` in place of
its key. `GradientTape.explain` uses it to explain a None gradient.
"""

import functools
from contextvars import ContextVar
from typing import NamedTuple

from .source_lines import user_line

# The number of tapes that are paused (`stop_recording`) in this context.
paused = ContextVar("paused", default=0)


class Origin(NamedTuple):
    """A tracked tensor (``key``) whose track was lost at ``op``, and the reason.

    ``reason`` is "outside" or "stop_recording" (the op was not recorded),
    "stop_gradient" or "no_derivative" (the op passes no gradient), or "variable":
    ``key`` is then the serial number and ``op`` the path of a Variable that was read
    while no tape watched it.
    """

    reason: str
    key: object
    op: str = ""
    line: str | None = None


class Provenance:
    """The origins of a tensor that is not on a tape, in place of its key."""

    __slots__ = ("origins",)
    MOST = 16  # origins are kept

    def __init__(self, origins):
        self.origins = tuple(dict.fromkeys(origins))[: Provenance.MOST]

    def within(self, other):
        """Return whether the other has all origins of this object."""
        for origin in self.origins:
            if origin not in other.origins:
                return False
        return True


def merge_provenance(op, interpreter, keys):
    """Return the key of an output not on a tape: None, or its inputs' `Provenance`."""
    merged = None
    for key in keys:
        if key is None or key is merged:
            continue
        if type(key) is not Provenance:
            return _new_provenance(op, interpreter, keys)
        merged = key if merged is None else _union(merged, key)
    return merged


@functools.lru_cache(1024)
def _union(first, second):
    """Merge two: return the one that has all origins, or a new `Provenance`.

    A program joins the same variables in each of its steps.
    """
    if first.within(second):
        return second
    if second.within(first):
        return first
    return Provenance(first.origins + second.origins)


def _new_provenance(op, interpreter, keys):
    origins, line = [], None
    for key in keys:
        if type(key) is Provenance:
            origins += key.origins
            continue
        if key is None or (interpreter is not None and key not in interpreter.known):
            continue
        if interpreter is None:
            reason = "stop_recording" if paused.get() else "outside"
        else:
            reason = "stop_gradient" if op.name == "stop_gradient" else "no_derivative"
        line = line or user_line()
        origins.append(Origin(reason, key, op.name, line))
    return Provenance(origins) if origins else None


def attach_provenance(op, inputs, outputs, interpreter=None):
    """Set the `Provenance` of outputs not on a tape from their inputs."""
    provenance = merge_provenance(op, interpreter, [x.key for x in inputs])
    if provenance is not None:
        for out in outputs if type(outputs) is tuple else (outputs,):
            if out.key is None:
                out.key = provenance
