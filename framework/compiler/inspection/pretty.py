"""Graphs and executables as text: nodes, a drawing, the calls of a replay with their cost."""

import os
import re

from ..pipeline import current_target, stages
from ..targets.numpy.fused_maps import BlockFunction
from ..tracing.graph import Effect, Graph, Read, Write, is_value
from .costs import instruction_cost, instruction_name

_SHORT = {"float": "f", "int": "i", "uint": "u", "complex": "c", "bfloat": "bf"}


# ------------------------------------------------------------------------ small words


def spec_text(x):
    """Format dtype and shape: ``f32[128,10]``; an unknown dimension is ``?``."""
    name = x.dtype.name
    stem = name.rstrip("0123456789")
    if stem != name and stem in _SHORT:
        name = _SHORT[stem] + name[len(stem) :]
    if x.shape is None:
        return f"{name}[...]"
    sizes = ["?" if n is None else str(n) for n in x.shape]
    return f"{name}[{','.join(sizes)}]"


def quantity(number, unit=""):
    """Format a number with three digits and a unit: ``12.9 M``.

    Example:
        >>> from tapewright.compiler.inspection.pretty import quantity
        >>> quantity(12_845_056, "flop"), quantity(512, "B")
        ('12.8 Mflop', '512 B')
    """
    prefixes = iter(("", "k", "M", "G", "T"))
    prefix = next(prefixes)
    while abs(number) >= 999.5 and prefix != "T":
        number, prefix = number / 1000, next(prefixes)
    whole = prefix == "" or number >= 99.95
    return f"{number:.0f} {prefix}{unit}" if whole else f"{number:.3g} {prefix}{unit}"


def counted(number, one, many=None):
    """Format a number with its noun: ``1 node``, ``3 nodes``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def short_line(line):
    """Return a line of user code without the folder of its file."""
    return os.path.basename(line) if line else ""


def name_line(graph):
    """Format a function's name with its inputs and outputs."""
    inputs = [f"{v.name or 'x'}: {spec_text(v)}" for v in graph.inputs]
    outputs = [spec_text(v if is_value(v) else v.array) for v in graph.outputs]
    return f"{graph.name}({', '.join(inputs)}) -> {', '.join(outputs) or 'nothing'}"


# --------------------------------------------------------------------------- the graph


class _Names:
    """A short name for each value of a graph: ``%name`` of an input, ``%3`` of a node."""

    def __init__(self, graph, outer=None):
        self.known = {} if outer is None else dict(outer.known)
        self.count = 0
        taken = set()
        for i, value in enumerate((*graph.inputs, *graph.captures)):
            name = value.name or f"x{i}"
            name = f"{name}_{i}" if name in taken else name
            taken.add(name)
            self.known[value] = f"%{name}"

    def give(self, node):
        names = []
        for value in node.outputs:
            names.append(f"%{self.count}")
            self.known[value] = names[-1]
            self.count += 1
        return names

    def of(self, x):
        if is_value(x):
            return self.known.get(x, "%?")
        array = x.array
        if getattr(array, "size", 0) == 1 and hasattr(array, "item"):
            return repr(array.item())
        return f"const {spec_text(array)}"


def graph_text(graph, indent="", outer=None):
    """The nodes of a graph, a line each: ``%3 = matmul(%1, %2) f32[128,10]``."""
    names = _Names(graph, outer)
    lines = [f"{indent}{name_line(graph)}"]
    for node in graph.nodes:
        lines.append(f"{indent}    {_node_text(node, names)}")
        for i, region in enumerate(node.regions):
            lines.append(f"{indent}    region {i}:")
            lines.append(graph_text(region, indent + "        ", names))
    lines.append(f"{indent}    return {', '.join(names.of(x) for x in graph.outputs)}")
    return "\n".join(lines)


def pipeline_text(graph):
    """Format the passes of the current target, with the sizes that they leave."""
    lines = [f"function {graph.name} on the target {current_target().name}"]
    for name, made in stages(graph):
        if isinstance(made, Graph):
            size = counted(len(made.nodes), "node")
        else:
            size = counted(len(made.instructions), "instruction")
        number, unit = size.split()
        lines.append(f"{number:>6} {unit:<13} {name}")
    return "\n".join(lines)


def _node_text(node, names):
    where = f"    # {short_line(node.line)}" if node.line else ""
    if type(node) is Read:
        (given,) = names.give(node)
        spec = spec_text(node.outputs[0])
        return f"{given} = read '{node.variable.path}' {spec}{where}"
    if type(node) is Write:
        return f"store '{node.variable.path}' = {names.of(node.inputs[0])}{where}"
    inputs = [names.of(x) for x in node.inputs]
    attributes = [f"{k}={_plain(v)}" for k, v in _shown_attributes(node).items()]
    text = f"{node.name}({', '.join([*inputs, *attributes])})"
    given = names.give(node)
    if given:
        specs = ", ".join(spec_text(out) for out in node.outputs)
        text = f"{', '.join(given)} = {text} {specs}"
    if type(node) is Effect and node.writes:
        text += f" writes {_listed(node.writes)}"
    return text + where


def _shown_attributes(node):
    """Return the attributes that differ from their defaults."""
    defaults = getattr(node.op, "defaults", {})
    return {
        k: v
        for k, v in node.attributes.items()
        if not (k in defaults and _same(defaults[k], v))
    }


