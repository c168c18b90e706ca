"""The text of an executable of machine code: loop nests, products, and calls of NumPy.

What one function of machine code computes stands below its name. Arrays have the names of
arguments, of the ends of the paths of variables, and of the ops that make them.
"""

import math

from tapewright.core import config
from tapewright.core.emitter import identifier

from ..loops.loop_nest import LoopNest
from ..loops.pretty import nest_text
from ..program.array_instructions import Contract, View
from ..program.call_instructions import Load, Store
from ..targets.native import blas
from ..targets.native.executable import reason_for_numpy
from ..targets.native.kernel import is_shared
from ..targets.native.products import is_product, product_of
from ..targets.native.segments import code_of
from ..targets.native.slice_loop import SliceLoop
from ..targets.numpy.source import view_text
from .costs import instruction_cost, instruction_name
from .pretty import cost_text, counted, heading, short_line, spec_text

__all__ = ["native_text"]


def native_text(executable, graph):
    """Print a replay: a heading, and what it computes, call by call.

    Above each nest and product: the ops, the arrays that it gives, bytes read and written,
    operations, and the user's lines. Behind a call of NumPy: why it is no machine code.
    """
    lines = [*heading(executable, graph), _share(executable)]
    return "\n\n".join(["\n".join(lines), _calls(executable)])


def _calls(executable):
    names, parts = _Names(executable.program), []
    native = {i for segment in executable.segments for i in segment.instructions}
    ends = {segment.instructions[-1]: segment for segment in executable.segments}
    for each in executable.program.instructions:
        if each in ends:  # what is loaded in between is loaded before
            parts.append(_segment(ends[each], names))
        elif each not in native and type(each) is not View:
            parts.append(_line(each, names))
            parts += map(_region, executable.regions.get(each, ()))
    outputs = [names.of(buffer) for buffer in executable.program.outputs]
    parts.append(f"return {', '.join(outputs) or 'nothing'}")
    return _joined(parts)


def _share(executable):
    """Say which part of a replay is machine code."""
    segments = executable.segments
    found = sum([len(segment.instructions) for segment in segments])
    working = [each for each in executable.program.instructions if not each.is_free]
    functions = counted(len(segments), "function")
    threads = counted(config.threads(), "thread")
    return (
        f"  machine code for {found} of {counted(len(working), 'instruction')}, in "
        f"{functions}, on up to {threads}"
    )


def _joined(parts):
    """Paragraphs, and lines that follow each other."""
    text = ""
    for before, part in zip(["", *parts], parts):
        apart = "\n" in before or "\n" in part
        text += ("\n\n" if apart else "\n") * bool(before) + part
    return text


class _Names:
    """A name for each buffer of a program."""

    def __init__(self, program):
        self.known, self.taken = {}, set()
        for i, buffer in enumerate(program.inputs):
            self.give(buffer, buffer.source.name or f"x{i}")
        loads = [each for each in program.instructions if type(each) is Load]
        ends = _ends([each.variable.path for each in loads])
        for each in loads:
            self.give(each.outputs[0], ends[each.variable.path])
        for each in program.instructions:
            if type(each) is View:
                continue
            self.give_outputs(each, each.outputs)

    def give_outputs(self, instruction, seen):
        """Name the outputs of the steps of an instruction that are ``seen`` by others."""
        for step in instruction.steps or (instruction,):
            inside = step.outputs if type(instruction) is SliceLoop else seen
            if step.steps:
                self.give_outputs(step, inside)
                continue
            for out in step.outputs:
                if out in inside and out not in self.known:
                    self.give(out, step.node.name)
        for out in instruction.outputs:  # what one nest hands on to the next
            if out not in self.known:
                self.give(out, instruction.node.name)

    def give(self, buffer, stem):
        name, n = identifier(stem), 1
        stem = name
        while name in self.taken:
            n += 1
            name = f"{stem}_{n}"
        self.taken.add(name)
        self.known[buffer] = name

    def of(self, buffer):
        if buffer not in self.known:
            view = buffer.instruction
            if type(view) is View:
                return view_text(view, self.of(view.viewed), lambda f: f.__name__)
            if buffer.is_constant and buffer.size == 1:
                return str(buffer.source.reshape(-1)[0])
            self.give(buffer, "constant")
        return self.known[buffer]


def _ends(paths):
    """The shortest ends of paths by which they differ: ``dense/kernel`` -> ``kernel``."""
    found = {}
    for path in paths:
        parts = path.split("/")
        for n in range(1, len(parts) + 1):
            end = parts[-n:]
            if not any([p != path and p.split("/")[-n:] == end for p in paths]):
                break
        found[path] = "_".join(end)
    return found


