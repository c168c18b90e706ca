"""The replay function of a program, written as Python source: one line per array call.

Names are bound beforehand to all objects that are the same in each replay: functions,
memory and views of memory. Objects that differ between instances of an executable are
bound to a `PerInstance`, which creates them.
"""

import functools
import itertools

import numpy as np

from tapewright.core.op_definition.emitter import Source, identifier
from tapewright.core.state.commit import commit
from tapewright.core.variable import changes

from ...program.instructions.all_reduce_instructions import (
    AllReduce,
    StartAllReduce,
    WaitAllReduce,
)
from ...program.instructions.array_instructions import (
    BoundedRead,
    Contract,
    Copy,
    FusedMap,
    Map,
    Reduce,
    Routine,
    View,
    identity,
)
from ...program.instructions.call_instructions import (
    Check,
    Draw,
    EffectCall,
    Gather,
    LoadVariable,
    Opaque,
    RegionCall,
    Scatter,
    StoreVariable,
    Update,
)
from ...program.program import Kind
from .fused_maps import BlockFunction, keyword_text

# Registers of arrays from this size on are cleared after their last read.
LARGE = 1 << 16

_KEYWORD_OUT = {np.maximum, np.minimum}  # given by position, NumPy warns


class PerInstance:
    """A placeholder for an object of each instance: ``make(instance, scope)``."""

    __slots__ = ("make",)

    def __init__(self, make):
        self.make = make


