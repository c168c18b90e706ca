"""Readers: who sees an op when it is called, and what a tape keeps of it.

The active reader of a thread (of a context, to be exact) is one of

    None          nobody: the op just runs
    `Recording`   one tape
    `BARE`        a backward walk that nobody records: arrays in, arrays out
    `Readers`     several, or others (a batcher, a tracer); the innermost sees the op first
"""

import sys
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

import numpy as np

from . import tensor as tensors
from .tensor import next_key

__all__ = [
    "BARE",
    "LinedRecording",
    "Lost",
    "Origin",
    "Reader",
    "Readers",
    "Recording",
    "active_reader",
    "active_readers",
    "active_tracer",
    "astray",
    "line_of_error",
    "lines_wanted",
    "paused",
    "perform",
    "reading",
    "set_readers",
    "stamp",
    "trace_lines",
    "user_line",
]

_READER = ContextVar("reader", default=None)
active_reader = _READER.get


# ------------------------------------------------------------ what a tape loses sight of

# While tapes pause in this context: how many.
paused = ContextVar("paused", default=0)

_OURS = str(Path(__file__).parents[1])
_OTHERS = (  # beside it in a clone; inside it when installed
    *[str(Path(_OURS).parent / folder) for folder in ("layers", "optimizers")],
    str(Path(np.__file__).parent),  # it is called with tensors, and asks them back
)
_lines_wanted = False


class Origin(NamedTuple):
    """A tracked tensor (``key``) from which a tensor came that a tape does not know.

    ``reason`` is "outside" or "stop_recording" (nobody recorded the op), "stop_gradient"
    or "no_derivative" (the op lets no gradient pass), or "variable": ``key`` is then the
    serial number, ``op`` the path of a Variable that was read while no tape watched it.
    """

    reason: str
    key: object
    op: str = ""
    line: str | None = None


class Lost:
    """Stands for the key of a tensor that is on no tape: whence it came."""

    __slots__ = ("origins",)
    MOST = 16  # origins that are remembered

    def __init__(self, origins):
        self.origins = tuple(dict.fromkeys(origins))[: Lost.MOST]

    def within(self, other):
        """Whether the other one tells all that this one does."""
        for origin in self.origins:
            if origin not in other.origins:
                return False
        return True


def astray(op, reader, keys):
    """The key of an output that is on no tape: None, or a `Lost` if an input tells more."""
    found = None
    for key in keys:
        if key is None or key is found:
            continue
        if type(key) is not Lost:
            return _gathered(op, reader, keys)
        if found is None or found.within(key):
            found = key
        elif not key.within(found):
            return _gathered(op, reader, keys)
    return found


def _gathered(op, reader, keys):
    origins, line = [], None
    for key in keys:
        if type(key) is Lost:
            origins += key.origins
            continue
        if key is None or (reader is not None and key not in reader.known):
            continue
        if reader is None:
            reason = "stop_recording" if paused.get() else "outside"
        else:
            reason = "stop_gradient" if op.name == "stop_gradient" else "no_derivative"
        line = line or user_line()
        origins.append(Origin(reason, key, op.name, line))
    return Lost(origins) if origins else None


def stamp(op, inputs, outputs, reader=None):
    """Gives outputs that are on no tape the key by which their loss can be explained."""
    lost = astray(op, reader, [x.key for x in inputs])
    if lost is not None:
        for out in outputs if type(outputs) is tuple else (outputs,):
            if out.key is None:
                out.key = lost


def lines_wanted():
    """Whether records and losses remember the line of the user's code."""
    return _lines_wanted


def trace_lines(wanted):
    """Sets `lines_wanted`, for tapes to come."""
    global _lines_wanted
    _lines_wanted = wanted


def user_line(always=False):
    """ "file:line" of the innermost caller outside of tapewright; None unless wanted."""
    if not (always or _lines_wanted):
        return None
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_OURS, *_OTHERS)):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def line_of_error(error):
    """ "file:line" of the innermost place outside of tapewright that an error went through.

    None if there is none.
    """
    found, step = None, error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        if not name.startswith((_OURS, *_OTHERS)):
            found = f"{name}:{step.tb_lineno}"
        step = step.tb_next
    return found