def _region(executable):
    program = executable.program
    inputs = [f"{x.source.name or 'x'}: {spec_text(x)}" for x in program.inputs]
    head = f"  region {executable.name}({', '.join(inputs)}):"
    return f"{head}\n{_indented(_indented(_calls(executable)))}"


def _indented(text):
    return "\n".join([f"  {line}" if line else "" for line in text.split("\n")])


def _segment(segment, names):
    count = counted(len(segment.instructions), "instruction")
    parts = [f"{segment.name}: machine code for {count}"]
    parts += [_indented(_code(each, names)) for each in segment.instructions]
    return "\n\n".join([f"{parts[0]}\n{parts[1]}", *parts[2:]])


def _code(instruction, names, way=None):
    """An instruction as loops, products or calls, under a note.

    ``way``: how its blocks run, if that is known from what it is a step of.
    """
    more = ""
    if type(instruction) is LoopNest:
        way = way or _way(instruction)
        text = nest_text(instruction, names.of, way, names.taken)
    elif type(instruction) is SliceLoop:
        each = [_code(step, names, "one a slice") for step in instruction.steps]
        head = f"for each of {instruction.count} slices:"
        text = "\n".join([head, *map(_indented, each)])
    elif is_product(instruction):
        more, text = _blocks(instruction, way), _equation(instruction, names)
    elif _is_thin_product(instruction):
        text = _equation(instruction, names)
    else:
        text = _call(instruction, names)
    return f"# {_note(instruction, more)}\n{text}"


def _is_thin_product(instruction):
    """Return whether a kernel is a product of whole arrays as they lie."""
    replaced = getattr(instruction, "replaced", None)
    if type(replaced) is not Contract or not is_product(replaced):
        return False
    return not any([a.is_view for a in replaced.operands])


def _way(nest):
    shared = is_shared(nest.blocks.extent, code_of(nest).work)
    return "in parallel" if shared else "one after the other"


def _line(instruction, names):
    """A line for what is no machine code."""
    where = short_line(getattr(instruction.node, "line", None))
    if type(instruction) is Load:
        (out,) = instruction.outputs
        path = instruction.variable.path
        text = f"{names.of(out)} = variable '{path}'"
        return f"{text:<40}  # {spec_text(out)}  {where}"
    if type(instruction) is Store:
        path = instruction.variable.path
        text = f"variable '{path}' = {names.of(instruction.operands[0])}"
        return f"{text:<40}  # {where}"
    why = reason_for_numpy(instruction)
    return f"{_call(instruction, names):<40}  # {why};  {_note(instruction)}"


def _call(instruction, names):
    made = ", ".join([names.of(out) for out in instruction.outputs])
    read = ", ".join([names.of(a) for a in instruction.reads])
    return f"{made}{' = ' * bool(made)}{instruction.name}({read})"


def _equation(product, names):
    (out,) = product.outputs
    a, b = product.reads
    return f"{names.of(out)} = {names.of(a)} @ {names.of(b)}"


def _blocks(product, way):
    """The matrices of a product as BLAS sees them, and how it is shared among threads."""
    (out,), found = product.outputs, product_of(product)
    shapes = f"[{found.m},{found.k}] @ [{found.k},{found.n}]"
    count = math.prod(found.batch)
    if count > 1:
        return f"{count} x {shapes}, {way or 'in parallel'}"
    rows, columns = blas.blocks(found.m, found.n, found.k, out.dtype)
    cut = f", {rows} x {columns} blocks in parallel" if rows * columns > 1 else ""
    return f"{shapes}{cut}"


def _note(instruction, more=""):
    """The ops, the results, what they cost and the user's lines."""
    made = ", ".join([spec_text(out) for out in instruction.outputs])
    cost = cost_text(instruction_cost(instruction))
    parts = [instruction_name(instruction), made, more, cost, _lines(instruction)]
    return "  ".join([part for part in parts if part])


def _lines(instruction, most=4):
    """The user's lines of all steps: ``train.py:9, 12``."""
    lines = {}
    for step in instruction.steps or (instruction,):
        file, _, number = short_line(getattr(step.node, "line", None)).rpartition(":")
        if number:
            lines.setdefault(file, {})[number] = None
    texts = []
    for file, numbers in lines.items():
        listed = [*numbers][:most] + ["..."] * (len(numbers) > most)
        texts.append(f"{file}:{', '.join(listed)}")
    return "; ".join(texts)
