"""A program for a GPU: CUDA graphs, and CuPy and Python code between them.

Consecutive instructions that have kernels form a `CudaSegment`, one graph. Instructions
that depend on host variables alone are computed by NumPy beforehand. A program without
anything else, such as most training steps, is one launch.
"""

import functools
import threading

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.hardware.devices import (
    check_results,
    current_module,
    to_numpy,
    use_module,
)
from tapewright.core.settings import config
from tapewright.core.state.commit import undoing

from ...program.instructions.array_instructions import View
from ...program.instructions.call_instructions import (
    Draw,
    LoadVariable,
    RegionCall,
    StoreVariable,
)
from ...program.limits import use_limits
from ...program.lowering.array_functions import copy_into
from ...program.passes.atomicity import may_fail
from ...program.program import Kind
from ..numpy.source import PerInstance
from ..segmented_executable import SegmentedExecutable, SegmentWriter
from .commits import Commits
from .kernels.stores import HostStore
from .kernels.updates import UpdateKernel
from .memory import DeviceInstance, MemoryPlan
from .modules import compiled
from .replay import Replay
from .segments import CudaSegment, can_fail
from .steps import is_on_device


class CudaExecutable(SegmentedExecutable):
    """An `Executable` for arrays of the module of the current device."""

    target = "cuda"
    calls_numpy = False

    def __init__(self, program, name="replay"):
        self.xp = current_module()
        self._lock = threading.Lock()
        self.on_host = program.on_host
        self.checks = [each for each in program.instructions if can_fail(each)]
        self.host_variables = _changed_on_host(program.instructions)
        kernels = [e for e in program.instructions if type(e) is UpdateKernel]
        self.updates = [kernel.step for kernel in kernels]
        self.is_covered = False
        super().__init__(program, name)
        self.idle = {}  # GPU and address of a stream -> instances

    def write(self, assignment):
        self.plan = MemoryPlan()
        writer = _Writer(self, assignment)
        written = self.write_with(writer)
        self.commits = Commits(writer.moments, self.program.fails_late)
        for call, executables in self.regions.items():
            for each in executables if call is not self.commits.last else ():
                each.cover()
        steps = [step for segment in self.segments for step in segment.steps]
        functions = compiled(self.xp, steps)
        for segment in self.segments:
            segment.functions = functions
            segment.is_last = segment is self.commits.last
        return written

    # --- running

    def cover(self):
        """Save no variables: the executable whose region this is saves them."""
        self.is_covered = True
        for executables in self.regions.values():
            for each in executables:
                each.cover()

    def acquire(self, outer=None):
        """Return an idle instance last replayed in the current stream, or a new one.

        ``outer``: the `DeviceInstance` whose last commit is the instance's last commit.
        """
        if not all([each.is_current() for each in self.updates]):
            self._compile_again()
        idle = self.idle.get(self._queue())
        try:
            instance = idle.pop() if idle else self.instance()
        except IndexError:  # another thread has taken the last one
            instance = self.instance()
        instance.memory.outer = outer
        return instance

    def release(self, instance):
        if instance.program is self.program:
            self.idle.setdefault(self._queue(), []).append(instance)

    def _queue(self):
        cuda = self.xp.cuda
        return cuda.runtime.getDevice(), cuda.get_current_stream().ptr

    def _compile_again(self):
        """Compile the graph for the current settings of the optimizers."""
        program = self.program
        with self._lock, use_module(self.xp), use_limits(program.limits):
            made = CudaExecutable(program.remake(), self.name)
            made = made if self.together else made.one_by_one()
            if self.is_covered:
                made.cover()
            vars(self).update(vars(made))

    def replay_in(self, instance):
        run, xp = super().replay_in(instance), self.xp

        def on_device(*arrays):
            if current_module() is xp:
                return run(*arrays)
            with use_module(xp):
                return run(*arrays)

        on_device.program, on_device.memory = self.program, instance
        return on_device

    def atomic(self, run, instance):
        held, copied = self.commits.held, self.commits.copied
        if self.is_covered or not (held or copied):
            return run

        def whole(*arrays):
            outputs = run(*arrays)
            instance.forget()
            return outputs

        def guarded(*arrays):
            instance.keep(held, copied)
            try:
                return undoing(instance.restore, whole, *arrays)
            finally:
                instance.restore = None  # copies need memory

        return guarded

    def fixed_memory(self, instance, scope):
        """Everything in the arena, including buffers that no line of the source names."""
        made = [b for e in self.program.instructions for b in (*e.outputs, *e.scratch)]
        named = super().fixed_memory(instance, scope)
        return {b: instance.array(b) for b in made if b.offset is not None} | named

    def new_memory(self, replacing):
        return DeviceInstance(self, replacing)