def _exported(tensor, how):
    """Tells the tapes that know a tensor that its value left for NumPy or Python."""
    for reader in active_readers():
        if isinstance(reader, Recording) and (
            type(tensor.key) is Lost or tensor.key in reader.known
        ):
            reader.exports.append((tensor.key, how, user_line()))


tensors.export_hook = _exported


# ----------------------------------------------------------------------- the readers


class Reader:
    """Something that sees every op while it is active."""

    __slots__ = ()
    sees_plain = True  # ops on tensors of the class Tensor itself, too
    takes_calls = False  # is told of calls with a gradient of their own: `take_call`
    looks_on = False  # is told of the variables that are read, and wants no more
    traces = False  # writes ops down: a tensor under it may have no value yet

    def read(self, op, inputs, attributes, below):
        """The outputs of the op; ``below`` are the readers under this one."""
        return perform(op, inputs, attributes, below)

    def read_variable(self, variable, tensor):
        """Told of every read of a Variable; ``tensor`` is what the read returns."""

    def before_assign(self, variable, method, key):
        """Told before a Variable is assigned to; may refuse by raising.

        ``method`` is "assign", "assign_add" or "assign_sub", ``key`` that of the value.
        """


class _Bare(Reader):
    __slots__ = ()

    def __repr__(self):
        return "BARE"


BARE = _Bare()


class Recording(Reader):
    """What one tape knows: keys of tracked tensors, records, and variables read.

    A record is ``(adjoint, key of the output, keys of tracked inputs, residuals...)``.
    """

    __slots__ = (
        "known",
        "leaves",
        "records",
        "reads",
        "variables",
        "keys_of",
        "accessed",
        "losses",
        "exports",
        "assigned",
        "forgotten",
        "lines",
    )
    takes_calls = True

    def __init__(self, accessed=True):
        self.known = set()
        self.leaves = set()  # watched tensors and reads of variables: where paths start
        self.records = []
        self.reads = {}  # id of a variable -> the tensor of its latest read
        self.variables = {}  # id -> variable, for all that are watched
        self.keys_of = {}  # id -> keys of all reads
        self.accessed = accessed  # watch trainable variables when they are read
        # For `explain` only: what the paths of the tape do not show.
        self.losses = []  # (key of an output, `Lost` of an input)
        self.exports = []  # (key, how, line): values that left for NumPy or Python
        self.assigned = []  # (variable, key of the assigned value, method, line)
        self.forgotten = None  # after a reset: (the newest key then, ids of variables)
        self.lines = None  # key of an output -> the user's line

    def copied(self):
        """Another recording that knows the same, and goes its own way from here."""
        twin = Recording(self.accessed)
        for name in ("known", "leaves", "records", "reads", "variables"):
            setattr(twin, name, getattr(self, name).copy())
        twin.keys_of = {name: [*keys] for name, keys in self.keys_of.items()}
        twin.lines = None if self.lines is None else dict(self.lines)
        return twin

    def watch(self, tensor):
        if type(tensor.key) is not int:
            tensor.key = next_key()
        self.known.add(tensor.key)
        self.leaves.add(tensor.key)

    def watch_variable(self, variable):
        self.variables[id(variable)] = variable
        self.keys_of.setdefault(id(variable), [])

    def read_variable(self, variable, tensor):
        name = id(variable)
        if name not in self.variables:
            if not (self.accessed and variable.trainable):
                return
            self.watch_variable(variable)
        self.reads[name] = tensor
        if tensor.array.dtype.kind in "fc" and tensor.key not in self.leaves:
            self.watch(tensor)
            self.keys_of[name].append(tensor.key)

    def read(self, op, inputs, attributes, below):
        if below:
            outputs = perform(op, inputs, attributes, below)
        else:
            outputs = op.run(inputs, attributes)
        self.note(op, inputs, attributes, outputs)
        return outputs

    def take_call(self, record, outputs, below):
        """The record of a call with a gradient of its own, and what it gave."""
        self.known.update([x.key for x in outputs if x.array.dtype.kind in "fc"])
        self.records.append(record)

    def note(self, op, inputs, attributes, outputs):
        """Appends a record if an input is tracked and the output can carry a gradient."""
        known = self.known
        if op.flat:
            names = op.names(inputs)
            tracked = [
                x.key in known and name not in op.flat for x, name in zip(inputs, names)
            ]
        else:
            tracked = [x.key in known for x in inputs]
        if True not in tracked:
            for x in inputs:
                if x.key is not None:
                    stamp(op, inputs, outputs, self)
                    break
            return
        if type(outputs) is tuple:
            for out in outputs:
                if type(out.key) is not int:
                    out.key = next_key()
                if out.array.dtype.kind in "fc":
                    known.add(out.key)
        elif outputs.array.dtype.kind in "fc":
            if type(outputs.key) is not int:
                outputs.key = next_key()
            known.add(outputs.key)
        else:
            stamp(op, inputs, outputs, self)
            return
        if False in tracked:
            for x, is_tracked in zip(inputs, tracked):
                if not is_tracked and x.key is not None:
                    self._note_losses(op, inputs, outputs, tracked)
                    break
        tracked = tuple(tracked)
        pack = op.packs.get(tracked) or op.adjoint(tracked)
        self.records.append(pack(attributes, outputs, *inputs))

    def _note_losses(self, op, inputs, outputs, tracked):
        """Inputs beside the tracked ones that came from something tracked."""
        beside = [x.key for x, is_tracked in zip(inputs, tracked) if not is_tracked]
        lost = astray(op, self, beside)
        if lost is not None:
            first = outputs[0] if type(outputs) is tuple else outputs
            self.losses.append((first.key, lost))

    def before_assign(self, variable, method, key):
        if type(key) is Lost or key in self.known:
            self.assigned.append((variable, key, method, user_line()))

    def forget(self):
        """Nothing is recorded or watched any more."""
        variables = set(self.variables) | (self.forgotten or (0, set()))[1]
        self.__init__(self.accessed)
        self.forgotten = next_key(), variables


