"""`Tape`: the interpreter that records ops with the residuals of their gradients."""

from . import hooks
from .dtypes import DIFFERENTIABLE
from .interpreters import Interpreter, active_interpreters, process_op
from .messages.provenance import Provenance, attach_provenance, merge_provenance
from .messages.source_lines import user_line
from .record import Pullback
from .tensor import next_key


class Tape(Interpreter):
    """A tape: keys of tracked tensors, records of ops, and variables read."""

    __slots__ = (
        "known",
        "leaves",
        "records",
        "reads",
        "variables",
        "keys_of",
        "accessed",
        "untracked_inputs",
        "exports",
        "assigned",
        "forgotten",
        "lines",
        "confluent",
    )
    takes_records = True

    def __init__(self, accessed=True):
        self.known = set()
        self.leaves = set()  # keys of watched tensors and reads of variables
        self.records = []
        self.reads = {}  # id of a variable -> the tensor of its latest read
        self.variables = {}  # id -> variable, for all that are watched
        self.keys_of = {}  # id -> keys of all reads
        self.accessed = accessed  # watch trainable variables when they are read
        # For `explain` only, beside the records:
        self.untracked_inputs = []  # (key of an output, `Provenance` of an input)
        self.exports = []  # (key, how, line): conversions to NumPy or Python
        # (id, serial number and path of a variable, key of its new value, method, line)
        self.assigned = []
        self.forgotten = None  # after a reset: (the newest key then, ids of variables)
        self.lines = None  # key of an output -> the user's line
        # [op, input, outputs, order] of factorizations whose values may coincide, see
        # `autodiff.confluence`; ``order`` counts the gradients that have a part of it
        self.confluent = []

    def copied(self):
        """Return a copy, which is not affected by later records of this tape."""
        twin = Tape(self.accessed)
        for name in ("known", "leaves", "records", "reads", "variables"):
            setattr(twin, name, getattr(self, name).copy())
        twin.confluent = [[*entry] for entry in self.confluent]
        twin.keys_of = {name: [*keys] for name, keys in self.keys_of.items()}
        twin.lines = None if self.lines is None else dict(self.lines)
        return twin

    def without_arrays(self):
        """A copy for explanations: records without residuals, and no variable or tensor."""
        twin = Tape(self.accessed)
        for name in ("known", "leaves", "keys_of"):
            setattr(twin, name, getattr(self, name).copy())
        for name in ("untracked_inputs", "exports", "assigned"):
            setattr(twin, name, getattr(self, name).copy())
        twin.variables = dict.fromkeys(self.variables)
        twin.forgotten = self.forgotten
        twin.records = [_head(record) for record in self.records]
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
            if not (self.accessed and variable._tw_is_accessible):
                return
            self.watch_variable(variable)
        self.reads[name] = tensor
        if tensor.array.dtype.kind in DIFFERENTIABLE and tensor.key not in self.leaves:
            self.watch(tensor)
            self.keys_of[name].append(tensor.key)

    def process(self, op, inputs, attributes, below):
        if below:
            outputs = process_op(op, inputs, attributes, below)
        else:
            outputs = op.run(inputs, attributes)
        self.record(op, inputs, attributes, outputs)
        return outputs

    def process_record(self, record, outputs, below):
        """Append the record of a whole call with these outputs."""
        self.known.update(
            [x.key for x in outputs if x.array.dtype.kind in DIFFERENTIABLE]
        )
        self.records.append(record)

    def record(self, op, inputs, attributes, outputs):
        """Append a record if an input is tracked and the output can have a gradient."""
        known = self.known
        if op.non_differentiable:
            names = op.names(inputs)
            tracked = [
                x.key in known and name not in op.non_differentiable
                for x, name in zip(inputs, names)
            ]
        else:
            tracked = [x.key in known for x in inputs]
        if True not in tracked:
            for x in inputs:
                if x.key is not None:
                    attach_provenance(op, inputs, outputs, self)
                    break
            return
        if type(outputs) is tuple:
            for out in outputs:
                if type(out.key) is not int:
                    out.key = next_key()
                if out.array.dtype.kind in DIFFERENTIABLE:
                    known.add(out.key)
            if op.confluent_rules is not None:
                self.confluent.append([op, inputs[0], outputs, 0])
        elif outputs.array.dtype.kind in DIFFERENTIABLE:
            if type(outputs.key) is not int:
                outputs.key = next_key()
            known.add(outputs.key)
        else:
            attach_provenance(op, inputs, outputs, self)
            return
        if False in tracked:
            for x, is_tracked in zip(inputs, tracked):
                if not is_tracked and x.key is not None:
                    self._record_untracked(op, inputs, outputs, tracked)
                    break
        recorder = op.recorders[tuple(tracked)]
        self.records.append(recorder(attributes, outputs, *inputs))

    def _record_untracked(self, op, inputs, outputs, tracked):
        """Save the `Provenance` of untracked inputs."""
        beside = [x.key for x, is_tracked in zip(inputs, tracked) if not is_tracked]
        lost = merge_provenance(op, self, beside)
        if lost is not None:
            first = outputs[0] if type(outputs) is tuple else outputs
            self.untracked_inputs.append((first.key, lost))

    def before_assign(self, variable, method, key):
        if type(key) is Provenance or key in self.known:
            name = id(variable), variable._tw_serial, variable.path
            self.assigned.append((*name, key, method, user_line()))

    def forget(self):
        """Drop all records and watched values."""
        variables = set(self.variables) | (self.forgotten or (0, set()))[1]
        self.__init__(self.accessed)
        self.forgotten = next_key(), variables


def _head(record):
    """The record without residuals, and with names alone of a function that it calls."""
    pullback, output, inputs = record[:3]
    if pullback.op is None:
        pullback = Pullback(pullback.name)
    return pullback, output, inputs


class TapeWithLines(Tape):
    """A tape that also records the user's line of each op."""

    __slots__ = ()

    def __init__(self, accessed=True):
        super().__init__(accessed)
        self.lines = {}

    def record(self, op, inputs, attributes, outputs):
        count = len(self.records)
        super().record(op, inputs, attributes, outputs)
        if len(self.records) > count:
            _, output, *_ = self.records[-1]
            self.lines[output] = user_line()


@hooks.export.fill
def _record_export(tensor, how):
    """Record a conversion to NumPy or Python on the tapes that track the tensor."""
    for interpreter in active_interpreters():
        if isinstance(interpreter, Tape) and (
            type(tensor.key) is Provenance or tensor.key in interpreter.known
        ):
            interpreter.exports.append((tensor.key, how, user_line()))
