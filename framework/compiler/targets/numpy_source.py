"""The replay function of a plan, written as Python source: one line a call.

All that does not change from replay to replay is bound beforehand: functions, buffers
and views of buffers.
"""

import functools
import itertools
import keyword

import numpy as np

from tapewright.core.variable import changes

__all__ = ["Buffer", "EffectOf", "LARGE", "Prepared", "write"]

# From this size on a register gives up its array as soon as nobody needs it.
LARGE = 1 << 16

_KEYWORD_OUT = {np.maximum, np.minimum}  # given by position, NumPy warns


class Buffer:
    """Stands among the bound names for the memory that an instance gives an array."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array


class EffectOf:
    """Stands for the function of an effect, of which an instance may have one of its own."""

    __slots__ = ("call",)

    def __init__(self, call):
        self.call = call


class Prepared:
    """Stands for ``function(*names)``, made of what is bound to names before it."""

    __slots__ = ("function", "names")

    def __init__(self, function, names):
        self.function, self.names = function, names

    def make(self, scope):
        return self.function(*[scope[name] for name in self.names])


def write(plan):
    """``(source, bound, lines)`` of a plan."""
    return _Writer(plan).written()


class _Writer:
    def __init__(self, plan):
        self.plan, self.program = plan, plan.program
        self.names, self.bound = plan.names, {"np": np}
        self.numbers = itertools.count()
        self.registers = map("r{}".format, itertools.count())
        self.functions = {}
        self.fixed = {}  # array -> an array like it: the same memory in each replay
        largest = max([nbytes for _, nbytes in plan.places.values()], default=0)
        self.room = np.empty(largest, np.uint8)
        self.lines, self.calls = [], []
        self.holding = {}  # register -> root array whose memory it may hold
        self.ending = {}  # number of a call -> registers that end there
        self.updates = {}  # id of a variable -> numbers of the effects that write to it
        for i, call in enumerate(self.program.calls):
            for variable in call.node.writes if call.form == "effect" else ():
                self.updates.setdefault(id(variable), []).append(i)

    def written(self):
        plan, program = self.plan, self.program
        inputs = [f"x{i}" for i in range(len(program.inputs))]
        self.names.update(zip(program.inputs, inputs))
        snapshot = self.write_snapshot()
        for i, call in enumerate(program.calls):
            if call in snapshot:
                continue
            if call.form in ("effect", "store") and call.node.writes:
                self.let_go(i, call)
            getattr(self, f"write_{call.form}")(i, call)
            for register in self.ending.pop(i, ()):
                if self.holding.pop(register, None) is not None:
                    self.emit(f"{register} = None", call)
        outputs = [self.name_of(array) for array in program.outputs]
        results = ", ".join(outputs) + ("," if len(outputs) == 1 else "")
        self.emit(f"return ({results})", None)
        parameters = ", ".join([*inputs, *[f"{n}={n}" for n in self.bound]])
        head = f"def {_identifier(plan.name)}({parameters}):"
        return "\n".join([head, *self.lines]) + "\n", self.bound, [None, *self.calls]

    # --- names

    def emit(self, text, call):
        self.lines.append(f"    {text}")
        self.calls.append(call)

    def bind(self, prefix, value):
        name = f"{prefix}{next(self.numbers)}"
        self.bound[name] = value
        return name

    def function_name(self, function, prefix="f"):
        owner = getattr(function, "__self__", None)
        key = (id(owner), function.__name__) if owner is not None else id(function)
        found = self.functions.get(key)
        if found is None:
            stem = getattr(function, "__name__", prefix)
            stem = stem if stem.isidentifier() and stem.isascii() else prefix
            if isinstance(owner, np.ufunc):
                stem = f"{owner.__name__}_{stem}"
            found = self.functions[key] = self.bind(f"{stem}_", function)
        return found

    def name_of(self, array):
        if array not in self.names:  # others have theirs from the call that made them
            if array.origin == "scratch":
                self.buffer(array)
            else:
                self.names[array] = self.bind("c", array.payload)
        return self.names[array]

    def register(self, array, holds=True):
        """A register for what a call gives anew in each replay."""
        register = self.names[array] = next(self.registers)
        root, i = array.root, self.plan.read_last[array]
        if holds:
            self.holding[register] = root
        if array.nbytes >= LARGE and i < len(self.program.calls):
            self.ending.setdefault(i, []).append(register)
        return register

    def buffer(self, array):
        """The name of the memory that the plan gives an array; None: it has none."""
        if array not in self.plan.places and array not in self.plan.slots:
            return None
        self.names[array] = self.bind("b", Buffer(array))
        self.fixed[array] = self.likeness(array)
        return self.names[array]

    def likeness(self, array):
        """An array of this shape; all of them lie in one piece of memory."""
        if self.room.size < array.nbytes:
            self.room = np.empty(array.nbytes, np.uint8)
        room = self.room[: array.nbytes]
        return room.view(array.dtype).reshape(array.shape)

    def like(self, array):
        """An array that looks like a fixed one, or None if it is not fixed."""
        if array.origin == "constant":
            return array.payload
        return self.fixed.get(array)

    def let_go(self, i, call):
        """Registers that are done with give up their arrays.

        An update counts who holds the values of its variables before it writes over them.
        """
        own = {self.names.get(a) for a in call.arrays()}
        done = [
            register
            for register, root in self.holding.items()
            if self.plan.last[root] <= i and register not in own
        ]
        if done:
            self.emit(" = ".join(done) + " = None", call)
            for register in done:
                del self.holding[register]

    # --- one method for each form of a call

    def write_snapshot(self):
        """Take the variables of a plan that changes none at one moment: its reads.

        Where another thread changes several of them meanwhile, it takes them again.
        """
        calls = self.program.calls
        reads = [call for call in calls if call.form == "read"]
        # A host call may assign, and says nothing about it.
        if len(reads) < 2 or any([c.node.writes or c.node.is_effect for c in calls]):
            return ()
        latest = f"{self.bind('changes', changes)}[0]"
        self.emit("while True:", reads[0])
        self.emit(f"    change = {latest}", reads[0])
        for i, call in enumerate(self.program.calls):
            if call.form == "read":
                self.write_read(i, call, indent="    ")
        self.emit(f"    if change is {latest}: break", reads[-1])
        return reads

    def write_read(self, i, call, indent=""):
        (array,) = call.outputs
        variable = self.bind("v", call.node.variable)
        copied = ".copy()" if self.is_overwritten(array, i) else ""
        self.emit(f"{indent}{self.register(array)} = {variable}._array{copied}", call)

    def is_overwritten(self, array, position):
        """Whether a variable's array is needed after an effect wrote over it."""
        last = min(self.plan.last[array], len(self.program.calls))
        return any(position < i < last for i in self.updates.get(id(array.payload), ()))

    def write_store(self, i, call):
        variable = self.bind("v", call.node.variable)
        self.emit(f"{variable}._bind({self.name_of(call.args[0])})", call)

    def write_view(self, i, call):
        (out,), x = call.outputs, call.args[0]
        like = self.like(x)
        if like is not None:
            view = _view(call, like)
            if np.may_share_memory(view, like):
                make = functools.partial(_view, call)
                self.names[out] = self.bind("b", Prepared(make, [self.name_of(x)]))
                self.fixed[out] = view
                return
        text = _view_text(call, self.name_of(x))
        self.emit(f"{self.register(out)} = {text}", call)

    def write_effect(self, i, call):
        function = self.bind(f"{_identifier(call.node.name)}_", EffectOf(call))
        self.plan.effects[call] = function
        args = ", ".join([self.name_of(a) for a in call.args])
        given = [self.register(out) for out in call.outputs]
        left = f"{', '.join(given)}, = " if given else ""
        self.emit(f"{left}{function}({args})", call)

    def write_kernel(self, i, call):
        function, name = call.function, call.node.name
        if call.kwargs:
            function = functools.partial(function, **call.kwargs)
            function = self.bind(f"{name}_", function)
        else:
            function = self.function_name(function, name)
        args = ", ".join([self.name_of(a) for a in call.args])
        given = [self.register(out) for out in call.outputs]
        many = call.node.op is None or call.node.op.multiple
        left = ", ".join(given) + "," if many else given[0]
        self.emit(f"{left} = {function}({args})", call)

    def write_ufunc(self, i, call):
        (out,) = call.outputs
        args = [self.name_of(a) for a in call.args]
        function, buffer = self.function_name(call.function), self.buffer(out)
        if buffer is None:
            self.emit(f"{self.register(out)} = {function}({', '.join(args)})", call)
            return
        by_name = call.function in _KEYWORD_OUT
        args.append(f"out={buffer}" if by_name else buffer)
        self.emit(f"{function}({', '.join(args)})", call)

    def write_out(self, i, call):
        (out,) = call.outputs
        args = [self.name_of(a) for a in call.args]
        for name, value in call.kwargs.items():
            text = repr(value) if name != "dtype" else self.bind("k", value)
            args.append(f"{name}={text}")
        function, buffer = self.function_name(call.function), self.buffer(out)
        if buffer is None:
            self.emit(f"{self.register(out)} = {function}({', '.join(args)})", call)
        else:
            self.emit(f"{function}({', '.join([*args, f'out={buffer}'])})", call)

    def write_block(self, i, call):
        args = [self.name_of(a) for a in call.args]
        for out in call.outputs:
            buffer = self.buffer(out)
            if buffer is None:
                dtype = self.bind("k", out.dtype)
                buffer = self.register(out)
                self.emit(f"{buffer} = np.empty({out.shape}, {dtype})", call)
            args.append(buffer)
        name = self.bind("block_", call.function)
        self.emit(f"{name}({', '.join(args)})", call)


def _identifier(name):
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    plain = name.isidentifier() and not keyword.iskeyword(name)
    return name if plain else f"replay_{name}"


def _view(call, x):
    """The view that a call makes of an array."""
    arguments = call.args[1:]
    if call.function is np.ndarray.__getitem__:
        return x[arguments]
    return call.function(x, *arguments)


def _view_text(call, x):
    name, arguments = call.function.__name__, call.args[1:]
    if name == "__getitem__":
        return f"{x}[{', '.join([_index_text(i) for i in arguments])}]"
    if name == "transpose" and arguments == tuple(range(len(arguments)))[::-1]:
        return f"{x}.T"
    listing = ", ".join(map(repr, arguments))
    if name in ("reshape", "transpose"):
        return f"{x}.{name}({listing})"
    return f"np.{name}({x}, {listing})"


def _index_text(i):
    if type(i) is slice:
        parts = ["" if p is None else str(p) for p in (i.start, i.stop, i.step)]
        return ":".join(parts[:2] if i.step is None else parts)
    return "..." if i is Ellipsis else repr(i)
