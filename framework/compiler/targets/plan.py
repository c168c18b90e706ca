"""From a program to the function that replays it: which memory, for how long.

Arrays that nobody sees but the plan lie in one arena, where memory is used again as soon
as its last interpreter is done; gradients that only an update reads lie in that update's
slots; what leaves the plan (outputs, values of variables) is new in each replay. The
function itself is written by `source`.
"""

import numpy as np

from tapewright.core import config
from tapewright.core.tensor import TensorSpec
from tapewright.core.variable import writing

from ..program import convolution_lowering, instruction_forms  # noqa: F401  (how some ops are written)
from ..program.blocks import odd_arrays
from ..program.buffers import ALIGNMENT, lay_out
from ..program.scheduling import put_back_on_failure
from ..program.verifier import verify_plan
from ..tracing.graph import is_value
from .numpy_source import LARGE, Buffer, EffectOf, Prepared, write

__all__ = ["LARGE", "Plan"]


class Plan:
    """A program with its buffers assigned, ready to be written out.

    ``instance()`` gives a function of the input arrays that returns a tuple of the output
    arrays. It owns its buffers: use each by one thread at a time. ``source`` is its text,
    ``lines`` has the call that each line of it is from, ``names`` the name of each array
    there, ``effects`` those of the functions of effects.
    """

    def __init__(self, program, name="replay"):
        self.program, self.name = program, name
        self.last = self._lifetimes()
        self.read_last = self._last_reads()
        self.escaping = self._escaping()
        self.odd = odd_arrays(self.program)
        self.places = {}  # root array -> (start, nbytes) in the arena
        self.slots = self._slots()  # root array -> (effect, number of its slot)
        self.arena_size = 0  # bytes
        self._assign()
        self.names, self.effects = {}, {}
        self.source, self.bound, self.lines = write(self)
        self.code = compile(self.source, f"<plan of {name}>", "exec")

    # --- lifetimes

    def _lifetimes(self):
        """For each root array the number of the last call that needs its memory."""
        calls, last = self.program.calls, {}
        end = len(calls)
        for array in self.program.outputs:
            last[array.root] = end
        for i in range(end - 1, -1, -1):
            call = calls[i]
            until = i
            if call.may_alias:
                until = max([last.get(out.root, i) for out in call.outputs], default=i)
            for array in call.arrays():
                last[array.root] = max(last.get(array.root, i), until)
            for out in call.outputs:
                last.setdefault(out.root, i)
        return last

    def _last_reads(self):
        """For each array the number of the last call that reads it by its own name.

        A register need not be held longer: what is a view of its array holds that, too.
        """
        end, last = len(self.program.calls), {}
        last.update(dict.fromkeys(self.program.outputs, end))
        for i, call in reversed([*enumerate(self.program.calls)]):
            for array in call.arrays():
                last.setdefault(array, i)
            for out in call.outputs:
                last.setdefault(out, i)
        return last

    def _escaping(self):
        """Root arrays whose memory outlives a replay: outputs, and values of variables."""
        escaping = {array.root for array in self.program.outputs}
        for call in self.program.calls:
            if call.form == "store":
                escaping.update([a.root for a in call.arrays()])
        for call in reversed(self.program.calls):
            if call.may_alias and any(o.root in escaping for o in call.outputs):
                escaping.update([a.root for a in call.arrays()])
        return escaping

    # --- buffers

    def _slots(self):
        """The arrays that an effect alone reads, written into memory that it owns."""
        slots = {}
        for i, call in enumerate(self.program.calls):
            if call.form != "effect" or not hasattr(call.function, "slots"):
                continue
            for number, slot in enumerate(call.function.slots()):
                array = call.args[number]
                root = array.root
                ends = self.last[root] == i and self._has_buffer(root)
                if slot is not None and root is array and ends:
                    slots.setdefault(array, (call, number))
        return slots

    def _has_buffer(self, root):
        """Whether an array is written into memory that the plan gives it."""
        made = root.call is not None and root.call.form in ("ufunc", "out", "block")
        return made and root not in self.escaping and root not in self.odd

    def _assign(self):
        """Gives each array with a buffer its place in the arena."""
        spans, inherited = {}, set()  # root array -> [first call, last call, bytes]
        for i, call in enumerate(self.program.calls):
            for a in call.arrays():
                if a.origin == "scratch":
                    spans[a] = [i, i, a.nbytes]
            for out in call.outputs:
                own = out.root is out and self._has_buffer(out)
                if not own or out in self.slots:
                    continue
                heir = self._heir(call, out, i, spans)
                if heir is None or heir in inherited:
                    spans[out] = [i, self.last[out], out.nbytes]
                else:  # what it takes over is needed for as long as itself
                    inherited.add(heir)
                    spans[out] = spans[heir]
                    spans[out][1] = self.last[out]
        single = list({id(span): span for span in spans.values()}.values())
        starts, self.arena_size = lay_out(single)
        start_of = {id(span): start for span, start in zip(single, starts)}
        for out, span in spans.items():
            self.places[out] = start_of[id(span)], out.nbytes

    def _heir(self, call, out, i, spans):
        """An argument that ends with call ``i``, in whose place the output may be."""
        overwrites = getattr(call.function, "overwrites", None)
        candidates = call.arrays() if call.form in ("ufunc", "block") else []
        if call.form == "block":
            candidates = [a for a in candidates if call.function.is_done_with(a, out)]
        if overwrites is not None:
            candidates = [call.args[overwrites]]
        for a in candidates:
            same = a.shape == out.shape and a.dtype == out.dtype
            if not (same and a in spans and self.last[a] == i) or a.origin == "scratch":
                continue
            twice = any([b.root is a and b is not a for b in call.arrays()])
            if not twice or isinstance(call.function, np.ufunc):  # which copies then
                return a
        return None

    # --- making it run

    def instance(self, replacing=None):
        """A replay function with buffers of its own.

        ``replacing`` maps calls of effects to functions that take their place.
        """
        block = np.empty(self.arena_size + ALIGNMENT, np.uint8)
        offset = -block.ctypes.data % ALIGNMENT
        own = {call: call.function.twin() for call, _ in self.slots.values()}
        effects = {**own, **(replacing or {})}
        scope = {}
        for name, value in self.bound.items():
            if type(value) is Buffer:
                value = self._buffer(value.array, block, offset, own)
            elif type(value) is EffectOf:
                value = effects.get(value.call, value.call.function)
            elif type(value) is Prepared:
                value = value.make(scope)
            scope[name] = value
        if config.plans_are_verified():
            verify_plan(self, scope)
        exec(self.code, scope)
        run = scope[self.source[4 : self.source.index("(")]]
        if config.plans_are_verified():
            run = _spoiling(run, block)
        run = put_back_on_failure(run, *self.program.kept)
        return run if self.program.borrows else _in_transaction(run, self.program)

    def _buffer(self, array, block, offset, own):
        if array in self.slots:
            call, number = self.slots[array]
            return own[call].slots()[number]
        start = self.places[array][0] + offset
        part = block[start : start + array.nbytes]
        return part.view(array.dtype).reshape(array.shape)

    def explained(self, error):
        """An exception in a replay as eager mode has it, with a note of the user's line."""
        call = self.blame(error)
        if call is None:
            return error
        node = call.node
        if node.op is not None:
            given = [x if is_value(x) else x.array for x in node.inputs]
            specs = [TensorSpec(x.shape, x.dtype) for x in given]
            error = node.op.explain_kernel(error, specs)
        error.add_note(f"in the op {node.name}, {node.line}")
        return error

    def blame(self, error):
        """The call of this plan in which an exception was raised, or None."""
        import traceback  # two milliseconds that only a mistake should cost

        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename == f"<plan of {self.name}>":
                call = self.lines[line - 1] if line <= len(self.lines) else None
                if call is not None:
                    return call
        return None


def _in_transaction(run, program):
    """``run`` that no other thread interrupts in between its reads and writes."""
    written = [v for call in program.calls for v in call.node.writes]
    if not written:
        return run
    locks = writing(written)

    def transaction(*arrays):
        with locks:
            return run(*arrays)

    return transaction


def _spoiling(run, block):
    """``run`` that leaves no value in its memory: what escaped turns into NaN."""

    def spoiling(*arrays):
        try:
            return run(*arrays)
        finally:
            block.fill(0xFF)

    return spoiling
