"""Names of buffers, and lines of instructions, for the texts of executables."""

from tapewright.core.op_definition.emitter import identifier

from ..program.instructions.array_instructions import View
from ..program.instructions.call_instructions import LoadVariable, StoreVariable
from ..targets.numpy.source import view_text
from .costs import instruction_cost, instruction_name
from .pretty import cost_text, short_line, spec_text


class Names:
    """A name for each buffer of a program.

    ``opened`` is a class of instructions whose intermediate results are named too.
    """

    def __init__(self, program, opened=()):
        self.known, self.taken, self.opened = {}, set(), opened
        for i, buffer in enumerate(program.inputs):
            self.give(buffer, buffer.source.name or f"x{i}")
        loads = [each for each in program.instructions if type(each) is LoadVariable]
        ends = _ends([each.variable.path for each in loads])
        for each in loads:
            self.give(each.outputs[0], ends[each.variable.path])
        for each in program.instructions:
            if type(each) is View:
                continue
            self.give_outputs(each, each.outputs)

    def give_outputs(self, instruction, seen):
        """Name the outputs of the steps of an instruction that others use (``seen``)."""
        for step in instruction.steps or (instruction,):
            inside = step.outputs if isinstance(instruction, self.opened) else seen
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
    """Return the shortest suffixes that distinguish paths: ``dense/kernel`` -> ``kernel``."""
    ends = {}
    for path in paths:
        parts = path.split("/")
        for n in range(1, len(parts) + 1):
            end = parts[-n:]
            if not any([p != path and p.split("/")[-n:] == end for p in paths]):
                break
        ends[path] = "_".join(end)
    return ends


def calls_text(executable, segment_text, reason_in, opened=()):
    """Format a replay, call by call: segments, instructions between them, and regions.

    ``segment_text(segment, names)`` prints a segment; ``reason_in(executable)`` returns
    a function that says why an instruction is not in a segment. For ``opened``, see
    `Names`.
    """
    names, parts = Names(executable.program, opened), []
    inside = {i for segment in executable.segments for i in segment.instructions}
    ends = {segment.instructions[-1]: segment for segment in executable.segments}
    for each in executable.program.instructions:
        if each in ends:  # what is loaded in between is loaded before
            parts.append(segment_text(ends[each], names))
        elif each not in inside and type(each) is not View:
            parts.append(line_text(each, names, reason_in(executable)))
            for region in executable.regions.get(each, ()):
                text = calls_text(region, segment_text, reason_in, opened)
                parts.append(f"{_region_head(region)}\n{indented(indented(text))}")
    outputs = [names.of(buffer) for buffer in executable.program.outputs]
    parts.append(f"return {', '.join(outputs) or 'nothing'}")
    return join_paragraphs(parts)


def _region_head(executable):
    inputs = executable.program.inputs
    listed = [f"{x.source.name or 'x'}: {spec_text(x)}" for x in inputs]
    return f"  region {executable.name}({', '.join(listed)}):"


def line_text(instruction, names, reason):
    """Format a line for a separate instruction; ``reason(instruction)`` explains why."""
    where = short_line(getattr(instruction.node, "line", None))
    if type(instruction) is LoadVariable:
        (out,) = instruction.outputs
        path = instruction.variable.path
        text = f"{names.of(out)} = variable '{path}'"
        return f"{text:<40}  # {spec_text(out)}  {where}"
    if type(instruction) is StoreVariable:
        path = instruction.variable.path
        text = f"variable '{path}' = {names.of(instruction.operands[0])}"
        return f"{text:<40}  # {where}"
    why = reason(instruction)
    return f"{call_text(instruction, names):<40}  # {why};  {note(instruction)}"


def call_text(instruction, names):
    """Format a call: ``outputs = name(operands)``."""
    made = ", ".join([names.of(out) for out in instruction.outputs])
    read = ", ".join([names.of(a) for a in instruction.reads])
    return f"{made}{' = ' * bool(made)}{instruction.name}({read})"


def note(instruction, more=""):
    """Describe the ops, the results, their cost and the user's lines."""
    made = ", ".join([spec_text(out) for out in instruction.outputs])
    cost = cost_text(instruction_cost(instruction))
    parts = [instruction_name(instruction), made, more, cost, _lines(instruction)]
    return "  ".join([part for part in parts if part])


def _lines(instruction, most=4):
    """Return the user's lines of all steps: ``train.py:9, 12``."""
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


def join_paragraphs(parts):
    """Join paragraphs, and lines that follow each other."""
    text = ""
    for before, part in zip(["", *parts], parts):
        apart = "\n" in before or "\n" in part
        text += ("\n\n" if apart else "\n") * bool(before) + part
    return text


def indented(text):
    """Indent the lines of ``text`` by two spaces."""
    return "\n".join([f"  {line}" if line else "" for line in text.split("\n")])
