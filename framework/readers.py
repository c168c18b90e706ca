"""Readers: who sees an op when it is called, and what a tape keeps of it.

The active reader of a thread (of a context, to be exact) is one of

    None          nobody: the op just runs
    `Recording`   one tape
    `BARE`        a backward walk that nobody records: arrays in, arrays out
    `Readers`     several, or others (a batcher, a tracer); the innermost sees the op first
"""

from contextvars import ContextVar

from .tensor import next_key

__all__ = [
    "BARE",
    "Reader",
    "Readers",
    "Recording",
    "active_reader",
    "active_readers",
    "perform",
    "reading",
    "set_readers",
]

_READER = ContextVar("reader", default=None)
active_reader = _READER.get


class Reader:
    """Something that sees every op while it is active."""

    __slots__ = ()
    sees_plain = True  # ops on tensors of the class Tensor itself, too

    def read(self, op, inputs, attributes, below):
        """The outputs of the op; ``below`` are the readers under this one."""
        return perform(op, inputs, attributes, below)

    def read_variable(self, variable, tensor):
        """Told of every read of a Variable; ``tensor`` is what the read returns."""


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
    )

    def __init__(self, accessed=True):
        self.known = set()
        self.leaves = set()  # watched tensors and reads of variables: where paths start
        self.records = []
        self.reads = {}  # id of a variable -> the tensor of its latest read
        self.variables = {}  # id -> variable, for all that are watched
        self.keys_of = {}  # id -> keys of all reads
        self.accessed = accessed  # watch trainable variables when they are read

    def watch(self, tensor):
        if tensor.key is None:
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
            return
        if type(outputs) is tuple:
            for out in outputs:
                if out.key is None:
                    out.key = next_key()
                if out.array.dtype.kind in "fc":
                    known.add(out.key)
        elif outputs.array.dtype.kind in "fc":
            if outputs.key is None:
                outputs.key = next_key()
            known.add(outputs.key)
        else:
            return
        tracked = tuple(tracked)
        pack = op.packs.get(tracked) or op.adjoint(tracked)
        self.records.append(pack(attributes, outputs, *inputs))


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