class SourceWriter:
    """Writes the source of a program whose memory is assigned.

    ``compile_program(program, name)`` creates executables for the regions of branches
    and loops.
    """

    def __init__(self, assignment, name, compile_program):
        self.assignment, self.program = assignment, assignment.program
        self.compile_program = compile_program
        self.source = Source(f"<executable of {name}>")
        self.title = identifier(name, "replay")
        self.names = {}  # buffer -> name
        self.memory = {}  # buffer -> name, of those with memory of the instance
        self.regions = {}  # call -> the executables of its regions
        self.functions = {}  # identity -> name
        self.registers = map("r{}".format, itertools.count())
        self.examples = {}  # buffer -> an array with the strides of its memory
        self.spare = np.empty(0, np.uint8)
        self.holding = {}  # register -> base buffer whose memory it may hold
        self.ending = {}  # number of an instruction -> registers that end there
        self.commits = []  # instructions whose changes are made together at the end
        self.overwriting = {}  # id of a variable -> instructions that change its array
        for i, instruction in enumerate(self.program.instructions):
            for variable in instruction.variables_overwritten:
                self.overwriting.setdefault(id(variable), []).append(i)

    def written(self):
        """Return ``(source, memory)``: a `Source` with one function, and names of buffers.

        The `Source` has the instruction of each line; ``memory`` maps each buffer in
        the memory of the instance to its name.
        """
        program = self.program
        inputs = [f"x{i}" for i in range(len(program.inputs))]
        self.names.update(zip(program.inputs, inputs, strict=True))
        with self.source.function(self.title, inputs):
            loaded = self.write_snapshot()
            for i, instruction in enumerate(program.instructions):
                if instruction not in loaded:
                    self.write(i, instruction)
            self.flush()
            if self.commits:
                self.write_commit()
            outputs = [self.name_of(buffer) for buffer in program.outputs]
            results = ", ".join(outputs) + ("," if len(outputs) == 1 else "")
            self.source.emit(f"return ({results})")
        return self.source, self.memory

    def write(self, i, instruction):
        """Write an instruction, and clear the registers that are not needed after it."""
        if self.commits_at_end and type(instruction) in (StoreVariable, Update):
            self.commits.append(instruction)
            return
        if instruction.variables_written:
            self.release(i, instruction)
        METHODS[type(instruction)](self, i, instruction)
        self.clear(self.ending.pop(i, ()), instruction)

    def clear(self, registers, tag):
        """Release the arrays in registers."""
        for register in registers:
            if self.holding.pop(register, None) is not None:
                self.source.emit(f"{register} = None", tag)

    def flush(self):
        """Write all pending text."""

    @property
    def commits_at_end(self):
        """Return whether all changes of variables are written as one commit."""
        return self.program.commits_once

    def write_commit(self):
        """Write one call that makes the optimizer steps and all assignments."""
        *_, last = self.commits
        updates = [each for each in self.commits if type(each) is Update]
        steps, done = self.write_first_steps()
        stores = [e for e in self.commits if type(e) is StoreVariable and e not in done]
        self.release(len(self.program.instructions) - 1, *updates, *stores, tag=last)
        for update in updates:
            make = functools.partial(_function_of, update, update.function)
            name = f"{identifier(update.node.name)}_"
            name = self.source.bind(name, PerInstance(make))
            steps.append(f"step{len(steps)}")
            call = f"{name}.make_step({self.listed(update.operands)})"
            self.source.emit(f"{steps[-1]} = {call}", update)
        variables = self.source.bind("stored_", tuple([s.variable for s in stores]))
        arrays = [self.listed(store.operands) for store in stores]
        steps, arrays = (
            f"({''.join([x + ', ' for x in each])})" for each in (steps, arrays)
        )
        commits = self.function_name(commit)
        self.source.emit(f"{commits}({steps}, {variables}, {arrays})", last)

    def write_first_steps(self):
        """Write the first steps of the commit; return their names and their stores."""
        return [], ()

    # --- names

    def function_name(self, function, stem="f"):
        key = identity(function)
        if key not in self.functions:
            owner = getattr(function, "__self__", None)
            name = getattr(function, "__name__", stem)
            name = name if name.isidentifier() and name.isascii() else stem
            name = f"{owner.__name__}_{name}" if isinstance(owner, np.ufunc) else name
            self.functions[key] = self.source.bind(f"{name}_", function)
        return self.functions[key]

    def name_of(self, buffer):
        if buffer not in self.names:  # it is no output of an instruction
            if buffer.is_scratch:
                self.own_memory(buffer)
            else:
                self.names[buffer] = self.source.bind("c", buffer.source)
        return self.names[buffer]

    def listed(self, buffers):
        return ", ".join([self.name_of(buffer) for buffer in buffers])

    def register(self, buffer):
        """Return a register for an array that is new in each replay."""
        register = self.names[buffer] = next(self.registers)
        self.holding[register] = buffer.base
        last = self.assignment.last_read[buffer]
        if buffer.nbytes >= LARGE and last < len(self.program.instructions):
            self.ending.setdefault(last, []).append(register)
        return register

    def own_memory(self, buffer):
        """Return the name of a buffer in the memory of each instance, or None."""
        if buffer.offset is None and buffer.kind is not Kind.SLOT:
            return None
        make = functools.partial(_memory_of, buffer)
        self.names[buffer] = self.memory[buffer] = self.source.bind(
            "b", PerInstance(make)
        )
        if self.spare.size < buffer.nbytes:
            self.spare = np.empty(buffer.nbytes, np.uint8)
        spare = self.spare[: buffer.nbytes].view(buffer.dtype)
        self.examples[buffer] = spare.reshape(buffer.shape)
        return self.names[buffer]

    def release(self, i, *instructions, tag=None):
        """Clear registers whose arrays are not needed after instructions.

        An update copies the arrays of variables that are referenced elsewhere.
        """
        own = {self.names.get(a) for each in instructions for a in each.operands}
        last = self.assignment.last_use
        done = [
            r for r, base in self.holding.items() if last[base] <= i and r not in own
        ]
        if done:
            tag = tag or instructions[0]
            self.source.emit(" = ".join(done) + " = None", tag)
            for register in done:
                del self.holding[register]

    # --- variables and effects

    def write_snapshot(self):
        """Load all variables as of one moment, in a program that changes none.

        They are reloaded if another thread changes variables in the meantime.
        """
        instructions = self.program.instructions
        loads = [each for each in instructions if type(each) is LoadVariable]
        # A host call may assign, and says nothing about it.
        if len(loads) < 2 or any([each.has_effect for each in instructions]):
            return ()
        latest = f"{self.source.bind('changes', changes)}[0]"
        with self.source.block("while True:", loads[0]):
            self.source.emit(f"change = {latest}", loads[0])
            for i, each in enumerate(instructions):
                if type(each) is LoadVariable:
                    self.write_load(i, each)
            self.source.emit(f"if change is {latest}: break", loads[-1])
        return loads

    def write_load(self, i, load):
        (out,) = load.outputs
        variable = self.source.bind("v", load.variable)
        last = min(self.assignment.last_use[out], len(self.program.instructions))
        later = self.overwriting.get(id(load.variable), ())
        copied = ".copy()" if any([i < n < last for n in later]) else ""
        self.source.emit(f"{self.register(out)} = {variable}._array{copied}", load)

    def write_store(self, i, store):
        variable = self.source.bind("v", store.variable)
        self.source.emit(f"{variable}._bind({self.listed(store.operands)})", store)

    def write_effect(self, i, effect):
        self.write_replaceable(effect, effect.function)

    def write_replaceable(self, effect, function):
        """Write a call of an instance's replacement of ``function``, or ``function``."""
        make = functools.partial(_function_of, effect, function)
        function = self.source.bind(
            f"{identifier(effect.node.name)}_", PerInstance(make)
        )
        made = [self.register(out) for out in effect.outputs]
        left = f"{', '.join(made)}, = " if made else ""
        self.source.emit(f"{left}{function}({self.listed(effect.operands)})", effect)

    # --- arrays

    def write_view(self, i, view):
        (out,), viewed = view.outputs, view.viewed
        like = self.examples.get(viewed)
        if viewed.is_constant and not viewed.is_view:
            like = viewed.source
        if like is not None:
            seen = view.apply(like)
            if np.may_share_memory(seen, like):
                make = functools.partial(_view_of, view, self.name_of(viewed))
                self.names[out] = self.source.bind("b", PerInstance(make))
                self.examples[out] = seen
                return
        text = view_text(view, self.name_of(viewed), self.function_name)
        self.source.emit(f"{self.register(out)} = {text}", view)

    def write_map(self, i, instruction):
        (out,) = instruction.outputs
        args, memory = self.listed(instruction.operands), self.own_memory(out)
        function = self.function_name(instruction.function)
        if memory is None:
            more = keyword_text(self.source, instruction)
            text = f"{self.register(out)} = {function}({args}{more})"
        else:
            by_name = instruction.function in _KEYWORD_OUT
            text = f"{function}({args}, {'out=' if by_name else ''}{memory})"
        self.source.emit(text, instruction)

    def write_computed(self, i, instruction):
        (out,) = instruction.outputs
        args = self.listed(instruction.operands) + keyword_text(
            self.source, instruction
        )
        function = self.function_name(instruction.function)
        memory = self.own_memory(out)
        if memory is None:
            text = f"{self.register(out)} = {function}({args})"
        else:
            text = f"{function}({args}, out={memory})"
        self.source.emit(text, instruction)

    def write_fused_map(self, i, instruction):
        args = [self.name_of(a) for a in instruction.operands]
        for out in instruction.outputs:
            memory = self.own_memory(out)
            if memory is None:
                dtype, memory = self.source.bind("k", out.dtype), self.register(out)
                empty = self.function_name(np.empty)
                self.source.emit(
                    f"{memory} = {empty}({out.shape}, {dtype})", instruction
                )
            args.append(memory)
        function = self.source.bind("block_", BlockFunction(instruction))
        self.source.emit(f"{function}({', '.join(args)})", instruction)

    def write_kernel(self, i, instruction):
        function, name = instruction.function, instruction.node.name
        if instruction.keywords:
            function = functools.partial(function, **instruction.keywords)
            function = self.source.bind(f"{name}_", function)
        else:
            function = self.function_name(function, name)
        self.write_call(instruction, function, instruction.is_tuple)

    def write_all_reduce(self, i, instruction):
        """Write a call that returns views of one array; results that stay are copied."""
        self.write_kernel(i, instruction)
        for out in instruction.outputs if len(instruction.outputs) > 1 else ():
            if out.kind is Kind.ESCAPING:
                register = self.names[out]
                self.source.emit(f"{register} = {register}.copy()", instruction)

    def write_call(self, instruction, function, is_tuple):
        left = ", ".join([self.register(out) for out in instruction.outputs])
        left += "," if left and is_tuple else ""
        args = self.listed(instruction.operands)
        self.source.emit(f"{left and left + ' = '}{function}({args})", instruction)

    def write_check(self, i, check):
        args = self.listed(check.operands) + keyword_text(self.source, check)
        self.source.emit(f"{self.function_name(check.function)}({args})", check)

    def write_regions(self, i, call):
        executables = [self.compile_program(p, p.graph.name) for p in call.programs]
        self.regions[call] = executables
        kernel = call.node.kernel(executables, **call.settings)
        if call.has_effect:
            self.write_replaceable(call, kernel)
        else:
            self.write_call(call, self.function_name(kernel, call.name), True)


