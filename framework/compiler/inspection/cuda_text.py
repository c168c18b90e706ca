"""The text of a GPU executable: its graphs, step by step, and the calls between them.

The content of each CUDA graph follows its name. Arrays are named as in `native_text`.
"""

from ..program.instructions.array_instructions import (
    BoundedRead,
    Contract,
    Copy,
    Map,
    Reduce,
)
from ..program.instructions.call_instructions import RegionCall
from ..targets.cuda.kernel import Launch
from ..targets.cuda.scalar_functions import missing
from ..targets.cuda.steps import steps_of
from .pretty import counted, heading
from .program_text import call_text, calls_text, indented, note


def cuda_text(executable, graph):
    """Print a replay: a heading, and its steps, graph by graph.

    Above each instruction of a graph: the ops, the arrays that it returns, bytes read
    and written, operations, and the user's lines; below it its launches and library
    calls. After a call between two graphs: why it is not a step of a graph.
    """
    lines = [*heading(executable, graph), _share(executable)]
    calls = calls_text(executable, _segment, _reason_in)
    return "\n\n".join(["\n".join(lines), calls])


def _share(executable):
    """Return the share of a replay that graphs execute, as text."""
    segments = executable.segments
    count = sum([len(segment.instructions) for segment in segments])
    steps = sum([len(segment.steps) for segment in segments])
    working = [each for each in executable.program.instructions if not each.is_free]
    return (
        f"  {counted(len(segments), 'CUDA graph')} of {counted(steps, 'step')} for "
        f"{count} of {counted(len(working), 'instruction')}"
    )


def _segment(segment, names):
    count = counted(len(segment.steps), "step")
    parts = [f"{segment.name}: a CUDA graph of {count}"]
    parts += [indented(_work(each, segment, names)) for each in segment.instructions]
    return "\n\n".join([f"{parts[0]}\n{parts[1]}", *parts[2:]])


def _work(instruction, segment, names):
    steps = steps_of(instruction, segment.addresses)
    lines = [f"# {note(instruction)}", call_text(instruction, names)]
    return "\n".join([*lines, *[f"  {_step_text(step)}" for step in steps]])


def _step_text(step):
    """Format a launch with its blocks and threads, or the name of a library function."""
    if type(step) is not Launch:
        return getattr(step, "name", type(step).__name__)
    grid, block = [" x ".join(_sizes(sizes)) for sizes in (step.grid, step.block)]
    return f"{grid} blocks of {block} threads"


def _sizes(sizes):
    """Format sizes as text, without trailing 1s."""
    count = max([i for i, n in enumerate(sizes, 1) if n > 1], default=1)
    return [str(n) for n in sizes[:count]]


def _reason_in(executable):
    """Return a function that says why an instruction is not a step of a graph."""

    def reason(instruction):
        if instruction in executable.on_host:
            return "on the host, of its own variables"
        if type(instruction) is RegionCall:
            return "regions are compiled separately"
        if instruction.variables_written:
            return "writes to variables of the host"
        if instruction.has_effect:
            return "calls Python"
        name = instruction.name
        if isinstance(instruction, (Map, Reduce, Copy, BoundedRead)):
            name = missing(instruction) or name
        if type(instruction) is Contract:
            shapes = [str(list(a.shape)) for a in instruction.operands[:2]]
            name = f"{name} of {' and '.join(shapes)}"
        return f"no kernel for {name}"

    return reason
