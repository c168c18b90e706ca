"""Verify programs and plans: each instruction reads the values that it names.

The checker follows, instruction by instruction, which value each piece of memory holds.
An array names the value that was written when it was made; a read of it is right as long
as its memory still holds that value. `verify_program` gives every array memory of its
own, and so finds reads after an in-place change. `verify_plan` takes the addresses at
which an instance of a plan has its arrays, and so finds memory that is used again too
early. Both find memory that escapes: an output, or the value of a variable, that lies
where a later replay, or the plan around this one, writes.

Bodies of loops and branches are plans of their own, verified when they are made; here
their calls count as writing to all memory that their instances own.
"""

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tapewright.core.errors import VerificationError

from ..tracing.graph import Effect, Read, Store

__all__ = ["verify_plan", "verify_program"]


def verify_program(program, after):
    """Check a program; ``after`` names the step that made it what it is.

    Raises: ``VerificationError``.
    """
    _Checker(program, {}, f"after {after}").run()


def verify_plan(plan, scope):
    """Check a plan with the memory of one instance: ``scope`` maps names to arrays.

    Raises: ``VerificationError``.
    """
    fixed = {}  # array -> the array of the instance that it is in every replay
    for array, name in plan.names.items():
        bound = scope.get(name)
        if isinstance(bound, np.ndarray) and array.origin != "constant":
            fixed[array] = bound
    effects = {call: scope[name] for call, name in plan.effects.items()}
    _Checker(plan.program, fixed, "with its memory assigned", effects).run()


class _Memory:
    """The value that each piece of memory holds: disjoint intervals of spaces."""

    def __init__(self):
        self.spaces = {}  # space -> [(start, stop, value)]

    def write(self, place, value):
        space, start, stop = place
        rest = []
        for a, b, old in self.spaces.get(space, ()):
            if b <= start or stop <= a:
                rest.append((a, b, old))
                continue
            if a < start:
                rest.append((a, start, old))
            if stop < b:
                rest.append((stop, b, old))
        if start < stop:
            rest.append((start, stop, value))
        self.spaces[space] = rest

    def holds(self, place, value):
        space, start, stop = place
        parts = self.spaces.get(space, ())
        inside = [(a, b) for a, b, v in parts if v == value and a < stop and start < b]
        return sum([min(b, stop) - max(a, start) for a, b in inside]) == stop - start


def _overlap(a, b):
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]