METHODS = {
    Map: SourceWriter.write_map,
    FusedMap: SourceWriter.write_fused_map,
    Reduce: SourceWriter.write_computed,
    Contract: SourceWriter.write_computed,
    BoundedRead: SourceWriter.write_computed,
    Copy: SourceWriter.write_computed,
    Routine: SourceWriter.write_computed,
    View: SourceWriter.write_view,
    Opaque: SourceWriter.write_kernel,
    AllReduce: SourceWriter.write_all_reduce,
    StartAllReduce: SourceWriter.write_kernel,
    WaitAllReduce: SourceWriter.write_all_reduce,
    Gather: SourceWriter.write_kernel,
    Scatter: SourceWriter.write_kernel,
    Check: SourceWriter.write_check,
    Draw: SourceWriter.write_kernel,
    LoadVariable: SourceWriter.write_load,
    StoreVariable: SourceWriter.write_store,
    Update: SourceWriter.write_effect,
    EffectCall: SourceWriter.write_effect,
    RegionCall: SourceWriter.write_regions,
}


# ----------------------------------------------------------- what an instance has itself


def _memory_of(buffer, instance, scope):
    return instance.array(buffer)


def _function_of(instruction, function, instance, scope):
    return instance.replacement(instruction) or function


def _view_of(view, name, instance, scope):
    return view.apply(scope[name])


# ------------------------------------------------------------------------ text of views


def view_text(view, x, function_name):
    """Return a view of an array named ``x`` as Python source."""
    name, parameters = view.name, view.parameters
    if name == "__getitem__":
        return f"{x}[{', '.join([_index_text(i) for i in parameters])}]"
    if name == "transpose":
        (axes,) = parameters
        return (
            f"{x}.T"
            if axes == tuple(range(len(axes)))[::-1]
            else f"{x}.transpose({axes})"
        )
    listing = ", ".join(map(repr, parameters))
    if name == "reshape":
        return f"{x}.reshape({listing})"
    return f"{function_name(view.function)}({x}, {listing})"


def _index_text(i):
    if type(i) is slice:
        parts = ["" if p is None else str(p) for p in (i.start, i.stop, i.step)]
        return ":".join(parts[:2] if i.step is None else parts)
    return "..." if i is Ellipsis else repr(i)
