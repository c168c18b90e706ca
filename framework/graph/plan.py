"""From a program to the function that replays it: buffers, and a flat list of calls.

Arrays that nobody sees but the plan lie in one arena, where memory is used again as soon
as its last reader is done; what leaves the plan (outputs, values of variables) is new in
each replay. The function is written as Python source, one line a call, which `source`
shows.
"""

import functools
import itertools
import traceback

import numpy as np

from .lowering import Array

__all__ = ["Plan"]

ALIGNMENT = 64
# From this size on a register gives up its array as soon as nobody needs it.
LARGE = 1 << 16
_KEYWORD_OUT = {np.maximum, np.minimum}


class Arena:
    """Places in one block of memory, for arrays that live from one call to another."""

    def __init__(self):
        self.size, self.free = 0, []  # free: (start, stop), in order

    def take(self, nbytes):
        """The start of a free place of this size: the smallest that will do."""
        nbytes = -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
        best = None
        for i, (start, stop) in enumerate(self.free):
            if stop - start >= nbytes and (best is None or stop - start < best[0]):
                best = (stop - start, i)
        if best is not None:
            start, stop = self.free.pop(best[1])
            if start + nbytes < stop:
                self.free.insert(best[1], (start + nbytes, stop))
            return start
        start = self.size
        if self.free and self.free[-1][1] == self.size:
            start = self.free.pop()[0]
        self.size = start + nbytes
        return start

    def give_back(self, start, nbytes):
        nbytes = -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
        self.free.append((start, start + nbytes))
        self.free.sort()
        merged = []
        for start, stop in self.free:
            if merged and merged[-1][1] == start:
                start = merged.pop()[0]
            merged.append((start, stop))
        self.free = merged