def _same(a, b):
    return type(a) is type(b) and a is b or repr(a) == repr(b)


def _plain(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _listed(variables, most=4):
    paths = [f"'{v.path}'" for v in variables]
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(paths[:most]) + more


def dot_text(graph):
    """The graph in Graphviz's language, to be drawn with ``dot -Tsvg``."""
    lines = [f'digraph "{graph.name}" {{', "  node [shape=box, fontname=monospace];"]
    numbers = {}

    def draw(label, key, style=""):
        numbers[key] = f"n{len(numbers)}"
        text = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'  {numbers[key]} [label="{text}"{style}];')
        return numbers[key]

    for value in (*graph.inputs, *graph.captures):
        draw(f"{value.name or 'input'}\n{spec_text(value)}", value, ", shape=ellipse")
    for node in graph.nodes:
        label, style = node.name, ""
        if type(node) in (Read, Write):
            label, style = f"{node.name} {node.variable.path}", ", style=rounded"
        specs = [spec_text(out) for out in node.outputs]
        here = draw("\n".join([label, *specs]), node, style)
        for x in node.inputs:
            if is_value(x):
                source = x.node if x.node is not None else x
                lines.append(f"  {numbers.get(source, here)} -> {here};")
    for i, x in enumerate(graph.outputs):
        end = draw(f"output {i}", ("output", i), ", shape=ellipse")
        if is_value(x):
            lines.append(f"  {numbers[x.node if x.node is not None else x]} -> {end};")
    return "\n".join([*lines, "}"]) + "\n"


# ---------------------------------------------------------------------------- the executable


def executable_text(executable, graph):
    """Print a replay: a heading, and its source with the cost of each line.

    After each call: the op, the array that it returns, bytes read and written,
    operations (and functions like ``exp``, as ``fn``), and the user's line.
    """
    parts = [
        "\n".join(heading(executable, graph)),
        _annotated(executable),
        *_blocks(executable),
    ]
    return "\n\n".join(parts)


def heading(executable, graph):
    """Describe an executable as a whole, in lines."""
    read, written = {}, {}
    for node in graph.nodes:
        if type(node) is not Read:
            read.update({id(v): v for v in node.reads})
        else:
            read.setdefault(id(node.variable), node.variable)
        written.update({id(v): v for v in node.writes})
    instructions = executable.program.instructions
    after = getattr(executable.program.graph, "nodes", graph.nodes)
    working = [each for each in instructions if not each.is_free]
    lines = [name_line(graph)]
    if read:
        count = counted(len(read), "variable")
        lines.append(f"  reads {count}: {_listed(read.values(), 6)}")
    if written:
        lines.append(f"  writes {len(written)}: {_listed(written.values(), 6)}")
    nodes = f"{counted(len(graph.nodes), 'node')} traced, {len(after)} after passes"
    views = counted(len(instructions) - len(working), "view or read", "views and reads")
    calls = counted(len(working), executable.unit)
    lines.append(f"  {nodes}, {calls}, {views}")
    size = quantity(executable.arena_size, "B")
    lines.append(f"  {size} of buffers, used again and again")
    return lines


def _annotated(executable):
    source = executable.source.rstrip("\n").split("\n")
    source[0] = _short_signature(source[0])
    notes = [_note(*pair) for pair in zip(executable.lines, source, strict=True)]
    notes += [""] * (len(source) - len(notes))
    noted = [len(text) for text, note in zip(source, notes, strict=False) if note]
    width = min(max(noted, default=0), 60)
    return "\n".join(
        f"{text:<{width}}  # {note}" if note else text
        for text, note in zip(source, notes, strict=False)
    )


def _blocks(executable):
    """Return the sources of the calls that run several ops row by row, in the cache."""
    sources = []
    for name, function in executable.bound.items():
        if type(function) is BlockFunction:
            text = function.source.text.rstrip("\n")
            for inner, value in function.source.bound.items():
                label = getattr(value, "__name__", inner)
                text = re.sub(rf"\b{inner}\(", f"{label}(", text)
            head, _, body = text.partition("\n")
            sources.append(
                f"{_short_signature(head.replace('block', name, 1))}\n{body}"
            )
    return sources


def _short_signature(text):
    """Return the first line, without default arguments that only bind names."""
    head, _, rest = text.partition("(")
    names = [p.strip() for p in rest.rstrip("):").split(",")]
    return f"{head}({', '.join(n for n in names if n and '=' not in n)}):"


def _note(instruction, text):
    if instruction is None or text.strip().endswith("= None"):
        return ""
    node = instruction.node
    where = short_line(getattr(node, "line", None))
    if instruction.is_free and instruction.viewed is None:
        return f"{node.name} '{node.variable.path}'  {where}"
    parts = [instruction_name(instruction)]
    if instruction.outputs:
        parts.append(", ".join(spec_text(out) for out in instruction.outputs))
    if not instruction.is_free:
        parts.append(cost_text(instruction_cost(instruction)))
    return "  ".join([p for p in (*parts, where) if p])


def cost_text(cost):
    """Format a cost: ``434 kB 12.8 Mflop``."""
    parts = [quantity(cost.nbytes, "B")]
    if cost.flops:
        parts.append(quantity(cost.flops, "flop"))
    if cost.transcendentals:
        parts.append(quantity(cost.transcendentals, "fn"))
    return " ".join(parts)