class LinedRecording(Recording):
    """A recording that remembers the user's line of each op."""

    __slots__ = ()

    def __init__(self, accessed=True):
        super().__init__(accessed)
        self.lines = {}

    def note(self, op, inputs, attributes, outputs):
        count = len(self.records)
        super().note(op, inputs, attributes, outputs)
        if len(self.records) > count:
            self.lines[self.records[-1][1]] = user_line()


class Readers(tuple):
    """Several readers, the innermost last."""

    __slots__ = ()
    sees_plain = True


def active_readers() -> tuple:
    """The readers of this thread, the innermost last."""
    reader = active_reader()
    if reader is None:
        return ()
    return reader if type(reader) is Readers else (reader,)


def active_tracer():
    """The innermost reader of this thread that writes ops down, or None."""
    reader = active_reader()
    if reader is None or type(reader) is Recording:
        return None
    for each in reversed(active_readers()):
        if each.traces:
            return each
    return None


def set_readers(readers):
    """Makes these the readers of this thread (context)."""
    _READER.set(
        None if not readers else readers[0] if len(readers) == 1 else Readers(readers)
    )


class reading:  # noqa: N801  (used as a statement)
    """``with reading(readers):`` these readers, and no others, see the ops inside."""

    __slots__ = ("readers", "outer")

    def __init__(self, readers):
        self.readers = readers

    def __enter__(self):
        self.outer = active_reader()
        set_readers(self.readers)

    def __exit__(self, *exc):
        _READER.set(self.outer)


def perform(op, inputs, attributes, readers):
    """The op on tensors, seen by these readers."""
    if not readers:
        return op.run(inputs, attributes)
    return readers[-1].read(op, inputs, attributes, readers[:-1])