class Plan:
    """A program with its buffers assigned, ready to be written out.

    ``instance()`` gives a function of the input arrays that returns a tuple of the output
    arrays. It owns its buffers: use each by one thread at a time.
    """

    def __init__(self, program, name="replay"):
        self.program, self.name = program, name
        self.last = self._lifetimes()
        self.places = {}  # root array -> (start, nbytes) in the arena
        self.targets = {}  # root array -> an array that an effect wants it in
        self.arena = Arena()
        self._assign()
        self.lines = []  # of the source: the call that each is from
        self.source, self.bound = self._write()
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
            if call.form == "kernel":  # what it gives may be a view of an argument
                until = max([last.get(out.root, i) for out in call.outputs])
            for array in call.arrays():
                last[array.root] = max(last.get(array.root, i), until)
            for out in call.outputs:
                last.setdefault(out.root, i)
        return last

    def _escaping(self):
        """Root arrays whose memory outlives a replay: outputs, and values of variables."""
        escaping = {array.root for array in self.program.outputs}
        for call in self.program.calls:
            if call.form == "store":
                escaping.update([a.root for a in call.arrays()])
        for call in reversed(self.program.calls):
            if call.form == "kernel" and any(o.root in escaping for o in call.outputs):
                escaping.update([a.root for a in call.arrays()])
        return escaping

    # --- buffers

    def _assign(self):
        escaping = self._escaping()
        self.odd = set()  # root arrays of unknown layout
        for call in self.program.calls:
            if call.form in ("kernel", "effect"):
                self.odd.update([out.root for out in call.outputs])
        dying = {}
        for root, i in self.last.items():
            dying.setdefault(i, []).append(root)
        for call in self.program.calls:
            if call.form == "effect" and hasattr(call.function, "targets"):
                for array, target in zip(call.args, call.function.targets()):
                    fits = target is not None and array.root is array
                    if fits and array.origin is None and array not in escaping:
                        if array.call.form in ("ufunc", "out"):
                            self.targets.setdefault(array, target)
        for i, call in enumerate(self.program.calls):
            dead = dying.get(i, ())
            out = call.outputs[0] if call.outputs else None
            if call.form in ("ufunc", "out") and out not in escaping:
                if out not in self.targets and self._is_plain(call, out):
                    self._place(call, out, dead)
            for root in dead:
                if root in self.places:
                    self.arena.give_back(*self.places[root])

    def _is_plain(self, call, out):
        """Whether the result is in C order; else a buffer would have to be another's.

        Kernels may choose a layout, which then is that of all entrywise work on it.
        """
        if call.form == "ufunc" and len(out.shape) > 2:
            for a in call.arrays():
                if a.shape == out.shape and a.root in self.odd:
                    self.odd.add(out)
                    return False
        return True

    def _place(self, call, out, dead):
        """A place for what a call gives; that of a dying argument if it fits."""
        if call.form == "ufunc":
            for a in call.arrays():
                same = a.shape == out.shape and a.dtype == out.dtype
                if same and a in dead and a in self.places:
                    self.places[out] = self.places.pop(a)
                    return
        nbytes = out.nbytes
        self.places[out] = (self.arena.take(nbytes), nbytes)

    # --- source

    def _write(self):
        program, names, bound = self.program, {}, {"np": np}
        fresh = itertools.count()

        def bind(prefix, value):
            name = f"{prefix}{next(fresh)}"
            bound[name] = value
            return name

        functions = {}

        def function_name(function, prefix):
            found = functions.get(id(function))
            if found is None:
                stem = getattr(function, "__name__", prefix)
                stem = stem if stem.isidentifier() and stem.isascii() else prefix
                found = functions[id(function)] = bind(f"{stem}_", function)
            return found

        def name_of(x):
            if type(x) is not Array:
                return bind("c", x)
            if x not in names:
                if x.origin == "constant":
                    names[x] = bind("c", x.payload)
                else:
                    raise KeyError(x)
            return names[x]

        lines, calls = [], []

        def emit(text, call):
            lines.append(f"    {text}")
            calls.append(call)

        inputs = []
        for i, array in enumerate(program.inputs):
            names[array] = f"x{i}"
            inputs.append(names[array])
        registers = (f"r{i}" for i in itertools.count())
        nulls = {}  # number of a call -> registers that end there
        may_hold = {}  # register -> root whose memory it may hold
        for i, call in enumerate(program.calls):
            if call.form in ("effect", "store") and call.node.writes:
                held = [r for r, root in may_hold.items() if self.last[root] <= i]
                held = [r for r in held if names_in_use(r, call, names) is False]
                if held:
                    emit(" = ".join(held) + " = None", call)
                    for r in held:
                        del may_hold[r]
            self._write_call(
                i, call, names, name_of, bind, function_name, emit, registers, may_hold
            )
            for r in nulls.pop(i, ()):
                emit(f"{r} = None", call)
            for out in call.outputs:
                name = names.get(out)
                if name and name[0] == "r" and out.nbytes >= LARGE:
                    end = self.last[out.root]
                    if i < end < len(program.calls):
                        nulls.setdefault(end, []).append(name)
                        may_hold.pop(name, None)
        outputs = []
        for array in program.outputs:
            outputs.append(name_of(array))
        results = ", ".join(outputs) + ("," if len(outputs) == 1 else "")
        emit(f"return ({results})", None)
        self.lines = [None, *calls]
        parameters = [*inputs, *[f"{n}={n}" for n in bound]]
        source = "\n".join(
            [f"def {_identifier(self.name)}({', '.join(parameters)}):", *lines]
        )
        return source + "\n", bound

    def _write_call(
        self, i, call, names, name_of, bind, function_name, emit, registers, may_hold
    ):
        form = call.form
        if form == "read":
            (array,) = call.outputs
            r = names[array] = next(registers)
            variable = bind("v", call.node.variable)
            copied = ".copy()" if self._overwritten(array, i) else ""
            emit(f"{r} = {variable}._array{copied}", call)
            may_hold[r] = array
            return
        if form == "store":
            (array,) = call.args
            variable = bind("v", call.node.variable)
            emit(f"{variable}._bind({name_of(array)})", call)
            return
        args = [name_of(a) if type(a) is Array else repr(a) for a in call.args]
        if form == "view":
            (out,) = call.outputs
            r = names[out] = next(registers)
            emit(f"{r} = {_view_text(call, args)}", call)
            if out.root.origin == "variable" or out.root.call is None:
                may_hold[r] = out.root
            return
        if form == "effect":
            function = function_name(call.function, "effect")
            given = [next(registers) for _ in call.outputs]
            names.update(zip(call.outputs, given))
            left = f"{', '.join(given)}, = " if given else ""
            emit(f"{left}{function}({', '.join(args)})", call)
            return
        if form == "kernel":
            function = call.function
            if call.kwargs:
                bound_kernel = functools.partial(function, **call.kwargs)
                function = bind(f"{call.node.name}_", bound_kernel)
            else:
                function = function_name(function, call.node.name)
            given = [next(registers) for _ in call.outputs]
            names.update(zip(call.outputs, given))
            left = given[0] if not call.node.op.multiple else ", ".join(given) + ","
            emit(f"{left} = {function}({', '.join(args)})", call)
            for r, out in zip(given, call.outputs):
                may_hold[r] = out.root
            return
        (out,) = call.outputs
        function = function_name(call.function, "f")
        kwargs = [f"{k}={bind('k', v) if k == 'dtype' else repr(v)}"
                  for k, v in call.kwargs.items()]  # fmt: skip
        if out in self.targets or out in self.places:
            buffer = names[out] = bind("b", out)
            positional = form == "ufunc" and call.function not in _KEYWORD_OUT
            kwargs.append(buffer if positional else f"out={buffer}")
            emit(f"{function}({', '.join([*args, *kwargs])})", call)
        else:
            r = names[out] = next(registers)
            emit(f"{r} = {function}({', '.join([*args, *kwargs])})", call)

    def _overwritten(self, array, position):
        """Whether a variable's array is needed after an effect wrote over it."""
        variable, last = array.payload, self.last[array]
        for i in range(position + 1, min(last, len(self.program.calls))):
            call = self.program.calls[i]
            if call.form == "effect":
                if any(v is variable for v in call.node.writes):
                    return True
        return False

    # --- making it run

    def instance(self):
        """A replay function with buffers of its own."""
        block = np.empty(self.arena.size + ALIGNMENT, np.uint8)
        offset = -block.ctypes.data % ALIGNMENT
        scope = {}
        for name, value in self.bound.items():
            if type(value) is Array:
                value = self._buffer(value, block, offset)
            scope[name] = value
        exec(self.code, scope)
        return scope[_identifier(self.name)]

    def _buffer(self, array, block, offset):
        target = self.targets.get(array)
        if target is not None:
            return target
        start, _ = self.places[array]
        start += offset
        part = block[start : start + array.nbytes]
        return part.view(array.dtype).reshape(array.shape)

    def blame(self, error):
        """The call of this plan in which an exception was raised, or None."""
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename == f"<plan of {self.name}>":
                call = self.lines[line - 1] if line <= len(self.lines) else None
                if call is not None:
                    return call
        return None


def names_in_use(register, call, names):
    """Whether a call reads this register."""
    return any(names.get(a) == register for a in call.arrays())


def _identifier(name):
    name = "".join(c if c.isalnum() else "_" for c in name)
    return name if name.isidentifier() else f"replay_{name}"


def _view_text(call, args):
    name, x = call.function.__name__, args[0]
    if name == "__getitem__":
        return f"{x}[{', '.join(_index_text(i) for i in call.args[1:])}]"
    if name == "transpose" and call.args[1:] == tuple(range(len(call.args[1:])))[::-1]:
        return f"{x}.T"
    if name in ("reshape", "transpose"):
        return f"{x}.{name}({', '.join(args[1:])})"
    return f"np.{name}({x}, {', '.join(args[1:])})"


def _index_text(i):
    if type(i) is slice:
        parts = ["" if p is None else str(p) for p in (i.start, i.stop, i.step)]
        return ":".join(parts[:2] if i.step is None else parts)
    return "..." if i is Ellipsis else repr(i)
