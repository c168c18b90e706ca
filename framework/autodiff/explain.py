"""Explain gradients by the paths of a tape, and summarize the contents of a tape.

`explain` follows the records forwards from each source and backwards from the target. If
the two do not meet, `Provenance` and the other notes of the tape give the reason. After a
gradient that is None, `Remains` holds the data for this, without arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

from tapewright.core.hardware.devices import memory_owner
from tapewright.core.messages.provenance import Provenance
from tapewright.core.record import Pullback
from tapewright.core.tensor import Tensor
from tapewright.core.variable import Variable

_SHOWN = 10  # ops of a path that are shown
_LISTED = 3  # variables without a gradient that a message explains
_DIFFERENTIATED = Pullback("")  # for all records that a backward pass has used

REASONS = {
    "connected": "a gradient flows",
    "not_watched": "the tape does not watch the source",
    "not_floating": "only real and complex numbers have derivatives",
    "left_the_tape": "the value left for NumPy or Python",
    "stop_gradient": "stop_gradient is on every path",
    "stop_recording": "computed while the tape did not record",
    "reset": "the tape was reset",
    "rebound": "the source is a tensor that was computed from a variable",
    "assigned": "the value went through a variable's assign",
    "outside": "computed outside of the tape's context",
    "no_derivative": "an op without a derivative is on every path",
    "unrelated": "the target does not depend on the source",
}


class Explanation:
    """Reason why a gradient reaches one source, or why it does not.

    Args:
        source: Description of the source.
        reason: One of `REASONS`, for programs.
        text: Explanation for people.
        path: Names of the ops from the source to the target, or to the end of the path.
        line: Line of the user's code at that end; None unless
            ``debugging.enable_traceback`` is on.
    """

    __slots__ = ("source", "reason", "text", "path", "line")

    source: str
    reason: str
    text: str
    path: tuple[str, ...]
    line: str | None

    def __init__(
        self,
        source: str,
        reason: str,
        text: str,
        path: Iterable[str] = (),
        line: str | None = None,
    ):
        self.source, self.reason, self.text = source, reason, text
        self.path, self.line = tuple(path), line

    @property
    def connected(self) -> bool:
        """True if a gradient reaches the source."""
        return self.reason == "connected"

    def in_a_line(self, name: str) -> str:
        """Return it for a message, with the name that the source has there."""
        path = f"; path: {_shortened(self.path)}" if self.path else ""
        line = f", at {self.line}" if self.line else ""
        text = self.text.replace("the source", repr(name))
        return f"{name!r} ({self.reason}): {text}{path}{line}"

    def __repr__(self) -> str:
        lines = [f"{self.source}: {self.reason}", f"    {self.text}"]
        if self.path:
            lines.append(f"    path: {_shortened(self.path)}")
        if self.line:
            lines.append(f"    at {self.line}")
        return "\n".join(lines)


class Report(tuple[Explanation, ...]):
    """Tuple of the `Explanation` of each source, in the order of the flattened sources."""

    __slots__ = ()

    @property
    def reasons(self) -> list[str]:
        """List of the reasons, one for each source."""
        return [each.reason for each in self]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))


def _shortened(path):
    if len(path) > _SHOWN:
        half = _SHOWN // 2
        rest = f"... {len(path) - 2 * half} more ..."
        path = (*path[:half], rest, *path[-half:])
    return " -> ".join(path)


# ------------------------------------------------------------------------- explaining


def explain(tape, target, sources):
    """Return the `Report` on the gradient of one target with respect to these sources."""
    known = _Paths(tape, [target])
    return Report([known.why(i, source) for i, source in enumerate(sources)])


class _Target(NamedTuple):
    """Target without its array."""

    key: object
    dtype: object


class Remains:
    """Tape and targets of one call, without arrays, to explain its None gradients.

    A backward pass that releases the records leaves the heads of the unused ones (see
    `backward_pass`): every op behind a source whose gradient is None. A single record,
    from all keys that had a cotangent to the targets, represents the others.
    """

    __slots__ = ("tape", "targets")

    def __init__(self, tape, pairs, reached):
        self.tape = left = tape.without_arrays()
        self.targets = [_Target(tensor.key, tensor.dtype) for tensor, _ in pairs]
        used = left.known - left.leaves.difference(reached)
        used.difference_update(*[outs for _, outs, _ in map(_step, left.records)])
        ends = tuple([key for _, key in pairs if key is not None])
        left.records.append((_DIFFERENTIATED, ends, tuple(used)))

    def covers(self, target):
        """Return whether it explains this target: one of its targets, or one on no tape."""
        keys = _keys(self.tape, target) & self.tape.known
        return not keys or not keys.isdisjoint([each.key for each in self.targets])


def explain_missing(variables):
    """Return the reasons why variables had no gradient, for a message, one per line.

    It is empty if no tape has returned None for them.
    """
    paths, lines = {}, []
    explained = [
        v for v in variables if getattr(v, "_tw_unconnected", None) is not None
    ]
    for variable in explained[:_LISTED]:
        remains = variable._tw_unconnected
        known = paths.get(id(remains))
        if known is None:
            known = paths[id(remains)] = _Paths(remains.tape, remains.targets)
        reason = known.why(0, variable)
        if reason.connected:  # but the gradient was None
            text = "a gradient function on the path returned None"
            reason = Explanation(reason.source, "no_derivative", text, reason.path)
        lines.append("\n  " + reason.in_a_line(variable.path))
    if len(explained) > _LISTED:
        lines.append(f"\n  and {len(explained) - _LISTED} more")
    return "".join(lines)


class _Paths:
    """Paths of a tape that lead to one or several targets."""

    def __init__(self, tape, targets):
        self.tape, self.targets = tape, targets
        self.steps = [_step(record) for record in tape.records]
        self.ends = set().union(*[_keys(tape, each) for each in targets]) & tape.known
        self.behind = set(self.ends)  # keys on which the target depends
        for _, outs, ins in reversed(self.steps):
            if not self.behind.isdisjoint(outs):
                self.behind.update(ins)
        # Origins of the target that are not in the records.
        self.origins = []
        for each in targets:
            if not isinstance(each, Variable):
                self.origins += _origins(each.key)
        for key, lost in tape.untracked_inputs:
            if key in self.behind:
                self.origins += lost.origins

    # --- the answer for one source

    def why(self, index, source):
        label = _label(index, source)
        reason, text, path, line = self._why(source)
        return Explanation(label, reason, text, path, line)

    def _why(self, source):
        for what, value in (("source", source), ("target", self.targets[0])):
            if not value.dtype.is_differentiable:
                text = (
                    f"the {what} is {value.dtype.name}; only real and complex numbers "
                    "have derivatives: cast it first"
                )
                return "not_floating", text, (), None
        if source is self.targets[0]:
            return "connected", "the target is the source", (), None
        starts = _keys(self.tape, source)
        watched = starts & self.tape.known
        reached = self._reached(watched)
        end = min((k for k in self.ends if k in reached), default=None)
        if end is not None:
            return self._connected(reached, end)
        if not watched:
            return self._not_watched(source, starts)
        return (
            self._lost_on_the_way(source, reached)
            or self._assigned(reached)
            or self._exported(reached)
            or self._forgotten(self.targets[0])
            or self._unrelated()
        )

    def _connected(self, reached, end):
        path, pullbacks = _path(reached, end)
        for op in [pullback.op for pullback in pullbacks]:
            if op is not None and not op.rules and op.registered is None:
                text = (
                    f"the op {op.name} has no gradient: a call of gradient raises "
                    f"LookupError. RegisterGradient({op.type_name!r}) gives it one"
                )
                return "no_derivative", text, path, None
        return "connected", "the target depends on the source", path, None

    # --- the source is not on the tape

    def _not_watched(self, source, starts):
        forgotten = self._forgotten(source)
        if forgotten:
            return forgotten
        if isinstance(source, Variable):
            return self._unwatched_variable(source)
        for origin in _origins(source.key):
            if origin.reason == "variable":
                text = (
                    f"the source is a tensor, not a Variable: {origin.op!r} went through an "
                    "op while the tape did not watch it, as in `v = v + 1`. "
                    "Change a Variable with assign or assign_add, or watch the tensor"
                )
                return "rebound", text, (), origin.line
        text = (
            "tensors are not watched automatically: call tape.watch(source) before "
            "its use"
        )
        for origin in _origins(source.key):
            if origin.key in self.tape.known:
                reason = origin.reason
                return reason, self._text(origin, "the source"), (), origin.line
        return "not_watched", text, (), None

    def _unwatched_variable(self, source):
        tape = self.tape
        read_outside = self._was_read_outside(source)
        if id(source) in tape.variables:  # watched, but never read in the context
            return self._read_outside() if read_outside else self._unrelated()
        if not source._tw_is_accessible:
            text = (
                "the variable is not trainable: tape.watch(variable) watches it anyway"
            )
            return "not_watched", text, (), None
        if not tape.accessed:
            text = (
                "the tape was made with watch_accessed_variables=False: "
                "tape.watch(variable) watches this one"
            )
            return "not_watched", text, (), None
        exported = self._exported_variable(source)
        if exported:
            return exported
        if read_outside or not self.ends:
            return self._read_outside()
        return self._unrelated()

    def _was_read_outside(self, source):
        return isinstance(source, Variable) and any(
            o.reason == "variable" and o.key == source._tw_serial for o in self.origins
        )

    def _read_outside(self):
        text = (
            "the variable was not read while the tape recorded: compute the target "
            "inside the tape's context"
        )
        return "outside", text, (), None

    def _forgotten(self, value):
        if self.tape.forgotten is None:
            return None
        newest, variables = self.tape.forgotten
        if isinstance(value, Variable):
            was_known = id(value) in variables and id(value) not in self.tape.variables
        else:
            key = value.key
            was_known = type(key) is int and key < newest and key not in self.tape.known
        if not was_known:
            return None
        what = "target" if value is self.targets[0] else "source"
        text = f"reset() made the tape forget the {what}: compute (and watch) it anew"
        return "reset", text, (), None

    # --- the source is on the tape, but no path leads to the target

    def _lost_on_the_way(self, source, reached):
        if self._was_read_outside(source):
            return self._read_outside()
        for origin in self.origins:
            if origin.key in reached and origin.reason != "variable":
                path, _ = _path(reached, origin.key)
                text = self._text(origin, "a value on the way")
                return origin.reason, text, (*path, origin.op), origin.line
        return None

    def _text(self, origin, what):
        return {
            "stop_gradient": "stop_gradient lets no gradient pass",
            "stop_recording": f"{origin.op} ran inside stop_recording()",
            "outside": f"{origin.op} ran outside of the tape's context: {what} must be "
            "computed inside",
            "no_derivative": f"{origin.op} lets no gradient pass: its result is constant "
            "almost everywhere, or not of a floating dtype",
        }[origin.reason]

    def _assigned(self, reached):
        for name, serial, variable, key, method, line in self.tape.assigned:
            keys = {o.key for o in key.origins} if type(key) is Provenance else {key}
            start = next((k for k in keys if k in reached), None)
            if start is None or not self._depends_on(name, serial):
                continue
            path, _ = _path(reached, start)
            text = (
                f"the value went into the variable {variable!r} by {method}: a "
                "tape sees a variable's state, not its history. Keep the value as a "
                "tensor"
            )
            return "assigned", text, (*path, method), line
        return None

    def _depends_on(self, name, serial):
        """Return whether a target does on the variable of this id and serial number."""
        if any([getattr(each, "_tw_serial", None) == serial for each in self.targets]):
            return True
        keys = self.tape.keys_of.get(name, ())
        return not self.behind.isdisjoint(keys) or any(
            o.reason == "variable" and o.key == serial for o in self.origins
        )

    def _exported(self, reached):
        for key, how, line in self.tape.exports:
            if type(key) is not Provenance and key in reached:
                path, _ = _path(reached, key)
                return self._left(how, path, line)
        return None

    def _exported_variable(self, variable):
        for key, how, line in self.tape.exports:
            if type(key) is Provenance and any(
                o.reason == "variable" and o.key == variable._tw_serial
                for o in key.origins
            ):
                return self._left(how, (), line)
        return None

    def _left(self, how, path, line):
        text = (
            f"no path of ops leads to the target, but {how} took a value, which the "
            "tape does not record: use ops instead (reduce_mean for np.mean, ...)"
        )
        return "left_the_tape", text, (*path, how), line

    def _unrelated(self):
        text = "the target does not depend on the source"
        if not self.ends:
            text = (
                "the tape did not record the target: it is a constant, or was "
                "computed outside of the context or by NumPy"
            )
        return "unrelated", text, (), None

    def _reached(self, starts):
        """Return the keys that depend on ``starts``.

        They map to pairs of a pullback and the previous key; None for a start.
        """
        reached = dict.fromkeys(starts)
        for pullback, outs, ins in self.steps:
            before = next((key for key in ins if key in reached), None)
            if before is not None:
                for key in outs:
                    reached.setdefault(key, (pullback, before))
        return reached


def _step(record):
    """Return ``(pullback, keys of the outputs, keys of the tracked inputs)`` of a record."""
    pullback, output, inputs, *_ = record
    return pullback, output if type(output) is tuple else (output,), inputs


def _keys(tape, value):
    if isinstance(value, Variable):
        return set(tape.keys_of.get(id(value), ()))
    return {value.key} if type(value.key) is int else set()


def _origins(key):
    return list(key.origins) if type(key) is Provenance else []


def _path(reached, key):
    """Return the names of the calls that lead to a key, and their pullbacks."""
    pullbacks = []
    while reached[key] is not None:
        pullback, key = reached[key]
        pullbacks.append(pullback)
    pullbacks.reverse()
    names = [each.name for each in pullbacks if each is not _DIFFERENTIATED]
    return tuple(names), pullbacks


def _label(index, source):
    kind = "tensor"
    if isinstance(source, Variable):
        kind = f"variable {source.path!r}"
    return f"sources[{index}], {kind} {tuple(source.shape)} {source.dtype.name}"


# ------------------------------------------------------------------ contents of a tape


class Summary:
    """Contents of a tape; ``rows`` are ``(op, line, count, bytes)``, most bytes first."""

    __slots__ = ("rows", "records", "nbytes")

    def __init__(self, rows, records, nbytes):
        self.rows, self.records, self.nbytes = rows, records, nbytes

    def __repr__(self) -> str:
        lined = any(line for _, line, _, _ in self.rows)
        table = [("op", "count", "bytes", "line")]
        for op, line, count, size in self.rows:
            table.append((op, str(count), f"{size:,}", line or ""))
        table.append(("total", str(self.records), f"{self.nbytes:,}", ""))
        widths = [max(len(row[i]) for row in table) for i in range(3)]
        text = []
        for op, count, size, line in table:
            row = f"{op:<{widths[0]}}  {count:>{widths[1]}}  {size:>{widths[2]}}"
            text.append(f"{row}  {line}".rstrip() if lined else row)
        return "\n".join(text)


def summarize(tape):
    """Return the `Summary` of a tape: each array counts for the op that kept it first.

    Arrays of variables are not counted.
    """
    seen = {id(memory_owner(tensor.array)) for tensor in tape.reads.values()}
    rows = {}
    for pullback, output, _, *residuals in tape.records:
        name, size = pullback.name, 0
        for array in _arrays(residuals):
            root = memory_owner(array)
            if id(root) not in seen:
                seen.add(id(root))
                size += root.nbytes
        line = tape.lines.get(output) if tape.lines is not None else None
        count, total = rows.get((name, line), (0, 0))
        rows[name, line] = count + 1, total + size
    listed = [(op, line, count, size) for (op, line), (count, size) in rows.items()]
    listed.sort(key=lambda row: -row[3])
    return Summary(listed, len(tape.records), sum(row[3] for row in listed))


def _arrays(residuals):
    for value in residuals:
        if isinstance(value, Tensor):
            yield value.array
        elif isinstance(value, (tuple, list)):
            yield from _arrays(value)
        elif isinstance(value, dict):
            yield from _arrays(value.values())
        elif isinstance(value, functools.partial):  # of a call to be computed again
            yield from _arrays([value.args, value.keywords])
        elif hasattr(value, "inputs") and hasattr(value, "outputs"):  # an `OpCall`
            yield from _arrays([*value.inputs, *value.outputs])