def _changed_on_host(instructions):
    """The variables in host memory that instructions change."""
    written = {id(v): v for e in instructions for v in e.variables_written}
    return [v for v in written.values() if isinstance(v._array, np.ndarray)]


class _Writer(SegmentWriter):
    def __init__(self, executable, assignment):
        super().__init__(executable, assignment)
        self.xp = executable.xp
        self.views = []  # of what the segment gives, with their numbers
        self.moments = []  # segments and instructions that change variables
        self.numbers = {each: n for n, each in enumerate(executable.checks, 1)}
        self.may_have_failed = False
        self.writes_host = False  # whether an instruction of NumPy's is being written
        self.host_names, self.device_names = {}, {}  # of constants

    commits_at_end = False  # those of a segment are one launch

    def has_code(self, instruction):
        return is_on_device(instruction)

    def write_between(self, i, instruction):
        if type(instruction) is View and self.is_made_by_segment(instruction.viewed):
            self.views.append((i, instruction))
        elif type(instruction) is LoadVariable:
            self.load(i, instruction)
        elif isinstance(instruction, StoreVariable):
            self.store(i, instruction)
        elif instruction in self.executable.on_host:
            self.writes_host = True
            super().write_between(i, instruction)
            self.writes_host = False
        elif instruction.is_free:
            super().write_between(i, instruction)
        else:
            self.flush(before=instruction)
            self.calls.append([instruction])
            if instruction.variables_written:
                self.moments.append(instruction)
            on_host = self.bring_operands(instruction)
            super().write_between(i, instruction)
            self.names.update(on_host)
            if type(instruction) is RegionCall:
                self.look_at_regions(i, instruction)

    def write_snapshot(self):
        """Record the host variables before a replay that may find invalid values."""
        if self.executable.checks:
            begin = self.source.bind("begin_", PerInstance(_begin_of))
            self.source.emit(f"{begin}()")
        return ()

    def look_at_regions(self, i, call):
        """Wait for the checks in regions, if code behind them depends on the result.

        It does if variables change there, or changes have to be undone, or if the
        invalid values would cause another error.
        """
        later = self.program.instructions[i + 1 :]
        matters = self.program.fails_late or any(
            [each.variables_written or _fails_on_host(each) for each in later]
        )
        if matters and any(map(_may_fail, self.regions[call])):
            look = functools.partial(_look_at_results, self.xp)
            self.source.emit(f"{self.source.bind('look', look)}()", call)

    def load(self, i, load):
        """Write a load if Python reads the array; a graph finds it without one."""
        if load in self.executable.on_host or self.is_read(load.outputs[0]):
            if self.segment is not None and self.segment.writes(load.variable):
                self.flush()
            super().write_between(i, load)

    def store(self, i, store):
        """Write a store to a host variable, behind the updates that read it."""
        self.moments.append(store)
        is_copied = type(store) is HostStore
        if is_copied or (self.segment and self.segment.uses(store.variable)):
            self.flush()
        if not is_copied:
            self.writes_host = True
            super().write_between(i, store)
            self.writes_host = False
            return
        self.release(i, store)
        variable = self.source.bind("v", store.variable)
        value = (
            f"{self.source.bind('to_numpy_', to_numpy)}({self.listed(store.operands)})"
        )
        self.source.emit(f"{variable}._bind({value})", store)
        self.clear(self.ending.pop(i, ()), store)

    def is_made_by_segment(self, buffer):
        """Return whether a buffer has no name before the segment is called."""
        made = self.segment is not None and buffer not in self.names
        return made and buffer.base.instruction in self.segment.instructions

    def is_read(self, buffer):
        return any([each.base is buffer for each in self.needed])

    def bring_operands(self, instruction):
        """Copy the host values that a call on the GPU needs.

        Returns their names on the host: the call receives the names of the copies.
        """
        names = {}
        if isinstance(instruction, Draw):
            return names  # drawn on the host
        for a in dict.fromkeys(instruction.operands):
            if a.kind is Kind.HOST:
                function = self.source.bind("asarray", self.xp.asarray)
                names[a] = self.name_of(a)
                self.names[a] = register = next(self.registers)
                self.source.emit(f"{register} = {function}({names[a]})", instruction)
        return names

    def name_of(self, buffer):
        if not buffer.is_constant or buffer.is_view:
            return super().name_of(buffer)
        names = self.host_names if self.writes_host else self.device_names
        if buffer not in names:
            value = buffer.source
            if not self.writes_host:
                value = PerInstance(_constant_of(self.xp, buffer.source))
            names[buffer] = self.source.bind("c", value)
        return names[buffer]

    def release(self, i, instruction):
        """Clear registers before variables change; `let_go` clears a segment's registers."""
        if self.segment is None:
            super().release(i, instruction)

    # --- segments

    def new_segment(self, number):
        return CudaSegment(f"graph_{number}", self.executable.plan, self.numbers)

    def append(self, i, instruction):
        for out in instruction.outputs:
            if self.is_read(out):
                self.own_memory(out)
        self.segment.append(instruction, self.may_have_failed)
        self.may_have_failed = self.may_have_failed or can_fail(instruction)
        self.last = i

    def write_segment(self, segment, before):
        is_seen = before is not None and (before.has_effect or _fails_on_host(before))
        is_seen = is_seen or self.program.fails_late  # changes are undone
        is_seen = is_seen or config.functions_are_verified()
        segment.synchronizes = is_seen and self.may_have_failed or not self.together
        segment.close(self.may_have_failed)
        if segment.updates or segment.stores:
            self.moments.append(segment)
        tag = segment.instructions[0]
        args = [self.name_of(b) for b in (*segment.inputs, *segment.hosts)]
        self.let_go(segment, args)
        results = [self.register(b) for b in segment.results]
        replay = self.source.bind("graph_", PerInstance(_replay_of(segment)))
        left = f"{', '.join(results)}, = " if results else ""
        self.source.emit(f"{left}{replay}({', '.join(args)})", tag)
        views, self.views = self.views, []
        for i, view in views:
            self.write(i, view)

    def let_go(self, segment, args):
        """Clear registers that may hold arrays of variables, which the segment changes."""
        if any([each.variables_written for each in segment.instructions]):
            last = self.assignment.last_use
            held = [r for r, base in self.holding.items() if last[base] <= self.last]
            done = [r for r in held if r not in args]
            for register in done:
                del self.holding[register]
            if done:
                self.source.emit(f"{' = '.join(done)} = None", segment.instructions[0])

    def function_name(self, function, stem="f"):
        if function is np.broadcast_to:
            function = self.xp.broadcast_to
        if function is copy_into:
            function = _copied_into
        return super().function_name(function, stem)


def _copied_into(x, out=None):
    """`copy_into` for arrays of any module."""
    if out is None:
        return x.copy(order="C")
    out[...] = x
    return out


def _may_fail(executable):
    """Return whether an executable, or a region of it, may find invalid values."""
    inner = [each for regions in executable.regions.values() for each in regions]
    return bool(executable.checks) or any(map(_may_fail, inner))


def _fails_on_host(instruction):
    """Return whether Python or CuPy runs an instruction, and may raise its error."""
    return not is_on_device(instruction) and may_fail(instruction.node)


def _look_at_results(xp):
    xp.cuda.get_current_stream().synchronize()
    check_results()


def _constant_of(xp, source):
    if kind_of(source.dtype) not in "biufc":
        return lambda instance, scope: source  # text, which only the host has
    return lambda instance, scope: xp.asarray(np.array(source))


def _begin_of(instance, scope):
    return instance.begin


def _replay_of(segment):
    return lambda instance, scope: Replay(segment, instance)