class _Checker:
    """One walk over a program.

    ``fixed``: the arrays whose memory is the plan's own; ``effects``: the functions of
    effects in this instance, which may own memory, too.
    """

    def __init__(self, program, fixed, when, effects=()):
        self.program, self.fixed, self.when = program, fixed, when
        self.effects = dict(effects)
        self.memory = _Memory()
        self.values = {}  # array -> the value that it names
        self.backing = {}  # root -> arrays whose memory may be its own, with their values
        self.stored = {}  # id of a variable -> the array that it was last bound to
        self.call = None

    def run(self):
        for array in self.program.inputs:
            self.make(array)
        _check_order(self)
        for call in self.program.calls:
            self.call = call
            self.step(call)
        self.call = None
        for array in self.stored.values():  # which nobody may have changed since
            self.read(array)
        for array in self.program.outputs:
            self.read(array)
            self.require_lasting(array, "returned", lent=True)

    def fail(self, what):
        where = f" at {self.call!r} of {self.call.node!r}" if self.call else ""
        line = f" ({self.call.node.line})" if self.call and self.call.node.line else ""
        name = self.program.graph.name
        raise VerificationError(f"'{name}' {self.when}{where}{line}: {what}")

    # --- memory

    def place(self, array):
        """``(space, start, stop)`` of an array's own memory; of a view that of its root."""
        root = array.root
        bound = self.fixed.get(root)
        if bound is None:
            return root, 0, root.nbytes
        return ("plan", *(byte_bounds(bound) if bound.size else (0, 0)))

    def make(self, array, value=None):
        """An array comes to be, and with it the value that it names."""
        self.values[array] = value = object() if value is None else value
        self.memory.write(self.place(array), value)

    def read(self, array):
        if array.root.origin == "constant":
            return
        if array not in self.values:
            self.fail(f"{array} is read before it is made")
        if not self.memory.holds(self.place(array), self.values[array]):
            self.fail(f"{array} is read, but its memory holds another value by now")
        for other, value in self.backing.get(array.root, ()):
            if not self.memory.holds(self.place(other), value):
                self.fail(f"{array} may be a view of {other}, whose memory was changed")

    # --- instructions

    def step(self, call):
        scratch = [a for a in call.arrays() if a.origin == "scratch"]
        for array in scratch:
            self.memory.write(self.place(array), object())
        for array in call.arrays():
            if array.origin != "scratch":
                self.read(array)
        _check_specs(self, call)
        getattr(self, f"step_{call.form}", self.step_new)(call)
        for array in scratch:
            self.require_apart(self.place(array), call.outputs, "scratch memory")

    def step_new(self, call):
        """Outputs in memory of their own, or in that of an argument that may end."""
        for out in call.outputs:
            if out.root is not out:
                self.fail(f"{out} must have memory of its own")
            self.require_apart_from_arguments(call, out)
        for out in call.outputs:
            self.make(out)

    def step_view(self, call):
        (out,), viewed = call.outputs, call.args[0]
        if out.root is not viewed.root:
            self.fail(f"{out} is a view of {viewed} and must have its root")
        if out.root.origin != "constant":
            self.values[out] = self.values[viewed]

    def step_block(self, call):
        call.function.verify(self.place, self.fail)
        self.step_new(call)

    def step_kernel(self, call):
        target, backing = call.donated, []
        if target is not None:  # from here on its name stands for a value that is gone
            self.require_owned(target)
            changed = object()
            self.memory.write(self.place(target), changed)
        for array in call.arrays() if call.may_alias else ():
            if array.root.origin != "constant":
                value = changed if array is target else self.values[array]
                backing += [(array, value), *self.backing.get(array.root, ())]
        for out in call.outputs:
            self.make(out)
            self.backing[out] = backing

    def step_effect(self, call):
        for start, stop in _written_by(self.effects.get(call, call.function)):
            self.memory.write(("plan", start, stop), object())
        for out in call.outputs:
            self.make(out)

    def step_read(self, call):
        self.make(call.outputs[0])

    def step_store(self, call):
        (array,) = call.args
        self.require_lasting(array, "kept by a variable", not self.program.borrows)
        self.stored[id(call.node.variable)] = array

    # --- what must hold

    def require_apart(self, place, arrays, what):
        for array in arrays:
            if _overlap(place, self.place(array)):
                self.fail(f"{array} shares the memory of {what}")

    def require_apart_from_arguments(self, call, out):
        """An output shares memory with no argument but one in whose place it may be."""
        place, shares = self.place(out), []
        for array in call.arrays():
            if array.origin != "scratch" and _overlap(place, self.place(array)):
                shares.append(array)
        if not shares or call.form == "block":  # which follows its own calls
            return
        same = all([self.place(a) == place and a.shape == out.shape for a in shares])
        if call.form == "ufunc" and (same or isinstance(call.function, np.ufunc)):
            return
        number = getattr(call.function, "overwrites", None)
        allowed = call.form == "out" and number is not None and same
        if not allowed or any([a is not call.args[number] for a in shares]):
            self.fail(f"{out} is written over {shares[0]}, which is still being read")

    def require_owned(self, array):
        """The memory of an array is this program's to write to."""
        root = array.root
        owned = [self.program.inputs[i] for i in self.program.owned]
        made = root.call is not None and root.call.form in ("ufunc", "out", "block")
        if not made and root not in owned:
            self.fail(f"{array} is changed, but its memory is not the program's own")

    def require_lasting(self, array, use, lent):
        """An array that outlives the replay lies in no memory that is written again.

        ``lent``: it may lie in that of the inputs.
        """
        for root in (
            array.root,
            *[a.root for a, _ in self.backing.get(array.root, ())],
        ):
            if root in self.fixed:
                self.fail(f"{array} is {use}, but lies in memory of the plan")
            if root.origin == "input" and not lent:
                self.fail(f"{array} is {use}, but its memory is only lent to this plan")


def _written_by(function):
    """The address ranges that an effect writes to, those of nested plans included."""
    for array in getattr(function, "slots", tuple)():
        if array is not None and array.size:
            yield byte_bounds(array)
    for replay in getattr(function, "replays", ()):
        for call in replay.plan.program.calls:
            if call.form == "effect":
                yield from _written_by(call.function)


# ------------------------------------------------------------------------- variables


def _check_order(checker):
    """Each read of a variable comes after the same writes as in the graph."""
    wanted, found = {}, {}
    _follow(checker.program.graph.nodes, wanted)
    _follow([call.node for call in _once(checker.program.calls)], found)
    for node, writers in found.items():
        if writers != wanted.get(node):
            checker.fail(
                f"{node!r} ({node.line}) comes after other writes of its variables"
            )


def _once(calls):
    """The calls that touch variables: reads, stores and effects."""
    return [c for c in calls if c.form in ("read", "store", "effect")]


def _follow(nodes, seen):
    """Note for each node that reads variables the last node that wrote each of them."""
    last = {}
    for node in nodes:
        if type(node) in (Read, Store, Effect) or node.is_effect:
            touched = {id(v) for v in (*node.reads, *node.writes)}
            seen[node] = {name: last[name] for name in touched if name in last}
            last.update(dict.fromkeys([id(v) for v in node.writes], node))


# ---------------------------------------------------------------- shapes and dtypes


def _check_specs(checker, call):
    """The shape and dtype of what is made are those that NumPy gives."""
    if call.form == "ufunc" and isinstance(call.function, np.ufunc):
        (out,), args = call.outputs, call.args
        shape = np.broadcast_shapes(*[a.shape for a in args])
        dtype = call.function.resolve_dtypes((*[a.dtype for a in args], None))[-1]
        if (shape, dtype) != (out.shape, out.dtype):
            checker.fail(f"NumPy makes {dtype}{list(shape)}, the program names {out}")
